/// A Pascal program that runs with LANEMM=calls=0 in a sandbox, which ends the process at any system call
/// but those that glibc's malloc makes, from a moment on when all threads exist. Exit code 77 where no
/// sandbox can be had.
program Confined;

{$mode delphi}{$pointermath on}

uses
  LaneMM, cthreads, SysUtils, Syscall;

type
  // An instruction of a filter of system calls.
  TInstruction = packed record
    Code: Word;
    OnTrue, OnFalse: Byte;
    Operand: Cardinal;
  end;
  TFilter = record
    Length: Word;
    Code: ^TInstruction;
  end;

const
  // brk, mmap, munmap, mremap, mprotect, madvise, futex, pause, exit_group; clock_gettime takes none.
  Allowed: array[0..8] of Cardinal = (12, 9, 11, 25, 10, 28, 202, 34, 231);
  LoadNumber = $20;
  JumpIfEqual = $15;
  Return = 6;
  Allow = $7FFF0000;
  Kill = $80000000;
  NrPause = 34;
  NrControl = 157;
  NrFilter = 317;
  SetNoNewRights = 38;
  SetFilter = 1;
  ForAllThreads = 1;
  ThreadCount = 2;
  PlaceCount = 64;
  Megabyte = 1 shl 20;

var
  Begun: Cardinal = 0;
  Ended: Cardinal = 0;
  MayWork: Boolean;
  Shared: array[0..PlaceCount - 1] of Pointer;

// The C library's, which takes no system call.
function LibcClock(Clock: Integer; Time: Pointer): Integer; cdecl; external name 'clock_gettime';

function NowMs: Int64;
const
  Monotonic = 1;
var
  Time: array[0..1] of Int64;
begin
  LibcClock(Monotonic, @Time);
  Result := Time[0] * 1000 + Time[1] div 1000000;
end;

function EnterSandbox: Boolean;
var
  Code: array[0..31] of TInstruction;
  Filter: TFilter;

  procedure Add(Operation: Word; Operand: Cardinal; OnFalse: Byte = 0);
  begin
    Code[Filter.Length].Code := Operation;
    Code[Filter.Length].Operand := Operand;
    Code[Filter.Length].OnTrue := 0;
    Code[Filter.Length].OnFalse := OnFalse;
    Inc(Filter.Length);
  end;

var
  Number: Cardinal;
begin
  Filter.Length := 0;
  Add(LoadNumber, 0);
  for Number in Allowed do
  begin
    Add(JumpIfEqual, Number, 1);
    Add(Return, Allow);
  end;
  Add(Return, Kill);
  Filter.Code := @Code;
  Result := (Do_SysCall(NrControl, SetNoNewRights, 1, 0, 0, 0) = 0)
    and (Do_SysCall(NrFilter, SetFilter, ForAllThreads, TSysParam(@Filter)) = 0);
end;

// Blocks of all sizes, some of which other threads free, for so long that memory goes back.
procedure Exchange(Seed: Cardinal);
var
  Own: array[0..PlaceCount - 1] of Pointer;
  Last: Int64;
  Round, Size, Place: Cardinal;
begin
  FillChar(Own, SizeOf(Own), 0);
  Last := NowMs + 1500;
  Round := 0;
  repeat
    Inc(Round);
    Seed := Seed * 1103515245 + 12345;
    Place := Seed shr 8 mod PlaceCount;
    Size := Seed shr 16 mod 5000 + 1;
    if Round mod 16 = 0 then
      Size := Size * 100;
    if Odd(Round) then
      ReallocMem(Own[Place], Size)
    else
    begin
      FreeMem(InterlockedExchange(Shared[Place], Own[Place]));
      Own[Place] := AllocMem(Size);
    end;
    FillChar(Own[Place]^, Size, 1);
  until NowMs >= Last;
end;

function Work(Argument: Pointer): PtrInt;
begin
  InterlockedIncrement(Begun);
  while not MayWork do
    ReadWriteBarrier;
  Exchange(PtrUInt(Argument));
  InterlockedIncrement(Ended);
  Result := Do_SysCall(NrPause); // the end of a thread makes other calls
end;

procedure UseLargeBlocks;
var
  Block: PByte;
  Round: Cardinal;
begin
  for Round := 1 to 8 do
  begin
    GetMem(Block, 5 * Megabyte);
    FillChar(Block^, 5 * Megabyte, 1);
    ReallocMem(Block, 60 * Megabyte);
    FillChar(Block^, 60 * Megabyte, 1);
    FreeMem(Block);
    FreeMem(AllocMem(40 * Megabyte));
  end;
  ReturnNilIfGrowHeapFails := True;
  GetMem(Block, PtrUInt(1) shl 46);
  if Block <> nil then
    RunError(1);
end;

var
  Index: PtrUInt;
begin
  for Index := 1 to ThreadCount do
    BeginThread(Work, Pointer(Index));
  while Begun < ThreadCount do
    Sleep(1);
  if not EnterSandbox then
    Halt(77);
  UseLargeBlocks;
  MayWork := True;
  Exchange(0);
  while Ended < ThreadCount do
    ReadWriteBarrier;
  Do_SysCall(231, 0); // the finalization of units makes other calls
end.
