/// Blocks of a span that other threads freed: a list that many threads push on and one empties.
//
// Owns:       TSpan.Remote, one word: bits 0 to 11 the length of the list, bits 12 to 31 the offset
//             of its first block from Start, xor EndOfList, so that an empty list is 0; bit 13,
//             which no offset has, given up; bit 13 with 14, shelved, or with 15, shelving; of 64
//             bits the upper half counts the record's lives. TSpan.ShelvedPages.
// Invariants: the list ends with EndOfList, like FreeList, so the owner takes it over whole.
//             A block is on at most one list. A span that was given up has no list.
// Shelf:      a sweep takes the list of a span that looks unused, purges pages that no block in use
//             lies in (LaneMM.Shelf), and puts the other blocks back. Meanwhile the
//             word says shelving, and no other thread may take the list or end the life; then
//             shelved, until the owner puts the blocks of these pages on FreeList. A shelved block
//             is one in a page of ShelvedPages; its first word is 0. So a free must look at
//             ShelvedPages: bit 13 sends that of another thread to Pascal, AwaitsFree that of the
//             owner.
// Large:      the span of a large block is given up: the thread that frees the block ends its life.
//             A thread of another heap than the block's keeper first adds 1 (FreedSpan).
// Double free: a push first claims the block, by a compare-and-swap on its first word. Of two
//             threads that free a block at the same moment one loses; so does one that frees it
//             after the span's release, by the count of lives. The owner claims nothing: a block
//             that it frees at the same moment is on FreeList, too. LaneMM.Span hands it out once.
// Assembler:  LaneMM.Free.x64.inc claims and pushes as RemotePush does, once; it leaves a second
//             push to RemotePushClaimed.
// Callers:    RemotePush, RemotePushClaimed, RemoteShelve: any thread. RemoteShelveEnd: the thread
//             that shelves. RemoteTakeAll, RemoteGiveUp, RemoteFirst, RemoteIsUsed: the span's
//             owner. RemoteStartLife, RemoteStartGivenUp: the thread that formats the record.
//             RemoteEndLife: the thread that releases the span. RemoteTryEndLife, RemoteEndOwnLife,
//             RemoteMark, RemoteEndMarked: the threads that free a large block, see LaneMM.Large.
//             The others: any thread.
// Progress:   a loop repeats only when another thread has changed the word (lock-free), the others
//             are one atomic operation. There is no pop, hence no ABA: a push only needs the first
//             block to be still the first.
// Source:     Treiber, "Systems Programming: Coping with Parallelism", IBM RJ 5118 (1986);
//             one list per span as in Leijen, Zorn and de Moura, "Mimalloc: Free List Sharding
//             in Action", MSR-TR-2019-18. Added here: the length beside the head, so that a
//             list of any length is taken in one step, without a walk.
unit LaneMM.RemoteList;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Atomic;

type
  /// Result of a push.
  TRemotePush = (
    rpPushed,       //< the block is on the list
    rpSpanIsYours,  //< the span was given up and now belongs to the caller, which frees the block
    rpNotInUse      //< another thread has freed the block
  );

/// Returns the list's word, for RemotePush and RemoteTryEndLife.
function RemoteWord(Span: PSpan): TAtomicWord; inline;
/// Pushes Block for the owner of Span. The caller read Word, by RemoteWord, then saw that Span has
/// the block, then read Seen, the block's first word, which is that of a block in use. Never waits.
function RemotePush(Span: PSpan; Block: PBlock; Word, Seen: NativeUInt): TRemotePush;
/// RemotePush for a block that the caller has claimed, with the word that it read before.
function RemotePushClaimed(Span: PSpan; Block: PBlock; Word: NativeUInt): TRemotePush;
/// Takes the whole list; Count is its length. Returns the offset of its first block or EndOfList:
/// also while another thread shelves blocks of the span, and while blocks are on the shelf.
function RemoteTakeAll(Span: PSpan; out Count: Cardinal): NativeUInt;
/// Gives the span up if its list is empty. Returns whether it did.
function RemoteGiveUp(Span: PSpan): Boolean;
/// Returns the number of blocks on the list.
function RemoteCount(Span: PSpan): Cardinal;
/// Returns the number of blocks on the list and of shelved ones.
function RemoteFreedCount(Span: PSpan): Cardinal;
/// Returns the offset of the list's first block or EndOfList. The blocks from there on stay on the
/// list until the owner takes it.
function RemoteFirst(Span: PSpan): NativeUInt;
/// Returns whether the list has a block, or blocks are or are being shelved. Full barrier.
function RemoteIsUsed(Span: PSpan): Boolean;
/// Returns whether the list has no block, and none is or is being shelved.
function RemoteIsEmpty(Span: PSpan): Boolean;
/// Takes the whole list of a span that is not given up, to shelve blocks; Count is its length. No
/// other thread takes it or ends the span's life before RemoteShelveEnd. Returns the offset of its
/// first block; EndOfList if there is none, or if blocks are or are being shelved. Full barrier;
/// OsBarrier is the caller's.
function RemoteShelve(Span: PSpan; out Count: Cardinal): NativeUInt;
/// Puts Count blocks back, linked from the one at offset First to Last; those in ShelvedPages are
/// shelved from now on.
procedure RemoteShelveEnd(Span: PSpan; First: NativeUInt; Last: PBlock; Count: Cardinal);
/// Returns whether blocks are or are being shelved, after all earlier writes of this thread: a full
/// barrier, here or, where Process.HasBarrier, in the thread that shelves. The owner.
function RemoteHasShelf(Span: PSpan): Boolean;
/// Returns whether blocks are shelved, and not being taken by the owner.
function RemoteIsShelved(Span: PSpan): Boolean;
/// Returns whether a thread shelves blocks now: those are on no list.
function RemoteIsShelving(Span: PSpan): Boolean;
/// Returns whether Block lies in a shelved page: it is free then.
function RemoteShelfHas(Span: PSpan; Block: PBlock): Boolean;
/// Clears ShelvedPages, with a full barrier after it. The owner, or the thread that releases the
/// span.
procedure RemoteClearShelf(Span: PSpan);
/// Ends what a thread that is lost in a child process was shelving: the blocks count as used.
procedure RemoteShelveRecover(Span: PSpan);
/// Empties the list of a record that no thread uses. A push that read the word since the last life
/// ended fails.
procedure RemoteStartLife(Span: PSpan);
/// Empties the list of such a record, and gives the span up.
procedure RemoteStartGivenUp(Span: PSpan);
/// Ends the life of a span that is released: a push that began in it fails. Returns false, and does
/// nothing, while another thread shelves blocks of it.
function RemoteEndLife(Span: PSpan): Boolean;
/// Ends the life of a large block, a given-up span, whose word was Word. Returns false if
/// another thread has ended its life.
function RemoteTryEndLife(Span: PSpan; Word: TAtomicWord): Boolean;
/// RemoteTryEndLife without an atomic operation, for the keeper's thread in its section.
function RemoteEndOwnLife(Span: PSpan; Word: TAtomicWord): Boolean;
/// Marks a large block as freed by a thread that is not its keeper's. Returns false if another
/// thread has ended its life or marked it.
function RemoteMark(Span: PSpan; Word: TAtomicWord): Boolean;
/// Ends the life of a block that this thread has marked when its word was Word. Returns false if
/// the keeper's thread has ended it.
function RemoteEndMarked(Span: PSpan; Word: TAtomicWord): Boolean;

implementation

uses
  LaneMM.Bits, LaneMM.Errors, LaneMM.Os;

const
  FirstMask = NativeUInt(1) shl OffsetBits - BlockAlignment + EndOfList;
  GivenUp = TAtomicWord(GivenUpSpan);
  // States of the word beside 0 and GivenUp, each with its bit.
  Shelved = GivenUp * 3;
  Shelving = GivenUp * 5;
  StateMask = GivenUp * 7;
  LifeMask = not (LifeStep - 1);

function CountOf(Word: TAtomicWord): Cardinal; inline;
begin
  Result := Word and MostSpanBlocks;
end;

function FirstOf(Word: TAtomicWord): NativeUInt; inline;
begin
  Result := Word shr RemoteFirstShift and FirstMask xor EndOfList;
end;

function StateOf(Word: TAtomicWord): TAtomicWord; inline;
begin
  Result := Word and StateMask;
end;

function Pack(Span: PSpan; Block: PBlock; Count: Cardinal): TAtomicWord; inline;
begin
  Result := (NativeUInt(Block) - NativeUInt(Span^.Start)) xor EndOfList;
  Result := Result shl RemoteFirstShift or Count;
end;

function RemoteWord(Span: PSpan): TAtomicWord;
begin
  // Acquire: the record's later fields are read in this life of the span, or a later one.
  Result := LoadAcquire(Span^.Remote);
end;

function RemotePush(Span: PSpan; Block: PBlock; Word, Seen: NativeUInt): TRemotePush;
begin
  // The claim: of all threads that saw the block in use one goes on. It writes the link, too.
  if not CompareAndSwap(Block^.Link, Seen, LinkOf(Span, FirstOf(Word))) then
    Exit(rpNotInUse);
  Result := RemotePushClaimed(Span, Block, Word);
end;

function RemotePushClaimed(Span: PSpan; Block: PBlock; Word: NativeUInt): TRemotePush;
var
  Life, Pushed: TAtomicWord;
begin
  Life := Word and LifeMask;
  repeat
    if Word and not LifeMask = GivenUp then
    begin
      Result := rpSpanIsYours;
      Pushed := Life;
    end
    else
    begin
      // Freed before, and shelved after this thread read its first word.
      if (StateOf(Word) <> 0) and RemoteShelfHas(Span, Block) then
        Exit(rpNotInUse);
      Result := rpPushed;
      Pushed := Life or StateOf(Word) or Pack(Span, Block, CountOf(Word) + 1);
    end;
    // Release: the block's link, and all that this thread wrote to the block, before the word.
    // Acquire, when the span changes hands: the fields that the last owner wrote before
    // RemoteGiveUp. Pairs with RemoteTakeAll and RemoteGiveUp.
    if CompareAndSwap(Span^.Remote, Word, Pushed) then
      Exit;
    Word := LoadAcquire(Span^.Remote);
    if Word and LifeMask <> Life then
      Exit(rpNotInUse);
    Block^.Link := LinkOf(Span, FirstOf(Word));
  until False;
end;

function RemoteTakeAll(Span: PSpan; out Count: Cardinal): NativeUInt;
var
  Word: TAtomicWord;
begin
  Count := 0;
  repeat
    Word := LoadAcquire(Span^.Remote);
    // Rarely more: in the common case no atomic operation. Acquire: ShelvedPages of this word.
    if (Word and not LifeMask = 0) or (StateOf(Word) = Shelving) or (Span^.ShelvedPages <> 0) then
      Exit(EndOfList);
    if Checked then
      Check(Word and not LifeMask <> GivenUp, 'the owner of a span has not given it up');
    // Acquire: see every link of the list. Pairs with RemotePush.
  until CompareAndSwap(Span^.Remote, Word, Word and LifeMask);
  Count := CountOf(Word);
  Result := FirstOf(Word);
end;

function RemoteGiveUp(Span: PSpan): Boolean;
var
  Life: TAtomicWord;
begin
  Life := Span^.Remote and LifeMask; // the owner's: no other thread changes it
  // Release: the thread that takes the span over sees its fields. Pairs with RemotePush.
  Result := CompareAndSwap(Span^.Remote, Life, Life or GivenUp);
end;

function RemoteCount(Span: PSpan): Cardinal;
begin
  Result := CountOf(LoadAcquire(Span^.Remote));
end;

// Returns the number of carved blocks in ShelvedPages.
function ShelfCount(Span: PSpan): Cardinal;
var
  Pages, Page, First, Next, Limit: NativeUInt;
begin
  Result := 0;
  Pages := Span^.ShelvedPages;
  Page := 0;
  Next := 0;
  while Pages shr Page <> 0 do
  begin
    First := Page * OsPageSize div Span^.BlockSize;
    if First < Next then
      First := Next; // it begins in the page before, which has counted it
    Inc(Page);
    Limit := NativeUInt(Page * OsPageSize - 1) div Span^.BlockSize + 1;
    if Limit > Span^.CarvedBytes div Span^.BlockSize then
      Limit := Span^.CarvedBytes div Span^.BlockSize;
    if Odd(Pages shr (Page - 1)) and (Limit > First) then
    begin
      Inc(Result, Limit - First);
      Next := Limit;
    end;
  end;
end;

function RemoteFreedCount(Span: PSpan): Cardinal;
var
  Word: TAtomicWord;
begin
  // One read: of a word read later ShelvedPages may have blocks that were on the list before.
  Word := LoadAcquire(Span^.Remote);
  Result := CountOf(Word);
  if StateOf(Word) = Shelved then
    Inc(Result, ShelfCount(Span));
end;

function RemoteFirst(Span: PSpan): NativeUInt;
begin
  // Acquire: see every link of the list. Pairs with RemotePush.
  Result := FirstOf(LoadAcquire(Span^.Remote));
end;

function RemoteIsUsed(Span: PSpan): Boolean;
begin
  Result := FetchAdd(Span^.Remote, 0) and not LifeMask <> 0;
end;

function RemoteIsEmpty(Span: PSpan): Boolean;
begin
  Result := LoadAcquire(Span^.Remote) and not LifeMask = 0;
end;

function RemoteShelve(Span: PSpan; out Count: Cardinal): NativeUInt;
var
  Word: TAtomicWord;
begin
  Count := 0;
  Word := LoadAcquire(Span^.Remote);
  // A span with a list is owned: it is no free run, and no thread formats its record. Full barrier:
  // the owner sees that blocks are being shelved, or this thread sees what the owner has carved.
  // Pairs with Carve and SetOwner.
  if (StateOf(Word) <> 0) or (CountOf(Word) = 0)
    or not CompareAndSwap(Span^.Remote, Word, Word and LifeMask or Shelving) then
    Exit(EndOfList);
  Count := CountOf(Word);
  Result := FirstOf(Word);
end;

procedure RemoteShelveEnd(Span: PSpan; First: NativeUInt; Last: PBlock; Count: Cardinal);
var
  Word, Put: TAtomicWord;
begin
  FetchAdd(Process.ShelvedPages, BitCount(Span^.ShelvedPages));
  repeat
    Word := LoadAcquire(Span^.Remote);
    Put := Word and not StateMask;
    if Count > 0 then
    begin
      Last^.Link := LinkOf(Span, FirstOf(Word));
      Put := Word and LifeMask or Pack(Span, PBlock(Span^.Start + First), CountOf(Word) + Count);
    end;
    if Span^.ShelvedPages <> 0 then
      Put := Put or Shelved;
    // Release: links, first words and ShelvedPages before the word. Pairs with RemoteTakeAll.
  until CompareAndSwap(Span^.Remote, Word, Put);
end;

function RemoteHasShelf(Span: PSpan): Boolean;
var
  Word: TAtomicWord;
begin
  if Process.HasBarrier then
    Word := LoadAcquire(Span^.Remote)
  else
    Word := FetchAdd(Span^.Remote, 0);
  Result := StateOf(Word) > GivenUp;
end;

function RemoteIsShelved(Span: PSpan): Boolean;
begin
  // Acquire: ShelvedPages of this word. Pairs with RemoteShelveEnd.
  Result := (StateOf(LoadAcquire(Span^.Remote)) = Shelved) and (Span^.ShelvedPages <> 0);
end;

function RemoteIsShelving(Span: PSpan): Boolean;
begin
  Result := StateOf(LoadAcquire(Span^.Remote)) = Shelving;
end;

function RemoteShelfHas(Span: PSpan; Block: PBlock): Boolean;
var
  Pages, First, Last: NativeUInt;
begin
  Pages := Span^.ShelvedPages;
  if Pages = 0 then
    Exit(False);
  First := NativeUInt(Block) - NativeUInt(Span^.Start);
  Last := NativeUInt(First + Span^.BlockSize - 1) div OsPageSize;
  First := First div OsPageSize;
  Result := Pages shr First and NativeUInt(NativeUInt(2) shl NativeUInt(Last - First) - 1) <> 0;
end;

procedure RemoteClearShelf(Span: PSpan);
var
  Pages: NativeUInt;
begin
  if Span^.ShelvedPages = 0 then
    Exit;
  Pages := Span^.ShelvedPages;
  Span^.ShelvedPages := 0;
  FetchAdd(Process.ShelvedPages, NativeUInt(-NativeInt(BitCount(Pages))));
end;

procedure RemoteShelveRecover(Span: PSpan);
begin
  if StateOf(Span^.Remote) <> Shelving then
    Exit;
  Span^.ShelvedPages := 0;
  Span^.Remote := Span^.Remote and not StateMask;
end;

function NextLife(Word: TAtomicWord): TAtomicWord; inline;
begin
  Result := (Word and LifeMask) + LifeStep;
end;

procedure RemoteStartLife(Span: PSpan);
begin
  Span^.Remote := NextLife(Span^.Remote);
end;

procedure RemoteStartGivenUp(Span: PSpan);
begin
  Span^.Remote := Span^.Remote and LifeMask or GivenUp;
end;

function RemoteEndLife(Span: PSpan): Boolean;
var
  Word: TAtomicWord;
begin
  repeat
    Word := LoadAcquire(Span^.Remote);
    if StateOf(Word) = Shelving then
      Exit(False);
    // A push that succeeds just before this is lost with its block, which is free.
  until CompareAndSwap(Span^.Remote, Word, NextLife(Word));
  RemoteClearShelf(Span);
  Result := True;
end;

function IsGivenUp(Word: TAtomicWord): Boolean; inline;
begin
  Result := Word and not LifeMask = GivenUp;
end;

function RemoteTryEndLife(Span: PSpan; Word: TAtomicWord): Boolean;
begin
  Result := IsGivenUp(Word) and CompareAndSwap(Span^.Remote, Word, NextLife(Word));
end;

function RemoteEndOwnLife(Span: PSpan; Word: TAtomicWord): Boolean;
begin
  Result := IsGivenUp(Word) and (LoadAcquire(Span^.Remote) = Word);
  if Result then
    StoreRelease(Span^.Remote, NextLife(Word));
end;

function RemoteMark(Span: PSpan; Word: TAtomicWord): Boolean;
begin
  Result := IsGivenUp(Word) and CompareAndSwap(Span^.Remote, Word, Word + 1);
end;

function RemoteEndMarked(Span: PSpan; Word: TAtomicWord): Boolean;
begin
  Result := CompareAndSwap(Span^.Remote, Word + 1, NextLife(Word));
end;

end.
