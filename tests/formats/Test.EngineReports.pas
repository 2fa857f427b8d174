/// Tests of LaneMM.EngineReports: what reports about limits and corrupt spans say.
unit Test.EngineReports;

{$mode delphi}{$H+}

interface

uses
  Test.Tools, LaneMM.ReportState;

type
  TEngineReportsTests = class(TQuietTest)
  strict private
    KeptRules: TEventRules;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure HardLimitIsReportedWithItsSizeAndTheRequest;
    procedure SoftLimitIsReportedWithItsSize;
    procedure ReserveIsReportedWhenItIsOpened;
    procedure ReportHasTheBacktraceOfTheRequest;
    procedure ReportNamesWhatHoldsTheMemory;
    procedure SmallOverrunIsReportedWithItsBlockAndTheClass;
  end;

implementation

uses
  SysUtils, testregistry, Test.Repair, LaneMM, LaneMM.Layout, LaneMM.Types, LaneMM.Arena, LaneMM.Backed;

const
  Megabyte = NativeUInt(1) shl 20;

var
  Reported: string;

procedure Collect(Kind: TLaneMM_EventKind; Text: PAnsiChar; Length: NativeUInt);
begin
  if Kind in [evLimit, evCorruption] then
    Reported := Reported + Copy(string(Text), 1, Length);
end;

procedure TEngineReportsTests.SetUp;
begin
  inherited SetUp;
  LaneMM_Trim;
  KeptRules := Report.Rules;
  Reported := '';
  LaneMM_Configure('event=limit:callback,event=corruption:callback');
  LaneMM_OnEvent(Collect);
  ReturnNilIfGrowHeapFails := True;
end;

procedure TEngineReportsTests.TearDown;
begin
  ReturnNilIfGrowHeapFails := False;
  LaneMM_Configure('limit=0,limit:soft=0,reserve=0');
  LaneMM_OnEvent(nil);
  Report.Rules := KeptRules;
  inherited TearDown;
end;

// Grouped as reports write numbers.
function Grouped(Value: NativeUInt): string;
begin
  Result := Format('%.0n', [1.0 * Value]);
end;

procedure TEngineReportsTests.HardLimitIsReportedWithItsSizeAndTheRequest;
var
  Limit: NativeUInt;
begin
  Limit := BackedSlices * SliceSize + 16 * Megabyte;
  LaneMM_SetMemoryLimit(Limit);
  AssertTrue('refused', GetMem(40 * Megabyte) = nil);
  Has(Grouped(40 * Megabyte), Reported);
  Has(Grouped(Limit), Reported);
end;

procedure TEngineReportsTests.SoftLimitIsReportedWithItsSize;
var
  Limit: NativeUInt;
begin
  Limit := BackedSlices * SliceSize + 16 * Megabyte;
  LaneMM_SetSoftMemoryLimit(Limit);
  FreeMem(GetMem(20 * Megabyte));
  Has(Grouped(Limit), Reported);
end;

procedure TEngineReportsTests.ReserveIsReportedWhenItIsOpened;
var
  Blocks: array[1..8] of Pointer;
  Index: Integer;
begin
  LaneMM_SetMemoryLimit(BackedSlices * SliceSize + 16 * Megabyte);
  LaneMM_SetReserve(3 * Megabyte);
  for Index := 1 to High(Blocks) do
    Blocks[Index] := GetMem(2 * Megabyte);
  Has(Grouped(3 * Megabyte), Reported);
  for Index := 1 to High(Blocks) do
    FreeMem(Blocks[Index]);
end;

procedure TEngineReportsTests.ReportNamesWhatHoldsTheMemory;
var
  Holder: Pointer;
begin
  LaneMM_SetMemoryLimit(BackedSlices * SliceSize + 64 * Megabyte);
  Holder := GetMem(48 * Megabyte);
  AssertTrue('refused', GetMem(40 * Megabyte) = nil);
  FreeMem(Holder);
  Has('; most of it:', Reported);
  Has('  1 x ' + Grouped(48 * Megabyte) + '-byte block, ', Reported);
end;

procedure TEngineReportsTests.ReportHasTheBacktraceOfTheRequest;
begin
  LaneMM_SetMemoryLimit(BackedSlices * SliceSize + 16 * Megabyte);
  AssertTrue('refused', GetMem(40 * Megabyte) = nil);
  Has('RunTests', Reported);
end;

procedure TEngineReportsTests.SmallOverrunIsReportedWithItsBlockAndTheClass;
const
  Size = 512;
var
  Blocks: TPointers;
  Block: PByte;
  Last: Integer;
begin
  // Until a block begins where the block before it ends: then it is of the current span.
  SetLength(Blocks, 10000);
  Last := 0;
  Blocks[0] := GetMem(Size);
  repeat
    Inc(Last);
    Blocks[Last] := GetMem(Size);
  until (Blocks[Last] = Blocks[Last - 1] + Size)
    and (NativeUInt(Blocks[Last]) mod SliceSize <> 0);
  FreeMem(Blocks[Last]);
  PWord(Blocks[Last - 1] + Size)^ := 0; // as a string's end written past it
  Block := GetMem(Size);
  Has('Heap corruption', Reported);
  Has('512 bytes', Reported);
  Has(LowerCase(HexStr(Blocks[Last])), Reported);
  Has(LowerCase(HexStr(Blocks[Last - 1])), Reported);
  Has('00 00', Reported);
  Has('LANEMM=debug', Reported);
  Has('RunTests', Reported);
  FreeMem(Block);
  PBlock(Blocks[Last])^.Link := LinkOf(ArenaSpan(Blocks[Last]), EndOfList);
  SpanRepair(ArenaSpan(Blocks[Last]));
  Blocks[Last] := nil;
  FreeEach(Blocks, 1);
  AssertTrue('the program goes on', HeapWorks);
end;

initialization
  RegisterTest(TEngineReportsTests);
end.
