/// Tests of trees of callers, of backtraces whose frames have no names, and of a place in a text.
unit Test.CallTree;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.BacktraceText, LaneMM.CallTree;

type
  TCallTreeTests = class(TLaneTest)
  strict private
    Symbolizer: TSymbolizer;
    Tree: PCallTree;
    Text: string;
    procedure AddStack(const Frames: array of NativeUInt; Count: NativeUInt);
    procedure AddMany(Caller, First, Number: NativeUInt);
    procedure Write;
    procedure HasLine(const Line: string);
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure BacktracesWithoutSpaceCountForTheCallersThatTheyShare;
    procedure BranchWithMostBytesComesFirst;
    procedure FramesThatOneWithoutSpaceLacksAreNotThoseOfAll;
    procedure OneWithoutSpaceThatDiffersInsideOfTheLineHasNoOtherCallers;
    procedure PlaceWithALongNameEndsWithZero;
    procedure SumsOfATreeAddUp;
  end;

implementation

uses
  SysUtils, testregistry, LaneMM.Os, LaneMM.Text, LaneMM.Symbols, LaneMM.Unwind, LaneMM.BacktraceTable,
  LaneMM.Advice;

const
  // Return addresses: of the line, of two routines that call its routine, of theirs, of the program.
  Line = $1000;
  Left = $2000;
  Right = $3000;
  Root = $4000;
  Start = $5000;
  Inside = $6000; // of routines of a library that the line calls
  FirstCaller = $10000;

procedure TCallTreeTests.SetUp;
begin
  SymbolizerOpen(Symbolizer, 1);
  Tree := CallTreeOpen;
  Text := '';
end;

procedure TCallTreeTests.TearDown;
begin
  CallTreeClose(Tree);
  SymbolizerClose(Symbolizer);
end;

procedure TCallTreeTests.AddStack(const Frames: array of NativeUInt; Count: NativeUInt);
var
  Stack: TBacktrace;
  Index: Integer;
begin
  Stack := Default(TBacktrace);
  for Index := 0 to High(Frames) do
    Stack.Frames[Index] := Frames[Index];
  Stack.Count := Length(Frames);
  CallTreeAdd(Tree, Symbolizer.Symbols, Stack, Count, 10 * Count);
end;

// Adds a block of each of some callers of one of the two routines.
procedure TCallTreeTests.AddMany(Caller, First, Number: NativeUInt);
var
  Index: NativeUInt;
begin
  for Index := First to First + Number - 1 do
    AddStack([Line, Caller, FirstCaller + Index, Root, Start], 1);
end;

procedure TCallTreeTests.Write;
var
  Written: TText;
begin
  TextOpen(Written, 16 * OsPageSize);
  CallTreeAddText(Written, Tree, Symbolizer);
  SetString(Text, Written.Start, Written.Length);
  TextClose(Written);
end;

procedure TCallTreeTests.HasLine(const Line: string);
begin
  AssertTrue(Line + ' is missing in'#10 + Text, Pos(#10 + Line + #10, #10 + Text) > 0);
end;

// A hundred callers of Right come last: there is no space for any of them.
procedure TCallTreeTests.BacktracesWithoutSpaceCountForTheCallersThatTheyShare;
begin
  AddMany(Left, 0, MostTreeStacks - 1);
  AddMany(Right, 1000, 100);
  Write;
  HasLine('        31, 310 bytes by');
  HasLine('        100, 1,000 bytes by');
  HasLine('          27, 270 bytes by other callers');
  HasLine('          99, 990 bytes by other callers');
  AssertEquals(Text, 0, Pos(#10'      1', Text));
end;

// The one of Left alone has more than each of those of Right.
procedure TCallTreeTests.BranchWithMostBytesComesFirst;
begin
  AddStack([Line, Left, FirstCaller, Root, Start], 5);
  AddMany(Right, 1, 10);
  Write;
  AssertTrue(Text, Pos('10, 100 bytes by', Text) < Pos('5, 50 bytes by', Text));
end;

// The last one was called by another program.
procedure TCallTreeTests.FramesThatOneWithoutSpaceLacksAreNotThoseOfAll;
begin
  AddMany(Left, 0, MostTreeStacks);
  AddStack([Line, Right, FirstCaller, Root, Start + 1], 1);
  Write;
  AssertEquals(Text, 0, Pos(#10'      ' + HexStr(Start, 2 * SizeOf(Pointer)), Text));
  HasLine('        1, 10 bytes by other callers');
end;

// The line calls more routines of a library than there is space for, from two callers.
procedure TCallTreeTests.OneWithoutSpaceThatDiffersInsideOfTheLineHasNoOtherCallers;
const
  Routines = MostTreeStacks div 2 + 1;
var
  Index: NativeUInt;
begin
  for Index := 1 to Routines do
    SymbolsAdd(Symbolizer.Symbols, Inside + Index);
  SymbolsSort(Symbolizer.Symbols);
  for Index := 1 to Routines do
  begin
    SymbolsFind(Symbolizer.Symbols, Inside + Index)^.Routine := 'SYSUTILS_$$_FORMAT';
    AddStack([Inside + Index, Line, Left, Root, Start], 1);
    AddStack([Inside + Index, Line, Right, Root, Start], 1);
  end;
  Write;
  HasLine('        17, 170 bytes by');
  AssertEquals(Text, 0, Pos('other callers', Text));
  AssertEquals(Text, 0, Pos('directly', Text));
end;

// A template in C++ may have a name of any length.
procedure TCallTreeTests.PlaceWithALongNameEndsWithZero;
var
  Name: string;
  Stack: TBacktrace;
  Place: TText;
  Characters: PAnsiChar;
begin
  AssertTrue('table', BacktracesStart);
  Name := StringOfChar('N', 16 * OsPageSize);
  SymbolsAdd(Symbolizer.Symbols, Line);
  SymbolsSort(Symbolizer.Symbols);
  SymbolsFind(Symbolizer.Symbols, Line)^.Routine := PAnsiChar(Name);
  Stack := Default(TBacktrace);
  Stack.Frames[0] := Line;
  Stack.Count := 1;
  Characters := AdviceOpenLine(Place, Symbolizer.Symbols, BacktraceKeep(Stack));
  Same(Place.Length, StrLen(Characters), 'characters');
  TextClose(Place);
end;

procedure TCallTreeTests.SumsOfATreeAddUp;
var
  Lines: TStringArray;
  Item: string;
  Sum: Integer;
begin
  AddMany(Left, 0, 70);
  AddMany(Right, 200, 70);
  AddStack([Line], 3);
  AddStack([Line, Left], 4);
  Write;
  Lines := Text.Split([#10]);
  Sum := 0;
  for Item in Lines do // the first fork
    if (Pos(' bytes', Item) > 0) and (Copy(Item, 1, 9) <> '         ') then
      Inc(Sum, StrToInt(Trim(Copy(Item, 1, Pos(',', Item) - 1))));
  AssertEquals(Text, 147, Sum);
end;

initialization
  RegisterTest(TCallTreeTests);
end.
