/// Tests of LaneMM.Elf: names and lines out of a file of debug information alone, as -Xg makes it.
unit Test.DebugFiles;

{$mode delphi}{$H+}

interface

uses
  Test.Tools, Test.Programs;

type
  TDebugFilesTests = class(TLaneTest)
  strict private
    Program_: TTestProgram;
    procedure RunAfter(const Change: string);
    function Frame: string;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure LinesComeFromTheFileBesideTheProgram;
    procedure LinesComeFromTheFolderOfDebugFiles;
    procedure LinesComeFromACompressedFile;
    procedure FileOfAnotherBuildIsNotUsed;
    {$if defined(LINUX) and defined(CPUX86_64)}
    procedure ProgramThatWasDeletedHasNamesAndLines;
    {$ifend}
  end;

implementation

uses
  SysUtils, testregistry;

procedure TDebugFilesTests.SetUp;
begin
  Program_ := TTestProgram.Create('Leaking', '-O1 -gl -Xg');
end;

procedure TDebugFilesTests.TearDown;
begin
  Program_.Free;
end;

// Runs the program in a folder of its own, after a command for the shell in it.
procedure TDebugFilesTests.RunAfter(const Change: string);
begin
  Program_.RunInShell('leaks,stacks,log=/dev/null', 'rm -rf apart && mkdir apart'
    + ' && cp "$P" "$P.dbg" apart && cd apart && ' + Change
    + ' && P=$PWD/Leaking && "$P" objects');
end;

function TDebugFilesTests.Frame: string;
begin
  Result := Format('  LEAKING.LEAKOBJECTS  Leaking.lpr:%d'#10, [Program_.PlantedLine('leak')]);
end;

procedure TDebugFilesTests.LinesComeFromTheFileBesideTheProgram;
begin
  RunAfter('true');
  Has(Frame, Program_.Errors);
end;

procedure TDebugFilesTests.LinesComeFromTheFolderOfDebugFiles;
begin
  RunAfter('mkdir .debug && mv Leaking.dbg .debug');
  Has(Frame, Program_.Errors);
end;

procedure TDebugFilesTests.LinesComeFromACompressedFile;
begin
  RunAfter('o=${OBJCOPY:-objcopy} && $o --compress-debug-sections=zlib Leaking.dbg'
    + ' && $o --remove-section=.gnu_debuglink Leaking && $o --add-gnu-debuglink=Leaking.dbg Leaking');
  Has(Frame, Program_.Errors);
end;

procedure TDebugFilesTests.FileOfAnotherBuildIsNotUsed;
begin
  RunAfter('printf x >> Leaking.dbg');
  Has('Memory leaks: ', Program_.Errors);
  AssertEquals('no names', 0, Pos('LEAKOBJECTS', Program_.Errors));
end;

{$if defined(LINUX) and defined(CPUX86_64)}
procedure TDebugFilesTests.ProgramThatWasDeletedHasNamesAndLines;
begin
  Program_.RunInShell('leaks,stacks,log=/dev/null', 'rm -rf apart && mkdir apart'
    + ' && cp "$P" "$P.dbg" apart && cd apart && exec 9< Leaking && rm Leaking'
    + ' && /proc/self/fd/9 objects');
  Has(Frame, Program_.Errors);
end;
{$ifend}

initialization
  RegisterTest(TDebugFilesTests);
end.
