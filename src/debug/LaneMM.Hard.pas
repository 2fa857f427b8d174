/// Blocks of the setting `hard`: a mark past the requested bytes, and a wait after the free.
//
// Owns:       Debug.MarkBytes and the fields behind it; TDebugThread.Waiting and WaitingSeed;
//             Hooks.MarkedSize and ThreadEnds.
// Layout:     each address has a key. Its low half follows the requested bytes of a block; of one
//             of more than MostSmall bytes the key follows four times, if there is room. The low
//             half, xor the state and the requested size, is the end word, the last four bytes; of
//             a block of 512 MB and more it is the state and the bytes between.
// Invariants: from the start of the program on every block of a span of blocks and every large
//             block that the program has is marked; so one without a mark was damaged. Only debug
//             mode, entered later, leaves others behind: MarksAreSure is False from then on, and
//             nothing is reported.
//             A waiting block is in use for the engine; its first word is 0, or all (Erased). A
//             thread that frees a block puts it in the place of a random one, which has waited.
// Callers:    any thread. HardStart: once, before any block was allocated.
// Errors:     as LaneMM.Free and LaneMM.Resize, after a report.
unit LaneMM.Hard;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.DebugState;

/// Draws the keys. After DebugStart.
procedure HardStart;
/// Puts the routines of this unit in front of those of Manager.
procedure HardUseEntries(var Manager: TMemoryManager);
/// Marks a block of Size requested bytes that was allocated with Debug.MarkBytes more; any other
/// pointer, nil included, stays as it is.
procedure HardMark(P: Pointer; Size: NativeUInt; Family: TFamily);
/// Sets the family of the marked block P, which the caller has just allocated; any other pointer
/// stays as it is.
procedure HardSetFamily(P: Pointer; Family: TFamily);
/// Reports a call that frees or resizes the block P, if it is a marked one, with a Size, which 0
/// leaves open, or with a family that is not its own: the first that is wrong.
procedure HardCheckCall(P: Pointer; Size: NativeUInt; Family: TFamily);
/// At the end of the program: frees the blocks of this thread that wait, so that they are checked,
/// and checks all others if no other thread ever had one. Does nothing where a handler of a signal
/// ends it, which may have interrupted a call: Frame is one of the stack.
procedure HardEnd(Frame: NativeUInt);

implementation

uses
  LaneMM.Types, LaneMM.Hooks, LaneMM.Atomic, LaneMM.Os, LaneMM.OsSignals,
  LaneMM.Errors, LaneMM.Arena, LaneMM.Heap, LaneMM.Regions, LaneMM.Threads, LaneMM.Walk,
  LaneMM.Blocks, LaneMM.Allocate, LaneMM.Aligned, LaneMM.Free, LaneMM.Resize, LaneMM.Engine,
  LaneMM.ReportState, LaneMM.Messages, LaneMM.SettingsState, LaneMM.Erase, LaneMM.Patterns,
  LaneMM.DebugCheck, LaneMM.DebugReport, LaneMM.DebugThreads;

const
  // Of each block: half of the key, and the end word.
  EndBytes = 2 * SizeOf(Cardinal);
  StateShift = 29;
  MostValue = 1 shl StateShift - 1; // that the end word has space for
  // The states above the families of blocks in use: the block waits, or is free; and was erased.
  Waits = Ord(High(TFamily)) + 1;
  Erased = Waits + 1;
  MostSmall = 4096;

type
  // The key behind larger blocks.
  TFarMark = array[0..3] of UInt64;
  PFarMark = ^TFarMark;
  // A block that can have a mark.
  TMarked = record
    P: PByte;
    Usable: NativeUInt; // bytes of the block
    Last: PCardinal;    // its end word
    Key: UInt64;        // of its mark
    Size: NativeUInt;   // requested bytes, if the end word is whole
    State: Cardinal;    // a family, Waits or Erased
    IsWhole: Boolean;   // the end word is one of this block
  end;

// ---------------------------------------------------------------------------- marks

// A key is odd, as both random numbers: its lowest byte is not 0, which most overruns by one write.
function KeyOf(P: Pointer): UInt64; inline;
begin
  Result := UInt64(NativeUInt(P) xor NativeUInt(Debug.MarkSeed)) * Debug.MarkFactor;
end;

procedure Open(P: Pointer; Usable: NativeUInt; out Block: TMarked); inline;
var
  Word: Cardinal;
begin
  Block.P := P;
  Block.Usable := Usable;
  Block.Last := PCardinal(Block.P + Usable - SizeOf(Cardinal));
  Block.Key := KeyOf(P);
  Word := Block.Last^ xor Cardinal(Block.Key);
  Block.State := Word shr StateShift;
  Block.Size := Word and MostValue;
  Block.IsWhole := (Block.State <= Erased) and (Block.Size <= NativeUInt(Usable - EndBytes));
  if Usable > MostValue then
    Block.Size := NativeUInt(Usable - EndBytes - Block.Size);
end;

// Returns whether a block of a size class or a large block, free or not, begins at P.
function Find(P: Pointer; out Block: TMarked): Boolean;
var
  Span: PSpan;
begin
  Span := BlockSpanExact(P);
  Result := Span <> nil;
  if Result then
    Open(P, Span^.BlockSize, Block);
end;

// Returns whether a far mark follows the Size requested bytes.
function IsMarkedFar(const Block: TMarked; Size: NativeUInt): Boolean; inline;
begin
  Result := (Block.Usable > MostSmall)
    and (NativeUInt(Block.Usable - Size) >= EndBytes + SizeOf(TFarMark));
end;

// Of too many bytes between, all bytes count as requested.
procedure MarkWrite(const Block: TMarked; Size: NativeUInt; State: Cardinal);
var
  Value: NativeUInt;
  Far: PFarMark;
begin
  Value := Size;
  if Block.Usable > MostValue then
    Value := NativeUInt(Block.Usable - EndBytes - Size);
  if Value > MostValue then
  begin
    Size := Block.Usable - EndBytes;
    Value := 0;
  end;
  Far := PFarMark(Block.P + Size);
  PCardinal(Far)^ := Cardinal(Block.Key);
  if IsMarkedFar(Block, Size) then
  begin
    Far^[0] := Block.Key;
    Far^[1] := Block.Key;
    Far^[2] := Block.Key;
    Far^[3] := Block.Key;
  end;
  Block.Last^ := (State shl StateShift or Cardinal(Value)) xor Cardinal(Block.Key);
end;

// Returns whether the key follows the requested bytes.
function IsWholeBehind(const Block: TMarked): Boolean;
var
  Far: PFarMark;
begin
  Far := PFarMark(Block.P + Block.Size);
  Result := PCardinal(Far)^ = Cardinal(Block.Key);
  if IsMarkedFar(Block, Block.Size) then
    Result := (Far^[0] = Block.Key) and (Far^[1] = Block.Key) and (Far^[2] = Block.Key)
      and (Far^[3] = Block.Key);
end;

procedure HardMark(P: Pointer; Size: NativeUInt; Family: TFamily);
var
  Block: TMarked;
begin
  if (Debug.MarkBytes <> 0) and Find(P, Block) then
    MarkWrite(Block, Size, Ord(Family));
end;

procedure HardSetFamily(P: Pointer; Family: TFamily);
var
  Block: TMarked;
begin
  if Debug.MarksFamilies and Find(P, Block) and Block.IsWhole then
    MarkWrite(Block, Block.Size, Ord(Family));
end;

// ---------------------------------------------------------------------------- reports

// Begins a finding about the block; `stacks` may know where it was allocated.
procedure FindingOpen(const Block: TMarked; Kind: TEventKind; Message: TMessage;
  out Finding: TFinding);
var
  Info: TBlockInfo;
begin
  Info := Default(TBlockInfo);
  Info.Address := Block.P;
  Info.UsableSize := Block.Usable;
  if @Hooks.BlockNote <> nil then
    Hooks.BlockNote(BlockSpan(Block.P), Info);
  FindingFrom(Finding, Kind, Message, nil);
  Finding.Data := NativeUInt(Block.P);
  Finding.Address := Finding.Data;
  Finding.Block.Size := Block.Usable - EndBytes;
  if Block.IsWhole then
    Finding.Block.Size := Block.Size;
  Finding.Note := noNormal;
  if Info.Stack = 0 then
    Exit;
  Finding.State := dsInUse;
  Finding.Block.AllocStack := Info.Stack;
  Finding.Block.AllocThread := Info.Thread;
  Finding.Block.Number := Info.Number;
end;

procedure Tell(const Block: TMarked; Kind: TEventKind; Message: TMessage);
var
  Finding: TFinding;
begin
  if not Debug.MarksAreSure then
    Exit;
  FindingOpen(Block, Kind, Message, Finding);
  FindingReport(Finding);
end;

// Reports the block, which a call is about to free or resize, if it is damaged or not in use.
// Returns False where the call is refused, since the block waits or is free.
function IsAccepted(const Block: TMarked; DoubleCall: TMessage): Boolean;
begin
  Result := not Debug.MarksAreSure or not Block.IsWhole or (Block.State < Waits);
  if not Result then
    Tell(Block, evDoubleFree, DoubleCall)
  else if not Block.IsWhole or not IsWholeBehind(Block) then
    Tell(Block, evWriteAfter, msWriteAfter);
end;

procedure HardCheckCall(P: Pointer; Size: NativeUInt; Family: TFamily);
var
  Block: TMarked;
  Finding: TFinding;
begin
  if not Debug.MarksAreSure or (Size = 0) and not Debug.MarksFamilies or not Find(P, Block)
    or not Block.IsWhole or (Block.State >= Waits) then
    Exit; // the free reports the last two
  if Debug.MarksFamilies and (Block.State <> Ord(Family)) then
  begin
    FindingOpen(Block, evMismatch, msMismatchFamily, Finding);
    Finding.Block.Family := TFamily(Block.State);
    Finding.Family := Family;
  end
  else if (Size <> 0) and (Size <> Block.Size) and (Block.Usable <= MostValue) then
  begin
    FindingOpen(Block, evWrongSize, msWrongSize, Finding);
    Finding.Given := Size;
  end
  else
    Exit;
  FindingReport(Finding);
end;

// ---------------------------------------------------------------------------- free

// Frees a block that has waited, and reports it if it was written to.
procedure Release(P: Pointer);
var
  Block: TMarked;
begin
  if Find(P, Block) and (not Block.IsWhole or (Block.State < Waits) or (PNativeUInt(P)^ <> 0)
    or (Block.State = Erased) and not PatternIsWhole(P, Block.Usable - EndBytes, 0)) then
    Tell(Block, evWriteAfterFree, msWriteAfterFree);
  Debug.Behind.FreeMem(P);
end;

// Lets a block that is no longer in use wait in the place of another one. A thread keeps 64 small
// blocks, 8 of at most 24 KB, and one of at most 320 KB; none of a region, whose blocks are freed
// at once.
procedure Wait(const Block: TMarked);
const
  MostMedium = 24 shl 10;
  MostLarge = 320 shl 10;
var
  Thread: PDebugThread;
  Place: NativeUInt;
  Older: Pointer;
  State: Cardinal;
begin
  State := Waits + Ord(IsErasingFreed); // which may change at any time
  if State = Erased then
    EraseRange(Block.P, Block.Usable - EndBytes);
  PNativeUInt(Block.P)^ := 0;
  Block.Last^ := Block.Last^ xor (Block.State xor State) shl StateShift;
  Thread := DebugThread;
  if (Thread = nil) or (Block.Usable > MostLarge)
    or (LoadAcquire(Process.RegionsMade) <> 0) and (RegionOfBlock(Block.P) <> nil) then
  begin
    Debug.Behind.FreeMem(Block.P);
    Exit;
  end;
  // Each key is random by its address.
  Thread^.WaitingSeed := Thread^.WaitingSeed + Block.Key;
  if Block.Usable <= MostSmall then
    Place := Thread^.WaitingSeed shr (64 - SmallPlacesLog2)
  else if Block.Usable <= MostMedium then
    Place := 1 shl SmallPlacesLog2 + Thread^.WaitingSeed shr 61
  else
    Place := WaitingPlaces - 1;
  Older := Thread^.Waiting[Place];
  Thread^.Waiting[Place] := Block.P;
  Thread^.WaitingSpans[Place] := ArenaSpan(Block.P);
  if Older = @NoWaiting then
    Exit;
  if (PNativeUInt(Older)^ <> 0) or IsErasingFreed then
    Release(Older)
  else
    Debug.Behind.FreeMem(Older);
end;

function HardFree(P: Pointer): TSize;
var
  Block: TMarked;
begin
  AcquireFence; // see SetEntries of LaneMM.Watch
  if not Find(P, Block) then
    Exit(Debug.Behind.FreeMem(P));
  if not IsAccepted(Block, msDoubleFree) then
    Exit(ErrorInvalidPointer);
  if not Block.IsWhole or (Block.State >= Waits) then
    Exit(EraseFree(P));
  Result := Block.Size;
  Wait(Block);
end;

function HardFreeSize(P: Pointer; Size: TSize): TSize;
begin
  HardCheckCall(P, Size, faPlain);
  Result := HardFree(P);
end;

// Frees the blocks that wait in the thread. Hooks.ThreadEnds.
procedure ReleaseAll;
var
  Thread: PDebugThread;
  Index: Cardinal;
  P: Pointer;
begin
  Thread := DebugThread;
  if Thread = nil then
    Exit;
  for Index := 0 to WaitingPlaces - 1 do
  begin
    P := Thread^.Waiting[Index];
    Thread^.Waiting[Index] := @NoWaiting;
    Thread^.WaitingSpans[Index] := @NoWaiting;
    if P <> @NoWaiting then
      Release(P);
  end;
end;

// Hooks.MarkedSize.
function MarkedSize(P: PByte; Usable: NativeUInt): NativeInt;
var
  Block: TMarked;
begin
  Open(P, Usable, Block);
  Result := Usable;
  if Block.IsWhole and (Block.State >= Waits) then
    Result := -1
  else if Block.IsWhole and Debug.MarksAreSure then
    Result := Block.Size;
end;

// Returns whether no other thread ever had a heap, so that no block is just getting its mark.
function IsOnlyThread: Boolean;
begin
  Result := not Debug.HasLostThreads and HeapIsOnly;
end;

// Checks a block that is in use, or is free, and its link was written to.
procedure CheckBlock(const Info: TBlockInfo; Context: Pointer);
var
  Block: TMarked;
begin
  if not Find(Info.Address, Block) or not IsOnlyThread then
    Exit;
  if Block.IsWhole and (Block.State >= Waits) then
    Tell(Block, evWriteAfterFree, msWriteAfterFree)
  else
    IsAccepted(Block, msWriteAfter);
end;

procedure HardEnd(Frame: NativeUInt);
begin
  if (Debug.MarkBytes = 0) or DebugIsUnusedChild or OsHandlerIsBelow(Frame) then
    Exit;
  ReleaseAll;
  if not IsOnlyThread then
    Exit;
  Hooks.MarkedSize := nil; // blocks of the state Waits are visited, too
  WalkBlocks(CheckBlock, nil);
  Hooks.MarkedSize := MarkedSize;
end;

// ---------------------------------------------------------------------------- allocate

// Returns the bytes to request for a block of Size bytes; more than there are stay too many.
function WithEnd(Size: NativeUInt): NativeUInt; inline;
begin
  Result := Size + EndBytes;
  if Result < Size then
    Result := Size;
end;

function HardGet(Size: TSize): Pointer;
begin
  AcquireFence; // likewise
  Result := Debug.Behind.GetMem(WithEnd(Size));
  if IsErasingFreed and not IsErasingNew and (BlockSpan(Result) <> nil) then
    PNativeUInt(Result)^ := 0; // new blocks read as zeros
  HardMark(Result, Size, faPlain);
end;

function HardGetZero(Size: TSize): Pointer;
begin
  AcquireFence; // likewise
  Result := Debug.Behind.AllocMem(WithEnd(Size));
  HardMark(Result, Size, faPlain);
end;

// Allocates Size bytes where the block P is and the calling thread is not: in a region, or in none.
// Nil without memory.
function TryGetBeside(P: Pointer; Size: NativeUInt): Pointer;
var
  Before: PHeap;
begin
  Before := ThreadHeap;
  if (Before = nil) or not RegionVisit(RegionOfBlock(P), Before) then
    Exit(nil);
  Result := BlockTryGet(OsThreadHeap, Size);
  RegionReturn(Before);
end;

// Returns a block with the contents of P, of OldSize bytes; P stays. A block that shrinks needs no
// memory: without any, Result is P. It stays in its region, or outside of any.
function CopyOf(P: Pointer; OldSize, Size, Wanted: NativeUInt): Pointer;
var
  IsElsewhere: Boolean;
begin
  IsElsewhere := BlockIsElsewhere(P, OsThreadHeap);
  if (Size >= OldSize) and IsElsewhere then
    Result := AlignedGetBeside(P, BlockAlignment, WithEnd(Wanted))
  else if Size >= OldSize then
    Result := Debug.Behind.GetMem(WithEnd(Wanted))
  else if IsElsewhere then
    Result := TryGetBeside(P, WithEnd(Size))
  else
    Result := BlockTryGet(OsThreadHeap, WithEnd(Size));
  if (Result = nil) and (Size < OldSize) then
    Result := P;
  if (Result = nil) or (Result = P) then
    Exit;
  if OldSize > Size then
    OldSize := Size;
  EraseCopy(P, Result, OldSize);
end;

// Resizes a marked block in use by a copy, which waits; nil without memory.
function MoveMarked(const Block: TMarked; Size: NativeUInt): Pointer;
var
  Wanted: NativeUInt;
begin
  Wanted := Size;
  // A block of a larger class may have room for more than it may keep.
  if WithEnd(Size) > Block.Usable then
    Wanted := BlockGrownSize(Block.Usable - EndBytes, Size);
  Result := CopyOf(Block.P, Block.Size, Size, Wanted);
  if (Result <> nil) and (Result <> Block.P) then
    Wait(Block);
end;

// Resizes a marked block in use; nil without memory.
function ResizeMarked(var P: Pointer; const Block: TMarked; Size: NativeUInt): Pointer;
var
  Heap: PHeap;
  InPlace: Boolean;
begin
  InPlace := (WithEnd(Size) <= Block.Usable)
    and ((WithEnd(Size) >= Block.Usable shr KeptShift) or (Block.Usable <= MostTiny));
  Heap := OsThreadHeap;
  if not InPlace and not IsErasingFreed and (Block.Usable > MaxClassSize)
    and (WithEnd(Size) > MaxClassSize) then
    Result := Debug.Behind.ReallocMem(P, WithEnd(Size))
  else
  begin
    if Heap <> nil then
      Inc(Heap^.Realloc.Calls);
    Result := P;
    if not InPlace then
      Result := MoveMarked(Block, Size);
  end;
  HardMark(Result, Size, TFamily(Block.State));
end;

// Resizes a pointer that is no marked block in use: a debug block, which moves, one of another
// manager, or one that was reported.
function ResizeOther(var P: Pointer; Size: NativeUInt): Pointer;
begin
  if (BlockSpanExact(P) = nil) and BlockIsOurs(P) then
  begin
    Result := CopyOf(P, Debug.Behind.MemSize(P), Size, Size);
    if (Result <> nil) and (Result <> P) then
      Debug.Behind.FreeMem(P);
  end
  else if IsErasingFreed then
    Result := EraseRealloc(P, WithEnd(Size))
  else
    Result := Debug.Behind.ReallocMem(P, WithEnd(Size));
  HardMark(Result, Size, faPlain);
end;

function HardRealloc(var P: Pointer; Size: TSize): Pointer;
var
  Block: TMarked;
begin
  AcquireFence; // likewise
  if Size = 0 then
  begin
    HardFree(P);
    P := nil;
    Exit(nil);
  end;
  if P = nil then
    Result := HardGet(Size)
  else if not Find(P, Block) then
    Result := ResizeOther(P, Size)
  else if not IsAccepted(Block, msDoubleRealloc) then
    Result := Pointer(ErrorInvalidPointer)
  else if not Block.IsWhole or not Debug.MarksAreSure then
    Result := ResizeOther(P, Size)
  else
    Result := ResizeMarked(P, Block, Size);
  BlockResizeDone(P, Result, HardFree);
end;

function HardMemSize(P: Pointer): TSize;
var
  Block: TMarked;
begin
  AcquireFence; // likewise
  if not Debug.MarksAreSure or not Find(P, Block) or not Block.IsWhole then
    Result := Debug.Behind.MemSize(P)
  else if Block.State >= Waits then
    Result := BlockInvalid(P, icSize)
  else
    Result := Block.Size;
end;

{$ifdef LANEMM_ASM_LINUX}
  {$I LaneMM.Hard.x64.inc}
{$endif}

// ---------------------------------------------------------------------------- start

procedure HardUseEntries(var Manager: TMemoryManager);
var
  Plain: TMemoryManager;
begin
  Plain := Manager;
  EngineEntries(Plain);
  Debug.QuickLimit := 0;
  Debug.QuickBlocks := 0;
  if not IsErasingFreed and (@Manager.GetMem = @Plain.GetMem) then
  begin
    Debug.QuickLimit := MostSmall - EndBytes + 1;
    Debug.QuickBlocks := MostSmall + 1;
  end;
  // Full barrier: the first region after this look resets it. Pairs with RegionMake.
  if FetchAdd(Process.RegionsMade, 0) <> 0 then
    Debug.QuickBlocks := 0;
  Debug.Behind := Manager;
  Manager.GetMem := HardGet;
  Manager.AllocMem := HardGetZero;
  Manager.ReallocMem := HardRealloc;
  Manager.FreeMem := HardFree;
  Manager.FreeMemSize := HardFreeSize;
  Manager.MemSize := HardMemSize;
  {$ifdef LANEMM_ASM_LINUX}
  if not Process.HasFastSlot then
    Exit;
  Manager.GetMem := FastHardGet;
  Manager.FreeMem := FastHardFree;
  {$endif}
end;

procedure HardStart;
begin
  Debug.MarkSeed := OsRandom or 1;
  Debug.MarkFactor := OsRandom or 1;
  Debug.MarkBytes := EndBytes;
  Debug.MarksAreSure := True;
  Debug.MarksFamilies := IsSet(opMixes);
  Process.ShufflesBlocks := True;
  Hooks.MarkedSize := MarkedSize;
  Hooks.ThreadEnds := ReleaseAll;
end;

end.
