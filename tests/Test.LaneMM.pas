/// Tests of LaneMM: every entry of the installed memory manager, and what a program sees of it.
unit Test.LaneMM;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM;

type
  TLaneMMTests = class(TQuietTest)
  strict private
    Manager: TMemoryManager;
    Before, After: TLaneMM_HeapStatus;
    Kept: Pointer;
    procedure FailedResizeKeeps(Size: NativeUInt);
    procedure DirtyThenZero(Size: NativeUInt);
    procedure Keep;
    procedure UseRecords;
    procedure UseStrings;
    procedure StartCounting;
    procedure StopCounting(FinalBytes: NativeUInt);
  protected
    procedure SetUp; override;
  published
    procedure EveryEntryIsSet;
    procedure GetMemOfZeroGivesABlockOfItsOwn;
    procedure GetMemOfTooMuchRaisesOutOfMemory;
    procedure GetMemOfAnySizeGivesABlockOrRaises;
    procedure GetMemGivesNilWhereThatIsWanted;
    procedure AllocMemZeroesAllThatIsUsable;
    procedure AllocMemOfZeroGivesABlock;
    procedure AllocMemOfTooMuchRaisesOutOfMemory;
    procedure FreeMemReturnsTheUsableSize;
    procedure FreeMemOfNilDoesNothing;
    procedure FreeMemWithASizeFreesWhateverTheSize;
    procedure ReallocMemOfNilGetsABlock;
    procedure ReallocMemToZeroFrees;
    procedure ReallocMemOfNilToZeroIsNil;
    procedure ReallocMemReturnsThePointer;
    procedure FailedReallocMemKeepsTheBlock;
    procedure FailedReallocMemFreesTheBlockWhereNilIsWanted;
    procedure MemSizeOfNilIsZero;
    procedure FreedBlockComesBackAsItWas;
    procedure FpcHeapStatusIsExactForTheWholeProcess;
    procedure FpcHeapStatusAddsUp;
    procedure DelphiHeapStatusSaturates;
    procedure NewAndDisposeBalance;
    procedure GetMemoryAndFreeMemoryBalance;
    procedure StringsAndObjectsBalance;
    procedure AppendingToAnAnsiStringMovesRarely;
    procedure AppendingToAUnicodeStringMovesRarely;
    procedure AppendingToAnArrayMovesRarely;
    procedure AppendingToAListMovesRarely;
    procedure MillionSmallBlocksCostFewSystemCalls;
    procedure ReusedBlocksCostNoMemoryCalls;
  end;

implementation

uses
  SysUtils, Classes, Math, testregistry, LaneMM.Layout, LaneMM.Os;

const
  Megabyte = 1 shl 20;
  // More than any address space of today can hold.
  ImpossibleSizes: array[0..{$ifdef CPU64} 6 {$else} 3 {$endif}] of NativeUInt = (
    {$ifdef CPU64} NativeUInt(1) shl 50, NativeUInt(1) shl 62, High(NativeUInt) shr 1, {$endif}
    Impossible, High(NativeUInt) - 65536, High(NativeUInt) - 15, High(NativeUInt));

procedure TLaneMMTests.SetUp;
begin
  inherited SetUp;
  GetMemoryManager(Manager);
end;

procedure TLaneMMTests.EveryEntryIsSet;
begin
  AssertTrue('installed', IsMemoryManagerSet);
  AssertTrue('GetMem', Assigned(Manager.GetMem));
  AssertTrue('FreeMem', Assigned(Manager.FreeMem));
  AssertTrue('FreeMemSize', Assigned(Manager.FreeMemSize));
  AssertTrue('AllocMem', Assigned(Manager.AllocMem));
  AssertTrue('ReallocMem', Assigned(Manager.ReallocMem));
  AssertTrue('MemSize', Assigned(Manager.MemSize));
  AssertTrue('GetHeapStatus', Assigned(Manager.GetHeapStatus));
  AssertTrue('GetFPCHeapStatus', Assigned(Manager.GetFPCHeapStatus));
end;

// ---------------------------------------------------------------------------- get

procedure TLaneMMTests.GetMemOfZeroGivesABlockOfItsOwn;
var
  P, Q: Pointer;
begin
  P := Manager.GetMem(0);
  Q := Manager.GetMem(0);
  AssertTrue('a block', (P <> nil) and (Q <> nil));
  AssertTrue('of its own', P <> Q);
  Manager.FreeMem(P);
  Manager.FreeMem(Q);
end;

procedure TLaneMMTests.GetMemOfTooMuchRaisesOutOfMemory;
var
  Index: Integer;
  Distance: NativeUInt;
  P: Pointer;
begin
  for Index := 0 to High(ImpossibleSizes) do
  begin
    Same(OutOfMemory, ErrorOfGet(P, ImpossibleSizes[Index]), 'error');
    AssertTrue('nil', P = nil);
  end;
  for Distance := 0 to 3 * 4096 do
    Same(OutOfMemory, ErrorOfGet(P, High(NativeUInt) - Distance * 16), 'error close to the top');
  AssertTrue('heap works', HeapWorks);
end;

// In a child: the arenas of terabytes would stay, and each later child would go through all their slices.
procedure TLaneMMTests.GetMemOfAnySizeGivesABlockOrRaises;
var
  Log2: Integer;
  P: Pointer;
begin
  if not InChild then
    Exit;
  for Log2 := 20 to SizeOf(Pointer) * 8 - 1 do
    if ErrorOfGet(P, NativeUInt(1) shl Log2) = NoError then
    begin
      AtLeast(0, MemSize(P) - NativeUInt(1) shl Log2, 'usable beyond the requested size');
      PByte(P)^ := 1;
      PByte(P)[NativeUInt(1) shl Log2 - 1] := 1;
      FreeMem(P);
    end;
  AssertTrue('heap works', HeapWorks);
end;

procedure TLaneMMTests.GetMemGivesNilWhereThatIsWanted;
var
  Size: NativeUInt;
begin
  ReturnNilIfGrowHeapFails := True;
  try
    for Size in ImpossibleSizes do
    begin
      AssertTrue('GetMem', Manager.GetMem(Size) = nil);
      AssertTrue('AllocMem', Manager.AllocMem(Size) = nil);
    end;
  finally
    ReturnNilIfGrowHeapFails := False;
  end;
end;

// Leaves dirt where the next block of the size will lie.
procedure TLaneMMTests.DirtyThenZero(Size: NativeUInt);
var
  P: Pointer;
begin
  GetMem(P, Size);
  FillChar(P^, MemSize(P), $FF);
  FreeMem(P);
  P := AllocMem(Size);
  AtLeast(Size, MemSize(P), 'usable size');
  AssertTrue('zero', IsZero(P, MemSize(P)));
  FillChar(P^, MemSize(P), $FF);
  FreeMem(P);
end;

procedure TLaneMMTests.AllocMemZeroesAllThatIsUsable;
var
  Round: Integer;
  Size: NativeUInt;
  P: Pointer;
begin
  for Round := 1 to 3 do
  begin
    for Size in SampleSizes do
    begin
      DirtyThenZero(Size);
      DirtyThenZero(Size + 1);
    end;
    // A block that moved leaves pages of another kind.
    GetMem(P, Megabyte);
    FillChar(P^, Megabyte, $FF);
    ReallocMem(P, 9 * Megabyte);
    DirtyThenZero(2 * Megabyte);
    ReallocMem(P, 2 * Megabyte);
    DirtyThenZero(9 * Megabyte);
    FreeMem(P);
    LaneMM_Trim;
  end;
end;

procedure TLaneMMTests.AllocMemOfZeroGivesABlock;
var
  P: Pointer;
begin
  P := AllocMem(0);
  AssertTrue('a block', P <> nil);
  FreeMem(P);
end;

procedure TLaneMMTests.AllocMemOfTooMuchRaisesOutOfMemory;
var
  Size: NativeUInt;
  P: Pointer;
begin
  for Size in ImpossibleSizes do
    Same(OutOfMemory, ErrorOfAlloc(P, Size), 'error');
end;

// ---------------------------------------------------------------------------- free

procedure TLaneMMTests.FreeMemReturnsTheUsableSize;
var
  Size, Usable: NativeUInt;
  P: Pointer;
begin
  for Size in SampleSizes do
  begin
    P := Manager.GetMem(Size);
    Usable := Manager.MemSize(P);
    Same(Usable, Manager.FreeMem(P), 'result');
  end;
end;

procedure TLaneMMTests.FreeMemOfNilDoesNothing;
begin
  Same(0, Manager.FreeMem(nil), 'FreeMem');
  Same(0, Manager.FreeMemSize(nil, 0), 'FreeMemSize');
  Same(0, Manager.FreeMemSize(nil, 8), 'FreeMemSize with a size');
end;

procedure TLaneMMTests.FreeMemWithASizeFreesWhateverTheSize;
const
  Sizes: array[0..3] of NativeUInt = (0, 100, 1, 100000);
var
  Size, Used: NativeUInt;
begin
  for Size in Sizes do
  begin
    Used := UsedBytes;
    Manager.FreeMemSize(Manager.GetMem(100), Size);
    Same(Used, UsedBytes, 'bytes in use');
  end;
end;

// ---------------------------------------------------------------------------- realloc

procedure TLaneMMTests.ReallocMemOfNilGetsABlock;
var
  Size: NativeUInt;
  P: Pointer;
begin
  for Size in SampleSizes do
    if Size > 0 then
    begin
      P := nil;
      ReallocMem(P, Size);
      AtLeast(Size, MemSize(P), 'usable size');
      FreeMem(P);
    end;
end;

procedure TLaneMMTests.ReallocMemToZeroFrees;
var
  Size, Used: NativeUInt;
  P: Pointer;
begin
  for Size in SampleSizes do
  begin
    Used := UsedBytes;
    GetMem(P, Size);
    ReallocMem(P, 0);
    AssertTrue('nil', P = nil);
    Same(Used, UsedBytes, 'bytes in use');
  end;
end;

procedure TLaneMMTests.ReallocMemOfNilToZeroIsNil;
var
  P: Pointer;
begin
  P := nil;
  AssertTrue('result', Manager.ReallocMem(P, 0) = nil);
  AssertTrue('pointer', P = nil);
end;

procedure TLaneMMTests.ReallocMemReturnsThePointer;
var
  Size: NativeUInt;
  P: Pointer;
begin
  P := nil;
  for Size in SampleSizes do
    AssertTrue('result', Manager.ReallocMem(P, Size) = P);
  AssertTrue('shrunk', Manager.ReallocMem(P, 1) = P);
  AssertTrue('freed', Manager.ReallocMem(P, 0) = P);
end;

procedure TLaneMMTests.FailedResizeKeeps(Size: NativeUInt);
var
  P, Old: Pointer;
  Used, TooMuch: NativeUInt;
begin
  GetMem(P, Size);
  FillPattern(P, Size, 1);
  Old := P;
  Used := UsedBytes;
  for TooMuch in ImpossibleSizes do
  begin
    Same(OutOfMemory, ErrorOfRealloc(P, TooMuch), 'error');
    AssertTrue('pointer', P = Old);
    AssertTrue('contents', HasPattern(P, Size, 1));
  end;
  Same(Used, UsedBytes, 'bytes in use');
  FreeMem(P);
end;

procedure TLaneMMTests.FailedReallocMemKeepsTheBlock;
var
  Size: NativeUInt;
begin
  for Size in SampleSizes do
    FailedResizeKeeps(Size);
end;

procedure TLaneMMTests.FailedReallocMemFreesTheBlockWhereNilIsWanted;
var
  P: Pointer;
  Size, TooMuch, Used: NativeUInt;
begin
  Used := UsedBytes;
  ReturnNilIfGrowHeapFails := True;
  try
    for Size in SampleSizes do
      for TooMuch in ImpossibleSizes do
      begin
        P := Manager.GetMem(Size);
        AssertTrue('result', Manager.ReallocMem(P, TooMuch) = nil);
        AssertTrue('pointer', P = nil);
      end;
  finally
    ReturnNilIfGrowHeapFails := False;
  end;
  Same(Used, UsedBytes, 'bytes in use');
end;

procedure TLaneMMTests.MemSizeOfNilIsZero;
begin
  Same(0, Manager.MemSize(nil), 'usable size');
end;

// Programs must not rely on it, but it shows that nothing wipes or delays.
procedure TLaneMMTests.FreedBlockComesBackAsItWas;
var
  P, Q: PByte;
begin
  GetMem(P, 200);
  FillPattern(P, 200, 1);
  FreeMem(P);
  GetMem(Q, 200);
  AssertTrue('the same block', P = Q);
  FillChar(Q^, SizeOf(Pointer), 0);
  FreeMem(Q);
end;

// ---------------------------------------------------------------------------- status

procedure TLaneMMTests.Keep;
begin
  GetMem(Kept, 10000);
end;

procedure TLaneMMTests.FpcHeapStatusIsExactForTheWholeProcess;
var
  Used: NativeUInt;
begin
  InThread(Keep);
  FreeMem(Kept);
  Used := GetFPCHeapStatus.CurrHeapUsed;
  InThread(Keep);
  Same(Used + MemSize(Kept), GetFPCHeapStatus.CurrHeapUsed, 'with a block of a thread');
  FreeMem(Kept);
  Same(Used, GetFPCHeapStatus.CurrHeapUsed, 'without');
end;

procedure TLaneMMTests.FpcHeapStatusAddsUp;
var
  Status: TFPCHeapStatus;
begin
  Status := GetFPCHeapStatus;
  Same(Status.CurrHeapSize, Status.CurrHeapUsed + Status.CurrHeapFree, 'used and free');
  AtLeast(Status.CurrHeapSize, Status.MaxHeapSize, 'highest size');
  AtLeast(Status.CurrHeapUsed, Status.MaxHeapUsed, 'highest use');
  Same(LaneMM_HeapStatus.UsedBytes, Status.CurrHeapUsed, 'used');
end;

// Returns the number, or the highest one of 32 bits.
function Saturated(Bytes: UInt64): NativeUInt;
begin
  Result := High(Cardinal);
  if Bytes < Result then
    Result := Bytes;
end;

// Other tests may have left the heap more than 4 GB.
procedure TLaneMMTests.DelphiHeapStatusSaturates;
var
  Status: THeapStatus;
begin
  Status := GetHeapStatus;
  Same(Saturated(LaneMM_HeapStatus.ReservedBytes), Status.TotalAddrSpace, 'address space');
  Same(Saturated(LaneMM_HeapStatus.UsedBytes), Status.TotalAllocated, 'allocated');
  Same(Status.TotalCommitted, Saturated(UInt64(Status.TotalAllocated) + Status.TotalFree), 'committed');
end;

// ---------------------------------------------------------------------------- the language

type
  PPerson = ^TPerson;
  TPerson = record
    Name: string;
    Age: Integer;
    Notes: array of string;
  end;

// The work is done in a routine of its own, so that its temporary strings are gone.
procedure TLaneMMTests.UseRecords;
var
  Person: PPerson;
  Index: Integer;
begin
  for Index := 1 to 100 do
  begin
    New(Person);
    AssertTrue('managed fields are empty', (Person^.Name = '') and (Person^.Notes = nil));
    Person^.Name := IntToStr(Index);
    SetLength(Person^.Notes, Index);
    Dispose(Person);
  end;
end;

procedure TLaneMMTests.NewAndDisposeBalance;
var
  Used: NativeUInt;
begin
  Used := UsedBytes;
  UseRecords;
  Same(Used, UsedBytes, 'bytes in use');
end;

procedure TLaneMMTests.GetMemoryAndFreeMemoryBalance;
var
  Used: NativeUInt;
  P: Pointer;
begin
  Used := UsedBytes;
  P := GetMemory(100);
  FillPattern(P, 100, 1);
  P := ReallocMemory(P, 5000);
  AssertTrue('contents', HasPattern(P, 100, 1));
  FreeMemory(P);
  Same(Used, UsedBytes, 'bytes in use');
end;

procedure TLaneMMTests.UseStrings;
var
  Lines: TStringList;
  Index: Integer;
begin
  Lines := TStringList.Create;
  for Index := 1 to 10000 do
    Lines.Add('line ' + IntToStr(Index));
  for Index := 9999 downto 0 do
    if Odd(Index) then
      Lines.Delete(Index);
  AssertEquals('last line', 'line 9999', Lines[4999]);
  Lines.Free;
end;

procedure TLaneMMTests.StringsAndObjectsBalance;
var
  Used: NativeUInt;
begin
  Used := UsedBytes;
  UseStrings;
  Same(Used, UsedBytes, 'bytes in use');
end;

// ---------------------------------------------------------------------------- counts

const
  AppendCount = 10000000;

procedure TLaneMMTests.StartCounting;
begin
  Before := LaneMM_HeapStatus;
end;

// Where a block can never grow in place, it moves to twice its size while that is at most 2 KB, and to
// one and a half times its size from then on. What lies beside it decides how often it grows in place.
procedure TLaneMMTests.StopCounting(FinalBytes: NativeUInt);
const
  SmallestBytes = 16;
  DoubledBytes = 2048;
var
  MostMoves: Integer;
begin
  After := LaneMM_HeapStatus;
  MostMoves := Ceil(Log2(DoubledBytes / SmallestBytes))
    + Ceil(LogN(1.5, FinalBytes / DoubledBytes));
  AtMost(MostMoves, After.Realloc.Moves - Before.Realloc.Moves, 'moves');
  AtMost(3 * FinalBytes, After.Realloc.CopiedBytes - Before.Realloc.CopiedBytes, 'bytes copied');
end;

procedure TLaneMMTests.AppendingToAnAnsiStringMovesRarely;
var
  Text: AnsiString;
  Index: Integer;
begin
  Text := '';
  StartCounting;
  for Index := 1 to AppendCount do
    Text := Text + 'x';
  StopCounting(AppendCount);
  Same(AppendCount, Length(Text), 'length');
  AssertTrue('contents', (Text[1] = 'x') and (Text[AppendCount] = 'x'));
end;

procedure TLaneMMTests.AppendingToAUnicodeStringMovesRarely;
var
  Text: UnicodeString;
  Index: Integer;
begin
  Text := '';
  StartCounting;
  for Index := 1 to AppendCount do
    Text := Text + 'x';
  StopCounting(AppendCount * SizeOf(WideChar));
end;

procedure TLaneMMTests.AppendingToAnArrayMovesRarely;
var
  Numbers: array of AnsiChar;
  Index: Integer;
begin
  Numbers := nil;
  StartCounting;
  for Index := 1 to AppendCount do
  begin
    SetLength(Numbers, Index);
    Numbers[Index - 1] := 'x';
  end;
  StopCounting(AppendCount);
end;

procedure TLaneMMTests.AppendingToAListMovesRarely;
var
  List: TList;
  Index: Integer;
begin
  List := TList.Create;
  StartCounting;
  for Index := 1 to AppendCount do
    List.Add(@List);
  StopCounting(AppendCount * SizeOf(Pointer));
  List.Free;
end;

// Returns the system calls for memory, without those of the purge thread, which reads the clock.
function MemoryCalls(const Status: TLaneMM_HeapStatus): NativeUInt;
begin
  Result := Status.OsCalls[ocReserve] + Status.OsCalls[ocRelease] + Status.OsCalls[ocCommit]
    + Status.OsCalls[ocMove];
end;

function AllCalls(const Status: TLaneMM_HeapStatus): NativeUInt;
var
  Kind: TLaneMM_OsCall;
begin
  Result := 0;
  for Kind := Low(Kind) to High(Kind) do
    Inc(Result, Status.OsCalls[Kind]);
end;

procedure TLaneMMTests.MillionSmallBlocksCostFewSystemCalls;
const
  Count = 1000000;
  BlockSize = 32;
var
  Blocks: TPointers;
  Index, Most: Integer;
begin
  Most := 20;
  if not OsPurgedIsCommitted then // slices that were given back are committed one by one
    Inc(Most, Count * BlockSize div SliceSize);
  SetLength(Blocks, Count);
  Before := LaneMM_HeapStatus;
  for Index := 0 to Count - 1 do
    GetMem(Blocks[Index], 20);
  After := LaneMM_HeapStatus;
  AtMost(Most, MemoryCalls(After) - MemoryCalls(Before), 'calls for memory');
  AtMost(Count div 500, AllCalls(After) - AllCalls(Before), 'calls of any kind');
  FreeEach(Blocks, 1);
end;

procedure TLaneMMTests.ReusedBlocksCostNoMemoryCalls;
const
  Count = 1000000;
var
  Index: Integer;
  P: Pointer;
begin
  HeapWorks;
  Before := LaneMM_HeapStatus;
  for Index := 1 to Count do
  begin
    GetMem(P, Index mod 1000);
    FreeMem(P);
  end;
  After := LaneMM_HeapStatus;
  AtMost(20, MemoryCalls(After) - MemoryCalls(Before), 'calls for memory');
end;

initialization
  RegisterTest(TLaneMMTests);
end.
