/// Tests of LaneMM.Quarantine and LaneMM.Parcels: how long freed debug blocks wait, and which
/// thread uses them then.
unit Test.Quarantine;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools;

type
  TQuarantineTests = class(TQuietTest)
  strict private
    Blocks: array[0..19999] of Pointer;
    procedure GetAll;
    procedure FreeAll;
    procedure FreeOne;
    {$ifdef UNIX}
    procedure OthersKeepNothing;
    {$endif}
    procedure GetAndFreeAll;
    function FreedUntilItIsBack(P: Pointer; Size: NativeUInt): NativeUInt;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure SingleBlockCountsAQuarterOfItsBytes;
    procedure FreedBlockWaitsForTheBytesOfTheSetting;
    procedure FreedBlocksOfOtherSizesCountAsWell;
    procedure BytesThatWaitAreAtMostThoseOfTheSetting;
    procedure BlocksAreUsedAgainInTheOrderOfTheirFrees;
    procedure FreedBlocksOfASleepingThreadAreUsedByOthers;
    procedure WithoutAQuarantineNoBlockWaits;
    procedure BlocksLeaveWhenTheSettingShrinks;
    procedure CallInsideOfACallLeavesTheListsAsTheyAre;
    procedure CallInsideOfAnUnwindLeavesItsCacheAsItIs;
    {$ifdef UNIX}
    procedure ChildForgetsWhatOtherThreadsKept;
    {$endif}
  end;

implementation

uses
  testregistry, LaneMM, LaneMM.Layout, LaneMM.Types, LaneMM.Os, LaneMM.Threads,
  LaneMM.SettingsState, LaneMM.UnwindCache, LaneMM.DebugState, LaneMM.DebugSpans, LaneMM.DebugBlocks,
  LaneMM.DebugThreads, LaneMM.Debug, LaneMM.Quarantine;

const
  Setting = NativeUInt(1) shl 20;
  BlockSize = 100;

// No block of an earlier test waits, or is kept for this thread or for others.
procedure EmptyAll;
var
  Thread: PDebugThread;
  Span, Next: PSpan;
begin
  Thread := DebugThread;
  Span := QuarantineEmpty(@Thread^.Blocks);
  while Span <> nil do
  begin
    Next := Span^.Next;
    DebugSpanRelease(Span);
    Span := Next;
  end;
end;

procedure TQuarantineTests.SetUp;
begin
  inherited SetUp;
  LaneMM_EnterDebugMode;
  EmptyAll;
  Debug.Quarantine.MostBytes := Setting;
end;

procedure TQuarantineTests.TearDown;
begin
  Debug.Quarantine.MostBytes := Settings.Values[opQuarantine];
  LaneMM_ExitDebugMode;
  inherited TearDown;
end;

procedure TQuarantineTests.GetAll;
var
  Index: Integer;
begin
  for Index := 0 to High(Blocks) do
    Blocks[Index] := GetMem(BlockSize);
end;

procedure TQuarantineTests.FreeAll;
var
  Index: Integer;
begin
  for Index := 0 to High(Blocks) do
    FreeMem(Blocks[Index]);
end;

procedure TQuarantineTests.GetAndFreeAll;
begin
  GetAll;
  FreeAll;
end;

function BytesHeld(P: Pointer): NativeUInt;
var
  Place: TDebugPlace;
begin
  DebugPlaceFind(P, Place);
  Result := DebugBytesHeld(Place);
end;

// Allocates and frees blocks until P comes; returns the bytes freed before that, at most four times
// those of the setting.
function TQuarantineTests.FreedUntilItIsBack(P: Pointer; Size: NativeUInt): NativeUInt;
var
  Q: Pointer;
  IsBack: Boolean;
begin
  Result := 0;
  repeat
    Q := GetMem(Size);
    IsBack := Q = P;
    if not IsBack then
      Inc(Result, BytesHeld(Q));
    FreeMem(Q);
  until IsBack or (Result > 4 * Setting);
end;

procedure TQuarantineTests.SingleBlockCountsAQuarterOfItsBytes;
const
  Size = 1000 * 1000;
var
  P: Pointer;
begin
  P := GetMem(Size);
  AtLeast(Size div 4, BytesHeld(P), 'bytes');
  AtMost((Size + SliceSize) div 4, BytesHeld(P), 'bytes');
  FreeMem(P);
end;

procedure TQuarantineTests.FreedBlockWaitsForTheBytesOfTheSetting;
const
  Sizes: array[0..4] of NativeUInt = (16, 100, 1000, 10000, 60000);
var
  P: Pointer;
  Size, Bytes: NativeUInt;
begin
  for Size in Sizes do
  begin
    P := GetMem(Size);
    FreeMem(P);
    Bytes := FreedUntilItIsBack(P, Size);
    AtLeast(Setting - Setting div 8, Bytes, 'bytes freed before it is used again');
    AtMost(Setting + Setting div 2, Bytes, 'bytes freed before it is used again');
  end;
end;

procedure TQuarantineTests.FreedBlocksOfOtherSizesCountAsWell;
var
  P: Pointer;
  Index: Integer;
begin
  P := GetMem(BlockSize);
  FreeMem(P);
  for Index := 1 to 2 * ParcelLimit do
    FreeMem(GetMem(BlockSize));
  for Index := 1 to 2 * Setting div 400 do
    FreeMem(GetMem(400));
  AtMost(Setting div 4, FreedUntilItIsBack(P, BlockSize), 'bytes of its own size');
end;

procedure TQuarantineTests.BytesThatWaitAreAtMostThoseOfTheSetting;
var
  Generator: TGenerator;
  Index, Turn: Integer;
begin
  Generator.Start(TestSeed);
  FillChar(Blocks, SizeOf(Blocks), 0);
  for Turn := 1 to 30000 do
  begin
    Index := Generator.Below(100);
    if Blocks[Index] <> nil then
      FreeMem(Blocks[Index]);
    Blocks[Index] := GetMem(Generator.NextSize(100000));
    AtMost(Setting, Debug.Quarantine.Bytes, 'bytes');
  end;
  AtLeast(Setting div 2, Debug.Quarantine.Bytes, 'bytes at the end');
  for Index := 0 to 99 do
    if Blocks[Index] <> nil then
      FreeMem(Blocks[Index]);
end;

procedure TQuarantineTests.BlocksAreUsedAgainInTheOrderOfTheirFrees;
const
  Count = 3000;
var
  Index: Integer;
  P: Pointer;
begin
  for Index := 0 to Count - 1 do
    Blocks[Index] := GetMem(BlockSize);
  for Index := 0 to Count - 1 do
    FreeMem(Blocks[Index]);
  FreedUntilItIsBack(Blocks[0], BlockSize);
  for Index := 1 to Count - 1 do
  begin
    P := GetMem(BlockSize);
    AssertTrue('another block', P = Blocks[Index]);
    FreeMem(P);
  end;
end;

procedure TQuarantineTests.FreedBlocksOfASleepingThreadAreUsedByOthers;
var
  Sleeper: TWorker;
  Before: NativeUInt;
begin
  Sleeper := StartIdleThread(GetAndFreeAll);
  Before := LaneMM_HeapStatus.CommittedBytes;
  GetAll;
  AtMost(Before + 2 * Setting, LaneMM_HeapStatus.CommittedBytes, 'bytes');
  FreeAll;
  EndThread(Sleeper);
end;

procedure TQuarantineTests.WithoutAQuarantineNoBlockWaits;
var
  Before: NativeUInt;
begin
  Debug.Quarantine.MostBytes := 0;
  GetAndFreeAll;
  Same(0, Debug.Quarantine.Bytes, 'bytes in quarantine');
  LaneMM_Trim; // else a purge, which comes with time, might take more away before than after
  Before := LaneMM_HeapStatus.CommittedBytes;
  GetAndFreeAll;
  LaneMM_Trim;
  AtMost(Before + Setting div 4, LaneMM_HeapStatus.CommittedBytes, 'bytes');
end;

procedure TQuarantineTests.BlocksLeaveWhenTheSettingShrinks;
var
  Before: NativeUInt;
begin
  Before := LaneMM_Settings.Values[opQuarantine];
  try
    GetAndFreeAll;
    AtLeast(Setting div 2, Debug.Quarantine.Bytes, 'bytes in quarantine');
    AssertTrue('set', LaneMM_Configure('quarantine=64K'));
    AtMost(65536, Debug.Quarantine.Bytes, 'bytes in quarantine');
    GetAndFreeAll;
    AssertTrue('set', LaneMM_Configure('quarantine=0'));
    Same(0, Debug.Quarantine.Bytes, 'bytes in quarantine');
    Same(0, Debug.Quarantine.Count, 'blocks in quarantine');
    LaneMM_ExitDebugMode;
    AssertTrue('set', LaneMM_Configure('quarantine=1M'));
    LaneMM_EnterDebugMode;
    Same(Setting, Debug.Quarantine.MostBytes, 'the setting of a pause counts afterwards');
  finally
    Settings.Values[opQuarantine] := Before;
  end;
end;

procedure TQuarantineTests.FreeOne;
begin
  FreeMem(GetMem(BlockSize));
end;

// As the handler of a signal makes it that has interrupted a call.
procedure TQuarantineTests.CallInsideOfACallLeavesTheListsAsTheyAre;
var
  Thread: PDebugThread;
  Kept, Freed, Plain, Zeros: PByte;
  Index: Integer;
begin
  Thread := DebugThread;
  Kept := GetMem(BlockSize);
  Freed := GetMem(BlockSize);
  DebugThreadEnter(Thread);
  try
    Plain := GetMem(BlockSize);
    Zeros := AllocMem(BlockSize);
    for Index := 0 to BlockSize - 1 do
      Same(0, Zeros[Index], 'cleared');
    ReallocMem(Kept, 2 * BlockSize);
    FreeMem(Freed);
    Same(0, DebugCheckHeap, 'damaged blocks');
  finally
    DebugThreadLeave(Thread);
  end;
  AssertTrue('no debug blocks', (DebugBlockOf(Plain) = nil) and (DebugBlockOf(Zeros) = nil)
    and (DebugBlockOf(Kept) = nil));
  FreeMem(Plain);
  FreeMem(Zeros);
  FreeMem(Kept);
  AtLeast(4 * Setting, FreedUntilItIsBack(Freed, BlockSize), 'bytes freed without its return');
end;

procedure FreeFrom(P: Pointer; Depth: Integer);
begin
  if Depth > 0 then
    FreeFrom(P, Depth - 1)
  else
    FreeMem(P);
end;

// As above, but what was interrupted takes a backtrace.
procedure TQuarantineTests.CallInsideOfAnUnwindLeavesItsCacheAsItIs;
const
  Compared = SizeOf(TUnwindCache) - RecentCount * SizeOf(Pointer); // a look writes Recent
var
  Thread: PDebugThread;
  P: Pointer;
  Kept: Pointer;
  Block: PDebugBlock;
  IsSame: Boolean;
begin
  Thread := DebugThread;
  Kept := OsTakePages(Compared);
  P := GetMem(BlockSize);
  Block := DebugBlockOf(P);
  Move(Thread^.Stacks, Kept^, Compared);
  DebugThreadEnter(Thread);
  FreeFrom(P, 5);
  DebugThreadLeave(Thread);
  IsSame := CompareByte(Thread^.Stacks, Kept^, Compared) = 0;
  OsReleasePages(Kept, Compared);
  AssertTrue('cache', IsSame);
  AssertTrue('the free has a backtrace', Block^.FreeStack <> 0);
  FreeFrom(GetMem(BlockSize), 5);
  Same(0, Thread^.Inside, 'open calls');
end;

{$ifdef UNIX}
// Fails in a child process in which a thread but the calling one keeps blocks.
procedure TQuarantineTests.OthersKeepNothing;
var
  Heap: PHeap;
  Parcel: PParcel;
begin
  Heap := ThreadsFirstHeap;
  while Heap <> nil do
  begin
    if (Heap <> OsThreadHeap) and (Heap^.DebugThread <> nil) then
      for Parcel in PDebugThread(Heap^.DebugThread)^.Blocks.Freed do
        AssertTrue('a parcel', Parcel = nil);
    Heap := Heap^.NextHeap;
  end;
end;

// What they were doing at the moment of the fork is half done in the child.
procedure TQuarantineTests.ChildForgetsWhatOtherThreadsKept;
var
  Sleeper: TWorker;
begin
  Sleeper := StartIdleThread(FreeOne);
  Same(0, RunInChild(OthersKeepNothing), 'exit code');
  EndThread(Sleeper);
end;
{$endif}

initialization
  RegisterTest(TQuarantineTests);
end.
