/// The operators new and delete of C++.
//
// Owns:       Forwards, IsOwn.
// Invariants: memory comes from malloc. A new that fails jumps to the C++ library's own operator of
//             the same name, with the same arguments: that operator tries once more, calls the new
//             handler and throws. So no exception passes through a routine of this unit, and the
//             unit does not depend on the implementation of exceptions. While debug mode is on, new
//             calls it: what malloc gives it then, after the handler, gets the family of new. An
//             exception passes through that call alone, by the library's unwind tables.
//             In C++ most operators call another one: delete with a size calls delete without,
//             which a program may replace alone. Where it replaces one of those that others call,
//             the others jump to the C++ library's own, which do so.
// Callers:    any thread.
// Source:     ISO C++17 21.6.2; names: Itanium C++ ABI 5.1.
unit LaneMM.C.Operators;

{$I ../src/LaneMM.inc}

interface

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Errors, LaneMM.Allocate, LaneMM.Free,
  LaneMM.DebugState, LaneMM.C.Families, LaneMM.C.Malloc, LaneMM.C.Modules;

type
  /// The forms of operator new; those of new[] are the same.
  TForm = (foPlain, foNoThrow, foAligned, foAlignedNoThrow);

const
  Names: array[TForm] of PAnsiChar = (
    '_Znwm', '_ZnwmRKSt9nothrow_t',
    '_ZnwmSt11align_val_t', '_ZnwmSt11align_val_tRKSt9nothrow_t');

type
  /// The operators that call another one in the C++ library.
  TForward = (fwNewArray, fwNewNoThrow, fwNewArrayNoThrow, fwNewArrayAligned, fwNewAlignedNoThrow,
    fwNewArrayAlignedNoThrow, fwDeleteArray, fwDeleteSized, fwDeleteArraySized, fwDeleteNoThrow,
    fwDeleteArrayNoThrow, fwDeleteArrayAligned, fwDeleteAlignedNoThrow,
    fwDeleteArrayAlignedNoThrow, fwDeleteSizedAligned, fwDeleteArraySizedAligned);

  TForwards = record
    IsKnown: NativeUInt;                   //< shared  1: the other fields and IsOwn are set
    Targets: array[TForward] of Pointer;   //< racy    where they jump to if IsOwn is not set
  end;

const
  ForwardNames: array[TForward] of PAnsiChar = (
    '_Znam', '_ZnwmRKSt9nothrow_t', '_ZnamRKSt9nothrow_t', '_ZnamSt11align_val_t',
    '_ZnwmSt11align_val_tRKSt9nothrow_t', '_ZnamSt11align_val_tRKSt9nothrow_t', '_ZdaPv',
    '_ZdlPvm', '_ZdaPvm', '_ZdlPvRKSt9nothrow_t', '_ZdaPvRKSt9nothrow_t',
    '_ZdaPvSt11align_val_t', '_ZdlPvSt11align_val_tRKSt9nothrow_t',
    '_ZdaPvSt11align_val_tRKSt9nothrow_t', '_ZdlPvmSt11align_val_t', '_ZdaPvmSt11align_val_t');

var
  Forwards: TForwards;
  // racy    whether the operators that others call are those of this library; not before the
  //         first call of one that does so
  IsOwn: Boolean;

function ForwardTarget(Operator_: TForward): Pointer; forward;

// Jumps to the operator that the C++ library has for it, or to the slow half of this one.
// in: TForward in eax, the operator's arguments where they were
procedure Forward; assembler; nostackframe;
asm
  push rdi
  push rsi
  push rdx
  mov edi, eax
  call ForwardTarget
  pop rdx
  pop rsi
  pop rdi
  jmp rax
end;

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

procedure PlainFailed; assembler; nostackframe;
asm
  mov eax, foPlain
  jmp NewFailed
end;

procedure NoThrowFailed; assembler; nostackframe;
asm
  mov eax, foNoThrow
  jmp NewFailed
end;

// The slow halves of the operators have frame pointers, for LaneMM.C.Frames.

function NewWatched(Size, Alignment: NativeUInt; Family: TFamily; Form: TForm): Pointer;
begin
  if Form < foAligned then
    Result := FamilySet(MallocSlow(Size), Family)
  else
    Result := FamilySet(MemAlign(Alignment, Size), Family);
end;

// Calls the C++ library's operator, and makes its block one of this family.
// in: TForm in eax, TFamily in ecx, the operator's arguments where they were; out: rax
procedure FailedOfFamily; assembler; nostackframe;
asm
  push rbp
  mov rbp, rsp
  push rcx
  push rcx // keeps the stack aligned
  call NewFailed
  pop rsi
  pop rsi
  pop rbp
  mov rdi, rax
  jmp FamilySet
end;

// in: TForm in eax, TFamily in ecx, the operator's arguments in rdi, rsi, rdx; out: rax
procedure NewOfFamily; assembler; nostackframe;
asm
  push rbp
  mov rbp, rsp
  push rdi
  push rsi
  push rdx
  push rcx
  push rax
  push rax // keeps the stack aligned
  mov edx, ecx
  mov ecx, eax
  call NewWatched
  mov r8, rax
  pop rax
  pop rax
  pop rcx
  pop rdx
  pop rsi
  pop rdi
  pop rbp
  test r8, r8
  jz FailedOfFamily
  mov rax, r8
end;

procedure NewSlow; assembler; nostackframe;
asm
  mov eax, foPlain
  mov ecx, faNew
  jmp NewOfFamily
end;

procedure NewArraySlow; assembler; nostackframe;
asm
  mov eax, foPlain
  mov ecx, faNewArray
  jmp NewOfFamily
end;

// in: size in rdi; out: rax
function New_(Size: NativeUInt): Pointer; assembler; nostackframe;
  [public, alias: '_Znwm', alias: 'tc_new'];
asm
  cmp byte ptr [rip + Process.IsDirect], 0
  je NewSlow
  {$I LaneMM.C.New.inc}
  jz PlainFailed
end;

function NewArray(Size: NativeUInt): Pointer; assembler; nostackframe;
  [public, alias: '_Znam', alias: 'tc_newarray'];
asm
  mov eax, fwNewArray
  {$I LaneMM.C.Own.inc}
  cmp byte ptr [rip + Process.IsDirect], 0
  je NewArraySlow
  {$I LaneMM.C.New.inc}
  jz PlainFailed
end;

procedure NewNoThrowSlow; assembler; nostackframe;
asm
  mov eax, foNoThrow
  mov ecx, faNew
  jmp NewOfFamily
end;

procedure NewArrayNoThrowSlow; assembler; nostackframe;
asm
  mov eax, foNoThrow
  mov ecx, faNewArray
  jmp NewOfFamily
end;

// in: size in rdi, nothrow in rsi; out: rax
function NewNoThrow(Size: NativeUInt): Pointer; assembler; nostackframe;
  [public, alias: '_ZnwmRKSt9nothrow_t', alias: 'tc_new_nothrow'];
asm
  mov eax, fwNewNoThrow
  {$I LaneMM.C.Own.inc}
  cmp byte ptr [rip + Process.IsDirect], 0
  je NewNoThrowSlow
  {$I LaneMM.C.New.inc}
  jz NoThrowFailed
end;

function NewArrayNoThrow(Size: NativeUInt): Pointer; assembler; nostackframe;
  [public, alias: '_ZnamRKSt9nothrow_t', alias: 'tc_newarray_nothrow'];
asm
  mov eax, fwNewArrayNoThrow
  {$I LaneMM.C.Own.inc}
  cmp byte ptr [rip + Process.IsDirect], 0
  je NewArrayNoThrowSlow
  {$I LaneMM.C.New.inc}
  jz NoThrowFailed
end;

// in: size in rdi, alignment in rsi; out: rax
function NewAligned(Size, Alignment: NativeUInt): Pointer; assembler; nostackframe;
  [public, alias: '_ZnwmSt11align_val_t', alias: 'tc_new_aligned'];
asm
  mov eax, foAligned
  mov ecx, faNewAligned
  jmp NewOfFamily
end;

procedure NewArrayAlignedSlow; assembler; nostackframe;
asm
  mov eax, foAligned
  mov ecx, faNewArrayAligned
  jmp NewOfFamily
end;

function NewArrayAligned(Size, Alignment: NativeUInt): Pointer; assembler; nostackframe;
  [public, alias: '_ZnamSt11align_val_t', alias: 'tc_newarray_aligned'];
asm
  mov eax, fwNewArrayAligned
  {$I LaneMM.C.Own.inc}
  jmp NewArrayAlignedSlow
end;

procedure NewAlignedNoThrowSlow; assembler; nostackframe;
asm
  mov eax, foAlignedNoThrow
  mov ecx, faNewAligned
  jmp NewOfFamily
end;

procedure NewArrayAlignedNoThrowSlow; assembler; nostackframe;
asm
  mov eax, foAlignedNoThrow
  mov ecx, faNewArrayAligned
  jmp NewOfFamily
end;

// in: size in rdi, alignment in rsi, nothrow in rdx; out: rax
function NewAlignedNoThrow(Size, Alignment: NativeUInt): Pointer; assembler; nostackframe;
  [public, alias: '_ZnwmSt11align_val_tRKSt9nothrow_t', alias: 'tc_new_aligned_nothrow'];
asm
  mov eax, fwNewAlignedNoThrow
  {$I LaneMM.C.Own.inc}
  jmp NewAlignedNoThrowSlow
end;

function NewArrayAlignedNoThrow(Size, Alignment: NativeUInt): Pointer; assembler; nostackframe;
  [public, alias: '_ZnamSt11align_val_tRKSt9nothrow_t', alias: 'tc_newarray_aligned_nothrow'];
asm
  mov eax, fwNewArrayAlignedNoThrow
  {$I LaneMM.C.Own.inc}
  jmp NewArrayAlignedNoThrowSlow
end;

// ---------------------------------------------------------------------------- delete

// While no debug mode is on and the program replaces none, all are the same as free. The slow paths
// take the size, if there is one, in rsi and the family in edx.

procedure DeleteSizedSlow; assembler; nostackframe;
asm
  mov edx, faNew
  jmp FreeOfFamily
end;

procedure DeleteSlow; assembler; nostackframe;
asm
  xor esi, esi
  jmp DeleteSizedSlow
end;

procedure DeleteArraySizedSlow; assembler; nostackframe;
asm
  mov edx, faNewArray
  jmp FreeOfFamily
end;

procedure DeleteArraySlow; assembler; nostackframe;
asm
  xor esi, esi
  jmp DeleteArraySizedSlow
end;

procedure DeleteSizedAlignedSlow; assembler; nostackframe;
asm
  mov edx, faNewAligned
  jmp FreeOfFamily
end;

procedure DeleteAlignedSlow; assembler; nostackframe;
asm
  xor esi, esi
  jmp DeleteSizedAlignedSlow
end;

procedure DeleteArraySizedAlignedSlow; assembler; nostackframe;
asm
  mov edx, faNewArrayAligned
  jmp FreeOfFamily
end;

procedure DeleteArrayAlignedSlow; assembler; nostackframe;
asm
  xor esi, esi
  jmp DeleteArraySizedAlignedSlow
end;

// in: address in rdi
procedure Delete_(P: Pointer); assembler; nostackframe;
  [public, alias: '_ZdlPv', alias: 'tc_delete'];
asm
  {$I LaneMM.C.Offset.inc}
  jae DeleteSlow
  {$I LaneMM.C.Put.inc}
end;

procedure DeleteArray(P: Pointer); assembler; nostackframe;
  [public, alias: '_ZdaPv', alias: 'tc_deletearray'];
asm
  mov eax, fwDeleteArray
  {$I LaneMM.C.Own.inc}
  {$I LaneMM.C.Offset.inc}
  jae DeleteArraySlow
  {$I LaneMM.C.Put.inc}
end;

// in: address in rdi, size in rsi
procedure DeleteSized(P: Pointer; Size: NativeUInt); assembler; nostackframe;
  [public, alias: '_ZdlPvm', alias: 'tc_delete_sized'];
asm
  mov eax, fwDeleteSized
  {$I LaneMM.C.Own.inc}
  {$I LaneMM.C.Offset.inc}
  jae DeleteSizedSlow
  {$I LaneMM.C.Put.inc}
end;

procedure DeleteArraySized(P: Pointer; Size: NativeUInt); assembler; nostackframe;
  [public, alias: '_ZdaPvm', alias: 'tc_deletearray_sized'];
asm
  mov eax, fwDeleteArraySized
  {$I LaneMM.C.Own.inc}
  {$I LaneMM.C.Offset.inc}
  jae DeleteArraySizedSlow
  {$I LaneMM.C.Put.inc}
end;

// in: address in rdi, nothrow in rsi
procedure DeleteNoThrow(P, NoThrow: Pointer); assembler; nostackframe;
  [public, alias: '_ZdlPvRKSt9nothrow_t', alias: 'tc_delete_nothrow'];
asm
  mov eax, fwDeleteNoThrow
  {$I LaneMM.C.Own.inc}
  jmp Delete_
end;

procedure DeleteArrayNoThrow(P, NoThrow: Pointer); assembler; nostackframe;
  [public, alias: '_ZdaPvRKSt9nothrow_t', alias: 'tc_deletearray_nothrow'];
asm
  mov eax, fwDeleteArrayNoThrow
  {$I LaneMM.C.Own.inc}
  jmp DeleteArray
end;

// in: address in rdi, alignment in rsi
procedure DeleteAligned(P: Pointer; Alignment: NativeUInt); assembler; nostackframe;
  [public, alias: '_ZdlPvSt11align_val_t', alias: 'tc_delete_aligned'];
asm
  cmp byte ptr [rip + Process.IsDirect], 0
  je DeleteAlignedSlow
  jmp Free
end;

procedure DeleteArrayAligned(P: Pointer; Alignment: NativeUInt); assembler; nostackframe;
  [public, alias: '_ZdaPvSt11align_val_t', alias: 'tc_deletearray_aligned'];
asm
  mov eax, fwDeleteArrayAligned
  {$I LaneMM.C.Own.inc}
  cmp byte ptr [rip + Process.IsDirect], 0
  je DeleteArrayAlignedSlow
  jmp Free
end;

// in: address in rdi, alignment in rsi, nothrow in rdx
procedure DeleteAlignedNoThrow(P: Pointer; Alignment: NativeUInt; NoThrow: Pointer); assembler;
  nostackframe;
  [public, alias: '_ZdlPvSt11align_val_tRKSt9nothrow_t', alias: 'tc_delete_aligned_nothrow'];
asm
  mov eax, fwDeleteAlignedNoThrow
  {$I LaneMM.C.Own.inc}
  jmp DeleteAligned
end;

procedure DeleteArrayAlignedNoThrow(P: Pointer; Alignment: NativeUInt; NoThrow: Pointer); assembler;
  nostackframe;
  [public, alias: '_ZdaPvSt11align_val_tRKSt9nothrow_t', alias: 'tc_deletearray_aligned_nothrow'];
asm
  mov eax, fwDeleteArrayAlignedNoThrow
  {$I LaneMM.C.Own.inc}
  jmp DeleteArrayAligned
end;

// in: address in rdi, size in rsi, alignment in rdx
procedure DeleteSizedAligned(P: Pointer; Size, Alignment: NativeUInt); assembler; nostackframe;
  [public, alias: '_ZdlPvmSt11align_val_t', alias: 'tc_delete_sized_aligned'];
asm
  mov eax, fwDeleteSizedAligned
  {$I LaneMM.C.Own.inc}
  cmp byte ptr [rip + Process.IsDirect], 0
  je DeleteSizedAlignedSlow
  jmp Free
end;

procedure DeleteArraySizedAligned(P: Pointer; Size, Alignment: NativeUInt); assembler;
  nostackframe; [public, alias: '_ZdaPvmSt11align_val_t', alias: 'tc_deletearray_sized_aligned'];
asm
  mov eax, fwDeleteArraySizedAligned
  {$I LaneMM.C.Own.inc}
  cmp byte ptr [rip + Process.IsDirect], 0
  je DeleteArraySizedAlignedSlow
  jmp Free
end;

// ---------------------------------------------------------------------------- forwards

// The operators that others call, as the dynamic linker finds them.
procedure ProcessNew; external name '_Znwm';
procedure ProcessNewArray; external name '_Znam';
procedure ProcessNewAligned; external name '_ZnwmSt11align_val_t';
procedure ProcessNewArrayAligned; external name '_ZnamSt11align_val_t';
procedure ProcessDelete; external name '_ZdlPv';
procedure ProcessDeleteArray; external name '_ZdaPv';
procedure ProcessDeleteAligned; external name '_ZdlPvSt11align_val_t';
procedure ProcessDeleteArrayAligned; external name '_ZdaPvSt11align_val_t';

function AllAreOwn: Boolean;
begin
  Result := (@ProcessNew = @New_) and (@ProcessNewArray = @NewArray)
    and (@ProcessNewAligned = @NewAligned) and (@ProcessNewArrayAligned = @NewArrayAligned)
    and (@ProcessDelete = @Delete_) and (@ProcessDeleteArray = @DeleteArray)
    and (@ProcessDeleteAligned = @DeleteAligned)
    and (@ProcessDeleteArrayAligned = @DeleteArrayAligned);
end;

const
  // Where the linker finds no operators of the C++ library, or for the first call of all.
  SlowHalves: array[TForward] of Pointer = (@NewArraySlow, @NewNoThrowSlow, @NewArrayNoThrowSlow,
    @NewArrayAlignedSlow, @NewAlignedNoThrowSlow, @NewArrayAlignedNoThrowSlow, @DeleteArraySlow,
    @DeleteSizedSlow, @DeleteArraySizedSlow, @DeleteSlow, @DeleteArraySlow,
    @DeleteArrayAlignedSlow, @DeleteAlignedSlow, @DeleteArrayAlignedSlow, @DeleteSizedAlignedSlow,
    @DeleteArraySizedAlignedSlow);

procedure ForwardsStart;
var
  Operator_: TForward;
  Target: Pointer;
  AreOwn: Boolean;
begin
  AreOwn := AllAreOwn;
  for Operator_ := Low(TForward) to High(TForward) do
  begin
    Target := nil;
    if not AreOwn then
      Target := ModulesFind(ForwardNames[Operator_]);
    if Target = nil then
      Target := SlowHalves[Operator_];
    Forwards.Targets[Operator_] := Target;
  end;
  IsOwn := AreOwn;
  // Release: the targets before it.
  StoreRelease(Forwards.IsKnown, 1);
end;

function ForwardTarget(Operator_: TForward): Pointer;
begin
  if LoadAcquire(Forwards.IsKnown) = 0 then
    ForwardsStart;
  Result := Forwards.Targets[Operator_];
end;

end.
