/// jemalloc as the memory manager.
//
// Source: the crate tikv-jemalloc-sys, built by bench/peers.sh. The library is linked before the C
//         library, so that malloc is its own.
unit JemallocMM;

{$mode objfpc}

interface

implementation

uses
  Bench.Origin, Bench.Trim;

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

function Version: AnsiString;
var
  Text: PAnsiChar;
  Size: PtrUInt;
begin
  Size := SizeOf(Text);
  MallCtl('version', @Text, @Size, nil, 0);
  Result := Text;
end;

{$I CManager.inc}

end.
