/// Works with blocks of all tiers, threads, a child process and logs, while system calls fail: GetMem
/// may refuse, but no block is lost or damaged. Then the calls succeed again, and all works as ever.
program Failing;

{$mode delphi}{$pointermath on}

uses
  LaneMM, cthreads, BaseUnix, Syscall, LaneMM.Types, Promises, UsedBytes, CallPlans;

const
  BlockCount = 600;
  TurnCount = 300;
  ThreadCount = 3;
  SlotCount = 64;
  LargestSmall = 40000;
  LargestGrown = 6 shl 20;
  LargestMoved = 16 shl 20;

type
  // A block in use: its contents follow from Size and Key.
  TOwned = record
    Start: PByte;
    Size: NativeUInt;
    Key: Cardinal;
  end;
  POwned = ^TOwned;

var
  Slots: array[0..SlotCount - 1] of Pointer;
  Leaked: Pointer = nil;

// ---------------------------------------------------------------------------- blocks

procedure Take(var Owned: TOwned; Size: NativeUInt; Key: Cardinal);
begin
  GetMem(Owned.Start, Size);
  if Owned.Start = nil then
    Exit;
  Owned.Size := Size;
  Owned.Key := Key;
  Fill(Owned.Start, Size, Key);
end;

procedure Give(var Owned: TOwned);
begin
  if Owned.Start = nil then
    Exit;
  Expect(IsFilled(Owned.Start, Owned.Size, Owned.Key), 'a block keeps its contents');
  FreeMem(Owned.Start); // an error ends the program
  Owned.Start := nil;
end;

procedure Resize(var Owned: TOwned; Size: NativeUInt);
var
  Moved: PByte;
  Kept: NativeUInt;
begin
  if Owned.Start = nil then
    Exit;
  Moved := Owned.Start;
  ReallocMem(Moved, Size);
  Owned.Start := Moved;
  if Moved = nil then
    Exit; // a refused resize has freed the block
  Kept := Owned.Size;
  if Size < Kept then
    Kept := Size;
  Expect(IsFilled(Moved, Kept and not 7, Owned.Key), 'a resize keeps the contents');
  Owned.Size := Size;
  Fill(Moved, Size, Owned.Key);
end;

// ---------------------------------------------------------------------------- phases

function SomeSize(var State: Cardinal): NativeUInt;
begin
  Result := NextRandom(State, 600);
  case NextRandom(State, 20) of
    0: Result := NextRandom(State, LargestSmall);
    1: Result := NextRandom(State, 400000);
  end;
end;

// Half of the blocks go to the slots, from where another thread takes and frees them.
procedure PassOn(var Owned: TOwned; Slot: Cardinal);
var
  Parcel: POwned;
begin
  GetMem(Parcel, SizeOf(TOwned));
  if Parcel = nil then
    Exit;
  Parcel^ := Owned;
  Owned.Start := nil;
  Parcel := InterlockedExchange(Slots[Slot], Parcel);
  if Parcel = nil then
    Exit;
  Give(Parcel^);
  FreeMem(Parcel);
end;

function Work(Seed: Pointer): PtrInt;
var
  Blocks: array[0..BlockCount - 1] of TOwned;
  State: Cardinal;
  Turn, Index: Integer;
begin
  FillChar(Blocks, SizeOf(Blocks), 0);
  State := Cardinal(PtrUInt(Seed));
  for Turn := 1 to TurnCount do
  begin
    Index := NextRandom(State, BlockCount);
    case NextRandom(State, 8) of
      0: Resize(Blocks[Index], SomeSize(State) + 1);
      1: if Blocks[Index].Start <> nil then PassOn(Blocks[Index], NextRandom(State, SlotCount));
    else
      Give(Blocks[Index]);
      Take(Blocks[Index], SomeSize(State), State);
    end;
  end;
  for Index := 0 to BlockCount - 1 do
    Give(Blocks[Index]);
  Result := 0;
end;

procedure EmptySlots;
var
  Parcel: POwned;
  Index: Integer;
begin
  for Index := 0 to SlotCount - 1 do
  begin
    Parcel := InterlockedExchange(Slots[Index], nil);
    if Parcel = nil then
      Continue;
    Give(Parcel^);
    FreeMem(Parcel);
  end;
end;

// Two blocks grow in turn, without addresses to grow into: their pages are moved, and each time they
// are one more mapping. What such a block leaves, or does not get, reads as zeros.
procedure MoveLarge;
var
  Blocks: array[0..1] of TOwned;
  Kept, LastSize: NativeUInt;
  P: PByte;
  Index: Integer;
begin
  Kept := Process.SavingFrom;
  Process.SavingFrom := 0;
  for Index := 0 to 1 do
  begin
    Blocks[Index].Start := nil;
    Take(Blocks[Index], 4 shl 20, Index);
  end;
  LastSize := 0;
  while (Blocks[0].Start <> nil) and (Blocks[0].Size < LargestMoved) and (Blocks[0].Size > LastSize) do
  begin
    LastSize := Blocks[0].Size;
    for Index := 0 to 1 do
      if Blocks[Index].Start <> nil then
        Resize(Blocks[Index], Blocks[Index].Size + Blocks[Index].Size shr 1);
    P := AllocMem(LastSize);
    Expect((P = nil) or (P^ = 0) and (CompareByte(P[0], P[1], LastSize - 1) = 0), 'a block of AllocMem reads as zeros');
    FreeMem(P);
  end;
  for Index := 0 to 1 do
    Give(Blocks[Index]);
  Process.SavingFrom := Kept;
end;

// A block grows in steps, beside another one that is in its way, and shrinks.
procedure GrowLarge;
var
  Block, Other: TOwned;
  LastSize: NativeUInt;
begin
  Block.Start := nil;
  Other.Start := nil;
  Take(Block, 50000, 1);
  LastSize := 0;
  while (Block.Start <> nil) and (Block.Size < LargestGrown) and (Block.Size > LastSize) do
  begin
    LastSize := Block.Size;
    Give(Other);
    Take(Other, 70000, 2);
    if Block.Size > 1 shl 20 then
      LaneMM_Trim;
    Resize(Block, Block.Size + Block.Size div 2);
  end;
  Resize(Block, 100000);
  Give(Block);
  Give(Other);
end;

procedure RunThreads;
var
  Threads: array[1..ThreadCount] of TThreadID;
  Probe: Pointer;
  Index: PtrUInt;
begin
  FillChar(Threads, SizeOf(Threads), 0);
  for Index := 1 to ThreadCount do
  begin
    // The run-time library does not start a thread without memory for its record.
    GetMem(Probe, 64);
    if Probe = nil then
      Continue;
    FreeMem(Probe);
    Threads[Index] := BeginThread(Work, Pointer(Index));
  end;
  for Index := 1 to ThreadCount do
    if Threads[Index] <> 0 then
      WaitForThreadTerminate(Threads[Index], 0);
end;

procedure RunChild;
var
  Child: TPid;
  Status: LongInt;
begin
  Child := FpFork;
  if Child = 0 then
  begin
    Work(Pointer(7));
    LaneMM_Trim;
    Do_SysCall(syscall_nr_exit_group, BrokenCount);
  end;
  if Child < 0 then
    Exit;
  FpWaitPid(Child, Status, 0);
  Expect(Status = 0, 'a child process works');
end;

procedure WorkWithFailures;
begin
  Work(Pointer(1));
  GrowLarge;
  MoveLarge;
  RunThreads;
  LaneMM_Trim;
  RunChild;
  LaneMM_HeapStatus;
  LaneMM_CheckHeap;
  GetMem(Leaked, 321);
  LaneMM_ReportMemoryInUse;
  LaneMM_WriteEventLog;
end;

procedure WorkAsEver;
var
  Blocks: array[1..12] of TOwned;
  Index, Round: Integer;
begin
  for Round := 1 to 3 do
  begin
    for Index := 1 to High(Blocks) do
    begin
      Blocks[Index].Start := nil;
      Take(Blocks[Index], NativeUInt(10) shl Index * Cardinal(Round), Index);
      Expect(Blocks[Index].Start <> nil, 'memory can be had when calls succeed again');
    end;
    for Index := 1 to High(Blocks) do
      Give(Blocks[Index]);
  end;
  GetMem(Leaked, 24 shl 20);
  Expect(Leaked <> nil, 'large blocks can be had when calls succeed again');
  FreeMem(Leaked);
  RunThreads;
  EmptySlots;
end;

var
  Before: NativeUInt;
begin
  ReturnNilIfGrowHeapFails := True;
  if ParamStr(1) = 'list' then
  begin
    WorkWithFailures;
    CallsPrint;
    Halt(0);
  end;
  WorkWithFailures;
  CallsSucceed;
  EmptySlots;
  if Leaked <> nil then
    FreeMem(Leaked);
  RunThreads;
  EmptySlots;
  Before := LaneMM_HeapStatus.UsedBytes;
  WorkAsEver;
  ExpectUsed(Before);
  Finish;
end.
