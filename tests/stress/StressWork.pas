/// The work of a thread of the stress test.
//
// A block in a slot describes its contents: its first word is the requested size, combined with its
// address and the seed of the run, the rest a pattern of the same. The thread that takes it out can
// check every byte.
unit StressWork;

{$mode delphi}{$H+}{$pointermath on}

interface

/// Narrow work: few blocks of two size classes, few to a span, short rounds, trims. Spans are given
/// up, taken over, emptied, swept, abandoned and reclaimed all the time. Before threads start.
procedure WorkNarrowly;
/// Works for one round, frees most of its blocks and leaves the others to other threads.
/// Argument is the seed.
function WorkOneRound(Argument: Pointer): PtrInt;
/// Frees what is in the slots.
procedure EmptySlots;

var
  /// Blocks whose contents were not what they should be.
  DamagedCount: LongInt;
  /// What a thread does in a round.
  TurnsPerRound: Integer = 150000;
  /// Calls that raised an error.
  RefusedCount: LongInt;
  /// What was done, for the report.
  TurnCount, PassedOn: NativeUInt;

implementation

uses
  SysUtils, Test.Tools, LaneMM, LaneMM.Atomic, Stopping;

const
  SlotCount = 500;
  OwnCount = 200;
  NarrowSlots = 24;
  NarrowOwn = 8;
  NarrowTurns = 4000;
  NarrowSizes: array[0..2] of NativeUInt = (12000, 16000, 30000);
  // One turn in so many of narrow work.
  TurnsPerTrim = 256;
  SmallestBlock = SizeOf(UInt64);
  LargestBlock = 3000000;
  // Of longer blocks only the edges and a word here and there are written and checked.
  FullyChecked = 16384;
  Stride = 4096;
  Mix = UInt64($9E3779B97F4A7C15);

type
  PWord = ^UInt64;
  TBlocks = array[0..OwnCount - 1] of PWord;

var
  Slots: array[0..SlotCount - 1] of Pointer;
  IsNarrow: Boolean;
  SlotsUsed: Cardinal = SlotCount;
  OwnUsed: Cardinal = OwnCount;

procedure WorkNarrowly;
begin
  IsNarrow := True;
  SlotsUsed := NarrowSlots;
  OwnUsed := NarrowOwn;
  TurnsPerRound := NarrowTurns;
end;

procedure Damaged(Block: Pointer; const What: string);
begin
  if InterlockedIncrement(DamagedCount) <= 10 then
    WriteLn('damaged ', What, ' at ', HexStr(Block));
end;

// ---------------------------------------------------------------------------- contents

function KeyOf(Block: PWord): UInt64; inline;
begin
  Result := NativeUInt(Block) * Mix;
end;

function SizeOfBlock(Block: PWord): NativeUInt;
begin
  Result := Block^ xor KeyOf(Block);
end;

function StepOf(Size: NativeUInt): NativeUInt; inline;
begin
  if Size <= FullyChecked then
    Result := SizeOf(UInt64)
  else
    Result := Stride;
end;

procedure Write(Block: PWord; Size: NativeUInt);
var
  Offset: NativeUInt;
begin
  Block^ := Size xor KeyOf(Block);
  Offset := SizeOf(UInt64);
  while Offset + SizeOf(UInt64) <= Size do
  begin
    PWord(PByte(Block) + Offset)^ := KeyOf(Block) + Offset * Size;
    Inc(Offset, StepOf(Size));
  end;
  for Offset := Size and not 7 to Size - 1 do
    PByte(Block)[Offset] := Byte(Size xor Offset);
end;

// Checks the first Kept bytes of what was written for Size bytes when the block was at Origin.
procedure Check(Block, Origin: PWord; Size, Kept: NativeUInt);
var
  Offset: NativeUInt;
begin
  if Block^ xor KeyOf(Origin) <> Size then
    Damaged(Block, 'first word');
  Offset := SizeOf(UInt64);
  while Offset + SizeOf(UInt64) <= Kept do
  begin
    if PWord(PByte(Block) + Offset)^ <> KeyOf(Origin) + Offset * Size then
      Damaged(Block, 'block');
    Inc(Offset, StepOf(Size));
  end;
  if Kept = Size then
    for Offset := Size and not 7 to Size - 1 do
      if PByte(Block)[Offset] <> Byte(Size xor Offset) then
        Damaged(Block, 'end of a block');
end;

procedure CheckWhole(Block: PWord);
var
  Size: NativeUInt;
begin
  Size := SizeOfBlock(Block);
  if (Size < SmallestBlock) or (Size > LargestBlock) or (MemSize(Block) < Size) then
    Damaged(Block, 'size')
  else
    Check(Block, Block, Size, Size);
end;

// ---------------------------------------------------------------------------- turns

function SomeSize(var Generator: TGenerator): NativeUInt;
begin
  if IsNarrow then
    Exit(NarrowSizes[Generator.Below(Length(NarrowSizes))]);
  Result := SmallestBlock + Generator.NextSize(LargestBlock - SmallestBlock);
  // Large blocks are rarer than their tier: they take the time of thousands of others.
  if (Result > 100000) and (Generator.Below(8) <> 0) then
    Result := Result and 1023 + SmallestBlock;
end;

procedure Get(var Block: PWord; Size: NativeUInt; IsZeroed: Boolean);
begin
  if IsZeroed then
  begin
    Block := AllocMem(Size);
    if not IsZero(PByte(Block), Size) then
      Damaged(Block, 'zeros');
  end
  else
    GetMem(Block, Size);
  if NativeUInt(Block) mod 16 <> 0 then
    Damaged(Block, 'alignment');
  Write(Block, Size);
end;

procedure Free(var Block: PWord);
begin
  if Block = nil then
    Exit;
  CheckWhole(Block);
  FreeMem(Block);
  Block := nil;
end;

procedure Resize(var Block: PWord; Size: NativeUInt);
var
  Origin: PWord;
  OldSize, Kept: NativeUInt;
begin
  Origin := Block;
  OldSize := SizeOfBlock(Block);
  CheckWhole(Block);
  ReallocMem(Block, Size);
  Kept := OldSize;
  if Size < OldSize then
    Kept := Size;
  Check(Block, Origin, OldSize, Kept);
  Write(Block, Size);
end;

procedure PassOn(var Block: PWord; Slot: Cardinal);
begin
  Block := InterlockedExchange(Slots[Slot], Block);
end;

procedure WorkOneTurn(var Blocks: TBlocks; var Generator: TGenerator; var Passed: NativeUInt);
var
  Index: Cardinal;
begin
  if IsNarrow and (Generator.Below(TurnsPerTrim) = 0) then
    LaneMM_Trim;
  Index := Generator.Below(OwnUsed);
  case Generator.Below(10) of
    0..2:
      begin
        PassOn(Blocks[Index], Generator.Below(SlotsUsed));
        Inc(Passed);
      end;
    3..4:
      if Blocks[Index] <> nil then
        Resize(Blocks[Index], SomeSize(Generator));
  else
    Free(Blocks[Index]);
    Get(Blocks[Index], SomeSize(Generator), Generator.Below(8) = 0);
  end;
end;

// A call that is refused leaves all blocks as they were.
procedure TryOneTurn(var Blocks: TBlocks; var Generator: TGenerator; var Passed: NativeUInt);
begin
  try
    WorkOneTurn(Blocks, Generator, Passed);
  except
    on EOutOfMemory do
      InterlockedIncrement(RefusedCount);
  end;
end;

procedure WorkTurns(Seed: UInt64);
var
  Blocks: TBlocks;
  Generator: TGenerator;
  Turn, Index: Integer;
  Passed: NativeUInt;
begin
  FillChar(Blocks, SizeOf(Blocks), 0);
  Generator.Start(Seed);
  Passed := 0;
  for Turn := 1 to TurnsPerRound do
    TryOneTurn(Blocks, Generator, Passed);
  for Index := 0 to High(Blocks) do
    if Odd(Index) then
      PassOn(Blocks[Index], Generator.Below(SlotsUsed));
  for Index := 0 to High(Blocks) do
    Free(Blocks[Index]);
  FetchAdd(TurnCount, TurnsPerRound);
  FetchAdd(PassedOn, Passed);
end;

function WorkOneRound(Argument: Pointer): PtrInt;
begin
  Result := 0;
  StoppingJoin;
  try
    WorkTurns(NativeUInt(Argument));
  except
    on Error: Exception do
    begin
      InterlockedIncrement(RefusedCount);
      WriteLn(Error.ClassName, ': ', Error.Message);
    end;
  end;
end;

procedure EmptySlots;
var
  Index: Integer;
  Block: PWord;
begin
  for Index := 0 to SlotCount - 1 do
  begin
    Block := nil;
    PassOn(Block, Index);
    Free(Block);
  end;
end;

end.
