/// Tests of the waiting policy: what threads do while another one keeps a lock of the manager.
unit Test.LockProfile;

{$mode delphi}{$H+}

interface

uses
  SyncObjs, Test.Tools, LaneMM.Layout;

type
  TLockPointer = ^TLock;

  TLockProfileTests = class(TLaneTest)
  strict private
    Lock: TLockPointer;
    Wanted: TWork;
    Gate: TEvent;
    IsSampled: Boolean;
    procedure GetSampled;
    procedure WorkAtTheGate;
    procedure TakeAndLeave;
    procedure GetAndFreeLarge;
    procedure WaitersBurnNoCpu(var Which: TLock; Work: TWork);
  published
    procedure ThreadsParkWhileTheArenaLockIsKept;
    procedure ThreadsParkWhileTheRegistryLockIsKept;
    procedure ThreadsParkWhileTheAbandonedLockIsKept;
    procedure ThreadsParkWhileAHeapLockIsKept;
    procedure LargeBlocksParkWhileTheArenaLockIsKept;
    procedure SamplesDoNotWaitForTheirLock;
    procedure DebugBlocksAreInTheProfileWhileTheyAreInUse;
    procedure ChildProcessSamplesAfterAForkUnderTheLock;
  end;

implementation

uses
  SysUtils, BaseUnix, testregistry, LaneMM, LaneMM.Types, LaneMM.Atomic, LaneMM.Os, LaneMM.Lock,
  LaneMM.ObserveState, LaneMM.CallSites, LaneMM.Sampler;

const
  ThreadCount = 4;
  StartMs = 50;
  KeptMs = 300;
  // Four threads that turn for KeptMs on two CPUs use twice as much as that.
  MostCpuMs = 100;

function CpuMs: Int64;
const
  MsPerTick = 10;
var
  Times: TMS;
begin
  FpTimes(Times);
  Result := Int64(Times.tms_utime + Times.tms_stime) * MsPerTick;
end;

procedure TLockProfileTests.TakeAndLeave;
begin
  LockEnter(Lock^);
  LockLeave(Lock^);
end;

procedure TLockProfileTests.GetAndFreeLarge;
var
  P: Pointer;
begin
  GetMem(P, 300000);
  FreeMem(P);
end;

procedure TLockProfileTests.WorkAtTheGate;
begin
  Gate.WaitFor(INFINITE);
  Wanted;
end;

// The threads start before the lock is taken: starting one takes locks, too.
procedure TLockProfileTests.WaitersBurnNoCpu(var Which: TLock; Work: TWork);
var
  Workers: array[1..ThreadCount] of TWorker;
  Index: Integer;
  Used: Int64;
begin
  Lock := @Which;
  Wanted := Work;
  Gate := TEvent.Create(nil, True, False, '');
  for Index := 1 to ThreadCount do
    Workers[Index] := TWorker.Create(WorkAtTheGate, False);
  Sleep(StartMs);
  LockEnter(Which);
  Used := CpuMs;
  Gate.SetEvent;
  Sleep(KeptMs);
  Used := CpuMs - Used;
  LockLeave(Which);
  for Index := 1 to ThreadCount do
  begin
    Workers[Index].AwaitEnd;
    Workers[Index].Free;
  end;
  Gate.Free;
  AtMost(MostCpuMs, Used, 'CPU time in ms');
end;

procedure TLockProfileTests.ThreadsParkWhileTheArenaLockIsKept;
begin
  WaitersBurnNoCpu(Process.ArenaLock, TakeAndLeave);
end;

procedure TLockProfileTests.ThreadsParkWhileTheRegistryLockIsKept;
begin
  WaitersBurnNoCpu(Process.RegistryLock, TakeAndLeave);
end;

procedure TLockProfileTests.ThreadsParkWhileTheAbandonedLockIsKept;
begin
  WaitersBurnNoCpu(Process.Abandoned^.Lock, TakeAndLeave);
end;

procedure TLockProfileTests.ThreadsParkWhileAHeapLockIsKept;
begin
  WaitersBurnNoCpu(OsThreadHeap^.Lock, TakeAndLeave);
end;

procedure TLockProfileTests.LargeBlocksParkWhileTheArenaLockIsKept;
begin
  WaitersBurnNoCpu(Process.ArenaLock, GetAndFreeLarge);
end;

// Allocates a block that should be sampled; IsSampled returns whether it was.
procedure TLockProfileTests.GetSampled;
var
  P: Pointer;
  Lost: NativeUInt;
begin
  FreeMem(GetMem(1)); // now the thread has a heap
  OsThreadHeap^.SampleSeed := 1;
  Lost := LoadAcquire(Observe.SamplesLost);
  P := SamplerGet(100);
  IsSampled := LoadAcquire(Observe.SamplesLost) <= Lost; // a child forgets what was lost
  SamplerForget(P);
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

// Bytes of sampled blocks that are in use.
function SampledBytes: Int64;
var
  Index: Cardinal;
  Site: PSite;
begin
  Result := 0;
  for Index := 0 to SiteLimit - 1 do
  begin
    Site := SiteAt(Index);
    if (Site <> nil) and (Site^.Kind = siAllocation) then
      Inc(Result, Int64(Site^.Bytes) - Int64(Site^.FreedBytes));
  end;
end;

procedure TLockProfileTests.DebugBlocksAreInTheProfileWhileTheyAreInUse;
var
  P: Pointer;
  Bytes: array[0..4] of Int64;
begin
  LaneMM_Configure('profile,rate=1');
  LaneMM_EnterDebugMode;
  OsThreadHeap^.SampleSeed := 1;
  OsThreadHeap^.SampleIn := 0;
  Bytes[0] := SampledBytes;
  P := GetMem(1000);
  Bytes[1] := SampledBytes;
  ReallocMem(P, 100000);
  Bytes[2] := SampledBytes;
  FreeMem(P);
  Bytes[3] := SampledBytes;
  P := AllocMem(500);
  Bytes[4] := SampledBytes;
  FreeMem(P);
  LaneMM_ExitDebugMode;
  LaneMM_Configure('profile=0,rate=512K');
  Same(1000, Bytes[1] - Bytes[0], 'a block');
  Same(100000, Bytes[2] - Bytes[0], 'a larger one');
  Same(0, Bytes[3] - Bytes[0], 'none');
  Same(500, Bytes[4] - Bytes[0], 'one of zeros');
end;

procedure TLockProfileTests.ChildProcessSamplesAfterAForkUnderTheLock;
var
  Child: TPid;
  Status: Integer;
begin
  AssertTrue('room', SitesStart and SamplerStart);
  LockEnter(Observe.SampleLock);
  Child := FpFork;
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

initialization
  RegisterTest(TLockProfileTests);
end.
