/// Holds the entries.
unit LaneMM.Allocate;

interface

uses
  LaneMM.Os;

implementation

end.
