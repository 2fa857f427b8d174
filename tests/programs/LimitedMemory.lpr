/// Run with 300 MB of address space: the program works, gets most of it, and what is refused is
/// an error that it survives.
program LimitedMemory;

{$mode delphi}

uses
  LaneMM, cthreads, SysUtils, Promises, Exchange;

const
  Megabyte = 1 shl 20;

// Gets blocks until there is no more; returns how many megabytes that were.
function GetAll(Size: NativeUInt): NativeUInt;
var
  First, Block: ^Pointer;
begin
  Result := 0;
  First := nil;
  try
    repeat
      GetMem(Block, Size);
      Block^ := First;
      First := Pointer(Block);
      Inc(Result, Size);
    until Result > 1024 * Megabyte;
  except
    on EOutOfMemory do;
  end;
  while First <> nil do
  begin
    Block := First^;
    FreeMem(First);
    First := Pointer(Block);
  end;
  Result := Result div Megabyte;
end;

procedure GetAllOf(Size: NativeUInt);
var
  Got: NativeUInt;
begin
  Got := GetAll(Size);
  Expect((Got >= 150) and (Got < 300), 'half of the address space or more can be used');
  if BrokenCount > 0 then
    WriteLn(Got, ' MB in blocks of ', Size, ' bytes');
end;

procedure Grow;
var
  P: Pointer;
  Size: NativeUInt;
begin
  P := nil;
  Size := Megabyte;
  while Size <= 40 * Megabyte do
  begin
    ReallocMem(P, Size);
    Size := Size + Size div 3;
  end;
  FreeMem(P);
end;

function Work(Seed: Pointer): PtrInt;
begin
  ExchangeParcels(Cardinal(PtrUInt(Seed)), 5000);
  Result := 0;
end;

procedure RunThreads;
var
  Threads: array[1..8] of TThreadID;
  Index: PtrUInt;
begin
  for Index := 1 to High(Threads) do
    Threads[Index] := BeginThread(Work, Pointer(Index));
  for Index := 1 to High(Threads) do
  begin
    Expect(Threads[Index] <> TThreadID(0), 'a thread starts');
    WaitForThreadTerminate(Threads[Index], 0);
  end;
  ExchangeEmpty;
end;

begin
  RunThreads;
  Grow;
  GetAllOf(1000);
  GetAllOf(20000);
  GetAllOf(Megabyte);
  Work(nil);
  ExchangeEmpty;
  GetAllOf(200);
  Finish;
end.
