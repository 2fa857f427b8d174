/// mimalloc 2 as the memory manager.
//
// Source: https://github.com/microsoft/mimalloc (Debian: libmimalloc-dev).
unit MimallocMM;

{$mode objfpc}

interface

implementation

uses
  Bench.Origin, Bench.Trim;

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

function VersionNumber: LongInt; cdecl; external LibraryName name 'mi_version';

// 209 for 2.0.9
function Version: AnsiString;
var
  Major, Minor, Patch: string[8];
begin
  Str(VersionNumber div 100, Major);
  Str(VersionNumber div 10 mod 10, Minor);
  Str(VersionNumber mod 10, Patch);
  Result := Major + '.' + Minor + '.' + Patch;
end;

{$I CManager.inc}

end.
