program RunTests;

uses
  SysUtils, LaneMM,
  LaneMM.Allocate, LaneMM.Kinds;

begin
  BlockTested;
end.
