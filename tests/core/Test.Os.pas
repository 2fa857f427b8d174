/// Tests of LaneMM.Os: the contract that each system's include file has to keep.
unit Test.Os;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.Layout, LaneMM.Types;

type
  TOsTests = class(TLaneTest)
  strict private
    Word, Waiting, Woken: TAtomicWord;
    Slot: PHeap;
    Cpus: Cardinal;
    function CommittedRange(Size: NativeUInt): PByte;
    function CallCount(Kind: TOsCall): NativeUInt;
    procedure WaitOnce;
    procedure UseOwnSlot;
    procedure CountOnOneCpu;
    procedure WriteText(const FileName, Text: string);
    function QuotaOf(const Outer, Inner, Group: string): Cardinal;
  published
    procedure ReservedRangeIsAlignedToSlices;
    procedure ReserveOfMoreThanThereIsGivesNil;
    procedure CommittedRangeReadsAsZeros;
    procedure PurgedRangeReadsAsZerosAndStaysUsable;
    procedure PurgeOfLockedMemoryDoesNotClaimZeros;
    procedure PurgeGivesMemoryBack;
    procedure MovedPagesKeepTheirContents;
    procedure PagesOfSeveralMappingsAreMoved;
    procedure MoveLeavesZeros;
    procedure MoveOfUnusableMemoryChangesNothing;
    procedure ClockNeverGoesBack;
    procedure CpuCountFollowsTheAffinity;
    procedure CpuQuotaIsRoundedUp;
    procedure CpuQuotaIsTheLeastOfAllGroupsAroundTheProcess;
    procedure CpuQuotaIsUnlimitedWhereNothingSaysOtherwise;
    procedure WaitReturnsWhenTheWordIsAnother;
    procedure WakeWakesAWaiter;
    procedure ForkMarkReadsZeroInAChildOnly;
    procedure SharedPageIsTheSameForAll;
    procedure SharedPageIsNilWhereTheAddressIsTaken;
    procedure ReadOfMappedMemoryCopies;
    procedure ReadOfUnmappedMemoryFails;
    procedure CallThatFailsAfterAThreadEndedHarmsNothing;
    procedure ReadWorksInASandboxThatRefusesTheSystemCall;
    procedure MappingsAreVisitedInOrderWithTheirRights;
    procedure ErrorsAreWrittenWhole;
    procedure EachThreadHasItsOwnSlot;
    procedure EachCallIsCounted;
  end;

implementation

uses
  SysUtils, Classes, BaseUnix, Syscall, testregistry, LaneMM.Atomic, LaneMM.Os;

const
  RangeSize = 4 * SliceSize;
  Megabyte = 1 shl 20;

// Returns a range that the test frees with OsRelease.
function TOsTests.CommittedRange(Size: NativeUInt): PByte;
begin
  Result := OsReserve(Size);
  AssertTrue('reserved', Result <> nil);
  AssertTrue('committed', OsCommit(Result, Size));
end;

procedure TOsTests.ReservedRangeIsAlignedToSlices;
var
  Ranges: array[1..8] of Pointer;
  Index: Integer;
begin
  for Index := 1 to High(Ranges) do
  begin
    Ranges[Index] := OsReserve(Index * OsPageSize);
    AssertTrue('reserved', Ranges[Index] <> nil);
    Same(0, NativeUInt(Ranges[Index]) mod SliceSize, 'address modulo a slice');
  end;
  for Index := 1 to High(Ranges) do
    OsRelease(Ranges[Index], Index * OsPageSize);
end;

procedure TOsTests.ReserveOfMoreThanThereIsGivesNil;
const
  TopPage = High(NativeUInt) - OsPageSize + 1;
begin
  AssertTrue('half of all', OsReserve(NativeUInt(1) shl (SizeOf(Pointer) * 8 - 1)) = nil);
  AssertTrue('nearly all', OsReserve(TopPage - SliceSize) = nil);
  AssertTrue('all', OsReserve(TopPage) = nil);
end;

procedure TOsTests.CommittedRangeReadsAsZeros;
var
  Range: PByte;
begin
  Range := CommittedRange(RangeSize);
  AssertTrue('zero', IsZero(Range, RangeSize));
  FillPattern(Range, RangeSize, 1);
  AssertTrue('usable', HasPattern(Range, RangeSize, 1));
  OsRelease(Range, RangeSize);
end;

procedure TOsTests.PurgedRangeReadsAsZerosAndStaysUsable;
var
  Range: PByte;
begin
  Range := CommittedRange(RangeSize);
  FillPattern(Range, RangeSize, 1);
  AssertTrue('purged', OsPurge(Range + SliceSize, SliceSize));
  AssertTrue('zero', IsZero(Range + SliceSize, SliceSize));
  AssertTrue('before it', HasPattern(Range, SliceSize, 1));
  FillPattern(Range, RangeSize, 2);
  AssertTrue('usable', HasPattern(Range, RangeSize, 2));
  OsRelease(Range, RangeSize);
end;

procedure TOsTests.PurgeOfLockedMemoryDoesNotClaimZeros;
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

procedure TOsTests.PurgeGivesMemoryBack;
var
  Range: PByte;
  Before: NativeUInt;
begin
  Range := CommittedRange(64 * Megabyte);
  FillChar(Range^, 64 * Megabyte, 1);
  Before := ResidentBytes;
  AssertTrue('purged', OsPurge(Range, 64 * Megabyte));
  AtLeast(60 * Megabyte, Int64(Before) - Int64(ResidentBytes), 'bytes given back');
  OsRelease(Range, 64 * Megabyte);
end;

procedure TOsTests.MovedPagesKeepTheirContents;
var
  Source, Target: PByte;
begin
  Source := CommittedRange(RangeSize);
  Target := CommittedRange(RangeSize);
  FillPattern(Source, RangeSize, 1);
  FillPattern(Target, RangeSize, 2);
  if OsMove(Source, Target, RangeSize) = RangeSize then
    AssertTrue('moved', HasPattern(Target, RangeSize, 1))
  else
    AssertTrue('unchanged', HasPattern(Source, RangeSize, 1) and HasPattern(Target, RangeSize, 2));
  OsRelease(Source, RangeSize);
  OsRelease(Target, RangeSize);
end;

procedure TOsTests.PagesOfSeveralMappingsAreMoved;
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

procedure TOsTests.MoveLeavesZeros;
var
  Source, Target: PByte;
begin
  Source := CommittedRange(RangeSize);
  Target := CommittedRange(RangeSize);
  FillPattern(Source, RangeSize, 1);
  if OsMove(Source, Target, RangeSize) = RangeSize then
  begin
    AssertTrue('zero', IsZero(Source, RangeSize));
    FillPattern(Source, RangeSize, 3);
    AssertTrue('usable and apart', HasPattern(Target, RangeSize, 1));
  end;
  OsRelease(Source, RangeSize);
  OsRelease(Target, RangeSize);
end;

procedure TOsTests.MoveOfUnusableMemoryChangesNothing;
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

procedure TOsTests.ClockNeverGoesBack;
var
  Last, Now: Cardinal;
  Index, Backward: Integer;
begin
  Backward := 0;
  Last := OsNowMs;
  for Index := 1 to 10000 do
  begin
    Now := OsNowMs;
    if Integer(Now - Last) < 0 then
      Inc(Backward);
    Last := Now;
  end;
  Same(0, Backward, 'steps back');
end;

procedure TOsTests.CountOnOneCpu;
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

procedure TOsTests.CpuCountFollowsTheAffinity;
begin
  AtLeast(1, OsCpuCount, 'CPUs of the process');
  InThread(CountOnOneCpu);
  Same(1, Cpus, 'CPUs of a thread that is bound to one');
end;

procedure TOsTests.WriteText(const FileName, Text: string);
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
function TOsTests.QuotaOf(const Outer, Inner, Group: string): Cardinal;
var
  Root: string;
begin
  Root := ExtractFilePath(ParamStr(0)) + 'groups';
  ForceDirectories(Root + '/outer/inner');
  WriteText(Root + '/outer/cpu.max', Outer);
  WriteText(Root + '/outer/inner/cpu.max', Inner);
  WriteText(Root + '/group', Group);
  Result := OsCpuQuotaIn(PAnsiChar(Root), PAnsiChar(Root + '/group'));
end;

const
  InnerGroup = '0::/outer/inner'#10;

procedure TOsTests.CpuQuotaIsRoundedUp;
begin
  Same(1, QuotaOf('max 100000', '50000 100000'#10, InnerGroup), 'half a CPU');
  Same(1, QuotaOf('max 100000', '100000 100000', InnerGroup), 'one CPU');
  Same(2, QuotaOf('max 100000', '150000 100000', InnerGroup), 'one and a half');
  Same(4, QuotaOf('max 100000', '400000 100000', InnerGroup), 'four CPUs');
end;

procedure TOsTests.CpuQuotaIsTheLeastOfAllGroupsAroundTheProcess;
begin
  Same(2, QuotaOf('200000 100000', '400000 100000', InnerGroup), 'outer is less');
  Same(2, QuotaOf('200000 100000', 'max 100000', InnerGroup), 'only outer');
  Same(3, QuotaOf('300000 100000', '100000 100000', '0::/outer'#10), 'inner is another''s');
  Same(1, QuotaOf('300000 100000', '100000 100000',
    '12:cpu,cpuacct:/outer'#10'1:name=systemd:/'#10 + InnerGroup), 'version 1 beside version 2');
end;

procedure TOsTests.CpuQuotaIsUnlimitedWhereNothingSaysOtherwise;
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

procedure TOsTests.WaitReturnsWhenTheWordIsAnother;
begin
  Word := 1;
  OsWait(Word, 2);
  Same(1, Word, 'word');
end;

procedure TOsTests.WaitOnce;
begin
  StoreRelease(Waiting, 1);
  while LoadAcquire(Word) = 0 do
    OsWait(Word, 0);
  StoreRelease(Woken, 1);
end;

procedure TOsTests.WakeWakesAWaiter;
var
  Worker: TWorker;
begin
  Word := 0;
  Waiting := 0;
  Woken := 0;
  Worker := TWorker.Create(WaitOnce, False);
  while LoadAcquire(Waiting) = 0 do
    ThreadSwitch;
  StoreRelease(Word, 1);
  while LoadAcquire(Woken) = 0 do
    OsWake(Word);
  EndThread(Worker);
  Same(1, Woken, 'threads woken');
end;

procedure TOsTests.ForkMarkReadsZeroInAChildOnly;
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

procedure TOsTests.SharedPageIsTheSameForAll;
var
  Place, First, Second: Pointer;
  IsNew: Boolean;
begin
  Place := OsReserve(SliceSize);
  OsRelease(Place, SliceSize);
  First := OsSharedPage(NativeUInt(Place), IsNew);
  AssertTrue('at the address', First = Place);
  AssertTrue('made now', IsNew);
  AssertTrue('zero', IsZero(First, OsPageSize));
  Second := OsSharedPage(NativeUInt(Place), IsNew);
  AssertTrue('the same', Second = First);
  AssertFalse('was there', IsNew);
  OsRelease(Place, OsPageSize);
end;

procedure TOsTests.SharedPageIsNilWhereTheAddressIsTaken;
var
  Place: Pointer;
  IsNew: Boolean;
begin
  Place := OsReserve(SliceSize);
  AssertTrue('nil', OsSharedPage(NativeUInt(Place), IsNew) = nil);
  AssertFalse('not made', IsNew);
  OsRelease(Place, SliceSize);
end;

procedure TOsTests.ReadOfMappedMemoryCopies;
var
  Source, Target: UInt64;
begin
  Source := TestSeed;
  Target := 0;
  AssertTrue('readable', OsRead(NativeUInt(@Source), @Target, SizeOf(Target)));
  Same(Source, Target, 'copy');
end;

procedure TOsTests.ReadOfUnmappedMemoryFails;
var
  Range: PByte;
  Target: array[0..1] of UInt64;
begin
  Range := OsReserve(RangeSize);
  AssertTrue('committed', OsCommit(Range, OsPageSize));
  AssertFalse('nil', OsRead(0, @Target, SizeOf(Target)));
  AssertFalse('reserved', OsRead(NativeUInt(Range) + OsPageSize, @Target, SizeOf(Target)));
  AssertFalse('half of it', OsRead(NativeUInt(Range) + OsPageSize - 8, @Target, SizeOf(Target)));
  AssertTrue('committed part', OsRead(NativeUInt(Range) + OsPageSize - 8, @Target, 8));
  OsRelease(Range, RangeSize);
end;

// From now on the system refuses a call of this process. False if it cannot.
function Refuse(Call: Cardinal): Boolean;
const
  NoNewPrivileges = 38;
  SetSeccomp = 22;
  FilterMode = 2;
  Load = $20;          // the number of the call
  JumpIfEqual = $15;
  Return = $06;
  NotPermitted = $00050001;
  Allowed = $7FFF0000;
type
  TInstruction = record
    Code: System.Word;
    IfTrue, IfFalse: Byte;
    Value: Cardinal;
  end;
var
  Filter: array[0..3] of TInstruction;
  Head: record
    Length: NativeUInt;
    First: Pointer;
  end;
begin
  FillChar(Filter, SizeOf(Filter), 0);
  Filter[0].Code := Load;
  Filter[1].Code := JumpIfEqual;
  Filter[1].Value := Call;
  Filter[1].IfFalse := 1;
  Filter[2].Code := Return;
  Filter[2].Value := NotPermitted;
  Filter[3].Code := Return;
  Filter[3].Value := Allowed;
  Head.Length := Length(Filter);
  Head.First := @Filter;
  Result := (Do_SysCall(syscall_nr_prctl, NoNewPrivileges, 1, 0, 0, 0) = 0)
    and (Do_SysCall(syscall_nr_prctl, SetSeccomp, FilterMode, TSysParam(@Head)) = 0);
end;

// Returns the number of the first read that goes wrong, 0 if none.
function ReadsInASandbox(Range: PByte): Integer;
const
  ReadMemory = {$if defined(CPUX86_64)} 310 {$elseif defined(CPUAARCH64)} 270 {$else} 347 {$ifend};
var
  Word: UInt64;
begin
  if not Refuse(ReadMemory) then
    Exit(1);
  Word := 0;
  if not OsRead(NativeUInt(Range) + OsPageSize - 3, @Word, 8) or (Word <> $0807060504030201) then
    Exit(2);
  if not OsRead(NativeUInt(Range) + 2 * OsPageSize - 1, @Word, 1) then
    Exit(3);
  if OsRead(NativeUInt(Range) + 2 * OsPageSize - 1, @Word, 2) then
    Exit(4);
  Result := 5 * Ord(OsRead(0, @Word, 8));
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

procedure TOsTests.CallThatFailsAfterAThreadEndedHarmsNothing;
begin
  FailedCalls := 0;
  WaitForThreadTerminate(BeginThread(EndWithACall), 0);
  Same(1, FailedCalls, 'calls that failed');
end;

procedure TOsTests.ReadWorksInASandboxThatRefusesTheSystemCall;
var
  Range: PByte;
  Child: TPid;
  Status, Index: Integer;
begin
  Range := OsReserve(RangeSize);
  AssertTrue('committed', OsCommit(Range, 2 * OsPageSize));
  for Index := 1 to 8 do
    Range[OsPageSize - 4 + Index] := Index;
  Child := FpFork;
  if Child = 0 then
    Do_SysCall(syscall_nr_exit_group, ReadsInASandbox(Range));
  FpWaitPid(Child, Status, 0);
  AssertTrue('child has ended', WIfExited(Status));
  Same(0, WExitStatus(Status), 'read that went wrong');
  OsRelease(Range, RangeSize);
end;

type
  TMappingsSeen = record
    Count, Disorder: Integer;
    Last, Code, Data: NativeUInt;
    HasCode, HasData: Boolean;
  end;
  PMappingsSeen = ^TMappingsSeen;

procedure SeeMapping(const Mapping: TOsMapping; Context: Pointer);
var
  Seen: PMappingsSeen;
begin
  Seen := Context;
  Inc(Seen^.Count);
  if (Mapping.First < Seen^.Last) or (Mapping.Limit <= Mapping.First) then
    Inc(Seen^.Disorder);
  Seen^.Last := Mapping.Limit;
  if (Seen^.Code >= Mapping.First) and (Seen^.Code < Mapping.Limit) then
    Seen^.HasCode := Mapping.IsReadable and Mapping.IsCode and (Mapping.Path[0] = '/');
  if (Seen^.Data >= Mapping.First) and (Seen^.Data < Mapping.Limit) then
    Seen^.HasData := Mapping.IsReadable and Mapping.IsWritable and not Mapping.IsCode;
end;

procedure TOsTests.MappingsAreVisitedInOrderWithTheirRights;
var
  Seen: TMappingsSeen;
begin
  Seen := Default(TMappingsSeen);
  Seen.Code := NativeUInt(@SeeMapping);
  Seen.Data := NativeUInt(@Seen);
  OsVisitMappings(SeeMapping, @Seen);
  AtLeast(5, Seen.Count, 'mappings');
  Same(0, Seen.Disorder, 'mappings out of order');
  AssertTrue('code', Seen.HasCode);
  AssertTrue('stack', Seen.HasData);
end;

procedure TOsTests.ErrorsAreWrittenWhole;
var
  Pipe: TFilDes;
  Saved: Integer;
  Text, Found: string[100];
begin
  Text := 'some words of an error message'#10;
  AssertEquals('pipe', 0, FpPipe(Pipe));
  Saved := FpDup(StdErrorHandle);
  FpDup2(Pipe[1], StdErrorHandle);
  OsWriteError(@Text[1], Length(Text));
  FpDup2(Saved, StdErrorHandle);
  FpClose(Saved);
  FpClose(Pipe[1]);
  SetLength(Found, FpRead(Pipe[0], @Found[1], 100));
  FpClose(Pipe[0]);
  AssertEquals('text', Text, Found);
end;

procedure TOsTests.UseOwnSlot;
var
  Mine: PHeap;
begin
  Mine := OsThreadHeap;
  // An address that is only compared, never used.
  OsSetThreadHeap(@Word);
  Slot := OsThreadHeap;
  OsSetThreadHeap(Mine);
end;

procedure TOsTests.EachThreadHasItsOwnSlot;
var
  Mine: PHeap;
begin
  Mine := OsThreadHeap;
  InThread(UseOwnSlot);
  AssertTrue('set in a thread', Slot = @Word);
  AssertTrue('unchanged here', OsThreadHeap = Mine);
end;

function TOsTests.CallCount(Kind: TOsCall): NativeUInt;
begin
  Result := LoadAcquire(Process.OsCalls[Kind]);
end;

procedure TOsTests.EachCallIsCounted;
var
  Before: array[TOsCall] of NativeUInt;
  Kind: TOsCall;
  Range: PByte;
begin
  for Kind := Low(TOsCall) to High(TOsCall) do
    Before[Kind] := CallCount(Kind);
  Range := OsReserve(2 * SliceSize);
  OsCommit(Range, 2 * SliceSize);
  OsUseHugePages(Range, 2 * SliceSize);
  OsMove(Range, Range + SliceSize, SliceSize);
  OsPurge(Range, SliceSize);
  OsRelease(Range, 2 * SliceSize);
  OsWait(Word, Word + 1);
  OsWake(Word);
  OsNowMs;
  // At least: LaneMM may have a thread of its own that gives memory back.
  for Kind := Low(TOsCall) to High(TOsCall) do
    AtLeast(Before[Kind] + 1, CallCount(Kind), 'count of call ' + Chr(Ord('0') + Ord(Kind)));
end;

initialization
  RegisterTest(TOsTests);
end.
