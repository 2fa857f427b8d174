/// Tests of LaneMM.LogFile: where files go, and what stands there already.
unit Test.LogFiles;

{$mode delphi}{$H+}

interface

uses
  Test.Tools, LaneMM.Text;

type
  TWriteCall = function(const Text: TText; const Suffix: ShortString; var Path: TText): Boolean;

  TLogFilesTests = class(TLaneTest)
  strict private
    function ScreenOf(Write: TWriteCall; const Contents: string): string;
    procedure Has(const Part, Text: string);
    procedure Lacks(const Part, Text: string);
    procedure RunIn(const Settings, Command: string);
    function Content(const Name: string): string;
    procedure LogGoesHere;
  published
    procedure LogIsNotWrittenThroughALink;
    procedure LogThatTheSettingNamesIsNotWrittenThroughALink;
    procedure ProfileIsNotWrittenThroughALink;
    procedure ProfileDoesNotEmptyAnotherFileOfItsName;
    procedure ProfileOfItsNameThatIsNoFileStays;
    procedure PipeWithoutAReaderDoesNotStopTheProgram;
    procedure PipeBesideTheProgramDoesNotStopTheProgram;
    procedure FullPipeDoesNotStopTheProgram;
    procedure PipeWithAReaderGetsTheReport;
    procedure SettingsFileThatIsAPipeDoesNotStopTheProgram;
    procedure NullDeviceAsLogTakesTheLogAndNoProfile;
    procedure StandardErrorCanBeTheLog;
    procedure FolderOfTheSystemGetsNoFile;
    procedure FileOfTheSystemIsNotCreated;
    procedure FolderForTemporaryFilesIsNoneOfTheSystem;
    procedure FilesAreForTheirOwner;
    procedure OneLineSaysWhereTheLogWent;
    procedure MissingFolderIsNamedAndAnotherTaken;
    procedure FirstChoiceIsNotMentioned;
    procedure LogThatIsFullBeginsAnew;
    procedure FileOfTheProgramIsNeitherRenamedNorDeleted;
    procedure DeviceAsLogIsNotRenamed;
    procedure CutReportSaysSo;
    procedure LogThatIsSetAnewIsTried;
    procedure FileThatDoesNotFitLeavesNoPart;
  end;

implementation

uses
  Classes, SysUtils, BaseUnix, testregistry, Test.Programs, LaneMM, LaneMM.Os, LaneMM.LogFile;

const
  LogName = 'DamagedEnd_MemoryManager_EventLog.txt';
  Overrun = 'Heap block overrun: bytes past the end were modified.';
  Profiling = 'profile,rate=1,folded';
  ProfileName = 'DamagedEnd_MemoryManager_heap.$$.1.folded';

var
  Damaged: TTestProgram;

function Program_: TTestProgram;
begin
  if Damaged = nil then
    Damaged := TTestProgram.Create('DamagedEnd', '-O1 -gl -Xs-');
  Result := Damaged;
end;

procedure TLogFilesTests.Has(const Part, Text: string);
begin
  if Pos(Part, Text) = 0 then
    Fail('`%s` is missing in: %s', [Part, Text]);
end;

procedure TLogFilesTests.Lacks(const Part, Text: string);
begin
  if Pos(Part, Text) > 0 then
    Fail('`%s` is in: %s', [Part, Text]);
end;

// Runs a line of the shell in an empty folder below that of the program.
procedure TLogFilesTests.RunIn(const Settings, Command: string);
begin
  Program_.RunInShell(Settings, 'rm -rf "$P.d"; mkdir "$P.d"; cd "$P.d"; umask 022; ' + Command);
end;

// The contents of a file in that folder; '' when it is missing.
function TLogFilesTests.Content(const Name: string): string;
begin
  Result := '';
  if FileExists(Program_.Folder + 'DamagedEnd.d/' + Name) then
    Result := ReadText(Program_.Folder + 'DamagedEnd.d/' + Name);
end;

// The log is in the current folder, and the program has ended as ever.
procedure TLogFilesTests.LogGoesHere;
begin
  Program_.EndedWith(3);
  Has(Overrun, Content(LogName));
end;

procedure TLogFilesTests.LogIsNotWrittenThroughALink;
begin
  RunIn('debug', 'echo own > own; ln -s "$PWD/own" "${P}_MemoryManager_EventLog.txt"; "$P" halt; '
    + 'code=$?; rm "${P}_MemoryManager_EventLog.txt"; exit $code');
  AssertEquals('own'#10, Content('own'));
  LogGoesHere;
  Has(' is a symbolic link; written to ', Program_.Errors);
end;

procedure TLogFilesTests.LogThatTheSettingNamesIsNotWrittenThroughALink;
begin
  RunIn('debug,log=link', 'echo own > own; ln -s own link; "$P" halt');
  AssertEquals('own'#10, Content('own'));
  Program_.EndedWith(3);
  Has(Overrun, Program_.Written(LogName.Replace('DamagedEnd_MemoryManager_', '')));
  Has('LaneMM: link is a symbolic link; written to ', Program_.Errors);
end;

procedure TLogFilesTests.ProfileIsNotWrittenThroughALink;
begin
  RunIn(Profiling + ',log=to/', 'mkdir to; echo own > own; ln -s ../own "to/' + ProfileName
    + '"; exec "$P" halt');
  AssertEquals('own'#10, Content('own'));
  Program_.EndedWith(3);
  Has('main;', Program_.Written('heap.*.folded'));
  Has('LaneMM: profile written to ' + Program_.Folder, Program_.Errors);
end;

// The other name of the file stands for what somebody else may have opened.
procedure TLogFilesTests.ProfileDoesNotEmptyAnotherFileOfItsName;
begin
  RunIn(Profiling + ',log=to/', 'mkdir to; echo own > own; ln own "to/' + ProfileName
    + '"; ln -s "to/' + ProfileName + '" seen; exec "$P" halt');
  AssertEquals('own'#10, Content('own'));
  Has('main;', Content('seen'));
end;

procedure TLogFilesTests.ProfileOfItsNameThatIsNoFileStays;
begin
  RunIn(Profiling + ',log=to/', 'mkdir to; timeout -k 1 60 sh -c ''mkfifo "to/' + ProfileName
    + '"; exec "$P" halt''; code=$?; find to -type p >&2; exit $code');
  Program_.EndedWith(3);
  Has(#10'to/DamagedEnd_MemoryManager_heap.', Program_.Errors);
  Has('main;', Program_.Written('heap.*.folded'));
end;

procedure TLogFilesTests.PipeWithoutAReaderDoesNotStopTheProgram;
begin
  RunIn('debug,log=pipe', 'mkfifo pipe; timeout -k 1 60 "$P" halt');
  Program_.EndedWith(3);
  Has('LaneMM: pipe has no reader; written to ', Program_.Errors);
  Has(Overrun, Program_.Written('EventLog.txt'));
end;

procedure TLogFilesTests.PipeBesideTheProgramDoesNotStopTheProgram;
begin
  RunIn('debug', 'mkfifo "${P}_MemoryManager_EventLog.txt"; timeout -k 1 60 "$P" halt; code=$?; '
    + 'rm "${P}_MemoryManager_EventLog.txt"; exit $code');
  LogGoesHere;
  Has('EventLog.txt has no reader; written to ', Program_.Errors);
end;

// The first report waits for a second, the others go elsewhere at once.
procedure TLogFilesTests.FullPipeDoesNotStopTheProgram;
begin
  RunIn('debug,trace,event=all:file,log=pipe', 'mkfifo pipe; exec 9<> pipe; '
    + 'head -c 65536 /dev/zero >&9; timeout -k 1 60 "$P" halt');
  Program_.EndedWith(3);
  Has('LaneMM: pipe cannot be written; written to ', Program_.Errors);
  Has(Overrun, Program_.Written('EventLog.txt'));
end;

procedure TLogFilesTests.PipeWithAReaderGetsTheReport;
begin
  RunIn('debug,event=all:file,log=pipe', 'mkfifo pipe; { sleep 1; cat; } < pipe > got & '
    + 'exec 9> pipe; "$P" halt; code=$?; exec 9>&-; wait; exit $code');
  Program_.EndedWith(3);
  Has(Overrun, Content('got'));
  AssertEquals('', Program_.Errors);
end;

procedure TLogFilesTests.SettingsFileThatIsAPipeDoesNotStopTheProgram;
begin
  RunIn('', 'mkfifo "$P.lanemm"; timeout -k 1 60 "$P" halt; code=$?; rm "$P.lanemm"; exit $code');
  Program_.EndedWith(3);
end;

procedure TLogFilesTests.NullDeviceAsLogTakesTheLogAndNoProfile;
begin
  RunIn(Profiling + ',debug,event=all:file,log=' + Program_.NullDevice, '"$P" halt; code=$?; '
    + 'ls /dev | grep DamagedEnd >&2; rm -f /dev/DamagedEnd_MemoryManager_*; exit $code');
  Program_.EndedWith(3);
  Lacks(#10'DamagedEnd_MemoryManager_', #10 + Program_.Errors);
  Has('main;', Program_.Written('heap.*.folded'));
  AssertEquals('the log', '', Program_.Written('EventLog.txt'));
  AssertTrue('device', (FileGetAttr('/dev/null') >= 0) and not FileExists('/dev/null/x'));
end;

procedure TLogFilesTests.StandardErrorCanBeTheLog;
begin
  RunIn('debug,event=all:file,log=/dev/stderr', '"$P" halt');
  Program_.EndedWith(3);
  Has(Overrun, Program_.Errors);
  AssertEquals('', Program_.Written('EventLog.txt'));
  RunIn('debug,event=all:file,log=/dev/stderr', '"$P" halt 2> errors');
  Has(Overrun, Content('errors'));
end;

procedure TLogFilesTests.FolderOfTheSystemGetsNoFile;
const
  Folders: array[0..5] of string = ('/dev', '/etc/', '/usr/lib', '/bin', '/proc/self',
    '//usr/../etc');
var
  Folder: string;
begin
  for Folder in Folders do
  begin
    RunIn('debug,log=' + Folder, Format('"$P" halt; code=$?; '
      + 'ls "%0:s" | grep DamagedEnd >&2; rm -f "%0:s"/DamagedEnd_Memory*; exit $code', [Folder]));
    Program_.EndedWith(3);
    Lacks(#10 + LogName, Program_.Errors);
    Has(' is in a folder of the system; written to ' + Program_.Folder + LogName, Program_.Errors);
    Has(Overrun, Program_.Written('EventLog.txt'));
  end;
end;

procedure TLogFilesTests.FileOfTheSystemIsNotCreated;
begin
  RunIn('debug,log=/dev/DamagedEnd.log', '"$P" halt; code=$?; ls /dev | grep DamagedEnd >&2; '
    + 'rm -f /dev/DamagedEnd.log; exit $code');
  Program_.EndedWith(3);
  Lacks(#10'DamagedEnd.log', Program_.Errors);
  Has('LaneMM: /dev/DamagedEnd.log cannot be written; written to ', Program_.Errors);
end;

procedure TLogFilesTests.FolderForTemporaryFilesIsNoneOfTheSystem;
begin
  RunIn('debug,log=/dev/shm', '"$P" halt; code=$?; cp /dev/shm/' + LogName + ' .; rm /dev/shm/'
    + LogName + '; exit $code');
  LogGoesHere;
end;

procedure TLogFilesTests.FilesAreForTheirOwner;
begin
  RunIn('debug,leaks,leaks:format=json,' + Profiling + ',log=to/',
    'mkdir to; "$P" > /dev/null 2>&1; ls to | sed "s/.*_//; s/[.].*//" | sort -u >&2;'
    + ' stat -c "%a" to/* | sort -u >&2');
  AssertEquals('EventLog'#10'Leaks'#10'heap'#10'heap-inuse'#10'heap-leaks'#10'heap-peak'#10
    + 'heap-temporary'#10'600'#10, Program_.Errors);
end;

procedure TLogFilesTests.OneLineSaysWhereTheLogWent;
begin
  RunIn('debug,log=/dev/', '"$P" halt; rm -f /dev/' + LogName);
  Same(1, Length(Program_.Errors.Split([' is in a folder of the system;'])) - 1, 'lines');
  Has('LaneMM: /dev/' + LogName + ' is in a folder of the system; written to ' + Program_.Folder
    + LogName + #10, Program_.Errors);
end;

procedure TLogFilesTests.MissingFolderIsNamedAndAnotherTaken;
begin
  RunIn('debug,log=missing/log', '"$P" halt');
  Program_.EndedWith(3);
  Same(1, Length(Program_.Errors.Split([' cannot be written;'])) - 1, 'lines');
  Has('LaneMM: missing/log cannot be written; written to ' + ExtractFilePath(Program_.ReportedPath)
    + LogName + #10, Program_.Errors);
  Has(Overrun, Program_.Written('EventLog.txt'));
end;

procedure TLogFilesTests.FirstChoiceIsNotMentioned;
begin
  RunIn('debug,event=all:file,leaks,leaks:format=json', '"$P"');
  AssertEquals('', Program_.Errors);
  RunIn('debug,event=all:file,leaks,leaks:format=json,log=to/', 'mkdir to; "$P"');
  AssertEquals('', Program_.Errors);
end;

procedure TLogFilesTests.LogThatIsFullBeginsAnew;
begin
  RunIn('debug,event=all:file,log=log,log:most=6K', 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do '
    + '"$P" halt; done; ls >&2');
  Has(Overrun, Content('log'));
  Has(Overrun, Content('log.1'));
  AtMost(6144, Length(Content('log')), 'bytes of the log');
  AtMost(6144, Length(Content('log.1')), 'bytes of the log before');
  AtLeast(3000, Length(Content('log.1')), 'bytes of the log before');
  AssertEquals('log'#10'log.1'#10, Program_.Errors);
end;

// The log is appended, as those of heaptrc and FastMM are.
procedure TLogFilesTests.FileOfTheProgramIsNeitherRenamedNorDeleted;
const
  Lines = 'line'#10;
begin
  RunIn('debug,event=all:file,log=notes,log:most=1', 'echo line > notes; "$P" halt; "$P" halt; ls >&2');
  AssertEquals('notes'#10, Program_.Errors);
  Has(Overrun, Content('notes'));
  AssertEquals(Lines, Copy(Content('notes'), 1, Length(Lines)));
  LaneMM_SetEventLogPath(PAnsiChar(Program_.Folder + 'DamagedEnd.d/notes'));
  AssertFalse('deleted', LaneMM_DeleteEventLog);
  LaneMM_SetEventLogPath(nil);
  Has(Overrun, Content('notes'));
end;

procedure TLogFilesTests.DeviceAsLogIsNotRenamed;
begin
  RunIn('debug,event=all:file,log:most=1,log=' + Program_.NullDevice,
    '"$P" halt; "$P" halt; ls /dev/null* >&2; ls >&2');
  AssertEquals('/dev/null'#10, Program_.Errors);
end;

// Returns what this process prints on stderr while it writes a text that is cut after one page.
function TLogFilesTests.ScreenOf(Write: TWriteCall; const Contents: string): string;
var
  Text, Path: TText;
  Kept, Taken: LongInt;
begin
  AssertTrue('pages', TextOpen(Text, OsPageSize) and TextOpen(Path, OsPageSize));
  TextAddChars(Text, PAnsiChar(Contents));
  Kept := fpDup(StdErrorHandle);
  Taken := fpOpen(Program_.Folder + 'DamagedEnd.d/errors', O_RDWR or O_CREAT or O_TRUNC, &600);
  fpDup2(Taken, StdErrorHandle);
  Write(Text, '.part', Path);
  fpDup2(Kept, StdErrorHandle);
  fpClose(Kept);
  fpClose(Taken);
  Result := Content('errors');
  TextClose(Path);
  TextClose(Text);
end;

procedure TLogFilesTests.CutReportSaysSo;
const
  CutLine = #10'LaneMM: the rest of this report is missing.'#10;
  Lines = 'line'#10;
var
  Folder, Name: string;
begin
  RunIn('', ':');
  Folder := Program_.Folder + 'DamagedEnd.d/';
  Name := ExtractFileName(ParamStr(0)) + '.part';
  LaneMM_SetEventLogPath(PAnsiChar(Folder + 'log'));
  AssertEquals('', ScreenOf(LogFileAppend, Lines));
  AssertEquals('', ScreenOf(LogFileCreate, Lines));
  AssertEquals('LaneMM: ' + Folder + 'log is cut at 4,096 bytes'#10,
    ScreenOf(LogFileAppend, StringOfChar('x', OsPageSize + 1)));
  AssertEquals('LaneMM: ' + Folder + Name + ' is cut at 4,096 bytes'#10,
    ScreenOf(LogFileCreate, StringOfChar('y', OsPageSize + 1)));
  ScreenOf(LogFileAppend, Lines);
  LaneMM_SetEventLogPath(nil);
  AssertEquals(Lines + StringOfChar('x', OsPageSize) + CutLine + Lines, Content('log'));
  AssertEquals(StringOfChar('y', OsPageSize), Content(Name).TrimRight);
end;

procedure TLogFilesTests.LogThatIsSetAnewIsTried;
const
  FullLine = 'LaneMM: /dev/full cannot be written; written to ';
  Lines = 'line'#10;
var
  Folder: string;
begin
  RunIn('', ':');
  Folder := Program_.Folder + 'DamagedEnd.d/';
  try
    LaneMM_Configure('log=/dev/full');
    Has(FullLine, ScreenOf(LogFileAppend, Lines));
    AssertEquals('the same a second time', '', ScreenOf(LogFileAppend, Lines));
    LaneMM_SetEventLogPath(PAnsiChar(Folder + 'first'));
    AssertEquals('', ScreenOf(LogFileAppend, Lines));
    AssertEquals(Lines, Content('first'));
    LaneMM_SetEventLogPath('/dev/full');
    Has(FullLine, ScreenOf(LogFileAppend, Lines));
    LaneMM_Configure('log=' + Folder + 'second');
    AssertEquals('', ScreenOf(LogFileAppend, Lines));
    AssertEquals(Lines, Content('second'));
  finally
    LaneMM_SetEventLogPath(nil);
    DeleteFile(ParamStr(0) + '.part');
  end;
end;

// The system refuses files of more than 512 bytes, as a full disk does.
procedure TLogFilesTests.FileThatDoesNotFitLeavesNoPart;
begin
  RunIn('profile,rate=1,speedscope,log=to/', 'mkdir to; trap "" XFSZ; (ulimit -f 1; "$P" halt); code=$?; '
    + 'find to . "${P%/*}" -name "DamagedEnd_*speedscope*" >&2; exit $code');
  Program_.EndedWith(3);
  Has('_MemoryManager_heap.', Program_.Errors);
  Has(' cannot be written', Program_.Errors);
  Lacks(#10'to/', #10 + Program_.Errors);
  Lacks(#10'/', #10 + Program_.Errors);
end;

initialization
  RegisterTest(TLogFilesTests);
finalization
  Damaged.Free;
end.
