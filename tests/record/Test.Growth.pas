/// Tests of LaneMM.Growth: a report that is written while a thread resizes blocks; blocks at one address.
unit Test.Growth;

{$mode delphi}{$H+}

interface

uses
  Test.Tools, LaneMM.Layout, LaneMM.ObserveState;

type
  TGrowthTests = class(TLaneTest)
  strict private
    Kept, Manager: TMemoryManager;
    Started, Flushed: TAtomicWord;
    Calls: Int64;
    procedure GrowBlocks;
    procedure FlushMeanwhile;
    procedure Work;
    function Counted: Int64;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure ReportMeanwhileCountsEachCallOnce;
    procedure BlockInThePlaceOfAFreedOneIsCounted;
    procedure NilInThePlaceOfAFreedBlockIsNotCounted;
  end;

implementation

uses
  testregistry, LaneMM, LaneMM.Atomic, LaneMM.Free, LaneMM.Resize, LaneMM.CallSites,
  LaneMM.Growth;

const
  Flushes = 100000;
  // Of one size class, and the first more than half of it: it enters the table.
  FirstSize = 33000;
  LastSize = 38000;
  // Of another one: the block moves, and leaves its entry in the table.
  FarSize = 100000;

procedure TGrowthTests.SetUp;
begin
  inherited SetUp;
  AssertTrue('tables', SitesStart and GrowthStart);
  SitesForget;
  GrowthForget;
  Kept := Observe.GrowthBehind;
  Observe.GrowthBehind.ReallocMem := BlockRealloc;
  Observe.GrowthBehind.FreeMem := BlockFree;
  Observe.GrowthBehind.FreeMemSize := BlockFreeSize;
  GrowthUseEntries(Manager);
end;

procedure TGrowthTests.TearDown;
begin
  Observe.GrowthBehind := Kept;
  GrowthForget;
  SitesForget;
  inherited TearDown;
end;

procedure TGrowthTests.GrowBlocks;
var
  P: Pointer;
  Size: NativeUInt;
begin
  repeat
    P := GetMem(FirstSize);
    for Size := FirstSize + 1 to LastSize do
      Manager.ReallocMem(P, Size);
    Manager.ReallocMem(P, FarSize);
    FreeMem(P);
    Inc(Calls, LastSize - FirstSize + 1);
  until LoadAcquire(Flushed) >= Flushes;
end;

procedure TGrowthTests.FlushMeanwhile;
var
  Index: Integer;
begin
  for Index := 1 to Flushes do
  begin
    GrowthFlush;
    FetchAdd(Flushed, 1);
  end;
end;

procedure TGrowthTests.Work;
begin
  if FetchAdd(Started, 1) = 0 then
    FlushMeanwhile
  else
    GrowBlocks;
end;

// The calls at all sites.
function TGrowthTests.Counted: Int64;
var
  Site: PSite;
begin
  GrowthFlush;
  Result := 0;
  Site := nil;
  while SiteNext(Site) do
    Inc(Result, Site^.Count);
end;

procedure TGrowthTests.ReportMeanwhileCountsEachCallOnce;
begin
  InThreads(2, Work);
  Same(Calls, Counted, 'calls');
end;

procedure TGrowthTests.BlockInThePlaceOfAFreedOneIsCounted;
const
  Rounds = 10;
  CallsPerBlock = 100;
var
  P: Pointer;
  Round, Call: Integer;
begin
  for Round := 1 to Rounds do
  begin
    P := GetMem(FirstSize);
    for Call := 1 to CallsPerBlock do
      Manager.ReallocMem(P, FirstSize + Call);
    case Round mod 3 of
      0: Manager.FreeMem(P);
      1: Manager.FreeMemSize(P, FirstSize + CallsPerBlock);
      2: Manager.ReallocMem(P, 0);
    end;
  end;
  Same(Rounds * CallsPerBlock, Counted, 'calls');
end;

// Nil has the first entry of the table, as one block of each span of the smallest has.
procedure TGrowthTests.NilInThePlaceOfAFreedBlockIsNotCounted;
const
  Size = 8;
  Entries = 4096;
var
  Blocks: array[0..2 * Entries] of Pointer;
  P, Q: Pointer;
  Before: Int64;
  Index: Integer;
begin
  P := nil;
  for Index := 0 to High(Blocks) do
  begin
    Blocks[Index] := GetMem(Size);
    if (NativeUInt(Blocks[Index]) shr 4 xor NativeUInt(Blocks[Index]) shr 16) mod Entries = 0 then
      P := Blocks[Index];
  end;
  if P <> nil then
  begin
    Manager.ReallocMem(P, Size + 1); // in place: it enters the table
    Before := Counted;
    Q := P;
    Manager.FreeMem(Q);
    Q := nil;
    Manager.ReallocMem(Q, Size + 2);
    Same(Before, Counted, 'calls');
    FreeMem(Q);
  end;
  for Index := 0 to High(Blocks) do
    if Blocks[Index] <> P then
      FreeMem(Blocks[Index]);
  AssertTrue('a block with the first entry', P <> nil);
end;

initialization
  RegisterTest(TGrowthTests);
end.
