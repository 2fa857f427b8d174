/// Names in comments and documents that nothing has any more.
unit LintNames;

{$mode delphi}{$H+}

interface

uses
  Classes, LintProject, LintReport, LintSource, LintTokens;

const
  /// The list of names from outside the repository, one per line; `#` begins a comment.
  NamesFile = 'tools/lint/names.txt';

type
  /// All names that text may mention.
  TNameChecker = class
  private
    Project: TProject;
    Report: TReport;
    FileNames, Known: TWordSet;
    procedure AddKnown(const Root: string; Files: TStrings);
    procedure AddAllowed(const Path: string);
    function IsUnit(const Name: string): Boolean;
    function IsKnownDotted(const Name: string): Boolean;
    procedure CheckDotted(const FileName: string; Line: Integer; var Text: string);
    procedure CheckWords(const FileName: string; Line: Integer; const Text: string);
    procedure CheckMarkdownLine(const FileName: string; Line: Integer; Text: string);
  public
    /// Reads the names of all files and of the list.
    constructor Create(const Root: string; Files: TStrings; Units: TProject; Findings: TReport);
    destructor Destroy; override;
    /// Checks the comments of a Pascal file.
    procedure CheckComments(Source: TSource);
    /// Checks a document: names of units everywhere, other names between backticks.
    procedure CheckMarkdown(const Path, FileName: string);
  end;

implementation

uses
  SysUtils, StrUtils, RegExpr, LintPatterns, LintText;

const
  // Programs in other languages: their words are names too.
  CodeFiles = '^(src|lib|tests|demos|bench|tools)/.*\.(c|cc|h|hpp|cpp|sh|pml|pl|py|awk|map|in|cases)$';
  DottedName = '\bLaneMM(\.\w+)+';
  PascalFile = '\.(pas|inc|ppu|o|lpr)$';
  Link = 'https?://\S+';

constructor TNameChecker.Create(const Root: string; Files: TStrings; Units: TProject;
  Findings: TReport);
begin
  inherited Create;
  Project := Units;
  Report := Findings;
  FileNames := TWordSet.Create;
  Known := TWordSet.Create;
  AddKnown(Root, Files);
  AddAllowed(Root + NamesFile);
end;

destructor TNameChecker.Destroy;
begin
  Known.Free;
  FileNames.Free;
  inherited Destroy;
end;

procedure TNameChecker.AddKnown(const Root: string; Files: TStrings);
var
  Source: TSource;
  FileName: string;
begin
  for Source in Project.Sources do
    Known.AddAll(Source.Words);
  for FileName in Files do
  begin
    FileNames.Add(ExtractFileName(FileName));
    Known.AddText(FileName);
    if EndsStr('.cases', FileName) then // see tests/Test.Cases.pas
      Known.AddText('T' + ChangeFileExt(ExtractFileName(FileName), '') + 'Tests');
    if Matches(CodeFiles, FileName) then
      Known.AddText(ReadFile(Root + FileName));
  end;
end;

procedure TNameChecker.AddAllowed(const Path: string);
var
  Line: string;
begin
  if not FileExists(Path) then
  begin
    Report.Add(ruNames, NamesFile, 1, 'missing: it lists names from outside the repository');
    Exit;
  end;
  for Line in ReadFile(Path).Split([#10]) do
    Known.AddText(Copy2Symb(Line, '#'));
end;

function TNameChecker.IsUnit(const Name: string): Boolean;
begin
  Result := Project.Find(Name) <> nil;
end;

// A unit, something that a unit declares, or a file of the repository. Lower-case words at the
// end belong to a file name: LaneMM.Blocks.x64.
function TNameChecker.IsKnownDotted(const Name: string): Boolean;
var
  Start, Last: string;
begin
  if IsUnit(Name) or FileNames.Has(Name) or FileNames.Has(Name + '.pas') then
    Exit(True);
  if Matches(PascalFile, Name) then
    Exit(Matches('\.(ppu|o)$', Name) and IsUnit(ChangeFileExt(Name, '')));
  Start := ChangeFileExt(Name, '');
  Last := Copy(Name, Length(Start) + 2, MaxInt);
  if Last[1] in ['a'..'z', '0'..'9'] then
    Exit((Start = 'LaneMM') or IsKnownDotted(Start));
  Result := IsUnit(Start) and Project.Find(Start).Declarations.Names.Has(Last);
end;

// Checks the names that begin with `LaneMM.` and blanks them out.
procedure TNameChecker.CheckDotted(const FileName: string; Line: Integer; var Text: string);
var
  Expression: TRegExpr;
  Blanked: string;
begin
  Expression := Compiled(DottedName);
  if not Expression.Exec(Text) then
    Exit;
  Blanked := Text;
  repeat
    if not IsKnownDotted(Expression.Match[0]) then
      Report.Add(ruNames, FileName, Line, Expression.Match[0] + ' does not exist');
    FillChar(Blanked[Expression.MatchPos[0]], Expression.MatchLen[0], ' ');
  until not Expression.ExecNext;
  Text := Blanked;
end;

// A name such as RemotePush, TSpan or opLeaks: two capitals, or one after a prefix of two letters,
// and small letters. Plurals of abbreviations (CPUs) are none.
function IsName(const Word: string): Boolean;
var
  Letter: Char;
  Capitals, Smalls: Integer;
begin
  Capitals := 0;
  Smalls := 0;
  for Letter in Word do
    if Letter in ['A'..'Z'] then
      Inc(Capitals)
    else if Letter in ['a'..'z'] then
      Inc(Smalls);
  if Length(Word) < 4 then
    Exit(False);
  if Word[1] in ['A'..'Z'] then
    Exit((Capitals > 1) and (Smalls > 0) and not ((Capitals + 1 = Length(Word)) and (Smalls = 1)
      and EndsStr('s', Word)));
  Result := (Word[1] in ['a'..'z']) and (Word[2] in ['a'..'z']) and (Word[3] in ['A'..'Z'])
    and (Word[4] in ['a'..'z']);
end;

procedure TNameChecker.CheckWords(const FileName: string; Line: Integer; const Text: string);
var
  First, Next: Integer;
  Word: string;
begin
  First := 1;
  while First <= Length(Text) do
  begin
    Next := First;
    while (Next <= Length(Text)) and (Text[Next] in WordCharacters) do
      Inc(Next);
    Word := Copy(Text, First, Next - First);
    if IsName(Word) and not Known.Has(Word) then
      Report.Add(ruNames, FileName, Line, Word + ' does not exist');
    First := Next + 1;
  end;
end;

procedure TNameChecker.CheckComments(Source: TSource);
var
  Line: Integer;
  Text: string;
begin
  for Line := 1 to Source.LineCount do
  begin
    Text := Source.Text[tkComment, Line];
    if Text = '' then
      Continue;
    Text := Compiled(Link).Replace(Text, '', False);
    CheckDotted(Source.FileName, Line, Text);
    CheckWords(Source.FileName, Line, Text);
  end;
end;

procedure TNameChecker.CheckMarkdownLine(const FileName: string; Line: Integer; Text: string);
var
  Parts: TStringArray;
  Index: Integer;
begin
  Text := Compiled(Link).Replace(Text, '', False);
  CheckDotted(FileName, Line, Text);
  Parts := Text.Split(['`']);
  Index := 1;
  while Index < High(Parts) do
  begin
    CheckWords(FileName, Line, Parts[Index]);
    Inc(Index, 2);
  end;
end;

procedure TNameChecker.CheckMarkdown(const Path, FileName: string);
var
  Lines: TStringArray;
  Line: Integer;
begin
  Lines := ReadFile(Path).Split([#10]);
  for Line := 1 to Length(Lines) do
    CheckMarkdownLine(FileName, Line, Lines[Line - 1]);
end;

end.
