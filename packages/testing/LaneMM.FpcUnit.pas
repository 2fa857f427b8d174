/// Leaks and memory errors of each test, for fpcunit: `uses LaneMM, LaneMM.FpcUnit` in the program.
//
// How:     the classes of the tests get a routine around RunBare, so every runner reports what it
//          finds as a failure of the test, and what the framework allocates counts for none.
// Limits:  one test at a time; a test that fails otherwise is not searched for leaks.
// Callers: the thread that runs the tests; LaneMM calls NoteEvent in any thread.
unit LaneMM.FpcUnit;

{$mode objfpc}{$H+}

interface

/// In a test, or in its SetUp or TearDown: its leaks are not reported. The same for a test with
/// `LeaksIgnored` in its name.
procedure IgnoreLeaks;

implementation

uses
  {$ifdef UNIX} BaseUnix, {$endif} {$ifdef WINDOWS} Windows, {$endif}
  SysUtils, fpcunit, testregistry, LaneMM;

const
  MostLines = 10;    // of a failure
  MostReached = 20;  // lines about what tests have left, all together

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

  TWatchedCase = class(TTestCase)
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
  Classes: array of TWatchedClass;
  RunBareSlot, AddTestSlot: PtrInt;
  AddTestCode: CodePointer;
  Events: TEvents;
  Reached: TBlockLines;

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

// Returns the leaks of the test; notes what it has left elsewhere.
function TakeLeaks(Test: TTestCase; Start: TLaneMM_Checkpoint): string;
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
  if Reached.Count >= MostReached then
    Exit;
  Lines := Default(TBlockLines);
  LaneMM_ReachableSince(Start, @AddBlocks, @Lines);
  EndLines(Lines);
  if Lines.Count > 0 then
    Reached.Text := Reached.Text + Test.ClassName + '.' + Test.TestName + ': ' + Lines.Text + LineEnding;
  Inc(Reached.Count, Lines.Count);
end;

// ---------------------------------------------------------------------------- around the tests

function RunBareOf(AnyClass: TClass): CodePointer;
var
  Index: Integer;
begin
  Result := nil;
  for Index := 0 to High(Classes) do
    if Classes[Index].AnyClass = AnyClass then
      Exit(Classes[Index].RunBare);
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

procedure RunWatched(Test: TTestCase; const Own: TRun);
var
  Found: string;
begin
  RunOwn(Test);
  ClearStack;
  Found := TakeErrors;
  if Found <> '' then
    FailAt(Test, Found);
  if Own.IgnoresLeaks or (Pos('LeaksIgnored', Test.TestName) > 0) then
    Exit;
  Found := TakeLeaks(Test, Own.Start);
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
  SetLength(Classes, Length(Classes) + 1);
  Classes[High(Classes)].AnyClass := AnyClass;
  Classes[High(Classes)].RunBare := Replace(AnyClass, RunBareSlot, @TWatchedCase.RunBare);
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
  if not LaneMM_IsInstalled then
    Exit;
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
  DoneCriticalSection(Events.Lock);
end.
