/// Tests of LaneMM.EventLog, LaneMM.LockProfile, LaneMM.Growth and LaneMM.LogFile, with a program
/// that plants the events to be found.
unit Test.EventLog;

{$mode delphi}{$H+}

interface

uses
  Test.Tools;

type
  TEventLogTests = class(TLaneTest)
  strict private
    Log: string;
    procedure RunAfterObjCopy(const Name, Options, Lines: string);
    procedure LogSurvives(const Ending: string; ExitCode: Integer);
    procedure HaveOrigins;
  published
    procedure RemoteFreesAreFoundAtTheirLineWithTheirCount;
    procedure RemoteFreesNameTheirAllocation;
    procedure RemoteFreesOfDebugBlocksNameTheirAllocation;
    procedure RemoteFreesWithoutStacksSayHowToGetThem;
    procedure ThreadThatGetsItsHeapLateCountsOnce;
    procedure StartsOfThreadsAreOneLine;
    procedure ProgramThatOnlyStartsThreadsWritesNothing;
    procedure TakenShardsAreFoundAtTheirLineWithTheirCount;
    procedure TakenHeapsAreFoundAtTheirLineWithTheirCount;
    procedure GrowthOfAnArrayIsFoundAtItsLineWithItsCount;
    procedure GrowthOfATextIsNamed;
    procedure GrowthOfAListAdvisesCapacity;
    procedure GrowthInALibraryNamesTheProgramsLine;
    procedure GrowthInsideContainersHasAdviceThatCompiles;
    procedure OwnGenericWithANameOfALibraryIsTheProgramsOwn;
    procedure GrowthWithFewFramesNamesTheProgramsLine;
    procedure GrowthIsSortedByTheWorkItCauses;
    procedure LargerObjectInThePlaceOfAnotherIsNoGrowth;
    procedure ProgramWithoutEventsWritesNothing;
    procedure NothingIsWrittenWhenNothingIsWatched;
    procedure OptimisedProgramHasTheSameStacks;
    procedure AllKindsOfDebugInformationAreRead;
    procedure StrippedProgramSaysWhatIsMissing;
    procedure UnreadableLinesAreSaidToBeSo;
    procedure LinesOfCompressedSectionsAreRead;
    procedure LogSurvivesHalt;
    procedure LogSurvivesAnException;
    procedure LogSurvivesASignal;
    procedure SignalWithoutAProfileDoesNotEndTheProgram;
    procedure FullDeviceFallsBackBesideTheProgram;
    procedure FolderThatTakesNoFilesFallsBackBesideTheProgram;
    procedure LogSurvivesRedirectionAndAClosedErrorOutput;
    procedure ProcessesAtOnceKeepAllTheirLogs;
    procedure SettingNamesTheFile;
    procedure SecondRunIsAddedToTheFirst;
    procedure LineThatFreesBlocksOfManySizesIsListedOnce;
    procedure LineThatGrowsForManyCallersIsListedOnce;
    procedure TopLimitsTheList;
    procedure DebugModeLogsContentionAndGrowthToo;
    procedure ErasedBlocksAreSeenToGrowToo;
    procedure DebugModeProfilesItsBlocks;
    procedure DebugModeLooksAtItsBlocksWhenASignalEndsTheProgram;
    procedure ChildProcessLogsItsOwnEventsAlone;
    procedure ChildProcessProfilesItsOwnBlocksAlone;
    procedure ChildProcessDoesNotSayThatNothingWasFound;
  end;

implementation

uses
  SysUtils, testregistry, Test.Programs;

const
  LogSuffix = 'EventLog.txt';

var
  Debugged, Optimised, Stripped, Forked, Ended: TTestProgram;

function Planted: TTestProgram;
begin
  if Debugged = nil then
    Debugged := TTestProgram.Create('WatchEvents', '-O1 -gl -Xs-');
  Result := Debugged;
end;

function PlaceOf(const What: string): string;
begin
  Result := Format('WatchEvents.lpr:%d', [Planted.PlantedLine(What)]);
end;

function Forking: TTestProgram;
begin
  if Forked = nil then
    Forked := TTestProgram.Create('WatchFork', '-O1 -gl -Xs-');
  Result := Forked;
end;

// How often Part stands in Text.
function CountOf(const Part, Text: string): Integer;
begin
  Result := Length(Text.Split([Part])) - 1;
end;

procedure TEventLogTests.RemoteFreesAreFoundAtTheirLineWithTheirCount;
begin
  Planted.Run('contention', ['frees', '300']);
  Has('1. 300 x remote free of a block of 112 bytes by FreeMem', Planted.Written(LogSuffix));
  Has('at ' + PlaceOf('remote free'), Planted.Written(LogSuffix));
  Has('WATCHEVENTS.PLANTFREES', Planted.Written(LogSuffix));
  Has('1. 300 x', Planted.Errors);
end;

procedure TEventLogTests.HaveOrigins;
const
  Line = '%d x remote free of a block of 112 bytes by FreeMem, 1 thread, at %s, allocated at %s';
begin
  Has('1. ' + Format(Line, [200, PlaceOf('remote free'), PlaceOf('first origin')]),
    Planted.Written(LogSuffix));
  Has('2. ' + Format(Line, [100, PlaceOf('remote free'), PlaceOf('second origin')]),
    Planted.Written(LogSuffix));
  Same(2, CountOf('     Allocated at'#10, Planted.Written(LogSuffix)), 'backtraces');
  Has('WATCHEVENTS.PRODUCER', Planted.Written(LogSuffix));
  HasNot('LANEMM=contention,stacks', Planted.Written(LogSuffix));
  Has('2. 100 x', Planted.Errors);
end;

procedure TEventLogTests.RemoteFreesNameTheirAllocation;
begin
  Planted.Run('contention,stacks', ['origins', '300']);
  HaveOrigins;
end;

procedure TEventLogTests.RemoteFreesOfDebugBlocksNameTheirAllocation;
begin
  Planted.Run('contention,debug', ['origins', '300']);
  HaveOrigins;
end;

procedure TEventLogTests.RemoteFreesWithoutStacksSayHowToGetThem;
begin
  Planted.Run('contention', ['origins', '300']);
  Has('1. 300 x', Planted.Written(LogSuffix));
  Same(1, CountOf('  LANEMM=contention,stacks also shows where the blocks of remote frees were'
    + ' allocated.'#10, Planted.Written(LogSuffix)), 'advice');
end;

// `least` keeps away taken locks, which come and go.
procedure TEventLogTests.ThreadThatGetsItsHeapLateCountsOnce;
begin
  Planted.Run('contention', ['late', '300']);
  Has('300 x remote free of a block of 112 bytes by FreeMem, 1 thread, at ', Planted.Written(LogSuffix));
end;

procedure TEventLogTests.StartsOfThreadsAreOneLine;
var
  Log: string;
begin
  Planted.Run('contention,least=100', ['crowd', '300']);
  Log := Planted.Written(LogSuffix);
  Has(' x remote free of a block of 112 bytes by FreeMem', Log);
  HasNot(', at CTHREADS.', Log);
  Same(1, CountOf('  Not listed: ', Log), 'lines');
  Has(' of the run-time library alone, where threads start and end.'#10, Log);
  AtLeast(100, StrToInt(Log.Split(['  Not listed: '])[1].Split([' '])[0]), 'events');
end;

procedure TEventLogTests.ProgramThatOnlyStartsThreadsWritesNothing;
begin
  Planted.Run('contention,least=100', ['starts', '300']);
  AssertEquals('', Planted.Errors);
  AssertEquals('', Planted.Written(LogSuffix));
end;

procedure TEventLogTests.TakenShardsAreFoundAtTheirLineWithTheirCount;
begin
  Planted.Run('contention', ['misses', '25']);
  Has('1. 25 x FreeMem found the lock of an arena shard taken and went another way, 1 thread, at '
    + PlaceOf('miss'), Planted.Written(LogSuffix));
  HasNot('2. ', Planted.Written(LogSuffix));
end;

procedure TEventLogTests.TakenHeapsAreFoundAtTheirLineWithTheirCount;
const
  Names: array[1..2] of string = ('a thread heap', 'the abandoned heap');
var
  Name: string;
begin
  Planted.Run('contention', ['sweeps', '25']);
  for Name in Names do
    Has(Format('. 25 x the memory manager found the lock of %s taken and went another way, '
      + '1 thread, at %s', [Name, PlaceOf('sweep')]), Planted.Written(LogSuffix));
  HasNot('3. ', Planted.Written(LogSuffix));
end;

procedure TEventLogTests.GrowthOfAnArrayIsFoundAtItsLineWithItsCount;
begin
  Planted.Run('growth', ['growth', '100000']);
  // The header has two words.
  Has(Format('%s grew a dynamic array 99,999 times from %d bytes to 390.6 KB',
    [PlaceOf('growth'), 4 * WordSize]), Planted.Written(LogSuffix));
  Has('call SetLength once', Planted.Written(LogSuffix));
end;

procedure TEventLogTests.GrowthOfATextIsNamed;
begin
  Planted.Run('growth', ['text', '100000']);
  Has(PlaceOf('text') + ' grew an AnsiString ', Planted.Written(LogSuffix));
end;

procedure TEventLogTests.GrowthOfAListAdvisesCapacity;
begin
  Planted.Run('growth', ['list', '1000']);
  Has(PlaceOf('list') + ' grew a list ', Planted.Written(LogSuffix));
  Has('set Capacity first', Planted.Written(LogSuffix));
end;

procedure TEventLogTests.GrowthInALibraryNamesTheProgramsLine;
const
  Growers: array[0..7, 0..1] of string = (('numbers', 'a list (GROWING.TFPGLIST.ADD)'),
    ('others', 'a list (GROWING.TLIST.ADD)'), ('objects', 'a list (CONTNRS.TOBJECTLIST.ADD)'),
    ('strings', 'a list (CLASSES.TSTRINGLIST.ADD)'),
    ('places', 'a dictionary (GROWING.TOPENADDRESSING.DOADD)'),
    ('stream', 'a stream (CLASSES.TMEMORYSTREAM.WRITE)'),
    ('builder', 'a string builder (SYSUTILS.TANSISTRINGBUILDER.APPEND)'), ('text', 'an AnsiString'));
var
  Growing: TTestProgram;
  Index: Integer;
begin
  Growing := TTestProgram.Create('Growing', '-O1 -gl -Xs-');
  Growing.Run('growth,top=20,least=1', []);
  Growing.EndedWith(5);
  for Index := 0 to High(Growers) do
    Has(Format('. Growing.lpr:%d grew %s ', [Growing.PlantedLine(Growers[Index, 0]),
      Growers[Index, 1]]), Growing.Written(LogSuffix));
  HasNot('LaneMM.', Growing.Written(LogSuffix));
  Growing.Free;
end;

procedure TEventLogTests.GrowthInsideContainersHasAdviceThatCompiles;
const
  Growers: array[0..7, 0..2] of string = (
    ('queue', 'a list (CONTNRS.TORDEREDLIST.PUSH)', 'its capacity cannot be set'),
    ('items', 'a list (CLASSES.TCOLLECTION.ADD)', 'its capacity cannot be set'),
    ('shared', 'a list (CLASSES.TTHREADLIST.ADD)', 'set Capacity of its LockList first'),
    ('bits', 'a TBits (CLASSES.TBITS.SETBIT)', 'set Size first'),
    ('known', 'a set (GROWING.THASHSET.ADD)', 'set Capacity first'),
    ('map', 'a list (GROWING.TFPGMAP.ADD)', 'set Capacity first'),
    ('values', 'a list (FPJSON.TJSONARRAY.ADD)', 'inside that routine: '),
    ('own', 'an AnsiString', 'call SetLength once, or use TStringBuilder'));
  Builds: array[0..1] of string = ('-O1 -gl -Xs-', '-O1 -Xs-');
var
  Growing: TTestProgram;
  Build, Line, Place: string;
  Index: Integer;
begin
  for Build in Builds do
  begin
    Growing := TTestProgram.Create('Growing', Build);
    Growing.Run('growth,top=30,least=1', ['wrapped']);
    Growing.EndedWith(5);
    for Index := 0 to High(Growers) do
    begin
      Place := 'GROWING.GROWWRAPPED';
      if Growers[Index, 0] = 'own' then
        Place := 'GROWING.STREAMDICTIONARY_SETCAPACITY';
      if Pos('-gl', Build) > 0 then
        Place := Format('Growing.lpr:%d', [Growing.PlantedLine(Growers[Index, 0])]);
      Place := Format('. %s grew %s ', [Place, Growers[Index, 1]]);
      Line := Growing.Written(LogSuffix);
      Has(Place, Line);
      Line := Copy(Line, Pos(Place, Line), MaxInt);
      Has(' copied: ' + Growers[Index, 2], Copy(Line, 1, Pos(#10, Line)));
    end;
    Growing.Free;
  end;
end;

procedure TEventLogTests.OwnGenericWithANameOfALibraryIsTheProgramsOwn;
var
  Growing: TTestProgram;
begin
  Growing := TTestProgram.Create('Growing', '-O1 -gl -Xs-');
  Growing.Run('growth,top=30,least=1', ['wrapped']);
  Has(Format('. Growing.lpr:%d grew a dynamic array ', [Growing.PlantedLine('own stack')]),
    Growing.Written(LogSuffix));
  Growing.Free;
end;

procedure TEventLogTests.GrowthWithFewFramesNamesTheProgramsLine;
var
  Growing: TTestProgram;
begin
  Growing := TTestProgram.Create('Growing', '-O1 -gl -Xs-');
  Growing.Run('growth,top=30,least=1,depth=1', ['wrapped']);
  Has(Format('. Growing.lpr:%d grew a set (GROWING.THASHSET.ADD) ', [Growing.PlantedLine('known')]),
    Growing.Written(LogSuffix));
  HasNot('0000000001 grew', Growing.Written(LogSuffix));
  Growing.Free;
end;

procedure TEventLogTests.GrowthIsSortedByTheWorkItCauses;
var
  Growing: TTestProgram;
  Line, Log: string;
  Work, Last: Double;
  Lines: Integer;

  // The number before a word, without its commas.
  function NumberBefore(const Word: string): Double;
  var
    Start, Limit: Integer;
  begin
    Limit := Pos(Word, Line) - 1;
    Start := Limit;
    while (Start > 1) and (Line[Start - 1] in ['0'..'9', ',', '.']) do
      Dec(Start);
    Result := StrToFloat(StringReplace(Copy(Line, Start, Limit - Start + 1), ',', '',
      [rfReplaceAll]));
  end;

  function BytesCopied: Double;
  begin
    if Pos(' MB copied', Line) > 0 then
      Result := NumberBefore(' MB copied') * 1048576
    else if Pos(' KB copied', Line) > 0 then
      Result := NumberBefore(' KB copied') * 1024
    else
      Result := NumberBefore(' bytes copied');
  end;

begin
  Growing := TTestProgram.Create('Growing', '-O1 -gl -Xs-');
  Growing.Run('growth,top=20,least=1', []);
  Log := Growing.Written(LogSuffix);
  Has(' of them moves that copied ', Log);
  Has(' in all, most work first:', Log);
  Last := 1e18;
  Lines := 0;
  for Line in Log.Split([#10]) do
    if Pos(' copied: ', Line) > 0 then
    begin
      Work := NumberBefore(' times') * 128 + BytesCopied;
      AssertTrue(Log, Work <= Last * 1.001 + 110000); // sizes are rounded
      Last := Work;
      Inc(Lines);
    end;
  AtLeast(6, Lines, 'lines');
  Growing.Free;
end;

procedure TEventLogTests.LargerObjectInThePlaceOfAnotherIsNoGrowth;
var
  Growing: TTestProgram;
begin
  Growing := TTestProgram.Create('Growing', '-O1 -gl -Xs-');
  Growing.Run('growth,top=20,least=1', ['replace']);
  Growing.EndedWith(0);
  AssertEquals('', Growing.Written(LogSuffix));
  Growing.Free;
end;

procedure TEventLogTests.ProgramWithoutEventsWritesNothing;
begin
  Planted.Run('contention,growth', ['none', '10000']);
  AssertEquals('', Planted.Written(LogSuffix));
  AssertEquals('', Planted.Errors);
end;

procedure TEventLogTests.NothingIsWrittenWhenNothingIsWatched;
begin
  Planted.Run('', ['frees', '300']);
  AssertEquals('', Planted.Written(LogSuffix));
  AssertEquals('', Planted.Errors);
end;

procedure TEventLogTests.OptimisedProgramHasTheSameStacks;
begin
  if Optimised = nil then
    Optimised := TTestProgram.Create('WatchEvents', '-O3 -gl -Xs-');
  Optimised.Run('contention', ['frees', '300']);
  Has('1. 300 x', Optimised.Written(LogSuffix));
  Has('at ' + PlaceOf('remote free'), Optimised.Written(LogSuffix));
  Has('WATCHEVENTS.PLANTFREES', Optimised.Written(LogSuffix));
end;

procedure TEventLogTests.AllKindsOfDebugInformationAreRead;
const
  Kinds: array[1..5] of string = ('-g', '-gl', '-gw2', '-gw3', '-gw4');
var
  Kind: string;
  Built: TTestProgram;
begin
  for Kind in Kinds do
  begin
    Built := TTestProgram.Create('WatchEvents', '-O1 -Xs- ' + Kind);
    try
      Built.Run('contention', ['frees', '300']);
      Has('1. 300 x', Built.Written(LogSuffix));
      Has('at ' + PlaceOf('remote free'), Built.Written(LogSuffix));
      HasNot('line numbers', LowerCase(Built.Written(LogSuffix)));
    finally
      Built.Free;
    end;
  end;
end;

// Runs a build of this name after objcopy with these options, which may name the file `lines`.
procedure TEventLogTests.RunAfterObjCopy(const Name, Options, Lines: string);
var
  Built: TTestProgram;
begin
  Built := TTestProgram.Create('WatchEvents', '-O1 -gl -Xs- -d' + Name);
  try
    Same(0, ExecuteProcess('/bin/sh', ['-c', 'cd ' + Built.Folder + ' && echo "' + Lines
      + '" > lines && ${OBJCOPY:-objcopy} ' + Options + ' WatchEvents']), 'exit code of objcopy');
    Built.Run('contention', ['frees', '300']);
    Log := Built.Written(LogSuffix);
  finally
    Built.Free;
  end;
  Has('1. 300 x', Log);
end;

procedure TEventLogTests.UnreadableLinesAreSaidToBeSo;
begin
  RunAfterObjCopy('UNREADABLE', '--update-section .debug_line=lines',
    'No version of DWARF begins like this.');
  Has('The line numbers cannot be read', Log);
  HasNot('lpr:', Log);
end;

procedure TEventLogTests.LinesOfCompressedSectionsAreRead;
begin
  RunAfterObjCopy('COMPRESSED', '--compress-debug-sections=zlib', '');
  Has('at ' + PlaceOf('remote free'), Log);
  HasNot('line numbers', LowerCase(Log));
end;

procedure TEventLogTests.StrippedProgramSaysWhatIsMissing;
begin
  if Stripped = nil then
    Stripped := TTestProgram.Create('WatchEvents', '-O1 -Xs');
  Stripped.Run('contention', ['frees', '300']);
  Has('1. 300 x', Stripped.Written(LogSuffix));
  Has('No line numbers: compile with -gl', Stripped.Written(LogSuffix));
  HasNot('lpr:', Stripped.Written(LogSuffix));
end;

procedure TEventLogTests.LogSurvives(const Ending: string; ExitCode: Integer);
begin
  Planted.Run('contention', ['frees', '300', Ending]);
  Planted.EndedWith(ExitCode);
  Has('1. 300 x', Planted.Written(LogSuffix));
end;

procedure TEventLogTests.LogSurvivesHalt;
begin
  LogSurvives('halt', 3);
end;

procedure TEventLogTests.LogSurvivesAnException;
begin
  LogSurvives('exception', 217);
end;

procedure TEventLogTests.LogSurvivesASignal;
begin
  LogSurvives('signal', -15);
end;

procedure TEventLogTests.SignalWithoutAProfileDoesNotEndTheProgram;
const
  Line = 'LaneMM: no effect without `contention`, `growth` or `profile`: `signal`';
begin
  Planted.Run('signal=12', ['none', '1', 'user-signal']);
  Planted.EndedWith(0);
  AssertEquals(Line, Trim(Planted.Errors));
  Planted.Run('signal=12,debug', ['none', '1', 'user-signal']);
  Planted.EndedWith(0, 'exit code in debug mode');
  Planted.Run('signal=12,contention', ['frees', '300', 'user-signal']);
  Planted.EndedWith(0, 'exit code with a log');
  Same(2, CountOf('1. 300 x', Planted.Written(LogSuffix)), 'logs, of the signal and of the end');
end;

procedure TEventLogTests.FullDeviceFallsBackBesideTheProgram;
begin
  Planted.Run('contention,log=/dev/full', ['frees', '300']);
  Has('1. 300 x', Planted.Written(LogSuffix));
end;

// No user can create files there, not even root.
procedure TEventLogTests.FolderThatTakesNoFilesFallsBackBesideTheProgram;
begin
  Planted.Run('contention,log=/proc/self/', ['frees', '300']);
  Has('1. 300 x', Planted.Written(LogSuffix));
end;

// Runs a line of the shell in the program's folder.
procedure RunShell(const Line: string);
begin
  Planted.Clean;
  ExecuteProcess('/bin/sh', ['-c', 'cd "' + Planted.Folder + '"; ' + Line]);
end;

procedure TEventLogTests.LogSurvivesRedirectionAndAClosedErrorOutput;
begin
  RunShell('LANEMM=contention $RUN ./WatchEvents frees 300 > WatchEvents_MemoryManager_Screen 2>&1');
  Has('1. 300 x', Planted.Written(LogSuffix));
  Has('LaneMM: event log written to ', Planted.Written('Screen'));
  Has('at ' + PlaceOf('remote free') + #10, Planted.Written('Screen'));
  RunShell('LANEMM=contention $RUN ./WatchEvents frees 300 > /dev/full 2>&-');
  Has('1. 300 x', Planted.Written(LogSuffix));
end;

procedure TEventLogTests.ProcessesAtOnceKeepAllTheirLogs;
const
  ProcessCount = 9;
var
  Index: Integer;
  Log: string;
begin
  RunShell('for n in 1 2 3 4 5 6 7 8 9; do LANEMM=contention $RUN ./WatchEvents frees 10$n 2>&- & done; '
    + 'wait');
  Log := Planted.Written(LogSuffix);
  for Index := 1 to ProcessCount do
    Has(Format('  1. 10%d x remote free of a block of 112 bytes by FreeMem, 1 thread, at %s'#10,
      [Index, PlaceOf('remote free')]), Log);
  Same(ProcessCount, Length(Log.Split(['LaneMM event log of process '])) - 1, 'logs');
end;

procedure TEventLogTests.SettingNamesTheFile;
begin
  Planted.Run('contention,log=' + Planted.Folder + 'WatchEvents_MemoryManager_Named.txt',
    ['frees', '300']);
  Has('1. 300 x', Planted.Written('Named.txt'));
  AssertEquals('', Planted.Written(LogSuffix));
end;

procedure TEventLogTests.SecondRunIsAddedToTheFirst;
var
  First: string;
begin
  Planted.Run('contention', ['frees', '300']);
  First := Planted.Written(LogSuffix);
  ExecuteProcess('/bin/sh', ['-c', 'LANEMM=contention $RUN "' + Planted.Folder
    + 'WatchEvents" frees 200 2>/dev/null']);
  AssertEquals(1, Pos(First, Planted.Written(LogSuffix)));
  Has('1. 200 x', Planted.Written(LogSuffix));
end;

procedure TEventLogTests.LineThatFreesBlocksOfManySizesIsListedOnce;
begin
  Planted.Run('contention', ['sizes', '300']);
  Has('1. 300 x remote free of blocks of 112 to 320 bytes by FreeMem, 1 thread, at '
    + PlaceOf('remote free'), Planted.Written(LogSuffix));
  Has('     By size: 112 bytes 100, 208 bytes 100, 320 bytes 100'#10, Planted.Written(LogSuffix));
  Has('free blocks in the thread that allocates them', Planted.Written(LogSuffix));
  HasNot('  2. ', Planted.Written(LogSuffix));
end;

procedure TEventLogTests.LineThatGrowsForManyCallersIsListedOnce;
begin
  Planted.Run('growth', ['callers', '1000']);
  Has(Format('1. %s grew a dynamic array 1,998 times from %d bytes to %.0n bytes, ',
    [PlaceOf('growth'), 4 * WordSize, 4000.0 + 2 * WordSize]), Planted.Written(LogSuffix));
  Same(2, Length(Planted.Written(LogSuffix).Split(['        999 by'#10])) - 1, 'callers');
  HasNot('  2. ', Planted.Written(LogSuffix));
end;

procedure TEventLogTests.TopLimitsTheList;
begin
  Planted.Run('contention,top=1,least=1', ['frees', '300']);
  Has('  1. ', Planted.Written(LogSuffix));
  HasNot('  2. ', Planted.Written(LogSuffix));
end;

procedure TEventLogTests.DebugModeLogsContentionAndGrowthToo;
begin
  Planted.Run('debug,contention,growth', ['frees', '300']);
  Has('1. 300 x remote free of a block of 112 bytes by FreeMem, 1 thread, at '
    + PlaceOf('remote free'), Planted.Written(LogSuffix));
  Planted.Run('debug,contention,growth', ['growth', '1000']);
  Has(PlaceOf('growth') + ' grew a dynamic array 999 times', Planted.Written(LogSuffix));
  Planted.Run('debug', ['frees', '300']);
  AssertEquals('', Planted.Written(LogSuffix));
end;

procedure TEventLogTests.ErasedBlocksAreSeenToGrowToo;
begin
  Planted.Run('erase=free,growth', ['growth', '1000']);
  Has(PlaceOf('growth') + ' grew a dynamic array', Planted.Written(LogSuffix));
end;

// Each of the blocks is much larger than the rate.
procedure TEventLogTests.DebugModeProfilesItsBlocks;
var
  Log: string;
begin
  Forking.Run('debug,profile,speedscope,folded,rate=1024', ['child']);
  Log := Forking.Written('heap.*.folded');
  Has('WATCHFORK.PLANTINCHILD 30000000'#10, Log);
  Has('WATCHFORK.PLANTINCHILD ', Log);
  Has('WATCHFORK.GETINTHREAD ', Log);
end;

// But not when the thread that is interrupted holds the lock: then the program just ends.
procedure TEventLogTests.DebugModeLooksAtItsBlocksWhenASignalEndsTheProgram;
begin
  Ended := TTestProgram.Create('EndedBySignal', '-O1 -gl -Xs-');
  Ended.Run('debug', ['damage']);
  Same(1, CountOf('Heap block overrun: bytes past the end were modified.', Ended.Errors),
    'reports');
  Has(Format('EndedBySignal.lpr:%d', [Ended.PlantedLine('got')]), Ended.Errors);
  Ended.Run('debug', ['clean']);
  AssertEquals('', Ended.Errors);
  Ended.Run('debug', ['locked']);
  AssertEquals('', Ended.Errors);
end;

procedure TEventLogTests.ChildProcessLogsItsOwnEventsAlone;
var
  Log: string;
begin
  Forking.Run('contention,growth', []);
  Log := Forking.Written(LogSuffix);
  Same(2, CountOf('LaneMM event log of process', Log), 'logs');
  Same(1, CountOf(Format('WatchFork.lpr:%d grew a dynamic array 1,000 times',
    [Forking.PlantedLine('growth in the parent')]), Log), 'growth of the parent');
  Same(1, CountOf(Format('WatchFork.lpr:%d grew a dynamic array 700 times',
    [Forking.PlantedLine('growth in the child')]), Log), 'growth of the child');
  Same(1, CountOf(Format('1 thread, at WatchFork.lpr:%d',
    [Forking.PlantedLine('free in the parent')]), Log), 'frees in the parent');
  Same(1, CountOf(Format('1 thread, at WatchFork.lpr:%d',
    [Forking.PlantedLine('free in the child')]), Log), 'frees in the child');
end;

procedure TEventLogTests.ChildProcessDoesNotSayThatNothingWasFound;
begin
  Forking.Run('debug,quiet=0', []);
  Same(1, CountOf('LaneMM: no memory errors in ', Forking.Errors), 'lines');
end;

procedure TEventLogTests.ChildProcessProfilesItsOwnBlocksAlone;
begin
  Forking.Run('profile,folded,rate=4096', ['child']);
  Has('WATCHFORK.PLANTINCHILD ', Forking.Written('heap.*.folded'));
  HasNot('WATCHFORK.PLANTINPARENT', Forking.Written('heap.*.folded'));
end;

initialization
  RegisterTest(TEventLogTests);
finalization
  Debugged.Free;
  Optimised.Free;
  Stripped.Free;
  Forked.Free;
  Ended.Free;
end.
