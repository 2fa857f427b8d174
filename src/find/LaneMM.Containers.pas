/// Containers of the run-time library: how many of the items in their block they count.
//
// Owns:       nothing.
// Invariants: known are the lists of Classes, Contnrs and fgl, and dynamic arrays that are fields
//             of objects, by the types of these fields. Those of Generics.Collections clear what
//             they no longer count. What is not certain is no container: its block is used to the
//             end.
// Callers:    as LaneMM.Contents.
// Source:     Free Pascal 3.2.2 and 3.3.1, classesh.inc, contnrs.pp, fgl.pp, rtti.inc, dynarr.inc.
//             Delphi has other layouts.
unit LaneMM.Containers;

{$I ../LaneMM.inc}

interface

const
  /// Length of TPlainClasses.
  PlainClassCount = 256;

type
  /// The block that a container keeps its items in.
  TItems = record
    Block: NativeUInt;    //< owner   its address
    Count: NativeUInt;    //< owner   items that count
    Capacity: NativeUInt; //< owner   items that the block has memory for; 0: an array, whose header
                          //  has the number of its items
    ItemSize: NativeUInt; //< owner   bytes of an item
  end;
  /// Visits items. Context is the caller's.
  TItemsVisitor = procedure(const Items: TItems; Context: Pointer);
  /// Words that are no class with a container, each at its hash; zero at the start.
  TPlainClasses = array[0..PlainClassCount - 1] of NativeUInt;

/// Calls Visitor for the items of the block at Data, Size bytes, if that is an object with
/// containers.
procedure ContainerVisit(Data: PByte; Size: NativeUInt; var Plain: TPlainClasses;
  Visitor: TItemsVisitor; Context: Pointer);
/// Returns the bytes from the end of the items that count to the end of their block, which is at
/// Data and has Size bytes. 0 for a block that does not fit the items.
function ItemsSpare(const Items: TItems; Data: PByte; Size: NativeUInt): NativeUInt;

implementation

uses
  LaneMM.Layout, LaneMM.Bits, LaneMM.Os, LaneMM.Modules, LaneMM.Contents, LaneMM.RtlRecords;

type
  // An object whose containers are looked for.
  TLook = record
    Data: PByte;
    Visitor: TItemsVisitor;
    Context: Pointer;
    Found: Boolean;
  end;

procedure SeeItems(var Look: TLook; const Items: TItems);
begin
  Look.Found := True;
  if Items.Block <> 0 then
    Look.Visitor(Items, Look.Context);
end;

// ---------------------------------------------------------------------------- lists

// Lists by pointer: the address of the items, their number, the capacity; in one of them the size
// of an item. These are the first fields of their classes.
type
  TListFields = record
    Items: NativeUInt;
    Count, Capacity, ItemSize: Integer;
  end;

// Returns the size of an item of the class; 0 for a class that is no list. A program may have
// classes of the same names: the unit tells.
function ListItemSize(const Head: TClassHead; const Fields: TListFields): NativeUInt;
const
  Names: array[0..3] of ShortString = ('TFPList', 'TStringList', 'TFPHashList', 'TFPSList');
  HashList = 2;
  Units: array[0..3] of ShortString = ('Classes', 'Classes', 'Contnrs', 'fgl');
  Sizes: array[0..2] of Byte = (SizeOf(Pointer), 2 * SizeOf(Pointer), 2 * SizeOf(Pointer) + 8);
var
  Name: ShortString;
  Index: Cardinal;
begin
  Result := 0;
  Index := 0;
  if not ClassReadName(Head, Name) then
    Exit;
  while (Index <= High(Names)) and (Name <> Names[Index]) do
    Inc(Index);
  if (Index > High(Names)) or not ClassReadUnit(Head, Name) or (Name <> Units[Index]) then
    Exit;
  if (Index = HashList) and not HashListHasItems then
    Exit;
  if Index <= High(Sizes) then
    Result := Sizes[Index]
  else
    Result := Cardinal(Fields.ItemSize);
end;

// Sees the list of a class whose fields begin at Offset, if it is one.
procedure SeeList(var Look: TLook; const Head: TClassHead; Offset: NativeUInt);
var
  Fields: ^TListFields;
  Items: TItems;
begin
  Fields := Pointer(Look.Data + Offset);
  Items.ItemSize := ListItemSize(Head, Fields^);
  if Items.ItemSize = 0 then
    Exit;
  Items.Block := Fields^.Items;
  Items.Count := Cardinal(Fields^.Count);
  Items.Capacity := Cardinal(Fields^.Capacity);
  if (Items.Count <= Items.Capacity) and (Items.Capacity > 0) then
    SeeItems(Look, Items);
  Look.Found := True;
end;

// ---------------------------------------------------------------------------- arrays

// Sees the field if it is a dynamic array.
procedure SeeField(var Look: TLook; const Field: TRecordTypeField);
const
  DynamicArrayKind = 21;
var
  TypeInfo, Address: NativeUInt;
  Kind: Byte;
  Items: TItems;
begin
  if not ModulesRead(Field.TypeInfo, @TypeInfo, SizeOf(TypeInfo)) then
    Exit;
  TypeInfo := TypeData(TypeInfo, Kind);
  if (TypeInfo = 0) or (Kind <> DynamicArrayKind)
    or not ModulesRead(TypeInfo + RecordTypeFirst, @Items.ItemSize, SizeOf(Items.ItemSize)) then
    Exit;
  Address := PNativeUInt(Look.Data + Field.Offset)^;
  Items.Block := 0;
  if Address <> 0 then
    Items.Block := Address - SizeOf(TArrayHead);
  Items.Capacity := 0;
  SeeItems(Look, Items);
end;

// Sees the managed fields of a class; its objects have Size bytes.
procedure SeeFields(var Look: TLook; TypeInfo, Size: NativeUInt);
const
  MostFields = 1024;
var
  Head: TRecordTypeHead;
  Field: TRecordTypeField;
  Place: NativeUInt;
  Index: NativeInt;
  Kind: Byte;
begin
  Head := Default(TRecordTypeHead);
  Field := Default(TRecordTypeField);
  Place := TypeData(TypeInfo, Kind) + RecordTypeFirst;
  if (Place = RecordTypeFirst) or not ModulesRead(Place, @Head, SizeOf(Head))
    or (Head.Count > MostFields) then
    Exit;
  Inc(Place, SizeOf(Head));
  for Index := 1 to Head.Count do
  begin
    if not ModulesRead(Place, @Field, SizeOf(Field))
      or (NativeUInt(Field.Offset + SizeOf(Pointer)) > Size) then
      Exit;
    SeeField(Look, Field);
    Inc(Place, SizeOf(Field));
  end;
end;

// ---------------------------------------------------------------------------- objects

// Sees the containers that the class and its ancestors declare; all of them are valid.
procedure SeeClass(var Look: TLook; ClassId: NativeUInt);
var
  Head: TClassHead;
  Size, First: NativeUInt;
begin
  while ClassRead(ClassId, Head) do
  begin
    Size := ClassObjectSize(Head);
    if not ClassReadParent(Head, ClassId) then
      Exit;
    First := AlignUp(ClassSize(ClassId), SizeOf(Pointer));
    if First + SizeOf(Pointer) + 2 * SizeOf(Integer) <= Size then
      SeeList(Look, Head, First);
    SeeFields(Look, ClassWord(Head, vmtInitTable), Size);
  end;
end;

procedure ContainerVisit(Data: PByte; Size: NativeUInt; var Plain: TPlainClasses;
  Visitor: TItemsVisitor; Context: Pointer);
var
  Look: TLook;
  ClassId: NativeUInt;
  Place: PNativeUInt;
begin
  if not HasFieldTypes or (Size < SizeOf(ClassId)) then
    Exit;
  if Size < OsPageSize then
    ClassId := PNativeUInt(Data)^
  else if not OsRead(NativeUInt(Data), @ClassId, SizeOf(ClassId)) then
    Exit; // the program may protect pages of blocks that have some
  Place := @Plain[ClassId div CacheLineSize mod PlainClassCount];
  if ClassId = Place^ then
    Exit;
  Look.Data := Data;
  Look.Visitor := Visitor;
  Look.Context := Context;
  Look.Found := False;
  if ClassIsValid(ClassId) and (ClassSize(ClassId) <= Size) then
    SeeClass(Look, ClassId);
  if not Look.Found then
    Place^ := ClassId;
end;

function ItemsSpare(const Items: TItems; Data: PByte; Size: NativeUInt): NativeUInt;
var
  Head: PArrayHead;
  Count, Capacity, First: NativeUInt;
begin
  Result := 0;
  Count := Items.Count;
  Capacity := Items.Capacity;
  First := 0;
  if Capacity = 0 then
  begin
    Head := Pointer(Data);
    First := SizeOf(Head^);
    if (Size < First) or (Head^.References < 1) then
      Exit;
    Capacity := NativeUInt(Head^.Size + ArrayExtra);
    Count := Capacity;
  end;
  if (Items.ItemSize > 0) and (Capacity <= NativeUInt(Size - First) div Items.ItemSize) then
    Result := NativeUInt(Size - First - Count * Items.ItemSize);
end;

end.
