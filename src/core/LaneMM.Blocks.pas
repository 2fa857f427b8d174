/// GetMem, FreeMem, ReallocMem, AllocMem, MemSize.
//
// Owns:       THeap.Realloc.
// Invariants: a fast path touches only the thread's heap, the span's first cache line and the
//             block's first word: no lock, no atomic operation.
// Callers:    any thread, also before its first allocation and after its thread-end hooks.
// Errors:     no memory: run-time error 203 (EOutOfMemory), or nil with
//             ReturnNilIfGrowHeapFails; the block given to ReallocMem stays as it was.
//             Not a block, or a free one: run-time error 204 (EInvalidPointer), nothing changed.
// Progress:   BlockFree never waits. The others wait only in slow paths, for a lock.
// Source:     semantics: FPC rtl/inc/heap.inc; growth: le Riche, FastMM4.pas, ReallocMem.
unit LaneMM.Blocks;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Types;

const
  /// A block shrinks in place down to this share of its size.
  BlockKeptShare = 4;

/// A block of at least Size bytes; Size 0 gives a block too.
function BlockGet(Size: TSize): Pointer;
/// The same, all usable bytes zero.
function BlockGetZero(Size: TSize): Pointer;
/// Frees P; nil is allowed. Returns the usable size that it had.
function BlockFree(P: Pointer): TSize;
/// The same; Size is what the caller believes it asked for.
function BlockFreeSize(P: Pointer; Size: TSize): TSize;
/// Changes the size of P, which may move; keeps the smaller of the usable size and Size bytes.
/// P nil gets a block, Size 0 frees. The result is P.
function BlockRealloc(var P: Pointer; Size: TSize): Pointer;
/// Bytes to ask for when a block of UsableSize bytes has to move to hold Size: room to grow on.
function BlockGrownSize(UsableSize, Size: NativeUInt): NativeUInt;
/// The usable size of P; 0 for nil.
function BlockUsableSize(P: Pointer): TSize;
/// Counts a block that ReallocMem has moved.
procedure BlockCountMove(Heap: PHeap; CopiedBytes: NativeUInt);
/// Whether P is a block of this copy of LaneMM, in use as far as can be told without a walk.
function BlockIsOurs(P: Pointer): Boolean;

{$ifdef LANEMM_ASM}
/// BlockGet in assembler, where the heap can be read with one instruction (Process.HasFastSlot).
function FastBlockGet(Size: TSize): Pointer;
/// BlockFree in assembler, likewise.
function FastBlockFree(P: Pointer): TSize;
/// BlockRealloc in assembler, likewise.
function FastBlockRealloc(var P: Pointer; Size: TSize): Pointer;
/// CountedBlockGet in assembler, likewise.
function FastCountedBlockGet(Size: TSize): Pointer;

// Where the fast paths go, those of lib/ too.

/// BlockGet where the current span has no block, the thread no heap, or the size no class.
function BlockGetSlow(Size: NativeUInt): Pointer;
/// BlockFree of what the fast path does not know to be a block in use.
function BlockFreeSlow(P: Pointer): NativeUInt;
/// BlockFree of what lies in the slice of Span, a record that Heap does not own. Heap may be nil.
function BlockFreeOther(P: PBlock; Heap: PHeap; Span: PSpan): TSize;
/// Gives back a span that is not current and whose last block is on FreeList already. Returns
/// Size: the span may be another's by then.
function LastBlockFreed(Heap: PHeap; Span: PSpan; Size: NativeUInt): NativeUInt;
{$endif}

/// BlockGet for a sampled profile: counts Heap.SampleIn down, Process.SampledGet gets the block
/// that makes it negative.
function CountedBlockGet(Size: TSize): Pointer;
/// Puts these routines into Manager, each in the fastest form that can be used here.
procedure BlockEntries(var Manager: TMemoryManager);
/// The fastest of CountedBlockGet and its twin that can be used here.
function QuickCountedBlockGet: TSizeCall;

implementation

uses
  LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.SizeClasses, LaneMM.Errors, LaneMM.RemoteList,
  LaneMM.Arena, LaneMM.Span, LaneMM.Large, LaneMM.Heap, LaneMM.Threads, LaneMM.Purge,
  LaneMM.Foreign, LaneMM.Limits;

// ---------------------------------------------------------------------------- get

function LargeBlock(Size: NativeUInt): Pointer;
var
  Span: PSpan;
begin
  Span := LargeGet(Size);
  if Span = nil then
    Exit(nil);
  Result := Span^.Start;
  PurgerTick;
end;

function SmallBlock(SizeClass: Cardinal): Pointer;
var
  Heap: PHeap;
  Span: PSpan;
begin
  Heap := ThreadHeap;
  if Heap = nil then
    Exit(nil);
  Span := Heap^.Current[SizeClass];
  if Odd(Span^.FreeList) and not SpanRefill(Span) then
  begin
    ProcessSweep;
    Span := HeapNextSpan(Heap, SizeClass);
    if Span = nil then
      Exit(nil);
    PurgerTick;
  end;
  Result := SpanTake(Span);
end;

function TryGetOnce(Size: NativeUInt): Pointer;
begin
  if Size > MaxClassSize then
    Result := LargeBlock(Size)
  else
    Result := SmallBlock(SizeToClass(Size));
end;

// A block where the current span has none, or the thread no heap yet. Nil without memory, also
// after what idle threads hold empty was given back.
function TryGet(Size: NativeUInt): Pointer;
begin
  Result := TryGetOnce(Size);
  if Result = nil then
  begin
    ProcessTrim;
    Result := TryGetOnce(Size);
  end;
  if Process.HasLimits then
    LimitsTick;
end;

// The fast path in Pascal; nil without memory. Heap is this thread's, which may be nil.
function QuickGet(Heap: PHeap; Size: NativeUInt): Pointer;
begin
  Result := nil;
  if (Heap <> nil) and (Size <= MaxClassSize) then
    Result := SpanTake(Heap^.Current[Process.ClassOf[(Size + ClassStep - 1) div ClassStep]]);
  if Result = nil then
    Result := TryGet(Size);
end;

function BlockGet(Size: TSize): Pointer;
begin
  Result := QuickGet(OsThreadHeap, Size);
  if Result = nil then
    Result := ErrorOutOfMemory(Size);
end;

function CountedBlockGet(Size: TSize): Pointer;
var
  Heap: PHeap;
begin
  Heap := OsThreadHeap;
  if Heap <> nil then
  begin
    Dec(Heap^.SampleIn, Size);
    if Heap^.SampleIn < 0 then
      Exit(Process.SampledGet(Size));
  end;
  Result := BlockGet(Size);
end;

function QuickCountedBlockGet: TSizeCall;
begin
  Result := CountedBlockGet;
  {$ifdef LANEMM_ASM}
  if Process.HasFastSlot then
    Result := FastCountedBlockGet;
  {$endif}
end;

function BlockGetZero(Size: TSize): Pointer;
var
  Span: PSpan;
begin
  {$ifdef LANEMM_ASM}
  if Process.HasFastSlot then
    Result := FastBlockGet(Size)
  else
  {$endif}
    Result := BlockGet(Size);
  if Result = nil then
    Exit;
  Span := ArenaSpan(Result);
  if Span^.Kind = skInner then
    Dec(Span, Span^.Distance);
  if (Span^.Kind <> skLarge) or not Span^.IsZero then
    FillChar(Result^, Span^.BlockSize, 0);
end;

// ---------------------------------------------------------------------------- find

// The first record of the span whose later slice Span is, or nil.
function FirstOfSpan(Span: PSpan): PSpan;
begin
  Result := ArenaFirst(Span, [skBlocks, skLarge]);
end;

// The first record of the span in use that holds P, or nil. Any pointer.
function FindSpan(P: Pointer): PSpan; inline;
begin
  Result := ArenaSpan(P);
  if (Result <> nil) and not (Result^.Kind in [skBlocks, skLarge]) then
    Result := FirstOfSpan(Result);
end;

// The span of the block P; nil when P is not where a block begins.
function SpanOfBlock(P: Pointer): PSpan;
begin
  Result := FindSpan(P);
  if (Result <> nil) and not SpanBlockIsValid(Result, P) then
    Result := nil;
end;

// Whether P, which is no block of a size class and no large one, lies where debug blocks may be.
function IsForDebug(P: Pointer): Boolean;
begin
  Result := (Process.Debug <> nil) and (ArenaSpan(P) <> nil);
end;

function BlockIsOurs(P: Pointer): Boolean;
var
  Span: PSpan;
begin
  Span := SpanOfBlock(P);
  if (Span = nil) and IsForDebug(P) then
    Exit(Process.Debug^.Owns(P));
  Result := (Span <> nil) and ((Span^.Kind = skLarge) or not BlockLooksFree(Span, P));
end;

// ---------------------------------------------------------------------------- free

// Frees a block of another heap, or of none. Heap is this thread's, which may be nil.
procedure RemoteFree(Heap: PHeap; Span: PSpan; P: Pointer);
var
  Watch: TFreeCall;
begin
  Watch := Process.WatchRemoteFree;
  if (@Watch <> nil) and (Span^.Owner <> NoOwner) then
    Watch(Span, P);
  if RemotePush(Span, P) = rpPushed then
  begin
    // An owner that allocates from the span will find the block; another one may never look.
    if not Span^.IsCurrent and WantSweep then
      PurgerNotify;
    Exit;
  end;
  // The span was given up and is ours now.
  SpanPut(Span, P);
  if Heap = nil then
    Heap := ThreadHeapOrOrphans;
  HeapTakeOver(Heap, Span);
end;

// Frees a block of this thread that is valid, and free or not.
procedure OwnFree(Heap: PHeap; Span: PSpan; P: Pointer);
begin
  if SpanPut(Span, P) then
  begin
    HeapEmptied(Heap, Span);
    PurgerNotify;
  end;
end;

// P is no block: run-time error 204, and 0.
function Invalid(P: Pointer; Call: TInvalidCall): NativeUInt;
begin
  if Process.Debug <> nil then
    Process.Debug^.Invalid(P, Call);
  Result := ErrorInvalidPointer;
end;

// Frees what is no block of a size class and no large one.
function FreeOther(P: Pointer): NativeUInt;
begin
  if IsForDebug(P) then
    Exit(Process.Debug^.Free(P));
  Result := 0;
  if (ArenaSpan(P) <> nil) or not ForeignFree(P, Result) then
    Result := Invalid(P, icFree);
end;

// Whether the first word looks like a link to a block nearby; rarely true for a block in use.
function MayBeFree(P: PBlock): Boolean; inline;
begin
  Result := (LinkOf(P^.Link) xor NativeUInt(P)) shr 31 shr 1 = 0;
end;

// Whether the block is free. Its first word says so; for the owner's own blocks the list, where
// it is known, has the last word.
function IsFreeAlready(Heap: PHeap; Span: PSpan; P: Pointer): Boolean;
begin
  Result := BlockLooksFree(Span, P) and ((Span^.Owner <> Heap) or (RemoteCount(Span) > 0)
    or SpanHasFreeBlock(Span, P));
end;

function FreeLargeBlock(Span: PSpan): NativeUInt;
var
  Watch: TFreeCall;
begin
  Result := Span^.BlockSize;
  Watch := Process.WatchLargeFree;
  if @Watch <> nil then
    Watch(Span, Span^.Start);
  LargeFree(Span);
  PurgerNotify;
end;

function BlockFreeSlow(P: Pointer): NativeUInt;
var
  Span: PSpan;
  Heap: PHeap;
begin
  if P = nil then
    Exit(0);
  Span := SpanOfBlock(P);
  if Span = nil then
    Exit(FreeOther(P));
  if Span^.Kind = skLarge then
    Exit(FreeLargeBlock(Span));
  Heap := OsThreadHeap;
  if IsFreeAlready(Heap, Span, P) then
    Exit(Invalid(P, icFree));
  Result := Span^.BlockSize;
  if Span^.Owner = Heap then
    OwnFree(Heap, Span, P)
  else
    RemoteFree(Heap, Span, P);
end;

// Frees P, which lies in the slice of Span, a record that Heap does not own. Heap may be nil.
function BlockFreeOther(P: PBlock; Heap: PHeap; Span: PSpan): TSize;
begin
  if (Span^.Kind <> skBlocks) or not SpanBlockIsValid(Span, P) or MayBeFree(P) then
    Exit(BlockFreeSlow(P));
  Result := Span^.BlockSize;
  RemoteFree(Heap, Span, P);
end;

function BlockFree(P: Pointer): TSize;
var
  Span: PSpan;
  Heap: PHeap;
begin
  Heap := OsThreadHeap;
  Span := ArenaSpan(P);
  if (Span = nil) or (Span^.Owner = nil) then // nowhere, or in a slice that was never used
    Exit(BlockFreeSlow(P));
  if Span^.Owner <> Heap then
    Exit(BlockFreeOther(P, Heap, Span));
  if not SpanBlockIsValid(Span, P) or MayBeFree(P) then
    Exit(BlockFreeSlow(P));
  Result := Span^.BlockSize;
  OwnFree(Heap, Span, P);
end;

function BlockFreeSize(P: Pointer; Size: TSize): TSize;
begin
  {$ifdef LANEMM_ASM}
  if Process.HasFastSlot then
    Exit(FastBlockFree(P));
  {$endif}
  Result := BlockFree(P);
end;

// ---------------------------------------------------------------------------- realloc

{$ifdef LANEMM_ASM}
procedure CopyBlock(Source, Target: Pointer; Size: NativeUInt); forward;
{$else}
procedure CopyBlock(Source, Target: Pointer; Size: NativeUInt); inline;
begin
  Move(Source^, Target^, Size);
end;
{$endif}

const
  // A block that grew once is expected to grow again: at least to twice its size and 32 bytes
  // while it is small, to one and a half times above.
  DoubledLimit = 2048;
  DoubledExtra = 32;

function BlockGrownSize(UsableSize, Size: NativeUInt): NativeUInt;
begin
  if Process.IsMalloc and (Size <= MaxClassSize) then
    Exit(Size);
  if UsableSize <= DoubledLimit then
    Result := UsableSize * 2 + DoubledExtra
  else
    Result := UsableSize + UsableSize shr 1;
  if Result < Size then
    Result := Size;
end;

procedure BlockCountMove(Heap: PHeap; CopiedBytes: NativeUInt);
begin
  if Heap = nil then
    Exit;
  Inc(Heap^.Realloc.Moves);
  Inc(Heap^.Realloc.CopiedBytes, CopiedBytes);
end;

// A new block with the contents of P, one of ours, which stays; nil without memory.
function CopyOf(Heap: PHeap; P: Pointer; UsableSize, Size, WantedSize: NativeUInt): Pointer;
begin
  Result := QuickGet(Heap, WantedSize);
  if Result = nil then
    Result := QuickGet(Heap, Size);
  if Result = nil then
    Exit(ErrorOutOfMemory(Size));
  if Size < UsableSize then
    UsableSize := Size;
  CopyBlock(P, Result, AlignUp(UsableSize, BlockAlignment));
  BlockCountMove(Heap, UsableSize);
end;

// A new block for the contents of P, which is freed; nil, and P kept, without memory.
function MoveBlock(P: Pointer; UsableSize, Size: NativeUInt): Pointer;
begin
  Result := CopyOf(OsThreadHeap, P, UsableSize, Size, Size);
  if Result <> nil then
    BlockFree(P);
end;

// The block with Size bytes, or WantedSize, in place or moved; nil without memory.
function TryGrowLarge(Span: PSpan; Size, WantedSize: NativeUInt): PSpan;
var
  CopiedBytes: NativeUInt;
begin
  if LargeGrow(Span, WantedSize) or LargeGrow(Span, Size) then
    Exit(Span);
  Result := LargeMove(Span, WantedSize, CopiedBytes);
  if Result = nil then
    Result := LargeMove(Span, Size, CopiedBytes);
  if Result = nil then
    Exit;
  BlockCountMove(OsThreadHeap, CopiedBytes);
  PurgerTick;
end;

function GrowLarge(Span: PSpan; Size: NativeUInt): Pointer;
var
  Target: PSpan;
begin
  Target := TryGrowLarge(Span, Size, BlockGrownSize(Span^.BlockSize, Size));
  if Target = nil then
  begin
    ProcessTrim;
    Target := TryGrowLarge(Span, Size, Size);
  end;
  if Process.HasLimits then
    LimitsTick;
  if Target = nil then
    Exit(ErrorOutOfMemory(Size));
  Result := Target^.Start;
end;

// The same for a valid block of a size class.
function ResizeBlock(Heap: PHeap; Span: PSpan; P: Pointer; Size: NativeUInt): Pointer;
var
  WantedSize: NativeUInt;
begin
  WantedSize := Size;
  if Size > Span^.BlockSize then
    WantedSize := BlockGrownSize(Span^.BlockSize, Size);
  Result := CopyOf(Heap, P, Span^.BlockSize, Size, WantedSize);
  if Result = nil then
    Exit;
  if Span^.Owner = Heap then
    OwnFree(Heap, Span, P)
  else
    RemoteFree(Heap, Span, P);
end;

function ResizeLarge(Span: PSpan; Size: NativeUInt): Pointer;
begin
  Result := Span^.Start;
  if Size > Span^.BlockSize then
    Result := GrowLarge(Span, Size)
  else if Size <= MaxClassSize then
    Result := MoveBlock(Result, Span^.BlockSize, Size)
  else
  begin
    LargeShrink(Span, Size);
    PurgerNotify;
  end;
end;

// Resizes what is no block of a size class and no large one: takes over a block of somebody else.
function ResizeOther(var P: Pointer; Size: NativeUInt): Pointer;
var
  UsableSize: NativeUInt;
begin
  if IsForDebug(P) then
    Exit(Process.Debug^.Resize(P, Size));
  if (ArenaSpan(P) <> nil) or not ForeignSize(P, UsableSize) then
    Exit(Pointer(Invalid(P, icResize)));
  Result := BlockGet(Size);
  if Result = nil then
    Exit;
  if Size < UsableSize then
    UsableSize := Size;
  Move(P^, Result^, UsableSize); // another manager's block may begin and end anywhere
  BlockFree(P);
  BlockCountMove(OsThreadHeap, UsableSize);
end;

// Whether a block of a size class has a fitting size already.
function KeepsPlace(Span: PSpan; Size: NativeUInt): Boolean; inline;
begin
  Result := (Size <= Span^.BlockSize) and (Size >= Span^.BlockSize div BlockKeptShare);
end;

function Resize(Heap: PHeap; Span: PSpan; P: Pointer; Size: NativeUInt): Pointer;
begin
  if KeepsPlace(Span, Size) then
    Result := P
  else if Span^.Kind = skLarge then
    Result := ResizeLarge(Span, Size)
  else
    Result := ResizeBlock(Heap, Span, P, Size);
end;

// Of what is no block of ours, or begins like a free one.
function ResizeUnclear(Heap: PHeap; P: Pointer; Size: NativeUInt): Pointer;
var
  Span: PSpan;
begin
  Span := SpanOfBlock(P);
  if Span = nil then
    Result := ResizeOther(P, Size)
  else if (Span^.Kind = skBlocks) and IsFreeAlready(Heap, Span, P) then
    Result := Pointer(Invalid(P, icResize))
  else
    Result := Resize(Heap, Span, P, Size);
end;

function GetOrFree(var P: Pointer; Size: NativeUInt): Pointer;
begin
  if Size = 0 then
  begin
    BlockFree(P);
    P := nil;
  end
  else
    P := BlockGet(Size);
  Result := P;
end;

function BlockRealloc(var P: Pointer; Size: TSize): Pointer;
var
  Span: PSpan;
  Heap: PHeap;
begin
  if (P = nil) or (Size = 0) then
    Exit(GetOrFree(P, Size));
  Heap := OsThreadHeap;
  if Heap <> nil then
    Inc(Heap^.Realloc.Calls);
  Span := FindSpan(P);
  if (Span = nil) or not SpanBlockIsValid(Span, P) or MayBeFree(P) then
    Result := ResizeUnclear(Heap, P, Size)
  else
    Result := Resize(Heap, Span, P, Size);
  if Result <> nil then
    P := Result;
end;

function OtherUsableSize(P: Pointer): NativeUInt;
begin
  if IsForDebug(P) then
    Exit(Process.Debug^.UsableSize(P));
  if (ArenaSpan(P) <> nil) or not ForeignSize(P, Result) then
    Result := Invalid(P, icSize);
end;

function BlockUsableSize(P: Pointer): TSize;
var
  Span: PSpan;
begin
  Span := FindSpan(P);
  if Span <> nil then
    Result := Span^.BlockSize
  else if P = nil then
    Result := 0
  else
    Result := OtherUsableSize(P);
end;

{$ifdef LANEMM_ASM}
  {$I LaneMM.Blocks.x64.inc}
{$endif}

procedure BlockEntries(var Manager: TMemoryManager);
begin
  Manager.GetMem := BlockGet;
  Manager.FreeMem := BlockFree;
  Manager.FreeMemSize := BlockFreeSize;
  Manager.AllocMem := BlockGetZero;
  Manager.ReallocMem := BlockRealloc;
  Manager.MemSize := BlockUsableSize;
  {$ifdef LANEMM_ASM}
  if not Process.HasFastSlot then
    Exit;
  Manager.GetMem := FastBlockGet;
  Manager.FreeMem := FastBlockFree;
  Manager.ReallocMem := FastBlockRealloc;
  {$endif}
end;

end.
