/// Tests of LaneMM.Large: blocks whose pages are moved. On Linux, where they can be.
unit Test.Large.Moves;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.Types;

type
  TLargeMovesTests = class(TQuietTest)
  strict private
    Front, Place, Wall: PSpan;
    Copied: NativeUInt; // by the last move
    function Get(Size: NativeUInt): PSpan;
    function GetInOneMapping(Size: NativeUInt): PSpan;
    function GetMoved(Size, MovedSize: NativeUInt): PSpan;
    function GetInManyMappings: PSpan;
    procedure MakePlace(SliceCount: NativeUInt);
    procedure ReleasePlace;
  published
    procedure ManyMovesLeaveTheSystemItsMappings;
    procedure BlocksThatMoveAgainLeaveTheSystemItsMappings;
    procedure BlockThatMovesAgainIsNotCopied;
    procedure BlockThatMovesAgainIsOneMovedBlock;
    procedure MovedBlockThatShrankIsNotCopied;
    procedure SpareSlicesAreThoseOfTheBlocks;
    procedure PlaceOfAMovedBlockReadsAsZeros;
    procedure BlockThatMovesToAShorterRunLeavesOthersAlone;
    procedure MoveThatIsRefusedInPartKeepsTheContents;
    procedure PlaceOfAMoveThatIsRefusedInPartReadsAsZeros;
    procedure LimitBelowTheAddressesInUseLosesNoBlock;
    procedure RunThatTheSystemTookAwayIsNotUsedAgain;
  end;

implementation

uses
  BaseUnix, Syscall, testregistry, LaneMM.Layout, LaneMM.Atomic, LaneMM.Os,
  LaneMM.Lock, LaneMM.Arena, LaneMM.Shards, LaneMM.Backed, LaneMM.Limits, LaneMM.Large;

const
  Megabyte = NativeUInt(1) shl 20;
  ManyBytes = 130 * SliceSize;
  DoDump = 17; // of madvise(2)

function TLargeMovesTests.Get(Size: NativeUInt): PSpan;
begin
  Result := LargeGet(Size);
  AssertTrue('got', Result <> nil);
end;

// Reads the mappings of the process; Limit is the end of the one that holds Address.
function MappingCount(Address: NativeUInt; out Limit: NativeUInt): Integer; overload;
var
  Lines: Text;
  Line: ShortString;
  First, Last: NativeUInt;
  Code: Integer;
begin
  Result := 0;
  Limit := 0;
  Assign(Lines, '/proc/self/maps');
  Reset(Lines);
  while not Eof(Lines) do
  begin
    ReadLn(Lines, Line);
    Inc(Result);
    Val('$' + Copy(Line, 1, Pos('-', Line) - 1), First, Code);
    Delete(Line, 1, Pos('-', Line));
    Val('$' + Copy(Line, 1, Pos(' ', Line) - 1), Last, Code);
    if (Address >= First) and (Address < Last) then
      Limit := Last;
  end;
  Close(Lines);
end;

function MappingCount: Integer; overload;
var
  Ignored: NativeUInt;
begin
  Result := MappingCount(0, Ignored);
end;

// The system allows a process 65,530 mappings and refuses threads and memory above.
procedure TLargeMovesTests.ManyMovesLeaveTheSystemItsMappings;
const
  BlockCount = 100;
  RoundCount = 60;
  Largest = Megabyte;
var
  Spans: array[1..BlockCount] of PSpan;
  Generator: TGenerator;
  Before, Index, Round: Integer;
begin
  Before := MappingCount;
  Generator.Start(TestSeed);
  for Index := 1 to BlockCount do
    Spans[Index] := Get(256 * 1024);
  for Round := 1 to RoundCount do
    for Index := 1 to BlockCount do
      if Spans[Index]^.BlockSize > Largest then
        LargeShrink(Spans[Index], 256 * 1024)
      else
        Spans[Index] := LargeMove(Spans[Index],
          Spans[Index]^.BlockSize + Generator.Below(Largest div 4), Copied);
  AtMost(Before + 4 * BlockCount, MappingCount, 'mappings while the blocks are in use');
  for Index := 1 to BlockCount do
    LargeFree(Spans[Index]);
  AtMost(Before + 4 * BlockCount, MappingCount, 'mappings after');
end;

// Returns a block of Size bytes whose pages are one mapping: the system moves only such pages. Other
// tests may have left much memory in many mappings.
function TLargeMovesTests.GetInOneMapping(Size: NativeUInt): PSpan;
var
  Others: array[1..2000] of PSpan;
  Count: Integer;
  Limit: NativeUInt;
  Kept: NativeUInt;
begin
  Kept := Process.HugeFrom;
  Process.HugeFrom := 0; // huge pages are mappings of their own
  Count := 0;
  FillChar(Others, SizeOf(Others), 0);
  repeat
    Result := Get(Size);
    MappingCount(NativeUInt(Result^.Start), Limit);
    AtLeast(NativeUInt(Result^.Start) + 1, Limit, 'end of its mapping');
    if Limit - NativeUInt(Result^.Start) >= Result^.SliceCount * SliceSize then
      Break;
    Inc(Count);
    Others[Count] := Result;
  until Count = High(Others);
  Process.HugeFrom := Kept;
  for Count := Count downto 1 do
    LargeFree(Others[Count]);
end;

// Returns a block that was moved from Size to MovedSize bytes, by its pages.
function TLargeMovesTests.GetMoved(Size, MovedSize: NativeUInt): PSpan;
begin
  Result := LargeMove(GetInOneMapping(Size), MovedSize, Copied);
  AssertTrue('moved', Result <> nil);
  AssertTrue('its pages were moved', ltMoved in Result^.Traits);
end;

// Writes Mark to the first byte of each megabyte.
procedure MarkMegabytes(Span: PSpan; First, Limit: NativeUInt; Mark: Byte);
begin
  while First < Limit do
  begin
    Span^.Start[First * Megabyte] := Mark + First;
    Inc(First);
  end;
end;

function CountLostMarks(Span: PSpan; Limit: NativeUInt; Mark: Byte): NativeUInt;
var
  Index: NativeUInt;
begin
  Result := 0;
  for Index := 0 to Limit - 1 do
    Inc(Result, Ord(Span^.Start[Index * Megabyte] <> Byte(Mark + Index)));
end;

procedure TLargeMovesTests.BlockThatMovesAgainIsNotCopied;
var
  Span: PSpan;
  Size: NativeUInt;
  Turn: Integer;
begin
  Span := Get(5 * Megabyte);
  MarkMegabytes(Span, 0, 5, 7);
  Size := 5;
  for Turn := 1 to 6 do
  begin
    Span := LargeMove(Span, (Size + 6) * Megabyte, Copied);
    Same(0, Copied, 'bytes copied');
    MarkMegabytes(Span, Size, Size + 6, 7);
    Inc(Size, 6);
    Same(0, CountLostMarks(Span, Size, 7), 'lost marks');
  end;
  LargeFree(Span);
end;

procedure TLargeMovesTests.MovedBlockThatShrankIsNotCopied;
var
  Span: PSpan;
begin
  Span := GetMoved(9 * Megabyte, 20 * Megabyte);
  MarkMegabytes(Span, 0, 5, 3);
  LargeShrink(Span, 5 * Megabyte);
  Span := LargeMove(Span, 12 * Megabyte, Copied);
  Same(0, Copied, 'bytes copied');
  Same(0, CountLostMarks(Span, 5, 3), 'lost marks');
  LargeFree(Span);
end;

// Slices that were handed out at some time and are neither backed nor in a cold run.
function SpareSlices: NativeUInt;
begin
  Result := FrontierSlices - BackedSlices - ColdSlices;
end;

procedure TLargeMovesTests.SpareSlicesAreThoseOfTheBlocks;
var
  Span: PSpan;
  Before, Kept, Moved: NativeUInt;
begin
  Before := SpareSlices;
  Moved := LoadAcquire(Process.MovedSpans);
  Span := GetMoved(5 * Megabyte, 6 * Megabyte);
  Same(Moved + 1, LoadAcquire(Process.MovedSpans), 'moved blocks');
  AtLeast(1, Span^.SpareCount, 'spare slices');
  Same(Before + Span^.SpareCount, SpareSlices, 'after a move');
  Kept := Span^.SpareCount;
  AssertFalse('all memory', LargeGrow(Span, MaxRunSlices * SliceSize));
  LimitsSet(0, (BackedSlices + Kept + 1) * SliceSize, 0);
  AssertFalse('beyond the limit', LargeGrow(Span, 1000 * Megabyte));
  LimitsSet(0, 0, 0);
  Same(Kept, Span^.SpareCount, 'spare slices of the block after growth that failed');
  Same(Before + Kept, SpareSlices, 'after growth that failed');
  AssertTrue('grown', LargeGrow(Span, 7 * Megabyte));
  Same(Before + Span^.SpareCount, SpareSlices, 'after growth into them');
  LargeShrink(Span, 6 * Megabyte);
  Same(0, Span^.SpareCount, 'spare slices of the block after a shrink');
  Same(Before, SpareSlices, 'after a shrink');
  LargeFree(Span);
  Same(Before, SpareSlices, 'after the end');
  Same(Moved, LoadAcquire(Process.MovedSpans), 'moved blocks at the end');
  Span := GetMoved(5 * Megabyte, 6 * Megabyte);
  LargeFree(Span);
  Same(Before, SpareSlices, 'after the end of a block with spare slices');
end;

procedure TLargeMovesTests.PlaceOfAMovedBlockReadsAsZeros;
var
  Span: PSpan;
  Start: PByte;
  Warm: NativeUInt;
begin
  Span := GetMoved(5 * Megabyte, 6 * Megabyte);
  Start := Span^.Start;
  Warm := ShardsWarmSlices;
  FillChar(Start^, 6 * Megabyte, 1);
  LargeFree(Span);
  Same(Warm, ShardsWarmSlices, 'warm slices');
  AssertTrue('zeros', IsZero(Start, 6 * Megabyte));
  AssertTrue('purged', OsPurge(Start, 6 * Megabyte)); // pages that were read count as backed
end;

// Two blocks that grow in turn: each is in the way of the other, and moves again and again.
procedure TLargeMovesTests.BlocksThatMoveAgainLeaveTheSystemItsMappings;
const
  RoundCount = 20;
var
  Spans: array[0..1] of PSpan;
  Before, Round, Turn, Index: Integer;
  Moved: NativeUInt;
begin
  Moved := LoadAcquire(Process.MovedSpans);
  Before := MappingCount;
  for Round := 1 to RoundCount do
  begin
    for Index := 0 to 1 do
      Spans[Index] := Get(5 * Megabyte);
    for Turn := 1 to 4 do
      for Index := 0 to 1 do
      begin
        MarkMegabytes(Spans[Index], 0, 5, Turn);
        Spans[Index] := LargeMove(Spans[Index], Spans[Index]^.BlockSize * 3 div 2, Copied);
      end;
    for Index := 0 to 1 do
      LargeFree(Spans[Index]);
  end;
  Same(Moved, LoadAcquire(Process.MovedSpans), 'moved blocks');
  AtMost(Before + RoundCount, MappingCount, 'mappings');
end;

procedure TLargeMovesTests.BlockThatMovesAgainIsOneMovedBlock;
var
  Span: PSpan;
  Turn: Integer;
  Moved: NativeUInt;
begin
  Moved := LoadAcquire(Process.MovedSpans);
  Span := GetMoved(5 * Megabyte, 6 * Megabyte);
  for Turn := 7 to 12 do
  begin
    Span := LargeMove(Span, Turn * Megabyte, Copied);
    AssertTrue('its pages were moved', ltMoved in Span^.Traits);
    Same(Moved + 1, LoadAcquire(Process.MovedSpans), 'moved blocks');
  end;
  LargeFree(Span);
  Same(Moved, LoadAcquire(Process.MovedSpans), 'moved blocks at the end');
end;

// Makes a cold run of this length, Place, that the next block of this length takes: the other shards
// are locked. A pattern lies behind it, in Wall.
procedure TLargeMovesTests.MakePlace(SliceCount: NativeUInt);
var
  Number: NativeUInt;
begin
  Front := Get((SliceCount + 8) * SliceSize);
  Place := ShardsSplit(Front, 4);
  Wall := ShardsSplit(Place, SliceCount);
  FillPattern(Wall^.Start, 4 * SliceSize, 9);
  ShardsPurge(AllSlices);
  ShardsRelease(Place);
  ShardsPurge(AllSlices);
  for Number := 1 to Process.ShardCount do
    if Number <> Place^.Shard then
      LockEnter(Process.Shards[Number].Lock);
end;

procedure TLargeMovesTests.ReleasePlace;
var
  Number: NativeUInt;
begin
  for Number := 1 to Process.ShardCount do
    if Number <> Place^.Shard then
      LockLeave(Process.Shards[Number].Lock);
  AssertTrue('the memory behind', HasPattern(Wall^.Start, 4 * SliceSize, 9));
  ShardsRelease(Wall);
  Front^.BlockSize := Front^.SliceCount * SliceSize;
  LargeFree(Front);
end;

procedure TLargeMovesTests.BlockThatMovesToAShorterRunLeavesOthersAlone;
var
  Span: PSpan;
begin
  Span := GetMoved(5 * Megabyte, 6 * Megabyte);
  FillPattern(Span^.Start, 6 * Megabyte, 1);
  AtLeast(8 * Megabyte div SliceSize, Span^.SliceCount, 'slices of the block');
  MakePlace(8 * Megabyte div SliceSize);
  Process.SavingFrom := 0;
  Span := LargeMove(Span, 8 * Megabyte, Copied);
  ReleasePlace;
  AssertTrue('place', Span = Place);
  Same(0, Copied, 'bytes copied');
  AssertTrue('contents', HasPattern(Span^.Start, 6 * Megabyte, 1));
  LargeFree(Span);
end;

procedure Advise(P: PByte; Size: NativeUInt; Advice: TSysParam);
begin
  Do_SysCall(syscall_nr_madvise, TSysParam(P), Size, Advice);
end;

// Returns a block of ManyBytes whose slices are mappings of their own, more than are moved, until
// the advice is DoDump again.
function TLargeMovesTests.GetInManyMappings: PSpan;
const
  DontDump = 16;
var
  Index: NativeUInt;
begin
  Result := Get(ManyBytes);
  for Index := 0 to ManyBytes div SliceSize - 1 do
    if Odd(Index) then
      Advise(Result^.Start + Index * SliceSize, SliceSize, DontDump);
  FillPattern(Result^.Start, Result^.BlockSize, 1);
end;

procedure TLargeMovesTests.MoveThatIsRefusedInPartKeepsTheContents;
var
  Source, Target: PSpan;
  Moved: NativeUInt;
begin
  Moved := LoadAcquire(Process.MovedSpans);
  Source := GetInManyMappings;
  Target := LargeMove(Source, 9 * Megabyte, Copied);
  Advise(Source^.Start, ManyBytes, DoDump);
  Same(ManyBytes, Copied, 'bytes copied');
  AssertTrue('contents', HasPattern(Target^.Start, ManyBytes, 1));
  LargeFree(Target);
  Same(Moved, LoadAcquire(Process.MovedSpans), 'moved blocks');
end;

// There is memory for the pages that move, but not for a copy.
procedure TLargeMovesTests.PlaceOfAMoveThatIsRefusedInPartReadsAsZeros;
var
  Span, Other: PSpan;
  Moved: NativeUInt;
begin
  Moved := LoadAcquire(Process.MovedSpans);
  Span := GetInManyMappings;
  MakePlace(9 * Megabyte div SliceSize);
  Process.SavingFrom := 0;
  LimitsSet(0, BackedSlices * SliceSize + 2 * Megabyte, 0);
  Other := LargeMove(Span, 9 * Megabyte, Copied);
  LimitsSet(0, 0, 0);
  ReleasePlace;
  Advise(Span^.Start, ManyBytes, DoDump);
  AssertTrue('refused', Other = nil);
  AssertTrue('contents', HasPattern(Span^.Start, ManyBytes, 1));
  AssertTrue('free', (Place^.Kind = skFree) and not Place^.IsWarm);
  AssertTrue('zeros', IsZero(Place^.Start, 9 * Megabyte));
  LargeFree(Span);
  Same(Moved, LoadAcquire(Process.MovedSpans), 'moved blocks');
end;

procedure LimitAddresses;
var
  Limit: TRLimit;
begin
  FpGetRLimit(RLIMIT_AS, @Limit);
  Limit.rlim_cur := 64 * Megabyte;
  FpSetRLimit(RLIMIT_AS, @Limit);
end;

// The system then refuses to move pages, after it has unmapped the place that they were to have.
procedure TLargeMovesTests.LimitBelowTheAddressesInUseLosesNoBlock;
var
  Span: PSpan;
  Turn: Integer;
begin
  if not InChild then
    Exit;
  Span := GetInOneMapping(5 * Megabyte);
  FillPattern(Span^.Start, 5 * Megabyte, 1);
  ArenaWithNew(400 * Megabyte div SliceSize);
  ShardsRelease(ShardsTake(400 * Megabyte div SliceSize)); // committed
  LimitAddresses;
  for Turn := 6 to 8 do
  begin
    Span := LargeMove(Span, Turn * Megabyte, Copied);
    AssertTrue('moved', Span <> nil);
    AssertTrue('contents', HasPattern(Span^.Start, 5 * Megabyte, 1));
  end;
  LargeFree(Span);
  ShardsPurge(AllSlices);
  AssertTrue('all that is free can be used', ShardsTake(100) <> nil);
end;

procedure TLargeMovesTests.RunThatTheSystemTookAwayIsNotUsedAgain;
var
  Span: PSpan;
  Free, Backed: NativeUInt;
begin
  if not InChild then
    Exit;
  Span := GetMoved(5 * Megabyte, 6 * Megabyte);
  Free := FreeSlices;
  Backed := BackedSlices - 6 * Megabyte div SliceSize;
  OsRelease(Span^.Start, Span^.SliceCount * SliceSize);
  LimitAddresses;
  LargeFree(Span);
  Same(Free, FreeSlices, 'free slices');
  Same(Backed, BackedSlices, 'backed slices');
end;

initialization
  RegisterTest(TLargeMovesTests);
end.
