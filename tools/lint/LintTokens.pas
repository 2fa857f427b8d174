/// Words and symbols of Pascal code, and sets of words.
unit LintTokens;

{$mode delphi}{$H+}

interface

uses
  Generics.Collections;

type
  /// A set of words; case is ignored.
  TWordSet = class
  private
    Words: TDictionary<string, Boolean>;
  public
    constructor Create;
    destructor Destroy; override;
    procedure Add(const Word: string);
    procedure AddAll(Source: TWordSet);
    /// Adds every word of Text: runs of letters, digits and underscores.
    procedure AddText(const Text: string);
    function IsEmpty: Boolean;
    function Has(const Word: string): Boolean;
    /// Returns True when the two sets have a word in common.
    function Meets(Other: TWordSet): Boolean;
  end;

  /// A word, a number or a symbol of one character; words are in lower case.
  TToken = record
    Text: string;
    Line: Integer;    //< counts from 1
    Column: Integer;  //< counts from 1
    IsWord: Boolean;
  end;
  /// Tokens in their order.
  TTokens = TList<TToken>;

const
  /// What words are made of.
  WordCharacters = ['A'..'Z', 'a'..'z', '0'..'9', '_'];

/// Appends the tokens of Code, which is line Line, to Tokens.
procedure AddTokens(const Code: string; Line: Integer; Tokens: TTokens);

implementation

uses
  SysUtils;

constructor TWordSet.Create;
begin
  inherited Create;
  Words := TDictionary<string, Boolean>.Create;
end;

destructor TWordSet.Destroy;
begin
  Words.Free;
  inherited Destroy;
end;

procedure TWordSet.Add(const Word: string);
begin
  Words.AddOrSetValue(LowerCase(Word), True);
end;

procedure TWordSet.AddAll(Source: TWordSet);
var
  Word: string;
begin
  for Word in Source.Words.Keys do
    Words.AddOrSetValue(Word, True);
end;

procedure TWordSet.AddText(const Text: string);
var
  First, Next: Integer;
begin
  First := 1;
  while First <= Length(Text) do
  begin
    Next := First;
    while (Next <= Length(Text)) and (Text[Next] in WordCharacters) do
      Inc(Next);
    if Next > First then
      Add(Copy(Text, First, Next - First));
    First := Next + 1;
  end;
end;

function TWordSet.IsEmpty: Boolean;
begin
  Result := Words.Count = 0;
end;

function TWordSet.Has(const Word: string): Boolean;
begin
  Result := Words.ContainsKey(LowerCase(Word));
end;

function TWordSet.Meets(Other: TWordSet): Boolean;
var
  Word: string;
begin
  for Word in Words.Keys do
    if Other.Words.ContainsKey(Word) then
      Exit(True);
  Result := False;
end;

procedure AddTokens(const Code: string; Line: Integer; Tokens: TTokens);
var
  Token: TToken;
  Next: Integer;
begin
  Token.Line := Line;
  Token.Column := 1;
  while Token.Column <= Length(Code) do
  begin
    Next := Token.Column + 1;
    // A number may begin with a dollar sign, so that $FF is no word.
    Token.IsWord := Code[Token.Column] in WordCharacters - ['0'..'9'];
    if Code[Token.Column] in WordCharacters + ['$'] then
      while (Next <= Length(Code)) and (Code[Next] in WordCharacters) do
        Inc(Next);
    Token.Text := LowerCase(Copy(Code, Token.Column, Next - Token.Column));
    if Token.Text <> ' ' then
      Tokens.Add(Token);
    Token.Column := Next;
  end;
end;

end.
