/// Text that is built outside the heap and written by system calls.
//
// Owns:       nothing; a TText owns its pages until TextClose, backed as it fills.
// Invariants: Length <= Capacity. Text that does not fit is dropped, and IsCut is set.
// Callers:    any thread; a TText belongs to one.
unit LaneMM.Text;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Os, LaneMM.OsFiles;

type
  /// A text under construction.
  TText = record
    Start: PAnsiChar;      //< its first character; nil without memory
    Length: NativeUInt;    //< characters so far
    Capacity: NativeUInt;  //< most characters
    IsCut: Boolean;        //< some text did not fit
  end;

const
  /// Ends a line.
  LineEnd: ShortString = #10;

/// Makes an empty text with space for Capacity characters, a multiple of the page size; for less
/// when the system refuses that much. Returns False when it refuses all: added text is then
/// dropped. The caller owns the text until TextClose.
function TextOpen(out Text: TText; Capacity: NativeUInt): Boolean;
/// Makes an empty text in Size bytes at Buffer, which are #0 past its end. The caller owns them and
/// calls no TextClose.
procedure TextOpenAt(out Text: TText; Buffer: Pointer; Size: NativeUInt);
/// Releases the pages; does nothing for a text without any.
procedure TextClose(var Text: TText);
/// Adds Length characters from Part.
procedure TextAddSome(var Text: TText; Part: PAnsiChar; Length: NativeUInt);
/// Adds a string.
procedure TextAdd(var Text: TText; const Part: ShortString);
/// Adds characters up to #0; nothing for nil.
procedure TextAddChars(var Text: TText; Part: PAnsiChar);
/// Returns the bytes of the character of UTF-8 that Part, ended by #0, begins with; 0: of none that
/// XML 1.0 allows.
function TextCharLength(Part: PAnsiChar): Cardinal;
/// Adds characters up to #0; each byte that belongs to no character of UTF-8 becomes U+FFFD.
procedure TextAddUtf8(var Text: TText; Part: PAnsiChar);
/// TextAddUtf8, escaped for a JSON string, also one inside an HTML script.
procedure TextAddJson(var Text: TText; Part: PAnsiChar);
/// TextAddUtf8, escaped for XML text or an attribute; control characters become dots.
procedure TextAddXml(var Text: TText; Part: PAnsiChar);
/// Returns Length, or less where the first Length bytes of Part end within a character of UTF-8:
/// those of whole characters.
function TextWhole(Part: PAnsiChar; Length: NativeUInt): NativeUInt;
/// Adds a decimal number.
procedure TextAddNumber(var Text: TText; Value: UInt64);
/// Adds a decimal number with commas between groups of three digits.
procedure TextAddGrouped(var Text: TText; Value: UInt64);
/// Adds a hexadecimal number of at least Digits digits.
procedure TextAddHex(var Text: TText; Value: NativeUInt; Digits: Cardinal);
/// Adds Form with the values in place of its codes: `%s` characters up to #0, by their address;
/// `%u` a number, `%2` one of two digits, `%g` one with commas, `%d` one that may be negative, with
/// commas, `%x` a hexadecimal one, `%p` an address; `%b` one of bytes, from 10,000 on in KB, MB or
/// GB with one decimal; `%+` an `s` unless the value before is 1. `%%` is a percent sign.
procedure TextAddForm(var Text: TText; const Form: ShortString; Value: UInt64; Second: UInt64 = 0;
  Third: UInt64 = 0; Fourth: UInt64 = 0; Fifth: UInt64 = 0; Sixth: UInt64 = 0);
/// Returns the bytes of the byte order mark of UTF-8 that a text of Length bytes begins with: 3, 0.
function TextMarkLength(Text: PAnsiChar; Length: NativeUInt): NativeUInt;
/// Returns whether Name, ended by #0, is Whole.
function TextIs(Name: PAnsiChar; const Whole: ShortString): Boolean;
/// Returns whether Name matches Pattern, in which `*` matches any text; ignores case. Both end with
/// #0.
function TextFits(Name, Pattern: PAnsiChar): Boolean;
/// Adds the current folder and `/` in front of Path, which the caller adds, where that is relative.
procedure TextAddFolder(var Text: TText; Path: PAnsiChar);
/// Returns the file name in a path, ended by #0.
function TextFileName(Path: PAnsiChar): PAnsiChar;
/// Writes the text, in one system call if the system takes it whole; returns whether it did all.
function TextWrite(const Text: TText; Handle: TOsFile): Boolean;
/// Prints a line to stderr: `LaneMM: `, Before, Path and After; nothing without memory.
procedure TextSay(const Before: ShortString; Path: PAnsiChar; const After: ShortString);
/// Returns whether the program has passed a routine to call; else prints a line to stderr.
function TextHasCall(Call: Pointer; const Routine: ShortString): Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.Bits;

function TextOpen(out Text: TText; Capacity: NativeUInt): Boolean;
const
  LeastCapacity = 4 * OsPageSize;
begin
  Text := Default(TText);
  Text.Start := OsTakePages(Capacity);
  while (Text.Start = nil) and (Capacity > LeastCapacity) do
  begin
    Capacity := Capacity div 2;
    Text.Start := OsTakePages(Capacity);
  end;
  Result := Text.Start <> nil;
  if Result then
    Text.Capacity := Capacity;
end;

procedure TextOpenAt(out Text: TText; Buffer: Pointer; Size: NativeUInt);
begin
  FillChar(Buffer^, Size, 0);
  Text := Default(TText);
  Text.Start := Buffer;
  Text.Capacity := Size - 1;
end;

procedure TextClose(var Text: TText);
begin
  if Text.Capacity <> 0 then
    OsReleasePages(Text.Start, Text.Capacity);
  Text := Default(TText);
end;

procedure TextAddSome(var Text: TText; Part: PAnsiChar; Length: NativeUInt);
begin
  if Length > NativeUInt(Text.Capacity - Text.Length) then
  begin
    Length := Text.Capacity - Text.Length;
    Text.IsCut := True;
  end;
  Move(Part^, Text.Start[Text.Length], Length);
  Inc(Text.Length, Length);
end;

procedure TextAdd(var Text: TText; const Part: ShortString);
begin
  TextAddSome(Text, @Part[1], Length(Part));
end;

procedure TextAddChars(var Text: TText; Part: PAnsiChar);
begin
  if Part <> nil then
    TextAddSome(Text, Part, TextLength(Part));
end;

// Returns the bytes of a character of UTF-8 that begins with First; 0: none does.
function BytesOf(First: AnsiChar): Cardinal;
begin
  case First of
    #1..#$7F: Result := 1;
    #$C2..#$DF: Result := 2;
    #$E0..#$EF: Result := 3;
    #$F0..#$F4: Result := 4;
  else
    Result := 0;
  end;
end;

// Source: The Unicode Standard, table 3-7.
function TextCharLength(Part: PAnsiChar): Cardinal;
var
  Index: NativeInt;
begin
  Result := BytesOf(Part^);
  for Index := 1 to NativeInt(Result) - 1 do
    if not (Part[Index] in [#$80..#$BF]) then
      Exit(0);
  if Result > 1 then
    case Ord(Part[0]) shl 8 or Ord(Part[1]) of
      // Longer than needed, surrogates, above the last character; U+FFFE, U+FFFF.
      $E080..$E09F, $EDA0..$EDBF, $F080..$F08F, $F490..$F4BF: Result := 0;
      $EFBF: if Part[2] >= #$BE then Result := 0;
    end;
end;

// Adds the character that Part begins with, and moves past it.
procedure AddChar(var Text: TText; var Part: PAnsiChar);
const
  Replacement: ShortString = #$EF#$BF#$BD;
var
  Length: Cardinal;
begin
  Length := TextCharLength(Part);
  if Length > 0 then
    TextAddSome(Text, Part, Length)
  else
  begin
    TextAdd(Text, Replacement);
    Length := 1;
  end;
  Inc(Part, Length);
end;

// Adds Escaped instead of the character that Part begins with, and moves past it.
procedure AddEscaped(var Text: TText; var Part: PAnsiChar; const Escaped: ShortString);
begin
  TextAdd(Text, Escaped);
  Inc(Part);
end;

procedure TextAddUtf8(var Text: TText; Part: PAnsiChar);
begin
  if Part <> nil then
    while Part^ <> #0 do
      AddChar(Text, Part);
end;

procedure TextAddJson(var Text: TText; Part: PAnsiChar);
begin
  while Part^ <> #0 do
    if Part^ in [#1..#31, '"', '\', '<'] then
    begin
      TextAdd(Text, '\u');
      TextAddHex(Text, Ord(Part^), 4);
      Inc(Part);
    end
    else
      AddChar(Text, Part);
end;

procedure TextAddXml(var Text: TText; Part: PAnsiChar);
begin
  while Part^ <> #0 do
    case Part^ of
      '<': AddEscaped(Text, Part, '&lt;');
      '>': AddEscaped(Text, Part, '&gt;');
      '&': AddEscaped(Text, Part, '&amp;');
      '"': AddEscaped(Text, Part, '&quot;');
      #1..#8, #11..#31: AddEscaped(Text, Part, '.');
    else
      AddChar(Text, Part);
    end;
end;

function TextWhole(Part: PAnsiChar; Length: NativeUInt): NativeUInt;
begin
  Result := Length;
  while (Result > 0) and (Part[Result - 1] in [#$80..#$BF]) do
    Dec(Result);
  if (Result > 0) and (BytesOf(Part[Result - 1]) > NativeUInt(Length - Result) + 1) then
    Dec(Result)
  else
    Result := Length;
end;

procedure TextAddNumber(var Text: TText; Value: UInt64);
var
  Digits: ShortString;
begin
  Str(Value, Digits);
  TextAdd(Text, Digits);
end;

procedure TextAddGrouped(var Text: TText; Value: UInt64);
var
  Digits: ShortString;
  Index: Cardinal;
begin
  Str(Value, Digits);
  for Index := 1 to Length(Digits) do
  begin
    if (Index > 1) and (Cardinal(Length(Digits) - Index) mod 3 = 2) then
      TextAdd(Text, ',');
    TextAdd(Text, Digits[Index]);
  end;
end;

procedure TextAddHex(var Text: TText; Value: NativeUInt; Digits: Cardinal);
const
  Signs: array[0..15] of AnsiChar = '0123456789abcdef';
begin
  if (Value > 15) or (Digits > 1) then
    TextAddHex(Text, Value shr 4, Digits - Ord(Digits > 1));
  TextAdd(Text, Signs[Value and 15]);
end;

procedure AddTenths(var Text: TText; Value, UnitSize: UInt64; const UnitName: ShortString);
begin
  Value := (Value * 10 + UnitSize div 2) div UnitSize;
  TextAddGrouped(Text, Value div 10);
  TextAdd(Text, '.');
  TextAddNumber(Text, Value mod 10);
  TextAdd(Text, UnitName);
end;

// `%d` of TextAddForm.
procedure AddSigned(var Text: TText; Value: Int64);
begin
  if Value < 0 then
    TextAdd(Text, '-');
  TextAddGrouped(Text, Abs(Value));
end;

// `%b` of TextAddForm.
procedure AddBytes(var Text: TText; Bytes: UInt64);
begin
  if Bytes < 10000 then
    TextAddForm(Text, '%g byte%+', Bytes)
  else if Bytes < 1 shl 20 then
    AddTenths(Text, Bytes, 1 shl 10, ' KB')
  else if Bytes < 1 shl 30 then
    AddTenths(Text, Bytes, 1 shl 20, ' MB')
  else
    AddTenths(Text, Bytes, 1 shl 30, ' GB');
end;

procedure TextAddForm(var Text: TText; const Form: ShortString; Value, Second, Third, Fourth, Fifth,
  Sixth: UInt64);
var
  Values: array[0..5] of UInt64;
  Index, Next: Cardinal;
begin
  Values[0] := Value;
  Values[1] := Second;
  Values[2] := Third;
  Values[3] := Fourth;
  Values[4] := Fifth;
  Values[5] := Sixth;
  Next := 0;
  Index := 0;
  while Index < Length(Form) do
  begin
    Inc(Index);
    if Form[Index] <> '%' then
    begin
      TextAdd(Text, Form[Index]);
      Continue;
    end;
    Inc(Index);
    case Form[Index] of
      's': TextAddChars(Text, PAnsiChar(NativeUInt(Values[Next])));
      'u': TextAddNumber(Text, Values[Next]);
      '2':
        begin
          TextAddNumber(Text, Values[Next] div 10);
          TextAddNumber(Text, Values[Next] mod 10);
        end;
      'g': TextAddGrouped(Text, Values[Next]);
      'd': AddSigned(Text, Int64(Values[Next]));
      'b': AddBytes(Text, Values[Next]);
      'x': TextAddHex(Text, NativeUInt(Values[Next]), 1);
      'p':
        begin
          TextAdd(Text, '$');
          TextAddHex(Text, NativeUInt(Values[Next]), SizeOf(Pointer) * 2);
        end;
      '%': TextAdd(Text, '%');
    else
      if Values[Next - 1] <> 1 then
        TextAdd(Text, 's');
    end;
    Inc(Next, Ord(not (Form[Index] in ['%', '+'])));
  end;
end;

function TextMarkLength(Text: PAnsiChar; Length: NativeUInt): NativeUInt;
begin
  Result := 0;
  if (Length >= 3) and (Text[0] = #$EF) and (Text[1] = #$BB) and (Text[2] = #$BF) then
    Result := 3;
end;

function TextIs(Name: PAnsiChar; const Whole: ShortString): Boolean;
begin
  Result := TextBegins(Name, Whole) and (Name[Length(Whole)] = #0);
end;

// On a mismatch, lets the last `*` match one character more and tries again.
function TextFits(Name, Pattern: PAnsiChar): Boolean;
var
  AfterStar, NameAtStar: PAnsiChar;
begin
  AfterStar := nil;
  NameAtStar := nil;
  while Name^ <> #0 do
    if Pattern^ = '*' then
    begin
      Inc(Pattern);
      AfterStar := Pattern;
      NameAtStar := Name;
    end
    else if UpCase(Pattern^) = UpCase(Name^) then
    begin
      Inc(Pattern);
      Inc(Name);
    end
    else if AfterStar = nil then
      Exit(False)
    else
    begin
      Pattern := AfterStar;
      Inc(NameAtStar);
      Name := NameAtStar;
    end;
  while Pattern^ = '*' do
    Inc(Pattern);
  Result := Pattern^ = #0;
end;

procedure TextAddFolder(var Text: TText; Path: PAnsiChar);
var
  Folder: TPath;
begin
  if (Path[0] in OsSeparators) or (Path[1] = ':')
    or (OsFolderPath('.', @Folder, SizeOf(Folder)) = 0) then
    Exit;
  TextAddChars(Text, @Folder);
  TextAdd(Text, '/');
end;

function TextFileName(Path: PAnsiChar): PAnsiChar;
begin
  Result := Path;
  while Path^ <> #0 do
  begin
    if Path^ in OsSeparators then
      Result := Path + 1;
    Inc(Path);
  end;
end;

function TextWrite(const Text: TText; Handle: TOsFile): Boolean;
begin
  Result := OsFileWrite(Handle, Text.Start, Text.Length);
end;

procedure TextSay(const Before: ShortString; Path: PAnsiChar; const After: ShortString);
var
  Text: TText;
begin
  TextOpen(Text, 2 * OsPageSize);
  TextAdd(Text, 'LaneMM: ');
  TextAdd(Text, Before);
  TextAddChars(Text, Path);
  TextAdd(Text, After);
  TextAdd(Text, LineEnd);
  TextWrite(Text, OsStandardError);
  TextClose(Text);
end;

function TextHasCall(Call: Pointer; const Routine: ShortString): Boolean;
begin
  Result := Call <> nil;
  if not Result then
    TextSay(Routine, nil, ': no routine to call');
end;

end.
