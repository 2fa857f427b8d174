/// Run with 300 MB of address space: the program works, gets most of it, and what is refused is
/// an error that it survives.
program LimitedMemory;

{$mode delphi}

uses
  LaneMM, cthreads, SysUtils, Promises, Exchange;

const
  Megabyte = 1 shl 20;

type
  PLink = ^TLink;
  TLink = record
    Next: PLink;
  end;

procedure FreeAll(First: PLink);
var
  Next: PLink;
begin
  while First <> nil do
  begin
    Next := First^.Next;
    FreeMem(First);
    First := Next;
  end;
end;

// Allocates blocks until memory runs out; returns the megabytes allocated. When not even a small
// block is left, no exception can be raised: then GetMem has to return nil.
function GetAll(Size: NativeUInt; HasExceptions: Boolean): NativeUInt;
var
  First, Block: PLink;
begin
  Result := 0;
  First := nil;
  ReturnNilIfGrowHeapFails := not HasExceptions;
  try
    repeat
      GetMem(Block, Size);
      if Block = nil then
        Break;
      Block^.Next := First;
      First := Block;
      Inc(Result, Size);
    until Result > 1024 * Megabyte;
    Expect(not HasExceptions, 'an exception tells that there is no memory');
  except
    on EOutOfMemory do
      Expect(HasExceptions, 'nil tells that there is no memory');
  end;
  ReturnNilIfGrowHeapFails := False;
  FreeAll(First);
  Result := Result div Megabyte;
end;

procedure GetAllOf(Size: NativeUInt; HasExceptions: Boolean);
var
  Got: NativeUInt;
begin
  Got := GetAll(Size, HasExceptions);
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

begin
  ExchangeInThreads(8);
  Grow;
  GetAllOf(1000, False);
  GetAllOf(20000, True);
  GetAllOf(Megabyte, True);
  ExchangeParcels(0, 5000);
  ExchangeEmpty;
  GetAllOf(100, False);
  GetAllOf(Megabyte, True);
  Finish;
end.
