/// Tests of LaneMM.LogFile: where files go, and what stands there already.
unit Test.LogFiles;

{$mode delphi}{$H+}

interface

uses
  Test.Cases, LaneMM.Text;

type
  TWriteCall = function(const Text: TText; const Suffix: ShortString; var Path: TText): Boolean;

  TLogFilesTests = class(TProgramTest)
  strict private
    function ScreenOf(Write: TWriteCall; const Contents: string): string;
    procedure RunIn(const Settings, Command: string);
    function Content(const Name: string): string;
  protected
    procedure Act(const Word, Rest: string); override;
    function Value(const Name: string): string; override;
  published
    procedure FileOfTheProgramIsNeitherRenamedNorDeleted;
    procedure CutReportSaysSo;
    procedure LogThatIsSetAnewIsTried;
    procedure ChildRenamesALogThatItsParentWasRenaming;
  end;

implementation

uses
  SysUtils, StrUtils, BaseUnix, Test.Tools, LaneMM, LaneMM.Os, LaneMM.ReportState, LaneMM.LogFile;

const
  Overrun = 'Heap block overrun: bytes past the end were modified.';

// Runs a line of the shell in an empty folder below that of the program.
procedure TLogFilesTests.RunIn(const Settings, Command: string);
begin
  Program_.RunInShell(IfThen(Settings <> '-', Settings), 'rm -rf "$P.d"; mkdir "$P.d"; cd "$P.d"; umask 022; ' + Command);
end;

// The contents of a file in that folder; '' when it is missing.
function TLogFilesTests.Content(const Name: string): string;
begin
  Result := '';
  if FileExists(Program_.Folder + 'DamagedEnd.d/' + Name) then
    Result := ReadText(Program_.Folder + 'DamagedEnd.d/' + Name);
end;

procedure TLogFilesTests.Act(const Word, Rest: string);
var
  Place: Integer;
begin
  Place := Pos(' ', Rest);
  if Word = 'in' then
  begin
    RunIn(Copy(Rest, 1, Place - 1), Copy(Rest, Place + 1));
    inherited Act('output', 'screen');
  end
  else if Word = 'file' then
    Output := Content(Rest)
  else
    inherited Act(Word, Rest);
end;

function TLogFilesTests.Value(const Name: string): string;
begin
  if Name = 'here' then
    Result := ExtractFilePath(Program_.ReportedPath)
  else
    Result := inherited Value(Name);
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

// Returns what this process prints on stderr while it writes a text that is cut after one page.
function TLogFilesTests.ScreenOf(Write: TWriteCall; const Contents: string): string;
var
  Text, Path: TText;
  Kept, Taken: LongInt;
begin
  AssertTrue('pages', TextOpen(Text, OsPageSize) and TextOpen(Path, OsPageSize));
  TextAddChars(Text, PAnsiChar(Contents));
  Kept := fpDup(StdErrorHandle);
  Taken := fpOpen(Program_.Folder + 'DamagedEnd.d/errors', O_WRONLY or O_CREAT or O_TRUNC, &600);
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
    LaneMM_Configure('log="' + Folder + 'second"');
    AssertEquals('', ScreenOf(LogFileAppend, Lines));
    AssertEquals(Lines, Content('second'));
  finally
    LaneMM_SetEventLogPath(nil);
    DeleteFile(ParamStr(0) + '.part');
  end;
end;

procedure TLogFilesTests.ChildRenamesALogThatItsParentWasRenaming;
const
  Renaming = 32; // the bit of a thread that does; a child process has no such thread
  Line = 'LaneMM: a log'#10;
begin
  RunIn('', ':');
  LaneMM_Configure('log="' + Program_.Folder + 'DamagedEnd.d/own",log:most=20');
  Report.LogState := Report.LogState or Renaming;
  try
    ScreenOf(LogFileAppend, Line);
    ScreenOf(LogFileAppend, Line);
    AssertEquals('while another thread renames it', Line + Line, Content('own'));
    LogFileForget;
    ScreenOf(LogFileAppend, Line);
    AssertEquals(Line, Content('own'));
    AssertEquals(Line + Line, Content('own.1'));
  finally
    LaneMM_Configure('log:most=0');
    LaneMM_SetEventLogPath(nil);
  end;
end;

initialization
  RegisterCases(TLogFilesTests, 'words/LogFiles');
end.
