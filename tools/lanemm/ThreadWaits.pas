/// What each thread of a target waits for, and which thread could end that: deadlocks, and waits that
/// nothing in the process can end.
//
// x86_64 with glibc. A thread waits where its registers are those of a system call that has not
// returned. A futex word is a mutex where it has the value that glibc gives to those with waiters:
// then its owner stands beside it; it is the end of a thread where it holds that thread's number.
// Others, events and conditions, have no owner: any thread could set them.
unit ThreadWaits;

{$mode delphi}{$H+}
{$pointermath on}

interface

uses
  Generics.Collections, LaneMM.Unwind, Targets, TargetSymbols, HeapImages, ThreadLocks;

type
  /// What a thread does.
  TWaitKind = (
    waRuns,    //< it runs, or its state is unknown
    waLock,    //< it waits for a lock
    waThread,  //< for the end of another thread
    waEvent,   //< for an event, a condition, a semaphore: which thread sets it is not known
    waEngine,  //< it is LaneMM's own
    waTime,    //< for a limited time
    waOutside  //< for what comes from outside of the process
  );

  TWaitKinds = set of TWaitKind;

  /// A thread.
  TThreadState = record
    Number: Cardinal;       //< as it knows itself
    Name: string;           //< or nothing
    Registers: TRegisters;  //< its registers
    HasRegisters: Boolean;  //< they are known
    Kind: TWaitKind;        //< what it does
    Words: array[0..7] of Cardinal; //< the futex word that it waits for, and those behind it
    Owner: Cardinal;        //< number of the thread that has the lock or is to end; 0: unknown
    What: string;           //< what it waits for
    IsRefused: Boolean;     //< the system found a deadlock, and the C library waits for ever then
    IsInitializing: Boolean; //< it waits for a thread that initializes a variable
    IsStuck: Boolean;       //< nothing in the process can end its wait
    Frames: TArray<UInt64>; //< its backtrace
  end;
  PThreadState = ^TThreadState;

  /// All threads of a target.
  TThreadReport = class
  private
    Target: TTarget;
    Image: THeapImage;
    Symbols: TTargetSymbols;
    Numbers: TDictionary<Cardinal, Integer>; // of Threads, by number
    Names: TWordNames;
    procedure ReadProcess;
    procedure ReadCore;
    procedure ReadStacks;
    function IsWaiting(const Thread: TThreadState): Boolean;
    function IsOfEngine(const Thread: TThreadState): Boolean;
    function IsInWaitFor(const Thread: TThreadState): Boolean;
    procedure ReadWait(var Thread: TThreadState);
    procedure ReadFutex(var Thread: TThreadState);
    procedure ReadMutex(var Thread: TThreadState);
    procedure ReadEvent(var Thread: TThreadState);
    function WaitsIn(const Thread: TThreadState; const Name: string): Boolean;
    function OthersText(const Thread: TThreadState; const Routine: string): string;
    function InitializationText(const Thread: TThreadState): string;
    procedure ReadRefusal(var Thread: TThreadState);
    function CouldGoOn(const Thread: TThreadState; AnyGoesOn: Boolean): Boolean;
    procedure FindStuck;
  public
    Threads: array of TThreadState;
    /// The signals that the program handles, which could end a wait, a bit each; -1: unknown.
    Signals: Int64;
    /// Reads all threads. Heap nil: the process does not run on LaneMM.
    constructor Create(Source: TTarget; Heap: THeapImage);
    destructor Destroy; override;
    /// Returns the thread with this number; nil without one.
    function Find(Number: Cardinal): PThreadState;
    /// Returns whether any thread that is not LaneMM's own can go on.
    function AnyGoesOn: Boolean;
    /// Returns the frames of its backtrace as reports show them.
    function FramesOf(const Thread: TThreadState): TArray<TPlaceFrame>;
    /// Returns the line of the program where it is, ` at FILE:LINE`; empty: unknown.
    function LineOf(const Thread: TThreadState): string;
    /// Returns the threads of each deadlock: each waits for the next one, the last one for the first.
    function Cycles: TArray<TArray<Cardinal>>;
    /// Returns the other threads of these kinds that nothing in the process lets go on.
    function Victims(Kinds: TWaitKinds): TArray<Cardinal>;
  end;

implementation

uses
  SysUtils, Math, BaseUnix, LaneMM.Symbols, LaneMM.SettingsState, ToolCommands,
  ProcessPauses, SystemCalls, ThreadStacks, ThreadPlaces, ToolText;

const
  // What a system call that a stop has interrupted returns, seen by tracers alone; EINTR in core files.
  FirstRestart = -516;
  Interrupted = -4;

// ---------------------------------------------------------------------------- reading

constructor TThreadReport.Create(Source: TTarget; Heap: THeapImage);
var
  Number: Cardinal;
  Index: Integer;
  Each: UInt64;
begin
  inherited Create;
  Target := Source;
  Image := Heap;
  StacksSetDepth(MaxFrames);
  Symbols := TTargetSymbols.Create(Target);
  Numbers := TDictionary<Cardinal, Integer>.Create;
  Names := TWordNames.Create;
  for Number in Target.Threads do
  begin
    Numbers.AddOrSetValue(Number, Length(Threads));
    SetLength(Threads, Length(Threads) + 1);
    Threads[High(Threads)] := Default(TThreadState);
    Threads[High(Threads)].Number := Number;
    Threads[High(Threads)].Name := Target.ThreadName(Number);
  end;
  if Target is TProcessTarget then
    ReadProcess
  else
    ReadCore;
  for Index := 0 to High(Threads) do
    for Each in Threads[Index].Frames do
      Symbols.Add(Each);
  Symbols.Resolve;
  for Index := 0 to High(Threads) do
    ReadWait(Threads[Index]);
  FindStuck;
end;

destructor TThreadReport.Destroy;
begin
  Numbers.Free;
  Names.Free;
  Symbols.Free;
  inherited Destroy;
end;

function TThreadReport.Find(Number: Cardinal): PThreadState;
var
  Index: Integer;
begin
  Result := nil;
  if Numbers.TryGetValue(Number, Index) then
    Result := @Threads[Index];
end;

// Pauses the threads that run, or wait in a way that a pause leaves alone, for their registers. Where
// a debugger has stopped the process already, it keeps those; then a frame pointer is not known.
procedure TThreadReport.ReadProcess;
const
  // Of errors in the program, and those of the C library: no other process ends a wait by them.
  Synchronous = Int64(1 shl 3 or 1 shl 4 or 1 shl 5 or 1 shl 6 or 1 shl 7 or 1 shl 10 or 1 shl 12
    or Int64(3) shl 31);
var
  Tasks: TDictionary<Integer, Integer>;
  Chosen: TArray<Integer>;
  Index, Task, Number: Integer;
  Pause: TPause;
begin
  Tasks := TDictionary<Integer, Integer>.Create;
  Pause := nil;
  Chosen := nil;
  for Index := 0 to High(Threads) do
  begin
    Task := TProcessTarget(Target).TaskOfThread(Threads[Index].Number);
    Tasks.AddOrSetValue(Task, Index); // a number may have been used again
    if RegistersOfLine(ReadSmallFile(Format('/proc/%d/task/%d/syscall', [Target.ProcessId, Task])),
      Threads[Index].Registers, Threads[Index].HasRegisters) then
      Insert(Task, Chosen, Length(Chosen));
  end;
  try
    try
      Pause := TPause.CreateFor(Target.ProcessId, Chosen);
    except
      on Error: ETool do
        if (StatusValue(Format('/proc/%d', [Target.ProcessId]), 'TracerPid') = '0')
          or (Error.Code <> ecNotPermitted) then
          raise;
    end;
    if Pause <> nil then
      for Number := 0 to High(Pause.Numbers) do
        if Tasks.TryGetValue(Pause.Numbers[Number], Index) then
        begin
          Threads[Index].Registers := Pause.Registers[Number];
          Threads[Index].HasRegisters := True;
        end;
    ReadStacks;
  finally
    Pause.Free;
    Tasks.Free;
  end;
  Signals := StrToInt64Def('$' + StatusValue(Format('/proc/%d', [Target.ProcessId]), 'SigCgt'), -1);
  if Signals <> -1 then
    Signals := Signals and not Synchronous;
end;

procedure TThreadReport.ReadCore;
var
  Registers: TArray<TRegisters>;
  Index: Integer;
begin
  Signals := -1;
  Registers := Target.Registers;
  for Index := 0 to High(Registers) do
    if Index <= High(Threads) then
    begin
      Threads[Index].Registers := Registers[Index];
      Threads[Index].HasRegisters := True;
    end;
  ReadStacks;
end;

procedure TThreadReport.ReadStacks;
var
  Stacks: TThreadStacks;
  Index: Integer;
begin
  Stacks := TThreadStacks.Create(Target);
  try
    for Index := 0 to High(Threads) do
      if Threads[Index].HasRegisters then
      begin
        Threads[Index].Frames := Stacks.Walk(Threads[Index].Registers);
        if Threads[Index].Registers[CallNumber] = FutexCall then
          Target.Read(Threads[Index].Registers[Rdi], @Threads[Index].Words, SizeOf(Threads[Index].Words));
      end;
  finally
    Stacks.Free;
  end;
end;

// ---------------------------------------------------------------------------- waits

function TThreadReport.IsWaiting(const Thread: TThreadState): Boolean;
var
  Value: Int64;
begin
  Value := Int64(Thread.Registers[Rax]);
  Result := Thread.HasRegisters and (Int64(Thread.Registers[CallNumber]) >= 0)
    and ((Value >= FirstRestart) and (Value <= LastRestart)
    or (Value = Interrupted) and not (Target is TProcessTarget));
end;

// Returns whether the thread is LaneMM's own: its outermost routine in Pascal is.
function TThreadReport.IsOfEngine(const Thread: TThreadState): Boolean;
var
  Each: UInt64;
  Symbol: PSymbol;
begin
  Result := (Image <> nil) and (Int64(Thread.Registers[CallNumber]) = FutexCall)
    and (Thread.Registers[Rdi] = Image.Address + UInt64(@PProcess(nil)^.PurgeState));
  for Each in Thread.Frames do
  begin
    Symbol := SymbolsFind(Symbols.Symbols, Each);
    if (Symbol <> nil) and (Symbol^.Routine <> nil) and SymbolIsOfUnit(Symbol) then
      Result := SymbolIsOurs(Symbol);
  end;
end;

// Returns whether it is the main thread in TThread.WaitFor, which waits for a limited time again and
// again: what others synchronize runs meanwhile.
function TThreadReport.IsInWaitFor(const Thread: TThreadState): Boolean;
const
  Routines: array[0..2] of string = ('RTLEVENTWAITFOR', 'CHECKSYNCHRONIZE', 'TTHREAD_$__$$_WAITFOR');
var
  First, Index: Integer;
begin
  First := LibraryFrames(Symbols, Thread.Frames) + 1;
  Result := (Int64(Thread.Registers[CallNumber]) = FutexCall)
    and (First + High(Routines) <= High(Thread.Frames));
  if Result then
    for Index := 0 to High(Routines) do
      Result := Result
        and SymbolHas(SymbolsFind(Symbols.Symbols, Thread.Frames[First + Index]), Routines[Index]);
end;

procedure TThreadReport.ReadWait(var Thread: TThreadState);
var
  Call: TSystemCall;
begin
  if IsOfEngine(Thread) then
    Thread.Kind := waEngine;
  if IsInWaitFor(Thread) then
  begin
    Thread.Kind := waThread;
    Thread.What := 'the end of a thread';
  end;
  if not IsWaiting(Thread) or (Thread.Kind <> waRuns) then
    Exit;
  Call := SystemCallOf(Int64(Thread.Registers[CallNumber]));
  Thread.What := Call.Name;
  Thread.Kind := waOutside;
  if Pos('+', Call.Traits) > 0 then
    Thread.Kind := waTime;
  if Call.Number = FutexCall then
    ReadFutex(Thread);
  if Pos('@', Call.Traits) > 0 then
    Thread.What := Format('%s, descriptor %d', [Call.Name, Thread.Registers[Rdi]]);
  if (Pos('@', Call.Traits) > 0) and (Target is TProcessTarget) then // no core file has its file
    Thread.What := Trim(Thread.What + ' ' + Printable(fpReadLink(Format('/proc/%d/fd/%d',
      [Target.ProcessId, Thread.Registers[Rdi]]))));
end;

// Returns whether the routine that it waits in has this in its name.
function TThreadReport.WaitsIn(const Thread: TThreadState; const Name: string): Boolean;
begin
  Result := ThreadPlaces.WaitsIn(Symbols, Thread.Frames, Name);
end;

procedure TThreadReport.ReadFutex(var Thread: TThreadState);
const
  Wait = 0;
  WaitWithOwner = 6;
  WaitForBits = 9;
  WaitWithOwnerByClock = 13;
  PrivateFlag = 128;
  ClockFlag = 256;
  MutexWithWaiters = 2;
  OwnerMask = $3FFFFFFF;
  HasWaiters = $80000000; // in the word of a robust mutex, beside its owner
var
  Operation, Kind: Cardinal;
  Expected: Cardinal;
begin
  Operation := Thread.Registers[Rsi];
  Kind := Operation and not (PrivateFlag or ClockFlag);
  Expected := Thread.Registers[Rdx];
  Thread.Kind := waEvent;
  if Kind in [WaitWithOwner, WaitWithOwnerByClock] then
  begin
    Thread.Kind := waLock;
    Thread.Owner := Thread.Words[0] and OwnerMask;
  end
  else if not (Kind in [Wait, WaitForBits]) then
    Thread.Kind := waOutside
  else if (Expected >= HasWaiters) and (Thread.Words[0] = Expected)
    and (Find(Expected and OwnerMask) <> nil) and WaitsIn(Thread, 'pthread_mutex') then
  begin
    Thread.Kind := waLock;
    Thread.Owner := Expected and OwnerMask;
  end
  else if (Operation and PrivateFlag = 0) and (Thread.Words[0] = Expected)
    and (Find(Expected) <> nil) then
  begin
    Thread.Kind := waThread;
    Thread.Owner := Expected;
    Thread.What := Format('the end of thread %d', [Expected]);
  end
  else if (Expected = MutexWithWaiters) and not WaitsIn(Thread, 'pthread_rwlock') then
    ReadMutex(Thread)
  else
    ReadEvent(Thread);
  if (Thread.Kind = waEvent) and (Operation and PrivateFlag = 0)
    and not WordIsOwn(Target, Image, Thread.Registers[Rdi]) then
    Thread.Kind := waOutside; // another process may set it
  if Thread.Registers[R10] = 0 then
    ReadRefusal(Thread)
  else if Thread.Kind = waThread then
  begin
    Thread.Kind := waTime;
    Thread.Owner := 0; // it holds no lock
    Thread.What := Thread.What + ' for a limited time';
  end
  else
    Thread.Kind := waTime;
  if not Thread.IsRefused and ((Thread.Kind = waLock)
    or (Thread.Kind = waTime) and (Thread.Owner <> 0)) then
    Thread.What := WordName(Target, Image, Names, Thread.Registers[Rdi], 'the lock');
end;

// Where the system finds a deadlock at a mutex with priority inheritance, the C library waits for a
// word on the stack that nothing sets. Which mutex it was is not known.
procedure TThreadReport.ReadRefusal(var Thread: TThreadState);
var
  Stack: PRegion;
begin
  Stack := Target.FindRegion(Thread.Registers[StackRegister]);
  Thread.IsRefused := (Thread.Kind = waEvent) and (Thread.Registers[Rdx] = 0)
    and (Stack <> nil) and (Stack = Target.FindRegion(Thread.Registers[Rdi]))
    and WaitsIn(Thread, 'pthread_mutex');
  if not Thread.IsRefused then
    Exit;
  Thread.Kind := waLock;
  Thread.What := 'a mutex with priority inheritance';
end;

// Reads a lock with waiters; one that has just been released has no owner.
procedure TThreadReport.ReadMutex(var Thread: TThreadState);
const
  OwnerWord = 2; // of struct __pthread_mutex_s
begin
  Thread.Owner := Thread.Words[OwnerWord];
  Thread.Kind := waLock;
  if Find(Thread.Owner) <> nil then
    Exit;
  if not WaitsIn(Thread, 'pthread_mutex') then
  begin
    Thread.Owner := 0;
    Thread.Kind := waEvent;
    if WaitsIn(Thread, 'mutex') or WaitsIn(Thread, 'lock') then
      Thread.What := Format('a lock without a note of its owner (at %s)',
        [HexAddress(Thread.Registers[Rdi])])
    else
      ReadEvent(Thread);
  end
  else if (Thread.Owner = 0) or (Thread.Words[0] = 0) then
    Thread.Kind := waRuns;
end;

// Returns ` (thread 7 is in the same routine)`, which others may be, too; or nothing.
function TThreadReport.OthersText(const Thread: TThreadState; const Routine: string): string;
const
  MostNamed = 3;
var
  Index, Count: Integer;
begin
  Result := '';
  Count := 0;
  for Index := 0 to High(Threads) do
    if (Threads[Index].Number <> Thread.Number) and (Routine <> '')
      and (CallerOf(Symbols, Threads[Index].Frames) <> Routine)
      and HasRoutine(Symbols, Threads[Index].Frames, Routine) then
    begin
      Inc(Count);
      Result := Result + Format(', thread %d', [Threads[Index].Number]);
    end;
  if (Count > MostNamed) or (Count = 0) then
    Exit('');
  if Count = 1 then
    Result := Format(' (%s is in the same routine)', [Copy(Result, 3)])
  else
    Result := Format(' (in the same routine: %s)', [Copy(Result, 3)]);
end;

// Returns the variable of C++ that another thread initializes, and which threads may.
function TThreadReport.InitializationText(const Thread: TThreadState): string;
const
  Guard = 'guard variable for ';
begin
  Result := VariableName(Target, Thread.Registers[Rdi]);
  if Result.StartsWith(Guard) then
    Result := 'the initialization of ' + Copy(Result, Length(Guard) + 1)
  else
    Result := 'the initialization of a static variable';
  Result := Result + OthersText(Thread, CallerOf(Symbols, Thread.Frames));
end;

procedure TThreadReport.ReadEvent(var Thread: TThreadState);
const
  // The writer of struct __pthread_rwlock_arch_t lies behind either of the words to wait for.
  WriterWords: array[Boolean] of Integer = (4, 3);
begin
  if WaitsIn(Thread, 'pthread_rwlock') then
  begin
    Thread.Owner := Thread.Words[WriterWords[Thread.Registers[Rdi] and 7 <> 0]];
    Thread.What := Format('a lock held by readers that it has no note of (at %s)',
      [HexAddress(Thread.Registers[Rdi])]);
    if Find(Thread.Owner) <> nil then
      Thread.Kind := waLock
    else
      Thread.Owner := 0;
  end
  else if HasRoutine(Symbols, Thread.Frames, 'EVENTWAITFOR') then
    Thread.What := 'an event'
  else if WaitsIn(Thread, 'pthread_cond') then
    Thread.What := 'a condition'
  else if WaitsIn(Thread, 'sem_wait') then
    Thread.What := 'a semaphore'
  else if WaitsIn(Thread, 'pthread_barrier') then
    Thread.What := 'a barrier'
  else if WaitsIn(Thread, 'cxa_guard_acquire') then
    Thread.What := InitializationText(Thread)
  else if WaitsIn(Thread, 'pthread_once') then
    Thread.What := 'the end of an initialization by pthread_once'
  else if WaitsIn(Thread, 'atomic_futex_unsigned') then
    Thread.What := 'a future'
  else
    Thread.What := WordName(Target, Image, Names, Thread.Registers[Rdi], 'the futex word');
  Thread.IsInitializing := Thread.What.Contains('initialization');
end;

// ---------------------------------------------------------------------------- who can go on

function TThreadReport.AnyGoesOn: Boolean;
var
  Index: Integer;
begin
  for Index := 0 to High(Threads) do
    if not Threads[Index].IsStuck and (Threads[Index].Kind <> waEngine) then
      Exit(True);
  Result := False;
end;

function TThreadReport.CouldGoOn(const Thread: TThreadState; AnyGoesOn: Boolean): Boolean;
var
  Owner: PThreadState;
begin
  if Thread.Owner = 0 then
    Exit(AnyGoesOn and not Thread.IsRefused);
  Owner := Find(Thread.Owner);
  if Owner = nil then // the owner of a lock that has ended never releases it
    Result := Thread.Kind = waThread
  else
    Result := not Owner^.IsStuck;
end;

// All that wait for others are stuck, but those that wait for one that is not, again and again.
procedure TThreadReport.FindStuck;
var
  Index: Integer;
  AnyChanged, HasOther: Boolean;
begin
  for Index := 0 to High(Threads) do
    Threads[Index].IsStuck := Threads[Index].Kind in [waLock, waThread, waEvent];
  HasOther := AnyGoesOn;
  repeat
    AnyChanged := False;
    for Index := 0 to High(Threads) do
      if Threads[Index].IsStuck and CouldGoOn(Threads[Index], HasOther) then
      begin
        Threads[Index].IsStuck := False;
        HasOther := True;
        AnyChanged := True;
      end;
  until not AnyChanged;
end;

function TThreadReport.Cycles: TArray<TArray<Cardinal>>;
var
  Seen: TDictionary<Cardinal, Integer>; // by thread, the number of the walk that came there
  Index: Integer;
  Next: PThreadState;
  First: Cardinal;
  Cycle: TArray<Cardinal>;
begin
  Result := nil;
  Seen := TDictionary<Cardinal, Integer>.Create;
  for Index := 0 to High(Threads) do
  begin
    Next := @Threads[Index];
    while (Next <> nil) and Next^.IsStuck and not Seen.ContainsKey(Next^.Number) do
    begin
      Seen.Add(Next^.Number, Index);
      Next := Find(Next^.Owner);
    end;
    if (Next = nil) or not Next^.IsStuck or (Seen[Next^.Number] <> Index) then
      Continue;
    First := Next^.Number;
    Cycle := nil;
    repeat
      Insert(Next^.Number, Cycle, Length(Cycle));
      Next := Find(Next^.Owner);
    until Next^.Number = First;
    Insert(Cycle, Result, Length(Result));
  end;
  Seen.Free;
end;

function TThreadReport.Victims(Kinds: TWaitKinds): TArray<Cardinal>;
var
  Each: TThreadState;
  Cycle: TArray<Cardinal>;
  Known: TDictionary<Cardinal, Boolean>; // those of deadlocks
  Number: Cardinal;
begin
  Result := nil;
  Known := TDictionary<Cardinal, Boolean>.Create;
  for Cycle in Cycles do
    for Number in Cycle do
      Known.Add(Number, True);
  for Each in Threads do
    if Each.IsStuck and (Each.Kind in Kinds) and not Known.ContainsKey(Each.Number) then
      Insert(Each.Number, Result, Length(Result));
  Known.Free;
end;

// ---------------------------------------------------------------------------- places

function TThreadReport.FramesOf(const Thread: TThreadState): TArray<TPlaceFrame>;
begin
  Result := ShownFrames(Symbols, Thread.Frames);
end;

function TThreadReport.LineOf(const Thread: TThreadState): string;
begin
  Result := LineText(Symbols, Thread.Frames);
end;

end.
