/// mimalloc 3 as the memory manager.
//
// Source: the crate libmimalloc-sys, built by bench/peers.sh.
unit Mimalloc3MM;

{$mode objfpc}

interface

implementation

uses
  Bench.Trim;

const
  LibraryName = 'mimalloc3';
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
