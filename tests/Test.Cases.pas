/// Tests that are cases: what is run, and what it has to write then, as lines of a text file. A word
/// begins each line:
///
///   # TEXT             a comment
///   @ NAME             begins a case, a test; NAME is the promise that it checks. The lines at the start
///                      of the file are done before each test of the class
///   @ NAME on TARGET   begins one that there is on this target alone, such as x86_64-linux
///   has TEXT           the output has TEXT
///   then TEXT          it has TEXT behind what the last `has` or `then` found
///   together A | B     a line has both
///   matches PATTERN    a regular expression matches it
///   lacks TEXT         there is output, and it lacks TEXT
///   begins TEXT        the output begins with TEXT
///   times N TEXT       it has TEXT so often
///   least N TEXT       it has TEXT at least so often
///   is SUM N           a sum of such numbers is N
///   between SUM A B    it is at least A and at most B
///   count TEXT         the number `counted` is how often it has TEXT
///   let SUM            the number `counted` is SUM
///   nothing            there is no output
///   json PATH VALUE    it is JSON, with VALUE at PATH; `none`: there is nothing at PATH
///   data               from here on the output is the JSON in the page that it was
///   exit N             the exit code
///   each TEXT | TEXT   the lines that follow, up to `end` or the end of the case, for each TEXT; {each}
///                      is that text
///   = NAME             begins a group of lines, which are done by `do`
///   do NAME TEXT       does the group; {it} is TEXT there
///   find A | B         {found} is what the output has between A and B
///   when NUMBER LINE   the line where the number of that name is not 0
///
/// More words are those of a class. In all lines `\n` is the end of a line, and braces hold a text of the
/// class by its name, or a sum of products of numbers, which is written with its commas: {12*FooBlock-3};
/// not those behind a `$`, which are the shell's.
unit Test.Cases;

{$mode delphi}{$H+}

interface

uses
  Classes, Test.Tools, Test.Programs;

type
  /// A test that may be a case.
  TCaseTest = class(TLaneTest)
  strict private
    Place: Integer; // behind what was found last
    Counted: Int64;
    Each, It, Found: string;
    function Sum(const Terms: string): Int64;
    function Expanded(const Text: string): string;
    procedure Find(const Text: string; From: Integer);
    procedure CheckJson(const Path, Value: string);
    procedure Obey(const Line: string);
    procedure ObeyAll(Lines: TStrings; First, Limit: Integer);
  protected
    /// What the checks look at.
    Output: string;
    /// Fails unless this is the exit code.
    procedure CheckExit(Code: Integer); virtual; abstract;
    /// Does what a line says with a word of the class; fails for another one.
    procedure Act(const Word, Rest: string); virtual;
    /// Returns a text by its name; '' if there is none.
    function Value(const Name: string): string; virtual;
    /// Returns a number by its name; fails if there is none.
    function Number(const Name: string): Int64; virtual;
    procedure RunTest; override;
  end;

  TCaseTests = class of TCaseTest;

  /// Cases about the programs of tests/programs. Their words:
  ///
  ///   program NAME OPTIONS  the program of the lines that follow, and the options to build it with
  ///   output NAME           the checks look at the file whose name ends with NAME, or at `screen`:
  ///                         stderr; also after each run that follows
  ///   run SETTINGS WORDS    runs it with LANEMM=SETTINGS and these arguments; SETTINGS `-`: none
  ///   shell SETTINGS LINE   the same by a line of the shell, which calls the program as "$P"
  ///   write NAME TEXT       writes a file into its folder
  ///   delete NAME           deletes one there
  ///   report N              the checks look at the report of this number in the output
  ///   same NAME             the output is that of the file, see `output`
  ///   below HEADING: MARK   the backtrace below HEADING has the line with the comment `planted: MARK`
  ///
  /// Values: {line MARK} is the number of that line, {folder} the folder of the program with a slash,
  /// {null} the file that takes all and keeps nothing, {path} the program as reports name it; the number
  /// `word` is the bytes of an address, `abort` the exit code of a process that abort has ended,
  /// `minus` what the system makes of the exit code -1.
  TProgramTest = class(TCaseTest)
  strict private
    OutputName: string;
    procedure Look;
    procedure CheckBelow(const Heading, Mark: string);
  protected
    Program_: TTestProgram;
    procedure CheckExit(Code: Integer); override;
    procedure Act(const Word, Rest: string); override;
    function Value(const Name: string): string; override;
    function Number(const Name: string): Int64; override;
  end;

/// Registers a suite: the methods of a class, and the cases of tests/Name.cases. The suite of
/// `words/Reports` is TReportsTests.
procedure RegisterCases(TestClass: TCaseTests; const Name: string);

implementation

uses
  SysUtils, StrUtils, Math, RegExpr, fpjson, jsonparser, fpcunit, testregistry, testutils;

var
  // The lines of each case by SUITE.NAME, of each group by SUITE=NAME, those at the start by SUITE.
  Cases: TStringList;

function LinesOf(const Name: string): TStringList;
var
  Index: Integer;
begin
  Result := nil;
  Index := Cases.IndexOf(Name);
  if Index >= 0 then
    Result := TStringList(Cases.Objects[Index]);
end;

// Parts a line at the first blank, or at another text.
procedure Part(const Line: string; out First, Rest: string; const At: string = ' ');
var
  Place: Integer;
begin
  Place := Pos(At, Line + At);
  First := Copy(Line, 1, Place - 1);
  Rest := Copy(Line, Place + Length(At));
end;

procedure RegisterCases(TestClass: TCaseTests; const Name: string);
const
  TargetName = {$I %FPCTARGETCPU%} + '-' + {$I %FPCTARGETOS%};
var
  Suite: TTestSuite;
  Text, Lines: TStringList;
  Line, Promise, Place: string;

  // Begins the lines of a case, of a group, or of the start.
  procedure Start(const Rest: string);
  begin
    Lines := TStringList.Create;
    Cases.AddObject(Suite.TestName + Rest, Lines);
  end;

begin
  Suite := TTestSuite.Create('T' + ExtractFileName(Name) + 'Tests');
  Text := TStringList.Create;
  GetMethodList(TestClass, Text);
  for Line in Text do
    Suite.AddTest(TestClass.CreateWith(Line, Suite.TestName));
  Start('');
  Text.LoadFromFile(SourceFolder + 'tests/' + Name + '.cases');
  for Line in Text do
    if StartsStr('@ ', Line) then
    begin
      Part(Copy(Line, 3), Promise, Place, ' on ');
      Start('.' + Promise);
      if (Place = '') or SameText(Place, TargetName) then
        Suite.AddTest(TestClass.CreateWith(Promise, Suite.TestName));
    end
    else if StartsStr('= ', Line) then
      Start('=' + Copy(Line, 3))
    else if (Line <> '') and not StartsStr('#', Line) then
      Lines.Add(Line);
  Text.Free;
  GetTestRegistry.AddTest(Suite);
end;

// ---------------------------------------------------------------------------- TCaseTest

function TCaseTest.Value(const Name: string): string;
begin
  case IndexStr(Name, ['each', 'it', 'found', 'seed']) of
    0: Result := Each;
    1: Result := It;
    2: Result := Found;
    3: Result := IntToStr(TestSeed);
  else
    Result := '';
  end;
end;

function TCaseTest.Number(const Name: string): Int64;
begin
  if Name <> 'counted' then
    Fail('no value ' + Name);
  Result := Counted;
end;

function TCaseTest.Sum(const Terms: string): Int64;
var
  Term, Factor: string;
  Known, Product: Int64;
begin
  Result := 0;
  for Term in Terms.Replace('-', '+-').Split(['+']) do
  begin
    Product := 1;
    for Factor in Term.Split(['*']) do
    begin
      if not TryStrToInt64(Factor, Known) then
        Known := Number(Factor);
      Product := Product * Known;
    end;
    Inc(Result, Product);
  end;
end;

function TCaseTest.Expanded(const Text: string): string;
var
  Start, Stop: Integer;
  Name, Known: string;
  Exact: Extended;
begin
  Result := Text.Replace('\n', #10);
  Start := Pos('{', Result);
  while Start > 0 do
  begin
    if (Result[Start + 1] in ['0'..'9', 'A'..'Z', 'a'..'z']) and (Copy(Result, Start - 1, 1) <> '$') then
    begin
      Stop := PosEx('}', Result, Start);
      Name := Copy(Result, Start + 1, Stop - Start - 1);
      Known := Value(Name);
      if Known = '' then
      begin
        Exact := Sum(Name);
        Known := Format('%.0n', [Exact]);
      end;
      Result := Copy(Result, 1, Start - 1) + Known + Copy(Result, Stop + 1);
    end;
    Start := PosEx('{', Result, Start + 1);
  end;
end;

procedure TCaseTest.Find(const Text: string; From: Integer);
begin
  Place := PosEx(Text, Output, From);
  AssertTrue(Format('`%s` is missing in: %s', [Text, Copy(Output, From)]), Place > 0);
  Inc(Place, Length(Text));
end;

procedure TCaseTest.CheckJson(const Path, Value: string);
var
  Root, Found: TJSONData;
  Text: string;
begin
  Root := GetJSON(Output);
  Found := Root.FindPath(Path);
  Text := 'none';
  if Found <> nil then
    Text := Found.AsString;
  Root.Free;
  if Text <> Value.Replace(',', '') then // a number, maybe
    AssertEquals(Path, Value, Text);
  Inc(AssertCount);
end;

procedure TCaseTest.Obey(const Line: string);
var
  Word, Rest: string;
begin
  Part(Line, Word, Rest);
  try
    Act(Word, Expanded(Rest));
  except
    on Error: EAssertionFailedError do
    begin
      Error.Message := Format('`%s`%s: %s', [Line, IfThen(Each <> '', ' with ' + Each), Error.Message]);
      raise;
    end;
  end;
end;

procedure TCaseTest.Act(const Word, Rest: string);
const
  DataMark = 'id="data">';
var
  Limit, Path, Text, Other: string;
  Group: TStringList;
  Count: Integer;
begin
  if Word = 'has' then
    Find(Rest, 1)
  else if Word = 'then' then
    Find(Rest, Place)
  else if Word = 'lacks' then
    HasNot(Rest, Output)
  else if Word = 'together' then
  begin
    Part(Rest, Text, Other, ' | ');
    Find(Text, 1);
    Has(Other, Copy(Output, Place, PosEx(#10, Output + #10, Place) - Place));
  end
  else if Word = 'matches' then
    AssertTrue(Format('`%s` in: %s', [Rest, Output]), ExecRegExpr(Rest, Output))
  else if Word = 'begins' then
    AssertTrue(Format('`%s` does not begin: %s', [Rest, Output]), StartsStr(Rest, Output))
  else if Word = 'nothing' then
    AssertEquals('', Output)
  else if Word = 'json' then
  begin
    Part(Rest, Path, Text);
    CheckJson(Path, Text);
  end
  else if Word = 'data' then
  begin
    Find(DataMark, 1);
    Output := Copy(Output, Place, PosEx('</script>', Output, Place) - Place);
  end
  else if Word = 'is' then
  begin
    Part(Rest, Text, Limit);
    Same(StrToInt64(Limit.Replace(',', '')), Sum(Text), Text);
  end
  else if Word = 'between' then
  begin
    Part(Rest, Text, Path);
    Part(Path, Limit, Other);
    AtLeast(StrToInt64(Limit.Replace(',', '')), Sum(Text), Text);
    AtMost(StrToInt64(Other.Replace(',', '')), Sum(Text), Text);
  end
  else if Word = 'find' then
  begin
    Part(Rest, Text, Other, ' | ');
    Find(Text, 1);
    Found := Copy(Output, Place, PosEx(Other, Output, Place) - Place);
  end
  else if Word = 'do' then
  begin
    Part(Rest, Text, It);
    Group := LinesOf(TestSuiteName + '=' + Text);
    AssertNotNull('group ' + Text, Group);
    ObeyAll(Group, 0, Group.Count);
  end
  else if Word = 'when' then
  begin
    Part(Rest, Limit, Text);
    if Number(Limit) <> 0 then
      Obey(Text);
  end
  else if Word = 'exit' then
    CheckExit(StrToInt(Rest))
  else if Word = 'count' then
    Counted := High(Output.Split([Rest]))
  else if Word = 'let' then
    Counted := Sum(Rest)
  else if (Word = 'times') or (Word = 'least') then
  begin
    Part(Rest, Limit, Text);
    Count := High(Output.Split([Text]));
    AtLeast(StrToInt(Limit), Count, '`' + Text + '` in: ' + Output);
    AssertTrue(Format('%d times: %s', [Count, Output]), (Word = 'least') or (Count = StrToInt(Limit)));
  end
  else
    Fail('no word of a case: ' + Word);
end;

// Does the lines from First on, before the one at Limit.
procedure TCaseTest.ObeyAll(Lines: TStrings; First, Limit: Integer);
const
  Loop = 'each ';
var
  Last: Integer;
  Text: string;
begin
  while First < Limit do
  begin
    Last := First;
    if StartsStr(Loop, Lines[First]) then
    begin
      while (Last < Limit) and (Lines[Last] <> 'end') do
        Inc(Last);
      for Text in Copy(Lines[First], Length(Loop) + 1).Split([' | ']) do
      begin
        Each := Expanded(Text);
        ObeyAll(Lines, First + 1, Last);
      end;
    end
    else
      Obey(Lines[First]);
    First := Last + 1;
  end;
end;

procedure TCaseTest.RunTest;
var
  Lines: TStringList;
begin
  Lines := LinesOf(TestSuiteName);
  if Lines <> nil then
    ObeyAll(Lines, 0, Lines.Count);
  Lines := LinesOf(TestSuiteName + '.' + TestName);
  if Lines = nil then
  begin
    inherited RunTest;
    Exit;
  end;
  AssertCount := 0;
  ObeyAll(Lines, 0, Lines.Count);
  AtLeast(1, AssertCount, 'checks');
end;

// ---------------------------------------------------------------------------- TProgramTest

function TProgramTest.Value(const Name: string): string;
begin
  if StartsStr('line ', Name) then
    Result := IntToStr(Program_.PlantedLine(Copy(Name, 6)))
  else if Name = 'folder' then
    Result := Program_.Folder
  else if Name = 'null' then
    Result := Program_.NullDevice
  else if Name = 'path' then
    Result := Program_.ReportedPath
  else
    Result := inherited Value(Name);
end;

function TProgramTest.Number(const Name: string): Int64;
begin
  if Name = 'word' then
    Result := WordSize
  else if Name = 'abort' then // a signal; the exit code of the C library of Windows
    Result := IfThen(Program_.IsForWindows, 3, -6)
  else if Name = 'minus' then
    Result := IfThen(Program_.IsForWindows, Int64(High(Cardinal)), High(Byte))
  else
    Result := inherited Number(Name);
end;

procedure TProgramTest.CheckExit(Code: Integer);
begin
  Program_.EndedWith(Code);
end;

procedure TProgramTest.Look;
begin
  Output := Program_.Errors;
  if (OutputName <> '') and (OutputName <> 'screen') then
    Output := Program_.Written(OutputName);
end;

procedure TProgramTest.CheckBelow(const Heading, Mark: string);
var
  First, Last: Integer;
begin
  Has(Heading, Output);
  First := Pos(Heading, Output);
  Last := PosEx(#10, Output, First) + 1;
  while Copy(Output, Last, 6) = '      ' do
    Last := PosEx(#10, Output, Last) + 1;
  Has(Format('.lpr:%d'#10, [Program_.PlantedLine(Mark)]), Copy(Output, First, Last - First));
end;

procedure TProgramTest.Act(const Word, Rest: string);
var
  First, Others: string;
begin
  Part(Rest, First, Others, IfThen(Word = 'below', ': ', ' '));
  if Word = 'program' then
    Program_ := TestProgram(First, Others)
  else if Word = 'output' then
  begin
    OutputName := Rest;
    Look;
  end
  else if Word = 'run' then
  begin
    Program_.Run(IfThen(First = '-', '', First), Others.Split([' '], TStringSplitOptions.ExcludeEmpty));
    Look;
  end
  else if Word = 'shell' then
  begin
    Program_.RunInShell(IfThen(First = '-', '', First), Others);
    Look;
  end
  else if Word = 'write' then
    Program_.WriteFile(First, Others)
  else if Word = 'delete' then
    DeleteFile(Program_.Folder + Rest)
  else if Word = 'report' then
    Output := Output.Split(['LaneMM: process '])[StrToInt(Rest)]
  else if Word = 'same' then
    AssertEquals(Rest, Program_.Written(Rest), Output)
  else if Word = 'below' then
    CheckBelow(First, Others)
  else
    inherited Act(Word, Rest);
end;

initialization
  Cases := TStringList.Create;
  Cases.OwnsObjects := True;
finalization
  Cases.Free;
end.
