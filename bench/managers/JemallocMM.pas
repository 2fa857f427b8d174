/// jemalloc as the memory manager.
//
// Source: Debian package libjemalloc-dev. The library is linked before the C library, so
//         that malloc is its own.
unit JemallocMM;

{$mode objfpc}

interface

implementation

uses
  Bench.Trim;

const
  LibraryName = 'jemalloc';
  MallocName = 'malloc';
  FreeName = 'free';
  CallocName = 'calloc';
  ReallocName = 'realloc';
  UsableSizeName = 'malloc_usable_size';

function MallCtl(Name: PAnsiChar; Old, OldSize, New: Pointer; NewSize: PtrUInt): LongInt; cdecl;
  external LibraryName name 'mallctl';

procedure Trim;
begin
  MallCtl('arena.4096.purge', nil, nil, nil, 0); // 4096: all arenas
end;

{$I CManager.inc}

end.
