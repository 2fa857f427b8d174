/// Tests of LaneMM.Leaves: whole backtraces of faults in routines that have nothing on the stack.
unit Test.Leaves;

{$mode delphi}{$H+}

interface

uses
  Test.Tools;

type
  TLeavesTests = class(TLaneTest)
  strict private
    procedure CompareAll(const Options: string);
  published
    procedure CallersAreFoundInOptimisedPrograms;
    procedure CallersAreFoundInPositionIndependentPrograms;
    procedure CallersAreFoundInProgramsWithFrames;
  end;

  {$ifdef CPUX64}
  /// Machine code laid out by hand, as that of this module: a caller, the routines before a leaf, and
  /// the leaf.
  TLeafCodeTests = class(TLaneTest)
  strict private
    Code: PByte;
    Used: Integer;
    function Lay(const Bytes: string): NativeUInt;
    procedure Compare(IsLeaf: Boolean; const Before, Leaf: string; At: Integer);
    procedure CompareCalled(IsLeaf: Boolean; const Leaf: string; At: Integer);
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure LeafAfterARoutineIsFound;
    procedure LeafMayJumpOverItsOwnReturn;
    procedure RoutineThatMovesTheStackIsNoLeaf;
    procedure CodeAfterTheEndOfALeafIsAnotherRoutine;
    procedure CodeThatIsJumpedToIsPartOfTheRoutineBefore;
    procedure TableOfJumpsMayLeadAnywhere;
    procedure NumberThatLooksLikeAReturnEndsNoRoutine;
    procedure RoutineCalledByItsAddressIsALeaf;
    procedure RoutineCalledByItsAddressIsNoLeafWithAPrologue;
    procedure CodeFarFromTheCalledAddressIsAnotherRoutine;
  end;
  {$endif}

implementation

uses
  SysUtils, StrUtils, testregistry, Test.Programs, LaneMM.Os, LaneMM.StacksState,
  LaneMM.Leaves;

type
  TExpected = record
    Way, Frames: string;
  end;

const
  // How the routine is called, and the backtrace of its fault, up to the main block.
  AllExpected: array[0..11] of TExpected = (
    (Way: 'name'; Frames: 'LEAVES.READ LEAVES.BYNAME LEAVES.GO main'),
    (Way: 'pointer'; Frames: 'LEAVES.READ LEAVES.BYPOINTER LEAVES.GO main'),
    (Way: 'method'; Frames: 'LEAVES.TREADER.READ LEAVES.BYMETHOD LEAVES.GO main'),
    (Way: 'virtual'; Frames: 'LEAVES.TREADER.READ LEAVES.BYVIRTUAL LEAVES.GO main'),
    (Way: 'override'; Frames: 'LEAVES.TOTHERREADER.READ LEAVES.BYOVERRIDE LEAVES.GO main'),
    (Way: 'interface'; Frames: 'LEAVES.TREADER.READIT LEAVES.BYINTERFACE LEAVES.GO main'),
    (Way: 'choice'; Frames: 'LEAVES.TREADER.CHOOSE LEAVES.BYCHOICE LEAVES.GO main'),
    (Way: 'saving'; Frames: 'LEAVES.TREADER.READTWICE LEAVES.BYSAVING LEAVES.GO main'),
    (Way: 'assembler'; Frames: 'LEAVES.READINASSEMBLER LEAVES.BYASSEMBLER LEAVES.GO main'),
    (Way: 'assembler-pointer';
      Frames: 'LEAVES.READINASSEMBLER LEAVES.BYASSEMBLERPOINTER LEAVES.GO main'),
    (Way: 'frameless';
      Frames: 'LEAVES.READINASSEMBLER LEAVES.PASSON LEAVES.BYFRAMELESS LEAVES.GO main'),
    (Way: 'space'; Frames: 'LEAVES.READWITHSPACE LEAVES.BYSPACE LEAVES.GO main'));

// The routines of the backtrace with this heading.
function FramesBelow(const Heading, Report: string): string;
var
  Line: string;
  IsBelow: Boolean;
begin
  Result := '';
  IsBelow := False;
  for Line in Report.Split([#10]) do
    if Line.StartsWith('      0') and IsBelow then
      Result := Result + ' ' + ExtractWord(2, Line, [' '])
    else
      IsBelow := Line.StartsWith(Heading);
  Result := Trim(Result);
end;

procedure TLeavesTests.CompareAll(const Options: string);
var
  Leaves: TTestProgram;
  Expected: TExpected;
begin
  Leaves := TestProgram('Leaves', Options);
  for Expected in AllExpected do
  begin
    Leaves.Run('debug', [Expected.Way]);
    Has('Use after free: the contents of a freed block were used as an address.'#10,
      Leaves.Errors);
    AssertEquals(Expected.Way + ' with ' + Options, Expected.Frames,
      FramesBelow('  Occurred at', Leaves.Errors));
  end;
  Leaves.Run('debug', ['none']);
  AssertEquals('', Leaves.Errors);
end;

procedure TLeavesTests.CallersAreFoundInOptimisedPrograms;
begin
  CompareAll('-O4 -Xs-');
end;

procedure TLeavesTests.CallersAreFoundInPositionIndependentPrograms;
begin
  CompareAll('-O2 -Cg -Xs-');
end;

procedure TLeavesTests.CallersAreFoundInProgramsWithFrames;
begin
  CompareAll('-O1 -Xs-');
end;

{$ifdef CPUX64}
// ---------------------------------------------------------------------------- TLeafCodeTests

const
  CodeBytes = 65536;
  Reserve = '48 8D 64 24 F8 ';  // lea rsp, [rsp - 8]
  Return = '48 8D 64 24 08 C3'; // lea rsp, [rsp + 8]; ret
  Plain = Reserve + Return;
  CallPointer = Reserve + 'FF D0';  // call rax
  Load = '8B 07 ';              // mov eax, [rdi]

procedure TLeafCodeTests.SetUp;
begin
  Code := OsTakePages(CodeBytes);
  AssertTrue('pages of code', Code <> nil);
  FillChar(Code^, CodeBytes, $90); // nop, as between routines
  Used := 0;
  Lay('C3'); // a routine begins after the end of another
end;

procedure TLeafCodeTests.TearDown;
begin
  OsReleasePages(Code, CodeBytes);
end;

// Lays a routine behind the others; returns its address.
function TLeafCodeTests.Lay(const Bytes: string): NativeUInt;
var
  Item: string;
begin
  Result := NativeUInt(Code + Used);
  for Item in Bytes.Split([' '], TStringSplitOptions.ExcludeEmpty) do
  begin
    Code[Used] := StrToInt('$' + Item);
    Inc(Used);
  end;
  Used := (Used + 15) and not 15;
end;

function FindIn(Code: PByte; Pc, Return: NativeUInt; out Start: NativeUInt): Boolean;
var
  First, Limit: NativeUInt;
begin
  First := Stacks.CodeFirst;
  Limit := Stacks.CodeLimit;
  Stacks.CodeFirst := NativeUInt(Code);
  Stacks.CodeLimit := NativeUInt(Code + CodeBytes);
  Result := LeafFind(Pc, Return, Start);
  Stacks.CodeFirst := First;
  Stacks.CodeLimit := Limit;
end;

// The routine Leaf, called through a pointer, is interrupted at its instruction at the offset At.
procedure TLeafCodeTests.Compare(IsLeaf: Boolean; const Before, Leaf: string; At: Integer);
var
  Caller, Start, Found: NativeUInt;
begin
  Caller := Lay(CallPointer + ' ' + Return);
  Lay(Before);
  Start := Lay(Leaf);
  AssertEquals('is a leaf', IsLeaf, FindIn(Code, Start + NativeUInt(At) + 1,
    Caller + NativeUInt(Length(CallPointer.Split([' ']))), Found));
  if IsLeaf then
    Same(Start, Found, 'start');
end;

// The same, called by its address.
procedure TLeafCodeTests.CompareCalled(IsLeaf: Boolean; const Leaf: string; At: Integer);
const
  CallBytes = 5;
var
  Caller, Start, Found: NativeUInt;
begin
  Start := Lay(Leaf);
  Caller := Lay('E8 00 00 00 00 C3');
  PInteger(Caller + 1)^ := Integer(Start - Caller - CallBytes);
  AssertEquals('is a leaf', IsLeaf, FindIn(Code, Start + NativeUInt(At) + 1, Caller + CallBytes,
    Found));
  if IsLeaf then
    Same(Start, Found, 'start');
end;

procedure TLeafCodeTests.LeafAfterARoutineIsFound;
begin
  Compare(True, Plain, Load + 'C3', 0);
end;

procedure TLeafCodeTests.LeafMayJumpOverItsOwnReturn;
begin
  Compare(True, Plain, '74 01 C3 ' + Load + 'C3', 3);
end;

procedure TLeafCodeTests.RoutineThatMovesTheStackIsNoLeaf;
begin
  Compare(False, Plain, Reserve + Load + Return, 5);
end;

procedure TLeafCodeTests.CodeAfterTheEndOfALeafIsAnotherRoutine;
begin
  Compare(False, Plain, Load + 'C3 ' + Load + 'C3', 3);
end;

procedure TLeafCodeTests.CodeThatIsJumpedToIsPartOfTheRoutineBefore;
begin
  // A jump over the 6 bytes of the return and 3 bytes behind it, to the start of the next line.
  Compare(False, Reserve + '74 09 ' + Return, Load + Return, 0);
  // The same with the 3 bytes before the return, which then ends where the next line begins.
  Compare(False, Reserve + '74 09 90 90 90 ' + Return, Load + Return, 0);
end;

procedure TLeafCodeTests.TableOfJumpsMayLeadAnywhere;
begin
  Compare(False, Reserve + 'FF E0 ' + Return, Load + Return, 0);
end;

procedure TLeafCodeTests.NumberThatLooksLikeAReturnEndsNoRoutine;
begin
  // mov eax, $90C39090, the last byte of which is the last one before the next routine.
  Compare(False, Reserve + '90 90 90 90 90 90 B8 90 90 C3 90', Load + Return, 0);
end;

procedure TLeafCodeTests.RoutineCalledByItsAddressIsALeaf;
begin
  CompareCalled(True, Load + 'C3', 0);
end;

procedure TLeafCodeTests.RoutineCalledByItsAddressIsNoLeafWithAPrologue;
begin
  CompareCalled(False, Reserve + Load + Return, 5);
end;

procedure TLeafCodeTests.CodeFarFromTheCalledAddressIsAnotherRoutine;
begin
  CompareCalled(False, Load + 'C3', 5000);
end;
{$endif}

initialization
  RegisterTest(TLeavesTests);
  {$ifdef CPUX64}
  RegisterTest(TLeafCodeTests);
  {$endif}
end.
