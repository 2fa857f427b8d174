/// Prints which sizes a real program asks for, out of a plan of `lanemm replay --plan`.
///   SizeHistogram PLAN
program SizeHistogram;

{$mode delphi}{$H+}

uses
  SysUtils, Plans;

const
  HighestLog2 = 40;
  // Where the small and the medium blocks of FastMM 4 end.
  SmallLimit = 2608;
  MediumLimit = 264752;

var
  Plan: TPlanReader;
  Counts: array[0..HighestLog2] of Int64; // blocks of at most 1 shl Index bytes, and more than half
  Tiers: array[1..3] of Int64;
  All: Int64;

procedure CountBlock(Size: UInt64);
var
  Log2: Integer;
begin
  Log2 := 0;
  while UInt64(1) shl Log2 < Size do
    Inc(Log2);
  Inc(Counts[Log2]);
  Inc(Tiers[1 + Ord(Size > SmallLimit) + Ord(Size > MediumLimit)]);
  Inc(All);
end;

procedure CountPlan(const Path: string);
var
  Call: TPlanCall;
begin
  Plan.Open(Path);
  while Plan.Next(Call) do
    if Call.Kind = pkNew then
      CountBlock(Call.Size);
  Plan.Close;
end;

procedure PrintCounts;
var
  Log2: Integer;
  Sum: Int64;
begin
  WriteLn('up to bytes      blocks   share   so far');
  Sum := 0;
  for Log2 := 0 to HighestLog2 do
    if Counts[Log2] > 0 then
    begin
      Inc(Sum, Counts[Log2]);
      WriteLn(Format('%11d %11d %6.2f %% %6.2f %%', [Int64(1) shl Log2, Counts[Log2],
        100 * Counts[Log2] / All, 100 * Sum / All]));
    end;
  WriteLn(Format('small to %d: %.2f %%, medium to %d: %.2f %%, large: %.2f %%', [SmallLimit,
    100 * Tiers[1] / All, MediumLimit, 100 * Tiers[2] / All, 100 * Tiers[3] / All]));
end;

begin
  if ParamCount <> 1 then
  begin
    WriteLn(StdErr, 'SizeHistogram PLAN');
    Halt(2);
  end;
  CountPlan(ParamStr(1));
  if All > 0 then
    PrintCounts;
end.
