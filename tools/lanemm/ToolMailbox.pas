/// The mailbox of another process: a request, and its answer. See LaneMM.StatusPage.
unit ToolMailbox;

{$mode delphi}{$H+}

interface

uses
  LaneMM.StatusPage;

const
  /// What precedes the path on a line of an answer that names a file.
  FilePrefix = 'file ';

type
  /// A process that is asked.
  TMailbox = class
  private
    Pid: Integer;
    Handle: LongInt; // of the page's file; its lock is that of the mailbox
    Page: PStatusPage;
    function TryOpen(const Path: string): Boolean;
    procedure Close;
    function OpenOwn: Boolean;
    procedure WakeChild(Signal: Cardinal);
    function Catches(Signal: Cardinal): Boolean;
    procedure Send(Round: Integer);
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
    /// How many signals were sent for the requests so far.
    SignalCount: Integer;
    /// Opens the page of a process for reading and writing. Raises ETool when it has none that takes
    /// requests, or the system refuses.
    constructor Create(ProcessId: Integer);
    destructor Destroy; override;
    /// Sends the words and waits for the answer, PatienceMs at most. Raises ETool without one.
    procedure Ask(const Words: string; PatienceMs: Int64);
    /// Returns the answer as a terminal may get it: a process can answer anything.
    function PrintableAnswer: string;
    /// Returns a copy of the page.
    function Copy: TStatusPage;
  end;

/// Lets a process write the totals of its status page; returns whether it did, and soon.
function AskForTotals(ProcessId: Integer): Boolean;

implementation

uses
  SysUtils, StrUtils, BaseUnix, Unix, Linux, ToolCommands, Targets, StatusPages;

const
  // The tool looks for the answer each millisecond, and sends the signal again after so many looks.
  LooksForSignal = 20;
  // From this round on both signals are sent: the program may have taken the first one.
  SecondSignalFrom = 3;

// ---------------------------------------------------------------------------- /proc

// Returns the folder of a process.
function FolderOf(Pid: Integer): string;
begin
  Result := Format('/proc/%d', [Pid]);
end;

// Returns whether a mask of signals of that file has the signal.
function HasSignal(Pid: Integer; const Name: string; Signal: Cardinal): Boolean;
begin
  Result := (Signal > 0)
    and Odd(UInt64(StrToInt64Def('$' + StatusValue(FolderOf(Pid), Name), 0)) shr (Signal - 1));
end;

// Returns whether the system hides the files of the process from the caller.
function IsHidden(Pid: Integer): Boolean;
begin
  Result := fpReadLink(Format('/proc/%d/exe', [Pid])) = '';
end;

// Returns the name below map_files of the mapping of the page; empty without one.
function MappingOf(Pid: Integer): string;
var
  Line: string;
begin
  Result := '';
  for Line in ReadSmallFile(Format('/proc/%d/maps', [Pid])).Split([#10]) do
    if Pos(' /memfd:' + PageName, Line) > 0 then
      Exit(System.Copy(Line, 1, Pos(' ', Line) - 1));
end;

// ---------------------------------------------------------------------------- open

// Maps the file at Path; returns whether it is the page of the process. A file without all bytes
// of a page could not be read where it is mapped.
function TMailbox.TryOpen(const Path: string): Boolean;
var
  Whole: TStatusPage;
  Mapped: Pointer;
begin
  Result := False;
  Handle := FpOpen(Path, O_RDWR or O_CLOEXEC);
  if Handle < 0 then
    Exit;
  if (fpPRead(Handle, @Whole, PageBytes, 0) = PageBytes) and IsPage(Whole)
    and (Whole.Head.ProcessId = UInt64(OwnNumber(Pid))) then
  begin
    Mapped := Fpmmap(nil, PageBytes, PROT_READ or PROT_WRITE, MAP_SHARED, Handle, 0);
    Result := Mapped <> MAP_FAILED;
    if Result then
      Page := Mapped;
  end;
  if not Result then
    Close;
end;

procedure TMailbox.Close;
begin
  if Page <> nil then
    Fpmunmap(Page, PageBytes);
  Page := nil;
  FpClose(Handle);
end;

// Opens the page through the open files of the process; as root also through its mappings, for a
// program that has closed all files.
function TMailbox.OpenOwn: Boolean;
var
  Copy: TPageCopy;
begin
  for Copy in OpenPages(Pid) do
    if not Copy.IsParents and TryOpen(Copy.Path) then
      Exit(True);
  Result := (MappingOf(Pid) <> '')
    and TryOpen(Format('/proc/%d/map_files/%s', [Pid, MappingOf(Pid)]));
end;

// Asks a child process, which has the page of its parent so far, for one of its own.
procedure TMailbox.WakeChild(Signal: Cardinal);
const
  Tries = 100;
var
  Index: Integer;
begin
  if not Catches(Signal) then
    Exit;
  for Index := 1 to Tries do
  begin
    FpKill(Pid, Signal);
    Sleep(10);
    if OpenOwn then
      Exit;
  end;
end;

constructor TMailbox.Create(ProcessId: Integer);
var
  Copy: TPageCopy;
begin
  Pid := ProcessId;
  if not DirectoryExists(Format('/proc/%d', [Pid])) then
    raise ETool.Create(ecNoProcess, 'there is no process %d', [Pid]);
  if not OpenOwn then
    for Copy in OpenPages(Pid) do
      if Copy.IsParents and (Page = nil) then
        WakeChild(Copy.Page.Head.Signals[0]);
  if (Page = nil) and HasEnded(Pid) then
    RaiseEnded(Pid);
  if (Page = nil) and IsHidden(Pid) then
    raise ETool.Create(ecNotPermitted, 'process %d may be asked by its user and by root only', [Pid]);
  if (Page = nil) and (MappingOf(Pid) <> '') and (fpGetUid = 0) then
    raise ETool.Create(ecDamaged, 'the status page of process %d is damaged, or that of its'
      + ' parent process', [Pid]);
  if (Page = nil) and (MappingOf(Pid) <> '') then
    raise ETool.Create(ecNotPermitted, 'process %d has closed the file of its status page: only'
      + ' root can open it', [Pid]);
  if Page = nil then
    raise ETool.Create(ecNotOnLaneMM, 'process %d has no status page: it does not run on LaneMM,'
      + ' or was started with `live=0`, or has more rights than its user', [Pid]);
  CheckPage(Page^, Format('process %d', [Pid]));
  if Page^.Head.HasMailbox = 0 then
    raise ETool.Create(ecNotPermitted, 'process %d takes no requests: it was started with'
      + ' `attach=0`, or uses all signals itself', [Pid]);
end;

destructor TMailbox.Destroy;
begin
  if Page <> nil then
    Close;
  inherited Destroy;
end;

// ---------------------------------------------------------------------------- requests

function TMailbox.Catches(Signal: Cardinal): Boolean;
begin
  Result := HasSignal(Pid, 'SigCgt', Signal);
end;

// Sends a signal that the process handles: others could end it.
procedure TMailbox.Send(Round: Integer);
var
  Index: Integer;
begin
  for Index := 0 to High(Page^.Head.Signals) do
    if ((Index = 0) or (Round >= SecondSignalFrom)) and Catches(Page^.Head.Signals[Index]) then
    begin
      if (FpKill(Pid, Page^.Head.Signals[Index]) <> 0) and (fpgeterrno = ESysEPERM) then
        raise ETool.Create(ecNotPermitted, 'process %d takes no signal from this user', [Pid]);
      Inc(SignalCount);
    end;
end;

// Takes the mailbox, until this tool closes the file or ends in any way.
procedure TMailbox.BecomeClient(Limit: QWord);
begin
  while fpFlock(Handle, LOCK_EX or LOCK_NB) <> 0 do
  begin
    if GetTickCount64 > Limit then
      raise ETool.Create(ecFailed, 'process %d is being asked by another tool', [Pid]);
    Sleep(1);
  end;
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

// Returns why the process has not answered.
function TMailbox.WhyNoAnswer(Postponed: UInt64): string;
var
  State: string;
begin
  State := StatusValue(FolderOf(Pid), 'State');
  if State = '' then
    raise ETool.Create(ecNoProcess, 'process %d has ended', [Pid]);
  if StartsStr('T', UpperCase(State)) then
    Result := 'it is stopped; `lanemm state` and `map` read it without its help'
  else if StartsStr('D', State) then
    Result := 'it waits for a device or a file system'
  else if Page^.Mailbox.Taken.Room <> Page^.Mailbox.Answered.Room then
    Result := 'it is still at work on it'
  else if Page^.Mailbox.Postponed.Room <> Postponed then
    Result := 'each time it was in the middle of a change that must not be interrupted'
  else if not Catches(Page^.Head.Signals[0]) and not Catches(Page^.Head.Signals[1]) then
    Result := Format('it no longer handles the signals %d and %d', [Page^.Head.Signals[0],
      Page^.Head.Signals[1]])
  else if HasSignal(Pid, 'SigBlk', Page^.Head.Signals[0]) then
    Result := Format('it blocks the signal %d', [Page^.Head.Signals[0]])
  else
    Result := Format('it may handle the signals %d and %d itself', [Page^.Head.Signals[0],
      Page^.Head.Signals[1]]);
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
    if (Look mod LooksForSignal = 0) and (Page^.Mailbox.Taken.Room <> Number) then
      Send(Look div LooksForSignal);
    if (GetTickCount64 > Limit) and (TakeBack or (Page^.Mailbox.Answered.Room <> Number)) then
      raise ETool.Create(ecFailed, 'process %d gives no answer%s: %s', [Pid, Doing,
        WhyNoAnswer(Postponed)]);
    Sleep(1);
    Inc(Look);
  end;
  ReadBarrier; // the answer after its number
end;

// Returns an answer with the paths by which this program reaches the files.
function TMailbox.FilesFrom(const Lines: string): string;
var
  Line: string;
begin
  Result := '';
  for Line in Lines.Split([#10], TStringSplitOptions.ExcludeEmpty) do
    if Line.StartsWith(FilePrefix) then
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

function AskForTotals(ProcessId: Integer): Boolean;
const
  NoWords = '';
  PatienceMs = 5000;
var
  Mailbox: TMailbox;
begin
  if StartsStr('T', UpperCase(StatusValue(FolderOf(ProcessId), 'State'))) then
    Exit(False); // it is stopped
  Mailbox := nil;
  try
    Mailbox := TMailbox.Create(ProcessId);
    Mailbox.Ask(NoWords, PatienceMs); // each answer comes with the totals
    Result := True;
  except
    Result := False; // the page keeps those that it has
  end;
  Mailbox.Free;
end;

end.
