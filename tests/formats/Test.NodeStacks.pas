/// Tests of suppressions by routines: work that does not grow with blocks, but with backtraces.
unit Test.NodeStacks;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.Snapshot;

type
  TNodeStacksTests = class(TLaneTest)
  strict private
    Blocks: array of Pointer;
    FirstNumber: NativeUInt;
    Names, Reserves: Int64;
    Suppressed: NativeUInt;
    procedure AddBlocks(Count: Integer);
    procedure Mark(const Lines: string);
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure ABacktraceIsComparedOnceNotForEachBlock;
    procedure SymbolsAreReadOnceForAllPatterns;
    procedure AllBlocksOfARoutineAreSuppressed;
  end;

implementation

uses
  SysUtils, Classes, testregistry, LaneMM, LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Text,
  LaneMM.StacksState, LaneMM.DebugThreads, LaneMM.Suppressions;

const
  Few = 1000;
  Foreign = 'routine no_routine_has_this_name'#10;

var
  Asked: Int64;

// Stands in for the names of C++: each frame that is compared asks.
function CountName(var Text: TText; Name: PAnsiChar): Boolean;
begin
  Inc(Asked);
  Result := False;
end;

procedure TNodeStacksTests.SetUp;
begin
  LaneMM_Configure('stacks');
  FirstNumber := DebugNumbersMark;
end;

procedure TNodeStacksTests.TearDown;
var
  Block: Pointer;
begin
  for Block in Blocks do
    FreeMem(Block);
  Blocks := nil;
  LaneMM_Configure('stacks=0');
end;

// All have one backtrace.
procedure TNodeStacksTests.AddBlocks(Count: Integer);
var
  First, Index: Integer;
begin
  First := Length(Blocks);
  SetLength(Blocks, First + Count);
  for Index := First to High(Blocks) do
    GetMem(Blocks[Index], 40);
end;

// Excludes what fits these patterns from the blocks of the test; counts the names that were asked
// for and the calls that reserve memory.
procedure TNodeStacksTests.Mark(const Lines: string);
var
  FileName: string;
  Stream: TStringStream;
  Snapshot: TSnapshot;
begin
  FileName := ExtractFilePath(ParamStr(0)) + 'node-stacks.ignore';
  Stream := TStringStream.Create(Lines);
  Stream.SaveToFile(FileName);
  Stream.Free;
  AssertTrue(SnapshotOpen(Snapshot));
  SnapshotSelect(Snapshot, 0, High(Cardinal), FirstNumber);
  SnapshotGroup(Snapshot);
  Asked := 0;
  Reserves := LoadAcquire(Process.OsCalls[ocReserve]);
  Stacks.Demangle := CountName;
  AssertTrue(SuppressionsMarkFile(Snapshot, PAnsiChar(FileName)));
  Stacks.Demangle := nil;
  Reserves := Int64(LoadAcquire(Process.OsCalls[ocReserve])) - Reserves;
  Names := Asked;
  Suppressed := Snapshot.Counts[nsSuppressed];
  SnapshotClose(Snapshot);
  DeleteFile(FileName);
end;

procedure TNodeStacksTests.ABacktraceIsComparedOnceNotForEachBlock;
var
  Before: Int64;
begin
  AddBlocks(Few);
  Mark(Foreign);
  Before := Names;
  AtLeast(1, Before, 'names of the frames of a backtrace');
  AddBlocks(3 * Few);
  Mark(Foreign);
  AtMost(2 * Before, Names, 'names with four times the blocks');
end;

procedure TNodeStacksTests.SymbolsAreReadOnceForAllPatterns;
const
  Spare = 8; // other threads
var
  Before: Int64;
begin
  AddBlocks(Few);
  Mark(Foreign);
  Before := Reserves;
  AtLeast(1, Before, 'calls that reserve memory');
  Mark(Foreign + Foreign + Foreign + Foreign + Foreign + Foreign + Foreign + Foreign);
  AtMost(Before + Spare, Reserves, 'calls with eight patterns');
end;

procedure TNodeStacksTests.AllBlocksOfARoutineAreSuppressed;
begin
  AddBlocks(Few);
  Mark(Foreign + 'routine *.AddBlocks'#10);
  AtLeast(Few, Suppressed, 'blocks of the routine');
  AtMost(Few + 10, Suppressed, 'and no others');
end;

initialization
  RegisterTest(TNodeStacksTests);
end.
