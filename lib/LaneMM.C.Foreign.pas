/// Pointers that no copy of LaneMM knows.
//
// Owns:       what LaneMM.Foreign takes for the manager that was installed before.
// Invariants: where the process's malloc is ours, nobody else hands out blocks, but the dynamic
//             loader before it has loaded us; a free of those is ignored. Where it is not (the
//             library was loaded late, for one part of a program), they belong to the process's
//             malloc and go there.
// Callers:    any thread.
// Source:     glibc: elf/dl-minimal.c.
unit LaneMM.C.Foreign;

{$I ../src/LaneMM.inc}

interface

/// The routines of whoever hands out blocks that are not ours, as a memory manager.
procedure ForeignManager(out Manager: TMemoryManager);

implementation

uses
  LaneMM.Layout;

// The process's: what the dynamic linker finds first by these names. Ours, or not.
function ProcessMalloc(Size: NativeUInt): Pointer; cdecl; external name 'malloc';
procedure ProcessFree(P: Pointer); cdecl; external name 'free';
function ProcessUsableSize(P: Pointer): NativeUInt; cdecl; external name 'malloc_usable_size';
// Ours by a name of our own.
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

// Tells the manager before from the run-time library's, which does not exist here.
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
