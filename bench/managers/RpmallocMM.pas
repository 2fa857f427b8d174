/// rpmalloc as the memory manager.
//
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

{$I CManager.inc}

end.
