/// Tests of LaneMM.Blocks with pointers that are no block, or no longer one: each is refused with
/// EInvalidPointer, nothing is changed, and no block in use is ever taken for a free one.
unit Test.Blocks.Pointers;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.Types;

type
  TBlocksPointersTests = class(TLaneTest)
  strict private
    Blocks: TPointers;
    Neighbours: array[0..1] of PSpan;
    Size: NativeUInt;
    SizeIndex: Integer;
    Victim: Pointer;
    Answer: Integer;
    Servant: TServant;
    procedure GetBlocks;
    function NextSize: Boolean;
    procedure TakeVictim(Index: Integer);
    {$ifdef CPU64}
    function FreeRunAcross4GB(SliceCount: NativeUInt): NativeUInt;
    procedure FreeNeighbours;
    {$endif}
    procedure FreeBlocks;
    procedure FreeVictim;
    function BlocksAreOwn: Boolean;
    procedure GetOwnBlocks;
    procedure FreeEvenBlocks;
    procedure FreeEachTwice;
    procedure WriteNastyWords(Kind: Integer);
    procedure Refuses(P: Pointer; const What: string);
    procedure RefusesInEachThread(P: Pointer; const What: string);
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure NilIsFreedAsNothing;
    procedure SecondFreeIsRefused;
    procedure SecondFreeIsRefusedAmongBlocksInUse;
    procedure SecondFreeIsRefusedAfterTheSpanIsGone;
    procedure SecondFreeByAnotherThreadIsRefused;
    procedure SecondFreeByTheOwnerIsRefused;
    procedure SecondFreeOfABlockOfAnEndedThreadIsRefused;
    procedure InnerPointersAreRefused;
    procedure InnerPointersAreRefusedInAnotherThread;
    procedure LaterSlicesAreRefused;
    procedure WildPointersAreRefused;
    procedure WildPointersAreRefusedByReallocMem;
    procedure WildPointersAreRefusedByMemSize;
    procedure FreedBlockIsRefusedByMemSize;
    procedure InnerPointersAreRefusedByMemSize;
    procedure BlocksNeverHandedOutAreRefused;
    procedure TailOfASpanIsRefused;
    {$ifdef CPU64} procedure SecondFreeIsRefusedWhereHighAddressBitsChange; {$endif}
    procedure FreedBlockIsRefusedByReallocMem;
    procedure NastyFirstWordsAreFreed;
    procedure NastyFirstWordsAreFreedByAnotherThread;
    procedure NastyFirstWordsAreFreedAfterTheOwnersEnd;
    procedure NastyFirstWordsAreFreedWhileOthersFree;
    procedure LinkOfAFreedBlockIsNoFreeBlockAfterOthersFreed;
    procedure LinkOfAFreedBlockIsNoFreeBlockToOtherThreads;
    procedure WordsOfFormerSpansAreNoFreeBlocks;
    procedure NastyFirstWordsAreResized;
    procedure BlocksNeverWrittenAreFreed;
  end;

implementation

uses
  testregistry, LaneMM.Layout, LaneMM.Os, LaneMM.Arena, LaneMM.Shards, LaneMM.Span, LaneMM.Purge,
  LaneMM.Blocks;

const
  BlockCount = 300;
  NastyKinds = 10;
  // Of the sizes up to here there are BlockCount blocks at a time.
  MostSampled = 16;

procedure TBlocksPointersTests.SetUp;
begin
  SetLength(Blocks, BlockCount);
  SizeIndex := -1;
  Servant := TServant.Create;
end;

procedure TBlocksPointersTests.TearDown;
begin
  Servant.Free;
  AssertTrue('heap works', HeapWorks);
end;

procedure TBlocksPointersTests.GetBlocks;
var
  Index: Integer;
begin
  for Index := 0 to High(Blocks) do
  begin
    GetMem(Blocks[Index], Size);
    FillPattern(Blocks[Index], Size, Index);
  end;
end;

// Returns whether all blocks lie in spans of this thread. A full span is none: it belongs to the
// first thread that frees one of its blocks.
function TBlocksPointersTests.BlocksAreOwn: Boolean;
var
  Index: Integer;
begin
  Result := True;
  for Index := 0 to High(Blocks) do
    Result := Result and (BlockSpan(Blocks[Index])^.Owner = OsThreadHeap);
end;

procedure TBlocksPointersTests.GetOwnBlocks;
var
  Others: TPointers;
  Index: Integer;
begin
  Others := nil;
  GetBlocks;
  while not BlocksAreOwn do
  begin
    for Index := 0 to High(Blocks) do
      Insert(Blocks[Index], Others, Length(Others));
    GetBlocks;
  end;
  FreeEach(Others, 1);
end;

// Frees what is left and checks the contents.
procedure TBlocksPointersTests.FreeBlocks;
var
  Index, Wrong: Integer;
begin
  Wrong := 0;
  for Index := 0 to High(Blocks) do
  begin
    if (Blocks[Index] <> nil) and not HasPattern(Blocks[Index], Size, Index) then
      Inc(Wrong);
    FreeMem(Blocks[Index]);
    Blocks[Index] := nil;
  end;
  Same(0, Wrong, 'blocks with other contents');
end;

// Goes on to blocks of the next size, up to MostSampled; frees those of the size before.
function TBlocksPointersTests.NextSize: Boolean;
begin
  if SizeIndex >= 0 then
    FreeBlocks;
  Inc(SizeIndex);
  Result := SizeIndex <= MostSampled;
  if not Result then
    Exit;
  Size := SampleSizes[SizeIndex];
  GetBlocks;
end;

// Makes one of Blocks the victim, which is not freed with them.
procedure TBlocksPointersTests.TakeVictim(Index: Integer);
begin
  Victim := Blocks[Index];
  Blocks[Index] := nil;
end;

procedure TBlocksPointersTests.FreeVictim;
begin
  Answer := ErrorOfFree(Victim);
end;

// Returns the blocks in use of the span that P lies in; 0 in other memory.
function UsedBeside(P: Pointer): NativeUInt;
var
  Span: PSpan;
begin
  Result := 0;
  Span := BlockSpan(P);
  if (Span <> nil) and (Span^.Kind = skBlocks) then
    Result := SpanUsedCount(Span);
end;

procedure TBlocksPointersTests.Refuses(P: Pointer; const What: string);
var
  Before, Beside: NativeUInt;
begin
  Before := UsedBytes;
  Beside := UsedBeside(P);
  Same(InvalidPointer, ErrorOfFree(P), What);
  Same(Beside, UsedBeside(P), 'blocks in use beside it');
  Same(Before, UsedBytes, 'bytes in use');
end;

// The same in another thread, too.
procedure TBlocksPointersTests.RefusesInEachThread(P: Pointer; const What: string);
begin
  Refuses(P, What);
  Victim := P;
  Servant.Call(FreeVictim);
  Same(InvalidPointer, Answer, What + ' in another thread');
end;

procedure TBlocksPointersTests.NilIsFreedAsNothing;
begin
  Same(NoError, ErrorOfFree(nil), 'error');
  Same(0, FreeMem(nil), 'result');
end;

// ---------------------------------------------------------------------------- freed twice

procedure TBlocksPointersTests.SecondFreeIsRefused;
var
  Index: Integer;
  P: Pointer;
begin
  for Index := 0 to High(SampleSizes) do
  begin
    GetMem(P, SampleSizes[Index]);
    FreeMem(P);
    RefusesInEachThread(P, 'second free');
  end;
end;

procedure TBlocksPointersTests.SecondFreeIsRefusedAmongBlocksInUse;
var
  Place: Integer;
begin
  while NextSize do
    for Place := 0 to 9 do
    begin
      TakeVictim(Place * 30);
      FreeMem(Victim);
      Refuses(Victim, 'second free');
    end;
end;

procedure TBlocksPointersTests.SecondFreeIsRefusedAfterTheSpanIsGone;
var
  Index, Place: Integer;
  Old: TPointers;
begin
  for Index := 0 to MostSampled do
  begin
    Size := SampleSizes[Index];
    GetBlocks;
    Old := Copy(Blocks);
    FreeBlocks;
    ProcessTrim;
    for Place := 0 to High(Old) do
      Same(InvalidPointer, ErrorOfFree(Old[Place]), 'second free');
  end;
end;

procedure TBlocksPointersTests.SecondFreeByAnotherThreadIsRefused;
begin
  while NextSize do
  begin
    TakeVictim(100);
    Servant.Call(FreeVictim);
    Same(NoError, Answer, 'first free');
    Servant.Call(FreeVictim);
    Same(InvalidPointer, Answer, 'second free');
  end;
end;

procedure TBlocksPointersTests.SecondFreeByTheOwnerIsRefused;
begin
  while NextSize do
  begin
    TakeVictim(BlockCount - 1);
    Servant.Call(FreeVictim);
    Refuses(Victim, 'second free');
  end;
end;

procedure TBlocksPointersTests.SecondFreeOfABlockOfAnEndedThreadIsRefused;
var
  Index: Integer;
begin
  for Index := 0 to MostSampled do
  begin
    Size := SampleSizes[Index];
    InThread(GetBlocks);
    TakeVictim(7);
    FreeMem(Victim);
    RefusesInEachThread(Victim, 'second free');
    FreeBlocks;
  end;
end;

{$ifdef CPU64}
// Leaves one warm free run, of so many slices, whose second slice begins at a multiple of 4 GB; returns
// that address. FreeNeighbours frees the slices around it, which were never touched.
function TBlocksPointersTests.FreeRunAcross4GB(SliceCount: NativeUInt): NativeUInt;
const
  Multiple = NativeUInt(1) shl 32;
var
  Run: PSpan;
begin
  ProcessTrim;
  Neighbours[0] := ShardsTake(Multiple div SliceSize + 2 * SliceCount);
  AssertTrue('4 GB of addresses', Neighbours[0] <> nil);
  Result := NativeUInt(Neighbours[0]^.Start) + 2 * SliceSize;
  Result := (Result + Multiple - 1) and not (Multiple - 1);
  Run := ShardsSplit(Neighbours[0],
    (Result - SliceSize - NativeUInt(Neighbours[0]^.Start)) div SliceSize);
  Neighbours[1] := ShardsSplit(Run, SliceCount);
  Run^.IsWarm := True; // new spans come out of it
  ShardsRelease(Run);
end;

procedure TBlocksPointersTests.FreeNeighbours;
var
  Neighbour: PSpan;
begin
  for Neighbour in Neighbours do
  begin
    Neighbour^.IsWarm := False;
    ShardsRelease(Neighbour);
  end;
end;

// A span across a multiple of 4 GB would have links that differ from its blocks in the high bits.
procedure TBlocksPointersTests.SecondFreeIsRefusedWhereHighAddressBitsChange;
const
  RunSlices = 16;
  MostBlocks = 10000;
var
  P: Pointer;
  Index, Count, Wanted: Integer;
  Boundary: NativeUInt;
  IsBeside: Boolean;
begin
  Boundary := FreeRunAcross4GB(RunSlices);
  Size := 20000;
  SetLength(Blocks, MostBlocks);
  IsBeside := False;
  // Free blocks of other spans come first. Of the run, as many as it holds.
  Count := 0;
  Wanted := MostBlocks;
  repeat
    GetMem(Blocks[Count], Size);
    if not IsBeside and (NativeUInt(NativeUInt(Blocks[Count]) - (Boundary - SliceSize))
      < RunSlices * SliceSize) then
    begin
      IsBeside := True;
      Wanted := Count + RunSlices * SliceSize div Size;
    end;
    Inc(Count);
  until (Count > Wanted) or (Count = MostBlocks);
  // From the last one on: the link of a block in a first slice leads across the boundary.
  for Index := Count - 1 downto 0 do
  begin
    P := Blocks[Index];
    FreeMem(P);
    Refuses(P, 'second free');
  end;
  AssertTrue('blocks beside the boundary', IsBeside);
  Blocks := nil;
  FreeNeighbours;
end;
{$endif}

procedure TBlocksPointersTests.FreedBlockIsRefusedByReallocMem;
const
  Factors: array[0..3] of NativeUInt = (1, 2, 20, 2000);
var
  Factor: NativeUInt;
  P: Pointer;
  Before: NativeUInt;
begin
  while NextSize do
  begin
    TakeVictim(50);
    FreeMem(Victim);
    if Size = 0 then
      Continue; // a resize to 0 bytes is a free
    Before := UsedBytes;
    for Factor in Factors do
    begin
      P := Victim;
      Same(InvalidPointer, ErrorOfRealloc(P, Size * Factor), 'error');
      AssertTrue('pointer', P = Victim);
    end;
    Same(Before, UsedBytes, 'bytes in use');
  end;
end;

// ---------------------------------------------------------------------------- no block at all

procedure TBlocksPointersTests.InnerPointersAreRefused;
const
  Offsets: array[0..5] of NativeUInt = (1, 4, 8, 15, 16, 64);
var
  Offset: NativeUInt;
begin
  while NextSize do
  begin
    for Offset in Offsets do
      if Offset < MemSize(Blocks[0]) then
        Refuses(Blocks[0] + Offset, 'inner pointer');
    Refuses(Blocks[50] + MemSize(Blocks[50]) div 2, 'the middle');
    Refuses(Blocks[50] + MemSize(Blocks[50]) - 1, 'the last byte');
  end;
end;

procedure TBlocksPointersTests.InnerPointersAreRefusedInAnotherThread;
begin
  while NextSize do
  begin
    Victim := Blocks[9] + MemSize(Blocks[9]) div 2;
    Servant.Call(FreeVictim);
    Same(InvalidPointer, Answer, 'the middle');
  end;
end;

procedure TBlocksPointersTests.LaterSlicesAreRefused;
var
  P, Place: PByte;
begin
  for Size in SampleSizes do
  begin
    GetMem(P, Size);
    Place := PByte(NativeUInt(P) and not (SliceSize - 1)) + SliceSize;
    while Place < P + MemSize(P) do
    begin
      RefusesInEachThread(Place, 'start of a slice');
      Refuses(Place + 16, 'in a slice');
      Inc(Place, SliceSize * 8);
    end;
    FreeMem(P);
  end;
end;

var
  SomeGlobal: array[0..3] of NativeUInt;

// Addresses where no block lies, some of them unmapped.
function WildPointers(Stack: Pointer): TPointers;
begin
  Result := nil;
  SetLength(Result, 16);
  Result[0] := PByte(1);
  Result[1] := PByte(16);
  Result[2] := PByte(SliceSize);
  Result[3] := Stack;
  Result[4] := @SomeGlobal;
  Result[5] := @WildPointers;
  Result[6] := @Process;
  Result[7] := PByte(Process.Spans);
  Result[8] := PByte(Process.Heaps);
  Result[9] := PByte(Process.Base - 16);
  Result[10] := UntouchedLimit;
  Result[11] := UntouchedLimit - 16;
  Result[12] := UntouchedLimit - SliceSize;
  Result[13] := PByte(NativeUInt(1) shl (SizeOf(Pointer) * 8 - 1));
  Result[14] := PByte(High(NativeUInt));
  Result[15] := PByte(High(NativeUInt) - 15);
end;

procedure TBlocksPointersTests.WildPointersAreRefused;
var
  P: Pointer;
begin
  for P in WildPointers(@P) do
    RefusesInEachThread(P, 'wild pointer');
end;

procedure TBlocksPointersTests.WildPointersAreRefusedByReallocMem;
var
  P, Q: Pointer;
  Before: NativeUInt;
  Wild: TPointers;
begin
  Wild := WildPointers(@P);
  Before := UsedBytes;
  for P in Wild do
  begin
    Q := P;
    Same(InvalidPointer, ErrorOfRealloc(Q, 100), 'small');
    Same(InvalidPointer, ErrorOfRealloc(Q, 1000000), 'large');
    AssertTrue('pointer', P = Q);
  end;
  Same(Before, UsedBytes, 'bytes in use');
end;

procedure TBlocksPointersTests.WildPointersAreRefusedByMemSize;
var
  P: Pointer;
begin
  for P in WildPointers(@P) do
    Same(InvalidPointer, ErrorOfMemSize(P), 'error');
end;

procedure TBlocksPointersTests.FreedBlockIsRefusedByMemSize;
begin
  while NextSize do
  begin
    TakeVictim(50);
    FreeMem(Victim);
    if (Size > 0) and (Size <= MaxClassSize) then
      Same(InvalidPointer, ErrorOfMemSize(Victim), 'error of a free block');
  end;
end;

procedure TBlocksPointersTests.InnerPointersAreRefusedByMemSize;
var
  P: PByte;
begin
  for Size in SampleSizes do
    if Size > 16 then
    begin
      GetMem(P, Size);
      Same(InvalidPointer, ErrorOfMemSize(P + 16), 'error of the next multiple of 16');
      Same(InvalidPointer, ErrorOfMemSize(P + 1), 'error of the next byte');
      Same(InvalidPointer, ErrorOfMemSize(P + Size - 1), 'error of the last byte');
      AtLeast(Size, MemSize(P), 'size of the block');
      FreeMem(P);
    end;
end;

// Takes blocks until one lies in a span with blocks that were never handed out.
procedure TBlocksPointersTests.BlocksNeverHandedOutAreRefused;
const
  MostBlocks = 100000;
  Sizes: array[0..6] of NativeUInt = (16, 48, 100, 250, 1000, 3000, 40000);
var
  Span: PSpan;
  Count: Integer;
begin
  SetLength(Blocks, MostBlocks);
  for Size in Sizes do
  begin
    Count := 0;
    repeat
      GetMem(Blocks[Count], Size);
      FillPattern(Blocks[Count], Size, Count);
      Span := BlockSpan(Blocks[Count]);
      Inc(Count);
    until (Span^.CarvedBytes < Span^.BlockBytes) or (Count = MostBlocks);
    AtMost(MostBlocks - 1, Count, 'blocks until a span has some that were never handed out');
    RefusesInEachThread(Span^.Start + Span^.CarvedBytes, 'the next block');
    RefusesInEachThread(Span^.Start + Span^.BlockBytes - Span^.BlockSize, 'the last block');
    FreeBlocks;
  end;
end;

procedure TBlocksPointersTests.TailOfASpanIsRefused;
var
  Index: Integer;
  Span: PSpan;
begin
  for Index := 0 to MostSampled do
  begin
    Size := SampleSizes[Index];
    if Size > MaxSmallSize then
      Break;
    SetLength(Blocks, 3 * SliceSize div (Size + 1));
    GetBlocks;
    Span := ArenaSpan(Blocks[0]);
    if Span^.BlockBytes < SliceSize then
      RefusesInEachThread(Span^.Start + Span^.BlockBytes, 'behind the last block');
    FreeBlocks;
  end;
end;

// ---------------------------------------------------------------------------- false alarms

// First words that look like what a free block might hold.
procedure TBlocksPointersTests.WriteNastyWords(Kind: Integer);
var
  Index: Integer;
  Word: PNativeUInt;
begin
  for Index := 0 to High(Blocks) do
  begin
    Word := PNativeUInt(Blocks[Index]);
    case Kind of
      0: Word^ := 0;
      1: Word^ := High(NativeUInt);
      2: Word^ := NativeUInt(Word);
      3: Word^ := not NativeUInt(Word);
      4: Word^ := not (NativeUInt(Word) + MemSize(Word));
      5: Word^ := NativeUInt(Word) + MemSize(Word);
      6: Word^ := NativeUInt(Word) and not (SliceSize - 1) or 1;
      7: Word^ := not (NativeUInt(Word) and not (SliceSize - 1) or 1);
      8: Word^ := NativeUInt(Blocks[0]);
      9: Word^ := 1;
    end;
  end;
end;

procedure TBlocksPointersTests.NastyFirstWordsAreFreed;
var
  Index, Kind, Refused: Integer;
begin
  SetLength(Blocks, 5000);
  Refused := 0;
  Size := 32;
  for Kind := 0 to NastyKinds - 1 do
  begin
    GetBlocks;
    WriteNastyWords(Kind);
    for Index := 0 to High(Blocks) do
      Inc(Refused, Ord(ErrorOfFree(Blocks[Index]) <> NoError));
  end;
  Same(0, Refused, 'blocks refused');
end;

procedure TBlocksPointersTests.FreeEvenBlocks;
var
  Index: Integer;
begin
  for Index := 0 to High(Blocks) do
    if not Odd(Index) then
    begin
      Inc(Answer, Ord(ErrorOfFree(Blocks[Index]) <> NoError));
      Blocks[Index] := nil;
    end;
end;

procedure TBlocksPointersTests.NastyFirstWordsAreFreedByAnotherThread;
var
  Kind, Index: Integer;
begin
  for Kind := 0 to NastyKinds - 1 do
    for Index := 0 to MostSampled do
    begin
      Size := SampleSizes[Index];
      GetBlocks;
      WriteNastyWords(Kind);
      Answer := 0;
      Servant.Call(FreeEvenBlocks);
      Same(0, Answer, 'blocks refused');
      for Victim in Blocks do
        Same(NoError, ErrorOfFree(Victim), 'error for the owner');
    end;
end;

procedure TBlocksPointersTests.NastyFirstWordsAreFreedAfterTheOwnersEnd;
var
  Kind: Integer;
begin
  Size := 48;
  SetLength(Blocks, 5000);
  for Kind := 0 to NastyKinds - 1 do
  begin
    InThread(GetBlocks);
    WriteNastyWords(Kind);
    for Victim in Blocks do
      Same(NoError, ErrorOfFree(Victim), 'error');
  end;
end;

procedure TBlocksPointersTests.NastyFirstWordsAreFreedWhileOthersFree;
var
  Kind: Integer;
  Other: TWorker;
  Index: Integer;
begin
  Size := 48;
  SetLength(Blocks, 5000);
  for Kind := 0 to NastyKinds - 1 do
  begin
    GetBlocks;
    WriteNastyWords(Kind);
    Answer := 0;
    Other := TWorker.Create(FreeEvenBlocks, False);
    for Index := 0 to High(Blocks) do
      if Odd(Index) then
        Same(NoError, ErrorOfFree(Blocks[Index]), 'error');
    EndThread(Other);
    Same(0, Answer, 'blocks refused');
  end;
end;

// A new block may hold what ReallocMem copied out of memory that the program never wrote: a link, too.
procedure TBlocksPointersTests.LinkOfAFreedBlockIsNoFreeBlockAfterOthersFreed;
var
  Index: Integer;
  Link: NativeUInt;
begin
  Size := 48;
  GetOwnBlocks;
  Victim := Blocks[High(Blocks)];
  FreeMem(Victim);
  Link := PNativeUInt(Victim)^;
  Blocks[High(Blocks)] := nil;
  Answer := 0;
  Servant.Call(FreeEvenBlocks);
  Same(0, Answer, 'blocks refused');
  for Index := 0 to High(Blocks) do
    if Blocks[Index] <> nil then
    begin
      PNativeUInt(Blocks[Index])^ := Link;
      Same(NoError, ErrorOfFree(Blocks[Index]), 'error');
      Same(InvalidPointer, ErrorOfFree(Blocks[Index]), 'error of the second free');
    end;
end;

procedure TBlocksPointersTests.FreeEachTwice;
var
  Index: Integer;
begin
  for Index := 0 to High(Blocks) do
  begin
    Inc(Answer, Ord(ErrorOfFree(Blocks[Index]) <> NoError));
    Inc(Answer, 1000 * Ord(ErrorOfFree(Blocks[Index]) <> InvalidPointer));
    Blocks[Index] := nil;
  end;
end;

procedure TBlocksPointersTests.LinkOfAFreedBlockIsNoFreeBlockToOtherThreads;
var
  Index: Integer;
  P: Pointer;
begin
  Size := 48;
  GetOwnBlocks;
  Victim := Blocks[High(Blocks)];
  SetLength(Blocks, High(Blocks));
  FreeMem(Victim);
  for Index := 0 to High(Blocks) do
  begin
    Move(Victim^, Blocks[Index]^, SizeOf(NativeUInt));
    Same(Size, MemSize(Blocks[Index]), 'usable size');
    AssertTrue('a block in use', BlockIsOurs(Blocks[Index]));
    P := Blocks[Index];
    Same(NoError, ErrorOfRealloc(P, Size - 1), 'error of a resize');
  end;
  Answer := 0;
  Servant.Call(FreeEachTwice);
  Same(0, Answer, 'blocks refused, and those freed twice');
end;

// A program may copy bytes that it never wrote: here what was free blocks of 16 bytes becomes the
// first word of larger ones.
procedure TBlocksPointersTests.WordsOfFormerSpansAreNoFreeBlocks;
var
  Small: TPointers;
  Round, Index: Integer;
begin
  SetLength(Small, 20000);
  SetLength(Blocks, 8);
  Answer := 0;
  for Round := 1 to 5 do
  begin
    for Index := 0 to High(Small) do
      GetMem(Small[Index], 16);
    FreeEach(Small, 1);
    for Index := 0 to High(Blocks) do
    begin
      GetMem(Blocks[Index], 4096);
      Move(PByte(Blocks[Index])[16], Blocks[Index]^, 4080);
    end;
    Servant.Call(FreeEachTwice);
  end;
  Same(0, Answer, 'blocks refused, and those freed twice');
end;

procedure TBlocksPointersTests.NastyFirstWordsAreResized;
var
  Kind, Index, Place: Integer;
begin
  for Kind := 0 to NastyKinds - 1 do
    for Index := 0 to MostSampled do
    begin
      Size := SampleSizes[Index];
      GetBlocks;
      WriteNastyWords(Kind);
      for Place := 0 to High(Blocks) do
      begin
        Same(NoError, ErrorOfRealloc(Pointer(Blocks[Place]), Size + 1), 'error');
        FreeMem(Blocks[Place]);
      end;
    end;
end;

procedure TBlocksPointersTests.BlocksNeverWrittenAreFreed;
var
  Round, Index: Integer;
begin
  SetLength(Blocks, 5000);
  for Round := 1 to 10 do
  begin
    for Index := 0 to High(Blocks) do
    begin
      GetMem(Blocks[Index], 24);
      AssertFalse('looks free', BlockLooksFree(BlockSpan(Blocks[Index]), PBlock(Blocks[Index])));
    end;
    for Index := High(Blocks) downto 0 do
      Same(NoError, ErrorOfFree(Blocks[Index]), 'error');
  end;
end;

initialization
  RegisterTest(TBlocksPointersTests);
end.
