/// A unit that a project names with its file, as Lazarus does.
unit Words;

{$mode objfpc}{$H+}

interface

/// Returns Count words, separated by blanks.
function ManyWords(Count: Integer): string;

implementation

function ManyWords(Count: Integer): string;
var
  Number: Integer;
begin
  Result := '';
  for Number := 1 to Count do
    Result := Result + 'word ';
end;

end.
