/// Uses a unit by which reports are written.
unit LaneMM.Quiet;

interface

uses
  LaneMM.Under;

implementation

end.
