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
  LaneMM.Types, LaneMM.Errors, LaneMM.Allocate, LaneMM.C.Malloc;

type
  /// The forms of operator new; those of new[] are the same.
  TForm = (foPlain, foNoThrow, foAligned, foAlignedNoThrow);

const
  Names: array[TForm] of PAnsiChar = (
    '_Znwm', '_ZnwmRKSt9nothrow_t',
    '_ZnwmSt11align_val_t', '_ZnwmSt11align_val_tRKSt9nothrow_t');
  CppLibrary: PAnsiChar = 'libstdc++.so.6';

  // Arguments of dlsym and dlopen.
  NextLibrary = Pointer(-1);
  OnlyIfLoaded = 5; // RTLD_LAZY or RTLD_NOLOAD

function SymbolFind(Handle: Pointer; Name: PAnsiChar): Pointer; cdecl; external name 'dlsym';
function LibraryFind(Name: PAnsiChar; Flags: LongInt): Pointer; cdecl; external name 'dlopen';

// ---------------------------------------------------------------------------- new

// Returns the C++ library's operator. If the program loaded that library for one plugin alone, its
// symbols are not in the scope of this library; then it is opened by name.
function CppOperator(Form: TForm): Pointer;
var
  Handle: Pointer;
begin
  Result := SymbolFind(NextLibrary, Names[Form]);
  if Result <> nil then
    Exit;
  Handle := LibraryFind(CppLibrary, OnlyIfLoaded);
  if Handle <> nil then
    Result := SymbolFind(Handle, Names[Form]);
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

procedure NewSlow; assembler; nostackframe;
asm
  push rbp
  mov rbp, rsp
  push rdi
  push rdi // keeps the stack aligned
  call MallocSlow
  pop rdi
  pop rdi
  pop rbp
  test rax, rax
  jnz @Done
  mov eax, foPlain
  jmp NewFailed
@Done:
end;

// in: size in rdi; out: rax
function New_(Size: NativeUInt): Pointer; assembler; nostackframe;
  [public, alias: '_Znwm', alias: '_Znam'];
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

procedure NewNoThrowSlow; assembler; nostackframe;
asm
  push rbp
  mov rbp, rsp
  push rdi
  push rsi
  call MallocSlow
  pop rsi
  pop rdi
  pop rbp
  test rax, rax
  jnz @Done
  mov eax, foNoThrow
  jmp NewFailed
@Done:
end;

// in: size in rdi, nothrow in rsi; out: rax
function NewNoThrow(Size: NativeUInt): Pointer; assembler; nostackframe;
  [public, alias: '_ZnwmRKSt9nothrow_t', alias: '_ZnamRKSt9nothrow_t'];
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

function AlignedNew(Size, Alignment: NativeUInt): Pointer;
begin
  Result := MemAlign(Alignment, Size);
end;

// in: size in rdi, alignment in rsi; out: rax
function NewAligned(Size, Alignment: NativeUInt): Pointer; assembler; nostackframe;
  [public, alias: '_ZnwmSt11align_val_t', alias: '_ZnamSt11align_val_t'];
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

// in: size in rdi, alignment in rsi, nothrow in rdx; out: rax
function NewAlignedNoThrow(Size, Alignment: NativeUInt): Pointer; assembler; nostackframe;
  [public, alias: '_ZnwmSt11align_val_tRKSt9nothrow_t',
    alias: '_ZnamSt11align_val_tRKSt9nothrow_t'];
asm
  push rbp
  mov rbp, rsp
  push rdi
  push rsi
  push rdx
  push rdx // keeps the stack aligned
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

// ---------------------------------------------------------------------------- delete

// Ignores the size and the alignment of the forms that have them.
procedure Delete_(P: Pointer); assembler; nostackframe;
  [public, alias: '_ZdlPv', alias: '_ZdaPv', alias: '_ZdlPvm', alias: '_ZdaPvm',
    alias: '_ZdlPvRKSt9nothrow_t', alias: '_ZdaPvRKSt9nothrow_t',
    alias: '_ZdlPvSt11align_val_t', alias: '_ZdaPvSt11align_val_t',
    alias: '_ZdlPvmSt11align_val_t', alias: '_ZdaPvmSt11align_val_t',
    alias: '_ZdlPvSt11align_val_tRKSt9nothrow_t', alias: '_ZdaPvSt11align_val_tRKSt9nothrow_t'];
asm
  jmp Free
end;

end.
