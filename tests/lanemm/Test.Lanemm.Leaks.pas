/// Tests of `lanemm report PID leaks`: blocks that nothing in a process points to.
unit Test.Lanemm.Leaks;

{$mode delphi}{$H+}

interface

uses
  fpJson, Test.Lanemm.Tools;

type
  /// Processes with planted leaks: objects, objects that hold another one, pairs in a cycle.
  TLeakTests = class(TPlantedTest)
  private
    procedure HasPlanted(Json: TJSONObject);
    /// Calls `lanemm report leaks` with these options for JSON, which is freed with the next call, or
    /// with the test.
    function Read(const Options: string): TJSONObject;
  published
    procedure LeaksOfAStoppedProcessAreExact;
    procedure AStoppedProcessStaysStopped;
    procedure APausedProcessGoesOn;
    procedure LeaksOfARunningProcessAreFound;
    procedure LeaksOfACoreFileAreExact;
    procedure WhatACoreFileLacksIsNotSearched;
    procedure LeaksWithDebugAreExact;
    procedure LeaksOfNoBytesAreFoundWithDebug;
    procedure TablesOfLaneMMAreNoRoots;
    procedure TablesOfOneSettingAreNoRoots;
    procedure LeaksAreNamedByTheLinesThatAllocatedThem;
    procedure DataOfALineAreOneGroup;
    procedure WhatPackedRecordsHoldIsNoLeak;
    procedure DataBetweenObjectsIsNoRetainer;
    procedure LeaksOfACProgramAreFound;
    procedure ARealCProgramHasFewLeaks;
    procedure StacksInOneMappingAreRead;
    procedure RowsOfManyGroupsAreFound;
  end;

implementation

uses
  SysUtils, Classes, BaseUnix, Test.Cases, HeapLeaks;

const
  // See Planted.lpr.
  GammaHeads = 50;
  LeakedGroups = 3;
  Cycles = 5;
  LeakedBlocks = 40 + 2 * 10 + 2 * 5;

// Finds the chain of retainers that ends with the class; the one without a parent.
function RootOf(Json: TJSONObject; const Group: TJSONObject): TJSONObject;
var
  Index: Integer;
begin
  for Index := 0 to Json.Arrays['retainerTree'].Count - 1 do
  begin
    Result := Json.Arrays['retainerTree'].Objects[Index];
    if (Result.Int64s['group'] = Group.Int64s['group']) and (Result.Int64s['parent'] = 0) then
      Exit;
  end;
  raise Exception.Create('no chain begins with it: ' + Json.AsJSON);
end;

procedure TLeakTests.HasPlanted(Json: TJSONObject);
var
  Group, Chain: TJSONObject;
begin
  Group := Item(Json, 'groups', 'name', 'Planted.TGamma');
  Chain := RootOf(Json, Group);
  Same(GammaHeads, Chain.Int64s['blocks'], 'objects that nothing points to');
  Check(not Chain.Booleans['cycle'], 'they are no cycle');
  Same(Group.Int64s['bytes'] + Item(Json, 'groups', 'name', 'Planted.TAlpha').Int64s['bytes'],
    Group.Int64s['retained'], 'with what they hold');
  Same(10, Item(Json, 'groups', 'name', 'Planted.TAlpha').Int64s['blocks'], 'held objects');
  Group := Item(Json, 'groups', 'name', 'Planted.TBeta');
  Check(RootOf(Json, Group).Booleans['cycle'], 'pairs are cycles');
  Same(2 * Cycles, Group.Int64s['blocks'], 'objects of cycles');
end;

function TLeakTests.Read(const Options: string): TJSONObject;
begin
  Result := Ask(Format('report %d leaks --json %s', [Planted.Id, Options]));
end;

procedure TLeakTests.LeaksOfAStoppedProcessAreExact;
var
  Json: TJSONObject;
begin
  StartAndStop('./Planted leak', '');
  Json := Read('');
  HasPlanted(Json);
  Same(LeakedBlocks, Json.Int64s['blocks'], 'all leaks');
  Same(LeakedGroups, Json.Arrays['groups'].Count, 'groups ' + Json.Arrays['groups'].AsJSON);
  Same(1, Json.Int64s['looks'], 'looks');
  AtLeast(2, Json.Int64s['threadsWithRegisters'], 'threads');
  CheckEquals('', Errors);
  CallWell(Format('report %d leaks', [Planted.Id]));
  Has('Leaks: 70 of ', Printed);
  Has('cycles with Planted.TBeta', Printed);
  Has('-> Planted.TAlpha', Printed);
  CallWell(Format('report %d leaks --html', [Planted.Id]));
  Has('<!doctype html>', LowerCase(Printed));
  Has('"name" : "Planted.TGamma"', Printed);
end;

procedure TLeakTests.AStoppedProcessStaysStopped;
begin
  StartAndStop('./Planted leak', '');
  CallWell(Format('report %d leaks', [Planted.Id]));
  Planted.AwaitStop;
  CallWell(Format('report %d leaks', [Planted.Id]));
  Has('Leaks: 70 of ', Printed);
  Planted.Send(SIGCONT);
  Check(Planted.AwaitEnd, 'it goes on to its end');
end;

procedure TLeakTests.APausedProcessGoesOn;
var
  Json: TJSONObject;
  Turn: Integer;
begin
  Start('./Planted leakchurn', '');
  for Turn := 1 to 5 do
  begin
    Json := Read('--pause');
    HasPlanted(Json);
    // Each of two threads, with 1,000 blocks each, may be about to return a large one or a list.
    AtMost(LeakedBlocks + 100, Json.Int64s['blocks'], 'leaks');
    Same(1, Json.Int64s['looks'], 'looks');
    Check(not Planted.IsStopped, 'it runs again');
  end;
end;

procedure TLeakTests.LeaksOfARunningProcessAreFound;
begin
  Start('./Planted leakchurn', '');
  HasPlanted(Read(''));
  AtLeast(2, Answer.Int64s['looks'], 'looks');
  Has('the process runs', Errors);
end;

procedure TLeakTests.LeaksOfACoreFileAreExact;
var
  Core: string;
begin
  StartAndStop('./Planted leak', '');
  Core := Format('%sleaks.%d', [Built, Planted.Id]);
  try
    Shell(Format('gcore -o leaks %d', [Planted.Id]));
    Check(FileExists(Core), 'gcore wrote a file');
    HasPlanted(Ask(Format('report %s leaks --json', [Core])));
    Same(LeakedBlocks, Answer.Int64s['blocks'], 'all leaks');
  finally
    DeleteFile(Core);
  end;
end;

// Makes the last segment of variables 64 TB long; the file has its first bytes.
procedure LengthenSegment(const FileName: string);
const
  SegmentsPlace = 32; // in the head
  HeadBytes = 56;     // of a segment
  LengthPlace = 40;   // in that
  LoadSegment = $600000001; // with the rights to read and write
  Length = QWord(1) shl 46;
var
  Core: TFileStream;
  Place, Found: Int64;
  Index, Count: Integer;
begin
  Core := TFileStream.Create(FileName, fmOpenReadWrite);
  Core.Position := SegmentsPlace;
  Place := Core.ReadQWord;
  Core.Position := SegmentsPlace + 24;
  Count := Core.ReadWord;
  Found := Place;
  for Index := 0 to Count - 1 do
  begin
    Core.Position := Place + Index * HeadBytes;
    if Core.ReadQWord = LoadSegment then
      Found := Place + Index * HeadBytes;
  end;
  Core.Position := Found + LengthPlace;
  Core.WriteQWord(Length);
  Core.Free;
end;

// As memory that a program keeps out of its core file. Each of its pages was looked for.
procedure TLeakTests.WhatACoreFileLacksIsNotSearched;
var
  Core: string;
begin
  StartAndStop('./Planted leak', '');
  Core := Format('%sleaks.%d', [Built, Planted.Id]);
  try
    Shell(Format('gcore -o leaks %d', [Planted.Id]));
    LengthenSegment(Core);
    Has('the program reaches none of them', Shell(Format('timeout 60 ../lanemm report %s leaks',
      [Core])));
    Same(0, ExitStatus, 'exit code');
  finally
    DeleteFile(Core);
  end;
end;

procedure TLeakTests.LeaksWithDebugAreExact;
begin
  StartAndStop('./Planted leak', 'LANEMM=debug');
  HasPlanted(Read(''));
  Same(LeakedBlocks, Answer.Int64s['blocks'], 'all leaks');
end;

// The last one may still lie on its stack.
procedure TLeakTests.LeaksOfNoBytesAreFoundWithDebug;
begin
  StartAndStop('./Planted leakempty', 'LANEMM=debug');
  AtLeast(LeakedBlocks + 9, Read('').Int64s['blocks'], 'leaks');
  AtMost(LeakedBlocks + 10, Answer.Int64s['blocks'], 'leaks');
end;

// They hold the addresses of all blocks that they sampled, here each.
procedure TLeakTests.TablesOfLaneMMAreNoRoots;
begin
  StartAndStop('./Planted leak', 'LANEMM=profile,rate=1,growth,contention,quiet');
  HasPlanted(Read(''));
  Same(LeakedBlocks, Answer.Int64s['blocks'], 'all leaks');
end;

// The blocks that grew are in the table of growth. The last of them may still lie on its stack.
procedure TLeakTests.TablesOfOneSettingAreNoRoots;
const
  Settings: array[0..2] of string = ('growth', 'contention', 'profile,rate=1');
  Grown = 100;
var
  Setting: string;
begin
  for Setting in Settings do
  begin
    StartAndStop('./Planted leakgrown', 'LANEMM=quiet,' + Setting);
    HasPlanted(Read(''));
    AtLeast(LeakedBlocks + Grown - 1, Answer.Int64s['blocks'], Setting + ': leaks');
    AtMost(LeakedBlocks + Grown, Answer.Int64s['blocks'], Setting + ': leaks');
    Start('./Planted leakchurn', 'LANEMM=quiet,' + Setting);
    HasPlanted(Read('--pause'));
  end;
end;

// As debug blocks, by their notes, by samples of all of them, and by those of a running process.
procedure TLeakTests.LeaksAreNamedByTheLinesThatAllocatedThem;
const
  Modes: array[0..3] of string = ('debug', 'stacks', 'profile,rate=1', 'stacks');
var
  Mode: Integer;
  Group, Place: TJSONObject;
begin
  for Mode := 0 to High(Modes) do
  begin
    if Mode = High(Modes) then
      Start('./Planted leakchurn', 'LANEMM=quiet,' + Modes[Mode])
    else
      StartAndStop('./Planted leak', 'LANEMM=quiet,' + Modes[Mode]);
    Group := Item(Read(''), 'groups', 'name', 'Planted.TGamma');
    Same(2, Group.Arrays['places'].Count, Modes[Mode] + ': lines');
    Place := Group.Arrays['places'].Objects[0];
    Same(40, Place.Int64s['blocks'], Modes[Mode] + ': blocks of the first line');
    Has('"PLANTED.LEAK"', Place.Arrays['stack'].Items[0].AsJSON);
    Has('Planted.lpr', Place.Arrays['stack'].Items[0].AsJSON);
    Same(10, Group.Arrays['places'].Objects[1].Int64s['blocks'], Modes[Mode] + ': of the second');
    CallWell(Format('report %d leaks', [Planted.Id]));
    Has('   at PLANTED.LEAK  Planted.lpr:', Printed);
  end;
end;

// The C program has no lines: a routine then.
procedure TLeakTests.DataOfALineAreOneGroup;
var
  Group: TJSONObject;
begin
  StartAndStop('env LD_PRELOAD=' + Root + 'build/lib/liblanemm.so ./PlantedC', 'LANEMM=stacks');
  Group := Item(Read(''), 'groups', 'name', 'data of plant');
  AtLeast(799 + 4, Group.Int64s['blocks'], 'leaks');
end;

// Seven of eight addresses in an array of records of 9 bytes lie at no multiple of 8.
procedure TLeakTests.WhatPackedRecordsHoldIsNoLeak;
begin
  StartAndStop('./Planted leakpacked', '');
  HasPlanted(Read(''));
  Same(LeakedBlocks, Answer.Int64s['blocks'], 'leaks');
end;

// As in a report of the process: the search is the same.
procedure TLeakTests.DataBetweenObjectsIsNoRetainer;
var
  Json, List: TJSONObject;
  Tree: TJSONArray;
  Index, Number, Below: Integer;
begin
  StartAndStop('./Planted leaklist', '');
  Json := Read('');
  List := RootOf(Json, Item(Json, 'groups', 'name', 'Classes.TFPList'));
  Tree := Json.Arrays['retainerTree'];
  Number := Tree.IndexOf(List) + 1;
  Below := 0;
  for Index := 0 to Tree.Count - 1 do
    if (Tree.Objects[Index].Int64s['parent'] = Number)
      and (Tree.Objects[Index].Int64s['blocks'] = 5) then
      Inc(Below);
  Same(1, Below, 'the five objects are below the list ' + Tree.AsJSON);
end;

// It forgets 800 small blocks and 5 large ones; the last one of each may still lie on its stack.
procedure TLeakTests.LeaksOfACProgramAreFound;
begin
  StartAndStop('./PlantedC', 'LD_PRELOAD=' + Root + 'build/lib/liblanemm.so');
  AtLeast(799 + 4, Read('').Int64s['blocks'], 'leaks');
  AtMost(805, Answer.Int64s['blocks'], 'leaks');
end;

procedure TLeakTests.ARealCProgramHasFewLeaks;
begin
  StartAndStop('python3 -c "import json, os, signal; x = [bytes(5000) for i in '
    + 'range(2000)]; print(''ready 1'', flush=True); os.kill(os.getpid(), signal.SIGSTOP)"',
    'LD_PRELOAD=' + Root + 'build/lib/liblanemm.so');
  AtLeast(2000, Read('').Int64s['blocksInUse'], 'blocks in use');
  AtMost(Answer.Int64s['blocksInUse'] div 100, Answer.Int64s['blocks'], 'leaks '
    + Answer.Arrays['groups'].AsJSON);
end;

procedure TLeakTests.StacksInOneMappingAreRead;
begin
  StartAndStop('./PlantedC stacks', 'LD_PRELOAD=' + Root + 'build/lib/liblanemm.so');
  AtLeast(2, Read('').Int64s['blocksInUse'], 'blocks in use');
  AtMost(1000000, Answer.Int64s['bytes'], 'bytes of leaks, ' + Answer.Arrays['groups'].AsJSON);
end;

// Each group has two lines, each chain two others below it. A search of all rows for each would take
// 10^11 steps.
procedure TLeakTests.RowsOfManyGroupsAreFound;
const
  Count = 300000;
var
  Leaks: TLeaks;
  Index: Integer;
begin
  Leaks := Default(TLeaks);
  SetLength(Leaks.Places, Count * 2);
  SetLength(Leaks.Chains, Count * 2 + 1);
  for Index := 0 to High(Leaks.Places) do
  begin
    Leaks.Places[Index].Group := Index mod Count;
    Leaks.Places[Index].Bytes := Index + 1;
  end;
  for Index := 0 to High(Leaks.Chains) do
  begin
    Leaks.Chains[Index].Parent := (Index + 1) div 2;
    Leaks.Chains[Index].Retained := Index;
  end;
  RankLeaks(Leaks);
  for Index := 0 to Count - 1 do
  begin
    Same(2, Length(PlacesOf(Leaks, Index)), 'lines');
    Same(Index + Count, PlacesOf(Leaks, Index)[0], 'the line with most bytes');
    Same(Index, PlacesOf(Leaks, Index)[1], 'the other one');
    Same(2, Length(ChainsBelow(Leaks, Index + 1)), 'chains');
    Same(Index * 2 + 2, ChainsBelow(Leaks, Index + 1)[0], 'the chain that retains most');
    Same(1, Length(ChainsBelow(Leaks, Index + 1, Index * 2 + 2)), 'chains that retain enough');
  end;
end;

initialization
  RegisterCases(TLeakTests, 'lanemm/Leak');
end.
