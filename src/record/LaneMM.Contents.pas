/// Recognizes the contents of a block: an object and its class, a string, a dynamic array.
//
// Owns:       nothing.
// Invariants: only readable memory is read: class records through LaneMM.Modules, blocks by
//             ReadBlock. A block is an object only if its first word points to a class record that
//             is valid in every part, back to TObject, and the block has the size of such an
//             object. Strings and arrays are recognized by their header fields, which other data
//             may match by chance.
// Callers:    any thread, also in an error report, after ModulesLook.
// Source:     FPC 3.2.2, rtl/inc/objpas.inc (UnitName); see LaneMM.RtlRecords.
unit LaneMM.Contents;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Hooks, LaneMM.Text, LaneMM.RtlRecords;

type
  /// The kinds of contents.
  TContentsKind = (coUnknown, coObject, coAnsiString, coUnicodeString, coDynamicArray);

  /// The contents of a block.
  TContents = record
    Kind: TContentsKind;  //< their kind
    ClassId: NativeUInt;  //< of an object, the address of its class record; else 0
    Data: PByte;          //< first character of a string, first element of an array
    Length: NativeUInt;   //< characters or elements
  end;

const
  /// Names of the contents; of an object its class says more.
  ContentsNames: array[TContentsKind] of PAnsiChar = ('data', 'object', 'AnsiString',
    'UnicodeString', 'dynamic array');

/// Recognizes the contents of Block; Kind is coUnknown for any other data. References: the least
/// number that a string or an array has; 0 of a block that is being freed.
procedure ContentsRead(const Block: TBlockInfo; out Contents: TContents;
  References: NativeInt = 1);
/// Returns True if ClassId, any number, is the address of a class record.
function ClassIsValid(ClassId: NativeUInt): Boolean;
/// Reads a class record; returns True if it is valid apart from its name and ancestors.
function ClassRead(ClassId: NativeUInt; out Head: TClassHead): Boolean;
/// Reads the name of the class; returns True if it is valid.
function ClassReadName(const Head: TClassHead; out Name: ShortString): Boolean;
/// Reads the name of the unit that declares the class; returns True if it is valid.
function ClassReadUnit(const Head: TClassHead; out Name: ShortString): Boolean;
/// Returns the address of the data of type information, behind its kind and name, aligned where the
/// processor requires that; 0 for type information 0, and where it cannot be read.
function TypeData(TypeInfo: NativeUInt; out Kind: Byte): NativeUInt;
/// Reads the address of the parent's class record, 0 for none; returns False if it is unreadable.
function ClassReadParent(const Head: TClassHead; out Parent: NativeUInt): Boolean;
/// Returns the bytes of an object of the class; 0 when there is no such class.
function ClassSize(ClassId: NativeUInt): NativeUInt;
/// Finds the routines by which TObject allocates and frees objects; False when there is no such
/// class, or it has its own.
function ClassAllocators(ClassId: NativeUInt; out Allocator, Deallocator: NativeUInt): Boolean;
/// Adds the name as Unit.Class; nothing when there is no such class.
procedure ClassAddName(var Text: TText; ClassId: NativeUInt);
/// Adds the first characters of a string in quotes, as UTF-8, at most Most bytes. What does not
/// print and bytes that are no UTF-8 become dots; three dots follow a text that was cut.
procedure ContentsAddText(var Text: TText; const Contents: TContents; Most: NativeUInt);

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Bits, LaneMM.Os, LaneMM.SizeClasses, LaneMM.Modules;

const
  // Maximum number of ancestors of a class.
  MostAncestors = 64;
  RootName: ShortString = 'TObject';
  // A block is at most this many times as large as its contents, plus MostSlackExtra: strings and
  // arrays have spare capacity, and shrink in place.
  MostSlack = 8;
  MostSlackExtra = 64;
  MostReferences = NativeInt(1) shl 30;
  MostArrayReferences = 65535;
  MostElementSize = 4096;

// ---------------------------------------------------------------------------- classes

function IsNameStart(Sign: AnsiChar): Boolean; inline;
begin
  Result := Sign in ['A'..'Z', 'a'..'z', '_', #128..#255];
end;

// Reads a name; returns True if it is valid. Those of generic classes contain their parameters.
function ReadName(Address: NativeUInt; out Name: ShortString): Boolean;
var
  Index: Cardinal;
begin
  Name := '';
  Result := ModulesRead(Address, @Name, 1) and ModulesRead(Address + 1, @Name[1], Length(Name))
    and (Length(Name) > 0) and IsNameStart(Name[1]);
  for Index := 2 to Length(Name) do
    Result := Result and (IsNameStart(Name[Index])
      or (Name[Index] in ['0'..'9', '$', '<', '>', ',', '.', '&', ' ']));
end;

function ClassReadParent(const Head: TClassHead; out Parent: NativeUInt): Boolean;
begin
  Parent := ClassWord(Head, vmtParent);
  Result := (Parent = 0) or ModulesRead(Parent, @Parent, SizeOf(Parent));
end;

function ClassRead(ClassId: NativeUInt; out Head: TClassHead): Boolean;
var
  First: NativeUInt;
begin
  Head := Default(TClassHead);
  First := ClassId + NativeUInt(ClassFirst);
  Result := (ClassId and (SizeOf(Pointer) - 1) = 0) and ModulesHaveData(First, SizeOf(Head))
    and ModulesRead(First, @Head, SizeOf(Head))
    and (ClassObjectSize(Head) >= SizeOf(Pointer)) and ClassIsMarked(Head, ClassId)
    and ModulesHaveCode(ClassWord(Head, vmtDestroy))
    and ModulesHaveCode(ClassWord(Head, vmtNewInstance))
    and ModulesHaveCode(ClassWord(Head, vmtFreeInstance));
end;

function ClassReadName(const Head: TClassHead; out Name: ShortString): Boolean;
begin
  Result := ReadName(ClassWord(Head, vmtClassName), Name);
end;

function ClassIsValid(ClassId: NativeUInt): Boolean;
var
  Head: TClassHead;
  Name: ShortString;
  Ancestors: Cardinal;
  Size: NativeUInt;
begin
  Size := High(Size);
  for Ancestors := 1 to MostAncestors do
  begin
    if not ClassRead(ClassId, Head) or (ClassObjectSize(Head) > Size)
      or not ClassReadName(Head, Name) or not ClassReadParent(Head, ClassId) then
      Exit(False);
    if ClassId = 0 then
      Exit((Name = RootName) and (ClassObjectSize(Head) <= RootSize));
    Size := ClassObjectSize(Head);
  end;
  Result := False;
end;

function ClassSize(ClassId: NativeUInt): NativeUInt;
var
  Head: TClassHead;
begin
  if ClassRead(ClassId, Head) then
    Result := ClassObjectSize(Head)
  else
    Result := 0;
end;

function ClassAllocators(ClassId: NativeUInt; out Allocator, Deallocator: NativeUInt): Boolean;
var
  Head: TClassHead;
  Ancestors: Cardinal;
begin
  Result := ClassRead(ClassId, Head);
  Allocator := ClassWord(Head, vmtNewInstance);
  Deallocator := ClassWord(Head, vmtFreeInstance);
  for Ancestors := 1 to MostAncestors do
  begin
    if not Result or not ClassReadParent(Head, ClassId) then
      Exit(False);
    if ClassId = 0 then
      Exit;
    Result := ClassRead(ClassId, Head) and (ClassWord(Head, vmtNewInstance) = Allocator)
      and (ClassWord(Head, vmtFreeInstance) = Deallocator);
  end;
end;

function TypeData(TypeInfo: NativeUInt; out Kind: Byte): NativeUInt;
var
  Start: array[0..1] of Byte; // the kind, the length of the name
begin
  Result := 0;
  if (TypeInfo <> 0) and ModulesRead(TypeInfo, @Start, SizeOf(Start)) then
    Result := AlignUp(TypeInfo + SizeOf(Start) + Start[1], TypeInfoAlignment);
  Kind := Start[0];
end;

function ClassReadUnit(const Head: TClassHead; out Name: ShortString): Boolean;
var
  Kind: Byte;
  Data: NativeUInt;
begin
  Data := TypeData(ClassWord(Head, vmtTypeInfo), Kind);
  Result := (Data <> 0) and (Kind = ClassTypeKind) and ReadName(Data + ClassUnitName, Name);
end;

procedure ClassAddName(var Text: TText; ClassId: NativeUInt);
var
  Head: TClassHead;
  Name: ShortString;
begin
  if not ClassRead(ClassId, Head) then
    Exit;
  if ClassReadUnit(Head, Name) then
  begin
    TextAdd(Text, Name);
    TextAdd(Text, '.');
  end;
  if ClassReadName(Head, Name) then
    TextAdd(Text, Name);
end;

// Reads Size bytes of the block; returns False if they are not there now: a large block has no
// pages for a moment while another thread resizes it, and the program may protect those of some.
function ReadBlock(const Block: TBlockInfo; Offset: NativeUInt; Target: Pointer; Size: NativeUInt):
  Boolean;
begin
  Result := True;
  if Block.UsableSize >= OsPageSize then
    Result := OsRead(NativeUInt(Block.Address) + Offset, Target, Size)
  else
    Move(Block.Address[Offset], Target^, Size);
end;

// ---------------------------------------------------------------------------- objects

// Returns True if all words after the first are classes or 0, not all 0: a list of classes.
function IsListOfClasses(const Block: TBlockInfo; Count: NativeUInt): Boolean;
const
  PartWords = 64; // read at once: it may take a system call
var
  Part: array[0..PartWords - 1] of NativeUInt;
  Index, Place, Bytes, Found, ClassId: NativeUInt;
begin
  Found := 0;
  for Index := 1 to Count - 1 do
  begin
    Place := NativeUInt(Index - 1) mod PartWords;
    Bytes := NativeUInt(Count - Index) * SizeOf(ClassId);
    if Bytes > SizeOf(Part) then
      Bytes := SizeOf(Part);
    if (Place = 0) and not ReadBlock(Block, Index * SizeOf(ClassId), @Part, Bytes) then
      Exit(False);
    ClassId := Part[Place];
    if ClassId = 0 then
      Continue;
    if not ClassIsValid(ClassId) then
      Exit(False);
    Inc(Found);
  end;
  Result := Found > 0;
end;

function IsObject(const Block: TBlockInfo; ClassId: NativeUInt): Boolean;
var
  Size: NativeUInt;
begin
  if not ClassIsValid(ClassId) then
    Exit(False);
  Size := ClassSize(ClassId);
  Result := ((Block.UsableSize = Size) // also of a marked block
    or (Block.Kind <> skDebug) and SizeMayBe(Size, Block.UsableSize))
    and not IsListOfClasses(Block, Size div SizeOf(Pointer));
end;

// ---------------------------------------------------------------------------- strings, arrays

// Returns True if a block of Size bytes can have contents of Used bytes.
function IsFitting(Size, Used: NativeUInt): Boolean; inline;
begin
  Result := (Used <= Size)
    and ((Size <= Used * MostSlack + MostSlackExtra) or SizeMayBe(Used, Size));
end;

// Returns True for a code page that a string of one byte per character can have.
function IsCodePage(CodePage: Word): Boolean;
begin
  case CodePage of
    0, 37, 437, 500, 708, 720, 737, 775, 850..869, 874, 932, 936, 949, 950, 1026, 1047,
    1140..1149, 1250..1258, 1361, 10000..10082, 20000..20949, 21025, 21866, 28591..28605,
    50220..52936, 54936, 65000, 65001, 65535:
      Result := True;
  else
    Result := False;
  end;
end;

// References: the least number of references.
function IsString(const Block: TBlockInfo; References: NativeInt; out Contents: TContents): Boolean;
const
  Utf16 = 1200; // or 0, in a program without a widestring manager
var
  Head: TStringHead;
  Bytes: NativeUInt;
  Last: Word;
begin
  Result := False;
  if (Block.UsableSize <= SizeOf(Head)) or not ReadBlock(Block, 0, @Head, SizeOf(Head)) then
    Exit;
  if (Head.References < References) or (Head.References > MostReferences) or (Head.Length < 1)
    or (NativeUInt(Head.Length) > Block.UsableSize) then
    Exit;
  Contents.Data := Block.Address + SizeOf(Head);
  Contents.Length := Head.Length;
  Bytes := NativeUInt(Head.Length) * Head.ElementSize;
  if not IsFitting(Block.UsableSize, SizeOf(Head) + Bytes + Head.ElementSize) then
    Exit;
  if (Head.ElementSize = 1) and IsCodePage(Head.CodePage) then
    Contents.Kind := coAnsiString
  else if (Head.ElementSize = 2) and ((Head.CodePage = Utf16) or (Head.CodePage = 0)) then
    Contents.Kind := coUnicodeString
  else
    Exit;
  Last := 0;
  Result := ReadBlock(Block, SizeOf(Head) + Bytes, @Last, Head.ElementSize) and (Last = 0);
end;

function IsArray(const Block: TBlockInfo; References: NativeInt; out Contents: TContents): Boolean;
var
  Head: TArrayHead;
  ElementSize: NativeUInt;
begin
  Result := False;
  if (Block.UsableSize <= SizeOf(Head)) or not ReadBlock(Block, 0, @Head, SizeOf(Head)) then
    Exit;
  if (Head.References < References) or (Head.References > MostArrayReferences)
    or (Head.Size < 1 - ArrayExtra)
    or (NativeUInt(Head.Size) > NativeUInt(Block.UsableSize - SizeOf(Head) - ArrayExtra)) then
    Exit;
  Contents.Kind := coDynamicArray;
  Contents.Data := Block.Address + SizeOf(Head);
  Contents.Length := NativeUInt(Head.Size) + ArrayExtra;
  ElementSize := NativeUInt(Block.UsableSize - SizeOf(Head)) div Contents.Length;
  Result := (ElementSize <= MostElementSize)
    and IsFitting(Block.UsableSize, SizeOf(Head) + Contents.Length * ElementSize);
end;

// ---------------------------------------------------------------------------- all

// Blocks of C are not recognized: few of them hold what Pascal allocates, and never at their start.
procedure ContentsRead(const Block: TBlockInfo; out Contents: TContents; References: NativeInt);
var
  First: NativeUInt;
begin
  Contents := Default(TContents);
  if Process.IsMalloc or (Block.UsableSize < SizeOf(First))
    or not ReadBlock(Block, 0, @First, SizeOf(First)) then
    Exit;
  if IsObject(Block, First) then
  begin
    Contents.Kind := coObject;
    Contents.ClassId := First;
  end
  else if not IsString(Block, References, Contents)
    and not IsArray(Block, References, Contents) then
    Contents := Default(TContents);
end;

// Reads a character of UTF-16 as UTF-8; none for a half of a pair and for control characters.
procedure ReadWide(Code: Word; out Letter: ShortString);
begin
  Letter := '';
  if (Code < $A0) or (Code shr 11 = $1B) or (Code > $FFFD) then
    Exit;
  Letter[0] := AnsiChar(2 + Ord(Code >= $800));
  Letter[1] := AnsiChar($C0 or Code shr 6);
  if Code >= $800 then
  begin
    Letter[1] := AnsiChar($E0 or Code shr 12);
    Letter[2] := AnsiChar($80 or Code shr 6 and $3F);
  end;
  Letter[Length(Letter)] := AnsiChar($80 or Code and $3F);
end;

// Reads the character at Index, as UTF-8, a dot for one that does not print; returns how many items
// of the string it takes.
function ReadLetter(const Contents: TContents; Index: NativeUInt; out Letter: ShortString):
  Cardinal;
var
  Code: Word;
begin
  Result := 1;
  if Contents.Kind = coUnicodeString then
  begin
    Code := PWord(Contents.Data)[Index];
    ReadWide(Code, Letter);
  end
  else
  begin
    Code := Contents.Data[Index];
    Letter := '';
    // Not the control characters of two bytes.
    if (Code > $C2) or (Code = $C2) and (Contents.Data[Index + 1] >= $A0) then
      Letter[0] := AnsiChar(TextCharLength(PAnsiChar(Contents.Data) + Index));
    Move(Contents.Data[Index], Letter[1], Length(Letter));
    if Length(Letter) > 0 then
      Result := Length(Letter);
  end;
  if Length(Letter) > 0 then
    Exit;
  Letter[0] := #1;
  Letter[1] := '.';
  if (Code >= 32) and (Code < 127) then
    Letter[1] := AnsiChar(Code);
end;

procedure ContentsAddText(var Text: TText; const Contents: TContents; Most: NativeUInt);
var
  Index, Taken: NativeUInt;
  Letter: ShortString;
begin
  TextAdd(Text, '"');
  Index := 0;
  while Index < Contents.Length do
  begin
    Taken := ReadLetter(Contents, Index, Letter);
    if Length(Letter) > Most then
      Break;
    TextAdd(Text, Letter);
    Dec(Most, Length(Letter));
    Inc(Index, Taken);
  end;
  TextAdd(Text, '"');
  if Index < Contents.Length then
    TextAdd(Text, '...');
end;

end.
