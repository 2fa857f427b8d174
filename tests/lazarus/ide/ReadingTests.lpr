/// Tests of what the window of the IDE reads: leaks, profiles, event logs, a running program. No window.
program ReadingTests;

{$mode objfpc}{$H+}

uses
  Classes, SysUtils, BaseUnix, fpcunit, testregistry, consoletestrunner,
  LaneIdeRows, LaneIdeReports, LaneIdeReading, LaneIdeRuns, LaneIdeWords;

type
  TReadingTests = class(TTestCase)
  private
    Report: TReport;
    Folder: string;
    procedure ReadRun;
    procedure ReadLines(const Text: string);
    procedure ReadBroken;
    procedure ReadOther;
    procedure ReadWrongParent;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure RetainedSizesAreThoseOfAllBelow;
    procedure LeaksAreCountedByTheLineOfTheProgram;
    procedure FramesOfLibrariesAreNotTheLine;
    procedure ClassesThatAreNotInUseAreLeftOut;
    procedure AnErrorHasItsPartsAndItsLine;
    procedure LeaksInALogAreNoErrors;
    procedure GrowthIsSinceTheFirstLook;
    procedure WhatHoldsMemoryIsATree;
    procedure WhatHoldsMemoryIsNoRun;
    procedure ADifferenceHasOnlyChanges;
    procedure WhatIsGoneIsAChange;
    procedure ABrokenFileIsAnError;
    procedure AnotherFormatIsAnError;
    procedure AWrongParentIsAnError;
    procedure AFileThatIsNoReportHidesNoOther;
    procedure FiftyThousandPlacesAreRows;
    procedure AnEmptyReportSaysWhatToDo;
    procedure AmountsHaveUnits;
    procedure AProgramThatPrintsWithoutEndHoldsUpNothing;
  end;

const
  Leaks = '{"program":"/p/Shop","process":7,"topic":"leaks","blocks":3,"bytes":100,"groups":['
    + '{"group":1,"name":"TOrder","blocks":1,"bytes":20,"places":[{"blocks":1,"bytes":20,"stack":['
    + '{"routine":"SYSTEM.NEW"},{"routine":"SELL","file":"Shop.lpr","line":5},'
    + '{"routine":"main","file":"Shop.lpr","line":9}]}]},'
    + '{"group":4,"name":"AnsiString","blocks":2,"bytes":80,"places":[]}],"retainerTree":['
    + '{"parent":0,"group":1,"blocks":1,"bytes":20,"cycle":false},'
    + '{"parent":1,"group":4,"blocks":2,"bytes":80,"cycle":true}]}';
  Held = '{"topic":"held","program":"/p/Shop","process":7,"blocks":2,"bytes":50,"groups":['
    + '{"group":1,"name":"variable SHOP.ORDERS","blocks":0,"bytes":0,"places":[]},'
    + '{"group":2,"name":"TOrder","blocks":2,"bytes":50,"places":[]}],"retainerTree":['
    + '{"parent":0,"group":1,"blocks":0,"bytes":0,"cycle":false},'
    + '{"parent":1,"group":2,"blocks":2,"bytes":50,"cycle":false}]}';
  Profile = '{"format":"lanemm","version":1,"head":{"program":"/p/Shop","process":7,"used":64},'
    + '"profiles":[{"kind":"heap","columns":[{"name":"alloc_objects"},{"name":"alloc_space"},'
    + '{"name":"inuse_objects"},{"name":"inuse_space"}],"frames":[{"name":"main","file":"Shop.lpr",'
    + '"line":9},{"name":"NEW","file":"sys.pp","line":3,"library":1}],"classes":[{"name":"TOrder"},'
    + '{"name":"TGone"}],"sites":[{"stack":[0,1],"values":[3,96,2,64],"classes":[[0,2,64,2,64],'
    + '[1,1,32,0,0]]}]}]}';
  Log = 'LaneMM: process 7, thread 7, version 1.0.0, 2026-11-29 07:50:15 UTC, ./Shop:'#10
    + 'Double free: the block was already freed.'#10
    + '  Block $00007e1acaa785e0: 20 bytes, allocation number 172, thread 7.'#10
    + '  Allocated by thread 7 at'#10
    + '      00000000004013ba  MAKE  Shop.lpr:48'#10
    + '  Freed again at'#10
    + '      00000000004013cb  SYSTEM.FREEMEM  Shop+0x4013ca'#10
    + '      00000000004013cc  DROP  Shop.lpr:50 (inlined)'#10
    + '      00007e1acaa785d0  e7 e7 e7 e7 e7 e7 e7 e7 e7 e7 e7 e7 e7 e7 e7 e7  ................'#10
    + 'LaneMM: process 7, thread 7, version 1.0.0, 2026-11-29 07:50:15 UTC, ./Shop:'#10
    + 'Memory leaks: 100 blocks, 6,102 bytes:'#10
    + '  20 x Shop.TOrder, 480 bytes'#10;

procedure TReadingTests.SetUp;
begin
  Report := TReport.Create;
end;

procedure TReadingTests.TearDown;
begin
  FreeAndNil(Report);
end;

procedure TReadingTests.ReadLines(const Text: string);
var
  Lines: TStringList;
begin
  Lines := TStringList.Create;
  Lines.Text := Text;
  ReadLog(Report, Lines);
  Lines.Free;
end;

procedure TReadingTests.RetainedSizesAreThoseOfAllBelow;
var
  Order: TRow;
begin
  ReadJson(Report, Leaks);
  Order := Report.Views[vkRetained].Root[0];
  AssertEquals('TOrder', Order.Text);
  AssertEquals('retained', 100, Order.Amounts[0]);
  AssertEquals('own', 20, Order.Amounts[1]);
  AssertEquals('AnsiString (cycle)', Order[0].Text);
  AssertEquals('of what is below', 80, Order[0].Amounts[0]);
  AssertEquals('Shop, process 7', Report.Head);
end;

procedure TReadingTests.LeaksAreCountedByTheLineOfTheProgram;
var
  Line: TRow;
begin
  ReadJson(Report, Leaks);
  Line := Report.Views[vkLeakLines].Root[0];
  AssertEquals('SELL Shop.lpr:5', Line.Text + ' ' + Line.Place);
  AssertEquals(20, Line.Amounts[0]);
  AssertEquals('its class, and below that its callers', 'TOrder main',
    Line[0].Text + ' ' + Line[0][0].Text);
end;

procedure TReadingTests.FramesOfLibrariesAreNotTheLine;
var
  Line: TRow;
begin
  ReadJson(Report, Profile);
  Line := Report.Views[vkLines].Root[0];
  AssertEquals('Shop.lpr:9', Line.Place);
  AssertEquals('in use', 64, Line.Amounts[InUseBytes]);
  AssertEquals('allocated', 96, Line.Amounts[AllocatedBytes]);
  AssertEquals('allocations', 3, Line.Amounts[AllocatedBlocks]);
end;

procedure TReadingTests.ClassesThatAreNotInUseAreLeftOut;
begin
  ReadJson(Report, Profile);
  AssertEquals(1, Report.Views[vkClasses].Root.Count);
  AssertEquals('TOrder', Report.Views[vkClasses].Root[0].Text);
  AssertEquals('a class leads to its line', 'Shop.lpr:9', Report.Views[vkClasses].Root[0].Placed.Place);
end;

procedure TReadingTests.AnErrorHasItsPartsAndItsLine;
var
  Error: TRow;
begin
  ReadLines(Log);
  Error := Report.Views[vkErrors].Root[0];
  AssertEquals('Double free: the block was already freed.', Error.Text);
  AssertEquals('Shop.lpr:50', Error.Place);
  AssertEquals('block, allocated, freed, dump', 4, Error.Count);
  AssertEquals('MAKE Shop.lpr:48', Error[1][0].Text + ' ' + Error[1][0].Place);
  AssertEquals('two frames', 2, Error[2].Count);
end;

procedure TReadingTests.LeaksInALogAreNoErrors;
begin
  ReadLines(Log);
  AssertEquals(1, Report.Views[vkErrors].Root.Count);
end;

procedure TReadingTests.GrowthIsSinceTheFirstLook;
const
  State = '{"process":7,"totals":{"usedBytes":%d},"contents":[{"name":"TOrder","blocks":1,"bytes":%0:d},'
    + '{"name":"TKept","blocks":1,"bytes":9}],"classes":[],"large":{},"threads":[]}';
var
  First: TRow;
begin
  ReadLive(Report, Format(State, [100]), nil);
  AssertEquals('at first', 0, Report.Views[vkLive].Root[0][0].Amounts[0]);
  First := Report.Views[vkLive].Root;
  Report.Views[vkLive].Root := TRow.Create;
  ReadLive(Report, Format(State, [130]), First);
  AssertEquals('of a class', 30, Report.Views[vkLive].Root[0][0].Amounts[0]);
  AssertEquals('of another one', 0, Report.Views[vkLive].Root[0][1].Amounts[0]);
  AssertEquals('of all', 30, Report.Views[vkLive].Root[0].Amounts[0]);
  First.Free;
end;

procedure TReadingTests.WhatHoldsMemoryIsATree;
begin
  ReadJson(Report, Held);
  AssertEquals('variable SHOP.ORDERS', Report.Views[vkHeld].Root[0].Text);
  AssertEquals('retained', 50, Report.Views[vkHeld].Root[0].Amounts[0]);
  AssertEquals('TOrder', Report.Views[vkHeld].Root[0][0].Text);
  AssertEquals('its blocks', 2, Report.Views[vkHeld].Root[0][0].Amounts[2]);
  AssertEquals('no leaks', 0, Report.Views[vkRetained].Root.Count);
end;

// Then there is no run before to compare with, and what was open stays open.
procedure TReadingTests.WhatHoldsMemoryIsNoRun;
begin
  ReadHeld(Report, Held);
  AssertTrue(Report.IsEmpty);
  Report.Views[vkHeld].Root[0].IsOpen := True;
  ReadHeld(Report, Held);
  AssertEquals(1, Report.Views[vkHeld].Root.Count);
  AssertTrue(Report.Views[vkHeld].Root[0].IsOpen);
end;

procedure TReadingTests.ADifferenceHasOnlyChanges;
var
  After, Change: TReport;
begin
  ReadJson(Report, Leaks);
  After := TReport.Create;
  ReadJson(After, StringReplace(Leaks, '"bytes":80,"cycle"', '"bytes":90,"cycle"', []));
  Change := After.Since(Report);
  AssertEquals('more is retained', 10, Change.Views[vkRetained].Root[0].Amounts[0]);
  AssertEquals('by the strings', 10, Change.Views[vkRetained].Root[0][0].Amounts[0]);
  AssertEquals('lines are the same', 0, Change.Views[vkLeakLines].Root.Count);
  AssertEquals(rsNoChange, Change.Views[vkLeakLines].Advice);
  Change.Free;
  After.Free;
end;

procedure TReadingTests.WhatIsGoneIsAChange;
var
  After, Change: TReport;
begin
  ReadJson(Report, Leaks);
  After := TReport.Create;
  Change := After.Since(Report);
  AssertEquals(-100, Change.Views[vkRetained].Root[0].Amounts[0]);
  Change.Free;
  After.Free;
end;

procedure TReadingTests.ReadBroken;
begin
  ReadJson(Report, Copy(Leaks, 1, 300));
end;

procedure TReadingTests.ABrokenFileIsAnError;
var
  IsRefused: Boolean;
begin
  IsRefused := False;
  try
    ReadBroken;
  except
    on Exception do
      IsRefused := True;
  end;
  AssertTrue(IsRefused);
end;

procedure TReadingTests.ReadOther;
begin
  ReadJson(Report, '{"topic":"weather"}');
end;

procedure TReadingTests.AnotherFormatIsAnError;
begin
  AssertException(ELaneIde, @ReadOther);
end;

procedure TReadingTests.ReadWrongParent;
begin
  ReadJson(Report, StringReplace(Leaks, '"parent":1', '"parent":8', []));
end;

procedure TReadingTests.AWrongParentIsAnError;
begin
  AssertException(ELaneIde, @ReadWrongParent);
end;

procedure WriteFile(const FileName, Text: string);
var
  Lines: TStringList;
begin
  Lines := TStringList.Create;
  Lines.Text := Text;
  Lines.SaveToFile(FileName);
  Lines.Free;
end;

procedure TReadingTests.ReadRun;
begin
  ReadFolder(Report, Folder, rkLeaks);
end;

// A run with `leaks`, and the setting `rate` in the box, leaves a profile for another tool, too.
procedure TReadingTests.AFileThatIsNoReportHidesNoOther;
begin
  Folder := NewFolder;
  WriteFile(Folder + '/Shop_MemoryManager_heap.7.speedscope.json', '{"profiles":[]}');
  WriteFile(Folder + '/Shop_MemoryManager_leaks.json', Leaks);
  ReadRun;
  AssertEquals('a profile for another tool', 1, Report.Views[vkRetained].Root.Count);
  WriteFile(Folder + '/Shop_MemoryManager_broken.json', '{');
  FreeAndNil(Report);
  Report := TReport.Create;
  AssertException(ELaneIde, @ReadRun);
  AssertEquals('a broken file', 1, Report.Views[vkRetained].Root.Count);
  DropFolder(Folder);
end;

procedure TReadingTests.FiftyThousandPlacesAreRows;
var
  Root: TRow;
  Number: Integer;
begin
  Root := TRow.Create;
  for Number := 1 to 50000 do
    Inc(Root.Obtain('R' + IntToStr(Number), 'a.pas', Number).Amounts[0]);
  for Number := 50000 downto 1 do
    Inc(Root.Obtain('R' + IntToStr(Number), 'a.pas', Number).Amounts[0], Number);
  AssertEquals(50000, Root.Count);
  Root.Sort(0);
  AssertEquals(50001, Root[0].Amounts[0]);
  AssertEquals(2, Root[49999].Amounts[0]);
  Root.Free;
end;

procedure TReadingTests.AnEmptyReportSaysWhatToDo;
const
  Nothing = '{"program":"Shop","topic":"leaks","blocks":0,"bytes":0,"groups":[],"retainerTree":[]}';
begin
  AssertEquals(rsRunLeaksFirst, Report.Views[vkRetained].Advice);
  ReadJson(Report, Nothing);
  AssertEquals(rsNoLeaks, Report.Views[vkRetained].Advice);
  AssertEquals('not of another kind', rsRunProfileFirst, Report.Views[vkLines].Advice);
end;

procedure TReadingTests.AmountsHaveUnits;
begin
  AssertEquals('9,999', BytesText(9999));
  AssertEquals('9.8 KB', BytesText(10000));
  AssertEquals('-1.0 MB', BytesText(-1 shl 20));
  AssertEquals('1,234,567', CountText(1234567));
  AssertEquals('-12', CountText(-12));
end;

// SIGALRM ends the tests where a call does not come back.
procedure TReadingTests.AProgramThatPrintsWithoutEndHoldsUpNothing;
const
  PatienceSeconds = 30;
var
  Target: TTarget;
  Task: TTask;
begin
  Target := TTarget.Create;
  Target.FileName := '/usr/bin/yes';
  Task := StartTarget(Target, '', '');
  fpAlarm(PatienceSeconds);
  while Length(Task.Output) < Task.Most do // each Poll returns, and the task keeps Most bytes
    AssertTrue('it runs', Task.Poll);
  Task.Stop;
  while Task.Poll do
    Sleep(10);
  fpAlarm(0);
  Task.Free;
  Target.Free;
end;

var
  Runner: TTestRunner;
begin
  RegisterTest(TReadingTests);
  Runner := TTestRunner.Create(nil);
  Runner.Initialize;
  Runner.Run;
  Runner.Free;
end.
