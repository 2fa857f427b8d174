/// rpmalloc as the memory manager.
//
// Source: a clone of version 2, built by bench/peers.sh. It learns of a thread at its first call, and of
//         its end by a destructor of the C library.
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
