/// Places: the blocks of each group of a snapshot by the backtrace of their allocation.
//
// Owns:       the records in each TPlaces; its memory is the caller's.
// Invariants: a group and a backtrace have one place, until places of one text are joined, and then
//             those of one line. The places of a group are a list; the number of its first one is
//             the group's. As the table fills, new places have the innermost frames of their
//             backtraces alone. Blocks of those that do not fit even so are counted in none, so a
//             group may have more blocks than its places.
// Callers:    any thread; a TPlaces belongs to one. Allocates nothing.
unit LaneMM.Places;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Hooks;

const
  /// Maximum number of places of a snapshot.
  PlaceLimit = 16384;
  /// No place.
  NoPlace = 0;
  /// Frames of a backtrace that has no space in a table of places or groups.
  ShortFrames = 8;

type
  PPlace = ^TPlace;
  /// The blocks of one group that were allocated at one place.
  TPlace = record
    Group: Cardinal;     //< number of the group
    Stack: Cardinal;     //< number of the backtrace, see BacktraceTrim
    Next: Cardinal;      //< next place of the group, or NoPlace
    Line: Cardinal;      //< next place of the same line, or NoPlace
    Count: NativeUInt;   //< number of blocks that count; of the first place of a line, of all
    Bytes: NativeUInt;   //< their bytes
    OwnCount: NativeUInt; //< those of this backtrace alone, once lines are joined
    OwnBytes: NativeUInt; //< likewise
    Number: NativeUInt;  //< the lowest allocation number of the blocks
    Thread: NativeUInt;  //< the thread that allocated that block
    Address: NativeUInt; //< that block; it may be gone by now
    Size: NativeUInt;    //< its bytes
    TextNumber: UInt64;  //< of the text of the backtrace, then of the line that a report names
  end;

  PPlaces = ^TPlaces;
  /// The places of a snapshot, zero at the start.
  TPlaces = record
    Count: Cardinal;                               //< number of places
    LostCount: NativeUInt;                         //< blocks that have none: see LostBacktrace
    Items: array[1..PlaceLimit] of TPlace;         //< the places
    Slots: array[0..PlaceLimit * 2 - 1] of Cardinal; //< hash table of their numbers
  end;

/// Adds Block, of Size bytes, to its place in Group. First is the first place of the group. A block
/// without a backtrace has no place.
procedure PlacesAdd(var Places: TPlaces; Group: Cardinal; var First: Cardinal;
  const Block: TBlockInfo; Size: NativeUInt);
/// Returns the place of a group and a backtrace; nil when there is none.
function PlacesFind(const Places: TPlaces; Group, Stack: Cardinal): PPlace;
/// Joins the places of each group whose TextNumber is the same: the first has all their blocks, the
/// others follow it by Line, with the blocks of their own. PlacesFind finds none after that.
procedure PlacesJoin(var Places: TPlaces);
/// Returns the blocks and bytes of the places from First on.
procedure PlacesSum(const Places: TPlaces; First: Cardinal; out Count, Bytes: NativeUInt);
/// Returns the place with most bytes after Last, or of all if Last is nil, among those from First
/// on that have blocks; nil when there is none.
function PlacesNext(const Places: TPlaces; First: Cardinal; Last: PPlace): PPlace;

implementation

uses
  LaneMM.Bits, LaneMM.BacktraceTable;

const
  SlotCount = PlaceLimit * 2;
  // Places from which on new ones have fewer frames, and how many.
  MostWhole = PlaceLimit div 4 * 3;
  MostShort = PlaceLimit div 16 * 15;
  LeastFrames = 2;

// Returns the number of the slot of the place, or of the free slot for it.
function SlotOf(const Places: TPlaces; Group, Stack: Cardinal): Cardinal;
var
  Number: Cardinal;
begin
  Result := NativeUInt((NativeUInt(Group) shl 20 xor Stack) * SpreadFactor)
    shr (SizeOf(Pointer) * 4) mod SlotCount;
  repeat
    Number := Places.Slots[Result];
    if (Number = NoPlace)
      or (Places.Items[Number].Group = Group) and (Places.Items[Number].Stack = Stack) then
      Exit;
    Result := (Result + 1) mod SlotCount;
  until False;
end;

function PlacesFind(const Places: TPlaces; Group, Stack: Cardinal): PPlace;
var
  Number: Cardinal;
begin
  Number := Places.Slots[SlotOf(Places, Group, Stack)];
  Result := nil;
  if Number <> NoPlace then
    Result := @Places.Items[Number];
end;

// Returns the place of the group and the backtrace, a new one if there is none; nil when the table
// has Limit places.
function PlaceFor(var Places: TPlaces; Group, Stack: Cardinal; var First: Cardinal;
  Limit: Cardinal): PPlace;
var
  Slot: Cardinal;
begin
  if Stack = LostBacktrace then
    Exit(nil);
  Slot := SlotOf(Places, Group, Stack);
  if (Places.Slots[Slot] = NoPlace) and (Places.Count < Limit) then
  begin
    Inc(Places.Count);
    Places.Slots[Slot] := Places.Count;
    Result := @Places.Items[Places.Count];
    Result^.Group := Group;
    Result^.Stack := Stack;
    BacktracePin(Stack);
    Result^.Next := First;
    First := Places.Count;
  end
  else
    Result := PlacesFind(Places, Group, Stack);
end;

procedure PlacesAdd(var Places: TPlaces; Group: Cardinal; var First: Cardinal;
  const Block: TBlockInfo; Size: NativeUInt);
var
  Stack: Cardinal;
  Place: PPlace;
begin
  Stack := BacktraceTrim(Block.Stack);
  if Stack = LostBacktrace then
    Inc(Places.LostCount);
  if (Stack = 0) or (Stack = LostBacktrace) then
    Exit;
  Place := PlaceFor(Places, Group, Stack, First, MostWhole);
  if Place = nil then
    Place := PlaceFor(Places, Group, BacktraceShorten(Stack, ShortFrames), First, MostShort);
  if Place = nil then
    Place := PlaceFor(Places, Group, BacktraceShorten(Stack, LeastFrames), First, PlaceLimit);
  if Place = nil then
    Exit;
  if (Place^.Count = 0) or (Block.Number < Place^.Number) then
  begin
    Place^.Number := Block.Number;
    Place^.Thread := Block.Thread;
    Place^.Address := NativeUInt(Block.Address);
    Place^.Size := Size;
  end;
  Inc(Place^.Count);
  Inc(Place^.Bytes, Size);
end;

// Returns the number of the slot of a place of the group with the same text, or of the free slot.
function TextSlotOf(const Places: TPlaces; Place: PPlace): Cardinal;
var
  Other: PPlace;
begin
  Result := Cardinal(Place^.TextNumber xor Place^.TextNumber shr 32 xor Place^.Group shl 7)
    mod SlotCount;
  while Places.Slots[Result] <> NoPlace do
  begin
    Other := @Places.Items[Places.Slots[Result]];
    if (Other^.Group = Place^.Group) and (Other^.TextNumber = Place^.TextNumber) then
      Exit;
    Result := (Result + 1) mod SlotCount;
  end;
end;

// Adds the blocks of Other, number Number, which has none then and follows Place.
procedure Join(Place, Other: PPlace; Number: Cardinal);
begin
  if Other^.Number < Place^.Number then
  begin
    Place^.Number := Other^.Number;
    Place^.Thread := Other^.Thread;
    Place^.Address := Other^.Address;
    Place^.Size := Other^.Size;
  end;
  Inc(Place^.Count, Other^.Count);
  Inc(Place^.Bytes, Other^.Bytes);
  Other^.Count := 0;
  Other^.Bytes := 0;
  Other^.Line := Place^.Line;
  Place^.Line := Number;
end;

procedure PlacesJoin(var Places: TPlaces);
var
  Number, Slot: Cardinal;
  Place: PPlace;
begin
  FillChar(Places.Slots, SizeOf(Places.Slots), 0);
  for Number := 1 to Places.Count do
  begin
    Place := @Places.Items[Number];
    Place^.OwnCount := Place^.Count;
    Place^.OwnBytes := Place^.Bytes;
    Place^.Line := NoPlace;
    if Place^.Count + Place^.Bytes = 0 then
      Continue;
    Slot := TextSlotOf(Places, Place);
    if Places.Slots[Slot] = NoPlace then
      Places.Slots[Slot] := Number
    else
      Join(@Places.Items[Places.Slots[Slot]], Place, Number);
  end;
end;

procedure PlacesSum(const Places: TPlaces; First: Cardinal; out Count, Bytes: NativeUInt);
begin
  Count := 0;
  Bytes := 0;
  while First <> NoPlace do
  begin
    Inc(Count, Places.Items[First].Count);
    Inc(Bytes, Places.Items[First].Bytes);
    First := Places.Items[First].Next;
  end;
end;

// Returns True if A comes before B: more bytes, or as many and a lower allocation number.
function ComesBefore(A, B: PPlace): Boolean;
begin
  if A^.Bytes <> B^.Bytes then
    Result := A^.Bytes > B^.Bytes
  else if A^.Number <> B^.Number then
    Result := A^.Number < B^.Number
  else
    Result := A^.Stack < B^.Stack;
end;

function PlacesNext(const Places: TPlaces; First: Cardinal; Last: PPlace): PPlace;
var
  Candidate: PPlace;
begin
  Result := nil;
  while First <> NoPlace do
  begin
    Candidate := @Places.Items[First];
    if (Candidate^.Count + Candidate^.Bytes > 0)
      and ((Last = nil) or ComesBefore(Last, Candidate))
      and ((Result = nil) or ComesBefore(Candidate, Result)) then
      Result := Candidate;
    First := Candidate^.Next;
  end;
end;

end.
