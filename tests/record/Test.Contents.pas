/// Tests of LaneMM.Contents and LaneMM.Modules: what is an object, a string, an array, and what
/// only looks like one.
unit Test.Contents;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.RtlRecords, LaneMM.Contents;

type
  TContentsTests = class(TLaneTest)
  strict private
    Contents: TContents;
    procedure Read(P: Pointer);
    function NameOf(Class_: TClass): string;
    function TextOf(Most: NativeUInt): string;
    function NewCopy(const Source; Size: NativeUInt): Pointer;
    procedure IsNoObject(P: Pointer; const What: string);
  public
    procedure SetUp; override;
  published
    procedure ObjectIsOfItsClass;
    procedure ClassIsNamedWithItsUnit;
    procedure GenericClassIsNamed;
    procedure EveryClassInUseIsValid;
    procedure AnsiStringIsSeenWithItsText;
    procedure UnicodeStringIsSeenWithItsText;
    procedure LongTextIsCut;
    procedure LettersOfAnyLanguageArePrinted;
    procedure BinaryTextBecomesDots;
    procedure ArrayIsSeenWithItsLength;
    procedure GrownStringIsAString;
    procedure ZerosAreUnknown;
    procedure PatternsAreUnknown;
    procedure RandomBytesAreNoObjects;
    procedure EveryWordOfTheModuleIsNoClassButClasses;
    procedure ForgedClassInABlockIsNone;
    procedure ForgedClassInTheDataIsNone;
    procedure ClassReferenceInALargerBlockIsNoObject;
    procedure ListOfClassesIsNoObject;
    procedure PointerIntoAClassIsNone;
    procedure UnmappedAddressesAreNoClasses;
    procedure StringWithoutItsEndIsNone;
    procedure StringLongerThanItsBlockIsNone;
    procedure LargeBlockThatIsBeingMovedIsUnknown;
  end;

implementation

uses
  SysUtils, Classes, Contnrs, testregistry, LaneMM.Layout, LaneMM.Hooks, LaneMM.Os,
  LaneMM.OsProcess, LaneMM.Walk, LaneMM.Text, LaneMM.Modules;

type
  TGenericBox<T> = class
    Item: T;
  end;
  TNumbers = TGenericBox<Integer>;

  TVmtCopy = array[0..31] of NativeUInt;

var
  // In the module's data, where classes are.
  ForgedVmt: TVmtCopy;
  InitializedForgery: TVmtCopy = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
    20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32);

procedure TContentsTests.SetUp;
begin
  ModulesLook;
end;

procedure TContentsTests.Read(P: Pointer);
var
  Block: TBlockInfo;
begin
  AssertTrue('a block in use', WalkFind(P, Block));
  ContentsRead(Block, Contents);
end;

function TextToString(const Text: TText): string;
begin
  SetString(Result, Text.Start, Text.Length);
end;

function TContentsTests.NameOf(Class_: TClass): string;
var
  Text: TText;
begin
  TextOpen(Text, OsPageSize);
  ClassAddName(Text, NativeUInt(Class_));
  Result := TextToString(Text);
  TextClose(Text);
end;

function TContentsTests.TextOf(Most: NativeUInt): string;
var
  Text: TText;
begin
  TextOpen(Text, OsPageSize);
  ContentsAddText(Text, Contents, Most);
  Result := TextToString(Text);
  TextClose(Text);
end;

function TContentsTests.NewCopy(const Source; Size: NativeUInt): Pointer;
begin
  Result := GetMem(Size);
  FillChar(Result^, MemSize(Result), 0);
  Move(Source, Result^, Size);
end;

procedure TContentsTests.IsNoObject(P: Pointer; const What: string);
begin
  Read(P);
  AssertTrue(What, Contents.Kind <> coObject);
end;

// ---------------------------------------------------------------------------- objects

procedure TContentsTests.ObjectIsOfItsClass;
var
  Objects: array[0..5] of TObject;
  Item: TObject;
begin
  Objects[0] := TObject.Create;
  Objects[1] := TStringList.Create;
  Objects[2] := TNumbers.Create;
  Objects[3] := Exception.Create('text');
  Objects[4] := TInterfacedObject.Create;
  Objects[5] := TObjectList.Create;
  for Item in Objects do
  begin
    Read(Item);
    AssertTrue(Item.ClassName, Contents.Kind = coObject);
    Same(NativeInt(Item.ClassType), NativeInt(Contents.ClassId), Item.ClassName);
  end;
  for Item in Objects do
    Item.Free;
end;

procedure TContentsTests.ClassIsNamedWithItsUnit;
begin
  AssertEquals('System.TObject', NameOf(TObject));
  AssertEquals('Classes.TStringList', NameOf(TStringList));
  AssertEquals('Test.Contents.TContentsTests', NameOf(TContentsTests));
  AssertEquals('Contnrs.TObjectList', NameOf(TObjectList));
end;

procedure TContentsTests.GenericClassIsNamed;
begin
  AssertEquals(TNumbers.QualifiedClassName, NameOf(TNumbers));
end;

procedure TContentsTests.EveryClassInUseIsValid;
var
  Class_: TClass;
begin
  for Class_ in [TObject, TInterfacedObject, Exception, EOutOfMemory, TThread, TMemoryStream,
    TComponent, TCollection, TContentsTests, TFPHashList] do
  begin
    AssertTrue(Class_.ClassName, ClassIsValid(NativeUInt(Class_)));
    Same(Class_.InstanceSize, ClassSize(NativeUInt(Class_)), Class_.ClassName);
  end;
end;

// ---------------------------------------------------------------------------- strings, arrays

procedure TContentsTests.AnsiStringIsSeenWithItsText;
var
  Text: string;
begin
  Text := 'Item ' + IntToStr(12345);
  Read(PByte(Text) - SizeOf(TStringHead));
  AssertTrue('kind', Contents.Kind = coAnsiString);
  Same(10, Contents.Length, 'length');
  AssertEquals('"Item 12345"', TextOf(20));
end;

procedure TContentsTests.UnicodeStringIsSeenWithItsText;
var
  Text: UnicodeString;
begin
  Text := UnicodeString('Wide ' + IntToStr(678));
  Read(PByte(Text) - SizeOf(TStringHead));
  AssertTrue('kind', Contents.Kind = coUnicodeString);
  Same(8, Contents.Length, 'length');
  AssertEquals('"Wide 678"', TextOf(20));
end;

procedure TContentsTests.LongTextIsCut;
var
  Text: string;
begin
  Text := StringOfChar('x', 100000);
  Read(PByte(Text) - SizeOf(TStringHead));
  AssertEquals('"xxxxx"...', TextOf(5));
end;

procedure TContentsTests.LettersOfAnyLanguageArePrinted;
const
  Letters: RawByteString = 'a'#$C3#$A4#$E2#$82#$AC#$F0#$9F#$98#$80'z'; // of one to four bytes
  Wide: array[0..6] of Word = (97, $E4, $20AC, $D83D, $DE00, $85, 122); // a pair, a control character
var
  Text: string;
  WideText: UnicodeString;
begin
  Text := Letters;
  UniqueString(Text);
  Read(PByte(Text) - SizeOf(TStringHead));
  AssertEquals('"' + Letters + '"', TextOf(11));
  AssertEquals('"a'#$C3#$A4'"...', TextOf(5));
  Text := 'x'#$E4'y'#$C2#$9B'y'#$C3; // Latin-1, a control character, a letter that was cut
  UniqueString(Text);
  Read(PByte(Text) - SizeOf(TStringHead));
  AssertEquals('"x.y..y."', TextOf(20));
  SetLength(WideText, Length(Wide));
  Move(Wide, WideText[1], SizeOf(Wide));
  Read(PByte(WideText) - SizeOf(TStringHead));
  AssertEquals('"a'#$C3#$A4#$E2#$82#$AC'...z"', TextOf(20));
end;

procedure TContentsTests.BinaryTextBecomesDots;
var
  Text: string;
begin
  Text := 'a' + StringOfChar(#1, 3) + 'b';
  Read(PByte(Text) - SizeOf(TStringHead));
  AssertEquals('"a...b"', TextOf(20));
end;

procedure TContentsTests.ArrayIsSeenWithItsLength;
var
  Items: array of Integer;
begin
  SetLength(Items, 1000);
  Read(PByte(Items) - SizeOf(TArrayHead));
  AssertTrue('kind', Contents.Kind = coDynamicArray);
  Same(1000, Contents.Length, 'length');
end;

procedure TContentsTests.GrownStringIsAString;
var
  Text: string;
  Length_: Integer;
begin
  Text := 'y';
  for Length_ := 2 to 5000 do
  begin
    Text := Text + 'y';
    Read(PByte(Text) - SizeOf(TStringHead));
    AssertTrue('kind', Contents.Kind = coAnsiString);
    Same(Length_, Contents.Length, 'length');
  end;
end;

// ---------------------------------------------------------------------------- what only looks so

procedure TContentsTests.ZerosAreUnknown;
var
  P: Pointer;
  Size: NativeUInt;
begin
  for Size in SampleSizes do
  begin
    P := AllocMem(Size);
    Read(P);
    AssertTrue('zeros', Contents.Kind = coUnknown);
    FreeMem(P);
  end;
end;

procedure TContentsTests.PatternsAreUnknown;
var
  P: Pointer;
  Size: NativeUInt;
  Value: Byte;
begin
  for Value in [$01, $7F, $80, $90, $AA, $FF] do
    for Size in SampleSizes do
    begin
      P := GetMem(Size);
      FillChar(P^, MemSize(P), Value);
      Read(P);
      AssertTrue('pattern', Contents.Kind = coUnknown);
      FreeMem(P);
    end;
end;

procedure TContentsTests.RandomBytesAreNoObjects;
var
  Generator: TGenerator;
  Block: array[0..511] of NativeUInt;
  P: Pointer;
  Round, Index: Integer;
begin
  Generator.Start(TestSeed);
  P := GetMem(SizeOf(Block));
  for Round := 1 to 1000 do
  begin
    for Index := 0 to High(Block) do
      Block[Index] := Generator.Next shr Generator.Below(64);
    Move(Block, P^, SizeOf(Block));
    IsNoObject(P, 'random bytes');
  end;
  FreeMem(P);
end;

// Of all words of this module's data only the class records are taken for classes: their names are
// those that the run-time library returns.
procedure TContentsTests.EveryWordOfTheModuleIsNoClassButClasses;
var
  Mapping: TOsMapping;
  Address: NativeUInt;
  Found: Integer;
begin
  AssertTrue(OsFindMapping(NativeUInt(TContentsTests), Mapping));
  Found := 0;
  Address := Mapping.First;
  while Address < Mapping.Limit do
  begin
    if ClassIsValid(Address) then
    begin
      Inc(Found);
      Same(ClassSize(Address), TClass(Address).InstanceSize, 'size');
      AssertEquals(TClass(Address).QualifiedClassName, NameOf(TClass(Address)));
      AssertTrue('descends from TObject', TClass(Address).InheritsFrom(TObject));
    end;
    Inc(Address, SizeOf(Pointer));
  end;
  AtLeast(100, Found, 'classes of this program');
end;

procedure TContentsTests.ForgedClassInABlockIsNone;
var
  Vmt, P: PNativeUInt;
begin
  Vmt := NewCopy(Pointer(TStringList)^, SizeOf(TVmtCopy));
  P := AllocMem(TStringList.InstanceSize);
  P^ := NativeUInt(Vmt);
  IsNoObject(P, 'a class record in a block');
  FreeMem(P);
  FreeMem(Vmt);
end;

// In initialized data, each part of the record wrong in turn.
procedure TContentsTests.ForgedClassInTheDataIsNone;
const
  Checked = [0..3, 12..14];
var
  Part: Integer;
begin
  for Part in Checked do
  begin
    Move(Pointer(TStringList)^, InitializedForgery, SizeOf(InitializedForgery));
    AssertTrue('the copy is right', ClassIsValid(NativeUInt(@InitializedForgery)));
    InitializedForgery[Part] := NativeUInt(@ForgedVmt);
    AssertFalse('part ' + IntToStr(Part), ClassIsValid(NativeUInt(@InitializedForgery)));
    InitializedForgery[Part] := 1;
    AssertFalse('part ' + IntToStr(Part), ClassIsValid(NativeUInt(@InitializedForgery)));
  end;
end;

procedure TContentsTests.ClassReferenceInALargerBlockIsNoObject;
var
  P: PNativeUInt;
begin
  P := AllocMem(TStringList.InstanceSize * 4);
  P^ := NativeUInt(TStringList);
  IsNoObject(P, 'a class reference in a larger block');
  FreeMem(P);
end;

procedure TContentsTests.ListOfClassesIsNoObject;
var
  P: PNativeUInt;
begin
  P := AllocMem(TStringList.InstanceSize);
  P[0] := NativeUInt(TStringList);
  P[1] := NativeUInt(TObjectList);
  P[2] := NativeUInt(TObject);
  IsNoObject(P, 'classes, one after the other');
  FreeMem(P);
end;

procedure TContentsTests.PointerIntoAClassIsNone;
var
  Offset: NativeUInt;
begin
  for Offset := 1 to 200 do
    AssertFalse('offset ' + IntToStr(Offset), ClassIsValid(NativeUInt(TStringList) + Offset)
      and (TClass(NativeUInt(TStringList) + Offset).InstanceSize = TStringList.InstanceSize));
end;

procedure TContentsTests.UnmappedAddressesAreNoClasses;
const
  Addresses: array[0..{$ifdef CPU64} 6 {$else} 4 {$endif}] of NativeUInt = (0, 8, 4096,
    {$ifdef CPU64} NativeUInt($7FFFFFFFFFF8), NativeUInt($800000000000), {$endif}
    High(NativeUInt) - 7, High(NativeUInt) - 4095);
var
  Address: NativeUInt;
begin
  for Address in Addresses do
    AssertFalse('address', ClassIsValid(Address));
end;

procedure TContentsTests.StringWithoutItsEndIsNone;
var
  Text: string;
begin
  Text := 'Item ' + IntToStr(12345);
  (PChar(Text) + Length(Text))^ := 'x';
  Read(PByte(Text) - SizeOf(TStringHead));
  (PChar(Text) + Length(Text))^ := #0;
  AssertTrue('kind', Contents.Kind <> coAnsiString);
end;

procedure TContentsTests.StringLongerThanItsBlockIsNone;
const
  WrongLengths: array[0..5] of NativeInt = (0, -1, 1000, 1000000, High(NativeInt),
    Low(NativeInt));
var
  Text: string;
  Wrong: NativeInt;
begin
  Text := 'Item ' + IntToStr(12345);
  for Wrong in WrongLengths do
  begin
    PNativeInt(PByte(Text) - SizeOf(NativeInt))^ := Wrong;
    Read(PByte(Text) - SizeOf(TStringHead));
    PNativeInt(PByte(Text) - SizeOf(NativeInt))^ := 10;
    AssertTrue('kind', Contents.Kind <> coAnsiString);
  end;
end;

// Another thread resizes it: its pages are gone.
procedure TContentsTests.LargeBlockThatIsBeingMovedIsUnknown;
const
  Size = 1 shl 20;
var
  Block: TBlockInfo;
begin
  Block := Default(TBlockInfo);
  Block.Kind := skLarge;
  Block.UsableSize := Size;
  Block.Address := OsTakePages(Size);
  OsReleasePages(Block.Address, Size);
  ContentsRead(Block, Contents);
  AssertTrue('kind', Contents.Kind = coUnknown);
end;

initialization
  RegisterTest(TContentsTests);
end.
