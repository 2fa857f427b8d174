/// The threads of a process, paused while lanemm looks at them, and their registers.
//
// Each thread is seized and interrupted (man-pages 2, ptrace). A thread that was stopped before stays
// stopped afterwards; when lanemm ends in between, the system lets all of them go on.
unit ProcessPauses;

{$mode delphi}{$H+}

interface

uses
  Targets;

type
  /// A thread that is traced.
  TSeized = record
    Id: Integer;     //< as the system numbers it
    Signal: Integer; //< that was on its way to the thread when it stopped; 0: none
  end;

  /// How a thread that was interrupted has come to stand still.
  TStop = (
    spLate,     //< it has not, in time
    spEnded,    //< it has ended
    spSignal,   //< at a signal, which came first
    spInterrupt //< by the interrupt
  );

  /// A process whose threads, or some of them, stand still until this is freed.
  TPause = class
  private
    ProcessId: Integer;
    Threads: array of TSeized;
    function Has(Thread: Integer): Boolean;
    function Seize(Thread: Integer): Boolean;
    function SeizeAll(const Chosen: TArray<Integer>): Boolean;
    procedure TakeRegisters(var Thread: TSeized);
  public
    /// The threads that were paused, as the system numbers them, and their registers.
    Numbers: TArray<Integer>;
    Registers: TArray<TRegisters>;
    /// Pauses the process. Raises ETool when the system refuses, or a thread does not stop.
    constructor Create(Id: Integer);
    /// Pauses those of these threads that have not ended; otherwise as Create.
    constructor CreateFor(Id: Integer; const Chosen: TArray<Integer>);
    /// Lets the threads go on.
    destructor Destroy; override;
  end;

const
  // Requests of ptrace, and what the status of a thread has that such a request has stopped.
  GetRegisters = $4204;
  Interrupt = $4207;
  StopEvent = 128;

/// Traces a thread with these marks of ptrace, and interrupts it; returns whether the system obeys.
function ThreadSeize(Thread: Integer; Marks: NativeUInt; out Seized: TSeized): Boolean;
/// Waits until it stands still. A signal that came first is kept for ThreadLetGo.
function ThreadAwait(var Seized: TSeized): TStop;
/// Lets it go on, untraced, and with that signal.
procedure ThreadLetGo(const Seized: TSeized);
/// Sends a request of ptrace; returns whether the system obeys.
function Trace(Request, Thread: Integer; Address, Data: NativeUInt): Boolean;
/// Reads or sets the registers of a stopped thread, as the request says.
function MoveRegisters(Request, Thread: Integer; var Registers: TRegisters): Boolean;
/// Waits for a new status of a thread; returns whether it came in time.
function AwaitStatus(Thread: Integer; PatienceMs: QWord; out Status: LongInt): Boolean;
/// Returns whether the process is stopped, or its threads are being stopped.
function IsStopped(ProcessId: Integer): Boolean;
/// Returns the state of a thread as /proc has it, for example `T`; #0 when it has ended.
function StateOf(ProcessId, Thread: Integer): AnsiChar;

implementation

uses
  SysUtils, BaseUnix, Unix, SysCall, ToolCommands;

const
  TraceCall = {$ifdef CPUAARCH64} 117 {$else} 101 {$endif};

function Trace(Request, Thread: Integer; Address, Data: NativeUInt): Boolean;
begin
  Result := do_syscall(TraceCall, Request, Thread, TSysParam(Address), TSysParam(Data)) >= 0;
end;

function MoveRegisters(Request, Thread: Integer; var Registers: TRegisters): Boolean;
const
  StatusNote = 1;
var
  Place: record
    Base: Pointer;
    Size: NativeUInt;
  end;
begin
  Place.Base := @Registers;
  Place.Size := SizeOf(Registers);
  Result := Trace(Request, Thread, StatusNote, NativeUInt(@Place));
end;

function AwaitStatus(Thread: Integer; PatienceMs: QWord; out Status: LongInt): Boolean;
const
  AllThreads = $40000000; // threads of others, too
var
  Limit: QWord;
begin
  Limit := GetTickCount64 + PatienceMs;
  repeat
    Status := 0;
    Result := FpWaitPid(Thread, Status, AllThreads or WNOHANG) <> 0;
    if Result or (GetTickCount64 > Limit) then
      Exit;
    Sleep(1);
  until False;
end;

function ThreadSeize(Thread: Integer; Marks: NativeUInt; out Seized: TSeized): Boolean;
const
  SeizeRequest = $4206;
begin
  Seized := Default(TSeized);
  Seized.Id := Thread;
  Result := Trace(SeizeRequest, Thread, 0, Marks);
  if Result then
    Trace(Interrupt, Thread, 0, 0);
end;

// One that has not stopped cannot be let go: it would stop later, and stand still until lanemm ends.
function ThreadAwait(var Seized: TSeized): TStop;
const
  PatienceMs = 10000;
var
  Status: LongInt;
begin
  if not AwaitStatus(Seized.Id, PatienceMs, Status) then
    Result := spLate
  else if not WIFSTOPPED(Status) then
    Result := spEnded
  else if Status shr 16 = StopEvent then
    Result := spInterrupt
  else
  begin
    Seized.Signal := WSTOPSIG(Status);
    Result := spSignal;
  end;
end;

procedure ThreadLetGo(const Seized: TSeized);
const
  Detach = 17;
begin
  Trace(Detach, Seized.Id, 0, Seized.Signal);
end;

function StateOf(ProcessId, Thread: Integer): AnsiChar;
const
  StateField = 3;
begin
  Result := PAnsiChar(StatField(Format('/proc/%d/task/%d', [ProcessId, Thread]), StateField))^;
end;

function IsStopped(ProcessId: Integer): Boolean;
var
  Thread: Integer;
begin
  Result := False;
  for Thread in ThreadsOf(ProcessId) do
    Result := Result or (StateOf(ProcessId, Thread) = 'T');
end;

// ---------------------------------------------------------------------------- TPause

function TPause.Has(Thread: Integer): Boolean;
var
  Index: Integer;
begin
  Result := True;
  for Index := 0 to High(Threads) do
    if Threads[Index].Id = Thread then
      Exit;
  Result := False;
end;

// Seizes a thread; False for one that has ended.
function TPause.Seize(Thread: Integer): Boolean;
var
  Seized: TSeized;
begin
  Result := ThreadSeize(Thread, 0, Seized);
  if Result then
    Insert(Seized, Threads, Length(Threads))
  else if not (StateOf(ProcessId, Thread) in ['Z', 'X', #0]) then
    raise ETool.Create(ecNotPermitted,
      'not permitted to pause process %d: another tool traces it, or see `lanemm state`',
      [ProcessId]);
end;

// Waits until the thread has stopped, and reads its registers.
procedure TPause.TakeRegisters(var Thread: TSeized);
var
  Found: TRegisters;
begin
  case ThreadAwait(Thread) of
    spLate: raise ETool.Create(ecFailed,
      'thread %d of process %d does not stop: it waits for a device', [Thread.Id, ProcessId]);
    spEnded: Exit;
  end;
  Found := Default(TRegisters);
  if MoveRegisters(GetRegisters, Thread.Id, Found) then
  begin
    Insert(Thread.Id, Numbers, Length(Numbers));
    Insert(Found, Registers, Length(Registers));
  end;
end;

// Pauses those that are not paused yet; returns whether there were any.
function TPause.SeizeAll(const Chosen: TArray<Integer>): Boolean;
var
  Thread: Integer;
begin
  Result := False;
  for Thread in Chosen do
    if not Has(Thread) and Seize(Thread) then
    begin
      Result := True;
      TakeRegisters(Threads[High(Threads)]);
    end;
end;

constructor TPause.Create(Id: Integer);
begin
  inherited Create;
  ProcessId := Id;
  while SeizeAll(ThreadsOf(Id)) do; // a thread that runs on may start another one
end;

constructor TPause.CreateFor(Id: Integer; const Chosen: TArray<Integer>);
begin
  inherited Create;
  ProcessId := Id;
  SeizeAll(Chosen);
end;

destructor TPause.Destroy;
var
  Index: Integer;
begin
  for Index := 0 to High(Threads) do
    ThreadLetGo(Threads[Index]);
  inherited Destroy;
end;

end.
