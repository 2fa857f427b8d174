/// Tests of LaneMM.Mailbox and LaneMM.LivePage: what the process answers, and when. Each one runs in
/// a child process, which gets a page of its own, and is tool and process at once.
unit Test.Mailbox;

{$mode delphi}{$H+}

interface

uses
  Test.Tools, LaneMM.Layout;

type
  TMailboxTests = class(TLaneTest)
  strict private
    procedure Ring;
    procedure Ask(const Words: string);
    procedure AwaitAnswer;
    procedure Expect(const Words, Answer: string);
    procedure WaitsFor(var Lock: TLock);
    procedure TellsNobody;
    procedure RunHere;
  protected
    procedure RunTest; override;
  published
    procedure StatusIsAnswered;
    procedure SlowPathsSeeTheBell;
    procedure NoSignalIsHandled;
    procedure RequestIsObeyedOnce;
    procedure SettingAppliesAtOnce;
    procedure SettingThatFindsNoFileIsNamed;
    procedure WrongWordIsNamedAndTheOthersApply;
    procedure NoWordsAreAnswered;
    procedure WordsWithoutAnEndAreCut;
    procedure RequestWaitsForTheLockOfDebugMode;
    procedure RequestWaitsForTheLockOfTheSuppressions;
    procedure RequestWaitsForTheLockOfTheSampler;
    procedure RequestWaitsWhileSettingsAreRead;
    procedure RequestWaitsWhileTheTotalsAreWritten;
    procedure ReportNamesItsFile;
    procedure PathInQuotesMayHaveSeparators;
    procedure UnknownReportIsNamed;
    procedure ReportOfNothingSaysSo;
    procedure ReportOfWhatIsOffNamesItsSetting;
    procedure ReportInAFormatLeavesTheSettingsAlone;
    procedure SnapshotsSayHowMuchMemoryGrew;
    procedure TrimReturnsFreeMemory;
    procedure ClosedMailboxRefuses;
    procedure PageNamesProcessAndRecords;
    procedure TotalsAreThoseOfTheStatus;
    procedure ChildHasItsOwnPage;
    procedure ForkAloneMakesNoPage;
    procedure ChildAnswersNoRequestOfItsParent;
    procedure AThreadThatWasAskedForWaits;
    procedure AnsweringLeavesNothingBehind;
  end;

implementation

uses
  SysUtils, StrUtils, BaseUnix, testregistry, LaneMM, LaneMM.Types, LaneMM.Hooks, LaneMM.Atomic,
  LaneMM.Os, LaneMM.OsThread, LaneMM.OsSignals, LaneMM.Lock, LaneMM.Stats, LaneMM.ReportState, LaneMM.SettingsState,
  LaneMM.ObserveState, LaneMM.DebugState, LaneMM.LeaksState, LaneMM.StatusPage, LaneMM.LivePage;

const
  PatienceMs = 20000;
  Megabyte = 1 shl 20;

function Mailbox: PStatusPage;
begin
  Result := LivePage;
  if Result = nil then
    raise Exception.Create('the process has no status page');
end;

type
  TCondition = function: Boolean;

// Waits until it is so, as long as a test has patience.
procedure Await(IsSo: TCondition);
var
  Limit: QWord;
begin
  Limit := GetTickCount64 + PatienceMs;
  while not IsSo and (GetTickCount64 < Limit) do
    Sleep(1);
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
  AssertTrue('the page of the parent', LivePageIsOwn);
end;

// Rings as a tool does, and sees the bell as a slow path of this thread does.
procedure TMailboxTests.Ring;
begin
  FetchAdd(Mailbox^.Mailbox.Bell.Value, 1);
  Hooks.Ring;
end;

// Writes a request, and rings once. A child process has the page of its parent until then.
procedure TMailboxTests.Ask(const Words: string);
var
  Page: PStatusPage;
begin
  Mailbox^.Mailbox.Wanted.Value := OsProcessId;
  if not LivePageIsOwn then
    Ring;
  Await(LivePageIsOwn);
  AssertTrue('a page of its own', LivePageIsOwn);
  Page := Mailbox;
  StrPLCopy(PAnsiChar(@Page^.Mailbox.Words), Words, WordsBytes - 1);
  Inc(Page^.Mailbox.Requested.Value);
  Ring;
end;

procedure TMailboxTests.AwaitAnswer;
begin
  Await(IsAnswered);
  AssertTrue('answered', IsAnswered);
end;

// Sends Words; the answer must contain Answer.
procedure TMailboxTests.Expect(const Words, Answer: string);
begin
  Ask(Words);
  AwaitAnswer;
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

// A program that only allocates answers: a slow path of its thread sees the bell.
procedure TMailboxTests.SlowPathsSeeTheBell;
var
  Limit: QWord;
  Blocks: array of Pointer;
begin
  Expect('', '');
  Limit := GetTickCount64 + PatienceMs;
  Inc(Mailbox^.Mailbox.Requested.Value);
  FetchAdd(Mailbox^.Mailbox.Bell.Value, 1);
  Blocks := nil;
  while not IsAnswered and (GetTickCount64 < Limit) do
  begin
    SetLength(Blocks, Length(Blocks) + 1000);
    GetMem(Blocks[High(Blocks)], 1000);
  end;
  AssertTrue('answered', IsAnswered);
end;

procedure TMailboxTests.NoSignalIsHandled;
var
  Number: Integer;
  Action: SigActionRec;
begin
  Expect('status', 'used ');
  for Number := SIGURG to 64 do
    if OsSignalIsFree(Number) and (fpSigAction(Number, nil, @Action) = 0) then
      AssertTrue('signal ' + IntToStr(Number), @Action.sa_handler = nil);
end;

procedure TMailboxTests.RequestIsObeyedOnce;
begin
  Expect('status', 'used ');
  Mailbox^.Mailbox.Answer[0] := #0;
  Ring;
  Sleep(100);
  AssertEquals('after a second ring', '', TextOfAnswer);
end;

procedure TMailboxTests.SettingAppliesAtOnce;
begin
  Expect('least=7,contention', '');
  Same(7, Settings.Values[opLeast], 'least');
  Same(1, Settings.Values[opContention], 'contention');
  Expect('contention=0', '');
  Same(0, Settings.Values[opContention], 'contention=0');
end;

procedure TMailboxTests.SettingThatFindsNoFileIsNamed;
begin
  fpDup2(fpOpen('/dev/null', O_WRONLY), StdErrorHandle); // for the line of the process itself
  Expect('least=7,blackbox=/nowhere/at/all', 'no file for `blackbox`: it stays off'#10);
  Same(Ord(poFailed), Mailbox^.Mailbox.Outcome, 'outcome');
  Same(0, Settings.Values[opBlackBox], 'blackbox');
  Same(7, Settings.Values[opLeast], 'least');
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
  Expect('status', 'used ');
  FillChar(Mailbox^.Mailbox.Words, WordsBytes, 'a');
  Inc(Mailbox^.Mailbox.Requested.Value);
  Ring;
  AwaitAnswer;
  Same(Ord(poWrongWords), Mailbox^.Mailbox.Outcome, 'outcome');
end;

// ---------------------------------------------------------------------------- safe moments

function IsPostponed: Boolean;
begin
  Result := LoadAcquire(Mailbox^.Mailbox.Postponed.Value) <> 0;
end;

procedure TMailboxTests.WaitsFor(var Lock: TLock);
begin
  Expect('status', 'used ');
  LockEnter(Lock);
  Ask('debug,report=inuse');
  Await(IsPostponed);
  AssertFalse('answered under the lock', IsAnswered);
  Same(1, Mailbox^.Mailbox.Postponed.Value, 'postponed');
  LockLeave(Lock);
  Ring;
  AwaitAnswer;
end;

procedure TMailboxTests.RequestWaitsForTheLockOfDebugMode;
begin
  WaitsFor(Debug.Lock);
end;

procedure TMailboxTests.RequestWaitsForTheLockOfTheSuppressions;
begin
  WaitsFor(Leaks.Lock);
end;

// A report made while a thread holds it had no blocks of other threads: none sampled.
procedure TMailboxTests.RequestWaitsForTheLockOfTheSampler;
begin
  WaitsFor(Observe.SampleLock);
end;

procedure TMailboxTests.RequestWaitsWhileSettingsAreRead;
begin
  Expect('status', 'used ');
  FetchAdd(Settings.Readers, 1);
  Ask('least=7');
  Await(IsPostponed);
  AssertFalse('answered meanwhile', IsAnswered);
  FetchAdd(Settings.Readers, NativeUInt(-1));
  Ring;
  AwaitAnswer;
end;

procedure TMailboxTests.RequestWaitsWhileTheTotalsAreWritten;
begin
  Expect('status', 'used ');
  Inc(Mailbox^.Sequence.Value);
  Ask('status');
  Await(IsPostponed);
  AssertFalse('answered meanwhile', IsAnswered);
  Inc(Mailbox^.Sequence.Value);
  Ring;
  AwaitAnswer;
end;

// ---------------------------------------------------------------------------- reports

procedure TMailboxTests.ReportNamesItsFile;
var
  Path: string;
begin
  Path := GetTempDir + 'lanemm-mailbox-' + IntToStr(GetProcessID);
  Expect('log="' + Path + '",report=inuse', 'file ' + Path);
  AssertTrue('the file is there', FileExists(Path));
  DeleteFile(Path);
end;

procedure TMailboxTests.PathInQuotesMayHaveSeparators;
var
  Path: string;
begin
  Path := GetTempDir + 'lanemm mailbox, ' + IntToStr(GetProcessID);
  Expect('log="' + Path + '",report=inuse', 'file ' + Path + #10);
  Same(Ord(poDone), Mailbox^.Mailbox.Outcome, 'outcome');
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

procedure TMailboxTests.ReportOfWhatIsOffNamesItsSetting;
begin
  Expect('report=peak', 'profile is off: `lanemm do PID profile` turns it on');
  Expect('least=1000000000,contention,report=peak', 'profile is off: `lanemm do PID profile` turns it on');
  Expect('report=profile', 'profile is off: `lanemm do PID profile` turns it on');
  Expect('report=growth', 'growth is off: `lanemm do PID growth` turns it on');
end;

// A timed report of another thread had the format of the request, and what the program set meanwhile
// was set back. Another thread answers.
procedure TMailboxTests.ReportInAFormatLeavesTheSettingsAlone;
const
  Requests: array[0..3] of string = ('report=profile:json', 'report=inuse:json', 'report=profile:html',
    'report=inuse:html');
var
  Request, Line: string;
  Limit: QWord;
  Changes: Integer;
begin
  FpDup2(FpOpen('/dev/null', O_WRONLY), StdErrorHandle); // the reports are printed, too
  Expect('profile,rate=1,pprof,log="' + GetTempDir + 'lanemm-mailbox-' + IntToStr(GetProcessID) + '"', '');
  Changes := 0;
  Limit := GetTickCount64 + PatienceMs;
  for Request in Requests do
  begin
    Ask(Request);
    while not IsAnswered and (GetTickCount64 < Limit) do
      Inc(Changes, Ord((Settings.Values[opPprof] <> 1) or (Settings.Values[opLeaksFormat] <> 0)));
    AssertTrue('answered', IsAnswered);
    Has('file ', TextOfAnswer);
    for Line in TextOfAnswer.Split([#10]) do
      if Line.StartsWith('file ') then
        DeleteFile(Copy(Line, Length('file ') + 1, MaxInt));
  end;
  Same(0, Changes, 'looks at changed settings');
end;

procedure TMailboxTests.SnapshotsSayHowMuchMemoryGrew;
var
  Path: string;
  Block: Pointer;
begin
  Path := GetTempDir + 'lanemm-mailbox-' + IntToStr(GetProcessID);
  Expect('log="' + Path + '",snapshot', 'first snapshot taken');
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
  Expect('status', 'used ');
  Same(OsProcessId, Mailbox^.Head.ProcessId, 'process');
  Same(NativeUInt(@Process), Mailbox^.Head.Engine, 'engine');
  Same(SizeOf(TSpan), Mailbox^.Head.RecordBytes[prSpan], 'span');
  Same(SizeOf(THeap), Mailbox^.Head.RecordBytes[prHeap], 'heap');
  Same(SizeOf(Pointer), Mailbox^.Head.PointerBytes, 'pointer');
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
  Threads := ThreadCount + Ord(Mailbox^.Head.ThreadCode <> 0); // the one that answers
  Expect('', '');
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
  Expect('status', 'used ');
  Same(0, RunInChild(PageNamesProcessAndRecords), 'grandchild');
  Same(OsProcessId, Mailbox^.Head.ProcessId, 'the page of the child');
  Same(1, Mailbox^.Mailbox.Requested.Value, 'its requests');
end;

procedure TMailboxTests.ForkAloneMakesNoPage;
begin
  LockRecover;
  AssertFalse('a page', LivePageIsOwn);
end;

procedure TMailboxTests.TellsNobody;
begin
  LockRecover;
  AssertTrue('what it reports goes to a tool', @Report.Tell = nil);
end;

// Where the fork comes in the middle of an answer, a thread of the child may get the number of the one
// that answers.
procedure TMailboxTests.ChildAnswersNoRequestOfItsParent;
begin
  Expect('status', 'used ');
  Same(0, RunInChild(TellsNobody), 'child');
end;

function HasAnswerer: Boolean;
begin
  Result := LoadAcquire(OwnThreads[otAnswerer]) <> 0;
end;

procedure TMailboxTests.AThreadThatWasAskedForWaits;
begin
  Expect('attach=2,status', 'used ');
  if Mailbox^.Head.ThreadCode = 0 then
    Exit; // there are no such threads on this target
  Await(HasAnswerer);
  AssertTrue('a thread waits', HasAnswerer);
end;

// Each thread that answers releases its memory, of which no note stays, and takes no heap.
procedure TMailboxTests.AnsweringLeavesNothingBehind;
const
  Requests = 50;

  function HeapCount: Integer;
  var
    Heap: PHeap;
  begin
    Result := 0;
    Heap := PHeap(LoadAcquire(Process.Heaps));
    while Heap <> nil do
    begin
      Inc(Result);
      Heap := Heap^.NextHeap;
    end;
  end;

  function NoteCount: Integer;
  var
    Table: POsTakenTable;
    Index: Integer;
  begin
    Result := 0;
    Table := POsTakenTable(LoadAcquire(Process.TakenPages));
    while Table <> nil do
    begin
      for Index := 0 to High(Table^.Ranges) do
        Inc(Result, Ord(Table^.Ranges[Index].First <> 0));
      Table := Table^.Next;
    end;
  end;

var
  Heaps, Notes, Index: Integer;
begin
  Expect('contention,profile,growth,least=3,status,trim', 'used ');
  Heaps := HeapCount;
  Notes := NoteCount;
  for Index := 1 to Requests do
    Expect('growth=0,growth,status', 'used ');
  Same(Heaps, HeapCount, 'heaps');
  AtMost(Notes + Requests div 5, NoteCount, 'notes of pages');
end;

initialization
  RegisterTest(TMailboxTests);
end.
