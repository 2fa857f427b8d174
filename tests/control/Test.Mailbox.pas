/// Tests of LaneMM.Mailbox and LaneMM.LivePage: what the process answers, and when. Each one runs in
/// a child process, which has a page of its own, and is tool and process at once.
unit Test.Mailbox;

{$mode delphi}{$H+}

interface

uses
  Test.Tools, LaneMM.Layout;

type
  TMailboxTests = class(TLaneTest)
  strict private
    procedure Ask(const Words: string; Signal: Cardinal);
    procedure Expect(const Words, Answer: string);
    procedure WaitsFor(var Lock: TLock);
    procedure RunHere;
  protected
    procedure RunTest; override;
  published
    procedure StatusIsAnswered;
    procedure SecondSignalIsAnswered;
    procedure RequestIsObeyedOnce;
    procedure SettingAppliesAtOnce;
    procedure WrongWordIsNamedAndTheOthersApply;
    procedure NoWordsAreAnswered;
    procedure WordsWithoutAnEndAreCut;
    procedure RequestWaitsForTheLockOfDebugMode;
    procedure RequestWaitsForTheLockOfTheSuppressions;
    procedure RequestWaitsForTheLockOfTheSampler;
    procedure RequestWaitsWhileSettingsAreRead;
    procedure RequestWaitsWhileTheTotalsAreWritten;
    procedure ReportNamesItsFile;
    procedure UnknownReportIsNamed;
    procedure ReportOfNothingSaysSo;
    procedure SnapshotsSayHowMuchMemoryGrew;
    procedure TrimReturnsFreeMemory;
    procedure ClosedMailboxRefuses;
    procedure PageNamesProcessAndRecords;
    procedure TotalsAreThoseOfTheStatus;
    procedure ChildHasItsOwnPage;
    procedure ForkAloneMakesNoPage;
  end;

implementation

uses
  SysUtils, StrUtils, BaseUnix, testregistry, LaneMM, LaneMM.Types, LaneMM.Atomic, LaneMM.Os,
  LaneMM.Lock, LaneMM.Stats, LaneMM.SettingsState, LaneMM.ObserveState, LaneMM.DebugState,
  LaneMM.LeaksState, LaneMM.StatusPage, LaneMM.LivePage;

const
  // The signal for urgent data, which the page names first here.
  FirstSignal = 23;
  Megabyte = 1 shl 20;

function Mailbox: PStatusPage;
begin
  Result := LivePage;
  if Result = nil then
    raise Exception.Create('the process has no status page');
end;

function IsAnswered: Boolean;
begin
  Result := Mailbox^.Mailbox.Answered.Value = Mailbox^.Mailbox.Requested.Value;
end;

function TextOfAnswer: string;
var
  Page: PStatusPage;
begin
  Page := Mailbox;
  Result := PAnsiChar(@Page^.Mailbox.Answer);
end;

procedure RaiseSignal(Number: Cardinal);
begin
  OsSignalSendTo(OsThreadId, Number);
end;

procedure TMailboxTests.RunHere;
begin
  inherited RunTest;
end;

// The test, in the child; it writes no error.
procedure TMailboxTests.RunTest;
var
  Errors: string;
begin
  Same(0, RunInChild(RunHere, Errors), 'child');
  AssertEquals('stderr', '', Errors);
  AssertTrue('the page of the parent', LivePage <> nil);
end;

// Writes a request as a tool does, and sends the signal once. A child process has the page of its
// parent until the first signal.
procedure TMailboxTests.Ask(const Words: string; Signal: Cardinal);
var
  Page: PStatusPage;
begin
  if (LivePage = nil) or (LivePage^.Head.ProcessId <> OsProcessId) then
    RaiseSignal(FirstSignal);
  Page := Mailbox;
  StrPLCopy(PAnsiChar(@Page^.Mailbox.Words), Words, WordsBytes - 1);
  Inc(Page^.Mailbox.Requested.Value);
  RaiseSignal(Signal);
end;

// Sends Words; the answer must contain Answer.
procedure TMailboxTests.Expect(const Words, Answer: string);
begin
  Ask(Words, FirstSignal);
  AssertTrue(Words + ' was not answered', IsAnswered);
  if Answer = '' then
    AssertEquals(Words, '', TextOfAnswer)
  else
    Has(Answer, TextOfAnswer);
end;

// ---------------------------------------------------------------------------- answers

procedure TMailboxTests.StatusIsAnswered;
begin
  Expect('status', 'used ');
  Same(Ord(poDone), Mailbox^.Mailbox.Outcome, 'outcome');
end;

procedure TMailboxTests.SecondSignalIsAnswered;
begin
  Ask('status', FirstSignal);
  AtLeast(1, Mailbox^.Head.Signals[1], 'second signal');
  Ask('status', Mailbox^.Head.Signals[1]);
  AssertTrue('answered', IsAnswered);
  Same(2, Mailbox^.Mailbox.Answered.Value, 'answers');
end;

procedure TMailboxTests.RequestIsObeyedOnce;
begin
  Ask('status', FirstSignal);
  Mailbox^.Mailbox.Answer[0] := #0;
  RaiseSignal(FirstSignal);
  AssertEquals('a second signal', '', TextOfAnswer);
end;

procedure TMailboxTests.SettingAppliesAtOnce;
begin
  Expect('least=7,contention', '');
  Same(7, Settings.Values[opLeast], 'least');
  Same(1, Settings.Values[opContention], 'contention');
  Expect('contention=0', '');
  Same(0, Settings.Values[opContention], 'contention=0');
end;

procedure TMailboxTests.WrongWordIsNamedAndTheOthersApply;
begin
  Expect('leest=7 least=8 top=99999', 'unknown setting `leest`; did you mean `least`?');
  Same(Ord(poWrongWords), Mailbox^.Mailbox.Outcome, 'outcome');
  Same(8, Settings.Values[opLeast], 'least');
  Has('top', TextOfAnswer);
end;

procedure TMailboxTests.NoWordsAreAnswered;
begin
  Expect('', '');
  Expect(' , ,', '');
  Same(Ord(poDone), Mailbox^.Mailbox.Outcome, 'outcome');
end;

procedure TMailboxTests.WordsWithoutAnEndAreCut;
begin
  Ask('status', FirstSignal);
  FillChar(Mailbox^.Mailbox.Words, WordsBytes, 'a');
  Inc(Mailbox^.Mailbox.Requested.Value);
  RaiseSignal(FirstSignal);
  AssertTrue('answered', IsAnswered);
  Same(Ord(poWrongWords), Mailbox^.Mailbox.Outcome, 'outcome');
end;

// ---------------------------------------------------------------------------- safe moments

// The handler interrupts the thread that holds the lock.
procedure TMailboxTests.WaitsFor(var Lock: TLock);
begin
  Ask('status', FirstSignal);
  LockEnter(Lock);
  Ask('debug,report=inuse', FirstSignal);
  AssertFalse('answered under the lock', IsAnswered);
  Same(1, Mailbox^.Mailbox.Postponed.Value, 'postponed');
  LockLeave(Lock);
  RaiseSignal(FirstSignal);
  AssertTrue('answered after the lock', IsAnswered);
end;

procedure TMailboxTests.RequestWaitsForTheLockOfDebugMode;
begin
  WaitsFor(Debug.Lock);
end;

procedure TMailboxTests.RequestWaitsForTheLockOfTheSuppressions;
begin
  WaitsFor(Leaks.Lock);
end;

// A report made while the interrupted thread holds it had no blocks of other threads: none sampled.
procedure TMailboxTests.RequestWaitsForTheLockOfTheSampler;
begin
  WaitsFor(Observe.SampleLock);
end;

procedure TMailboxTests.RequestWaitsWhileSettingsAreRead;
begin
  Ask('status', FirstSignal);
  FetchAdd(Settings.Readers, 1);
  Ask('least=7', FirstSignal);
  AssertFalse('answered meanwhile', IsAnswered);
  FetchAdd(Settings.Readers, NativeUInt(-1));
  RaiseSignal(FirstSignal);
  AssertTrue('answered then', IsAnswered);
end;

procedure TMailboxTests.RequestWaitsWhileTheTotalsAreWritten;
begin
  Ask('status', FirstSignal);
  Inc(Mailbox^.Sequence.Value);
  Ask('status', FirstSignal);
  AssertFalse('answered meanwhile', IsAnswered);
  Inc(Mailbox^.Sequence.Value);
  RaiseSignal(FirstSignal);
  AssertTrue('answered then', IsAnswered);
end;

// ---------------------------------------------------------------------------- reports

procedure TMailboxTests.ReportNamesItsFile;
var
  Path: string;
begin
  Path := GetTempDir + 'lanemm-mailbox-' + IntToStr(GetProcessID);
  Expect('log=' + Path + ',report=inuse', 'file ' + Path);
  AssertTrue('the file is there', FileExists(Path));
  DeleteFile(Path);
end;

procedure TMailboxTests.UnknownReportIsNamed;
begin
  Expect('report=inuse:xml', 'unknown report `inuse:xml`');
  Same(Ord(poWrongWords), Mailbox^.Mailbox.Outcome, 'outcome');
end;

procedure TMailboxTests.ReportOfNothingSaysSo;
begin
  Expect('least=1000000000,contention,report=contention', 'nothing was counted so far');
end;

procedure TMailboxTests.SnapshotsSayHowMuchMemoryGrew;
var
  Path: string;
  Block: Pointer;
begin
  Path := GetTempDir + 'lanemm-mailbox-' + IntToStr(GetProcessID);
  Expect('log=' + Path + ',snapshot', 'first snapshot taken');
  GetMem(Block, 5 * Megabyte);
  Expect('snapshot', 'grown since the last snapshot: 5.0 MB');
  FreeMem(Block);
  DeleteFile(Path);
end;

procedure TMailboxTests.TrimReturnsFreeMemory;
var
  Block: Pointer;
  Status: TStatus;
begin
  GetMem(Block, 64 * Megabyte);
  FillChar(Block^, 64 * Megabyte, 1);
  FreeMem(Block);
  Expect('trim', 'committed ');
  StatusRead(Status);
  Same(0, Status.CachedBytes, 'cached');
  AssertTrue('the heap works', HeapWorks);
end;

procedure TMailboxTests.ClosedMailboxRefuses;
begin
  Expect('attach=0', '');
  Expect('least=9', '');
  Same(Ord(poClosed), Mailbox^.Mailbox.Outcome, 'outcome');
  AssertTrue('not obeyed', Settings.Values[opLeast] <> 9);
end;

// ---------------------------------------------------------------------------- page

procedure TMailboxTests.PageNamesProcessAndRecords;
var
  Page: PStatusPage;
begin
  Ask('status', FirstSignal);
  Same(OsProcessId, Mailbox^.Head.ProcessId, 'process');
  Same(NativeUInt(@Process), Mailbox^.Head.Engine, 'engine');
  Same(SizeOf(TSpan), Mailbox^.Head.RecordBytes[prSpan], 'span');
  Same(SizeOf(THeap), Mailbox^.Head.RecordBytes[prHeap], 'heap');
  Same(SizeOf(Pointer), Mailbox^.Head.PointerBytes, 'pointer');
  Same(FirstSignal, Mailbox^.Head.Signals[0], 'signal');
  Page := Mailbox;
  AssertEquals('magic', PageMagic, Copy(string(PAnsiChar(@Page^.Head.Magic)), 1, 8));
end;

// The threads of this process as the system has them: that of an emulator, too.
function ThreadCount: Integer;
var
  Found: TSearchRec;
begin
  Result := 0;
  if FindFirst('/proc/self/task/*', faAnyFile, Found) = 0 then
    repeat
      Inc(Result, Ord(Found.Name[1] <> '.'));
    until FindNext(Found) <> 0;
  FindClose(Found);
end;

procedure TMailboxTests.TotalsAreThoseOfTheStatus;
var
  Status: TStatus;
  Threads: Integer;
begin
  ThreadCount; // it allocates, which may start LaneMM's own thread
  Threads := ThreadCount;
  Ask('', FirstSignal);
  StatusRead(Status);
  AssertFalse('sequence', Odd(Mailbox^.Sequence.Value));
  Same(1, Mailbox^.Totals.Count, 'count');
  Same(Threads, Mailbox^.Totals.Threads, 'threads');
  Same(Status.UsedBytes, Mailbox^.Totals.UsedBytes, 'used');
  Same(Status.CommittedBytes, Mailbox^.Totals.CommittedBytes, 'committed');
  Same(Status.Small.BlockCount, Mailbox^.Totals.Small.Blocks, 'small blocks');
  Same(Status.Large.SpanBytes, Mailbox^.Totals.Large.SpanBytes, 'large spans');
end;

procedure TMailboxTests.ChildHasItsOwnPage;
begin
  Ask('status', FirstSignal);
  Same(0, RunInChild(PageNamesProcessAndRecords), 'grandchild');
  Same(OsProcessId, Mailbox^.Head.ProcessId, 'the page of the child');
  Same(1, Mailbox^.Mailbox.Requested.Value, 'its requests');
end;

procedure TMailboxTests.ForkAloneMakesNoPage;
begin
  LockRecover;
  AssertTrue('no page', LivePage = nil);
end;

initialization
  RegisterTest(TMailboxTests);
end.
