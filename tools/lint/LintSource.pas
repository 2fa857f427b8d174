/// A Pascal file as the linter sees it: code, comments and literals apart, and what it uses.
unit LintSource;

{$mode delphi}{$H+}

interface

uses
  Classes, LintTokens;

type
  /// What a character of a Pascal file belongs to.
  TTextKind = (tkCode, tkComment, tkLiteral, tkDirective);

  /// A directive such as `$ifdef FPC`, without its braces.
  TDirective = record
    Line: Integer;
    Text: string;
  end;

  /// A unit named in a uses clause.
  TUse = record
    Line: Integer;
    Name: string;
  end;

  /// One Pascal file. Lines count from 1.
  TSource = class
  private
    RawLines: TStringList;
    // Each holds the characters of one kind; blanks stand for the others.
    Lines: array[TTextKind] of TStringList;
    IsUsesLine: array of Boolean;
    // Where the scanner is: in an open comment, of which kind, and how it ends.
    OpenKind: TTextKind;
    CommentEnd, CommentText: string;
    CommentLine: Integer;
    procedure CloseComment;
    procedure ScanLine(const Text: string; Line: Integer);
    function ScanComment(const Text: string; Column: Integer): Integer;
    function ScanToken(const Text: string; Line, Column: Integer; out Kind: TTextKind): Integer;
    procedure ReadTokens;
    procedure ReadUses(var Index: Integer);
    procedure ReadIncludes;
    function GetRaw(Line: Integer): string;
    function GetText(Kind: TTextKind; Line: Integer): string;
    function GetCode(Line: Integer): string;
  public
    /// The name in messages, the unit's name, and whether it is an include file.
    FileName, Name: string;
    IsInclude: Boolean;
    Directives: array of TDirective;
    /// The units in its uses clauses, whatever the conditions around them.
    UsedUnits: array of TUse;
    /// The files that it includes, as it writes them.
    Includes: TStringList;
    Tokens: TTokens;
    /// The words of its code outside of uses clauses.
    Words: TWordSet;
    constructor Create(const Path, NameInMessages: string);
    destructor Destroy; override;
    function LineCount: Integer;
    /// First line whose code is the single word Word; 0 when there is none.
    function LineOf(const Word: string): Integer;
    /// Returns True when code of Line lies in a uses clause.
    function InUsesClause(Line: Integer): Boolean;
    /// Lines with code on them.
    function CodeLineCount: Integer;
    property Raw[Line: Integer]: string read GetRaw;
    /// The characters of one kind in a line, with blanks for the others.
    property Text[Kind: TTextKind; Line: Integer]: string read GetText;
    property Code[Line: Integer]: string read GetCode;
  end;

implementation

uses
  SysUtils, StrUtils, LintPatterns;

constructor TSource.Create(const Path, NameInMessages: string);
var
  Line: Integer;
  Kind: TTextKind;
begin
  inherited Create;
  FileName := NameInMessages;
  Name := ChangeFileExt(ExtractFileName(Path), '');
  IsInclude := ExtractFileExt(Path) = '.inc';
  RawLines := TStringList.Create;
  for Kind := Low(TTextKind) to High(TTextKind) do
    Lines[Kind] := TStringList.Create;
  Includes := TStringList.Create;
  Tokens := TTokens.Create;
  Words := TWordSet.Create;
  RawLines.LoadFromFile(Path);
  for Line := 1 to LineCount do
    ScanLine(Raw[Line], Line);
  ReadTokens;
  ReadIncludes;
end;

destructor TSource.Destroy;
var
  Kind: TTextKind;
begin
  Words.Free;
  Tokens.Free;
  Includes.Free;
  for Kind := Low(TTextKind) to High(TTextKind) do
    Lines[Kind].Free;
  RawLines.Free;
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

function TSource.GetText(Kind: TTextKind; Line: Integer): string;
begin
  Result := Lines[Kind][Line - 1];
end;

function TSource.GetCode(Line: Integer): string;
begin
  Result := Text[tkCode, Line];
end;

function TSource.LineOf(const Word: string): Integer;
begin
  for Result := 1 to LineCount do
    if SameText(Trim(Code[Result]), Word) then
      Exit;
  Result := 0;
end;

function TSource.InUsesClause(Line: Integer): Boolean;
begin
  Result := IsUsesLine[Line];
end;

function TSource.CodeLineCount: Integer;
var
  Line: Integer;
begin
  Result := 0;
  for Line := 1 to LineCount do
    if Code[Line] <> '' then
      Inc(Result);
end;

// ---------------------------------------------------------------------------- characters

procedure TSource.CloseComment;
begin
  CommentEnd := '';
  if OpenKind <> tkDirective then
    Exit;
  SetLength(Directives, Length(Directives) + 1);
  Directives[High(Directives)].Line := CommentLine;
  Directives[High(Directives)].Text := CommentText;
end;

// Goes on in an open comment from Column; returns the column after its end.
function TSource.ScanComment(const Text: string; Column: Integer): Integer;
var
  Close: Integer;
begin
  Close := PosEx(CommentEnd, Text, Column);
  if Close = 0 then
  begin
    CommentText := CommentText + Copy(Text, Column, MaxInt);
    Exit(Length(Text) + 1);
  end;
  CommentText := CommentText + Copy(Text, Column, Close - Column);
  Result := Close + Length(CommentEnd);
  CloseComment;
end;

// Handles what begins at Column outside comments; returns the column after it.
function TSource.ScanToken(const Text: string; Line, Column: Integer; out Kind: TTextKind): Integer;
var
  Opening: string;
begin
  Opening := Copy(Text, Column, 2);
  Result := Column + 1;
  Kind := tkCode;
  if Opening = '//' then
  begin
    Kind := tkComment;
    Result := Length(Text) + 1;
  end
  else if Text[Column] = '''' then
  begin
    Kind := tkLiteral;
    Result := PosEx('''', Text, Column + 1) + 1;
    if Result = 1 then
      Result := Length(Text) + 1;
  end
  else if (Text[Column] = '{') or (Opening = '(*') then
  begin
    CommentEnd := IfThen(Text[Column] = '{', '}', '*)');
    CommentText := '';
    CommentLine := Line;
    Inc(Result, Length(CommentEnd) - 1);
    OpenKind := tkComment;
    if Copy(Text, Result, 1) = '$' then
      OpenKind := tkDirective;
    Kind := OpenKind;
  end;
end;

procedure TSource.ScanLine(const Text: string; Line: Integer);
var
  Parts: array[TTextKind] of string;
  Kind: TTextKind;
  Column, Next: Integer;
begin
  for Kind := Low(TTextKind) to High(TTextKind) do
    Parts[Kind] := StringOfChar(' ', Length(Text));
  Column := 1;
  while Column <= Length(Text) do
  begin
    Kind := OpenKind;
    if CommentEnd <> '' then
      Next := ScanComment(Text, Column)
    else
      Next := ScanToken(Text, Line, Column, Kind);
    if Next > Column then
      Move(Text[Column], Parts[Kind][Column], Next - Column);
    Column := Next;
  end;
  for Kind := Low(TTextKind) to High(TTextKind) do
    Lines[Kind].Add(TrimRight(Parts[Kind]));
end;

// ---------------------------------------------------------------------------- tokens

procedure TSource.ReadTokens;
var
  Line, Index: Integer;
begin
  SetLength(IsUsesLine, LineCount + 1);
  for Line := 1 to LineCount do
    AddTokens(Code[Line], Line, Tokens);
  Index := 0;
  while Index < Tokens.Count do
  begin
    if Tokens[Index].Text = 'uses' then
      ReadUses(Index)
    else if Tokens[Index].IsWord then
      Words.Add(Tokens[Index].Text);
    Inc(Index);
  end;
end;

// Reads from the word `uses` at Index to the semicolon and leaves Index there. The name of a
// unit is written as it stands in the source.
procedure TSource.ReadUses(var Index: Integer);
var
  Token, Last: TToken;
  First: Integer;
begin
  First := Tokens[Index].Line;
  while (Index < Tokens.Count - 1) and (Tokens[Index].Text <> ';') do
  begin
    Inc(Index);
    Token := Tokens[Index];
    Last := Tokens[Index - 1];
    if not Token.IsWord or (Token.Text = 'in') then
      Continue;
    if Last.Text <> '.' then
    begin
      SetLength(UsedUnits, Length(UsedUnits) + 1);
      UsedUnits[High(UsedUnits)].Line := Token.Line;
    end
    else
      UsedUnits[High(UsedUnits)].Name := UsedUnits[High(UsedUnits)].Name + '.';
    UsedUnits[High(UsedUnits)].Name := UsedUnits[High(UsedUnits)].Name
      + Copy(Code[Token.Line], Token.Column, Length(Token.Text));
  end;
  for First := First to Tokens[Index].Line do
    IsUsesLine[First] := True;
end;

procedure TSource.ReadIncludes;
var
  Directive: TDirective;
  Included: string;
begin
  for Directive in Directives do
  begin
    Included := FirstGroup('^\$i(?:nclude)?\s+''?([^''%\s]+)', Directive.Text);
    if Included <> '' then
      Includes.Add(Included);
  end;
end;

end.
