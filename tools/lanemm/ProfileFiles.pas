/// Files that lanemm compares: states, leak reports, profiles. Each is a list of names with blocks
/// and bytes.
unit ProfileFiles;

{$mode delphi}{$H+}

interface

uses
  Generics.Collections, fpJson;

type
  /// What a name stands for.
  TAmount = record
    Blocks, Bytes: Int64;  //< Blocks 0: the file does not tell
  end;
  /// What names are: stacks, outermost frame first, with semicolons between, each with its line
  /// behind a tab if the file has lines; what blocks hold, of those in use or of leaks; or size
  /// classes.
  TNameKind = (nkStacks, nkContents, nkLeaks, nkSizes);
  /// Amounts by name.
  TAmounts = class(TDictionary<string, TAmount>)
  public
    Kind: TNameKind;
    /// Returns whether a name has a line.
    function HasLines: Boolean;
  end;

const
  KindNames: array[TNameKind] of string = ('call sites', 'contents of blocks in use', 'leaks',
    'size classes');

/// Reads a file: JSON of `lanemm state` or `lanemm core`, JSON or page of a leak or in-use report, of
/// a profile, folded stacks, or a profile for pprof. Value names the column of a profile; empty:
/// the one that it names itself. Raises ETool for any other file. The caller frees the result.
function ReadAmounts(const FileName, Value: string): TAmounts;
/// Returns the data of a file with profiles, JSON or a page. Raises ETool for any other. The caller
/// frees the result.
function ReadProfileData(const FileName: string): TJSONObject;
/// Returns the index of a column of a profile; -1 without it.
function FindColumn(Profile: TJSONObject; const Name: string): Integer;
/// Returns the same with the lines of a routine as one; frees Amounts.
function WithoutLines(Amounts: TAmounts): TAmounts;
/// Returns the JSON that a text is, which the caller frees. Raises an exception for one that is none, or that is
/// nested too deeply.
function TextToJson(const Text: string): TJSONData;

implementation

uses
  SysUtils, StrUtils, Classes, ZStream, jsonparser, HeapJson, ToolCommands;

procedure Add(Amounts: TAmounts; const Name: string; Blocks, Bytes: Int64);
var
  Amount: TAmount;
begin
  if not Amounts.TryGetValue(Name, Amount) then
    Amount := Default(TAmount);
  Inc(Amount.Blocks, Blocks);
  Inc(Amount.Bytes, Bytes);
  Amounts.AddOrSetValue(Name, Amount);
end;

const
  LineMark = #9;

function TAmounts.HasLines: Boolean;
var
  Name: string;
begin
  for Name in Keys do
    if Pos(LineMark, Name) > 0 then
      Exit(True);
  Result := False;
end;

function WithoutLines(Amounts: TAmounts): TAmounts;
var
  Name, Frame, Plain: string;
begin
  Result := TAmounts.Create;
  Result.Kind := Amounts.Kind;
  for Name in Amounts.Keys do
  begin
    Plain := '';
    for Frame in Name.Split([';']) do
      Plain := Plain + ';' + Copy(Frame, 1, Pos(LineMark, Frame + LineMark) - 1);
    Add(Result, Plain.Substring(1), Amounts[Name].Blocks, Amounts[Name].Bytes);
  end;
  Amounts.Free;
end;

// Returns the name of a frame; Line 0: unknown.
function FrameName(const Routine, FileName: string; Line: Int64): string;
begin
  Result := Routine;
  if Line > 0 then
    Result := Format('%s%s%s:%d', [Routine, LineMark, FileName, Line]);
end;

// ---------------------------------------------------------------------------- JSON

// The parser calls itself for each level: a deeper text would exhaust the stack. It takes strings
// in ' too, though JSON has none.
function TextToJson(const Text: string): TJSONData;
const
  MostLevels = 1000;
var
  Index, Levels: Integer;
  Quote: Char; // that ends the string; #0: in none
begin
  Index := 1;
  Levels := 0;
  Quote := #0;
  while Index <= Length(Text) do
  begin
    case Text[Index] of
      '"', '''':
        if Quote = #0 then
          Quote := Text[Index]
        else if Quote = Text[Index] then
          Quote := #0;
      '\': Inc(Index); // only strings have it
      '[', '{': Inc(Levels, Ord(Quote = #0));
      ']', '}': Dec(Levels, Ord(Quote = #0));
    end;
    if Levels > MostLevels then
      raise Exception.Create('it is nested too deeply');
    Inc(Index);
  end;
  Result := GetJSON(Text);
end;

// Adds each object of a list that has blocks and bytes.
procedure AddList(Amounts: TAmounts; List: TJSONArray);
var
  Index: Integer;
  Item: TJSONObject;
begin
  for Index := 0 to List.Count - 1 do
    if List.Types[Index] = jtObject then
    begin
      Item := List.Objects[Index];
      if Item.Find('name') <> nil then
        Add(Amounts, Item.Get('name', ''), Item.Get('blocks', Int64(0)),
          Item.Get('bytes', Int64(0)))
      else
        Add(Amounts, Format('blocks of %d bytes', [Item.Get('blockSize', Int64(0))]),
          Item.Get('blocks', Int64(0)), Item.Get('bytes', Int64(0)));
    end;
end;

// Adds an object that has blocks and bytes.
procedure AddOne(Amounts: TAmounts; Data: TJSONObject; const Name: string);
begin
  if Data.Find(Name) is TJSONObject then
    Add(Amounts, Name + ' blocks', Data.Objects[Name].Get('blocks', Int64(0)),
      Data.Objects[Name].Get('bytes', Int64(0)));
end;

function FindColumn(Profile: TJSONObject; const Name: string): Integer;
begin
  for Result := 0 to Profile.Arrays['columns'].Count - 1 do
    if Profile.Arrays['columns'].Objects[Result].Strings['name'] = Name then
      Exit;
  Result := -1;
end;

// Adds the call sites of a profile: docs/profile-data.md.
procedure AddSites(Amounts: TAmounts; Profile: TJSONObject; Column: Integer);
var
  BlocksColumn, Index, Frame: Integer;
  Site, Item: TJSONObject;
  Name: string;
  Blocks: Int64;
begin
  Name := Profile.Arrays['columns'].Objects[Column].Strings['name'];
  BlocksColumn := FindColumn(Profile, Name.Replace('_space', '_objects'));
  for Index := 0 to Profile.Arrays['sites'].Count - 1 do
  begin
    Site := Profile.Arrays['sites'].Objects[Index];
    Name := '';
    for Frame := 0 to Site.Arrays['stack'].Count - 1 do
    begin
      Item := Profile.Arrays['frames'].Objects[Site.Arrays['stack'].Integers[Frame]];
      Name := Name + ';'
        + FrameName(Item.Strings['name'], Item.Get('file', ''), Item.Get('line', 0));
    end;
    Blocks := 0;
    if (BlocksColumn >= 0) and (BlocksColumn <> Column) then
      Blocks := Site.Arrays['values'].Int64s[BlocksColumn];
    Add(Amounts, Name.Substring(1), Blocks, Site.Arrays['values'].Int64s[Column]);
  end;
end;

// Reads the last profile that has the column Value; the last of all without one, that of the heap.
procedure ReadProfiles(Amounts: TAmounts; Profiles: TJSONArray; const FileName, Value: string);
var
  Index, Column: Integer;
begin
  Amounts.Kind := nkStacks;
  for Index := Profiles.Count - 1 downto 0 do
  begin
    Column := Profiles.Objects[Index].Integers['main'];
    if Value <> '' then
      Column := FindColumn(Profiles.Objects[Index], Value);
    if Column < 0 then
      Continue;
    AddSites(Amounts, Profiles.Objects[Index], Column);
    Exit;
  end;
  if (Value <> '') and (Profiles.Count > 0) then // without any site there is none
    raise ETool.Create(ecUsage, '%s has no values `%s`; docs/profile-data.md lists them, such as'
      + ' inuse_space', [FileName, Value]);
end;

// Reads JSON. Contents name more than size classes: these stand in for them.
procedure ReadLists(Amounts: TAmounts; Data: TJSONObject; const FileName, Value: string);
const
  InUseTopics: array[0..1] of string = ('inUse', HeldTopic);
begin
  if Data.Find('profiles') is TJSONArray then
    ReadProfiles(Amounts, Data.Arrays['profiles'], FileName, Value)
  else if Data.Find('contents') is TJSONArray then
  begin
    Amounts.Kind := nkContents;
    AddList(Amounts, Data.Arrays['contents']);
  end
  else if Data.Find('groups') is TJSONArray then
  begin
    Amounts.Kind := nkLeaks;
    if MatchStr(Data.Get('topic', ''), InUseTopics) then
      Amounts.Kind := nkContents;
    AddList(Amounts, Data.Arrays['groups']);
  end
  else if Data.Find('classes') is TJSONArray then
  begin
    Amounts.Kind := nkSizes;
    AddList(Amounts, Data.Arrays['classes']);
    AddOne(Amounts, Data, 'large');
    AddOne(Amounts, Data, 'debug');
  end
  else
    raise ETool.Create(ecDamaged, '%s: JSON without `contents`, `groups`, `classes` or `profiles`',
      [FileName]);
end;

function ReadJson(const FileName, Text, Value: string): TAmounts;
var
  Data: TJSONData;
begin
  Data := nil;
  Result := TAmounts.Create;
  try
    Data := TextToJson(Text);
    ReadLists(Result, Data as TJSONObject, FileName, Value);
  except
    Data.Free;
    Result.Free;
    raise;
  end;
  Data.Free;
end;

// Returns the data of a page of LaneMM; empty when Text is none.
function DataOfPage(const Text: string): string;
const
  Begins = '<script type="application/json" id="data">';
  Ends = '</script>';
begin
  Result := '';
  if Pos(Begins, Text) = 0 then
    Exit;
  Result := Text.Substring(Pos(Begins, Text) + Length(Begins) - 1);
  Result := Result.Substring(0, Result.IndexOf(Ends));
end;

// ---------------------------------------------------------------------------- folded stacks

function ReadFolded(const FileName, Text: string): TAmounts;
var
  Lines: TStringList;
  Line: string;
  Bytes: Int64;
  Place: Integer;
begin
  Result := TAmounts.Create;
  Lines := TStringList.Create;
  Lines.Text := Text;
  for Line in Lines do
  begin
    Place := Line.LastIndexOf(' ') + 1;
    if (Place > 1) and TryStrToInt64(Copy(Line, Place + 1, MaxInt), Bytes) then
      Add(Result, Copy(Line, 1, Place - 1), 0, Bytes)
    else if Trim(Line) <> '' then
    begin
      Lines.Free;
      Result.Free;
      raise ETool.Create(ecDamaged, '%s is no JSON, no page, no profile for pprof, and no folded'
        + ' stacks', [FileName]);
    end;
  end;
  Lines.Free;
end;

// ---------------------------------------------------------------------------- pprof

type
  // A message of a protocol buffer.
  TMessage = record
    Bytes: PByte;
    Size, Place: NativeInt;
  end;
  TNumbers = TArray<Int64>;
  // A routine or a line of one: indexes of texts, or an identifier and the line.
  TPair = record
    First, Second: Int64;
  end;
  TPairs = TArray<TPair>;

  // The parts of a profile that are read; numbers are indexes of texts or identifiers.
  TPprof = class
  public
    Texts: TStringList;
    ValueNames: TNumbers;
    DefaultValue: Int64;
    Functions: TDictionary<Int64, TPair>;   // name and file of a function
    Locations: TDictionary<Int64, TPairs>;  // functions and lines of a location, innermost first
    constructor Create;
    destructor Destroy; override;
    procedure ReadAll(const All: TMessage);
    procedure ReadLocation(Part: TMessage);
    procedure ReadFunction(Part: TMessage);
    procedure AddSample(Part: TMessage; Column: Integer; Amounts: TAmounts);
    function ColumnOf(const FileName, Value: string): Integer;
    function BlocksColumn(Column: Integer): Integer;
    function NameOfLocation(Id: Int64): string;
  end;

const
  // Fields of Profile, as in proto/profile.proto of pprof.
  SampleTypeField = 1;
  SampleField = 2;
  LocationField = 4;
  FunctionField = 5;
  TextField = 6;
  DefaultField = 14;

  CutOff = 'it is cut off';

function ReadVarint(var Message: TMessage): UInt64;
var
  Shift: Integer;
begin
  Result := 0;
  Shift := 0;
  repeat
    if Message.Place >= Message.Size then
      raise Exception.Create(CutOff);
    Result := Result or UInt64(Message.Bytes[Message.Place] and $7F) shl Shift;
    Inc(Shift, 7);
    Inc(Message.Place);
  until Message.Bytes[Message.Place - 1] < $80;
end;

// Reads the next field: its number, its value, or its bytes as a message. False at the end.
function ReadField(var Message: TMessage; out Field: Integer; out Value: UInt64;
  out Part: TMessage): Boolean;
var
  Key: UInt64;
begin
  Part := Default(TMessage);
  Value := 0;
  Result := Message.Place < Message.Size;
  if not Result then
    Exit;
  Key := ReadVarint(Message);
  Field := Key shr 3;
  case Key and 7 of
    0: Value := ReadVarint(Message);
    2:
      begin
        Part.Size := ReadVarint(Message);
        Part.Bytes := Message.Bytes + Message.Place;
        if (Part.Size < 0) or (Part.Size > Message.Size - Message.Place) then
          raise Exception.Create(CutOff);
        Inc(Message.Place, Part.Size);
      end;
  else
    raise Exception.Create('it has a field of unknown kind');
  end;
end;

// Adds the numbers of a repeated field, packed or one of them.
procedure AddNumbers(var Numbers: TNumbers; Value: UInt64; Part: TMessage);
begin
  if Part.Bytes = nil then
    Insert(Int64(Value), Numbers, Length(Numbers));
  while Part.Place < Part.Size do
    Insert(Int64(ReadVarint(Part)), Numbers, Length(Numbers));
end;

constructor TPprof.Create;
begin
  inherited Create;
  Texts := TStringList.Create;
  Functions := TDictionary<Int64, TPair>.Create;
  Locations := TDictionary<Int64, TPairs>.Create;
end;

destructor TPprof.Destroy;
begin
  Locations.Free;
  Functions.Free;
  Texts.Free;
  inherited Destroy;
end;

procedure TPprof.ReadFunction(Part: TMessage);
var
  Field: Integer;
  Value: UInt64;
  Inner: TMessage;
  Id: Int64;
  Names: TPair;
begin
  Id := 0;
  Names := Default(TPair);
  while ReadField(Part, Field, Value, Inner) do
    case Field of
      1: Id := Value;
      2: Names.First := Value;
      4: Names.Second := Value;
    end;
  Functions.AddOrSetValue(Id, Names);
end;

procedure TPprof.ReadLocation(Part: TMessage);
var
  Field, LineField: Integer;
  Value, LineValue: UInt64;
  Inner, Rest: TMessage;
  Id: Int64;
  Line: TPair;
  Lines: TPairs;
begin
  Id := 0;
  Lines := nil;
  while ReadField(Part, Field, Value, Inner) do
    case Field of
      1: Id := Value;
      4:
        begin
          Line := Default(TPair);
          while ReadField(Inner, LineField, LineValue, Rest) do
            case LineField of
              1: Line.First := LineValue;
              2: Line.Second := LineValue;
            end;
          Insert(Line, Lines, Length(Lines));
        end;
    end;
  Locations.AddOrSetValue(Id, Lines);
end;

procedure TPprof.ReadAll(const All: TMessage);
var
  Message, Part, Inner: TMessage;
  Field, PartField: Integer;
  Value, PartValue: UInt64;
  Text: string;
begin
  Message := All;
  while ReadField(Message, Field, Value, Part) do
    case Field of
      SampleTypeField:
        while ReadField(Part, PartField, PartValue, Inner) do
          if PartField = 1 then
            Insert(Int64(PartValue), ValueNames, Length(ValueNames));
      LocationField: ReadLocation(Part);
      FunctionField: ReadFunction(Part);
      TextField:
        begin
          SetString(Text, PAnsiChar(Part.Bytes), Part.Size);
          Texts.Add(Text);
        end;
      DefaultField: DefaultValue := Value;
    end;
end;

function TPprof.ColumnOf(const FileName, Value: string): Integer;
var
  Index: Integer;
  Names: string;
begin
  Names := '';
  for Index := 0 to High(ValueNames) do
  begin
    if (Value = '') and (ValueNames[Index] = DefaultValue)
      or (Texts[ValueNames[Index]] = Value) then
      Exit(Index);
    Names := Names + ' ' + Texts[ValueNames[Index]];
  end;
  if ValueNames = nil then
    raise Exception.Create(CutOff);
  if Value = '' then
    Exit(High(ValueNames));
  raise ETool.Create(ecUsage, '%s has no values `%s`, but%s', [FileName, Value, Names]);
end;

// Returns the column of counts for one of bytes: inuse_objects for inuse_space; -1: none.
function TPprof.BlocksColumn(Column: Integer): Integer;
var
  Wanted: string;
begin
  Wanted := StringReplace(Texts[ValueNames[Column]], '_space', '_objects', []);
  for Result := 0 to High(ValueNames) do
    if (Result <> Column) and (Texts[ValueNames[Result]] = Wanted) then
      Exit;
  Result := -1;
end;

function TPprof.NameOfLocation(Id: Int64): string;
var
  Lines: TPairs;
  Names: TPair;
  Index: Integer;
begin
  Result := '';
  if Locations.TryGetValue(Id, Lines) then
    for Index := High(Lines) downto 0 do
      if Functions.TryGetValue(Lines[Index].First, Names) then
        Result := Result + ';'
          + FrameName(Texts[Names.First], Texts[Names.Second], Lines[Index].Second);
  if Result = '' then
    Result := ';?';
end;

procedure TPprof.AddSample(Part: TMessage; Column: Integer; Amounts: TAmounts);
var
  Field, Index, Blocks: Integer;
  Value: UInt64;
  Inner: TMessage;
  Stack, Values: TNumbers;
  Name: string;
begin
  Stack := nil;
  Values := nil;
  while ReadField(Part, Field, Value, Inner) do
    case Field of
      1: AddNumbers(Stack, Value, Inner);
      2: AddNumbers(Values, Value, Inner);
    end;
  if Column > High(Values) then
    Exit;
  Name := '';
  for Index := High(Stack) downto 0 do
    Name := Name + NameOfLocation(Stack[Index]);
  Delete(Name, 1, 1);
  Blocks := BlocksColumn(Column);
  if (Blocks >= 0) and (Blocks <= High(Values)) then
    Add(Amounts, Name, Values[Blocks], Values[Column])
  else
    Add(Amounts, Name, 0, Values[Column]);
end;

function ReadPprof(const FileName, Text, Value: string): TAmounts;
var
  Profile: TPprof;
  All, Message, Part: TMessage;
  Field, Column: Integer;
  Number: UInt64;
begin
  Profile := TPprof.Create;
  Result := TAmounts.Create;
  try
    All := Default(TMessage);
    All.Bytes := Pointer(Text);
    All.Size := Length(Text);
    Profile.ReadAll(All);
    Column := Profile.ColumnOf(FileName, Value);
    Message := All;
    while ReadField(Message, Field, Number, Part) do
      if Field = SampleField then
        Profile.AddSample(Part, Column, Result);
  except
    Result.Free;
    Profile.Free;
    raise;
  end;
  Profile.Free;
end;

// ---------------------------------------------------------------------------- files

function ReadFile(const FileName: string): string;
var
  Source: TStringStream;
begin
  if not FileExists(FileName) then
    raise ETool.Create(ecFailed, 'there is no file %s', [FileName]);
  Source := TStringStream.Create('');
  Source.LoadFromFile(FileName);
  Result := Source.DataString;
  Source.Free;
end;

// Unpacks a file whose contents are Packed. They end with the number of bytes that they stand for.
function ReadGzip(const FileName, Contents: string): string;
const
  EndBytes = SizeOf(Cardinal);
var
  Source: TGZFileStream;
  Buffer: array[0..65535] of AnsiChar;
  Count: Integer;
  Part: string;
begin
  Result := '';
  Source := TGZFileStream.Create(FileName, gzOpenRead);
  repeat
    Count := Source.Read(Buffer, SizeOf(Buffer));
    if Count > 0 then
    begin
      SetString(Part, Buffer, Count);
      Result := Result + Part;
    end;
  until Count <= 0;
  Source.Free;
  if (Length(Contents) < EndBytes) or (Cardinal(Length(Result))
    <> PCardinal(@Contents[Length(Contents) - EndBytes + 1])^) then
    raise Exception.Create(CutOff);
end;

function ReadAmounts(const FileName, Value: string): TAmounts;
const
  GzipMagic = #$1F#$8B;
var
  Text: string;
begin
  Text := ReadFile(FileName);
  try
    if Text.StartsWith(GzipMagic) then
      Result := ReadPprof(FileName, ReadGzip(FileName, Text), Value)
    else if DataOfPage(Text) <> '' then
      Result := ReadJson(FileName, DataOfPage(Text), Value)
    else if TrimLeft(Text).StartsWith('{') then
      Result := ReadJson(FileName, Text, Value)
    else
      Result := ReadFolded(FileName, Text);
  except
    on ETool do
      raise;
    on Error: Exception do
      raise ETool.Create(ecDamaged, '%s is damaged: %s', [FileName, Error.Message]);
  end;
end;

function ReadProfileData(const FileName: string): TJSONObject;
var
  Text: string;
  Data: TJSONData;
begin
  Text := ReadFile(FileName);
  if DataOfPage(Text) <> '' then
    Text := DataOfPage(Text);
  Data := nil;
  try
    Data := TextToJson(Text);
  except
    on Exception do ; // it is no JSON
  end;
  if not (Data is TJSONObject) or not (TJSONObject(Data).Find('profiles') is TJSONArray) then
  begin
    Data.Free;
    raise ETool.Create(ecDamaged, '%s is no JSON and no page of profiles', [FileName]);
  end;
  Result := TJSONObject(Data);
end;

end.
