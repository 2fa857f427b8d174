/// Notes beside the heap: where each block of the release mode was allocated, and its size.
//
// Owns:       Debug.Notes, NotedGet, NotedGetZero, NotedResize.
// Layout:     the heap from Process.Base on has a mirror, of pieces that are made when they are
//             first needed. The note of block number I of a span lies in the mirror of its address
//             plus I notes. As no note is longer than a block, the notes of a span fit into its own
//             mirror, and stand without gaps.
// Invariants: a thread writes the note of its block before it returns the block. Frees leave notes
//             alone: a walk looks at those of blocks in use. A walk that meets a block while it is
//             allocated may read the note of the one before it. Blocks outside of the mirror, and
//             those without memory for it, have no note. NotesStart forgets the notes from before.
// Callers:    NotesStart: LaneMM.Watch, while it holds its lock. The others: any thread.
// Progress:   lock-free: of two pieces that are made at once, one is given back.
unit LaneMM.BlockNotes;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Hooks;

const
  /// Bytes of a piece of the mirror, as a power of two, and the number of pieces.
  PieceShift = 24;
  PieceSize = NativeUInt(1) shl PieceShift;
  PieceCount = 1 shl 16;

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
  PMirror = ^TMirror;
  /// The mirror.
  TMirror = array[0..PieceCount - 1] of TAtomicWord; //< addresses of pieces; 0: none

/// Makes the mirror, and forgets all notes; returns False without memory.
function NotesStart: Boolean;
/// Calls BacktraceMark for the notes of all blocks, in use or not, of a span or a large block.
procedure NotesMark(Span: PSpan);
/// Makes the note of the block at P, of Size requested bytes, which the caller has just got: it
/// was allocated by the caller of the routine with the frame pointer Frame. Does nothing for any
/// pointer but a block of the release mode, or while `stacks` is off.
procedure NoteBlock(P: Pointer; Size: TSize; Frame: NativeUInt);
/// NoteBlock of a block that was at Before, or still is: then only its size is new.
procedure NoteResize(Before, P: Pointer; Size: TSize; Frame: NativeUInt);
/// Allocates a block by Debug.NotedGet, and makes its note.
function NotedGet(Size: TSize): Pointer;
/// Allocates a block of zeros by Debug.NotedGetZero, and makes its note.
function NotedGetZero(Size: TSize): Pointer;
/// Resizes a block by Debug.NotedResize; one that moves gets a new note.
function NotedRealloc(var P: Pointer; Size: TSize): Pointer;

implementation

uses
  LaneMM.Atomic, LaneMM.Os, LaneMM.Rtl, LaneMM.Arena, LaneMM.SettingsState,
  LaneMM.BacktraceTable, LaneMM.DebugState, LaneMM.DebugThreads;

// Returns the bytes from Process.Base to the note of the block at Address, before it is mirrored.
function OffsetOf(Span: PSpan; Address: PByte): NativeUInt; inline;
begin
  Result := NativeUInt(Span^.Start) - Process.Base;
  if Span^.Kind = skBlocks then
    Inc(Result, Cardinal(Address - Span^.Start) div Cardinal(Span^.BlockSize) * SizeOf(TNote));
end;

// Makes the piece number Index, if the mirror reaches that far; returns its address, or 0.
function NewPiece(Index: NativeUInt): NativeUInt;
var
  Piece: Pointer;
  Place: PNativeUInt;
begin
  if Index >= PieceCount then
    Exit(0);
  Place := @PMirror(Debug.Notes)^[Index];
  Piece := OsTakePages(PieceSize);
  if (Piece <> nil) and not CompareAndSwap(Place^, 0, NativeUInt(Piece)) then
    OsReleasePages(Piece, PieceSize);
  Result := LoadAcquire(Place^);
end;

// Returns the address of a piece; 0 if there is none.
function PieceAt(Index: NativeUInt): NativeUInt; inline;
begin
  Result := 0;
  if Index < PieceCount then
    Result := LoadAcquire(PMirror(Debug.Notes)^[Index]);
end;

// Returns the first record of the span of blocks, or of the large block, that Slice belongs to; nil
// if there is none.
function FirstOf(Slice: PSpan): PSpan;
begin
  Result := Slice;
  if Result^.Kind = skInner then
    Dec(Result, Result^.Distance);
  if not (Result^.Kind in [skBlocks, skLarge]) then
    Result := nil;
end;

// Returns the note of the block at P, any pointer, of Size requested bytes, and sets its Slack; nil
// if it has none.
function NoteFor(P: Pointer; Size: NativeUInt): PNote;
var
  Span: PSpan;
  Offset, Piece: NativeUInt;
begin
  Span := ArenaSpan(P);
  if (Span <> nil) and (Span^.Kind <> skBlocks) then
    Span := FirstOf(Span);
  if Span = nil then
    Exit(nil);
  Offset := OffsetOf(Span, P);
  Piece := PieceAt(Offset shr PieceShift);
  if Piece = 0 then
    Piece := NewPiece(Offset shr PieceShift);
  Result := nil;
  if Piece = 0 then
    Exit;
  Result := PNote(Piece + Offset and (PieceSize - 1));
  Result^.Slack := 0;
  Size := NativeUInt(Span^.BlockSize - Size);
  if Size <= High(Result^.Slack) then
    Result^.Slack := Size;
end;

// Writes the note of the block at P, if it can have one.
procedure Note(P: Pointer; Size: TSize; Frame: NativeUInt);
var
  Place: PNote;
  Thread: PDebugThread;
  Number: UInt64;
begin
  Place := NoteFor(P, Size);
  if Place = nil then
    Exit;
  Thread := DebugThread;
  Number := DebugNumber(Thread);
  Place^.Number := Cardinal(Number);
  Place^.HighNumber := Word(Number shr 32);
  Place^.Stack := DebugStack(Thread, Frame);
  Place^.Thread := DebugThreadId(Thread);
end;

procedure NoteBlock(P: Pointer; Size: TSize; Frame: NativeUInt);
begin
  if IsSet(opStacks) then
    Note(P, Size, Frame);
end;

procedure NoteResize(Before, P: Pointer; Size: TSize; Frame: NativeUInt);
begin
  if P <> Before then
    NoteBlock(P, Size, Frame)
  else if IsSet(opStacks) then
    NoteFor(P, Size);
end;

function NotedGet(Size: TSize): Pointer;
begin
  AcquireFence; // see SetEntries of LaneMM.Watch
  Result := Debug.NotedGet(Size);
  Note(Result, Size, NativeUInt(get_frame));
end;

function NotedGetZero(Size: TSize): Pointer;
begin
  AcquireFence; // likewise
  Result := Debug.NotedGetZero(Size);
  Note(Result, Size, NativeUInt(get_frame));
end;

function NotedRealloc(var P: Pointer; Size: TSize): Pointer;
var
  Before: Pointer;
begin
  AcquireFence; // likewise
  Before := P;
  Result := Debug.NotedResize(P, Size);
  if Result <> nil then
    NoteResize(Before, P, Size, NativeUInt(get_frame));
end;

// Hooks.BlockNote: adds the note of a block.
procedure ReadNote(Span: PSpan; var Block: TBlockInfo);
var
  Offset, Piece: NativeUInt;
  Place: PNote;
begin
  if not IsSet(opStacks) then
    Exit;
  AcquireFence; // the mirror after the hook. Pairs with NotesStart
  Offset := OffsetOf(Span, Block.Address);
  Piece := PieceAt(Offset shr PieceShift);
  if Piece = 0 then
    Exit;
  Place := PNote(Piece + Offset and (PieceSize - 1));
  Block.Number := NativeUInt(UInt64(Place^.HighNumber) shl 32 or Place^.Number);
  if Place^.Slack < Block.UsableSize then
    Block.RequestedSize := NativeUInt(Block.UsableSize - Place^.Slack);
  Block.Thread := Place^.Thread;
  Block.Stack := Place^.Stack;
end;

// The record may become that of another span meanwhile: its fields are read once.
procedure NotesMark(Span: PSpan);
var
  Offset, Size, Count, Piece: NativeUInt;
begin
  if Debug.Notes = nil then
    Exit;
  Offset := NativeUInt(Span^.Start) - Process.Base;
  Size := Span^.BlockSize;
  Count := 1;
  if (Span^.Kind = skBlocks) and (Size > 0) then
    Count := Span^.CarvedBytes div Size;
  while Count > 0 do
  begin
    Piece := PieceAt(Offset shr PieceShift);
    if Piece <> 0 then
      BacktraceMark(PNote(Piece + Offset and (PieceSize - 1))^.Stack);
    Inc(Offset, SizeOf(TNote));
    Dec(Count);
  end;
end;

procedure ForgetAll;
var
  Index: Cardinal;
  Piece: NativeUInt;
begin
  for Index := 0 to PieceCount - 1 do
  begin
    Piece := LoadAcquire(PMirror(Debug.Notes)^[Index]);
    if Piece <> 0 then
      OsClear(Pointer(Piece), PieceSize);
  end;
end;

function NotesStart: Boolean;
begin
  if Debug.Notes <> nil then
    ForgetAll
  else
    Debug.Notes := OsTakePages(SizeOf(TMirror));
  DebugNumbersStart;
  Result := (Debug.Notes <> nil) and BacktracesStart;
  if not Result then
    Exit;
  // Release: the mirror before the hook. Pairs with ReadNote.
  ReleaseFence;
  Hooks.BlockNote := ReadNote;
end;

end.
