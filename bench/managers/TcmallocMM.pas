/// TCMalloc (gperftools) as the memory manager.
//
// Source: a clone, built by bench/peers.sh, or Debian package libgoogle-perftools-dev; -dOWN_LIBRARY chooses
//         the former.
unit TcmallocMM;

{$mode objfpc}

interface

implementation

uses
  Bench.Origin, Bench.Trim;

const
  LibraryName = {$ifdef OWN_LIBRARY} 'tcmalloc' {$else} 'tcmalloc_minimal' {$endif};
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

function TcVersion(Major, Minor: PLongInt; Patch: PPAnsiChar): PAnsiChar; cdecl;
  external LibraryName name 'tc_version';

// gperftools 2.18.1
function Version: AnsiString;
begin
  Result := TcVersion(nil, nil, nil);
end;

{$I CManager.inc}

end.
