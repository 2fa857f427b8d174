/// mimalloc 3 as the memory manager.
//
// Source: PyPI's cmeel-mimalloc, built by bench/peers.sh.
unit Mimalloc3MM;

{$mode objfpc}

interface

implementation

uses
  Bench.Origin, Bench.Trim;

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

function VersionNumber: LongInt; cdecl; external LibraryName name 'mi_version';

// 30403 for 3.4.3
function Version: AnsiString;
var
  Major, Minor, Patch: string[8];
begin
  Str(VersionNumber div 10000, Major);
  Str(VersionNumber div 100 mod 100, Minor);
  Str(VersionNumber mod 100, Patch);
  Result := Major + '.' + Minor + '.' + Patch;
end;

{$I CManager.inc}

end.
