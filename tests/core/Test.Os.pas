/// Tests of LaneMM.Os: the contract that each system's include file has to keep.
unit Test.Os;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.Layout, LaneMM.Types;

type
  TOsTests = class(TLaneTest)
  strict private
    Word, Waiting, Woken: TAtomicWord;
    Slot: PHeap;
    Shared: Pointer;
    function CommittedRange(Size: NativeUInt): PByte;
    procedure WaitOnce;
    procedure WriteVersionLate;
    procedure UseOwnSlot;
    procedure WriteError;
  published
    procedure WordsBehindTheForkMarkBelongToIt;
    procedure ReservedRangeIsAlignedToSlices;
    procedure ReserveOfMoreThanThereIsGivesNil;
    procedure CommittedRangeReadsAsZeros;
    procedure PurgedRangeReadsAsZerosWhenItIsUsedAgain;
    procedure PageIsZeroIfEachOfItsWordsIs;
    procedure PurgeGivesMemoryBack;
    procedure MovedPagesKeepTheirContents;
    procedure MoveLeavesZeros;
    procedure ClockNeverGoesBack;
    procedure WaitReturnsWhenTheWordIsAnother;
    procedure WakeWakesAWaiter;
    procedure SharedPageIsTheSameForAll;
    procedure SharedPageThatAnotherCopyIsMakingIsItsPage;
    procedure SharedPageIsNilWhereTheAddressIsTaken;
    procedure ReadOfMappedMemoryCopies;
    procedure ReadOfUnmappedMemoryFails;
    procedure ErrorsAreWrittenWhole;
    procedure EachThreadHasItsOwnSlot;
    procedure EachCallIsCounted;
  end;

implementation

uses
  testregistry, Test.System, LaneMM.Atomic, LaneMM.Os;

const
  SharedVersion = $1234;
  RangeSize = 4 * SliceSize;
  Megabyte = 1 shl 20;
  ErrorText = 'some words of an error message'#10;

// Returns a range that the test frees with OsRelease.
function TOsTests.CommittedRange(Size: NativeUInt): PByte;
begin
  Result := OsReserve(Size);
  AssertTrue('reserved', Result <> nil);
  AssertTrue('committed', OsCommit(Result, Size));
end;

// Debug mode sets them to 1; they hold numbers of blocks.
procedure TOsTests.WordsBehindTheForkMarkBelongToIt;
var
  Mark: PNativeUInt;
begin
  Mark := OsForkMark;
  if Mark = nil then
    Exit;
  Same(1, Mark[0], 'mark');
  AtMost(1, Mark[1], 'the word behind it');
  AtMost(1, Mark[2], 'the next one');
end;

procedure TOsTests.ReservedRangeIsAlignedToSlices;
var
  Ranges: array[1..8] of Pointer;
  Index: Integer;
begin
  for Index := 1 to High(Ranges) do
  begin
    Ranges[Index] := OsReserve(Index * OsGranule);
    AssertTrue('reserved', Ranges[Index] <> nil);
    Same(0, NativeUInt(Ranges[Index]) mod SliceSize, 'address modulo a slice');
  end;
  for Index := 1 to High(Ranges) do
    OsRelease(Ranges[Index], Index * OsGranule);
end;

procedure TOsTests.ReserveOfMoreThanThereIsGivesNil;
const
  TopPage = High(NativeUInt) - OsPageSize + 1;
begin
  AssertTrue('half of all', OsReserve(NativeUInt(1) shl (SizeOf(Pointer) * 8 - 1)) = nil);
  AssertTrue('nearly all', OsReserve(TopPage - SliceSize) = nil);
  AssertTrue('all', OsReserve(TopPage) = nil);
end;

procedure TOsTests.CommittedRangeReadsAsZeros;
var
  Range: PByte;
begin
  Range := CommittedRange(RangeSize);
  AssertTrue('zero', IsZero(Range, RangeSize));
  FillPattern(Range, RangeSize, 1);
  AssertTrue('usable', HasPattern(Range, RangeSize, 1));
  OsRelease(Range, RangeSize);
end;

procedure TOsTests.PurgedRangeReadsAsZerosWhenItIsUsedAgain;
var
  Range: PByte;
begin
  Range := CommittedRange(RangeSize);
  FillPattern(Range, RangeSize, 1);
  AssertTrue('purged', OsPurge(Range + SliceSize, SliceSize));
  AssertTrue('used again', OsUse(Range + SliceSize, SliceSize));
  AssertTrue('zero', IsZero(Range + SliceSize, SliceSize));
  AssertTrue('before it', HasPattern(Range, SliceSize, 1));
  FillPattern(Range, RangeSize, 2);
  AssertTrue('usable', HasPattern(Range, RangeSize, 2));
  OsRelease(Range, RangeSize);
end;

procedure TOsTests.PageIsZeroIfEachOfItsWordsIs;
var
  Words: array[-1..OsPageSize div SizeOf(NativeUInt)] of NativeUInt;
  Index: Integer;
begin
  FillChar(Words, SizeOf(Words), 0);
  Words[Low(Words)] := 1;
  Words[High(Words)] := 1;
  AssertTrue('zeros', OsPageIsZero(@Words[0]));
  for Index := 0 to High(Words) - 1 do
  begin
    Words[Index] := 1;
    AssertFalse('a word', OsPageIsZero(@Words[0]));
    Words[Index] := 0;
  end;
end;

procedure TOsTests.PurgeGivesMemoryBack;
var
  Range: PByte;
  Before: NativeUInt;
begin
  Range := CommittedRange(64 * Megabyte);
  FillChar(Range^, 64 * Megabyte, 1);
  Before := ResidentBytes;
  AssertTrue('purged', OsPurge(Range, 64 * Megabyte));
  AtLeast(60 * Megabyte, Int64(Before) - Int64(ResidentBytes), 'bytes given back');
  OsRelease(Range, 64 * Megabyte);
end;

procedure TOsTests.MovedPagesKeepTheirContents;
var
  Source, Target: PByte;
begin
  Source := CommittedRange(RangeSize);
  Target := CommittedRange(RangeSize);
  FillPattern(Source, RangeSize, 1);
  FillPattern(Target, RangeSize, 2);
  if OsMove(Source, Target, RangeSize) = RangeSize then
    AssertTrue('moved', HasPattern(Target, RangeSize, 1))
  else
    AssertTrue('unchanged', HasPattern(Source, RangeSize, 1) and HasPattern(Target, RangeSize, 2));
  OsRelease(Source, RangeSize);
  OsRelease(Target, RangeSize);
end;

procedure TOsTests.MoveLeavesZeros;
var
  Source, Target: PByte;
begin
  Source := CommittedRange(RangeSize);
  Target := CommittedRange(RangeSize);
  FillPattern(Source, RangeSize, 1);
  if OsMove(Source, Target, RangeSize) = RangeSize then
  begin
    AssertTrue('zero', IsZero(Source, RangeSize));
    FillPattern(Source, RangeSize, 3);
    AssertTrue('usable and apart', HasPattern(Target, RangeSize, 1));
  end;
  OsRelease(Source, RangeSize);
  OsRelease(Target, RangeSize);
end;

procedure TOsTests.ClockNeverGoesBack;
var
  Last, Now: Cardinal;
  Index, Backward: Integer;
begin
  Backward := 0;
  Last := OsNowMs;
  for Index := 1 to 10000 do
  begin
    Now := OsNowMs;
    if Integer(Now - Last) < 0 then
      Inc(Backward);
    Last := Now;
  end;
  Same(0, Backward, 'steps back');
end;

procedure TOsTests.WaitReturnsWhenTheWordIsAnother;
begin
  Word := 1;
  OsWait(Word, 2);
  Same(1, Word, 'word');
end;

procedure TOsTests.WaitOnce;
begin
  StoreRelease(Waiting, 1);
  while LoadAcquire(Word) = 0 do
    OsWait(Word, 0);
  StoreRelease(Woken, 1);
end;

procedure TOsTests.WakeWakesAWaiter;
var
  Worker: TWorker;
begin
  Word := 0;
  Waiting := 0;
  Woken := 0;
  Worker := TWorker.Create(WaitOnce, False);
  while LoadAcquire(Waiting) = 0 do
    ThreadSwitch;
  StoreRelease(Word, 1);
  while LoadAcquire(Woken) = 0 do
    OsWake(Word);
  EndThread(Worker);
  Same(1, Woken, 'threads woken');
end;

procedure TOsTests.SharedPageIsTheSameForAll;
var
  Place, First, Second: PNativeUInt;
begin
  Place := OsReserve(SliceSize);
  OsRelease(Place, SliceSize);
  First := OsSharedPages(NativeUInt(Place), OsGranule, SharedVersion);
  AssertTrue('at the address', First = Place);
  AssertTrue('the version', First^ = SharedVersion);
  AssertTrue('zero', IsZero(@First[1], OsGranule - SizeOf(NativeUInt)));
  First[1] := 1;
  Second := OsSharedPages(NativeUInt(Place), OsGranule, SharedVersion);
  AssertTrue('the same', Second = First);
  AssertTrue('was there', Second[1] = 1);
  AssertTrue('another version', OsSharedPages(NativeUInt(Place), OsGranule, 2) = nil);
  OsRelease(Place, OsGranule);
end;

procedure TOsTests.WriteVersionLate;
var
  Never: TAtomicWord;
begin
  Never := 0;
  OsWaitMs(Never, 0, 3);
  StoreRelease(PNativeUInt(Shared)^, SharedVersion);
end;

procedure TOsTests.SharedPageThatAnotherCopyIsMakingIsItsPage;
const
  MostTries = 5; // on a busy machine the other thread may be too late
var
  Maker: TWorker;
  Page: Pointer;
  Tries: Integer;
begin
  Shared := OsReserve(SliceSize);
  OsCommit(Shared, OsGranule);
  Tries := 0;
  repeat
    PNativeUInt(Shared)^ := 0;
    Maker := TWorker.Create(WriteVersionLate, False);
    Page := OsSharedPages(NativeUInt(Shared), OsGranule, SharedVersion);
    EndThread(Maker);
    Inc(Tries);
  until (Page <> nil) or (Tries = MostTries);
  AssertTrue('the page', Page = Shared);
  OsRelease(Shared, SliceSize);
end;

procedure TOsTests.SharedPageIsNilWhereTheAddressIsTaken;
var
  Place: Pointer;
begin
  Place := OsReserve(SliceSize);
  AssertTrue('nil', OsSharedPages(NativeUInt(Place), OsGranule, SharedVersion) = nil);
  OsRelease(Place, SliceSize);
end;

procedure TOsTests.ReadOfMappedMemoryCopies;
var
  Source, Target: UInt64;
begin
  Source := TestSeed;
  Target := 0;
  AssertTrue('readable', OsRead(NativeUInt(@Source), @Target, SizeOf(Target)));
  Same(Source, Target, 'copy');
end;

procedure TOsTests.ReadOfUnmappedMemoryFails;
var
  Range: PByte;
  Target: array[0..1] of UInt64;
begin
  Range := OsReserve(RangeSize);
  AssertTrue('committed', OsCommit(Range, OsGranule));
  AssertFalse('nil', OsRead(0, @Target, SizeOf(Target)));
  AssertFalse('reserved', OsRead(NativeUInt(Range) + OsGranule, @Target, SizeOf(Target)));
  AssertFalse('half of it', OsRead(NativeUInt(Range) + OsGranule - 8, @Target, SizeOf(Target)));
  AssertTrue('committed part', OsRead(NativeUInt(Range) + OsGranule - 8, @Target, 8));
  OsRelease(Range, RangeSize);
end;

procedure TOsTests.WriteError;
var
  Text: ShortString;
begin
  Text := ErrorText;
  OsWriteError(@Text[1], Length(Text));
end;

procedure TOsTests.ErrorsAreWrittenWhole;
var
  Errors: string;
begin
  Same(0, RunInChild(WriteError, Errors), 'exit code of the child');
  AssertEquals('text', ErrorText, Errors);
end;

procedure TOsTests.UseOwnSlot;
var
  Mine: PHeap;
begin
  Mine := OsThreadHeap;
  // An address that is only compared, never used.
  OsSetThreadHeap(@Word);
  Slot := OsThreadHeap;
  OsSetThreadHeap(Mine);
end;

procedure TOsTests.EachThreadHasItsOwnSlot;
var
  Mine: PHeap;
begin
  Mine := OsThreadHeap;
  InThread(UseOwnSlot);
  AssertTrue('set in a thread', Slot = @Word);
  AssertTrue('unchanged here', OsThreadHeap = Mine);
end;

procedure TOsTests.EachCallIsCounted;
type
  TCounts = array[TOsCall] of NativeUInt;
var
  Before: TCounts;
  Kinds: set of TOsCall;
  Kind: TOsCall;
  Range: PByte;
begin
  Before := Default(TCounts);
  Kinds := [Low(TOsCall)..High(TOsCall)];
  if not OsHasHugePages then
    Exclude(Kinds, ocHuge);
  if not OsMovesPages then
    Exclude(Kinds, ocMove);
  if OsClockIsCheap then
    Exclude(Kinds, ocClock); // no system call
  for Kind in Kinds do
    Before[Kind] := LoadAcquire(Process.OsCalls[Kind]);
  Range := OsReserve(2 * SliceSize);
  OsCommit(Range, 2 * SliceSize);
  OsUseHugePages(Range, 2 * SliceSize);
  OsMove(Range, Range + SliceSize, SliceSize);
  OsPurge(Range, SliceSize);
  OsRelease(Range, 2 * SliceSize);
  OsWait(Word, Word + 1);
  OsWake(Word);
  OsNowMs;
  // At least: LaneMM may have a thread of its own that gives memory back.
  for Kind in Kinds do
    AtLeast(Before[Kind] + 1, LoadAcquire(Process.OsCalls[Kind]), 'count of call ' + Chr(Ord('0') + Ord(Kind)));
end;

initialization
  RegisterTest(TOsTests);
end.
