/// rpmalloc as the memory manager.
//
// rpmalloc must be notified when a thread ends; Pascal's run-time library does it.
// Source: the crate rpmalloc-sys, built by bench/peers.sh.
unit RpmallocMM;

{$mode objfpc}

interface

implementation

const
  LibraryName = 'rpmalloc';
  MallocName = 'rpmalloc';
  FreeName = 'rpfree';
  CallocName = 'rpcalloc';
  ReallocName = 'rprealloc';
  UsableSizeName = 'rpmalloc_usable_size';
  ReleaseCaches = 1;

procedure ThreadInitialize; external LibraryName name 'rpmalloc_thread_initialize';
procedure ThreadFinalize(Caches: LongInt); cdecl;
  external LibraryName name 'rpmalloc_thread_finalize';

procedure ThreadEnd;
begin
  ThreadFinalize(ReleaseCaches);
end;

procedure FollowThreads;
var
  Manager: TMemoryManager;
begin
  GetMemoryManager(Manager);
  Manager.InitThread := @ThreadInitialize;
  Manager.DoneThread := @ThreadEnd;
  SetMemoryManager(Manager);
end;

{$I CManager.inc}
  FollowThreads;

end.
