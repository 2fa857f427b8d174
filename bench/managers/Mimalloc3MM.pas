/// mimalloc 3 as the memory manager.
//
// Source: the crate libmimalloc-sys, built by bench/peers.sh.
unit Mimalloc3MM;

{$mode objfpc}

interface

implementation

const
  LibraryName = 'mimalloc3';
  MallocName = 'mi_malloc';
  FreeName = 'mi_free';
  CallocName = 'mi_calloc';
  ReallocName = 'mi_realloc';
  UsableSizeName = 'mi_usable_size';

{$I CManager.inc}

end.
