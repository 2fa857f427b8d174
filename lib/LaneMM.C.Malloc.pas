/// malloc and its relatives, with the semantics of glibc.
//
// Owns:       nothing.
// Callers:    any thread of any program, also the dynamic loader before libc has started, and exit
//             handlers after everything has ended.
// Errors:     no memory, or a size beyond the largest block: nil, and errno is ENOMEM; realloc
//             leaves its block unchanged, and fails only where it is to grow. Success leaves errno
//             unchanged.
// Source:     ISO C17 7.22.3; ISO C23 7.24.3, free_sized; POSIX.1-2017, posix_memalign; glibc 2.36,
//             malloc/malloc.c, and the chapter "Replacing malloc" of its manual.
unit LaneMM.C.Malloc;

{$I ../src/LaneMM.inc}
{$stackframes on} // LaneMM.C.Frames finds the caller by them where libc has no _dl_find_object

interface

uses
  LaneMM.DebugState;

/// Allocates at least Size bytes; Size 0 allocates a block too.
function Malloc(Size: NativeUInt): Pointer; cdecl;
/// Allocates Count elements of Size bytes, all zero.
function Calloc(Count, Size: NativeUInt): Pointer; cdecl;
/// Resizes P, which may move. P nil allocates; Size 0 frees P and returns nil.
function Realloc(P: Pointer; Size: NativeUInt): Pointer; cdecl;
/// Resizes P to Count elements of Size bytes.
function ReallocArray(P: Pointer; Count, Size: NativeUInt): Pointer; cdecl;
/// Frees P; nil is allowed.
procedure Free(P: Pointer); cdecl;
/// Frees a block that was requested with Size bytes, which debug mode checks; nil is allowed.
procedure FreeSized(P: Pointer; Size: NativeUInt); cdecl;
/// FreeSized of a block of aligned_alloc.
procedure FreeAlignedSized(P: Pointer; Alignment, Size: NativeUInt); cdecl;
/// Allocates a block at a multiple of Alignment and stores it in P; returns 0, EINVAL or ENOMEM.
/// EINVAL leaves errno unchanged.
function PosixMemAlign(out P: Pointer; Alignment, Size: NativeUInt): LongInt; cdecl;
/// Allocates a block at a multiple of Alignment; EINVAL unless that is a power of two.
function AlignedAlloc(Alignment, Size: NativeUInt): Pointer; cdecl;
/// Allocates a block at a multiple of Alignment rounded up to a power of two.
function MemAlign(Alignment, Size: NativeUInt): Pointer; cdecl;
/// Allocates a block at a page boundary.
function Valloc(Size: NativeUInt): Pointer; cdecl;
/// Allocates whole pages.
function PValloc(Size: NativeUInt): Pointer; cdecl;
/// Returns the usable size of P; 0 for nil.
function UsableSize(P: Pointer): NativeUInt; cdecl;
/// Computes the bytes of Count elements; returns whether they fit NativeUInt.
function Multiply(Count, Size: NativeUInt; out Bytes: NativeUInt): Boolean; inline;

/// Allocates before the start, while a profile or debug mode is on, and beyond the size classes.
function MallocSlow(Size: NativeUInt): Pointer;
/// Frees before the start, while a profile or debug mode is on, and outside the first arena.
procedure FreeSlow(P: Pointer);
/// FreeSlow of a block that belongs to Family and has this size, which 0 leaves open.
procedure FreeOfFamily(P: Pointer; Size: NativeUInt; Family: TFamily);

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Hooks, LaneMM.Bits, LaneMM.Os, LaneMM.Arena, LaneMM.Regions,
  LaneMM.Foreign, LaneMM.Blocks, LaneMM.Allocate, LaneMM.Aligned,
  LaneMM.Free, LaneMM.Resize, LaneMM.Walk, LaneMM.AlignedBlocks, LaneMM.C.Errno, LaneMM.C.Families,
  LaneMM.C.Foreign, LaneMM.C.Manager, LaneMM.C.Start;

const
  MaxAlignment = NativeUInt(1) shl (SizeOf(NativeUInt) * 8 - 1);

function Fail(Error: LongInt): Pointer;
begin
  ErrnoSet(Error);
  Result := nil;
end;

// ---------------------------------------------------------------------------- malloc, free

function MallocSlow(Size: NativeUInt): Pointer;
begin
  if not LibraryStart then
    Exit(Fail(ErrorNoMemory));
  Result := Installed.GetMem(Size);
end;

function Malloc(Size: NativeUInt): Pointer; assembler; nostackframe;
  [public, alias: 'malloc', alias: 'lanemm_malloc', alias: '__libc_malloc',
  alias: 'tc_malloc_skip_new_handler'];
asm
  cmp rdi, [rip + Process.DirectSize] // before the start fs may not be set up
  jae @Check
  mov rax, [rip + Process.ThreadSlot]
  mov rdx, fs:[rax]
  test rdx, rdx
  jz BlockGetSlow
  {$I ../src/core/LaneMM.Allocate.x64.Take.inc}
@Check:
  cmp byte ptr [rip + Process.IsDirect], 0
  je MallocSlow
  jmp FastBlockGet
end;

procedure FreeOfFamily(P: Pointer; Size: NativeUInt; Family: TFamily);
begin
  if (P = nil) or not LibraryStart then
    Exit;
  FamilyCheck(P, Size, Family);
  Installed.FreeMem(P);
end;

// A jump: a frame less to unwind. Some programs free nil in every third call.
procedure FreeSlow(P: Pointer); assembler; nostackframe;
asm
  test rdi, rdi
  jz @Done
  xor esi, esi
  mov edx, faPlain
  jmp FreeOfFamily
@Done:
end;

procedure Free(P: Pointer); assembler; nostackframe;
  [public, alias: 'free', alias: 'cfree', alias: '__libc_free', alias: 'tc_free', alias: 'tc_cfree',
  alias: 'dallocx'];
asm
  {$I LaneMM.C.Offset.inc}
  jae FreeSlow
  {$I LaneMM.C.Put.inc}
end;

procedure FreeSized(P: Pointer; Size: NativeUInt); assembler; nostackframe;
  [public, alias: 'free_sized', alias: 'tc_free_sized', alias: 'sdallocx'];
asm
  mov edx, faPlain
  cmp byte ptr [rip + Process.IsDirect], 0
  je FreeOfFamily
  jmp Free
end;

procedure FreeAlignedSized(P: Pointer; Alignment, Size: NativeUInt); assembler; nostackframe;
  [public, alias: 'free_aligned_sized', alias: 'tc_free_aligned_sized'];
asm
  mov rsi, rdx
  jmp FreeSized
end;

function Multiply(Count, Size: NativeUInt; out Bytes: NativeUInt): Boolean;
const
  HalfWord = SizeOf(NativeUInt) * 4;
begin
  Bytes := Count * Size;
  Result := ((Count or Size) shr HalfWord = 0) or (Size = 0) or (Bytes div Size = Count);
end;

function Calloc(Count, Size: NativeUInt): Pointer;
  [public, alias: 'calloc', alias: '__libc_calloc', alias: 'tc_calloc'];
var
  Bytes: NativeUInt;
begin
  if not Multiply(Count, Size, Bytes) then
    Exit(Fail(ErrorNoMemory));
  if Process.IsDirect then
    Result := BlockGetZero(Bytes)
  else if LibraryStart then
    Result := Installed.AllocMem(Bytes)
  else
    Result := Fail(ErrorNoMemory);
end;

function UsableSizeSlow(P: Pointer): NativeUInt;
begin
  if Process.IsDirect or not LibraryStart then
    Result := BlockUsableSize(P)
  else
    Result := Installed.MemSize(P);
  if Result <> NoBlock then
    Exit;
  if not ForeignIsForProcess then
    ForeignInvalid(P, icSize);
  Result := 0;
end;

function UsableSize(P: Pointer): NativeUInt; assembler; nostackframe;
  [public, alias: 'malloc_usable_size', alias: 'lanemm_usable_size', alias: 'tc_malloc_size',
  alias: 'sallocx', alias: 'MallocExtension_GetAllocatedSize'];
asm
  {$I LaneMM.C.Offset.inc}
  jae UsableSizeSlow
  {$I ../src/core/LaneMM.Blocks.x64.Size.inc}
end;

// ---------------------------------------------------------------------------- realloc

function MoveBlock(P: Pointer; Usable, Size: NativeUInt): Pointer;
begin
  Result := Malloc(Size);
  if Result = nil then
    Exit;
  if Size < Usable then
    Usable := Size;
  Move(P^, Result^, Usable);
  Free(P);
end;

// Keeps the block where no smaller one can be had: programs expect no failure when a block shrinks.
function ShrinkBlock(P: Pointer; Usable, Size: NativeUInt): Pointer;
var
  SavedErrno: LongInt;
begin
  SavedErrno := ErrnoGet;
  Result := MoveBlock(P, Usable, Size);
  if Result <> nil then
    Exit;
  ErrnoSet(SavedErrno);
  Result := P;
end;

// Resizes a block of another copy of LaneMM, or of another memory manager: it belongs to no region.
function ReallocForeign(P: Pointer; Size: NativeUInt): Pointer;
var
  Usable: NativeUInt;
  Before: PHeap;
begin
  if not ForeignSize(P, Usable) or (Usable = NoBlock) then
    ForeignInvalid(P, icResize);
  Before := OsThreadHeap;
  if RegionOfHeap(Before) <> nil then
    RegionVisit(nil, Before);
  if Size > Usable then
    Result := MoveBlock(P, Usable, Size)
  else
    Result := ShrinkBlock(P, Usable, Size);
  if RegionOfHeap(Before) <> nil then
    RegionReturn(Before);
end;

// Returns whether a large block wastes half of it with Size bytes. One of a region stays: its limit
// counts what it has.
function IsTooLong(P: Pointer; Usable, Size: NativeUInt): Boolean;
var
  Span: PSpan;
begin
  if (Size <= MaxClassSize) or (Size >= Usable div 2) then
    Exit(False);
  Span := BlockSpan(P);
  Result := (Span <> nil) and (Span^.Kind = skLarge) and not (ltRegion in Span^.Traits);
end;

// Resizes in place unless that would waste half of the block. A small block that grows gets no spare
// bytes: programs in C request the capacity that they want. One of another region than the thread is
// in moves there.
function ReallocBlock(P: Pointer; Size: NativeUInt): Pointer;
var
  Usable: NativeUInt;
begin
  Usable := BlockUsableSize(P);
  if IsTooLong(P, Usable, Size) then
    Result := ResizeLarge(BlockSpan(P), Size)
  else if (Size <= Usable) and ((Size >= Usable div 2) or (Usable <= MostTiny)) then
    Result := P
  else if (Usable > MaxClassSize) and (Size > MaxClassSize)
    or BlockIsElsewhere(P, OsThreadHeap) then
    Result := BlockRealloc(P, Size)
  else if Size > Usable then
    Result := MoveBlock(P, Usable, Size)
  else
    Result := ShrinkBlock(P, Usable, Size);
end;

// ReallocBlock while a profile or debug mode is on.
function ReallocWatched(P: Pointer; Size: NativeUInt): Pointer;
var
  SavedErrno: LongInt;
begin
  FamilyCheck(P, 0, faPlain);
  SavedErrno := ErrnoGet;
  Result := Installed.ReallocMem(P, Size);
  if (Result <> nil) or (Size > Installed.MemSize(P)) then
    Exit;
  ErrnoSet(SavedErrno);
  Result := P;
end;

function Realloc(P: Pointer; Size: NativeUInt): Pointer;
  [public, alias: 'realloc', alias: '__libc_realloc', alias: 'tc_realloc'];
begin
  if P = nil then
    Exit(Malloc(Size));
  if Size = 0 then
  begin
    Free(P);
    Exit(nil);
  end;
  if not Process.IsDirect and not LibraryStart then
    Exit(Fail(ErrorNoMemory));
  if ArenaSpan(P) = nil then
    Result := ReallocForeign(P, Size)
  else if Process.IsDirect then
    Result := ReallocBlock(P, Size)
  else
    Result := ReallocWatched(P, Size);
end;

// A program with a malloc of its own may have no reallocarray: then libc's would call its realloc.
function ReallocArray(P: Pointer; Count, Size: NativeUInt): Pointer;
  [public, alias: 'reallocarray'];
var
  Bytes: NativeUInt;
begin
  if not Multiply(Count, Size, Bytes) then
    Exit(Fail(ErrorNoMemory));
  if ForeignIsForProcess and ((P = nil) or (ArenaSpan(P) = nil)) then
    Result := ForeignRealloc(P, Bytes)
  else
    Result := Realloc(P, Bytes);
end;

// ---------------------------------------------------------------------------- aligned

function StartAndAlign(Alignment, Size: NativeUInt): Pointer;
begin
  if Process.IsDirect then
    Result := AlignedGet(Alignment, Size)
  else if LibraryStart then
    Result := AlignedGetWatched(nil, Alignment, Size)
  else
    Result := Fail(ErrorNoMemory);
end;

function PosixMemAlign(out P: Pointer; Alignment, Size: NativeUInt): LongInt;
  [public, alias: 'posix_memalign', alias: 'tc_posix_memalign'];
var
  Block: Pointer;
begin
  if not IsPowerOfTwo(Alignment) or (Alignment < SizeOf(Pointer)) then
    Exit(ErrorInvalid);
  Block := StartAndAlign(Alignment, Size);
  if Block = nil then
    Exit(ErrorNoMemory);
  P := Block;
  Result := 0;
end;

function AlignedAlloc(Alignment, Size: NativeUInt): Pointer; [public, alias: 'aligned_alloc'];
begin
  if not IsPowerOfTwo(Alignment) then
    Exit(Fail(ErrorInvalid));
  Result := StartAndAlign(Alignment, Size);
end;

function MemAlign(Alignment, Size: NativeUInt): Pointer;
  [public, alias: 'memalign', alias: '__libc_memalign', alias: 'tc_memalign'];
begin
  if Alignment > MaxAlignment then
    Exit(Fail(ErrorInvalid));
  if Alignment <= BlockAlignment then
    Alignment := BlockAlignment
  else if not IsPowerOfTwo(Alignment) then
    Alignment := NativeUInt(2) shl FloorLog2(Alignment);
  Result := StartAndAlign(Alignment, Size);
end;

function Valloc(Size: NativeUInt): Pointer;
  [public, alias: 'valloc', alias: '__libc_valloc', alias: 'tc_valloc'];
begin
  Result := StartAndAlign(OsGranule, Size);
end;

function PValloc(Size: NativeUInt): Pointer;
  [public, alias: 'pvalloc', alias: '__libc_pvalloc', alias: 'tc_pvalloc'];
begin
  if Size > High(Size) - OsGranule then
    Exit(Fail(ErrorNoMemory));
  Result := StartAndAlign(OsGranule, AlignUp(Size, OsGranule));
end;

end.
