/// What src/ uses of the run-time library, supplied without it.
//
// Owns:       the names that the compiler and the units of src/ refer to. One that is missing here
//             is an undefined symbol when the library is linked, never a surprise later.
// Invariants: nothing here allocates.
// Callers:    src/, any thread, also before libc has started.
// Errors:     no memory: errno becomes ENOMEM, and the caller returns nil. Corrupt memory or a bad
//             pointer: one line on the standard error output, then SIGABRT, as glibc does.
// Source:     FPC 3.2.2: rtl/inc/systemh.inc, rtl/x86_64/x86_64.inc.
unit LaneMM.C.Rtl;

{$mode objfpc} // not LaneMM.inc: its mode has no `public` variables
{$asmmode intel}

interface

implementation

uses
  LaneMM.Os, LaneMM.C.Errno;

const
  OutOfMemory = 203;

var
  // A failing allocation calls HandleError and returns nil after that.
  ReturnsNil: Boolean = False; public name 'U_$SYSTEM_$$_RETURNNILIFGROWHEAPFAILS';
  // No thread of ours in programs that nobody here wrote.
  IsInLibrary: Boolean = True; public name 'operatingsystem_islibrary';

procedure LibcAbort; cdecl; external name 'abort';
function LibcSet(P: Pointer; Value: LongInt; Count: NativeUInt): Pointer; cdecl;
  external name 'memset';
function LibcMove(Target, Source: Pointer; Count: NativeUInt): Pointer; cdecl;
  external name 'memmove';

// ---------------------------------------------------------------------------- errors

procedure HandleError(Code: LongInt); [public, alias: 'FPC_HANDLEERROR'];
const
  Text: ShortString = 'LaneMM: freed or resized what is no block, or is free already'#10;
begin
  if Code = OutOfMemory then
  begin
    ErrnoSet(ErrorNoMemory);
    Exit;
  end;
  OsWriteError(@Text[1], Length(Text));
  LibcAbort;
end;

// LaneMM.Contention has written why.
procedure RunError(Code: Word); [public, alias: 'SYSTEM_$$_RUNERROR$WORD'];
begin
  LibcAbort;
end;

// ---------------------------------------------------------------------------- memory

procedure FillMemory(P: Pointer; Count: Int64; Value: Byte);
  [public, alias: 'SYSTEM_$$_FILLCHAR$formal$INT64$BYTE'];
begin
  LibcSet(P, Value, Count);
end;

procedure MoveMemory(Source, Target: Pointer; Count: Int64);
  [public, alias: 'SYSTEM_$$_MOVE$formal$formal$INT64'];
begin
  LibcMove(Target, Source, Count);
end;

// ---------------------------------------------------------------------------- atomic operations

// in: address of Target in rdi, Value in rsi, Expected in rdx; out: rax, what Target held
function CompareExchange(var Target: Int64; Value, Expected: Int64): Int64; assembler;
  nostackframe; [public, alias: 'SYSTEM_$$_INTERLOCKEDCOMPAREEXCHANGE64$INT64$INT64$INT64$$INT64'];
asm
  mov rax, rdx
  lock cmpxchg [rdi], rsi
end;

// in: address of Target in rdi, Value in rsi; out: rax, what Target held
function Exchange(var Target: Int64; Value: Int64): Int64; assembler; nostackframe;
  [public, alias: 'SYSTEM_$$_INTERLOCKEDEXCHANGE64$INT64$INT64$$INT64'];
asm
  mov rax, rsi
  xchg [rdi], rax
end;

// in: address of Target in rdi, Value in rsi; out: rax, what Target held
function ExchangeAdd(var Target: Int64; Value: Int64): Int64; assembler; nostackframe;
  [public, alias: 'SYSTEM_$$_INTERLOCKEDEXCHANGEADD64$INT64$INT64$$INT64'];
asm
  mov rax, rsi
  lock xadd [rdi], rax
end;

end.
