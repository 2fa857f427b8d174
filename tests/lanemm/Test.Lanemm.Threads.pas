/// Tests of `lanemm report PID threads`: which thread waits for which.
unit Test.Lanemm.Threads;

{$mode delphi}{$H+}

interface

uses
  Test.Lanemm.Tools;

type
  /// Processes whose threads wait for each other, or only look like that; see Stuck.lpr.
  TThreadTests = class(TPlantedTest)
  private
    procedure Plant(const Command: string);
    procedure AwaitReport(const Part: string);
    procedure Matches(const Pattern: string);
    procedure HasNoFinding(const Command, Waits: string);
    function SwitchesOfMainThread: string;
  published
    procedure ThreadsOfADeadlockAreNamedWithTheirLocks;
    procedure ADeadlockOfThreeThreadsIsOne;
    procedure AThreadCanDeadlockWithItself;
    procedure AnEndedOwnerIsNamed;
    procedure ALostWakeUpIsFoundWhereNoThreadIsLeft;
    procedure AHandlerOfASignalCouldSetAnEvent;
    procedure IdleAndBusyThreadsAreNoFinding;
    procedure AThreadThatAPauseWouldDisturbIsLeftAlone;
    procedure AStoppedProcessStaysStopped;
    procedure ADeadlockInACoreFileIsFound;
    procedure WithoutSymbolsTheDeadlockIsFound;
    procedure AProgramInCHasLocksForWritingAndEndsOfThreads;
    procedure RobustMutexesHaveOwners;
    procedure ADeadlockThatTheSystemRefusedIsOne;
    procedure VariablesThatThreadsInitializeAreNamed;
    procedure WordsWithoutAnOwnerGetNone;
    procedure AProcessOnAnotherManagerHasThreads;
    procedure FormatsAreRefused;
  end;

implementation

uses
  SysUtils, Classes, BaseUnix, RegExpr, testregistry;

const
  Deadlock = 'Deadlock of 2 threads:';
  LostWakeUp = 'Lost wake-up: no thread is left to set the events that these wait for:';

procedure TThreadTests.Plant(const Command: string);
begin
  FreeAndNil(Planted);
  Start('./' + Command, '');
end;

// Looks at the process until a report has Part: its threads may be about to wait.
procedure TThreadTests.AwaitReport(const Part: string);
const
  MostLooks = 600;
var
  Look: Integer;
begin
  for Look := 1 to MostLooks do
  begin
    CallWell(Format('report %d threads', [Planted.Id]));
    if Pos(Part, Printed) > 0 then
      Exit;
    Sleep(100);
  end;
  Has(Part, Printed);
end;

procedure TThreadTests.Matches(const Pattern: string);
var
  Found: TRegExpr;
begin
  Found := TRegExpr.Create(Pattern);
  try
    Check(Found.Exec(Printed), Pattern + ' in ' + Printed);
  finally
    Found.Free;
  end;
end;

procedure TThreadTests.HasNoFinding(const Command, Waits: string);
begin
  Plant(Command);
  AwaitReport(Waits);
  Has('No deadlock, and no lost wake-up', Printed);
  HasNot('Deadlock', Printed);
  HasNot('for ever', Printed);
end;

function TThreadTests.SwitchesOfMainThread: string;
begin
  Result := Shell(Format('grep ctxt /proc/%d/status', [Planted.Id]));
end;

procedure TThreadTests.ThreadsOfADeadlockAreNamedWithTheirLocks;
begin
  Plant('Stuck two');
  AwaitReport(Deadlock);
  Matches('thread (\d+) [^\n]* waits for STUCK\.B \(at [^\n]* at Stuck\.lpr:\d+, held by thread (\d+)\n'
    + '  thread \2 [^\n]* waits for STUCK\.A \(at [^\n]* at Stuck\.lpr:\d+, held by thread \1\n');
  Matches('\n    SYNCOBJS\.TCRITICALSECTION\.ENTER\n    STUCK\.TWORKER\.LOCKNEXT  Stuck\.lpr:\d+\n');
  Matches('\nthread \d+ \(Stuck\) waits for read, descriptor 0 ');
  HasNot('for ever', Printed);
end;

procedure TThreadTests.ADeadlockOfThreeThreadsIsOne;
begin
  Plant('Stuck three');
  AwaitReport('Deadlock of 3 threads:');
  Same(2, Length(Printed.Split(['Deadlock'])), 'parts around it in ' + Printed);
end;

// The lock lies on its stack.
procedure TThreadTests.AThreadCanDeadlockWithItself;
begin
  Plant('Stuck itself');
  AwaitReport('Deadlock of a thread with itself:');
  Matches('waits for the lock \(at \$[0-9a-f]+\) at Stuck\.lpr:\d+, which it holds itself');
end;

procedure TThreadTests.AnEndedOwnerIsNamed;
begin
  Plant('Stuck ended');
  AwaitReport('Threads that wait for ever for others:');
  Matches('waits for STUCK\.PLAIN \(at \$[0-9a-f]+\) at [^\n]*, held by thread \d+, which has ended');
end;

// The second one is in TThread.WaitFor, where the main thread wakes from time to time.
procedure TThreadTests.ALostWakeUpIsFoundWhereNoThreadIsLeft;
begin
  Plant('Stuck wakeup');
  AwaitReport(LostWakeUp);
  Matches('  thread \d+ \(Stuck\) waits for an event at Stuck\.lpr:\d+\n');
  Plant('Stuck joined');
  AwaitReport(LostWakeUp);
  Matches('\nThreads that wait for ever for others:\n'
    + '  thread \d+ \(Stuck\) waits for the end of a thread at Stuck\.lpr:\d+\n');
end;

procedure TThreadTests.AHandlerOfASignalCouldSetAnEvent;
begin
  Plant('Stuck signal');
  AwaitReport('but maybe the handler of a signal: 15:');
  HasNot('Lost wake-up', Printed);
end;

procedure TThreadTests.IdleAndBusyThreadsAreNoFinding;
begin
  HasNoFinding('Stuck idle', 'waits for an event');
  HasNoFinding('Stuck server', 'waits for accept, descriptor ');
  HasNoFinding('Stuck timer', 'waits for a limited time');
  HasNoFinding('Stuck busy', 'runs at Stuck.lpr:');
  HasNoFinding('Stuck owned', 'waits for STUCK.PLAIN');
  Matches('waits for STUCK\.PLAIN [^\n]*, held by thread \d+\n');
end;

// The system lets accept fail where a debugger stops the thread.
procedure TThreadTests.AThreadThatAPauseWouldDisturbIsLeftAlone;
var
  Before: string;
begin
  Plant('Stuck server');
  AwaitReport('waits for accept');
  Before := SwitchesOfMainThread;
  CallWell(Format('report %d threads', [Planted.Id]));
  CheckEquals(Before, SwitchesOfMainThread, 'it has not run');
end;

procedure TThreadTests.AStoppedProcessStaysStopped;
begin
  Plant('Stuck two');
  AwaitReport(Deadlock);
  Planted.Send(SIGSTOP);
  Planted.AwaitStop;
  AwaitReport(Deadlock);
  Check(Planted.IsStopped, 'it is stopped');
end;

procedure TThreadTests.ADeadlockInACoreFileIsFound;
var
  Core: string;
begin
  Plant('Stuck two');
  AwaitReport(Deadlock);
  Core := Format('%sthreads.%d', [Built, Planted.Id]);
  try
    Shell(Format('gcore -o threads %d', [Planted.Id]));
    CallWell(Format('report %s threads', [Core]));
    Has(Deadlock, Printed);
    Matches('waits for STUCK\.B \(at [^\n]* at Stuck\.lpr:\d+, held by thread \d+\n');
    Has('The signals that the program handled are not known.', Printed);
  finally
    DeleteFile(Core);
  end;
end;

procedure TThreadTests.WithoutSymbolsTheDeadlockIsFound;
begin
  Shell('strip -o StuckStripped Stuck');
  Plant('StuckStripped two');
  AwaitReport(Deadlock);
  Matches('waits for syncobjs\.TCriticalSection \(at \$[0-9a-f]+\)[^\n]*, held by thread \d+\n');
end;

// On the C library's manager.
procedure TThreadTests.AProgramInCHasLocksForWritingAndEndsOfThreads;
begin
  Plant('StuckC');
  AwaitReport('waits for the end of thread');
  AwaitReport('waits for a semaphore');
  AwaitReport('waits for table (at $');
  AwaitReport(Deadlock);
  Matches('waits for first \(at [^\n]* at StuckC\.c:\d+, held by thread \d+\n');
  Matches('No thread is left to set the events that these wait for:\n'
    + '  thread \d+ \(StuckC\) waits for a semaphore at StuckC\.c:\d+\n');
  Matches('waits for table \(at [^\n]* at StuckC\.c:\d+, held by thread \d+\n');
end;

procedure TThreadTests.RobustMutexesHaveOwners;
begin
  Plant('StuckC robust');
  AwaitReport(Deadlock);
  Matches('waits for first \(at [^\n]* at StuckC\.c:\d+, held by thread \d+\n');
end;

// The system refuses the second lock of mutexes with priority inheritance, and the C library waits then.
procedure TThreadTests.ADeadlockThatTheSystemRefusedIsOne;
begin
  Plant('StuckC inheriting');
  AwaitReport('Deadlock that the system found when a thread asked for a lock:');
  Matches('\n  thread (\d+) [^\n]* waits for ever for a mutex with priority inheritance at StuckC\.c:\d+\n');
  AwaitReport('Threads that wait for ever for others:');
  Matches('  thread \d+ [^\n]* waits for (first|second) \(at [^\n]* at StuckC\.c:\d+, held by thread \d+\n');
  HasNot('Lost wake-up', Printed);
end;

procedure TThreadTests.VariablesThatThreadsInitializeAreNamed;
begin
  Plant('StuckCpp guards');
  AwaitReport('Deadlock or lost wake-up: ');
  Matches('  thread (\d+) [^\n]* waits for the initialization of outer\(\)::only'
    + ' \(thread (\d+) is in the same routine\) at StuckCpp\.cpp:\d+\n');
  Matches('  thread \d+ [^\n]* waits for the initialization of inner\(\)::only \(thread ');
end;

procedure TThreadTests.WordsWithoutAnOwnerGetNone;
begin
  Plant('StuckCpp future');
  AwaitReport(LostWakeUp);
  Matches(', 1 thread\n');
  Matches('\nthread \d+ [^\n]* waits for a future at StuckCpp\.cpp:\d+\n');
  Plant('StuckCpp latch');
  AwaitReport(LostWakeUp);
  Matches('\nthread \d+ [^\n]* waits for too_many \(at \$[0-9a-f]+\) at StuckCpp\.cpp:\d+\n');
  Plant('StuckCpp readers');
  AwaitReport('waits for a lock held by readers that it has no note of (at $');
  HasNot('held by thread', Printed);
end;

procedure TThreadTests.AProcessOnAnotherManagerHasThreads;
begin
  Start('sh -c "echo ready 1; read line"', '');
  AwaitReport('waits for read, descriptor 0');
  Has(', 1 thread'#10, Printed);
end;

procedure TThreadTests.FormatsAreRefused;
begin
  Call(Format('report %d threads --json', [fpGetPid]));
  Refused(2, 'the report `threads` is text alone');
end;

initialization
  RegisterTest(TThreadTests);
end.
