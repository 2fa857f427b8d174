/// The texts that a shop writes.
unit Reports;

{$mode delphi}{$H+}

interface

uses
  Classes;

/// Returns the lines of a cart as a page.
function PageOf(Lines: TStrings): string;
/// Collects a report of Count lines, and frees it.
procedure WriteMonthlyReport(Count: Integer);

implementation

function RowOf(const Line: string): string;
begin
  Result := '<li>' + Line + '</li>'; // planted: row
end;

function PageOf(Lines: TStrings): string;
var
  Index: Integer;
begin
  Result := '<html>';
  for Index := 0 to Lines.Count - 1 do
    Result := Result + RowOf(Lines[Index]); // planted: page
end;

procedure WriteMonthlyReport(Count: Integer);
var
  Lines: TStringList;
  Index: Integer;
begin
  Lines := TStringList.Create;
  for Index := 1 to Count do
    Lines.Add(StringOfChar('r', 480)); // planted: report
  Lines.Free;
end;

end.
