/// Paragraphs of text that remember their lines.
unit LintProse;

{$mode delphi}{$H+}

interface

uses
  LintSource;

type
  /// Is called for each paragraph.
  TParagraphCall = procedure of object;

  /// A text that grows line by line; each blank line, and each end, makes it a paragraph.
  TProse = class
  private
    Starts, Lines: array of Integer;
    Call: TParagraphCall;
  public
    FileName: string;
    /// The paragraph, its lines joined by one blank each.
    Text: string;
    constructor Create(const NameInMessages: string; ParagraphCall: TParagraphCall);
    /// Adds a line to the paragraph; an empty one ends it.
    procedure Add(Line: Integer; const More: string);
    /// Ends the paragraph.
    procedure Flush;
    /// Returns the line that the character at Offset of Text, from 1, stands in.
    function LineAt(Offset: Integer): Integer;
    /// Adds the comments of Source, those of lines without code joined, and its literals.
    procedure AddSource(Source: TSource);
    /// Adds the lines of the file at Path.
    procedure AddFile(const Path: string);
  end;

implementation

uses
  SysUtils, LintPatterns, LintText;

constructor TProse.Create(const NameInMessages: string; ParagraphCall: TParagraphCall);
begin
  inherited Create;
  FileName := NameInMessages;
  Call := ParagraphCall;
end;

procedure TProse.Add(Line: Integer; const More: string);
var
  Words: string;
begin
  Words := Trim(Compiled('\s+').Replace(More, ' ', False));
  if Words = '' then
  begin
    Flush;
    Exit;
  end;
  SetLength(Starts, Length(Starts) + 1);
  SetLength(Lines, Length(Lines) + 1);
  if Text <> '' then
    Text := Text + ' ';
  Starts[High(Starts)] := Length(Text) + 1;
  Lines[High(Lines)] := Line;
  Text := Text + Words;
end;

procedure TProse.Flush;
begin
  if Text <> '' then
    Call;
  Text := '';
  Starts := nil;
  Lines := nil;
end;

function TProse.LineAt(Offset: Integer): Integer;
var
  Index: Integer;
begin
  Index := High(Starts);
  while (Index > 0) and (Starts[Index] > Offset) do
    Dec(Index);
  Result := Lines[Index];
end;

procedure TProse.AddSource(Source: TSource);
var
  Line: Integer;
begin
  for Line := 1 to Source.LineCount do
  begin
    if Source.Code[Line] <> '' then
      Flush;
    Add(Line, Compiled('^\s*(//[/<]?|\(\*|\{)').Replace(Source.Text[tkComment, Line], '', False));
    if Source.Code[Line] <> '' then
      Flush;
  end;
  Flush;
  for Line := 1 to Source.LineCount do
  begin
    Add(Line, Source.Text[tkLiteral, Line]);
    Flush;
  end;
end;

procedure TProse.AddFile(const Path: string);
var
  Content: TStringArray;
  Line: Integer;
begin
  Content := ReadFile(Path).Split([#10]);
  for Line := 1 to Length(Content) do
    Add(Line, Content[Line - 1]);
  Flush;
end;

end.
