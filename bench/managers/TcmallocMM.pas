/// TCMalloc (gperftools) as the memory manager.
//
// Source: Debian package libgoogle-perftools-dev.
unit TcmallocMM;

{$mode objfpc}

interface

implementation

const
  LibraryName = 'tcmalloc_minimal';
  MallocName = 'tc_malloc';
  FreeName = 'tc_free';
  CallocName = 'tc_calloc';
  ReallocName = 'tc_realloc';
  UsableSizeName = 'tc_malloc_size';

{$I CManager.inc}

end.
