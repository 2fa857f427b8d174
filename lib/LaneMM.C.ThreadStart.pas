/// pthread_create for threads that begin in a scope of a region.
//
// Owns:       the exported name pthread_create; LibcCreate.
// Invariants: libc allocates the vector of a thread's variables when it makes the stack, and keeps both
//             for a later thread. So a thread is made out of the scope: the vector belongs to no region.
// Limits:     a static program has libc's pthread_create; C11's thrd_create calls that, too.
// Callers:    any thread.
// Source:     glibc 2.36: nptl/allocatestack.c, elf/dl-tls.c.
unit LaneMM.C.ThreadStart;

{$I ../src/LaneMM.inc}

interface

implementation

uses
  LaneMM.Types, LaneMM.Os, LaneMM.Regions, LaneMM.C.Modules;

type
  TThreadCreate = function(Id, Attributes, Routine, Argument: Pointer): LongInt; cdecl;

const
  ErrorAgain = 11; // EAGAIN, where libc has no table of names

var
  // shared  libc's pthread_create, or another one that is loaded later; two threads write the same.
  LibcCreate: TThreadCreate;

function ThreadCreate(Id, Attributes, Routine, Argument: Pointer): LongInt; cdecl;
  [public, alias: 'pthread_create'];
var
  Before: PHeap;
begin
  if @LibcCreate = nil then
    @LibcCreate := ModulesFind('pthread_create');
  if @LibcCreate = nil then
    Exit(ErrorAgain);
  Before := OsThreadHeap;
  if RegionOfHeap(Before) = nil then
    Exit(LibcCreate(Id, Attributes, Routine, Argument));
  RegionVisit(nil, Before);
  Result := LibcCreate(Id, Attributes, Routine, Argument);
  RegionReturn(Before);
end;

end.
