/// The handlers that libc calls at the end of the process and around fork, in glibc and in musl.
//
// Owns:       nothing.
// Limits:     musl does not tell an exit handler the exit code: it is 0 here, whatever the program
//             returned.
// Callers:    one thread at a time; the handlers: libc.
// Source:     man-pages 3, on_exit; Linux Standard Base 5.0, __cxa_atexit, __register_atfork; musl
//             1.2.3: src/exit/atexit.c, src/process/fork.c.
unit LaneMM.C.Handlers;

{$I ../src/LaneMM.inc}

interface

type
  /// Receives the exit code, and nil.
  TExitCall = procedure(Status: LongInt; Argument: Pointer); cdecl;
  /// Called before fork, or after it.
  TForkCall = procedure; cdecl;

/// Returns whether libc is glibc.
function LibcIsGlibc: Boolean;
/// Has Routine called at the end of the process, after all handlers that are added later.
procedure HandleExit(Routine: TExitCall);
/// Has the routines, each of which may be nil, called around fork; Module is the library that ends
/// them when it is unloaded, or nil. Returns whether libc does.
function HandleForks(Prepare, Parent, Child: TForkCall; Module: Pointer): Boolean;

implementation

// glibc's; build.sh has static programs link it.
function GlibcAtExit(Routine: TExitCall; Argument: Pointer): LongInt; cdecl;
  weakexternal name 'on_exit';
function GlibcAtFork(Prepare, Parent, Child: TForkCall; Module: Pointer): LongInt; cdecl;
  weakexternal name '__register_atfork';

// musl's, likewise. In glibc's shared library there is no such fork handler.
function LibcAtExit(Routine, Argument, Module: Pointer): LongInt; cdecl;
  weakexternal name '__cxa_atexit';
function LibcAtFork(Prepare, Parent, Child: TForkCall): LongInt; cdecl;
  weakexternal name 'pthread_atfork';

function LibcIsGlibc: Boolean;
begin
  Result := @GlibcAtExit <> nil;
end;

procedure ExitOf(Routine: Pointer); cdecl;
begin
  TExitCall(Routine)(0, nil);
end;

procedure HandleExit(Routine: TExitCall);
begin
  if LibcIsGlibc then
    GlibcAtExit(Routine, nil)
  else if @LibcAtExit <> nil then
    LibcAtExit(@ExitOf, @Routine, nil);
end;

function HandleForks(Prepare, Parent, Child: TForkCall; Module: Pointer): Boolean;
begin
  if @GlibcAtFork <> nil then
    Exit(GlibcAtFork(Prepare, Parent, Child, Module) = 0);
  Result := (@LibcAtFork <> nil) and (LibcAtFork(Prepare, Parent, Child) = 0);
end;

end.
