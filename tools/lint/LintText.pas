/// The rules for every text file of the repository, whatever its language.
unit LintText;

{$mode delphi}{$H+}

interface

uses
  LintReport;

/// Returns the contents of a file.
function ReadFile(const Path: string): string;
/// Checks blanks, tabs, line ends and machine paths of the file at Path, which messages call
/// FileName. Of a file that is not text, only whether it was built.
procedure CheckText(const Path, FileName: string; Report: TReport);

implementation

uses
  SysUtils, StrUtils, Classes, LintPatterns;

const
  // Directories of somebody's machine; in two parts, so that this file passes its own check.
  MachinePaths: array[0..2] of string = ('/' + 'work/', '/' + 'root/', '/' + 'tmp/bash_jobs');
  TabFiles = '(^|/)Makefile$|(^|/)debian/rules$|\.mk$';
  CrlfFiles = '\.bat$';
  BuiltFiles = '\.(o|ppu|a|so|exe|dll)$';
  PascalFiles = '\.(pas|pp|lpr|inc)$';
  // Free Pascal 3.2.2 cuts all of the strings to the length of the first one.
  ListOfStrings = '\bin \[''[^'']{2,}';
  // What may stand before the first slash of a relative path.
  PathCharacters = ['A'..'Z', 'a'..'z', '0'..'9', '_', '-', '.', ')', '}', '>'];

function ReadFile(const Path: string): string;
var
  Stream: TFileStream;
begin
  Stream := TFileStream.Create(Path, fmOpenRead or fmShareDenyNone);
  try
    SetLength(Result, Stream.Size);
    Stream.ReadBuffer(Pointer(Result)^, Length(Result));
  finally
    Stream.Free;
  end;
end;

function HasMachinePath(const Line: string): Boolean;
var
  MachinePath: string;
  Column: Integer;
begin
  for MachinePath in MachinePaths do
  begin
    Column := Pos(MachinePath, Line);
    if (Column = 1) or (Column > 1) and not (Line[Column - 1] in PathCharacters) then
      Exit(True);
  end;
  Result := False;
end;

procedure CheckLine(const FileName: string; Number: Integer; Line: string; Report: TReport);
begin
  if EndsStr(#13, Line) then
  begin
    if not Matches(CrlfFiles, FileName) then
      Report.Add(ruLineEnds, FileName, Number, 'line ends with CR LF');
    SetLength(Line, Length(Line) - 1);
  end;
  if Matches('[ \t]$', Line) then
    Report.Add(ruTrailingBlanks, FileName, Number, 'trailing blank');
  if (Pos(#9, Line) > 0) and not Matches(TabFiles, FileName) then
    Report.Add(ruTabs, FileName, Number, 'tab');
  if Matches(PascalFiles, FileName) and Matches(ListOfStrings, Line) then
    Report.Add(ruWords, FileName, Number, 'for in [''...'']: the compiler cuts the strings');
  if HasMachinePath(Line) then
    Report.Add(ruMachinePaths, FileName, Number, 'path of a certain machine');
end;

procedure CheckText(const Path, FileName: string; Report: TReport);
var
  Text: string;
  Start, Stop, Number: Integer;
begin
  Text := ReadFile(Path);
  if StartsStr(#127'ELF', Text) or Matches(BuiltFiles, FileName) then
    Report.Add(ruBuiltFiles, FileName, 1, 'built file outside build/');
  if Pos(#0, Text) > 0 then
    Exit;
  Inc(Report.FileCount);
  Start := 1;
  Number := 0;
  while Start <= Length(Text) do
  begin
    Stop := PosEx(#10, Text, Start);
    if Stop = 0 then
      Stop := Length(Text) + 1;
    Inc(Number);
    CheckLine(FileName, Number, Copy(Text, Start, Stop - Start), Report);
    Start := Stop + 1;
  end;
end;

end.
