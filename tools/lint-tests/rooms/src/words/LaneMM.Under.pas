/// Used by later rooms and by its own.
unit LaneMM.Under;

interface

uses
  LaneMM.Os;

implementation

end.
