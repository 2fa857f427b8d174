/// Tests of LaneMM.Profile, LaneMM.Sampler and the formats, on a program with known amounts.
unit Test.Profile;

{$mode delphi}{$H+}

interface

uses
  Test.Tools, fpjson;

type
  TProfileTests = class(TLaneTest)
  strict private
    procedure Near(Count, Size: Integer; BytesOfOne, Actual: Double; const What: string);
    procedure NearBytes(Count, Size: Integer; const ValueName, Routine: string);
    procedure NearBlocks(Count, Size: Integer; const ValueName, Routine: string);
    procedure RunSamples(const Settings: string);
    procedure IsJson(const Text: string);
    procedure TextIsSampled(const Settings: string);
  published
    procedure AllocatedBytesAreEstimatedBySite;
    procedure SameSeedSamplesTheSame;
    {$ifndef LANEMM_PUREPASCAL}
    procedure PascalTwinSamplesTheSame;
    {$endif}
    procedure BytesInUseAreEstimatedBySite;
    procedure GrownBlocksAreSampledAnew;
    procedure GrownBlocksAreSampledAnewWhileGrowthIsCounted;
    procedure GrowthIsCountedExactlyWhileBlocksAreSampled;
    procedure FoldedStacksGoFromOuterToInner;
    procedure FramesBeyondTheDepthAreCut;
    procedure PprofIsGzip;
    procedure SpeedscopeNamesFileAndLine;
    procedure FilesHaveProcessTimeAndCommandLine;
    procedure PageHoldsTheData;
    procedure NothingIsWrittenWithoutProfile;
    procedure HighestRateDoesNoHarm;
    procedure ContentionCanBeAProfile;
    procedure GrowthCanBeAProfile;
    procedure HeadWithoutSamplesSaysNothingOfThem;
    procedure RemoteFreesAreNotTakenLocks;
    procedure GrowthHasTheAdviceOfTheLog;
  end;

implementation

uses
  SysUtils, Math, jsonparser, testregistry, Test.Programs, LaneMM;

const
  Rate = 4096;

var
  Samples, Events: TTestProgram;

function Planted: TTestProgram;
begin
  if Samples = nil then
    Samples := TTestProgram.Create('WatchSamples', '-O1 -gl -Xs-');
  Result := Samples;
end;

function PlantedEvents: TTestProgram;
begin
  if Events = nil then
    Events := TTestProgram.Create('WatchEvents', '-O1 -gl -Xs-');
  Result := Events;
end;

// A value of all samples whose stack has the routine, out of the speedscope file.
function ValueOf(const ValueName, Routine: string): Double;
var
  All: TJSONData;
  Values: TJSONObject;
  Index, Frame: Integer;
  Stack: TJSONArray;
begin
  Result := 0;
  All := GetJSON(Planted.Written('heap.*.speedscope.json'));
  try
    for Index := 0 to All.FindPath('profiles').Count - 1 do
      if TJSONArray(All.FindPath('profiles')).Objects[Index].Strings['name'] = ValueName then
        Values := TJSONArray(All.FindPath('profiles')).Objects[Index];
    for Index := 0 to Values.Arrays['samples'].Count - 1 do
    begin
      Stack := Values.Arrays['samples'].Arrays[Index];
      for Frame := 0 to Stack.Count - 1 do
        if All.FindPath(Format('shared.frames[%d].name', [Stack.Integers[Frame]])).AsString
          = 'WATCHSAMPLES.' + Routine then
          Result := Result + Values.Arrays['weights'].Floats[Index];
    end;
  finally
    All.Free;
  end;
end;

// The line of the most frequent call site in an event log.
function FirstLineOf(const Log: string): string;
begin
  Result := Copy(Log, Pos('  1. ', Log), MaxInt);
  Result := Copy(Result, 1, Pos(#10, Result));
end;

// A block of Size bytes is sampled with probability Share = 1 - exp(-Size / Rate), independently
// of the others, and then stands for 1 / Share blocks. So the estimate of Count blocks has the
// variance Count * (1 - Share) / Share; random rounding adds at most a quarter for each sampled
// block.
procedure TProfileTests.Near(Count, Size: Integer; BytesOfOne, Actual: Double; const What: string);
const
  // One wrong alarm in two million seeds.
  Deviations = 5;
var
  Share, Sigma: Double;
begin
  Inc(AssertCount);
  Share := 1 - Exp(-Size / Rate);
  Sigma := Sqrt(Count * (1 - Share) / Share * Sqr(BytesOfOne) + Count * Share / 4);
  if Abs(Actual - Count * BytesOfOne) > Deviations * Sigma then
    Fail('%s, seed %d: expected %.0f with a standard deviation of %.0f, found %.0f', [What, TestSeed,
      Count * BytesOfOne, Sigma, Actual]);
end;

procedure TProfileTests.NearBytes(Count, Size: Integer; const ValueName, Routine: string);
begin
  Near(Count, Size, Size, ValueOf(ValueName, Routine), ValueName + ' of ' + Routine);
end;

procedure TProfileTests.NearBlocks(Count, Size: Integer; const ValueName, Routine: string);
begin
  Near(Count, Size, 1, ValueOf(ValueName, Routine), ValueName + ' of ' + Routine);
end;

procedure TProfileTests.IsJson(const Text: string);
var
  Data: TJSONData;
begin
  Data := GetJSON(Text);
  AssertNotNull('no JSON in: ' + Text, Data);
  Data.Free;
end;

procedure TProfileTests.RunSamples(const Settings: string);
begin
  Planted.Run(Format('%s,speedscope,rate=%d', [Settings, Rate]), [IntToStr(TestSeed)]);
end;

procedure TProfileTests.AllocatedBytesAreEstimatedBySite;
begin
  RunSamples('profile');
  NearBytes(100000, 640, 'alloc_space', 'KEEP');
  NearBytes(1000000, 96, 'alloc_space', 'TURN');
  NearBytes(50000, 320, 'alloc_space', 'CROSS');
  NearBytes(100, 300000, 'alloc_space', 'LARGE');
  NearBlocks(100000, 640, 'alloc_objects', 'KEEP');
  NearBlocks(1000000, 96, 'alloc_objects', 'TURN');
end;

procedure TProfileTests.SameSeedSamplesTheSame;
var
  First: Double;
begin
  RunSamples('profile');
  First := ValueOf('alloc_space', 'TURN');
  RunSamples('profile');
  AssertEquals(First, ValueOf('alloc_space', 'TURN'), 0);
end;

{$ifndef LANEMM_PUREPASCAL}
procedure TProfileTests.PascalTwinSamplesTheSame;
var
  First: Double;
begin
  RunSamples('profile');
  First := ValueOf('alloc_space', 'TURN');
  FreeAndNil(Samples);
  Samples := TTestProgram.Create('WatchSamples', '-O1 -gl -Xs- -dLANEMM_PUREPASCAL');
  try
    RunSamples('profile');
    AssertEquals(First, ValueOf('alloc_space', 'TURN'), 0);
    NearBytes(100000, 640, 'inuse_space', 'KEEP');
  finally
    FreeAndNil(Samples);
  end;
end;
{$endif}

procedure TProfileTests.BytesInUseAreEstimatedBySite;
begin
  RunSamples('profile');
  NearBytes(100000, 640, 'inuse_space', 'KEEP');
  NearBytes(50, 300000, 'inuse_space', 'LARGE');
  AssertEquals('bytes freed at once', 0, ValueOf('inuse_space', 'TURN'), 0);
  AssertEquals('bytes freed by another thread', 0, ValueOf('inuse_space', 'CROSS'), 0);
end;

// The text ends with 20,000,000 characters; its last resize was requested when it had at least two
// thirds of them. So large a block is certain to be sampled.
procedure TProfileTests.TextIsSampled(const Settings: string);
begin
  RunSamples(Settings);
  AtLeast(13200000, Round(ValueOf('inuse_space', 'TEXT')), 'bytes of the text');
  AtMost(20001000, Round(ValueOf('inuse_space', 'TEXT')), 'bytes of the text');
end;

procedure TProfileTests.GrownBlocksAreSampledAnew;
begin
  TextIsSampled('profile');
end;

procedure TProfileTests.GrownBlocksAreSampledAnewWhileGrowthIsCounted;
begin
  TextIsSampled('profile,growth');
end;

// The first line of a log without its moves: they depend on where other threads have a lock.
function GrowthOf(const Log: string): string;
begin
  Result := FirstLineOf(Log);
  Result := Copy(Result, 1, Pos(' KB, ', Result));
end;

procedure TProfileTests.GrowthIsCountedExactlyWhileBlocksAreSampled;
var
  Expected: string;
begin
  PlantedEvents.Run('growth', ['growth', '100000']);
  Expected := GrowthOf(PlantedEvents.Written('EventLog.txt'));
  AssertTrue(Expected, Pos(' 99,999 times ', Expected) > 0);
  PlantedEvents.Run('growth,profile,folded,rate=1K', ['growth', '100000']);
  AssertEquals(Expected, GrowthOf(PlantedEvents.Written('EventLog.txt')));
end;

procedure TProfileTests.FoldedStacksGoFromOuterToInner;
begin
  Planted.Run('profile,folded', []);
  AssertTrue(Pos('main;WATCHSAMPLES.KEEP ', Planted.Written('heap.*.folded')) > 0);
end;

procedure TProfileTests.FramesBeyondTheDepthAreCut;
begin
  Planted.Run('profile,folded,json,speedscope,pprof,depth=1', []);
  Planted.EndedWith(0);
  AssertTrue(Pos('(cut);WATCHSAMPLES.KEEP ', Planted.Written('heap.*.folded')) > 0);
end;

procedure TProfileTests.PprofIsGzip;
begin
  Planted.Run('profile,pprof', []);
  AssertEquals(0, ExecuteProcess('/bin/sh',
    ['-c', 'gzip -t "' + Planted.Folder + '"WatchSamples_MemoryManager_heap.*.pb.gz']));
end;

procedure TProfileTests.SpeedscopeNamesFileAndLine;
begin
  Planted.Run('profile,speedscope', []);
  IsJson(Planted.Written('.speedscope.json'));
  AssertTrue(Pos(Format('"name":"WATCHSAMPLES.KEEP","file":"WatchSamples.lpr","line":%d}',
    [Planted.PlantedLine('keep')]), Planted.Written('.speedscope.json')) > 0);
end;

// The file of pprof is stored without compression.
procedure TProfileTests.FilesHaveProcessTimeAndCommandLine;
var
  Suffix, Text: string;
begin
  Planted.Run('profile,pprof,speedscope', [IntToStr(TestSeed)]);
  for Suffix in TStringArray.Create('heap.*.speedscope.json', 'heap.*.pb.gz') do
  begin
    Text := Planted.Written(Suffix);
    AssertTrue(Suffix + ': process', Pos(Format(' %d, process ', [TestSeed]), Text) > 0);
    AssertTrue(Suffix + ': version', Pos(', version ' + LaneMM_Version + ', 20', Text) > 0);
    AssertTrue(Suffix + ': time', Pos(' UTC', Text) > 0);
  end;
end;

procedure TProfileTests.PageHoldsTheData;
begin
  Planted.Run('profile,html', []);
  AssertTrue(Pos('"name":"WATCHSAMPLES.KEEP"', Planted.Written('.html')) > 0);
  AssertTrue(Pos('</html>', Planted.Written('.html')) > 0);
  AssertEquals('', Planted.Written('.folded'));
end;

procedure TProfileTests.NothingIsWrittenWithoutProfile;
begin
  Planted.Run('contention,least=1000000', []);
  AssertEquals('', Planted.Written(''));
end;

// A distance that no word holds ended the program.
procedure TProfileTests.HighestRateDoesNoHarm;
begin
  PlantedEvents.Run('profile,json,rate=18446744073709551615', ['text', '3000']);
  PlantedEvents.EndedWith(0);
  PlantedEvents.Run('guard=sample:18446744073709551615', ['text', '3000']);
  PlantedEvents.EndedWith(0);
end;

procedure TProfileTests.ContentionCanBeAProfile;
begin
  PlantedEvents.Run('contention,folded', ['frees', '300']);
  AssertTrue(Pos('WATCHEVENTS.FREEBLOCK 300', PlantedEvents.Written('.folded')) > 0);
end;

procedure TProfileTests.GrowthCanBeAProfile;
begin
  PlantedEvents.Run('growth,speedscope', ['growth', '1000']);
  IsJson(PlantedEvents.Written('.speedscope.json'));
end;

procedure TProfileTests.HeadWithoutSamplesSaysNothingOfThem;
const
  Hour = 3600000;
var
  All: TJSONData;
  Name: string;
begin
  PlantedEvents.Run('contention,growth,json', ['growth', '1000']);
  All := GetJSON(PlantedEvents.Written('.json'));
  try
    for Name in TStringArray.Create('rate', 'samples', 'samples_lost', 'error', 'temporary', 'every_ms') do
      AssertNull(Name, All.FindPath('head.' + Name));
    AtLeast(All.FindPath('head.run_ms').AsInt64, Hour, 'milliseconds');
  finally
    All.Free;
  end;
end;

procedure TProfileTests.RemoteFreesAreNotTakenLocks;
var
  All: TJSONData;
begin
  PlantedEvents.Run('contention,json', ['frees', '300']);
  All := GetJSON(PlantedEvents.Written('.json'));
  try
    AssertEquals('remote_frees', All.FindPath('profiles[0].columns[1].name').AsString);
    AssertEquals('taken_locks', All.FindPath('profiles[0].columns[2].name').AsString);
    AssertTrue(All.AsJSON, Pos('"values" : [300, 300, 0]', All.AsJSON) > 0);
  finally
    All.Free;
  end;
end;

procedure TProfileTests.GrowthHasTheAdviceOfTheLog;
var
  All, Site: TJSONData;
begin
  PlantedEvents.Run('growth,json', ['list', '1000']);
  All := GetJSON(PlantedEvents.Written('.json'));
  try
    Site := All.FindPath('profiles[0].sites[0]');
    AssertEquals('WatchEvents.lpr:' + IntToStr(PlantedEvents.PlantedLine('list')),
      Site.FindPath('place').AsString);
    AssertEquals('a list', Site.FindPath('grew').AsString);
    AssertEquals('set Capacity first', Site.FindPath('advice').AsString);
  finally
    All.Free;
  end;
end;

initialization
  RegisterTest(TProfileTests);
finalization
  Samples.Free;
  Events.Free;
end.
