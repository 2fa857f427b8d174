/// Tests of the waiting policy: what threads do while another one keeps a lock of the manager.
unit Test.LockProfile;

{$mode delphi}{$H+}

interface

uses
  Test.Tools, LaneMM.Layout, LaneMM.Types;

type
  TLockPointer = ^TLock;
  TLocks = array of TLockPointer;

  TLockProfileTests = class(TLaneTest)
  strict private
    Servant: TServant;
    Heap: PHeap;
    Random: TGenerator;
    Blocks: array[1..16] of PByte;
    LeftBehind, Large: Pointer;
    IsIntact: Boolean;
    IsSampled: Boolean;
    StartedCount, OpenedCount: TAtomicWord;
    procedure LeaveABlock;
    procedure StartAndEndAThread;
    procedure Change(Index: Integer);
    procedure UseMemory;
    procedure FindHeap;
    procedure GoesOnWithout(const Locks: TLocks);
    procedure GetSampled;
    procedure GrowSampled;
    procedure UseGuardedBlocks;
    procedure OpenProfiles;
    procedure OpenOrUse;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure ThreadGoesOnWhileTheLockOfAShardIsKept;
    procedure ThreadGoesOnWhileTheLocksOfAllShardsAreKept;
    procedure ThreadGoesOnAndEndsWhileTheLockOfItsHeapIsKept;
    procedure ThreadGoesOnWhileTheLockOfAnotherHeapIsKept;
    procedure ThreadGoesOnWhileTheLockOfTheAbandonedHeapIsKept;
    procedure SamplesDoNotWaitForTheirLock;
    procedure BlocksOfARegionAreNotSampled;
    procedure SamplesWithoutTheirLockCountAsAllocated;
    procedure DebugBlocksAreInTheProfileWhileTheyAreInUse;
    procedure AlignedBlocksAreSampledOnceTheTablesAreThere;
    procedure AlignedBlocksAreInReportsAtLimits;
    procedure BlocksFromBeforeDebugModeLeaveTheProfileWithTheirFree;
    procedure LargeBlocksLeaveTheProfileAlsoWhereTheyMoveAfterIt;
    procedure SampledLargeBlockOfZerosIsNotTouched;
    procedure SampledBlockThatBecomesALargeOneNeedsNoOther;
    procedure ResizedBlocksStayInTheProfileWhileFreedOnesAreErased;
    procedure ReportReadsNoBlockBehindGuardPages;
    {$ifdef LINUX}
    procedure ChildProcessSamplesAfterAForkUnderTheLock;
    procedure ChildProcessTakesNoSpanThatALostThreadWasAdding;
    {$endif}
  end;

implementation

uses
  SysUtils, {$ifdef LINUX} BaseUnix, Forking, {$endif} testregistry, LaneMM, LaneMM.Atomic, LaneMM.Os, LaneMM.Lock, LaneMM.FreeRuns,
  LaneMM.Arena, LaneMM.Walk, LaneMM.SettingsState, LaneMM.ObserveState, LaneMM.ProfileData, LaneMM.CallSites,
  LaneMM.Samples, LaneMM.Sampler;

procedure TLockProfileTests.SetUp;
const
  LargeSize = (LongestKept + 1) * SliceSize; // no heap keeps its run
begin
  Random.Start(TestSeed);
  IsIntact := True;
  Servant := TServant.Create;
  Servant.Call(FindHeap);
  GetMem(Large, LargeSize);
end;

procedure TLockProfileTests.TearDown;
begin
  while LaneMM_ExitDebugMode do;
  LaneMM_Configure('profile=0,limit:report=0,rate=512K,erase=0');
  FreeAndNil(Servant);
  FreeMem(Large);
end;

procedure TLockProfileTests.FindHeap;
begin
  FreeMem(GetMem(1)); // now the thread has a heap
  Heap := OsThreadHeap;
end;

// The thread's heap leaves a span to the abandoned heap.
procedure TLockProfileTests.LeaveABlock;
const
  Size = 1000;
begin
  GetMem(LeftBehind, Size);
end;

procedure TLockProfileTests.StartAndEndAThread;
begin
  InThread(LeaveABlock);
  FreeMem(LeftBehind);
end;

// Replaces or resizes a block; all powers of two are equally frequent.
procedure TLockProfileTests.Change(Index: Integer);
const
  SmallestSize = 16;
  LargestSize = 2000000;
  Doublings = 17;
var
  Size: NativeUInt;
begin
  Size := NativeUInt(SmallestSize) shl Random.Below(Doublings);
  Inc(Size, Random.Below(Size));
  if Size > LargestSize then
    Size := LargestSize;
  if Random.Below(2) = 0 then
    ReallocMem(Blocks[Index], Size)
  else
  begin
    FreeMem(Blocks[Index]);
    GetMem(Blocks[Index], Size);
    FillPattern(Blocks[Index], SmallestSize, Index);
  end;
  IsIntact := IsIntact and HasPattern(Blocks[Index], SmallestSize, Index);
end;

// Begins with a free that needs the lock of a shard, the one of the large block.
procedure TLockProfileTests.UseMemory;
const
  Changes = 1000;
  ChangesPerThread = 50;
var
  Index: Integer;
begin
  FreeMem(Large);
  Large := nil;
  for Index := 1 to High(Blocks) do
  begin
    Blocks[Index] := GetMem(100);
    FillPattern(Blocks[Index], 100, Index);
  end;
  for Index := 1 to Changes do
  begin
    Change(1 + Random.Below(High(Blocks)));
    if Index mod ChangesPerThread <> 0 then
      Continue;
    StartAndEndAThread;
    LaneMM_Trim;
  end;
  for Index := 1 to High(Blocks) do
    FreeMem(Blocks[Index]);
end;

// How often threads have found the locks taken.
function MissesOf(const Locks: TLocks): Int64;
var
  Index: Integer;
begin
  Result := 0;
  for Index := 0 to High(Locks) do
    Inc(Result, LoadAcquire(Locks[Index]^.Contended));
end;

// Another thread uses memory while this one keeps the locks: if it waits for one of them, the test
// hangs until its time limit.
procedure TLockProfileTests.GoesOnWithout(const Locks: TLocks);
var
  Index: Integer;
  Misses: Int64;
begin
  for Index := 0 to High(Locks) do
    LockEnter(Locks[Index]^);
  Misses := MissesOf(Locks);
  Servant.Call(UseMemory);
  Misses := MissesOf(Locks) - Misses;
  for Index := 0 to High(Locks) do
    LockLeave(Locks[Index]^);
  AtLeast(1, Misses, 'times that a lock was found taken');
  AssertTrue('blocks keep their contents', IsIntact);
end;

procedure TLockProfileTests.ThreadGoesOnWhileTheLockOfAShardIsKept;
begin
  GoesOnWithout([@ShardOf(ArenaSpan(Large))^.Lock]);
end;

procedure TLockProfileTests.ThreadGoesOnWhileTheLocksOfAllShardsAreKept;
var
  Locks: TLocks;
  Number: Integer;
begin
  SetLength(Locks, Process.ShardCount);
  for Number := 1 to Process.ShardCount do
    Locks[Number - 1] := @Process.Shards[Number].Lock;
  GoesOnWithout(Locks);
end;

procedure TLockProfileTests.ThreadGoesOnAndEndsWhileTheLockOfItsHeapIsKept;
begin
  GoesOnWithout([@Heap^.Lock]);
  LockEnter(Heap^.Lock);
  FreeAndNil(Servant);
  LockLeave(Heap^.Lock);
end;

procedure TLockProfileTests.ThreadGoesOnWhileTheLockOfAnotherHeapIsKept;
begin
  GoesOnWithout([@OsThreadHeap()^.Lock]);
end;

procedure TLockProfileTests.ThreadGoesOnWhileTheLockOfTheAbandonedHeapIsKept;
begin
  GoesOnWithout([@Process.Abandoned^.Lock]);
end;

// The next allocation of this thread with a profile is sampled, if Rate is 1: its window is closed
// that other tests have left.
procedure SampleTheNext;
begin
  while WindowPasses(OsThreadHeap, 0) do
    ;
  OsThreadHeap^.SampleSeed := 1;
  OsThreadHeap^.SampleIn := 0;
end;

// Allocates a block that should be sampled; IsSampled returns whether it was.
procedure TLockProfileTests.GetSampled;
var
  P: Pointer;
  Lost: NativeUInt;
begin
  FreeMem(GetMem(1)); // now the thread has a heap
  SampleTheNext;
  Lost := LoadAcquire(Observe.SamplesLost);
  P := SamplerGet(100);
  IsSampled := LoadAcquire(Observe.SamplesLost) <= Lost; // a child forgets what was lost
  SamplesRemove(P);
  FreeMem(P);
end;

procedure TLockProfileTests.SamplesDoNotWaitForTheirLock;
begin
  AssertTrue('room', SitesStart and SamplerStart);
  LockEnter(Observe.SampleLock);
  InThread(GetSampled);
  LockLeave(Observe.SampleLock);
  AssertFalse('sampled while the lock is kept', IsSampled);
  InThread(GetSampled);
  AssertTrue('sampled afterwards', IsSampled);
end;

// With addresses of 32 bits, a long scope may allocate as much as is left to the next sample.
procedure TLockProfileTests.BlocksOfARegionAreNotSampled;
var
  Region: TLaneMM_Region;
  Block: Pointer;
  IsInside: Boolean;
begin
  AssertTrue('room', SitesStart and SamplerStart);
  Region := LaneMM_RegionCreate('sampled', 0);
  LaneMM_RegionEnter(Region);
  OsThreadHeap^.SampleIn := -1;
  Block := SamplerGet(100);
  IsInside := RegionOfBlock(Block) <> nil;
  AtLeast(1, OsThreadHeap^.SampleIn, 'bytes to the next sample');
  LaneMM_RegionLeave;
  LaneMM_RegionFree(Region);
  AssertTrue('in the region', IsInside);
end;

// Bytes of sampled blocks that are in use.
function SampledBytes: Int64;
var
  Site: PSite;
begin
  Result := 0;
  Site := nil;
  while SiteNext(Site) do
    if Site^.Kind = siAllocation then
      Inc(Result, Int64(Site^.Bytes) - Int64(Site^.FreedBytes));
end;

// GetSampled of a block that grows.
procedure TLockProfileTests.GrowSampled;
var
  P: Pointer;
begin
  P := GetMem(100);
  SampleTheNext;
  SamplerRealloc(P, 3000);
  SamplesRemove(P);
  FreeMem(P);
end;

procedure TLockProfileTests.SamplesWithoutTheirLockCountAsAllocated;
var
  Lost, Allocated: NativeUInt;
  InUse: Int64;
begin
  AssertTrue('room', SitesStart and SamplerStart);
  InUse := SampledBytes;
  LockEnter(Observe.SampleLock);
  Lost := LoadAcquire(Observe.SamplesLost);
  Allocated := LoadAcquire(Observe.AllocatedBytes);
  InThread(GetSampled);
  AtLeast(Allocated + 100, LoadAcquire(Observe.AllocatedBytes), 'bytes allocated');
  Allocated := LoadAcquire(Observe.AllocatedBytes);
  InThread(GrowSampled);
  AtLeast(Allocated + 3000, LoadAcquire(Observe.AllocatedBytes), 'bytes allocated by growth');
  LockLeave(Observe.SampleLock);
  Same(Lost + 2, LoadAcquire(Observe.SamplesLost), 'samples lost');
  Same(InUse, SampledBytes, 'sampled bytes in use');
end;

procedure TLockProfileTests.DebugBlocksAreInTheProfileWhileTheyAreInUse;
var
  P: Pointer;
  Bytes: Int64;
begin
  LaneMM_Configure('profile,rate=1');
  LaneMM_EnterDebugMode;
  SampleTheNext;
  Bytes := SampledBytes;
  P := GetMem(1000);
  Same(Bytes + 1000, SampledBytes, 'a block');
  ReallocMem(P, 100000);
  Same(Bytes + 100000, SampledBytes, 'a larger one');
  FreeMem(P);
  Same(Bytes, SampledBytes, 'none');
  P := AllocMem(500);
  Same(Bytes + 500, SampledBytes, 'one of zeros');
  FreeMem(P);
end;

// Another thread has read the setting, and is about to apply it.
procedure TLockProfileTests.AlignedBlocksAreSampledOnceTheTablesAreThere;
var
  KeptSamples: PHeap;
  KeptWindows: TAtomicWord;
  P: Pointer;
begin
  AssertTrue('room', SitesStart and SamplerStart);
  KeptSamples := Observe.Samples;
  KeptWindows := Observe.Windows;
  LockEnter(Observe.SampleLock); // no sweep
  Observe.Samples := nil;
  Observe.Windows := 0;
  Settings.Values[opProfile] := 1;
  OsThreadHeap^.SampleIn := 0;
  try
    P := LaneMM_GetMemAligned(100, 64);
  finally
    Settings.Values[opProfile] := 0;
    Observe.Windows := KeptWindows;
    Observe.Samples := KeptSamples;
    LockLeave(Observe.SampleLock);
  end;
  FreeMem(P);
end;

procedure TLockProfileTests.AlignedBlocksAreInReportsAtLimits;
const
  Size = 1000;
  Alignments: array[0..2] of NativeUInt = (64, 4096, 2 * SliceSize);
var
  Alignment: NativeUInt;
  P: Pointer;
  Bytes: Int64;
begin
  for Alignment in Alignments do
  begin
    LaneMM_Configure('limit:report,rate=1');
    SampleTheNext;
    Bytes := SampledBytes;
    P := LaneMM_GetMemAligned(Size, Alignment);
    AtLeast(Bytes + Size, SampledBytes, 'bytes in use');
    Same(0, NativeUInt(P) and (Alignment - 1), 'address');
    FreeMem(P);
    Same(Bytes, SampledBytes, 'bytes in use afterwards');
    LaneMM_Configure('limit:report=0');
  end;
end;

// Resized in debug mode they are no debug blocks: one of a size class was sampled where no free ends
// that, and a large one kept the sample of its old address.
procedure TLockProfileTests.BlocksFromBeforeDebugModeLeaveTheProfileWithTheirFree;
const
  LargeSize = 8 shl 20; // its pages are moved
var
  P, Q, Behind: Pointer;
  Bytes: Int64;
begin
  LaneMM_Configure('profile,rate=1');
  SampleTheNext;
  Bytes := SampledBytes;
  P := GetMem(1000);
  Q := GetMem(LargeSize);
  Behind := GetMem(LargeSize);
  LaneMM_EnterDebugMode;
  ReallocMem(P, 5000);
  ReallocMem(Q, 8 * LargeSize);
  FreeMem(P);
  FreeMem(Q);
  FreeMem(Behind);
  Same(Bytes, SampledBytes, 'bytes in use');
end;

procedure TLockProfileTests.LargeBlocksLeaveTheProfileAlsoWhereTheyMoveAfterIt;
const
  LargeSize = 8 shl 20; // its pages are moved
var
  P, Behind: Pointer;
  Bytes: Int64;
begin
  LaneMM_Configure('profile,rate=1');
  SampleTheNext;
  Bytes := SampledBytes;
  P := GetMem(LargeSize);
  Behind := GetMem(LargeSize);
  AtLeast(Bytes + LargeSize, SampledBytes, 'bytes in use');
  LaneMM_Configure('profile=0,rate=512K');
  ReallocMem(P, 8 * LargeSize);
  FreeMem(P);
  FreeMem(Behind);
  Same(Bytes, SampledBytes, 'bytes in use afterwards');
end;

procedure TLockProfileTests.SampledLargeBlockOfZerosIsNotTouched;
const
  Size = 256 shl 20;
var
  P: PByte;
  Before, Bytes: Int64;
begin
  LaneMM_Trim; // memory that was used before would have to be filled
  LaneMM_Configure('profile,rate=1');
  SampleTheNext;
  Bytes := SampledBytes;
  Before := ResidentBytes;
  P := AllocMem(Size);
  AtMost(Before + Size div 4, ResidentBytes, 'resident bytes');
  Same(Bytes + Size, SampledBytes, 'bytes sampled');
  AssertTrue('zeros', (P[0] = 0) and (P[Size div 2] = 0) and (P[Size - 1] = 0));
  FreeMem(P);
end;

procedure TLockProfileTests.ResizedBlocksStayInTheProfileWhileFreedOnesAreErased;
var
  P, Before: PByte;
  Bytes: Int64;
begin
  LaneMM_Configure('profile,rate=1,erase=free');
  SampleTheNext;
  Bytes := SampledBytes;
  P := GetMem(100);
  FillPattern(P, 100, 1);
  Before := P;
  ReallocMem(P, 3000);
  Same(Bytes + 3000, SampledBytes, 'a block that has grown');
  AssertTrue('the old one is erased', IsZero(Before + SizeOf(Pointer), 100 - SizeOf(Pointer)));
  AssertTrue('contents', HasPattern(P, 100, 1));
  ReallocMem(P, 200000);
  Same(Bytes + 200000, SampledBytes, 'a larger one');
  ReallocMem(P, 500);
  Same(Bytes + 500, SampledBytes, 'one that has shrunk');
  FreeMem(P);
  Same(Bytes, SampledBytes, 'none');
end;

// A block that has grown may be a large one, with bytes to grow into. For its sample a second one was
// taken: without memory for that the resize raised an error, after it had freed the block.
procedure TLockProfileTests.SampledBlockThatBecomesALargeOneNeedsNoOther;
const
  Size = 49000;
  SlicesOfOne = 2;
var
  Kept: Pointer; // the spans of samples stay
  P: PByte;
begin
  LaneMM_Configure('profile,rate=1');
  SampleTheNext;
  Kept := GetMem(Size);
  P := GetMem(Size);
  FillPattern(P, Size, 1);
  LaneMM_Trim;
  SampleTheNext;
  LaneMM_SetMemoryLimit(LaneMM_HeapStatus.CommittedBytes + SlicesOfOne * SliceSize);
  try
    ReallocMem(P, Size + 1000);
  finally
    LaneMM_SetMemoryLimit(0);
  end;
  AssertTrue('a large block', ArenaSpan(P)^.Kind = skLarge);
  AssertTrue('its contents', HasPattern(P, Size, 1));
  FreeMem(P);
  FreeMem(Kept);
end;

type
  // It takes long to see that it is an object and no list of classes.
  TWords = class
    Words: array[0..500] of NativeUInt;
  end;
  TLater = class(TWords);
  TLaterStill = class(TLater);
  TLast = class(TLaterStill);

const
  ProfileCount = 100;

procedure TLockProfileTests.OpenProfiles;
var
  Profile: TProfile;
begin
  repeat
    ProfileOpen(Profile, pkHeap);
    ProfileClose(Profile);
  until FetchAdd(OpenedCount, 1) >= ProfileCount;
end;

// The first of two threads opens profiles, the other one uses blocks meanwhile.
procedure TLockProfileTests.OpenOrUse;
begin
  if FetchAdd(StartedCount, 1) <> 0 then
    UseGuardedBlocks
  else
    try
      OpenProfiles;
    finally
      StoreRelease(OpenedCount, ProfileCount);
    end;
end;

procedure TLockProfileTests.UseGuardedBlocks;
var
  Used: array[0..15] of TObject;
  Index: Integer;
begin
  for Index := 0 to High(Used) do
    Used[Index] := TLast.Create;
  repeat
    for Index := 0 to High(Used) do
    begin
      Used[Index].Free;
      Used[Index] := TLast.Create;
    end;
  until LoadAcquire(OpenedCount) >= ProfileCount;
  for Index := 0 to High(Used) do
    Used[Index].Free;
end;

procedure TLockProfileTests.ReportReadsNoBlockBehindGuardPages;
begin
  LaneMM_Configure('profile,rate=1,guard=pages');
  LaneMM_EnterDebugMode;
  try
    InThreads(2, OpenOrUse);
    AtLeast(ProfileCount, LoadAcquire(OpenedCount), 'profiles');
  finally
    LaneMM_ExitDebugMode;
    LaneMM_Configure('profile=0,rate=512K,guard=0,quarantine=0');
    LaneMM_Configure('quarantine=4M'); // empty: other tests count what is backed
  end;
end;

{$ifdef LINUX}
procedure TLockProfileTests.ChildProcessSamplesAfterAForkUnderTheLock;
var
  Child: TPid;
  Status: Integer;
begin
  AssertTrue('room', SitesStart and SamplerStart);
  LockEnter(Observe.SampleLock);
  Child := ForkProcess;
  if Child = 0 then
  begin
    GetSampled;
    FpExit(Ord(IsSampled));
  end;
  LockLeave(Observe.SampleLock);
  FpWaitPid(Child, Status, 0);
  AssertTrue('child has ended by itself', WIfExited(Status));
  Same(1, WExitStatus(Status), 'samples of the child');
end;

// The page with the list was copied after the span was added, that with its record before: the span is
// free for the child.
procedure TLockProfileTests.ChildProcessTakesNoSpanThatALostThreadWasAdding;
var
  Kept: TAtomicWord;
  Child: TPid;
  Status: Integer;
begin
  AssertTrue('room', SitesStart and SamplerStart);
  LockEnter(Observe.SampleLock);
  Kept := Swap(Observe.Samples^.Taken, NativeUInt(ArenaSpan(Large)));
  Child := ForkProcess;
  if Child = 0 then
  begin
    LockRecover;
    FpExit(Ord(Observe.Samples^.Taken = 0));
  end;
  StoreRelease(Observe.Samples^.Taken, Kept);
  LockLeave(Observe.SampleLock);
  FpWaitPid(Child, Status, 0);
  AssertTrue('child has ended by itself', WIfExited(Status));
  Same(1, WExitStatus(Status), 'spans of lost threads are left');
end;
{$endif}

initialization
  RegisterTest(TLockProfileTests);
end.
