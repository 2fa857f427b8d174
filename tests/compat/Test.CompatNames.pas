/// Tests of the names of FastMM4 and FastMM5 as lists: each name works and is tested, or does not
/// compile and the compiler names the reason; each is in docs/migrating.md, as each option is.
unit Test.CompatNames;

{$mode delphi}{$H+}

interface

uses
  Classes, Test.Tools;

type
  /// A line of a list: a name, the reason why it does not work, a use.
  TListedName = record
    Name, Reason, Use: string;
  end;

  TCompatNamesTests = class(TLaneTest)
  strict private
    Names: array of TListedName;
    procedure ReadNames(const ListName: string);
    function CountOf(const Prefixes: array of string): Integer;
    function Text(const FileName: string): string;
    function Compile(const Source, Options: string): string;
    procedure AllAreTested(const UnitName: string);
    procedure OthersGiveTheirReasons(const UnitName: string);
    procedure OthersGiveThem(const UnitName, Mode: string);
    procedure AllAreDocumented(const ListName: string);
  protected
    procedure SetUp; override;
  published
    procedure ListHasAllNamesOfFastMM5;
    procedure NamesOfFastMM5ThatWorkAreTested;
    procedure OtherNamesOfFastMM5GiveTheirReasons;
    procedure NamesOfFastMM4ThatWorkAreTested;
    procedure OtherNamesOfFastMM4GiveTheirReasons;
    procedure AddressOfARoutineWithoutCounterpartDoesNotLink;
    procedure OptionsThatStopGiveTheirReasons;
    procedure OptionsThatActDo;
    procedure AllNamesAndOptionsAreDocumented;
    procedure ReportBeginsAtTheProgramsOwnLine;
  end;

implementation

uses
  SysUtils, testregistry, Test.Programs;

const
  Works = 'works';
  // Statements of a program that uses the names.
  Variables = 'var Total: Cardinal; Header: TFastMM_DebugBlockHeader; Handler: TProcedure;'
    + ' Info: TFastMM_WalkAllocatedBlocks_BlockInfo;';

var
  IsFresh: Boolean;

function Folder: string;
begin
  Result := ExtractFilePath(ParamStr(0)) + 'names/';
end;

// Deletes what an earlier run compiled: the compiler does not see that sources have changed which
// it finds by the unit paths of LaneMM.inc.
procedure Freshen;
var
  Printed: string;
begin
  if IsFresh then
    Exit;
  RunShell('rm -rf "' + Folder + '"', Printed);
  IsFresh := True;
end;

procedure TCompatNamesTests.SetUp;
begin
  Freshen;
  ForceDirectories(Folder);
end;

function TCompatNamesTests.Text(const FileName: string): string;
begin
  Result := ReadText(SourceFolder + FileName);
end;

procedure TCompatNamesTests.ReadNames(const ListName: string);
var
  Line: string;
  Parts: TStringArray;
begin
  Names := nil;
  for Line in Text('tests/compat/' + ListName + '.txt').Split([LineEnding]) do
  begin
    if (Line = '') or (Line[1] = '#') then
      Continue;
    Parts := (Line + ' | ').Split([' | ']);
    SetLength(Names, Length(Names) + 1);
    Names[High(Names)].Name := Parts[0];
    Names[High(Names)].Reason := Parts[1];
    Names[High(Names)].Use := Parts[2];
  end;
  AtLeast(40, Length(Names), 'names');
end;

// Returns the number of names that begin with one of the prefixes.
function TCompatNamesTests.CountOf(const Prefixes: array of string): Integer;
var
  Listed: TListedName;
  Prefix: string;
begin
  Result := 0;
  for Listed in Names do
    for Prefix in Prefixes do
      Inc(Result, Ord(Pos(Prefix, Listed.Name) = 1));
end;

// Returns whether Name stands in Text, not as a part of a longer name.
function HasName(const Text, Name: string): Boolean;
const
  Letters = ['A'..'Z', 'a'..'z', '0'..'9', '_'];
var
  Place: SizeInt;
begin
  Place := Pos(Name, Text);
  while Place > 0 do
  begin
    if not ((Text + ' ')[Place + Length(Name)] in Letters)
      and ((Place = 1) or not (Text[Place - 1] in Letters)) then
      Exit(True);
    Place := Pos(Name, Text, Place + 1);
  end;
  Result := False;
end;

// Compiles a program, also one that has errors; returns what the compiler printed.
function TCompatNamesTests.Compile(const Source, Options: string): string;
const
  Command = 'cd "%s" && "%s" -l- -v0 -vew -Se999 %s "-Fu%ssrc" "-Fu%ssrc/compat" -FUunits Names.lpr';
var
  Lines: TStringList;
begin
  ForceDirectories(Folder + 'units');
  Lines := TStringList.Create;
  Lines.Text := Source;
  Lines.SaveToFile(Folder + 'Names.lpr');
  Lines.Free;
  RunShell(Format(Command, [Folder, Compiler, Options, SourceFolder, SourceFolder]), Result);
end;

procedure TCompatNamesTests.ListHasAllNamesOfFastMM5;
begin
  ReadNames('FastMM5');
  // 60 routines and 40 variables; three names are both, as an option decides.
  Same(60 + 40 - 3, CountOf(['FastMM_', 'DebugLibrary_']), 'routines and variables');
  Same(5, CountOf(['CFastMM_']), 'constants');
  Same(24, CountOf(['TFastMM_', 'PFastMM_']), 'types');
  // 38 values of enumerations, 48 names of fields and methods of records.
  Same(60 + 40 - 3 + 5 + 24 + 38 + 48, Length(Names), 'names');
end;

procedure TCompatNamesTests.AllAreTested(const UnitName: string);
var
  Source: string;
  Listed: TListedName;
begin
  ReadNames(UnitName);
  Source := Text('tests/compat/Test.' + UnitName + '.pas');
  for Listed in Names do
    if (Listed.Reason = Works) and not HasName(Source, Listed.Name) then
      Fail('%s is not tested', [Listed.Name]);
end;

procedure TCompatNamesTests.NamesOfFastMM5ThatWorkAreTested;
begin
  AllAreTested('FastMM5');
end;

procedure TCompatNamesTests.NamesOfFastMM4ThatWorkAreTested;
begin
  AllAreTested('FastMM4');
end;

// Returns whether the compiler printed an error for a line, and the reason with it: the error names
// its type, or the warning for the same line says it.
function GivesReason(const Output: string; Line: Integer; const Name, Reason: string): Boolean;
var
  Printed: string;
  HasError, HasReason: Boolean;
begin
  HasError := False;
  HasReason := False;
  for Printed in Output.Split([#10]) do
    if Pos(Format('Names.lpr(%d,', [Line]), Printed) = 1 then
    begin
      HasError := HasError or (Pos(' Error: ', Printed) > 0);
      HasReason := HasReason or HasName(Printed, Reason)
        or (Pos(Name + '" is deprecated: "', Printed) > 0); // 3.3 writes TYPE.NAME
    end;
  Result := HasError and HasReason;
end;

procedure TCompatNamesTests.OthersGiveTheirReasons(const UnitName: string);
begin
  ReadNames(UnitName);
  OthersGiveThem(UnitName, 'delphi');
  OthersGiveThem(UnitName, 'objfpc');
end;

procedure TCompatNamesTests.OthersGiveThem(const UnitName, Mode: string);
const
  // The first use is in this line.
  FirstLine = 6;
var
  Source, Output: string;
  Listed: TListedName;
  Line: Integer;
begin
  Source := 'program Names;'#10'{$mode ' + Mode + '}'#10'uses FastMM5, ' + UnitName + ';'#10 + Variables
    + #10'begin'#10;
  for Listed in Names do
    if Listed.Reason <> Works then
      Source := Source + Listed.Use + #10;
  Output := Compile(Source.Replace('FastMM5, FastMM5', 'FastMM5') + 'end.', '');
  Line := FirstLine;
  for Listed in Names do
    if Listed.Reason <> Works then
    begin
      if not GivesReason(Output, Line, Listed.Name, Listed.Reason) then
        Fail('%s, line %d, does not give its reason: %s', [Listed.Name, Line, Output]);
      Inc(Line);
    end;
end;

procedure TCompatNamesTests.OtherNamesOfFastMM5GiveTheirReasons;
begin
  OthersGiveTheirReasons('FastMM5');
end;

procedure TCompatNamesTests.OtherNamesOfFastMM4GiveTheirReasons;
begin
  OthersGiveTheirReasons('FastMM4');
end;

// The linker says why, or an assembler before it, which leaves out spaces.
procedure TCompatNamesTests.AddressOfARoutineWithoutCounterpartDoesNotLink;
begin
  Has('LaneMMneedsnostrategy:removethis', Compile('program Names;'#10'uses FastMM5;'#10'begin'#10
    + 'if @FastMM_SetOptimizationStrategy <> nil then;'#10'end.', '').Replace(' ', ''));
end;

procedure TCompatNamesTests.OptionsThatStopGiveTheirReasons;
var
  Output: string;
  Listed: TListedName;
begin
  ReadNames('options');
  for Listed in Names do
    if Listed.Reason = 'stops' then
    begin
      DeleteFile(Folder + 'units/LaneMM.Compat.Options.ppu');
      Output := Compile('program Names;'#10'uses FastMM5;'#10'begin'#10'end.', '-d' + Listed.Name);
      Has('LaneMM.Compat.Options.pas(', Output);
      Has('Fatal: User defined: ', Output);
    end;
end;

procedure TCompatNamesTests.OptionsThatActDo;
const
  Source = 'program Names;'#10'uses FastMM5, LaneMM;'#10'begin'#10
    + 'if not FastMM_DebugModeActive then Halt(1);'#10
    + 'if LaneMM_Settings.Values[opLeaks] = 0 then Halt(2);'#10
    + 'if LaneMM_Settings.Values[opErase] <> 3 then Halt(3);'#10
    + 'if LaneMM_Settings.Values[opContention] = 0 then Halt(4);'#10
    + 'if LaneMM_Settings.Values[opDump] <> 0 then Halt(5);'#10
    + 'Halt(77);'#10'end.';
var
  Listed: TListedName;
  Options, Printed: string;
begin
  ReadNames('options');
  Options := '';
  for Listed in Names do
    if Listed.Reason = 'acts' then
      Options := Options + ' -d' + Listed.Name;
  DeleteFile(Folder + 'units/LaneMM.Compat.Options.ppu');
  Compile(Source, Options);
  DeleteFile(Folder + 'units/LaneMM.Compat.Options.ppu');
  RunShell('cd "' + Folder + '"; $RUN ./Names > log 2>&1; echo $?', Printed);
  AssertEquals('77', Trim(Printed));
end;

procedure TCompatNamesTests.AllAreDocumented(const ListName: string);
var
  Document: string;
  Listed: TListedName;
begin
  ReadNames(ListName);
  Document := Text('docs/migrating.md');
  for Listed in Names do
    if not HasName(Document, Listed.Name) then
      Fail('%s is missing in docs/migrating.md', [Listed.Name]);
end;

procedure TCompatNamesTests.AllNamesAndOptionsAreDocumented;
begin
  AllAreDocumented('FastMM5');
  AllAreDocumented('FastMM4');
  AllAreDocumented('options');
end;

procedure TCompatNamesTests.ReportBeginsAtTheProgramsOwnLine;
var
  Caller: TTestProgram;
begin
  Caller := TestProgram('FromFastMM', '-gl -Xs- -Fu' + SourceFolder + 'src/compat');
  Caller.Run('event=all:stderr', []);
  Caller.EndedWith(0);
  Has('Memory limit reached', Caller.Errors);
  Has('FromFastMM.lpr:', Caller.Errors);
  HasNot('FASTMM5.', Caller.Errors);
end;

initialization
  RegisterTest(TCompatNamesTests);
end.
