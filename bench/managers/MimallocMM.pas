/// mimalloc 2 as the memory manager.
//
// Source: https://github.com/microsoft/mimalloc (Debian: libmimalloc-dev).
unit MimallocMM;

{$mode objfpc}

interface

implementation

const
  LibraryName = 'mimalloc';
  MallocName = 'mi_malloc';
  FreeName = 'mi_free';
  CallocName = 'mi_calloc';
  ReallocName = 'mi_realloc';
  UsableSizeName = 'mi_usable_size';

{$I CManager.inc}

end.
