/// The start of the library: at the first call, whatever that is, or when it is loaded.
//
// Owns:       nothing but what stands in for Process.ForkMark; LaneMM.Threads owns the rest.
// Invariants: a record Process that is all zeros is valid: each entry of the library looks whether
//             it was started. Nothing ends: blocks outlive every exit handler.
// Callers:    LibraryStart: one thread. The dynamic loader allocates before any thread exists, and
//             a library that is loaded late is initialized before it can be called.
unit LaneMM.C.Start;

{$I ../src/LaneMM.inc}

interface

/// Starts the allocator; tells whether it runs. Does nothing the second time.
function LibraryStart: Boolean; cdecl;
/// Changes settings as the variable LANEMM does; tells whether all words were known.
function LibraryConfigure(Words: PAnsiChar): Boolean;

implementation

uses
  LaneMM.Types, LaneMM.Atomic, LaneMM.Os, LaneMM.Engine, LaneMM.SettingsState, LaneMM.Settings,
  LaneMM.Leaks, LaneMM.Watch, LaneMM.C.Frames, LaneMM.C.Manager, LaneMM.C.Roots;

// What src/ asks for only where a program links it. A static program links what is asked for here.
function KeyCreate: LongInt; cdecl; external name 'pthread_key_create';
function KeyDelete: LongInt; cdecl; external name 'pthread_key_delete';
function KeySet: LongInt; cdecl; external name 'pthread_setspecific';
function KeyGet: LongInt; cdecl; external name 'pthread_getspecific';

// ---------------------------------------------------------------------------- fork

// Where the system does not mark child processes, libc tells of them. That misses children that a
// program makes by the system call alone.
function LibcAtFork(Prepare, Parent, Child, Library_: Pointer): LongInt; cdecl;
  weakexternal name '__register_atfork';

var
  ForkMark: NativeUInt; // shared  see Process.ForkMark

procedure ChildStarted; cdecl;
begin
  StoreRelease(ForkMark, 0);
end;

procedure MarkForks;
begin
  ForkMark := 1;
  if (@LibcAtFork <> nil) and (LibcAtFork(nil, nil, @ChildStarted, nil) = 0) then
    Process.ForkMark := @ForkMark;
end;

// ---------------------------------------------------------------------------- watching

type
  TExitCall = procedure(Status: LongInt; Argument: Pointer); cdecl;

function LibcAtExit(Routine: TExitCall; Argument: Pointer): LongInt; cdecl;
  external name 'on_exit';
function LibcFlush(Stream: Pointer): LongInt; cdecl; external name 'fflush';
procedure LibcEnd(Status: LongInt); cdecl; external name '_exit';

// libc's own list of what it keeps for later, stacks of ended threads among it.
procedure LibcFreeAll; cdecl; weakexternal name '__libc_freeres';

procedure CountThread(Id: Cardinal; Context: Pointer);
begin
  Inc(PCardinal(Context)^);
end;

// Lets libc give back what it keeps, so that it is no leak. Other threads might be using it.
procedure EmptyLibc;
var
  ThreadCount: Cardinal;
begin
  ThreadCount := 0;
  OsVisitThreads(CountThread, @ThreadCount);
  if (ThreadCount = 1) and (@LibcFreeAll <> nil) then
    LibcFreeAll;
end;

// Called after the program's own exit handlers and the destructors of its libraries.
procedure ExitReached(Status: LongInt; Argument: Pointer); cdecl;
begin
  WatchEnd;
  if Settings.Values[opLeaks] <> 0 then
    EmptyLibc;
  ExitCode := Status;
  LeaksEnd;
  if ExitCode = Status then
    Exit;
  LibcFlush(nil);
  LibcEnd(ExitCode);
end;

// What would be the manager before is the malloc that the dynamic linker did not choose: it may not
// be asked for before the program has started.
procedure SayOffMeansNothing;
const
  Text: ShortString = 'LaneMM: `off` has no effect in the C library; run the program without'
    + ' the library'#10;
begin
  OsWriteError(@Text[1], Length(Text));
end;

procedure WatchStart;
begin
  SettingsStart;
  if Settings.Values[opOff] <> 0 then
    SayOffMeansNothing;
  if Settings.Values[opHelp] <> 0 then
    SettingsHelp;
  FramesStart;
  RootsStart;
  WatchApply;
  LibcAtExit(ExitReached, nil);
end;

function LibraryConfigure(Words: PAnsiChar): Boolean;
begin
  Result := LibraryStart and SettingsRead(Words, 'lanemm_configure');
  if Process.IsStarted then
    WatchApply;
end;

// ---------------------------------------------------------------------------- start

function LibraryStart: Boolean; [public, alias: 'lanemm_start'];
begin
  Result := Process.IsStarted;
  if Result or (@KeyCreate = nil) or (@KeyDelete = nil) or (@KeySet = nil) or (@KeyGet = nil) then
    Exit;
  Result := EngineStart;
  if not Result then
    Exit;
  Process.IsMalloc := True;
  if Process.ForkMark = nil then
    MarkForks;
  ManagerStart;
  WatchStart;
end;

end.
