/// Plants one bug for the settings of debug mode, at known lines. DebugMatrix has all bugs.
///   DebugBugs BUG SIZE [THREADS]
/// SIZE is the size of the block in bytes. THREADS threads allocate and free blocks meanwhile.
program DebugBugs;

{$mode delphi}{$H+}{$pointermath on}

uses
  LaneMM, cthreads, SysUtils, Churning;

type
  TBug = procedure;

  PItem = ^TItem;
  TItem = record
    Name: string;
    Number: Integer;
  end;

  PNested = ^TNested;
  TNested = record
    Number: Byte;
    Item: TItem;
  end;

  PThing = ^TThing;
  TThing = object
    Number: Integer;
    constructor Start;
    destructor Done; virtual;
  end;

  TPart = class
    Number: Integer;
    procedure Act; virtual;
  end;

var
  Size: NativeInt;
  Block, Target: PByte;

procedure GetBlock;
begin
  GetMem(Block, Size); // planted: got
end;

procedure FreeBlock;
begin
  FreeMem(Block); // planted: freed
end;

procedure UseBlock;
begin
  FreeMem(Target); // planted: here
end;

procedure DoubleFree;
begin
  GetBlock;
  FreeBlock;
  Target := Block;
  UseBlock;
end;

procedure Corrupt;
begin
  GetBlock;
  FreeBlock;
  PByte(Block)^ := 1;
  GetBlock;
end;

procedure TwiceDoubleFree;
begin
  try
    DoubleFree;
  except
    UseBlock;
  end;
end;

// A block of the time before debug mode.
procedure NormalDoubleFree;
begin
  LaneMM_Configure('debug=0');
  GetBlock;
  LaneMM_Configure('debug');
  FreeBlock;
  Target := Block;
  UseBlock;
end;

procedure WriteAfter;
begin
  GetBlock;
  Block[Size] := 66;
  Block[Size + 1] := 67;
  FreeBlock;
end;

// Two references to a string that was counted once.
procedure ReleaseStringTwice;
var
  First, Second: string;
begin
  First := StringOfChar('x', Size);
  Pointer(Second) := Pointer(First); // planted: not counted
  First := ''; // planted: released
  Second := '';
end;

procedure WriteBoth;
begin
  GetBlock;
  Block[-1] := 65;
  Block[Size + 2] := 66;
end;

// Found when the memory is used again.
procedure WriteBeforeReuse;
begin
  LaneMM_Configure('quarantine=0');
  GetBlock;
  FreeBlock;
  Block[0] := 1;
  GetMem(Block, Size);
end;

// The block is never freed: only a check before the next operation can report it so early.
procedure WriteAfterEarly;
begin
  GetBlock;
  Block[Size] := 1;
  Target := AllocMem(Size); // planted: next
end;

procedure FreedTwice;
var
  Thing: TObject;
begin
  Thing := TObject.Create;
  Thing.Free;
  Thing.Free; // planted: again
end;

// Beyond the alignment of the block. Whatever the byte is, it changes: with `hard` it is random.
procedure Overrun;
var
  Offset: NativeInt;
begin
  GetBlock;
  Offset := (Size + 15) and not 15;
  Block[Offset] := Block[Offset] xor 1; // planted: overrun
end;

procedure Nothing;
begin
  GetBlock;
  FillChar(Block^, Size, 1);
  ReallocMem(Block, Size * 2);
  FillChar(Block^, Size * 2, 1);
  FreeBlock;
end;

procedure Clean;
begin
  GetBlock;
  FreeBlock;
end;

procedure Objects;
var
  Index: Integer;
begin
  for Index := 1 to 3 do
    TPart.Create.Free;
end;

procedure TPart.Act;
begin
  Inc(Number);
end;

// One mistake, three reports: the call, which raises an exception; the write that comes nevertheless;
// the block that the exception keeps from being freed.
procedure Chain;
var
  Part: TPart;
begin
  Part := TPart.Create;
  Part.Free; // planted: too early
  GetBlock;
  try
    Part.Act; // planted: act
    FreeBlock;
  finally
    Part.Number := 7;
  end;
end;

// Two mistakes that have nothing in common.
procedure Apart;
begin
  try
    DoubleFree;
  except
    DoubleFree;
  end;
end;

procedure Lose;
begin
  GetBlock;
end;

procedure NewAndFreeMem;
var
  Item: PItem;
begin
  New(Item); // planted: new
  Item^.Name := IntToStr(Size);
  FreeMem(Item); // planted: freemem
end;

procedure NewAndFreeMemNested;
var
  Nested: PNested;
begin
  New(Nested); // planted: new nested
  Nested^.Item.Name := IntToStr(Size);
  FreeMem(Nested); // planted: freemem nested
end;

// What the compiler makes of Dispose, and fields that need none of it.
procedure NewAndFinalize;
var
  Item: PItem;
  Nested: PNested;
  Number: PInteger;
begin
  New(Item);
  Item^.Name := IntToStr(Size);
  Finalize(Item^);
  FreeMem(Item);
  New(Item);
  Item^.Name := 'a constant';
  FreeMem(Item);
  New(Nested);
  Nested^.Item.Name := IntToStr(Size);
  Nested^.Item := Default(TItem);
  FreeMem(Nested);
  New(Number);
  FreeMem(Number);
end;

procedure GetMemAndDispose;
var
  Item: PItem;
begin
  GetMem(Item, SizeOf(TItem)); // planted: getmem
  Dispose(Item); // planted: dispose
end;

constructor TThing.Start;
begin
end;

destructor TThing.Done;
begin
end;

// All that goes together.
procedure Unmixed;
var
  Item: PItem;
  Thing: PThing;
  Text: string;
begin
  NewAndFinalize;
  New(Item);
  Item^.Name := IntToStr(Size);
  Dispose(Item);
  GetMem(Item, SizeOf(TItem));
  FreeMem(Item, SizeOf(TItem));
  GetMem(Item, SizeOf(TItem));
  Initialize(Item^);
  Item^.Name := IntToStr(Size);
  Dispose(Item);
  Item := AllocMem(SizeOf(TItem));
  Dispose(Item);
  Item := nil;
  ReallocMem(Item, 10);
  ReallocMem(Item, Size);
  FreeMem(Item);
  New(Thing, Start);
  Dispose(Thing, Done);
  New(Thing, Start);
  Dispose(Thing);
  New(Thing);
  Thing^.Start;
  Dispose(Thing, Done);
  Text := IntToStr(Size);
  SetLength(Text, Size);
  Objects;
end;

// More blocks than guard pages can be had for.
procedure Many;
const
  Count = 100000;
var
  Blocks: array of Pointer;
  Index: Integer;
begin
  SetLength(Blocks, Count);
  for Index := 0 to Count - 1 do
    Blocks[Index] := AllocMem(Size);
  for Index := 0 to Count - 1 do
    FreeMem(Blocks[Index]);
end;

// Frees a block twice that a resize in the scope of a region moved, outside of the region.
procedure FreeMovedInAScope;
var
  Region: TLaneMM_Region;
  Moved: Pointer;
begin
  Region := LaneMM_RegionCreate('scope', 0);
  GetBlock;
  Moved := Block;
  LaneMM_RegionEnter(Region);
  ReallocMem(Moved, 9 * Size);
  LaneMM_RegionLeave;
  FreeBlock;
end;

// The same with a block of the region, outside of the scope.
procedure FreeMovedOutside;
var
  Region: TLaneMM_Region;
  Moved: Pointer;
begin
  Region := LaneMM_RegionCreate('outside', 0);
  LaneMM_RegionEnter(Region);
  GetBlock;
  LaneMM_RegionLeave;
  Moved := Block;
  ReallocMem(Moved, Size div 4);
  FreeBlock;
end;

// No bug: frees blocks of a region outside of it, and resizes some, before the region ends.
procedure FreeOfRegions;
var
  Region: TLaneMM_Region;
  Blocks: array[0..299] of Pointer;
  Round, Index: Integer;
begin
  for Round := 1 to 10 do
  begin
    Region := LaneMM_RegionCreate('bugs', 0);
    for Index := 0 to High(Blocks) do
    begin
      Blocks[Index] := LaneMM_RegionGetMem(Region, Size + Index);
      FillChar(Blocks[Index]^, Size + Index, Index);
    end;
    for Index := 0 to 99 do
    begin
      FreeMem(Blocks[Index]);
      ReallocMem(Blocks[100 + Index], 50 * Index);
    end;
    LaneMM_RegionFree(Region);
    Many;
  end;
end;

// No bug: blocks of no region are resized in a scope and stay outside.
procedure ResizeInScopes;
var
  Region: TLaneMM_Region;
  Blocks: array[0..299] of Pointer;
  Before: PByte;
  Round, Index: Integer;
begin
  for Round := 0 to 1 do
  begin
    for Index := 0 to High(Blocks) do
    begin
      if Odd(Round * Index) then
        LaneMM_EnterDebugMode;
      Blocks[Index] := AllocMem(Size + Index);
      FillChar(Blocks[Index]^, Size + Index, 7);
      if Odd(Round * Index) then
        LaneMM_ExitDebugMode;
    end;
    Region := LaneMM_RegionCreate('bugs', 0);
    LaneMM_RegionEnter(Region);
    for Index := 0 to High(Blocks) do
    begin
      Before := Blocks[Index];
      ReallocMem(Blocks[Index], Index * 2);
      if (LaneMM_Settings.Values[opErase] <> 0) and (Blocks[Index] <> Before)
        and (Before[Size div 2] = 7) then
        WriteLn(StdErr, 'block ', Index, ' was not erased');
    end;
    LaneMM_RegionLeave;
    LaneMM_RegionFree(Region);
    for Index := 0 to High(Blocks) do
      FreeMem(Blocks[Index]);
  end;
end;

// Found when the block has waited for others.
procedure WriteWaiting;
var
  Index: Integer;
begin
  GetBlock;
  FreeBlock;
  Block[2] := 1;
  for Index := 1 to 2000 do
  begin
    GetBlock;
    FreeBlock;
  end;
  Halt;
end;

// Found when the thread ends.
function WriteFreed(Parameter: Pointer): PtrInt;
begin
  GetBlock;
  FreeBlock;
  Block[2] := 1;
  Result := 0;
end;

procedure WriteInThread;
begin
  WaitForThreadTerminate(BeginThread(WriteFreed), 0);
end;

procedure FreeOfWrongSize;
begin
  GetBlock;
  FreeMem(Block, Size + 1);
end;

// Writes past what a resize in place has left.
procedure WriteAfterShortened;
begin
  GetMem(Block, Size + 5);
  ReallocMem(Block, Size);
  Block[Size] := Block[Size] xor 1;
  FreeBlock;
end;

// A word far from the last byte, in a block with room for more than one word.
procedure WriteFar;
begin
  GetBlock;
  Block[Size + 20] := Block[Size + 20] xor 1;
  FreeBlock;
end;

procedure SeeBlock(const Info: TLaneMM_BlockInfo; Context: Pointer);
begin
  if Info.Address = Block then
    WriteLn(StdErr, 'the freed block is in use');
end;

// No bug: blocks of several threads in turn, each of the size that was asked for.
procedure UseSizes;
var
  Index: Integer;
begin
  for Index := 0 to 499 do
  begin
    GetMem(Block, Size + Index);
    if MemSize(Block) <> Size + Index then
      WriteLn(StdErr, MemSize(Block));
    Block[Size + Index - 1] := 1;
    Target := AllocMem(Size + Index);
    if Target[Size + Index - 1] <> 0 then
      WriteLn(StdErr, 'no zeros');
    ReallocMem(Block, 2 * Size);
    if (Block[Size + Index - 1] <> 1) and (Index < Size) then
      WriteLn(StdErr, 'other contents');
    FreeBlock;
    FreeMem(Target);
  end;
  LaneMM_WalkBlocks(SeeBlock, nil);
end;

// No bug: blocks that were freed before blocks are erased wait beside erased ones.
procedure EraseFromNowOn;
var
  Index: Integer;
begin
  for Index := 1 to 1000 do
  begin
    if Index = 500 then
      LaneMM_Configure('erase=free');
    GetBlock;
    FillChar(Block^, Size, 1);
    FreeBlock;
  end;
end;

function UseInThread(Parameter: Pointer): PtrInt;
begin
  FreeMem(Target);
  UseSizes;
  GetMem(Target, Size);
  Result := 0;
end;

procedure UseInThreads;
var
  Index: Integer;
begin
  GetMem(Target, Size);
  for Index := 1 to 3 do
  begin
    WaitForThreadTerminate(BeginThread(UseInThread), 0);
    UseSizes;
    GetMem(Target, Size);
  end;
  FreeMem(Target);
end;

procedure Run(Bug: TBug);
begin
  try
    Bug;
  except
    on E: EInvalidPointer do ;
    on E: EAccessViolation do ;
  end;
end;

procedure Plant(const Bug: string);
const
  Names: array[0..32] of string = ('double-free', 'normal', 'after', 'both', 'reuse', 'none',
    'twice', 'early', 'again', 'overrun', 'clean', 'objects',
    'new', 'dispose', 'unmixed', 'many', 'string', 'nested',
    'chain', 'apart', 'lost', 'corrupt', 'regions', 'scopes',
    'waiting', 'ended', 'wrong-size', 'shortened', 'far', 'sizes',
    'moved-in-scope', 'moved-outside', 'erasing');
  Bugs: array[0..32] of TBug = (DoubleFree, NormalDoubleFree, WriteAfter, WriteBoth,
    WriteBeforeReuse, Nothing, TwiceDoubleFree, WriteAfterEarly, FreedTwice, Overrun,
    Clean, Objects, NewAndFreeMem, GetMemAndDispose, Unmixed, Many,
    ReleaseStringTwice, NewAndFreeMemNested, Chain, Apart, Lose, Corrupt, FreeOfRegions,
    ResizeInScopes, WriteWaiting, WriteInThread, FreeOfWrongSize, WriteAfterShortened, WriteFar,
    UseInThreads, FreeMovedInAScope, FreeMovedOutside, EraseFromNowOn);
var
  Index: Integer;
begin
  for Index := 0 to High(Names) do
    if Names[Index] = Bug then
      Run(Bugs[Index]);
end;

begin
  Size := StrToInt(ParamStr(2));
  ChurnStart(StrToIntDef(ParamStr(3), 0));
  Plant(ParamStr(1));
  LaneMM_CheckHeap;
  ChurnEnd;
end.
