/// Tests of what lanemm shows of the regions of a process.
unit Test.Lanemm.Regions;

{$mode delphi}{$H+}

interface

uses
  fpJson, Test.Lanemm.Tools;

type
  /// A program with regions that has stopped itself, in the scope of one.
  TRegionsTest = class(TPlantedTest)
  protected
    /// Fails unless the region with a limit has the numbers that the program has printed.
    procedure HasNumbers;
  published
    procedure RegionsHaveTheNumbersOfTheProcess;
    procedure RegionsOfOneNameAreOneLine;
    procedure LeaksAreGroupedByRegion;
  end;

  /// Without `debug`.
  TRegionsTests = class(TRegionsTest)
  published
    procedure AThreadInARegionIsOneThread;
    procedure ContentsNameTheirRegion;
  end;

  /// With it.
  TRegionsDebugTests = class(TRegionsTest)
  protected
    procedure SetUp; override;
  end;

implementation

uses
  SysUtils, testregistry, Test.Cases;

const
  OrdersName = 'orders "new"';
  Requests = 30;
  Forgotten = 20;

procedure TRegionsTest.HasNumbers;
var
  Region: TJSONObject;
begin
  Region := Item(Answer, 'regions', 'name', OrdersName);
  Same(Planted.Number('regionBlocks'), Region.Int64s['blocks'], 'blocks');
  Same(Planted.Number('regionBytes'), Region.Int64s['bytes'], 'bytes');
  Same(Planted.Number('regionCommitted'), Region.Int64s['committedBytes'], 'memory');
  Same(Planted.Number('regionPeak'), Region.Int64s['peakBytes'], 'peak');
  Same(Planted.Number('regionLimit'), Region.Int64s['limitBytes'], 'limit');
  Same(1, Region.Int64s['inside'], 'scopes');
end;

procedure TRegionsTest.RegionsHaveTheNumbersOfTheProcess;
begin
  Ask(Format('state %d --json', [Planted.Id]));
  HasNumbers;
  HasNot('"freed"', Answer.Arrays['regions'].AsJSON);
end;

procedure TRegionsTest.RegionsOfOneNameAreOneLine;
var
  Region: TJSONObject;
begin
  Region := Item(Ask(Format('state %d --json', [Planted.Id])), 'regions', 'name', 'request');
  Same(Requests, Region.Int64s['regions'], 'regions');
  Same(Requests div 2, Region.Int64s['blocks'], 'blocks');
end;

procedure TRegionsTest.LeaksAreGroupedByRegion;
var
  Group: TJSONObject;
begin
  Group := Item(Ask(Format('report %d leaks --json', [Planted.Id])), 'groups', 'name',
    'Planted.TGamma in region "' + OrdersName + '"');
  Same(Forgotten, Group.Int64s['blocks'], 'forgotten objects');
  CheckEquals(OrdersName, Group.Strings['region']);
  AtLeast(Forgotten, Item(Answer, 'regions', 'name', OrdersName).Int64s['blocks'], 'sum');
  Same(Requests div 2, Item(Answer, 'regions', 'name', 'request').Int64s['blocks'], 'requests');
  CallWell(Format('report %d leaks', [Planted.Id]));
  Has('leaks in region', Printed);
end;

// ---------------------------------------------------------------------------- TRegionsTests

procedure TRegionsTests.AThreadInARegionIsOneThread;
var
  Threads: TJSONArray;
  Index, Found: Integer;
begin
  Threads := Ask(Format('state %d --json', [Planted.Id])).Arrays['threads'];
  Found := 0;
  for Index := 0 to Threads.Count - 1 do
    Inc(Found, Ord(Threads.Objects[Index].Int64s['thread'] = Planted.Id));
  Same(1, Found, Threads.AsJSON);
end;

procedure TRegionsTests.ContentsNameTheirRegion;
begin
  Item(Ask(Format('state %d --json --contents', [Planted.Id])), 'contents', 'name',
    'Planted.TAlpha in region "' + OrdersName + '"');
  HasNot('data of 8192 bytes in region \"orders', Answer.AsJSON); // freed when it grew
end;

// ---------------------------------------------------------------------------- TRegionsDebugTests

procedure TRegionsDebugTests.SetUp;
begin
  StartAndStop('./Planted regions', 'LANEMM=debug');
end;

initialization
  RegisterCases(TRegionsTests, 'lanemm/Regions');
  RegisterTest(TRegionsDebugTests);
end.
