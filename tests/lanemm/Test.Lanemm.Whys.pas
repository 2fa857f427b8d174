/// Tests of `lanemm why`: from which variable which ways lead to blocks.
unit Test.Lanemm.Whys;

{$mode delphi}{$H+}

interface

uses
  Test.Lanemm.Tools;

type
  /// The blocks of Planted.lpr.
  TWhyTests = class(TPlantedTest)
  published
    procedure BlocksOfAClassAreCountedByTheirWays;
    procedure AWayGoesThroughLists;
    procedure AWayGoesThroughPackedRecords;
    procedure APackedRecordIsAHolder;
    procedure AnAddressHasItsLinks;
    procedure WhatAloneHoldsMemoryIsATree;
    procedure ACoreFileHasTheSameWays;
    procedure WhatIsNotThereIsNamed;
  end;

implementation

uses
  SysUtils, testregistry;

// 10 of them are held by leaks.
procedure TWhyTests.BlocksOfAClassAreCountedByTheirWays;
begin
  StartAndStop('./Planted leak', '');
  CallWell(Format('why %d planted.talpha', [Planted.Id]));
  Has('         750     35.2 KB  variable PLANTED.ALPHAS -> Planted.TAlpha'#10
    + '          10       480 B  nothing'#10, Printed);
  CallWell(Format('why %d TAlpha --most=1', [Planted.Id]));
  Has('1 more; --most=0 shows all', Printed);
  HasNot('nothing', Printed);
end;

procedure TWhyTests.AWayGoesThroughLists;
begin
  StartAndStop('./Planted leakstale', '');
  CallWell(Format('why %d TGamma', [Planted.Id]));
  Has('          12     1,152 B  variable PLANTED.LIST -> Contnrs.TFPHashList -> data -> Planted.TGamma'#10,
    Printed);
end;

procedure TWhyTests.AWayGoesThroughPackedRecords;
begin
  StartAndStop('./Planted leakpacked', '');
  CallWell(Format('why %d TGamma', [Planted.Id]));
  Has('          40     3,840 B  variable PLANTED.PACKS -> dynamic array -> Planted.TGamma'#10, Printed);
end;

procedure TWhyTests.APackedRecordIsAHolder;
begin
  StartAndStop('./Planted leakpacked', '');
  CallWell(Format('state %d --at=$%x --holders', [Planted.Id, Planted.Number('packed')]));
  Has('  dynamic array at $', Printed);
  Has(', offset 26'#10, Printed); // 16 of the array, 9 of a record, a byte of the next one
end;

procedure TWhyTests.AnAddressHasItsLinks;
begin
  StartAndStop('./Planted stop', '');
  CallWell(Format('why %d $%x', [Planted.Id, Planted.Number('alpha')]));
  CheckEquals('variable PLANTED.ALPHAS'#10'-> Planted.TAlpha at $'
    + LowerCase(HexStr(Planted.Number('alpha'), 12)) + #10, Printed);
end;

// The data are held by two objects of an array: by none of them alone.
procedure TWhyTests.WhatAloneHoldsMemoryIsATree;
begin
  StartAndStop('./Planted held', '');
  CallWell(Format('why %d', [Planted.Id]));
  Has('       4,001    297.3 KB  variable PLANTED.KEPT'#10
    + '       4,001    297.3 KB    -> dynamic array'#10
    + '       4,000    281.3 KB      -> Planted.TGamma'#10
    + '       2,000     93.8 KB        -> Planted.TAlpha'#10
    + '           1    100.0 KB  variable PLANTED.PAIR -> Planted.TBeta'#10
    + '           1    100.0 KB    -> data'#10, Printed);
end;

procedure TWhyTests.ACoreFileHasTheSameWays;
var
  Core: string;
begin
  StartAndStop('./Planted leak', '');
  Core := Format('%swhys.%d', [Built, Planted.Id]);
  try
    Shell(Format('gcore -o whys %d', [Planted.Id]));
    CallWell(Format('why %s TAlpha', [Core]));
    Has('         750     35.2 KB  variable PLANTED.ALPHAS -> Planted.TAlpha'#10, Printed);
  finally
    DeleteFile(Core);
  end;
end;

procedure TWhyTests.WhatIsNotThereIsNamed;
begin
  StartAndStop('./Planted stop', '');
  Call(Format('why %d TDelta', [Planted.Id]));
  Refused(1, 'no block in use holds a `TDelta`');
  Call(Format('why %d 0x10', [Planted.Id]));
  Refused(1, 'no block in use lies at $10');
end;

initialization
  RegisterTest(TWhyTests);
end.
