/// Regular expressions, each compiled once.
unit LintPatterns;

{$mode delphi}{$H+}

interface

uses
  RegExpr;

/// Returns the compiled Pattern, which ignores case. The unit owns it.
function Compiled(const Pattern: string): TRegExpr;
/// Returns True when Pattern, a regular expression that ignores case, occurs in Text.
function Matches(const Pattern, Text: string): Boolean;
/// Returns what the first group of Pattern matches in Text; empty when Pattern does not occur.
function FirstGroup(const Pattern, Text: string): string;

implementation

uses
  Generics.Collections;

var
  Expressions: TObjectDictionary<string, TRegExpr>;

function Compiled(const Pattern: string): TRegExpr;
begin
  if Expressions.TryGetValue(Pattern, Result) then
    Exit;
  Result := TRegExpr.Create(Pattern);
  Result.ModifierI := True;
  Expressions.Add(Pattern, Result);
end;

function Matches(const Pattern, Text: string): Boolean;
begin
  Result := Compiled(Pattern).Exec(Text);
end;

function FirstGroup(const Pattern, Text: string): string;
begin
  Result := '';
  if Compiled(Pattern).Exec(Text) then
    Result := Compiled(Pattern).Match[1];
end;

initialization
  Expressions := TObjectDictionary<string, TRegExpr>.Create([doOwnsValues]);

finalization
  Expressions.Free;

end.
