/// Tests of FastMM5's names: what FastMM5's own test programs check, and each name of its interface
/// that works. Test.CompatNames checks the names that do not compile.
unit Test.FastMM5;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM;

type
  /// What FastMM5's own test programs check: debug mode, double frees, changes of mode, checks of
  /// the heap, size classes, use.
  TFastMM5Tests = class(TLaneTest)
  strict private
    Mailbox: array[0..63] of Pointer;
    IsOver, Errors, Handled: LongInt;
    procedure HoldsItsContents(P: PByte; Size: NativeUInt);
    procedure WalkSlowly;
    procedure ExchangeBlocks;
    procedure ChurnUntilOver;
    procedure LookAtErasingUntilOver;
    function IsDamageFound: Boolean;
    procedure ChangeIsFound(P: PByte);
    procedure CorruptFieldIsFound(P: PByte; IsSize: Boolean);
    procedure Hammer(Size, Count: NativeUInt);
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure BlocksOfBothModesHoldTheirContents;
    procedure SizeOfADebugBlockIsTheRequestedOne;
    procedure ReallocationsKeepTheFirstByte;
    procedure EverySizeHoldsItsContents;
    procedure UseReturnsToItsStart;
    procedure DoubleFreeDuringAWalkIsRefused;
    procedure FailedBeginOfErasingFreedCounts;
    procedure FailedBeginOfErasingNewCounts;
    procedure FailedEnterOfDebugModeCounts;
    procedure ModesNest;
    procedure EndOfErasingLeavesTheSetting;
    procedure SurplusEndOfErasingDoesNotCount;
    procedure ErasingOfFreedBlocksGoesOnWhileThatOfNewOnesBegins;
    procedure ThreadsThatExchangeBlocksLeaveNothing;
    procedure OverrunIsFoundByAScan;
    procedure UnderrunIsFoundByAScan;
    procedure CorruptRecordIsFoundByAScan;
    procedure CorruptFieldsOfARecordAreFoundByAScan;
    procedure WriteAfterFreeIsFoundByAScan;
    procedure ScanBesideChurnInventsNothing;
    procedure ChurnOfEverySizeKeepsTheOverheadBounded;
  end;

  /// The other names.
  TFastMM5NamesTests = class(TQuietTest)
  strict private
    Path: string;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure MemoryRoutinesWork;
    procedure SingleDebugBlocksNeedNoDebugMode;
    procedure SingleDebugBlockStaysOneWhenItGrows;
    procedure RegisteredLeaksAreListed;
    procedure WalkVisitsBlocksByType;
    procedure WalkVisitsFreeBlocks;
    procedure WalkVisitsAGroup;
    procedure WalkKnowsDebugBlocks;
    procedure WalkHasTheBacktraceOfADebugBlock;
    procedure WalkHasTheBlockSizesOfSpans;
    procedure StringsAreDetected;
    procedure ClassesAreDetected;
    procedure SummariesCount;
    procedure StateCountsBySize;
    procedure MapHasTheProgram;
    procedure StateFileListsClasses;
    procedure StateFileSubtractsGroups;
    procedure StateFileIsWrittenAtTheLimit;
    {$ifdef LINUX}
    procedure StateFileIsClosedWhereNothingFits;
    {$endif}
    procedure LaneMMIsInstalled;
    procedure AlignmentIsSixteenAtLeast;
    procedure CoarsestAlignmentEnteredCounts;
    procedure MemoryUsageLimitIsKept;
    procedure NewBlocksAreFilledOnRequest;
    procedure DebugModeHasFrames;
    procedure OwnHandlerTakesStacks;
    procedure OwnHandlerWritesStacks;
    procedure HandlersWithoutStackAndTextReportNone;
    procedure RefusalWithoutStackReportsNone;
    procedure OwnHandlerMayUseTheHeap;
    procedure OwnHandlerMayAskForLaneMMsStack;
    procedure OwnHandlersCanBeRead;
    procedure EventLogHasItsName;
    procedure EventLogIsDeleted;
    procedure NumbersRise;
    procedure NumberToBreakAtIsASetting;
    procedure ScanBeforeEveryOperationIsASetting;
    procedure EventsHaveTargets;
    procedure LeakEventsSwitchTheReportOn;
    procedure VariablesWithOneValueHaveIt;
    procedure TypesHaveTheirValues;
    procedure TypesCanBeDeclared;
  end;

implementation

uses
  SysUtils, Classes, testregistry, FastMM5, LaneMM.Layout, LaneMM.RtlRecords, LaneMM.DebugState,
  LaneMM.DebugRecords, LaneMM.DebugSpans;

const
  // Blocks of each tier, small ones first.
  Sizes: array[0..3] of NativeUInt = (100, 2000, 50000, 300000);

var
  Walked: Pointer;
  WalkWaits: LongInt;

procedure Report(Kind: TLaneMM_EventKind; Text: PAnsiChar; Length: NativeUInt);
begin
end;

// Reports of planted mistakes go nowhere.
procedure SilenceReports;
begin
  LaneMM_Configure('event=all:callback');
  LaneMM_OnEvent(Report);
end;

procedure RestoreReports;
begin
  LaneMM_OnEvent(nil);
  LaneMM_Configure('event=all:file:stderr:callback');
end;

// ---------------------------------------------------------------------------- FastMM5's own tests

procedure TFastMM5Tests.SetUp;
begin
  SilenceReports;
end;

procedure TFastMM5Tests.TearDown;
begin
  while LaneMM_ExitDebugMode do;
  RestoreReports;
end;

procedure TFastMM5Tests.HoldsItsContents(P: PByte; Size: NativeUInt);
begin
  FillPattern(P, Size, Size);
  AssertTrue('contents', HasPattern(P, Size, Size));
end;

procedure TFastMM5Tests.BlocksOfBothModesHoldTheirContents;
var
  P, Q: Pointer;
  IsDebug: Boolean;
begin
  for IsDebug := False to True do
  begin
    if IsDebug then
      AssertTrue(FastMM_EnterDebugMode);
    GetMem(P, 100);
    GetMem(Q, 100);
    AssertTrue('two blocks', P <> Q);
    FillPattern(P, 100, 1);
    FillPattern(Q, 100, 2);
    AssertTrue(HasPattern(P, 100, 1) and HasPattern(Q, 100, 2));
    AtLeast(100, FastMM_BlockCurrentUserBytes(P), 'bytes');
    AtLeast(FastMM_BlockCurrentUserBytes(P), FastMM_BlockMaximumUserBytes(P), 'most bytes');
    FreeMem(Q);
    FreeMem(P);
  end;
  AssertTrue(FastMM_ExitDebugMode);
end;

procedure TFastMM5Tests.SizeOfADebugBlockIsTheRequestedOne;
var
  P: Pointer;
begin
  AssertTrue(FastMM_EnterDebugMode);
  GetMem(P, 100);
  Same(100, FastMM_BlockCurrentUserBytes(P), 'size');
  FreeMem(P);
end;

procedure TFastMM5Tests.ReallocationsKeepTheFirstByte;
var
  P: PByte;
  Step: Integer;
begin
  AssertTrue(FastMM_EnterDebugMode);
  GetMem(P, 10);
  P^ := $5A;
  for Step := 1 to 200 do
  begin
    ReallocMem(P, Step * 12347 mod 300000 + 1);
    Same($5A, P^, 'first byte');
  end;
  ReallocMem(P, 2000);
  for Step := 2001 to 2400 do
  begin
    ReallocMem(P, Step);
    Same($5A, P^, 'first byte, grown byte by byte');
  end;
  FreeMem(P);
end;

procedure TFastMM5Tests.EverySizeHoldsItsContents;
var
  P: PByte;
  Size: NativeUInt;
begin
  AssertTrue(FastMM_EnterDebugMode);
  Size := 1;
  while Size <= 2000000 do
  begin
    GetMem(P, Size);
    HoldsItsContents(P, Size);
    FreeMem(P);
    if Size < 70000 then
      Inc(Size, 61)
    else
      Inc(Size, 100000);
  end;
end;

procedure TFastMM5Tests.UseReturnsToItsStart;
var
  Before: NativeUInt;
  P: Pointer;
begin
  Before := FastMM_GetUsageSummary.AllocatedBytes;
  FastMM_EnterDebugMode;
  GetMem(P, 5000);
  FreeMem(P);
  FastMM_ExitDebugMode;
  Same(Before, FastMM_GetUsageSummary.AllocatedBytes, 'bytes in use');
end;

procedure WaitAtTheBlock(const Info: TFastMM_WalkAllocatedBlocks_BlockInfo);
begin
  if (Info.BlockAddress <> Walked) or (InterlockedCompareExchange(WalkWaits, 1, 0) <> 0) then
    Exit;
  while InterlockedExchangeAdd(WalkWaits, 0) = 1 do
    ThreadSwitch;
end;

procedure TFastMM5Tests.WalkSlowly;
begin
  FastMM_WalkBlocks(WaitAtTheBlock, [btSmallBlock, btMediumBlock, btLargeBlock], False, nil, 5000);
end;

procedure TFastMM5Tests.DoubleFreeDuringAWalkIsRefused;
var
  Worker: TWorker;
  Size: NativeUInt;
  FirstWord: NativeUInt;
begin
  for Size in Sizes do
  begin
    GetMem(Walked, Size);
    WalkWaits := 0;
    Worker := TWorker.Create(WalkSlowly, False);
    while InterlockedExchangeAdd(WalkWaits, 0) = 0 do
      ThreadSwitch;
    FreeMem(Walked);
    FirstWord := 0;
    if Size <= MaxClassSize then
      FirstWord := PNativeUInt(Walked)^;
    Same(InvalidPointer, ErrorOfFree(Walked), 'error of the second free');
    if Size <= MaxClassSize then
    begin
      AssertTrue('no link to itself', PNativeUInt(Walked)^ <> NativeUInt(Walked));
      AssertTrue('the link stays', PNativeUInt(Walked)^ = FirstWord);
    end;
    InterlockedExchange(WalkWaits, 2);
    EndThread(Worker);
  end;
end;

// ---- changes of mode under another manager

function ForwardGet(Size: PtrUInt): Pointer;
begin
  Result := LaneMM_DebugGetMem(Size);
end;

// A manager in front of LaneMM; returns the one before.
function InstallAnother: TMemoryManager;
var
  Another: TMemoryManager;
begin
  GetMemoryManager(Result);
  Another := Result;
  Another.GetMem := ForwardGet;
  SetMemoryManager(Another);
end;

type
  TSwitch = function: Boolean;

// The calls count also while they fail, and the last good one decides.
procedure FailedBeginCounts(Test: TLaneTest; BeginIt, EndIt, IsActive: TSwitch);
var
  Own: TMemoryManager;
  HasBegun, WasActive: Boolean;
begin
  Own := InstallAnother;
  HasBegun := BeginIt;
  WasActive := IsActive;
  SetMemoryManager(Own);
  Test.AssertFalse('begun under another manager', HasBegun);
  Test.AssertFalse('active under another manager', WasActive);
  Test.AssertTrue('the end in balance', EndIt);
  Test.AssertTrue('begun', BeginIt);
  Test.AssertTrue('active', IsActive);
  Test.AssertTrue('ended', EndIt);
  Test.AssertFalse('still active', IsActive);
end;

procedure TFastMM5Tests.FailedBeginOfErasingFreedCounts;
begin
  FailedBeginCounts(Self, FastMM_BeginEraseFreedBlockContent, FastMM_EndEraseFreedBlockContent,
    FastMM_EraseFreedBlockContentActive);
end;

procedure TFastMM5Tests.FailedBeginOfErasingNewCounts;
begin
  FailedBeginCounts(Self, FastMM_BeginEraseAllocatedBlockContent,
    FastMM_EndEraseAllocatedBlockContent, FastMM_EraseAllocatedBlockContentActive);
end;

procedure TFastMM5Tests.FailedEnterOfDebugModeCounts;
begin
  FailedBeginCounts(Self, FastMM_EnterDebugMode, FastMM_ExitDebugMode, FastMM_DebugModeActive);
end;

procedure TFastMM5Tests.ModesNest;
begin
  AssertTrue(FastMM_EnterDebugMode and FastMM_EnterDebugMode and FastMM_ExitDebugMode);
  AssertTrue('once more', FastMM_DebugModeActive);
  AssertTrue(FastMM_ExitDebugMode);
  AssertFalse('no more', FastMM_DebugModeActive);
  AssertTrue(FastMM_BeginEraseFreedBlockContent and FastMM_BeginEraseFreedBlockContent
    and FastMM_EndEraseFreedBlockContent);
  AssertTrue('erased', FastMM_EraseFreedBlockContentActive);
  AssertTrue(FastMM_EndEraseFreedBlockContent);
  AssertFalse('not erased', FastMM_EraseFreedBlockContentActive);
end;

procedure TFastMM5Tests.EndOfErasingLeavesTheSetting;
begin
  LaneMM_Configure('erase=free,erase=new');
  try
    AssertTrue(FastMM_BeginEraseFreedBlockContent and FastMM_EndEraseFreedBlockContent);
    AssertTrue('freed ones', FastMM_EraseFreedBlockContentActive);
    AssertTrue(FastMM_BeginEraseAllocatedBlockContent and FastMM_EndEraseAllocatedBlockContent);
    AssertTrue('new ones', FastMM_EraseAllocatedBlockContentActive);
  finally
    LaneMM_Configure('erase=0');
  end;
  AssertTrue(FastMM_BeginEraseFreedBlockContent and FastMM_EndEraseFreedBlockContent);
  AssertFalse('without the setting', FastMM_EraseFreedBlockContentActive);
end;

// Ends once too often, then once as often as it begins.
procedure SurplusEndDoesNotCount(Test: TLaneTest; BeginIt, EndIt, IsActive: TSwitch);
begin
  Test.AssertFalse('nothing to end', EndIt);
  Test.AssertTrue('begun', BeginIt);
  Test.AssertTrue('active', IsActive);
  Test.AssertTrue('ended', EndIt);
  Test.AssertFalse('still active', IsActive);
end;

procedure TFastMM5Tests.SurplusEndOfErasingDoesNotCount;
begin
  SurplusEndDoesNotCount(Self, FastMM_BeginEraseFreedBlockContent,
    FastMM_EndEraseFreedBlockContent, FastMM_EraseFreedBlockContentActive);
  SurplusEndDoesNotCount(Self, FastMM_BeginEraseAllocatedBlockContent,
    FastMM_EndEraseAllocatedBlockContent, FastMM_EraseAllocatedBlockContentActive);
end;

procedure TFastMM5Tests.LookAtErasingUntilOver;
begin
  while InterlockedExchangeAdd(IsOver, 0) = 0 do
  begin
    if not FastMM_EraseFreedBlockContentActive then
      InterlockedIncrement(Errors);
    InterlockedIncrement(Handled);
  end;
end;

procedure TFastMM5Tests.ErasingOfFreedBlocksGoesOnWhileThatOfNewOnesBegins;
const
  Rounds = 5000;
var
  Worker: TWorker;
  Round: Integer;
begin
  AssertTrue(FastMM_BeginEraseFreedBlockContent);
  Worker := TWorker.Create(LookAtErasingUntilOver, False);
  while InterlockedExchangeAdd(Handled, 0) = 0 do
    ThreadSwitch;
  for Round := 1 to Rounds do
  begin
    FastMM_BeginEraseAllocatedBlockContent;
    FastMM_EndEraseAllocatedBlockContent;
  end;
  InterlockedExchange(IsOver, 1);
  EndThread(Worker);
  AssertTrue(FastMM_EndEraseFreedBlockContent);
  Same(0, Errors, 'moments without');
end;

// ---- threads

procedure TFastMM5Tests.ExchangeBlocks;
const
  Rounds = 3000;
  MostSize = 70000;
var
  Generator: TGenerator;
  Round: Integer;
  Size: NativeUInt;
  P: PByte;
begin
  Generator.Start(TestSeed + UInt64(InterlockedIncrement(Handled)));
  for Round := 1 to Rounds do
  begin
    Size := Generator.Below(MostSize) + 1;
    GetMem(P, Size);
    FillPattern(P, Size, Size);
    if not HasPattern(P, Size, Size) then
      InterlockedIncrement(Errors);
    if Generator.Below(8) = 0 then
      P := InterlockedExchange(Mailbox[Generator.Below(Length(Mailbox))], P);
    FreeMem(P);
  end;
end;

procedure TFastMM5Tests.ThreadsThatExchangeBlocksLeaveNothing;
var
  Before: NativeUInt;
  Index: Integer;
begin
  Before := FastMM_GetUsageSummary.AllocatedBytes;
  FastMM_EnterDebugMode;
  InThreads(4, ExchangeBlocks);
  for Index := 0 to High(Mailbox) do
    FreeMem(Mailbox[Index]);
  Same(0, Errors, 'blocks that lost their contents');
  AssertTrue(FastMM_ProcessAllPendingFrees);
  AtMost(Before + 65536, FastMM_GetUsageSummary.AllocatedBytes, 'bytes in use');
end;

procedure TFastMM5Tests.ChurnUntilOver;
var
  Blocks: array[0..63] of PByte;
  Generator: TGenerator;
  Index: Integer;
begin
  FillChar(Blocks, SizeOf(Blocks), 0);
  Generator.Start(TestSeed);
  while InterlockedExchangeAdd(IsOver, 0) = 0 do
  begin
    Index := Generator.Below(Length(Blocks));
    if (Blocks[Index] <> nil) and (Blocks[Index]^ <> Index) then
      InterlockedIncrement(Errors);
    FreeMem(Blocks[Index]);
    GetMem(Blocks[Index], 16 + Generator.Below(2000));
    Blocks[Index]^ := Index;
    InterlockedIncrement(Handled);
  end;
  for Index := 0 to High(Blocks) do
    FreeMem(Blocks[Index]);
end;

procedure TFastMM5Tests.ScanBesideChurnInventsNothing;
const
  Scans = 200;
var
  Workers: array[0..2] of TWorker;
  Index: Integer;
begin
  FastMM_EnterDebugMode;
  for Index := 0 to High(Workers) do
    Workers[Index] := TWorker.Create(ChurnUntilOver, False);
  try
    for Index := 1 to Scans do
      AssertTrue(FastMM_ScanDebugBlocksForCorruption(1000));
    while InterlockedExchangeAdd(Handled, 0) = 0 do
      ThreadSwitch;
  finally
    InterlockedExchange(IsOver, 1);
    for Index := 0 to High(Workers) do
      EndThread(Workers[Index]);
  end;
  Same(0, Errors, 'blocks that lost their contents');
end;

// ---- damage

function TFastMM5Tests.IsDamageFound: Boolean;
begin
  Result := False;
  try
    FastMM_ScanDebugBlocksForCorruption(1000);
  except
    on EInvalidPointer do
      Result := True;
  end;
end;

// Changes a byte, and back.
procedure TFastMM5Tests.ChangeIsFound(P: PByte);
begin
  P^ := P^ xor $FF;
  AssertTrue('found', IsDamageFound);
  P^ := P^ xor $FF;
  AssertFalse('repaired', IsDamageFound);
end;

procedure TFastMM5Tests.OverrunIsFoundByAScan;
var
  P: PByte;
  Size: NativeUInt;
begin
  FastMM_EnterDebugMode;
  for Size in Sizes do
  begin
    GetMem(P, Size);
    AssertFalse('before', IsDamageFound);
    ChangeIsFound(P + Size);
    FreeMem(P);
  end;
end;

procedure TFastMM5Tests.UnderrunIsFoundByAScan;
var
  P: PByte;
  Size: NativeUInt;
begin
  FastMM_EnterDebugMode;
  for Size in Sizes do
  begin
    GetMem(P, Size);
    ChangeIsFound(P - 1);
    FreeMem(P);
  end;
end;

procedure TFastMM5Tests.CorruptRecordIsFoundByAScan;
var
  P: PByte;
  Size: NativeUInt;
begin
  FastMM_EnterDebugMode;
  for Size in Sizes do
  begin
    GetMem(P, Size);
    ChangeIsFound(@DebugBlockOf(P)^.Sum);
    FreeMem(P);
  end;
end;

// Changes what decides where a check reads: the size, or the number of the backtrace.
procedure TFastMM5Tests.CorruptFieldIsFound(P: PByte; IsSize: Boolean);
var
  Block: PDebugBlock;
  Before: TDebugBlock;
begin
  Block := DebugBlockOf(P);
  Before := Block^;
  if IsSize then
    Block^.Size := $30000000 // far outside the block
  else
    Block^.AllocStack := High(Block^.AllocStack);
  while not IsSize and DebugBlockIsSealed(Block) do // one change in 65,536 leaves the sum as it is
    Dec(Block^.AllocStack);
  AssertTrue('found', IsDamageFound);
  Block^.Size := Before.Size;
  Block^.AllocStack := Before.AllocStack;
  AssertFalse('repaired', IsDamageFound);
end;

// A change of the block's state in between: damage is reported once in each.
procedure TFastMM5Tests.CorruptFieldsOfARecordAreFoundByAScan;
var
  P: PByte;
  Size: NativeUInt;
  IsSize: Boolean;
begin
  FastMM_EnterDebugMode;
  for IsSize := False to True do
    for Size in Sizes do
    begin
      GetMem(P, Size);
      CorruptFieldIsFound(P, IsSize);
      FreeMem(P);
      CorruptFieldIsFound(P, IsSize);
    end;
end;

// In a block with pages of its own at once.
procedure TFastMM5Tests.WriteAfterFreeIsFoundByAScan;
const
  MostShared = 65536;
var
  P: PByte;
  Size: NativeUInt;
begin
  FastMM_EnterDebugMode;
  for Size in Sizes do
  begin
    GetMem(P, Size);
    FreeMem(P);
    try
      P[Size - 1] := P[Size - 1] xor $FF;
      AssertTrue('written', Size < MostShared);
    except
      on EAccessViolation do
      begin
        AssertTrue('refused', Size > MostShared);
        Continue;
      end;
    end;
    AssertTrue('found', IsDamageFound);
    P[Size - 1] := P[Size - 1] xor $FF;
    AssertFalse('repaired', IsDamageFound);
  end;
end;

// ---- use

procedure TFastMM5Tests.Hammer(Size, Count: NativeUInt);
var
  Before, Round: NativeUInt;
  P: PByte;
begin
  Before := FastMM_GetUsageSummary.AllocatedBytes;
  for Round := 1 to Count do
  begin
    GetMem(P, Size);
    FillChar(P^, Size, 1);
    FreeMem(P);
  end;
  AtMost(Before + 4096, FastMM_GetUsageSummary.AllocatedBytes, 'bytes in use');
end;

procedure TFastMM5Tests.ChurnOfEverySizeKeepsTheOverheadBounded;
const
  Rounds = 500;
  Larger: array[0..5] of NativeUInt = (3000, 10000, 40000, 70000, 200000, 500000);
  // Freed debug blocks wait up to this many bytes.
  Quarantine = 16 shl 20;
var
  First, Size: NativeUInt;
begin
  FastMM_EnterDebugMode;
  Hammer(500, Rounds);
  First := FastMM_GetUsageSummary.OverheadBytes;
  for Size in Larger do
    Hammer(Size, Rounds);
  AtMost(First * 4 + 2 * Quarantine, FastMM_GetUsageSummary.OverheadBytes, 'overhead');
end;

// ---------------------------------------------------------------------------- the other names

procedure TFastMM5NamesTests.SetUp;
begin
  inherited SetUp;
  SilenceReports;
  Path := GetTempDir + 'FastMM5-' + IntToStr(GetProcessID) + '.txt';
end;

procedure TFastMM5NamesTests.TearDown;
begin
  while LaneMM_ExitDebugMode do;
  RestoreReports;
  FastMM_SetDefaultEventLogFilename;
  DeleteFile(Path);
  inherited TearDown;
end;

procedure TFastMM5NamesTests.MemoryRoutinesWork;
var
  P: PByte;
begin
  P := FastMM_GetMem(100);
  FillPattern(P, 100, 1);
  P := FastMM_ReallocMem(P, 100000);
  AssertTrue(HasPattern(P, 100, 1));
  Same(0, FastMM_FreeMem(P), 'result');
  P := FastMM_AllocMem(1000);
  AssertTrue(IsZero(P, 1000));
  FastMM_FreeMem(P);
end;

procedure TFastMM5NamesTests.SingleDebugBlocksNeedNoDebugMode;
var
  P, Q: PByte;
begin
  AssertFalse(FastMM_DebugModeActive);
  P := FastMM_DebugGetMem(100);
  Q := FastMM_DebugAllocMem(100);
  Same(100, FastMM_BlockCurrentUserBytes(P), 'size of a debug block');
  AssertTrue('zeros', IsZero(Q, 100));
  Same(0, FastMM_DebugFreeMem(P), 'result');
  Same(InvalidPointer, ErrorOfFree(P), 'double free');
  P := Q;
  P[100] := P[100] xor $FF;
  AssertFalse('overrun', LaneMM_CheckBlock(P));
  FreeMem(P);
end;

procedure TFastMM5NamesTests.SingleDebugBlockStaysOneWhenItGrows;
var
  P, Before: PByte;
begin
  GetMem(P, 100);
  FillPattern(P, 100, 1);
  P := FastMM_DebugReallocMem(P, 1001);
  Same(1001, FastMM_BlockCurrentUserBytes(P), 'size of a normal block made a debug block');
  AssertTrue(HasPattern(P, 100, 1));
  Before := P;
  P := FastMM_DebugReallocMem(P, 33);
  AssertTrue('moved', P <> Before);
  Same(33, FastMM_BlockCurrentUserBytes(P), 'size');
  AssertTrue(HasPattern(P, 32, 1)); // whole words
  Same(InvalidPointer, ErrorOfFree(Before), 'free of the old address');
  AssertTrue(FastMM_DebugReallocMem(P, 0) = nil);
end;

procedure TFastMM5NamesTests.RegisteredLeaksAreListed;
var
  Leaks: TFastMM_RegisteredMemoryLeaks;
  Before: Integer;
  P: Pointer;
begin
  Before := Length(FastMM_GetRegisteredMemoryLeaks);
  GetMem(P, 10);
  AssertTrue(FastMM_RegisterExpectedMemoryLeak(P));
  AssertTrue(FastMM_RegisterExpectedMemoryLeak(TStringList, 3));
  AssertTrue(FastMM_RegisterExpectedMemoryLeak(NativeInt(77), 2));
  Leaks := FastMM_GetRegisteredMemoryLeaks;
  Same(Before + 3, Length(Leaks), 'entries');
  AssertTrue('block', Leaks[Before].LeakAddress = P);
  AssertTrue('class', Leaks[Before + 1].LeakedClass = TStringList);
  Same(3, Leaks[Before + 1].LeakCount, 'objects');
  Same(77, Leaks[Before + 2].LeakSize, 'size');
  AssertTrue(FastMM_UnregisterExpectedMemoryLeak(P));
  AssertTrue(FastMM_UnregisterExpectedMemoryLeak(TStringList, 3));
  AssertTrue(FastMM_UnregisterExpectedMemoryLeak(NativeInt(77), 2));
  Same(Before, Length(FastMM_GetRegisteredMemoryLeaks), 'entries');
  FreeMem(P);
end;

type
  TCounts = array[TFastMM_WalkAllocatedBlocksBlockType] of Integer;
  PCounts = ^TCounts;

procedure CountTypes(const Info: TFastMM_WalkAllocatedBlocks_BlockInfo);
begin
  Inc(PCounts(Info.UserData)^[Info.BlockType]);
end;

procedure TFastMM5NamesTests.WalkVisitsBlocksByType;
var
  All, Large: TCounts;
  P, Q: Pointer;
begin
  GetMem(P, 50000);
  GetMem(Q, 500000);
  All := Default(TCounts);
  Large := Default(TCounts);
  AssertTrue(FastMM_WalkBlocks(CountTypes, [], True, @All));
  AssertTrue(FastMM_WalkBlocks(CountTypes, [btLargeBlock], True, @Large));
  AtLeast(1, All[btSmallBlock], 'small blocks');
  AtLeast(1, All[btMediumBlock], 'medium blocks');
  AtLeast(1, All[btSmallBlockSpan], 'spans of small blocks');
  AtLeast(1, All[btMediumBlockSpan], 'spans of medium blocks');
  Same(All[btLargeBlock], Large[btLargeBlock], 'large blocks');
  Same(0, Large[btSmallBlock] + Large[btMediumBlock] + Large[btSmallBlockSpan], 'others');
  FreeMem(P);
  FreeMem(Q);
end;

type
  TFind = record
    Address: Pointer;
    Used, Free: Integer;
    Number, Group: Cardinal;
  end;
  PFind = ^TFind;

procedure FindBlock(const Info: TFastMM_WalkAllocatedBlocks_BlockInfo);
var
  Find: PFind;
begin
  Find := Info.UserData;
  if Info.BlockAddress <> Find^.Address then
    Exit;
  if Info.BlockIsFree then
    Inc(Find^.Free)
  else
    Inc(Find^.Used);
  if Info.DebugInformation = nil then
    Exit;
  Find^.Number := Info.DebugInformation^.AllocationNumber;
  Find^.Group := Info.DebugInformation^.AllocationGroup;
end;

procedure TFastMM5NamesTests.WalkVisitsFreeBlocks;
const
  Blocks = [btSmallBlock, btMediumBlock, btLargeBlock];
var
  Find: TFind;
begin
  Find := Default(TFind);
  GetMem(Find.Address, 100);
  FastMM_WalkBlocks(FindBlock, Blocks, False, @Find);
  Same(1, Find.Used, 'visits while it is in use');
  Same(0, Find.Free, 'visits as a free block');
  FreeMem(Find.Address);
  FastMM_WalkBlocks(FindBlock, Blocks, True, @Find);
  Same(0, Find.Free, 'visits of blocks in use');
  FastMM_WalkBlocks(FindBlock, Blocks, False, @Find);
  Same(1, Find.Used, 'visits since');
  Same(1, Find.Free, 'visits while it is free');
end;

procedure TFastMM5NamesTests.WalkVisitsAGroup;
var
  Counts: TCounts;
  P: Pointer;
  Index: Integer;
begin
  Counts := Default(TCounts);
  FastMM_CurrentAllocationGroup := 4711;
  P := FastMM_DebugGetMem(100);
  FastMM_CurrentAllocationGroup := 0;
  FastMM_WalkBlocks(CountTypes, [btSmallBlock, btMediumBlock, btLargeBlock], True, @Counts, 1000,
    4711, 4711);
  FreeMem(P);
  Same(1, Counts[btSmallBlock], 'blocks of the group');
  for Index := 0 to Ord(btMediumBlock) do
    Same(0, Counts[TFastMM_WalkAllocatedBlocksBlockType(Index)], 'others');
end;

procedure TFastMM5NamesTests.WalkKnowsDebugBlocks;
var
  Find: TFind;
begin
  Find := Default(TFind);
  FastMM_CurrentAllocationGroup := 12;
  Find.Address := FastMM_DebugGetMem(100);
  FastMM_CurrentAllocationGroup := 0;
  FastMM_WalkBlocks(FindBlock, [btSmallBlock], True, @Find);
  Same(FastMM_LastAllocationNumber, Find.Number, 'number');
  Same(12, Find.Group, 'group');
  FreeMem(Find.Address);
end;

type
  // The record of a debug block, and what it leads to.
  TSeen = record
    Address: Pointer;
    Info: TFastMM_WalkAllocatedBlocks_BlockInfo;
    Header: TFastMM_DebugBlockHeader;
    Allocation, Free: array[0..255] of NativeUInt;
  end;
  PSeen = ^TSeen;

procedure SeeHeader(const Info: TFastMM_WalkAllocatedBlocks_BlockInfo);
var
  Seen: PSeen;
  Header: PFastMM_DebugBlockHeader;
  Bytes: NativeUInt;
begin
  Seen := Info.UserData;
  if Info.BlockAddress <> Seen^.Address then
    Exit;
  Header := Info.DebugInformation;
  Bytes := Header^.StackTraceEntryCount * SizeOf(NativeUInt);
  Seen^.Info := Info;
  Seen^.Header := Header^;
  Move(Header^.DebugFooter_AllocationStackTracePtr^, Seen^.Allocation, Bytes);
  Move(Header^.DebugFooter_FreeStackTracePtr^, Seen^.Free, Bytes);
end;

procedure TFastMM5NamesTests.WalkHasTheBacktraceOfADebugBlock;
var
  Seen: TSeen;
  Block: TLaneMM_BlockInfo;
  Frames: array[0..255] of NativeUInt;
  Count: Cardinal;
begin
  Seen := Default(TSeen);
  Seen.Address := FastMM_DebugGetMem(100);
  FastMM_WalkBlocks(SeeHeader, [btSmallBlock], True, @Seen);
  AssertTrue(LaneMM_BlockInfo(Seen.Address, Block));
  Count := LaneMM_ReadStack(Block.Stack, @Frames, Length(Frames));
  AtLeast(2, Count, 'frames');
  Same(FastMM_GetDebugModeStackTraceEntryCount, Seen.Header.StackTraceEntryCount, 'entries');
  AssertTrue('frames', CompareMem(@Frames, @Seen.Allocation, Count * SizeOf(Frames[0])));
  AssertTrue('zeros after them', IsZero(@Seen.Allocation[Count],
    (Length(Seen.Allocation) - Count) * SizeOf(Frames[0])));
  AssertTrue('not freed', IsZero(@Seen.Free, SizeOf(Seen.Free)));
  Same(0, Seen.Header.FreedByThread, 'not freed by a thread');
  AssertTrue('no class before', Seen.Header.PreviouslyUsedByClass = nil);
  Same(Block.Thread, Seen.Header.AllocatedByThread, 'thread');
  Same(100, Seen.Header.UserSize, 'requested size');
  Same(100, Seen.Info.UsableSize, 'usable size');
  Same(100, Seen.Info.BlockSize, 'size');
  FreeMem(Seen.Address);
end;

procedure CountSpans(const Info: TFastMM_WalkAllocatedBlocks_BlockInfo);
begin
  if Info.SmallBlockSpanBlockSize = 64 then
    Inc(PInteger(Info.UserData)^);
end;

procedure TFastMM5NamesTests.WalkHasTheBlockSizesOfSpans;
var
  Types: TFastMM_WalkBlocksBlockTypes;
  Visit: TFastMM_WalkBlocksCallback;
  P: Pointer;
  Spans: Integer;
begin
  Types := [btSmallBlockSpan];
  Visit := CountSpans;
  Spans := 0;
  GetMem(P, 64);
  FastMM_WalkBlocks(Visit, Types, True, @Spans);
  FreeMem(P);
  AtLeast(1, Spans, 'spans of blocks of 64 bytes');
end;

procedure TFastMM5NamesTests.StringsAreDetected;
const
  AnsiHead = SizeOf(TStringHead);
var
  Ansi: AnsiString;
  Wide: UnicodeString;
  Zeros: array[0..15] of NativeUInt;
begin
  Ansi := StringOfChar(AnsiChar('a'), 100);
  Wide := UnicodeString(Ansi);
  FillChar(Zeros, SizeOf(Zeros), 0);
  AssertTrue(FastMM_DetectStringData(PByte(Ansi) - AnsiHead, 128) = sdtAnsiString);
  AssertTrue(FastMM_DetectStringData(PByte(Wide) - AnsiHead, 256) = sdtUnicodeString);
  AssertTrue(FastMM_DetectStringData(@Zeros, SizeOf(Zeros)) = sdtNotAString);
end;

procedure TFastMM5NamesTests.ClassesAreDetected;
var
  List: TStringList;
  Zero: NativeUInt;
begin
  List := TStringList.Create;
  Zero := 0;
  AssertTrue(FastMM_DetectClassInstance(List) = TStringList);
  AssertTrue(FastMM_DetectClassInstance(@Zero) = nil);
  List.Free;
end;

procedure TFastMM5NamesTests.SummariesCount;
var
  Summary: TFastMM_UsageSummary;
begin
  Summary := FastMM_GetUsageSummary;
  AtLeast(1, Summary.AllocatedBytes, 'bytes in use');
  AssertTrue((Summary.EfficiencyPercentage > 0) and (Summary.EfficiencyPercentage <= 100));
  AtLeast(Summary.AllocatedBytes, FastMM_GetCurrentMemoryUsage, 'bytes held');
  AtLeast(1, FastMM_GetHeapStatus.TotalAllocated, 'bytes in use');
end;

procedure TFastMM5NamesTests.StateCountsBySize;
var
  Before, After: TFastMM_MemoryManagerState;
  Index: Integer;
  P, Q, R: Pointer;
begin
  FastMM_GetMemoryManagerState(Before);
  GetMem(P, 64);
  GetMem(Q, 40000);
  GetMem(R, 1000000);
  FastMM_GetMemoryManagerState(After);
  FreeMem(P);
  FreeMem(Q);
  FreeMem(R);
  Same(56, After.SmallBlockTypeCount, 'sizes');
  for Index := 0 to After.SmallBlockTypeCount - 1 do
    Same(Ord(After.SmallBlockTypeStates[Index].UseableBlockSize = 64),
      Int64(After.SmallBlockTypeStates[Index].AllocatedBlockCount)
      - Int64(Before.SmallBlockTypeStates[Index].AllocatedBlockCount), 'new blocks of a size');
  Same(Before.AllocatedMediumBlockCount + 1, After.AllocatedMediumBlockCount, 'medium blocks');
  Same(Before.AllocatedLargeBlockCount + 1, After.AllocatedLargeBlockCount, 'large blocks');
  AtLeast(Before.TotalAllocatedMediumBlockSize + 40000, After.TotalAllocatedMediumBlockSize,
    'bytes of medium blocks');
  AtLeast(Before.TotalAllocatedLargeBlockSize + 1000000, After.TotalAllocatedLargeBlockSize,
    'bytes of large blocks');
  AtLeast(After.TotalAllocatedMediumBlockSize, After.ReservedMediumBlockAddressSpace,
    'bytes of their spans');
  AtLeast(After.TotalAllocatedLargeBlockSize, After.ReservedLargeBlockAddressSpace,
    'bytes of their spans');
end;

procedure TFastMM5NamesTests.MapHasTheProgram;
var
  Map: ^TMemoryMap;
  Status: TChunkStatus;
  Mapped, Index: Integer;
begin
  New(Map);
  FastMM_GetMemoryMap(Map^);
  AssertTrue('the lowest 64 KB', Map^[0] = csUnallocated);
  Mapped := 0;
  for Index := 0 to High(Map^) do
  begin
    Status := Map^[Index];
    Inc(Mapped, Ord(Status in [csSysAllocated, csSysReserved, csAllocated, csReserved]));
  end;
  Dispose(Map);
  AtLeast(1, Mapped, 'entries in use');
end;

type
  TListed = class
    Data: array[0..99] of Byte;
  end;

procedure TFastMM5NamesTests.StateFileListsClasses;
var
  Objects: array[0..2] of TListed;
  Index: Integer;
begin
  for Index := 0 to High(Objects) do
    Objects[Index] := TListed.Create;
  AssertTrue(FastMM_LogStateToFile(PWideChar(UnicodeString(Path)), 'details'));
  for Index := 0 to High(Objects) do
    Objects[Index].Free;
  Has(' UTC, ', ReadText(Path));
  Has('details', ReadText(Path));
  Has('TListed x 3 (', ReadText(Path));
  AssertTrue('appended', FastMM_LogStateToFile(PWideChar(UnicodeString(Path)), 'more', False,
    soAlphabetical));
  Has('details', ReadText(Path));
  Has('more', ReadText(Path));
  AssertFalse(FastMM_LogStateToFile('/nowhere/at/all', nil));
end;

procedure TFastMM5NamesTests.StateFileSubtractsGroups;
var
  Objects: array[0..4] of TListed;
  Index: Integer;
begin
  FastMM_EnterDebugMode;
  for Index := 0 to High(Objects) do
  begin
    FastMM_CurrentAllocationGroup := 100 + Ord(Index >= 3);
    Objects[Index] := TListed.Create;
  end;
  FastMM_CurrentAllocationGroup := 0;
  AssertTrue(FastMM_LogStateToFile(PWideChar(UnicodeString(Path)), nil, True,
    soDescendingTotalMemoryUsage, 50, 100, 100, 101, 101));
  for Index := 0 to High(Objects) do
    Objects[Index].Free;
  Has('TListed x 1 (', ReadText(Path));
end;

procedure TFastMM5NamesTests.StateFileIsWrittenAtTheLimit;
var
  Name: UnicodeString;
  IsWritten: Boolean;
begin
  Name := UnicodeString(Path);
  FastMM_LogStateToFile(PWideChar(Name)); // what it takes of small blocks is there
  LaneMM_Trim;
  FastMM_SetMemoryUsageLimit(1);
  try
    IsWritten := FastMM_LogStateToFile(PWideChar(Name));
  finally
    FastMM_SetMemoryUsageLimit(0);
  end;
  AssertTrue(IsWritten);
  Has(' bytes in use, ', ReadText(Path));
end;

{$ifdef LINUX}
procedure TFastMM5NamesTests.StateFileIsClosedWhereNothingFits;

  function FreeNumber: THandle;
  begin
    Result := FileOpen('/dev/null', fmOpenRead);
    FileClose(Result);
  end;

var
  Before: THandle;
begin
  Before := FreeNumber;
  AssertFalse(FastMM_LogStateToFile('/dev/full', nil));
  Same(Before, FreeNumber, 'the next file number');
end;
{$endif}

procedure TFastMM5NamesTests.LaneMMIsInstalled;
var
  Own: TMemoryManager;
  State: TFastMM_MemoryManagerInstallationState;
begin
  AssertTrue(FastMM_GetInstallationState = mmisInstalled);
  Own := InstallAnother;
  State := FastMM_GetInstallationState;
  SetMemoryManager(Own);
  AssertTrue(State = mmisOtherThirdPartyMemoryManagerInstalled);
  Same(507, CFastMM_Version, 'version');
end;

procedure TFastMM5NamesTests.AlignmentIsSixteenAtLeast;
var
  P: Pointer;
begin
  FastMM_EnterMinimumAddressAlignment(maa16Bytes);
  GetMem(P, 1);
  Same(0, NativeUInt(P) mod 16, 'address');
  AssertTrue(FastMM_GetCurrentMinimumAddressAlignment = maa16Bytes);
  FastMM_ExitMinimumAddressAlignment(maa16Bytes);
  FreeMem(P);
  FastMM_EnterMinimumAddressAlignment(maa8Bytes);
  AssertTrue(FastMM_GetCurrentMinimumAddressAlignment = maa16Bytes);
  FastMM_ExitMinimumAddressAlignment(maa8Bytes);
end;

function CountMisaligned(Argument: Pointer): PtrInt;
var
  Blocks: array[0..499] of Pointer;
  Index: Integer;
begin
  Result := 0;
  for Index := 0 to High(Blocks) do
  begin
    GetMem(Blocks[Index], Index);
    Inc(Result, Ord(NativeUInt(Blocks[Index]) mod NativeUInt(Argument) <> 0));
  end;
  for Index := 0 to High(Blocks) do
    FreeMem(Blocks[Index]);
end;

procedure TFastMM5NamesTests.CoarsestAlignmentEnteredCounts;
begin
  FastMM_EnterMinimumAddressAlignment(maa64Bytes);
  FastMM_EnterMinimumAddressAlignment(maa32Bytes);
  AssertTrue('64', FastMM_GetCurrentMinimumAddressAlignment = maa64Bytes);
  Same(0, CountMisaligned(Pointer(64)), 'misaligned to 64');
  Same(0, WaitForThreadTerminate(BeginThread(@CountMisaligned, Pointer(64)), 0), 'in a thread');
  FastMM_ExitMinimumAddressAlignment(maa64Bytes);
  AssertTrue('32', FastMM_GetCurrentMinimumAddressAlignment = maa32Bytes);
  Same(0, CountMisaligned(Pointer(32)), 'misaligned to 32');
  FastMM_ExitMinimumAddressAlignment(maa32Bytes);
  AssertTrue('16', FastMM_GetCurrentMinimumAddressAlignment = maa16Bytes);
  AtLeast(1, CountMisaligned(Pointer(64)), 'misaligned afterwards');
end;

procedure TFastMM5NamesTests.MemoryUsageLimitIsKept;
const
  Megabyte = 1 shl 20;
var
  P: Pointer;
begin
  FastMM_ProcessAllPendingFrees; // free memory counts, too
  FastMM_SetMemoryUsageLimit(FastMM_GetCurrentMemoryUsage + 64 * Megabyte);
  AtLeast(64 * Megabyte, FastMM_GetMemoryUsageLimit, 'limit');
  try
    Same(OutOfMemory, ErrorOfGet(P, 200 * Megabyte), 'error beyond the limit');
  finally
    FastMM_SetMemoryUsageLimit(0);
  end;
  FastMM_FreeMem(FastMM_GetMem(80 * Megabyte));
end;

procedure TFastMM5NamesTests.NewBlocksAreFilledOnRequest;
var
  P: PByte;
begin
  AssertTrue(FastMM_BeginEraseAllocatedBlockContent);
  GetMem(P, 100);
  Same($90, P[0], 'first byte');
  Same($90, P[99], 'last byte');
  FreeMem(P);
  AssertTrue(FastMM_EndEraseAllocatedBlockContent);
  AssertFalse(FastMM_EraseAllocatedBlockContentActive);
end;

procedure TFastMM5NamesTests.DebugModeHasFrames;
var
  Before: Byte;
begin
  Before := FastMM_GetDebugModeStackTraceEntryCount;
  AtLeast(1, Before, 'frames');
  FastMM_SetDebugModeStackTraceEntryCount(20);
  Same(20, LaneMM_Settings.Values[opDepth], 'setting');
  Same(20, FastMM_GetDebugModeStackTraceEntryCount, 'frames');
  FastMM_SetDebugModeStackTraceEntryCount(Before);
end;

procedure TwoAddresses(ReturnAddresses: PNativeUInt; MaxDepth, SkipFrames: Cardinal);
begin
  FillChar(ReturnAddresses^, MaxDepth * SizeOf(NativeUInt), 0);
  ReturnAddresses[0] := 4711;
  ReturnAddresses[1] := 4712;
end;

function NumberText(ReturnAddresses: PNativeUInt; MaxDepth: Cardinal; Buffer, BufferEnd: PWideChar)
  : PWideChar;
const
  Line: UnicodeString = #13#10'my own text';
begin
  Move(PWideChar(Line)^, Buffer^, Length(Line) * SizeOf(WideChar));
  Result := Buffer + Length(Line);
end;

procedure TFastMM5NamesTests.OwnHandlerTakesStacks;
var
  P, Q: Pointer;
  Info: TLaneMM_BlockInfo;
  Frames: array[0..7] of NativeUInt;
begin
  FastMM_GetStackTrace := TwoAddresses;
  P := FastMM_DebugGetMem(10);
  FastMM_GetStackTrace := FastMM_NoOpGetStackTrace;
  Q := FastMM_DebugGetMem(10);
  Same(0, LaneMM_TakeStack(@Frames, Length(Frames)), 'frames of no backtrace');
  FastMM_GetStackTrace := nil;
  AssertTrue(LaneMM_BlockInfo(Q, Info));
  Same(0, Info.Stack, 'no backtrace');
  FreeMem(Q);
  AssertTrue(LaneMM_BlockInfo(P, Info));
  Same(2, LaneMM_ReadStack(Info.Stack, @Frames, Length(Frames)), 'frames');
  Same(4711, Frames[0], 'innermost frame');
  Same(4712, Frames[1], 'next frame');
  FreeMem(P);
end;

var
  Reported: string;

procedure KeepReport(Kind: TLaneMM_EventKind; Text: PAnsiChar; Length: NativeUInt);
begin
  SetString(Reported, Text, Length);
end;

// Has LaneMM report an overrun of a debug block of 10 bytes; restores the handlers, and frees the block.
procedure ReportOverrun(P: PByte);
begin
  P[10] := P[10] xor $FF;
  LaneMM_CheckBlock(P);
  FastMM_GetStackTrace := nil;
  FastMM_ConvertStackTraceToText := nil;
  FreeMem(P);
end;

procedure TFastMM5NamesTests.OwnHandlerWritesStacks;
begin
  LaneMM_OnEvent(KeepReport);
  FastMM_ConvertStackTraceToText := NumberText;
  ReportOverrun(FastMM_DebugGetMem(10));
  Has('my own text', Reported);
end;

procedure TFastMM5NamesTests.HandlersWithoutStackAndTextReportNone;
const
  None = '(no backtrace was recorded)'#10;
begin
  LaneMM_OnEvent(KeepReport);
  FastMM_GetStackTrace := FastMM_NoOpGetStackTrace;
  FastMM_ConvertStackTraceToText := FastMM_NoOpConvertStackTraceToText;
  ReportOverrun(FastMM_DebugAllocMem(10));
  Has(' at'#10'      ' + None + '  Detected at'#10'      ' + None, Reported);
end;

procedure TFastMM5NamesTests.RefusalWithoutStackReportsNone;
const
  Megabyte = 1 shl 20;
var
  P: Pointer;
begin
  LaneMM_OnEvent(KeepReport);
  FastMM_GetStackTrace := FastMM_NoOpGetStackTrace;
  FastMM_SetMemoryUsageLimit(FastMM_GetCurrentMemoryUsage + 8 * Megabyte);
  Same(OutOfMemory, ErrorOfGet(P, 200 * Megabyte), 'error beyond the limit');
  FastMM_SetMemoryUsageLimit(0);
  FastMM_GetStackTrace := nil;
  Has('(no backtrace was recorded)', Reported);
  HasNot('cut here', Reported);
end;

// Returns the frames of a debug block that is allocated in debug mode with this handler.
procedure TakeStackBy(Handler: TFastMM_GetStackTrace; out Frames: array of NativeUInt);
var
  P: Pointer;
  Info: TLaneMM_BlockInfo;
begin
  FillChar(Frames, SizeOf(Frames[0]) * Length(Frames), 0);
  FastMM_EnterDebugMode;
  FastMM_GetStackTrace := Handler;
  GetMem(P, 10);
  FreeMem(P);
  GetMem(P, 10);
  FastMM_GetStackTrace := nil;
  if LaneMM_BlockInfo(P, Info) then
    LaneMM_ReadStack(Info.Stack, @Frames, Length(Frames));
  FreeMem(P);
  FastMM_ExitDebugMode;
end;

var
  HandlerCalls: Integer;

procedure TwoAddressesByTheHeap(ReturnAddresses: PNativeUInt; MaxDepth, SkipFrames: Cardinal);
var
  Addresses: array of NativeUInt;
begin
  Inc(HandlerCalls);
  SetLength(Addresses, MaxDepth);
  Addresses[0] := 4711;
  Addresses[1] := 4712;
  Move(Addresses[0], ReturnAddresses^, MaxDepth * SizeOf(NativeUInt));
end;

procedure TFastMM5NamesTests.OwnHandlerMayUseTheHeap;
var
  Frames: array[0..7] of NativeUInt;
begin
  HandlerCalls := 0;
  TakeStackBy(TwoAddressesByTheHeap, Frames);
  Same(3, HandlerCalls, 'calls for two blocks and a free');
  Same(4711, Frames[0], 'innermost frame');
  Same(4712, Frames[1], 'next frame');
  Same(0, Frames[2], 'no third one');
end;

procedure LaneMMsAddresses(ReturnAddresses: PNativeUInt; MaxDepth, SkipFrames: Cardinal);
begin
  Inc(HandlerCalls);
  LaneMM_TakeStack(ReturnAddresses, MaxDepth);
end;

procedure TFastMM5NamesTests.OwnHandlerMayAskForLaneMMsStack;
var
  Frames: array[0..7] of NativeUInt;
begin
  HandlerCalls := 0;
  TakeStackBy(LaneMMsAddresses, Frames);
  Same(3, HandlerCalls, 'calls for two blocks and a free');
  AtLeast(4096, Frames[0], 'innermost frame');
end;

procedure TFastMM5NamesTests.OwnHandlersCanBeRead;
var
  Frames: array[0..15] of NativeUInt;
  Text: array[0..4095] of WideChar;
  Get: TFastMM_GetStackTrace;
  Convert: TFastMM_ConvertStackTraceToText;
begin
  Get := FastMM_GetStackTrace;
  Convert := FastMM_ConvertStackTraceToText;
  Get(@Frames, Length(Frames), 0);
  AssertTrue('a frame', Frames[0] <> 0);
  AssertTrue('its text', Convert(@Frames, Length(Frames), @Text, @Text[High(Text)]) > @Text);
  FastMM_NoOpGetStackTrace(@Frames, Length(Frames), 0);
  AssertTrue('no frame', Frames[0] = 0);
  AssertTrue('no text',
    FastMM_NoOpConvertStackTraceToText(@Frames, Length(Frames), @Text, @Text[High(Text)]) = @Text);
end;

procedure TFastMM5NamesTests.EventLogHasItsName;
begin
  FastMM_SetEventLogFilename(PWideChar(UnicodeString(Path)));
  AssertEquals(Path, UTF8Encode(UnicodeString(FastMM_GetEventLogFilename)));
  FastMM_SetDefaultEventLogFilename;
  Has('_MemoryManager_EventLog.txt', UTF8Encode(UnicodeString(FastMM_GetEventLogFilename)));
end;

procedure TFastMM5NamesTests.EventLogIsDeleted;
begin
  FastMM_SetEventLogFilename(PWideChar(UnicodeString(Path + ' with blanks, and more')));
  AssertFalse('none yet', FastMM_DeleteEventLogFile);
  LaneMM_Configure('event=all:file');
  ReportOverrun(FastMM_DebugGetMem(10));
  AssertTrue('written', FileExists(Path + ' with blanks, and more'));
  AssertTrue('deleted', FastMM_DeleteEventLogFile);
  AssertFalse('gone', FileExists(Path + ' with blanks, and more'));
end;

procedure TFastMM5NamesTests.NumbersRise;
var
  P: Pointer;
  Before: Cardinal;
  Info: TLaneMM_BlockInfo;
begin
  FreeMem(FastMM_DebugGetMem(10));
  Before := FastMM_LastAllocationNumber;
  P := FastMM_DebugGetMem(10);
  AtLeast(Before + 1, FastMM_LastAllocationNumber, 'number');
  AssertTrue(LaneMM_BlockInfo(P, Info));
  Same(FastMM_LastAllocationNumber, Info.Number, 'number of the block');
  FreeMem(P);
end;

procedure TFastMM5NamesTests.NumberToBreakAtIsASetting;
begin
  FastMM_DebugBreakAllocationNumber := 99;
  Same(99, LaneMM_Settings.Values[opBreak], 'setting');
  Same(99, FastMM_DebugBreakAllocationNumber, 'variable');
  FastMM_DebugBreakAllocationNumber := 0;
end;

procedure TFastMM5NamesTests.ScanBeforeEveryOperationIsASetting;
begin
  FastMM_DebugMode_ScanForCorruptionBeforeEveryOperation := True;
  Same(1, LaneMM_Settings.Values[opCheck], 'setting');
  AssertTrue(FastMM_DebugMode_ScanForCorruptionBeforeEveryOperation);
  FastMM_DebugMode_ScanForCorruptionBeforeEveryOperation := False;
  Same(0, LaneMM_Settings.Values[opCheck], 'setting');
end;

procedure TFastMM5NamesTests.EventsHaveTargets;
begin
  FastMM_LogToFileEvents := [mmetDebugBlockFooterCorruption, mmetDebugBlockHeaderCorruption];
  AssertTrue('overrun', etFile in LaneMM_EventTargets(evWriteAfter));
  AssertTrue('underrun', etFile in LaneMM_EventTargets(evWriteBefore));
  AssertFalse('double free', etFile in LaneMM_EventTargets(evDoubleFree));
  AssertTrue(FastMM_LogToFileEvents
    = [mmetDebugBlockFooterCorruption, mmetDebugBlockHeaderCorruption]);
  FastMM_OutputDebugStringEvents := FastMM_OutputDebugStringEvents + [mmetDebugBlockDoubleFree];
  AssertTrue('double free', etScreen in LaneMM_EventTargets(evDoubleFree));
  FastMM_OutputDebugStringEvents := [];
  AssertTrue(FastMM_OutputDebugStringEvents = []);
end;

procedure TFastMM5NamesTests.LeakEventsSwitchTheReportOn;
var
  Before: Boolean;
begin
  Before := ReportMemoryLeaksOnShutdown;
  ReportMemoryLeaksOnShutdown := False;
  FastMM_LogToFileEvents := FastMM_LogToFileEvents + [mmetDebugBlockDoubleFree];
  AssertFalse('not asked for', ReportMemoryLeaksOnShutdown);
  FastMM_LogToFileEvents := FastMM_LogToFileEvents + [mmetUnexpectedMemoryLeakSummary];
  AssertTrue('asked for', ReportMemoryLeaksOnShutdown);
  ReportMemoryLeaksOnShutdown := Before;
end;

procedure TFastMM5NamesTests.VariablesWithOneValueHaveIt;
begin
  FastMM_TextFileEncoding := teUTF8;
  FastMM_MessageBoxEvents := [];
  AssertTrue(FastMM_MessageBoxEvents = []);
  AssertTrue(FastMM_TextFileEncoding = teUTF8);
end;

// In FastMM5's order, as programs store them.
procedure TFastMM5NamesTests.TypesHaveTheirValues;
const
  Events: TFastMM_MemoryManagerEventTypeSet =
    [mmetAnotherThirdPartyMemoryManagerAlreadyInstalled,
    mmetCannotInstallAfterDefaultMemoryManagerHasBeenUsed,
    mmetCannotSwitchToSharedMemoryManagerWithLivePointers, mmetUnexpectedMemoryLeakDetail,
    mmetUnexpectedMemoryLeakSummary, mmetDebugBlockDoubleFree, mmetDebugBlockReallocOfFreedBlock,
    mmetDebugBlockHeaderCorruption, mmetDebugBlockFooterCorruption,
    mmetDebugBlockModifiedAfterFree, mmetVirtualMethodCallOnFreedObject];
  Strategies: array[0..2] of TFastMM_MemoryManagerOptimizationStrategy = (mmosOptimizeForSpeed,
    mmosBalanced, mmosOptimizeForLowMemoryUsage);
  States: array[0..3] of TFastMM_MemoryManagerInstallationState = (mmisDefaultMemoryManagerInUse,
    mmisOtherThirdPartyMemoryManagerInstalled, mmisUsingSharedMemoryManager, mmisInstalled);
  Alignments: TFastMM_MinimumAddressAlignmentSet = [maa8Bytes, maa16Bytes, maa32Bytes,
    maa64Bytes];
  Options: TFastMM_DebugModeOptions = [dmoNeverFreeSmallBlockSpans, dmoNeverMergeFreeMediumBlocks];
var
  Index: Integer;
begin
  AssertTrue('events', Events = [Low(TFastMM_MemoryManagerEventType)
    ..High(TFastMM_MemoryManagerEventType)]);
  for Index := 0 to High(Strategies) do
    Same(Index, Ord(Strategies[Index]), 'strategy');
  for Index := 0 to High(States) do
    Same(Index, Ord(States[Index]), 'state');
  AssertTrue('alignments', Alignments = [Low(TFastMM_MinimumAddressAlignment)
    ..High(TFastMM_MinimumAddressAlignment)]);
  AssertTrue('options', Options = [Low(TFastMM_DebugModeOption)..High(TFastMM_DebugModeOption)]);
end;

function AnsiText(ReturnAddresses: PNativeUInt; MaxDepth: Cardinal; Buffer: PAnsiChar): PAnsiChar;
begin
  Buffer^ := 'x';
  Result := Buffer + 1;
end;

procedure TFastMM5NamesTests.TypesCanBeDeclared;
var
  Legacy: TFastMM_LegacyConvertStackTraceToText;
  Text: array[0..15] of AnsiChar;
  Kind: TFastMM_StringDataType;
  Encoding: TFastMM_TextFileEncoding;
  Order: TFastMM_LogStateToFile_SortOrder;
  Leak: TFastMM_RegisteredMemoryLeak;
begin
  Legacy := AnsiText;
  AssertTrue('a handler of FastMM4', Legacy(nil, 0, @Text) = PAnsiChar(@Text) + 1);
  Kind := sdtUnicodeString;
  Same(2, Ord(Kind), 'kind of string');
  Encoding := teUTF8;
  Same(0, Ord(Encoding), 'encoding');
  Order := soAlphabetical;
  Same(1, Ord(Order), 'order');
  Leak := Default(TFastMM_RegisteredMemoryLeak);
  Same(0, Leak.LeakCount, 'leaks');
end;

initialization
  RegisterTest(TFastMM5Tests);
  RegisterTest(TFastMM5NamesTests);
end.
