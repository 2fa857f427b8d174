/// Tests of LaneMM.EngineReports: what the setting `limit:report` adds to reports of limits.
unit Test.LimitReports;

{$mode delphi}{$H+}

interface

uses
  Test.Tools;

type
  TLimitReportsTests = class(TLaneTest)
  strict private
    procedure NamesHolder(const Headline: string; Times: Integer);
  protected
    procedure SetUp; override;
  published
    procedure SoftLimitSaysOnceWhatHoldsTheMemory;
    procedure HardLimitSaysOnceWhatHoldsTheMemory;
    procedure ReserveSaysItWhereTheLimitDoesNot;
    procedure WithoutTheSettingThreeGroupsAreNamed;
    procedure FirstRefusalOfTheSystemSaysWhatHoldsTheMemory;
    procedure RefusalOfTheSystemIsNoEventWithoutTheSetting;
  end;

implementation

uses
  SysUtils, StrUtils, testregistry, Test.Programs;

const
  Sampled = 'In use: '; // at the start of a line
  Listed = 'Memory in use: ';

var
  Program_: TTestProgram;

procedure TLimitReportsTests.SetUp;
begin
  if Program_ = nil then
    Program_ := TTestProgram.Create('LimitReports', '-O1 -gl -Xs-');
end;

// Headline comes Times times, the holder of the memory once, with class, line and retainer.
procedure TLimitReportsTests.NamesHolder(const Headline: string; Times: Integer);
var
  Line: string;
begin
  Program_.EndedWith(0);
  Same(Times, LinesFrom(Program_.Errors, Headline), Headline + ' in ' + Program_.Errors);
  Same(1, LinesFrom(Program_.Errors, Sampled), 'reports by call site in ' + Program_.Errors);
  Same(1, LinesFrom(Program_.Errors, Listed), 'reports of blocks');
  Line := 'LimitReports.lpr:' + IntToStr(Program_.PlantedLine('page'));
  Has(' % of it was allocated at ' + Line, Program_.Errors);
  Has(' LimitReports.TCachedPage: ', Program_.Errors);
  Has(' x LimitReports.TCachedPage, ', Program_.Errors);
  Has('TPageCache', Program_.Errors);
end;

procedure TLimitReportsTests.SoftLimitSaysOnceWhatHoldsTheMemory;
begin
  Program_.Run('limit:soft=8M,limit:report', ['12']);
  NamesHolder('Soft memory limit exceeded: ', 2);
end;

procedure TLimitReportsTests.HardLimitSaysOnceWhatHoldsTheMemory;
begin
  Program_.Run('limit=8M,limit:report', ['12']);
  NamesHolder('Memory limit reached: ', 2);
end;

// One report where a limit opens the reserve; its own where the system refuses.
procedure TLimitReportsTests.ReserveSaysItWhereTheLimitDoesNot;
begin
  Program_.Run('limit=8M,reserve=1M,limit:report', ['12']);
  NamesHolder('Out of memory: ', 2);
  Program_.RunInShell('reserve=1M,limit:report', 'ulimit -d 100000; "$P" 120');
  NamesHolder('Out of memory: ', 2);
end;

procedure TLimitReportsTests.WithoutTheSettingThreeGroupsAreNamed;
begin
  Program_.Run('limit=8M', ['12']);
  Program_.EndedWith(0);
  Same(2, LinesFrom(Program_.Errors, 'Memory limit reached: '), 'reports');
  Same(0, LinesFrom(Program_.Errors, Sampled) + LinesFrom(Program_.Errors, Listed), 'long ones');
  Has(' x LimitReports.TCachedPage, ', Program_.Errors);
end;

procedure TLimitReportsTests.FirstRefusalOfTheSystemSaysWhatHoldsTheMemory;
begin
  Program_.RunInShell('limit:report', 'ulimit -d 100000; "$P" 120');
  NamesHolder('Out of memory: ', 1);
end;

procedure TLimitReportsTests.RefusalOfTheSystemIsNoEventWithoutTheSetting;
begin
  Program_.RunInShell('', 'ulimit -d 100000; "$P" 120');
  Program_.EndedWith(0);
  AssertEquals('', Program_.Errors);
end;

initialization
  RegisterTest(TLimitReportsTests);
finalization
  Program_.Free;
end.
