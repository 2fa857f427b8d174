/// Pointers that belong to no copy of LaneMM.
//
// Owns:       nothing; supplies the memory manager that LaneMM.Foreign treats as the previous one.
// Invariants: where this library is the malloc of the process, foreign blocks come only from the
//             dynamic loader before it has loaded the library; a free of those is ignored.
//             Otherwise (the library was loaded late, for one part of a program) they belong to
//             the malloc of the process and go there.
// Callers:    any thread.
// Source:     glibc: elf/dl-minimal.c.
unit LaneMM.C.Foreign;

{$I ../src/LaneMM.inc}

interface

/// Returns the routines that foreign blocks go to, as a memory manager.
procedure ForeignManager(out Manager: TMemoryManager);

implementation

uses
  LaneMM.Layout;

// The malloc of the process: the first definitions of these names that the dynamic linker finds,
// in this library or in another one.
function ProcessMalloc(Size: NativeUInt): Pointer; cdecl; external name 'malloc';
procedure ProcessFree(P: Pointer); cdecl; external name 'free';
function ProcessUsableSize(P: Pointer): NativeUInt; cdecl; external name 'malloc_usable_size';
// The malloc of this library.
function OwnMalloc(Size: NativeUInt): Pointer; cdecl; external name 'lanemm_malloc';

function IsForProcess: Boolean;
begin
  Result := @ProcessMalloc <> @OwnMalloc;
end;

function ForeignFree(P: Pointer): TSize;
begin
  Result := 0;
  if IsForProcess then
    ProcessFree(P);
end;

function ForeignUsableSize(P: Pointer): TSize;
begin
  Result := 0;
  if IsForProcess then
    Result := ProcessUsableSize(P);
end;

// Differs from RtlGet, so the previous manager does not look like the run-time library's, which
// does not exist here.
function ForeignGet(Size: TSize): Pointer;
begin
  Result := nil;
end;

function RtlGet(Size: TSize): Pointer; [public, alias: 'SYSTEM_$$_SYSGETMEM$QWORD$$POINTER'];
begin
  Result := nil;
end;

procedure ForeignManager(out Manager: TMemoryManager);
begin
  FillChar(Manager, SizeOf(Manager), 0);
  Manager.GetMem := ForeignGet;
  Manager.FreeMem := ForeignFree;
  Manager.MemSize := ForeignUsableSize;
end;

end.
