/// Numbers as people read them, and tables.
unit ToolText;

{$mode delphi}{$H+}

interface

/// Returns a number with commas between groups of three digits.
function Grouped(Value: Int64): string;
/// Returns a number of bytes; from 10,000 on in KB, MB, GB or TB with one decimal.
function BytesText(Bytes: Int64): string;
/// Returns an address: `$`, and twelve digits.
function HexAddress(Address: UInt64): string;
/// Returns Part of Whole as `12.3 %`; 0 of 0.
function Percent(Part, Whole: Double): string;
/// Returns Text with blanks before it, or behind it, up to Width letters. Text is UTF-8.
function Right(const Text: string; Width: Integer): string;
function Left(const Text: string; Width: Integer): string;
/// Returns the first letters of Text, at most Width.
function Start(const Text: string; Width: Integer): string;
/// Returns Text with <, >, & and quotes escaped for XML.
function XmlText(const Text: string): string;
/// Returns whether the standard output is a terminal that obeys the usual control sequences.
function IsTerminal: Boolean;
/// The same of the standard error output.
function IsErrorTerminal: Boolean;
/// Returns whether it may have colours, too: the variable NO_COLOR takes them away.
function HasColours: Boolean;
/// Returns the columns and lines of the terminal; 80 and 24 where there is none.
procedure TerminalSize(out Columns, Lines: Integer);

implementation

uses
  SysUtils, BaseUnix, TermIO;

function Grouped(Value: Int64): string;
var
  Place: Integer;
begin
  Result := IntToStr(Value);
  Place := Length(Result) - 2;
  while Place > 1 + Ord(Value < 0) do
  begin
    Insert(',', Result, Place);
    Dec(Place, 3);
  end;
end;

function BytesText(Bytes: Int64): string;
const
  Names: array[1..4] of string = ('KB', 'MB', 'GB', 'TB');
var
  Value: Double;
  Index: Integer;
begin
  if Abs(Bytes) < 10000 then
    Exit(Format('%s B', [Grouped(Bytes)]));
  Value := Bytes / 1024;
  Index := 1;
  while (Abs(Value) >= 1024) and (Index < High(Names)) do
  begin
    Value := Value / 1024;
    Inc(Index);
  end;
  Result := Format('%.1f %s', [Value, Names[Index]]);
end;

function HexAddress(Address: UInt64): string;
begin
  Result := '$' + LowerCase(HexStr(Address, 12));
end;

function Percent(Part, Whole: Double): string;
begin
  if Whole = 0 then
    Result := '0.0 %'
  else
    Result := Format('%.1f %%', [100 * Part / Whole]);
end;

// Returns whether the byte is not the first one of a letter.
function IsRest(Sign: AnsiChar): Boolean; inline;
begin
  Result := Sign in [#$80..#$BF];
end;

// Returns as many blanks as Text has less letters than Width.
function BlanksFor(const Text: string; Width: Integer): string;
var
  Sign: AnsiChar;
begin
  for Sign in Text do
    Dec(Width, Ord(not IsRest(Sign)));
  Result := '';
  if Width > 0 then
    Result := StringOfChar(' ', Width);
end;

function Right(const Text: string; Width: Integer): string;
begin
  Result := BlanksFor(Text, Width) + Text;
end;

function Left(const Text: string; Width: Integer): string;
begin
  Result := Text + BlanksFor(Text, Width);
end;

function Start(const Text: string; Width: Integer): string;
var
  Index: Integer;
begin
  for Index := 1 to Length(Text) do
  begin
    Dec(Width, Ord(not IsRest(Text[Index])));
    if Width < 0 then
      Exit(Copy(Text, 1, Index - 1));
  end;
  Result := Text;
end;

function XmlText(const Text: string): string;
begin
  Result := StringReplace(Text, '&', '&amp;', [rfReplaceAll]);
  Result := StringReplace(Result, '<', '&lt;', [rfReplaceAll]);
  Result := StringReplace(Result, '>', '&gt;', [rfReplaceAll]);
  Result := StringReplace(Result, '"', '&quot;', [rfReplaceAll]);
end;

function IsTerminalAt(Handle: THandle): Boolean;
var
  Kind: string;
begin
  Kind := GetEnvironmentVariable('TERM');
  Result := (IsATTY(Handle) = 1) and (Kind <> '') and (Kind <> 'dumb');
end;

function IsTerminal: Boolean;
begin
  Result := IsTerminalAt(StdOutputHandle);
end;

function IsErrorTerminal: Boolean;
begin
  Result := IsTerminalAt(StdErrorHandle);
end;

function HasColours: Boolean;
begin
  Result := IsTerminal and (GetEnvironmentVariable('NO_COLOR') = '');
end;

procedure TerminalSize(out Columns, Lines: Integer);
var
  Size: TWinSize;
begin
  Columns := 80;
  Lines := 24;
  if (fpIOCtl(StdOutputHandle, TIOCGWINSZ, @Size) = 0) and (Size.ws_col > 0)
    and (Size.ws_row > 0) then
  begin
    Columns := Size.ws_col;
    Lines := Size.ws_row;
  end;
end;

end.
