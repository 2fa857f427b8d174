/// The values of the enumerations that LaneMM.pas exports: an include file that is made of them.
unit LintConstants;

{$mode delphi}{$H+}

interface

uses
  LintProject, LintReport;

/// Returns what src/LaneMM.Constants.inc has to hold; empty without a src/LaneMM.pas.
function ConstantsText(Project: TProject): string;
/// Checks that it does.
procedure CheckConstants(const Root: string; Project: TProject; Report: TReport);

implementation

uses
  SysUtils, Classes, LintPatterns, LintSource, LintText;

const
  DoorName = 'LaneMM';
  FileName = 'src/LaneMM.Constants.inc';
  Head = '// Made by `make constants` of the enumerations that LaneMM.pas exports, so that a program names'#10
    + '// this unit alone.'#10;

// Adds the values of the enumeration TypeName, if Source declares it.
procedure AddValues(Source: TSource; const TypeName: string; Values: TStrings);
var
  Line: Integer;
  Text: string;
begin
  Line := 1;
  while (Line <= Source.LineCount)
    and not Matches('^  ' + TypeName + ' = \(', Source.Code[Line]) do
    Inc(Line);
  if Line > Source.LineCount then
    Exit;
  Text := Copy(Source.Code[Line], Pos('(', Source.Code[Line]) + 1);
  while Pos(')', Text) = 0 do
  begin
    Inc(Line);
    Text := Text + Source.Code[Line];
  end;
  for Text in Copy(Text, 1, Pos(')', Text) - 1).Split([',']) do
    Values.Add(Trim(Text));
end;

// Returns the constants for one type of the door; empty for one that is no enumeration.
function ConstantsOf(Project: TProject; Door: TSource; const Exported, TypeName: string): string;
const
  MostColumns = 100;
var
  Use: TUse;
  Values: TStringList;
  Value, Line, Constant: string;
begin
  Result := '';
  Line := '';
  Values := TStringList.Create;
  for Use in Door.UsedUnits do
    if Project.Find(Use.Name) <> nil then
    begin
      AddValues(Project.Find(Use.Name).Source, TypeName, Values);
      for Value in Values do
      begin
        Constant := Format(' %s = %s.%0:s;', [Value, Use.Name]);
        if Length(Line + Constant) > MostColumns then
        begin
          Result := Result + Line + #10;
          Line := '';
        end;
        if Line = '' then
          Line := ' ';
        Line := Line + Constant;
      end;
      Values.Clear;
    end;
  Values.Free;
  if Line <> '' then
    Result := Result + Line + #10;
  if Result <> '' then
    Result := Format(#10'  /// The values of %s.'#10, [Exported]) + Result;
end;

function ConstantsText(Project: TProject): string;
const
  Alias = '^  (TLaneMM_\w+) = \w+;';
  Aliased = '^  TLaneMM_\w+ = (\w+);';
var
  Door: TSource;
  Line: Integer;
begin
  Result := '';
  if Project.Find(DoorName) = nil then
    Exit;
  Door := Project.Find(DoorName).Source;
  for Line := 1 to Door.LineCount do
    if Matches(Alias, Door.Code[Line]) then
      Result := Result + ConstantsOf(Project, Door, FirstGroup(Alias, Door.Code[Line]),
        FirstGroup(Aliased, Door.Code[Line]));
  if Result <> '' then
    Result := Head + Result;
end;

procedure CheckConstants(const Root: string; Project: TProject; Report: TReport);
var
  Text: string;
begin
  Text := ConstantsText(Project);
  if (Text <> '') and (not FileExists(Root + FileName) or (ReadFile(Root + FileName) <> Text)) then
    Report.Add(ruConstants, FileName, 1, 'not what the enumerations say: `make constants`');
end;

end.
