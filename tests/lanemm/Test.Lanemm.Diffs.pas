/// Tests of what is made of files: `lanemm diff` in pipelines, and `lanemm dhat`.
unit Test.Lanemm.Diffs;

{$mode delphi}{$H+}

interface

uses
  fpJson, Test.Lanemm.Tools;

type
  /// What fails a pipeline, and how it is shown.
  TDiffTests = class(TLanemmTest)
  published
    procedure ADeeplyNestedFileIsRefused;
    procedure DifferencesAreATestForServers;
  end;

  /// Files for the viewer of valgrind's DHAT.
  TDhatTests = class(TLanemmTest)
  private
    function Site: TJSONObject;
  published
    procedure TheViewerReadsAProfile;
    procedure SitesOfOneStackAreOne;
    procedure LivesAndThePeakOfASiteComeFromTheTimeLine;
    procedure LivesOfManyBlocksForMonthsHaveTheirLength;
    procedure FilesWithoutAProfileOfTheHeapAreRefused;
  end;

implementation

uses
  SysUtils, Classes, testregistry, Test.Cases, DOM, XMLRead;

// ---------------------------------------------------------------------------- TDiffTests

procedure TDiffTests.ADeeplyNestedFileIsRefused;
begin
  WriteText('deep.json', '{"profiles":' + StringOfChar('[', 300000));
  Refuses('diff deep.json deep.json', 7, 'deep.json is damaged: it is nested too deeply');
  WriteText('deep.json', '{"a":''"'',"profiles":' + StringOfChar('[', 300000));
  Refuses('diff deep.json deep.json', 7, 'deep.json is damaged: it is nested too deeply');
  Refuses('dhat deep.json', 7, 'deep.json is no JSON and no page of profiles');
  WriteText('brackets.json', '{"groups":[{"name":"' + StringOfChar('[', 5000) + '","blocks":1,"bytes":2}]}');
  CallWell('diff brackets.json brackets.json');
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
  HasNot('all'#10, string(Suite.FirstChild.FirstChild.TextContent));
  Has('all'#10, string(Suite.LastChild.FirstChild.TextContent));
  Document.Free;
  CallWell('diff large.folded small.folded --fail-over=5% --format=junit');
  Has('tests="1" failures="0"', Printed);
end;

// ---------------------------------------------------------------------------- TDhatTests

const
  // Two sites of one stack, 10 blocks of 100 bytes; half of them lives from 1 s to 3 s.
  Profile = '{"head":{"command":"./p","process":7,"run_ms":4000},"profiles":[{"columns":['
    + '{"name":"alloc_objects"},{"name":"alloc_space"},{"name":"inuse_objects"},'
    + '{"name":"inuse_space"},{"name":"peak_objects"},{"name":"peak_space"},{"name":"life_ms"}],'
    + '"main":3,"peak":{"ms":2000},"line":{"ms":[1000,2000,3000,4000]},'
    + '"frames":[{"name":"main"},{"name":"Load","file":"a.pas","line":7}],"sites":['
    + '{"stack":[0,1],"values":[5,500,0,0,5,500,0],"line":[500,500,0,0]},'
    + '{"stack":[0,1],"values":[5,500,2,200,0,0,30]}]}]}';

function TDhatTests.Site: TJSONObject;
begin
  WriteText('sites.json', Profile);
  Same(1, Ask('dhat sites.json').Arrays['pps'].Count, 'entries');
  Result := Answer.Arrays['pps'].Objects[0];
end;

// Its own code where node and valgrind are installed; else its rules.
procedure TDhatTests.TheViewerReadsAProfile;
const
  Formats: array[0..1] of string = ('json', 'html'); // the page has a time line of its own
var
  Each: string;
begin
  Shell('rm -rf dhat; mkdir dhat; LANEMM=profile,json,html,rate=1,log=$PWD/dhat/ ./Profiled 2');
  for Each in Formats do
    AssertEquals('done'#10, Shell(Format('../lanemm dhat dhat/*.%s > dhat.out'
      + ' && python3 ../../tests/lanemm/dhat.py dhat/*.json dhat.out', [Each])));
end;

procedure TDhatTests.SitesOfOneStackAreOne;
begin
  Same(1000, Site.Int64s['tb'], 'bytes');
  Same(10, Site.Int64s['tbk'], 'blocks');
  Same(200, Site.Int64s['eb'], 'bytes at the end');
  AssertEquals('frames', '[2, 1]', Site.Arrays['fs'].AsJSON);
  AssertEquals('names', '["[root]", "main", "Load (a.pas:7)"]', Answer.Arrays['ftbl'].AsJSON);
  Same(4000000, Answer.Int64s['te'], 'the end');
end;

procedure TDhatTests.LivesAndThePeakOfASiteComeFromTheTimeLine;
begin
  // 5 blocks for 2 s each, and 30 ms of the others.
  Same(10030000, Site.Int64s['tl'], 'microseconds');
  Same(700, Site.Int64s['mb'], 'most bytes');
end;

// 10 million blocks for a month; 1 TB in blocks of 100 bytes for three.
procedure TDhatTests.LivesOfManyBlocksForMonthsHaveTheirLength;
const
  Month = 10000000 * 2592000e6;
  Quarter = 1e10 * 7776000e6;
begin
  WriteText('months.json', Profile.Replace('[5,500,2,200,0,0,30]',
    '[10000000,1000000000,10000000,1000000000,0,0,25920000000000000]'));
  AssertEquals(1.0, Ask('dhat months.json').Arrays['pps'].Objects[0].Floats['tl'] / Month, 0.001);
  WriteText('months.json', Profile.Replace('[500,500,0,0]', '[1000000000000,0]')
    .Replace('[1000,2000,3000,4000]', '[0,7776000000]')
    .Replace('[5,500,0,0,5,500,0]', '[10000000000,1000000000000,0,0,0,0,0]'));
  AssertEquals(1.0, Ask('dhat months.json').Arrays['pps'].Objects[0].Floats['tl'] / Quarter, 0.001);
end;

procedure TDhatTests.FilesWithoutAProfileOfTheHeapAreRefused;
begin
  WriteText('none.json', '{"profiles":[]}');
  Refuses('dhat none.json', 1, 'none.json has no profile of the heap');
  WriteText('torn.json', Copy(Profile, 1, 300));
  Refuses('dhat torn.json', 7, 'torn.json is no JSON and no page of profiles');
  WriteText('bare.json', Copy(Profile, Pos('"profiles"', Profile) - 1).Replace(',"profiles', '{"profiles'));
  Refuses('dhat bare.json', 7, 'bare.json is damaged: ');
  WriteText('odd.json', Profile.Replace('"sites":[', '"sites":5,"others":['));
  Refuses('dhat odd.json', 7, 'odd.json is damaged: ');
  Refuses('dhat', 2, 'PROFILE is missing');
end;

initialization
  RegisterCases(TDiffTests, 'lanemm/Diff');
  RegisterTest(TDhatTests);
end.
