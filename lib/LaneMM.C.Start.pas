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

/// Starts the allocator. Does nothing the second time.
procedure LibraryStart; cdecl;

implementation

uses
  LaneMM.Types, LaneMM.Atomic, LaneMM.Threads, LaneMM.Foreign, LaneMM.Blocks;

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

// ---------------------------------------------------------------------------- start

procedure LibraryStart; [public, alias: 'lanemm_start'];
begin
  if Process.IsStarted then
    Exit;
  if (@KeyCreate = nil) or (@KeyDelete = nil) or (@KeySet = nil) or (@KeyGet = nil)
    or not ProcessStart then
    Exit;
  ForeignStart(BlockIsOurs, BlockFree, BlockUsableSize);
  if Process.ForkMark = nil then
    MarkForks;
end;

end.
