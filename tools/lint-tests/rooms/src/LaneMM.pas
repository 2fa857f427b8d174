/// The door.
unit LaneMM;

interface

uses
  LaneMM.High, LaneMM.Quiet;

implementation

end.
