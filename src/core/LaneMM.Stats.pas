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

  /// The blocks of one size class.
  TClassStatus = record
    BlockSize: NativeUInt;  //< usable bytes of a block
    BlockCount: NativeUInt; //< blocks in use; debug blocks count in the class of their requested
                            //  size, without a span
    FreeCount: NativeUInt;  //< blocks of the spans that are not in use
    SpanCount: NativeUInt;  //< spans of this class
    SpanBytes: NativeUInt;  //< their bytes
  end;
  /// All size classes, from the smallest block size; the last one holds blocks of MaxClassSize.
  TClassStatuses = array[0..SizeClassCount - 1] of TClassStatus;

  /// A span.
  TSpanInfo = record
    Address: PByte;         //< its first byte
    Bytes: NativeUInt;      //< its bytes
    Kind: TSpanKind;        //< skBlocks, skLarge or skDebug
    BlockSize: NativeUInt;  //< usable bytes of a block; in a span of debug blocks the distance of
                            //  two blocks
    BlockCount: NativeUInt; //< blocks in use; in a span of debug blocks with those in quarantine
    Capacity: NativeUInt;   //< blocks that it can hold
  end;
  /// Visits a span. Context is the caller's.
  TSpanInfoVisitor = procedure(const Span: TSpanInfo; Context: Pointer);

/// Sums up the status of the process. Never fails.
procedure StatusRead(out Status: TStatus);
/// Sums up the size classes. Never fails.
procedure ClassStatusRead(out Statuses: TClassStatuses);
/// Calls Visitor for each span of blocks, large block and span of debug blocks, by address.
procedure SpansVisit(Visitor: TSpanInfoVisitor; Context: Pointer);

implementation

uses
  LaneMM.Types, LaneMM.Hooks, LaneMM.Atomic, LaneMM.Arena, LaneMM.Backed, LaneMM.Shards,
  LaneMM.Span, LaneMM.SizeClasses, LaneMM.KeptRuns, LaneMM.Walk, LaneMM.Threads;

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
  if Span^.BlockSize <= MaxSmallSize then
    AddSpan(Status^.Small, Span, SpanUsedCount(Span))
  else
    AddSpan(Status^.Medium, Span, SpanUsedCount(Span));
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
    Inc(Result, RunsKept(Heap));
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
  Status.CommittedBytes := BackedSlices * SliceSize;
  Status.PeakBytes := Process.PeakSlices * SliceSize;
  Status.CachedBytes := (ShardsWarmSlices + KeptSlices) * SliceSize;
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
  if Status.CommittedBytes < Status.UsedBytes then
    Status.CommittedBytes := Status.UsedBytes; // other threads have freed between the two
  if Status.UsedBytes > Process.PeakUsed then
    Process.PeakUsed := Status.UsedBytes;
  for Kind := Low(TOsCall) to High(TOsCall) do
    Status.OsCalls[Kind] := LoadAcquire(Process.OsCalls[Kind]);
  Status.Contended := ShardMisses;
  ProcessReallocCounts(Status.Realloc);
end;

// ---------------------------------------------------------------------------- classes, spans

type
  PClassStatuses = ^TClassStatuses;

procedure CountDebugBlock(const Block: TBlockInfo; Context: Pointer);
begin
  if Block.UsableSize <= MaxClassSize then
    Inc(PClassStatuses(Context)^[SizeToClass(Block.UsableSize)].BlockCount);
end;

// Returns the number of blocks that a span of blocks can hold.
function CapacityOf(Span: PSpan): NativeUInt;
begin
  Result := 0;
  if Span^.BlockSize <> 0 then
    Result := Span^.BlockBytes div Span^.BlockSize;
end;

procedure AddToClass(Span: PSpan; Context: Pointer);
var
  Status: ^TClassStatus;
  Count: NativeUInt;
begin
  if (Span^.Kind = skDebug) and (@Hooks.DebugVisit <> nil) then
    Hooks.DebugVisit(Span, CountDebugBlock, Context);
  if (Span^.Kind <> skBlocks) or (Span^.SizeClass >= SizeClassCount) then
    Exit;
  Status := @PClassStatuses(Context)^[Span^.SizeClass];
  Count := SpanUsedCount(Span);
  Inc(Status^.BlockCount, Count);
  if Count < CapacityOf(Span) then
    Inc(Status^.FreeCount, CapacityOf(Span) - Count);
  Inc(Status^.SpanCount);
  Inc(Status^.SpanBytes, Span^.SliceCount * SliceSize);
end;

procedure ClassStatusRead(out Statuses: TClassStatuses);
var
  SizeClass: Cardinal;
begin
  Statuses := Default(TClassStatuses);
  for SizeClass := 0 to SizeClassCount - 1 do
    Statuses[SizeClass].BlockSize := ClassToSize(SizeClass);
  WalkSpans(AddToClass, @Statuses);
end;

type
  TSpanWalk = record
    Visitor: TSpanInfoVisitor;
    Context: Pointer;
  end;
  PSpanWalk = ^TSpanWalk;

procedure DescribeSpan(Span: PSpan; Context: Pointer);
var
  Info: TSpanInfo;
begin
  Info.Address := Span^.Start;
  Info.Bytes := Span^.SliceCount * SliceSize;
  Info.Kind := Span^.Kind;
  Info.BlockSize := Span^.BlockSize;
  case Info.Kind of
    skBlocks:
      begin
        Info.Capacity := CapacityOf(Span);
        Info.BlockCount := SpanUsedCount(Span);
      end;
    skDebug:
      begin
        Info.Capacity := Span^.BlockBytes;
        Info.BlockCount := Span^.Used;
      end;
  else
    Info.Capacity := 1;
    Info.BlockCount := 1;
  end;
  PSpanWalk(Context)^.Visitor(Info, PSpanWalk(Context)^.Context);
end;

procedure SpansVisit(Visitor: TSpanInfoVisitor; Context: Pointer);
var
  Walk: TSpanWalk;
begin
  Walk.Visitor := Visitor;
  Walk.Context := Context;
  WalkSpans(DescribeSpan, @Walk);
end;

end.
