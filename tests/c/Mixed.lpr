/// Pascal on LaneMM and C on liblanemm in one program: blocks cross in both directions.
program Mixed;

{$mode delphi}
{$pointermath on}
{$linklib lanemm}
{$linklib c}
{$link mixed.o}

uses
  LaneMM, cthreads, Classes;

const
  ThreadCount = 6;
  Rounds = 20000;
  Places = 512;

function CGet(Size: NativeUInt; Mark: UInt64): Pointer; cdecl; external name 'c_get';
function CCheck(P: Pointer; Size: NativeUInt; Mark: UInt64): LongInt; cdecl;
  external name 'c_check';
function CResize(P: Pointer; Size: NativeUInt): Pointer; cdecl; external name 'c_resize';
function CUsableSize(P: Pointer): NativeUInt; cdecl; external name 'c_usable_size';
procedure CFree(P: Pointer); cdecl; external name 'c_free';

type
  TRunner = class(TThread)
  public
    Seed: Cardinal;
  protected
    procedure Execute; override;
  end;

var
  // Blocks of either half; the half that takes one out frees it by its own routine.
  Shared: array[0..Places - 1] of Pointer;
  PassedCount, FailedCount: Integer;
  IsKept: Boolean = True;

procedure Promise(const Text: string; IsTrue: Boolean);
begin
  if IsTrue then
    Inc(PassedCount)
  else
  begin
    Inc(FailedCount);
    WriteLn('FAILED: ', Text);
  end;
end;

procedure BlockEnd(P: Pointer; ByPascal: Boolean);
var
  Size: NativeUInt;
begin
  if P = nil then
    Exit;
  Size := PNativeUInt(P)^;
  if PByte(P)[Size - 1] <> Byte(Size) then
    IsKept := False;
  if ByPascal then
    FreeMem(P)
  else
    CFree(P);
end;

function BlockNew(Size: NativeUInt; ByPascal: Boolean): Pointer;
begin
  if ByPascal then
    GetMem(Result, Size)
  else
    Result := CGet(Size, 0);
  PNativeUInt(Result)^ := Size;
  PByte(Result)[Size - 1] := Byte(Size);
end;

procedure TRunner.Execute;
var
  Round: Integer;
begin
  for Round := 1 to Rounds do
  begin
    Seed := Seed * 1664525 + 1013904223;
    BlockEnd(InterlockedExchange(Shared[Seed shr 8 mod Places],
      BlockNew(16 + Seed shr 12 mod 3000, Odd(Seed shr 20))), Odd(Seed shr 21));
  end;
end;

procedure CrossInThreads;
var
  Runners: array[0..ThreadCount - 1] of TRunner;
  Index: Integer;
begin
  for Index := 0 to ThreadCount - 1 do
  begin
    Runners[Index] := TRunner.Create(True);
    Runners[Index].Seed := Index + 1;
    Runners[Index].Start;
  end;
  for Index := 0 to ThreadCount - 1 do
  begin
    Runners[Index].WaitFor;
    Runners[Index].Free;
  end;
  for Index := 0 to Places - 1 do
    BlockEnd(Shared[Index], Odd(Index));
  Promise('blocks cross between the halves in many threads', IsKept);
end;

procedure PascalTakesBlocksOfC;
var
  Size: NativeUInt;
  P: Pointer;
  IsRight: Boolean;
begin
  IsRight := True;
  Size := 10;
  while Size < 3000000 do
  begin
    P := CGet(Size, Size);
    IsRight := IsRight and (MemSize(P) = CUsableSize(P));
    ReallocMem(P, Size * 2);
    IsRight := IsRight and (CCheck(P, Size, Size) <> 0);
    FreeMem(P);
    FreeMem(CGet(Size, Size));
    Size := Size * 3;
  end;
  Promise('Pascal measures, resizes and frees blocks of C', IsRight);
end;

procedure CTakesBlocksOfPascal;
var
  Size: NativeUInt;
  P: Pointer;
  IsRight: Boolean;
begin
  IsRight := True;
  Size := 10;
  while Size < 3000000 do
  begin
    P := CGet(Size, Size);
    ReallocMem(P, Size + 1); // now, or soon, a block of Pascal
    IsRight := IsRight and (CUsableSize(P) = MemSize(P));
    P := CResize(P, Size * 4);
    IsRight := IsRight and (CCheck(P, Size, Size) <> 0);
    CFree(P);
    GetMem(P, Size);
    CFree(P);
    Size := Size * 3;
  end;
  Promise('C measures, resizes and frees blocks of Pascal', IsRight);
end;

procedure BothTakeBlocksOfNoBytes;
var
  P: Pointer;
  IsRight: Boolean;
begin
  GetMem(P, 0);
  IsRight := CUsableSize(P) = MemSize(P);
  P := CResize(P, 100);
  IsRight := IsRight and (P <> nil);
  CFree(P);
  GetMem(P, 0);
  CFree(P);
  P := CGet(0, 0);
  IsRight := IsRight and (CUsableSize(P) = MemSize(P));
  ReallocMem(P, 100);
  IsRight := IsRight and (P <> nil);
  FreeMem(P);
  FreeMem(CGet(0, 0));
  Promise('both measure, resize and free blocks of no bytes', IsRight);
end;

begin
  PascalTakesBlocksOfC;
  CTakesBlocksOfPascal;
  BothTakeBlocksOfNoBytes;
  CrossInThreads;
  WriteLn(PassedCount, ' passed, ', FailedCount, ' failed');
  ExitCode := Ord(FailedCount > 0);
end.
