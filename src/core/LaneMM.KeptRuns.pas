/// Kept runs: short runs of slices that a thread has freed, for its next blocks and spans.
//
// Owns:       THeap.Section, RunsClaimed, Runs, KeptCounts, KeptSlices, MissedSlices, Keeper.
// Invariants: a kept run is skReleased, with the end that ShardsTake gave it; it counts as backed.
//             Each sweep releases all runs.
// Lock Runs:  the heap's thread uses them between RunsEnter and RunsLeave, its section, while
//             RunsClaimed is 0. Another thread sets RunsClaimed, passes OsBarrier, and has them
//             if Section is 0: then each later section sees the claim. Else it goes without.
// No barrier: without Process.HasBarrier a section of the assembler, too, begins with an exchange.
// Callers:    the heap's thread; RunsRelease, RunsKept: any thread.
// Progress:   a thread that finds a section going on looks at it 200 times, then goes without.
// Source:     the section: Dekker's algorithm with one side's barrier moved to the other, as in
//             Dice, Huang and Yang, "Asymmetric Dekker Synchronization" (2001).
unit LaneMM.KeptRuns;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types;

const
  /// The lengths that serve a block of N slices, from N to 2 N, as bits of TKeptCounts.
  ServingLengths: array[1..LongestKept] of UInt64 = ($000000000000FF00, $00000000FFFFFF00,
    $0000FFFFFFFF0000, UInt64($FFFFFFFFFF000000), UInt64($FFFFFFFF00000000),
    UInt64($FFFFFF0000000000), UInt64($FFFF000000000000), UInt64($FF00000000000000));
  /// One run of a length in TKeptCounts.All.
  OneOfLength: array[1..LongestKept] of UInt64 = (1, $100, $10000, $1000000, $100000000,
    $10000000000, $1000000000000, $100000000000000);

/// Begins a section of the heap's thread. Work is the span that it frees, or the heap. Returns
/// whether it may use the runs. RunsLeave in any case.
function RunsEnter(Heap: PHeap; Work: Pointer): Boolean;
/// Ends a section of the heap's thread, also one that the assembler began.
procedure RunsLeave(Heap: PHeap);
/// Waits some turns, no longer, for the end of a section; returns false if it goes on. A section
/// about another span than Span needs no wait; nil: waits for any section.
function RunsSectionEnds(Heap: PHeap; Span: PSpan): Boolean;
/// Takes a run of about this length, of which at most half is unused; nil if none. The heap's
/// thread.
function RunTakeServing(Heap: PHeap; SliceCount: NativeUInt): PSpan;
/// Keeps the run of a span that the caller owns, formatted as by ShardsTake; false if there is no
/// place for it. The heap's thread, which then calls SweepRequest.
function RunKeep(Heap: PHeap; Span: PSpan): Boolean;
/// Takes the run of SliceCount slices that was kept last, as ShardsTake does; nil if none. The
/// heap's thread.
function RunTake(Heap: PHeap; SliceCount: NativeUInt): PSpan;
/// Lets the next blocks from kept runs have the heap as keeper, where that is possible.
procedure RunsUseKeeper(Heap: PHeap);
/// Releases all runs that Count heaps keep, from Heap on, MostAtOnce at most. Any thread. False if
/// the thread of one uses them at this moment, or another thread releases them.
function RunsRelease(Heap: PHeap; Count: Cardinal): Boolean;
/// Releases the runs of the heap's own thread; leaves them to a thread about to release them.
procedure RunsReleaseOwn(Heap: PHeap);
/// Releases the runs of a heap of no thread, which keeps none until RunsClaimed is 0 again. False
/// while another thread is about to release them.
function RunsEnd(Heap: PHeap): Boolean;
/// Returns the slices of the runs that the heap keeps; may be out of date.
function RunsKept(Heap: PHeap): NativeUInt;

implementation

uses
  LaneMM.Atomic, LaneMM.Os, LaneMM.Lock, LaneMM.Shards;

function RunsKept(Heap: PHeap): NativeUInt;
begin
  Result := Heap^.KeptSlices;
end;

function RunsEnter(Heap: PHeap; Work: Pointer): Boolean;
begin
  // Full barrier: this thread sees the claim, or the other one the section. Pairs with RunsClaim.
  Swap(Heap^.Section, NativeUInt(Work));
  // Acquire: the runs as the last claim left them. Pairs with RunsDisclaim.
  Result := LoadAcquire(Heap^.RunsClaimed) = 0;
end;

procedure RunsLeave(Heap: PHeap);
begin
  // Release: all that the section wrote. Pairs with RunsClaim and EndByOther.
  StoreRelease(Heap^.Section, 0);
end;

function RunsSectionEnds(Heap: PHeap; Span: PSpan): Boolean;
const
  MostTurns = 200;
var
  Turn: Cardinal;
  Work: NativeUInt;
begin
  for Turn := 1 to MostTurns do
  begin
    // Acquire: what the section wrote. Pairs with RunsLeave.
    Work := LoadAcquire(Heap^.Section);
    if (Work = 0) or (Span <> nil) and (Work <> NativeUInt(Span)) then
      Exit(True);
    SpinHint;
  end;
  Result := False;
end;

procedure RunsDisclaim(Heap: PHeap);
begin
  // Release: the runs. Pairs with RunsEnter.
  StoreRelease(Heap^.RunsClaimed, 0);
end;

// Claims the runs for another thread; false if one has. After OsBarrier it has them if
// RunsSectionEnds.
function RunsClaim(Heap: PHeap): Boolean;
begin
  // Full barrier, and OsBarrier for the heap's thread: pairs with RunsEnter.
  Result := CompareAndSwap(Heap^.RunsClaimed, 0, 1);
end;

// Returns true if the heap may keep one more run of this length.
function HasRoom(Heap: PHeap; Length: NativeUInt): Boolean; inline;
begin
  Result := (Heap^.KeptSlices + Length <= LeastKept + Heap^.MissedSlices)
    and (Heap^.KeptCounts.Each[Length] < RunPlaces);
end;

// Counts SliceCount slices that the heap did not have.
procedure CountMissed(Heap: PHeap; SliceCount: NativeUInt);
begin
  Inc(Heap^.MissedSlices, SliceCount);
  if Heap^.MissedSlices > MostKept - LeastKept then
    Heap^.MissedSlices := MostKept - LeastKept;
end;

function RunKeep(Heap: PHeap; Span: PSpan): Boolean;
var
  Length: NativeUInt;
begin
  Length := Span^.SliceCount;
  if (Length < ShortestKept) or (Length > LongestKept) then
    Exit(False);
  Result := RunsEnter(Heap, Heap) and HasRoom(Heap, Length);
  if Result then
  begin
    Inc(Heap^.KeptSlices, Length);
    Span^.Kind := skReleased;
    Heap^.Runs[Length].Places[Heap^.KeptCounts.Each[Length]] := Span;
    YieldPoint;
    Inc(Heap^.KeptCounts.Each[Length]);
  end;
  RunsLeave(Heap);
end;

// Takes the run of this length that was kept last, but for KeptSlices. Under Runs.
function LastTake(Heap: PHeap; Length: NativeUInt): PSpan;
begin
  Dec(Heap^.KeptCounts.Each[Length]);
  YieldPoint;
  Result := Heap^.Runs[Length].Places[Heap^.KeptCounts.Each[Length]];
end;

// Returns the shortest of these lengths, bits of TKeptCounts; there is one.
function ShortestOf(Lengths: UInt64): NativeUInt;
begin
  Result := 1;
  while Lengths and High(Byte) = 0 do
  begin
    Lengths := Lengths shr 8;
    Inc(Result);
  end;
end;

// Takes the shortest run of one of these lengths, of one length that was kept last; nil if none.
function KeptTake(Heap: PHeap; Lengths: UInt64): PSpan;
var
  Length: NativeUInt;
begin
  Result := nil;
  if RunsEnter(Heap, Heap) and (Heap^.KeptCounts.All and Lengths <> 0) then
  begin
    Length := ShortestOf(Heap^.KeptCounts.All and Lengths);
    Result := LastTake(Heap, Length);
    Dec(Heap^.KeptSlices, Length);
  end;
  RunsLeave(Heap);
  if Result <> nil then
    Result^.IsZero := False;
end;

function RunTake(Heap: PHeap; SliceCount: NativeUInt): PSpan;
begin
  Result := nil;
  if (SliceCount >= ShortestKept) and (SliceCount <= LongestKept) then
    Result := KeptTake(Heap, OneOfLength[SliceCount] * High(Byte));
end;

function RunTakeServing(Heap: PHeap; SliceCount: NativeUInt): PSpan;
begin
  LockRecover; // before a run is taken that a recovery would take for a lost one
  Result := KeptTake(Heap, ServingLengths[SliceCount]);
  if Result = nil then
    CountMissed(Heap, SliceCount);
end;

procedure RunsUseKeeper(Heap: PHeap);
begin
  if Process.HasBarrier then
    Heap^.Keeper := Heap;
end;

// Releases all runs. Under Runs.
procedure ReleaseRuns(Heap: PHeap);
var
  Length: Cardinal;
begin
  for Length := ShortestKept to LongestKept do
    while Heap^.KeptCounts.Each[Length] > 0 do
      ShardsRelease(LastTake(Heap, Length));
  Heap^.KeptSlices := 0;
  Heap^.MissedSlices := 0;
end;

// Releases runs that this thread has claimed. HasPassed: all threads passed a barrier since.
function ReleaseClaimed(Heap: PHeap; HasPassed: Boolean): Boolean;
begin
  Result := HasPassed and RunsSectionEnds(Heap, nil);
  if Result then
  begin
    ReleaseRuns(Heap);
    RunsUseKeeper(Heap);
  end;
  RunsDisclaim(Heap);
end;

procedure RunsReleaseOwn(Heap: PHeap);
begin
  LockRecover; // as in RunsRelease
  if RunsEnter(Heap, Heap) then
    ReleaseRuns(Heap);
  RunsLeave(Heap);
  RunsUseKeeper(Heap);
end;

function RunsEnd(Heap: PHeap): Boolean;
begin
  LockRecover; // as in RunsRelease
  Result := RunsClaim(Heap);
  if Result then
    ReleaseRuns(Heap);
end;

function RunsRelease(Heap: PHeap; Count: Cardinal): Boolean;
var
  Other: PHeap;
  Claimed: UInt64; // a bit for each heap
  Index: Cardinal;
  HasPassed: Boolean;
begin
  LockRecover; // before a run is in no place, and none of the spans in use
  Result := True;
  Claimed := 0;
  Other := Heap;
  Index := 0;
  while (Other <> nil) and (Index < Count) do
  begin
    if Other^.KeptSlices <> 0 then
      if Other = OsThreadHeap then
        RunsReleaseOwn(Other) // needs no barrier
      else if RunsClaim(Other) then
        Claimed := Claimed or UInt64(1) shl Index
      else
        Result := False;
    Other := Other^.NextHeap;
    Inc(Index);
  end;
  HasPassed := (Claimed <> 0) and OsBarrier;
  while Claimed <> 0 do
  begin
    if Odd(Claimed) then
      Result := ReleaseClaimed(Heap, HasPassed) and Result;
    Claimed := Claimed shr 1;
    Heap := Heap^.NextHeap;
  end;
end;

end.
