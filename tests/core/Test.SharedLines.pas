/// Tests of which lines that threads share are written by an operation: bytes are compared before
/// and after it. bench/lines.sh counts the same for each word, beside other managers.
unit Test.SharedLines;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.Types;

type
  TSharedLinesTests = class(TQuietTest)
  strict private
    Before: TProcess;
    SpanBefore: TSpan;
    HeapBefore: THeap;
    Blocks: array[0..1] of Pointer;
    RemoteChanges: array[0..3] of Integer; // of each line of the span's record
    OwnerChanges, ProcessChanges: Integer;
    procedure Remember;
    function Changes: Integer;
    procedure PairsOf(Size: NativeUInt);
    procedure FreeBoth;
  published
    procedure OwnBlocksWriteNoSharedLine;
    procedure LongBlocksPassThroughAShard;
    procedure BlockFreedByAnotherThreadWritesOneSharedLine;
    procedure ChangeOfAShardWritesTheLineOfItsLock;
    procedure LooksAtLargeBlocksWriteNoLineThatSweepsRead;
  end;

implementation

uses
  SysUtils, testregistry, LaneMM.Layout, LaneMM.Blocks;

// Returns the lines of Size bytes that differ.
function LinesThatDiffer(const A, B; Size: NativeUInt): Integer;
var
  Line: NativeUInt;
begin
  Result := 0;
  for Line := 0 to Size div CacheLineSize - 1 do
    if not CompareMem(PByte(@A) + Line * CacheLineSize, PByte(@B) + Line * CacheLineSize,
      CacheLineSize) then
      Inc(Result);
end;

procedure TSharedLinesTests.Remember;
begin
  Move(Process, Before, SizeOf(Process));
end;

function TSharedLinesTests.Changes: Integer;
begin
  Result := LinesThatDiffer(Before, Process, SizeOf(Process));
end;

// After the blocks of a thread that a larger class serves, GetMem and FreeMem change nothing that
// threads share.
procedure TSharedLinesTests.PairsOf(Size: NativeUInt);
const
  MostServed = High(Byte); // as THeap.Borrowed can count
var
  I: Integer;
  P: Pointer;
begin
  for I := 1 to MostServed do
    FreeMem(GetMem(Size));
  Remember;
  for I := 1 to 20 do
  begin
    P := GetMem(Size);
    Same(0, Changes, 'lines that GetMem of ' + IntToStr(Size) + ' wrote');
    FreeMem(P);
    Same(0, Changes, 'lines that FreeMem of ' + IntToStr(Size) + ' wrote');
  end;
end;

procedure TSharedLinesTests.OwnBlocksWriteNoSharedLine;
begin
  PairsOf(16);
  PairsOf(64);
  PairsOf(1000);
  PairsOf(8000);
  PairsOf(30000);
end;

// The comparison sees what is written.
procedure TSharedLinesTests.LongBlocksPassThroughAShard;
var
  P: Pointer;
begin
  Remember;
  P := GetMem((LongestKept + 1) * SliceSize);
  AtLeast(1, Changes, 'lines that GetMem wrote');
  Remember;
  FreeMem(P);
  AtLeast(1, Changes, 'lines that FreeMem wrote');
end;

// Another thread; the first free makes its heap.
procedure TSharedLinesTests.FreeBoth;
var
  Span: PSpan;
  Heap: PHeap;
  Line: Integer;
begin
  FreeMem(Blocks[0]);
  Span := BlockSpan(Blocks[1]);
  Heap := OwnerOf(Span);
  Move(Span^, SpanBefore, SizeOf(TSpan));
  Move(Heap^, HeapBefore, SizeOf(THeap));
  Remember;
  FreeMem(Blocks[1]);
  ProcessChanges := Changes;
  OwnerChanges := LinesThatDiffer(HeapBefore, Heap^, SizeOf(THeap));
  for Line := 0 to High(RemoteChanges) do
    RemoteChanges[Line] := LinesThatDiffer(SpanBefore.Lines[Line], Span^.Lines[Line], CacheLineSize);
end;

procedure TSharedLinesTests.BlockFreedByAnotherThreadWritesOneSharedLine;
var
  I: Integer;
begin
  for I := 0 to High(Blocks) do
    Blocks[I] := GetMem(64);
  InThread(FreeBoth);
  Same(0, ProcessChanges, 'lines of Process');
  Same(0, OwnerChanges, 'lines of the owner''s heap');
  Same(0, RemoteChanges[0], 'the owner''s line of the span');
  Same(0, RemoteChanges[1], 'the line that other threads read');
  Same(1, RemoteChanges[2], 'the line of Remote');
  Same(0, RemoteChanges[3], 'the line behind it');
end;

procedure TSharedLinesTests.ChangeOfAShardWritesTheLineOfItsLock;
var
  Shard: TShard;

  procedure IsThere(var Field; Size: NativeUInt; const Name: string);
  begin
    AtMost(CacheLineSize - Size, NativeUInt(@Field) - NativeUInt(@Shard), Name);
  end;

begin
  IsThere(Shard.Lock, SizeOf(Shard.Lock), 'Lock');
  IsThere(Shard.Released, SizeOf(Shard.Released), 'Released');
  IsThere(Shard.Youngest, SizeOf(Shard.Youngest), 'Youngest');
  IsThere(Shard.WarmSlices, SizeOf(Shard.WarmSlices), 'WarmSlices');
  IsThere(Shard.ColdSlices, SizeOf(Shard.ColdSlices), 'ColdSlices');
  IsThere(Shard.WarmLow, SizeOf(Shard.WarmLow), 'WarmLow');
end;

// Each free into a queued span of another thread reads SweepWanted and, where that was 0, PurgeState;
// LaneMM.Huge holds purges while it looks.
procedure TSharedLinesTests.LooksAtLargeBlocksWriteNoLineThatSweepsRead;

  procedure IsFar(var Field; const Name: string);
  begin
    AtLeast(CacheLineSize, Abs(NativeInt(@Process.PurgesHeld) - NativeInt(@Field)), Name);
  end;

begin
  IsFar(Process.SweepWanted, 'SweepWanted');
  IsFar(Process.PurgeState, 'PurgeState');
  IsFar(Process.Backed, 'Backed');
end;

initialization
  RegisterTest(TSharedLinesTests);
end.
