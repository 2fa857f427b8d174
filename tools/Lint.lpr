/// Checks what a machine can check of the house style (see CONTRIBUTING.md).
program Lint;

{$mode delphi}{$H+}

uses
  SysUtils, Classes, LintPatterns, LintReport, LintSource, LintProject, LintRooms, LintUnits,
  LintUnused, LintConstants, LintNames, LintVocabulary, LintCommits, LintRules, LintText;

{$warn symbol_platform off} // faSymLink: where it means nothing it does no harm

const
  Usage = 'Lint [--units | --constants] [DIRECTORY]'#10#10
    + 'Checks the repository in DIRECTORY, by default the current one: its src/ against the house'#10
    + 'style; units, routines and names that nothing has or needs; the words of comments, messages'#10
    + 'and documents (tools/lint/words.txt, names.txt); every text file for blanks, tabs, line ends'#10
    + 'and machine paths; the subjects of commits. Prints `file:line: message` for each finding;'#10
    + 'exit code 1 when there is one.'#10#10
    + '--units prints the units of src/ and lib/ by room and depth instead, --constants what'#10
    + 'src/LaneMM.Constants.inc has to hold.';
  // The interfaces of other managers, in their names and their style.
  ForeignRoom = 'compat';
  // Its strings are no words.
  PackedUnit = 'LaneMM.PageParts';
  // It may name what is gone.
  History = 'CHANGELOG.md';
  // What the linter's own tests check: wrong on purpose.
  LintCases = '^tools/lint-tests/';

// Adds the files below Root/Directory to Files, as paths relative to Root.
procedure FindFiles(const Root, Directory: string; Files: TStrings);
var
  Found: TSearchRec;
begin
  if FindFirst(Root + Directory + '*', faAnyFile or faSymLink, Found) <> 0 then
    Exit;
  repeat
    if (Found.Attr and faSymLink <> 0) or (Found.Name = '.git') then
      Continue;
    if Found.Attr and faDirectory = 0 then
      Files.Add(Directory + Found.Name)
    else if not Matches('^(\.|\.\.|build|backup)$', Found.Name) then
      FindFiles(Root, Directory + Found.Name + '/', Files);
  until FindNext(Found) <> 0;
  FindClose(Found);
end;

// Takes what the linter's own tests check out of Files.
procedure RemoveCases(Files: TStrings);
var
  Index: Integer;
begin
  for Index := Files.Count - 1 downto 0 do
    if Matches(LintCases, Files[Index]) then
      Files.Delete(Index);
end;

// Reports conditions on words that nothing defines: they never hold.
procedure CheckWords(const Root: string; Project: TProject; Report: TReport);
const
  Settings = 'src/LaneMM.inc';
var
  Known: string;
  Source: TSource;
  Directive: TDirective;
  Word: string;
begin
  Known := '';
  if FileExists(Root + Settings) then
    Known := ReadFile(Root + Settings); // options are in a comment there
  for Source in Project.Sources do
    for Directive in Source.Directives do
      if Matches('^\$define\b', Directive.Text) then
        Known := Known + #10 + Directive.Text;
  for Source in Project.Sources do
    if IsProduct(Source.FileName) and FileExists(Root + Settings) then
      for Directive in Source.Directives do
      begin
        Word := FirstGroup('^\$ifn?def (LANEMM_\w+)', Directive.Text);
        if (Word <> '') and not Matches('\b' + Word + '\b', Known) then
          Report.Add(ruConditionals, Source.FileName, Directive.Line, Word + ' is defined nowhere');
      end;
end;

procedure CheckProject(const Root: string; Project: TProject; Report: TReport);
var
  Graph: TUnitGraph;
  Source: TSource;
begin
  Graph := TUnitGraph.Create(Project, Report);
  CheckRooms(Project, Report);
  CheckRoomLists(Root, Report);
  CheckClosure(Project, Graph, Report);
  Graph.Free;
  CheckUnusedUnits(Project, Report);
  CheckUnusedRoutines(Project, Report);
  CheckConstants(Root, Project, Report);
  CheckWords(Root, Project, Report);
  for Source in Project.Sources do
    if Matches('^src/', Source.FileName) and (RoomOf(Source.FileName) <> ForeignRoom) then
      CheckSource(Source, Report);
end;

// Checks the comments of src/ and lib/, and the documents.
procedure CheckProse(const Root: string; Files: TStrings; Project: TProject; Report: TReport);
var
  Names: TNameChecker;
  Vocabulary: TVocabulary;
  Source: TSource;
  FileName: string;
begin
  Names := TNameChecker.Create(Root, Files, Project, Report);
  Vocabulary := TVocabulary.Create(Root, Report);
  for Source in Project.Sources do
    if IsProduct(Source.FileName) then
    begin
      Names.CheckComments(Source);
      if Source.Name <> PackedUnit then
        Vocabulary.CheckSource(Source);
    end;
  for FileName in Files do
    if Matches('\.md$', FileName) and (FileName <> History) then
    begin
      Names.CheckMarkdown(Root + FileName, FileName);
      Vocabulary.CheckMarkdown(Root + FileName, FileName);
    end;
  Vocabulary.Free;
  Names.Free;
end;

procedure CheckAll(const Root: string; Files: TStrings);
var
  Report: TReport;
  Project: TProject;
  FileName: string;
begin
  Report := TReport.Create;
  for FileName in Files do
    CheckText(Root + FileName, FileName, Report);
  RemoveCases(Files);
  Project := TProject.Create(Root, Files);
  CheckProject(Root, Project, Report);
  CheckProse(Root, Files, Project, Report);
  Project.Free;
  CheckCommits(Root, Report);
  Report.Print;
  if not Report.IsClean then
    ExitCode := 1;
  Report.Free;
end;

procedure Show(const Root: string; Files: TStrings);
var
  Project: TProject;
  Report: TReport;
  Graph: TUnitGraph;
begin
  RemoveCases(Files);
  Project := TProject.Create(Root, Files);
  Report := TReport.Create;
  Graph := TUnitGraph.Create(Project, Report);
  if ParamStr(1) = '--units' then
    PrintUnits(Project, Graph)
  else
    Write(ConstantsText(Project));
  Graph.Free;
  Report.Free;
  Project.Free;
end;

var
  Root: string;
  Files: TStringList;
  IsShown: Boolean;
begin
  if ParamStr(1) = '--help' then
  begin
    WriteLn(Usage);
    Halt(0);
  end;
  IsShown := Matches('^--(units|constants)$', ParamStr(1));
  Root := './';
  if ParamCount > Ord(IsShown) then
    Root := IncludeTrailingPathDelimiter(ParamStr(1 + Ord(IsShown)));
  Files := TStringList.Create;
  Files.Sorted := True;
  FindFiles(Root, '', Files);
  if IsShown then
    Show(Root, Files)
  else
    CheckAll(Root, Files);
  Files.Free;
end.
