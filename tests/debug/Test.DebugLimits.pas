/// Tests of limits in debug mode.
unit Test.DebugLimits;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Classes, Test.Tools, LaneMM.ReportState;

type
  TDebugLimitsTests = class(TQuietTest)
  strict private
    KeptRules: TEventRules;
    Limit: NativeUInt;
    List: TList; // of blocks
    procedure LimitTo(Bytes: NativeUInt);
    function Reports: NativeUInt;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure LimitCountsInDebugMode;
    procedure QuarantineIsGivenBackBeforeARefusal;
    procedure BlocksThatWereNeverUsedAreNotDamaged;
    procedure LargeBlocksOneAfterTheOtherStayBelowALimit;
    procedure BlockShrinksWithoutMemory;
  end;

implementation

uses
  testregistry, LaneMM, LaneMM.Layout, LaneMM.Atomic, LaneMM.Backed, LaneMM.DebugState;

const
  Megabyte = NativeUInt(1) shl 20;

procedure TDebugLimitsTests.SetUp;
begin
  inherited SetUp;
  List := TList.Create;
  LaneMM_Trim;
  KeptRules := Report.Rules;
  LaneMM_Configure('event=limit:callback');
  ReturnNilIfGrowHeapFails := True;
end;

procedure TDebugLimitsTests.TearDown;
begin
  ReturnNilIfGrowHeapFails := False;
  LaneMM_Configure('limit=0,debug=0');
  FreeListed(List);
  List.Free;
  Report.Rules := KeptRules;
  inherited TearDown;
end;

function TDebugLimitsTests.Reports: NativeUInt;
begin
  Result := LoadAcquire(Report.Rules[evLimit].Count) - KeptRules[evLimit].Count;
end;

// Sets a limit of Bytes more than the heap holds now.
procedure TDebugLimitsTests.LimitTo(Bytes: NativeUInt);
begin
  Limit := BackedSlices * SliceSize + Bytes;
  LaneMM_SetMemoryLimit(Limit);
end;

// A freed block of that size keeps its addresses without a limit, as long as the quarantine does.
procedure TDebugLimitsTests.LargeBlocksOneAfterTheOtherStayBelowALimit;
var
  Time: Integer;
  Bytes: string;
begin
  Str(BackedSlices * SliceSize + 100 * Megabyte, Bytes);
  LaneMM_Configure(PAnsiChar('debug,limit:soft=' + Bytes));
  for Time := 1 to 5 do
    FreeMem(GetMem(60 * Megabyte));
  Same(0, Reports, 'reports');
  LaneMM_Configure('limit:soft=0');
end;

procedure TDebugLimitsTests.LimitCountsInDebugMode;
begin
  List.Capacity := 1 shl 21;
  LaneMM_EnterDebugMode;
  try
    LimitTo(32 * Megabyte);
    GetUntilRefused(List, 5000);
    AtMost(Limit, BackedSlices * SliceSize, 'backed');
    AtLeast(1, Reports, 'refusals');
    FreeListed(List);
  finally
    LaneMM_SetMemoryLimit(0);
    LaneMM_ExitDebugMode;
  end;
end;

procedure TDebugLimitsTests.QuarantineIsGivenBackBeforeARefusal;
var
  Index: Integer;
  P: Pointer;
begin
  LaneMM_EnterDebugMode;
  try
    for Index := 1 to 20 do
      List.Add(GetMem(Megabyte));
    FreeListed(List);
    AtLeast(12 * Megabyte div 4, Debug.Quarantine.Bytes, 'a quarter of the bytes in quarantine');
    LaneMM_Trim;
    LimitTo(16 * Megabyte);
    P := GetMem(24 * Megabyte);
    AssertTrue('got', P <> nil);
    Same(0, Reports, 'refusals');
    FreeMem(P);
  finally
    LaneMM_SetMemoryLimit(0);
    LaneMM_ExitDebugMode;
  end;
end;

procedure TDebugLimitsTests.BlockShrinksWithoutMemory;
const
  Sizes: array[0..1] of NativeUInt = (5000, 300000);
  Rest = 1000;
var
  Size, Refusals: NativeUInt;
  Normal, P: PByte;
begin
  List.Capacity := 1 shl 21;
  LaneMM_EnterDebugMode;
  try
    for Size in Sizes do
    begin
      GetMem(P, Size);
      GetMem(Normal, Size);
      FillPattern(P, Rest, Size);
      FillPattern(Normal, Rest, Size);
      LimitTo(16 * Megabyte);
      GetUntilRefused(List, Rest);
      Refusals := Reports;
      AssertTrue('shrinks', ReallocMem(P, Rest) <> nil);
      LaneMM_ExitDebugMode;
      try
        AssertTrue('shrinks outside of debug mode', ReallocMem(Normal, Rest) <> nil);
      finally
        LaneMM_EnterDebugMode;
      end;
      Same(Refusals, Reports, 'refusals');
      Same(Rest, MemSize(P), 'size');
      AssertTrue(HasPattern(P, Rest, Size) and HasPattern(Normal, Rest, Size));
      Same(0, LaneMM_CheckHeap, 'damaged blocks');
      FreeMem(P, Rest);
      FreeMem(Normal);
      FreeListed(List);
      LaneMM_SetMemoryLimit(0);
    end;
  finally
    LaneMM_SetMemoryLimit(0);
    LaneMM_ExitDebugMode;
  end;
end;

// A thread takes blocks out of a span by the batch: some of those given back were never used.
procedure TDebugLimitsTests.BlocksThatWereNeverUsedAreNotDamaged;
var
  Size: NativeUInt;
  Kind: TEventKind;
begin
  LaneMM_EnterDebugMode;
  try
    for Size := 1 to 200 do
      FreeMem(GetMem(Size * 50));
    LimitTo(16 * Megabyte);
    FreeMem(GetMem(Limit)); // too much, whatever other threads of the tests free meanwhile
    Same(1, Reports, 'refusals');
    for Kind := Low(TEventKind) to High(TEventKind) do
      if Kind <> evLimit then
        Same(KeptRules[Kind].Count, Report.Rules[Kind].Count, 'other reports');
  finally
    LaneMM_SetMemoryLimit(0);
    LaneMM_ExitDebugMode;
  end;
end;

initialization
  RegisterTest(TDebugLimitsTests);
end.
