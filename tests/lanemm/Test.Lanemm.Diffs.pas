/// Tests of `lanemm diff` in pipelines: limits, formats, and the page about them.
unit Test.Lanemm.Diffs;

{$mode delphi}{$H+}

interface

uses
  Test.Lanemm.Tools;

type
  /// What fails a pipeline, and how it is shown.
  TDiffTests = class(TLanemmTest)
  private
    procedure WriteText(const FileName, Text: string);
  published
    procedure GrowthOverTheLimitHasAnExitCode;
    procedure AProfileWithoutSitesIsNothing;
    procedure GrowthOfOneNameIsNotHiddenByOthers;
    procedure LinesThatMoveAreNoGrowth;
    procedure DifferencesAreATableInMarkdown;
    procedure DifferencesAreATestForServers;
    procedure LimitsThatAreNoneAreRefused;
    procedure ThePageOfPipelinesIsTrue;
  end;

implementation

uses
  SysUtils, Classes, testregistry, DOM, XMLRead;

procedure TDiffTests.WriteText(const FileName, Text: string);
var
  Lines: TStringList;
begin
  Lines := TStringList.Create;
  Lines.Text := Text;
  Lines.SaveToFile(Built + FileName);
  Lines.Free;
end;

procedure TDiffTests.GrowthOverTheLimitHasAnExitCode;
begin
  WriteText('small.folded', 'main;a 1000'#10'main;b|c 1000');
  WriteText('large.folded', 'main;a 1200'#10'main;b|c 900');
  CallWell('diff small.folded large.folded --fail-over=5%');
  CallWell('diff small.folded large.folded --fail-over=100');
  CallWell('diff large.folded small.folded --fail-over=0');
  Call('diff small.folded large.folded --fail-over=4.9%');
  Refused(8, 'all: +100 B (5.0 %), more than 4.9%');
  Has('+100 B', Printed);
  Call('diff small.folded large.folded --fail-over=99');
  Refused(8, 'more than 99');
  CallWell('diff small.folded large.folded --fail-over=0.1K');
end;

procedure TDiffTests.AProfileWithoutSitesIsNothing;
begin
  WriteText('empty.json', '{"profiles":[]}');
  CallWell('diff empty.json empty.json --value=alloc_space --fail-over=0');
  WriteText('none.folded', '');
  Call('diff none.folded small.folded --fail-over=1000%');
  Refused(8, 'all: +2,000 B, more than 1000%');
end;

procedure TDiffTests.GrowthOfOneNameIsNotHiddenByOthers;
begin
  WriteText('small.folded', 'main;a 1000'#10'main;b 1000');
  WriteText('moved.folded', 'main;a 500'#10'main;b 1500');
  CallWell('diff small.folded moved.folded --fail-over=5%');
  Call('diff small.folded moved.folded --fail-over=5% --each');
  Refused(8, 'b < main: +500 B (50.0 %), more than 5%');
end;

procedure TDiffTests.LinesThatMoveAreNoGrowth;
const
  Profile = '{"profiles":[{"columns":[{"name":"inuse_space"}],"main":0,"frames":[{"name":"Load",'
    + '"file":"a.pas","line":%d}],"sites":[{"stack":[0],"values":[1000]}]}]}';
begin
  WriteText('line7.json', Format(Profile, [7]));
  WriteText('line8.json', Format(Profile, [8]));
  CallWell('diff line7.json line8.json --fail-over=0 --each');
  HasNot('a.pas', Printed);
end;

procedure TDiffTests.DifferencesAreATableInMarkdown;
begin
  WriteText('small.folded', 'main;a|b 1000');
  WriteText('large.folded', 'main;a|b 1500');
  Call('diff small.folded large.folded --fail-over=5% --format=markdown');
  Same(8, ExitStatus, 'exit code');
  Has('**all: +500 B (50.0 %), more than 5%**'#10#10'| change |', Printed);
  Has('| +500 B | 0 | 1,000 B | 1,500 B | `a\|b < main` |', Printed);
end;

procedure TDiffTests.DifferencesAreATestForServers;
var
  Document: TXMLDocument;
  Suite: TDOMElement;
begin
  WriteText('small.folded', 'main;a<b> 1000');
  WriteText('large.folded', 'main;a<b> 1500');
  Call('diff small.folded large.folded --fail-over=5% --each --format=junit');
  Same(8, ExitStatus, 'exit code');
  WriteText('diff.xml', Printed);
  ReadXMLFile(Document, Built + 'diff.xml');
  Suite := Document.DocumentElement.FirstChild as TDOMElement;
  Same(2, Suite.GetElementsByTagName('testcase').Count, 'test cases');
  Same(2, Suite.GetElementsByTagName('failure').Count, 'failures');
  AssertEquals('failures', '2', string(Suite.GetAttribute('failures')));
  AssertEquals('name', 'a<b> < main',
    string((Suite.FirstChild as TDOMElement).GetAttribute('name')));
  Document.Free;
  CallWell('diff large.folded small.folded --fail-over=5% --format=junit');
  Has('tests="1" failures="0"', Printed);
end;

procedure TDiffTests.LimitsThatAreNoneAreRefused;
const
  Wrong: array[0..4] of string = ('x', '-1', '5%%', '%', 'nan');
var
  Limit: string;
begin
  WriteText('small.folded', 'main;a 1000');
  for Limit in Wrong do
  begin
    Call('diff small.folded small.folded --fail-over=' + Limit);
    Refused(2, '--fail-over needs a number of bytes as 4096, 64K, 2M, or of percent as 5%');
  end;
  Call('diff small.folded small.folded --each');
  Refused(2, '--each needs --fail-over=N');
  Call('diff small.folded small.folded --format=xml');
  Refused(2, '--format needs text, markdown or junit');
end;

// In a repository that the script makes, each command of the page, its bisection, and what packages/ci
// tells servers to run.
procedure TDiffTests.ThePageOfPipelinesIsTrue;
begin
  AssertEquals('done'#10, Shell('sh ../../tests/lanemm/ci.sh'));
end;

initialization
  RegisterTest(TDiffTests);
end.
