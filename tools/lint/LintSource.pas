/// A Pascal file as the linter sees it: lines with comments and string literals blanked out.
unit LintSource;

{$mode delphi}{$H+}

interface

uses
  Classes;

type
  /// A directive such as `$ifdef FPC`, without its braces.
  TDirective = record
    Line: Integer;
    Text: string;
  end;

  /// One Pascal file. Lines count from 1.
  TSource = class
  private
    RawLines, CodeLines: TStringList;
    // Where the scanner is: in an open comment, and how that comment ends.
    CommentEnd, CommentText: string;
    CommentLine: Integer;
    procedure CloseComment;
    procedure ScanLine(Line: Integer);
    function ScanComment(Line: Integer; var Code: string; Column: Integer): Integer;
    function ScanToken(Line: Integer; var Code: string; Column: Integer): Integer;
    function GetRaw(Line: Integer): string;
    function GetCode(Line: Integer): string;
  public
    /// The name in messages, the unit's name, and whether it is an include file.
    FileName, Name: string;
    IsInclude: Boolean;
    Directives: array of TDirective;
    constructor Create(const Path, NameInMessages: string);
    destructor Destroy; override;
    function LineCount: Integer;
    /// First line whose code is the single word Word; 0 when there is none.
    function LineOf(const Word: string): Integer;
    property Raw[Line: Integer]: string read GetRaw;
    property Code[Line: Integer]: string read GetCode;
  end;

/// Whether Pattern, a regular expression without regard to case, occurs in Text.
function Matches(const Pattern, Text: string): Boolean;
/// What the first group of Pattern matches in Text; empty when Pattern does not occur.
function FirstGroup(const Pattern, Text: string): string;

implementation

uses
  SysUtils, StrUtils, RegExpr;

function FirstGroup(const Pattern, Text: string): string;
var
  Expression: TRegExpr;
begin
  Result := '';
  Expression := TRegExpr.Create(Pattern);
  try
    Expression.ModifierI := True;
    if Expression.Exec(Text) then
      Result := Expression.Match[1];
  finally
    Expression.Free;
  end;
end;

function Matches(const Pattern, Text: string): Boolean;
begin
  Result := ExecRegExpr('(?i)' + Pattern, Text);
end;

procedure Blank(var Code: string; First, Last: Integer);
var
  Column: Integer;
begin
  for Column := First to Last do
    Code[Column] := ' ';
end;

constructor TSource.Create(const Path, NameInMessages: string);
var
  Line: Integer;
begin
  inherited Create;
  FileName := NameInMessages;
  Name := ChangeFileExt(ExtractFileName(Path), '');
  IsInclude := ExtractFileExt(Path) = '.inc';
  CodeLines := TStringList.Create;
  RawLines := TStringList.Create;
  RawLines.LoadFromFile(Path);
  for Line := 1 to LineCount do
    ScanLine(Line);
end;

destructor TSource.Destroy;
begin
  RawLines.Free;
  CodeLines.Free;
  inherited Destroy;
end;

function TSource.LineCount: Integer;
begin
  Result := RawLines.Count;
end;

function TSource.GetRaw(Line: Integer): string;
begin
  Result := RawLines[Line - 1];
end;

function TSource.GetCode(Line: Integer): string;
begin
  Result := CodeLines[Line - 1];
end;

function TSource.LineOf(const Word: string): Integer;
begin
  for Result := 1 to LineCount do
    if SameText(Trim(Code[Result]), Word) then
      Exit;
  Result := 0;
end;

procedure TSource.CloseComment;
begin
  CommentEnd := '';
  if not StartsStr('$', CommentText) then
    Exit;
  SetLength(Directives, Length(Directives) + 1);
  Directives[High(Directives)].Line := CommentLine;
  Directives[High(Directives)].Text := CommentText;
end;

// Goes on in an open comment from Column; returns the column after its end.
function TSource.ScanComment(Line: Integer; var Code: string; Column: Integer): Integer;
var
  Close: Integer;
begin
  Close := PosEx(CommentEnd, Code, Column);
  if Close = 0 then
  begin
    CommentText := CommentText + Copy(Code, Column, MaxInt);
    Blank(Code, Column, Length(Code));
    Exit(Length(Code) + 1);
  end;
  CommentText := CommentText + Copy(Code, Column, Close - Column);
  Result := Close + Length(CommentEnd);
  Blank(Code, Column, Result - 1);
  CloseComment;
end;

// Handles what begins at Column outside comments; returns the column after it.
function TSource.ScanToken(Line: Integer; var Code: string; Column: Integer): Integer;
var
  Opening: string;
begin
  Opening := Copy(Code, Column, 2);
  Result := Column + 1;
  if Opening = '//' then
    Result := Length(Code) + 1
  else if Code[Column] = '''' then
  begin
    Result := PosEx('''', Code, Column + 1) + 1;
    if Result = 1 then
      Result := Length(Code) + 1;
  end
  else if (Code[Column] = '{') or (Opening = '(*') then
  begin
    CommentEnd := IfThen(Code[Column] = '{', '}', '*)');
    CommentText := '';
    CommentLine := Line;
    Inc(Result, Length(CommentEnd) - 1);
  end
  else
    Exit;
  Blank(Code, Column, Result - 1);
end;

procedure TSource.ScanLine(Line: Integer);
var
  Code: string;
  Column: Integer;
begin
  Code := Raw[Line];
  Column := 1;
  while Column <= Length(Code) do
    if CommentEnd <> '' then
      Column := ScanComment(Line, Code, Column)
    else
      Column := ScanToken(Line, Code, Column);
  CodeLines.Add(TrimRight(Code));
end;

end.
