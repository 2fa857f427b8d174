/// A unit that a program names with its file.
unit Second;

{$mode objfpc}{$H+}

interface

/// Returns Text two times.
function Twice(const Text: string): string;

implementation

function Twice(const Text: string): string;
begin
  Result := Text + Text;
end;

end.
