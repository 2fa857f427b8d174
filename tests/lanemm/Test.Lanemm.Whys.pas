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
    procedure WhatOnlyAnEndedRoutineHeldIsALeak;
    procedure WhatOnlyARegisterHoldsIsNoLeak;
    procedure WhatAloneHoldsMemoryIsATree;
    procedure WhatNothingLeadsToIsInTheTree;
    procedure TheTreeIsAReport;
    procedure TheTreeIsAPage;
    procedure TheTreeHasTheLinesOfItsBlocks;
    procedure TwoTreesAreCompared;
    procedure ACoreFileHasTheSameWays;
    procedure WhatIsNotThereIsNamed;
  end;

implementation

uses
  SysUtils, fpJson, testregistry;

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

// The words of a routine that has ended lie below the stack pointer.
procedure TWhyTests.WhatOnlyAnEndedRoutineHeldIsALeak;
begin
  StartAndStop('./Planted leakdeep', '');
  CallWell(Format('why %d TDeep', [Planted.Id]));
  Has('           1        48 B  nothing'#10, Printed);
  CallWell(Format('report %d leaks', [Planted.Id]));
  Has('Planted.TDeep', Printed);
end;

procedure TWhyTests.WhatOnlyARegisterHoldsIsNoLeak;
begin
  StartAndStop('./Planted inregister', '');
  CallWell(Format('why %d TDeep', [Planted.Id]));
  Has('           1        48 B  register -> Planted.TDeep'#10, Printed);
  CallWell(Format('report %d leaks', [Planted.Id]));
  HasNot('Planted.TDeep', Printed);
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

procedure TWhyTests.WhatNothingLeadsToIsInTheTree;
var
  Tree: TJSONArray;
  Group, Leaks: Int64;
  Index: Integer;
begin
  StartAndStop('./Planted leak', '');
  Ask(Format('why %d --json', [Planted.Id]));
  Group := Item(Answer, 'groups', 'name', 'nothing').Int64s['group'];
  Tree := Answer.Arrays['retainerTree'];
  Index := 0;
  while (Index < Tree.Count) and (Tree.Objects[Index].Int64s['group'] <> Group) do
    Inc(Index);
  Same(0, Tree.Objects[Index].Int64s['parent'], 'it is a root');
  Leaks := Item(Answer, 'groups', 'name', 'nothing').Int64s['retained'];
  Ask(Format('report %d leaks --json', [Planted.Id]));
  Same(Answer.Int64s['bytes'], Leaks, 'bytes of all leaks');
end;

procedure TWhyTests.TheTreeIsAReport;
var
  Each: TJSONEnum;
  Blocks, Bytes: Int64;
  Tree: string;
begin
  StartAndStop('./Planted held', '');
  Ask(Format('why %d --json', [Planted.Id]));
  CheckEquals('held', Answer.Strings['topic']);
  Same(281 * 1024 + 256, Item(Answer, 'groups', 'name', 'Planted.TGamma').Int64s['retained'], 'with what they hold');
  Same(297 * 1024 + 256, Item(Answer, 'groups', 'name', 'variable PLANTED.KEPT').Int64s['retained'], 'of a variable');
  Blocks := 0;
  Bytes := 0;
  for Each in Answer.Arrays['retainerTree'] do
  begin
    Check(TJSONObject(Each.Value).Int64s['parent'] <= Each.KeyNum, 'each is behind its parent');
    Inc(Blocks, TJSONObject(Each.Value).Int64s['blocks']);
    Inc(Bytes, TJSONObject(Each.Value).Int64s['bytes']);
  end;
  Same(Blocks, Answer.Int64s['blocks'], 'blocks of all rows');
  Same(Bytes, Answer.Int64s['bytes'], 'bytes of all rows');
  Tree := Answer.Arrays['retainerTree'].AsJSON;
  Ask(Format('why %d --json', [Planted.Id]));
  CheckEquals(Tree, Answer.Arrays['retainerTree'].AsJSON, 'the same again');
  Call(Format('why %d TAlpha --json', [Planted.Id]));
  Refused(2, 'without `TAlpha`');
end;

procedure TWhyTests.TheTreeIsAPage;
begin
  StartAndStop('./Planted held', '');
  CallWell(Format('why %d --html', [Planted.Id]));
  Has('<!DOCTYPE html>', Printed);
  Has('"variable PLANTED.PAIR -> Planted.TBeta"', Printed);
end;

procedure TWhyTests.TheTreeHasTheLinesOfItsBlocks;
var
  Place: TJSONObject;
begin
  StartAndStop('./Planted held', 'LANEMM=stacks');
  Ask(Format('why %d --json', [Planted.Id]));
  Place := Item(Answer, 'groups', 'name', 'Planted.TGamma').Arrays['places'].Objects[0];
  Same(2000, Place.Int64s['blocks'], 'blocks of its line');
  Has('"routine" : "PLANTED.HOLD", "file" : "Planted.lpr", "line" :', Place.AsJSON);
  Same(0, Item(Answer, 'groups', 'name', 'variable PLANTED.KEPT').Arrays['places'].Count, 'of a variable');
end;

procedure TWhyTests.TwoTreesAreCompared;
begin
  StartAndStop('./Planted stop', '');
  CallWell(Format('why %d --json', [Planted.Id]));
  WriteText('before.held', Printed);
  StartAndStop('./Planted held', '');
  CallWell(Format('why %d --json', [Planted.Id]));
  WriteText('after.held', Printed);
  CallWell(Format('diff %0:sbefore.held %0:safter.held', [Built]));
  Has('Planted.TGamma', Printed);
  Has('2,000', Printed);
  HasNot('PLANTED.KEPT', Printed);
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
