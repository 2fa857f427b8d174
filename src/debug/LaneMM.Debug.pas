/// Debug mode: blocks that record where they were allocated and freed, and detect invalid writes.
//
// Owns:       Debug.IsStarted, NewFill, FreeFill, Operations; the debug hooks of Hooks.
// Invariants: debug blocks and normal blocks coexist, whatever the mode is now: the kind of the
//             span decides how a block is freed or resized. One thread takes a block out of use,
//             the one that changes its state; a second one is reported as a double free.
// Callers:    any thread. The entries are those of the memory manager while debug mode is on.
//             DebugRecover: a child process with one thread.
// Errors:     as LaneMM.Free and LaneMM.Resize, after a report.
unit LaneMM.Debug;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.DebugState;

/// Returns True while new blocks are debug blocks.
function DebugIsOn: Boolean;
/// Sets up debug mode, once; False without memory.
function DebugStart: Boolean;
/// Applies the settings `fill` and `quarantine`: the oldest blocks beyond it leave the quarantine.
/// After DebugStart; under no lock, for damage of such a block is reported.
procedure DebugApply;
/// GetMem in debug mode.
function DebugGet(Size: TSize): Pointer;
/// Allocates a block at a multiple of 2 to the power of Shift; 0: of BlockAlignment. Nil without
/// memory, then no error is raised; with guard pages, up to the page size only.
function DebugGetAligned(Size: TSize; Shift: Byte): Pointer;
/// DebugGetAligned with guard pages whatever the setting, up to the page size, for GuardSample.
function DebugGetGuarded(Size: TSize; Shift: Byte): Pointer;
/// AllocMem in debug mode.
function DebugGetZero(Size: TSize): Pointer;
/// ReallocMem in debug mode, for debug blocks and normal blocks.
function DebugRealloc(var P: Pointer; Size: TSize): Pointer;
/// FreeMem in debug mode, for debug blocks and normal blocks.
function DebugFree(P: Pointer): TSize;
/// FreeMemSize in debug mode: reports a Size that is not the requested size; 0 is not checked.
function DebugFreeSize(P: Pointer; Size: TSize): TSize;
/// Reports a Size that is not the requested size of the debug block at P, in use; 0 is not checked.
procedure DebugSizeCheck(P: Pointer; Size: TSize);
/// Sets the family of the debug block at P, which the caller has just allocated. Does nothing for
/// any other pointer.
procedure DebugSetFamily(P: Pointer; Family: TFamily);
/// Reports that the debug block at P, in use, is of another family than the call that frees it.
/// Returns False then.
function DebugFamilyCheck(P: Pointer; Family: TFamily): Boolean;
/// Recovers debug mode in a child process.
procedure DebugRecover(IsTorn: Boolean);
/// Checks all debug blocks and reports the damage. Returns the number of damaged blocks that were
/// not reported before.
function DebugCheckHeap: NativeUInt;
/// Checks the debug block at P, or around it, and reports its damage. Returns False if it has any.
function DebugIsWhole(P: Pointer): Boolean;

implementation

uses
  LaneMM.Types, LaneMM.Hooks, LaneMM.Atomic, LaneMM.Os, LaneMM.OsFiles, LaneMM.Rtl, LaneMM.Errors,
  LaneMM.Lock, LaneMM.Purge, LaneMM.Limits, LaneMM.Aligned, LaneMM.Resize, LaneMM.Messages,
  LaneMM.ReportState, LaneMM.SettingsState, LaneMM.BacktraceTable, LaneMM.Erase,
  LaneMM.AllocationLog, LaneMM.BlockNotes, LaneMM.DebugBlocks, LaneMM.DebugCheck,
  LaneMM.DebugRecords, LaneMM.DebugReport, LaneMM.DebugSpans, LaneMM.DebugThreads, LaneMM.Faults,
  LaneMM.FreedObjects, LaneMM.Groups, LaneMM.GuardPages, LaneMM.Mismatches, LaneMM.Patterns,
  LaneMM.Quarantine;

const
  // The spare capacity of a block that grows and has to move, a share of its size.
  GrowthShare = 8;
  // The value of opGuard for guard pages after all debug blocks.
  GuardPages = 1;
  // Allocations between two calls of FaultsWatch: 1 up to FirstNumber, EarlyLooks up to
  // EarlyNumber, then LateLooks.
  FirstNumber = 64;
  EarlyNumber = 4096;
  EarlyLooks = 16;
  LateLooks = 4096;

type
  // What is asked of a block.
  TRequest = record
    Size: NativeUInt;      // requested size
    Capacity: NativeUInt;  // size that it can grow to
    Unused: NativeUInt;    // bytes that its alignment takes
    Frame: NativeUInt;     // frame pointer of the memory manager's entry
    Shift: Byte;           // its alignment, see TDebugBlock.AlignShift
    IsGuarded: Boolean;    // it gets guard pages if it can have them
    Thread: PDebugThread;  // the calling thread's record; may be nil
  end;

// ---------------------------------------------------------------------------- contents

procedure FillGuardBehind(const Place: TDebugPlace; Size: NativeUInt); inline;
begin
  PatternFill(Place.Data + Size, DebugGuardLength(Place, Size), GuardByte);
end;

procedure FillGuards(const Place: TDebugPlace; Size: NativeUInt);
begin
  PatternFill(Place.Data - FrontGuardSize, FrontGuardSize, GuardByte);
  FillGuardBehind(Place, Size);
end;

// Reports all damage of a block that this thread changes, or has marked; State is the one before.
procedure ReportDamage(Block: PDebugBlock; State: TDebugState);
var
  Finding: TFinding;
  Part: TDamagePart;
begin
  for Part := Low(Part) to High(Part) do
    if DebugDamageFind(Block, State, Part, Finding) then
      FindingReport(Finding);
end;

// ---------------------------------------------------------------------------- allocate

// Calls FaultsWatch when it is due, which is seldom: units take the signals when they start.
procedure LookWhenDue(Number: NativeUInt; IsGuarded: Boolean); inline;
begin
  if (Number <= FirstNumber)
    // A block with guard pages may be the only one.
    or IsGuarded and (Settings.Values[opGuard] <> GuardPages) or (Number mod EarlyLooks = 0)
    and (IsGuarded or (Number < EarlyNumber) or (Number mod LateLooks = 0)) then
    FaultsWatch;
end;

function CacheOf(Thread: PDebugThread): PDebugCache; inline;
begin
  Result := nil;
  if Thread <> nil then
    Result := @Thread^.Blocks;
end;

// Reports damage of a block that is freed by this word, its State, unless it was reported before.
procedure CheckFreed(const Place: TDebugPlace; State: TAtomicWord);
begin
  if (State and LowMask = Ord(dsFreed)) and not DebugFreedIsWhole(Place)
    and not DebugMayBeTorn(Place.Block) and DebugBlockMarkReported(Place.Block, State) then
    ReportDamage(Place.Block, dsFreed);
end;

// Releases empty spans; reports damage done to their free blocks.
procedure ReleaseSpans(Span: PSpan);
var
  Next: PSpan;
  Index: NativeInt;
  Place: TDebugPlace;
begin
  while Span <> nil do
  begin
    Next := Span^.Next;
    for Index := 0 to NativeInt(DebugBlockCount(Span)) - 1 do
    begin
      DebugBlockPlace(DebugBlockAt(Span, Index), Place);
      CheckFreed(Place, LoadAcquire(Place.Block^.State));
    end;
    DebugSpanRelease(Span);
    Span := Next;
  end;
end;

// Takes a block with guard pages, if it gets them, or without. Returns False without memory.
function TakeSlow(const Request: TRequest; out Place: TDebugPlace): Boolean;
var
  Cache: PDebugCache;
  Empty: PSpan;
begin
  Cache := CacheOf(Request.Thread);
  Result := Request.IsGuarded and DebugBlockTakeGuarded(Request.Size, Place)
    or DebugBlockTake(Cache, Request.Capacity + Request.Unused, Place);
  if Result then
    Exit;
  Empty := QuarantineEmpty(Cache);
  DebugThreadLeave(Request.Thread); // reports call the program
  ReleaseSpans(Empty);
  ProcessTrim;
  DebugThreadEnter(Request.Thread);
  Result := DebugBlockTake(Cache, Request.Size + Request.Unused, Place);
end;

function Take(const Request: TRequest; out Place: TDebugPlace): Boolean; inline;
begin
  DebugThreadEnter(Request.Thread);
  Result := not Request.IsGuarded
    and DebugBlockTake(CacheOf(Request.Thread), Request.Capacity + Request.Unused, Place)
    or TakeSlow(Request, Place);
  DebugThreadLeave(Request.Thread);
end;

procedure SetAllGuards(var Place: TDebugPlace; const Request: TRequest);
begin
  CheckFreed(Place, Place.Before);
  DebugBlockBegin(Place.Block);
  Place.Block^.AlignShift := Request.Shift;
  DebugPlaceFinish(Place);
  FillGuards(Place, Request.Size);
end;

// Checks the block that was taken, sets dsChanging, and gives it alignment and guards.
procedure SetGuards(var Place: TDebugPlace; const Request: TRequest); inline;
begin
  if (Place.Before and LowMask <> Ord(dsFreed)) or (Place.Block^.AlignShift <> Request.Shift)
    or Place.HasPages or not DebugFreedIsWhole(Place) then
    SetAllGuards(Place, Request)
  else
  begin
    DebugBlockBegin(Place.Block);
    if Place.Block^.Size <> Request.Size then
      FillGuardBehind(Place, Request.Size);
  end;
end;

// Takes a block, sets dsChanging, and writes its record, not its contents; returns their address.
// Nil without memory.
function TakeBlock(const Request: TRequest; out Place: TDebugPlace): Pointer;
var
  Heap: PHeap;
  Thread: PDebugThread;
  Block: PDebugBlock;
begin
  if not Take(Request, Place) then
    Exit(nil);
  Thread := Request.Thread;
  SetGuards(Place, Request);
  Heap := OsThreadHeap;
  Block := Place.Block;
  Block^.Size := Request.Size;
  Block^.Number := DebugNumber(Thread);
  Block^.FirstWord := 0;
  Block^.AllocThread := DebugThreadId(Heap, Thread);
  Block^.AllocStack := DebugStack(Heap, Thread, Request.Frame);
  Block^.FreeThread := 0;
  Block^.FreeStack := 0;
  Block^.Family := faPlain;
  Block^.Group := 0;
  if Thread <> nil then
    Block^.Group := Heap^.Notes.Group;
  if Block^.Group >= RegionGroups then
    Debug.HasRegions := True;
  DebugBlockSeal(Block);
  LookWhenDue(Block^.Number, Place.HasPages);
  if Block^.Number = Settings.Values[opBreak] then
    NumberReached(Block);
  if Debug.IsLogging then
    AllocationLogAllocated(Block);
  Result := Place.Data;
end;

// No function: its result would be copied, by Free Pascal 3.3.1 with moves that need an aligned
// stack, and the run-time library raises an exception on the stack that a fault has left.
procedure RequestOpen(out Request: TRequest; Size, Capacity: NativeUInt; Shift: Byte); inline;
begin
  Request.Size := Size;
  Request.Capacity := Capacity;
  Request.Unused := 0;
  if (Shift <> 0) and (Size <= DebugMostSize) then // too many bytes stay too many
    Request.Unused := DebugAlignmentSize(Shift);
  Request.Shift := Shift;
  Request.IsGuarded := (Settings.Values[opGuard] = GuardPages) and (Request.Unused < OsPageSize);
  Request.Thread := DebugThread;
end;

// Allocates a block that is no debug block, for the handler of a signal that has interrupted a call
// of debug mode.
function GetPlain(Size: NativeUInt; Shift: Byte): Pointer;
begin
  Result := AlignedGet(NativeUInt(1) shl Shift, Size);
end;

// Allocates a block that is filled as new ones are; nil without memory.
function GetFilled(Size, Capacity: NativeUInt; Shift: Byte; Frame: NativeUInt): Pointer; inline;
var
  Request: TRequest;
  Place: TDebugPlace;
begin
  RequestOpen(Request, Size, Capacity, Shift);
  if DebugThreadIsInside(Request.Thread) then
    Exit(GetPlain(Size, Shift));
  Request.Frame := Frame;
  Result := TakeBlock(Request, Place);
  if Result = nil then
    Exit;
  PatternFillEnds(Result, Size, Debug.NewFill);
  DebugBlockSettle(Place.Block, dsInUse);
end;

// Allocates a block of zeros; nil without memory. A single block is the first in its span.
function GetZeroed(Size, Frame: NativeUInt): Pointer;
var
  Request: TRequest;
  Place: TDebugPlace;
begin
  RequestOpen(Request, Size, Size, Debug.AlignShift);
  if DebugThreadIsInside(Request.Thread) then
  begin
    Result := GetPlain(Size, Debug.AlignShift);
    if Result <> nil then
      PatternZero(Result, Size);
    Exit;
  end;
  Request.Frame := Frame;
  Result := TakeBlock(Request, Place);
  if Result = nil then
    Exit;
  if not Place.IsClosable or not Place.Span^.IsZero then
    PatternZero(Result, Size);
  DebugBlockSettle(Place.Block, dsInUse);
end;

procedure CheckIfDue;
var
  Interval: NativeUInt;
begin
  if Process.HasLimits then
    LimitsTick;
  Interval := Settings.Values[opCheck];
  if (Interval <> 0) and (FetchAdd(Debug.Operations, 1) mod Interval = 0) then
    DebugCheckHeap;
end;

// Checks all blocks at the interval of the setting `check`.
procedure CheckWhenDue; inline;
begin
  if Process.HasLimits or (Settings.Values[opCheck] <> 0) then
    CheckIfDue;
end;

function GetAt(Size: TSize; Frame: NativeUInt): Pointer; inline;
begin
  Result := GetFilled(Size, Size, Debug.AlignShift, Frame);
  if Result = nil then
    Result := LimitsRefuse(Size);
end;

function DebugGetAligned(Size: TSize; Shift: Byte): Pointer;
begin
  CheckWhenDue;
  Result := nil;
  if DebugFits(Size, Shift) then
    Result := GetFilled(Size, Size, Shift, NativeUInt(get_frame));
end;

function DebugGet(Size: TSize): Pointer;
begin
  CheckWhenDue;
  Result := GetAt(Size, NativeUInt(get_frame));
end;

function DebugGetGuarded(Size: TSize; Shift: Byte): Pointer;
var
  Request: TRequest;
  Place: TDebugPlace;
begin
  if not DebugFits(Size, Shift) then
    Exit(nil);
  RequestOpen(Request, Size, Size, Shift);
  if DebugThreadIsInside(Request.Thread) then
    Exit(nil);
  Request.Frame := NativeUInt(get_frame);
  Request.IsGuarded := Request.Unused < OsPageSize;
  Result := TakeBlock(Request, Place);
  if Result <> nil then
    DebugBlockSettle(Place.Block, dsInUse);
end;

function DebugGetZero(Size: TSize): Pointer;
begin
  CheckWhenDue;
  Result := GetZeroed(Size, NativeUInt(get_frame));
  if Result = nil then
    Result := LimitsRefuse(Size);
end;

// Reports that no block in use begins at P. Hooks.InvalidPointer, which LaneMM.Blocks calls in any
// mode, for other copies of LaneMM, too.
procedure ReportInvalid(P: Pointer; Call: TInvalidCall);
begin
  if (DebugBlockOf(P) <> nil) or DebugIsOn or Report.Aborts then
    InvalidReport(P, Call);
end;

// Takes the block that begins at P out of use: sets dsChanging, and computes the whole place. False
// if it does not begin there, or is not in use.
function Change(P: Pointer; var Place: TDebugPlace): Boolean;
var
  Before: TAtomicWord;
begin
  Result := False;
  DebugPlaceFinish(Place);
  if P <> Place.Data then
    Exit;
  repeat
    Before := LoadAcquire(Place.Block^.State);
    // The state of a guarded block may be corrupt, and its pages inaccessible.
    if (DebugStateOf(Before) <> dsInUse) or Place.IsClosable and not DebugPlaceIsOpen(Place) then
      Exit;
  until DebugBlockChange(Place.Block, Before);
  Place.Before := Before;
  Result := True;
end;

// Reports that no block in use begins at P: run-time error 204. Returns 0.
function Refuse(P: Pointer; Call: TInvalidCall): NativeUInt;
begin
  ReportInvalid(P, Call);
  Result := ErrorInvalidPointer;
end;

// ---------------------------------------------------------------------------- free

procedure RepairBlock(const Place: TDebugPlace);
begin
  if not DebugIsReported(Place.Before) then
    ReportDamage(Place.Block, dsInUse);
  if Place.Block^.Size > Place.Capacity then
    Place.Block^.Size := 0; // it is corrupt
  FillGuards(Place, Place.Block^.Size);
end;

procedure FillFreed(P: PByte; Size: NativeUInt);
begin
  if IsErasingFreed and (Size > WholeSize) then
    EraseRange(P, Size, Debug.FreeFill);
  PatternFillEnds(P, Size, Debug.FreeFill);
end;

// Makes a freed single block inaccessible; returns whether it did, or the block has guard pages.
function CloseFreed(const Place: TDebugPlace; Size: NativeUInt): Boolean;
begin
  Result := Place.HasPages;
  if not Result then
    Exit(not IsErasingFreed and DebugSingleClose(Place));
  if IsErasingFreed then
    FillFreed(Place.Data, Size); // the purge may leave them in memory
  DebugBlockClose(Place);
end;

// Overwrites the contents of a freed block, or makes them inaccessible if it may.
procedure SpoilContents(const Place: TDebugPlace; Size: NativeUInt; MayClose: Boolean); inline;
begin
  if Place.IsClosable and MayClose and CloseFreed(Place, Size) then
    Exit;
  if Size <= WholeSize then
    PatternFill(Place.Data, Size, Debug.FreeFill)
  else
    FillFreed(Place.Data, Size);
  if Place.Block^.FirstWord and (SizeOf(Pointer) - 1) = 0 then // else it is no class
    FreedObjectTrap(Place.Data, Size, Place.Block^.FirstWord);
end;

// Tells those who watch frees. The block is in the state dsChanging.
procedure TellFree(Block: PDebugBlock); inline;
var
  Watch: TDebugFreeCall;
begin
  if Debug.IsLogging then
    AllocationLogFreed(Block);
  if Settings.Values[opMixes] <> 0 then
    MismatchCheck(Block);
  Watch := Debug.FreeWatch;
  if @Watch <> nil then
    Watch(Block);
end;

// Frees the block that begins at P, any pointer. Frame is that of the memory manager's entry.
function FreeAt(P: Pointer; Frame: NativeUInt): TSize;
var
  Heap: PHeap;
  Thread: PDebugThread;
  Place: TDebugPlace;
  Block: PDebugBlock;
  Stack: Cardinal;
  IsInside: Boolean;
  Empty: PSpan;
begin
  if not DebugSlotFind(P, Place) then
    Exit(EraseFree(P));
  PatternFetch(PByte(Place.Block), Place.Slot, Place.Span^.BlockSize);
  Thread := DebugThread;
  Heap := OsThreadHeap;
  Stack := DebugStack(Heap, Thread, Frame);
  if (Place.Block = nil) or not Change(P, Place) then
    Exit(Refuse(P, icFree));
  Block := Place.Block;
  if DebugIsReported(Place.Before) or not DebugUsedIsWhole(Place) then
    RepairBlock(Place);
  Result := Block^.Size;
  if Result >= SizeOf(NativeUInt) then
    Block^.FirstWord := PNativeUInt(P)^;
  Block^.FreeThread := DebugThreadId(Heap, Thread);
  Block^.FreeStack := Stack;
  DebugBlockSeal(Block);
  TellFree(Block);
  IsInside := DebugThreadIsInside(Thread);
  SpoilContents(Place, Result, not IsInside);
  DebugBlockSettle(Block, dsFreed);
  if IsInside then
    Exit; // the handler of a signal interrupted a call: no thread gets the block again
  DebugThreadEnter(Thread);
  Empty := QuarantineAdd(CacheOf(Thread), Place);
  DebugThreadLeave(Thread);
  if Empty <> nil then
    ReleaseSpans(Empty);
end;

// Hooks.DebugFree: for the entries outside of debug mode, and for pointers that are no block.
function FreeDebug(P: Pointer): TSize;
begin
  if DebugBlockOf(P) <> nil then
    Result := FreeAt(P, NativeUInt(get_frame))
  else
    Result := Refuse(P, icFree);
end;

function DebugFree(P: Pointer): TSize;
begin
  CheckWhenDue;
  Result := FreeAt(P, NativeUInt(get_frame));
end;

// Returns the debug block in use that begins at P, any pointer; nil if there is none.
function BlockInUse(P: Pointer): PDebugBlock;
var
  Place: TDebugPlace;
begin
  Result := nil;
  if DebugPlaceFind(P, Place) and (Place.Block <> nil) and (P = Place.Data)
    and (DebugStateOf(LoadAcquire(Place.Block^.State)) = dsInUse) then
    Result := Place.Block;
end;

procedure DebugSizeCheck(P: Pointer; Size: TSize);
var
  Block: PDebugBlock;
  Finding: TFinding;
begin
  Block := nil;
  if Size <> 0 then
    Block := BlockInUse(P);
  if (Block = nil) or (Size = Block^.Size) then
    Exit;
  FindingFrom(Finding, evWrongSize, msWrongSize, Block);
  Finding.Given := Size;
  FindingReport(Finding);
end;

function DebugFreeSize(P: Pointer; Size: TSize): TSize;
begin
  CheckWhenDue;
  DebugSizeCheck(P, Size);
  Result := FreeAt(P, NativeUInt(get_frame));
end;

function DebugFamilyCheck(P: Pointer; Family: TFamily): Boolean;
var
  Block: PDebugBlock;
  Finding: TFinding;
begin
  Block := BlockInUse(P);
  Result := (Block = nil) or (Block^.Family = Family);
  if Result then
    Exit;
  FindingFrom(Finding, evMismatch, msMismatchFamily, Block);
  Finding.Family := Family;
  FindingReport(Finding);
end;

procedure DebugSetFamily(P: Pointer; Family: TFamily);
var
  Block: PDebugBlock;
  Seen: TAtomicWord;
begin
  Block := BlockInUse(P);
  if Block = nil then
    Exit;
  repeat
    Seen := LoadAcquire(Block^.State);
  until DebugBlockChange(Block, Seen); // a check may set the reported bit meanwhile
  Block^.Family := Family;
  DebugBlockSeal(Block);
  DebugBlockSettle(Block, dsInUse);
end;

// ---------------------------------------------------------------------------- resize

// Resizes a block that this thread has taken out of use, in place.
procedure ResizeInPlace(const Place: TDebugPlace; Size: NativeUInt);
begin
  if Size > Place.Block^.Size then
    PatternFillEnds(Place.Data + Place.Block^.Size, Size - Place.Block^.Size, Debug.NewFill);
  Place.Block^.Size := Size;
  DebugBlockSeal(Place.Block);
  FillGuardBehind(Place, Size);
  DebugBlockSettle(Place.Block, dsInUse);
end;

// Allocates a debug block for the contents of Block, of OldSize bytes. Without memory it fails as
// GetMem, but returns nil alone where these shrink.
function GetForMove(Block: PDebugBlock; OldSize, Size, Frame: NativeUInt): Pointer;
var
  Capacity: NativeUInt;
  Group: Cardinal;
begin
  Capacity := Size;
  if (Size > OldSize) and (Size <= DebugMostSize) then
    Inc(Capacity, Size div GrowthShare);
  Group := GroupStay(Block^.Group);
  Result := GetFilled(Size, Capacity, Debug.AlignShift, Frame);
  GroupSet(Group);
  if (Result = nil) and (Size >= OldSize) then
    Result := LimitsRefuse(Size);
end;

// Resizes a block in use by a new one, which gets its contents. Without memory it stays, and only
// shrinks; nil if it should grow.
function MoveBlock(var Place: TDebugPlace; OldSize, Size, Frame: NativeUInt): Pointer;
begin
  if DebugIsOn then
    Result := GetForMove(Place.Block, OldSize, Size, Frame)
  else
  begin
    Result := EraseGetBeside(Place.Data, OldSize, Size);
    NoteBlock(Result, Size, Frame);
  end;
  if (Result = nil) and (Size < OldSize) and Change(Place.Data, Place) then
  begin
    ResizeInPlace(Place, Size);
    Exit(Place.Data);
  end;
  if Result = nil then
    Exit;
  if Size < OldSize then
    OldSize := Size;
  EraseCopy(Place.Data, Result, OldSize);
  FreeAt(Place.Data, Frame);
end;

// Resizes the block that begins at P; DebugSlotFind has found Place.
function ResizeAt(var P: Pointer; var Place: TDebugPlace; Size: TSize; Frame: NativeUInt): Pointer;
var
  OldSize: NativeUInt;
begin
  if (Place.Block = nil) or not Change(P, Place) then
    Exit(Pointer(Refuse(P, icResize)));
  if DebugIsReported(Place.Before) or not DebugUsedIsWhole(Place) then
    RepairBlock(Place);
  OldSize := Place.Block^.Size;
  if (Size <= Place.Capacity) and (Size >= OldSize shr KeptShift)
    and ((Size = OldSize) or not Place.HasPages) then
  begin
    ResizeInPlace(Place, Size);
    Exit(P);
  end;
  DebugBlockSettle(Place.Block, dsInUse);
  Result := MoveBlock(Place, OldSize, Size, Frame);
  if Result <> nil then
    P := Result;
end;

// Hooks.DebugResize: for the entries outside of debug mode.
function ResizeDebug(var P: Pointer; Size: TSize): Pointer;
var
  Place: TDebugPlace;
begin
  DebugSlotFind(P, Place);
  Result := ResizeAt(P, Place, Size, NativeUInt(get_frame));
end;

function DebugRealloc(var P: Pointer; Size: TSize): Pointer;
var
  Place: TDebugPlace;
  Before: Pointer;
begin
  CheckWhenDue;
  if (P = nil) and (Size <> 0) then
  begin
    P := GetAt(Size, NativeUInt(get_frame));
    Exit(P);
  end;
  if (Size <> 0) and DebugSlotFind(P, Place) then
    Exit(BlockResizeDone(P, ResizeAt(P, Place, Size, NativeUInt(get_frame)), DebugFree));
  Before := P;
  Result := EraseRealloc(P, Size);
  if Result <> nil then
    NoteResize(Before, P, Size, NativeUInt(get_frame));
end;

function UsableSize(P: Pointer): TSize;
var
  Block: PDebugBlock;
begin
  Block := BlockInUse(P);
  if Block <> nil then
    Exit(Block^.Size);
  Result := Refuse(P, icSize);
end;

function Owns(P: Pointer): Boolean;
begin
  Result := BlockInUse(P) <> nil;
end;

function DebugCheckHeap: NativeUInt;
begin
  Result := DebugCheckAll(FindingReport);
end;

function DebugIsWhole(P: Pointer): Boolean;
var
  Block: PDebugBlock;
begin
  Block := DebugBlockOf(P);
  Result := (Block = nil) or not DebugIsReported(LoadAcquire(Block^.State))
    and not DebugCheckBlock(Block, FindingReport);
end;

function DebugIsOn: Boolean;
begin
  Result := (Settings.Values[opDebug] <> 0) or (LoadAcquire(Debug.Depth) <> 0);
end;

procedure DebugRecover(IsTorn: Boolean);
begin
  Debug.GuardReaders := 0;
  Debug.GuardChanges := 0;
  if not IsTorn then
    Exit;
  Debug.HasLostThreads := True;
  DebugBlocksRecover;
  DebugThreadsForget;
  QuarantineForget;
  LockReset(Debug.Lock);
end;

procedure DebugApply;
begin
  Debug.NewFill := Settings.Values[opFill];
  if not DebugLockMayBeOwn then // else the next change of settings applies it
    ReleaseSpans(QuarantineLimit(Settings.Values[opQuarantine]));
end;

function DebugStart: Boolean;
begin
  if Debug.IsStarted then
    Exit(True);
  Result := BacktracesStart;
  if not Result then
    Exit;
  DebugNumbersStart;
  Debug.Quarantine.MostBytes := Settings.Values[opQuarantine];
  OsKeepStandardError;
  Debug.NewFill := Settings.Values[opFill];
  Debug.FreeFill := Settings.Values[opFreeFill];
  FreedObjectsStart;
  Hooks.InvalidPointer := ReportInvalid;
  Hooks.DebugVisit := DebugVisitBlocks;
  Hooks.DebugFind := DebugFindBlock;
  Hooks.DebugResize := ResizeDebug;
  Hooks.DebugSize := UsableSize;
  Hooks.DebugOwns := Owns;
  // Release: all that debug mode needs before the hook that BlockMayBeDebug tests, and pairs with:
  // a debug block reaches another thread through the program's own synchronization, any other
  // pointer does not.
  ReleaseFence;
  Hooks.DebugFree := FreeDebug;
  ReleaseFence; // the hooks before the word. Pairs with AlignedGetWatched
  Debug.IsStarted := True;
end;

end.
