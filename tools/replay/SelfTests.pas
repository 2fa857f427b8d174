/// The parts of `lanemm selftest` that run on LaneMM, each as a process of its own.
//
// Exit codes: 0 passed; 1 failed, after lines that name what was expected and what was seen; 3
// skipped, after the reason. Parts that plant a mistake end well: lanemm looks for LaneMM's report.
unit SelfTests;

{$mode delphi}{$H+}
{$pointermath on}

interface

/// Does a part. Work: how much, 1 for a quick test. Returns the exit code.
function RunPart(const Name: string; Work: Integer): Integer;

implementation

uses
  LaneMM, SysUtils, BaseUnix, LaneMM.Atomic;

const
  SlotCount = 256;      // blocks on their way from thread to thread
  OwnCount = 64;        // blocks of a thread
  MostComplaints = 5;
  SecondsOfChild = 60;
  KeptCount = 1000;     // lanemm knows these numbers
  LeakedCount = 100;

type
  // What is asked for memory.
  TCalls = record
    Take: function(Size: NativeUInt): Pointer; cdecl;
    Resize: function(P: Pointer; Size: NativeUInt): Pointer; cdecl;
    Release: procedure(P: Pointer); cdecl;
  end;

  TPart = record
    Name: string;
    Run: procedure;
  end;

  TLeaked = class
    Numbers: array[0..3] of Int64;
  end;

  TKept = class
    Numbers: array[0..5] of Int64;
    procedure Change; virtual;
  end;

function CMalloc(Size: NativeUInt): Pointer; cdecl; external 'c' name 'malloc';
function CRealloc(P: Pointer; Size: NativeUInt): Pointer; cdecl; external 'c' name 'realloc';
procedure CFree(P: Pointer); cdecl; external 'c' name 'free';
function SystemValue(Name: LongInt): NativeInt; cdecl; external 'c' name 'sysconf';
function GlibcVersion: PAnsiChar; cdecl; weakexternal 'c' name 'gnu_get_libc_version';

function PascalTake(Size: NativeUInt): Pointer; cdecl;
begin
  Result := GetMem(Size);
end;

function PascalResize(P: Pointer; Size: NativeUInt): Pointer; cdecl;
begin
  Result := ReallocMem(P, Size);
end;

procedure PascalRelease(P: Pointer); cdecl;
begin
  FreeMem(P);
end;

const
  PascalCalls: TCalls = (Take: PascalTake; Resize: PascalResize; Release: PascalRelease);
  LibraryCalls: TCalls = (Take: CMalloc; Resize: CRealloc; Release: CFree);

var
  Calls: TCalls;
  Turns: Integer;       // of a thread
  IsEnding: Boolean;    // the threads end before
  PartName: string;
  PartWork: Integer;
  Outcome: Integer = 0;
  Complaints: NativeUInt;
  Slots: array[0..SlotCount - 1] of NativeUInt;
  Kept: array[0..KeptCount - 1] of TKept;
  Sink: Byte;

// ---------------------------------------------------------------------------- outcomes

// Fails unless Seen is one of Least to Most. The main thread alone.
procedure Need(const What: string; Least, Most, Seen: Int64);
begin
  if (Seen >= Least) and (Seen <= Most) then
    Exit;
  Write(What, ': expected ', Least);
  if Most > Least then
    Write(' to ', Most);
  WriteLn(', seen ', Seen);
  Outcome := 1;
end;

// Any thread: the block lacks what it should have.
procedure Complain(const What: string; Block: Pointer);
begin
  if FetchAdd(Complaints, 1) < MostComplaints then
    WriteLn('block at ', HexStr(Block), ': expected ', What, ', seen other bytes');
end;

// ---------------------------------------------------------------------------- blocks

// A block says its size in its first word, combined with its address; a byte that depends on both
// fills the rest.
procedure Mark(Block: PNativeUInt; Size: NativeUInt);
begin
  Block[0] := Size xor NativeUInt(Block);
  FillChar(Block[1], Size - SizeOf(Size), Byte(NativeUInt(Block) shr 4 + Size));
end;

// Checks the first Kept bytes of a block that was marked for Size bytes at the address Origin.
procedure Check(Block: PNativeUInt; Origin, Size, Kept: NativeUInt);
var
  Rest: PByte;
begin
  Rest := PByte(Block + 1);
  Dec(Kept, SizeOf(Size));
  if Block[0] <> Size xor Origin then
    Complain('its size', Block)
  else if (Kept > 0) and ((Rest[0] <> Byte(Origin shr 4 + Size))
    or (CompareByte(Rest[0], Rest[1], Kept - 1) <> 0)) then
    Complain('its contents', Block);
end;

function MakeBlock(Size: NativeUInt): PNativeUInt;
begin
  Result := Calls.Take(Size);
  if NativeUInt(Result) mod 16 <> 0 then
    Complain('a multiple of 16', Result);
  Mark(Result, Size);
end;

procedure FreeBlock(Block: PNativeUInt);
var
  Size: NativeUInt;
begin
  if Block = nil then
    Exit;
  Size := Block[0] xor NativeUInt(Block);
  Check(Block, NativeUInt(Block), Size, Size);
  Block[0] := 0; // whoever has it, too, sees that
  Calls.Release(Block);
end;

function ResizeBlock(Block: PNativeUInt; Size: NativeUInt): PNativeUInt;
var
  Origin, OldSize: NativeUInt;
begin
  if Block = nil then
    Exit(MakeBlock(Size));
  Origin := NativeUInt(Block);
  OldSize := Block[0] xor Origin;
  Check(Block, Origin, OldSize, OldSize);
  Result := Calls.Resize(Block, Size);
  if Size < OldSize then
    Check(Result, Origin, OldSize, Size)
  else
    Check(Result, Origin, OldSize, OldSize);
  Mark(Result, Size);
end;

// A new block of zeros, in memory that was used before.
procedure CheckZeros(Size: NativeUInt);
var
  Block: PByte;
begin
  Block := AllocMem(Size);
  if (Block[0] <> 0) or (CompareByte(Block[0], Block[1], Size - 1) <> 0) then
    Complain('zeros', Block);
  if MemSize(Block) < Size then
    Complain('a size of ' + IntToStr(Size), Block);
  FreeMem(Block);
end;

procedure Blocks;
var
  Size, Largest: NativeUInt;
  Block, Other: PNativeUInt;
begin
  Largest := NativeUInt(2) shl 20;
  if PartWork > 1 then
    Largest := Largest * 32;
  Size := 2 * SizeOf(Size);
  while Size < Largest do
  begin
    Block := MakeBlock(Size);
    Other := MakeBlock(Size + 1);
    Block := ResizeBlock(Block, Size + Size div 2);
    Block := ResizeBlock(Block, Size div 2);
    FreeBlock(Block);
    CheckZeros(Size);
    FreeBlock(Other);
    Inc(Size, 1 + Size div 8);
  end;
end;

// ---------------------------------------------------------------------------- threads

// Returns a random number of at least 32 bits (Marsaglia, "Xorshift RNGs", 2003).
function Next(var Seed: UInt64): UInt64;
begin
  Seed := Seed xor (Seed shl 13);
  Seed := Seed xor (Seed shr 7);
  Seed := Seed xor (Seed shl 17);
  Result := Seed shr 16;
end;

// Returns a size: up to 4 KB, small ones most; of one block in 64 a hundred times that.
function SomeSize(var Seed: UInt64): NativeUInt;
begin
  Result := SizeOf(Result) + Next(Seed) mod (NativeUInt(16) shl (Next(Seed) mod 9));
  if Next(Seed) mod 64 = 0 then
    Result := Result * 100;
end;

// Allocates, resizes, frees, and passes blocks on to other threads.
function WorkThread(Argument: Pointer): PtrInt;
var
  Own: array[0..OwnCount - 1] of PNativeUInt;
  Seed: UInt64;
  Turn, Index: Integer;
begin
  FillChar(Own, SizeOf(Own), 0);
  Seed := NativeUInt(Argument);
  Turn := 0;
  while (Turn < Turns) and not IsEnding do
  begin
    Inc(Turn);
    Index := Next(Seed) mod OwnCount;
    case Next(Seed) mod 4 of
      0: Own[Index] := PNativeUInt(Swap(Slots[Next(Seed) mod SlotCount], NativeUInt(Own[Index])));
      1: Own[Index] := ResizeBlock(Own[Index], SomeSize(Seed));
    else
      FreeBlock(Own[Index]);
      Own[Index] := MakeBlock(SomeSize(Seed));
    end;
  end;
  for Index := 0 to OwnCount - 1 do
    FreeBlock(Own[Index]);
  Result := 0;
end;

// Two threads for each processor, 4 to 64.
function ThreadCount: Integer;
const
  ProcessorsOnline = 84; // _SC_NPROCESSORS_ONLN
begin
  Result := 2 * SystemValue(ProcessorsOnline);
  if Result < 4 then
    Result := 4
  else if Result > 64 then
    Result := 64;
end;

// Has so many generations of threads work, one after the other.
procedure RunThreads(Generations: Integer);
var
  Ids: array of TThreadID;
  Index, Generation: Integer;
begin
  Ids := nil;
  SetLength(Ids, ThreadCount);
  for Generation := 1 to Generations do
  begin
    for Index := 0 to High(Ids) do
      Ids[Index] := BeginThread(WorkThread, Pointer(NativeUInt(Generation * 1000 + Index)));
    for Index := 0 to High(Ids) do
      WaitForThreadTerminate(Ids[Index], 0);
  end;
end;

procedure EmptySlots;
var
  Index: Integer;
begin
  for Index := 0 to SlotCount - 1 do
    FreeBlock(PNativeUInt(Swap(Slots[Index], 0)));
end;

procedure Contents;
begin
  RunThreads(4);
  EmptySlots;
end;

procedure Threads;
var
  Before: NativeUInt;
begin
  RunThreads(1); // the first threads make things that stay
  EmptySlots;
  Before := LaneMM_HeapStatus.UsedBytes;
  RunThreads(10);
  EmptySlots;
  Need('bytes in use after all blocks were freed', Before, Before, LaneMM_HeapStatus.UsedBytes);
end;

// ---------------------------------------------------------------------------- memory

procedure Forks;
var
  Ids: array[0..1] of TThreadID;
  Index, Bad: Integer;
  Child: TPid;
  Status: LongInt;
begin
  Bad := 0;
  Turns := High(Turns);
  for Index := 0 to High(Ids) do
    Ids[Index] := BeginThread(WorkThread, Pointer(NativeUInt(Index + 1)));
  for Index := 1 to 10 + PartWork do
  begin
    Child := FpFork;
    if Child = 0 then
    begin
      FpAlarm(SecondsOfChild);
      Turns := 1000;
      WorkThread(Pointer(NativeUInt(Index + 10)));
      FpExit(Ord(Complaints > 0));
    end;
    Status := -1;
    FpWaitPid(Child, Status, 0);
    Inc(Bad, Ord(Status <> 0));
  end;
  IsEnding := True;
  for Index := 0 to High(Ids) do
    WaitForThreadTerminate(Ids[Index], 0);
  EmptySlots;
  Need('child processes of fork that hang, crash or find damage', 0, 0, Bad);
end;

// Runs with a limit of 64 MB.
procedure Limit;
const
  BlockBytes = 1 shl 20;
  LimitBytes = 64 * BlockBytes;
var
  Taken: array[0..99] of Pointer;
  Count, Index: Integer;
begin
  ReturnNilIfGrowHeapFails := True;
  Count := -1;
  repeat
    Inc(Count);
    Taken[Count] := GetMem(BlockBytes);
  until (Taken[Count] = nil) or (Count = High(Taken));
  Need('blocks of 1 MB that a limit of 64 MB allows', 48, 63, Count);
  Need('bytes that the heap holds', 0, LimitBytes, LaneMM_HeapStatus.CommittedBytes);
  for Index := 0 to Count do
    FreeMem(Taken[Index]);
  Taken[0] := GetMem(LimitBytes div 2);
  Need('blocks of 32 MB after all were freed', 1, 1, Ord(Taken[0] <> nil));
  FreeMem(Taken[0]);
end;

procedure Regions;
const
  BlockCount = 10000;
  LimitBytes = 16 shl 20;
var
  Region: TLaneMM_Region;
  Index: Integer;
begin
  Region := LaneMM_RegionCreate('self test', LimitBytes);
  LaneMM_RegionEnter(Region);
  for Index := 1 to BlockCount do
    MakeBlock(100);
  LaneMM_RegionLeave;
  Need('blocks in the region', BlockCount, BlockCount, LaneMM_RegionState(Region).BlocksInUse);
  ReturnNilIfGrowHeapFails := True;
  Need('blocks above the limit of the region', 0, 0,
    Ord(LaneMM_RegionGetMem(Region, LimitBytes) <> nil));
  Need('regions freed', 1, 1, Ord(LaneMM_RegionFree(Region)));
  Need('bytes in use afterwards', 0, BlockCount * 100, LaneMM_HeapStatus.UsedBytes);
end;

function PageBytes: Int64;
const
  PageSizeValue = 30; // _SC_PAGESIZE
begin
  Result := SystemValue(PageSizeValue);
end;

// Returns the resident memory of this process in bytes; 0: unknown.
function Resident: Int64;
var
  Numbers: TextFile;
  Total: Int64;
begin
  Result := 0;
  AssignFile(Numbers, '/proc/self/statm');
  {$push}{$I-}
  Reset(Numbers);
  {$pop}
  if IOResult <> 0 then
    Exit;
  Read(Numbers, Total, Result);
  CloseFile(Numbers);
  Result := Result * PageBytes;
end;

procedure GivesBack;
const
  Sizes: array[0..3] of Int64 = (100, 3000, 40000, 300000);
  Looks = 200;
  LookMs = 50;
var
  Chain, Block: PPointer;
  Size, Count, Before, Bytes: Int64;
  Look: Integer;
begin
  Bytes := Int64(64) shl 20;
  if PartWork > 1 then
    Bytes := Bytes * 4;
  Chain := nil;
  Before := Resident;
  for Size in Sizes do
    for Count := 1 to Bytes div Length(Sizes) div Size do
    begin
      Block := GetMem(Size);
      FillChar(Block^, Size, 1);
      Block^ := Chain;
      Chain := Block;
    end;
  if Resident - Before < Bytes div 2 then
  begin
    WriteLn('the system does not say how much memory a process has');
    Outcome := 3;
  end;
  while Chain <> nil do
  begin
    Block := Chain;
    Chain := Block^;
    FreeMem(Block);
  end;
  Look := 0;
  while (Outcome = 0) and (Look < Looks) and (Resident - Before > Bytes div 8) do
  begin
    FreeMem(GetMem(100000)); // without a thread of its own LaneMM returns memory in calls
    Sleep(LookMs);
    Inc(Look);
  end;
  if Outcome = 0 then
    Need(Format('MB of %d that the system still counts 10 s after they were freed', [Bytes shr 20]),
      -Bytes, Bytes shr 23, (Resident - Before) div (1 shl 20));
end;

// ---------------------------------------------------------------------------- mistakes

procedure TKept.Change;
begin
  Inc(Numbers[0]);
end;

procedure Mistake;
const
  Size = 112; // a multiple of 16: guard pages begin behind it
var
  Block: PByte;
  Item: TKept;
begin
  Block := GetMem(Size);
  Item := TKept.Create;
  if PartName = 'overrun' then
    Block[Size] := 1;
  if PartName = 'guard' then
    Sink := Block[Size];
  FreeMem(Block);
  Item.Free;
  if PartName = 'write' then
    Block[Size div 2] := 1;
  if PartName = 'freed' then
    Item.Change;
  if PartName = 'twice' then
    FreeMem(Block);
end;

procedure Leak;
var
  Index: Integer;
begin
  for Index := 1 to LeakedCount do
    TLeaked.Create;
end;

// ---------------------------------------------------------------------------- seen from outside

// Runs until lanemm has ended, or for a minute.
procedure Live;
const
  Rounds = 12000;
  RoundMs = 5;
var
  Index: Integer;
  Parent: TPid;
begin
  for Index := 0 to KeptCount - 1 do
    Kept[Index] := TKept.Create;
  Leak;
  WriteLn('ready');
  Flush(Output);
  Parent := FpGetPPid;
  Index := 0;
  while (FpGetPPid = Parent) and (Index < Rounds) do
  begin
    FreeMem(GetMem(100000)); // requests are looked for where spans are taken
    Sleep(RoundMs);
    Inc(Index);
  end;
end;

// Prints what lanemm, which is static, does not know.
procedure WriteMachine;
begin
  WriteLn(LaneMM_Version);
  if Pointer(@GlibcVersion) = nil then
    WriteLn('no glibc')
  else
    WriteLn('glibc ', GlibcVersion);
  WriteLn(PageBytes div 1024, ' KB');
end;

const
  Parts: array[0..15] of TPart = (
    (Name: 'blocks'; Run: Blocks), (Name: 'threads'; Run: Threads),
    (Name: 'contents'; Run: Contents), (Name: 'malloc'; Run: Contents),
    (Name: 'fork'; Run: Forks), (Name: 'limit'; Run: Limit), (Name: 'regions'; Run: Regions),
    (Name: 'return'; Run: GivesBack), (Name: 'leak'; Run: Leak), (Name: 'live'; Run: Live),
    (Name: 'machine'; Run: WriteMachine),
    (Name: 'overrun'; Run: Mistake), (Name: 'guard'; Run: Mistake), (Name: 'write'; Run: Mistake),
    (Name: 'freed'; Run: Mistake), (Name: 'twice'; Run: Mistake));

procedure RunNamed;
var
  Part: TPart;
begin
  for Part in Parts do
    if Part.Name = PartName then
      Part.Run;
end;

function RunPart(const Name: string; Work: Integer): Integer;
const
  TurnsOfWork = 20000; // of all threads: debug mode takes one after the other
var
  OnLaneMM: Integer;
begin
  PartName := Name;
  PartWork := Work;
  Turns := Work * TurnsOfWork div ThreadCount;
  Calls := PascalCalls;
  OnLaneMM := Ord(Name <> 'malloc');
  if OnLaneMM = 0 then
    Calls := LibraryCalls;
  Need('LaneMM as the memory manager', OnLaneMM, OnLaneMM, Ord(LaneMM_IsInstalled));
  if Outcome = 0 then
    try
      RunNamed;
    except // of planted mistakes: lanemm looks for the reports
      on EInvalidPointer do;
      on EAccessViolation do;
    end;
  Need('damaged blocks', 0, 0, Complaints);
  Result := Outcome;
end;

end.
