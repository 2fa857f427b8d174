/// Threads that the run-time library does not know, and one hook that the system calls at their end.
unit BareThreads;

{$mode delphi}

interface

const
  /// How often the system calls the hook of a thread that sets its value again in each call.
  HookRounds = {$ifdef MSWINDOWS} 1 {$else} 4 {$endif};

type
  TBareRoutine = procedure(Argument: Pointer);
  /// A thread; it stays where it is from the start of the thread to its end.
  TBareThread = record
    Handle: NativeUInt;
    Routine: TBareRoutine;
    Argument: Pointer;
  end;

/// Starts a thread that calls the routine; returns whether the system did.
function BareStart(var Thread: TBareThread; Routine: TBareRoutine; Argument: Pointer): Boolean;
/// Waits for the end of a thread.
procedure BareJoin(var Thread: TBareThread);
/// Has the system call Hook at the end of each thread that sets a value.
procedure BareHook(Hook: TBareRoutine);
/// Sets the value of the calling thread for the hook; nil: it is not called.
procedure BareSetValue(Value: Pointer);

implementation

var
  EndHook: TBareRoutine;
  Key: Cardinal;

{$ifdef MSWINDOWS}
const
  Kernel = 'kernel32.dll';

function CreateThread(Security: Pointer; StackSize: NativeUInt; Routine, Argument: Pointer;
  Flags: Cardinal; out Id: Cardinal): NativeUInt; stdcall; external Kernel;
function WaitForSingleObject(Handle: NativeUInt; Ms: Cardinal): Cardinal; stdcall; external Kernel;
function CloseHandle(Handle: NativeUInt): LongBool; stdcall; external Kernel;
function FlsAlloc(Hook: Pointer): Cardinal; stdcall; external Kernel;
function FlsSetValue(Key: Cardinal; Value: Pointer): LongBool; stdcall; external Kernel;

function Run(Thread: Pointer): Cardinal; stdcall;
begin
  TBareThread(Thread^).Routine(TBareThread(Thread^).Argument);
  Result := 0;
end;

procedure CallHook(Value: Pointer); stdcall;
begin
  EndHook(Value);
end;

function Start(var Thread: TBareThread): Boolean;
var
  Id: Cardinal;
begin
  Thread.Handle := CreateThread(nil, 0, @Run, @Thread, 0, Id);
  Result := Thread.Handle <> 0;
end;

procedure BareJoin(var Thread: TBareThread);
begin
  WaitForSingleObject(Thread.Handle, High(Cardinal));
  CloseHandle(Thread.Handle);
end;

procedure MakeKey;
begin
  Key := FlsAlloc(@CallHook);
end;

procedure BareSetValue(Value: Pointer);
begin
  FlsSetValue(Key, Value);
end;

{$else}
function pthread_create(out Thread: NativeUInt; Attributes, Routine, Argument: Pointer): LongInt;
  cdecl; external 'c';
function pthread_join(Thread: NativeUInt; Answer: Pointer): LongInt; cdecl; external 'c';
function pthread_key_create(out Key: Cardinal; Hook: Pointer): LongInt; cdecl; external 'c';
function pthread_setspecific(Key: Cardinal; Value: Pointer): LongInt; cdecl; external 'c';

function Run(Thread: Pointer): Pointer; cdecl;
begin
  TBareThread(Thread^).Routine(TBareThread(Thread^).Argument);
  Result := nil;
end;

procedure CallHook(Value: Pointer); cdecl;
begin
  EndHook(Value);
end;

function Start(var Thread: TBareThread): Boolean;
begin
  Result := pthread_create(Thread.Handle, nil, @Run, @Thread) = 0;
end;

procedure BareJoin(var Thread: TBareThread);
begin
  pthread_join(Thread.Handle, nil);
end;

procedure MakeKey;
begin
  pthread_key_create(Key, @CallHook);
end;

procedure BareSetValue(Value: Pointer);
begin
  pthread_setspecific(Key, Value);
end;
{$endif}

function BareStart(var Thread: TBareThread; Routine: TBareRoutine; Argument: Pointer): Boolean;
begin
  Thread.Routine := Routine;
  Thread.Argument := Argument;
  Result := Start(Thread);
end;

procedure BareHook(Hook: TBareRoutine);
begin
  EndHook := Hook;
  MakeKey;
end;

end.
