/// What a demo prints: text for people or, with --csv, lines `key=value` for a script.
unit Demo.Report;

{$mode delphi}{$H+}

interface

const
  /// What a demo calls a MB.
  BytesPerMb = 1024 * 1024;

/// Prints the first line: the program, what it works on, and the memory manager.
procedure ReportTitle(const Work: string);

/// Prints a line of text, made by SysUtils.Format; nothing with --csv.
procedure ReportText(const Line: string; const Values: array of const);

/// Prints Key=Value with --csv, with at most three decimals; nothing without.
procedure ReportValue(const Key: string; Value: Double);

/// Writes a whole number with separators: 10,000,000.
function Grouped(Value: Int64): string;

implementation

uses
  SysUtils, Math, Demo.Options;

procedure ReportTitle(const Work: string);
var
  Manager: string;
begin
  Manager := OptionText('manager', 'this build''s memory manager');
  if OptionGiven('csv') then
    WriteLn('manager=', Manager)
  else
    WriteLn(Format('%s with %s: %s', [ProgramName, Manager, Work]));
end;

procedure ReportText(const Line: string; const Values: array of const);
begin
  if not OptionGiven('csv') then
    WriteLn(Format(Line, Values));
end;

procedure ReportValue(const Key: string; Value: Double);
begin
  if OptionGiven('csv') then
    WriteLn(Key, '=', FloatToStr(RoundTo(Value, -3)));
end;

function Grouped(Value: Int64): string;
begin
  Result := Format('%.0n', [1.0 * Value]);
end;

end.
