/// Writes the linker's names of routines in Rust as the program writes them.
//
// Owns:       nothing; a TPass belongs to one call.
// How:        names of the newer form (_R) are read as their grammar goes. Those of the older form (_ZN)
//             are paths with escapes, and end with a hash, which is left out.
// Limits:     lifetimes are left out but for those that stand alone, which read '_. Names that are not
//             ASCII stay in punycode. No texts or structures as constants.
// Callers:    LaneMM.Demangle.
// Source:     Rust RFC 2603 (v0); the Rust reference on symbol mangling.
unit LaneMM.DemangleRust;

{$I ../src/LaneMM.inc}

interface

uses
  LaneMM.DemangleText;

/// Reads a name of the newer form, behind its _R.
procedure RustRead(var Pass: TPass);
/// Reads a name of the older form, behind its _Z. Returns False, and has read nothing, where it is none.
function RustReadOlder(var Pass: TPass): Boolean;

implementation

uses
  LaneMM.Bits;

type
  // A name between the ::, in the text that is read.
  TIdentifier = record
    First: PAnsiChar;
    Count: Cardinal;
    Number: NativeUInt; // tells those of the same name apart
    IsCoded: Boolean;   // in punycode
  end;

procedure ReadType(var Pass: TPass); forward;
procedure ReadPath(var Pass: TPass; IsValue: Boolean); forward;

// ---------------------------------------------------------------------------- numbers, names

// Returns the value of a hexadecimal digit; 16 for another character.
function DigitValue(Digit: AnsiChar): Cardinal;
begin
  case Digit of
    '0'..'9': Result := Ord(Digit) - Ord('0');
    'a'..'f': Result := Ord(Digit) - Ord('a') + 10;
  else
    Result := 16;
  end;
end;

// Reads `_` as 0, `0_` as 1 and so on, in base 62; the lowest bits of a number that is too large: hashes
// of crates are, and are not shown.
function ReadNumber62(var Pass: TPass): NativeUInt;
begin
  Result := 0;
  if Take(Pass, '_') then
    Exit;
  while Sign(Pass) in Digits + ['a'..'z', 'A'..'Z'] do
  begin
    case Pass.Next^ of
      '0'..'9': Result := Result * 62 + Ord(Pass.Next^) - Ord('0');
      'a'..'z': Result := Result * 62 + Ord(Pass.Next^) - Ord('a') + 10;
    else
      Result := Result * 62 + Ord(Pass.Next^) - Ord('A') + 36;
    end;
    Inc(Pass.Next);
  end;
  Inc(Result);
  Want(Pass, '_');
end;

// Reads what tells names apart; 0 without it.
function ReadDisambiguator(var Pass: TPass): NativeUInt;
begin
  Result := 0;
  if Take(Pass, 's') then
    Result := ReadNumber62(Pass) + 1;
end;

procedure ReadIdentifier(var Pass: TPass; out Name: TIdentifier);
begin
  Name.Number := ReadDisambiguator(Pass);
  Name.IsCoded := Take(Pass, 'u');
  Name.Count := 0;
  if not Take(Pass, '0') then // another number may follow
    Name.Count := ReadNumber(Pass);
  Take(Pass, '_');
  Name.First := Pass.Next;
  WantMore(Pass, Name.Count);
  if not Pass.HasFailed then
    Inc(Pass.Next, Name.Count);
end;

procedure AddIdentifier(var Pass: TPass; const Name: TIdentifier);
begin
  if Pass.HasFailed then
    Exit;
  if Name.IsCoded then
    Add(Pass, 'punycode{');
  InsertChars(Pass, Pass.Length, Name.First, Name.Count);
  if Name.IsCoded then
    Add(Pass, '}');
end;

// Reads a reference to an earlier part of the name; returns where to go on behind it, nil after a
// failure. The number of references is limited: each may lead to two others.
function FollowReference(var Pass: TPass): PAnsiChar;
const
  Most = 1000;
var
  Here: PAnsiChar;
  Offset: NativeUInt;
begin
  Here := Pass.Next;
  Want(Pass, 'B');
  Offset := ReadNumber62(Pass);
  Inc(Pass.Followed);
  if (Pass.Followed > Most) or (Offset >= NativeUInt(Here - Pass.Start)) then
    Fail(Pass);
  if Pass.HasFailed then
    Exit(nil);
  Result := Pass.Next;
  Pass.Next := Pass.Start + Offset;
end;

procedure GoOn(var Pass: TPass; Next: PAnsiChar);
begin
  if not Pass.HasFailed then
    Pass.Next := Next;
end;

// ---------------------------------------------------------------------------- constants

procedure AddHex(var Pass: TPass; First: PAnsiChar; Count: Cardinal);
var
  Value: NativeUInt;
  Index: Cardinal;
begin
  if Count > 2 * SizeOf(Value) then
  begin
    Add(Pass, '0x');
    InsertChars(Pass, Pass.Length, First, Count);
    Exit;
  end;
  Value := 0;
  for Index := 1 to Count do
    Value := Value shl 4 or DigitValue(First[Index - 1]);
  AddNumber(Pass, Value);
end;

procedure AddCharacter(var Pass: TPass; First: PAnsiChar; Count: Cardinal);
begin
  Add(Pass, '''\u{');
  InsertChars(Pass, Pass.Length, First, Count);
  Add(Pass, '}''');
end;

// Reads a value of a plain type, in hexadecimal digits.
procedure ReadValue(var Pass: TPass; Kind: AnsiChar);
var
  First: PAnsiChar;
  Count: Cardinal;
begin
  if Take(Pass, 'n') then
    Add(Pass, '-');
  First := Pass.Next;
  while Sign(Pass) in Digits + ['a'..'f'] do
    Inc(Pass.Next);
  Count := Pass.Next - First;
  Want(Pass, '_');
  if Pass.HasFailed then
    Exit;
  case Kind of
    'b':
      if First^ = '0' then
        Add(Pass, 'false')
      else
        Add(Pass, 'true');
    'c': AddCharacter(Pass, First, Count);
  else
    AddHex(Pass, First, Count);
  end;
end;

procedure ReadConstant(var Pass: TPass);
var
  Kind: AnsiChar;
  Next: PAnsiChar;
begin
  Kind := Sign(Pass);
  case Kind of
    'p':
      begin
        Inc(Pass.Next);
        Add(Pass, '_');
      end;
    'B':
      begin
        Next := FollowReference(Pass);
        NestBegin(Pass);
        ReadConstant(Pass);
        NestEnd(Pass);
        GoOn(Pass, Next);
      end;
    'a'..'c', 'h'..'j', 'l'..'o', 's', 't', 'x', 'y':
      begin
        Inc(Pass.Next);
        ReadValue(Pass, Kind);
      end;
  else
    Fail(Pass);
  end;
end;

// ---------------------------------------------------------------------------- types

const
  // By their letters; nil: no plain type.
  PlainTypes: array['a'..'z'] of PAnsiChar = ('i8', 'bool', 'char', 'f64', 'str', 'f32', nil, 'u8',
    'isize', 'usize', nil, 'i32', 'u32', 'i128', 'u128', '_', nil, nil, 'i16', 'u16', '()', '...', nil,
    'i64', 'u64', '!');

type
  TRead = procedure(var Pass: TPass);

// Reads parts of one kind up to E; returns how many.
function ReadAll(var Pass: TPass; Read: TRead; const Between: ShortString): Cardinal;
begin
  Result := 0;
  while not Take(Pass, 'E') and not Pass.HasFailed do
  begin
    if Result > 0 then
      Add(Pass, Between);
    Read(Pass);
    Inc(Result);
  end;
end;

procedure ReadBinder(var Pass: TPass);
begin
  if Take(Pass, 'G') then
    ReadNumber62(Pass);
end;

procedure ReadFunction(var Pass: TPass);
var
  Convention: TIdentifier;
begin
  ReadBinder(Pass);
  if Take(Pass, 'U') then
    Add(Pass, 'unsafe ');
  if Take(Pass, 'K') then
  begin
    Add(Pass, 'extern "');
    if Take(Pass, 'C') then
      Add(Pass, 'C')
    else
    begin
      ReadIdentifier(Pass, Convention);
      AddIdentifier(Pass, Convention);
    end;
    Add(Pass, '" ');
  end;
  Add(Pass, 'fn(');
  ReadAll(Pass, ReadType, ', ');
  Add(Pass, ')');
  if Take(Pass, 'u') then
    Exit;
  Add(Pass, ' -> ');
  ReadType(Pass);
end;

// Reads a trait, with the types that it is bound to: Iterator<Item = u8>.
procedure ReadTrait(var Pass: TPass);
var
  Name: TIdentifier;
  IsBound: Boolean;
begin
  ReadPath(Pass, False);
  IsBound := False;
  while Take(Pass, 'p') do
  begin
    if not IsBound and (Pass.Length > 0) and (Pass.Out[Pass.Length - 1] = '>') then
    begin
      Dec(Pass.Length);
      IsBound := True;
    end;
    if IsBound then
      Add(Pass, ', ')
    else
      Add(Pass, '<');
    IsBound := True;
    ReadIdentifier(Pass, Name);
    AddIdentifier(Pass, Name);
    Add(Pass, ' = ');
    ReadType(Pass);
  end;
  if IsBound then
    Add(Pass, '>');
end;

procedure ReadTraits(var Pass: TPass);
begin
  Add(Pass, 'dyn ');
  ReadBinder(Pass);
  ReadAll(Pass, ReadTrait, ' + ');
  Want(Pass, 'L');
  ReadNumber62(Pass);
end;

// Reads a reference or a pointer to a type.
procedure ReadPointer(var Pass: TPass; const Text: ShortString; HasLifetime: Boolean);
begin
  if HasLifetime and Take(Pass, 'L') then
    ReadNumber62(Pass);
  Add(Pass, Text);
  ReadType(Pass);
end;

// Reads an array or a slice.
procedure ReadArray(var Pass: TPass; HasLength: Boolean);
begin
  Add(Pass, '[');
  ReadType(Pass);
  if HasLength then
  begin
    Add(Pass, '; ');
    ReadConstant(Pass);
  end;
  Add(Pass, ']');
end;

procedure ReadTuple(var Pass: TPass);
begin
  Add(Pass, '(');
  if ReadAll(Pass, ReadType, ', ') = 1 then
    Add(Pass, ',');
  Add(Pass, ')');
end;

// Reads a type that is built of others, whose letter was read.
procedure ReadBuilt(var Pass: TPass; Code: AnsiChar);
begin
  case Code of
    'A', 'S': ReadArray(Pass, Code = 'A');
    'D': ReadTraits(Pass);
    'F': ReadFunction(Pass);
    'O': ReadPointer(Pass, '*mut ', False);
    'P': ReadPointer(Pass, '*const ', False);
    'Q': ReadPointer(Pass, '&mut ', True);
    'R': ReadPointer(Pass, '&', True);
  else
    ReadTuple(Pass);
  end;
end;

procedure ReadType(var Pass: TPass);
var
  Code: AnsiChar;
  Next: PAnsiChar;
begin
  NestBegin(Pass);
  Code := Sign(Pass);
  if (Code in ['a'..'z']) and (PlainTypes[Code] <> nil) then
  begin
    Inc(Pass.Next);
    AddChars(Pass, PlainTypes[Code]);
  end
  else if Code in ['A', 'D', 'F', 'O'..'T'] then
  begin
    Inc(Pass.Next);
    ReadBuilt(Pass, Code);
  end
  else if Code = 'B' then
  begin
    Next := FollowReference(Pass);
    ReadType(Pass);
    GoOn(Pass, Next);
  end
  else
    ReadPath(Pass, False);
  NestEnd(Pass);
end;

// ---------------------------------------------------------------------------- paths

procedure ReadArgument(var Pass: TPass);
begin
  if Take(Pass, 'L') then
  begin
    ReadNumber62(Pass);
    Add(Pass, '''_');
  end
  else if Take(Pass, 'K') then
    ReadConstant(Pass)
  else
    ReadType(Pass);
end;

// Adds a part that the compiler has made: {closure#0}.
procedure AddMade(var Pass: TPass; Space: AnsiChar; const Name: TIdentifier);
begin
  Add(Pass, '::{');
  case Space of
    'C': Add(Pass, 'closure');
    'S': Add(Pass, 'shim');
  else
    InsertChars(Pass, Pass.Length, @Space, 1);
  end;
  if Name.Count > 0 then
    Add(Pass, ':');
  AddIdentifier(Pass, Name);
  Add(Pass, '#');
  AddNumber(Pass, Name.Number);
  Add(Pass, '}');
end;

// Reads a part inside of another path.
procedure ReadInner(var Pass: TPass; IsValue: Boolean);
var
  Space: AnsiChar;
  Name: TIdentifier;
begin
  Space := Sign(Pass);
  if not (Space in ['a'..'z', 'A'..'Z']) then
    Fail(Pass)
  else
    Inc(Pass.Next);
  ReadPath(Pass, IsValue);
  ReadIdentifier(Pass, Name);
  if Space in ['A'..'Z'] then
    AddMade(Pass, Space, Name)
  else if Name.Count > 0 then
  begin
    Add(Pass, '::');
    AddIdentifier(Pass, Name);
  end;
end;

// Reads a path that is not shown.
procedure PassPath(var Pass: TPass);
var
  Length: Cardinal;
begin
  Length := Pass.Length;
  ReadPath(Pass, False);
  Pass.Length := Length;
end;

// Reads a type, and the trait that it is seen as.
procedure ReadSelf(var Pass: TPass; HasPlace, HasTrait: Boolean);
begin
  if HasPlace then
  begin
    ReadDisambiguator(Pass);
    PassPath(Pass);
  end;
  Add(Pass, '<');
  ReadType(Pass);
  if HasTrait then
  begin
    Add(Pass, ' as ');
    ReadPath(Pass, False);
  end;
  Add(Pass, '>');
end;

// Reads a path whose letter was read.
procedure ReadPathOf(var Pass: TPass; Code: AnsiChar; IsValue: Boolean);
var
  Name: TIdentifier;
begin
  case Code of
    'C':
      begin
        ReadIdentifier(Pass, Name);
        AddIdentifier(Pass, Name);
      end;
    'N': ReadInner(Pass, IsValue);
    'M': ReadSelf(Pass, True, False);
    'X': ReadSelf(Pass, True, True);
    'Y': ReadSelf(Pass, False, True);
    'I':
      begin
        ReadPath(Pass, IsValue);
        if IsValue then
          Add(Pass, '::');
        Add(Pass, '<');
        ReadAll(Pass, ReadArgument, ', ');
        Add(Pass, '>');
      end;
  else
    Fail(Pass);
  end;
end;

procedure ReadPath(var Pass: TPass; IsValue: Boolean);
var
  Code: AnsiChar;
  Next: PAnsiChar;
begin
  NestBegin(Pass);
  Code := Sign(Pass);
  if Code = 'B' then
  begin
    Next := FollowReference(Pass);
    ReadPath(Pass, IsValue);
    GoOn(Pass, Next);
  end
  else if Code <> #0 then
  begin
    Inc(Pass.Next);
    ReadPathOf(Pass, Code, IsValue);
  end
  else
    Fail(Pass);
  NestEnd(Pass);
end;

procedure RustRead(var Pass: TPass);
begin
  Pass.Start := Pass.Next;
  ReadPath(Pass, True);
  if Sign(Pass) in ['A'..'Z'] then
    PassPath(Pass); // the crate for which a generic routine was made
  if Sign(Pass) in ['.', '$'] then
    Inc(Pass.Next, TextLength(Pass.Next)); // what the compiler or the linker has added
end;

// ---------------------------------------------------------------------------- the older form

type
  TEscape = record
    Code: string[2];
    Text: AnsiChar;
  end;

const
  Escapes: array[0..7] of TEscape = ((Code: 'SP'; Text: '@'), (Code: 'BP'; Text: '*'),
    (Code: 'RF'; Text: '&'), (Code: 'LT'; Text: '<'), (Code: 'GT'; Text: '>'),
    (Code: 'LP'; Text: '('), (Code: 'RP'; Text: ')'), (Code: 'C'; Text: ','));

// Reads $u7e$ and its like, of a character that is shown; returns whether it was one.
function ReadCharacter(var Pass: TPass): Boolean;
var
  Character: AnsiChar;
begin
  Result := (Pass.Next[1] = 'u') and (Pass.Next[2] in ['2'..'7']) and (DigitValue(Pass.Next[3]) < 16)
    and (Pass.Next[4] = '$');
  if not Result then
    Exit;
  Character := AnsiChar(DigitValue(Pass.Next[2]) shl 4 or DigitValue(Pass.Next[3]));
  InsertChars(Pass, Pass.Length, @Character, 1);
  Inc(Pass.Next, 5);
end;

// Reads $LT$ and its like; returns whether it was one.
function ReadEscape(var Pass: TPass): Boolean;
var
  Index: Cardinal;
begin
  for Index := 0 to High(Escapes) do
    if TextBegins(Pass.Next + 1, Escapes[Index].Code) and (Pass.Next[1 + Length(Escapes[Index].Code)] = '$') then
    begin
      InsertChars(Pass, Pass.Length, @Escapes[Index].Text, 1);
      Inc(Pass.Next, 2 + Length(Escapes[Index].Code));
      Exit(True);
    end;
  Result := ReadCharacter(Pass);
end;

// Reads a part of Count characters.
procedure ReadOlderPart(var Pass: TPass; Count: Cardinal);
var
  Limit: PAnsiChar;
begin
  Limit := Pass.Next + Count;
  if Pass.Length > 0 then
    Add(Pass, '::');
  if (Pass.Next[0] = '_') and (Pass.Next[1] = '$') then
    Inc(Pass.Next); // a name cannot begin with $
  while (Pass.Next < Limit) and not Pass.HasFailed do
    if TakeBoth(Pass, '.', '.') then
      Add(Pass, '::')
    else if (Pass.Next^ <> '$') or not ReadEscape(Pass) then
    begin
      InsertChars(Pass, Pass.Length, Pass.Next, 1);
      Inc(Pass.Next);
    end;
end;

// Returns whether a part is the hash at the end of a path.
function IsHash(Part: PAnsiChar; Count: Cardinal): Boolean;
var
  Index: Cardinal;
begin
  Result := (Count = 17) and (Part[0] = 'h') and (Part[Count] = 'E');
  for Index := 1 to 16 do
    Result := Result and (DigitValue(Part[Index]) < 16);
end;

function RustReadOlder(var Pass: TPass): Boolean;
var
  Start: PAnsiChar;
  Count: Cardinal;
begin
  Start := Pass.Next;
  Result := False;
  if Take(Pass, 'N') then
    while (Sign(Pass) in Digits) and not Result do
    begin
      Count := ReadNumber(Pass);
      WantMore(Pass, Count);
      Result := not Pass.HasFailed and (Pass.Length > 0) and IsHash(Pass.Next, Count);
      if not Result and not Pass.HasFailed then
        ReadOlderPart(Pass, Count);
    end;
  if Result then
    Inc(Pass.Next, TextLength(Pass.Next))
  else
  begin
    Pass.Next := Start;
    Pass.Length := 0;
  end;
end;

end.
