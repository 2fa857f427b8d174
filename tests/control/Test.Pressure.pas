/// Tests of LaneMM.Pressure and LaneMM.OsGroup: limits of control groups, by files of a folder.
/// tests/programs/Contained has one of the system.
unit Test.Pressure;

{$mode delphi}{$H+}

interface

uses
  Test.Tools, LaneMM.ReportState, LaneMM.OsGroup;

type
  TPressureTests = class(TQuietTest)
  strict private
    KeptRules: TEventRules;
    Root: string;
    procedure WriteText(const Name, Text: string);
    function GroupOf(const Lines: string): TGroupMemory;
    procedure IsGroup(Limit, Used: Int64; const Lines, What: string);
    procedure See(const Current: string);
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure LimitIsTheLesserOfMaxAndHigh;
    procedure GroupNearestToItsLimitCounts;
    procedure LimitOfVersion1Counts;
    procedure FilesThatTheSystemDropsDoNotCount;
    procedure ContainerSeesItsGroupAsTheRoot;
    procedure NothingIsKnownWithoutGroups;
    procedure TasksWaitWhenAPressureFileSaysSo;
    procedure CrossingIsReportedOnce;
    procedure WaitingTasksAreReported;
    procedure WarmMemoryIsPurgedAtEachLook;
    procedure CallIsTakenBackInTheRoutineForEvents;
    {$if defined(CPUX86_64) and not defined(LANEMM_PUREPASCAL)} // elsewhere no thread purges
    procedure CacheShrinksInTheThreadThatPurges;
    {$ifend}
    procedure LimitOfZeroEndsIt;
  end;

implementation

uses
  Classes, SysUtils, testregistry, Test.Programs, LaneMM, LaneMM.Atomic, LaneMM.Os, LaneMM.SettingsState,
  LaneMM.ObserveState, LaneMM.Pressure;

const
  Megabyte = 1 shl 20;
  Inner = '0::/outer/inner'#10;
  OfVersion1 = '11:name=memory2:/'#10'9:cpu,memory,pids:/outer/inner'#10'0::/'#10;

var
  Reported: string;

procedure Collect(Kind: TLaneMM_EventKind; Text: PAnsiChar; Length: NativeUInt);
begin
  if Kind = evLimit then
    Reported := Reported + Copy(string(Text), 1, Length);
end;

procedure RemoveFolder(const Folder: string);
var
  Found: TSearchRec;
begin
  if FindFirst(Folder + '/*', faAnyFile, Found) = 0 then
    repeat
      if Found.Name[1] = '.' then
        Continue;
      if Found.Attr and faDirectory <> 0 then
        RemoveFolder(Folder + '/' + Found.Name)
      else
        DeleteFile(Folder + '/' + Found.Name);
    until FindNext(Found) <> 0;
  FindClose(Found);
  RemoveDir(Folder);
end;

procedure TPressureTests.SetUp;
begin
  inherited SetUp;
  KeptRules := Report.Rules;
  Reported := '';
  Root := ExtractFilePath(ParamStr(0)) + 'pressure';
  RemoveFolder(Root);
  ForceDirectories(Root);
end;

procedure TPressureTests.TearDown;
begin
  Settings.GroupPath[0] := #0;
  StoreRelease(Observe.Pressed, 0);
  LaneMM_OnEvent(nil);
  Report.Rules := KeptRules;
  RemoveFolder(Root);
  inherited TearDown;
end;

procedure TPressureTests.WriteText(const Name, Text: string);
var
  Lines: TStringList;
begin
  ForceDirectories(ExtractFilePath(Root + '/' + Name));
  Lines := TStringList.Create;
  Lines.TrailingLineBreak := False;
  Lines.Text := Text;
  Lines.SaveToFile(Root + '/' + Name);
  Lines.Free;
end;

function TPressureTests.GroupOf(const Lines: string): TGroupMemory;
begin
  WriteText('groups', Lines);
  OsGroupRead(PAnsiChar(Root), PAnsiChar(Root + '/groups'), Result);
end;

procedure TPressureTests.IsGroup(Limit, Used: Int64; const Lines, What: string);
var
  Group: TGroupMemory;
begin
  Group := GroupOf(Lines);
  AssertEquals(What + ': limit', Limit, Int64(Group.Limit));
  AssertEquals(What + ': used', Used, Int64(Group.Used));
end;

procedure TPressureTests.LimitIsTheLesserOfMaxAndHigh;
begin
  WriteText('outer/inner/memory.max', '4000'#10);
  WriteText('outer/inner/memory.high', '3000'#10);
  WriteText('outer/inner/memory.current', '100'#10);
  IsGroup(3000, 100, Inner, 'high');
  WriteText('outer/inner/memory.high', 'max'#10);
  IsGroup(4000, 100, Inner, 'max');
  WriteText('outer/inner/memory.max', 'max'#10);
  IsGroup(0, 0, Inner, 'none');
  WriteText('outer/inner/memory.high', '20000000000'#10);
  WriteText('outer/inner/memory.current', '10000000000'#10);
  IsGroup(20000000000, 10000000000, Inner, 'beyond 4 GB');
end;

procedure TPressureTests.GroupNearestToItsLimitCounts;
begin
  WriteText('outer/memory.max', '4000000');
  WriteText('outer/memory.current', '3900000');
  WriteText('outer/inner/memory.max', '1000000');
  WriteText('outer/inner/memory.current', '500000');
  IsGroup(4000000, 3900000, Inner, 'outer');
  WriteText('outer/memory.current', '1900000');
  IsGroup(1000000, 500000, Inner, 'inner');
  IsGroup(4000000, 1900000, '0::/outer'#10, 'inner is another''s');
end;

procedure TPressureTests.LimitOfVersion1Counts;
begin
  WriteText('memory/outer/inner/memory.limit_in_bytes', '5000');
  WriteText('memory/outer/inner/memory.usage_in_bytes', '800');
  WriteText('memory/outer/memory.limit_in_bytes', '9223372036854771712');
  WriteText('memory/outer/memory.usage_in_bytes', '700');
  IsGroup(5000, 800, OfVersion1, 'inner');
  WriteText('memory/outer/inner/memory.limit_in_bytes', '9223372036854771712');
  IsGroup(0, 0, OfVersion1, 'none');
end;

procedure TPressureTests.FilesThatTheSystemDropsDoNotCount;
begin
  WriteText('outer/inner/memory.max', '4000');
  WriteText('outer/inner/memory.current', '3000');
  WriteText('outer/inner/memory.stat', 'anon 5'#10'active_file 7'#10'inactive_file 1200'#10'slab 1');
  IsGroup(4000, 1800, Inner, 'version 2');
  WriteText('memory/outer/inner/memory.limit_in_bytes', '4000');
  WriteText('memory/outer/inner/memory.usage_in_bytes', '3900');
  WriteText('memory/outer/inner/memory.stat', 'inactive_file 5'#10'total_inactive_file 100'#10);
  IsGroup(4000, 3800, OfVersion1, 'version 1');
  WriteText('memory/outer/inner/memory.stat', 'total_inactive_file 5000'#10);
  IsGroup(4000, 0, OfVersion1, 'of another moment');
end;

procedure TPressureTests.ContainerSeesItsGroupAsTheRoot;
begin
  WriteText('memory.max', '4000');
  WriteText('memory.current', '20');
  WriteText('memory.pressure', 'some avg10=99.00 avg60=0.00'#10);
  IsGroup(4000, 20, '0::/', 'by its own name');
  IsGroup(4000, 20, '0::/docker/a:b', 'by that of the outside');
  AssertTrue('its tasks wait', GroupOf('0::/docker/a').IsWaiting);
end;

procedure TPressureTests.NothingIsKnownWithoutGroups;
begin
  IsGroup(0, 0, '', 'no group');
  IsGroup(0, 0, 'x', 'no line');
  IsGroup(0, 0, ':'#10'::'#10'5:memory'#10, 'half lines');
  IsGroup(0, 0, '0::' + StringOfChar('/', 5000), 'longer than a path');
  WriteText('memory.max', '1000');
  IsGroup(0, 0, Inner, 'a limit without use');
end;

procedure TPressureTests.TasksWaitWhenAPressureFileSaysSo;

  function Waits(const Text: string): Boolean;
  begin
    WriteText('outer/inner/memory.pressure', Text);
    Result := GroupOf(Inner).IsWaiting;
  end;

begin
  AssertTrue(Waits('some avg10=10.00 avg60=0.00 avg300=0.00 total=1'#10'full avg10=0.00'#10));
  AssertFalse(Waits('some avg10=9.99 avg60=90.00 avg300=0.00 total=1'#10'full avg10=99.00'#10));
  AssertFalse(Waits(''));
  WriteText('outer/memory.pressure', 'some avg10=80.00 avg60=0.00 avg300=0.00 total=1'#10);
  AssertFalse('others wait', Waits('some avg10=0.00 avg60=90.00 avg300=0.00 total=1'#10));
end;

// ---------------------------------------------------------------------------- pressure

// Looks once, with that much used of 1,000,000 bytes. The setting is off: no other thread looks.
procedure TPressureTests.See(const Current: string);
begin
  Settings.GroupPath := Root;
  WriteText('memory.max', '1000000');
  WriteText('memory.current', Current);
  Observe.PressureMs := OsNowMs - 2000;
  PressureLook;
end;

function ReportCount: Integer;
begin
  Result := Length(Reported.Split(['Container near'])) - 1;
end;

procedure TPressureTests.CrossingIsReportedOnce;
begin
  LaneMM_Configure('event=limit:callback');
  LaneMM_OnEvent(Collect);
  See('899999');
  Same(0, ReportCount, 'below');
  See('900000');
  Same(1, ReportCount, 'at 90 %');
  Has('Container near its memory limit: 900,000 bytes of 1,000,000 bytes are in use, the heap holds ',
    Reported);
  Has('; most of it:', Reported);
  See('950000');
  See('800000');
  See('910000');
  Same(1, ReportCount, 'not an eighth below');
  See('780000');
  See('900000');
  Same(2, ReportCount, 'again');
end;

procedure TPressureTests.WaitingTasksAreReported;
begin
  LaneMM_Configure('event=limit:callback');
  LaneMM_OnEvent(Collect);
  WriteText('memory.pressure', 'some avg10=50.00 avg60=0.00');
  See('10');
  Has('Memory pressure in the container: its tasks wait for memory; the heap holds ', Reported);
end;

procedure TPressureTests.WarmMemoryIsPurgedAtEachLook;
begin
  LaneMM_Configure('event=limit:off');
  LaneMM_Trim;
  See('950000');
  FreeMem(AllocMem(20 * Megabyte));
  See('100');
  AtLeast(16 * Megabyte, LaneMM_HeapStatus.CachedBytes, 'warm without pressure');
  See('950000');
  AtMost(4 * Megabyte, LaneMM_HeapStatus.CachedBytes, 'warm with it');
end;

procedure Shrink(Used, Limit: UInt64; Context: Pointer);
begin
end;

// Before, it waited here for its own thread.
procedure TakeBack(Kind: TLaneMM_EventKind; Text: PAnsiChar; Length: NativeUInt);
begin
  if LaneMM_OffPressure(Shrink, nil) then
    Collect(Kind, Text, Length);
end;

procedure TPressureTests.CallIsTakenBackInTheRoutineForEvents;
begin
  LaneMM_Configure('event=limit:callback');
  LaneMM_OnEvent(TakeBack);
  AssertTrue('registered', PressureOn(Shrink, nil));
  See('950000');
  Same(1, ReportCount, 'taken back');
  AssertFalse('once', LaneMM_OffPressure(Shrink, nil));
end;

{$if defined(CPUX86_64) and not defined(LANEMM_PUREPASCAL)}
procedure TPressureTests.CacheShrinksInTheThreadThatPurges;
begin
  TestProgram('Pressed').Run('limit=container:"' + Root + '"', [Root]);
  TestProgram('Pressed').EndedWith(0);
  Same(2, Length(TestProgram('Pressed').Errors.Split(['Container near its memory limit: '])) - 1, 'events');
  Has(': 95,000,000 bytes of 100,000,000 bytes are in use', TestProgram('Pressed').Errors);
  Has(' x Pressed.TCachedPage, ', TestProgram('Pressed').Errors);
  TestProgram('Pressed').Run('limit=container:"' + Root + '",limit:report', [Root]);
  TestProgram('Pressed').EndedWith(0);
  Same(1, Length(TestProgram('Pressed').Errors.Split(['Memory in use: '])) - 1, 'reports');
  Has(' x Pressed.TCachedPage, ', TestProgram('Pressed').Errors);
end;
{$ifend}

procedure TPressureTests.LimitOfZeroEndsIt;
begin
  AssertTrue(LaneMM_Configure('limit=8G,limit=container:/nowhere'));
  AssertTrue(Settings.HasContainer);
  AtLeast(1, Settings.Values[opLimit], 'hard limit');
  AssertEquals('/nowhere', string(PAnsiChar(@Settings.GroupPath)));
  AssertTrue(LaneMM_Configure('limit=0'));
  AssertFalse(Settings.HasContainer);
end;

initialization
  RegisterTest(TPressureTests);
end.
