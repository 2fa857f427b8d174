/// Tests of LaneMM.Profile, LaneMM.Sampler and the formats, on a program with known amounts.
unit Test.Profile;

{$mode delphi}{$H+}

interface

uses
  Test.Tools, fpjson;

type
  TProfileTests = class(TLaneTest)
  strict private
    procedure Near(Expected, Actual: Double; const What: string);
    procedure IsJson(const Text: string);
  published
    procedure AllocatedBytesAreEstimatedBySite;
    procedure PascalTwinSamplesTheSame;
    procedure BytesInUseAreEstimatedBySite;
    procedure FoldedStacksGoFromOuterToInner;
    procedure PprofIsGzip;
    procedure SpeedscopeNamesFileAndLine;
    procedure PageHoldsTheData;
    procedure NothingIsWrittenWithoutProfile;
    procedure ContentionCanBeAProfile;
    procedure GrowthCanBeAProfile;
  end;

implementation

uses
  SysUtils, Math, jsonparser, testregistry, Test.Programs;

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
  All := GetJSON(Planted.Written('.speedscope.json'));
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

// Sampling every 4 KB, 8 % are five standard deviations of the smallest amount here.
procedure TProfileTests.Near(Expected, Actual: Double; const What: string);
begin
  if Abs(Actual - Expected) > 0.08 * Expected + 1 then
    Fail('%s: expected about %.0f, found %.0f', [What, Expected, Actual]);
end;

procedure TProfileTests.IsJson(const Text: string);
begin
  GetJSON(Text).Free;
end;

procedure TProfileTests.AllocatedBytesAreEstimatedBySite;
begin
  Planted.Run('profile,speedscope,rate=4K', []);
  Near(64e6, ValueOf('alloc_space', 'KEEP'), 'bytes kept');
  Near(96e6, ValueOf('alloc_space', 'TURN'), 'bytes freed at once');
  Near(16e6, ValueOf('alloc_space', 'CROSS'), 'bytes freed by another thread');
  Near(30e6, ValueOf('alloc_space', 'LARGE'), 'bytes of large blocks');
  Near(100000, ValueOf('alloc_objects', 'KEEP'), 'blocks kept');
  Near(1000000, ValueOf('alloc_objects', 'TURN'), 'blocks freed at once');
end;

procedure TProfileTests.PascalTwinSamplesTheSame;
begin
  FreeAndNil(Samples);
  Samples := TTestProgram.Create('WatchSamples', '-O1 -gl -Xs- -dLANEMM_PUREPASCAL');
  try
    Planted.Run('profile,speedscope,rate=4K', []);
    Near(96e6, ValueOf('alloc_space', 'TURN'), 'bytes freed at once');
    Near(64e6, ValueOf('inuse_space', 'KEEP'), 'bytes kept');
  finally
    FreeAndNil(Samples);
  end;
end;

procedure TProfileTests.BytesInUseAreEstimatedBySite;
begin
  Planted.Run('profile,speedscope,rate=4K', []);
  Near(64e6, ValueOf('inuse_space', 'KEEP'), 'bytes kept');
  Near(0, ValueOf('inuse_space', 'TURN'), 'bytes freed at once');
  Near(0, ValueOf('inuse_space', 'CROSS'), 'bytes freed by another thread');
  Near(15e6, ValueOf('inuse_space', 'LARGE'), 'bytes of large blocks');
end;

procedure TProfileTests.FoldedStacksGoFromOuterToInner;
begin
  Planted.Run('profile,folded', []);
  AssertTrue(Pos('main;WATCHSAMPLES.KEEP;SYSTEM.GETMEM ', Planted.Written('.folded')) > 0);
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

procedure TProfileTests.PageHoldsTheData;
begin
  Planted.Run('profile,html', []);
  AssertTrue(Pos('"name":"WATCHSAMPLES.KEEP"', Planted.Written('.html')) > 0);
  AssertTrue(Pos('</html>', Planted.Written('.html')) > 0);
  AssertEquals('', Planted.Written('.folded'));
end;

procedure TProfileTests.NothingIsWrittenWithoutProfile;
begin
  Planted.Run('contention,growth,least=1000000', []);
  AssertEquals('', Planted.Written(''));
end;

procedure TProfileTests.ContentionCanBeAProfile;
begin
  PlantedEvents.Run('contention,folded', ['frees', '300']);
  AssertTrue(Pos('WATCHEVENTS.FREEBLOCK;SYSTEM.FREEMEM 300', PlantedEvents.Written('.folded')) > 0);
end;

procedure TProfileTests.GrowthCanBeAProfile;
begin
  PlantedEvents.Run('growth,speedscope', ['growth', '1000']);
  IsJson(PlantedEvents.Written('.speedscope.json'));
end;

initialization
  RegisterTest(TProfileTests);
finalization
  Samples.Free;
  Events.Free;
end.
