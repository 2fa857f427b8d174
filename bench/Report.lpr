/// Makes the benchmark page, and the data of its charts, from a results file.
program Report;

{$I Bench.inc}

uses
  SysUtils, Runner.Load, Runner.Page, Runner.Results, Runner.Suite;

const
  Usage =
    'Report SUITE RESULTS LINK CHARTS DATA' + LineEnding +
    '  SUITE    the suite file' + LineEnding +
    '  RESULTS  the CSV file that Runner wrote' + LineEnding +
    '  LINK     the same file, as the page links to it' + LineEnding +
    '  CHARTS   the directory of the charts, as the page links to it' + LineEnding +
    '  DATA     the directory where the data of the charts go' + LineEnding +
    '  The page goes to the output.';
  ArgumentCount = 5;

procedure Main;
var
  Results: TResults;
  Header: TStringArray;
begin
  Results := ResultsLoad(ParamStr(2), SuiteLoad(ParamStr(1)), Header);
  try
    ChartDataWrite(Results, ParamStr(5));
    PageWrite(Results, Header, ParamStr(3), ParamStr(4));
  finally
    Results.Free;
  end;
end;

begin
  if ParamCount <> ArgumentCount then
  begin
    WriteLn(StdErr, Usage);
    Halt(2);
  end;
  Main;
end.
