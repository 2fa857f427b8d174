/// glibc's malloc as the memory manager.
//
// Source: the C library that the program links anyway (Debian: libc6-dev).
unit GlibcMM;

{$mode objfpc}

interface

implementation

uses
  Bench.Trim;

const
  LibraryName = 'c';
  MallocName = 'malloc';
  FreeName = 'free';
  CallocName = 'calloc';
  ReallocName = 'realloc';
  UsableSizeName = 'malloc_usable_size';

function MallocTrim(Kept: PtrUInt): LongInt; cdecl; external LibraryName name 'malloc_trim';

procedure Trim;
begin
  MallocTrim(0);
end;

{$I CManager.inc}

end.
