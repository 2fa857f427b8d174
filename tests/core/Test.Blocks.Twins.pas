/// Tests that the assembler entries of LaneMM.Blocks do what their Pascal twins do. There are
/// none where the build has no assembler.
unit Test.Blocks.Twins;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.Layout, LaneMM.Types;

{$if defined(CPUX86_64) and not defined(LANEMM_PUREPASCAL)}
const
  TurnCount = 100000;

type
  TGet = function(Size: TSize): Pointer;
  TFree = function(P: Pointer): TSize;
  TRealloc = function(var P: Pointer; Size: TSize): Pointer;
  TTwin = record
    Get: TGet;
    Free: TFree;
    Realloc: TRealloc;
  end;

  TTwinKind = (tkPascal, tkFast {$ifdef LINUX}, tkFirstKey {$endif});

  TBlocksTwinsTests = class(TQuietTest)
  strict private
    Records: PHeap;
    Spans: array[0..9999] of PSpan;
    SpanCount: Integer;
    Log: array[TTwinKind, 0..TurnCount] of NativeUInt;
    function PlaceOf(P: Pointer): NativeUInt;
    procedure Play(const Twin: TTwin; out Results: array of NativeUInt);
    procedure FreeOthers(Heap: PHeap; Kind: TTwinKind);
    procedure PlayOn(Heap: PHeap; Kind: TTwinKind);
    function ErrorOf(Free: TFree; P: Pointer): Integer;
    procedure BothRefuseToFree(P: Pointer);
    function BlockBesideAFreeOne(const Twin: TTwin; Size: NativeUInt): Pointer;
    function LastBlockOfASpan(Size: NativeUInt): Pointer;
    function ResizeErrorOf(Realloc: TRealloc; P: Pointer; Size: NativeUInt): Integer;
    procedure BothRefuseToResize(P: Pointer; Size: NativeUInt);
  published
    {$ifdef LINUX}
    procedure ThreadWithAHeapAndWithoutTheFirstKeyGetsBlocksOfTheirSize;
    {$endif}
    procedure TwinsAgreeOnRandomSequences;
    procedure EachTakesWhatTheOtherFreed;
    procedure TwinsRefuseTheSamePointers;
    procedure TwinsRefuseToResizeTheSamePointers;
    procedure TwinsRefuseToResizeInsideALaterSlice;
    procedure TwinsRefuseToResizeInsideALargeBlock;
    procedure TwinsKeepALargeBlockThatFits;
    procedure TwinsReleaseASpanWhoseLastBlockMoves;
    procedure TwinsMoveABlockOfAnotherThread;
    procedure TwinsGetAndFreeByRealloc;
    procedure TwinsServeAThreadWithoutAHeap;
    procedure TwinsFreeBlocksOfAnotherThread;
    procedure TwinsRefuseASecondFreeOfAnothersBlock;
    procedure TheManagerUsesTheAssembler;
    {$ifdef MSWINDOWS}
    procedure FastPathsKeepTheRegistersOfTheCaller;
    {$endif}
  end;
{$ifend}

implementation

{$if defined(CPUX86_64) and not defined(LANEMM_PUREPASCAL)}
uses
  SysUtils, testregistry, LaneMM.Bits, LaneMM.Os, LaneMM.RemoteList, LaneMM.Arena,
  LaneMM.Heap, LaneMM.Allocate, LaneMM.Free, LaneMM.Blocks, LaneMM.Resize,
  LaneMM.Purge;

const
  PlaceShift = 24;
  Twins: array[TTwinKind] of TTwin = (
    (Get: BlockGet; Free: BlockFree; Realloc: BlockRealloc),
    (Get: FastBlockGet; Free: FastBlockFree; Realloc: FastBlockRealloc)
    {$ifdef LINUX}, (Get: FirstKeyBlockGet; Free: FirstKeyBlockFree; Realloc: FastBlockRealloc) {$endif});

// The first keys can be used where the process has them, as the runner of the tests has with the
// glibc that FirstKeySlot stands for.
function LastKind: TTwinKind;
begin
  Result := tkFast;
  {$ifdef LINUX}
  if Process.HasFirstKeys then
    Result := tkFirstKey;
  {$endif}
end;

// Where a block lies, in numbers that do not depend on addresses: the how-manieth span that this
// run has seen, and the offset in it.
function TBlocksTwinsTests.PlaceOf(P: Pointer): NativeUInt;
var
  Span: PSpan;
  Index: Integer;
begin
  Span := BlockSpan(P);
  if Span^.Kind = skLarge then
    Exit(0);
  Index := 0;
  while (Index < SpanCount) and (Spans[Index] <> Span) do
    Inc(Index);
  if Index = SpanCount then
  begin
    Spans[Index] := Span;
    Inc(SpanCount);
  end;
  Result := NativeUInt(Index) shl PlaceShift + (NativeUInt(P) - NativeUInt(Span^.Start));
end;

{$ifdef LINUX}
{$asmmode intel}
procedure SetFirstKey(Value: NativeUInt); assembler; nostackframe;
asm
  mov fs:[FirstKeySlot], rdi
end;

// The system may refuse the key, or a signal handler bring the heap between the looks at both keys.
procedure TBlocksTwinsTests.ThreadWithAHeapAndWithoutTheFirstKeyGetsBlocksOfTheirSize;
var
  P: array[0..2] of Pointer;
begin
  if not Process.HasFirstKeys then
    Exit;
  FreeMem(GetMem(ShortestKept * SliceSize)); // a run that serves what is taken for a large block
  SetFirstKey(0);
  P[0] := FirstKeyBlockGet(1);
  P[1] := FirstKeyBlockGet(MaxClassSize);
  P[2] := FirstKeyBlockGet(MaxClassSize + 1);
  SetFirstKey(ClassSizes);
  AssertTrue('smallest', BlockUsableSize(P[0]) < OsPageSize);
  AssertTrue('span', BlockSpan(P[0])^.Kind = skBlocks);
  AssertTrue('largest with a class', BlockSpan(P[1])^.Kind = skBlocks);
  AssertTrue('larger', BlockSpan(P[2])^.Kind = skLarge);
  FreeMem(P[0]);
  FreeMem(P[1]);
  FreeMem(P[2]);
end;
{$endif}

procedure TBlocksTwinsTests.Play(const Twin: TTwin; out Results: array of NativeUInt);
var
  Blocks: array[0..499] of Pointer;
  Generator: TGenerator;
  Turn, Index: Integer;
begin
  Generator.Start(TestSeed);
  FillChar(Blocks, SizeOf(Blocks), 0);
  SpanCount := 0;
  for Turn := 0 to TurnCount - 1 do
  begin
    Index := Generator.Below(Length(Blocks));
    if Blocks[Index] = nil then
    begin
      Blocks[Index] := Twin.Get(Generator.NextSize(80000));
      Results[Turn] := PlaceOf(Blocks[Index]);
    end
    else if Odd(Turn) then
      Results[Turn] := PlaceOf(Twin.Realloc(Blocks[Index], 1 + Generator.NextSize(80000)))
    else
    begin
      Results[Turn] := Twin.Free(Blocks[Index]);
      Blocks[Index] := nil;
    end;
  end;
  Results[TurnCount] := 0;
  for Index := 0 to High(Blocks) do
    Inc(Results[TurnCount], Twin.Free(Blocks[Index]));
end;

// Plays as a thread whose heap is empty, where no thread has left anything.
procedure TBlocksTwinsTests.PlayOn(Heap: PHeap; Kind: TTwinKind);
var
  Mine, Kept: PHeap;
begin
  ProcessTrim; // nor kept runs, which the play before may have left
  Mine := OsThreadHeap;
  Kept := Process.Abandoned;
  Process.Abandoned := Records;
  OsSetThreadHeap(Heap);
  Play(Twins[Kind], Log[Kind]);
  OsSetThreadHeap(Mine);
  Process.Abandoned := Kept;
  HeapAbandon(Heap);
end;

procedure TBlocksTwinsTests.TwinsAgreeOnRandomSequences;
var
  Kind: TTwinKind;
  Turn, Different: Integer;
begin
  AssertTrue('this thread has a fast slot', Process.HasFastSlot);
  Records := NewHeaps(1 + Length(Twins));
  for Kind := tkPascal to LastKind do
    PlayOn(Records + 1 + Ord(Kind), Kind);
  Different := 0;
  for Kind := tkFast to LastKind do
    for Turn := 0 to TurnCount do
      Inc(Different, Ord(Log[tkPascal, Turn] <> Log[Kind, Turn]));
  Same(0, Different, 'turns that differ');
end;

procedure TBlocksTwinsTests.EachTakesWhatTheOtherFreed;
var
  Size: NativeUInt;
  P, Q, R, Kept: Pointer;
begin
  for Size := 0 to MaxClassSize + 1 do
  begin
    Kept := BlockGet(Size); // so that the last free does not release the span
    P := FastBlockGet(Size);
    if ArenaSpan(P) <> ArenaSpan(Kept) then
    begin
      BlockFree(Kept);
      Kept := P;
      P := FastBlockGet(Size);
    end;
    AtLeast(Size, FastBlockFree(P), 'usable size, assembler');
    Q := BlockGet(Size);
    AtLeast(Size, BlockFree(Q), 'usable size, Pascal');
    R := FastBlockGet(Size);
    AssertTrue('the same block', (Size > MaxClassSize) or (P = Q) and (Q = R));
    BlockFree(R);
    BlockFree(Kept);
  end;
end;

function TBlocksTwinsTests.ErrorOf(Free: TFree; P: Pointer): Integer;
begin
  Result := NoError;
  try
    Free(P);
  except
    on EInvalidPointer do
      Result := InvalidPointer;
  end;
end;

procedure TBlocksTwinsTests.BothRefuseToFree(P: Pointer);
begin
  Same(InvalidPointer, ErrorOf(BlockFree, P), 'Pascal');
  Same(InvalidPointer, ErrorOf(FastBlockFree, P), 'assembler');
end;

procedure TBlocksTwinsTests.TwinsRefuseTheSamePointers;
var
  P: PByte;
  Span: PSpan;
  Offset: NativeUInt;
begin
  P := FastBlockGet(48);
  Span := ArenaSpan(P);
  // After the blocks allocated so far: the rest of the span, and the next span.
  Offset := Span^.CarvedBytes;
  while Offset < SliceSize do
  begin
    BothRefuseToFree(Span^.Start + Offset);
    Inc(Offset, 8);
  end;
  for Offset := 1 to 47 do
    BothRefuseToFree(P + Offset);
  FastBlockFree(P);
  BothRefuseToFree(P);
end;

function TBlocksTwinsTests.ResizeErrorOf(Realloc: TRealloc; P: Pointer;
  Size: NativeUInt): Integer;
begin
  Result := NoError;
  try
    Realloc(P, Size);
  except
    on EInvalidPointer do
      Result := InvalidPointer;
  end;
end;

procedure TBlocksTwinsTests.BothRefuseToResize(P: Pointer; Size: NativeUInt);
begin
  Same(InvalidPointer, ResizeErrorOf(BlockRealloc, P, Size), 'Pascal');
  Same(InvalidPointer, ResizeErrorOf(FastBlockRealloc, P, Size), 'assembler');
end;

procedure TBlocksTwinsTests.TwinsRefuseToResizeTheSamePointers;
const
  Sizes: array[0..2] of NativeUInt = (1, 40, 400);
var
  P: PByte;
  Size: NativeUInt;
  Offset: Integer;
begin
  P := FastBlockGet(48);
  for Size in Sizes do
    for Offset := 1 to 47 do
      BothRefuseToResize(P + Offset, Size);
  FastBlockFree(P);
  for Size in Sizes do
    BothRefuseToResize(P, Size);
end;

procedure TBlocksTwinsTests.TwinsRefuseToResizeInsideALaterSlice;
const
  Size = 20000;
  Offsets: array[0..3] of NativeUInt = (8, 16, 4096, Size - 16);
  Sizes: array[0..2] of NativeUInt = (1, Size, 2 * Size);
var
  Blocks: array[0..15] of PByte;
  P: PByte;
  Offset, Wanted: NativeUInt;
  Index, Later: Integer;
begin
  for Index := 0 to High(Blocks) do
    Blocks[Index] := FastBlockGet(Size);
  Later := 0;
  for P in Blocks do
    if ArenaSpan(P)^.Kind = skInner then
    begin
      Inc(Later);
      for Offset in Offsets do
        for Wanted in Sizes do
          BothRefuseToResize(P + Offset, Wanted);
    end;
  for P in Blocks do
    FastBlockFree(P);
  AtLeast(1, Later, 'blocks in later slices');
end;

procedure TBlocksTwinsTests.TwinsRefuseToResizeInsideALargeBlock;
const
  Size = 300000;
  Offsets: array[0..3] of NativeUInt = (8, 16, SliceSize, Size - 16);
  Sizes: array[0..3] of NativeUInt = (1, Size div 2, Size, 2 * Size);
var
  P: PByte;
  Offset, Wanted: NativeUInt;
begin
  P := FastBlockGet(Size);
  for Offset in Offsets do
    for Wanted in Sizes do
      BothRefuseToResize(P + Offset, Wanted);
  FastBlockFree(P);
  for Wanted in Sizes do
    Same(InvalidPointer, ResizeErrorOf(FastBlockRealloc, P, Wanted), 'assembler, a freed block');
end;

procedure TBlocksTwinsTests.TwinsKeepALargeBlockThatFits;
const
  Size = 300000;
var
  Kind: TTwinKind;
  P, Before: Pointer;
  Usable: NativeUInt;
begin
  for Kind := Low(Twins) to LastKind do
  begin
    P := Twins[Kind].Get(Size);
    Before := P;
    Usable := BlockUsableSize(P);
    Twins[Kind].Realloc(P, Usable);
    Twins[Kind].Realloc(P, Usable shr KeptShift);
    Check(P = Before, 'the block has moved');
    Same(Usable, BlockUsableSize(P), 'bytes of a block that fits');
    Twins[Kind].Realloc(P, Usable shr KeptShift - 1);
    Same(AlignUp(Usable shr KeptShift - 1, OsPageSize), BlockUsableSize(P), 'bytes of a reduced block');
    Usable := BlockUsableSize(P);
    Twins[Kind].Realloc(P, Usable + 1);
    AtLeast(Usable + 1, BlockUsableSize(P), 'bytes of a block that grew');
    Twins[Kind].Free(P);
  end;
end;

// Leaves a free block to the next call for this size, also behind a heap's first blocks, which may
// come from spans of larger classes. Returns one to free.
function TBlocksTwinsTests.BlockBesideAFreeOne(const Twin: TTwin; Size: NativeUInt): Pointer;
var
  Blocks: array[0..23] of Pointer;
  Index: Integer;
begin
  for Index := 0 to High(Blocks) do
    Blocks[Index] := Twin.Get(Size);
  for Index := 1 to High(Blocks) do
    Twin.Free(Blocks[Index]);
  Result := Blocks[0];
end;

// Returns a block whose span has no other in use and is not current.
function TBlocksTwinsTests.LastBlockOfASpan(Size: NativeUInt): Pointer;
var
  Blocks: TPointers;
  Count, Index: Integer;
  Span: PSpan;
begin
  SetLength(Blocks, 10000);
  Count := -1;
  Result := nil;
  repeat
    Inc(Count);
    Blocks[Count] := BlockGet(Size);
    Span := ArenaSpan(Blocks[Count]);
    if (Result = nil) and (Span^.Used - Span^.Bias = 1) then
      Result := Blocks[Count];
  until (Result <> nil) and (Span <> ArenaSpan(Result));
  for Index := 0 to Count do
    if Blocks[Index] <> Result then
      BlockFree(Blocks[Index]);
end;

procedure TBlocksTwinsTests.TwinsReleaseASpanWhoseLastBlockMoves;
const
  Size = 1000;
var
  Kind: TTwinKind;
  P, Kept: Pointer;
  Span: PSpan;
  IsReleased: Boolean;
begin
  for Kind := tkPascal to LastKind do
  begin
    P := LastBlockOfASpan(Size);
    Span := ArenaSpan(P);
    // All of these have place in one span: where P moves to, the current one has a free block.
    Kept := BlockBesideAFreeOne(Twins[Kind], BlockGrownSize(Span^.BlockSize, 2 * Size));
    AssertTrue('own', Span^.Owner = OsThreadHeap);
    FillPattern(P, Size, 1);
    Twins[Kind].Realloc(P, 2 * Size);
    IsReleased := Span^.Owner = NoOwner;
    AssertTrue('released', IsReleased);
    AssertTrue('contents', HasPattern(P, Size, 1));
    Twins[Kind].Free(P);
    Twins[Kind].Free(Kept);
  end;
end;

procedure TBlocksTwinsTests.TwinsMoveABlockOfAnotherThread;
var
  Kind: TTwinKind;
  P, Kept: Pointer;
  Mine: PHeap;
  Span: PSpan;
  Used, Remote: NativeUInt;
begin
  Records := NewHeaps(Length(Twins));
  Mine := OsThreadHeap;
  for Kind := tkPascal to LastKind do
  begin
    P := BlockGet(100);
    FillPattern(P, 100, 1); // a block with a stale link takes the slow path
    Span := ArenaSpan(P);
    Used := Span^.Used;
    Remote := RemoteCount(Span);
    OsSetThreadHeap(Records + Ord(Kind));
    Kept := BlockBesideAFreeOne(Twins[Kind], 256);
    Twins[Kind].Realloc(P, 200); // 112 bytes become 256
    OsSetThreadHeap(Mine);
    Same(Used, Span^.Used, 'blocks in use');
    Same(Remote + 1, RemoteCount(Span), 'blocks freed by others');
    BlockFree(P);
    BlockFree(Kept);
    HeapAbandon(Records + Ord(Kind));
  end;
end;

procedure TBlocksTwinsTests.TwinsGetAndFreeByRealloc;
var
  Kind: TTwinKind;
  P: Pointer;
begin
  for Kind := tkPascal to LastKind do
  begin
    P := nil;
    AssertTrue('nil gets nothing', Twins[Kind].Realloc(P, 0) = nil);
    AssertTrue('nil gets a block', Twins[Kind].Realloc(P, 100) = P);
    AtLeast(100, Twins[Kind].Free(P), 'usable size');
    P := Twins[Kind].Get(100);
    AssertTrue('size 0 frees', Twins[Kind].Realloc(P, 0) = nil);
    AssertTrue('nil', P = nil);
  end;
end;

procedure TBlocksTwinsTests.TwinsServeAThreadWithoutAHeap;
var
  P, Q: Pointer;
  Mine: PHeap;
  Before, Results: NativeUInt;
begin
  Before := UsedBytes;
  P := BlockGet(100);
  Q := BlockGet(100);
  Mine := OsThreadHeap;
  OsSetThreadHeap(nil);
  Results := BlockFree(P) + FastBlockFree(Q) + BlockFree(nil) + FastBlockFree(nil);
  OsSetThreadHeap(Mine);
  Same(2 * 112, Results, 'usable sizes');
  Same(Before, UsedBytes, 'bytes in use');
end;

// Frees this thread's blocks as the thread of Heap, so that spans stay with their owner, are given up
// before, or are empty then; logs sizes, lists and counts. Then takes the blocks from the lists.
procedure TBlocksTwinsTests.FreeOthers(Heap: PHeap; Kind: TTwinKind);
var
  Blocks: array[0..9999] of Pointer;
  Generator: TGenerator;
  Index: Integer;
  Span: PSpan;
  Mine, Kept: PHeap;
begin
  Generator.Start(TestSeed);
  Mine := OsThreadHeap;
  Kept := Process.Abandoned;
  Process.Abandoned := Records;
  OsSetThreadHeap(Heap);
  for Index := 0 to High(Blocks) do
    Blocks[Index] := Twins[Kind].Get(1 + Generator.NextSize(12000));
  OsSetThreadHeap(Heap + 1);
  for Index := 0 to High(Blocks) do
  begin
    Span := BlockSpan(Blocks[Index]);
    Log[Kind, 3 * Index] := Twins[Kind].Free(Blocks[Index]);
    Log[Kind, 3 * Index + 1] := RemoteCount(Span);
    Log[Kind, 3 * Index + 2] := Span^.Used + Ord(Span^.Owner = Heap) shl 20;
  end;
  OsSetThreadHeap(Heap);
  SpanCount := 0;
  for Index := 0 to High(Blocks) do
  begin
    Blocks[Index] := Twins[Kind].Get(1 + Generator.NextSize(12000));
    Log[Kind, 3 * Index] := Log[Kind, 3 * Index] shl 32 + PlaceOf(Blocks[Index]);
  end;
  for Index := 0 to High(Blocks) do
    Twins[Kind].Free(Blocks[Index]);
  OsSetThreadHeap(Mine);
  Process.Abandoned := Kept;
  HeapAbandon(Heap);
  HeapAbandon(Heap + 1);
end;

procedure TBlocksTwinsTests.TwinsFreeBlocksOfAnotherThread;
var
  Kind: TTwinKind;
  Turn, Different, Remote: Integer;
begin
  Records := NewHeaps(1 + 2 * Length(Twins));
  for Kind := tkPascal to LastKind do
    FreeOthers(Records + 1 + 2 * Ord(Kind), Kind);
  Different := 0;
  Remote := 0;
  for Turn := 0 to 3 * 10000 - 1 do
  begin
    Inc(Remote, Ord((Turn mod 3 = 1) and (Log[tkPascal, Turn] > 1)));
    for Kind := tkFast to LastKind do
      Inc(Different, Ord(Log[tkPascal, Turn] <> Log[Kind, Turn]));
  end;
  Same(0, Different, 'results that differ');
  AtLeast(100, Remote, 'frees behind another one on a list');
end;

procedure TBlocksTwinsTests.TwinsRefuseASecondFreeOfAnothersBlock;
var
  P, Q: PByte;
  Mine: PHeap;
  Wrong, Offset: Integer;
begin
  P := BlockGet(100);
  Q := BlockGet(100);
  Mine := OsThreadHeap;
  OsSetThreadHeap(NewHeaps(1));
  Wrong := 0;
  for Offset := 1 to 99 do
    Inc(Wrong, Ord(ErrorOf(FastBlockFree, P + Offset) <> InvalidPointer));
  FastBlockFree(P);
  FastBlockFree(Q);
  Inc(Wrong, Ord(ErrorOf(FastBlockFree, P) <> InvalidPointer));
  Inc(Wrong, Ord(ErrorOf(FastBlockFree, Q) <> InvalidPointer));
  Inc(Wrong, Ord(ErrorOf(BlockFree, P) <> InvalidPointer));
  OsSetThreadHeap(Mine);
  Same(0, Wrong, 'wrong answers');
end;

procedure TBlocksTwinsTests.TheManagerUsesTheAssembler;
var
  Manager: TMemoryManager;
begin
  GetMemoryManager(Manager);
  AssertTrue('a fast slot', Process.HasFastSlot);
  AssertTrue('GetMem', @Manager.GetMem = @Twins[LastKind].Get);
  AssertTrue('FreeMem', @Manager.FreeMem = @Twins[LastKind].Free);
end;

{$ifdef MSWINDOWS}
{$asmmode intel}
// Returns how many of the registers that a routine has to keep on Windows, and not on Linux, have lost
// what Call(First, Second) found there. Answer receives what it returned. It must raise nothing: there is
// no unwind data here.
function LostRegisters(Call: Pointer; First, Second: NativeUInt; out Answer: NativeUInt): Integer;
  assembler; nostackframe;
asm
  push rdi
  push rsi
  push rbx
  sub rsp, 64
  movups [rsp + 32], xmm6
  mov rbx, r9
  mov rax, rcx
  mov rcx, rdx
  mov rdx, r8
  mov rdi, 111
  mov rsi, 222
  movq xmm6, rsp
  call rax
  mov [rbx], rax
  movq rdx, xmm6
  xor eax, eax
  cmp rdi, 111
  setne al
  xor ecx, ecx
  cmp rsi, 222
  setne cl
  add eax, ecx
  cmp rdx, rsp
  setne cl
  add eax, ecx
  movups xmm6, [rsp + 32]
  add rsp, 64
  pop rbx
  pop rsi
  pop rdi
end;

procedure TBlocksTwinsTests.FastPathsKeepTheRegistersOfTheCaller;
const
  Sizes: array[0..5] of NativeUInt = (1, 200, 3000, 40000, 300000, 8000000);
var
  Size: NativeUInt;
  Lost: Integer;
  P, Ignored: NativeUInt;
begin
  Lost := 0;
  for Size in Sizes do
  begin
    Inc(Lost, LostRegisters(@FastBlockGet, Size, 0, P));
    Inc(Lost, LostRegisters(@FastBlockRealloc, NativeUInt(@P), Size - Size div 16, Ignored));
    Inc(Lost, LostRegisters(@BlockUsableSize, P, 0, Ignored));
    AtLeast(Size, Ignored, 'usable size');
    Inc(Lost, LostRegisters(@FastBlockRealloc, NativeUInt(@P), 2 * Size, Ignored));
    Inc(Lost, LostRegisters(@FastBlockFree, P, 0, Ignored));
    AtLeast(2 * Size, Ignored, 'usable size');
  end;
  Same(0, Lost, 'registers');
end;
{$endif}

initialization
  RegisterTest(TBlocksTwinsTests);
{$ifend}
end.
