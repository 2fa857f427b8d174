/// Words and phrases that comments, messages and documents do not use.
unit LintVocabulary;

{$mode delphi}{$H+}

interface

uses
  Generics.Collections, RegExpr, LintProse, LintReport, LintSource;

const
  /// The list, one `pattern => what to say instead` per line; `#` begins a line of comment.
  WordsFile = 'tools/lint/words.txt';

type
  /// The list and what it is compared with.
  TVocabulary = class
  private
    Report: TReport;
    Prose: TProse;
    Patterns: TObjectList<TRegExpr>;
    Advices: TList<string>;
    procedure AddEntry(Line: Integer; const Entry: string);
    procedure CheckParagraph;
  public
    constructor Create(const Root: string; Findings: TReport);
    destructor Destroy; override;
    /// Checks the comments and string literals of a Pascal file.
    procedure CheckSource(Source: TSource);
    /// Checks a document.
    procedure CheckMarkdown(const Path, FileName: string);
  end;

implementation

uses
  SysUtils, LintText;

const
  Arrow = ' => ';

constructor TVocabulary.Create(const Root: string; Findings: TReport);
var
  Lines: TStringArray;
  Line: Integer;
begin
  inherited Create;
  Report := Findings;
  Patterns := TObjectList<TRegExpr>.Create;
  Advices := TList<string>.Create;
  if not FileExists(Root + WordsFile) then
  begin
    Report.Add(ruVocabulary, WordsFile, 1, 'missing: it lists words that are not used');
    Exit;
  end;
  Lines := ReadFile(Root + WordsFile).Split([#10]);
  for Line := 1 to Length(Lines) do
    if (Trim(Lines[Line - 1]) <> '') and (Lines[Line - 1][1] <> '#') then
      AddEntry(Line, Lines[Line - 1]);
end;

destructor TVocabulary.Destroy;
begin
  Advices.Free;
  Patterns.Free;
  inherited Destroy;
end;

procedure TVocabulary.AddEntry(Line: Integer; const Entry: string);
var
  Pattern: TRegExpr;
  Middle: Integer;
begin
  Middle := Pos(Arrow, Entry);
  Pattern := TRegExpr.Create(Trim(Copy(Entry, 1, Middle)));
  Pattern.ModifierI := True;
  try
    if Middle = 0 then
      raise Exception.Create('no `pattern => what to say instead`');
    Pattern.Compile;
    Advices.Add(Trim(Copy(Entry, Middle + Length(Arrow), MaxInt)));
    Patterns.Add(Pattern);
  except
    on E: Exception do
    begin
      Report.Add(ruVocabulary, WordsFile, Line, E.Message);
      Pattern.Free;
    end;
  end;
end;

procedure TVocabulary.CheckParagraph;
var
  Index: Integer;
begin
  for Index := 0 to Patterns.Count - 1 do
    if Patterns[Index].Exec(Prose.Text) then
      repeat
        Report.Add(ruVocabulary, Prose.FileName, Prose.LineAt(Patterns[Index].MatchPos[0]),
          Format('"%s": %s', [Patterns[Index].Match[0], Advices[Index]]));
      until not Patterns[Index].ExecNext;
end;

procedure TVocabulary.CheckSource(Source: TSource);
begin
  Prose := TProse.Create(Source.FileName, CheckParagraph);
  Prose.AddSource(Source);
  FreeAndNil(Prose);
end;

procedure TVocabulary.CheckMarkdown(const Path, FileName: string);
begin
  Prose := TProse.Create(FileName, CheckParagraph);
  Prose.AddFile(Path);
  FreeAndNil(Prose);
end;

end.
