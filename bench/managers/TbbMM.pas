/// oneTBB's scalable allocator as the memory manager.
//
// Source: Debian package libtbb-dev.
unit TbbMM;

{$mode objfpc}

interface

implementation

const
  LibraryName = 'tbbmalloc';
  MallocName = 'scalable_malloc';
  FreeName = 'scalable_free';
  CallocName = 'scalable_calloc';
  ReallocName = 'scalable_realloc';
  UsableSizeName = 'scalable_msize';

{$I CManager.inc}

end.
