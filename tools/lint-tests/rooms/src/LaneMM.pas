/// The door.
unit LaneMM;

interface

uses
  LaneMM.High;

implementation

end.
