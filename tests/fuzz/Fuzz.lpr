/// Random input for everything that LaneMM reads: settings, files of suppressions, executable files.
/// It may be refused; it never crashes a program, makes it hang, or takes much memory.
program Fuzz;

{$mode delphi}{$H+}

uses
  LaneMM, cthreads, SysUtils, StrUtils, Test.Tools, FuzzCases, FuzzSettings, FuzzElf;

const
  Usage = 'Fuzz [--cases=N] [--seed=N] [--case=N] [--kind=settings|elf]'#10
    + '  --cases=N  cases of each kind (10000)'#10
    + '  --seed=N   seed of all random numbers; printed, so that a run can be repeated'#10
    + '  --case=N   only this case'#10
    + '  --kind=K   only this kind'#10
    + 'Exit code 1 when a case crashed a program, made it hang or took more than 300 MB.';
  CasesPerFolder = 500;

type
  TCase = function: string;

var
  Folder: string;
  Seed: UInt64;
  PassedCount, FailedCount: Integer;

// Removes the files that the last cases wrote.
procedure EmptyScratch;
var
  Found: TSearchRec;
begin
  if FindFirst(Scratch + '*', faAnyFile, Found) = 0 then
    repeat
      if Found.Attr and faDirectory = 0 then
        DeleteFile(Scratch + Found.Name);
    until FindNext(Found) <> 0;
  FindClose(Found);
end;

procedure RunCase(const Kind: string; Number: Integer; Run: TCase);
var
  Trouble: string;
begin
  Random.Start(Seed * 1000003 + Number);
  if Number mod CasesPerFolder = 0 then
    EmptyScratch;
  Trouble := Run;
  if Trouble = '' then
    Inc(PassedCount)
  else
  begin
    Inc(FailedCount);
    WriteLn('--seed=', Seed, ' --kind=', Kind, ' --case=', Number, ': ', Trouble);
    Flush(Output);
  end;
end;

procedure RunCases(const Kind: string; Run: TCase);
var
  Number: Integer;
begin
  if not AnsiMatchStr(Option('kind', Kind), [Kind]) then
    Exit;
  if Option('case', '') <> '' then
    RunCase(Kind, StrToInt(Option('case', '')), Run)
  else
    for Number := 1 to StrToInt(Option('cases', '10000')) do
      RunCase(Kind, Number, Run);
end;

begin
  if ParamStr(1) = '--help' then
  begin
    WriteLn(Usage);
    Halt(0);
  end;
  Seed := StrToInt(Option('seed', '1'));
  WriteLn('seed ', Seed);
  Folder := ExtractFilePath(ExpandFileName(ParamStr(0)));
  Scratch := Folder + 'scratch/';
  ForceDirectories(Scratch);
  Random.Start(Seed);
  SettingsPrepare(Folder + 'Target');
  ElfPrepare([Folder + 'Target', Folder + 'libMapped.so', Folder + 'libMappedC.so',
    Folder + 'libMappedZ.so']);
  RunCases('settings', SettingsCase);
  RunCases('elf', ElfCase);
  WriteLn(PassedCount, ' passed, ', FailedCount, ' failed');
  Halt(Ord(FailedCount > 0));
end.
