/// Leaks, memory errors and allocations of each test, for fpcunit: `uses LaneMM, LaneMM.FpcUnit` in the program.
//
// How:     the classes of the tests get a routine around RunBare, so every runner reports what it
//          finds as a failure of the test, and what the framework allocates counts for none.
// Budgets: `allocations.json` in the current directory; `--update` on the command line renews it with
//          the tests that run.
// Limits:  one test at a time; a test that fails otherwise is not searched for leaks.
// Callers: the thread that runs the tests; LaneMM calls NoteEvent in any thread.
unit LaneMM.FpcUnit;

{$mode objfpc}{$H+}

interface

uses
  fpcunit;

/// Runs Work; fails if it allocates more than Most blocks in this thread, with the lines that do.
procedure AssertAllocations(Most: PtrUInt; Work: TRunMethod);
/// In a test, or in its SetUp or TearDown: its leaks are not reported. The same for a test with
/// `LeaksIgnored` in its name.
procedure IgnoreLeaks;

implementation

uses
  {$ifdef UNIX} BaseUnix, {$endif} {$ifdef WINDOWS} Windows, {$endif}
  Classes, SysUtils, testregistry, fpjson, jsonparser, LaneMM;

const
  MostLines = 10;    // of a failure
  MostReached = 20;  // lines about what tests have left, all together
  BudgetFile = 'allocations.json';

type
  // A test that runs, inside of another one where a test runs tests.
  PRun = ^TRun;
  TRun = record
    Outer: PRun;
    IgnoresLeaks: Boolean;
    Start: TLaneMM_Checkpoint;
  end;

  // Lines about blocks.
  TBlockLines = record
    Verb: string;
    Count: Integer;
    More: PtrUInt;   // blocks that have no line
    Text: string;
  end;
  PBlockLines = ^TBlockLines;

  // The lines that have allocated, that with most blocks first.
  TCountedLine = record
    Place: string;
    Count: PtrUInt;
  end;
  TCountedLines = array of TCountedLine;
  PCountedLines = ^TCountedLines;

  TWatchedCase = class(TTestCase)
  public
    procedure RunUncounted;
  protected
    procedure RunBare; override;
  end;

  TWatchedSuite = class(TTestSuite)
  public
    procedure AddTest(ATest: TTest); override;
  end;

  TAddTest = procedure(ATest: TTest) of object;

  TWatchedClass = record
    AnyClass: TClass;
    RunBare: CodePointer; // its own
  end;

  // What memory errors say; no heap, as any thread adds to it.
  TEvents = record
    Lock: TRTLCriticalSection;
    Length: Integer;
    Text: array[0..16383] of Char;
  end;

var
  Current: PRun;
  Watched: array of TWatchedClass;
  RunBareSlot, AddTestSlot: PtrInt;
  AddTestCode: CodePointer;
  Events: TEvents;
  Reached: TBlockLines;
  Budgets: TJSONObject;
  IsUpdating: Boolean;

procedure IgnoreLeaks;
begin
  if Current <> nil then
    Current^.IgnoresLeaks := True;
end;

// ---------------------------------------------------------------------------- what is found

// Returns a name without its unit.
function ShortName(const Name: string): string;
var
  Index: Integer;
begin
  Result := Name;
  Index := 1;
  while (Index <= Length(Result)) and (Result[Index] in ['A'..'Z', 'a'..'z', '0'..'9', '_', '.']) do
  begin
    if Result[Index] = '.' then
    begin
      Delete(Result, 1, Index);
      Index := 0;
    end;
    Inc(Index);
  end;
end;

procedure AddBlocks(const Leak: TLaneMM_LeakInfo; Context: Pointer);
var
  Lines: PBlockLines;
begin
  Lines := Context;
  if Lines^.Count = MostLines then
  begin
    Inc(Lines^.More, Leak.Count);
    Exit;
  end;
  if Lines^.Count > 0 then
    Lines^.Text := Lines^.Text + LineEnding + '  ';
  Inc(Lines^.Count);
  Lines^.Text := Lines^.Text + Format('%s%u x %s, %u bytes',
    [Lines^.Verb, Leak.Count, ShortName(Leak.Name), Leak.Bytes]);
  if Leak.Place <> nil then
    Lines^.Text := Lines^.Text + ', allocated at ' + Leak.Place;
end;

procedure EndLines(var Lines: TBlockLines);
begin
  if Lines.More > 0 then
    Lines.Text := Lines.Text + LineEnding + Format('  and %u more blocks', [Lines.More]);
end;

// Receives the report of a memory error.
procedure NoteEvent(Kind: TLaneMM_EventKind; Text: PAnsiChar; Length: NativeUInt);
begin
  if Current = nil then
    Exit; // outside of the tests: the other targets have it
  EnterCriticalSection(Events.Lock);
  if Length > NativeUInt(High(Events.Text) - Events.Length) then
    Length := High(Events.Text) - Events.Length;
  Move(Text^, Events.Text[Events.Length], Length);
  Inc(Events.Length, Length);
  LeaveCriticalSection(Events.Lock);
end;

// Returns the memory errors so far, those that a check of all blocks finds included.
function TakeErrors: string;
begin
  Result := '';
  if LaneMM_DebugModeActive then
    LaneMM_CheckHeap;
  EnterCriticalSection(Events.Lock);
  if Events.Length > 0 then
  begin
    SetString(Result, PChar(@Events.Text), Events.Length);
    Delete(Result, 1, Pos(#10, Result)); // the line about the process
    Result := 'memory error: ' + TrimRight(Result);
  end;
  Events.Length := 0;
  LeaveCriticalSection(Events.Lock);
end;

// Returns the test if nothing uses its fields again: it runs once, and its class has no destructor.
function FinishedOf(Test: TTestCase): TObject;
begin
  Result := nil;
  if not TWatchedCase(Test).SingleInstanceForSuite and (PPointer(Pointer(Test.ClassType) + vmtDestroy)^
    = PPointer(Pointer(TTestCase) + vmtDestroy)^) then
    Result := Test;
end;

// Returns the leaks of the test; notes what it has left elsewhere, if NotesReached.
function TakeLeaks(Test: TTestCase; Start: TLaneMM_Checkpoint; NotesReached: Boolean): string;
var
  Lines: TBlockLines;
begin
  Lines := Default(TBlockLines);
  Lines.Verb := 'leaked ';
  if LaneMM_LeaksSince(Start, @AddBlocks, @Lines, FinishedOf(Test)) > 0 then
  begin
    EndLines(Lines);
    Exit(Lines.Text);
  end;
  Result := '';
  if not NotesReached or (Reached.Count >= MostReached) then
    Exit;
  Lines := Default(TBlockLines);
  LaneMM_ReachableSince(Start, @AddBlocks, @Lines);
  EndLines(Lines);
  if Lines.Count > 0 then
    Reached.Text := Reached.Text + Test.ClassName + '.' + Test.TestName + ': ' + Lines.Text + LineEnding;
  Inc(Reached.Count, Lines.Count);
end;

// ---------------------------------------------------------------------------- budgets

procedure AddLine(const Place: TLaneMM_CountedPlace; Context: Pointer);
var
  Lines: PCountedLines;
begin
  Lines := Context;
  SetLength(Lines^, Length(Lines^) + 1);
  Lines^[High(Lines^)].Place := 'places that are not known';
  if Place.Place <> nil then
    Lines^[High(Lines^)].Place := Place.Place;
  Lines^[High(Lines^)].Count := Place.Count;
end;

// Runs Work and counts; fails where that cannot be, but for a program without LaneMM.
procedure RunAndCount(Work: TRunMethod; out Counts: TLaneMM_Counts; out Lines: TCountedLines);
var
  IsCounted: Boolean;
begin
  Lines := nil;
  Counts := Default(TLaneMM_Counts);
  IsCounted := LaneMM_IsInstalled and LaneMM_StartCount(False, True);
  if LaneMM_IsInstalled and not IsCounted then
    TAssert.Fail('not counted: too many threads count at this moment');
  try
    Work();
  finally
    if IsCounted then
      Counts := LaneMM_StopCount(@AddLine, @Lines);
  end;
end;

procedure AssertAllocations(Most: PtrUInt; Work: TRunMethod);
var
  Counts: TLaneMM_Counts;
  Lines: TCountedLines;
  Index: Integer;
  Text: string;
begin
  RunAndCount(Work, Counts, Lines);
  if Counts.Allocations <= Most then
    Exit;
  Text := Format('%u allocations, %u at most', [Counts.Allocations, Most]);
  for Index := 0 to High(Lines) do
    if Index < MostLines then
      Text := Text + LineEnding + Format('  %u at %s', [Lines[Index].Count, Lines[Index].Place]);
  TAssert.Fail(Text, get_caller_addr(get_frame));
end;

// Returns what a budget calls a line: its routine, as lines move.
function RoutineOf(const Place: string): string;
var
  Start: Integer;
begin
  Start := Pos(' in ', Place);
  Result := Place;
  if Start > 0 then
    Delete(Result, 1, Start + 3);
end;

function BudgetOf(Test: TTestCase): TJSONObject;
begin
  Result := nil;
  if Budgets <> nil then
    Result := Budgets.Get(Test.ClassName + '.' + Test.TestName, TJSONObject(nil));
end;

// Makes what was counted the budget of the test.
procedure SetBudget(Test: TTestCase; const Counts: TLaneMM_Counts; const Lines: TCountedLines);
var
  Budget, Routines: TJSONObject;
  Line: TCountedLine;
  Name: string;
begin
  Routines := TJSONObject.Create;
  for Line in Lines do
  begin
    Name := RoutineOf(Line.Place);
    Routines.Int64s[Name] := Routines.Get(Name, Int64(0)) + Int64(Line.Count);
  end;
  Budget := TJSONObject.Create;
  Budget.Add('allocations', Int64(Counts.Allocations));
  Budget.Add('routines', Routines);
  Budgets.Objects[Test.ClassName + '.' + Test.TestName] := Budget;
end;

// Returns which lines allocate more than the budget has for their routine.
function Exceeding(Budget: TJSONObject; const Lines: TCountedLines): string;
var
  Routines: TJSONObject;
  Line, Other: TCountedLine;
  Sum: PtrUInt;
  More: Int64;
begin
  Result := '';
  Routines := Budget.Get('routines', TJSONObject(nil));
  for Line in Lines do
  begin
    Sum := 0;
    for Other in Lines do
      if RoutineOf(Other.Place) = RoutineOf(Line.Place) then
        Inc(Sum, Other.Count);
    More := Sum;
    if Routines <> nil then
      More := More - Routines.Get(RoutineOf(Line.Place), Int64(0));
    if More > 0 then
      Result := Result + LineEnding + Format('  %d more: %u at %s', [More, Line.Count, Line.Place]);
  end;
end;

// Compares what was counted with the budget of the test, or renews that; returns what to say.
function CheckBudget(Test: TTestCase; const Counts: TLaneMM_Counts; const Lines: TCountedLines): string;
var
  Budget: TJSONObject;
  Most: Int64;
begin
  Result := '';
  if IsUpdating then
  begin
    SetBudget(Test, Counts, Lines);
    Exit;
  end;
  Budget := BudgetOf(Test);
  Most := Budget.Get('allocations', Int64(0));
  if Int64(Counts.Allocations) > Most then
    Result := Format('%u allocations, %d in ', [Counts.Allocations, Most]) + BudgetFile
      + Exceeding(Budget, Lines);
end;

// Raises what is wrong with the file: a test whose budget is damaged would pass.
procedure CheckBudgets(Data: TJSONData);
var
  Item: TJSONEnum;
begin
  if not (Data is TJSONObject) then
    raise Exception.Create('it is no JSON object');
  for Item in Data do
    if not (Item.Value is TJSONObject)
      or not (TJSONObject(Item.Value).Find('allocations') is TJSONNumber) then
      raise Exception.CreateFmt('%s is no object with a number `allocations`', [Item.Key]);
end;

procedure SayOfBudgets(const What: string);
begin
  if not IsConsole then
    Exit;
  WriteLn(StdErr, BudgetFile, What);
  Flush(StdErr);
end;

procedure ReadBudgets;
var
  Stream: TFileStream;
  Data: TJSONData;
begin
  if not FileExists(BudgetFile) then
    Exit;
  Data := nil;
  Stream := nil;
  try
    Stream := TFileStream.Create(BudgetFile, fmOpenRead or fmShareDenyWrite);
    Data := GetJSON(Stream);
    CheckBudgets(Data);
    Budgets := TJSONObject(Data);
  except
    on Raised: Exception do
    begin
      SayOfBudgets(' has no budgets: ' + Raised.Message);
      Data.Free;
      Stream.Free;
      Halt(1);
    end;
  end;
  Stream.Free;
end;

procedure WriteBudgets;
var
  Stream: TStringStream;
begin
  Stream := TStringStream.Create(Budgets.FormatJSON + LineEnding);
  try
    Stream.SaveToFile(BudgetFile);
  except
    on Raised: Exception do
    begin
      SayOfBudgets(' is not written: ' + Raised.Message);
      ExitCode := 1;
    end;
  end;
  Stream.Free;
end;

// Takes `--update` out of the command line, which runners would refuse.
procedure TakeUpdate;
var
  Index, Kept: Integer;
begin
  Kept := 1;
  for Index := 1 to argc - 1 do
    if argv[Index] = '--update' then
      IsUpdating := True
    else
    begin
      argv[Kept] := argv[Index];
      Inc(Kept);
    end;
  argc := Kept;
end;

// ---------------------------------------------------------------------------- around the tests

function RunBareOf(AnyClass: TClass): CodePointer;
var
  Index: Integer;
begin
  Result := nil;
  for Index := 0 to High(Watched) do
    if Watched[Index].AnyClass = AnyClass then
      Exit(Watched[Index].RunBare);
end;

// Runs the test. Adds memory errors to the exception that it ends with.
procedure RunOwn(Test: TTestCase);
var
  Own: TMethod;
  Errors: string;
begin
  Own.Code := RunBareOf(Test.ClassType);
  Own.Data := Test;
  try
    TRunMethod(Own)();
  except
    on Raised: Exception do
    begin
      Errors := TakeErrors;
      if Errors <> '' then
        Raised.Message := Raised.Message + LineEnding + Errors;
      raise;
    end;
  end;
end;

procedure FailAt(Test: TTestCase; const Text: string);
begin
  raise EAssertionFailedError.Create(Text) at Test.MethodAddress(Test.TestName);
end;

// Overwrites what the test has left on the stack: it would lie between the variables of routines that
// are called next, and hide a leak.
procedure ClearStack;
var
  Words: array[0..4095] of Pointer;
begin
  FillChar(Words, SizeOf(Words), 0);
end;

procedure TWatchedCase.RunUncounted;
begin
  RunOwn(Self);
end;

// RunOwn with a count; returns what exceeds the budget. Test is any test case.
function RunCounted(Test: TTestCase): string;
var
  Counts: TLaneMM_Counts;
  Lines: TCountedLines;
begin
  RunAndCount(@TWatchedCase(Test).RunUncounted, Counts, Lines);
  Result := CheckBudget(Test, Counts, Lines);
end;

procedure RunWatched(Test: TTestCase; const Own: TRun);
var
  Found: string;
  IsCounted: Boolean;
begin
  Found := '';
  IsCounted := IsUpdating or (BudgetOf(Test) <> nil);
  if IsCounted then
    Found := RunCounted(Test)
  else
    RunOwn(Test);
  ClearStack;
  if Found <> '' then
    FailAt(Test, Found);
  Found := TakeErrors;
  if Found <> '' then
    FailAt(Test, Found);
  if Own.IgnoresLeaks or (Pos('LeaksIgnored', Test.TestName) > 0) then
    Exit;
  Found := TakeLeaks(Test, Own.Start, not IsCounted);
  if Found <> '' then
    FailAt(Test, Found);
end;

procedure TWatchedCase.RunBare;
var
  Own: TRun;
begin
  Own.Outer := Current;
  Own.IgnoresLeaks := False;
  Own.Start := LaneMM_Checkpoint;
  Current := @Own;
  try
    RunWatched(Self, Own);
  finally
    Current := Own.Outer;
  end;
end;

// ---------------------------------------------------------------------------- the classes

// Returns the offset of a virtual method in the table of a class that overrides it.
function SlotOf(AnyClass: TClass; Code: CodePointer): PtrInt;
begin
  Result := vmtMethodStart;
  while PCodePointer(Pointer(AnyClass) + Result)^ <> Code do
    Inc(Result, SizeOf(CodePointer));
end;

// Makes the page at P, in the data of the program, writable; some targets keep tables of methods in
// read-only data.
procedure AllowWrite(P: Pointer);
{$ifdef WINDOWS}
var
  Before: DWord;
begin
  VirtualProtect(P, SizeOf(Pointer), PAGE_READWRITE, @Before);
end;
{$else}
const
  Page = 65536; // of any target; those around it in the program's data are readable anyway
var
  Code: PtrUInt;
begin
  Code := PtrUInt(P) and not PtrUInt(4095);
  if fpMProtect(Pointer(Code), 4096, PROT_READ or PROT_WRITE) <> 0 then
    fpMProtect(Pointer(PtrUInt(P) and not PtrUInt(Page - 1)), Page, PROT_READ or PROT_WRITE);
end;
{$endif}

// Puts Code into a slot of a class; returns what was there.
function Replace(AnyClass: TClass; Slot: PtrInt; Code: CodePointer): CodePointer;
var
  Place: PCodePointer;
begin
  Place := Pointer(AnyClass) + Slot;
  Result := Place^;
  AllowWrite(Place);
  Place^ := Code;
end;

procedure WatchClass(AnyClass: TClass);
begin
  if RunBareOf(AnyClass) <> nil then
    Exit;
  SetLength(Watched, Length(Watched) + 1);
  Watched[High(Watched)].AnyClass := AnyClass;
  Watched[High(Watched)].RunBare := Replace(AnyClass, RunBareSlot, @TWatchedCase.RunBare);
end;

// Watches the classes of a test and of those in it.
procedure WatchTest(Test: TTest);
var
  Index: Integer;
begin
  if Test is TTestCase then
    WatchClass(Test.ClassType);
  for Index := 0 to Test.GetChildTestCount - 1 do
    WatchTest(Test.GetChildTest(Index));
end;

// Self is any suite.
procedure TWatchedSuite.AddTest(ATest: TTest);
var
  Own: TMethod;
begin
  WatchTest(ATest);
  Own.Code := AddTestCode;
  Own.Data := Self;
  TAddTest(Own)(ATest);
end;

procedure Start;
var
  Kind: TLaneMM_EventKind;
begin
  InitCriticalSection(Events.Lock);
  TakeUpdate;
  if not LaneMM_IsInstalled then
    Exit;
  ReadBudgets;
  if IsUpdating and (Budgets = nil) then
    Budgets := TJSONObject.Create;
  for Kind := evDoubleFree to evMismatch do
    LaneMM_SetEventTargets(Kind, LaneMM_EventTargets(Kind) + [etCall]);
  LaneMM_SetEventTargets(evCorruption, LaneMM_EventTargets(evCorruption) + [etCall]);
  LaneMM_OnEvent(@NoteEvent);
  RunBareSlot := SlotOf(TWatchedCase, @TWatchedCase.RunBare);
  AddTestSlot := SlotOf(TWatchedSuite, @TWatchedSuite.AddTest);
  WatchTest(GetTestRegistry);
  AddTestCode := Replace(TTestSuite, AddTestSlot, @TWatchedSuite.AddTest);
end;

procedure SayReached;
begin
  if (Reached.Text = '') or not IsConsole then
    Exit;
  WriteLn(StdErr, 'Still reachable after these tests, so no leaks:');
  Write(StdErr, Reached.Text);
  if Reached.Count >= MostReached then
    WriteLn(StdErr, 'and maybe more');
  Flush(StdErr);
end;

initialization
  Start;
finalization
  SayReached;
  if IsUpdating and (Budgets <> nil) then
    WriteBudgets;
  Budgets.Free;
  DoneCriticalSection(Events.Lock);
end.
