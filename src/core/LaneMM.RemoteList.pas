/// Blocks of a span that other threads freed: a list that many threads push on and one empties.
//
// Owns:       TSpan.Remote, one word: bit 0 given up, bits 1 to 15 the length of the list,
//             bits 16 and up the offset of its first block from Start, in units of
//             BlockAlignment.
// Invariants: the list ends with EndOfList, like FreeList, so the owner takes it over whole.
//             A block is on at most one list. RemoteGivenUp has no list.
// Callers:    RemotePush: any thread. RemoteTakeAll, RemoteGiveUp: the span's owner.
//             RemoteCount: any thread.
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
  LaneMM.Types;

type
  /// Result of a push: the block is on the list; or the span was given up and now belongs to the
  /// calling thread, which still has to free the block.
  TRemotePush = (rpPushed, rpSpanIsYours);

/// Pushes Block, which the caller no longer uses, for the owner of Span. Never waits.
function RemotePush(Span: PSpan; Block: PBlock): TRemotePush;
/// Takes the whole list; Count is its length. Returns its first block or EndOfList.
function RemoteTakeAll(Span: PSpan; out Count: Cardinal): NativeUInt;
/// Gives the span up if its list is empty. Returns whether it did.
function RemoteGiveUp(Span: PSpan): Boolean;
/// Returns the number of blocks on the list.
function RemoteCount(Span: PSpan): Cardinal;

implementation

uses
  LaneMM.Layout, LaneMM.Atomic, LaneMM.Errors;

const
  CountShift = 1;
  CountMask = (1 shl 15) - 1;
  FirstShift = 16;

function CountOf(Word: TAtomicWord): Cardinal; inline;
begin
  Result := (Word shr CountShift) and CountMask;
end;

function FirstOf(Span: PSpan; Word: TAtomicWord): NativeUInt; inline;
begin
  if CountOf(Word) = 0 then
    Result := EndOfList(Span)
  else
    Result := NativeUInt(Span^.Start) + (Word shr FirstShift) * BlockAlignment;
end;

function Pack(Span: PSpan; Block: PBlock; Count: Cardinal): TAtomicWord; inline;
begin
  Result := ((NativeUInt(Block) - NativeUInt(Span^.Start)) div BlockAlignment) shl FirstShift
    or Count shl CountShift;
end;

function RemotePush(Span: PSpan; Block: PBlock): TRemotePush;
var
  Word, Pushed: TAtomicWord;
begin
  repeat
    Word := LoadAcquire(Span^.Remote);
    if Word = RemoteGivenUp then
    begin
      Result := rpSpanIsYours;
      Pushed := 0;
    end
    else
    begin
      Result := rpPushed;
      Block^.Link := LinkOf(FirstOf(Span, Word));
      Pushed := Pack(Span, Block, CountOf(Word) + 1);
    end;
    // Release: the block's link, and all that this thread wrote to the block, before the word.
    // Acquire, when the span changes hands: the fields that the last owner wrote before
    // RemoteGiveUp. Pairs with RemoteTakeAll and RemoteGiveUp.
  until CompareAndSwap(Span^.Remote, Word, Pushed);
end;

function RemoteTakeAll(Span: PSpan; out Count: Cardinal): NativeUInt;
var
  Word: TAtomicWord;
begin
  Word := 0;
  if LoadAcquire(Span^.Remote) <> 0 then // the common case: no atomic operation
    // Acquire: see every link of the list. Pairs with RemotePush.
    Word := Swap(Span^.Remote, 0);
  if Checked then
    Check(Word <> RemoteGivenUp, 'the owner of a span has not given it up');
  Count := CountOf(Word);
  Result := FirstOf(Span, Word);
end;

function RemoteGiveUp(Span: PSpan): Boolean;
begin
  // Release: the thread that takes the span over sees its fields. Pairs with RemotePush.
  Result := CompareAndSwap(Span^.Remote, 0, RemoteGivenUp);
end;

function RemoteCount(Span: PSpan): Cardinal;
begin
  Result := CountOf(LoadAcquire(Span^.Remote));
end;

end.
