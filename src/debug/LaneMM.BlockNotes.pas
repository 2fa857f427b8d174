/// Notes beside the heap: where each block of the release mode was allocated, and its size.
//
// Owns:       Debug.Notes.
// Layout:     each slice of the heap from Process.Base on has a slot, by parts of 16 MB. That of a
//             span's first slice leads to the notes of its blocks, in their order. These grow where
//             the slice comes to have more blocks, and are cut from stocks: a system that charges
//             for memory that is not touched charges for little more than the notes.
// Invariants: a thread writes the note of its block before it returns the block. Frees leave notes
//             alone: a walk looks at those of blocks in use. A walk that meets a block while it is
//             allocated may read the note of the one before it. Blocks without a slot, and those
//             without memory for notes, have none. NotesStart forgets the notes from before. The
//             note of a freed block counts as used as long as no other block is in its place.
// Callers:    NotesStart: LaneMM.Watch, while it holds its lock. NotesMarkUsed: the thread that
//             sweeps, as Stacks.VisitNumbers. The others: any thread.
// Progress:   lock-free: of two stocks that are taken at once, one is given back.
unit LaneMM.BlockNotes;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Hooks;

const
  /// Bytes of a part of the heap, as a power of two, and the number of parts.
  PartShift = 24;
  PartCount = 1 shl 16;
  /// The low bits of a slot: its notes are 2 to their power. The others are the address.
  NotesMask = 15;

type
  PNote = ^TNote;
  /// The note of a block.
  TNote = record
    Number: Cardinal;    //< racy    the low bits of the allocation number; see Callers above
    HighNumber: Word;    //< racy    those above
    Slack: Word;         //< racy    usable bytes less requested ones; 0 also where they do not fit
    Stack: Cardinal;     //< racy    number of the allocation's backtrace
    Thread: Cardinal;    //< racy    number of the thread that allocated it
  end;
  PNoteSlots = ^TNoteSlots;
  /// The slots of a part's slices, shared; 0: no notes.
  TNoteSlots = array[0..1 shl (PartShift - SliceShift) - 1] of TAtomicWord;
  PNoteParts = ^TNoteParts;
  /// The parts, shared: each a PNoteSlots; 0: none.
  TNoteParts = array[0..PartCount - 1] of TAtomicWord;

/// Prepares notes, and forgets all from before; returns False without memory.
function NotesStart: Boolean;
/// Calls BacktraceMark for the backtraces that blocks use, debug blocks too: what a sweep keeps.
procedure NotesMarkUsed;
/// Makes the note of the block at P, of Size requested bytes, which the caller has just got: it
/// was allocated by the caller of the routine with the frame pointer Frame. Does nothing for any
/// pointer but a block of the release mode, or while `stacks` is off.
procedure NoteBlock(P: Pointer; Size: TSize; Frame: NativeUInt);
/// Puts the notes in front of the entries that allocate blocks.
procedure NotedUseEntries(var Manager: TMemoryManager);
/// NoteBlock of a block that was at Before, or still is: then only its size is new.
procedure NoteResize(Before, P: Pointer; Size: TSize; Frame: NativeUInt);

implementation

uses
  LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.Rtl, LaneMM.Blocks, LaneMM.Walk,
  LaneMM.SettingsState, LaneMM.BacktraceTable, LaneMM.DebugState, LaneMM.DebugSpans,
  LaneMM.DebugThreads;

const
  // Bytes that slots and notes are cut from; the first word says how many are used.
  StockSize = NativeUInt(1) shl 20;

// Returns zeros for notes or slots; nil without memory.
function TakeZeros(Size: NativeUInt): Pointer;
var
  Stock, Next: PNativeUInt;
  Used: NativeUInt;
begin
  repeat
    Stock := PNativeUInt(LoadAcquire(Debug.NotesStock));
    if (Stock <> nil) and (LoadAcquire(Stock^) < StockSize) then
    begin
      Used := FetchAdd(Stock^, Size);
      if Used + Size <= StockSize then
        Exit(PByte(Stock) + Used);
    end;
    Next := OsTakePages(StockSize);
    if Next = nil then
      Exit(nil);
    Next^ := SizeOf(TNote);
    if not CompareAndSwap(Debug.NotesStock, NativeUInt(Stock), NativeUInt(Next)) then
      OsReleasePages(Next, StockSize);
  until False;
end;

// Returns the slot of the slice at Offset from Process.Base; nil if it has none.
function SlotAt(Offset: NativeUInt): PNativeUInt; inline;
begin
  Result := nil;
  // A plain read: that of the slot depends on it.
  if Offset shr PartShift < PartCount then
    Result := PNativeUInt(PNoteParts(Debug.Notes)^[Offset shr PartShift]);
  if Result <> nil then
    Inc(Result, Offset shr SliceShift and High(TNoteSlots));
end;

// Returns the slot of a slice that had none; nil without memory, and behind the last part.
function NewSlot(Offset: NativeUInt): PNativeUInt;
var
  Slots: Pointer;
begin
  if Offset shr PartShift >= PartCount then
    Exit(nil);
  Slots := TakeZeros(SizeOf(TNoteSlots));
  if Slots <> nil then // one that another thread was faster to replace stays unused
    CompareAndSwap(PNoteParts(Debug.Notes)^[Offset shr PartShift], 0, NativeUInt(Slots));
  Result := SlotAt(Offset);
end;

// Returns the number of the block of Span at Address.
function IndexOf(Span: PSpan; Address: PByte): Cardinal; inline;
begin
  Result := 0;
  if Span^.Kind = skBlocks then
    Result := Cardinal(Address - Span^.Start) div Cardinal(Span^.BlockSize);
end;

// Returns note number Index of a slot that has so many.
function NoteIn(Notes: NativeUInt; Index: Cardinal): PNote; inline;
begin
  Result := PNote(Notes and not NativeUInt(NotesMask)) + Index;
end;

// Gives the slot of Span, which held Before, as many notes as it can have blocks, and returns its
// value; without memory 0.
function NewNotes(Span: PSpan; Before: NativeUInt): NativeUInt;
var
  Slot: PNativeUInt;
  Count: NativeUInt;
  Shift: Cardinal;
  Notes: Pointer;
begin
  Slot := SlotAt(NativeUInt(Span^.Start) - Process.Base);
  if Slot = nil then
    Slot := NewSlot(NativeUInt(Span^.Start) - Process.Base);
  if Slot = nil then
    Exit(0);
  Count := 1;
  if Span^.Kind = skBlocks then
    Count := NativeUInt(Span^.SliceCount * SliceSize + Span^.BlockSize - 1) div Span^.BlockSize;
  Shift := FloorLog2(Count * 2 - 1);
  Notes := TakeZeros(SizeOf(TNote) shl Shift);
  if Notes = nil then
    Shift := 0;
  // Another thread that was faster has made as many: they are of the same life.
  CompareAndSwap(Slot^, Before, NativeUInt(Notes) or Shift);
  Result := LoadAcquire(Slot^);
end;

// Returns the note of the block at P, any pointer, of Size requested bytes, and sets its Slack. Nil
// if it has none, or `stacks` is off: callers that no installed entry has called see the setting
// before there are notes.
function NoteFor(P: Pointer; Size: NativeUInt): PNote;
var
  Span: PSpan;
  Slot: PNativeUInt;
  Notes: NativeUInt;
begin
  Result := nil;
  if not IsSet(opStacks) or (@Hooks.BlockNote = nil) then
    Exit;
  AcquireFence; // the notes after the hook. Pairs with NotesStart
  Span := BlockSpan(P);
  if Span = nil then
    Exit;
  Slot := SlotAt(NativeUInt(Span^.Start) - Process.Base);
  Notes := 0;
  if Slot <> nil then
    Notes := Slot^; // plain: the note depends on it
  // The first block of a life may find the notes of larger blocks, of a life before.
  if (Notes = 0) or (Span^.Kind = skBlocks)
    and (Span^.BlockSize shl (Notes and NotesMask) < Span^.SliceCount * SliceSize) then
  begin
    Notes := NewNotes(Span, Notes);
    if Notes = 0 then
      Exit(nil);
  end;
  Result := NoteIn(Notes, IndexOf(Span, P));
  Result^.Slack := 0;
  Size := NativeUInt(Span^.BlockSize - Size);
  if Size <= High(Result^.Slack) then
    Result^.Slack := Size;
end;

procedure NoteBlock(P: Pointer; Size: TSize; Frame: NativeUInt);
var
  Place: PNote;
  Heap: PHeap;
  Thread: PDebugThread;
  Number: UInt64;
begin
  Place := NoteFor(P, Size);
  if Place = nil then
    Exit;
  Thread := DebugThread;
  Heap := OsThreadHeap;
  Number := DebugNumber(Thread);
  Place^.Number := Cardinal(Number);
  Place^.HighNumber := Word(Number shr 32);
  Place^.Stack := DebugStack(Heap, Thread, Frame);
  Place^.Thread := DebugThreadId(Heap, Thread);
end;

procedure NoteResize(Before, P: Pointer; Size: TSize; Frame: NativeUInt);
begin
  if P <> Before then
    NoteBlock(P, Size, Frame)
  else
    NoteFor(P, Size);
end;

function NotedGet(Size: TSize): Pointer;
begin
  AcquireFence; // see SetEntries of LaneMM.Watch
  Result := Debug.NotesBehind.GetMem(Size);
  NoteBlock(Result, Size, NativeUInt(get_frame));
end;

function NotedGetZero(Size: TSize): Pointer;
begin
  AcquireFence; // likewise
  Result := Debug.NotesBehind.AllocMem(Size);
  NoteBlock(Result, Size, NativeUInt(get_frame));
end;

function NotedRealloc(var P: Pointer; Size: TSize): Pointer;
var
  Before: Pointer;
begin
  AcquireFence; // likewise
  Before := P;
  Result := Debug.NotesBehind.ReallocMem(P, Size);
  if Result <> nil then
    NoteResize(Before, P, Size, NativeUInt(get_frame));
end;

procedure NotedUseEntries(var Manager: TMemoryManager);
begin
  Debug.NotesBehind := Manager;
  Manager.GetMem := NotedGet;
  Manager.AllocMem := NotedGetZero;
  Manager.ReallocMem := NotedRealloc;
end;

// Hooks.BlockNote: adds the note of a block.
procedure ReadNote(Span: PSpan; var Block: TBlockInfo);
var
  Slot: PNativeUInt;
  Notes: NativeUInt;
  Index: Cardinal;
  Place: PNote;
begin
  if not IsSet(opStacks) then
    Exit;
  AcquireFence; // the slots after the hook. Pairs with NotesStart
  Slot := SlotAt(NativeUInt(Span^.Start) - Process.Base);
  if Slot = nil then
    Exit;
  Notes := Slot^; // plain: the note depends on it
  Index := IndexOf(Span, Block.Address);
  if (Notes = 0) or (Index shr (Notes and NotesMask) <> 0) then
    Exit;
  Place := NoteIn(Notes, Index);
  Block.Number := NativeUInt(UInt64(Place^.HighNumber) shl 32 or Place^.Number);
  if Place^.Slack <= Block.UsableSize then
    Block.RequestedSize := NativeUInt(Block.UsableSize - Place^.Slack);
  Block.Thread := Place^.Thread;
  Block.Stack := Place^.Stack;
end;

// Marks the notes of all blocks, in use or not, of a span or a large block.
procedure MarkNotes(Span: PSpan);
var
  Slot: PNativeUInt;
  Notes: NativeUInt;
  Index: Cardinal;
begin
  if Debug.Notes = nil then
    Exit;
  Slot := SlotAt(NativeUInt(Span^.Start) - Process.Base);
  if Slot = nil then
    Exit;
  Notes := LoadAcquire(Slot^);
  if Notes <> 0 then
    for Index := 0 to 1 shl (Notes and NotesMask) - 1 do
      BacktraceMark(NoteIn(Notes, Index)^.Stack);
end;

// Marks the first Count records of debug blocks. They are read by the system: another thread may
// release them.
procedure MarkRecords(Span: PSpan; Count: Cardinal);
const
  Portion = OsPageSize div SizeOf(TDebugBlock); // the first page of any span can be read
var
  Blocks: array[0..Portion - 1] of TDebugBlock;
  Index: Cardinal;
begin
  Index := 0;
  while Index < Count do
  begin
    if (Index mod Portion = 0)
      and not OsRead(NativeUInt(DebugBlockAt(Span, Index)), @Blocks, SizeOf(Blocks)) then
      Exit; // it was released
    BacktraceMark(Blocks[Index mod Portion].AllocStack);
    BacktraceMark(Blocks[Index mod Portion].FreeStack);
    Inc(Index);
  end;
end;

procedure MarkSpan(Span: PSpan; Context: Pointer);
begin
  if Span^.Kind = skDebug then
    MarkRecords(Span, DebugBlockCount(Span))
  else
    MarkNotes(Span);
end;

procedure NotesMarkUsed;
begin
  WalkSpans(MarkSpan, nil);
end;

procedure ForgetAll;
var
  Part, Index: Cardinal;
  Slots: PNoteSlots;
begin
  for Part := 0 to PartCount - 1 do
  begin
    Slots := PNoteSlots(LoadAcquire(PNoteParts(Debug.Notes)^[Part]));
    if Slots <> nil then
      for Index := 0 to High(Slots^) do
        if Slots^[Index] <> 0 then
          FillChar(NoteIn(Slots^[Index], 0)^, SizeOf(TNote) shl (Slots^[Index] and NotesMask), 0);
  end;
end;

function NotesStart: Boolean;
begin
  if Debug.Notes <> nil then
    ForgetAll
  else
    Debug.Notes := OsTakePages(SizeOf(TNoteParts));
  DebugNumbersStart;
  Result := (Debug.Notes <> nil) and BacktracesStart;
  if not Result then
    Exit;
  // Release: the parts before the hook. Pairs with ReadNote.
  ReleaseFence;
  Hooks.BlockNote := ReadNote;
end;

end.
