/// Tests of LaneMM.SettingsState, LaneMM.UnwindCache and LaneMM.BacktraceTable.
unit Test.UnwindCache;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.Layout, LaneMM.StacksState, LaneMM.UnwindCache;

type
  TUnwindCacheTests = class(TLaneTest)
  strict private
    Cache: TUnwindCache;
    Random: TGenerator;
    Looks: Integer;
    Step: TStepCall;
    UsedTable: NativeUInt;
    UsedVisit: TPlainProcedure;
    function TakeHere(Frame: NativeUInt): Cardinal;
    procedure Look;
    procedure WanderOn(Depth: Integer);
    procedure LeftHand(Depth: Integer; const Room: array of Byte);
    function RightHand(Depth: Integer): string; virtual;
    procedure Wander;
    procedure LookTwice;
    function KeptPath: PCachedPath;
    procedure FindOrTake;
    {$ifdef CPUX86_64}
    procedure CallFindOrTake;
    procedure LookFrom(Line: Integer);
    function IsFoundAsTheLast(const Room: array of Byte): Boolean;
    {$endif}
    procedure MarkNodes(Number: Cardinal);
    procedure TakeCallerTwice;
    procedure UseAnotherTable(NodeCount: NativeUInt);
    procedure FillTable(out Gone: Cardinal);
    procedure ExpectAComparison(Word: PStackWord; Frame: NativeUInt);
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure WhatIsReadIsWhatWasWalked;
    {$ifdef CPUX86_64}
    procedure RulesForEveryStackLeadToTheSameFrames;
    procedure PathTakenLastIsComparedBeforeRulesAreFollowed;
    procedure EachCallerOfOneRoutineHasItsPath;
    {$endif}
    procedure NodeThatWasTakenIsKept;
    procedure EachThreadHasItsOwnStack;
    procedure RecordOfAnEndedThreadCanBeUsed;
    procedure SamePlaceHasTheSameNumber;
    procedure ChangedWordOfAnInnerFrameKeepsTheOuterOnes;
    procedure EveryWordOfAPathIsCompared;
    procedure StackIsReadAsItWasKept;
    procedure StackOfAWrongNumberIsNone;
    procedure StackThatDoesNotFitIsNoneAndNoPartOfIt;
    procedure InnermostFramesOfOneThatDoesNotFitAreKept;
    procedure RecursionIsFoldedInAWellFilledTable;
    procedure ListsOfAWellFilledTableAreShort;
    procedure BacktraceOfAnEmptyTableIsFoundInAFullOne;
    procedure FullTableServesAgainWhatNoBlockUses;
    procedure NumberOfASweptBacktraceReadsAsNone;
    procedure CallersOfAUsedBacktraceAreKept;
    procedure NumbersFromBeforeASweepAreNotHandedOut;
    procedure SweepsMixNoBacktraces;
  end;

implementation

uses
  SysUtils, Classes, testregistry, LaneMM.Atomic, LaneMM.SettingsState, LaneMM.BacktraceTable, LaneMM.Unwind;

const
  // Not so many that the table of stacks is full.
  MostLooks = 3000;

procedure TUnwindCacheTests.SetUp;
begin
  inherited SetUp;
  AssertTrue(BacktracesStart);
  FillChar(Cache, SizeOf(Cache), 0);
  Random.Start(TestSeed);
  Looks := 0;
  Step := nil;
end;

procedure TUnwindCacheTests.TearDown;
begin
  if UsedTable <> 0 then
  begin
    Stacks.Table := UsedTable;
    Stacks.VisitNumbers := UsedVisit;
  end;
  UsedTable := 0;
  inherited TearDown;
end;

function TUnwindCacheTests.TakeHere(Frame: NativeUInt): Cardinal;
begin
  Stacks.StepFrame := Step;
  Result := UnwindCacheFind(Cache, Frame, StackEnd(Frame));
  if Result = 0 then
    Result := UnwindCacheTake(Cache, Frame, StackEnd(Frame));
  Stacks.StepFrame := nil;
end;

// The walk begins at the caller, BacktraceTake's in this routine.
procedure TUnwindCacheTests.Look;
var
  Walked, Kept: TBacktrace;
  Index, Most: Integer;
begin
  Inc(Looks);
  AssertTrue(BacktraceRead(TakeHere(NativeUInt(get_frame)), Kept));
  BacktraceTake(Walked);
  Most := Walked.Count - 1;
  if Most > Integer(Kept.Count) then
    Most := Kept.Count;
  if Walked.Frames[Most] = CutFrame then
    Dec(Most)
  else
    Same(Walked.Count - 1, Kept.Count, 'frames');
  AtLeast(3, Most, 'frames');
  for Index := 0 to Most - 1 do
    if Walked.Frames[Index + 1] <> Kept.Frames[Index] then
      Fail('frame %d of look %d, seed %d', [Index, Looks, TestSeed]);
end;

// Frames of several sizes, with and without managed variables.
procedure TUnwindCacheTests.LeftHand(Depth: Integer; const Room: array of Byte);
var
  Bytes: array[0..300] of Byte;
begin
  FillChar(Bytes, SizeOf(Bytes), Length(Room));
  WanderOn(Depth);
  if Bytes[Depth] > Length(Room) then
    Look;
end;

function TUnwindCacheTests.RightHand(Depth: Integer): string;
begin
  Result := IntToStr(Depth);
  WanderOn(Depth);
  if Result = '-1' then
    Look;
end;

procedure TUnwindCacheTests.WanderOn(Depth: Integer);
var
  Turn: Integer;
begin
  if Looks >= MostLooks then
    Exit;
  if Random.Below(4) = 0 then
    Look;
  for Turn := 0 to Integer(Random.Below(3)) do
    if Depth > 0 then
      case Random.Below(4) of
        0: LeftHand(Depth - 1, [1, 2, 3]);
        1: RightHand(Depth - 1);
        2: LeftHand(Depth div 2, []);
      else
        Look;
      end;
  if Random.Below(4) = 0 then
    Look;
end;

procedure TUnwindCacheTests.Wander;
begin
  while Looks < MostLooks do
    WanderOn(Random.Below(60));
end;

procedure TUnwindCacheTests.WhatIsReadIsWhatWasWalked;
begin
  Wander;
end;

{$ifdef CPUX86_64}
// As the tables of modules in C, whose rules are not checked against the stack.
function StepByTable(var Walk: TUnwind; out Rule: TUnwindRule): Boolean;
var
  Step: TStepCall;
begin
  Step := Stacks.StepFrame;
  Stacks.StepFrame := nil;
  Result := UnwindStep(Walk, Rule);
  Stacks.StepFrame := Step;
  Rule.Trust := rtExact;
end;

procedure TUnwindCacheTests.RulesForEveryStackLeadToTheSameFrames;
begin
  Step := StepByTable;
  Wander;
end;

// Takes a path from this routine, and marks it. It is found where no rule is known and it was taken
// last; returns whether it is not found where another one was.
function TUnwindCacheTests.IsFoundAsTheLast(const Room: array of Byte): Boolean;
const
  Mark = 12345678;
var
  Frame: NativeUInt;
  Turn: Integer;
  Path: PCachedPath;
begin
  Frame := NativeUInt(get_frame);
  FillChar(Cache, SizeOf(Cache), 0);
  for Turn := 1 to 3 do
    TakeHere(Frame);
  for Path in Cache.Recent do
    if Path <> nil then
      Path^.Number := Mark;
  FillChar(Cache.Known, SizeOf(Cache.Known), 0);
  Same(Mark, TakeHere(Frame), 'number of the path');
  FillChar(Cache.Recent, SizeOf(Cache.Recent), 0);
  Result := TakeHere(Frame) <> Mark;
end;

procedure TUnwindCacheTests.PathTakenLastIsComparedBeforeRulesAreFollowed;
var
  Room: array[0..99] of Byte;
begin
  Step := StepByTable;
  AssertTrue('by the rules', IsFoundAsTheLast([]) or IsFoundAsTheLast(Room));
end;
{$endif}

procedure TUnwindCacheTests.FindOrTake;
var
  Frame: NativeUInt;
begin
  Frame := NativeUInt(get_frame);
  if UnwindCacheFind(Cache, Frame, StackEnd(Frame)) <> 0 then
    Exit;
  Inc(Looks);
  UnwindCacheTake(Cache, Frame, StackEnd(Frame));
end;

{$ifdef CPUX86_64}
procedure TUnwindCacheTests.CallFindOrTake;
begin
  FindOrTake;
end;

procedure TUnwindCacheTests.LookFrom(Line: Integer);
begin
  if Line = 1 then
    CallFindOrTake
  else
    CallFindOrTake;
end;

// Of two calls in turn none takes the place of the other, as those of a run-time library's routine
// by two routines of the program.
procedure TUnwindCacheTests.EachCallerOfOneRoutineHasItsPath;
var
  Turn: Integer;
begin
  Turn := 0;
  repeat // a for loop would be unrolled: a caller for each turn
    if Turn = 5 then
      Looks := 0;
    LookFrom(1);
    LookFrom(2);
    Inc(Turn);
  until Turn = 10;
  Same(0, Looks, 'unwinds');
end;
{$endif}

procedure TUnwindCacheTests.EachThreadHasItsOwnStack;
begin
  InThread(Wander);
end;

// As when the record of a heap is used again: the stack has another place, or the same.
procedure TUnwindCacheTests.RecordOfAnEndedThreadCanBeUsed;
var
  Turn: Integer;
begin
  for Turn := 1 to 20 do
  begin
    InThread(LookTwice);
    LookTwice;
  end;
end;

procedure TUnwindCacheTests.LookTwice;
begin
  Look;
  Look;
end;

procedure TUnwindCacheTests.SamePlaceHasTheSameNumber;
var
  Numbers: array[0..2] of Cardinal;
  Index: Integer;
begin
  for Index := 0 to 2 do
  begin
    if Index = 2 then
      FillChar(Cache, SizeOf(Cache), 0);
    Numbers[Index] := TakeHere(NativeUInt(get_frame));
  end;
  AssertTrue(Numbers[0] > 0);
  Same(Numbers[0], Numbers[1], 'number');
  Same(Numbers[0], Numbers[2], 'number');
end;

procedure TUnwindCacheTests.MarkNodes(Number: Cardinal);
var
  Index: Integer;
begin
  for Index := 0 to KnownCount - 1 do
    Cache.Calls[Index].Number := Number;
end;

// The stack seems to end above the caller: of more than one node, one may get the place of another. And
// the caller is none of the test driver's, which would be kept as one that has no caller itself.
procedure TUnwindCacheTests.TakeCallerTwice;
var
  Frame, Limit: NativeUInt;
  Mark: Cardinal;
begin
  Frame := NativeUInt(get_frame);
  Limit := Frame + 2 * SizeOf(Pointer);
  Mark := BacktraceExtend(0, 4711);
  UnwindCacheTake(Cache, Frame, Limit);
  Same(1, Cache.Count, 'frames');
  MarkNodes(Mark);
  Cache.Count := 0;
  UnwindCacheTake(Cache, Frame, Limit);
  Same(Mark, Cache.Steps[0].Number, 'number of the node');
end;

procedure TUnwindCacheTests.NodeThatWasTakenIsKept;
begin
  TakeCallerTwice;
end;

// The mark stays where the outermost frame is not walked again.
procedure TUnwindCacheTests.ChangedWordOfAnInnerFrameKeepsTheOuterOnes;
const
  Mark = 12345678;
var
  Word: PStackWord;
begin
  TakeHere(NativeUInt(get_frame));
  AtLeast(3, Cache.Count, 'frames');
  Cache.Steps[0].Number := Mark;
  FillChar(Cache.Ways, SizeOf(Cache.Ways), 0);
  Word := Cache.Steps[Cache.Count - 1].WordLimit - 1;
  Word^.Value := not Word^.Value;
  TakeHere(NativeUInt(get_frame));
  Same(Mark, Cache.Steps[0].Number, 'the outermost frame');
  Same(Word^.At^, Word^.Value, 'the word');
end;

// Of a test that looks from one place only.
function TUnwindCacheTests.KeptPath: PCachedPath;
var
  Index: Integer;
begin
  Result := nil;
  for Index := 0 to PathCount - 1 do
    if Cache.Ways[Index].Pc <> 0 then
      Result := @Cache.Ways[Index];
  AssertTrue('a path', Result <> nil);
end;

// The mark shows that the path was taken. It is as short as possible; the first look may walk too far
// for a path.
procedure TUnwindCacheTests.ExpectAComparison(Word: PStackWord; Frame: NativeUInt);
const
  Mark = 12345678;
begin
  FillChar(Cache.Ways, SizeOf(Cache.Ways), 0);
  TakeHere(Frame);
  TakeHere(Frame);
  KeptPath^.Number := Mark;
  Same(Mark, TakeHere(Frame), 'number of the path');
  Word^.Value := not Word^.Value;
  AssertTrue('the change was seen', TakeHere(Frame) <> Mark);
end;

procedure TUnwindCacheTests.EveryWordOfAPathIsCompared;
var
  Frame: NativeUInt;
  Path: PCachedPath;
  Index, Outer: Integer;
begin
  Frame := NativeUInt(get_frame);
  TakeHere(Frame);
  TakeHere(Frame);
  Path := KeptPath;
  for Index := 0 to Path^.Limit - PStackWord(@Path^.Words) - 1 do
    ExpectAComparison(@Path^.Words[Index], Frame);
  Outer := Path^.Base^.FirstWord - PStackWord(@Cache.Words);
  AtLeast(3, Outer, 'words of outer frames');
  for Index := 0 to Outer - 1 do
    ExpectAComparison(@Cache.Words[Index], Frame);
end;

procedure TUnwindCacheTests.StackIsReadAsItWasKept;
var
  Stack, Kept: TBacktrace;
  Turn, Index: Integer;
  Number: Cardinal;
begin
  for Turn := 1 to 1000 do
  begin
    Stack.Call := mcUnknown;
    Stack.Count := Random.Below(DefaultFrames) + 1;
    for Index := 0 to Stack.Count - 1 do
      Stack.Frames[Index] := CutFrame + 1 + Random.Below(50);
    Number := BacktraceKeep(Stack);
    AssertTrue(BacktraceRead(Number, Kept));
    Same(Stack.Count, Kept.Count, 'frames');
    AssertTrue(CompareByte(Stack.Frames, Kept.Frames, Stack.Count * SizeOf(Pointer)) = 0);
    Same(Number, BacktraceKeep(Stack), 'number');
  end;
end;

procedure TUnwindCacheTests.StackOfAWrongNumberIsNone;
var
  Stack: TBacktrace;
begin
  AssertFalse(BacktraceRead(0, Stack));
  Same(0, Stack.Count, 'frames');
  AssertFalse(BacktraceRead(High(Cardinal), Stack));
end;

// As if so many nodes had been made: their number is the table's first word. Nothing is swept.
procedure TUnwindCacheTests.UseAnotherTable(NodeCount: NativeUInt);
begin
  UsedTable := Stacks.Table;
  UsedVisit := Stacks.VisitNumbers;
  Stacks.VisitNumbers := nil;
  Stacks.Table := 0;
  AssertTrue(BacktracesStart);
  PNativeUInt(Stacks.Table)^ := NodeCount;
end;

procedure TUnwindCacheTests.StackThatDoesNotFitIsNoneAndNoPartOfIt;
var
  Stack, Kept: TBacktrace;
  Inner: Cardinal;
begin
  UseAnotherTable(0);
  Inner := BacktraceExtend(0, 1000);
  AssertTrue(BacktraceRead(Inner, Kept));
  PNativeUInt(Stacks.Table)^ := High(Cardinal);
  Stack := Default(TBacktrace);
  Stack.Count := 3;
  Stack.Frames[0] := 1000;
  Stack.Frames[1] := 2000;
  Stack.Frames[2] := 3000;
  Same(LostBacktrace, BacktraceKeep(Stack), 'number');
  Same(LostBacktrace, BacktraceExtend(LostBacktrace, 1000), 'number of a longer one');
  AssertFalse(BacktraceRead(LostBacktrace, Kept));
  Same(Inner, BacktraceExtend(0, 1000), 'number of one that is there');
end;

function KeepOne(First, Count: Cardinal): Cardinal;
var
  Stack: TBacktrace;
  Index: Integer;
begin
  Stack := Default(TBacktrace);
  Stack.Count := Count;
  for Index := 0 to Count - 1 do
    Stack.Frames[Index] := First + Index;
  Result := BacktraceKeep(Stack);
end;

procedure TUnwindCacheTests.InnermostFramesOfOneThatDoesNotFitAreKept;
var
  Stack: TBacktrace;
begin
  UseAnotherTable(NodeMask - SpareNodes);
  AssertTrue(BacktraceRead(KeepOne(1000, SpareFrames + 5), Stack));
  Same(SpareFrames + 1, Stack.Count, 'frames');
  AssertTrue('innermost', Stack.Frames[0] = 1000);
  AssertTrue('last', Stack.Frames[SpareFrames - 1] = 1000 + SpareFrames - 1);
  AssertTrue('end', Stack.Frames[SpareFrames] = CutFrame);
  AssertTrue(BacktraceRead(KeepOne(2000, SpareFrames), Stack));
  Same(SpareFrames, Stack.Count, 'frames of one that is no longer');
end;

// Two places that call each other's routine have as many paths as there are depths, squared.
procedure TUnwindCacheTests.RecursionIsFoldedInAWellFilledTable;
const
  Full = 4 shl 20;
var
  Stack, Kept: TBacktrace;
  Turn, Index: Integer;
  Before: NativeUInt;
begin
  UseAnotherTable(Full div 4);
  for Turn := 1 to 1000 do
  begin
    Stack := Default(TBacktrace);
    Stack.Count := 60;
    for Index := 1 to 58 do
      Stack.Frames[Index] := 2000 + Random.Below(2);
    Stack.Frames[0] := 1000;
    Stack.Frames[59] := 3000;
    AssertTrue(BacktraceRead(BacktraceKeep(Stack), Kept));
    AtMost(4, Kept.Count, 'frames');
    AtLeast(3, Kept.Count, 'frames');
    AssertTrue('innermost', Kept.Frames[0] = 1000);
    AssertTrue('outermost', Kept.Frames[Kept.Count - 1] = 3000);
  end;
  Before := PNativeUInt(Stacks.Table)^;
  AtMost(Full div 4 + 20, Before, 'nodes');
end;

// With a fourth of the lists, 83,100 are the mean.
procedure TUnwindCacheTests.ListsOfAWellFilledTableAreShort;
const
  Nodes = 100000;
var
  Table: PCallTable;
  Index, Used: Integer;
begin
  UseAnotherTable(LateFrom);
  Table := PCallTable(Stacks.Table);
  for Index := 1 to Nodes do
    BacktraceExtend(0, 1 + Random.Below(MaxInt));
  Used := 0;
  for Index := 0 to High(Table^.Heads) do
    Inc(Used, Ord(Table^.Heads[Index] <> 0));
  AtLeast(90000, Used, 'lists in use');
end;

procedure TUnwindCacheTests.BacktraceOfAnEmptyTableIsFoundInAFullOne;
var
  Early, Late: Cardinal;
begin
  UseAnotherTable(0);
  Early := KeepOne(1000, 10);
  PNativeUInt(Stacks.Table)^ := LateFrom;
  Late := KeepOne(2000, 10);
  PNativeUInt(Stacks.Table)^ := High(Cardinal);
  Same(Early, KeepOne(1000, 10), 'number of the early one');
  Same(Late, KeepOne(2000, 10), 'number of the late one');
end;

var
  UsedNumber: Cardinal;

procedure VisitOne;
begin
  BacktraceMark(UsedNumber);
end;

// A table with three backtraces of ten frames each, and no node left: the first is in use, the second
// is pinned.
procedure TUnwindCacheTests.FillTable(out Gone: Cardinal);
begin
  UseAnotherTable(0);
  UsedNumber := KeepOne(1000, 10);
  BacktracePin(KeepOne(2000, 10));
  Gone := KeepOne(3000, 10);
  PNativeUInt(Stacks.Table)^ := High(Cardinal);
  Stacks.VisitNumbers := VisitOne;
end;

procedure TUnwindCacheTests.FullTableServesAgainWhatNoBlockUses;
var
  Gone, Number: Cardinal;
  Stack: TBacktrace;
begin
  FillTable(Gone);
  Number := KeepOne(4000, 10);
  AssertTrue(BacktraceRead(Number, Stack));
  Same(10, Stack.Count, 'frames');
  AssertTrue('innermost', Stack.Frames[0] = 4000);
  AssertTrue('outermost', Stack.Frames[9] = 4009);
  Same(UsedNumber, KeepOne(1000, 10), 'number of the one in use');
  Same(LostBacktrace, KeepOne(5000, 10), 'without a free node');
end;

procedure TUnwindCacheTests.NumberOfASweptBacktraceReadsAsNone;
var
  Gone: Cardinal;
  Stack: TBacktrace;
begin
  FillTable(Gone);
  KeepOne(4000, 10);
  AssertFalse(BacktraceRead(Gone, Stack));
  Same(0, Stack.Count, 'frames');
  Same(LostBacktrace, BacktraceTrim(Gone), 'number');
  UsedNumber := 0; // the next sweep frees all but the pinned one
  PCallTable(Stacks.Table)^.SweepFrom := 0;
  AssertTrue(BacktraceRead(KeepOne(3000, 10), Stack));
  AssertFalse(BacktraceRead(Gone, Stack));
end;

procedure TUnwindCacheTests.CallersOfAUsedBacktraceAreKept;
var
  Gone: Cardinal;
  Stack: TBacktrace;
begin
  FillTable(Gone);
  KeepOne(4000, 10);
  AssertTrue(BacktraceRead(UsedNumber, Stack));
  Same(10, Stack.Count, 'frames of the one in use');
  AssertTrue(Stack.Frames[9] = 1009);
  AssertTrue(BacktraceRead(KeepOne(2000, 10), Stack));
  Same(10, Stack.Count, 'frames of the pinned one');
end;

const
  KeeperCount = 3;
  HeldCount = 50;

type
  // Keeps backtraces again and again, and reads those that it holds.
  TKeeper = class(TThread)
  public
    Numbers, Firsts: array[0..HeldCount - 1] of Cardinal;
    Wrong: Integer;
    procedure Execute; override;
  end;

var
  Keepers: array[0..KeeperCount - 1] of TKeeper;
  SweepCount: Integer;

// Each second one counts as in use.
procedure VisitHeld;
var
  Keeper: TKeeper;
  Index: Integer;
begin
  Inc(SweepCount);
  for Keeper in Keepers do
    for Index := 0 to HeldCount div 2 - 1 do
      BacktraceMark(Keeper.Numbers[2 * Index]);
end;

procedure TKeeper.Execute;
const
  Rounds = 20000;
  Frames = 8;
var
  Random: TGenerator;
  Stack: TBacktrace;
  Round, Index: Integer;
begin
  Random.Start(TestSeed + NativeUInt(Self));
  for Round := 1 to Rounds do
  begin
    Index := Random.Below(HeldCount);
    Firsts[Index] := 10000 + Random.Below(3000) * Frames;
    Numbers[Index] := KeepOne(Firsts[Index], Frames);
    if Numbers[Index] = LostBacktrace then
      PCallTable(Stacks.Table)^.SweepFrom := 0;
    Index := Random.Below(HeldCount);
    if BacktraceRead(Numbers[Index], Stack)
      and ((Stack.Count <> Frames) or (Stack.Frames[0] <> Firsts[Index])
      or (Stack.Frames[Frames - 1] <> Firsts[Index] + Frames - 1)) then
      Inc(Wrong);
  end;
end;

// In a table with space for a third more than what they hold.
procedure TUnwindCacheTests.SweepsMixNoBacktraces;
var
  Index: Integer;
begin
  UseAnotherTable(NodeMask - SpareNodes - KeeperCount * HeldCount * 8 div 3 * 4);
  for Index := 0 to High(Keepers) do
    Keepers[Index] := TKeeper.Create(True);
  SweepCount := 0;
  Stacks.VisitNumbers := VisitHeld;
  for Index := 0 to High(Keepers) do
    Keepers[Index].Start;
  for Index := 0 to High(Keepers) do
    Keepers[Index].WaitFor;
  Stacks.VisitNumbers := nil;
  for Index := 0 to High(Keepers) do
  begin
    Same(0, Keepers[Index].Wrong, 'other backtraces');
    Keepers[Index].Free;
  end;
  AtLeast(1, SweepCount, 'sweeps');
end;

procedure TUnwindCacheTests.NumbersFromBeforeASweepAreNotHandedOut;
const
  Mark = 12345678;
var
  Frame: NativeUInt;
begin
  Frame := NativeUInt(get_frame);
  TakeHere(Frame);
  TakeHere(Frame);
  KeptPath^.Number := Mark;
  Cache.Steps[0].Number := Mark;
  MarkNodes(Mark);
  FetchAdd(Stacks.Sweeps, 1);
  AssertTrue(UnwindCacheTake(Cache, Frame, StackEnd(Frame)) <> Mark);
  AssertTrue(Cache.Steps[0].Number <> Mark);
  Same(Stacks.Sweeps, Cache.Sweeps, 'sweeps');
end;

initialization
  RegisterTest(TUnwindCacheTests);
end.
