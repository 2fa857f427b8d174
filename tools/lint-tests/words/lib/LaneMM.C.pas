/// Somebody.
unit LaneMM.C;

interface

implementation

uses
  LaneMM.Allocate;

end.
