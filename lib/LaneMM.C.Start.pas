/// The start of the library: at the first call of any function, or when it is loaded; and the end of a
/// plug-in that liblanemm.a is linked into.
//
// Owns:       ForkMark, the substitute for the page that Process.ForkMark points to; HasExited,
//             HasFinalized, EndStatus.
// Invariants: a record Process that is all zeros is valid: each entry of the library checks whether
//             it was started. In a program, and in liblanemm.so, which is never unloaded, the
//             allocator never shuts down: blocks outlive every exit handler. In another library the
//             last of its finalizers ends it; then no thread, and no handler of libc's, calls its
//             code. The last reports of a program come when the exit handlers and its finalizers
//             have run, in any order.
// Callers:    LibraryStart: one thread. The dynamic loader allocates before any thread exists, and
//             a library that is loaded late is initialized before it can be called.
unit LaneMM.C.Start;

{$I ../src/LaneMM.inc}

interface

/// Starts the allocator unless it runs; returns whether it runs.
function LibraryStart: Boolean; cdecl;
/// Changes settings as the variable LANEMM does; returns whether all words were known, and all of
/// them apply: not in the handler of a signal that has interrupted such a change.
function LibraryConfigure(Words: PAnsiChar): Boolean;

implementation

uses
  LaneMM.Types, LaneMM.Atomic, LaneMM.Os, LaneMM.OsThread, LaneMM.OsFiles, LaneMM.OsProcess, LaneMM.Engine,
  LaneMM.ReportState, LaneMM.SettingsState, LaneMM.Settings, LaneMM.SettingMessages,
  LaneMM.DebugState, LaneMM.Watch, LaneMM.Mailbox, LaneMM.C.Handlers, LaneMM.C.Background,
  LaneMM.C.Foreign, LaneMM.C.Frames, LaneMM.C.Manager, LaneMM.C.Modules, LaneMM.C.Roots;

// Words that build.sh defines: in liblanemm.a the handle by which libc knows the program or library
// that it is linked into, and the address of its header; in liblanemm.so 0.
procedure ModuleWord; external name 'lanemm_module';
procedure HeaderWord; external name 'lanemm_header';

function ModuleHandle: Pointer;
begin
  Result := PPointer(@ModuleWord)^;
end;

function Header: NativeUInt;
begin
  Result := PNativeUInt(@HeaderWord)^;
end;

// Returns whether this code stays: in liblanemm.so, and in a program, whose segments follow its
// header; not in another library, which may be unloaded.
function IsToStay: Boolean;
const
  LongestHeader = 4096;
begin
  Result := (Header = 0)
    or (NativeUInt(ModulesAuxiliary(ProgramHeaders) - Header) < LongestHeader);
end;

// src/ refers to these weakly. The references here make a static program link them.
function KeyCreate(out Key: Cardinal; Destructor_: Pointer): LongInt; cdecl;
  external name 'pthread_key_create';
function KeyDelete(Key: Cardinal): LongInt; cdecl; external name 'pthread_key_delete';
function KeySet: LongInt; cdecl; external name 'pthread_setspecific';
function KeyGet: LongInt; cdecl; external name 'pthread_getspecific';

// A routine that build.sh adds to a library for musl, see LaneMM.Os.
function OwnSlot: NativeUInt; cdecl; weakexternal name 'lanemm_own_slot';

// ---------------------------------------------------------------------------- fork

// Where the system does not mark child processes, a fork handler of libc does. It misses children
// that a program creates by the system call alone.
var
  ForkMark: array[0..2] of NativeUInt; // shared  the words of OsForkMark

procedure ChildStarted; cdecl;
begin
  StoreRelease(ForkMark[2], 0);
  StoreRelease(ForkMark[1], 0);
  StoreRelease(ForkMark[0], 0);
end;

procedure MarkForks;
begin
  ForkMark[0] := 1;
  if HandleForks(nil, nil, ChildStarted, ModuleHandle) then
    Process.ForkMark := @ForkMark;
end;

// ---------------------------------------------------------------------------- watching

function LibcFlush(Stream: Pointer): LongInt; cdecl; external name 'fflush';
procedure LibcEnd(Status: LongInt); cdecl; external name '_exit';

// Frees the memory that libc caches, such as the stacks of ended threads.
procedure LibcFreeAll; weakexternal name '__libc_freeres';

// Counts the threads but for LaneMM's own, which use nothing of libc; that of LaneMM.C.Background has
// ended.
procedure CountThread(Id: Cardinal; Context: Pointer);
begin
  if not ThreadIsOwn(Id) then
    Inc(PCardinal(Context)^);
end;

// Makes libc free its caches, so that they are not reported as leaks; only if no other thread is
// left that might use them.
procedure EmptyLibc;
var
  ThreadCount: Cardinal;
begin
  ThreadCount := 0;
  OsVisitThreads(CountThread, @ThreadCount);
  if (ThreadCount = 1) and (@LibcFreeAll <> nil) then
    ForeignAllow(@LibcFreeAll);
end;

var
  // owner   what has come of the end of a program, and its exit code
  HasExited, HasFinalized: Boolean;
  EndStatus: LongInt;

// Writes the reports of the end, which may change the exit code.
procedure EndReports;
begin
  WatchEnd;
  if ExitCode = EndStatus then
    Exit;
  LibcFlush(nil);
  LibcEnd(ExitCode);
end;

// Called after the program's own exit handlers and, with liblanemm.so, the destructors of its
// libraries. The finalizers of a program with liblanemm.a in it may come before or after this.
procedure ExitReached(Status: LongInt; Argument: Pointer); cdecl;
begin
  ExitCode := Status;
  EndStatus := Status;
  HasExited := True;
  if (Header <> 0) and not HasFinalized then
    Exit;
  if BackgroundEnd and (Settings.Values[opLeaks] <> 0) then
    EmptyLibc;
  EndReports;
end;

// Returns the variables of the program, which the kernel has left on the stack behind the number of its
// arguments, they, and nil. Glibc's loader knows the place, before libc has variables; nil: unknown.
function HostVariables: PPAnsiChar;
var
  Stack: ^PNativeUInt;
begin
  Stack := ModulesFind('__libc_stack_end');
  if (Stack = nil) or (Stack^ = nil) then
    Exit(nil);
  Result := PPAnsiChar(Stack^ + Stack^^ + 2);
end;

procedure WatchStart;
begin
  ForeignWatch;
  OsHostVariables := HostVariables;
  SettingsStart;
  WatchConfine;
  // The previous manager would be the malloc that the dynamic linker did not choose: it must not be
  // looked up before the program has started.
  if Settings.Values[opOff] <> 0 then
    ReportSayLine('`off` has no effect in the C library; run the program without the library');
  if SettingsAreChanged and ForeignIsForProcess then
    ReportSayLine('this program has another malloc, maybe of its own; the settings apply only to calls'
      + ' that come to LaneMM');
  if Settings.Values[opHelp] <> 0 then
    SettingsHelp;
  FramesStart;
  RootsStart;
  WatchApply;
  MailboxStart;
  if Process.StaysLoaded then
    HandleExit(ExitReached);
end;

// The last finalizer of a program with liblanemm.a in it.
procedure Finalized;
begin
  HasFinalized := True;
  if not HasExited then
    Exit;
  BackgroundEnd;
  EndReports;
end;

// The last finalizer of what liblanemm.a is linked into.
procedure LibraryUnload; cdecl; [public, alias: 'lanemm_unload'];
begin
  if not Process.IsStarted then
    Exit;
  if Process.StaysLoaded then
  begin
    Finalized;
    Exit;
  end;
  WatchEnd;
  WatchUnload;
  Debug.IsStarted := False; // its tables are gone
end;

function LibraryConfigure(Words: PAnsiChar): Boolean;
begin
  if not LibraryStart then
    Exit(False);
  if Words = nil then
    Words := '';
  Result := WatchChange(Words, 'lanemm_configure');
  if not BackgroundApply then
    Result := False;
end;

// ---------------------------------------------------------------------------- start

// glibc's liblanemm.so in a program of musl has no word of its own for the heap of a thread.
procedure RefuseLibc;
const
  // As the dynamic linker ends a program that it cannot start.
  ExitCode = 127;
  Text: ShortString = 'LaneMM: this liblanemm is built for glibc 2.31 or later, and this program has another'
    + ' C library'#10;
begin
  OsWriteError(@Text[1], Length(Text));
  LibcEnd(ExitCode);
end;

const
  LowKeyCount = 16;

type
  TLowKeys = record
    Count: Cardinal;
    Keys: array[0..LowKeyCount - 1] of Cardinal;
  end;

// Takes the lowest keys that are left. A name space that dlmopen opens counts its keys anew, and the values
// of both lie in the same places of a thread: it has as many before it comes to those of LaneMM.
procedure LowKeysTake(out Low: TLowKeys);
var
  Key: Cardinal;
begin
  Low.Count := 0;
  while (Low.Count < LowKeyCount) and (KeyCreate(Key, nil) = 0) do
  begin
    if Key >= LowKeyCount then
    begin
      KeyDelete(Key);
      Exit;
    end;
    Low.Keys[Low.Count] := Key;
    Inc(Low.Count);
  end;
end;

procedure LowKeysReturn(const Low: TLowKeys);
var
  Index: Cardinal;
begin
  for Index := 1 to Low.Count do
    KeyDelete(Low.Keys[Index - 1]);
end;

// AddressSanitizer's start, which may be done already.
procedure SanitizerStart; cdecl; weakexternal name '__asan_init';

// A plug-in that is unloaded takes the first keys: it comes back often. AddressSanitizer needs the
// addresses of the page that copies of LaneMM share, and is first.
function EngineStartAbove: Boolean;
var
  Low: TLowKeys;
begin
  if (@SanitizerStart <> nil) and ForeignIsShown then
    SanitizerStart;
  if not Process.StaysLoaded then
    Exit(EngineStart);
  LowKeysTake(Low);
  Result := EngineStart;
  LowKeysReturn(Low);
end;

function LibraryStart: Boolean; [public, alias: 'lanemm_start'];
begin
  Result := Process.IsStarted;
  if Result or (@KeyCreate = nil) or (@KeyDelete = nil) or (@KeySet = nil) or (@KeyGet = nil) then
    Exit;
  if not LibcIsGlibc and (@OwnSlot = nil) then
    RefuseLibc;
  Process.IsMalloc := True;
  Process.KeepsAlignment := True;
  Process.StaysLoaded := IsToStay;
  Result := EngineStartAbove;
  if not Result then
    Exit;
  if Process.ForkMark = nil then
    MarkForks;
  ManagerStart;
  WatchStart;
end;

// Called when the library is loaded, and as a constructor of what liblanemm.a is linked into: before
// two threads can call it at once.
procedure Initialize; cdecl; [public, alias: 'lanemm_initialize'];
begin
  if LibraryStart and Process.StaysLoaded then
    BackgroundApply;
end;

end.
