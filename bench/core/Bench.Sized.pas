/// Blocks that may be resized: their keeper knows size and contents.
unit Bench.Sized;

{$I Bench.inc}

interface

uses
  Bench.Blocks;

type
  /// One block; it keeps its key when it is resized.
  TSized = record
    Block: Pointer;      //< owner   marked with Key
    Size: Cardinal;      //< owner   in bytes, at least 8; 0 for no block
    Key: UInt64;         //< owner   its contents
  end;

  /// The blocks of one thread.
  TSizedBlocks = array of TSized;

/// Makes a block of Size bytes whose contents are Key.
procedure SizedNew(out Sized: TSized; Size: Cardinal; Key: UInt64);
/// Resizes the block and checks that it kept its first word, and its last byte if it grew.
procedure SizedResize(var Sized: TSized; Size: Cardinal);
/// Checks and frees the block, if there is one.
procedure SizedFree(var Sized: TSized);
/// Frees all Blocks.
procedure SizedFreeAll(var Blocks: TSizedBlocks);

implementation

procedure SizedNew(out Sized: TSized; Size: Cardinal; Key: UInt64);
begin
  Sized.Size := Size;
  Sized.Key := Key;
  Sized.Block := GetMem(Size);
  BlockMark(Sized.Block, Size, Key);
end;

procedure SizedResize(var Sized: TSized; Size: Cardinal);
begin
  ReallocMem(Sized.Block, Size);
  if Size > Sized.Size then
    BlockCheck(Sized.Block, Sized.Size, Sized.Key)
  else
    Check(PUInt64(Sized.Block)^ = Sized.Key, 'a resized block has lost its contents');
  Sized.Size := Size;
  BlockMark(Sized.Block, Size, Sized.Key);
end;

procedure SizedFree(var Sized: TSized);
begin
  if Sized.Size = 0 then
    Exit;
  BlockCheck(Sized.Block, Sized.Size, Sized.Key);
  FreeMem(Sized.Block);
  Sized.Size := 0;
end;

procedure SizedFreeAll(var Blocks: TSizedBlocks);
var
  I: Integer;
begin
  for I := 0 to High(Blocks) do
    SizedFree(Blocks[I]);
end;

end.
