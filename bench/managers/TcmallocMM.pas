/// TCMalloc (gperftools) as the memory manager.
//
// Source: Debian package libgoogle-perftools-dev.
unit TcmallocMM;

{$mode objfpc}

interface

implementation

uses
  Bench.Trim;

const
  LibraryName = 'tcmalloc_minimal';
  MallocName = 'tc_malloc';
  FreeName = 'tc_free';
  CallocName = 'tc_calloc';
  ReallocName = 'tc_realloc';
  UsableSizeName = 'tc_malloc_size';

procedure ReleaseFreeMemory; cdecl;
  external LibraryName name 'MallocExtension_ReleaseFreeMemory';

procedure Trim;
begin
  ReleaseFreeMemory;
end;

{$I CManager.inc}

end.
