/// jemalloc as the memory manager.
//
// Source: Debian package libjemalloc-dev. The library is linked before the C library, so
//         that malloc is its own.
unit JemallocMM;

{$mode objfpc}

interface

implementation

const
  LibraryName = 'jemalloc';
  MallocName = 'malloc';
  FreeName = 'free';
  CallocName = 'calloc';
  ReallocName = 'realloc';
  UsableSizeName = 'malloc_usable_size';

{$I CManager.inc}

end.
