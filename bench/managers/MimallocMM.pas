/// mimalloc 2 as the memory manager.
//
// Source: https://github.com/microsoft/mimalloc (Debian: libmimalloc-dev).
unit MimallocMM;

{$mode objfpc}

interface

implementation

uses
  Bench.Trim;

const
  LibraryName = 'mimalloc';
  MallocName = 'mi_malloc';
  FreeName = 'mi_free';
  CallocName = 'mi_calloc';
  ReallocName = 'mi_realloc';
  UsableSizeName = 'mi_usable_size';

procedure Collect(IsForced: ByteBool); cdecl; external LibraryName name 'mi_collect';

procedure Trim;
begin
  Collect(True);
end;

{$I CManager.inc}

end.
