/// Tests of LaneMM.Debug, DebugBlocks, DebugCheck and DebugReport: the settings of debug mode, and
/// the mixing of debug blocks with others. Test.DebugMatrix has what debug mode finds.
unit Test.Debug;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, Test.Cases;

type
  /// The cases of Debug.cases.
  TDebugTests = class(TProgramTest)
  protected
    function Value(const Name: string): string; override;
    function Number(const Name: string): Int64; override;
  end;

  /// Debug blocks in this program.
  TDebugBlocksTests = class(TQuietTest)
  strict private
    procedure Churn;
    procedure FillAndFree(Size: NativeUInt);
    procedure WritesAreReported(Size: NativeUInt; InBetween: Integer);
    procedure StaysOutside;
    procedure GetOne;
    {$ifdef UNIX}
    procedure FindOwnDamage;
    procedure OwnNumbersAreHigher;
    {$endif}
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure BlocksOfBothKindsMix;
    procedure ModeNests;
    procedure BlockHasTheSizeThatWasAskedFor;
    procedure BlocksAreAligned;
    procedure BlocksWithAnAlignmentAreDebugBlocks;
    procedure DamageOfBlocksWithAnAlignmentIsFound;
    procedure NewBlockHoldsThePattern;
    procedure NewBlockHoldsTheByteThatWasSetLast;
    procedure AllocMemIsZero;
    procedure ReallocKeepsContents;
    procedure ReallocOfADebugBlockMakesANormalOneAfterwards;
    procedure HugeSizesAreRefused;
    procedure HugeSizesAreRefusedWithAnAlignment;
    procedure SizesBeyondMemoryAndSwapAreRefused;
    {$ifdef CPU64}
    procedure HugeBlockTakesNoShareOfItsSize;
    {$endif}
    procedure ZeroBytesAreABlock;
    procedure FreedBlocksWaitInQuarantine;
    procedure MemoryThatNobodyTouchesIsNotTaken;
    procedure UntouchedZerosAreNotTaken;
    procedure UntouchedPatternOfZerosIsNotTaken;
    procedure ZerosOfAUsedLargeBlockAreZeros;
    procedure LargeFreedBlocksAreCheckedAtBothEnds;
    procedure SmallerFreedBlocksAreCheckedAsAWhole;
    procedure FreedBlocksAbove64KAreInaccessible;
    procedure FreedBlocksLargerThanTheQuarantineAreInaccessibleAndPurged;
    procedure BlockLargerThanTheQuarantineIsFreedOnce;
    procedure EraseFreeErasesAllOfALargeBlock;
    procedure EraseFreeErasesBlocksBehindGuardPages;
    procedure FreedMemoryStaysReadableDuringAHeapWalk;
    procedure GuardPageWaitsForThreadsThatCommit;
    procedure GuardedBlockTakesTwoSystemCalls;
    procedure GuardedBlockUsedAgainKeepsItsPages;
    procedure GuardPagesTakeNoMappingsWhereTheKernelMarksThem;
    procedure GuardPagesAreMappingsWhereTheKernelMarksNone;
    procedure MemoryComesBack;
    procedure WalkKnowsDebugBlocks;
    procedure SpanOfAnotherKindHasNoDebugBlocks;
    procedure FreedBlockThatPointsToItselfIsDamaged;
    procedure FreedInterfaceHasTwoThousandMethods;
    procedure FreedBlockOfALaterSliceIsADoubleFree;
    procedure NumbersAreCountedOnceInARegion;
    procedure ThreadsOfHeapsThatServedARegionUseTheirRecordsAgain;
    procedure SampledGuardTakesNoBlockOfARegion;
    {$ifdef UNIX}
    procedure ChildLeavesDamageFromBeforeToItsParent;
    procedure ChildTakesNoBlockOfALostThreadForItsOwn;
    {$endif}
    procedure StatusCountsDebugBlocks;
    procedure GroupIsNotedInItsScope;
    procedure ScopesOfGroupsNest;
    procedure GroupOfARegionEndsWithItsScope;
    procedure EachThreadHasItsGroup;
    procedure GroupHasTotals;
    procedure GroupHasAName;
    procedure NameOfAGroupIsCutBetweenCharacters;
    procedure ReportOfGroupsLeavesOutTheOthers;
    procedure CallbackOfATraceMayUseTheHeap;
    procedure MistakeInACallbackCallsItNotAgain;
    procedure UnderrunNamesTheBlockBefore;
    procedure ThreadsChurnWithoutAFinding;
    procedure ReportsTakeNothingOfTheHeap;
  end;

implementation

uses
  SysUtils, StrUtils, Classes, testregistry, Test.System, LaneMM, Test.Programs, LaneMM.Layout,
  LaneMM.Types, LaneMM.Hooks, LaneMM.Os, LaneMM.OsProcess, LaneMM.Walk, LaneMM.ReportState, LaneMM.Text,
  LaneMM.SettingsState, LaneMM.DebugState, LaneMM.Bits, LaneMM.Arena, LaneMM.Shards,
  LaneMM.DebugSpans, LaneMM.DebugThreads, LaneMM.Debug, LaneMM.Groups, LaneMM.GuardPages, LaneMM.GuardSample,
  LaneMM.RtlRecords;

// The line about a call of a method of a freed object: an address of 32 bits has no space for the mark
// of such an object.
function TDebugTests.Value(const Name: string): string;
const
  Freed = 'freed ';
begin
  if not StartsStr(Freed, Name) then
    Result := inherited Value(Name)
  else if WordSize = 4 then
    Result := 'Use after free: the contents of a freed block were used as an address.'
  else
    Result := Format('Use after free: virtual method %s of a freed object was called.',
      [Copy(Name, Length(Freed) + 1)]);
end;

// Whether all mixes are certain in position-independent code.
function TDebugTests.Number(const Name: string): Int64;
begin
  if Name = 'certain' then
    Result := Ord((WordSize = 8) and not HasInlineCalls)
  else
    Result := inherited Number(Name);
end;

// ---------------------------------------------------------------------------- in this program

var
  KeptRules: TEventRules;
  Told: array[TEventKind] of Integer;

procedure CountEvent(Kind: TEventKind; Text: PAnsiChar; Length: NativeUInt);
begin
  InterlockedIncrement(Told[Kind]);
end;

var
  Reported: string;

procedure KeepReport(Kind: TEventKind; Text: PAnsiChar; Length: NativeUInt);
begin
  SetString(Reported, Text, Length);
end;

procedure CountBlock(const Block: TBlockInfo; Context: Pointer);
begin
  Inc(PNativeUInt(Context)^);
end;

procedure TDebugBlocksTests.SetUp;
var
  Kind: TEventKind;
begin
  inherited SetUp;
  KeptRules := Report.Rules;
  for Kind := Low(TEventKind) to High(TEventKind) do
    Report.Rules[Kind].Targets := [etCall];
  Report.Call := CountEvent;
  FillChar(Told, SizeOf(Told), 0);
  LaneMM_EnterDebugMode;
end;

procedure TDebugBlocksTests.TearDown;
begin
  Settings.Values[opErase] := 0;
  Settings.Values[opGuard] := 0;
  Debug.Quarantine.MostBytes := Settings.Values[opQuarantine];
  LaneMM_ExitDebugMode;
  Same(0, Debug.Depth, 'levels of debug mode that are left');
  Report.Call := nil;
  Report.Rules := KeptRules;
  inherited TearDown;
end;

function IsDebugBlock(P: Pointer): Boolean;
var
  Block: TBlockInfo;
begin
  Result := WalkFind(P, Block) and (Block.Kind = skDebug);
end;

procedure TDebugBlocksTests.BlocksOfBothKindsMix;
var
  Debug, Normal: Pointer;
begin
  GetMem(Debug, 100);
  LaneMM_ExitDebugMode;
  GetMem(Normal, 100);
  AssertTrue('got in debug mode', IsDebugBlock(Debug));
  AssertFalse('got in release mode', IsDebugBlock(Normal));
  FreeMem(Debug);
  GetMem(Debug, 100);
  LaneMM_EnterDebugMode;
  FreeMem(Normal);
  ReallocMem(Debug, 200);
  FreeMem(Debug);
  Same(0, LaneMM_CheckHeap, 'damaged blocks');
end;

procedure TDebugBlocksTests.ModeNests;
var
  P: Pointer;
begin
  LaneMM_EnterDebugMode;
  AssertTrue(LaneMM_ExitDebugMode);
  GetMem(P, 10);
  AssertTrue('one level is left', IsDebugBlock(P));
  FreeMem(P);
  AssertTrue(LaneMM_ExitDebugMode);
  AssertFalse('no level is left', LaneMM_ExitDebugMode);
  GetMem(P, 10);
  AssertFalse(IsDebugBlock(P));
  FreeMem(P);
  LaneMM_EnterDebugMode;
end;

procedure TDebugBlocksTests.BlockHasTheSizeThatWasAskedFor;
var
  Size: NativeUInt;
  P: Pointer;
begin
  for Size in SampleSizes do
  begin
    GetMem(P, Size);
    Same(Size, MemSize(P), 'size');
    Same(Size, FreeMem(P), 'size freed');
  end;
end;

procedure TDebugBlocksTests.BlocksAreAligned;
var
  Size: NativeUInt;
  P: Pointer;
begin
  for Size in SampleSizes do
  begin
    GetMem(P, Size);
    Same(0, NativeUInt(P) mod BlockAlignment, 'alignment');
    FreeMem(P);
  end;
end;

procedure TDebugBlocksTests.BlocksWithAnAlignmentAreDebugBlocks;
var
  Size: NativeUInt;
  Shift: Byte;
  P: PByte;
begin
  for Size in SampleSizes do
    for Shift := 5 to 20 do // a block of no bytes is not found by WalkFind
    begin
      P := DebugGetAligned(Size, Shift);
      Same(0, NativeUInt(P) and (NativeUInt(1) shl Shift - 1), 'alignment');
      AssertTrue('debug block', (Size = 0) or IsDebugBlock(P));
      Same(Size, MemSize(P), 'size');
      if Size > 0 then
        P[0] := 1;
      ReallocMem(P, Size * 2 + 1);
      Same(Ord(Size > 0), P[0] and 1, 'byte');
      FreeMem(P);
    end;
  Same(0, LaneMM_CheckHeap, 'damaged');
end;

// Writes to a freed block. Returns True if the write is a fault: the block is inaccessible.
function IsRefused(P: PByte): Boolean;
begin
  Result := False;
  try
    P^ := 1;
  except
    on EAccessViolation do
      Result := True;
  end;
end;

procedure TDebugBlocksTests.DamageOfBlocksWithAnAlignmentIsFound;
const
  LastShared = 15; // above, a block is one with pages of its own
var
  Shift: Byte;
  P: PByte;
begin
  for Shift := 5 to 20 do
  begin
    P := DebugGetAligned(100, Shift);
    P[-FrontGuardSize] := 1;
    FreeMem(P);
    Same(1, Told[evWriteBefore], 'underrun');
    P := DebugGetAligned(100, Shift);
    P[100] := 1;
    Same(1, LaneMM_CheckHeap, 'overrun');
    FreeMem(P);
    P := DebugGetAligned(100, Shift);
    FreeMem(P);
    if IsRefused(P + 50) then
      AtLeast(LastShared, Shift, 'alignment of a block with pages of its own')
    else
      Same(1, LaneMM_CheckHeap, 'after free');
    Told[evWriteBefore] := 0;
  end;
end;

procedure TDebugBlocksTests.NewBlockHoldsThePattern;
var
  P: PByte;
  Index: Integer;
begin
  GetMem(P, 1000);
  for Index := 0 to 999 do
    Same($90, P[Index], 'byte');
  FreeMem(P);
end;

procedure TDebugBlocksTests.NewBlockHoldsTheByteThatWasSetLast;
var
  P: PByte;
begin
  LaneMM_Configure('fill=AB');
  GetMem(P, 1000);
  LaneMM_Configure('fill=90');
  Same($AB, P[0], 'first byte');
  Same($AB, P[999], 'last byte');
  FreeMem(P);
end;

procedure TDebugBlocksTests.AllocMemIsZero;
var
  Size: NativeUInt;
  P: PByte;
begin
  for Size in SampleSizes do
  begin
    P := AllocMem(Size);
    AssertTrue(IsZero(P, Size));
    FillPattern(P, Size, Size);
    FreeMem(P);
  end;
end;

procedure TDebugBlocksTests.ReallocKeepsContents;
var
  P: PByte;
  First, Second, Kept: NativeUInt;
begin
  for First in SampleSizes do
    for Second in SampleSizes do
      if (First > 0) and (Second > 0) and (First + Second < 300000) then
      begin
        Kept := First;
        if Second < Kept then
          Kept := Second;
        GetMem(P, First);
        FillPattern(P, Kept, First);
        ReallocMem(P, Second);
        Same(Second, MemSize(P), 'size');
        AssertTrue(HasPattern(P, Kept, First));
        FillPattern(P, Second, First);
        FreeMem(P);
      end;
  Same(0, LaneMM_CheckHeap, 'damaged blocks');
end;

procedure TDebugBlocksTests.ReallocOfADebugBlockMakesANormalOneAfterwards;
var
  P: PByte;
begin
  GetMem(P, 100);
  FillPattern(P, 100, 1);
  LaneMM_ExitDebugMode;
  ReallocMem(P, 10000);
  AssertTrue(HasPattern(P, 100, 1));
  AssertFalse(IsDebugBlock(P));
  FreeMem(P);
  LaneMM_EnterDebugMode;
end;

procedure TDebugBlocksTests.SizesBeyondMemoryAndSwapAreRefused;
var
  P: PByte;
  Size: NativeUInt;
begin
  Size := Process.MostBytes + 1;
  if Size = 0 then
    // This system lets programs take all addresses: but of 32 bits not half of them at once.
    Size := NativeUInt(1) shl {$ifdef CPU64} 62 {$else} 31 {$endif};
  Same(OutOfMemory, ErrorOfGet(P, Size), 'GetMem');
  AssertTrue('alignment', DebugGetAligned(Size, 6) = nil);
  AssertTrue('guard pages', DebugGetGuarded(Size, 0) = nil);
end;

{$ifdef CPU64}
procedure TDebugBlocksTests.HugeBlockTakesNoShareOfItsSize;
const
  Megabyte = 1 shl 20;
  Size = NativeUInt(2048) * Megabyte;
var
  P: PByte;
  Before: NativeUInt;
begin
  Before := ResidentBytes;
  GetMem(P, Size);
  AtMost(4 * Megabyte, Int64(ResidentBytes) - Int64(Before), 'bytes taken');
  AssertTrue('found at its start', DebugBlockOf(P + Megabyte) = DebugBlockOf(P));
  AssertTrue('found at its end', DebugBlockOf(P + Size - Megabyte) = DebugBlockOf(P));
  FreeMem(P);
end;
{$endif}

procedure TDebugBlocksTests.HugeSizesAreRefused;
var
  P: Pointer;
begin
  Same(OutOfMemory, ErrorOfGet(P, High(NativeUInt)), 'GetMem of all');
  Same(OutOfMemory, ErrorOfGet(P, High(NativeUInt) - 40), 'GetMem of nearly all');
  GetMem(P, 10);
  Same(OutOfMemory, ErrorOfRealloc(P, High(NativeUInt) - 40), 'ReallocMem');
  Same(10, MemSize(P), 'size');
  FreeMem(P);
end;

// The bytes that an alignment takes make no small number of them.
procedure TDebugBlocksTests.HugeSizesAreRefusedWithAnAlignment;
var
  P: Pointer;
begin
  AssertTrue('enter', LaneMM_EnterAlignment(64));
  try
    Same(OutOfMemory, ErrorOfGet(P, High(NativeUInt) - 10), 'GetMem');
    Same(OutOfMemory, ErrorOfAlloc(P, High(NativeUInt) - 10), 'AllocMem');
    GetMem(P, 10);
    Same(OutOfMemory, ErrorOfRealloc(P, High(NativeUInt) - 10), 'ReallocMem');
    Same(10, MemSize(P), 'size');
    FreeMem(P);
  finally
    LaneMM_ExitAlignment(64);
  end;
  Same(0, LaneMM_CheckHeap, 'damaged blocks');
end;

procedure TDebugBlocksTests.ZeroBytesAreABlock;
var
  P, Q: Pointer;
begin
  GetMem(P, 0);
  GetMem(Q, 0);
  AssertTrue((P <> nil) and (Q <> nil) and (P <> Q));
  FreeMem(P);
  FreeMem(Q);
  Same(0, LaneMM_CheckHeap, 'damaged blocks');
end;

procedure TDebugBlocksTests.FreedBlocksWaitInQuarantine;
var
  P, Q: Pointer;
  Index: Integer;
begin
  GetMem(P, 48);
  FreeMem(P);
  for Index := 1 to 100 do
  begin
    GetMem(Q, 48);
    AssertTrue('used again', P <> Q);
    FreeMem(Q);
  end;
  Same(InvalidPointer, ErrorOfFree(P), 'double free');
  Same(1, Told[evDoubleFree], 'reports');
end;

const
  // Bytes of blocks that are hardly touched.
  Reserved = NativeUInt(1) shl {$ifdef CPU64} 31 {$else} 29 {$endif};

procedure TDebugBlocksTests.MemoryThatNobodyTouchesIsNotTaken;
var
  P: Pointer;
  Before: NativeUInt;
begin
  Before := ResidentBytes;
  GetMem(P, Reserved);
  AtMost(Before + 32 shl 20, ResidentBytes, 'resident bytes with the block');
  FreeMem(P);
  AtMost(Before + 32 shl 20, ResidentBytes, 'resident bytes after it');
end;

procedure TDebugBlocksTests.UntouchedZerosAreNotTaken;
const
  // qemu keeps notes of each page that becomes inaccessible.
  Most = NativeUInt({$ifdef CPUAARCH64} 128 {$else} 32 {$endif}) shl 20;
var
  P: PByte;
  Before: NativeUInt;
  Round: Integer;
begin
  Before := ResidentBytes;
  for Round := 1 to 3 do // the first one untouched, the others where one was
  begin
    P := AllocMem(Reserved);
    AssertTrue('zeros', IsZero(P, 100000) and IsZero(P + Reserved div 2, 100000)
      and IsZero(P + Reserved - 100000, 100000));
    AtMost(Before + Most, ResidentBytes, 'resident bytes with the block');
    FreeMem(P);
    AtMost(Before + Most, ResidentBytes, 'resident bytes after it');
  end;
end;

procedure TDebugBlocksTests.UntouchedPatternOfZerosIsNotTaken;
var
  P: PByte;
  Before: NativeUInt;
  KeptFill: Byte;
begin
  Before := ResidentBytes;
  KeptFill := Debug.NewFill;
  Debug.NewFill := 0;
  GetMem(P, Reserved);
  Debug.NewFill := KeptFill;
  AtMost(Before + 32 shl 20, ResidentBytes, 'resident bytes with the block');
  FreeMem(P);
end;

procedure TDebugBlocksTests.ZerosOfAUsedLargeBlockAreZeros;
const
  Size = 3000001;
var
  P, Q: PByte;
  Guard: NativeUInt;
begin
  LaneMM_Configure('quarantine=0');
  for Guard := 0 to 1 do
  begin
    Settings.Values[opGuard] := Guard;
    GetMem(P, Size);
    FillChar(P^, Size, 42);
    LaneMM_Trim; // no other free memory is warm
    FreeMem(P);
    Q := AllocMem(Size);
    AssertTrue(IsZero(Q, Size));
    AssertTrue('the same place', P = Q);
    FreeMem(Q);
    Same(0, LaneMM_CheckHeap, 'damaged blocks');
  end;
  LaneMM_Configure('quarantine=4M');
end;

// Writes to a freed block of Size bytes that looks like an object: it stays accessible. Returns how
// many reports that made.
function ReportsOfWrite(Size, Offset: NativeUInt): Integer;
var
  P: PByte;
begin
  FillChar(Told, SizeOf(Told), 0);
  GetMem(P, Size);
  PPointer(P)^ := TObject;
  FreeMem(P);
  P[Offset] := 1;
  LaneMM_CheckHeap;
  Result := Told[evWriteAfterFree];
end;

procedure TDebugBlocksTests.WritesAreReported(Size: NativeUInt; InBetween: Integer);
begin
  Same(1, ReportsOfWrite(Size, 100), 'at the start');
  Same(1, ReportsOfWrite(Size, Size - 100), 'at the end');
  Same(InBetween, ReportsOfWrite(Size, Size div 2), 'in between');
end;

procedure TDebugBlocksTests.LargeFreedBlocksAreCheckedAtBothEnds;
begin
  WritesAreReported(2 shl 20, 0);
end;

procedure TDebugBlocksTests.SmallerFreedBlocksAreCheckedAsAWhole;
begin
  WritesAreReported(1 shl 20, 1);
end;

procedure TDebugBlocksTests.FreedBlocksAbove64KAreInaccessible;
var
  P: PByte;
begin
  GetMem(P, 65536);
  FreeMem(P);
  AssertTrue('refused', IsRefused(P + 65535));
  GetMem(P, 32768);
  FreeMem(P);
  AssertFalse('refused', IsRefused(P));
  Same(1, LaneMM_CheckHeap, 'damaged blocks');
end;

procedure TDebugBlocksTests.FreedBlocksLargerThanTheQuarantineAreInaccessibleAndPurged;
const
  Size = 64 shl 20;
var
  P: PByte;
  Before: NativeUInt;
begin
  Before := ResidentBytes;
  GetMem(P, Size);
  FillChar(P^, Size, 1);
  AtLeast(Before + Size, ResidentBytes, 'resident in use');
  FreeMem(P);
  AtMost(Before + Size div 8, ResidentBytes, 'resident when freed');
  AssertTrue('refused', IsRefused(P + Size div 2));
end;

procedure TDebugBlocksTests.BlockLargerThanTheQuarantineIsFreedOnce;
const
  Size = 64 shl 20;
var
  P: PByte;
begin
  GetMem(P, Size);
  FreeMem(P);
  Same(204, ErrorOfFree(P), 'error');
  Same(1, Told[evDoubleFree], 'reported as a double free');
end;

procedure TDebugBlocksTests.EraseFreeErasesAllOfALargeBlock;
const
  Size = 2 shl 20;
var
  P: PByte;
begin
  Settings.Values[opErase] := 1 shl Ord(erFree);
  GetMem(P, Size);
  P[Size div 2] := 42;
  FreeMem(P);
  Same(Debug.FreeFill, P[Size div 2], 'byte in the middle');
end;

// The system keeps locked pages when they are purged, and the pages stay accessible while a heap
// walk is under way.
procedure TDebugBlocksTests.EraseFreeErasesBlocksBehindGuardPages;
const
  Size = 1000;
var
  P: PByte;
begin
  Settings.Values[opErase] := 1 shl Ord(erFree);
  Settings.Values[opGuard] := 1;
  P := DebugGetGuarded(Size, 0);
  GuardPagesHold;
  try
    FillChar(P^, Size, 42);
    AssertTrue('locked', LockPages(P, Size));
    FreeMem(P);
    AssertTrue('no byte is left', IndexByte(P^, Size, 42) < 0);
    UnlockPages(P, Size);
  finally
    GuardPagesLetGo;
  end;
end;

procedure TDebugBlocksTests.FreedMemoryStaysReadableDuringAHeapWalk;
var
  Span: PSpan;
  Start: NativeUInt;
  Sign: Byte;
begin
  Span := ShardsTake(4);
  Start := NativeUInt(Span^.Start);
  GuardPagesHold;
  try
    ShardsRelease(Span);
    LaneMM_Trim;
    AssertTrue('readable', OsRead(Start, @Sign, 1));
  finally
    GuardPagesLetGo;
  end;
end;

// A thread that stands still in a commit is waited for, a hundred times.
procedure TDebugBlocksTests.GuardPageWaitsForThreadsThatCommit;
var
  P, Page: PByte;
  Before, Waits: NativeUInt;
begin
  GetMem(P, 2 * OsGranule);
  Page := PByte(AlignUp(NativeUInt(P), OsGranule));
  Before := Process.OsCalls[ocWait];
  Process.CommitsUnderWay := 1;
  try
    AssertTrue('inaccessible at last', GuardPagesForbid(Page, OsGranule));
    Waits := Process.OsCalls[ocWait] - Before;
  finally
    Process.CommitsUnderWay := 0;
    OsUnguard(Page, OsGranule);
    FreeMem(P);
  end;
  AtLeast(100, Waits, 'waits');
end;

// When the quarantine is full, the block that leaves it is the next one.
procedure TDebugBlocksTests.GuardedBlockTakesTwoSystemCalls;
const
  Pairs = 1000;
var
  Index: Integer;
  Kind: TOsCall;
  Calls, Before: NativeUInt;
begin
  Settings.Values[opGuard] := 1;
  Debug.Quarantine.MostBytes := 1 shl 20;
  Before := 0;
  for Index := 1 to 2 * Pairs do
  begin
    FreeMem(GetMem(64 + Index mod 100));
    Calls := 0;
    for Kind in [ocCommit, ocPurge, ocReserve, ocRelease] do
      Inc(Calls, Process.OsCalls[Kind]);
    if Index = Pairs then
      Before := Calls;
  end;
  Same(2 * Pairs, Calls - Before, 'calls');
end;

procedure TDebugBlocksTests.GuardedBlockUsedAgainKeepsItsPages;
var
  Blocks: array[0..299] of PByte;
  Turn, Index: Integer;
  Sign: Byte;
begin
  Settings.Values[opGuard] := 1;
  Debug.Quarantine.MostBytes := 1 shl 18;
  for Turn := 1 to 5 do
  begin
    for Index := 0 to High(Blocks) do
    begin
      Blocks[Index] := GetMem(1 + Index * 37);
      FillChar(Blocks[Index]^, 1 + Index * 37, Turn);
      AssertFalse('the page behind is open',
        OsRead((NativeUInt(Blocks[Index]) + Index * 37 + 16) and not 15, @Sign, 1));
    end;
    for Index := 0 to High(Blocks) do
    begin
      AssertEquals('contents', Turn, Blocks[Index][Index * 37]);
      FreeMem(Blocks[Index]);
      AssertFalse('the freed block is open', OsRead(NativeUInt(Blocks[Index]), @Sign, 1));
    end;
  end;
end;

procedure CountMapping(const Mapping: TOsMapping; Context: Pointer);
begin
  Inc(PInteger(Context)^);
end;

// Takes and frees Count blocks with guard pages. Mappings: by how many more there are in between.
// Returns the blocks whose page behind them cannot be read.
function GuardedAmong(Count: Integer; out Mappings: Integer): Integer;
var
  Blocks: TPointers;
  Index, Before: Integer;
  Sign: Byte;
begin
  Result := 0;
  Before := 0;
  Mappings := 0;
  SetLength(Blocks, Count);
  OsVisitMappings(CountMapping, @Before);
  Settings.Values[opGuard] := 1;
  for Index := 0 to Count - 1 do
  begin
    GetMem(Blocks[Index], 16);
    Inc(Result, Ord(not OsRead(NativeUInt(Blocks[Index]) + 16, @Sign, 1)));
  end;
  Settings.Values[opGuard] := 0;
  OsVisitMappings(CountMapping, @Mappings);
  Dec(Mappings, Before);
  FreeEach(Blocks, 1);
end;

// Before Linux 6.13, under emulators and on Windows it marks none: then there are at most 16,384, as
// with 32 bits.
procedure TDebugBlocksTests.GuardPagesTakeNoMappingsWhereTheKernelMarksThem;
const
  Count = 17000;
var
  Guarded, Mappings: Integer;
begin
  Guarded := GuardedAmong(Count, Mappings);
  if (SizeOf(Pointer) = 8) and (Process.GuardMarks > Process.GuardMappings) then
    Same(Count, Guarded, 'blocks with guard pages')
  else
    AtMost(16384, Guarded, 'blocks with guard pages, as mappings or with 32 bits');
  if Process.GuardMarks > Process.GuardMappings then
    AtMost(100, Mappings, 'mappings')
  else if Process.GuardMappings <> 0 then
    AtLeast(2 * 16384 - 1000, Mappings, 'mappings');
end;

procedure TDebugBlocksTests.GuardPagesAreMappingsWhereTheKernelMarksNone;
const
  Count = 500;
  KeptSpans = 256; // at most; those of before have marked pages
var
  Mappings: Integer;
begin
  if not InChild then
    Exit;
  Process.GuardMappings := 1;
  Same(Count, GuardedAmong(Count, Mappings), 'blocks with guard pages');
  AtLeast(2 * (Count - KeptSpans) - 20, Mappings, 'mappings');
  GuardedAmong(Count, Mappings); // of the spans that were kept
end;

procedure TDebugBlocksTests.FillAndFree(Size: NativeUInt);
var
  Blocks: array of Pointer;
  Index: Integer;
begin
  SetLength(Blocks, 100000000 div (Size + 128));
  for Index := 0 to High(Blocks) do
    GetMem(Blocks[Index], Size);
  for Index := 0 to High(Blocks) do
    FreeMem(Blocks[Index]);
end;

procedure TDebugBlocksTests.MemoryComesBack;
var
  Before: NativeUInt;
begin
  LaneMM_Trim;
  Before := LaneMM_HeapStatus.CommittedBytes;
  FillAndFree(100);
  FillAndFree(100000);
  LaneMM_Trim;
  AtMost(Before + 40000000, LaneMM_HeapStatus.CommittedBytes, 'bytes');
end;

procedure TDebugBlocksTests.WalkKnowsDebugBlocks;
var
  P: PByte;
  Block: TBlockInfo;
begin
  GetMem(P, 77);
  AssertTrue(WalkFind(P + 76, Block));
  AssertTrue(Block.Address = P);
  Same(77, Block.UsableSize, 'size');
  AssertTrue(Block.Number > 0);
  AssertTrue(Block.Thread > 0);
  AssertTrue(Block.Stack <> 0);
  AssertFalse('behind it', WalkFind(P + 77, Block));
  FreeMem(P);
  AssertFalse('freed', WalkFind(P, Block));
end;

// A walk may have found the span when it was one of debug blocks.
procedure TDebugBlocksTests.SpanOfAnotherKindHasNoDebugBlocks;
var
  P, Debugged: Pointer;
  Span: PSpan;
  Sum: NativeUInt;
begin
  Debugged := GetMem(100);
  LaneMM_ExitDebugMode;
  P := GetMem(SizeOf(TDebugBlock));
  LaneMM_EnterDebugMode;
  Span := ArenaSpan(P);
  Move(DebugBlockOf(Debugged)^, P^, SizeOf(TDebugBlock));
  Sum := 0;
  Hooks.DebugVisit(Span, CountBlock, @Sum);
  Same(0, Sum, 'blocks');
  Hooks.DebugVisit(ArenaSpan(DebugBlockOf(Debugged)), CountBlock, @Sum);
  AtLeast(1, Sum, 'blocks of a span of debug blocks');
  FreeMem(P);
  FreeMem(Debugged);
end;

procedure TDebugBlocksTests.FreedBlockThatPointsToItselfIsDamaged;
var
  P: PPointer;
begin
  GetMem(P, 100);
  FreeMem(P);
  P^ := P;
  Same(1, LaneMM_CheckHeap, 'damaged blocks');
end;

// The table in the place of the methods of freed interfaces: each word is the routine that reports.
procedure TDebugBlocksTests.FreedInterfaceHasTwoThousandMethods;
var
  Table: PPointer;
  Index: Integer;
begin
  Table := PPointer(Debug.InterfaceTrap);
  for Index := 1 to 1999 do
    AssertTrue('method ' + IntToStr(Index), Table[Index] = Table[0]);
end;

procedure TDebugBlocksTests.FreedBlockOfALaterSliceIsADoubleFree;
const
  Size = 20000;
var
  Blocks: array[0..15] of Pointer;
  Last: Integer;
begin
  LaneMM_ExitDebugMode;
  Last := -1;
  repeat
    Inc(Last);
    Blocks[Last] := GetMem(Size);
  until (Last > 0) and (ArenaSpan(Blocks[Last])^.Kind = skInner) or (Last = High(Blocks));
  LaneMM_EnterDebugMode;
  AssertTrue('a block in a later slice', ArenaSpan(Blocks[Last])^.Kind = skInner);
  FreeMem(Blocks[Last]);
  Same(InvalidPointer, ErrorOfFree(Blocks[Last]), 'error');
  Same(1, Told[evDoubleFree], 'reports');
  Same(0, Told[evInvalidFree], 'reports of an invalid pointer');
  LaneMM_OnEvent(KeepReport);
  Same(InvalidPointer, ErrorOfRealloc(Blocks[Last], 2 * Size), 'error of a resize');
  LaneMM_OnEvent(nil);
  Has('Invalid resize: the block was already freed.', Reported);
  while Last > 0 do
  begin
    Dec(Last);
    FreeMem(Blocks[Last]);
  end;
end;

procedure TDebugBlocksTests.NumbersAreCountedOnceInARegion;
var
  Region: TLaneMM_Region;
  Before: NativeUInt;
begin
  FreeMem(GetMem(1)); // the thread has reserved numbers
  Region := LaneMM_RegionCreate('numbers', 0);
  Before := DebugNumberCount;
  LaneMM_RegionEnter(Region);
  Same(Before, DebugNumberCount, 'in the scope');
  LaneMM_RegionLeave;
  LaneMM_RegionFree(Region);
end;

procedure TDebugBlocksTests.GetOne;
begin
  FreeMem(GetMem(1));
end;

// Returns how many records of threads there are.
function ThreadRecordCount: Int64;
var
  Thread: PDebugThread;
begin
  Result := 0;
  Thread := PDebugThread(Debug.Threads);
  while Thread <> nil do
  begin
    Inc(Result);
    Thread := Thread^.NextThread;
  end;
end;

// A thread ends, its heap serves a region, and then the next thread.
procedure TDebugBlocksTests.ThreadsOfHeapsThatServedARegionUseTheirRecordsAgain;
const
  Rounds = 20;
var
  Round: Integer;
  Region: TLaneMM_Region;
  Before: Int64;
begin
  Before := 0;
  for Round := 1 to 2 * Rounds do
  begin
    if Round = Rounds then
      Before := ThreadRecordCount;
    InThread(GetOne);
    LaneMM_Trim; // the heap of the thread is unused
    Region := LaneMM_RegionCreate('records', 0);
    LaneMM_RegionEnter(Region);
    LaneMM_RegionEnter(Region); // another heap serves it
    GetOne;
    LaneMM_RegionLeave;
    LaneMM_RegionLeave;
    AssertTrue('is freed', LaneMM_RegionFree(Region));
    LaneMM_Trim;
  end;
  Same(Before, ThreadRecordCount, 'records');
end;

// Also when the bytes to the next one were counted to the end, as by a refusal of more than half of all
// addresses.
procedure TDebugBlocksTests.SampledGuardTakesNoBlockOfARegion;
var
  Region: TLaneMM_Region;
  Index: Integer;
  P: Pointer;
begin
  Settings.Values[opGuard] := 2;
  Region := LaneMM_RegionCreate('sampled', 0);
  LaneMM_RegionEnter(Region);
  for Index := 1 to 10 do
  begin
    OsThreadHeap^.SampleIn := -1;
    P := GuardSampleGet(100);
    AssertFalse('guarded', IsDebugBlock(P));
    FreeMem(P);
  end;
  LaneMM_RegionLeave;
  LaneMM_RegionFree(Region);
end;

{$ifdef UNIX}
procedure TDebugBlocksTests.FindOwnDamage;
var
  P: PByte;
begin
  GetMem(P, 100);
  Same(0, LaneMM_CheckHeap, 'damaged blocks from before');
  P[100] := 1;
  Same(1, LaneMM_CheckHeap, 'damaged blocks of the child');
end;

// As a thread that the child does not have leaves blocks that it was changing at the fork: one in
// use, a freed one, a record.
procedure TDebugBlocksTests.ChildLeavesDamageFromBeforeToItsParent;
var
  Sleeper: TWorker;
  Used, Freed, Spoilt: PByte;
begin
  Sleeper := StartIdleThread(GetOne);
  GetMem(Used, 100);
  GetMem(Freed, 100);
  GetMem(Spoilt, 100);
  FreeMem(Freed);
  Used[100] := 1;
  Freed[50] := 1;
  DebugBlockOf(Spoilt)^.Number := High(NativeUInt);
  Same(0, RunInChild(FindOwnDamage), 'exit code');
  Same(3, LaneMM_CheckHeap, 'damaged blocks in the parent');
  FreeMem(Used);
  FreeMem(Spoilt);
  EndThread(Sleeper);
end;

var
  OfLost: TDebugBlock;

procedure TDebugBlocksTests.OwnNumbersAreHigher;
var
  P: Pointer;
begin
  GetMem(P, 100);
  AssertTrue('of a lost thread', DebugBlockIsInherited(OfLost.Number));
  AssertFalse('of the child', DebugBlockIsInherited(DebugBlockOf(P)^.Number));
  FreeMem(P);
end;

// A thread that the child does not have has reserved more numbers than the page with their count
// shows.
procedure TDebugBlocksTests.ChildTakesNoBlockOfALostThreadForItsOwn;
var
  Sleeper: TWorker;
begin
  Sleeper := StartIdleThread(GetOne);
  OfLost.Number := Debug.LastNumber + 100000;
  Same(0, RunInChild(OwnNumbersAreHigher), 'exit code');
  EndThread(Sleeper);
end;
{$endif}

procedure TDebugBlocksTests.ScopesOfGroupsNest;
const
  Depth = 1024;
var
  Group: Cardinal;
begin
  AssertFalse('none is open', LaneMM_EndGroup);
  for Group := 1 to Depth do
  begin
    AssertTrue(LaneMM_BeginGroup(Group));
    Same(Group, LaneMM_CurrentGroup, 'inside');
  end;
  AssertFalse('one too many', LaneMM_BeginGroup(Depth + 1));
  Same(Depth, LaneMM_CurrentGroup, 'stays');
  for Group := Depth downto 1 do
  begin
    Same(Group, LaneMM_CurrentGroup, 'inside');
    AssertTrue(LaneMM_EndGroup);
  end;
  Same(0, LaneMM_CurrentGroup, 'outside');
  AssertFalse('all are closed', LaneMM_EndGroup);
end;

procedure TDebugBlocksTests.GroupOfARegionEndsWithItsScope;
var
  Region: TLaneMM_Region;
  P: PByte;
begin
  Region := LaneMM_RegionCreate('group', 0);
  LaneMM_RegionEnter(Region);
  LaneMM_BeginGroup(7);
  LaneMM_RegionLeave;
  AssertTrue('end', LaneMM_EndGroup);
  Same(0, GroupCurrent, 'group outside');
  GetMem(P, 10);
  LaneMM_RegionFree(Region);
  AssertTrue('in use', IsDebugBlock(P));
  FreeMem(P);
end;

procedure TDebugBlocksTests.StaysOutside;
begin
  Same(0, LaneMM_CurrentGroup, 'in another thread');
  LaneMM_BeginGroup(8); // left open
end;

procedure TDebugBlocksTests.EachThreadHasItsGroup;
begin
  LaneMM_BeginGroup(7);
  InThread(StaysOutside);
  InThread(StaysOutside);
  Same(7, LaneMM_CurrentGroup, 'in this thread');
  LaneMM_EndGroup;
end;

procedure TDebugBlocksTests.GroupHasTotals;
var
  P: array[1..10] of Pointer;
  Status: TLaneMM_GroupStatus;
  Index: Integer;
begin
  LaneMM_BeginGroup(77);
  for Index := 1 to High(P) do
    GetMem(P[Index], Index * 1000);
  LaneMM_EndGroup;
  Status := LaneMM_GroupStatus(77);
  Same(10, Status.BlockCount, 'blocks');
  Same(55000, Status.Bytes, 'bytes');
  FreeMem(P[10]);
  Status := LaneMM_GroupStatus(77);
  Same(9, Status.BlockCount, 'blocks after a free');
  Same(45000, Status.Bytes, 'bytes after a free');
  Same(0, LaneMM_GroupStatus(78).BlockCount, 'blocks of another group');
  for Index := 1 to 9 do
    FreeMem(P[Index]);
end;

procedure TDebugBlocksTests.GroupHasAName;
const
  Numbers: array[1..2] of Cardinal = (500, 501);
var
  Text: TText;
  Number: Cardinal;
begin
  for Number in Numbers do
  begin
    AssertTrue(LaneMM_SetGroupName(Number, 'loading'));
    TextOpen(Text, SliceSize);
    GroupAddName(Text, Number);
    AssertEquals(IntToStr(Number) + ' (loading)', string(PAnsiChar(Text.Start)));
    TextClose(Text);
  end;
  AssertTrue('again', LaneMM_SetGroupName(500, PAnsiChar(StringOfChar('x', 70))));
  AssertEquals(StringOfChar('x', 55), string(GroupName(500)));
  AssertTrue('without one', GroupName(502) = nil);
  AssertTrue('none', GroupName(0) = nil);
  AssertFalse('no name for none', LaneMM_SetGroupName(0, 'x'));
end;

procedure TDebugBlocksTests.NameOfAGroupIsCutBetweenCharacters;
const
  Euro = #$E2#$82#$AC;
begin
  AssertTrue('name', LaneMM_SetGroupName(503, PAnsiChar(DupeString(Euro, 20))));
  AssertEquals(DupeString(Euro, 18), string(GroupName(503)));
end;

procedure TDebugBlocksTests.ReportOfGroupsLeavesOutTheOthers;
var
  P: array[1..3] of Pointer;
  Index: Integer;
begin
  for Index := 1 to 3 do
  begin
    LaneMM_BeginGroup(600 + Index);
    GetMem(P[Index], 12340 + Index);
    LaneMM_EndGroup;
  end;
  LaneMM_SetGroupName(602, 'middle');
  LaneMM_Configure('event=leaks:callback');
  LaneMM_OnEvent(KeepReport);
  Same(1, LaneMM_ReportGroupsInUse(602, 602), 'blocks');
  LaneMM_OnEvent(nil);
  for Index := 1 to 3 do
    FreeMem(P[Index]);
  AssertTrue(Reported, Pos('12,342', Reported) > 0);
  AssertTrue(Reported, Pos('Group 602 (middle): 1 block, 12,342 bytes', Reported) > 0);
  AssertEquals('others', 0, Pos('12,341', Reported) + Pos('Group 601', Reported));
end;

var
  Traced: Integer;

procedure CountTraced(Kind: TEventKind; Text: PAnsiChar; Length: NativeUInt);
begin
  if Kind in [evAllocation, evFree] then
    Inc(Traced);
  FreeMem(GetMem(54321));
end;

procedure TDebugBlocksTests.CallbackOfATraceMayUseTheHeap;
begin
  Traced := 0;
  Debug.LoggedCount := 0;
  LaneMM_OnEvent(CountTraced);
  LaneMM_Configure('trace:size=54321,event=allocation:callback,event=free:callback');
  FreeMem(GetMem(54321));
  FreeMem(GetMem(54320));
  LaneMM_Configure('trace:size=0');
  LaneMM_OnEvent(nil);
  Same(2, Traced, 'events');
  FreeMem(GetMem(54321));
  Same(2, Traced, 'events afterwards');
  Debug.LoggedCount := 0;
end;

// A write 16 bytes past the guard of a block spoils the guard of the next one.
procedure TDebugBlocksTests.UnderrunNamesTheBlockBefore;
const
  Distance = 64; // between blocks of 16 bytes
var
  Blocks: array[0..199] of PByte;
  First, Next, Index: Integer;
begin
  for Index := 0 to High(Blocks) do
    GetMem(Blocks[Index], 16);
  First := -1;
  repeat
    Inc(First);
    Next := 0;
    while (Next <= High(Blocks)) and (Blocks[Next] <> Blocks[First] + Distance) do
      Inc(Next);
  until (Next <= High(Blocks)) or (First = High(Blocks));
  AssertTrue('two are beside each other', Next <= High(Blocks));
  LaneMM_OnEvent(KeepReport);
  LaneMM_Configure('event=write-before:callback');
  Blocks[First][32] := 1;
  FreeMem(Blocks[Next]);
  Has('Heap block underrun', Reported);
  Has(Format('  Possibly an overrun of the block before it, $%s: 16 bytes, allocation number ',
    [LowerCase(HexStr(Blocks[First]))]), Reported);
  Blocks[Next] := nil;
  for Index := 0 to High(Blocks) do
    FreeMem(Blocks[Index]);
end;

var
  Calls: Integer;

procedure FreeWrong(Kind: TEventKind; Text: PAnsiChar; Length: NativeUInt);
var
  Mistake: NativeUInt;
begin
  Inc(Calls);
  Mistake := 8;
  ErrorOfFree(Pointer(Mistake));
end;

procedure TDebugBlocksTests.MistakeInACallbackCallsItNotAgain;
var
  P: PByte;
begin
  Calls := 0;
  LaneMM_OnEvent(FreeWrong);
  LaneMM_Configure('event=all:callback');
  GetMem(P, 20);
  P[20] := 1;
  FreeMem(P);
  Same(1, Calls, 'calls');
  GetMem(P, 20);
  P[20] := 1;
  FreeMem(P);
  Same(2, Calls, 'calls after that');
end;

procedure TDebugBlocksTests.GroupIsNotedInItsScope;
var
  P, Q: Pointer;
  Before: Cardinal;
  Block: TBlockInfo;
begin
  Before := LaneMM_SetGroup(7);
  GetMem(P, 10);
  Same(7, LaneMM_SetGroup(Before), 'group at the end of the scope');
  GetMem(Q, 10);
  AssertTrue(LaneMM_BlockInfo(P, Block));
  Same(7, Block.Group, 'inside');
  AssertTrue(LaneMM_BlockInfo(Q, Block));
  Same(Before, Block.Group, 'outside');
  FreeMem(P);
  FreeMem(Q);
end;

procedure TDebugBlocksTests.StatusCountsDebugBlocks;
var
  Before: NativeUInt;
  P: Pointer;
begin
  Before := UsedBytes;
  GetMem(P, 12345);
  Same(Before + 12345, UsedBytes, 'with the block');
  FreeMem(P);
  Same(Before, UsedBytes, 'without it');
end;

procedure TDebugBlocksTests.Churn;
var
  Generator: TGenerator;
  Blocks: array[0..99] of PByte;
  Sizes: array[0..99] of NativeUInt;
  Step, Index: Integer;
  HasLeft: Boolean;
begin
  HasLeft := False;
  Generator.Start(TestSeed + NativeUInt(GetThreadID));
  FillChar(Blocks, SizeOf(Blocks), 0);
  FillChar(Sizes, SizeOf(Sizes), 0);
  for Step := 1 to 20000 do
  begin
    Index := Generator.Below(100);
    if Step mod 1000 = 500 then
      HasLeft := LaneMM_ExitDebugMode;
    if (Step mod 1000 = 0) and HasLeft then
      LaneMM_EnterDebugMode;
    if Blocks[Index] <> nil then
    begin
      if not HasPattern(Blocks[Index], Sizes[Index], Index) then
        Fail('contents lost');
      FreeMem(Blocks[Index]);
      Blocks[Index] := nil;
    end
    else
    begin
      Sizes[Index] := Generator.NextSize(100000);
      GetMem(Blocks[Index], Sizes[Index]);
      FillPattern(Blocks[Index], Sizes[Index], Index);
    end;
    if Step mod 5000 = 0 then
      LaneMM_CheckHeap;
  end;
  for Index := 0 to 99 do
    FreeMem(Blocks[Index]);
end;

procedure TDebugBlocksTests.ThreadsChurnWithoutAFinding;
var
  Kind: TEventKind;
begin
  InThreads(8, Churn);
  Same(0, LaneMM_CheckHeap, 'damaged blocks');
  for Kind := Low(TEventKind) to High(TEventKind) do
    Same(0, Told[Kind], 'reports');
end;

procedure TDebugBlocksTests.ReportsTakeNothingOfTheHeap;
var
  P: PByte;
  Before: NativeUInt;
  KeptPath: TPath;
begin
  KeptPath := Settings.LogPath;
  LaneMM_Configure('log=/dev/null');
  Report.Rules[evWriteAfter].Targets := [etFile];
  Report.Rules[evLeaks].Targets := [etFile];
  GetMem(P, 100);
  P[100] := 1;
  Before := Debug.LastNumber;
  Same(1, LaneMM_CheckHeap, 'damaged blocks');
  AtLeast(1, LaneMM_ReportMemoryInUse, 'blocks');
  Same(Before, Debug.LastNumber, 'allocations');
  FreeMem(P);
  Settings.LogPath := KeptPath;
end;

initialization
  RegisterCases(TDebugTests, 'debug/Debug');
  RegisterTest(TDebugBlocksTests);
end.
