/// How much memory do blocks take of which the program touches little?
//
// The peak of memory is the answer; the quiet memory is that of the live blocks.
// sparse-blocks: 300 blocks of 2.2 MB, of each of which two pages are touched, at the start and
// in the middle: 2.4 MB. One operation is one block.
// sparse-stacks: 2,000 blocks of 256 KB, of each of which the last 8 KB are touched, as stacks of
// coroutines are: 16 MB. One operation is one block.
// sparse-calloc: one block of 512 MB from AllocMem, of which a page in 64 is touched, as in a hash
// table: 8 MB. One operation is one page.
unit Workload.Sparse;

{$I Bench.inc}

interface

implementation

uses
  Bench.Blocks, Bench.Rest, Bench.Workloads;

const
  PageSize = 4096;
  BlockSize = 2200000;
  StackSize = 256 shl 10;
  TouchedEvery = 64 * PageSize;

type
  /// Blocks of one size of which two pages are touched.
  TTwoPages = class(TWorkload)
  private
    FSize: NativeUInt;                         //< const   of each block, in bytes
    FOffsets: array[0..1] of NativeUInt;       //< const   where the blocks are touched
    FBlocks: array of PByte;                   //< owner   the live blocks
  public
    constructor Create(const Name: string; Count: Integer; Size, First, Second: NativeUInt);
    procedure Run(const Job: TJob); override;
    procedure Finish; override;
  end;

  /// A block of zeros of which few pages are touched.
  TZeros = class(TWorkload)
  private
    FBlock: PByte;                             //< owner   the live block
    FPageCount: Int64;                         //< owner   touched pages
  public
    procedure Run(const Job: TJob); override;
    procedure Finish; override;
  end;

constructor TTwoPages.Create(const Name: string; Count: Integer; Size, First, Second: NativeUInt);
begin
  inherited Create(Name, Count);
  FSize := Size;
  FOffsets[0] := First;
  FOffsets[1] := Second;
end;

procedure TTwoPages.Run(const Job: TJob);
var
  I: Integer;
  Offset: NativeUInt;
begin
  SetLength(FBlocks, Job.Operations);
  for I := 0 to High(FBlocks) do
  begin
    FBlocks[I] := GetMem(FSize);
    for Offset in FOffsets do
      PUInt64(FBlocks[I] + Offset)^ := RandomSeed(I) + Offset;
  end;
end;

procedure TTwoPages.Finish;
var
  I: Integer;
  Offset: NativeUInt;
begin
  TellQuiet;
  for I := 0 to High(FBlocks) do
  begin
    for Offset in FOffsets do
      Check(PUInt64(FBlocks[I] + Offset)^ = RandomSeed(I) + Offset, 'a block has lost its contents');
    FreeMem(FBlocks[I]);
  end;
end;

procedure TZeros.Run(const Job: TJob);
var
  I: Int64;
  Word: PUInt64;
begin
  FPageCount := Job.Operations;
  FBlock := AllocMem(FPageCount * TouchedEvery);
  for I := 0 to FPageCount - 1 do
  begin
    Word := PUInt64(FBlock + I * TouchedEvery);
    Check(Word^ = 0, 'a block of zeros is none');
    Word^ := RandomSeed(I);
  end;
end;

procedure TZeros.Finish;
var
  I: Int64;
begin
  TellQuiet;
  for I := 0 to FPageCount - 1 do
    Check(PUInt64(FBlock + I * TouchedEvery)^ = RandomSeed(I), 'a block has lost its contents');
  FreeMem(FBlock);
end;

initialization
  TTwoPages.Create('sparse-blocks', 300, BlockSize, 0, BlockSize div 2);
  TTwoPages.Create('sparse-stacks', 2000, StackSize, StackSize - PageSize, StackSize - 2 * PageSize);
  TZeros.Create('sparse-calloc', (512 shl 20) div TouchedEvery);

end.
