/// Blocks of a span that other threads freed: a list that many threads push on and one empties.
//
// Owns:       TSpan.Remote, one word: bits 0 to 11 the length of the list, bits 12 to 31 the offset
//             of its first block from Start, xor EndOfList, so that an empty list is 0; bit 13,
//             which no offset has, given up; of 64 bits the upper half counts the record's lives.
// Invariants: the list ends with EndOfList, like FreeList, so the owner takes it over whole.
//             A block is on at most one list. A span that was given up has no list.
// Large:      the span of a large block is given up: the thread that frees the block ends its life.
//             One of another heap than the block's getter first adds 1 (FreedSpan).
// Double free: a push first claims the block, by a compare-and-swap on its first word. Of two
//             threads that free a block at the same moment one loses; so does one that frees it
//             after the span's release, by the count of lives. The owner claims nothing: a block
//             that it frees at the same moment is on FreeList, too. LaneMM.Span hands it out once.
// Assembler:  LaneMM.Free.x64.inc claims and pushes as RemotePush does, once; it leaves a second
//             push to RemotePushClaimed.
// Callers:    RemotePush, RemotePushClaimed: any thread. RemoteTakeAll, RemoteGiveUp, RemoteFirst,
//             RemoteIsUsed: the span's owner.
//             RemoteWord, RemoteCount: any thread. RemoteStartLife, RemoteStartGivenUp: the thread
//             that formats the record. RemoteEndLife: the thread that releases the span.
//             RemoteTryEndLife, RemoteEndOwnLife, RemoteMark, RemoteEndMarked: the threads that
//             free a large block, see LaneMM.Large.
// Progress:   RemotePush is lock-free, the others are one atomic operation. There is no pop,
//             hence no ABA: a push only needs the first block to be the first still.
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
/// The same for a block that the caller has claimed, with the word that it read before.
function RemotePushClaimed(Span: PSpan; Block: PBlock; Word: NativeUInt): TRemotePush;
/// Takes the whole list; Count is its length. Returns the offset of its first block or EndOfList.
function RemoteTakeAll(Span: PSpan; out Count: Cardinal): NativeUInt;
/// Gives the span up if its list is empty. Returns whether it did.
function RemoteGiveUp(Span: PSpan): Boolean;
/// Returns the number of blocks on the list.
function RemoteCount(Span: PSpan): Cardinal;
/// Returns the offset of the list's first block or EndOfList. The blocks from there on stay on the
/// list until the owner takes it.
function RemoteFirst(Span: PSpan): NativeUInt;
/// Returns whether the list has a block. Full barrier.
function RemoteIsUsed(Span: PSpan): Boolean;
/// Empties the list of a record that no thread uses.
procedure RemoteStartLife(Span: PSpan);
/// The same, and gives the span up.
procedure RemoteStartGivenUp(Span: PSpan);
/// Ends the life of a span that is released: a push that began in it fails.
procedure RemoteEndLife(Span: PSpan);
/// The same for a large block, a span that was given up, whose word was Word. Returns false if
/// another thread has ended its life.
function RemoteTryEndLife(Span: PSpan; Word: TAtomicWord): Boolean;
/// The same without an atomic operation, for the getter's thread in its section.
function RemoteEndOwnLife(Span: PSpan; Word: TAtomicWord): Boolean;
/// Marks a large block as freed by a thread that is not its getter's. Returns false if another
/// thread has ended its life or marked it.
function RemoteMark(Span: PSpan; Word: TAtomicWord): Boolean;
/// Ends the life of a block that this thread has marked when its word was Word. Returns false if
/// the getter's thread has ended it.
function RemoteEndMarked(Span: PSpan; Word: TAtomicWord): Boolean;

implementation

uses
  LaneMM.Errors;

const
  FirstMask = NativeUInt(1) shl OffsetBits - BlockAlignment + EndOfList;
  GivenUp = TAtomicWord(GivenUpSpan);
  LifeMask = not (LifeStep - 1);

function CountOf(Word: TAtomicWord): Cardinal; inline;
begin
  Result := Word and MostSpanBlocks;
end;

function FirstOf(Word: TAtomicWord): NativeUInt; inline;
begin
  Result := Word shr RemoteFirstShift and FirstMask xor EndOfList;
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
  if not CompareAndSwap(Block^.Link, Seen, LinkOf(FirstOf(Word))) then
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
      Result := rpPushed;
      Pushed := Life or Pack(Span, Block, CountOf(Word) + 1);
    end;
    // Release: the block's link, and all that this thread wrote to the block, before the word.
    // Acquire, when the span changes hands: the fields that the last owner wrote before
    // RemoteGiveUp. Pairs with RemoteTakeAll and RemoteGiveUp.
    if CompareAndSwap(Span^.Remote, Word, Pushed) then
      Exit;
    Word := LoadAcquire(Span^.Remote);
    if Word and LifeMask <> Life then
      Exit(rpNotInUse);
    Block^.Link := LinkOf(FirstOf(Word));
  until False;
end;

function RemoteTakeAll(Span: PSpan; out Count: Cardinal): NativeUInt;
var
  Word: TAtomicWord;
begin
  Word := LoadAcquire(Span^.Remote);
  if Word and not LifeMask <> 0 then // rarely: in the common case no atomic operation
    // Acquire: see every link of the list. Pairs with RemotePush.
    Word := Swap(Span^.Remote, Word and LifeMask);
  if Checked then
    Check(Word and not LifeMask <> GivenUp, 'the owner of a span has not given it up');
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

function RemoteFirst(Span: PSpan): NativeUInt;
begin
  // Acquire: see every link of the list. Pairs with RemotePush.
  Result := FirstOf(LoadAcquire(Span^.Remote));
end;

function RemoteIsUsed(Span: PSpan): Boolean;
begin
  Result := CountOf(FetchAdd(Span^.Remote, 0)) <> 0;
end;

procedure RemoteStartLife(Span: PSpan);
begin
  Span^.Remote := Span^.Remote and LifeMask;
end;

procedure RemoteStartGivenUp(Span: PSpan);
begin
  Span^.Remote := Span^.Remote and LifeMask or GivenUp;
end;

function NextLife(Word: TAtomicWord): TAtomicWord; inline;
begin
  Result := (Word and LifeMask) + LifeStep;
end;

procedure RemoteEndLife(Span: PSpan);
begin
  // A push that succeeds just before this is lost with its block, which is free.
  StoreRelease(Span^.Remote, NextLife(Span^.Remote));
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
