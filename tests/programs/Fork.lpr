/// Forks while threads are at work. The child has one thread and a copy of all memory, as it was
/// at any moment; it must be able to do everything: allocate, resize and free blocks, its own and
/// those it inherited from threads that it does not have, and start a thread. In debug mode it
/// checks all blocks too: all are intact but the one that it corrupts, which is reported.
///   Fork system [COUNT]   by the system call, 200 times
///   Fork library [COUNT]  by the C library's fork, 50 times, while threads end and are born
program Fork;

{$mode delphi}{$pointermath on}

uses
  LaneMM, cthreads, BaseUnix, Forking, Promises, Exchange, BareThreads;

const
  ThreadCount = 8;
  InheritedCount = 1000;
  // A child that takes longer hangs, and is ended by the signal.
  SecondsPerChild = 100;
  // Threads at work leave the child its turn: the test is about where they are, not how fast.
  ThreadNiceness = 10;

  NoFault = 0;
  GetFault = 1;
  InheritFault = 2;
  SlotFault = 3;
  ThreadFault = 4;
  CheckFault = 5;
  ReportFault = 6;

function LibraryFork: TPid; cdecl; external 'c' name 'fork';

var
  Legacy: array[0..InheritedCount - 1] of PParcel;
  NextInherited: LongInt;
  Ready: LongInt;
  IsOver: LongInt;
  ToldCount: LongInt;

// ---------------------------------------------------------------------------- the parent's threads

function SomeSize(Index: Integer): NativeUInt;
begin
  if Index mod 100 = 0 then
    Result := SampleSizes[Index div 100 mod Length(SampleSizes)]
  else
    Result := Index mod 1000;
end;

procedure LeaveInheritance(Count: Integer);
var
  Index: LongInt;
begin
  for Count := Count downto 1 do
  begin
    Index := InterlockedIncrement(NextInherited) - 1;
    if Index >= InheritedCount then
      Exit;
    Legacy[Index] := ParcelGet(SomeSize(Index), Index);
  end;
end;

function Churn(Seed: Pointer): PtrInt;
begin
  FpNice(ThreadNiceness);
  LeaveInheritance(InheritedCount div (ThreadCount + 1));
  InterlockedIncrement(Ready);
  repeat
    ExchangeParcels(Cardinal(PtrUInt(Seed)), 500);
    Inc(PByte(Seed), 8);
  until InterlockedCompareExchange(IsOver, 0, 0) <> 0;
  Result := 0;
end;

function ChurnOnce(Seed: Pointer): PtrInt;
begin
  FpNice(ThreadNiceness);
  ExchangeParcels(Cardinal(PtrUInt(Seed)), 3000);
  Result := 0;
end;

// Threads that end and are born all the time.
function ChurnByOthers(Seed: Pointer): PtrInt;
begin
  repeat
    WaitForThreadTerminate(BeginThread(ChurnOnce, Seed), 0);
    Inc(PByte(Seed), 8);
  until InterlockedCompareExchange(IsOver, 0, 0) <> 0;
  Result := 0;
end;

// ---------------------------------------------------------------------------- the child

function UsesOwnBlocks(Seed: Cardinal): Boolean;
var
  Parcels: array[0..199] of PParcel;
  Index: Integer;
begin
  for Index := 0 to High(Parcels) do
    Parcels[Index] := ParcelGet(NextRandom(Seed, 3000), Index);
  for Index := 0 to High(Parcels) do
    if Odd(Index) then
      ParcelFree(Parcels[Index])
    else
      ReallocMem(Parcels[Index], Parcels[Index]^.Size + 20000);
  for Index := 0 to High(Parcels) do
    if not Odd(Index) then
      ParcelFree(Parcels[Index]);
  for Index := 0 to High(SampleSizes) do
    FreeMem(FilledBlock(SampleSizes[Index], Index));
  Result := BrokenCount = 0;
end;

function UsesInheritance(First: Integer): Boolean;
var
  Index: Integer;
begin
  Index := First;
  while Index < InheritedCount do
  begin
    Expect(ParcelIsWhole(Legacy[Index]), 'what was inherited is what it was');
    if Index mod 3 = 0 then
      ReallocMem(Legacy[Index], MemSize(Legacy[Index]) + 1000);
    ParcelFree(Legacy[Index]);
    Inc(Index, 2);
  end;
  Result := BrokenCount = 0;
end;

procedure WorkInChild(Seed: Pointer);
begin
  UsesInheritance(1);
  UsesOwnBlocks(Cardinal(PtrUInt(Seed)));
  ExchangeParcels(Cardinal(PtrUInt(Seed)), 100);
end;

// A thread of the C library: BeginThread takes the lock of Free Pascal's own heap, which a thread
// that was being born or ended in the parent may have held. qemu-user ends by an assertion of its own
// there: the child itself does the work.
function StartsAThread(Seed: PtrUInt): Boolean;
{$ifndef CPUAARCH64}
var
  Thread: TBareThread;
{$endif}
begin
  {$ifdef CPUAARCH64}
  WorkInChild(Pointer(Seed));
  {$else}
  if not BareStart(Thread, WorkInChild, Pointer(Seed)) then
    Exit(False);
  BareJoin(Thread);
  {$endif}
  Result := BrokenCount = 0;
end;

procedure CountEvent(Kind: TLaneMM_EventKind; Text: PAnsiChar; Length: NativeUInt);
begin
  if (Kind = evWriteAfter) or (Kind = evLeaks) then
    InterlockedIncrement(ToldCount);
end;

function IsDebug: Boolean;
begin
  Result := LaneMM_Settings.Values[opDebug] <> 0;
end;

// Spoils a block, and has the damage and all blocks reported.
function Reports: Boolean;
var
  Block: PByte;
begin
  Block := FilledBlock(100, 1);
  Block[100] := 0;
  Result := (LaneMM_CheckHeap = 1) and (ToldCount = 1);
  Result := Result and (LaneMM_ReportMemoryInUse > 0) and (ToldCount = 2);
  FreeMem(Block);
end;

function Child(Seed: Cardinal): Integer;
begin
  FpAlarm(SecondsPerChild);
  if not UsesOwnBlocks(Seed) then
    Exit(GetFault);
  if not UsesInheritance(0) then
    Exit(InheritFault);
  if LaneMM_CheckHeap <> 0 then
    Exit(CheckFault);
  if IsDebug and not Reports then
    Exit(ReportFault);
  ExchangeEmpty;
  LaneMM_Trim;
  if BrokenCount > 0 then
    Exit(SlotFault);
  if not StartsAThread(Seed) then
    Exit(ThreadFault);
  LaneMM_Trim;
  Result := NoFault;
end;

// ---------------------------------------------------------------------------- the parent

// Waits for a child. Returns False for one that its alarm does not end, and ends it: no program can
// do that, but an emulator that was copied while another thread held a lock of its own.
function Await(Id: TPid; out Status: Integer): Boolean;
const
  StepMs = 1;
var
  Steps: Integer;
begin
  Steps := (SecondsPerChild + 20) * 1000 div StepMs;
  repeat
    Result := FpWaitPid(Id, Status, WNOHANG) = Id;
    if not Result then
      FpSelect(0, nil, nil, nil, StepMs);
    Dec(Steps);
  until Result or (Steps = 0);
  if Result then
    Exit;
  FpKill(Id, SIGKILL);
  FpWaitPid(Id, Status, 0);
end;

procedure CheckChild(Id: TPid);
var
  Status: Integer;
begin
  Expect(Id > 0, 'there is a child');
  if Id <= 0 then
    Exit;
  if not Await(Id, Status) then
  begin
    WriteLn('  a child does not take its alarm: the emulator hangs');
    {$ifdef CPUAARCH64}
    Exit;
    {$endif}
  end;
  if WIfExited(Status) and (WExitStatus(Status) = NoFault) then
    Exit;
  Expect(False, 'a child gets, frees, inherits and starts a thread');
  if WIfExited(Status) then
    WriteLn('  exit code ', WExitStatus(Status))
  else
    WriteLn('  signal ', WTermSig(Status));
end;

procedure ForkMany(Count: Integer; IsByLibrary: Boolean);
var
  Index: Integer;
  Id: TPid;
begin
  for Index := 1 to Count do
  begin
    ExchangeParcels(Index, 50);
    if IsByLibrary then
      Id := LibraryFork
    else
      Id := FpFork;
    if Id = 0 then
    begin
      BecomeChild;
      FpExit(Child(Index));
    end;
    CheckChild(Id);
    if BrokenCount > 10 then
      Break;
  end;
end;

// The count on the command line, or Default.
function ForkCount(Default: Integer): Integer;
var
  Code: Word;
begin
  Val(ParamStr(2), Result, Code);
  if Code <> 0 then
    Result := Default;
end;

procedure Run(IsByLibrary: Boolean);
var
  Threads: array[1..ThreadCount] of TThreadID;
  Index: PtrUInt;
begin
  for Index := 1 to ThreadCount do
    if IsByLibrary and Odd(Index) then
    begin
      InterlockedIncrement(Ready);
      Threads[Index] := BeginThread(ChurnByOthers, Pointer(Index));
    end
    else
      Threads[Index] := BeginThread(Churn, Pointer(Index));
  while InterlockedCompareExchange(Ready, 0, 0) < ThreadCount do
    ThreadSwitch;
  LeaveInheritance(InheritedCount);
  if IsByLibrary then
    ForkMany(ForkCount(50), True)
  else
    ForkMany(ForkCount(200), False);
  InterlockedIncrement(IsOver);
  for Index := 1 to ThreadCount do
    WaitForThreadTerminate(Threads[Index], 0);
end;

begin
  LaneMM_OnEvent(CountEvent);
  Run(ParamStr(1) = 'library');
  Finish;
end.
