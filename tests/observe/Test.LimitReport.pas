/// Tests of LaneMM.LimitReport: what a report about a limit says.
unit Test.LimitReport;

{$mode delphi}{$H+}

interface

uses
  Test.Tools, LaneMM.ReportState;

type
  TLimitReportTests = class(TLaneTest)
  strict private
    KeptRules: TEventRules;
    procedure Has(const Part: string);
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure HardLimitIsReportedWithItsSizeAndTheRequest;
    procedure SoftLimitIsReportedWithItsSize;
    procedure ReserveIsReportedWhenItIsOpened;
    procedure ReportHasTheBacktraceOfTheRequest;
  end;

implementation

uses
  SysUtils, testregistry, LaneMM, LaneMM.Layout, LaneMM.Arena;

const
  Megabyte = NativeUInt(1) shl 20;

var
  Reported: string;

procedure Collect(Kind: TLaneMM_EventKind; Text: PAnsiChar; Length: NativeUInt);
begin
  if Kind = evLimit then
    Reported := Reported + Copy(string(Text), 1, Length);
end;

procedure TLimitReportTests.SetUp;
begin
  LaneMM_Trim;
  KeptRules := Report.Rules;
  Reported := '';
  LaneMM_Configure('event=limit:callback');
  LaneMM_OnEvent(Collect);
  ReturnNilIfGrowHeapFails := True;
end;

procedure TLimitReportTests.TearDown;
begin
  ReturnNilIfGrowHeapFails := False;
  LaneMM_Configure('limit=0,limit:soft=0,reserve=0');
  LaneMM_OnEvent(nil);
  Report.Rules := KeptRules;
end;

procedure TLimitReportTests.Has(const Part: string);
begin
  AssertTrue(Part + ' in ' + Reported, Pos(Part, Reported) > 0);
end;

// Grouped as reports write numbers.
function Grouped(Value: NativeUInt): string;
var
  Index: Integer;
begin
  Result := IntToStr(Value);
  for Index := Length(Result) - 3 downto 1 do
    if (Length(IntToStr(Value)) - Index) mod 3 = 0 then
      Insert(',', Result, Index + 1);
end;

procedure TLimitReportTests.HardLimitIsReportedWithItsSizeAndTheRequest;
var
  Limit: NativeUInt;
begin
  Limit := ArenaBackedSlices * SliceSize + 16 * Megabyte;
  LaneMM_SetMemoryLimit(Limit);
  AssertTrue('refused', GetMem(40 * Megabyte) = nil);
  Has(Grouped(40 * Megabyte));
  Has(Grouped(Limit));
end;

procedure TLimitReportTests.SoftLimitIsReportedWithItsSize;
var
  Limit: NativeUInt;
begin
  Limit := ArenaBackedSlices * SliceSize + 16 * Megabyte;
  LaneMM_SetSoftMemoryLimit(Limit);
  FreeMem(GetMem(20 * Megabyte));
  Has(Grouped(Limit));
end;

procedure TLimitReportTests.ReserveIsReportedWhenItIsOpened;
var
  Blocks: array[1..8] of Pointer;
  Index: Integer;
begin
  LaneMM_SetMemoryLimit(ArenaBackedSlices * SliceSize + 16 * Megabyte);
  LaneMM_SetReserve(3 * Megabyte);
  for Index := 1 to High(Blocks) do
    Blocks[Index] := GetMem(2 * Megabyte);
  Has(Grouped(3 * Megabyte));
  for Index := 1 to High(Blocks) do
    FreeMem(Blocks[Index]);
end;

procedure TLimitReportTests.ReportHasTheBacktraceOfTheRequest;
begin
  LaneMM_SetMemoryLimit(ArenaBackedSlices * SliceSize + 16 * Megabyte);
  AssertTrue('refused', GetMem(40 * Megabyte) = nil);
  Has('RunTests');
end;

initialization
  RegisterTest(TLimitReportTests);
end.
