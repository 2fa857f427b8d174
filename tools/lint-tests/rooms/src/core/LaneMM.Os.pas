/// May use what the system offers.
unit LaneMM.Os;

interface

uses
  Windows;

implementation

end.
