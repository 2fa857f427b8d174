/// Threads that allocate, resize, fill and free blocks of many sizes until they are stopped.
unit Churning;

{$mode delphi}{$H+}

interface

/// Starts Count threads; returns when each has used the heap.
procedure ChurnStart(Count: Integer);
/// Lets the threads make about so many allocations and frees in all, until the next call; then they
/// wait. Without a call there is no limit. However long the caller is interrupted, they free no more.
procedure ChurnLimit(Operations: Integer);
/// Ends them.
procedure ChurnEnd;

implementation

uses
  SysUtils;

const
  BlockCount = 64;
  // One block in so many is a hundred times as large as the others.
  LargeShare = 256;

var
  Threads: array of TThreadID;
  Started: Integer;
  Left: Integer = High(Integer);
  IsLimited, IsEnding: Boolean;

procedure WaitForLeft;
begin
  while (Left <= 0) and not IsEnding do
    Sleep(1);
  InterlockedDecrement(Left);
end;

function Churn(Seed: Pointer): PtrInt;
var
  Blocks: array[0..BlockCount - 1] of PByte;
  Random: Cardinal;
  Index, Bytes: Integer;
begin
  FillChar(Blocks, SizeOf(Blocks), 0);
  Random := Cardinal(PtrUInt(Seed)) * 2654435761 + 1;
  repeat
    if IsLimited and (Seed = nil) then // ChurnStart waits for the first one
      WaitForLeft;
    Random := Random * 1664525 + 1013904223;
    Index := Random shr 26 mod BlockCount;
    Bytes := Random shr 8 and 1023;
    if Random shr 18 mod LargeShare = 0 then
      Bytes := Bytes * 100;
    if Random shr 22 and 3 = 0 then
      ReallocMem(Blocks[Index], Bytes)
    else
    begin
      FreeMem(Blocks[Index]);
      Blocks[Index] := AllocMem(Bytes);
    end;
    if Blocks[Index] <> nil then
      FillChar(Blocks[Index]^, Bytes, Index);
    if Seed <> nil then
      InterlockedIncrement(Started);
    Seed := nil;
  until IsEnding;
  for Index := 0 to High(Blocks) do
    FreeMem(Blocks[Index]);
  Result := 0;
end;

procedure ChurnStart(Count: Integer);
var
  Index: Integer;
begin
  SetLength(Threads, Count);
  for Index := 0 to Count - 1 do
    Threads[Index] := BeginThread(Churn, Pointer(PtrInt(Index + 1)));
  while Started < Count do
    ThreadSwitch;
end;

procedure ChurnLimit(Operations: Integer);
begin
  InterlockedExchange(Left, Operations);
  IsLimited := True;
end;

procedure ChurnEnd;
var
  Index: Integer;
begin
  IsEnding := True;
  for Index := 0 to High(Threads) do
    WaitForThreadTerminate(Threads[Index], 0);
end;

end.
