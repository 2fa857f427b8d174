/// Tests of FastMM4's names: each name of its interface that works. Most share their routines with
/// those of FastMM5, which Test.FastMM5 tests.
unit Test.FastMM4;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM;

type
  TFastMM4Tests = class(TLaneTest)
  strict private
    Path: string;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure MemoryRoutinesWork;
    procedure DebugRoutinesMakeDebugBlocks;
    procedure ScanRaisesForDamage;
    procedure GroupsNest;
    procedure GroupsAreReported;
    procedure LogHasAName;
    procedure LogIsDeleted;
    procedure SummariesCount;
    procedure StateCountsBySize;
    procedure MapHasTheProgram;
    procedure RegisteredLeaksAreListed;
    procedure ContentsAreDetected;
    procedure WalkVisitsBlocks;
    procedure StateFileListsClasses;
    procedure VariablesAreSettings;
    procedure LaneMMIsInstalled;
  end;

implementation

uses
  SysUtils, Classes, testregistry, FastMM4;

var
  Reported: string;

procedure KeepReport(Kind: TLaneMM_EventKind; Text: PAnsiChar; Length: NativeUInt);
begin
  SetString(Reported, Text, Length);
end;

procedure TFastMM4Tests.SetUp;
begin
  LaneMM_Configure('event=all:callback');
  LaneMM_OnEvent(KeepReport);
  Path := GetTempDir + 'FastMM4-' + IntToStr(GetProcessID) + '.txt';
end;

procedure TFastMM4Tests.TearDown;
begin
  LaneMM_OnEvent(nil);
  LaneMM_Configure('event=all:file:stderr:callback');
  SetMMLogFileName;
  DeleteFile(Path);
  Reported := '';
end;

procedure TFastMM4Tests.MemoryRoutinesWork;
var
  P: Pointer;
begin
  P := FastGetMem(100);
  FillPattern(P, 100, 1);
  AssertTrue(FastReallocMem(P, 100000) = P);
  AssertTrue(HasPattern(P, 96, 1));
  Same(0, FastFreeMem(P), 'result');
  P := FastAllocMem(1000);
  AssertTrue(IsZero(P, 1000));
  FastFreeMem(P);
end;

procedure TFastMM4Tests.DebugRoutinesMakeDebugBlocks;
var
  P: Pointer;
begin
  P := DebugGetMem(33);
  Same(33, MemSize(P), 'size');
  P := DebugReallocMem(P, 1001);
  Same(1001, MemSize(P), 'size');
  Same(0, DebugFreeMem(P), 'result');
  P := DebugAllocMem(33);
  AssertTrue(IsZero(P, 33));
  DebugFreeMem(P);
end;

procedure TFastMM4Tests.ScanRaisesForDamage;
var
  P: PByte;
  IsFound: Boolean;
begin
  ScanMemoryPoolForCorruptions;
  P := DebugGetMem(10);
  P[10] := P[10] xor $FF;
  IsFound := False;
  try
    ScanMemoryPoolForCorruptions;
  except
    on EInvalidPointer do
      IsFound := True;
  end;
  P[10] := P[10] xor $FF;
  DebugFreeMem(P);
  AssertTrue(IsFound);
end;

procedure TFastMM4Tests.GroupsNest;
begin
  PushAllocationGroup(5);
  PushAllocationGroup(6);
  Same(6, GetCurrentAllocationGroup, 'group');
  PopAllocationGroup;
  Same(5, GetCurrentAllocationGroup, 'group');
  PopAllocationGroup;
  Same(0, GetCurrentAllocationGroup, 'group');
end;

procedure TFastMM4Tests.GroupsAreReported;
var
  P: Pointer;
begin
  PushAllocationGroup(815);
  P := DebugGetMem(4711);
  PopAllocationGroup;
  LogAllocatedBlocksToFile(815, 815);
  DebugFreeMem(P);
  Has('4,711', Reported);
end;

procedure TFastMM4Tests.LogHasAName;
var
  Found: array[0..1023] of AnsiChar;
begin
  SetMMLogFileName(PAnsiChar(AnsiString(Path)));
  LaneMM_EventLogPath(@Found, SizeOf(Found));
  AssertEquals(Path, string(PAnsiChar(@Found)));
end;

procedure TFastMM4Tests.LogIsDeleted;
var
  P: PByte;
begin
  SetMMLogFileName(PAnsiChar(AnsiString(Path)));
  LaneMM_Configure('event=all:file');
  P := DebugGetMem(10);
  P[10] := P[10] xor $FF;
  LaneMM_CheckBlock(P);
  DebugFreeMem(P);
  AssertTrue('written', FileExists(Path));
  DeleteEventLog;
  AssertFalse('deleted', FileExists(Path));
end;

procedure TFastMM4Tests.SummariesCount;
var
  Summary: TMemoryManagerUsageSummary;
begin
  GetMemoryManagerUsageSummary(Summary);
  AtLeast(1, Summary.AllocatedBytes, 'bytes in use');
  AtLeast(1, GetMemoryManagerUsageSummary.OverheadBytes, 'bytes of overhead');
  AtLeast(1, FastGetHeapStatus.TotalAllocated, 'bytes in use');
end;

procedure TFastMM4Tests.StateCountsBySize;
var
  Before, After: TMemoryManagerState;
  P, Q: Pointer;
begin
  GetMemoryManagerState(Before);
  GetMem(P, NativeInt(Before.SmallBlockTypeStates[NumSmallBlockTypes - 1].UseableBlockSize));
  GetMem(Q, 1000000);
  GetMemoryManagerState(After);
  FreeMem(P);
  FreeMem(Q);
  Same(8192, After.SmallBlockTypeStates[NumSmallBlockTypes - 1].UseableBlockSize, 'last size');
  Same(Before.SmallBlockTypeStates[NumSmallBlockTypes - 1].AllocatedBlockCount + 1,
    After.SmallBlockTypeStates[NumSmallBlockTypes - 1].AllocatedBlockCount, 'small blocks');
  Same(Before.AllocatedLargeBlockCount + 1, After.AllocatedLargeBlockCount, 'large blocks');
end;

procedure TFastMM4Tests.MapHasTheProgram;
var
  Map: ^TMemoryMap;
  Free, Index: Integer;
begin
  New(Map);
  GetMemoryMap(Map^);
  Free := 0;
  for Index := 0 to High(Map^) do
    Inc(Free, Ord(Map^[Index] = csUnallocated));
  Dispose(Map);
  AssertTrue((Free > 0) and (Free < Length(TMemoryMap)));
end;

procedure TFastMM4Tests.RegisteredLeaksAreListed;
var
  Before: Integer;
  P: Pointer;
begin
  Before := Length(GetRegisteredMemoryLeaks);
  GetMem(P, 10);
  AssertTrue(RegisterExpectedMemoryLeak(P));
  AssertTrue(RegisterExpectedMemoryLeak(TStringList));
  AssertTrue(RegisterExpectedMemoryLeak(NativeInt(50), 2));
  Same(Before + 3, Length(GetRegisteredMemoryLeaks), 'entries');
  AssertTrue(UnregisterExpectedMemoryLeak(P));
  AssertTrue(UnregisterExpectedMemoryLeak(TStringList));
  AssertTrue(UnregisterExpectedMemoryLeak(NativeInt(50), 2));
  Same(Before, Length(GetRegisteredMemoryLeaks), 'entries');
  FreeMem(P);
end;

procedure TFastMM4Tests.ContentsAreDetected;
var
  List: TStringList;
begin
  List := TStringList.Create;
  AssertTrue(DetectClassInstance(List) = TStringList);
  AssertTrue(DetectStringData(List, TStringList.InstanceSize) = stUnknown);
  List.Free;
end;

type
  TFind = record
    Address: Pointer;
    Count: Integer;
    Size: NativeInt;
  end;
  PFind = ^TFind;

procedure Visit(P: Pointer; BlockSize: NativeInt; UserData: Pointer);
begin
  if P <> PFind(UserData)^.Address then
    Exit;
  Inc(PFind(UserData)^.Count);
  PFind(UserData)^.Size := BlockSize;
end;

procedure TFastMM4Tests.WalkVisitsBlocks;
var
  Find: TFind;
begin
  Find := Default(TFind);
  Find.Address := DebugGetMem(33);
  WalkAllocatedBlocks(Visit, @Find);
  Same(1, Find.Count, 'visits');
  Same(33, Find.Size, 'size');
  DebugFreeMem(Find.Address);
  WalkAllocatedBlocks(Visit, @Find);
  Same(1, Find.Count, 'visits since');
end;

type
  TListedByFour = class
    Data: array[0..99] of Byte;
  end;

procedure TFastMM4Tests.StateFileListsClasses;
var
  Item: TListedByFour;
begin
  Item := TListedByFour.Create;
  AssertTrue(LogMemoryManagerStateToFile(Path, 'details'));
  Item.Free;
  Has('details', ReadText(Path));
  Has('TListedByFour x 1 (', ReadText(Path));
end;

procedure TFastMM4Tests.VariablesAreSettings;
var
  Before: Boolean;
begin
  Before := ReportMemoryLeaksOnShutdown;
  ReportMemoryLeaksOnShutdown := True;
  Same(1, LaneMM_Settings.Values[opLeaks], 'leaks');
  ReportMemoryLeaksOnShutdown := Before;
  FullDebugModeScanMemoryPoolBeforeEveryOperation := True;
  Same(1, LaneMM_Settings.Values[opCheck], 'check');
  FullDebugModeScanMemoryPoolBeforeEveryOperation := False;
  Same(0, LaneMM_Settings.Values[opCheck], 'check');
end;

procedure TFastMM4Tests.LaneMMIsInstalled;
begin
  AssertTrue(FastMM_GetInstallationState = mmisInstalled);
  AssertEquals('4.993', FastMMVersion);
end;

initialization
  RegisterTest(TFastMM4Tests);
end.
