/// Phases of work of all kinds, with rests between them, for as long as wanted: the resident memory
/// at the rests must not drift.
program Soak;

{$mode delphi}{$H+}{$pointermath on}

uses
  LaneMM, cthreads, SysUtils, StrUtils, Classes, Test.Tools, StressWork;

const
  Usage = 'Soak [--minutes=N] [--seed=N] [--csv=FILE]'#10
    + '  --minutes=N  how long (15)'#10
    + '  --seed=N     seed of all random numbers; printed, so that a run can be repeated'#10
    + '  --csv=FILE   writes a line per rest: seconds; resident, backed, used bytes'#10
    + 'At every sixth rest no block is in use. Exit code 1 when the median of the resident memory at'#10
    + 'these rests is in the last third of the time more than 5 % and 1 MB above that of the first'#10
    + 'third, at the others more than 15 % and 1 MB, or when a block was damaged.';
  KeptCount = 30000;     // blocks that live through many phases
  LargestKept = 2000;
  ReplacedPerPhase = 6000;
  ListLength = 400000;
  ThreadCount = 6;
  LargestGrown = 48 shl 20;
  RestMs = 6000;         // the purge thread looks every 400 ms, for idle threads every 4 s
  EmptyEvery = 6;
  FewestLows = 3 * EmptyEvery;
  // Where blocks that live long share spans with others, memory goes up and down by chance.
  DriftPercent: array[Boolean] of Integer = (15, 5);
  DriftBytes = 1 shl 20;

type
  TLow = record
    IsEmpty: Boolean;      // no block is in use
    Seconds: Integer;
    Resident, Backed, Used: NativeUInt;
  end;

var
  Kept: array[0..KeptCount - 1] of PByte;
  Sizes: array[0..KeptCount - 1] of NativeUInt;
  Lows: array of TLow = nil;
  Random: TGenerator;
  DamagedKept: Integer;
  StartMs: Int64;

// ---------------------------------------------------------------------------- phases

procedure ReplaceKept;
var
  Turn, Index: Integer;
begin
  for Turn := 1 to ReplacedPerPhase do
  begin
    Index := Random.Below(KeptCount);
    if (Kept[Index] <> nil) and not HasPattern(Kept[Index], Sizes[Index], Index) then
      Inc(DamagedKept);
    FreeMem(Kept[Index]);
    Sizes[Index] := Random.NextSize(LargestKept);
    GetMem(Kept[Index], Sizes[Index]);
    FillPattern(Kept[Index], Sizes[Index], Index);
  end;
end;

procedure FillKept;
var
  Turn: Integer;
begin
  for Turn := 1 to 10 do
    ReplaceKept;
end;

procedure FreeKept;
var
  Index: Integer;
begin
  for Index := 0 to KeptCount - 1 do
  begin
    FreeMem(Kept[Index]);
    Kept[Index] := nil;
  end;
end;

// A list of strings grows, and goes away.
procedure GrowList;
var
  List: TStringList;
  Index: Integer;
begin
  List := TStringList.Create;
  for Index := 1 to ListLength do
    List.Add(StringOfChar('x', Random.Below(100)) + IntToStr(Index));
  List.Free;
end;

// Threads come and go, resize blocks and pass them on.
procedure RunThreads;
var
  Ids: array[1..ThreadCount] of TThreadID;
  Index: Integer;
begin
  for Index := 1 to ThreadCount do
    Ids[Index] := BeginThread(WorkOneRound, Pointer(NativeUInt(Random.Next shr 8)));
  for Index := 1 to ThreadCount do
    WaitForThreadTerminate(Ids[Index], 0);
  EmptySlots;
end;

var
  Shared: TPointers;

function FreeShared(Argument: Pointer): PtrInt;
begin
  FreeEach(Shared, 1);
  Result := 0;
end;

// One thread takes all blocks, another one frees them.
procedure FreeAcross;
var
  Index: Integer;
begin
  SetLength(Shared, 200000);
  for Index := 0 to High(Shared) do
    GetMem(Shared[Index], Random.NextSize(1000));
  WaitForThreadTerminate(BeginThread(FreeShared), 0);
  Shared := nil;
end;

procedure GrowLarge;
var
  First, Second: PByte;
  Size: NativeUInt;
begin
  First := nil;
  Second := nil;
  Size := 40000 + Random.Below(100000);
  while Size < LargestGrown do
  begin
    ReallocMem(First, Size);
    First[Size - 1] := 1;
    FillChar(First^, Size div 2, 1);
    ReallocMem(Second, Size div 3);
    FillChar(Second^, Size div 3, 2);
    Inc(Size, Size div 2);
  end;
  ReallocMem(First, 100000);
  FreeMem(First);
  FreeMem(Second);
end;

const
  RegionBlocks = 20000;  // of each thread

type
  TFilling = record
    Region: TLaneMM_Region;
    Seed: Int64;
    Last: PByte;
  end;
  PFilling = ^TFilling;

// Fills a region in a scope; frees each third block.
function FillRegion(Argument: Pointer): PtrInt;
var
  Filling: PFilling;
  Sizes: TGenerator;
  Index: Integer;
begin
  Filling := Argument;
  Sizes.Start(Filling^.Seed);
  LaneMM_RegionEnter(Filling^.Region);
  for Index := 1 to RegionBlocks do
  begin
    GetMem(Filling^.Last, Sizes.NextSize(LargestKept));
    if Index mod 3 = 0 then
      FreeMem(Filling^.Last);
  end;
  GetMem(Filling^.Last, 100000);
  LaneMM_RegionLeave;
  Result := 0;
end;

// Threads fill a region, another thread frees some blocks; it is reset, filled again and freed.
procedure UseRegion;
var
  Ids: array[1..ThreadCount] of TThreadID;
  Fillings: array[1..ThreadCount] of TFilling;
  Region: TLaneMM_Region;
  Round, Index: Integer;
begin
  Region := LaneMM_RegionCreate('phase', 0);
  for Round := 1 to 3 do
  begin
    for Index := 1 to ThreadCount do
    begin
      Fillings[Index].Region := Region;
      Fillings[Index].Seed := Random.Next shr 8;
      Ids[Index] := BeginThread(FillRegion, @Fillings[Index]);
    end;
    for Index := 1 to ThreadCount do
      WaitForThreadTerminate(Ids[Index], 0);
    for Index := 1 to ThreadCount do
      FreeMem(Fillings[Index].Last);
    if Round < 3 then
      Inc(DamagedKept, Ord(not LaneMM_RegionReset(Region)));
  end;
  Inc(DamagedKept, Ord(not LaneMM_RegionFree(Region)));
end;

procedure WorkOnePhase;
begin
  case Random.Below(5) of
    0: GrowList;
    1: RunThreads;
    2: FreeAcross;
    3: UseRegion;
  else
    GrowLarge;
  end;
  ReplaceKept;
end;

// ---------------------------------------------------------------------------- rests

function Elapsed: Int64;
begin
  Result := Int64(GetTickCount64) - StartMs;
end;

procedure Rest;
const
  BytesPerSign = 1 shl 20;
var
  Low: TLow;
begin
  Low.IsEmpty := (Length(Lows) + 1) mod EmptyEvery = 0;
  if Low.IsEmpty then
    FreeKept;
  Sleep(RestMs);
  Low.Seconds := Elapsed div 1000;
  Low.Resident := ResidentBytes;
  Low.Used := UsedBytes;
  Low.Backed := LaneMM_HeapStatus.CommittedBytes;
  SetLength(Lows, Length(Lows) + 1);
  Lows[High(Lows)] := Low;
  WriteLn(Format('%5d s %8d KB resident, %8d KB backed, %6d KB used %s', [Low.Seconds,
    Low.Resident shr 10, Low.Backed shr 10, Low.Used shr 10, StringOfChar('#', Low.Resident div BytesPerSign)]));
  Flush(Output);
end;

// The median of the resident memory in one part of the lows that are empty, or are not.
function Median(IsEmpty: Boolean; Part, PartCount: Integer): Int64;
var
  Chosen, Values: TFPList;
  Index, Place: Integer;
begin
  Chosen := TFPList.Create;
  Values := TFPList.Create;
  for Index := 0 to High(Lows) do
    if Lows[Index].IsEmpty = IsEmpty then
      Chosen.Add(Pointer(Lows[Index].Resident));
  for Index := Chosen.Count * Part div PartCount to Chosen.Count * (Part + 1) div PartCount - 1 do
  begin
    Place := 0;
    while (Place < Values.Count) and (NativeUInt(Values[Place]) < NativeUInt(Chosen[Index])) do
      Inc(Place);
    Values.Insert(Place, Chosen[Index]);
  end;
  Result := Int64(NativeUInt(Values[Values.Count div 2]));
  Values.Free;
  Chosen.Free;
end;

procedure WriteCsv(const FileName: string);
var
  Lines: TStringList;
  Index: Integer;
begin
  Lines := TStringList.Create;
  Lines.Add('seconds,resident,backed,used');
  for Index := 0 to High(Lows) do
    Lines.Add(Format('%d,%d,%d,%d', [Lows[Index].Seconds, Lows[Index].Resident,
      Lows[Index].Backed, Lows[Index].Used]));
  Lines.SaveToFile(FileName);
  Lines.Free;
end;

// Compares the first third of the lows that are empty, or are not, with the last.
function IsSteady(IsEmpty: Boolean): Boolean;
var
  Early, Late: Int64;
begin
  Early := Median(IsEmpty, 0, 3);
  Late := Median(IsEmpty, 2, 3);
  WriteLn(Format('rests with %s: median resident memory %d KB in the first third, %d KB in the last',
    [IfThen(IsEmpty, 'no block', 'blocks'), Early shr 10, Late shr 10]));
  Result := Late - Early <= Early * DriftPercent[IsEmpty] div 100 + DriftBytes;
end;

// Counts the promises kept; returns whether all were.
function Judge: Boolean;
var
  Passed: Integer;
begin
  WriteLn(Length(Lows), ' rests');
  Passed := Ord(IsSteady(False)) + Ord(IsSteady(True)) + Ord(RefusedCount = 0)
    + Ord((DamagedCount = 0) and (DamagedKept = 0));
  WriteLn(Passed, ' passed, ', 4 - Passed, ' failed');
  Result := Passed = 4;
end;

var
  Index: Integer;
  Seed: Int64;
  Minutes: Integer;
begin
  if ParamStr(1) = '--help' then
  begin
    WriteLn(Usage);
    Halt(0);
  end;
  Minutes := StrToInt(Option('minutes', '15'));
  StartMs := GetTickCount64;
  Seed := StrToInt64(Option('seed', IntToStr(StartMs)));
  WriteLn('minutes ', Minutes, ', seed ', Seed);
  Random.Start(Seed);
  FillKept;
  while (Elapsed < Int64(Minutes) * 60000) or (Length(Lows) < FewestLows) do
  begin
    for Index := 0 to Random.Below(4) do
      WorkOnePhase;
    Rest;
    if Lows[High(Lows)].IsEmpty then
      FillKept;
  end;
  if Option('csv', '') <> '' then
    WriteCsv(Option('csv', ''));
  Halt(Ord(not Judge));
end.
