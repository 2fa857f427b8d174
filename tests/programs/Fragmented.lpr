/// Allocates, resizes and frees large blocks of random sizes, untouched but for a word at each end, while
/// 2,400 MB of them are in use: of the 4 GB of a 32-bit program they never use up the addresses. (On
/// Windows, of 2 GB: 1,200 MB.) A block then grows step by step to 64 MB between the others, and in the
/// end all are whole. How often memory is purged meanwhile decides nothing.
///   Fragmented [MILLISECONDS BETWEEN PURGES [SEED]]
program Fragmented;

{$mode delphi}{$pointermath on}

uses
  LaneMM, SysUtils, Promises, LaneMM.Types;

const
  Kilobyte = 1024;
  Megabyte = Kilobyte * Kilobyte;
  BlockCount = 2048;
  MostInUse = {$ifdef MSWINDOWS} 1200 {$else} 2400 {$endif} * NativeUInt(Megabyte);
  StepCount = 40000;
  LongBlock = 64 * NativeUInt(Megabyte);
  LongStep = 8 * NativeUInt(Megabyte);

type
  TLargeBlock = record
    Start: PCardinal;
    Size: NativeUInt;
  end;

var
  Blocks: array[0..BlockCount - 1] of TLargeBlock;
  InUse: NativeUInt;
  Random: Cardinal;

// From 64 KB to 16 MB, most of them short.
function SomeSize: NativeUInt;
begin
  Result := 64 * Kilobyte shl NextRandom(Random, 8);
  Inc(Result, NextRandom(Random, Result) and not 7);
end;

procedure Mark(var Block: TLargeBlock; Key: Cardinal);
begin
  Block.Start[0] := Key;
  Block.Start[Block.Size div SizeOf(Key) - 1] := not Key;
end;

function IsMarked(const Block: TLargeBlock; Key: Cardinal): Boolean;
begin
  Result := (Block.Start[0] = Key) and (Block.Start[Block.Size div SizeOf(Key) - 1] = not Key);
end;

procedure Drop(Index: Cardinal);
begin
  Expect(IsMarked(Blocks[Index], Index), 'a block keeps its contents');
  Dec(InUse, Blocks[Index].Size);
  FreeMem(Blocks[Index].Start);
  Blocks[Index].Start := nil;
end;

procedure Take(Index: Cardinal; Size: NativeUInt);
begin
  GetMem(Blocks[Index].Start, Size);
  Blocks[Index].Size := Size;
  Inc(InUse, Size);
  Mark(Blocks[Index], Index);
end;

procedure Resize(Index: Cardinal; Size: NativeUInt);
begin
  Dec(InUse, Blocks[Index].Size);
  ReallocMem(Blocks[Index].Start, Size);
  Expect(Blocks[Index].Start[0] = Index, 'a block keeps its contents when it is resized');
  Blocks[Index].Size := Size;
  Inc(InUse, Size);
  Mark(Blocks[Index], Index);
end;

// Replaces, resizes or frees one block.
procedure Step;
var
  Index: Cardinal;
  Size: NativeUInt;
begin
  Index := NextRandom(Random, BlockCount);
  Size := SomeSize;
  if InUse + Size > MostInUse then
  begin
    if Blocks[Index].Start <> nil then
      Drop(Index);
  end
  else if Blocks[Index].Start = nil then
    Take(Index, Size)
  else if NextRandom(Random, 4) = 0 then
    Resize(Index, Size)
  else
    Drop(Index);
end;

procedure GrowBetween;
var
  Start: PCardinal;
  Size: NativeUInt;
begin
  Size := LongStep;
  GetMem(Start, Size);
  Start[0] := 1;
  while Size < LongBlock do
  begin
    Inc(Size, LongStep);
    ReallocMem(Start, Size);
    Expect(Start[0] = 1, 'a block keeps its contents when it grows');
  end;
  FreeMem(Start);
end;

var
  Index: Cardinal;
begin
  Process.PurgeDelayMs := StrToIntDef(ParamStr(1), Process.PurgeDelayMs);
  Random := StrToIntDef(ParamStr(2), 1);
  try
    for Index := 1 to StepCount do
      Step;
    GrowBetween;
    for Index := 0 to BlockCount - 1 do
      if Blocks[Index].Start <> nil then
        Drop(Index);
  except
    on EOutOfMemory do
      Expect(False, Format('the addresses suffice, with %d MB in use', [InUse div Megabyte]));
  end;
  Finish;
end.
