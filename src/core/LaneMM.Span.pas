/// The free list of one span: blocks of one size class.
//
// Owns:       TSpan.FreeList, Used, CarvedBytes, and the fields that SpanFormat sets.
// Invariants: see TSpan. Blocks are linked by their first word, scrambled with a key that is random
//             for each life of a span: no program stores such a word by itself, and SpanTake
//             overwrites it. So it distinguishes a free block from one in use, except by chance,
//             or by bytes that the program copied from where it may not read, or that calls left
//             on the stack. A free is refused only if the block is on a list (SpanHasFreeBlock).
// Corruption: SpanTake hands out a block only if its word is that of a free block and leads to
//             another, or ends the list: a block in use is on no list that is served, and nothing
//             else is handed out. If the word was overwritten, SpanDropList gives
//             up the rest of the list, whose blocks count as used from then on. When two threads
//             free one block at the same moment, Used may be too low: a span in which other
//             threads have freed blocks is released only when all its blocks look free.
// Shelf:      see LaneMM.Shelf. The owner takes all shelved blocks before it carves others.
// Callers:    the span's owner; SpanBlockIsValid, BlockLooksFree, SpanHasFreeBlock and
//             SpanUsedCount: any thread; SpanIsEmpty: the thread that holds the owner's lock.
// Progress:   no routine waits. SpanHasFreeBlock walks both lists, a few times where they change.
// Source:     divisibility by one multiplication: Lemire, Kaser and Kurz, "Faster Remainder by
//             Direct Computation" (2019).
unit LaneMM.Span;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Hooks, LaneMM.Atomic;

/// Formats a fresh run of slices as a span of the class, without a free block yet, owned by Heap.
procedure SpanFormat(Span: PSpan; SizeClass: Cardinal; Heap: PHeap);
/// Makes the records of the later slices of a span lead to the first. In a span of more than 256 MB
/// those in the middle stay as they are, so that records which are not used take no memory.
procedure SpanFormatInner(Span: PSpan);
/// Takes a free block. Nil when FreeList is empty, or when the first word of its first block is not
/// that of a free block: then call SpanDropList.
function SpanTake(Span: PSpan): PBlock; inline;
/// Puts a block on FreeList. Returns true if no block is in use now.
function SpanPut(Span: PSpan; Block: PBlock): Boolean; inline;
/// Fills an empty FreeList with the blocks that other threads freed, or with blocks never used
/// before. Returns true if it has a block now. False, too, while another thread shelves blocks. A
/// block that was written to since waits in the owner for SpanReportFound.
function SpanRefill(Span: PSpan): Boolean;
/// Lets the owner's free that leaves Left blocks in use take the slow path, or its next free, if
/// fewer are in use. The owner, of a span in no queue whose Bias is 0.
procedure SpanExpect(Span: PSpan; Left: LongInt);
/// Adds Count to Used and Bias: the same blocks are in use. The owner.
procedure SpanRaise(Span: PSpan; Count: Cardinal);
/// Returns true if the free that SpanExpect awaits was missed.
function SpanIsOverdue(Span: PSpan): Boolean;
/// Gives up FreeList. Returns its first block, whose first word was overwritten; nil if it is
/// unknown.
function SpanDropList(Span: PSpan): PBlock;
/// Counts the blocks of FreeList anew; gives it up if it does not lead through free blocks to its
/// end: a thread that a child process does not have may have been changing it.
procedure SpanRecover(Span: PSpan);
/// Reports that Span is corrupt at Block; nil: unknown. Under no lock.
procedure SpanReport(Corruption: TCorruption; Span: PSpan; Block: PBlock);
/// Reports a block that SpanRefill has found in a span of Heap. Under no lock, and where Heap is
/// whole: the program's routine that is called may allocate and free.
procedure SpanReportFound(Heap: PHeap);
/// Puts the blocks that other threads freed on FreeList, which may have blocks. Returns one that
/// was written to or freed again, and counts as used now; nil if none: see SpanReport.
function SpanCollect(Span: PSpan): PBlock;
/// Returns true if the span can serve no block until one is freed.
function SpanIsFull(Span: PSpan): Boolean;
/// Returns true if no block is in use; blocks that other threads freed count as free. Not for a
/// current span.
function SpanIsEmpty(Span: PSpan): Boolean;
/// Returns the number of blocks in use; about, and never below 0, while other threads use the span.
function SpanUsedCount(Span: PSpan): NativeUInt;
/// Returns the first block that does not look free, of a span without a block in use by its counts;
/// nil if all do, or if no other thread has freed a block of it.
function SpanUncountedBlock(Span: PSpan): PBlock;

/// Returns true if a block that was ever put on FreeList begins at Offset, any number. The owner,
/// or a thread that has blocks of the span.
function SpanBlockBegins(Span: PSpan; Offset: NativeUInt): Boolean; inline;
/// Returns true if a block that was ever put on FreeList begins at P, which lies in the span.
function SpanBlockIsValid(Span: PSpan; P: Pointer): Boolean; inline;
/// Returns true if Word is the first word of a free block; of the words that a program writes, one
/// in 2 ** 44, with words of 32 bits one in 2 ** 12.
function WordMayBeLink(Span: PSpan; Word: NativeUInt): Boolean; inline;
/// Returns true if the block is shelved, or its first word is that of a free block of this span; of
/// blocks in use, by chance, one in 2 ** 52, with words of 32 bits one in 2 ** 20.
function BlockLooksFree(Span: PSpan; Block: PBlock): Boolean;
/// Returns true if Block, which looks free, is: it is on FreeList or on the list of what other
/// threads freed, or is or may be shelved. Any thread; while the owner changes the lists, a free
/// block may be missed. Never true for a block that stays in use meanwhile, except one that looks
/// free while blocks are being shelved.
function SpanHasFreeBlock(Span: PSpan; Block: PBlock): Boolean;

implementation

uses
  LaneMM.Bits, LaneMM.SizeClasses, LaneMM.Errors, LaneMM.Arena, LaneMM.RemoteList;

{$I ../LaneMM.AfterUses.inc}

const
  // Untouched blocks are put on FreeList in portions of at most this many bytes, or one by one, so
  // that unused memory is not touched.
  CarveBytes = 4096;

procedure SpanFormatInner(Span: PSpan);
const
  MostInner = 2048; // at each end; their records take 1 MB
var
  Inner: PSpan;
  Index: NativeUInt;
begin
  Index := 1;
  while Index < Span^.SliceCount do
  begin
    Inner := Span + Index;
    Inner^.Owner := NoOwner;
    Inner^.Distance := Index;
    Inner^.Kind := skInner;
    Inc(Index);
    if (Index = MostInner) and (Span^.SliceCount > 2 * MostInner) then
      Index := Span^.SliceCount - MostInner;
  end;
end;

// Returns the blocks in use, those counted that other threads freed; never fewer.
function InUse(Span: PSpan): Cardinal;
var
  Bias: LongInt;
begin
  Bias := Span^.Bias;
  AcquireFence; // pairs with SpanRaise
  Result := Cardinal(LongInt(Span^.Used) - Bias);
end;

// Returns the number of blocks that the span can hold.
function BlockCount(Span: PSpan): Cardinal;
begin
  Result := Span^.SliceCount * SliceSize div Span^.BlockSize;
  if Result > MostSpanBlocks then
    Result := MostSpanBlocks;
end;

// Returns the key of the span's next life, made of that of the last one. With it neither nil nor
// HandedOut nor an address that a program could use is a link: of its top bits some are 1, one is
// 0. The last four bits are 0110, so that a link whose lowest byte was overwritten with zero leads
// to no block.
function NextKey(Span: PSpan): NativeUInt;
const
  Top = SizeOf(NativeUInt) * 8 - 12;
  Ones = NativeUInt(NativeUInt($808) shl Top or 6);
  Zeros = NativeUInt(NativeUInt($400) shl Top or 9);
begin
  Result := NativeUInt(SipHash(Process.KeySeed, UInt64(NativeUInt(Span)) shl 16 xor Span^.LinkKey));
  Result := Result and not Zeros or Ones;
end;

procedure SpanFormat(Span: PSpan; SizeClass: Cardinal; Heap: PHeap);
begin
  Span^.FreeList := EndOfList;
  Span^.Origin := Span^.Start;
  Span^.Prev := nil;
  Span^.Used := 0;
  Span^.CarvedBytes := 0;
  Span^.BlockSize := ClassToSize(SizeClass);
  Span^.DivideMagic := High(UInt64) div Span^.BlockSize + 2;
  Span^.ProductLimit := 0;
  Span^.LinkKey := NextKey(Span);
  Span^.BlockBytes := BlockCount(Span) * Span^.BlockSize;
  Span^.SizeClass := SizeClass;
  Span^.IsCurrent := False;
  Span^.Bias := 0;
  Span^.IsShared := False;
  Span^.ShelvedPages := 0;
  RemoteStartLife(Span);
  Span^.Owner := Heap;
  SpanFormatInner(Span);
  // Release: the record before its kind. Pairs with VisitArena.
  ReleaseFence;
  Span^.Kind := skBlocks;
end;

function SpanBlockBegins(Span: PSpan; Offset: NativeUInt): Boolean;
begin
  Result := UInt64(Offset) * Span^.DivideMagic < Span^.ProductLimit;
end;

function SpanTake(Span: PSpan): PBlock;
var
  Next: NativeUInt;
begin
  if Odd(Span^.FreeList) then
    Exit(nil);
  Result := PBlock(Span^.Origin + Span^.FreeList);
  Next := LinkOf(Span, Result^.Link);
  if not SpanBlockBegins(Span, Next) and (Next <> EndOfList) then
    Exit(nil);
  Span^.FreeList := Next;
  Result^.Link := HandedOut;
  Inc(Span^.Used);
end;

function SpanPut(Span: PSpan; Block: PBlock): Boolean;
begin
  Block^.Link := LinkOf(Span, Span^.FreeList);
  Span^.FreeList := NativeUInt(Block) - NativeUInt(Span^.Origin);
  // A sweeping thread that sees the count sees the list. Pairs with the load in SpanIsEmpty.
  ReleaseFence;
  Dec(Span^.Used);
  YieldPoint; // a sweeping thread may release the span, and another one take it
  Result := Span^.Used = 0;
end;

// Puts Count blocks from the offset First on on the empty FreeList, in a random order: each takes
// the place of a random one before it (Durstenfeld, CACM 7, 1964). The first of the list counts as
// the first one carved.
procedure CarveShuffled(Span: PSpan; First: NativeUInt; Count: Cardinal);
var
  Order: array[0..CarveBytes div BlockAlignment - 1] of Word;
  Index, Other: Cardinal;
  Next: NativeUInt;
  Random: UInt64;
begin
  Random := SipHash(Process.KeySeed, Span^.LinkKey xor First);
  Order[0] := 0;
  for Index := 1 to Count - 1 do
  begin
    Other := (Random shr 32) * (Index + 1) shr 32;
    Order[Index] := Order[Other];
    Order[Other] := Index;
    Random := Random * UInt64($D1342543DE82EF95) + 1; // Steele and Vigna (2021)
  end;
  Next := EndOfList;
  for Index := 0 to Count - 1 do
  begin
    Other := First + Order[Index] * Span^.BlockSize;
    PBlock(Span^.Start + Other)^.Link := LinkOf(Span, Next);
    Next := Other;
  end;
  Span^.FreeList := Next;
  PHeap(OwnerOf(Span))^.Carved := Span^.Start + Next;
end;

// Puts the next portion of untouched blocks on the empty FreeList, in the order of address, or in a
// random one.
procedure Carve(Span: PSpan);
var
  Size, Next, Step, Last: NativeUInt;
  Block: PByte;
  Heap: PHeap;
begin
  Size := Span^.BlockSize;
  if Size < CarveBytes then
    Size := CarveBytes div Span^.BlockSize * Span^.BlockSize;
  if Size > Cardinal(Span^.BlockBytes - Span^.CarvedBytes) then
    Size := Span^.BlockBytes - Span^.CarvedBytes;
  if Size = 0 then
    Exit;
  Next := Span^.CarvedBytes;
  Inc(Span^.CarvedBytes, Size);
  // A thread that shelves purges what is behind CarvedBytes: either it sees the new value, or this
  // thread sees it, and carves later. Pairs with RemoteShelve.
  if (Span^.SliceCount = 1) and RemoteHasShelf(Span) then
  begin
    Span^.CarvedBytes := Next;
    Exit;
  end;
  Heap := OwnerOf(Span);
  Heap^.Carved := Span^.Start + Next;
  Span^.ProductLimit := Span^.CarvedBytes * Span^.DivideMagic;
  if Span^.CarvedBytes = Span^.BlockBytes then
    Inc(Heap^.CarvedSlices, Span^.SliceCount);
  if Process.ShufflesBlocks then
  begin
    CarveShuffled(Span, Next, Size div Span^.BlockSize);
    Exit;
  end;
  Span^.FreeList := Next;
  Block := Span^.Start + Next;
  Step := Span^.BlockSize;
  Last := Next + Size - Step;
  while Next <> Last do
  begin
    Inc(Next, Step);
    PBlock(Block)^.Link := LinkOf(Span, Next);
    Inc(Block, Step);
  end;
  PBlock(Block)^.Link := LinkOf(Span, EndOfList);
end;

// Returns a block of FreeList that is shelved, too: the owner freed it at the moment when it was
// being shelved, although another thread had freed it. Nil if there is none.
function FreedOnShelf(Span: PSpan): PBlock;
var
  Next: NativeUInt;
  Left: Cardinal;
begin
  Next := Span^.FreeList;
  // A block that two threads freed may be on the list twice, which is a ring then.
  Left := Span^.CarvedBytes div Span^.BlockSize;
  while (Left > 0) and SpanBlockBegins(Span, Next) do
  begin
    Result := PBlock(Span^.Origin + Next);
    if RemoteShelfHas(Span, Result) then
      Exit;
    Next := LinkOf(Span, Result^.Link);
    Dec(Left);
  end;
  Result := nil;
end;

// Puts the shelved blocks on FreeList, if there are any. One that was written to since counts as
// used from then on; returns the last such block, nil if none.
function TakeShelf(Span: PSpan): PBlock;
var
  Offset: NativeUInt;
  Block: PBlock;
  Taken: Cardinal;
begin
  Result := nil;
  if not RemoteIsShelved(Span) then
    Exit;
  Result := FreedOnShelf(Span);
  if Result <> nil then
    SpanDropList(Span);
  Taken := 0;
  Offset := Span^.CarvedBytes;
  while Offset > 0 do
  begin
    Dec(Offset, Span^.BlockSize);
    Block := PBlock(Span^.Start + Offset);
    if not RemoteShelfHas(Span, Block) then
      Continue;
    // Without a read before: the system would back the page twice.
    if CompareAndSwap(Block^.Link, 0, LinkOf(Span, Span^.FreeList)) then
    begin
      Span^.FreeList := Offset;
      Inc(Taken);
    end
    else
      Result := Block;
  end;
  Span^.IsShared := True;
  // Release: the first words say that the blocks are free before ShelvedPages no longer does.
  ReleaseFence;
  RemoteClearShelf(Span);
  // Full barrier there: a sweep that sees the lower count counts no shelved block. See SpanIsEmpty.
  Dec(Span^.Used, Taken);
end;

procedure Collect(Span: PSpan);
var
  Count: Cardinal;
begin
  Span^.FreeList := RemoteTakeAll(Span, Count);
  if Count = 0 then
    Exit;
  if Checked then
    Check(Count <= InUse(Span), 'the blocks on Remote are counted in Used');
  Dec(Span^.Used, Count);
  Span^.IsShared := True;
end;

function SpanRefill(Span: PSpan): Boolean;
var
  Damaged: PBlock;
begin
  if Checked then
  begin
    Check(Odd(Span^.FreeList), 'a span is refilled when FreeList is empty');
    Check(InUse(Span) * Span^.BlockSize = Span^.CarvedBytes,
      'used and free blocks are the carved ones');
  end;
  if Span^.BlockBytes = 0 then
    Exit(False); // Process.EmptySpan, which all heaps share
  Damaged := TakeShelf(Span);
  if Odd(Span^.FreeList) then
    Collect(Span)
  else if Damaged = nil then // else the next refill finds those
    Damaged := SpanCollect(Span);
  if Odd(Span^.FreeList) then
    Carve(Span);
  if Damaged <> nil then
    OwnerOf(Span)^.Damaged := Damaged;
  Result := not Odd(Span^.FreeList);
end;

function SpanCollect(Span: PSpan): PBlock;
var
  Next: NativeUInt;
  Block: PBlock;
  Count: Cardinal;
begin
  Result := TakeShelf(Span);
  Next := RemoteTakeAll(Span, Count);
  Span^.IsShared := Span^.IsShared or (Count > 0);
  while (Count > 0) and not Odd(Next) do
  begin
    Block := PBlock(Span^.Origin + Next);
    Next := LinkOf(Span, Block^.Link);
    if not SpanBlockBegins(Span, Next) and (Next <> EndOfList) then
      Exit(Block); // overwritten: it and those after it count as used
    SpanPut(Span, Block);
    Dec(Count);
  end;
end;

function SpanDropList(Span: PSpan): PBlock;
begin
  Result := nil;
  if not Odd(Span^.FreeList) then
    Result := PBlock(Span^.Origin + Span^.FreeList);
  Span^.FreeList := EndOfList;
  Span^.Used := Cardinal(LongInt(Span^.CarvedBytes div Span^.BlockSize) + Span^.Bias);
end;

procedure SpanRecover(Span: PSpan);
var
  First, Next: NativeUInt;
  Count: Cardinal;
begin
  First := Span^.FreeList;
  Next := First;
  Count := 0;
  // Two pages may show a ring.
  while SpanBlockBegins(Span, Next) and (Count < Span^.CarvedBytes div Span^.BlockSize) do
  begin
    Next := LinkOf(Span, PBlock(Span^.Start + Next)^.Link);
    Inc(Count);
  end;
  SpanDropList(Span);
  if Next <> EndOfList then
    Exit;
  Span^.FreeList := First;
  Dec(Span^.Used, Count);
end;

procedure SpanReport(Corruption: TCorruption; Span: PSpan; Block: PBlock);
begin
  if @Hooks.Corruption <> nil then
    Hooks.Corruption(Corruption, Span, Block);
end;

procedure SpanReportFound(Heap: PHeap);
var
  Damaged: PBlock;
  Span: PSpan;
begin
  Damaged := Heap^.Damaged;
  if Damaged = nil then
    Exit;
  Heap^.Damaged := nil;
  Span := ArenaSpan(Damaged); // stays: the block counts as used
  if Span^.Kind = skInner then
    Dec(Span, Span^.Distance);
  SpanReport(coLink, Span, Damaged);
end;

function SpanIsFull(Span: PSpan): Boolean;
begin
  Result := Odd(Span^.FreeList) and (Span^.CarvedBytes = Span^.BlockBytes)
    and RemoteIsEmpty(Span);
end;

procedure SpanRaise(Span: PSpan; Count: Cardinal);
begin
  Inc(Span^.Used, Count);
  // A sweep that sees the new Bias sees the new count. Pairs with InUse.
  ReleaseFence;
  Inc(Span^.Bias, Count);
end;

procedure SpanExpect(Span: PSpan; Left: LongInt);
begin
  if Left >= LongInt(Span^.Used) then
    Left := LongInt(Span^.Used) - 1;
  if Left <= 0 then
    Exit;
  Span^.Bias := -Left;
  Dec(Span^.Used, Left);
end;

function SpanIsOverdue(Span: PSpan): Boolean;
begin
  Result := (Span^.Bias < 0) and (LongInt(Span^.Used) <= 0);
end;

function SpanIsEmpty(Span: PSpan): Boolean;
var
  Used: Cardinal;
begin
  Used := InUse(Span);
  // Used before the list's length: it only falls while the span is queued, and is never below that
  // length. In the reverse order, SpanCollect between the two makes them equal with blocks in use.
  AcquireFence;
  Result := Used = RemoteFreedCount(Span);
end;

function SpanUsedCount(Span: PSpan): NativeUInt;
var
  Count: NativeInt;
begin
  Count := NativeInt(LongInt(InUse(Span))) - NativeInt(RemoteFreedCount(Span));
  Result := 0;
  if Count > 0 then
    Result := Count;
end;

function SpanUncountedBlock(Span: PSpan): PBlock;
var
  Offset: NativeUInt;
begin
  Result := nil;
  if not Span^.IsShared and (RemoteCount(Span) = 0) then
    Exit;
  Offset := 0;
  while Offset < Span^.CarvedBytes do
  begin
    Result := PBlock(Span^.Start + Offset);
    if not RemoteShelfHas(Span, Result) and not WordMayBeLink(Span, Result^.Link) then
      Exit;
    Inc(Offset, Span^.BlockSize);
  end;
  Result := nil;
end;

function SpanBlockIsValid(Span: PSpan; P: Pointer): Boolean;
var
  Offset: NativeUInt;
begin
  Offset := NativeUInt(P) - NativeUInt(Span^.Start);
  Result := (UInt64(Offset) * Span^.DivideMagic < Span^.DivideMagic)
    and (Offset < Span^.CarvedBytes);
end;

function WordMayBeLink(Span: PSpan; Word: NativeUInt): Boolean;
begin
  Result := LinkOf(Span, Word) shr OffsetBits = 0;
end;

function BlockLooksFree(Span: PSpan; Block: PBlock): Boolean;
var
  Next: NativeUInt;
begin
  Next := LinkOf(Span, Block^.Link);
  Result := (Next = EndOfList)
    or (Next < Span^.CarvedBytes) and SpanBlockIsValid(Span, Span^.Start + Next)
    or RemoteShelfHas(Span, Block);
end;

// Returns true if Block is on the list that begins at the offset Free. Free becomes EndOfList at
// its end; any other offset after a false answer says that the list is damaged, or has changed.
function ListHas(Span: PSpan; var Free: NativeUInt; Block: PBlock): Boolean;
var
  StepsLeft: NativeUInt;
begin
  // No more steps than blocks, and none to what is no block.
  StepsLeft := Span^.CarvedBytes div Span^.BlockSize;
  Result := False;
  while not Result and (StepsLeft > 0) and (Free < Span^.CarvedBytes)
    and SpanBlockIsValid(Span, Span^.Start + Free) do
  begin
    Result := Span^.Start + Free = PByte(Block);
    Free := LinkOf(Span, PBlock(Span^.Start + Free)^.Link);
    Dec(StepsLeft);
  end;
end;

function SpanHasFreeBlock(Span: PSpan; Block: PBlock): Boolean;
const
  // Looks at lists that change meanwhile.
  MostLooks = 8;
var
  Freed, Free: NativeUInt;
  LooksLeft: Cardinal;
begin
  LooksLeft := MostLooks;
  repeat
    Dec(LooksLeft);
    // In this order: the owner moves blocks from the first list to the second.
    Freed := RemoteFirst(Span);
    Result := RemoteIsShelving(Span) or RemoteShelfHas(Span, Block) or ListHas(Span, Freed, Block);
    Free := Span^.FreeList;
    Result := Result or ListHas(Span, Free, Block);
  until Result or (LooksLeft = 0) or (Freed = EndOfList) and (Free = EndOfList);
end;


end.
