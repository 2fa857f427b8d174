/// Takes blocks of 1 MB, untouched, up to 4 GB or until the addresses are used up, which must be 2 GB or
/// more. Holes between blocks are used again; with all blocks free, a long block fits.
program FullAddresses;

{$mode delphi}

uses
  LaneMM;

const
  Megabyte = 1 shl 20;
  MostBlocks = 4096;
  FewestBlocks = 2048;
  LongBlock = 256 * Megabyte;

var
  Blocks: array[0..MostBlocks - 1] of Pointer;
  Count, Index: Integer;
  P: Pointer;

procedure Require(Holds: Boolean; const Promise: string);
begin
  if Holds then
    Exit;
  WriteLn('does not hold: ', Promise, ' (', Count, ' blocks)');
  Halt(1);
end;

begin
  ReturnNilIfGrowHeapFails := True;
  Count := 0;
  repeat
    GetMem(Blocks[Count], Megabyte);
    Inc(Count);
  until (Count = MostBlocks) or (Blocks[Count - 1] = nil);
  if Blocks[Count - 1] = nil then
    Dec(Count);
  Require(Count >= FewestBlocks, 'blocks have 2 GB');
  for Index := 0 to Count div 2 - 1 do
    FreeMem(Blocks[2 * Index]);
  for Index := 0 to Count div 2 - 1 do
  begin
    GetMem(Blocks[2 * Index], Megabyte - 4096);
    Require(Blocks[2 * Index] <> nil, 'holes are used again');
  end;
  for Index := 0 to Count - 1 do
    FreeMem(Blocks[Index]);
  GetMem(P, LongBlock);
  Require(P <> nil, 'free blocks make a long one');
  PByte(P)^ := 1;
  FreeMem(P);
  WriteLn(Count, ' blocks');
end.
