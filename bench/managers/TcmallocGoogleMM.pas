/// Google's TCMalloc as the memory manager.
//
// Source: the crate libtcmalloc-sys, built by bench/peers.sh. It states no version. As in any program that
//         only links it, no thread calls its background actions.
unit TcmallocGoogleMM;

{$mode objfpc}

interface

implementation

uses
  Bench.Trim;

const
  LibraryName = 'tcmalloc-google';
  MallocName = 'TCMallocInternalMalloc';
  FreeName = 'TCMallocInternalFree';
  CallocName = 'TCMallocInternalCalloc';
  ReallocName = 'TCMallocInternalRealloc';
  UsableSizeName = 'TCMallocInternalMallocSize';

procedure ReleaseToSystem(Bytes: PtrUInt); cdecl;
  external LibraryName name 'MallocExtension_Internal_ReleaseMemoryToSystem';

procedure Trim;
begin
  ReleaseToSystem(High(PtrUInt));
end;

{$I CManager.inc}

end.
