/// Tests of LaneMM.Debug, DebugBlocks, DebugCheck and DebugReport: the settings of debug mode, and
/// the mixing of debug blocks with others. Test.DebugMatrix has what debug mode finds.
unit Test.Debug;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools;

type
  TDebugTests = class(TLaneTest)
  strict private
    function Reports: Integer;
    procedure Plant(const Bug: string; Size: NativeInt; const Threads: string);
    procedure SaysWhere(const Heading, What: string);
  published
    procedure DoubleFreeOfANormalBlockIsFound;
    procedure WriteBeforeAndBehindAreTwoFindings;
    procedure WriteAfterFreeIsFoundWhenTheBlockIsUsedAgain;
    procedure WritesAreFoundWhereTheyHappenByGuardPages;
    procedure WritesJustPastTheEndAreFoundByChecks;
    procedure ObjectFreedTwiceIsFound;
    procedure StringReleasedTwiceIsFound;
    procedure CheckAlwaysFindsDamageAtTheNextOperation;
    procedure CheckNowAndThenFindsDamage;
    procedure SampledGuardFindsAnOverrunWithoutDebugMode;
    procedure BlocksThatNoPagesAreLeftForAreThere;
    procedure LaterReportsSayThatTheyMayFollowFromTheFirst;
    procedure ReportsOfOtherBlocksFollowFromNothing;
    procedure AllocationNumberIsReported;
    procedure ChosenSizesAreTraced;
    procedure ChosenNumbersAreTraced;
    procedure ChosenClassesAreTracedWhenTheyAreFreed;
    procedure TraceIsBounded;
    procedure EventsThatAreOffDoNotCountForTraceMost;
    procedure FreesOfUnitsFinalizedLastCountForTraceMost;
    procedure WithoutAChoiceNothingIsTraced;
    procedure MixesOfNewAndFreeMemAreFound;
    procedure MixesOfNewAndFreeMemAreFoundInAllBuilds;
    procedure BacktraceThatLacksAFrameIsNoMix;
    procedure DisposeOfUninitializedFieldsIsFound;
    procedure WhatGoesTogetherIsNoMix;
    procedure RuleEndsTheProgram;
    procedure ExitCodeIsThatOfMemoryErrors;
    procedure MemoryErrorsEndTheProcessWithAbort;
    procedure HardBlocksEndTheProcessAtDamage;
    procedure HardBlocksEndNoCorrectProgram;
    procedure ExitCodeStaysWithoutMemoryErrors;
    procedure ExitCodeOfTheProgramAndOfRulesStay;
    procedure RuleOnceTellsOnce;
    procedure RuleSaysWhereReportsGo;
  end;

  /// Debug blocks in this program.
  TDebugBlocksTests = class(TQuietTest)
  strict private
    procedure Churn;
    procedure FillAndFree(Size: NativeUInt);
    procedure WritesAreReported(Size: NativeUInt; InBetween: Integer);
    procedure StaysOutside;
    procedure GuardByMappings;
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
    procedure StatusCountsDebugBlocks;
    procedure GroupIsNotedInItsScope;
    procedure ScopesOfGroupsNest;
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
  LaneMM.SettingsState, LaneMM.DebugState, LaneMM.Bits, LaneMM.Shards, LaneMM.DebugSpans,
  LaneMM.Debug, LaneMM.Groups, LaneMM.GuardPages, LaneMM.RtlRecords;

const
  GotHeading = 'Allocated by thread';
  FreedHeading = 'Freed by thread';
  HereHeading = 'Occurred at';
  FoundHeading = 'Detected at';
  Head = 'LaneMM: process ';

var
  Bugs: TTestProgram;

function Program_: TTestProgram;
begin
  if Bugs = nil then
    Bugs := TTestProgram.Create('DebugBugs', '-O1 -gl -Xs-');
  Result := Bugs;
end;

function TDebugTests.Reports: Integer;
var
  Start: Integer;
begin
  Result := 0;
  Start := Pos(Head, Program_.Errors);
  while Start > 0 do
  begin
    Inc(Result);
    Start := PosEx(Head, Program_.Errors, Start + 1);
  end;
end;

// The line of the comment stands in the stack below the heading.
procedure TDebugTests.SaysWhere(const Heading, What: string);
var
  Text: string;
  First, Last: Integer;
begin
  Text := Program_.Errors;
  Has(Heading, Text);
  First := Pos(Heading, Text);
  Last := Pos(LineEnding, Text, First) + 1;
  while Copy(Text, Last, 6) = '      ' do
    Last := Pos(LineEnding, Text, Last) + 1;
  Has(Format('DebugBugs.lpr:%d'#10, [Program_.PlantedLine(What)]),
    Copy(Text, First, Last - First));
end;

procedure TDebugTests.Plant(const Bug: string; Size: NativeInt; const Threads: string);
begin
  Program_.Run('debug', [Bug, IntToStr(Size), Threads]);
end;

procedure TDebugTests.DoubleFreeOfANormalBlockIsFound;
begin
  Plant('normal', 300, '0');
  Has('Double free: the block was already freed.'#10, Program_.Errors);
  Has(': 320 bytes usable, allocated while debug mode was off.'#10, Program_.Errors);
  SaysWhere(HereHeading, 'here');
end;

procedure TDebugTests.WriteBeforeAndBehindAreTwoFindings;
begin
  Plant('both', 20, '0');
  Same(2, Reports, 'reports');
  Has('  Modified: 1 byte at offset -1.'#10, Program_.Errors);
  Has('  Modified: 1 byte at offset 22.'#10, Program_.Errors);
end;

procedure TDebugTests.WriteAfterFreeIsFoundWhenTheBlockIsUsedAgain;
begin
  Plant('reuse', 300, '0');
  Has('  Modified: 1 byte at offset 0.'#10, Program_.Errors);
  SaysWhere(FreedHeading, 'freed');
end;

procedure TDebugTests.WritesAreFoundWhereTheyHappenByGuardPages;
const
  Advice = #10'  LANEMM=debug,guard=pages reports such a write where it happens.'#10;
begin
  Plant('reuse', 300, '0');
  Has(Advice, Program_.Errors);
  Plant('after', 304, '0');
  Has(Advice, Program_.Errors);
  Program_.Run('debug,guard=pages', ['after', '304']);
  Has(' at offset 304 of a block of 304 bytes.'#10, Program_.Errors);
  HasNot('  LANEMM=debug', Program_.Errors);
end;

// The page behind a block begins at a multiple of 16 bytes.
procedure TDebugTests.WritesJustPastTheEndAreFoundByChecks;
const
  Advice = #10'  Guard pages miss it, as they begin behind it, at a multiple of 16 bytes:'
    + ' LANEMM=debug,check=always narrows it down.'#10;
var
  Size: string;
begin
  for Size in TStringArray.Create('24', '104') do
  begin
    Plant('after', StrToInt(Size), '0');
    Has(Advice, Program_.Errors);
    HasNot('guard=pages', Program_.Errors);
    Program_.Run('debug,guard=pages', ['after', Size]);
    Has(Format('  Modified: 2 bytes at offset %s.'#10, [Size]), Program_.Errors);
    Has(Advice, Program_.Errors);
    Program_.Run('debug,check=always', ['after', Size]);
    HasNot('narrows it down', Program_.Errors);
  end;
end;

// Its count of references is bytes of freefill: positive, so the second release decrements it.
procedure TDebugTests.StringReleasedTwiceIsFound;
begin
  Plant('string', 100, '0');
  Same(1, Reports, 'reports');
  Has(#10'Write after free: bytes of a freed block were modified.'#10, Program_.Errors);
  SaysWhere(FreedHeading, 'released');
end;

// The line about a call of a method of a freed object: an address of 32 bits has no space for the mark
// of such an object.
function FreedCallLine(const Method: string): string;
begin
  Result := 'Use after free: the contents of a freed block were used as an address.'#10;
  if WordSize = 8 then
    Result := Format('Use after free: virtual method %s of a freed object was called.'#10, [Method]);
end;

procedure TDebugTests.ObjectFreedTwiceIsFound;
begin
  Plant('again', 0, '0');
  Same(1, Reports, 'reports');
  Has(#10 + FreedCallLine('SYSTEM.TOBJECT.DESTROY'), Program_.Errors);
  SaysWhere(HereHeading, 'again');
end;

procedure TDebugTests.CheckAlwaysFindsDamageAtTheNextOperation;
begin
  Program_.Run('debug,check=always', ['early', '100']);
  Same(1, Reports, 'reports');
  SaysWhere(GotHeading, 'got');
  SaysWhere(FoundHeading, 'next');
  Program_.Run('debug,check=always', ['none', '100']);
  AssertEquals('', Program_.Errors);
end;

procedure TDebugTests.CheckNowAndThenFindsDamage;
begin
  Program_.Run('debug,check=10', ['after', '3000', '2']);
  Same(1, Reports, 'reports');
  Program_.Run('debug,check=1000', ['none', '3000', '8']);
  AssertEquals('', Program_.Errors);
end;

procedure TDebugTests.SampledGuardFindsAnOverrunWithoutDebugMode;
begin
  Program_.Run('guard=sample:2', ['overrun', '5000']);
  Same(1, Reports, 'reports');
  SaysWhere(GotHeading, 'got');
  SaysWhere(HereHeading, 'overrun');
end;

procedure TDebugTests.BlocksThatNoPagesAreLeftForAreThere;
begin
  Program_.Run('debug,guard=pages', ['many', '20']);
  AssertEquals('', Program_.Errors);
  Program_.EndedWith(0);
  Program_.Run('debug,guard=pages,quarantine=256M', ['many', '20', '2']);
  AssertEquals('', Program_.Errors);
  Program_.EndedWith(0);
end;

// Returns the report with this number, from 1, of the last run.
function ReportAt(Number: Integer): string;
var
  Parts: TStringArray;
begin
  Parts := Program_.Errors.Split([Head]);
  Result := '';
  if Number < Length(Parts) then
    Result := Parts[Number];
end;

const
  Follows = #10'  May follow from the error in this block that was reported before.'#10;
  LeaksFollow = #10'  These leaks may follow from the memory errors reported before.'#10;

procedure TDebugTests.LaterReportsSayThatTheyMayFollowFromTheFirst;
begin
  Program_.Run('debug,leaks', ['chain', '100']);
  Same(3, Reports, 'reports');
  Has(FreedCallLine('DEBUGBUGS.TPART.ACT'), ReportAt(1));
  HasNot('ollow from', ReportAt(1));
  Has('Write after free: ', ReportAt(2));
  Has(Follows, ReportAt(2));
  Has('Memory leaks: 1 block, 100 bytes:', ReportAt(3));
  Has(LeaksFollow, ReportAt(3));
  Program_.Run('debug', ['twice', '100']);
  Same(2, Reports, 'reports of the same mistake');
  HasNot(Follows, ReportAt(1));
  Has(Follows, ReportAt(2));
end;

procedure TDebugTests.ReportsOfOtherBlocksFollowFromNothing;
begin
  Program_.Run('debug', ['apart', '100']);
  Same(2, Reports, 'reports');
  HasNot('ollow from', ReportAt(1));
  HasNot('ollow from', ReportAt(2));
  Program_.Run('debug,leaks', ['lost', '100']);
  Same(1, Reports, 'reports of a leak');
  HasNot('ollow from', ReportAt(1));
end;

procedure TDebugTests.AllocationNumberIsReported;
begin
  Program_.Run('debug,break=3', ['none', '100']);
  Same(1, Reports, 'reports');
  Has('Allocation number 3 was reached.'#10, Program_.Errors);
end;

procedure TDebugTests.ChosenSizesAreTraced;
begin
  Program_.Run('debug,trace:size=12340-12350', ['clean', '12345']);
  Same(2, Reports, 'reports');
  Has('Allocation log: a block was allocated.'#10, Program_.Errors);
  SaysWhere(GotHeading, 'got');
  Has('Allocation log: a block was freed.'#10, Program_.Errors);
  SaysWhere(FreedHeading, 'freed');
  Program_.Run('debug,trace:size=12346-12350', ['clean', '12345']);
  Same(0, Reports, 'reports of others');
  Program_.Run('debug,trace:size=12345,event=allocation:off', ['clean', '12345']);
  Same(1, Reports, 'reports of frees');
end;

procedure TDebugTests.ChosenNumbersAreTraced;
begin
  Program_.Run('debug,trace:number=3-5,event=free:off', ['clean', '100']);
  Same(3, Reports, 'reports');
  Has('allocation number 3,', Program_.Errors);
  Has('allocation number 5,', Program_.Errors);
  Program_.Run('debug,trace:number=3-5,trace:size=1000000,event=free:off', ['clean', '100']);
  Same(0, Reports, 'reports of both choices');
end;

procedure TDebugTests.ChosenClassesAreTracedWhenTheyAreFreed;
begin
  Program_.Run('debug,trace:class=*.tpart*', ['objects', '100']);
  Same(3, Reports, 'reports');
  Has('Class: DebugBugs.TPart', Program_.Errors);
  Program_.Run('debug,trace:class=TPart', ['objects', '100']);
  Same(3, Reports, 'reports without the unit');
  Program_.Run('debug,trace:class=TPar', ['objects', '100']);
  Same(0, Reports, 'reports of another class');
end;

procedure TDebugTests.TraceIsBounded;
begin
  Program_.Run('debug,trace,trace:most=7', ['objects', '100']);
  Same(8, Reports, 'reports');
  Has(' not logged after the first 7.'#10,
    Program_.Errors);
end;

procedure TDebugTests.EventsThatAreOffDoNotCountForTraceMost;
const
  Left = 'Allocation log: %d events not logged after the first 2.'#10;
  Kinds: array[0..1] of string = ('event=allocation:off', 'event=free:off');
var
  Off: string;
  All: Integer;
begin
  for Off in Kinds do
  begin
    Program_.Run('debug,trace,' + Off, ['objects', '100']);
    All := Reports;
    AtLeast(4, All, Off);
    Program_.Run('debug,trace,trace:most=2,' + Off, ['objects', '100']);
    Same(3, Reports, 'reports, ' + Off);
    Has(Format(Left, [All - 2]), Program_.Errors);
  end;
  Program_.Run('debug,trace,trace:most=2,event=allocation:once,event=free:once', ['objects', '100']);
  Same(2, Reports, 'reports of one event of each kind');
end;

procedure TDebugTests.FreesOfUnitsFinalizedLastCountForTraceMost;
var
  Late: TTestProgram;
  All: Integer;
begin
  Late := TTestProgram.Create('LateFrees', '-O1 -gl -Xs-');
  Late.Run('debug,leaks,event=leaks:off,trace', []);
  All := High(Late.Errors.Split(['Allocation log: a block was ']));
  AtLeast(5, All, 'events');
  Late.Run('debug,leaks,event=leaks:off,trace,trace:most=1', []);
  Has(Format('%d events not logged after the first 1.', [All - 1]), Late.Errors);
  Late.Free;
end;

procedure TDebugTests.WithoutAChoiceNothingIsTraced;
begin
  Program_.Run('debug,trace:size=0,trace:class=0,trace:number=0', ['objects', '100']);
  AssertEquals('', Program_.Errors);
end;

procedure TDebugTests.MixesOfNewAndFreeMemAreFound;
begin
  Program_.Run('debug,mixes', ['new', '100']);
  Same(1, Reports, 'reports');
  Has('Mismatched free: allocated by New, freed by FreeMem: ', Program_.Errors);
  SaysWhere(GotHeading, 'new');
  SaysWhere(FreedHeading, 'freemem');
  Program_.Run('debug', ['new', '100']);
  AssertEquals('', Program_.Errors);
end;

// Each with the same work that is correct.
procedure TDebugTests.MixesOfNewAndFreeMemAreFoundInAllBuilds;
const
  Builds: array[0..3] of string = ('-O1 -gl -Xs-', '-O-', '-O4 -Xs-', '-O1 -Cg -gl -Xs-');
  Mistakes: array[0..1] of string = ('new', 'nested');
var
  Build, Mistake: string;
  Built: TTestProgram;
begin
  for Build in Builds do
  begin
    Built := TTestProgram.Create('DebugBugs', Build);
    for Mistake in Mistakes do
    begin
      // There the address of a type, or of an inline call, is computed from a register: what is not
      // certain is no mistake.
      if ((WordSize = 4) or HasInlineCalls) and (Pos('-Cg', Build) > 0) then
        Continue;
      Built.Run('debug,mixes', [Mistake, '100']);
      Has('Mismatched free: allocated by New, freed by FreeMem: managed fields were not'
        + ' finalized.'#10, Built.Errors);
    end;
    Built.Run('debug,mixes', ['unmixed', '100']);
    AssertEquals(Build, '', Built.Errors);
    Built.Free;
  end;
end;

procedure TDebugTests.DisposeOfUninitializedFieldsIsFound;
begin
  Program_.Run('debug,mixes', ['dispose', '100']);
  Same(1, Reports, 'reports');
  Has('Use of uninitialized memory: ', Program_.Errors);
  SaysWhere(GotHeading, 'getmem');
  SaysWhere(HereHeading, 'dispose');
end;

procedure TDebugTests.WhatGoesTogetherIsNoMix;
begin
  Program_.Run('debug,mixes', ['unmixed', '100']);
  AssertEquals('', Program_.Errors);
end;

procedure TDebugTests.BacktraceThatLacksAFrameIsNoMix;
var
  Misread: TTestProgram;
begin
  Misread := TTestProgram.Create('MisreadFrames', '');
  try
    Misread.Run('debug,mixes', []);
    AssertEquals('', Misread.Errors);
  finally
    Misread.Free;
  end;
end;

procedure TDebugTests.RuleEndsTheProgram;
begin
  Program_.Run('debug,event=double-free:halt=7', ['double-free', '100']);
  Same(1, Reports, 'reports');
  Program_.EndedWith(7);
end;

procedure TDebugTests.ExitCodeIsThatOfMemoryErrors;
const
  Bugs: array[0..4] of string = ('double-free', 'after', 'both', 'overrun', 'string');
var
  Bug: string;
begin
  for Bug in Bugs do
  begin
    Program_.Run('debug,debug:exit=9', [Bug, '100']);
    Program_.EndedWith(9, Bug);
    Program_.Run('debug', [Bug, '100']);
    Program_.EndedWith(0, Bug + ' without the setting');
  end;
  Program_.Run('debug,mixes,debug:exit=9', ['new', '100']);
  Program_.EndedWith(9, 'mismatched free');
  Program_.Run('debug,leaks,debug:exit=9', ['overrun', '100']);
  Program_.EndedWith(9, 'leaks alone have no exit code');
end;

procedure TDebugTests.MemoryErrorsEndTheProcessWithAbort;
const
  // The signal of abort, as TProcess has it; the exit code of Windows' C library.
  Aborted = {$ifdef MSWINDOWS} 3 {$else} -6 {$endif};
  Bugs: array[0..2] of string = ('double-free', 'after', 'overrun');
  ReleaseBugs: array[0..1] of string = ('double-free', 'corrupt');
var
  Bug: string;
begin
  for Bug in Bugs do
  begin
    Program_.Run('debug,debug:abort', [Bug, '100']);
    Program_.EndedWith(Aborted, Bug);
    Has('LaneMM: process', Program_.Errors);
    Program_.Run('debug,abort,debug:exit=9', [Bug, '100']);
    Program_.EndedWith(Aborted, Bug + ' with `abort`');
  end;
  for Bug in ReleaseBugs do
  begin
    Program_.Run('abort', [Bug, '100']);
    Program_.EndedWith(Aborted, Bug + ' in release mode');
    Has('LaneMM: process', Program_.Errors);
    Program_.Run('', [Bug, '100']);
    Program_.EndedWith(0, Bug + ' without the setting');
  end;
  Program_.Run('debug,debug:abort,trace,break=3', ['objects', '100']);
  Program_.EndedWith(0, 'reports that are no errors');
  Program_.Run('abort,leaks', ['lost', '100']);
  Program_.EndedWith(0, 'leaks');
end;

procedure TDebugTests.HardBlocksEndTheProcessAtDamage;
const
  Aborted = {$ifdef MSWINDOWS} 3 {$else} -6 {$endif};
  // Of less than a page, and of more. The bugs `far` and `overrun` write behind the bytes that are
  // checked in a small block.
  Sizes: array[0..1] of string = ('100', '30000');
  Bugs: array[0..8] of string = ('far', 'overrun', 'double-free', 'after', 'shortened', 'corrupt',
    'waiting', 'ended', 'wrong-size');
  Findings: array[0..8] of string = ('Heap block overrun', 'Heap block overrun', 'Double free: the',
    'Heap block overrun', 'Heap block overrun', 'Write after free', 'Write after free',
    'Write after free', 'Wrong size');
var
  Size: string;
  Index: Integer;
begin
  for Size in Sizes do
    for Index := 0 to High(Bugs) do
      if (Index > 1) or (Size <> Sizes[0]) then
      begin
        Program_.Run('hard', [Bugs[Index], Size]);
        Program_.EndedWith(Aborted, Bugs[Index] + ' ' + Size);
        Has('LaneMM: process', Program_.Errors);
        Has(Findings[Index], Program_.Errors);
      end;
end;

procedure TDebugTests.HardBlocksEndNoCorrectProgram;
var
  Setting, Use: string;
begin
  for Setting in TStringArray.Create('hard', 'hard,guard=sample:1', 'hard,erase=free') do
    for Use in TStringArray.Create('sizes', 'scopes') do
    begin
      Program_.Run(Setting, [Use, '100']);
      Program_.EndedWith(0, Use);
      AssertEquals(Setting + ' ' + Use, '', Program_.Errors);
    end;
  for Use in TStringArray.Create('none', 'objects', 'lost') do
  begin
    Program_.Run('hard', [Use, '100']);
    Program_.EndedWith(0, Use);
    AssertEquals(Use, '', Program_.Errors);
  end;
  Program_.Run('hard', ['sizes', '30000']);
  Program_.EndedWith(0, 'large blocks');
  Program_.Run('hard', ['regions', '100']);
  Program_.EndedWith(0, 'blocks of regions');
  AssertEquals('output', '', Program_.Errors);
  Program_.Run('hard,leaks,leaks:exit=9', ['objects', '100']);
  Program_.EndedWith(0, 'a block that waits is no leak');
end;

procedure TDebugTests.ExitCodeStaysWithoutMemoryErrors;
begin
  Program_.Run('debug,debug:exit=9', ['none', '100']);
  Program_.EndedWith(0, 'no error');
  Program_.Run('debug,debug:exit=9,trace,break=3', ['objects', '100']);
  Program_.EndedWith(0, 'reports that are no errors');
  Program_.Run('debug,debug:exit=9,event=all:off', ['after', '100']);
  Program_.EndedWith(0, 'an error that is not reported');
end;

procedure TDebugTests.ExitCodeOfTheProgramAndOfRulesStay;
begin
  Program_.Run('debug,debug:exit=9,event=double-free:halt=7', ['double-free', '100']);
  Program_.EndedWith(7, 'exit code of the rule');
  Program_.Run('debug,debug:exit=9,leaks,leaks:exit=5', ['overrun', '100']);
  Program_.EndedWith(5, 'exit code of leaks');
end;

procedure TDebugTests.RuleOnceTellsOnce;
begin
  Program_.Run('debug,event=double-free:once', ['twice', '100']);
  Same(1, Reports, 'once');
  Program_.Run('debug', ['twice', '100']);
  Same(2, Reports, 'always');
end;

procedure TDebugTests.RuleSaysWhereReportsGo;
begin
  Program_.Run('debug,event=all:file', ['both', '100']);
  AssertEquals('', Program_.Errors);
  Has('1 byte at offset -1', Program_.Written('EventLog.txt'));
  Program_.Run('debug,event=all:off', ['both', '100']);
  AssertEquals('', Program_.Errors);
  AssertEquals('', Program_.Written('EventLog.txt'));
end;

// ---------------------------------------------------------------------------- in this program

var
  KeptRules: TEventRules;
  Told: array[TEventKind] of Integer;

procedure CountEvent(Kind: TEventKind; Text: PAnsiChar; Length: NativeUInt);
begin
  InterlockedIncrement(Told[Kind]);
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

procedure TDebugBlocksTests.MemoryThatNobodyTouchesIsNotTaken;
const
  Reserved = NativeUInt(1) shl {$ifdef CPU64} 31 {$else} 29 {$endif};
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
  Reserved = NativeUInt(1) shl {$ifdef CPU64} 31 {$else} 29 {$endif};
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
const
  Reserved = NativeUInt(1) shl {$ifdef CPU64} 31 {$else} 29 {$endif};
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
  Settings.Values[opGuard] := 0;
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
  try
    GetMem(P, Size);
    P[Size div 2] := 42;
    FreeMem(P);
    Same(Debug.FreeFill, P[Size div 2], 'byte in the middle');
  finally
    Settings.Values[opErase] := 0;
  end;
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
    Settings.Values[opErase] := 0;
    Settings.Values[opGuard] := 0;
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
  try
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
  finally
    Settings.Values[opGuard] := 0;
    Debug.Quarantine.MostBytes := Settings.Values[opQuarantine];
  end;
end;

procedure TDebugBlocksTests.GuardedBlockUsedAgainKeepsItsPages;
var
  Blocks: array[0..299] of PByte;
  Turn, Index: Integer;
  Sign: Byte;
begin
  Settings.Values[opGuard] := 1;
  Debug.Quarantine.MostBytes := 1 shl 18;
  try
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
  finally
    Settings.Values[opGuard] := 0;
    Debug.Quarantine.MostBytes := Settings.Values[opQuarantine];
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
  try
    for Index := 0 to Count - 1 do
    begin
      GetMem(Blocks[Index], 16);
      Inc(Result, Ord(not OsRead(NativeUInt(Blocks[Index]) + 16, @Sign, 1)));
    end;
  finally
    Settings.Values[opGuard] := 0;
  end;
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

procedure TDebugBlocksTests.GuardByMappings;
const
  Count = 500;
  KeptSpans = 256; // at most; those of before have marked pages
var
  Mappings: Integer;
begin
  Process.GuardMappings := 1;
  Same(Count, GuardedAmong(Count, Mappings), 'blocks with guard pages');
  AtLeast(2 * (Count - KeptSpans) - 20, Mappings, 'mappings');
  GuardedAmong(Count, Mappings); // of the spans that were kept
end;

procedure TDebugBlocksTests.GuardPagesAreMappingsWhereTheKernelMarksNone;
begin
  AssertEquals('exit code', 0, RunInChild(GuardByMappings));
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

var
  Reported: string;

procedure KeepReport(Kind: TEventKind; Text: PAnsiChar; Length: NativeUInt);
begin
  SetString(Reported, Text, Length);
end;

procedure TDebugBlocksTests.ReportOfGroupsLeavesOutTheOthers;
var
  P: array[1..3] of Pointer;
  Kept: TEventRules;
  Index: Integer;
begin
  for Index := 1 to 3 do
  begin
    LaneMM_BeginGroup(600 + Index);
    GetMem(P[Index], 12340 + Index);
    LaneMM_EndGroup;
  end;
  LaneMM_SetGroupName(602, 'middle');
  Kept := Report.Rules;
  LaneMM_Configure('event=leaks:callback');
  LaneMM_OnEvent(KeepReport);
  Same(1, LaneMM_ReportGroupsInUse(602, 602), 'blocks');
  LaneMM_OnEvent(nil);
  Report.Rules := Kept;
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
var
  Kept: TEventRules;
begin
  Kept := Report.Rules;
  Traced := 0;
  Debug.LoggedCount := 0;
  LaneMM_OnEvent(CountTraced);
  LaneMM_Configure('trace:size=54321,event=allocation:callback,event=free:callback');
  try
    FreeMem(GetMem(54321));
    FreeMem(GetMem(54320));
  finally
    LaneMM_Configure('trace:size=0');
    LaneMM_OnEvent(nil);
    Report.Rules := Kept;
  end;
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
  Kept: TEventRules;
  First, Next, Index: Integer;
begin
  Kept := Report.Rules;
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
  try
    Blocks[First][32] := 1;
    FreeMem(Blocks[Next]);
  finally
    LaneMM_OnEvent(nil);
    Report.Rules := Kept;
  end;
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
  Kept: TEventRules;
  P: PByte;
begin
  Kept := Report.Rules;
  Calls := 0;
  LaneMM_OnEvent(FreeWrong);
  LaneMM_Configure('event=all:callback');
  try
    GetMem(P, 20);
    P[20] := 1;
    FreeMem(P);
    Same(1, Calls, 'calls');
    GetMem(P, 20);
    P[20] := 1;
    FreeMem(P);
    Same(2, Calls, 'calls after that');
  finally
    LaneMM_OnEvent(nil);
    Report.Rules := Kept;
  end;
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
  RegisterTest(TDebugTests);
  RegisterTest(TDebugBlocksTests);
finalization
  Bugs.Free;
end.
