/// A table of live blocks, any of which can be replaced: the memory of a busy program.
//
// Always:   a slot holds a block of BlockNew and the key that it was made from.
// Callers:  one thread at a time; a table may pass from thread to thread.
unit Bench.Slots;

{$I Bench.inc}

interface

uses
  Bench.Blocks;

type
  /// One block.
  TSlot = record
    Block: Pointer;   //< owner   a block of BlockNew
    Key: UInt64;      //< owner   what it was made from
  end;

  /// The blocks of one thread.
  TSlots = array of TSlot;

/// Makes Count blocks.
procedure SlotsFill(var Slots: TSlots; Count: Integer; const Mix: TSizeMix; var State: UInt64);
/// Replaces the block of a random slot, Count times: checks and frees it, makes another one.
procedure SlotsReplace(var Slots: TSlots; Count: Int64; const Mix: TSizeMix; var State: UInt64);
/// Checks and frees all blocks, the newest of SlotsFill first.
procedure SlotsFree(var Slots: TSlots; const Mix: TSizeMix);

implementation

procedure SlotFill(var Slot: TSlot; const Mix: TSizeMix; Key: UInt64); inline;
begin
  Slot.Key := Key;
  Slot.Block := BlockNew(Mix, Key);
end;

procedure SlotsFill(var Slots: TSlots; Count: Integer; const Mix: TSizeMix; var State: UInt64);
var
  I: Integer;
begin
  SetLength(Slots, Count);
  for I := 0 to Count - 1 do
    SlotFill(Slots[I], Mix, RandomNext(State));
end;

procedure SlotsReplace(var Slots: TSlots; Count: Int64; const Mix: TSizeMix; var State: UInt64);
var
  Slot: ^TSlot;
  Key: UInt64;
  I: Int64;
begin
  for I := 1 to Count do
  begin
    Key := RandomNext(State);
    Slot := @Slots[RandomIndex(Key, Length(Slots))];
    BlockFree(Mix, Slot^.Block, Slot^.Key);
    SlotFill(Slot^, Mix, Key);
  end;
end;

procedure SlotsFree(var Slots: TSlots; const Mix: TSizeMix);
var
  I: Integer;
begin
  for I := High(Slots) downto 0 do
    BlockFree(Mix, Slots[I].Block, Slots[I].Key);
end;

end.
