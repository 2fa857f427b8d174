/// Tests of LaneMM.Purge: a quiet program gives its memory back without being asked.
unit Test.Purge;

{$mode delphi}{$H+}

interface

uses
  Test.Tools;

type
  TPurgeTest = class(TLaneTest)
  strict protected
    Blocks: TPointers;
    procedure GetBlocks;
    procedure FreeBlocks;
  end;

  TPurgeTests = class(TPurgeTest)
  strict private
    procedure FreeATenth;
    procedure KeepAQuarter;
    procedure AwaitResident(Limit: NativeUInt);
    procedure AwaitRest;
  published
    procedure QuietProgramGivesLargeBlocksBack;
    procedure QuietProgramGivesSmallBlocksBack;
    procedure QuietProgramGivesBackWhatOthersFreed;
    procedure ProcessAtRestHasNoWakeUps;
    procedure LastFreeOfTheOwnerGivesBackWhatOthersFreed;
    procedure MemoryInUseStays;
  end;

  /// Calls that purge, in a child process: most without a purge thread, such as a C program has none.
  TPurgeCallsTests = class(TPurgeTest)
  strict private
    procedure FreeABurst;
    procedure CallAfter(QuietMs: Cardinal);
  strict protected
    class function IsInChild: Boolean; override;
  published
    procedure TrimInALookLeavesTheCallItsSpan;
    procedure FirstCallAfterARestGivesABurstBack;
    procedure EachSlowCallReadsAClockThatIsCheap;
    procedure FirstCallAfterOneLargeFreeAndARestGivesItBack;
    procedure ClockThatHasWrappedGivesABurstBack;
    procedure CallRightAfterABurstKeepsItWarm;
    procedure MainThreadThatEndsLeavesNoPurgeThread;
  end;

implementation

uses
  SysUtils, testregistry, LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Os,
  LaneMM.Hooks, LaneMM.Arena, LaneMM.Span, LaneMM.Shards, LaneMM.Heap, LaneMM.Purge;

const
  // Of Process.PurgeState: there is no purge thread; the main thread has ended.
  Refused = 3;
  Over = 5;
  Megabyte = 1 shl 20;
  BlockSize = 1000;
  BurstBytes = 64 * Megabyte;
  MsPerDay = 24 * 3600 * 1000;

function WarmBytes: NativeUInt;
begin
  Result := ShardsWarmSlices * SliceSize;
end;

procedure TPurgeTest.GetBlocks;
var
  Index: Integer;
begin
  SetLength(Blocks, BurstBytes div BlockSize);
  for Index := 0 to High(Blocks) do
  begin
    GetMem(Blocks[Index], BlockSize);
    FillPattern(Blocks[Index], BlockSize, Index);
  end;
end;

procedure TPurgeTest.FreeBlocks;
begin
  FreeEach(Blocks, 1);
end;

procedure TPurgeTests.FreeATenth;
begin
  GetBlocks;
  FreeEach(Blocks, 10);
end;

// Only polls, and calls the memory manager only where the build has no purge thread: then the next
// slow path of any thread purges. The runner ends a test that hangs.
procedure TPurgeTests.AwaitResident(Limit: NativeUInt);
var
  Resident: NativeUInt;
begin
  repeat
    Sleep(1); // leaves the processor to others
    if LoadAcquire(Process.PurgeState) = Refused then
      FreeMem(GetMem(LongestKept * SliceSize + 1)); // no kept run
    Resident := ResidentBytes;
  until Resident <= Limit;
  AtMost(Limit, Resident, 'resident bytes');
end;

procedure TPurgeTests.QuietProgramGivesLargeBlocksBack;
var
  P: Pointer;
  Before: NativeUInt;
begin
  ProcessTrim;
  Before := ResidentBytes;
  GetMem(P, BurstBytes);
  FillChar(P^, BurstBytes, 1);
  FreeMem(P);
  AwaitResident(Before + BurstBytes div 10);
end;

procedure TPurgeTests.QuietProgramGivesSmallBlocksBack;
var
  Before: NativeUInt;
begin
  ProcessTrim;
  Before := ResidentBytes;
  GetBlocks;
  FreeBlocks;
  AwaitResident(Before + BurstBytes div 10);
end;

procedure TPurgeTests.QuietProgramGivesBackWhatOthersFreed;
var
  Owner: TWorker;
  Before: NativeUInt;
begin
  ProcessTrim;
  Before := ResidentBytes;
  Owner := StartIdleThread(FreeATenth);
  FreeBlocks;
  AwaitResident(Before + BurstBytes div 10);
  EndThread(Owner);
end;

// Frees three quarters, which may be blocks of another thread.
procedure TPurgeTests.KeepAQuarter;
var
  Index: Integer;
begin
  for Index := 0 to High(Blocks) do
    if Index mod 4 <> 0 then
    begin
      FreeMem(Blocks[Index]);
      Blocks[Index] := nil;
    end;
end;

// Returns when no thread of LaneMM has waited for a time in which the purge thread would look many
// times.
procedure TPurgeTests.AwaitRest;
var
  Waits: TAtomicWord;
begin
  repeat
    Waits := LoadAcquire(Process.OsCalls[ocWait]);
    Sleep(100);
    if LoadAcquire(Process.PurgeState) = Refused then
      FreeMem(GetMem(LongestKept * SliceSize + 1)); // no kept run
  until (LoadAcquire(Process.SweepWanted) = 0) and (LoadAcquire(Process.OsCalls[ocWait]) = Waits);
end;

procedure TPurgeTests.ProcessAtRestHasNoWakeUps;
var
  Owner: TWorker;
  Delay: Cardinal;
begin
  Delay := Process.PurgeDelayMs;
  Process.PurgeDelayMs := 5;
  try
    Owner := StartIdleThread(FreeATenth);
    KeepAQuarter; // the owner's spans stay in use
    AwaitRest;
    AssertTrue('the owner has blocks', UsedBytes > BurstBytes div 5);
    FreeBlocks;
    AwaitRest;
    EndThread(Owner);
  finally
    Process.PurgeDelayMs := Delay;
  end;
end;

procedure TPurgeTests.LastFreeOfTheOwnerGivesBackWhatOthersFreed;
var
  Owner: TServant;
  Before: NativeUInt;
  Delay: Cardinal;
begin
  ProcessTrim;
  Before := ResidentBytes;
  Delay := Process.PurgeDelayMs;
  Process.PurgeDelayMs := 5;
  Owner := TServant.Create;
  try
    Owner.Call(GetBlocks);
    KeepAQuarter;
    AwaitRest;
    Owner.Call(FreeBlocks);
    AwaitResident(Before + BurstBytes div 10);
  finally
    Owner.Free;
    Process.PurgeDelayMs := Delay;
  end;
end;

procedure TPurgeTests.MemoryInUseStays;
var
  P: Pointer;
  Before: NativeUInt;
  Index: Integer;
begin
  GetBlocks;
  Before := ResidentBytes;
  GetMem(P, BurstBytes);
  FillChar(P^, BurstBytes, 1);
  FreeMem(P);
  AwaitResident(Before + BurstBytes div 10);
  for Index := 0 to High(Blocks) do
    AssertTrue('contents', HasPattern(Blocks[Index], BlockSize, Index));
  FreeBlocks;
end;

class function TPurgeCallsTests.IsInChild: Boolean;
begin
  Result := True;
end;

// Frees what GetBlocks got, in a process without a purge thread, such as a C program. The span that
// blocks come from keeps one.
procedure TPurgeCallsTests.FreeABurst;
begin
  StoreRelease(Process.PurgeState, Refused);
  ProcessTrim;
  GetBlocks;
  Blocks[High(Blocks)] := nil;
  FreeBlocks;
  AtLeast(BurstBytes * 9 div 10, WarmBytes, 'warm bytes after the burst');
end;

// Makes one call, as if no other had been made for so long.
procedure TPurgeCallsTests.CallAfter(QuietMs: Cardinal);
begin
  FreeABurst;
  Process.LookedMs := OsNowMs - QuietMs;
  FreeMem(GetMem(BlockSize));
end;

procedure TPurgeCallsTests.FirstCallAfterARestGivesABurstBack;
begin
  CallAfter(Process.PurgeDelayMs * 4);
  Same(0, WarmBytes, 'warm bytes after the call');
end;

procedure TPurgeCallsTests.ClockThatHasWrappedGivesABurstBack;
begin
  CallAfter(30 * MsPerDay);
  Same(0, WarmBytes, 'warm bytes after the call');
end;

procedure TPurgeCallsTests.CallRightAfterABurstKeepsItWarm;
begin
  Process.PurgeDelayMs := MsPerDay; // the system may stop this process between two calls
  CallAfter(0);
  AtLeast(BurstBytes * 9 div 10, WarmBytes, 'warm bytes after the call');
end;

// The calls of the burst have left a count of calls that read no clock which is a system call.
procedure TPurgeCallsTests.EachSlowCallReadsAClockThatIsCheap;
begin
  FreeABurst;
  OsThreadHeap^.ClockDue := 10;
  Process.LookedMs := OsNowMs - Process.PurgeDelayMs * 4;
  PurgeTick;
  if OsClockIsCheap then
    Same(0, WarmBytes, 'warm bytes after the call')
  else
    Same(9, OsThreadHeap^.ClockDue, 'calls until one reads the clock');
end;

// As under the pressure of a container.
procedure TPurgeCallsTests.TrimInALookLeavesTheCallItsSpan;
const
  SeldomSize = 7000; // few blocks of its class are in use
var
  Span: PSpan;
begin
  StoreRelease(Process.PurgeState, Refused);
  Process.SharesSpans := False;
  HeapRetireAll(OsThreadHeap);
  Hooks.Pressure := ProcessTrim;
  Hooks.Corruption := CountCorruption;
  Corruptions := 0;
  repeat
    OsThreadHeap^.ClockDue := 0;
    Process.LookedMs := OsNowMs - Process.PurgeDelayMs * 4;
    Span := ArenaSpan(GetMem(SeldomSize));
    AssertTrue('in a span', Span^.Kind = skBlocks);
    AssertTrue('of the thread', Span^.Owner = OsThreadHeap);
  until SpanUsedCount(Span) = 1; // a new one
  Same(0, Corruptions, 'spans that were released, or were another one');
end;

procedure TPurgeCallsTests.FirstCallAfterOneLargeFreeAndARestGivesItBack;
const
  LargeSize = 5 * 1024 * 1024;
var
  Small, P: Pointer;
begin
  StoreRelease(Process.PurgeState, Refused);
  Process.HasThreads := True;
  GetMem(Small, BlockSize);
  GetMem(P, LargeSize);
  FillChar(P^, LargeSize, 1);
  FreeMem(P);
  Process.LookedMs := OsNowMs - Process.PurgeDelayMs * 4;
  FreeMem(GetMem(BlockSize));
  Same(0, WarmBytes, 'warm bytes after a call of a class in use');
  FreeMem(Small);
end;

// In a child process the thread that forked is the main thread. A build without assembler has no
// purge thread.
procedure TPurgeCallsTests.MainThreadThatEndsLeavesNoPurgeThread;
const
  MostRounds = 5000;
var
  Round: Integer;
begin
  GetBlocks;
  FreeBlocks;
  for Round := 1 to MostRounds do
    if (Process.PurgeThread = 0) and (LoadAcquire(Process.PurgeState) <> Refused) then
      Sleep(1);
  AssertTrue('begun, or refused', (Process.PurgeThread <> 0)
    or (LoadAcquire(Process.PurgeState) = Refused));
  PurgeNotifyOfEnd; // as at the end of this thread
  for Round := 1 to MostRounds do
    if Process.PurgeThread <> 0 then
      Sleep(1);
  Same(0, Process.PurgeThread, 'purge thread');
  GetBlocks;
  FreeBlocks;
  AssertFalse('another one', PurgeClaim);
  Same(Over, LoadAcquire(Process.PurgeState), 'state of the purge thread');
end;

initialization
  RegisterTest(TPurgeTests);
  {$ifdef UNIX}
  RegisterTest(TPurgeCallsTests);
  {$endif}
end.
