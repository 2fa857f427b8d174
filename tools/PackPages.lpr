/// Packs files for LaneMM.PageParts: prints Pascal constants with one zlib stream of all of them.
///
///   PackPages FILE...    in the order of TPagePart; the files hold ASCII
program PackPages;

{$mode delphi}{$H+}

uses
  SysUtils, Classes, zstream;

const
  // The digits of base 85 are the characters from this one on; five of them are four bytes, the lowest
  // byte first.
  FirstDigit = '(';
  Base = 85;
  DigitsPerLine = 90;

var
  Pages, Stream: TMemoryStream;

// Adds the files; prints where each ends.
procedure ReadFiles;
var
  Index: Integer;
  Part: TMemoryStream;
  Limits: string;
begin
  Limits := '';
  Part := TMemoryStream.Create;
  for Index := 1 to ParamCount do
  begin
    Part.LoadFromFile(ParamStr(Index));
    Pages.CopyFrom(Part, 0);
    Limits := Limits + ', ' + IntToStr(Pages.Size);
  end;
  Part.Free;
  for Index := 0 to Pages.Size - 1 do
    if not (PAnsiChar(Pages.Memory)[Index] in [#10, ' '..'~']) then
      raise Exception.CreateFmt('byte %d is no character of ASCII', [Index]);
  WriteLn('  /// Where each part ends, from the start of the first one on.');
  WriteLn('  PartLimits: array[TPagePart] of Cardinal = (', Copy(Limits, 3), ');');
end;

procedure Pack;
var
  Packer: TCompressionStream;
begin
  Packer := TCompressionStream.Create(clmax, Stream);
  Packer.CopyFrom(Pages, 0);
  Packer.Free; // writes the rest
  WriteLn('  /// Bytes of all parts, and of the stream that holds them.');
  WriteLn('  PageSize = ', Pages.Size, ';');
  WriteLn('  StreamSize = ', Stream.Size, ';');
  while Stream.Size mod SizeOf(Cardinal) <> 0 do
    Stream.WriteByte(0);
end;

function DigitsOf(Word: Cardinal): string;
var
  Index: Integer;
begin
  SetLength(Result, 5);
  for Index := 5 downto 1 do
  begin
    Result[Index] := Chr(Ord(FirstDigit) + Word mod Base);
    Word := Word div Base;
  end;
end;

procedure PrintStream;
var
  Digits: string;
  Line, LineCount: Integer;
begin
  Digits := '';
  Stream.Position := 0;
  while Stream.Position < Stream.Size do
    Digits := Digits + DigitsOf(LEtoN(Stream.ReadDWord));
  LineCount := (Length(Digits) + DigitsPerLine - 1) div DigitsPerLine;
  WriteLn('  /// The stream, in digits of base 85 from `', FirstDigit, '` on: five are four bytes.');
  WriteLn('  StreamDigits: array[0..', LineCount - 1, '] of PAnsiChar = (');
  for Line := 0 to LineCount - 1 do
  begin
    Write('    ''', Copy(Digits, Line * DigitsPerLine + 1, DigitsPerLine), '''');
    if Line < LineCount - 1 then
      WriteLn(',');
  end;
  WriteLn(');');
end;

begin
  Pages := TMemoryStream.Create;
  Stream := TMemoryStream.Create;
  ReadFiles;
  Pack;
  PrintStream;
  Stream.Free;
  Pages.Free;
end.
