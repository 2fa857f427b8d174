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
    Contended: NativeUInt;      //< failed first tries of the arena and the registry lock
  end;

/// Sums up the status of the process. Never fails.
procedure StatusRead(out Status: TStatus);

implementation

uses
  LaneMM.Types, LaneMM.Hooks, LaneMM.Atomic, LaneMM.RemoteList, LaneMM.Walk, LaneMM.Threads;

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

procedure ReadArenas(var Status: TStatus);
var
  Index: NativeInt;
begin
  for Index := 0 to NativeInt(LoadAcquire(Process.ArenaCount)) - 1 do
  begin
    Inc(Status.ReservedBytes, Process.Arenas[Index].SliceCount * SliceSize);
    Inc(Status.CommittedBytes, Process.Arenas[Index].Frontier * SliceSize);
  end;
  Dec(Status.CommittedBytes,
    (Process.ColdSlices + LoadAcquire(Process.SpareSlices)) * SliceSize);
  Status.PeakBytes := Process.PeakSlices * SliceSize;
  Status.CachedBytes := Process.WarmSlices * SliceSize;
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
  Status.Contended := LoadAcquire(Process.ArenaLock.Contended)
    + LoadAcquire(Process.RegistryLock.Contended);
  ProcessReallocCounts(Status.Realloc);
end;

end.
