/// The part of the run-time library that src/ uses, implemented without it.
//
// Owns:       the symbols that the compiler and the units of src/ refer to. A missing one is an
//             undefined symbol when the library is linked.
// Invariants: nothing here allocates.
// Callers:    src/, any thread, also before libc has started.
// Errors:     no memory: errno becomes ENOMEM, and the caller returns nil. Corrupt memory or an
//             invalid pointer: one line to stderr, or the report of debug mode, then SIGABRT, as in
//             glibc.
// Source:     FPC 3.2.2: rtl/inc/systemh.inc, compproc.inc, rtl/x86_64/x86_64.inc; man-pages 2,
//             rt_sigaction.
unit LaneMM.C.Rtl;

{$mode objfpc} // not LaneMM.inc: its mode has no `public` variables
{$asmmode intel}

interface

implementation

uses
  LaneMM.Os, LaneMM.Debug, LaneMM.C.Errno, LaneMM.C.Foreign;

const
  OutOfMemory = 203;

var
  // A failed allocation calls HandleError, then returns nil.
  ReturnsNil: Boolean = False; public name 'U_$SYSTEM_$$_RETURNNILIFGROWHEAPFAILS';
  // True: the library starts no thread in the program that loads it.
  IsInLibrary: Boolean = True; public name 'operatingsystem_islibrary';
  // Those of the program are not asked for, see OsVariables.
  ArgumentCount: LongInt = 0; public name 'U_$SYSTEM_$$_ARGC';
  Arguments: Pointer = nil; public name 'U_$SYSTEM_$$_ARGV';
  Variables: Pointer = nil; public name 'U_$SYSTEM_$$_ENVP';

  // Any program may have threads.
  IsThreaded: LongBool = True; public name 'TC_$SYSTEM_$$_ISMULTITHREAD';

  // The exit code, as LaneMM.C.Start sets it at the end.
  EndResult: LongInt = 0; public name 'operatingsystem_result';
  // The variable of a thread that LaneMM.Roots begins at; not used: the library has roots of its own.
  InOutResult: UInt64 = 0; public name 'U_$SYSTEM_$$_INOUTRES';
  Relocate: Pointer = nil; public name 'FPC_THREADVAR_RELOCATE';

procedure LibcAbort; cdecl; external name 'abort';
procedure LibcExit(Code: LongInt); cdecl; external name 'exit';
function LibcSet(P: Pointer; Value: LongInt; Count: NativeUInt): Pointer; cdecl;
  external name 'memset';
function LibcMove(Target, Source: Pointer; Count: NativeUInt): Pointer; cdecl;
  external name 'memmove';
function LibcCompare(First, Second: Pointer; Count: NativeUInt): LongInt; cdecl;
  external name 'memcmp';

// ---------------------------------------------------------------------------- errors

procedure HandleError(Code: LongInt); [public, alias: 'FPC_HANDLEERROR'];
const
  Text: ShortString = 'LaneMM: invalid free or resize: not a heap block, or already freed'#10;
begin
  if Code = OutOfMemory then
  begin
    ErrnoSet(ErrorNoMemory);
    Exit;
  end;
  if not DebugIsOn and not ForeignIsSaid then // else it was reported
    OsWriteError(@Text[1], Length(Text));
  LibcAbort;
end;

// There are no exceptions and no finalizations here.
function RaiseList: Pointer; [public, alias: 'SYSTEM_$$_RAISELIST$$PEXCEPTOBJECT'];
begin
  Result := nil;
end;

// Stores the registers that a routine leaves as they were. No routine jumps back.
function SetJump(out Registers: jmp_buf): LongInt; assembler; nostackframe;
  [public, alias: 'FPC_SETJMP'];
asm
  mov [rdi], rbx
  mov [rdi + 8], rbp
  mov [rdi + 16], r12
  mov [rdi + 24], r13
  mov [rdi + 32], r14
  mov [rdi + 40], r15
  lea rdx, [rsp + 8]
  mov [rdi + 48], rdx
  mov rdx, [rsp]
  mov [rdi + 56], rdx
  xor eax, eax
end;

procedure FinalizeUnits; [public, alias: 'FPC_FINALIZEUNITS'];
begin
end;

// The path of the program: the system is asked for it.
function Argument(Index: LongInt): ShortString;
  [public, alias: 'SYSTEM_$$_PARAMSTR$LONGINT$$SHORTSTRING'];
begin
  Result := '';
end;

// An event rule (`halt=N`) ends the program.
procedure Halt(Code: LongInt); [public, alias: 'SYSTEM_$$_HALT$LONGINT'];
begin
  LibcExit(Code);
end;

// LaneMM.Errors has printed the reason.
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

function CompareMemory(First, Second: Pointer; Count: Int64): Int64;
  [public, alias: 'SYSTEM_$$_COMPAREBYTE$formal$formal$INT64$$INT64'];
begin
  Result := LibcCompare(First, Second, Count);
end;

// Returns the index of Value, or -1. Count -1: no bound, Value is present.
function FindByte(P: PByte; Count: Int64; Value: Byte): Int64;
  [public, alias: 'SYSTEM_$$_INDEXBYTE$formal$INT64$BYTE$$INT64'];
begin
  Result := 0;
  while (Result <> Count) and (P[Result] <> Value) do
    Inc(Result);
  if Result = Count then
    Result := -1;
end;

// ---------------------------------------------------------------------------- short texts

function ToLower(Sign: AnsiChar): AnsiChar;
  [public, alias: 'SYSTEM_$$_LOWERCASE$CHAR$$CHAR'];
begin
  if Sign in ['A'..'Z'] then
    Inc(Byte(Sign), 32);
  Result := Sign;
end;

function ToUpper(Sign: AnsiChar): AnsiChar; [public, alias: 'SYSTEM_$$_UPCASE$CHAR$$CHAR'];
begin
  if Sign in ['a'..'z'] then
    Dec(Byte(Sign), 32);
  Result := Sign;
end;

// High is the capacity of Target. First may be Target itself, Second may not.
procedure Join(Target: PByte; High: Int64; First, Second: PByte);
  [public, alias: 'fpc_shortstr_concat'];
var
  Length, Added: Int64;
begin
  Length := First^;
  Added := Second^;
  if Length + Added > High then
    Added := High - Length;
  LibcMove(Target + 1, First + 1, Length);
  LibcMove(Target + 1 + Length, Second + 1, Added);
  Target^ := Length + Added;
end;

// Returns 0 if the texts are equal.
function Compare(First, Second: PByte): Int64; [public, alias: 'fpc_shortstr_compare_equal'];
begin
  Result := LibcCompare(First, Second, First^ + 1);
end;

// Width, the minimum length, is always -1 here.
procedure NumberToText(Value: QWord; Width: Int64; Target: PByte; High: Int64);
  [public, alias: 'fpc_shortstr_uint'];
const
  MostDigits = 20;
var
  Digits: array[1..MostDigits] of Byte;
  First: LongInt;
begin
  First := MostDigits + 1;
  repeat
    Dec(First);
    Digits[First] := Ord('0') + Value mod 10;
    Value := Value div 10;
  until Value = 0;
  Target^ := MostDigits + 1 - First;
  LibcMove(Target + 1, @Digits[First], Target^);
end;

// ---------------------------------------------------------------------------- numbers

// in: the exponent, ten bytes, above the return address; out: e to that power, in st(0)
procedure Exponential; assembler; nostackframe; [public, alias: 'fpc_exp_real'];
asm
  fld tbyte ptr [rsp + 8]
  fldl2e
  fmulp st(1), st
  fld st(0)
  frndint
  fsub st(1), st
  fxch st(1)
  f2xm1
  fld1
  faddp st(1), st
  fscale
  fstp st(1)
end;

// ---------------------------------------------------------------------------- signals

// The return address of a signal handler; debuggers recognise it by these bytes.
procedure SignalReturn; assembler; nostackframe;
asm
  mov rax, 15
  syscall
end;

// The system call rt_sigaction, with the return address of the handler added.
// in: signal in rdi, new action in rsi, old one in rdx, which may be nil; out: rax
function SignalAction: LongInt; assembler; nostackframe; [public, alias: 'FPC_SYSC_SIGACTION'];
asm
  test rsi, rsi
  jz @Call
  or dword ptr [rsi + 8], $4000000
  lea rax, [rip + SignalReturn]
  mov [rsi + 16], rax
@Call:
  mov r10d, 8
  mov eax, 13
  syscall
end;

// ---------------------------------------------------------------------------- atomic operations

// in: address of Target in rdi, Value in rsi, Expected in rdx; out: rax, the old Target
function CompareExchange(var Target: Int64; Value, Expected: Int64): Int64; assembler;
  nostackframe; [public, alias: 'SYSTEM_$$_INTERLOCKEDCOMPAREEXCHANGE64$INT64$INT64$INT64$$INT64'];
asm
  mov rax, rdx
  lock cmpxchg [rdi], rsi
end;

// in: address of Target in rdi, Value in rsi; out: rax, the old Target
function Exchange(var Target: Int64; Value: Int64): Int64; assembler; nostackframe;
  [public, alias: 'SYSTEM_$$_INTERLOCKEDEXCHANGE64$INT64$INT64$$INT64'];
asm
  mov rax, rsi
  xchg [rdi], rax
end;

// in: address of Target in rdi, Value in rsi; out: rax, the old Target
function ExchangeAdd(var Target: Int64; Value: Int64): Int64; assembler; nostackframe;
  [public, alias: 'SYSTEM_$$_INTERLOCKEDEXCHANGEADD64$INT64$INT64$$INT64'];
asm
  mov rax, rsi
  lock xadd [rdi], rax
end;

end.
