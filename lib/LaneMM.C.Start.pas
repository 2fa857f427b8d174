/// The start of the library: at the first call, whatever that is, or when it is loaded.
//
// Owns:       nothing but what stands in for Process.ForkMark; LaneMM.Threads owns the rest.
// Invariants: a record Process that is all zeros is valid: each entry of the library looks whether
//             it was started. Nothing ends: blocks outlive every exit handler.
// Callers:    LibraryStart: one thread. The dynamic loader allocates before any thread exists, and
//             a library that is loaded late is initialized before it can be called.
unit LaneMM.C.Start;

{$I LaneMM.inc}

interface

/// Starts the allocator; tells whether it runs. Does nothing the second time.
function LibraryStart: Boolean; cdecl;
/// Changes settings as the variable LANEMM does; tells whether all words were known.
function LibraryConfigure(Words: PAnsiChar): Boolean;

implementation

uses
  LaneMM.Types, LaneMM.Atomic, LaneMM.Threads, LaneMM.Foreign, LaneMM.Blocks, LaneMM.Settings,
  LaneMM.Watch, LaneMM.C.Manager, LaneMM.C.Frames;

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

function LibcAtExit(Routine, Argument, Library_: Pointer): LongInt; cdecl;
  external name '__cxa_atexit';

// Called after the program's own exit handlers and the destructors of its libraries.
procedure ExitReached(Argument: Pointer); cdecl;
begin
  WatchEnd;
end;

procedure WatchStart;
begin
  SettingsStart;
  if Process.Settings.Values[opHelp] <> 0 then
    SettingsHelp;
  FramesStart;
  WatchApply;
  LibcAtExit(@ExitReached, nil, nil);
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
  Result := ProcessStart;
  if not Result then
    Exit;
  ForeignStart(BlockIsOurs, BlockFree, BlockUsableSize);
  Process.GrowsExactly := True;
  if Process.ForkMark = nil then
    MarkForks;
  ManagerStart;
  WatchStart;
end;

end.
