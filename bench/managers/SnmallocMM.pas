/// snmalloc as the memory manager.
//
// Source: the crate snmalloc-sys, built by bench/peers.sh.
unit SnmallocMM;

{$mode objfpc}

interface

implementation

const
  LibraryName = 'snmalloc';
  MallocName = 'sn_malloc';
  FreeName = 'sn_free';
  CallocName = 'sn_calloc';
  ReallocName = 'sn_realloc';
  UsableSizeName = 'sn_malloc_usable_size';

{$I CManager.inc}

end.
