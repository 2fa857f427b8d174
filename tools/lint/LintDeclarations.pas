/// What the interface of a unit declares.
unit LintDeclarations;

{$mode delphi}{$H+}

interface

uses
  Generics.Collections, LintSource, LintTokens;

type
  /// A routine in the interface of a unit.
  TRoutine = record
    Line: Integer;
    Name: string;  //< as the source writes it
  end;

  /// The names that a user of one unit may write: constants, types, the values of enumerations,
  /// variables and routines. Fields, methods and parameters need no uses clause and are left out.
  TDeclarations = class
  private
    Source: TSource;
    Index, Last: Integer;
    function Text(Distance: Integer = 0): string;
    procedure ReadStatement(const Section: string);
    procedure ReadNames;
    procedure ReadRoutine;
    procedure ReadValues;
    procedure SkipStatement;
    function OpensBlock: Boolean;
  public
    Names: TWordSet;
    Routines: TList<TRoutine>;
    constructor Create(Parsed: TSource);
    destructor Destroy; override;
  end;

implementation

uses
  LintPatterns;

constructor TDeclarations.Create(Parsed: TSource);
var
  First, Stop: Integer;
  Section: string;
begin
  inherited Create;
  Source := Parsed;
  Names := TWordSet.Create;
  Routines := TList<TRoutine>.Create;
  First := Source.LineOf('interface');
  Stop := Source.LineOf('implementation');
  while (Index < Source.Tokens.Count) and (Source.Tokens[Index].Line <= First) do
    Inc(Index);
  Last := Index;
  while (Last < Source.Tokens.Count) and (Source.Tokens[Last].Line < Stop) do
    Inc(Last);
  Section := '';
  while Index < Last do
    if Matches('^(const|var|threadvar|type|resourcestring)$', Text) then
    begin
      Section := Text;
      Inc(Index);
    end
    else
    begin
      if Matches('^(uses|procedure|function|operator)$', Text) then
        Section := Text;
      ReadStatement(Section);
    end;
end;

destructor TDeclarations.Destroy;
begin
  Routines.Free;
  Names.Free;
  inherited Destroy;
end;

// The token at Distance from the current one; empty beyond the interface.
function TDeclarations.Text(Distance: Integer): string;
begin
  if (Index + Distance < 0) or (Index + Distance >= Last) then
    Exit('');
  Result := Source.Tokens[Index + Distance].Text;
end;

procedure TDeclarations.ReadStatement(const Section: string);
begin
  if (Text = 'procedure') or (Text = 'function') or (Text = 'operator') then
    ReadRoutine
  else if Text = 'property' then
    Names.Add(Text(1))
  else if Matches('^(const|var|threadvar|type|resourcestring)$', Section) then
    ReadNames;
  SkipStatement;
end;

// Names up to the sign that ends them; `generic` and type parameters may stand with them.
procedure TDeclarations.ReadNames;
begin
  while (Index < Last) and not Matches('^[=:;<]$', Text) do
  begin
    if Source.Tokens[Index].IsWord then
      Names.Add(Text);
    Inc(Index);
  end;
end;

procedure TDeclarations.ReadRoutine;
var
  Routine: TRoutine;
  Token: TToken;
begin
  if Index + 1 >= Last then
    Exit;
  Token := Source.Tokens[Index + 1];
  Routine.Line := Source.Tokens[Index].Line;
  Routine.Name := Copy(Source.Code[Token.Line], Token.Column, Length(Token.Text));
  Routines.Add(Routine);
  Names.Add(Routine.Name);
end;

// From the parenthesis that opens an enumeration to the one that closes it.
procedure TDeclarations.ReadValues;
begin
  while (Index < Last) and (Text <> ')') do
  begin
    if Source.Tokens[Index].IsWord and Matches('^[(,]$', Text(-1)) then
      Names.Add(Text);
    Inc(Index);
  end;
end;

// A record or a class with a body; not a forward class, a class reference or `of object`.
function TDeclarations.OpensBlock: Boolean;
var
  Distance: Integer;
begin
  if Text = 'record' then
    Exit(True);
  if (Text(-1) <> '=') or not Matches('^(class|object|interface)$', Text) then
    Exit(False);
  Distance := 1;
  if Text(1) = '(' then
    while (Text(Distance - 1) <> ')') and (Text(Distance) <> '') do
      Inc(Distance);
  Result := not Matches('^(;|of)$', Text(Distance));
end;

procedure TDeclarations.SkipStatement;
var
  Blocks, Brackets: Integer;
begin
  Blocks := 0;
  Brackets := 0;
  while Index < Last do
  begin
    if OpensBlock then
      Inc(Blocks)
    else if (Blocks > 0) and (Text = 'end') then
      Dec(Blocks)
    else if (Text = '(') and Matches('^(=|of)$', Text(-1)) then
      ReadValues;
    if (Text = '(') or (Text = '[') then
      Inc(Brackets)
    else if ((Text = ')') or (Text = ']')) and (Brackets > 0) then
      Dec(Brackets);
    Inc(Index);
    if (Blocks = 0) and (Brackets = 0) and (Text(-1) = ';') then
      Exit;
  end;
end;

end.
