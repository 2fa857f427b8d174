/// Tests of LaneMM.FreeRuns. Each test sets the runs of the process aside, uses span records of
/// its own under the shards' locks, and checks the outcome after the runs are restored: nothing may
/// be allocated in between.
unit Test.FreeRuns;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.Types;

const
  SliceCount = 300;

type
  /// The part of Process that LaneMM.FreeRuns owns.
  TRuns = record
    Warm, Cold: TBins;
    Oldest, Youngest: PSpan;
    WarmSlices, ColdSlices: NativeUInt;
  end;

  TFreeRunsTests = class(TLaneTest)
  strict private
    Records: array of TSpan;
    Saved, SavedSecond: TRuns;
    Warm, Cold: NativeUInt;
    // First records of runs, by the index of their slice; -1 stands for nil.
    Found: array[0..9] of Integer;
    IsTaken: array[0..SliceCount - 1] of Boolean;
    Overlaps: Integer;
    procedure Enter;
    procedure Leave;
    function SpanAt(Index: Integer): PSpan;
    function IndexOf(Span: PSpan): Integer;
    procedure Mark(Span: PSpan; Count: Integer; Value: Boolean);
    procedure PlayRandomly;
    function CountOfTaken: Integer;
  published
    procedure RunIsFoundByItsLength;
    procedure TakeGivesTheShortestRunThatIsLongEnough;
    procedure TakeCutsAndTheRestStaysFree;
    procedure TakeOfMoreThanThereIsGivesNil;
    procedure TheLongestRunPossibleHasABin;
    procedure NeighboursBecomeOneRun;
    procedure WarmAndColdStayApart;
    procedure RemovedRunIsNoRun;
    procedure OldestIsTheOneFreedFirst;
    procedure RestOfACutRunIsTheOldest;
    procedure ColdRunThatFitsBetterKeepsTheWarmOneWhole;
    procedure ForgetLeavesNothing;
    procedure RunsOfTwoShardsStayApart;
    procedure EndOfARunOfAnotherShardIsNotFollowed;
    procedure RandomUseNeverHandsOutASliceTwice;
  end;

implementation

uses
  testregistry, LaneMM.Layout, LaneMM.Lock, LaneMM.FreeRuns;

function TakeRun(var Bins: TBins; Length: NativeUInt): PSpan;
begin
  Result := FreeRunTake(Bins, Length, High(NativeUInt));
end;

procedure SaveRuns(Shard: PShard; out Runs: TRuns);
begin
  LockEnter(Shard^.Lock);
  Runs.Warm := Shard^.Warm;
  Runs.Cold := Shard^.Cold;
  Runs.Oldest := Shard^.Oldest;
  Runs.Youngest := Shard^.Youngest;
  Runs.WarmSlices := Shard^.WarmSlices;
  Runs.ColdSlices := Shard^.ColdSlices;
  FreeRunsForget(Shard);
end;

procedure RestoreRuns(Shard: PShard; const Runs: TRuns);
begin
  Shard^.Warm := Runs.Warm;
  Shard^.Cold := Runs.Cold;
  Shard^.Oldest := Runs.Oldest;
  Shard^.Youngest := Runs.Youngest;
  Shard^.WarmSlices := Runs.WarmSlices;
  Shard^.ColdSlices := Runs.ColdSlices;
  LockLeave(Shard^.Lock);
end;

procedure TFreeRunsTests.Enter;
var
  Index: Integer;
begin
  Records := nil;
  SetLength(Records, SliceCount + 2);
  for Index := 0 to High(Records) do
  begin
    Records[Index].Start := PByte(NativeUInt(Index) * SliceSize);
    Records[Index].Shard := 1;
  end;
  FillChar(IsTaken, SizeOf(IsTaken), 0);
  SaveRuns(@Process.Shards[1], Saved);
  SaveRuns(@Process.Shards[2], SavedSecond);
end;

procedure TFreeRunsTests.Leave;
begin
  Warm := Process.Shards[1].WarmSlices;
  Cold := Process.Shards[1].ColdSlices;
  RestoreRuns(@Process.Shards[2], SavedSecond);
  RestoreRuns(@Process.Shards[1], Saved);
end;

// Slice 0 and the one after the last have records that are never a run.
function TFreeRunsTests.SpanAt(Index: Integer): PSpan;
begin
  Result := @Records[Index + 1];
end;

function TFreeRunsTests.IndexOf(Span: PSpan): Integer;
begin
  if Span = nil then
    Exit(-1);
  Result := Span - SpanAt(0);
end;

procedure TFreeRunsTests.RunIsFoundByItsLength;
var
  Length, Lost, Wrong: Integer;
begin
  Lost := 0;
  Wrong := 0;
  Enter;
  for Length := 1 to SliceCount do
  begin
    FreeRunAdd(SpanAt(0), Length, True);
    if TakeRun(Process.Shards[1].Warm, Length) <> SpanAt(0) then
      Inc(Lost);
    FreeRunAdd(SpanAt(0), Length, True);
    if TakeRun(Process.Shards[1].Warm, Length + 1) <> nil then
      Inc(Wrong);
    FreeRunCut(SpanAt(0), SpanAt(0)^.SliceCount);
  end;
  Leave;
  Same(0, Lost, 'lengths not found');
  Same(0, Wrong, 'runs given that are too short');
end;

procedure TFreeRunsTests.TakeGivesTheShortestRunThatIsLongEnough;
begin
  Enter;
  FreeRunAdd(SpanAt(0), 100, True);
  FreeRunAdd(SpanAt(120), 5, True);
  FreeRunAdd(SpanAt(140), 20, True);
  Found[0] := IndexOf(TakeRun(Process.Shards[1].Warm, 4));
  Found[1] := IndexOf(TakeRun(Process.Shards[1].Warm, 18));
  Found[2] := IndexOf(TakeRun(Process.Shards[1].Warm, 18));
  Leave;
  Same(120, Found[0], 'four slices');
  Same(140, Found[1], 'eighteen slices');
  Same(0, Found[2], 'eighteen more');
end;

procedure TFreeRunsTests.TakeCutsAndTheRestStaysFree;
begin
  Enter;
  FreeRunAdd(SpanAt(10), 50, True);
  Found[0] := IndexOf(TakeRun(Process.Shards[1].Warm, 20));
  Found[1] := IndexOf(TakeRun(Process.Shards[1].Warm, 30));
  Leave;
  Same(10, Found[0], 'front');
  Same(30, Found[1], 'rest');
  Same(0, Warm, 'free slices at the end');
end;

procedure TFreeRunsTests.TakeOfMoreThanThereIsGivesNil;
begin
  Enter;
  FreeRunAdd(SpanAt(0), 10, True);
  Found[0] := IndexOf(TakeRun(Process.Shards[1].Warm, 11));
  Found[1] := IndexOf(TakeRun(Process.Shards[1].Cold, 1));
  Leave;
  Same(-1, Found[0], 'too long');
  Same(-1, Found[1], 'none there');
  Same(10, Warm, 'free slices');
end;

procedure TFreeRunsTests.TheLongestRunPossibleHasABin;
begin
  Enter;
  Found[0] := IndexOf(TakeRun(Process.Shards[1].Warm, MaxRunSlices));
  Found[1] := IndexOf(TakeRun(Process.Shards[1].Cold, MaxRunSlices));
  // A bin after the last one would lie where Cold.Map is, or after Cold.
  Process.Shards[1].Cold.Map[0] := 0;
  Leave;
  Same(-1, Found[0], 'warm');
  Same(-1, Found[1], 'cold');
end;

procedure TFreeRunsTests.NeighboursBecomeOneRun;
begin
  Enter;
  FreeRunAdd(SpanAt(10), 5, True);
  FreeRunAdd(SpanAt(20), 5, True);
  FreeRunAdd(SpanAt(15), 5, True);
  Found[0] := IndexOf(TakeRun(Process.Shards[1].Warm, 15));
  Leave;
  Same(10, Found[0], 'the joined run');
  Same(0, Warm, 'free slices at the end');
end;

procedure TFreeRunsTests.WarmAndColdStayApart;
begin
  Enter;
  FreeRunAdd(SpanAt(0), 5, True);
  FreeRunAdd(SpanAt(5), 5, False);
  Found[0] := IndexOf(TakeRun(Process.Shards[1].Warm, 6));
  Found[1] := IndexOf(TakeRun(Process.Shards[1].Cold, 6));
  Found[2] := IndexOf(TakeRun(Process.Shards[1].Cold, 5));
  Leave;
  Same(-1, Found[0], 'warm');
  Same(-1, Found[1], 'cold');
  Same(5, Found[2], 'the cold run alone');
  Same(5, Warm, 'warm slices left');
  Same(0, Cold, 'cold slices left');
end;

procedure TFreeRunsTests.RemovedRunIsNoRun;
var
  IsRun: array[0..1] of Boolean;
begin
  Enter;
  FreeRunAdd(SpanAt(0), 5, True);
  IsRun[0] := IsFreeRun(SpanAt(0));
  FreeRunCut(SpanAt(0), SpanAt(0)^.SliceCount);
  IsRun[1] := IsFreeRun(SpanAt(0));
  FreeRunAdd(SpanAt(5), 5, True);
  Found[0] := IndexOf(TakeRun(Process.Shards[1].Warm, 6));
  Leave;
  AssertTrue('before', IsRun[0]);
  AssertFalse('after', IsRun[1]);
  Same(-1, Found[0], 'joined with a run in use');
end;

procedure TFreeRunsTests.OldestIsTheOneFreedFirst;
var
  Index: Integer;
begin
  Enter;
  for Index := 0 to 4 do
    FreeRunAdd(SpanAt(Index * 10), 5, True);
  FreeRunCut(SpanAt(20), SpanAt(20)^.SliceCount);
  for Index := 0 to 3 do
  begin
    Found[Index] := IndexOf(Process.Shards[1].Oldest);
    FreeRunCut(Process.Shards[1].Oldest, Process.Shards[1].Oldest^.SliceCount);
  end;
  Found[4] := IndexOf(Process.Shards[1].Oldest);
  Found[5] := IndexOf(Process.Shards[1].Youngest);
  Leave;
  Same(0, Found[0], 'first');
  Same(10, Found[1], 'second');
  Same(30, Found[2], 'third');
  Same(40, Found[3], 'last');
  Same(-1, Found[4], 'oldest of none');
  Same(-1, Found[5], 'youngest of none');
end;

procedure TFreeRunsTests.RestOfACutRunIsTheOldest;
begin
  Enter;
  FreeRunAdd(SpanAt(0), 9, True);
  FreeRunAdd(SpanAt(50), 20, True);
  FreeRunCut(SpanAt(50), 12);
  Found[0] := IndexOf(Process.Shards[1].Oldest);
  Found[1] := IndexOf(Process.Shards[1].Youngest);
  Leave;
  Same(62, Found[0], 'oldest');
  Same(0, Found[1], 'youngest');
end;

procedure TFreeRunsTests.ColdRunThatFitsBetterKeepsTheWarmOneWhole;
var
  Found: array[0..2] of Integer;
begin
  Enter;
  FreeRunAdd(SpanAt(0), 8, True);
  FreeRunAdd(SpanAt(10), 6, False);
  FreeRunAdd(SpanAt(20), 9, False);
  Found[0] := IndexOf(FreeRunTakeFitting(@Process.Shards[1], 5, High(NativeUInt)));
  Found[1] := IndexOf(FreeRunTakeFitting(@Process.Shards[1], 7, High(NativeUInt)));
  Found[2] := IndexOf(FreeRunTakeFitting(@Process.Shards[1], 9, High(NativeUInt)));
  Leave;
  Same(-1, Found[0], 'five of a warm run of eight, with a cold one of six');
  Same(0, Found[1], 'seven of it, with a cold one of nine');
  Same(-1, Found[2], 'nine of no warm run');
end;

procedure TFreeRunsTests.ForgetLeavesNothing;
begin
  Enter;
  FreeRunAdd(SpanAt(0), 9, True);
  FreeRunAdd(SpanAt(20), 9, False);
  FreeRunsForget(@Process.Shards[1]);
  Found[0] := IndexOf(TakeRun(Process.Shards[1].Warm, 1));
  Found[1] := IndexOf(TakeRun(Process.Shards[1].Cold, 1));
  Found[2] := IndexOf(Process.Shards[1].Oldest);
  Leave;
  Same(-1, Found[0], 'warm');
  Same(-1, Found[1], 'cold');
  Same(-1, Found[2], 'oldest');
  Same(0, Warm + Cold, 'slices');
end;

procedure TFreeRunsTests.RunsOfTwoShardsStayApart;
begin
  Enter;
  SpanAt(5)^.Shard := 2;
  FreeRunAdd(SpanAt(0), 5, True);
  FreeRunAdd(SpanAt(10), 5, True);
  FreeRunAdd(SpanAt(5), 5, True);
  Found[0] := IndexOf(TakeRun(Process.Shards[1].Warm, 6));
  Found[1] := IndexOf(TakeRun(Process.Shards[2].Warm, 6));
  Found[2] := IndexOf(TakeRun(Process.Shards[2].Warm, 5));
  Leave;
  Same(-1, Found[0], 'a run of the first shard');
  Same(-1, Found[1], 'a run of the second');
  Same(5, Found[2], 'the run of the second');
  Same(10, Warm, 'warm slices left');
end;

// The other shard's lock is not taken: its thread may be about to write the record.
procedure TFreeRunsTests.EndOfARunOfAnotherShardIsNotFollowed;
begin
  Enter;
  FreeRunAdd(SpanAt(0), 5, True);
  SpanAt(9)^.Shard := 2;
  SpanAt(9)^.Kind := skFreeEnd;
  SpanAt(9)^.Distance := 9;
  FreeRunAdd(SpanAt(10), 5, True);
  Found[0] := IndexOf(TakeRun(Process.Shards[1].Warm, 6));
  Leave;
  Same(-1, Found[0], 'the run of both');
  Same(10, Warm, 'warm slices left');
end;

// ---------------------------------------------------------------------------- a model

procedure TFreeRunsTests.Mark(Span: PSpan; Count: Integer; Value: Boolean);
var
  Index: Integer;
begin
  for Index := IndexOf(Span) to IndexOf(Span) + Count - 1 do
  begin
    if IsTaken[Index] = Value then
      Inc(Overlaps);
    IsTaken[Index] := Value;
  end;
end;

function TFreeRunsTests.CountOfTaken: Integer;
var
  Index: Integer;
begin
  Result := 0;
  for Index := 0 to SliceCount - 1 do
    Inc(Result, Ord(IsTaken[Index]));
end;

// Takes and releases runs, warm and cold; releases all at the end.
procedure TFreeRunsTests.PlayRandomly;
const
  TurnCount = 20000;
  MaxLength = 24;
var
  Runs: array[0..15] of PSpan;
  Lengths: array[0..15] of Integer;
  Generator: TGenerator;
  Turn, Index: Integer;
begin
  FillChar(Runs, SizeOf(Runs), 0);
  FillChar(Lengths, SizeOf(Lengths), 0);
  Generator.Start(TestSeed);
  for Turn := 1 to TurnCount do
  begin
    Index := Generator.Below(Length(Runs));
    if Runs[Index] <> nil then
    begin
      Mark(Runs[Index], Lengths[Index], False);
      FreeRunAdd(Runs[Index], Lengths[Index], Odd(Generator.Below(4) div 2));
      Runs[Index] := nil;
      Continue;
    end;
    Lengths[Index] := 1 + Generator.Below(MaxLength);
    Runs[Index] := TakeRun(Process.Shards[1].Warm, Lengths[Index]);
    if Runs[Index] = nil then
      Runs[Index] := TakeRun(Process.Shards[1].Cold, Lengths[Index]);
    if Runs[Index] <> nil then
      Mark(Runs[Index], Lengths[Index], True);
  end;
  for Index := 0 to High(Runs) do
    if Runs[Index] <> nil then
    begin
      Mark(Runs[Index], Lengths[Index], False);
      FreeRunAdd(Runs[Index], Lengths[Index], True);
    end;
end;

procedure TFreeRunsTests.RandomUseNeverHandsOutASliceTwice;
begin
  Overlaps := 0;
  Enter;
  FreeRunAdd(SpanAt(0), SliceCount, False);
  PlayRandomly;
  Leave;
  Same(0, Overlaps, 'slices in two places');
  Same(0, CountOfTaken, 'slices still taken');
  Same(SliceCount, Warm + Cold, 'free slices at the end');
end;

initialization
  RegisterTest(TFreeRunsTests);
end.
