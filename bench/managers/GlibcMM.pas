/// glibc's malloc as the memory manager.
//
// Source: the C library that the program links anyway (Debian: libc6-dev).
unit GlibcMM;

{$mode objfpc}

interface

implementation

const
  LibraryName = 'c';
  MallocName = 'malloc';
  FreeName = 'free';
  CallocName = 'calloc';
  ReallocName = 'realloc';
  UsableSizeName = 'malloc_usable_size';

{$I CManager.inc}

end.
