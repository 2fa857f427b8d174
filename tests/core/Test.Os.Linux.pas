/// Tests of LaneMM.Os for Linux: what that system alone has.
unit Test.Os.Linux;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.Layout, LaneMM.Types;

type
  /// What a child process does with pages; returns the number of the step that went wrong, 0: none.
  TPageWork = function(Range: PByte): Integer;
  TOsLinuxTests = class(TLaneTest)
  strict private
    Cpus: Cardinal;
    procedure CountOnOneCpu;
    procedure WriteText(const FileName, Text: string);
    function QuotaOf(const Outer, Inner, Group: string): Cardinal;
    procedure RunInASandbox(Work: TPageWork);
  published
    procedure PurgeOfLockedMemoryDoesNotClaimZeros;
    procedure PurgeSplitsTheHugePagesThatItHasInPart;
    procedure PagesOfSeveralMappingsAreMoved;
    procedure MoveOfUnusableMemoryChangesNothing;
    procedure UntouchedMemoryIsChargedWhereTheSystemDoesNotOvercommit;
    procedure CpuCountFollowsTheAffinity;
    procedure CpuQuotaIsRoundedUp;
    procedure CpuQuotaIsTheLeastOfAllGroupsAroundTheProcess;
    procedure CpuQuotaIsUnlimitedWhereNothingSaysOtherwise;
    procedure ForkMarkReadsZeroInAChildOnly;
    procedure ThreadOfLaneMMTakesTheSignalsOfTheThreadLibraryAlone;
    procedure CallThatFailsAfterAThreadEndedHarmsNothing;
    procedure ReadWorksInASandboxThatRefusesTheSystemCall;
    procedure PagesCanBeReadInASandboxThatRefusesToSay;
    procedure GuardEndsInASandboxThatRefusesToSayWhetherItHolds;
    procedure CoreFilesHaveBlocksAndNoReservedAddresses;
  end;

implementation

uses
  SysUtils, Classes, BaseUnix, Syscall, testregistry, Test.System, LaneMM.Atomic, LaneMM.Os;

const
  RangeSize = 4 * SliceSize;

// Returns a range that the test frees with OsRelease.
function CommittedRange(Size: NativeUInt): PByte;
begin
  Result := OsReserve(Size);
  if (Result = nil) or not OsCommit(Result, Size) then
    raise EOutOfMemory.Create('no memory for a test');
end;

procedure TOsLinuxTests.PurgeOfLockedMemoryDoesNotClaimZeros;
var
  Range: PByte;
begin
  Range := CommittedRange(SliceSize);
  FillPattern(Range, SliceSize, 1);
  // Without the right to lock memory this is a purge like any other.
  Do_SysCall(syscall_nr_mlock, TSysParam(Range), SliceSize);
  AssertTrue('zero, or not claimed', not OsPurge(Range, SliceSize) or IsZero(Range, SliceSize));
  OsRelease(Range, SliceSize);
end;

// In a child process, where no other thread makes such calls meanwhile.
procedure TOsLinuxTests.PurgeSplitsTheHugePagesThatItHasInPart;
const
  HugePage = HugeSlices * SliceSize;
var
  Range: PByte;

  // Returns the calls beside the purge, and checks what lies before and after it.
  function Splits(First, Limit: NativeUInt): NativeUInt;
  begin
    FillPattern(Range, 4 * HugePage, 7);
    Result := Process.OsCalls[ocHuge];
    AssertTrue('purged', OsPurge(Range + First, Limit - First));
    Result := Process.OsCalls[ocHuge] - Result;
    AssertTrue('before it', HasPattern(Range, First, 7));
    AssertTrue('zeros', IsZero(Range + First, Limit - First));
    AssertFalse('after it', IsZero(Range + Limit, OsPageSize));
  end;

begin
  if not InChild then
    Exit;
  Range := CommittedRange(5 * HugePage);
  Inc(Range, (0 - NativeUInt(Range)) and (HugePage - 1));
  Process.UsesHuge := False;
  Same(0, Splits(SliceSize, 2 * HugePage + SliceSize), 'without huge pages');
  Process.UsesHuge := True;
  Same(0, Splits(HugePage, 3 * HugePage), 'whole ones');
  Same(1, Splits(SliceSize, 2 * HugePage), 'the end of one');
  Same(1, Splits(HugePage, 2 * HugePage + SliceSize), 'the start of one');
  Same(1, Splits(SliceSize, HugePage - SliceSize), 'the middle of one');
  Same(1, Splits(0, SliceSize), 'the start of one and no more');
  Same(1, Splits(HugePage - SliceSize, HugePage), 'the end of one and no more');
  Same(2, Splits(SliceSize, HugePage + SliceSize), 'of two');
end;

procedure TOsLinuxTests.PagesOfSeveralMappingsAreMoved;
var
  Source, Target, Other: PByte;
begin
  Source := CommittedRange(RangeSize * 2);
  Target := CommittedRange(RangeSize * 2);
  Other := CommittedRange(RangeSize);
  FillPattern(Other, RangeSize, 5);
  Same(RangeSize, OsMove(Other, Source, RangeSize), 'bytes moved to the first half');
  FillPattern(Source + RangeSize, RangeSize, 6);
  Same(RangeSize * 2, OsMove(Source, Target, RangeSize * 2), 'bytes moved');
  AssertTrue('first half', HasPattern(Target, RangeSize, 5));
  AssertTrue('second half', HasPattern(Target + RangeSize, RangeSize, 6));
  OsRelease(Source, RangeSize * 2);
  OsRelease(Target, RangeSize * 2);
  OsRelease(Other, RangeSize);
end;

procedure TOsLinuxTests.MoveOfUnusableMemoryChangesNothing;
var
  Source, Target: PByte;
begin
  Target := CommittedRange(RangeSize);
  FillPattern(Target, RangeSize, 2);
  Source := OsReserve(RangeSize);
  OsRelease(Source, RangeSize);
  Same(0, OsMove(Source, Target, RangeSize), 'bytes moved');
  AssertTrue('unchanged', HasPattern(Target, RangeSize, 2));
  OsRelease(Target, RangeSize);
end;

procedure TOsLinuxTests.UntouchedMemoryIsChargedWhereTheSystemDoesNotOvercommit;
var
  Lines: TStringList;
  Most: NativeUInt;
  ChargesUntouched: Boolean;
  Limit: TRLimit;
begin
  Lines := TStringList.Create;
  Lines.LoadFromFile('/proc/sys/vm/overcommit_memory');
  FpGetRLimit(RLIMIT_DATA, @Limit);
  OsMemory(Most, ChargesUntouched);
  // No limit is the highest number; with 32 bits that of a signed one.
  AssertTrue('answer', ChargesUntouched
    = ((Lines[0] = '2') or (Limit.Rlim_Cur < NativeUInt(High(NativeInt)))));
  AssertTrue('at the start', Process.HasSpare = not ChargesUntouched);
  Lines.Free;
end;

procedure TOsLinuxTests.CountOnOneCpu;
var
  Mask: array[0..127] of NativeUInt;
  Index: Integer;
begin
  FillChar(Mask, SizeOf(Mask), 0);
  Do_SysCall(syscall_nr_sched_getaffinity, 0, SizeOf(Mask), TSysParam(@Mask));
  Index := 0;
  while Mask[Index] = 0 do
    Inc(Index);
  Mask[Index] := Mask[Index] and not (Mask[Index] - 1);
  Do_SysCall(syscall_nr_sched_setaffinity, 0, (Index + 1) * SizeOf(NativeUInt),
    TSysParam(@Mask));
  Cpus := OsCpuCount;
end;

procedure TOsLinuxTests.CpuCountFollowsTheAffinity;
begin
  AtLeast(1, OsCpuCount, 'CPUs of the process');
  InThread(CountOnOneCpu);
  Same(1, Cpus, 'CPUs of a thread that is bound to one');
end;

procedure TOsLinuxTests.WriteText(const FileName, Text: string);
var
  Lines: TStringList;
begin
  Lines := TStringList.Create;
  Lines.TrailingLineBreak := False;
  Lines.Text := Text;
  Lines.SaveToFile(FileName);
  Lines.Free;
end;

// The quota of a process by made-up control groups: Outer around Inner, and the file that names
// the group of the process.
function TOsLinuxTests.QuotaOf(const Outer, Inner, Group: string): Cardinal;
var
  Root: string;
begin
  Root := ExtractFilePath(ParamStr(0)) + 'groups-' + IntToStr(GetProcessID);
  ForceDirectories(Root + '/outer/inner');
  WriteText(Root + '/outer/cpu.max', Outer);
  WriteText(Root + '/outer/inner/cpu.max', Inner);
  WriteText(Root + '/group', Group);
  Result := OsCpuQuotaIn(PAnsiChar(Root), PAnsiChar(Root + '/group'));
  DeleteFile(Root + '/outer/cpu.max');
  DeleteFile(Root + '/outer/inner/cpu.max');
  DeleteFile(Root + '/group');
  RemoveDir(Root + '/outer/inner');
  RemoveDir(Root + '/outer');
  RemoveDir(Root);
end;

const
  InnerGroup = '0::/outer/inner'#10;

procedure TOsLinuxTests.CpuQuotaIsRoundedUp;
begin
  Same(1, QuotaOf('max 100000', '50000 100000'#10, InnerGroup), 'half a CPU');
  Same(1, QuotaOf('max 100000', '100000 100000', InnerGroup), 'one CPU');
  Same(2, QuotaOf('max 100000', '150000 100000', InnerGroup), 'one and a half');
  Same(4, QuotaOf('max 100000', '400000 100000', InnerGroup), 'four CPUs');
end;

procedure TOsLinuxTests.CpuQuotaIsTheLeastOfAllGroupsAroundTheProcess;
begin
  Same(2, QuotaOf('200000 100000', '400000 100000', InnerGroup), 'outer is less');
  Same(2, QuotaOf('200000 100000', 'max 100000', InnerGroup), 'only outer');
  Same(3, QuotaOf('300000 100000', '100000 100000', '0::/outer'#10), 'inner is another''s');
  Same(1, QuotaOf('300000 100000', '100000 100000',
    '12:cpu,cpuacct:/outer'#10'1:name=systemd:/'#10 + InnerGroup), 'version 1 beside version 2');
end;

procedure TOsLinuxTests.CpuQuotaIsUnlimitedWhereNothingSaysOtherwise;
begin
  Same(High(Cardinal), QuotaOf('max 100000', 'max 100000', InnerGroup), 'max');
  Same(High(Cardinal), QuotaOf('', '', InnerGroup), 'empty files');
  Same(High(Cardinal), QuotaOf('0 100000', '100000', InnerGroup), 'half a line');
  Same(High(Cardinal), QuotaOf('100000 0', '1 x', InnerGroup), 'no period');
  Same(High(Cardinal), QuotaOf('100000 100000', '100000 100000', ''), 'no group');
  Same(High(Cardinal), QuotaOf('100000 100000', '100000 100000', '0::/'#10), 'the root');
  Same(High(Cardinal), OsCpuQuotaIn('/nowhere', '/nowhere'), 'no such folder');
  AtLeast(1, OsCpuQuota, 'quota of this process');
end;

procedure TOsLinuxTests.ForkMarkReadsZeroInAChildOnly;
var
  Mark: PNativeUInt;
  Child: TPid;
  Status: Integer;
begin
  Mark := OsForkMark;
  AssertTrue('the system has such a mark', Mark <> nil);
  Same(1, Mark^, 'mark here');
  Child := FpFork;
  if Child = 0 then
    Do_SysCall(syscall_nr_exit_group, Mark^);
  FpWaitPid(Child, Status, 0);
  AssertTrue('child has ended', WIfExited(Status));
  Same(0, WExitStatus(Status), 'mark in a child');
  Same(1, Mark^, 'mark here after fork');
end;

// Returns the number of the first read that goes wrong, 0 if none.
function ReadsInASandbox(Range: PByte): Integer;
const
  ReadMemory = {$if defined(CPUX86_64)} 310 {$elseif defined(CPUAARCH64)} 270 {$else} 347 {$ifend};
var
  Word: UInt64;
  Index: Integer;
begin
  if not SystemRefuses(ReadMemory) then
    Exit(1);
  for Index := 1 to 8 do
    Range[OsGranule - 4 + Index] := Index;
  Word := 0;
  if not OsRead(NativeUInt(Range) + OsGranule - 3, @Word, 8) or (Word <> $0807060504030201) then
    Exit(2);
  if not OsRead(NativeUInt(Range) + 2 * OsGranule - 1, @Word, 1) then
    Exit(3);
  if OsRead(NativeUInt(Range) + 2 * OsGranule - 1, @Word, 2) then
    Exit(4);
  Result := 5 * Ord(OsRead(0, @Word, 8));
end;

function LooksInASandbox(Range: PByte): Integer;
begin
  if not SystemRefuses(syscall_nr_madvise) then
    Exit(1);
  if not OsCanRead(Range, 2 * OsGranule) then
    Exit(2);
  Result := 3 * Ord(OsCanRead(Range + OsGranule, 2 * OsGranule));
end;

// As in a process that has guarded no page before.
function GuardsInASandbox(Range: PByte): Integer;
begin
  Process.GuardMarks := 0;
  Process.GuardMappings := 0;
  if not SystemRefuses(syscall_nr_rt_sigprocmask) then
    Exit(1);
  if not OsGuard(Range, OsGranule) then
    Exit(2);
  if not OsUnguard(Range, OsGranule) then
    Exit(3);
  Range^ := 1; // ends the child if it is guarded still
  Result := 0;
end;

procedure ThreadExit(Value: Pointer); cdecl; external 'c' name 'pthread_exit';

var
  FailedCalls: Integer;

// Ends as every thread does: the run-time library releases the thread's variables, and later the
// thread library calls LaneMM. Here that call comes at once.
function EndWithACall(Argument: Pointer): PtrInt;
var
  Manager: TThreadManager;
  Sign: Byte;
begin
  GetThreadManager(Manager);
  Manager.ReleaseThreadVars;
  if not OsRead(1, @Sign, SizeOf(Sign)) then
    Inc(FailedCalls);
  ThreadExit(nil);
  Result := 0;
end;

var
  BlockedSignals: UInt64;
  HasRead: TAtomicWord;

procedure ReadBlockedSignals;
begin
  SystemCall(syscall_nr_rt_sigprocmask, 0, 0, NativeUInt(@BlockedSignals), 8, 0, 0);
  StoreRelease(HasRead, 1);
end;

procedure TOsLinuxTests.ThreadOfLaneMMTakesTheSignalsOfTheThreadLibraryAlone;
const
  KillAndStop = 1 shl 8 or 1 shl 18;
  OfLibrary = UInt64(3) shl 31;
begin
  HasRead := 0;
  if not OsThreadStart(ReadBlockedSignals) then
  begin
    AssertFalse('a thread can be started', Process.HasFastSlot);
    Exit; // as without assembler
  end;
  while LoadAcquire(HasRead) = 0 do
    ThreadSwitch;
  AssertTrue('blocked', BlockedSignals = not UInt64(KillAndStop or OfLibrary));
end;

procedure TOsLinuxTests.CallThatFailsAfterAThreadEndedHarmsNothing;
begin
  FailedCalls := 0;
  WaitForThreadTerminate(BeginThread(EndWithACall), 0);
  Same(1, FailedCalls, 'calls that failed');
end;

// Runs Work in a child process, with pages of which the first two are committed.
procedure TOsLinuxTests.RunInASandbox(Work: TPageWork);
var
  Range: PByte;
  Child: TPid;
  Status: Integer;
begin
  Range := OsReserve(RangeSize);
  AssertTrue('committed', OsCommit(Range, 2 * OsGranule));
  Child := FpFork;
  if Child = 0 then
    Do_SysCall(syscall_nr_exit_group, Work(Range));
  FpWaitPid(Child, Status, 0);
  AssertTrue('child has ended', WIfExited(Status));
  Same(0, WExitStatus(Status), 'step that went wrong');
  OsRelease(Range, RangeSize);
end;

procedure TOsLinuxTests.ReadWorksInASandboxThatRefusesTheSystemCall;
begin
  RunInASandbox(ReadsInASandbox);
end;

procedure TOsLinuxTests.PagesCanBeReadInASandboxThatRefusesToSay;
begin
  RunInASandbox(LooksInASandbox);
end;

procedure TOsLinuxTests.GuardEndsInASandboxThatRefusesToSayWhetherItHolds;
begin
  RunInASandbox(GuardsInASandbox);
end;

procedure TOsLinuxTests.CoreFilesHaveBlocksAndNoReservedAddresses;
const
  // Tests before may have left some gigabytes of free addresses.
  BlockSize = {$ifdef CPU64} 64 {$else} 8 {$endif} shl 20;
  MostBlocks = 1000;
var
  Blocks: array of Pointer;
  Arena: PArena;
  Index: NativeUInt;
begin
  Blocks := nil;
  repeat
    SetLength(Blocks, Length(Blocks) + 1);
    GetMem(Blocks[High(Blocks)], BlockSize);
    Arena := NewestArena;
  until (Arena^.Committed < Arena^.Reserved) or (Length(Blocks) = MostBlocks);
  AssertTrue('addresses are reserved', Arena^.Committed < Arena^.Reserved);
  AssertTrue('they are left out', MappingHasFlag(Arena^.Base + Arena^.Committed * SliceSize, 'dd'));
  AssertFalse('the last block is left out', MappingHasFlag(Arena^.Base, 'dd'));
  for Index := 0 to High(Blocks) do
  begin
    AssertFalse('a block is left out', MappingHasFlag(Blocks[Index], 'dd'));
    FreeMem(Blocks[Index]);
  end;
end;

initialization
  RegisterTest(TOsLinuxTests);
end.
