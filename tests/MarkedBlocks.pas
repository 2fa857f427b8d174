/// Blocks that know their size and place, for threads that signals stop in the memory manager.
//
// Callers:    any thread. IsInside is set during such a call.
unit MarkedBlocks;

{$mode delphi}{$pointermath on}

interface

type
  PBlock = ^TBlock;
  /// The head of a block; the last byte of the block is that of Size.
  TBlock = record
    Size: UInt64;   //< owner   in bytes
    Key: UInt64;    //< owner   from size and address
  end;

/// Allocates a block of Size bytes, those of TBlock at least.
procedure MarkedMake(var IsInside: Boolean; out Block: PBlock; Size: NativeUInt);
/// Resizes the block; returns whether it kept its contents.
function MarkedResize(var IsInside: Boolean; var Block: PBlock; Size: NativeUInt): Boolean;
/// Frees the block, which may be nil, and sets it to nil; returns whether it had its contents.
function MarkedRelease(var IsInside: Boolean; var Block: PBlock): Boolean;

implementation

procedure Mark(Block: PBlock; Size: NativeUInt);
begin
  Block^.Size := Size;
  Block^.Key := Size xor NativeUInt(Block);
  if Size > SizeOf(TBlock) then
    PByte(Block)[Size - 1] := Byte(Size);
end;

// Returns whether the first Kept bytes are as Mark wrote them when the block was at Origin.
function IsMarked(Block: PBlock; Origin, Kept: NativeUInt): Boolean;
begin
  Result := (Block^.Key = Block^.Size xor Origin) and ((Block^.Size <= SizeOf(TBlock))
    or (Kept < Block^.Size) or (PByte(Block)[Block^.Size - 1] = Byte(Block^.Size)));
end;

procedure MarkedMake(var IsInside: Boolean; out Block: PBlock; Size: NativeUInt);
var
  New: PBlock;
begin
  IsInside := True;
  New := GetMem(Size);
  IsInside := False;
  Mark(New, Size);
  Block := New;
end;

function MarkedResize(var IsInside: Boolean; var Block: PBlock; Size: NativeUInt): Boolean;
var
  Origin: NativeUInt;
begin
  Origin := NativeUInt(Block);
  IsInside := True;
  ReallocMem(Block, Size);
  IsInside := False;
  Result := IsMarked(Block, Origin, Size);
  Mark(Block, Size);
end;

function MarkedRelease(var IsInside: Boolean; var Block: PBlock): Boolean;
var
  Old: PBlock;
begin
  Old := Block;
  if Old = nil then
    Exit(True);
  Block := nil;
  Result := IsMarked(Old, NativeUInt(Old), Old^.Size);
  IsInside := True;
  FreeMem(Old);
  IsInside := False;
end;

end.
