/// Tests of suppressions: by routines symbols are read once, not for each pattern; counts of more
/// than 32 bits.
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
    Reserves: Int64;
    procedure AddBlocks(Count: Integer);
    procedure Mark(const Lines: string);
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure SymbolsAreReadOnceForAllPatterns;
    procedure AnyNumberOfLeaksIsTakenBackAsItWasSuppressed;
  end;

implementation

uses
  SysUtils, Classes, testregistry, LaneMM, LaneMM.Layout, LaneMM.Types, LaneMM.Atomic,
  LaneMM.DebugThreads, LaneMM.Suppressions;

const
  Few = 1000;
  Foreign = 'routine no_routine_has_this_name'#10;

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

// Excludes what fits these patterns from the blocks of the test; counts the calls that reserve
// memory.
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
  Reserves := LoadAcquire(Process.OsCalls[ocReserve]);
  AssertTrue(SuppressionsMarkFile(Snapshot, PAnsiChar(FileName)));
  Reserves := Int64(LoadAcquire(Process.OsCalls[ocReserve])) - Reserves;
  SnapshotClose(Snapshot);
  DeleteFile(FileName);
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

procedure CountOne(const Suppression: TSuppressionInfo; Context: Pointer);
begin
  Inc(PInteger(Context)^);
end;

procedure TNodeStacksTests.AnyNumberOfLeaksIsTakenBackAsItWasSuppressed;
const
  Size = 12345;
  Many = NativeUInt({$ifdef CPU64} 5000000000 {$else} 1500000000 {$endif});
var
  Before, After: Integer;
begin
  Before := 0;
  SuppressionsVisit(CountOne, @Before);
  AssertTrue('suppressed', SuppressionAdd(suSize, Size, Many));
  AssertTrue('taken back', SuppressionRemove(suSize, Size, Many));
  After := 0;
  SuppressionsVisit(CountOne, @After);
  Same(Before, After, 'suppressions');
end;

initialization
  RegisterTest(TNodeStacksTests);
end.
