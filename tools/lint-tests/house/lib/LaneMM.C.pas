/// Uses all units and routines, so that none of them is unused.
unit LaneMM.C;

interface

implementation

uses
  LaneMM.Allocate, LaneMM.Layout, LaneMM.CpuState, LaneMM.DebugState, LaneMM.Places, LaneMM.Good;

procedure UseAll;
begin
  Bad;
  Worse;
  WriteLines(Withdraw);
  Undocumented;
  Count(Third);
end;

end.
