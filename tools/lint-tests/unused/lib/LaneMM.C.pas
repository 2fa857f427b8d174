/// The root of the library, which names units to have them linked.
unit LaneMM.C;

interface

implementation

uses
  LaneMM.C.Malloc, LaneMM.Kinds;

end.
