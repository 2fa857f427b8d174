/// FreeMem.
//
// Owns:       nothing.
// Invariants: the fast path touches only the thread's heap, the span's record and the block's
//             first word: no lock, no atomic operation.
// Callers:    any thread, also before its first allocation and after its thread-end hooks.
// Errors:     not a block, or a free one: run-time error 204 (EInvalidPointer), nothing changed.
// Progress:   never waits.
unit LaneMM.Free;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types;

/// Frees P; nil is allowed. Returns the block's usable size.
function BlockFree(P: Pointer): TSize;
/// Frees P like BlockFree; Size, the requested size as the caller knows it, is ignored.
function BlockFreeSize(P: Pointer; Size: TSize): TSize;

// The parts, for a block P in use, of a size class, in Span; Heap is the calling thread's.

/// Frees a block of a span that Heap owns.
procedure OwnBlockFree(Heap: PHeap; Span: PSpan; P: Pointer);
/// Frees a pointer that lies in Span, a record that Heap, maybe nil, does not own.
/// Returns the usable size.
function BlockFreeUnowned(P: PBlock; Heap: PHeap; Span: PSpan): TSize;
{$ifdef LANEMM_ASM}
/// BlockFree in assembler, where the heap can be read with one instruction (Process.HasFastSlot).
function FastBlockFree(P: Pointer): TSize;
{$ifdef LANEMM_ASM_LINUX}
/// FastBlockFree for a process with Process.HasFirstKeys.
function FirstKeyBlockFree(P: Pointer): TSize;
{$endif}

// The slow paths of the assembler routines, those of lib/ included.

/// BlockFree for a pointer that the fast path cannot prove to be a block in use.
function BlockFreeSlow(P: Pointer): NativeUInt;
/// Releases a span that is not current and whose last block in use was just put on FreeList.
/// Returns Size, since another thread may use the span by then.
function LastBlockFreed(Heap: PHeap; Span: PSpan; Size: NativeUInt): NativeUInt;
/// BlockFree for a pointer in Span, a record that Heap, maybe nil, does not own.
function FastBlockFreeUnowned(P: PBlock; Heap: PHeap; Span: PSpan): TSize;
/// Frees a pointer that lies in the first slice of Span, which was a large block when the caller
/// looked. Heap is the calling thread's, or nil. Returns the usable size.
function LargeBlockFree(P: PBlock; Heap: PHeap; Span: PSpan): TSize;
{$endif}

implementation

uses
  LaneMM.Hooks, LaneMM.Os, LaneMM.RemoteList, LaneMM.Arena, LaneMM.Span, LaneMM.KeptRuns,
  LaneMM.Large, LaneMM.Heap, LaneMM.RegionHeaps, LaneMM.Threads, LaneMM.Purge, LaneMM.Foreign,
  LaneMM.Blocks;

// Frees a block, maybe the only one, of a span that Heap has just claimed or won. The span gets to
// the queue after that: until then no thread sweeps it.
procedure ClaimedBlockFree(Heap: PHeap; Span: PSpan; P: PBlock);
var
  IsEmpty, IsRequested: Boolean;
begin
  IsEmpty := SpanPut(Span, P);
  IsRequested := HeapTakeOver(Heap, Span);
  if IsEmpty then
    HeapEmptied(Heap, Span);
  if IsEmpty or IsRequested then
    PurgeNotify;
end;

// Frees the block P of another heap, or of none, after its push; Heap may be nil. Returns false if
// another thread has freed it.
function AfterPush(Heap: PHeap; Span: PSpan; P: PBlock; Push: TRemotePush): Boolean;
begin
  Result := True;
  case Push of
    rpPushed:
      // An owner that allocates from the span finds the block; an owner that does not needs a
      // sweep.
      if not Span^.IsCurrent then
        PurgeRequest;
    rpSpanIsYours:
      begin
        Heap := HeapOrdinary(Heap);
        if Heap = nil then
          Heap := ThreadHeapOrAbandoned;
        ClaimedBlockFree(Heap, Span, P);
      end;
    rpNotInUse:
      Result := False;
  end;
end;

// Frees the block P of another heap, or of none; Heap may be nil. Word and Seen: see RemotePush.
// Returns false if another thread has freed it.
function RemoteBlockFree(Heap: PHeap; Span: PSpan; P: PBlock; Word, Seen: NativeUInt): Boolean;
var
  Watch: TFreeCall;
begin
  Watch := Hooks.RemoteFree;
  if (@Watch <> nil) and (OwnerOf(Span) <> NoOwner) then
    Watch(Span, P);
  Result := AfterPush(Heap, Span, P, RemotePush(Span, P, Word, Seen));
end;

procedure OwnBlockFree(Heap: PHeap; Span: PSpan; P: Pointer);
begin
  if SpanPut(Span, P) then
  begin
    HeapEmptied(Heap, Span);
    PurgeNotify;
  end;
end;

// Frees a pointer that is in no span of blocks and is no large block: a debug block, a block of
// another manager, or an invalid free.
function FreeUnknown(P: Pointer): NativeUInt;
begin
  if BlockMayBeDebug(P) then
    Exit(Hooks.DebugFree(P));
  Result := 0;
  if (ArenaSpan(P) <> nil) or not ForeignFree(P, Result) then
    Result := BlockInvalid(P, icFree);
end;

// Keeps or releases the run of a large block whose life has ended; Heap may be nil.
procedure LargeBlockEnded(Heap: PHeap; Span: PSpan);
var
  SliceCount: NativeUInt;
begin
  SliceCount := Span^.SliceCount;
  if not (ltRegion in Span^.Traits) and (Heap <> nil) and LargeKeep(Heap, Span) then
    PurgeRequest // the sweep releases the run if the thread does not need it
  else
  begin
    RegionHeapFreed(Span);
    PurgeNotifyOfLarge(SliceCount);
  end;
end;

// Frees a pointer that lies in the first slice of Span, which was a large block when the caller
// looked. Heap is the calling thread's, or nil. Returns the usable size.
function FreeLargeBlock(P: PBlock; Heap: PHeap; Span: PSpan): NativeUInt;
var
  Word: TAtomicWord;
  Watch: TFreeCall;
begin
  Word := RemoteWord(Span);
  if (Span^.Kind <> skLarge) or (Span^.Start <> PByte(P)) then
    Exit(FreeUnknown(P)); // no block, or another thread has freed it at the same moment
  Result := Span^.BlockSize;
  Watch := Hooks.LargeFree;
  if @Watch <> nil then
    Watch(Span, P);
  if not LargeEndLife(Heap, Span, Word) then
    Exit(BlockInvalid(P, icFree)); // likewise
  LargeBlockEnded(Heap, Span);
end;

function BlockFreeSlow(P: Pointer): NativeUInt;
var
  Span: PSpan;
  Heap: PHeap;
  Word, Seen: NativeUInt;
  IsAwaited: Boolean;
  Damaged: PBlock;
begin
  if P = nil then
    Exit(0);
  Span := BlockSpan(P);
  if Span = nil then
    Exit(FreeUnknown(P));
  Word := RemoteWord(Span);
  if not SpanBlockIsValid(Span, P) then
    Exit(FreeUnknown(P));
  if Span^.Kind = skLarge then
    Exit(FreeLargeBlock(P, OsThreadHeap, Span));
  if Span^.Kind <> skBlocks then
    Exit(FreeUnknown(P)); // another thread has freed it at the same moment
  Heap := OsThreadHeap;
  Seen := PBlock(P)^.Link;
  Result := Span^.BlockSize;
  if BlockIsFree(Span, P) then
    Result := BlockInvalid(P, icFree)
  else if OwnerOf(Span) = Heap then
  begin
    IsAwaited := Span^.Owner <> Heap;
    Damaged := nil;
    if IsAwaited then
      Damaged := HeapAwaitedFree(Heap, Span);
    OwnBlockFree(Heap, Span, P);
    if IsAwaited then
      PurgeNotify; // it may have requested a sweep
    if Damaged <> nil then
      SpanReport(coLink, Span, Damaged);
  end
  else if not RemoteBlockFree(Heap, Span, P, Word, Seen) then
    Result := BlockInvalid(P, icFree);
end;

function BlockFreeUnowned(P: PBlock; Heap: PHeap; Span: PSpan): TSize;
var
  Word, Seen: NativeUInt;
begin
  if Span^.Kind = skLarge then
    Exit(FreeLargeBlock(P, Heap, Span));
  Word := RemoteWord(Span);
  if (Span^.Kind = skInner) and (Heap <> nil) then
  begin
    // A later slice of a span; of one that this thread owns if the first record, wherever an old
    // distance leads, says so.
    Dec(Span, Span^.Distance);
    if (Span^.Owner = Heap) and SpanBlockIsValid(Span, P)
      and not WordMayBeLink(Span, P^.Link) then
    begin
      Result := Span^.BlockSize;
      OwnBlockFree(Heap, Span, P);
      Exit;
    end;
    Exit(BlockFreeSlow(P));
  end;
  if (Span^.Kind <> skBlocks) or (OwnerOf(Span) = Heap) or not SpanBlockIsValid(Span, P) then
    Exit(BlockFreeSlow(P));
  Seen := P^.Link;
  Result := Span^.BlockSize;
  if WordMayBeLink(Span, Seen) or RemoteShelfHas(Span, P) then
    Exit(BlockFreeSlow(P));
  if (OwnerOf(Span) = Process.Abandoned) and (Heap <> nil)
    and HeapClaim(HeapOrdinary(Heap), Span) then
    ClaimedBlockFree(HeapOrdinary(Heap), Span, P)
  else if not RemoteBlockFree(Heap, Span, P, Word, Seen) then
    Result := BlockFreeSlow(P);
end;

function BlockFree(P: Pointer): TSize;
var
  Span: PSpan;
  Heap: PHeap;
begin
  Heap := OsThreadHeap;
  Span := ArenaSpan(P);
  if (Span = nil) or (Span^.Owner = nil) then // in no arena, or in a slice that was never used
    Exit(BlockFreeSlow(P));
  if Span^.Owner <> Heap then
    Exit(BlockFreeUnowned(P, Heap, Span));
  if not SpanBlockBegins(Span, NativeUInt(P) - NativeUInt(Span^.Origin))
    or BlockMayBeFree(Span, P) then
    Exit(BlockFreeSlow(P));
  Result := Span^.BlockSize;
  OwnBlockFree(Heap, Span, P);
end;

function BlockFreeSize(P: Pointer; Size: TSize): TSize;
begin
  {$ifdef LANEMM_ASM}
  if Process.HasFastSlot then
    Exit(FastBlockFree(P));
  {$endif}
  Result := BlockFree(P);
end;

{$ifdef LANEMM_ASM}
  {$ifdef LANEMM_ASM_LINUX}
    {$I LaneMM.Free.x64.inc}
  {$else}
    {$I LaneMM.Free.Windows.x64.inc}
  {$endif}
{$endif}

end.
