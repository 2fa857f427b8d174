program RunTests;

uses
  SysUtils, LaneMM.Allocate, LaneMM.Rooms, LaneMM.Unknown, LaneMM.Nothing;

begin
end.
