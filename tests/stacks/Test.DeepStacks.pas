/// Tests of whole backtraces, with a program that leaks out of routines of many shapes.
unit Test.DeepStacks;

{$mode delphi}{$H+}

interface

uses
  Classes, Test.Tools;

type
  TDeepStacksTests = class(TLaneTest)
  strict private
    function Routines(const Report: string): TStringList;
    function CountOf(const Name: string; Names: TStringList): Integer;
    procedure HasAllFrames(const Options: string);
  published
    procedure FramesAreWholeWithoutDebugInformation;
    procedure FramesAreWholeInOptimisedPrograms;
    procedure FramesAreWholeInPositionIndependentPrograms;
    procedure CutStackSaysSo;
    procedure SmallDepthShowsTheProgramsFrames;
    procedure DepthShowsMore;
    procedure RecursionDeeperThanTheStacksIsOnePlace;
  end;

implementation

uses
  SysUtils, StrUtils, testregistry, Test.Programs;

const
  Calls = 10;

  // Each routine and how often the backtraces of all leaks name it. Of libraries inside the program's
  // routines they name the one that was called.
  Expected: array[0..17] of string = (
    {$if FPC_FULLVERSION < 30300}
    'CLASSES.QUICKSORT 2', 'CLASSES.TFPLIST.SORT 1', 'CLASSES.TLIST.SORT 1', 'DEEP.COMPARE 1',
    'DEEP.SORT 1', 'main 13',
    {$else}
    'SORTBASE.QUICKSORT_PTRLIST_NOCONTEXT 2', 'CLASSES.TFPLIST.SORT 2', 'CLASSES.TLIST.SORT 0',
    'DEEP.COMPARE 1', 'DEEP.SORT 1', 'main 13',
    {$endif}
    'DEEP.DOWN 4', 'DEEP.DOWN$LONGINT$TBOX.INNER 1', 'DEEP.HANDLE 2',
    'DEEP.TBOX.CREATE 2', 'DEEP.TCUSTOMDICTIONARY.CREATE 1', 'DEEP.TLIST.CREATE 1',
    'DEEP.TLIST.SETCAPACITY 1', 'DEEP.TMAKER.MAKE 2', 'DEEP.TMAKER.VIRTUALLY 1',
    'DEEP.TOPENADDRESSING.DOADD 1', 'DEEP.TOTHERMAKER.VIRTUALLY 1', 'SYSUTILS.STRTOINT 1');

// The routine of each line with a frame, also in a branch of a tree.
function TDeepStacksTests.Routines(const Report: string): TStringList;
var
  Line: string;
begin
  Result := TStringList.Create;
  for Line in Report.Split([#10]) do
    if Line.Trim.StartsWith('0') then
      Result.Add(ExtractWord(2, Line, [' ']));
end;

function TDeepStacksTests.CountOf(const Name: string; Names: TStringList): Integer;
var
  Found: string;
begin
  Result := 0;
  for Found in Names do
    Inc(Result, Ord(Found = Name));
end;

procedure TDeepStacksTests.HasAllFrames(const Options: string);
var
  Found: TStringList;
  Entry, Name: string;
  Sum, Count: Integer;
begin
  TestProgram('Deep', Options).Run('leaks,debug,top=100', [IntToStr(Calls)]);
  Found := Routines(TestProgram('Deep', Options).Errors);
  Sum := CountOf('OBJPAS.PARAMSTR', Found); // depends on the version of the run-time library
  for Entry in Expected do
  begin
    Name := ExtractWord(1, Entry, [' ']);
    Count := StrToInt(ExtractWord(2, Entry, [' ']));
    Same(Count, CountOf(Name, Found), Name + ' with ' + Options + #10 + TestProgram('Deep', Options).Errors);
    Inc(Sum, Count);
  end;
  Same(Sum, Found.Count, 'other frames with ' + Options + #10 + TestProgram('Deep', Options).Errors);
  Found.Free;
end;

// The program without debug information.
function Deep: TTestProgram;
begin
  Result := TestProgram('Deep', '-O1 -Xs-');
end;

procedure TDeepStacksTests.FramesAreWholeWithoutDebugInformation;
begin
  HasAllFrames('-O1 -Xs-');
end;

procedure TDeepStacksTests.FramesAreWholeInOptimisedPrograms;
begin
  HasAllFrames('-O4 -Xs-');
end;

procedure TDeepStacksTests.FramesAreWholeInPositionIndependentPrograms;
begin
  HasAllFrames('-O1 -Cg -gl -Xs-');
end;

procedure TDeepStacksTests.CutStackSaysSo;
var
  Found: TStringList;
begin
  Deep.Run('leaks,debug,top=100,depth=20', ['100']);
  Found := Routines(Deep.Errors);
  Has('(cut here: depth=N sets the number of frames)', Deep.Errors);
  AtMost(40, CountOf('DEEP.DOWN', Found), 'frames of the recursion');
  Deep.Run('leaks,debug,top=100', [IntToStr(Calls)]);
  HasNot('cut here', Deep.Errors);
  Found.Free;
end;

// A backtrace of one frame, which the frames of manager and run-time library are not.
procedure TDeepStacksTests.SmallDepthShowsTheProgramsFrames;
var
  Found: TStringList;
begin
  Deep.Run('leaks,debug,top=100,depth=1', [IntToStr(Calls)]);
  Found := Routines(Deep.Errors);
  Same(1, CountOf('DEEP.DOWN$LONGINT$TBOX.INNER', Found), 'places of the nested routine');
  Same(1, CountOf('SYSUTILS.STRTOINT', Found), 'places of a library');
  Same(Found.Count, Length(Deep.Errors.Split(['cut here'])) - 1 + CountOf('main', Found), 'cut');
  HasNot(' at'#10'      (cut', Deep.Errors);
  Found.Free;
end;

procedure TDeepStacksTests.DepthShowsMore;
var
  Found: TStringList;
begin
  Deep.Run('leaks,debug,top=100,depth=256', ['200']);
  Found := Routines(Deep.Errors);
  Same(4, CountOf('DEEP.DOWN', Found), 'frames of the folded recursion');
  Same(StrToInt(ExtractWord(2, Expected[5], [' '])), CountOf('main', Found), 'whole stacks');
  HasNot('cut here', Deep.Errors);
  Found.Free;
end;

// What is cut away does not distinguish places: all steps above the 64th have one.
procedure TDeepStacksTests.RecursionDeeperThanTheStacksIsOnePlace;
var
  Lines: TStringArray;
  Line: Integer;
begin
  Deep.Run('leaks,debug,top=100', ['163', 'each']);
  Has('  164 x Deep.TStep, ', Deep.Errors);
  Lines := Deep.Errors.Split([#10]);
  Line := 0;
  while Pos('164 x Deep.TStep', Lines[Line]) = 0 do
    Inc(Line);
  AtLeast(100, StrToInt(ExtractWord(1, Lines[Line + 1], [' ', ','])), 'blocks of the first place');
end;

initialization
  RegisterTest(TDeepStacksTests);
end.
