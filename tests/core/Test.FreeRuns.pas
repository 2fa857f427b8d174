/// Tests of LaneMM.FreeRuns. Meanwhile the runs of two shards are set aside, and their locks taken; the
/// records of spans are those of the test.
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
    First, Second: PShard;
    Saved, SavedSecond: TRuns;
    IsTaken: array[0..SliceCount - 1] of Boolean;
    Overlaps: Integer;
    function SpanAt(Index: Integer): PSpan;
    // A run by the index of its first slice; -1 stands for nil.
    function IndexOf(Span: PSpan): Integer;
    procedure Add(Index, Length: Integer; IsWarm: Boolean);
    function TakeWarm(Length: NativeUInt): Integer;
    function TakeCold(Length: NativeUInt): Integer;
    procedure Mark(Span: PSpan; Count: Integer; Value: Boolean);
    procedure PlayRandomly;
    function CountOfTaken: Integer;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
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

// A span that is released meanwhile waits, and one that is taken comes from elsewhere: the shards are locked.
procedure TFreeRunsTests.SetUp;
var
  Index: Integer;
begin
  SetLength(Records, SliceCount + 2);
  for Index := 0 to High(Records) do
  begin
    Records[Index].Start := PByte(NativeUInt(Index) * SliceSize);
    Records[Index].Shard := 1;
  end;
  First := @Process.Shards[1];
  Second := @Process.Shards[2];
  SaveRuns(First, Saved);
  SaveRuns(Second, SavedSecond);
end;

procedure TFreeRunsTests.TearDown;
begin
  RestoreRuns(Second, SavedSecond);
  RestoreRuns(First, Saved);
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

procedure TFreeRunsTests.Add(Index, Length: Integer; IsWarm: Boolean);
begin
  FreeRunAdd(SpanAt(Index), Length, IsWarm);
end;

function TFreeRunsTests.TakeWarm(Length: NativeUInt): Integer;
begin
  Result := IndexOf(TakeRun(First^.Warm, Length));
end;

function TFreeRunsTests.TakeCold(Length: NativeUInt): Integer;
begin
  Result := IndexOf(TakeRun(First^.Cold, Length));
end;

procedure TFreeRunsTests.RunIsFoundByItsLength;
var
  Length: Integer;
begin
  for Length := 1 to SliceCount do
  begin
    Add(0, Length, True);
    Same(0, TakeWarm(Length), 'found by its length');
    Add(0, Length, True);
    Same(-1, TakeWarm(Length + 1), 'too short');
    FreeRunCut(SpanAt(0), SpanAt(0)^.SliceCount);
  end;
end;

procedure TFreeRunsTests.TakeGivesTheShortestRunThatIsLongEnough;
begin
  Add(0, 100, True);
  Add(120, 5, True);
  Add(140, 20, True);
  Same(120, TakeWarm(4), 'four slices');
  Same(140, TakeWarm(18), 'eighteen slices');
  Same(0, TakeWarm(18), 'eighteen more');
end;

procedure TFreeRunsTests.TakeCutsAndTheRestStaysFree;
begin
  Add(10, 50, True);
  Same(10, TakeWarm(20), 'front');
  Same(30, TakeWarm(30), 'rest');
  Same(0, First^.WarmSlices, 'free slices at the end');
end;

procedure TFreeRunsTests.TakeOfMoreThanThereIsGivesNil;
begin
  Add(0, 10, True);
  Same(-1, TakeWarm(11), 'too long');
  Same(-1, TakeCold(1), 'none there');
  Same(10, First^.WarmSlices, 'free slices');
end;

// A bin after the last one would lie where the map of the cold runs is, or after them.
procedure TFreeRunsTests.TheLongestRunPossibleHasABin;
begin
  Same(-1, TakeWarm(MaxRunSlices), 'warm');
  Same(-1, TakeCold(MaxRunSlices), 'cold');
end;

procedure TFreeRunsTests.NeighboursBecomeOneRun;
begin
  Add(10, 5, True);
  Add(20, 5, True);
  Add(15, 5, True);
  Same(10, TakeWarm(15), 'the joined run');
  Same(0, First^.WarmSlices, 'free slices at the end');
end;

procedure TFreeRunsTests.WarmAndColdStayApart;
begin
  Add(0, 5, True);
  Add(5, 5, False);
  Same(-1, TakeWarm(6), 'warm');
  Same(-1, TakeCold(6), 'cold');
  Same(5, TakeCold(5), 'the cold run alone');
  Same(5, First^.WarmSlices, 'warm slices left');
  Same(0, First^.ColdSlices, 'cold slices left');
end;

procedure TFreeRunsTests.RemovedRunIsNoRun;
begin
  Add(0, 5, True);
  AssertTrue('before', IsFreeRun(SpanAt(0)));
  FreeRunCut(SpanAt(0), SpanAt(0)^.SliceCount);
  AssertFalse('after', IsFreeRun(SpanAt(0)));
  Add(5, 5, True);
  Same(-1, TakeWarm(6), 'joined with a run in use');
end;

procedure TFreeRunsTests.OldestIsTheOneFreedFirst;
const
  Order: array[0..3] of Integer = (0, 10, 30, 40);
var
  Index: Integer;
begin
  for Index := 0 to 4 do
    Add(Index * 10, 5, True);
  FreeRunCut(SpanAt(20), SpanAt(20)^.SliceCount);
  for Index in Order do
  begin
    Same(Index, IndexOf(First^.Oldest), 'oldest');
    FreeRunCut(First^.Oldest, First^.Oldest^.SliceCount);
  end;
  Same(-1, IndexOf(First^.Oldest), 'oldest of none');
  Same(-1, IndexOf(First^.Youngest), 'youngest of none');
end;

procedure TFreeRunsTests.RestOfACutRunIsTheOldest;
begin
  Add(0, 9, True);
  Add(50, 20, True);
  FreeRunCut(SpanAt(50), 12);
  Same(62, IndexOf(First^.Oldest), 'oldest');
  Same(0, IndexOf(First^.Youngest), 'youngest');
end;

procedure TFreeRunsTests.ColdRunThatFitsBetterKeepsTheWarmOneWhole;
begin
  Add(0, 8, True);
  Add(10, 6, False);
  Add(20, 9, False);
  Same(-1, IndexOf(FreeRunTakeFitting(First, 5, High(NativeUInt))),
    'five of a warm run of eight, with a cold one of six');
  Same(0, IndexOf(FreeRunTakeFitting(First, 7, High(NativeUInt))), 'seven of it, with a cold one of nine');
  Same(-1, IndexOf(FreeRunTakeFitting(First, 9, High(NativeUInt))), 'nine of no warm run');
end;

procedure TFreeRunsTests.ForgetLeavesNothing;
begin
  Add(0, 9, True);
  Add(20, 9, False);
  FreeRunsForget(First);
  Same(-1, TakeWarm(1), 'warm');
  Same(-1, TakeCold(1), 'cold');
  Same(-1, IndexOf(First^.Oldest), 'oldest');
  Same(0, First^.WarmSlices + First^.ColdSlices, 'slices');
end;

procedure TFreeRunsTests.RunsOfTwoShardsStayApart;
begin
  SpanAt(5)^.Shard := 2;
  Add(0, 5, True);
  Add(10, 5, True);
  Add(5, 5, True);
  Same(-1, TakeWarm(6), 'a run of the first shard');
  Same(-1, IndexOf(TakeRun(Second^.Warm, 6)), 'a run of the second');
  Same(5, IndexOf(TakeRun(Second^.Warm, 5)), 'the run of the second');
  Same(10, First^.WarmSlices, 'warm slices left');
end;

// The other shard's lock is not taken: its thread may be about to write the record.
procedure TFreeRunsTests.EndOfARunOfAnotherShardIsNotFollowed;
begin
  Add(0, 5, True);
  SpanAt(9)^.Shard := 2;
  SpanAt(9)^.Kind := skFreeEnd;
  SpanAt(9)^.Distance := 9;
  Add(10, 5, True);
  Same(-1, TakeWarm(6), 'the run of both');
  Same(10, First^.WarmSlices, 'warm slices left');
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
    Runs[Index] := TakeRun(First^.Warm, Lengths[Index]);
    if Runs[Index] = nil then
      Runs[Index] := TakeRun(First^.Cold, Lengths[Index]);
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
  Add(0, SliceCount, False);
  PlayRandomly;
  Same(0, Overlaps, 'slices in two places');
  Same(0, CountOfTaken, 'slices still taken');
  Same(SliceCount, First^.WarmSlices + First^.ColdSlices, 'free slices at the end');
end;

initialization
  RegisterTest(TFreeRunsTests);
end.
