/// Starts a thread of LaneMM's own in another process that does nothing by itself.
//
// A thread of the process that waits in a system call is stopped, and makes three calls for lanemm
// with other registers (man-pages 2, ptrace): mmap and mprotect for the new thread's memory, and clone,
// by the code that the process itself has for that. Then it has its registers again, and its own call
// goes on: the kernel restarts it as after any stop. None of its stack is used, and no signal. Signals
// to lanemm wait meanwhile: if it ended, the thread would go on with registers that are not its own.
unit ThreadStarts;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  LaneMM.StatusPage;

type
  /// What became of it: started; no thread could be stopped now; the system refuses, or the process
  /// has no such threads.
  TThreadStart = (tsStarted, tsLater, tsRefused);

/// Starts the thread that answers requests.
function StartThreadIn(ProcessId: Integer; const Head: TPageHead): TThreadStart;

implementation

uses
  BaseUnix, Unix, Targets, ProcessPauses, SystemCalls;

{$ifdef CPUX86_64}
const
  // More requests of ptrace, and the status of a thread that is stopped at a system call.
  PokeMemory = 5;
  GoOnToCall = 24;
  GoOn = 7;
  SetRegisters = $4205;
  GetMask = $420A;
  SetMask = $420B;
  MarksCalls = 1;
  CallStop = SIGTRAP or $80;
  Segment = 17; // its place among the registers
  Code64 = $33;
  PageSize = 4096;

type
  // A thread that was stopped in a system call.
  TStopped = record
    Id: Integer;
    Registers: TRegisters; // its own
    Mask: UInt64;          // its own
    CallAt: UInt64;        // address of an instruction that calls the system
  end;

// Waits until the thread stops in this way; False when it does not, or has ended.
function AwaitStop(Thread: Integer; Wanted: Integer; PatienceMs: QWord): Boolean;
var
  Status: LongInt;
begin
  Result := AwaitStatus(Thread, PatienceMs, Status) and WIFSTOPPED(Status)
    and ((Status shr 16 = Wanted) or (Status shr 8 = Wanted));
end;

// Lets the thread make a system call; returns what that returns.
function CallIn(const Stopped: TStopped; Registers: TRegisters; Number: UInt64): Int64;
const
  PatienceMs = 10000;
begin
  Registers[Rax] := Number;
  Registers[CallNumber] := UInt64(-1); // its own call is not restarted now
  Registers[Pc] := Stopped.CallAt;
  Result := -1;
  if MoveRegisters(SetRegisters, Stopped.Id, Registers) and Trace(GoOnToCall, Stopped.Id, 0, 0)
    and AwaitStop(Stopped.Id, CallStop, PatienceMs) and Trace(GoOnToCall, Stopped.Id, 0, 0)
    and AwaitStop(Stopped.Id, CallStop, PatienceMs)
    and MoveRegisters(GetRegisters, Stopped.Id, Registers) then
    Result := Int64(Registers[Rax]);
end;

// Makes the three calls; the new thread inherits the mask of signals.
function Start(const Stopped: TStopped; const Head: TPageHead): Boolean;
const
  MapCall = 9;
  ProtectCall = 10;
  CloneCall = 56;
  ReadWrite = 3;
  PrivateAnonymous = $22;
  OwnAddress = 2 * SizeOf(Pointer);
var
  Registers: TRegisters;
  Memory: Int64;
  ThreadRecord: UInt64;
begin
  Registers := Stopped.Registers;
  Registers[Rdi] := 0;
  Registers[Rsi] := Head.ThreadBytes;
  Registers[Rdx] := ReadWrite;
  Registers[R10] := PrivateAnonymous;
  Registers[R8] := UInt64(-1);
  Registers[R9] := 0;
  Memory := CallIn(Stopped, Registers, MapCall);
  if Memory <= 0 then
    Exit(False);
  Registers[Rdi] := UInt64(Memory);
  Registers[Rsi] := PageSize;
  Registers[Rdx] := 0;
  CallIn(Stopped, Registers, ProtectCall);
  ThreadRecord := UInt64(Memory) + Head.ThreadBytes - PageSize;
  Trace(PokeMemory, Stopped.Id, ThreadRecord, ThreadRecord);
  Trace(PokeMemory, Stopped.Id, ThreadRecord + OwnAddress, ThreadRecord);
  Registers[Rdi] := Head.ThreadFlags;
  Registers[Rsi] := ThreadRecord - PageSize;
  Registers[R10] := 0;
  Registers[R8] := ThreadRecord;
  Registers[R9] := Head.Answerer;
  Result := CallIn(Stopped, Registers, CloneCall) > 0;
end;

// Gives the thread its registers again where a call of its own is restarted: in a stop by an
// interrupt, not at the end of a call.
procedure Resume(var Stopped: TStopped);
const
  PatienceMs = 10000;
begin
  Trace(Interrupt, Stopped.Id, 0, 0);
  Trace(GoOn, Stopped.Id, 0, 0);
  AwaitStop(Stopped.Id, StopEvent, PatienceMs);
  MoveRegisters(SetRegisters, Stopped.Id, Stopped.Registers);
end;

// Returns the address of the first instruction from Address on that calls the system; 0: none.
function CallFrom(ProcessId: Integer; Address: UInt64): UInt64;
const
  Instruction = #$0F#$05;
  RoutineBytes = 64;
var
  Code: string;
  Place: Integer;
begin
  Code := MemoryOf(ProcessId, Address, RoutineBytes);
  Place := Pos(Instruction, Code);
  Result := 0;
  if Place > 0 then
    Result := Address + UInt64(Place) - 1;
end;

// Tries it with a thread, which must wait in a system call.
function TryBy(Thread: Integer; CallAt: UInt64; const Head: TPageHead): TThreadStart;
const
  AllSignals: UInt64 = High(UInt64);
var
  Seized: TSeized;
  Stopped: TStopped;
begin
  if not ThreadSeize(Thread, MarksCalls, Seized) then
    Exit(tsRefused);
  Result := tsLater;
  Stopped := Default(TStopped);
  Stopped.Id := Thread;
  Stopped.CallAt := CallAt;
  if (ThreadAwait(Seized) = spInterrupt)
    and MoveRegisters(GetRegisters, Thread, Stopped.Registers)
    and (Int64(Stopped.Registers[CallNumber]) >= 0) and (Stopped.Registers[Segment] = Code64)
    and Trace(GetMask, Thread, SizeOf(UInt64), NativeUInt(@Stopped.Mask))
    and Trace(SetMask, Thread, SizeOf(UInt64), NativeUInt(@AllSignals)) then
  begin
    if Start(Stopped, Head) then
      Result := tsStarted;
    Resume(Stopped);
    Trace(SetMask, Thread, SizeOf(UInt64), NativeUInt(@Stopped.Mask));
  end;
  ThreadLetGo(Seized);
end;

function StartBy(Thread: Integer; CallAt: UInt64; const Head: TPageHead): TThreadStart;
var
  All, Own: TSigSet;
begin
  FpSigFillSet(All);
  FpSigProcMask(SIG_SETMASK, @All, @Own);
  Result := TryBy(Thread, CallAt, Head);
  FpSigProcMask(SIG_SETMASK, @Own, nil);
end;

function StartThreadIn(ProcessId: Integer; const Head: TPageHead): TThreadStart;
var
  Thread: Integer;
  CallAt: UInt64;
begin
  if (Head.ThreadCode = 0) or (Head.PointerBytes <> SizeOf(Pointer)) then
    Exit(tsRefused);
  CallAt := CallFrom(ProcessId, Head.ThreadCode);
  if CallAt = 0 then
    Exit(tsRefused);
  Result := tsLater;
  for Thread in ThreadsOf(ProcessId) do
    if StateOf(ProcessId, Thread) = 'S' then
    begin
      Result := StartBy(Thread, CallAt, Head);
      if Result <> tsLater then
        Exit;
    end;
end;
{$else}
function StartThreadIn(ProcessId: Integer; const Head: TPageHead): TThreadStart;
begin
  Result := tsRefused;
end;
{$endif}

end.
