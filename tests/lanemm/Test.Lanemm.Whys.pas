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
    procedure WhatNothingLeadsToIsInTheTree;
    procedure TheTreeIsAReport;
    procedure TheTreeHasTheLinesOfItsBlocks;
  end;

implementation

uses
  SysUtils, fpJson, testregistry, Test.Cases;

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
  Refuses(Format('why %d TAlpha --json', [Planted.Id]), 2, 'without `TAlpha`');
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

initialization
  RegisterCases(TWhyTests, 'lanemm/Why');
end.
