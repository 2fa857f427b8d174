/// malloc and its relatives, with the semantics of glibc.
//
// Owns:       nothing.
// Callers:    any thread of any program, also the dynamic loader before libc has started, and exit
//             handlers after everything has ended.
// Errors:     no memory, or a size that no block can have: nil, and errno is ENOMEM; the block given
//             to realloc stays as it was. A success leaves errno alone.
// Source:     ISO C17 7.22.3; POSIX.1-2017, posix_memalign; glibc 2.36, malloc/malloc.c, and the
//             chapter "Replacing malloc" of its manual.
unit LaneMM.C.Malloc;

{$I ../src/LaneMM.inc}
{$stackframes on} // LaneMM.C.Frames finds the caller by them

interface

/// A block of at least Size bytes; Size 0 gives a block too.
function Malloc(Size: NativeUInt): Pointer; cdecl;
/// The same for Count elements of Size bytes, all zero.
function Calloc(Count, Size: NativeUInt): Pointer; cdecl;
/// Changes the size of P, which may move. P nil gets a block; Size 0 frees P and returns nil.
function Realloc(P: Pointer; Size: NativeUInt): Pointer; cdecl;
/// The same for Count elements of Size bytes.
function ReallocArray(P: Pointer; Count, Size: NativeUInt): Pointer; cdecl;
/// Frees P; nil is allowed.
procedure Free(P: Pointer); cdecl;
/// Writes a block at a multiple of Alignment to P; returns 0, EINVAL or ENOMEM, not in errno.
function PosixMemAlign(out P: Pointer; Alignment, Size: NativeUInt): LongInt; cdecl;
/// A block at a multiple of Alignment; EINVAL when that is no power of two.
function AlignedAlloc(Alignment, Size: NativeUInt): Pointer; cdecl;
/// The same; rounds Alignment up to a power of two.
function MemAlign(Alignment, Size: NativeUInt): Pointer; cdecl;
/// A block that begins a page.
function Valloc(Size: NativeUInt): Pointer; cdecl;
/// The same, whole pages.
function PValloc(Size: NativeUInt): Pointer; cdecl;
/// The bytes that the block P holds; 0 for nil.
function UsableSize(P: Pointer): NativeUInt; cdecl;

/// Malloc before the start, while something is watched, and of what has no size class.
function MallocSlow(Size: NativeUInt): Pointer;
/// Free before the start, while something is watched, and of what is not in the first arena.
procedure FreeSlow(P: Pointer);

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Bits, LaneMM.Os, LaneMM.Arena, LaneMM.Foreign,
  LaneMM.Blocks, LaneMM.Allocate, LaneMM.Free, LaneMM.Resize, LaneMM.C.Aligned, LaneMM.C.Errno,
  LaneMM.C.Manager, LaneMM.C.Start;

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
  [public, alias: 'malloc', alias: 'lanemm_malloc', alias: '__libc_malloc'];
asm
  cmp rdi, [rip + Process.DirectSize] // before the start there may be no fs to read
  jae MallocSlow
  mov rax, [rip + Process.ThreadSlot]
  mov rdx, fs:[rax]
  test rdx, rdx
  jz BlockGetSlow
  {$I ../src/core/LaneMM.Allocate.x64.Take.inc}
end;

procedure FreeSlow(P: Pointer);
begin
  if (P <> nil) and LibraryStart then
    Installed.FreeMem(P);
end;

procedure Free(P: Pointer); assembler; nostackframe;
  [public, alias: 'free', alias: 'cfree', alias: '__libc_free'];
asm
  mov rdx, rdi
  sub rdx, [rip + Process.Base]
  cmp rdx, [rip + Process.DirectLimit]
  jae FreeSlow
  mov rax, [rip + Process.ThreadSlot]
  mov rsi, fs:[rax]
  {$I ../src/core/LaneMM.Free.x64.Put.inc}
end;

// The bytes of Count elements; tells whether a block can have so many.
function Multiply(Count, Size: NativeUInt; out Bytes: NativeUInt): Boolean; inline;
const
  HalfWord = SizeOf(NativeUInt) * 4;
begin
  Bytes := Count * Size;
  Result := ((Count or Size) shr HalfWord = 0) or (Size = 0) or (Bytes div Size = Count);
end;

function Calloc(Count, Size: NativeUInt): Pointer; [public, alias: 'calloc', alias: '__libc_calloc'];
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

function UsableSize(P: Pointer): NativeUInt; [public, alias: 'malloc_usable_size'];
begin
  if Process.IsDirect or not LibraryStart then
    Result := BlockUsableSize(P)
  else
    Result := Installed.MemSize(P);
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

// A block of another copy of LaneMM, or of who knows whom.
function ReallocForeign(P: Pointer; Size: NativeUInt): Pointer;
var
  Usable: NativeUInt;
begin
  if not ForeignSize(P, Usable) or (Usable = 0) then
    Exit(Fail(ErrorNoMemory));
  Result := MoveBlock(P, Usable, Size);
end;

// In place, but when it would waste half of the block. Blocks that grow get no room to grow again:
// programs in C ask for what they want.
function ReallocBlock(P: Pointer; Size: NativeUInt): Pointer;
var
  Usable: NativeUInt;
begin
  Usable := BlockUsableSize(P);
  if (Size <= Usable) and (Size >= Usable div 2) then
    Result := P
  else if (Usable > MaxClassSize) and (Size > MaxClassSize) then
    Result := BlockRealloc(P, Size)
  else
    Result := MoveBlock(P, Usable, Size);
end;

function Realloc(P: Pointer; Size: NativeUInt): Pointer; [public, alias: 'realloc', alias: '__libc_realloc'];
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
    Result := Installed.ReallocMem(P, Size);
end;

function ReallocArray(P: Pointer; Count, Size: NativeUInt): Pointer;
  [public, alias: 'reallocarray'];
var
  Bytes: NativeUInt;
begin
  if not Multiply(Count, Size, Bytes) then
    Exit(Fail(ErrorNoMemory));
  Result := Realloc(P, Bytes);
end;

// ---------------------------------------------------------------------------- aligned

function IsPowerOfTwo(Value: NativeUInt): Boolean; inline;
begin
  Result := (Value <> 0) and (Value and (Value - 1) = 0);
end;

function StartAndAlign(Alignment, Size: NativeUInt): Pointer;
begin
  if not Process.IsDirect and not LibraryStart then
    Exit(Fail(ErrorNoMemory));
  Result := AlignedGet(Alignment, Size);
end;

function PosixMemAlign(out P: Pointer; Alignment, Size: NativeUInt): LongInt;
  [public, alias: 'posix_memalign'];
var
  Block: Pointer;
  SavedErrno: LongInt;
begin
  if not IsPowerOfTwo(Alignment) or (Alignment < SizeOf(Pointer)) then
    Exit(ErrorInvalid);
  SavedErrno := ErrnoGet;
  Block := StartAndAlign(Alignment, Size);
  if Block = nil then
  begin
    ErrnoSet(SavedErrno);
    Exit(ErrorNoMemory);
  end;
  P := Block;
  Result := 0;
end;

function AlignedAlloc(Alignment, Size: NativeUInt): Pointer; [public, alias: 'aligned_alloc'];
begin
  if not IsPowerOfTwo(Alignment) then
    Exit(Fail(ErrorInvalid));
  Result := StartAndAlign(Alignment, Size);
end;

function MemAlign(Alignment, Size: NativeUInt): Pointer; [public, alias: 'memalign', alias: '__libc_memalign'];
begin
  if Alignment > MaxAlignment then
    Exit(Fail(ErrorInvalid));
  if Alignment <= BlockAlignment then
    Alignment := BlockAlignment
  else if not IsPowerOfTwo(Alignment) then
    Alignment := NativeUInt(2) shl FloorLog2(Alignment);
  Result := StartAndAlign(Alignment, Size);
end;

function Valloc(Size: NativeUInt): Pointer; [public, alias: 'valloc', alias: '__libc_valloc'];
begin
  Result := StartAndAlign(OsPageSize, Size);
end;

function PValloc(Size: NativeUInt): Pointer; [public, alias: 'pvalloc', alias: '__libc_pvalloc'];
begin
  if Size > High(Size) - OsPageSize then
    Exit(Fail(ErrorNoMemory));
  Result := StartAndAlign(OsPageSize, AlignUp(Size, OsPageSize));
end;

end.
