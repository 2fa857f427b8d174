/// The blocks of debug mode: where they lie, what is noted of them, what they hold.
//
// Owns:       spans of kind skDebug, Process.DebugSpans, DebugLock, Quarantine, GuardReaders,
//             GuardChanges.
// Layout:     a span begins with a TDebugBlock for each of its blocks; the blocks follow, with
//             guard bytes before each and behind each, up to the byte. So a write that misses a
//             block by a little destroys guard bytes and nothing that is needed to tell of it.
// Invariants: a block in use has whole guards; a free one that was used before holds the pattern
//             of free blocks. Only while its state is dsChanging may it be otherwise: then one
//             thread is at it. Whoever finds something else and then the state that he saw before
//             has found damage, also while other threads run.
//             A freed block waits in the quarantine, then on its span's FreeList.
//             What a TDebugCache holds counts as in use for the lists.
//             While somebody reads all blocks (DebugGuardsHold), no more pages become untouchable:
//             what could be read when it was found can be read until he is done. Blocks that are
//             got or freed meanwhile do without.
// Callers:    any thread.
// Progress:   lists change under DebugLock, which is held for a few instructions, and taken once
//             for many blocks.
unit LaneMM.DebugBlocks;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Types;

const
  /// Bytes of the guard before a block, and least bytes behind it.
  GuardSize = 16;
  /// What guards hold.
  GuardByte = $E7;
  /// Behind blocks with more room than this only so many bytes are guarded.
  MostGuard = 256;

  /// Most free blocks of one size class that a thread keeps for itself.
  BatchLimit = 16;
  /// Most freed blocks that wait for the quarantine with the thread that freed them.
  FreedLimit = 64;

type
  /// What a thread keeps so that it seldom needs the lock; all zero at first.
  TDebugCache = record
    Counts: array[0..SizeClassCount - 1] of NativeUInt; //< owner   free blocks of each class
    Blocks: array[0..SizeClassCount - 1, 0..BatchLimit - 1] of PDebugBlock; //< owner
    Freed: array[0..FreedLimit - 1] of PDebugBlock;     //< owner   the oldest first
    FreedCount: NativeUInt;                             //< owner
    FreedBytes: NativeUInt;                             //< owner   bytes that they take
  end;
  PDebugCache = ^TDebugCache;

  /// Where the parts of a block lie.
  TDebugPlace = record
    Data: PByte;         //< the contents; the first guard ends there
    Room: NativeUInt;    //< most bytes of the contents
    Guarded: NativeUInt; //< bytes from Data up to the end of what the other guard can cover
    HasPages: Boolean;   //< the block has guard pages
  end;

/// Makes the quarantine; tells whether it is there.
function DebugBlocksStart: Boolean;
/// Largest size of a debug block.
function DebugMostSize: NativeUInt;
/// A block for Size bytes, in the state dsChanging, which was Before. The caller fills it. Nil when
/// there is no memory. Cache is the thread's, or nil.
function DebugBlockTake(Cache: PDebugCache; Size: NativeUInt; out Before: TAtomicWord): PDebugBlock;
/// The same with pages behind it that nobody can touch. Nil also when the system refuses that, or
/// there are 16,384 such blocks.
function DebugBlockTakeGuarded(Size: NativeUInt; out Before: TAtomicWord): PDebugBlock;
/// Whether the block has such pages. Only the thread that changes it may touch its contents.
function DebugBlockIsGuarded(Block: PDebugBlock): Boolean;
/// Whether the contents can be touched. Asks the system where the block has such pages.
function DebugPlaceIsOpen(const Place: TDebugPlace): Boolean;
/// Makes the contents of a guarded block untouchable, too, and gives their memory back.
procedure DebugBlockClose(Block: PDebugBlock);
/// From now on no page becomes untouchable, until DebugGuardsLetGo: before the contents of blocks
/// are read that other threads may free. Calls nest. Waits for threads that are at it.
procedure DebugGuardsHold;
/// Ends what one call of DebugGuardsHold began.
procedure DebugGuardsLetGo;
/// Puts a block in the state dsFreed into the quarantine, by way of the thread's cache, if that is
/// not nil. Returns a chain, linked by Next, of spans that are to be given to DebugSpanRelease:
/// nobody uses their blocks any more.
function DebugBlockRetire(Cache: PDebugCache; Block: PDebugBlock): PSpan;
/// Takes all blocks out of the quarantine, and what waits for it in the cache. Returns such spans,
/// too.
function DebugQuarantineEmpty(Cache: PDebugCache): PSpan;
/// Gives a span back.
procedure DebugSpanRelease(Span: PSpan);
/// Makes the lists anew in a child process in which a lost thread held the lock.
procedure DebugBlocksRecover;

/// The span of debug blocks that holds P; nil when there is none. Any pointer.
function DebugSpanOf(P: Pointer): PSpan;
/// The block at P, or around it with its guards; nil when there is none. Any pointer.
function DebugBlockOf(P: Pointer): PDebugBlock;
/// How many blocks of the span were ever handed out.
function DebugBlockCount(Span: PSpan): Cardinal;
/// Block Index of the span.
function DebugBlockAt(Span: PSpan; Index: Cardinal): PDebugBlock;
/// Where its parts lie.
procedure DebugBlockPlace(Block: PDebugBlock; out Place: TDebugPlace);
/// Bytes of the guard behind Size bytes.
function DebugGuardLength(const Place: TDebugPlace; Size: NativeUInt): NativeUInt; inline;
/// Where its contents begin.
function DebugBlockData(Block: PDebugBlock): PByte;
/// Most bytes that it can hold where it is.
function DebugBlockRoom(Block: PDebugBlock): NativeUInt;

/// The state in a word of TDebugBlock.State.
function DebugStateOf(Word: TAtomicWord): TDebugState; inline;
/// Whether its damage was reported already.
function DebugIsTold(Word: TAtomicWord): Boolean; inline;
/// Notes that the damage of the block was reported; False when its state is no longer Seen.
function DebugBlockTell(Block: PDebugBlock; Seen: TAtomicWord): Boolean;
/// Goes from Seen, the word that was read, to dsChanging; False when another thread was quicker.
function DebugBlockChange(Block: PDebugBlock; Seen: TAtomicWord): Boolean;
/// Ends the state dsChanging; what was written before is seen by who sees the state.
procedure DebugBlockSettle(Block: PDebugBlock; State: TDebugState);
/// Writes Sum.
procedure DebugBlockSeal(Block: PDebugBlock);
/// Whether Sum fits what is noted.
function DebugBlockIsSealed(Block: PDebugBlock): Boolean;

implementation

uses
  LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.SizeClasses, LaneMM.Lock, LaneMM.Arena,
  LaneMM.Span;

const
  // Most blocks in quarantine; a power of two.
  RingLength = 1 shl 18;
  // A block alone in its span has this size class.
  SingleClass = SizeClassCount;
  // ... and this one if it has guard pages: the notes lie in the first page, the contents end,
  // but for their alignment, before the last; BlockSize is the size that was asked for.
  GuardedClass = SingleClass + 1;
  // Most blocks with guard pages, freed ones included. Each takes two mappings, of which a process
  // may have 65,530: without any left the system refuses memory, too.
  MostGuarded = 16384;
  // How long a reader waits for threads that take pages away: they may have been stopped there.
  PatienceMs = 1;
  MostRounds = 100;
  // In TDebugBlock.State: the state, whether damage was reported, the number of changes.
  StateMask = 3;
  ToldBit = StateMask + 1;
  LowMask = StateMask or ToldBit;
  NextChange = LowMask + 1;
  // Bytes of the blocks that a thread takes at a time, and the share of the quarantine that waits.
  BatchBytes = 8192;
  FreedShare = 64;
  // Blocks of the quarantine that are fetched ahead.
  FetchedAhead = 8;
  // TSpan.DivideMagic is so much divided by the size of a block.
  MagicShift = 44;

// ---------------------------------------------------------------------------- where

function DebugSpanOf(P: Pointer): PSpan;
begin
  Result := ArenaSpan(P);
  if (Result <> nil) and (Result^.Kind <> skDebug) then
    Result := ArenaFirst(Result, [skDebug]);
end;

function DebugBlockCount(Span: PSpan): Cardinal;
begin
  Result := Span^.CarvedBytes;
end;

function DebugBlockAt(Span: PSpan; Index: Cardinal): PDebugBlock;
begin
  Result := PDebugBlock(Span^.Start) + Index;
end;

function FirstSlot(Span: PSpan): PByte; inline;
begin
  Result := Span^.Start + Span^.BlockBytes * SizeOf(TDebugBlock);
end;

function DebugBlockOf(P: Pointer): PDebugBlock;
var
  Span: PSpan;
  Index: UInt64;
begin
  Result := nil;
  Span := DebugSpanOf(P);
  if (Span = nil) or (NativeUInt(P) < NativeUInt(FirstSlot(Span))) then
    Exit;
  // 0 when the block is alone. Any number when the span is becoming another one.
  Index := (NativeUInt(P) - NativeUInt(FirstSlot(Span))) * Span^.DivideMagic shr MagicShift;
  if Index < Span^.CarvedBytes then
    Result := DebugBlockAt(Span, Index);
end;

function LastPage(Span: PSpan): PByte; inline;
begin
  Result := Span^.Start + Span^.SliceCount shl SliceShift - OsPageSize;
end;

procedure DebugBlockPlace(Block: PDebugBlock; out Place: TDebugPlace);
var
  Span: PSpan;
begin
  Span := ArenaSpan(Block);
  Place.HasPages := Span^.SizeClass = GuardedClass;
  if Place.HasPages then
  begin
    Place.Room := Span^.BlockSize;
    Place.Guarded := AlignUp(Place.Room, BlockAlignment);
    Place.Data := LastPage(Span) - Place.Guarded;
    Exit;
  end;
  Place.Room := Span^.BlockSize - 2 * GuardSize;
  Place.Guarded := Place.Room + GuardSize;
  // A block alone in its span is the first one.
  Place.Data := FirstSlot(Span) + GuardSize
    + (Block - PDebugBlock(Span^.Start)) * Span^.BlockSize;
end;

function DebugGuardLength(const Place: TDebugPlace; Size: NativeUInt): NativeUInt;
begin
  Result := Place.Guarded - Size;
  if Result > MostGuard then
    Result := MostGuard;
end;

function DebugBlockIsGuarded(Block: PDebugBlock): Boolean;
begin
  Result := ArenaSpan(Block)^.SizeClass = GuardedClass;
end;

function DebugBlockData(Block: PDebugBlock): PByte;
var
  Place: TDebugPlace;
begin
  DebugBlockPlace(Block, Place);
  Result := Place.Data;
end;

function DebugBlockRoom(Block: PDebugBlock): NativeUInt;
var
  Place: TDebugPlace;
begin
  DebugBlockPlace(Block, Place);
  Result := Place.Room;
end;

// ---------------------------------------------------------------------------- state

function DebugStateOf(Word: TAtomicWord): TDebugState;
begin
  Result := TDebugState(Word and StateMask);
end;

function DebugBlockChange(Block: PDebugBlock; Seen: TAtomicWord): Boolean;
begin
  // Full barrier: the state before what is written to the block. Pairs with LaneMM.DebugCheck.
  Result := CompareAndSwap(Block^.State, Seen,
    Seen and not LowMask + NextChange + Ord(dsChanging));
end;

function DebugIsTold(Word: TAtomicWord): Boolean;
begin
  Result := Word and ToldBit <> 0;
end;

function DebugBlockTell(Block: PDebugBlock; Seen: TAtomicWord): Boolean;
begin
  // Full barrier: what was read of the block before, and its state is still the same.
  Result := CompareAndSwap(Block^.State, Seen, Seen or ToldBit);
end;

procedure DebugBlockSettle(Block: PDebugBlock; State: TDebugState);
begin
  // Release: what was written to the block before the state. Pairs with LaneMM.DebugCheck.
  StoreRelease(Block^.State, Block^.State and not LowMask + NextChange + NativeUInt(Ord(State)));
end;

function SumOf(Block: PDebugBlock): Cardinal;
type
  PHalves = ^THalves;
  THalves = array[0..4] of Cardinal;
var
  Sum: UInt64;
  Halves: PHalves;
begin
  Halves := @Block^.GotStack;
  // Each field has a factor of its own, odd so that no bit of it is lost.
  Sum := UInt64(Block^.Size) * $9E3779B97F4A7C15 + UInt64(Block^.Number) * $C2B2AE3D27D4EB4F
    + UInt64(Block^.FirstWord) * $165667B19E3779F9
    + (Halves^[0] + UInt64(Halves^[1]) shl 32) * $85EBCA77C2B2AE63
    + (Halves^[2] + UInt64(Halves^[3]) shl 32) * $27D4EB2F165667C5 + Halves^[4];
  Result := Sum shr 32 xor Sum;
end;

procedure DebugBlockSeal(Block: PDebugBlock);
begin
  Block^.Sum := SumOf(Block);
end;

function DebugBlockIsSealed(Block: PDebugBlock): Boolean;
begin
  Result := Block^.Sum = SumOf(Block);
end;

// ---------------------------------------------------------------------------- take

function DebugMostSize: NativeUInt;
begin
  Result := MaxRunSlices shl SliceShift - SizeOf(TDebugBlock) - 2 * GuardSize;
end;

procedure Format(Span: PSpan; SizeClass, BlockCount: Cardinal; BlockSize: NativeUInt);
begin
  Span^.FreeList := 0;
  Span^.Used := 0;
  Span^.BlockSize := BlockSize;
  Span^.DivideMagic := 0;
  if SizeClass < SingleClass then
    Span^.DivideMagic := UInt64(1) shl MagicShift div BlockSize + 1;
  Span^.BlockBytes := BlockCount;
  Span^.CarvedBytes := 0;
  Span^.SizeClass := SizeClass;
  Span^.IsCurrent := False;
  Span^.Remote := 0;
  Span^.Owner := NoOwner;
  SpanFormatInner(Span);
  Span^.Kind := skDebug;
end;

procedure ListAdd(Span: PSpan);
begin
  Span^.IsCurrent := True;
  Span^.Prev := nil;
  Span^.Next := Process.DebugSpans[Span^.SizeClass];
  if Span^.Next <> nil then
    Span^.Next^.Prev := Span;
  Process.DebugSpans[Span^.SizeClass] := Span;
end;

procedure ListRemove(Span: PSpan);
begin
  Span^.IsCurrent := False;
  if Span^.Prev <> nil then
    Span^.Prev^.Next := Span^.Next
  else
    Process.DebugSpans[Span^.SizeClass] := Span^.Next;
  if Span^.Next <> nil then
    Span^.Next^.Prev := Span^.Prev;
end;

function IsFull(Span: PSpan): Boolean;
begin
  Result := (Span^.FreeList = 0) and (Span^.CarvedBytes = Span^.BlockBytes);
end;

function NewSpan(SizeClass: Cardinal): PSpan;
var
  Size: NativeUInt;
begin
  Result := ArenaTake(Process.ClassSlices[SizeClass]);
  if Result = nil then
    Exit;
  Size := ClassToSize(SizeClass);
  Format(Result, SizeClass, Result^.SliceCount * SliceSize div (Size + SizeOf(TDebugBlock)), Size);
  ListAdd(Result);
end;

// The next one on FreeList, unless the word was written over.
function NextFree(Span: PSpan; Block: PDebugBlock): NativeUInt;
var
  Offset: NativeUInt;
begin
  Result := NativeUInt(Block^.Next);
  Offset := Result - NativeUInt(Span^.Start);
  if (Offset >= NativeUInt(Span^.CarvedBytes * SizeOf(TDebugBlock)))
    or (Offset mod SizeOf(TDebugBlock) <> 0) then
    Result := 0;
end;

// A block of a span that is not full.
function TakeFrom(Span: PSpan): PDebugBlock;
begin
  // Used first: a child process that finds this half done takes it for one more, never for less.
  Inc(Span^.Used);
  Result := PDebugBlock(Span^.FreeList);
  if Result <> nil then
  begin
    Span^.FreeList := NextFree(Span, Result);
    Exit;
  end;
  Result := DebugBlockAt(Span, Span^.CarvedBytes);
  Result^.State := Ord(dsNever);
  Inc(Span^.CarvedBytes);
end;

// Under the lock.
function TakeLocked(SizeClass: Cardinal): PDebugBlock;
var
  Span: PSpan;
begin
  Span := Process.DebugSpans[SizeClass];
  if Span = nil then
    Span := NewSpan(SizeClass);
  if Span = nil then
    Exit(nil);
  Result := TakeFrom(Span);
  if IsFull(Span) then
    ListRemove(Span);
end;

// Takes blocks of the class for the cache, so that they are handed out in the order of the lists.
procedure Refill(var Cache: TDebugCache; SizeClass: Cardinal);
var
  Wanted: NativeUInt;
  Taken: array[0..BatchLimit - 1] of PDebugBlock;
  Index: NativeUInt;
begin
  Wanted := BatchBytes div ClassToSize(SizeClass) + 1;
  if Wanted > BatchLimit then
    Wanted := BatchLimit;
  Index := 0;
  LockEnter(Process.DebugLock);
  repeat
    Taken[Index] := TakeLocked(SizeClass);
    Inc(Index);
  until (Index = Wanted) or (Taken[Index - 1] = nil);
  LockLeave(Process.DebugLock);
  while Index > 0 do
  begin
    Dec(Index);
    if Taken[Index] = nil then
      Continue;
    Cache.Blocks[SizeClass, Cache.Counts[SizeClass]] := Taken[Index];
    Inc(Cache.Counts[SizeClass]);
  end;
end;

// Brings into the CPU's cache what will be read of a free block when it is taken.
procedure Fetch(Block: PDebugBlock);
var
  Place: TDebugPlace;
begin
  DebugBlockPlace(Block, Place);
  CacheFetch(Block);
  CacheFetch(Place.Data);
  CacheFetch(Place.Data + CacheLineSize);
end;

function TakeCached(var Cache: TDebugCache; SizeClass: Cardinal): PDebugBlock;
var
  Count: NativeUInt;
begin
  if Cache.Counts[SizeClass] = 0 then
    Refill(Cache, SizeClass);
  Count := Cache.Counts[SizeClass];
  if Count = 0 then
    Exit(nil);
  Cache.Counts[SizeClass] := Count - 1;
  Result := Cache.Blocks[SizeClass, Count - 1];
  if Count > 1 then
    Fetch(Cache.Blocks[SizeClass, Count - 2]);
end;

function TakeOfClass(Cache: PDebugCache; SizeClass: Cardinal): PDebugBlock;
begin
  if Cache <> nil then
    Exit(TakeCached(Cache^, SizeClass));
  LockEnter(Process.DebugLock);
  Result := TakeLocked(SizeClass);
  LockLeave(Process.DebugLock);
end;

// A block with a span of its own.
function TakeSingle(Size: NativeUInt): PDebugBlock;
var
  Span: PSpan;
begin
  Inc(Size, SizeOf(TDebugBlock) + 2 * GuardSize);
  Span := ArenaTake(AlignUp(Size, SliceSize) shr SliceShift);
  if Span = nil then
    Exit(nil);
  LockEnter(Process.DebugLock);
  Format(Span, SingleClass, 1, Span^.SliceCount shl SliceShift - SizeOf(TDebugBlock));
  Result := TakeFrom(Span);
  LockLeave(Process.DebugLock);
end;

procedure BeginChange(Block: PDebugBlock; out Before: TAtomicWord);
begin
  repeat
    Before := LoadAcquire(Block^.State);
  until DebugBlockChange(Block, Before); // a scan may note what it found in between
end;

function DebugBlockTake(Cache: PDebugCache; Size: NativeUInt; out Before: TAtomicWord): PDebugBlock;
begin
  if Size > DebugMostSize then
    Exit(nil);
  if Size + 2 * GuardSize <= MaxClassSize then
    Result := TakeOfClass(Cache, SizeToClass(Size + 2 * GuardSize))
  else
    Result := TakeSingle(Size);
  if Result <> nil then
    BeginChange(Result, Before);
end;

procedure DebugGuardsHold;
var
  Round, Changes: NativeUInt;
begin
  // Full barrier: either Forbid sees the reader, or this thread sees it at work and waits.
  FetchAdd(Process.GuardReaders, 1);
  for Round := 1 to MostRounds do
  begin
    Changes := LoadAcquire(Process.GuardChanges);
    if Changes = 0 then
      Exit;
    OsWaitMs(Process.GuardChanges, Changes, PatienceMs);
  end;
end;

procedure DebugGuardsLetGo;
begin
  FetchAdd(Process.GuardReaders, NativeUInt(-1));
end;

// Makes pages untouchable, unless somebody reads all blocks now; tells whether it did.
function Forbid(P: Pointer; Size: NativeUInt): Boolean;
begin
  // Full barrier: pairs with DebugGuardsHold.
  FetchAdd(Process.GuardChanges, 1);
  Result := (LoadAcquire(Process.GuardReaders) = 0) and OsForbid(P, Size);
  FetchAdd(Process.GuardChanges, NativeUInt(-1));
end;

// A span for one more guarded block, or nil.
function TakeGuardedSpan(Size: NativeUInt): PSpan;
begin
  Result := nil;
  if FetchAdd(Process.GuardedBlocks, 1) < MostGuarded then
    Result := ArenaTake(AlignUp(Size + 3 * OsPageSize, SliceSize) shr SliceShift);
  if Result = nil then
    FetchAdd(Process.GuardedBlocks, NativeUInt(-1));
end;

function DebugBlockTakeGuarded(Size: NativeUInt; out Before: TAtomicWord): PDebugBlock;
var
  Span: PSpan;
begin
  Result := nil;
  if Size > DebugMostSize - 2 * OsPageSize then
    Exit;
  Span := TakeGuardedSpan(Size);
  if Span = nil then
    Exit;
  LockEnter(Process.DebugLock);
  Format(Span, GuardedClass, 1, Size);
  Result := TakeFrom(Span);
  LockLeave(Process.DebugLock);
  if Forbid(LastPage(Span), OsPageSize) then
    BeginChange(Result, Before)
  else
  begin
    DebugSpanRelease(Span);
    Result := nil;
  end;
end;

function DebugPlaceIsOpen(const Place: TDebugPlace): Boolean;
var
  Sign: Byte;
begin
  Result := not Place.HasPages or OsRead(NativeUInt(Place.Data) - 1, @Sign, SizeOf(Sign));
end;

procedure DebugBlockClose(Block: PDebugBlock);
var
  Span: PSpan;
  Size: NativeUInt;
begin
  Span := ArenaSpan(Block);
  Size := (Span^.SliceCount shl SliceShift) - 2 * OsPageSize;
  OsErase(Span^.Start + OsPageSize, Size);
  LockEnter(Process.DebugLock); // a scan may be looking at the block
  OsPurge(Span^.Start + OsPageSize, Size);
  Forbid(Span^.Start + OsPageSize, Size);
  LockLeave(Process.DebugLock);
end;

// ---------------------------------------------------------------------------- quarantine

function DebugBlocksStart: Boolean;
const
  RoomSize = RingLength * SizeOf(NativeUInt);
var
  Room: Pointer;
begin
  if Process.Quarantine.Room <> nil then
    Exit(True);
  Room := OsReserve(RoomSize);
  Result := (Room <> nil) and OsCommit(Room, RoomSize);
  if Result then
    Process.Quarantine.Room := Room
  else if Room <> nil then
    OsRelease(Room, RoomSize);
end;

function RingPlace(Number: NativeUInt): PNativeUInt; inline;
begin
  Result := Process.Quarantine.Room + Number mod RingLength;
end;

// Bytes that the block takes.
function BytesOf(Block: PDebugBlock): NativeUInt; inline;
begin
  if DebugBlockIsGuarded(Block) then
    Result := OsPageSize
  else
    Result := ArenaSpan(Block)^.BlockSize + SizeOf(TDebugBlock);
end;

// Lets the block be used again. Adds its span to Empty when that was the last one in use.
procedure Recycle(Block: PDebugBlock; var Empty: PSpan);
var
  Span: PSpan;
  IsUnused: Boolean;
begin
  Span := ArenaSpan(Block);
  Block^.Next := PDebugBlock(Span^.FreeList);
  Span^.FreeList := NativeUInt(Block);
  Dec(Span^.Used);
  IsUnused := Span^.Used = 0;
  if Span^.SizeClass < SingleClass then
  begin
    if not Span^.IsCurrent then
      ListAdd(Span);
    // One span of each class stays.
    IsUnused := IsUnused and ((Span^.Prev <> nil) or (Span^.Next <> nil));
    if IsUnused then
      ListRemove(Span);
  end;
  if not IsUnused then
    Exit;
  Span^.Next := Empty;
  Empty := Span;
end;

procedure RecycleOldest(var Empty: PSpan);
var
  Block: PDebugBlock;
begin
  Block := PDebugBlock(RingPlace(Process.Quarantine.First)^);
  CacheFetch(Pointer(RingPlace(Process.Quarantine.First + FetchedAhead)^));
  Inc(Process.Quarantine.First);
  Dec(Process.Quarantine.Bytes, BytesOf(Block));
  Recycle(Block, Empty);
end;

// Under the lock.
procedure Keep(Block: PDebugBlock; var Empty: PSpan);
begin
  // A block that would drive all others out goes at once.
  if BytesOf(Block) > Process.Quarantine.MostBytes div 2 then
  begin
    Recycle(Block, Empty);
    Exit;
  end;
  if Process.Quarantine.Limit - Process.Quarantine.First = RingLength then
    RecycleOldest(Empty);
  RingPlace(Process.Quarantine.Limit)^ := NativeUInt(Block);
  Inc(Process.Quarantine.Limit);
  Inc(Process.Quarantine.Bytes, BytesOf(Block));
  while Process.Quarantine.Bytes > Process.Quarantine.MostBytes do
    RecycleOldest(Empty);
end;

procedure KeepFreed(var Cache: TDebugCache; var Empty: PSpan);
var
  Index: NativeInt;
begin
  LockEnter(Process.DebugLock);
  for Index := 0 to NativeInt(Cache.FreedCount) - 1 do
    Keep(Cache.Freed[Index], Empty);
  LockLeave(Process.DebugLock);
  Cache.FreedCount := 0;
  Cache.FreedBytes := 0;
end;

function DebugBlockRetire(Cache: PDebugCache; Block: PDebugBlock): PSpan;
begin
  Result := nil;
  if Cache = nil then
  begin
    LockEnter(Process.DebugLock);
    Keep(Block, Result);
    LockLeave(Process.DebugLock);
    Exit;
  end;
  Cache^.Freed[Cache^.FreedCount] := Block;
  Inc(Cache^.FreedCount);
  Inc(Cache^.FreedBytes, BytesOf(Block));
  if (Cache^.FreedCount = FreedLimit)
    or (Cache^.FreedBytes > Process.Quarantine.MostBytes div FreedShare) then
    KeepFreed(Cache^, Result);
end;

function DebugQuarantineEmpty(Cache: PDebugCache): PSpan;
begin
  Result := nil;
  if Cache <> nil then
    KeepFreed(Cache^, Result);
  LockEnter(Process.DebugLock);
  while Process.Quarantine.First <> Process.Quarantine.Limit do
    RecycleOldest(Result);
  LockLeave(Process.DebugLock);
end;

procedure DebugSpanRelease(Span: PSpan);
begin
  if Span^.SizeClass = GuardedClass then
  begin
    // Pages that stay untouchable cannot be used again.
    if not OsCommit(Span^.Start, Span^.SliceCount shl SliceShift) then
      Exit;
    FetchAdd(Process.GuardedBlocks, NativeUInt(-1));
  end;
  // Under the lock: whoever looks at the blocks of a span under it finds them, or another kind.
  LockEnter(Process.DebugLock);
  Span^.Kind := skReleased;
  LockLeave(Process.DebugLock);
  ArenaRelease(Span);
end;

// ---------------------------------------------------------------------------- fork

procedure RecoverSpan(Span: PSpan; Context: Pointer);
begin
  if (Span^.Kind <> skDebug) or (Span^.SizeClass >= SingleClass) then
    Exit;
  Span^.IsCurrent := False;
  if not IsFull(Span) then
    ListAdd(Span);
end;

procedure DebugBlocksRecover;
var
  Number: NativeUInt;
begin
  FillChar(Process.DebugSpans, SizeOf(Process.DebugSpans), 0);
  ArenaVisit(RecoverSpan, nil);
  Process.Quarantine.Bytes := 0;
  Number := Process.Quarantine.First;
  while Number <> Process.Quarantine.Limit do
  begin
    Inc(Process.Quarantine.Bytes, BytesOf(PDebugBlock(RingPlace(Number)^)));
    Inc(Number);
  end;
  LockReset(Process.DebugLock);
end;

end.
