/// Run with 200 MB of writable memory (RLIMIT_DATA): when every second block is freed, larger ones fit
/// in their place, as the system no longer charges for what is free. What reports read meanwhile can
/// still be read, and threads exchange blocks as before.
program LimitedData;

{$mode delphi}{$pointermath on}

uses
  LaneMM, LaneMM.Purge, cthreads, BaseUnix, SysUtils, Promises, Exchange;

const
  Megabyte = 1 shl 20;
  LimitBytes = 200 * Megabyte;

var
  Blocks: array of PByte;

procedure SetLimit;
const
  LimitOfData = 2;
var
  Limit: TRLimit;
begin
  Limit.rlim_cur := LimitBytes;
  Limit.rlim_max := LimitBytes;
  Expect(FpSetRLimit(LimitOfData, @Limit) = 0, 'a limit can be set');
end;

function TryGet(Size: NativeUInt): PByte;
begin
  ReturnNilIfGrowHeapFails := True;
  GetMem(Result, Size);
  ReturnNilIfGrowHeapFails := False;
  if Result <> nil then
    Fill(Result, Size, Size);
end;

// Takes blocks until one is refused.
procedure TakeAll(Size: NativeUInt);
var
  Count: Integer;
  P: PByte;
begin
  SetLength(Blocks, LimitBytes div Size);
  Count := 0;
  P := TryGet(Size);
  while (P <> nil) and (Count < Length(Blocks)) do
  begin
    Blocks[Count] := P;
    Inc(Count);
    P := TryGet(Size);
  end;
  Expect(P = nil, 'the system refuses at the limit');
  if Count * Size <= LimitBytes div 2 then
    WriteLn(Count, ' blocks of ', Size, ' bytes');
  Expect(Count * Size > LimitBytes div 2, 'half of the limit or more can be used');
  SetLength(Blocks, Count);
end;

procedure FreeEverySecond;
var
  Index: Integer;
begin
  Index := 0;
  while Index < Length(Blocks) do
  begin
    FreeMem(Blocks[Index]);
    Blocks[Index] := nil;
    Inc(Index, 2);
  end;
end;

// Takes blocks half as large again in three quarters of what was freed.
procedure TakeLarger(Size: NativeUInt);
var
  Larger: array of PByte;
  Index, Refused: Integer;
begin
  SetLength(Larger, Length(Blocks) div 4);
  Refused := 0;
  for Index := 0 to High(Larger) do
  begin
    Larger[Index] := TryGet(Size + Size div 2);
    Inc(Refused, Ord(Larger[Index] = nil));
  end;
  if Refused > 0 then
    WriteLn(Refused, ' of ', Length(Larger), ' refused');
  Expect(Refused = 0, 'what was freed is there for larger blocks');
  for Index := 0 to High(Larger) do
  begin
    Expect(IsFilled(Larger[Index], Size, Size + Size div 2), 'a block keeps its contents');
    FreeMem(Larger[Index]);
  end;
end;

procedure FreeRest(Size: NativeUInt);
var
  Index: Integer;
begin
  for Index := 0 to High(Blocks) do
    if Blocks[Index] <> nil then
    begin
      Expect(IsFilled(Blocks[Index], Size, Size), 'a block keeps its contents');
      FreeMem(Blocks[Index]);
    end;
end;

procedure UseAllOf(Size: NativeUInt);
begin
  TakeAll(Size);
  FreeEverySecond;
  TakeLarger(Size);
  FreeRest(Size);
end;

procedure ReadWhileItIsFreed;
var
  P: PByte;
  Sum: Cardinal;
  Index: Integer;
begin
  P := TryGet(Megabyte);
  PurgeHold;
  FreeMem(P);
  LaneMM_Trim;
  Sum := 0;
  for Index := 0 to Megabyte - 1 do
    Inc(Sum, P[Index]); // a fault, when it cannot be read
  PurgeLetGo;
  Expect(Sum = 0, 'what was freed is purged');
end;

// Pages that move to a larger place are not needed twice.
procedure Grow;
var
  P: PByte;
begin
  P := TryGet(60 * Megabyte);
  Expect(P <> nil, 'a large block is there');
  ReturnNilIfGrowHeapFails := True;
  Expect(ReallocMem(P, 110 * Megabyte) <> nil, 'it grows');
  ReturnNilIfGrowHeapFails := False;
  Expect(IsFilled(P, 60 * Megabyte, 60 * Megabyte), 'a block keeps its contents');
  Fill(P, MemSize(P), 1);
  LaneMM_Trim;
  FreeMem(P);
  P := TryGet(150 * Megabyte);
  Expect(P <> nil, 'a block that moved leaves all its memory for a larger one');
  FreeMem(P);
end;

// A child process finds free memory that allows no access.
procedure WorkInAChild;
var
  Child: TPid;
  Status: cint;
begin
  Child := FpFork;
  if Child = 0 then
  begin
    UseAllOf(300000);
    Finish;
  end;
  Expect((FpWaitPid(Child, @Status, 0) = Child) and (Status = 0), 'a child has all memory, too');
end;

begin
  SetLimit;
  UseAllOf(Megabyte);
  UseAllOf(100000);
  UseAllOf(300000);
  Grow;
  WorkInAChild;
  ReadWhileItIsFreed;
  LaneMM_Trim; // the C library takes memory of its own for threads
  ExchangeInThreads(4, LaneMM_Trim);
  UseAllOf(Megabyte);
  Finish;
end.
