/// The memory status of the process: sums over the span records.
//
// Owns:       Process.PeakUsed.
// Invariants: GetMem and FreeMem count nothing; a status is summed up on request. The sums are
//             exact while no other thread allocates or frees.
// Callers:    any thread.
unit LaneMM.Stats;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout;

type
  /// Blocks of one tier: small (spans of one slice), medium (spans of more slices), or large.
  TTierStatus = record
    BlockCount: NativeUInt; //< blocks in use
    UsedBytes: NativeUInt;  //< their usable bytes
    SpanBytes: NativeUInt;  //< bytes of the spans that hold them
  end;

  /// The state of the whole process.
  TStatus = record
    ReservedBytes: NativeUInt;  //< reserved address space
    CommittedBytes: NativeUInt; //< of it, memory in use or cached: backed if it was touched
    PeakBytes: NativeUInt;      //< highest CommittedBytes so far
    CachedBytes: NativeUInt;    //< of CommittedBytes, free runs not yet purged
    UsedBytes: NativeUInt;      //< usable bytes of all blocks in use
    Small: TTierStatus;         //< size classes up to MaxSmallSize
    Medium: TTierStatus;        //< size classes above
    Large: TTierStatus;         //< blocks above MaxClassSize
    OsCalls: array[TOsCall] of NativeUInt; //< system calls since the start, by kind
    Realloc: TReallocCounts;    //< ReallocMem since the start
    Contended: NativeUInt;      //< failed tries to take the lock of a shard
  end;

/// Sums up the status of the process. Never fails.
procedure StatusRead(out Status: TStatus);

implementation

uses
  LaneMM.Types, LaneMM.Hooks, LaneMM.Atomic, LaneMM.RemoteList, LaneMM.Frontier, LaneMM.Arena,
  LaneMM.Large, LaneMM.Walk, LaneMM.Threads;

procedure AddSpan(var Tier: TTierStatus; Span: PSpan; BlockCount: NativeUInt);
begin
  Inc(Tier.BlockCount, BlockCount);
  Inc(Tier.UsedBytes, BlockCount * Span^.BlockSize);
  Inc(Tier.SpanBytes, Span^.SliceCount * SliceSize);
end;

procedure AddDebugBlock(const Block: TBlockInfo; Context: Pointer);
var
  Status: ^TStatus;
  Tier: ^TTierStatus;
begin
  Status := Context;
  Tier := @Status^.Large;
  if Block.UsableSize <= MaxSmallSize then
    Tier := @Status^.Small
  else if Block.UsableSize <= MaxClassSize then
    Tier := @Status^.Medium;
  Inc(Tier^.BlockCount);
  Inc(Tier^.UsedBytes, Block.UsableSize);
end;

// Spans of debug blocks count as small; their blocks count in the tier of their size.
procedure VisitDebugSpan(Span: PSpan; var Status: TStatus);
begin
  Inc(Status.Small.SpanBytes, Span^.SliceCount * SliceSize);
  if @Hooks.DebugVisit <> nil then
    Hooks.DebugVisit(Span, AddDebugBlock, @Status);
end;

procedure VisitSpan(Span: PSpan; Context: Pointer);
var
  Status: ^TStatus;
  BlockCount: NativeInt;
begin
  Status := Context;
  if Span^.Kind = skLarge then
  begin
    AddSpan(Status^.Large, Span, 1);
    Exit;
  end;
  if Span^.Kind = skDebug then
  begin
    VisitDebugSpan(Span, Status^);
    Exit;
  end;
  BlockCount := NativeInt(Span^.Used) - Ord(Span^.IsCurrent) - NativeInt(RemoteCount(Span));
  if BlockCount < 0 then
    BlockCount := 0; // another thread is changing the span
  if Span^.BlockSize <= MaxSmallSize then
    AddSpan(Status^.Small, Span, BlockCount)
  else
    AddSpan(Status^.Medium, Span, BlockCount);
end;

// Returns the slices of all runs that threads keep.
function KeptSlices: NativeUInt;
var
  Heap: PHeap;
begin
  Result := 0;
  Heap := ThreadsFirstHeap;
  while Heap <> nil do
  begin
    Inc(Result, LargeKeptSlices(Heap));
    Heap := Heap^.NextHeap;
  end;
end;

procedure ReadArenas(var Status: TStatus);
var
  Index: NativeUInt;
begin
  Index := 0;
  while FrontierArena(Index) <> nil do
  begin
    Inc(Status.ReservedBytes, LoadAcquire(FrontierArena(Index)^.Reserved) * SliceSize);
    Inc(Index);
  end;
  Status.CommittedBytes := ArenaBackedSlices * SliceSize;
  Status.PeakBytes := Process.PeakSlices * SliceSize;
  Status.CachedBytes := (ArenaWarmSlices + KeptSlices) * SliceSize;
end;

// Returns the failed tries to take the lock of a shard.
function ShardMisses: NativeUInt;
var
  Number: NativeUInt;
begin
  Result := 0;
  for Number := 1 to Process.ShardCount do
    Inc(Result, LoadAcquire(Process.Shards[Number].Lock.Contended));
end;

procedure StatusRead(out Status: TStatus);
var
  Kind: TOsCall;
begin
  Status := Default(TStatus);
  WalkSpans(VisitSpan, @Status);
  ReadArenas(Status);
  Status.UsedBytes := Status.Small.UsedBytes + Status.Medium.UsedBytes + Status.Large.UsedBytes;
  if Status.UsedBytes > Process.PeakUsed then
    Process.PeakUsed := Status.UsedBytes;
  for Kind := Low(TOsCall) to High(TOsCall) do
    Status.OsCalls[Kind] := LoadAcquire(Process.OsCalls[Kind]);
  Status.Contended := ShardMisses;
  ProcessReallocCounts(Status.Realloc);
end;

end.
