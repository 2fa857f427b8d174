/// Checks what a machine can check of the house style (see CONTRIBUTING.md).
program Lint;

{$mode delphi}{$H+}

uses
  SysUtils, Classes, LintReport, LintSource, LintLayers, LintRules, LintText;

{$warn symbol_platform off} // faSymLink: where it means nothing it does no harm

const
  Usage = 'Lint [DIRECTORY]'#10#10
    + 'Checks the repository in DIRECTORY, by default the current one: the Pascal files in its'#10
    + 'src/ against the house style, and every text file for blanks, tabs, line ends and machine'#10
    + 'paths. Prints `file:line: message` for each finding; exit code 1 when there is one.';

// Adds the files below Root/Directory to Files, as paths relative to Root.
procedure FindFiles(const Root, Directory: string; Files: TStrings);
var
  Found: TSearchRec;
begin
  if FindFirst(Root + Directory + '*', faAnyFile or faSymLink, Found) <> 0 then
    Exit;
  repeat
    if Found.Attr and faSymLink <> 0 then
      Continue;
    if Found.Attr and faDirectory = 0 then
      Files.Add(Directory + Found.Name)
    else if not Matches('^(\.|\.\.|\.git|build|backup)$', Found.Name) then
      FindFiles(Root, Directory + Found.Name + '/', Files);
  until FindNext(Found) <> 0;
  FindClose(Found);
end;

procedure CheckSources(const Root: string; Files: TStrings; Report: TReport);
var
  Layers: TLayers;
  Source: TSource;
  FileName: string;
begin
  Layers := TLayers.Create(Root + 'src/README.md', 'src/README.md', Report);
  for FileName in Files do
    if Matches('^src/[^/]*\.(pas|inc)$', FileName) then
    begin
      Source := TSource.Create(Root + FileName, FileName);
      Layers.Check(Source);
      CheckSource(Source, Report);
      Source.Free;
    end;
  Layers.CheckRows;
  Layers.Free;
end;

var
  Root, FileName: string;
  Files: TStringList;
  Report: TReport;
begin
  if ParamStr(1) = '--help' then
  begin
    WriteLn(Usage);
    Halt(0);
  end;
  Root := './';
  if ParamCount > 0 then
    Root := IncludeTrailingPathDelimiter(ParamStr(1));
  Files := TStringList.Create;
  Files.Sorted := True;
  FindFiles(Root, '', Files);
  Report := TReport.Create;
  CheckSources(Root, Files, Report);
  for FileName in Files do
    CheckText(Root + FileName, FileName, Report);
  Report.Print;
  if not Report.IsClean then
    ExitCode := 1;
  Report.Free;
  Files.Free;
end.
