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
    /// Records all of ./Recorded many with these settings, into many.lanerec; returns its errors.
    function RecordMany(const More: string): string;
    /// Repeats a recording once, for JSON.
    procedure Ask(const Arguments: string);
    function FileSize(const Name: string): Int64;
  published
    procedure TwoThreadsAreRepeatedWithTheirCalls;
    procedure ThreadsThatEndLeaveNothing;
    procedure AResizeThatRaisesLeavesItsBlock;
    procedure AResizeThatIsInterruptedIsRepeated;
    procedure ABlockFromBeforeIsUnknown;
    procedure AChildProcessIsNotRecorded;
    procedure ARecordingEndsAtItsLimit;
    procedure ASignalEndsARecording;
    procedure AFileThatExistsIsKept;
    procedure TheNumberOfTheProcessStandsForPercentP;
    procedure TheWholePartsOfACutFileAreRepeated;
    procedure ADamagedFileIsRefused;
    procedure OtherFilesAreRefused;
    procedure ALibraryThatWastesLoses;
    procedure AManagerThatLosesContentsIsOut;
    procedure AProgramInCIsRecorded;
    procedure APlanHasTheCalls;
    procedure APlanMayTakeThePlaceOfItsRecording;
    procedure ReplaysAtATimeDoNotDisturbEachOther;
    procedure WrongOptionsAreNamed;
  end;

implementation

uses
  SysUtils, testregistry;

procedure TReplayTests.Ask(const Arguments: string);
begin
  inherited Ask('replay --json --quiet --rounds=1 ' + Arguments);
end;

function TReplayTests.FileSize(const Name: string): Int64;
begin
  Result := StrToInt64(Trim(Shell('stat -c %s ' + Name)));
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

function TReplayTests.RecordMany(const More: string): string;
begin
  Result := Shell('rm -f many.lanerec; LANEMM=record=many.lanerec' + More
    + ' ./Recorded many 2>&1 > /dev/null');
  Same(0, ExitStatus, 'exit code');
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

procedure TReplayTests.ARecordingEndsAtItsLimit;
begin
  Has('LaneMM: the recording ends, it is as long as `record:most`: ',
    RecordMany(',record:most=100K'));
  AtMost(100 * 1024, FileSize('many.lanerec'), 'bytes');
  AtLeast(99 * 1024, FileSize('many.lanerec'), 'bytes');
  CallWell('replay --quiet --rounds=1 many.lanerec');
  Has('The recording ended at its limit, record:most.', Printed);
end;

procedure TReplayTests.ASignalEndsARecording;
begin
  Shell('rm -f wait.lanerec; LANEMM=record=wait.lanerec ./Recorded wait & sleep 0.3; kill $!; wait $!');
  Same(143, ExitStatus, 'exit code');
  Ask('wait.lanerec');
  AssertTrue('has an end', Answer.Booleans['hasEnd']);
end;

procedure TReplayTests.AFileThatExistsIsKept;
begin
  AssertEquals('mine'#10, Shell('echo mine > mine.lanerec;'
    + ' LANEMM=record=mine.lanerec ./Recorded fork > mine.txt 2>&1; cat mine.lanerec'));
  Has('/mine.lanerec exists; %p in a name is the number of the process', Shell('cat mine.txt'));
  Has('nothing is recorded: /none/x cannot be written', Shell('LANEMM=record=/none/x ./Recorded fork'));
  Has('missing value of `record`', Shell('LANEMM=record ./Recorded fork'));
  Has('missing value of `record`', Shell('LANEMM=record= ./Recorded fork'));
end;

procedure TReplayTests.TheNumberOfTheProcessStandsForPercentP;
begin
  Shell('LANEMM=record=by.%p.lanerec ./Recorded fork > /dev/null & wait $!; ls by.$!.lanerec');
  Same(0, ExitStatus, 'exit code');
  Shell('LD_PRELOAD=../lib/liblanemm.so LANEMM=record=by.%p.lanerec nice sort /dev/null & wait $!;'
    + ' ls by.$!.lanerec by.$!-2.lanerec');
  Same(0, ExitStatus, 'exit code behind nice');
  Shell('rm -f by.*.lanerec');
end;

procedure TReplayTests.TheWholePartsOfACutFileAreRepeated;
begin
  RecordMany('');
  Shell('head -c 150000 many.lanerec > cut.lanerec; head -c 30000 many.lanerec > stump.lanerec');
  CallWell('replay --quiet --rounds=1 cut.lanerec');
  Has('The file has no end: the program was killed, or still runs. What is whole is repeated.', Printed);
  Refuses('replay stump.lanerec', 7, 'stump.lanerec has no calls');
end;

procedure TReplayTests.ADamagedFileIsRefused;
begin
  RecordMany('');
  Shell('printf "\7" | dd of=many.lanerec bs=1 seek=100000 conv=notrunc 2>&-');
  Refuses('replay many.lanerec', 7, 'many.lanerec is damaged near byte 65');
  Has('the checksum is wrong; nothing is replayed', Errors);
  Shell('printf "\377\377\377" | dd of=many.lanerec bs=1 seek=17 conv=notrunc 2>&-');
  Refuses('replay many.lanerec', 7, 'no part has that length; nothing is replayed');
end;

procedure TReplayTests.OtherFilesAreRefused;
begin
  Refuses('replay waste.so', 7, 'waste.so is no recording; `LANEMM=record=FILE` makes one');
  Refuses('replay nothing.lanerec', 1, 'nothing.lanerec: No such file or directory');
  RecordMany('');
  Shell('printf "\2" | dd of=many.lanerec bs=1 seek=8 conv=notrunc 2>&-');
  Refuses('replay many.lanerec', 6, 'recorded by another version of LaneMM');
end;

procedure TReplayTests.ALibraryThatWastesLoses;
begin
  RecordMany(',record:most=20K');
  CallWell('replay --quiet --rounds=5 --with=waste=./waste.so --managers=glibc,waste many.lanerec');
  Has('Peak memory: glibc is best, ', Printed);
  Has(' below waste.', Printed);
  Has('glibc wins', Printed);
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

procedure TReplayTests.APlanHasTheCalls;
begin
  RecordMany('');
  CallWell('replay --plan=many.plan many.lanerec');
  AssertEquals('calls', Printed, Shell('../lanemm-replay pascal many.plan 1000 1'));
end;

procedure TReplayTests.APlanMayTakeThePlaceOfItsRecording;
begin
  RecordMany('');
  CallWell('replay --plan=many.plan many.lanerec');
  CallWell('replay --plan=many.lanerec many.lanerec');
  AssertEquals('', Shell('cmp many.plan many.lanerec'));
end;

// Each has a file for what its runs print.
procedure TReplayTests.ReplaysAtATimeDoNotDisturbEachOther;
begin
  RecordMany(',record:most=20K');
  Shell('mv many.lanerec some.lanerec');
  RecordMany('');
  AssertEquals('', Shell('for turn in 1 2 3 4; do for file in some many; do (../lanemm replay --quiet --rounds=1'
    + ' $file.lanerec > /dev/null || echo $file fails) & done; done; wait'));
end;

procedure TReplayTests.WrongOptionsAreNamed;
begin
  Refuses('replay', 2, 'FILE is missing');
  RecordMany(',record:most=20K');
  Refuses('replay --managers=LaneMM many.lanerec', 2, 'one manager alone');
  Refuses('replay --managers=LaneMM,other many.lanerec', 2, 'there is no manager `other`');
  Refuses('replay --rounds=0 many.lanerec', 2, '--rounds needs a number');
end;

initialization
  RegisterTest(TReplayTests);
end.
