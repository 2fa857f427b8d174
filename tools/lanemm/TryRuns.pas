/// One run of a program for `lanemm try`: starts it, watches it, and measures.
//
// The process is waited for by SIGCHLD, which is blocked, so its end is noticed at once. What it did
// and used is what the system has counted for it and those children that it waited for itself.
unit TryRuns;

{$mode delphi}{$H+}

interface

uses
  Classes;

type
  /// What is measured.
  TMeasure = (meTime, meCpu, mePeak, meRest, mePageFaults);
  /// Nanoseconds, bytes, or a count; NotMeasured where there is none.
  TMeasures = array[TMeasure] of Int64;

  /// What is to be run.
  TRunOrder = record
    Path: string;         //< the program
    Arguments: TStrings;  //< its arguments, its name first
    Variables: TStrings;  //< its environment
    Preloaded: string;    //< the library that it is to load; empty: none
    OutputName: string;   //< the file for what it prints
    ForMs: Int64;         //< ends it after this time; 0: it ends itself
    Load: string;         //< a line for the shell, which runs beside it; empty: none
    ExpectedExit: Integer; //< its exit code when it is well
  end;

  /// What a run gave.
  TRunResult = record
    Measures: TMeasures;
    Failure: string;      //< what went wrong; empty: nothing
    Errors: string;       //< the end of what it wrote to the standard error output
  end;

const
  NotMeasured = -1;
  MeasureKeys: array[TMeasure] of string = ('timeNs', 'cpuNs', 'peakBytes', 'restBytes',
    'pageFaults');

/// Creates a file for what runs print, which no other call has; returns its path. Raises ETool without one.
function NewOutput: string;
/// Runs the program once. Raises ETool if the system starts no process.
function RunOnce(const Order: TRunOrder): TRunResult;
/// Returns the smallest peak that a run can show, in bytes: the system counts the peak of lanemm's own
/// memory, before the program took its place, among that of the program.
function LeastPeak: Int64;
/// Returns a wait status as text: its exit code, or the signal that ended the program.
function StatusText(Status: Integer): string;

implementation

uses
  SysUtils, Math, BaseUnix, Linux, SysCall, UnixType, Programs, Targets, ToolCommands;

const
  WaitCall = {$ifdef CPUAARCH64} 260 {$else} 61 {$endif};          // wait4
  ControlCall = {$ifdef CPUAARCH64} 167 {$else} 157 {$endif};      // prctl
  MemoryFileCall = {$ifdef CPUAARCH64} 279 {$else} 319 {$endif};   // memfd_create
  SetDeathSignal = 1;          // PR_SET_PDEATHSIG
  CannotStart = 127;           // the exit code of a child that could not be started
  NoHandle = -1;
  FirstLooks = 20;             // so many times the program is looked at often,
  FirstDelayMs = 2;
  DelayMs = 50;                // and then not so often
  StillMs = 300;               // it rests when it has used no CPU for this time
  RestEveryMs = 500;
  KillAfterMs = 5000;          // after SIGTERM
  MostErrors = 4000;           // bytes

type
  // What the system has counted for a process: struct rusage.
  TUsage = record
    UserTime, SystemTime: TTimeVal;
    PeakKb: clong;
    Unused: array[0..2] of clong;
    MinorFaults, MajorFaults: clong;
    Others: array[0..7] of clong;
  end;

  // A run while it goes on. Times are milliseconds since its start.
  TWatch = class
  private
    Order: TRunOrder;
    Started: Int64;      // ns
    Child, LoadChild: TPid;
    LoadStarted: Int64;  // ns
    Errors: THandle;
    Looks: Integer;
    Ticks, StillSince, RestRead: Int64;
    IsMissing: Boolean;  // the library, when it was last looked for
    IsEnded: Boolean;    // by lanemm
    KillAt: Int64;
    Found: TRunResult;
    function Now: Int64;
    function Start(const Path: string; Arguments, Variables: TStrings): TPid;
    procedure StartLoad;
    procedure EndLoad(Status: Integer);
    procedure EndChild;
    procedure Fail(const Text: string);
    procedure Look;
    procedure LookForLibrary;
    procedure ReadRest;
    procedure Await;
    function Reap(var Id: TPid; out Status: Integer; out Usage: TUsage): Boolean;
    procedure Take(Status: Integer; const Usage: TUsage);
    procedure ReadErrors;
  public
    constructor Create(const Run: TRunOrder);
    destructor Destroy; override;
    procedure Run;
  end;

function Nanoseconds: Int64;
var
  Time: TTimeSpec;
begin
  clock_gettime(CLOCK_MONOTONIC, @Time);
  Result := Int64(Time.tv_sec) * 1000000000 + Time.tv_nsec;
end;

function StatusText(Status: Integer): string;
begin
  if wifsignaled(Status) then
    Result := Format('signal %d', [wtermsig(Status)])
  else
    Result := Format('exit code %d', [wexitstatus(Status)]);
end;

// Returns the process and all of its descendants.
function Family(Id: Integer): TArray<Integer>;
var
  Task: Integer;
  Child: string;
begin
  Result := [Id];
  for Task in ThreadsOf(Id) do
    for Child in ReadSmallFile(Format('/proc/%d/task/%d/children', [Id, Task]))
      .Split([' '], TStringSplitOptions.ExcludeEmpty) do
      Result := Concat(Result, Family(StrToInt(Child)));
end;

// Returns the CPU time of a process in ticks of the system.
function TicksOf(Id: Integer): Int64;
const
  UserField = 14;
  SystemField = 15;
var
  Folder: string;
begin
  Folder := Format('/proc/%d', [Id]);
  Result := StrToInt64Def(StatField(Folder, UserField), 0)
    + StrToInt64Def(StatField(Folder, SystemField), 0);
end;

// Returns the share of a process of the memory that it has; 0 when the system does not tell.
function ShareOf(Id: Integer): Int64;
const
  Mark = 'Pss:';
var
  Text: string;
begin
  Text := ReadSmallFile(Format('/proc/%d/smaps_rollup', [Id]));
  if Pos(Mark, Text) = 0 then
    Exit(0);
  Text := Trim(Copy(Text, Pos(Mark, Text) + Length(Mark), MaxInt));
  Result := StrToInt64Def(Text.Split([' '])[0], 0) * 1024;
end;

var
  // See LeastPeak; 0: not known yet.
  FoundLeastPeak: Int64;

constructor TWatch.Create(const Run: TRunOrder);
var
  Measure: TMeasure;
begin
  inherited Create;
  Order := Run;
  for Measure in TMeasure do
    Found.Measures[Measure] := NotMeasured;
  Errors := do_syscall(MemoryFileCall, TSysParam(PAnsiChar('errors')), 0);
end;

destructor TWatch.Destroy;
begin
  if Errors <> THandle(NoHandle) then
    FileClose(Errors);
  inherited Destroy;
end;

function TWatch.Now: Int64;
begin
  Result := (Nanoseconds - Started) div 1000000;
end;

procedure TWatch.Fail(const Text: string);
begin
  if Found.Failure = '' then
    Found.Failure := Text;
end;

// Opens a file in a child in place of a standard one.
procedure Redirect(Handle: LongInt; const Name: string; Flags: LongInt);
var
  Opened: LongInt;
begin
  Opened := FpOpen(Name, Flags, &666);
  if Opened < 0 then
    FpExit(CannotStart);
  if Opened <> Handle then
  begin
    FpDup2(Opened, Handle);
    FpClose(Opened);
  end;
end;

// Returns the input of a child: that of lanemm if it is a file, which is read from its start again.
function InputName: string;
var
  Status: TStat;
begin
  Result := '/dev/null';
  if (FpFStat(StdInputHandle, Status) = 0) and fpS_ISREG(Status.st_mode) then
    Result := '/proc/self/fd/0';
end;

// Starts a process that ends with lanemm; the load in a group, so that what it starts ends, too.
function TWatch.Start(const Path: string; Arguments, Variables: TStrings): TPid;
var
  NoSignals: TSigSet;
  Input: string;
begin
  Input := InputName;
  Result := FpFork;
  if Result < 0 then
    raise ETool.Create(ecFailed, 'no process can be started: %s', [SysErrorMessage(fpgeterrno)]);
  if Result > 0 then
    Exit;
  do_syscall(ControlCall, SetDeathSignal, SIGKILL);
  if LoadStarted <> 0 then
    FpSetSid;
  FpSigEmptySet(NoSignals);
  FpSigProcMask(SIG_SETMASK, @NoSignals, nil);
  Redirect(StdInputHandle, Input, O_RDONLY);
  Redirect(StdOutputHandle, Order.OutputName, O_WRONLY or O_CREAT or O_TRUNC);
  if Errors <> THandle(NoHandle) then
    FpDup2(Errors, StdErrorHandle)
  else
    Redirect(StdErrorHandle, '/dev/null', O_WRONLY);
  Execute(Path, Arguments, Variables);
  FpExit(CannotStart);
end;

procedure TWatch.StartLoad;
const
  Shell = '/bin/sh';
var
  Arguments, Variables: TStringList;
begin
  Arguments := TStringList.Create;
  Variables := OwnEnvironment;
  Arguments.AddStrings([Shell, '-c', Order.Load]);
  Variables.Add(Format('TRY_PID=%d', [Child]));
  LoadStarted := Nanoseconds;
  LoadChild := Start(Shell, Arguments, Variables);
  Variables.Free;
  Arguments.Free;
end;

procedure TWatch.EndLoad(Status: Integer);
begin
  Found.Measures[meTime] := Nanoseconds - LoadStarted;
  if Status = 0 then
    Exit;
  Fail('the load has ended with ' + StatusText(Status));
  EndChild;
end;

// Ends the process: at first so that it can do what it does at its end.
procedure TWatch.EndChild;
begin
  if KillAt <> 0 then
  begin
    FpKill(Child, SIGKILL);
    Exit;
  end;
  if StillSince + StillMs <= Now then
    ReadRest;
  if (Order.Load <> '') and (LoadStarted = 0) then
    Fail('it did not rest, so the load has not begun; a longer --for helps')
  else if LoadChild <> 0 then
    Fail('the load has not ended in the time of --for');
  IsEnded := True;
  KillAt := Now + KillAfterMs;
  FpKill(Child, SIGTERM);
end;

procedure TWatch.ReadRest;
var
  Id: Integer;
  Sum: Int64;
begin
  Sum := 0;
  for Id in Family(Child) do
    Inc(Sum, ShareOf(Id));
  if Sum > 0 then
    Found.Measures[meRest] := Sum;
  RestRead := Now;
end;

// Looks whether the library is missing. The dynamic linker maps it before the C library.
procedure TWatch.LookForLibrary;
var
  Maps: string;
begin
  if (Order.Preloaded = '') or (FpReadLink(Format('/proc/%d/exe', [Child]))
    = FpReadLink('/proc/self/exe')) then
    Exit;
  Maps := ReadSmallFile(Format('/proc/%d/maps', [Child]));
  if Maps <> '' then
    IsMissing := (Pos(ExtractFileName(Order.Preloaded), Maps) = 0)
      and ((Pos('/libc', Maps) > 0) or (Pos('/ld-', Maps) = 0));
end;

procedure TWatch.Look;
var
  Id: Integer;
  Sum: Int64;
begin
  Inc(Looks);
  LookForLibrary;
  Sum := 0;
  for Id in Family(Child) do
    Inc(Sum, TicksOf(Id));
  if Sum <> Ticks then
    StillSince := Now;
  Ticks := Sum;
  if StillSince + StillMs > Now then
    Exit;
  if (Order.Load <> '') and (LoadStarted = 0) then
    StartLoad
  else if RestRead + RestEveryMs <= Now then
    ReadRest;
end;

// Waits until a child has ended, or it is time to look again.
procedure TWatch.Await;
var
  Wanted: TSigSet;
  Time: TTimeSpec;
begin
  FpSigEmptySet(Wanted);
  FpSigAddSet(Wanted, SIGCHLD);
  Time.tv_sec := 0;
  Time.tv_nsec := 1000000 * DelayMs;
  if Looks < FirstLooks then
    Time.tv_nsec := 1000000 * FirstDelayMs;
  FpSigTimedWait(Wanted, nil, @Time);
end;

// Returns whether the child has ended; Id is 0 from then on.
function TWatch.Reap(var Id: TPid; out Status: Integer; out Usage: TUsage): Boolean;
begin
  Result := (Id <> 0)
    and (do_syscall(WaitCall, Id, TSysParam(@Status), WNOHANG, TSysParam(@Usage)) = Id);
  if Result then
    Id := 0;
end;

procedure TWatch.Take(Status: Integer; const Usage: TUsage);
begin
  if not IsEnded and (Order.Load = '') then
    Found.Measures[meTime] := Nanoseconds - Started;
  Found.Measures[meCpu] := (Int64(Usage.UserTime.tv_sec) + Usage.SystemTime.tv_sec) * 1000000000
    + (Int64(Usage.UserTime.tv_usec) + Usage.SystemTime.tv_usec) * 1000;
  Found.Measures[mePeak] := Max(Int64(Usage.PeakKb) * 1024, FoundLeastPeak);
  Found.Measures[mePageFaults] := Int64(Usage.MinorFaults) + Usage.MajorFaults;
  if not IsEnded and (wifsignaled(Status) or (wexitstatus(Status) <> Order.ExpectedExit)) then
    Fail(StatusText(Status))
  else if not IsEnded and (Order.Load <> '') then
    Fail('it has ended before the time of --for');
  if IsMissing then
    Fail('it does not load ' + Order.Preloaded);
end;

procedure TWatch.ReadErrors;
var
  Text: string;
  Size: Int64;
begin
  if Errors = THandle(NoHandle) then
    Exit;
  Size := FileSeek(Errors, Int64(0), fsFromEnd);
  if Size > MostErrors then
    FileSeek(Errors, Size - MostErrors, fsFromBeginning)
  else
    FileSeek(Errors, Int64(0), fsFromBeginning);
  SetLength(Text, MostErrors);
  SetLength(Text, FileRead(Errors, Text[1], MostErrors));
  Found.Errors := Trim(Text);
end;

procedure TWatch.Run;
var
  Status: Integer;
  Usage, Unused: TUsage;
begin
  Started := Nanoseconds;
  Child := Start(Order.Path, Order.Arguments, Order.Variables);
  while not Reap(Child, Status, Usage) do
  begin
    if Reap(LoadChild, Status, Unused) then
      EndLoad(Status);
    if (KillAt = 0) and (Order.ForMs > 0) and (Now >= Order.ForMs)
      or (KillAt > 0) and (Now >= KillAt) then
      EndChild;
    Await;
    Look;
  end;
  Take(Status, Usage);
  if LoadChild <> 0 then
  begin
    FpKill(-LoadChild, SIGKILL);
    FpKill(LoadChild, SIGKILL);
    FpWaitPid(LoadChild, Status, 0);
  end;
  ReadErrors;
end;

function NewOutput: string;
const
  MostTurns = 1000;
var
  Turn: Integer;
  Handle: LongInt;
begin
  Turn := 0;
  repeat
    Inc(Turn);
    Result := Format('%slanemm.%d.%d.tmp', [GetTempDir, fpGetPid, Turn]);
    Handle := FpOpen(Result, O_WRONLY or O_CREAT or O_EXCL, &600);
  until (Handle >= 0) or (fpGetErrno <> ESysEEXIST) or (Turn = MostTurns);
  if Handle < 0 then
    raise ETool.Create(ecFailed, 'cannot write %s: %s', [Result, SysErrorMessage(fpGetErrno)]);
  FpClose(Handle);
end;

function RunOnce(const Order: TRunOrder): TRunResult;
var
  Ends, Before: TSigSet;
  Watch: TWatch;
begin
  FpSignal(SIGCHLD, SignalHandler(SIG_DFL)); // ignored, the children would leave nothing
  FpSigEmptySet(Ends);
  FpSigAddSet(Ends, SIGCHLD);
  FpSigProcMask(SIG_BLOCK, @Ends, @Before);
  Watch := TWatch.Create(Order);
  try
    Watch.Run;
    Result := Watch.Found;
  finally
    Watch.Free;
    FpSigProcMask(SIG_SETMASK, @Before, nil);
  end;
end;

function LeastPeak: Int64;
const
  NoProgram = '/';
  Slack = 8; // a part of it: what differs from run to run
var
  Order: TRunOrder;
begin
  if FoundLeastPeak = 0 then
  begin
    Order := Default(TRunOrder);
    Order.Path := NoProgram;
    Order.OutputName := '/dev/null';
    Order.Arguments := TStringList.Create;
    Order.Variables := OwnEnvironment;
    Result := RunOnce(Order).Measures[mePeak];
    FoundLeastPeak := Result + Result div Slack;
    Order.Variables.Free;
    Order.Arguments.Free;
  end;
  Result := FoundLeastPeak;
end;

end.
