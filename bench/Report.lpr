/// Makes the benchmark page, and the data of its charts, from a results file.
program Report;

{$I Bench.inc}

uses
  SysUtils, Runner.Load, Runner.Page, Runner.Results, Runner.Suite;

const
  Usage =
    'Report SUITE RESULTS LINK CHARTS DATA' + LineEnding +
    'Report --summary SUITE RESULTS' + LineEnding +
    'Report --headline SUITE RESULTS' + LineEnding +
    '  SUITE    the suite file' + LineEnding +
    '  RESULTS  the CSV file that Runner wrote' + LineEnding +
    '  LINK     the same file, as the page links to it' + LineEnding +
    '  CHARTS   the directory of the charts, as the page links to it' + LineEnding +
    '  DATA     the directory where the data of the charts go' + LineEnding +
    '  The page goes to the output; with --summary or --headline the numbers of README.md.';
  ArgumentCount = 5;
  SummaryArgumentCount = 3;

procedure WriteSummary;
var
  Results: TResults;
  Header: TStringArray;
begin
  Results := ResultsLoad(ParamStr(3), SuiteLoad(ParamStr(2)), Header);
  try
    if ParamStr(1) = '--headline' then
      HeadlineWrite(Results, 'benchmarks')
    else
      SummaryWrite(Results, Header);
  finally
    Results.Free;
  end;
end;

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
  if (ParamCount = SummaryArgumentCount) and ParamStr(1).StartsWith('--') then
    WriteSummary
  else if ParamCount = ArgumentCount then
    Main
  else
  begin
    WriteLn(StdErr, Usage);
    Halt(2);
  end;
end.
