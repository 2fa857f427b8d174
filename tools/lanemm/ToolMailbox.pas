/// The mailbox of another process: a request, and its answer. See LaneMM.StatusPage.
unit ToolMailbox;

{$mode delphi}{$H+}

interface

uses
  LaneMM.StatusPage, StatusPages;

const
  /// What precedes the path on a line of an answer that names a file.
  FilePrefix = 'file ';

type
  /// A process that is asked.
  TMailbox = class
  private
    Pid: Integer;
    Page: PStatusPage;
    Segment: Integer;  // of the page
    CanStart: Boolean; // whether the system has not refused to let this tool start a thread in it
    IsClient: Boolean; // whether this tool has the mailbox
    function TryOpen(Number: Integer): Boolean;
    function IsGone: Boolean;
    function HasSegment: Boolean;
    procedure Close;
    function OpenOwn: Boolean;
    procedure WakeChild(const Parents: TPageCopy; PatienceMs: Int64);
    procedure RaiseUnopened;
    procedure Ring(Round: Integer);
    procedure TryBecomeClient;
    procedure BecomeClient(Limit: QWord);
    function TakeBack: Boolean;
    procedure Await(Number: UInt64; Limit: QWord; const Doing: string);
    function WhyNoAnswer(Postponed: UInt64): string;
    function FilesFrom(const Lines: string): string;
  public
    /// How the last request ended.
    Outcome: TPageOutcome;
    /// The answer: lines; `file PATH` names a written file, as this program finds it.
    Answer: string;
    /// How often this tool has rung, and how many threads it has started in the process.
    RingCount, StartCount: Integer;
    /// Opens the page of a process for reading and writing; waits, PatienceMs at most, until a child
    /// has made its own. Raises ETool when it has none that takes requests, or the system refuses.
    constructor Create(ProcessId: Integer; PatienceMs: Int64 = 1000);
    destructor Destroy; override;
    /// Sends the words and waits for the answer, PatienceMs at most. Raises ETool without one.
    procedure Ask(const Words: string; PatienceMs: Int64);
    /// Returns the answer as a terminal may get it: a process can answer anything.
    function PrintableAnswer: string;
    /// Returns a copy of the page.
    function Copy: TStatusPage;
  end;

/// Lets a process write the totals of its status page; returns whether it did, and soon. Pages: those
/// of its own that have totals, old ones too.
function AskForTotals(ProcessId: Integer; out Pages: TPageCopies): Boolean;

implementation

uses
  SysUtils, StrUtils, Math, BaseUnix, Ipc, SysCall, ToolCommands, Targets, ThreadStarts;

const
  // The tool looks for the answer each millisecond, and rings again after so many looks.
  LooksForRing = 20;
  // In these rounds of rings it starts a thread in the process, which may be doing nothing.
  FirstStart = 3;
  RoundsForStart = 10;

// ---------------------------------------------------------------------------- /proc

// Returns the folder of a process.
function FolderOf(Pid: Integer): string;
begin
  Result := Format('/proc/%d', [Pid]);
end;

// Returns whether the system hides the files of the process from the caller.
function IsHidden(Pid: Integer): Boolean;
begin
  Result := fpReadLink(Format('/proc/%d/exe', [Pid])) = '';
end;

// ---------------------------------------------------------------------------- the holder

type
  // What the system reads at the end of a thread: the word at a distance from Pending has one bit set
  // and the rest cleared then, if it is the number of the thread.
  TRobustList = record
    Next: Pointer;
    Distance: NativeInt;
    Pending: Pointer;
  end;

const
  // Of the word: its thread has ended.
  HolderEnded = $40000000;

var
  Robust: TRobustList;

// Has the system clear the word when this tool ends in any way, while Robust.Pending is set. It compares
// the number alone: in another namespace of processes a tool may have the same.
procedure ClearAtEnd(var Holder: LongInt);
const
  RobustListCall = {$ifdef CPUAARCH64} 99 {$else} 273 {$endif};
begin
  Robust.Next := @Robust;
  Robust.Distance := NativeInt(@Holder) - NativeInt(@Robust.Pending);
  Robust.Pending := nil;
  do_syscall(RobustListCall, TSysParam(@Robust), SizeOf(Robust));
end;

// Wakes the thread of the process that waits for a change of the bell.
procedure WakeWaiting(var Bell: UInt64);
const
  FutexCall = {$ifdef CPUAARCH64} 98 {$else} 202 {$endif};
  WakeShared = 1;
begin
  do_syscall(FutexCall, TSysParam(@Bell), WakeShared, High(LongInt), 0, 0, 0);
end;

// ---------------------------------------------------------------------------- open

// Maps the segment; returns whether it is the page of the process.
function TMailbox.TryOpen(Number: Integer): Boolean;
begin
  Segment := Number;
  Page := MapSegment(Pid, Segment, 0);
  Result := (Page <> nil) and IsPage(Page^) and (Page^.Head.ProcessId = UInt64(OwnNumber(Pid)));
  if not Result then
    Close;
end;

procedure TMailbox.Close;
begin
  if Page = nil then
    Exit;
  if IsClient then
    InterlockedExchange(Page^.Mailbox.Client, 0);
  IsClient := False;
  Robust.Pending := nil;
  UnmapSegment(Page);
  Page := nil;
end;

function TMailbox.OpenOwn: Boolean;
var
  Copy: TPageCopy;
begin
  Result := False;
  for Copy in OpenPages(Pid) do
    if not Copy.IsParents and TryOpen(Copy.Segment) then
      Exit(True);
end;

// Asks a child process, which has the page of its parent so far, for one of its own.
procedure TMailbox.WakeChild(const Parents: TPageCopy; PatienceMs: Int64);
var
  Round: Integer;
  Why: string;
begin
  Segment := Parents.Segment;
  Page := MapSegment(Pid, Segment, 0);
  if (Page = nil) or (Page^.Head.Layout <> PageLayout) or (Page^.Head.HasMailbox <> 1) then
    Exit; // as below for the page of its own
  for Round := 0 to PatienceMs div LooksForRing - 1 do
  begin
    Page^.Mailbox.Wanted.Room := UInt64(OwnNumber(Pid));
    Ring(Round);
    Sleep(LooksForRing);
    if PageSegments(Pid) <> nil then
    begin
      Close;
      if OpenOwn then
        Exit;
      Segment := Parents.Segment;
      Page := MapSegment(Pid, Segment, 0);
    end;
    if Page = nil then
      Exit;
  end;
  Why := WhyNoAnswer(0);
  Close;
  raise ETool.Create(ecFailed, 'process %d has the page of its parent process so far: %s', [Pid, Why]);
end;

procedure TMailbox.RaiseUnopened;
begin
  if HasEnded(Pid) then
    RaiseEnded(Pid);
  if IsHidden(Pid) then
    raise ETool.Create(ecNotPermitted, 'process %d may be asked by its user and by root only', [Pid]);
  if not IsOnLaneMM(Pid) then
    raise ETool.Create(ecNotOnLaneMM, 'process %d has no status page: it does not run on LaneMM', [Pid]);
  if fpReadLink(FolderOf(Pid) + '/ns/ipc') <> fpReadLink('/proc/self/ns/ipc') then
    raise ETool.Create(ecNotPermitted, 'process %d lies in another namespace of shared memory: ask it'
      + ' inside of its container, or as root', [Pid]);
  raise ETool.Create(ecNotOnLaneMM, 'process %d has no status page: it was started with `live=0`, or'
    + ' has more rights than its user, or the system gave it no segment of shared memory'
    + ' (kernel.shmmni, a sandbox)', [Pid]);
end;

constructor TMailbox.Create(ProcessId: Integer; PatienceMs: Int64);
var
  Copy: TPageCopy;
begin
  Pid := ProcessId;
  CanStart := True;
  if not DirectoryExists(FolderOf(Pid)) then
    raise ETool.Create(ecNoProcess, 'there is no process %d', [Pid]);
  if not OpenOwn then
    for Copy in OpenPages(Pid) do
      if Copy.IsParents and (Page = nil) then
        WakeChild(Copy, PatienceMs);
  if Page = nil then
    RaiseUnopened;
  CheckPage(Page^, Format('process %d', [Pid]));
  if Page^.Head.HasMailbox = MailboxOfLean then
    raise ETool.Create(ecNotPermitted, 'process %d has LaneMMLean, which answers no requests: `ps`,'
      + ' `top`, `map` and `state` read it from outside', [Pid]);
  if Page^.Head.HasMailbox = 0 then
    raise ETool.Create(ecNotPermitted, 'process %d takes no requests: it was started with'
      + ' `attach=0`', [Pid]);
end;

destructor TMailbox.Destroy;
begin
  Close;
  inherited Destroy;
end;

// ---------------------------------------------------------------------------- requests

// Lets threads of the process see the request; later also starts one there that answers.
procedure TMailbox.Ring(Round: Integer);
begin
  Inc(RingCount);
  InterlockedIncrement64(Int64(Page^.Mailbox.Bell.Room));
  WakeWaiting(Page^.Mailbox.Bell.Room);
  if not CanStart or (Round mod RoundsForStart <> FirstStart) then
    Exit;
  case StartThreadIn(Pid, Page^.Head) of
    tsStarted: Inc(StartCount);
    tsRefused: CanStart := False;
  end;
end;

// Takes the mailbox if no tool has it. Whether the number there is its own says nothing.
procedure TMailbox.TryBecomeClient;
var
  Holder: LongInt;
begin
  Holder := Page^.Mailbox.Client;
  if Holder and not HolderEnded <> 0 then
    Exit;
  Robust.Pending := @Robust.Pending;
  IsClient := InterlockedCompareExchange(Page^.Mailbox.Client, GetProcessID, Holder) = Holder;
  if not IsClient then
    Robust.Pending := nil;
end;

// Takes the mailbox, until this tool ends in any way or leaves it.
procedure TMailbox.BecomeClient(Limit: QWord);
begin
  if IsClient then
    Exit;
  ClearAtEnd(Page^.Mailbox.Client);
  repeat
    TryBecomeClient;
    if IsClient then
      Exit;
    if GetTickCount64 > Limit then
      raise ETool.Create(ecFailed, 'process %d is being asked by another tool', [Pid]);
    Sleep(1);
  until False;
end;

// Takes back a request that the process has not taken; returns whether it did.
function TMailbox.TakeBack: Boolean;
var
  Answered, Requested: Int64;
begin
  Answered := Int64(Page^.Mailbox.Answered.Room);
  Requested := Int64(Page^.Mailbox.Requested.Room);
  // As a handler takes it: one of the two does.
  Result := (Answered <> Requested)
    and (InterlockedCompareExchange64(Int64(Page^.Mailbox.Taken.Room), Requested, Answered)
    = Answered);
  if Result then
    Page^.Mailbox.Answered.Room := UInt64(Requested);
end;

// Returns whether no thread of the process is left.
function TMailbox.IsGone: Boolean;
begin
  Result := HasEnded(Pid) and (LivingThread(Pid) = 0);
end;

// Returns whether the process still has the segment of the page.
function TMailbox.HasSegment: Boolean;
var
  Each: Integer;
begin
  Result := False;
  for Each in PageSegments(Pid) do
    Result := Result or (Each = Segment);
end;

// Returns why the process has not answered.
function TMailbox.WhyNoAnswer(Postponed: UInt64): string;
var
  State: string;
begin
  State := StatusValue(FolderOf(Pid), 'State');
  if State = '' then
    raise ETool.Create(ecNoProcess, 'process %d has ended', [Pid]);
  if not HasSegment then
    Result := 'it has become another program, or has unloaded the library with LaneMM'
  else if StartsStr('T', UpperCase(State)) then
    Result := 'it is stopped; `lanemm state` and `map` read it without its help'
  else if StartsStr('D', State) then
    Result := 'it waits for a device or a file system'
  else if Page^.Mailbox.Taken.Room <> Page^.Mailbox.Answered.Room then
    Result := 'it is still at work on it'
  else if Page^.Mailbox.Postponed.Room <> Postponed then
    Result := 'each time it was in the middle of a change that must not be interrupted'
  else
    Result := 'none of its threads has looked, as they do when they allocate or free some'
      + ' memory; an idle process can be asked by root, or if it was started with `attach=2`';
end;

procedure TMailbox.Await(Number: UInt64; Limit: QWord; const Doing: string);
var
  Look: Integer;
  Postponed: UInt64;
begin
  Look := 0;
  Postponed := Page^.Mailbox.Postponed.Room;
  while Page^.Mailbox.Answered.Room <> Number do
  begin
    if (Look mod LooksForRing = 0) and IsGone and (Page^.Mailbox.Answered.Room <> Number) then
      raise ETool.Create(ecNoProcess, 'process %d has ended', [Pid]);
    if (Look mod LooksForRing = 0) and (Page^.Mailbox.Taken.Room <> Number) then
      Ring(Look div LooksForRing);
    if (GetTickCount64 > Limit) and (TakeBack or (Page^.Mailbox.Answered.Room <> Number)) then
      raise ETool.Create(ecFailed, 'process %d gives no answer%s: %s', [Pid, Doing,
        WhyNoAnswer(Postponed)]);
    Sleep(1);
    Inc(Look);
  end;
  ReadBarrier; // the answer after its number
end;

// Returns an answer with the paths by which this program reaches the files. A long answer is cut, maybe
// within a path.
function TMailbox.FilesFrom(const Lines: string): string;
var
  Line: string;
begin
  Result := '';
  for Line in Lines.Split([#10], TStringSplitOptions.ExcludeEmpty) do
    if Line.StartsWith(FilePrefix) and Lines.EndsWith(Line) then
      Result := Result + 'more files, for whose names the answer had no room'#10
    else if Line.StartsWith(FilePrefix) then
      Result := Result + FilePrefix + PathFrom(Pid, Line.Substring(Length(FilePrefix))) + #10
    else
      Result := Result + Line + #10;
end;

procedure TMailbox.Ask(const Words: string; PatienceMs: Int64);
var
  Limit: QWord;
begin
  if Length(Words) >= WordsBytes then
    raise ETool.Create(ecUsage, 'the words have more than %d characters', [WordsBytes - 1]);
  Limit := GetTickCount64 + QWord(PatienceMs);
  BecomeClient(Limit);
  if not TakeBack then
    Await(Page^.Mailbox.Taken.Room, Limit, ' to the request before');
  StrPLCopy(PAnsiChar(@Page^.Mailbox.Words), Words, WordsBytes - 1);
  WriteBarrier; // the words before their number
  Page^.Mailbox.Requested.Room := Page^.Mailbox.Requested.Room + 1;
  Await(Page^.Mailbox.Requested.Room, Limit, '');
  Outcome := TPageOutcome(Page^.Mailbox.Outcome);
  Answer := FilesFrom(TextIn(Page^.Mailbox.Answer));
end;

function TMailbox.PrintableAnswer: string;
var
  Line: string;
begin
  Result := '';
  for Line in Answer.Split([#10], TStringSplitOptions.ExcludeEmpty) do
    Result := Result + Printable(Line) + #10;
end;

function TMailbox.Copy: TStatusPage;
begin
  Result := Page^;
end;

var
  // How long processes that gave no totals were waited for.
  WaitedMs: Int64 = 0;

// Returns whether a process has written the totals of its status page, soon. All that give none are
// waited for together: there may be hundreds, such as idle children of a server.
function Answers(ProcessId: Integer): Boolean;
const
  NoWords = '';
  PatienceMs = 5000;
  ChildMs = 1000;
  LeastMs = 250; // for a process that can answer: see FirstStart
var
  Mailbox: TMailbox;
  Began: QWord;
  LeftMs: Int64;
begin
  if StartsStr('T', UpperCase(StatusValue(FolderOf(ProcessId), 'State'))) then
    Exit(False); // it is stopped
  if not MatchStr(StatusValue(FolderOf(ProcessId), 'Seccomp'), ['', '0']) then
    Exit(False); // its sandbox may end it for the calls of an answer
  Mailbox := nil;
  Began := GetTickCount64;
  LeftMs := Max(LeastMs, PatienceMs - WaitedMs);
  try
    Mailbox := TMailbox.Create(ProcessId, Min(LeftMs, ChildMs));
    Mailbox.Ask(NoWords, LeftMs); // each answer comes with the totals
    Result := True;
  except
    Result := False; // the page keeps those that it has
    Inc(WaitedMs, Int64(GetTickCount64 - Began));
  end;
  Mailbox.Free;
end;

function AskForTotals(ProcessId: Integer; out Pages: TPageCopies): Boolean;
var
  Copy: TPageCopy;
begin
  Result := Answers(ProcessId);
  Pages := nil;
  for Copy in OpenPages(ProcessId) do
    if Copy.HasTotals and not Copy.IsParents then
      Insert(Copy, Pages, Length(Pages));
end;

end.
