/// LaneMM's trim, for the workloads that call it.
unit LaneMMTrim;

{$mode objfpc}

interface

implementation

uses
  LaneMM, Bench.Trim;

procedure Trim;
begin
  LaneMM_Trim;
end;

initialization
  TrimMemory := @Trim;

end.
