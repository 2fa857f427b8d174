/// Tests of `LANEMM=record` and `lanemm replay`: what is recorded is repeated, call by call; limits,
/// forks, damaged files; a manager that is known to be worse. No time is compared.
unit Test.Lanemm.Replays;

{$mode delphi}{$H+}

interface

uses
  Test.Lanemm.Tools;

type
  /// The command, and the setting.
  TReplayTests = class(TLanemmTest)
  private
    /// Records ./Recorded with Arguments while it does its work, and repeats it once. Fails unless the
    /// calls are those that it counted.
    procedure RepeatsWhatWasCounted(const Work: string);
    /// Repeats a recording once, for JSON.
    procedure Ask(const Arguments: string);
  published
    procedure TwoThreadsAreRepeatedWithTheirCalls;
    procedure ThreadsThatEndLeaveNothing;
    procedure AResizeThatRaisesLeavesItsBlock;
    procedure AResizeThatIsInterruptedIsRepeated;
    procedure ABlockFromBeforeIsUnknown;
    procedure AChildProcessIsNotRecorded;
    procedure AManagerThatLosesContentsIsOut;
    procedure AProgramInCIsRecorded;
  end;

implementation

uses
  SysUtils, Test.Cases;

procedure TReplayTests.Ask(const Arguments: string);
begin
  inherited Ask('replay --json --quiet --rounds=1 ' + Arguments);
end;

procedure TReplayTests.RepeatsWhatWasCounted(const Work: string);
var
  Counted: string;
begin
  Counted := Trim(Shell(Format('rm -f %s.lanerec; ./Recorded %0:s %0:s.lanerec', [Work])));
  Same(0, ExitStatus, 'exit code');
  Ask(Work + '.lanerec');
  AssertEquals('calls', Counted, Format('%d allocations, %d frees, %d resizes, %d bytes',
    [Answer.Int64s['allocations'], Answer.Int64s['frees'], Answer.Int64s['resizes'],
    Answer.Int64s['bytes']]));
  AssertEquals('failure', '', Item(Answer, 'managers', 'name', 'LaneMM').Strings['failure']);
  AssertTrue('has an end', Answer.Booleans['hasEnd']);
end;

procedure TReplayTests.TwoThreadsAreRepeatedWithTheirCalls;
begin
  RepeatsWhatWasCounted('threads');
  Same(3, Answer.Integers['threads'], 'threads');
  AtLeast(1000, Answer.Int64s['resizes'], 'resizes');
  Same(0, Answer.Int64s['unknownBlocks'], 'unknown blocks');
end;

procedure TReplayTests.ThreadsThatEndLeaveNothing;
begin
  RepeatsWhatWasCounted('ends');
  Same(501, Answer.Integers['threads'], 'threads');
  AtMost(8 shl 20, Item(Answer, 'managers', 'name', 'LaneMM').FindPath('medians.peakBytes').AsInt64, 'peak');
end;

procedure TReplayTests.AResizeThatRaisesLeavesItsBlock;
begin
  RepeatsWhatWasCounted('raise');
  Same(0, Answer.Int64s['unknownBlocks'], 'unknown blocks');
  AtLeast(1, Answer.Int64s['frees'], 'frees');
end;

procedure TReplayTests.AResizeThatIsInterruptedIsRepeated;
begin
  RepeatsWhatWasCounted('fault');
  Same(0, Answer.Int64s['unknownBlocks'], 'unknown blocks');
  Same(1, Answer.Int64s['resizes'], 'resizes');
end;

// Its resize is an allocation.
procedure TReplayTests.ABlockFromBeforeIsUnknown;
begin
  Shell('rm -f before.lanerec; ./Recorded before before.lanerec');
  Same(0, ExitStatus, 'exit code');
  Ask('before.lanerec');
  Same(1, Answer.Int64s['unknownBlocks'], 'unknown blocks');
  Same(0, Answer.Int64s['resizes'], 'resizes');
  Same(Answer.Int64s['allocations'], Answer.Int64s['frees'], 'frees');
  AssertEquals('failure', '', Item(Answer, 'managers', 'name', 'LaneMM').Strings['failure']);
end;

procedure TReplayTests.AChildProcessIsNotRecorded;
begin
  RepeatsWhatWasCounted('fork');
  Same(1, Answer.Integers['threads'], 'threads');
end;

procedure TReplayTests.AManagerThatLosesContentsIsOut;
begin
  Shell('rm -f threads.lanerec; ./Recorded threads threads.lanerec; printf "#include <stdlib.h>\n'
    + 'void *realloc(void *old, size_t size) { return calloc(1, size); }\n" > lost.c;'
    + ' gcc -w -O1 -fPIC -shared -o lost.so lost.c');
  Same(0, ExitStatus, 'exit code of the compiler');
  Ask('--with=lost=./lost.so --managers=glibc,lost,LaneMM threads.lanerec');
  AssertEquals('lost', 'exit code 1', Item(Answer, 'managers', 'name', 'lost').Strings['failure']);
  AssertEquals('glibc', '', Item(Answer, 'managers', 'name', 'glibc').Strings['failure']);
end;

procedure TReplayTests.AProgramInCIsRecorded;
begin
  Shell('rm -f sort.lanerec; seq 20000 | LD_PRELOAD=../lib/liblanemm.so LANEMM=record=sort.lanerec sort -R'
    + ' > /dev/null');
  Same(0, ExitStatus, 'exit code');
  Ask('--managers=glibc,LaneMM sort.lanerec');
  AssertTrue('of malloc', Answer.Booleans['ofMalloc']);
  AssertTrue('has an end', Answer.Booleans['hasEnd']);
  AtLeast(10, Answer.Int64s['allocations'], 'allocations');
  AssertEquals('LaneMM', '', Item(Answer, 'managers', 'name', 'LaneMM').Strings['failure']);
end;

initialization
  RegisterCases(TReplayTests, 'lanemm/Replay');
end.
