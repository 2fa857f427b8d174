/// The operators new and delete of C++.
//
// Owns:       nothing.
// Invariants: memory comes from malloc. A new that fails jumps to the C++ library's own operator of
//             the same name, with the same arguments: that operator tries once more, calls the new
//             handler and throws. So no exception passes through a routine of this unit, and the
//             unit does not depend on the implementation of exceptions.
// Callers:    any thread.
// Source:     ISO C++17 21.6.2; names: Itanium C++ ABI 5.1.
unit LaneMM.C.Operators;

{$I ../src/LaneMM.inc}

interface

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Errors, LaneMM.Allocate, LaneMM.Free, LaneMM.DebugState, LaneMM.C.Families,
  LaneMM.C.Malloc, LaneMM.C.Modules;

type
  /// The forms of operator new; those of new[] are the same.
  TForm = (foPlain, foNoThrow, foAligned, foAlignedNoThrow);

const
  Names: array[TForm] of PAnsiChar = (
    '_Znwm', '_ZnwmRKSt9nothrow_t',
    '_ZnwmSt11align_val_t', '_ZnwmSt11align_val_tRKSt9nothrow_t');

// ---------------------------------------------------------------------------- new

// Returns the C++ library's operator, also if the program loaded that library for one plugin alone.
function CppOperator(Form: TForm): Pointer;
begin
  Result := ModulesFind(Names[Form]);
  if Result = nil then
    Fatal('operator new: out of memory, and no C++ library to throw bad_alloc');
end;

// Jumps to the C++ library's operator. in: TForm in eax, the operator's arguments where they were
procedure NewFailed; assembler; nostackframe;
asm
  push rdi
  push rsi
  push rdx
  mov edi, eax
  call CppOperator
  pop rdx
  pop rsi
  pop rdi
  jmp rax
end;

// The slow halves of the operators have frame pointers, for LaneMM.C.Frames.

function NewWatched(Size: NativeUInt; Family: TFamily): Pointer;
begin
  Result := FamilySet(MallocSlow(Size), Family);
end;

// in: size in rdi, TFamily in esi
procedure NewOfFamily; assembler; nostackframe;
asm
  push rbp
  mov rbp, rsp
  push rdi
  push rdi // keeps the stack aligned
  call NewWatched
  pop rdi
  pop rdi
  pop rbp
  test rax, rax
  jnz @Done
  mov eax, foPlain
  jmp NewFailed
@Done:
end;

procedure NewSlow; assembler; nostackframe;
asm
  mov esi, faNew
  jmp NewOfFamily
end;

procedure NewArraySlow; assembler; nostackframe;
asm
  mov esi, faNewArray
  jmp NewOfFamily
end;

// in: size in rdi; out: rax
function New_(Size: NativeUInt): Pointer; assembler; nostackframe; [public, alias: '_Znwm'];
asm
  cmp byte ptr [rip + Process.IsDirect], 0
  je NewSlow
  push rdi
  call FastBlockGet
  pop rdi
  test rax, rax
  jnz @Done
  mov eax, foPlain
  jmp NewFailed
@Done:
end;

function NewArray(Size: NativeUInt): Pointer; assembler; nostackframe; [public, alias: '_Znam'];
asm
  cmp byte ptr [rip + Process.IsDirect], 0
  je NewArraySlow
  push rdi
  call FastBlockGet
  pop rdi
  test rax, rax
  jnz @Done
  mov eax, foPlain
  jmp NewFailed
@Done:
end;

// in: size in rdi, nothrow in rsi, TFamily in edx
procedure NewNoThrowOfFamily; assembler; nostackframe;
asm
  push rbp
  mov rbp, rsp
  push rdi
  push rsi
  mov esi, edx
  call NewWatched
  pop rsi
  pop rdi
  pop rbp
  test rax, rax
  jnz @Done
  mov eax, foNoThrow
  jmp NewFailed
@Done:
end;

procedure NewNoThrowSlow; assembler; nostackframe;
asm
  mov edx, faNew
  jmp NewNoThrowOfFamily
end;

procedure NewArrayNoThrowSlow; assembler; nostackframe;
asm
  mov edx, faNewArray
  jmp NewNoThrowOfFamily
end;

// in: size in rdi, nothrow in rsi; out: rax
function NewNoThrow(Size: NativeUInt): Pointer; assembler; nostackframe;
  [public, alias: '_ZnwmRKSt9nothrow_t'];
asm
  cmp byte ptr [rip + Process.IsDirect], 0
  je NewNoThrowSlow
  push rdi
  call FastBlockGet
  pop rdi
  test rax, rax
  jnz @Done
  mov eax, foNoThrow
  jmp NewFailed
@Done:
end;

function NewArrayNoThrow(Size: NativeUInt): Pointer; assembler; nostackframe;
  [public, alias: '_ZnamRKSt9nothrow_t'];
asm
  cmp byte ptr [rip + Process.IsDirect], 0
  je NewArrayNoThrowSlow
  push rdi
  call FastBlockGet
  pop rdi
  test rax, rax
  jnz @Done
  mov eax, foNoThrow
  jmp NewFailed
@Done:
end;

function AlignedNew(Size, Alignment: NativeUInt; Family: TFamily): Pointer;
begin
  Result := MemAlign(Alignment, Size);
  if not Process.IsDirect then
    FamilySet(Result, Family);
end;

// in: size in rdi, alignment in rsi, TFamily in edx
procedure NewAlignedOfFamily; assembler; nostackframe;
asm
  push rbp
  mov rbp, rsp
  push rdi
  push rsi
  call AlignedNew
  pop rsi
  pop rdi
  pop rbp
  test rax, rax
  jnz @Done
  mov eax, foAligned
  jmp NewFailed
@Done:
end;

// in: size in rdi, alignment in rsi; out: rax
function NewAligned(Size, Alignment: NativeUInt): Pointer; assembler; nostackframe;
  [public, alias: '_ZnwmSt11align_val_t'];
asm
  mov edx, faNewAligned
  jmp NewAlignedOfFamily
end;

function NewArrayAligned(Size, Alignment: NativeUInt): Pointer; assembler; nostackframe;
  [public, alias: '_ZnamSt11align_val_t'];
asm
  mov edx, faNewArrayAligned
  jmp NewAlignedOfFamily
end;

// in: size in rdi, alignment in rsi, nothrow in rdx, TFamily in ecx
procedure NewAlignedNoThrowOfFamily; assembler; nostackframe;
asm
  push rbp
  mov rbp, rsp
  push rdi
  push rsi
  push rdx
  push rdx // keeps the stack aligned
  mov edx, ecx
  call AlignedNew
  pop rdx
  pop rdx
  pop rsi
  pop rdi
  pop rbp
  test rax, rax
  jnz @Done
  mov eax, foAlignedNoThrow
  jmp NewFailed
@Done:
end;

// in: size in rdi, alignment in rsi, nothrow in rdx; out: rax
function NewAlignedNoThrow(Size, Alignment: NativeUInt): Pointer; assembler; nostackframe;
  [public, alias: '_ZnwmSt11align_val_tRKSt9nothrow_t'];
asm
  mov ecx, faNewAligned
  jmp NewAlignedNoThrowOfFamily
end;

function NewArrayAlignedNoThrow(Size, Alignment: NativeUInt): Pointer; assembler; nostackframe;
  [public, alias: '_ZnamSt11align_val_tRKSt9nothrow_t'];
asm
  mov ecx, faNewArrayAligned
  jmp NewAlignedNoThrowOfFamily
end;

// ---------------------------------------------------------------------------- delete

// While no debug mode is on, all are the same as free. The slow paths take the size, if there is
// one, in rsi and the family in edx.

procedure DeleteSlow; assembler; nostackframe;
asm
  xor esi, esi
  mov edx, faNew
  jmp FreeOfFamily
end;

procedure DeleteArraySlow; assembler; nostackframe;
asm
  xor esi, esi
  mov edx, faNewArray
  jmp FreeOfFamily
end;

procedure DeleteSizedSlow; assembler; nostackframe;
asm
  mov edx, faNew
  jmp FreeOfFamily
end;

procedure DeleteArraySizedSlow; assembler; nostackframe;
asm
  mov edx, faNewArray
  jmp FreeOfFamily
end;

// in: address in rdi
procedure Delete_(P: Pointer); assembler; nostackframe;
  [public, alias: '_ZdlPv', alias: '_ZdlPvRKSt9nothrow_t'];
asm
  mov rdx, rdi
  sub rdx, [rip + Process.Base]
  cmp rdx, [rip + Process.DirectLimit]
  jae DeleteSlow
  mov rax, [rip + Process.ThreadSlot]
  mov rsi, fs:[rax]
  {$I ../src/core/LaneMM.Free.x64.Put.inc}
end;

procedure DeleteArray(P: Pointer); assembler; nostackframe;
  [public, alias: '_ZdaPv', alias: '_ZdaPvRKSt9nothrow_t'];
asm
  mov rdx, rdi
  sub rdx, [rip + Process.Base]
  cmp rdx, [rip + Process.DirectLimit]
  jae DeleteArraySlow
  mov rax, [rip + Process.ThreadSlot]
  mov rsi, fs:[rax]
  {$I ../src/core/LaneMM.Free.x64.Put.inc}
end;

// in: address in rdi, size in rsi
procedure DeleteSized(P: Pointer; Size: NativeUInt); assembler; nostackframe;
  [public, alias: '_ZdlPvm'];
asm
  mov rdx, rdi
  sub rdx, [rip + Process.Base]
  cmp rdx, [rip + Process.DirectLimit]
  jae DeleteSizedSlow
  mov rax, [rip + Process.ThreadSlot]
  mov rsi, fs:[rax]
  {$I ../src/core/LaneMM.Free.x64.Put.inc}
end;

procedure DeleteArraySized(P: Pointer; Size: NativeUInt); assembler; nostackframe;
  [public, alias: '_ZdaPvm'];
asm
  mov rdx, rdi
  sub rdx, [rip + Process.Base]
  cmp rdx, [rip + Process.DirectLimit]
  jae DeleteArraySizedSlow
  mov rax, [rip + Process.ThreadSlot]
  mov rsi, fs:[rax]
  {$I ../src/core/LaneMM.Free.x64.Put.inc}
end;

// in: address in rdi, alignment in rsi
procedure DeleteAligned(P: Pointer; Alignment: NativeUInt); assembler; nostackframe;
  [public, alias: '_ZdlPvSt11align_val_t', alias: '_ZdlPvSt11align_val_tRKSt9nothrow_t'];
asm
  xor esi, esi
  mov edx, faNewAligned
  cmp byte ptr [rip + Process.IsDirect], 0
  je FreeOfFamily
  jmp Free
end;

procedure DeleteArrayAligned(P: Pointer; Alignment: NativeUInt); assembler; nostackframe;
  [public, alias: '_ZdaPvSt11align_val_t', alias: '_ZdaPvSt11align_val_tRKSt9nothrow_t'];
asm
  xor esi, esi
  mov edx, faNewArrayAligned
  cmp byte ptr [rip + Process.IsDirect], 0
  je FreeOfFamily
  jmp Free
end;

// in: address in rdi, size in rsi, alignment in rdx
procedure DeleteSizedAligned(P: Pointer; Size, Alignment: NativeUInt); assembler; nostackframe;
  [public, alias: '_ZdlPvmSt11align_val_t'];
asm
  mov edx, faNewAligned
  cmp byte ptr [rip + Process.IsDirect], 0
  je FreeOfFamily
  jmp Free
end;

procedure DeleteArraySizedAligned(P: Pointer; Size, Alignment: NativeUInt); assembler;
  nostackframe; [public, alias: '_ZdaPvmSt11align_val_t'];
asm
  mov edx, faNewArrayAligned
  cmp byte ptr [rip + Process.IsDirect], 0
  je FreeOfFamily
  jmp Free
end;

end.
