/// Parcels: debug blocks of one size class that are freed, wait and are used again together.
//
// Owns:       TParcel, TParcels; Debug.SpareParcels.
// Invariants: a parcel belongs to the TDebugCache of one thread, or it is in one list.
// Callers:    ParcelPut, ParcelGet: the thread whose cache the parcel belongs to, or one that has
//             taken it out of a list. The others: any thread that holds Debug.Lock.
// Progress:   wait-free, but for the lock of the callers and a call of the system in ParcelNew.
unit LaneMM.Parcels;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.DebugState, LaneMM.DebugSpans, LaneMM.Patterns;

const
  /// Items between the one that is the next and the one that is fetched: two cache lines.
  ItemsAhead = 5;

/// Adds a block to a parcel that is not full.
procedure ParcelPut(Parcel: PParcel; const Place: TDebugPlace); inline;
/// Returns the bytes that the blocks of a parcel hold.
function ParcelBytes(Parcel: PParcel): NativeUInt;
/// Returns the number of its blocks.
function ParcelCount(Parcel: PParcel): NativeUInt;
/// Takes the oldest block out, and prefetches the record of the next one, its slot as far as it is
/// short, and items of later calls. Of Place it writes Block, Span and Slot. Returns False for nil
/// and for an empty parcel.
function ParcelGet(Parcel: PParcel; out Place: TDebugPlace): Boolean; inline;
/// Returns an empty parcel for Room blocks, at most ParcelLimit, that hold BlockBytes each; nil
/// without memory.
function ParcelNew(Room, BlockBytes: NativeUInt): PParcel;
/// Gives a parcel back whose blocks, if any, are elsewhere now; does nothing for nil.
procedure ParcelDrop(Parcel: PParcel);
/// Adds a parcel to a list.
procedure ParcelsAdd(var List: TParcels; Parcel: PParcel);
/// Takes the oldest parcel out of a list, and prefetches the start of the next one; nil if there is
/// none.
function ParcelsTake(var List: TParcels): PParcel;

implementation

uses
  LaneMM.Os;

const
  // Bytes that parcels are cut from.
  StockBytes = 64 shl 10;

procedure ParcelPut(Parcel: PParcel; const Place: TDebugPlace);
var
  Item: PParcelItem;
begin
  Item := Parcel^.Limit;
  Item^.Block := Place.Block;
  Item^.Span := Place.Span;
  Item^.Slot := Place.Slot;
  Parcel^.Limit := Item + 1;
end;

function ParcelCount(Parcel: PParcel): NativeUInt;
begin
  Result := Parcel^.Limit - Parcel^.First;
end;

function ParcelBytes(Parcel: PParcel): NativeUInt;
begin
  Result := ParcelCount(Parcel) * Parcel^.BlockBytes;
end;

function ParcelGet(Parcel: PParcel; out Place: TDebugPlace): Boolean;
var
  Item: PParcelItem;
begin
  if (Parcel = nil) or (Parcel^.First = Parcel^.Limit) then
    Exit(False);
  Item := Parcel^.First;
  Place.Block := Item^.Block;
  Place.Span := Item^.Span;
  Place.Slot := Item^.Slot;
  Inc(Item);
  Parcel^.First := Item;
  Result := True;
  if Item = Parcel^.Limit then
    Exit;
  PatternFetch(PByte(Item^.Block), Item^.Slot, Parcel^.BlockBytes - SizeOf(TDebugBlock));
  Inc(Item, ItemsAhead);
  PatternFetch(PByte(Item), PByte(Item), 1);
end;

// Cuts new parcels; the rest of the pages stays unused.
procedure MakeStock;
var
  Stock: PParcel;
  Count: Cardinal;
begin
  Stock := OsTakePages(StockBytes);
  if Stock = nil then
    Exit;
  for Count := 1 to StockBytes div SizeOf(TParcel) do
  begin
    ParcelDrop(Stock);
    Inc(Stock);
  end;
end;

function ParcelNew(Room, BlockBytes: NativeUInt): PParcel;
begin
  if Debug.SpareParcels = nil then
    MakeStock;
  Result := Debug.SpareParcels;
  if Result = nil then
    Exit;
  Debug.SpareParcels := Result^.Next;
  Result^.First := @Result^.Items;
  Result^.Limit := @Result^.Items;
  Result^.Full := PParcelItem(@Result^.Items) + Room;
  Result^.BlockBytes := BlockBytes;
end;

procedure ParcelDrop(Parcel: PParcel);
begin
  if Parcel = nil then
    Exit;
  Parcel^.Next := Debug.SpareParcels;
  Debug.SpareParcels := Parcel;
end;

procedure ParcelsAdd(var List: TParcels; Parcel: PParcel);
begin
  Parcel^.Next := nil;
  if List.First = nil then
    List.First := Parcel
  else
    List.Last^.Next := Parcel;
  List.Last := Parcel;
end;

function ParcelsTake(var List: TParcels): PParcel;
begin
  Result := List.First;
  if Result = nil then
    Exit;
  List.First := Result^.Next;
  PatternFetch(PByte(List.First), PByte(List.First), 2 * CacheLineSize);
end;

end.
