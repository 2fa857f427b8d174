/// Reads the values of settings that are numbers.
//
// Owns:       nothing.
// Invariants: each routine reads from Words, behind `=`, and returns False when the value is wrong;
//             Words is then at any of its characters.
// Callers:    any thread.
unit LaneMM.SettingValues;

{$I ../LaneMM.inc}

interface

/// Returns whether Sign ends a setting.
function ValueEnds(Sign: AnsiChar): Boolean; inline;
/// Moves Words to the end of the setting; what is in quotes may have separators.
procedure ValueSkip(var Words: PAnsiChar);
/// Reads decimal digits, which Words moves past; False when there are none. What a number cannot
/// hold becomes the highest.
function ValueDigits(var Words: PAnsiChar; out Number: UInt64): Boolean;
/// Reads a number up to the end of the setting, with K, M or G for binary multiples; what a word
/// cannot hold becomes its highest number.
function ValueNumber(var Words: PAnsiChar; out Value: NativeUInt): Boolean;
/// Reads Name, which means 1, or a number.
function ValueWordOrNumber(var Words: PAnsiChar; const Name: ShortString; out Value: NativeUInt)
  : Boolean;
/// Reads a time into milliseconds: seconds, or with ms, s, m or h behind the number.
function ValueTime(var Words: PAnsiChar; out Ms: NativeUInt): Boolean;
/// Reads `pages`, which is 1, or `sample:N`, which is N and at least 2; 0 or 1 are allowed as well.
function ValueGuard(var Words: PAnsiChar; out Value: NativeUInt): Boolean;
/// Reads two hexadecimal digits up to the end of the setting.
function ValueByte(Words: PAnsiChar; out Value: NativeUInt): Boolean;

implementation

uses
  LaneMM.Bits;

function ValueEnds(Sign: AnsiChar): Boolean;
begin
  Result := Sign in [#0, ',', ' ', #9, #10, #13];
end;

procedure ValueSkip(var Words: PAnsiChar);
var
  IsQuoted: Boolean;
begin
  IsQuoted := False;
  while (Words^ <> #0) and (IsQuoted or not ValueEnds(Words^)) do
  begin
    IsQuoted := IsQuoted xor (Words^ = '"');
    Inc(Words);
  end;
end;

function ValueDigits(var Words: PAnsiChar; out Number: UInt64): Boolean;
begin
  Number := 0;
  Result := Words^ in ['0'..'9'];
  while Words^ in ['0'..'9'] do
  begin
    if Number <= (High(UInt64) - 9) div 10 then
      Number := Number * 10 + UInt64(Ord(Words^) - Ord('0'))
    else
      Number := High(UInt64);
    Inc(Words);
  end;
end;

function ValueNumber(var Words: PAnsiChar; out Value: NativeUInt): Boolean;
var
  Number: UInt64;
  Shift: Cardinal;
begin
  Result := ValueDigits(Words, Number);
  case TextLower(Words^) of
    'k': Shift := 10;
    'm': Shift := 20;
    'g': Shift := 30;
  else
    Shift := 0;
  end;
  if Shift > 0 then
    Inc(Words);
  if Number > UInt64(High(NativeUInt)) shr Shift then
    Value := High(NativeUInt)
  else
    Value := NativeUInt(Number shl Shift);
  Result := Result and ValueEnds(Words^);
end;

function ValueWordOrNumber(var Words: PAnsiChar; const Name: ShortString; out Value: NativeUInt)
  : Boolean;
begin
  Value := 1;
  Result := TextBegins(Words, Name) and ValueEnds(Words[Length(Name)]);
  if not Result then
    Result := ValueNumber(Words, Value);
end;

function ValueTime(var Words: PAnsiChar; out Ms: NativeUInt): Boolean;
const
  Most = High(Cardinal) div 2;
var
  Number: UInt64;
  UnitMs: Cardinal;
begin
  UnitMs := 1000;
  Result := ValueDigits(Words, Number) and (Number <= Most);
  case TextLower(Words^) of
    'm': UnitMs := 60000;
    'h': UnitMs := 3600000;
  end;
  if TextBegins(Words, 'ms') then
  begin
    UnitMs := 1;
    Inc(Words);
  end;
  if TextLower(Words^) in ['s', 'm', 'h'] then
    Inc(Words);
  Number := Number * UnitMs;
  Ms := NativeUInt(Number);
  Result := Result and (Number <= Most) and ValueEnds(Words^);
end;

function ValueGuard(var Words: PAnsiChar; out Value: NativeUInt): Boolean;
const
  Sample: ShortString = 'sample:';
begin
  if not TextBegins(Words, Sample) then
    Exit(ValueWordOrNumber(Words, 'pages', Value) and (Value <= 1));
  Inc(Words, Length(Sample));
  Result := ValueNumber(Words, Value);
  if Value < 2 then
    Value := 2;
end;

function DigitOf(Sign: AnsiChar): Cardinal;
begin
  case Sign of
    '0'..'9': Result := Ord(Sign) - Ord('0');
    'a'..'f': Result := Ord(Sign) - Ord('a') + 10;
    'A'..'F': Result := Ord(Sign) - Ord('A') + 10;
  else
    Result := High(Result);
  end;
end;

function ValueByte(Words: PAnsiChar; out Value: NativeUInt): Boolean;
begin
  Value := 0;
  Result := (DigitOf(Words[0]) <= 15) and (DigitOf(Words[1]) <= 15) and ValueEnds(Words[2]);
  if Result then
    Value := DigitOf(Words[0]) shl 4 + DigitOf(Words[1]);
end;

end.
