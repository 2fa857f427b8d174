/// The quarantine: freed debug blocks wait here before they are used again.
//
// Owns:       Debug.Quarantine; the freed blocks of each TDebugCache.
// Invariants: a freed block is in the TDebugCache of one thread or in the quarantine, then on
//             FreeList of its span.
// Callers:    any thread that does not hold Debug.Lock. QuarantineRecover: a child process with one
//             thread.
// Progress:   the ring changes under Debug.Lock, taken once for many blocks.
unit LaneMM.Quarantine;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Types, LaneMM.DebugState;

/// Makes the quarantine, once; False without memory.
function QuarantineStart: Boolean;
/// Puts a block in the state dsFreed into the quarantine, by way of Cache, that of the calling
/// thread, unless it is nil. Returns the spans that became empty, a chain linked through Next: the
/// caller passes them to DebugSpanRelease.
function QuarantineAdd(Cache: PDebugCache; Block: PDebugBlock): PSpan;
/// Takes all blocks out of Cache and out of the quarantine. Returns empty spans likewise.
function QuarantineEmpty(Cache: PDebugCache): PSpan;
/// Recomputes the bytes of the ring, in a child process.
procedure QuarantineRecover;

implementation

uses
  LaneMM.Bits, LaneMM.Os, LaneMM.Lock, LaneMM.Arena, LaneMM.DebugBlocks, LaneMM.DebugSpans;

const
  // Maximum number of blocks in quarantine; a power of two.
  RingLength = 1 shl 18;
  // The share of the quarantine that may wait in a TDebugCache.
  FreedShare = 64;
  // Distance of the block that is prefetched from the oldest.
  FetchedAhead = 8;

function QuarantineStart: Boolean;
begin
  if Debug.Quarantine.Ring <> nil then
    Exit(True);
  Debug.Quarantine.Ring := OsTakePages(RingLength * SizeOf(NativeUInt));
  Result := Debug.Quarantine.Ring <> nil;
end;

function RingPlace(Number: NativeUInt): PNativeUInt; inline;
begin
  Result := Debug.Quarantine.Ring + Number mod RingLength;
end;

// Returns the bytes that count for the block; of a guarded one its contents are purged.
function BytesOf(Block: PDebugBlock): NativeUInt; inline;
begin
  if DebugBlockIsGuarded(Block) then
    Result := OsPageSize
  else
    Result := ArenaSpan(Block)^.BlockSize + SizeOf(TDebugBlock);
end;

procedure RecycleOldest(var Empty: PSpan);
var
  Block: PDebugBlock;
begin
  Block := PDebugBlock(RingPlace(Debug.Quarantine.First)^);
  CacheFetch(Pointer(RingPlace(Debug.Quarantine.First + FetchedAhead)^));
  Inc(Debug.Quarantine.First);
  Dec(Debug.Quarantine.Bytes, BytesOf(Block));
  DebugBlockRecycle(Block, Empty);
end;

// Under the lock.
procedure Keep(Block: PDebugBlock; var Empty: PSpan);
begin
  // A block of more than half of the quarantine does not wait.
  if BytesOf(Block) > Debug.Quarantine.MostBytes div 2 then
  begin
    DebugBlockRecycle(Block, Empty);
    Exit;
  end;
  if Debug.Quarantine.Limit - Debug.Quarantine.First = RingLength then
    RecycleOldest(Empty);
  RingPlace(Debug.Quarantine.Limit)^ := NativeUInt(Block);
  Inc(Debug.Quarantine.Limit);
  Inc(Debug.Quarantine.Bytes, BytesOf(Block));
  while Debug.Quarantine.Bytes > Debug.Quarantine.MostBytes do
    RecycleOldest(Empty);
end;

procedure KeepFreed(var Cache: TDebugCache; var Empty: PSpan);
var
  Index: NativeInt;
begin
  LockEnter(Debug.Lock);
  for Index := 0 to NativeInt(Cache.FreedCount) - 1 do
    Keep(Cache.Freed[Index], Empty);
  LockLeave(Debug.Lock);
  Cache.FreedCount := 0;
  Cache.FreedBytes := 0;
end;

function QuarantineAdd(Cache: PDebugCache; Block: PDebugBlock): PSpan;
begin
  Result := nil;
  if Cache = nil then
  begin
    LockEnter(Debug.Lock);
    Keep(Block, Result);
    LockLeave(Debug.Lock);
    Exit;
  end;
  Cache^.Freed[Cache^.FreedCount] := Block;
  Inc(Cache^.FreedCount);
  Inc(Cache^.FreedBytes, BytesOf(Block));
  if (Cache^.FreedCount = FreedLimit)
    or (Cache^.FreedBytes > Debug.Quarantine.MostBytes div FreedShare) then
    KeepFreed(Cache^, Result);
end;

function QuarantineEmpty(Cache: PDebugCache): PSpan;
begin
  Result := nil;
  if Cache <> nil then
    KeepFreed(Cache^, Result);
  LockEnter(Debug.Lock);
  while Debug.Quarantine.First <> Debug.Quarantine.Limit do
    RecycleOldest(Result);
  LockLeave(Debug.Lock);
end;

procedure QuarantineRecover;
var
  Number: NativeUInt;
begin
  Debug.Quarantine.Bytes := 0;
  Number := Debug.Quarantine.First;
  while Number <> Debug.Quarantine.Limit do
  begin
    Inc(Debug.Quarantine.Bytes, BytesOf(PDebugBlock(RingPlace(Number)^)));
    Inc(Number);
  end;
end;

end.
