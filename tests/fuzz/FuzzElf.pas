/// Cases of damaged executable files whose symbols and line numbers are read.
unit FuzzElf;

{$mode delphi}{$H+}{$pointermath on}

interface

/// Reads the files to damage.
procedure ElfPrepare(const Paths: array of string);
/// Makes one case and reads its symbols; returns what went wrong, or ''.
function ElfCase: string;

implementation

uses
  SysUtils, BaseUnix, LaneMM.Elf, LaneMM.Symbols, LaneMM.Text, FuzzCases;

const
  PageSize = 4096;
  AddressCount = 1000;
  TextLimit = 1 shl 20;
  // Offsets of the file header of 64 bits.
  KindOffset = 16;
  SegmentsOffset = 32;
  SectionsOffset = 40;
  CountsOffset = 54;
  SectionLength = 64;
  Interesting: array[0..11] of UInt64 = (0, 1, 7, $FF, $FFFF, $7FFFFFFF, $FFFFFFFF, $FFFFFFF0,
    UInt64($7FFFFFFFFFFFFFFF), UInt64($8000000000000000), UInt64($FFFFFFFFFFFFFFFF),
    UInt64($FFFFFFFFFFFFF000));

var
  Files: array of string;
  Image: string;
  Path: string;

// ---------------------------------------------------------------------------- damage

function WordOf(Offset: NativeUInt): UInt64;
begin
  Result := 0;
  if Offset + 8 <= NativeUInt(Length(Image)) then
    Move(Image[1 + Offset], Result, 8);
end;

procedure SetWord(Offset: NativeUInt; Value: UInt64; Size: Integer);
begin
  if Offset + 8 <= NativeUInt(Length(Image)) then
    Move(Value, Image[1 + Offset], Size);
end;

function SomeWord: UInt64;
begin
  case Random.Below(4) of
    0: Result := Interesting[Random.Below(Length(Interesting))];
    1: Result := Random.Below(Length(Image) + 1);
    2: Result := UInt64(Length(Image)) - Random.Below(70);
  else
    Result := Random.Next;
  end;
end;

procedure DamageRange(First, Size: NativeUInt);
var
  Turn: Integer;
  Offset: NativeUInt;
begin
  if (Size = 0) or (First >= NativeUInt(Length(Image))) then
    Exit;
  for Turn := 0 to Random.Below(20) do
  begin
    Offset := First + Random.Below(Size);
    if Offset >= NativeUInt(Length(Image)) then
      Continue;
    case Random.Below(3) of
      0: Image[1 + Offset] := AnsiChar(Random.Below(256));
      1: Image[1 + Offset] := AnsiChar(Ord(Image[1 + Offset]) xor (1 shl Random.Below(8)));
    else
      SetWord(Offset and not 3, SomeWord, 4 shl Random.Below(2));
    end;
  end;
end;

function SectionCount: NativeUInt;
begin
  Result := WordOf(CountsOffset + 6) and $FFFF;
end;

// The section header with a number.
function SectionEntry(Index: NativeUInt): NativeUInt;
begin
  Result := WordOf(SectionsOffset) + Index * SectionLength;
end;

procedure DamageContents;
var
  Entry: NativeUInt;
begin
  Entry := SectionEntry(Random.Below(SectionCount + 1));
  DamageRange(WordOf(Entry + 24), WordOf(Entry + 32));
end;

// The file ends with a page, its section headers lie within, and all sections reach to its end
// without a #0.
procedure CutToPages;
var
  Table: string;
  Index, Size, Offset: NativeUInt;
begin
  if (SectionCount = 0) or (SectionCount * SectionLength > PageSize) then
    Exit;
  Table := Copy(Image, 1 + WordOf(SectionsOffset), SectionCount * SectionLength);
  Size := PageSize * (2 + Random.Below(NativeUInt(Length(Image)) div PageSize));
  if NativeUInt(Length(Image)) < Size then
    Image := Image + StringOfChar(#1, Size - NativeUInt(Length(Image)));
  SetLength(Image, Size);
  Offset := PageSize;
  if Random.Below(3) = 0 then
    Offset := Size - NativeUInt(Length(Table));
  Move(Table[1], Image[1 + Offset], Length(Table));
  SetWord(SectionsOffset, Offset, 8);
  if Random.Below(3) = 0 then
  begin
    // The entries are shorter than their fields, or more than there are.
    SetWord(CountsOffset + 4, SectionLength - Random.Below(60), 2);
    SetWord(CountsOffset + 6, 1 + Random.Below(100), 2);
  end;
  for Index := 0 to SectionCount - 1 do
  begin
    Offset := WordOf(SectionEntry(Index) + 24);
    if (Offset >= Size) or (Random.Below(3) = 0) then
      Offset := Size - Random.Below(200);
    SetWord(SectionEntry(Index) + 24, Offset, 8);
    SetWord(SectionEntry(Index) + 32, Size - Offset, 8);
    if Random.Below(2) = 0 then
      SetWord(SectionEntry(Index), Random.Below(Size - Offset + 1), 4);
  end;
  for Index := Size - Random.Below(300) to Size - 1 do
    Image[1 + Index] := OneOf(['.', 's', 'y', #1, #255])[1];
end;

procedure Damage;
begin
  if Length(Image) < 2 * PageSize then
    Exit;
  case Random.Below(8) of
    0: DamageRange(0, Length(Image));
    1: DamageRange(0, 64);
    2: DamageRange(WordOf(SegmentsOffset), 56 * 12);
    3: DamageRange(WordOf(SectionsOffset), SectionCount * SectionLength);
    4: SetLength(Image, Random.Below(Length(Image) + 1));
    5: SetLength(Image, Length(Image) and not (PageSize - 1));
    6: CutToPages;
  else
    DamageContents;
  end;
end;

// ---------------------------------------------------------------------------- reading

// Writes all symbols as a report does; returns how many have a name, and how many a line.
procedure AddAll(var Text: TText; const Symbols: TSymbols; out Named, Lined: Integer);
var
  Index: Integer;
begin
  Named := 0;
  Lined := 0;
  for Index := 0 to Symbols.Count - 1 do
  begin
    Text.Length := 0;
    if Symbols.Items[Index].Routine <> nil then
    begin
      Inc(Named);
      SymbolAddRoutine(Text, @Symbols.Items[Index]);
    end;
    if Symbols.Items[Index].FileName <> nil then
    begin
      Inc(Lined);
      SymbolAddPlace(Text, @Symbols.Items[Index]);
    end;
    SymbolAddOffset(Text, @Symbols.Items[Index]);
    SymbolHas(@Symbols.Items[Index], 'NEVER');
    SymbolIsOurs(@Symbols.Items[Index]);
  end;
end;

// The next mapping of Size bytes lies below a page that cannot be read.
procedure GuardNextMapping(Size: NativeUInt);
var
  Free: PByte;
begin
  Size := (Size + PageSize - 1) and not NativeUInt(PageSize - 1);
  Free := FpMMap(nil, Size + PageSize, PROT_NONE, MAP_PRIVATE or MAP_ANONYMOUS, -1, 0);
  FpMUnMap(Free, Size);
end;

// As a report reads it: from the file that is mapped at the addresses.
procedure ReadSymbols(out Named, Lined: Integer);
var
  Handle, Index: Integer;
  Size: NativeUInt;
  Start: PByte;
  Symbols: TSymbols;
  Elf: TElf;
  Text: TText;
begin
  Handle := FpOpen(Path, O_RDONLY);
  Size := Length(Image) or 1;
  Start := FpMMap(nil, Size, PROT_READ or PROT_EXEC, MAP_PRIVATE, Handle, 0);
  FpClose(Handle);
  SymbolsOpen(Symbols, AddressCount);
  for Index := 0 to AddressCount - 1 do
    SymbolsAdd(Symbols, NativeUInt(Start) + 1 + Random.Below(Size));
  SymbolsSort(Symbols);
  ElfOpen(Elf);
  TextOpen(Text, TextLimit);
  GuardNextMapping(Size);
  ElfResolve(Elf, Symbols);
  AddAll(Text, Symbols, Named, Lined);
  TextClose(Text);
  ElfClose(Elf);
  SymbolsClose(Symbols);
end;

// An undamaged file has names, and one has lines: else nothing would be tested.
procedure ExpectSymbols(out Lined: Integer);
var
  Named: Integer;
begin
  WriteBytes(Path, Image);
  ReadSymbols(Named, Lined);
  WriteLn(Format('of %d addresses of an undamaged file %d have a name, %d a line', [AddressCount, Named,
    Lined]));
  if Named < AddressCount div 20 then
    raise Exception.Create('the symbols of an undamaged file are not found');
end;

procedure ElfPrepare(const Paths: array of string);
var
  Index, Lined, AllLined: Integer;
begin
  AllLined := 0;
  Path := Scratch + 'damaged';
  SetLength(Files, Length(Paths));
  for Index := 0 to High(Paths) do
  begin
    Files[Index] := ReadBytes(Paths[Index]);
    // Position-independent, so that its symbols are looked up wherever it is mapped.
    PWord(@Files[Index][1 + KindOffset])^ := 3;
    Image := Files[Index];
    ExpectSymbols(Lined);
    Inc(AllLined, Lined);
  end;
  if AllLined = 0 then
    raise Exception.Create('the lines of undamaged files are not found');
end;

function ElfCase: string;
var
  Child, Turn, Named, Lined: Integer;
begin
  Image := Files[Random.Below(Length(Files))];
  UniqueString(Image);
  for Turn := 0 to Random.Below(3) do
    Damage;
  WriteBytes(Path, Image);
  Child := StartChild;
  if Child = 0 then
  begin
    ReadSymbols(Named, Lined);
    EndChild(0);
  end;
  Result := Complaint(AwaitChild(Child));
end;

end.
