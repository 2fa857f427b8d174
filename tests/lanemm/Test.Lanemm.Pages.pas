/// Tests of TargetPages: what lanemm reads of a process, and how often.
unit Test.Lanemm.Pages;

{$mode delphi}{$H+}
{$pointermath on}

interface

uses
  fpcunit, Targets, TargetPages;

type
  /// Memory in which each byte is the low one of its page number; counts how often it is read.
  TCountedTarget = class(TTarget)
    /// Calls of Read.
    Reads: Integer;
    /// The first address that cannot be read.
    Limit: UInt64;
    function Read(Address: UInt64; Buffer: Pointer; Size: NativeUInt): NativeUInt; override;
    function Name: string; override;
  end;

  /// Copies of pages, and pages that were never touched.
  TPageTests = class(TTestCase)
  private
    Memory: PByte;
    Target: TTarget;
    Pages: TTargetPages;
    procedure OpenCounted(Limit: UInt64);
    procedure OpenProcess;
    function Resident: Integer;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure BlocksOfAPageAreOneRead;
    procedure ABlockInTwoPagesIsWhole;
    procedure WhatIsReadableOfAPageIsRead;
    procedure PagesNeverTouchedAreNotRead;
    procedure PagesNeverTouchedAreZeros;
    procedure TerabytesNeverTouchedAreOneStep;
  end;

implementation

uses
  SysUtils, BaseUnix, SysCall, testregistry;

const
  MemoryPages = 4096;
  TouchedPages: array[0..2] of Integer = (0, 700, 701);
  Value = $5A;

function TCountedTarget.Read(Address: UInt64; Buffer: Pointer; Size: NativeUInt): NativeUInt;
begin
  Inc(Reads);
  Result := 0;
  while (Result < Size) and (Address + Result < Limit) do
  begin
    PByte(Buffer)[Result] := Byte((Address + Result) div PageBytes);
    Inc(Result);
  end;
end;

function TCountedTarget.Name: string;
begin
  Result := 'a counted target';
end;

// ---------------------------------------------------------------------------- TPageTests

// Huge pages, which some systems use everywhere, would back what is not touched.
procedure UseSmallPages(First: Pointer; Bytes: NativeUInt);
const
  NoHugePages = 15;
begin
  Do_SysCall(syscall_nr_madvise, TSysParam(First), TSysParam(Bytes), NoHugePages);
end;

procedure TPageTests.SetUp;
var
  Page: Integer;
begin
  Memory := fpMmap(nil, MemoryPages * PageBytes, PROT_READ or PROT_WRITE,
    MAP_PRIVATE or MAP_ANONYMOUS, -1, 0);
  Check(Memory <> PByte(-1), 'memory');
  UseSmallPages(Memory, MemoryPages * PageBytes);
  for Page in TouchedPages do
    FillChar(Memory[Page * PageBytes], PageBytes, Value);
end;

procedure TPageTests.TearDown;
begin
  FreeAndNil(Pages);
  FreeAndNil(Target);
  fpMunmap(Memory, MemoryPages * PageBytes);
end;

// Opens memory that is counted, up to Limit.
procedure TPageTests.OpenCounted(Limit: UInt64);
begin
  Target := TCountedTarget.Create;
  TCountedTarget(Target).Limit := Limit;
  Pages := TTargetPages.Create(Target);
end;

// Opens the memory of this process.
procedure TPageTests.OpenProcess;
begin
  Target := TProcessTarget.Create(GetProcessID);
  Pages := TTargetPages.Create(Target);
end;

// Returns the number of pages of Memory that the system has entered in the page tables.
function TPageTests.Resident: Integer;
var
  States: array[0..MemoryPages - 1] of Byte;
  State: Byte;
begin
  CheckEquals(0, Do_SysCall(syscall_nr_mincore, TSysParam(Memory), MemoryPages * PageBytes,
    TSysParam(@States)), 'mincore');
  Result := 0;
  for State in States do
    Inc(Result, State and 1);
end;

procedure TPageTests.BlocksOfAPageAreOneRead;
const
  BlockBytes = 64;
  Blocks = 1000;
var
  Block: array[0..BlockBytes - 1] of Byte;
  Turn, Index: Integer;
begin
  OpenCounted(High(UInt64));
  for Turn := 1 to 3 do
    for Index := 0 to Blocks - 1 do
    begin
      CheckEquals(BlockBytes, Pages.Read(PageBytes + Index * BlockBytes, @Block, BlockBytes));
      CheckEquals(1 + Index * BlockBytes div PageBytes, Block[BlockBytes - 1], 'its contents');
    end;
  CheckEquals((Blocks * BlockBytes + PageBytes - 1) div PageBytes, TCountedTarget(Target).Reads, 'reads');
end;

procedure TPageTests.ABlockInTwoPagesIsWhole;
const
  Before = 100;
var
  Block: array[0..2 * Before - 1] of Byte;
begin
  OpenCounted(High(UInt64));
  CheckEquals(SizeOf(Block), Pages.Read(8 * PageBytes - Before, @Block, SizeOf(Block)));
  CheckEquals(7, Block[Before - 1], 'the end of the first');
  CheckEquals(8, Block[Before], 'the beginning of the second');
  CheckEquals(SizeOf(Block),
    Pages.Read(UInt64(MostCopies + 8) * PageBytes - Before, @Block, SizeOf(Block)));
  CheckEquals((MostCopies + 7) mod 256, Block[0], 'another page in its place');
end;

procedure TPageTests.WhatIsReadableOfAPageIsRead;
const
  Limit = 5 * PageBytes + 100;
var
  Block: array[0..199] of Byte;
begin
  OpenCounted(Limit);
  CheckEquals(150, Pages.Read(5 * PageBytes - 50, @Block, SizeOf(Block)));
  CheckEquals(0, Pages.Read(Limit, @Block, SizeOf(Block)));
end;

procedure TPageTests.PagesNeverTouchedAreNotRead;
var
  Portion: array[0..LeastSparse - 1] of Byte;
  Got, Sum: NativeUInt;
  Address, Limit: UInt64;
begin
  OpenProcess;
  Address := UInt64(Memory);
  Limit := Address + (MemoryPages - 8) * PageBytes; // whole portions
  Sum := 0;
  while Address < Limit do
  begin
    Got := Pages.Read(Address, @Portion, LeastSparse);
    if Got > 0 then
      CheckEquals(Value, Portion[Got - 1], 'contents of a touched page');
    Inc(Sum, Got);
    Inc(Address, Got);
    if Got < LeastSparse then
      Inc(Address, PageBytes);
  end;
  CheckEquals(Length(TouchedPages) * PageBytes, Sum, 'bytes read');
  CheckEquals(Length(TouchedPages), Resident, 'pages in the page tables');
end;

procedure TPageTests.PagesNeverTouchedAreZeros;
var
  Copy: array of Byte;
  Each: Byte;
  Sum: NativeUInt;
begin
  OpenProcess;
  SetLength(Copy, MemoryPages * PageBytes);
  FillChar(Copy[0], Length(Copy), $FF);
  Check(Pages.ReadAll(UInt64(Memory), @Copy[0], Length(Copy)), 'it is read');
  Sum := 0;
  for Each in Copy do
    Inc(Sum, Each);
  CheckEquals(Value * Length(TouchedPages) * PageBytes, Sum, 'sum of all bytes');
  CheckEquals(Length(TouchedPages), Resident, 'pages in the page tables');
end;

// Each step is a page that was touched, or an end, however much lies between: 1 TB as the shadow of a
// sanitizer has.
procedure TPageTests.TerabytesNeverTouchedAreOneStep;
const
  NoReserve = $4000;
  Bytes = UInt64(1) shl 40;
  Offsets: array[0..3] of UInt64 = (0, UInt64(1) shl 33 + PageBytes, UInt64(1) shl 39, Bytes);
var
  Shadow: PByte;
  Address, Offset: UInt64;
begin
  Shadow := fpMmap(nil, Bytes, PROT_READ or PROT_WRITE,
    MAP_PRIVATE or MAP_ANONYMOUS or NoReserve, -1, 0);
  if Pointer(Shadow) = MAP_FAILED then
    Ignore('no addresses');
  UseSmallPages(Shadow, Bytes);
  for Offset in Offsets do
    if Offset < Bytes then
      Shadow[Offset] := Value;
  OpenProcess;
  Address := UInt64(Shadow);
  for Offset in Offsets do
  begin
    Address := Pages.NextTouched(Address, UInt64(Shadow) + Bytes);
    CheckEquals(Int64(Offset), Int64(Address - UInt64(Shadow)), 'next');
    Inc(Address, PageBytes);
  end;
  fpMunmap(Shadow, Bytes);
end;

initialization
  RegisterTest(TPageTests);
end.
