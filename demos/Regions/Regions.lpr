/// A parsed JSON text that is thrown away: node by node, and with the region that it lies in.
//
// FCL's parser knows nothing of regions: it is called inside of a scope.
program Regions;

{$mode delphi}{$H+}

uses
  {$ifdef unix} cthreads, {$endif}
  SysUtils, Classes, Math, FpJson, JsonScanner, JsonParser, Demo.Options, Demo.Report, Demo.Machine;

const
  Usage =
    'Makes a JSON text, parses it into a tree and throws the tree away: by TJSONData.Free,'#10 +
    'which frees one node after the other, and, on LaneMM, by LaneMM_RegionFree. Prints both'#10 +
    'times, the least of all rounds.'#10 +
    '  --count=N       customers in the text, 91,000: 20 MB, a million nodes'#10 +
    '  --rounds=N      rounds, 3'#10;
  Nodes = 11; // of each customer
  Unmeasured = 1e9;

type
  /// Milliseconds, the least of all rounds.
  TTimes = record
    Parse, Discard: Double;
  end;

var
  Count: Integer;
  Text: string;

procedure MakeText;
const
  Customer = '{"id":%0:d,"name":"Customer %0:d","address":"%0:d Long Street, 12345 Some Town, ' +
    'Some Region, Some Country","e-mail":"customer.%0:d@shop.example.com",' +
    '"tags":["regular","invoice","newsletter"],' +
    '"total":%0:d.25,"active":true}';
var
  Lines: TStringList;
  Number: Integer;
begin
  Lines := TStringList.Create;
  for Number := 1 to Count do
    Lines.Add(Format(Customer, [Number]) + Copy(',', 1, Ord(Number < Count)));
  Text := '[' + Lines.Text + ']';
  Lines.Free;
end;

function Parse: TJSONData;
var
  Parser: TJSONParser;
begin
  Parser := TJSONParser.Create(Text, [joUTF8]);
  try
    Result := Parser.Parse;
  finally
    Parser.Free;
  end;
end;

/// Returns the number of nodes of a tree.
function NodeCount(Data: TJSONData): Int64;
var
  Index: Integer;
begin
  Result := 1;
  if Data.JSONType in [jtArray, jtObject] then
    for Index := 0 to Data.Count - 1 do
      Inc(Result, NodeCount(Data.Items[Index]));
end;

procedure CheckTree(Tree: TJSONData);
begin
  if NodeCount(Tree) = 1 + Int64(Count) * Nodes then
    Exit;
  WriteLn(StdErr, ProgramName, ': nodes were lost');
  Halt(1);
end;

procedure Note(var Times: TTimes; Start, Parsed, Checked, Discarded: Double);
begin
  Times.Parse := Min(Times.Parse, Parsed - Start);
  Times.Discard := Min(Times.Discard, Discarded - Checked);
end;

procedure OneByOne(var Times: TTimes);
var
  Start, Parsed, Checked: Double;
  Tree: TJSONData;
begin
  Start := ClockMs;
  Tree := Parse;
  Parsed := ClockMs;
  CheckTree(Tree);
  Checked := ClockMs;
  Tree.Free;
  Note(Times, Start, Parsed, Checked, ClockMs);
end;

procedure Print(const Title, Key: string; const Times: TTimes);
begin
  ReportText('%-36s%10.1f%12.2f', [Title, Times.Parse, Times.Discard]);
  ReportValue(Key + '.parse_ms', Times.Parse);
  ReportValue(Key + '.discard_ms', Times.Discard);
end;

{$if declared(LaneMM_RegionCreate)}
procedure WithRegion(var Times: TTimes);
var
  Start, Parsed, Checked: Double;
  Region: TLaneMM_Region;
  Tree: TJSONData;
begin
  Region := LaneMM_RegionCreate('customers', 0);
  Start := ClockMs;
  LaneMM_RegionEnter(Region);
  try
    Tree := Parse;
  finally
    LaneMM_RegionLeave;
  end;
  Parsed := ClockMs;
  CheckTree(Tree);
  Checked := ClockMs;
  if not LaneMM_RegionFree(Region) then
    Halt(1);
  Note(Times, Start, Parsed, Checked, ClockMs);
end;
{$ifend}

procedure Compare(Rounds: Integer);
var
  Single, Whole: TTimes;
  Round: Integer;
begin
  Single.Parse := Unmeasured;
  Single.Discard := Unmeasured;
  Whole := Single;
  for Round := 1 to Rounds do
  begin
    OneByOne(Single);
    {$if declared(LaneMM_RegionCreate)}
    WithRegion(Whole);
    {$ifend}
  end;
  Print('TJSONData.Free', 'single', Single);
  if Whole.Discard = Unmeasured then
    Exit; // of another manager
  Print('LaneMM_RegionFree', 'region', Whole);
  ReportText('LaneMM_RegionFree takes %.3f of the time of TJSONData.Free.',
    [Whole.Discard / Single.Discard]);
  ReportValue('ratio', Whole.Discard / Single.Discard);
end;

begin
  OptionsRead(Usage, ['count=', 'rounds=']);
  Count := OptionNumber('count', 91000, 1000000);
  MakeText;
  ReportTitle(Format('%.1f MB of JSON, %s nodes', [Length(Text) / BytesPerMb,
    Grouped(1 + Int64(Count) * Nodes)]));
  ReportText('%-36s%10s%12s', ['', 'parse ms', 'discard ms']);
  Compare(OptionNumber('rounds', 3, 1000));
end.
