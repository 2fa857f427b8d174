/// Reads debug blocks that others may change: their damage, and who they are.
//
// Owns:       nothing.
// Invariants: no false positives, also while other threads allocate, free and write. A check
//             reads a block between two reads of its state, and discards what it found unless
//             both are the same.
// Callers:    any thread that holds no lock. Findings are reported under none.
unit LaneMM.DebugCheck;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Types, LaneMM.Hooks, LaneMM.ReportState, LaneMM.Messages, LaneMM.DebugState,
  LaneMM.DebugSpans;

const
  /// Maximum number of damaged ranges that a report lists.
  MostRanges = 4;
  /// Maximum number of bytes that a report dumps, around the first of them.
  DumpSize = 96;

type
  /// Consecutive bytes that were modified.
  TDamageRange = record
    Offset: NativeInt;    //< bytes from the start of the block's contents
    Length: NativeUInt;   //< bytes
  end;

  /// Where an address lies that is not the start of a debug block: inside one, in the heap but in
  /// no block in use, in a normal block, outside of the heap; or that it was read from a freed or a
  /// new block. noNone: nothing to add. noLikely: the block is a possible one. noUnknown: it is not
  /// known. noClassRead, noMethodCalled: what the access to a freed object was for.
  TNote = (noNone, noInner, noFree, noNormal, noElsewhere, noFreedFill, noNewFill, noLikely,
    noUnknown, noClassRead, noMethodCalled);
  /// The data of a report, copied from the block: they no longer change.
  TFinding = record
    Kind: TEventKind;         //< kind of event
    Message: TMessage;        //< its text
    Note: TNote;              //< where Address lies
    Address: NativeUInt;      //< address that the program used, or 0
    Access: TFaultAccess;     //< how, for evGuard
    AccessSize: NativeUInt;   //< bytes that the instruction accesses from Address on, for evGuard;
                              //  0: unknown
    Given: NativeUInt;        //< size that the program passed, for evWrongSize
    Family: TFamily;          //< routines that the program freed it with, for msMismatchFamily
    Slot: NativeInt;          //< number of the method, for evFreedCall and noMethodCalled;
                              //  negative: unknown
    Method: NativeUInt;       //< address of its code, or 0
    Block: TDebugBlock;       //< copy of the bookkeeping record
    State: TDebugState;       //< state of the block; dsNever: there is no debug block
    Data: NativeUInt;         //< address of its contents
    FirstWord: NativeUInt;    //< first word of the contents, now or when it was freed
    Before: NativeUInt;       //< of an underrun: address of the block before it, of which it may be
                              //  an overrun; or 0
    BeforeSize: NativeUInt;   //< its size
    BeforeNumber: NativeUInt; //< its allocation number
    RangeCount: Cardinal;     //< damaged ranges; MostRanges + 1: that many or more
    Ranges: array[0..MostRanges - 1] of TDamageRange; //< the first ones
    DumpOffset: NativeInt;    //< offset of Dump from Data
    DumpLength: Cardinal;     //< bytes in Dump
    Dump: array[0..DumpSize - 1] of Byte; //< the bytes around the first range
  end;
  /// The parts of a block, each with a kind of damage of its own: its record, the guards before and
  /// behind its contents, and of a freed one head and tail of these.
  TDamagePart = (paRecord, paBefore, paBehind, paHead, paTail);
  /// Reports a finding.
  TFindingCall = procedure(const Finding: TFinding);

/// Makes a finding about Block, which may be in the state dsChanging; nil: about no known block.
procedure FindingFrom(out Finding: TFinding; Kind: TEventKind; Message: TMessage;
  Block: PDebugBlock);
/// Checks one part of a block for damage. State is the state of the block, or was before the caller
/// set dsChanging. Returns True if it is damaged.
function DebugDamageFind(Block: PDebugBlock; State: TDebugState; Part: TDamagePart;
  out Finding: TFinding): Boolean;
/// Returns True if no part of the block at Place, which is in use, is damaged.
function DebugUsedIsWhole(const Place: TDebugPlace): Boolean;
/// Returns True if no part of the freed block at Place is damaged.
function DebugFreedIsWhole(const Place: TDebugPlace): Boolean;
/// Returns True in a child process that has lost threads if one of these may have been changing the
/// block at the fork: two of its pages may show two moments.
function DebugMayBeTorn(Block: PDebugBlock): Boolean;
/// Checks one block, which may change at any time, and calls Call for each finding. Returns True if
/// the block is damaged and was not reported before.
function DebugCheckBlock(Block: PDebugBlock; Call: TFindingCall): Boolean;
/// Checks all blocks but those that DebugMayBeTorn. Returns the number of damaged blocks that were
/// not reported before.
function DebugCheckAll(Call: TFindingCall): NativeUInt;
/// Hooks.DebugVisit: calls Visitor for each block in use of a span.
procedure DebugVisitBlocks(Span: PSpan; Visitor: TBlockVisitor; Context: Pointer);
/// Hooks.DebugFind: returns whether P lies in a block in use of the span; Info is that block.
function DebugFindBlock(Span: PSpan; P: Pointer; out Info: TBlockInfo): Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.Atomic, LaneMM.Os, LaneMM.Walk, LaneMM.Purge,
  LaneMM.DebugRecords, LaneMM.DebugThreads, LaneMM.GuardPages, LaneMM.Patterns;

type
  // A range of bytes that should all have one value.
  TPattern = record
    Data: PByte;        // contents of the block
    First, Limit: NativeInt;
    Value: Byte;
    HasTraps: Boolean;  // may contain the words that LaneMM.FreedObjects writes
  end;

// ---------------------------------------------------------------------------- bytes

// Returns the offset of the first other byte from First on; Limit if there is none.
function FirstOther(const Expected: TPattern; First: NativeInt): NativeInt; inline;
begin
  Result := First
    + NativeInt(PatternLength(Expected.Data + First, Expected.Limit - First, Expected.Value));
end;

// Returns True if a word of LaneMM.FreedObjects lies at Offset.
function IsTrap(const Expected: TPattern; Offset: NativeInt): Boolean;
var
  Word: NativeUInt;
begin
  Result := False;
  if not Expected.HasTraps or (Offset + SizeOf(Word) > Expected.Limit) then
    Exit;
  Word := PNativeUInt(Expected.Data + Offset)^;
  Result := (Word <> 0) and (Word = Debug.InterfaceTrap)
    or (FreedClassBase <> 0) and (Offset = 0)
      and (Word = FreedClassBase + NativeUInt(Expected.Data));
end;

// Returns the offset of the next damaged byte from First on; Limit if there is none.
function NextDamage(const Expected: TPattern; First: NativeInt): NativeInt;
const
  WordMask = SizeOf(NativeUInt) - 1;
begin
  Result := FirstOther(Expected, First);
  while (Result < Expected.Limit) and IsTrap(Expected, Result and not WordMask) do
    Result := FirstOther(Expected, (Result or WordMask) + 1);
end;

procedure FindRanges(const Expected: TPattern; var Finding: TFinding);
var
  Offset, First: NativeInt;
begin
  Finding.RangeCount := 0;
  Offset := NextDamage(Expected, Expected.First);
  while Offset < Expected.Limit do
  begin
    First := Offset;
    while (Offset < Expected.Limit) and (Expected.Data[Offset] <> Expected.Value) do
      Inc(Offset);
    if Finding.RangeCount < MostRanges then
    begin
      Finding.Ranges[Finding.RangeCount].Offset := First;
      Finding.Ranges[Finding.RangeCount].Length := Offset - First;
    end;
    Inc(Finding.RangeCount);
    if Finding.RangeCount > MostRanges then
      Exit;
    Offset := NextDamage(Expected, Offset);
  end;
end;

// ---------------------------------------------------------------------------- findings

// Copies the bytes around Offset, at most the block and its guards.
procedure KeepDump(var Finding: TFinding; const Place: TDebugPlace; Offset: NativeInt);
const
  BytesBefore = 32;
  LineMask = 15;
var
  Last: NativeInt;
begin
  Finding.DumpOffset := (Offset - BytesBefore) and not LineMask;
  if Finding.DumpOffset < -FrontGuardSize then
    Finding.DumpOffset := -FrontGuardSize;
  Last := Place.Capacity + DebugGuardLength(Place, Place.Capacity);
  if Last > Finding.DumpOffset + DumpSize then
    Last := Finding.DumpOffset + DumpSize;
  Finding.DumpLength := Last - Finding.DumpOffset;
  Move(Place.Data[Finding.DumpOffset], Finding.Dump, Finding.DumpLength);
end;

procedure FindingFrom(out Finding: TFinding; Kind: TEventKind; Message: TMessage;
  Block: PDebugBlock);
begin
  Finding := Default(TFinding);
  Finding.Kind := Kind;
  Finding.Message := Message;
  if Block = nil then
    Exit;
  Finding.Block := Block^;
  Finding.State := DebugStateOf(Block^.State);
  Finding.Data := NativeUInt(DebugBlockData(Block));
  if Finding.State = dsFreed then
    Finding.FirstWord := Block^.FirstWord
  else if Block^.Size >= SizeOf(NativeUInt) then
    // Through the system: the pages of a guarded block may be inaccessible.
    OsRead(Finding.Data, @Finding.FirstWord, SizeOf(Finding.FirstWord));
end;

// Returns the range that a part should contain; empty where the record of the block is corrupt.
function ExpectedIn(const Place: TDebugPlace; Size: NativeUInt; State: TDebugState;
  Part: TDamagePart): TPattern;
begin
  Result.Data := Place.Data;
  Result.First := 0;
  Result.Limit := 0;
  Result.Value := GuardByte;
  Result.HasTraps := False;
  if (State = dsFreed) and (Place.HasPages or not DebugPlaceIsOpen(Place)) then
    Exit;
  if Part = paBefore then
    Result.First := -FrontGuardSize
  else if Size <= Place.Capacity then
    if Part = paBehind then
    begin
      Result.First := Size;
      Result.Limit := Size + DebugGuardLength(Place, Size);
    end
    else if State = dsFreed then
    begin
      Result.Limit := PatternHead(Size);
      if Part = paTail then
      begin
        Result.First := Size - PatternTail(Size);
        Result.Limit := Size;
      end;
      Result.Value := Debug.FreeFill;
      Result.HasTraps := True;
    end;
end;

function IsWhole(const Expected: TPattern): Boolean;
begin
  Result := (Expected.First >= Expected.Limit)
    or (NextDamage(Expected, Expected.First) >= Expected.Limit);
end;

// Returns the bytes at the start of a freed block that take the place of its class; 0 for none.
function ClassTrapSize(const Place: TDebugPlace; Size: NativeUInt): NativeUInt; inline;
begin
  Result := 0;
  if (Size >= SizeOf(NativeUInt)) and (FreedClassBase <> 0)
    and (PNativeUInt(Place.Data)^ = FreedClassBase + NativeUInt(Place.Data)) then
    Result := SizeOf(NativeUInt);
end;

// Returns True if the contents of a freed block are whole, traps of interfaces included.
function TrapsAreWhole(const Place: TDebugPlace; Size: NativeUInt): Boolean;
begin
  Result := IsWhole(ExpectedIn(Place, Size, dsFreed, paHead))
    and IsWhole(ExpectedIn(Place, Size, dsFreed, paTail));
end;

// TrapsAreWhole, quickly where the block has no such traps.
function ContentsAreWhole(const Place: TDebugPlace; Size: NativeUInt): Boolean;
var
  First: NativeUInt;
begin
  First := ClassTrapSize(Place, Size);
  Result := PatternEndsAreWhole(Place.Data + First, Size - First, Debug.FreeFill)
    or TrapsAreWhole(Place, Size);
end;

// Returns True if a block with a span of its own is whole. The guard after a block with guard pages
// may be short.
function SpanIsWhole(const Place: TDebugPlace; Size: NativeUInt; State: TDebugState): Boolean;
begin
  if (State = dsFreed) and (Place.HasPages or not DebugPlaceIsOpen(Place)) then
    Exit(True);
  Result := PatternIsWhole(Place.Data - FrontGuardSize, FrontGuardSize, GuardByte)
    and PatternIsWhole(Place.Data + Size, DebugGuardLength(Place, Size), GuardByte)
    and ((State <> dsFreed) or ContentsAreWhole(Place, Size));
end;

function DebugUsedIsWhole(const Place: TDebugPlace): Boolean;
var
  Size: NativeUInt;
begin
  Size := Place.Block^.Size;
  if not DebugBlockIsSealed(Place.Block) or (Size > Place.Capacity) then
    Exit(False);
  if Place.IsClosable then
    Exit(SpanIsWhole(Place, Size, dsInUse));
  Result := PatternIsAround(Place.Data, Size, DebugGuardLength(Place, Size), GuardByte);
end;

// As above, with the contents: a block that shares its span is short, and filled as a whole. A
// common part that is inlined into both takes eleven instructions more of a pair in churn-small.
function DebugFreedIsWhole(const Place: TDebugPlace): Boolean;
var
  Size, First: NativeUInt;
begin
  Size := Place.Block^.Size;
  if not DebugBlockIsSealed(Place.Block) or (Size > Place.Capacity) then
    Exit(False);
  if Place.IsClosable then
    Exit(SpanIsWhole(Place, Size, dsFreed));
  if not PatternIsAround(Place.Data, Size, DebugGuardLength(Place, Size), GuardByte) then
    Exit(False);
  First := ClassTrapSize(Place, Size);
  Result := PatternIsWhole(Place.Data + First, Size - First, Debug.FreeFill)
    or TrapsAreWhole(Place, Size);
end;

procedure Note(Block: PDebugBlock; State: TDebugState; Part: TDamagePart; out Finding: TFinding);
const
  Kinds: array[TDamagePart] of TEventKind = (evBookkeeping, evWriteBefore, evWriteAfter,
    evWriteAfterFree, evWriteAfterFree);
  Messages: array[TDamagePart] of TMessage = (msBookkeeping, msWriteBefore, msWriteAfter,
    msWriteAfterFree, msWriteAfterFree);
begin
  FindingFrom(Finding, Kinds[Part], Messages[Part], Block);
  Finding.State := State;
  Finding.Address := Finding.Data;
  if State = dsFreed then
    Finding.FirstWord := Block^.FirstWord;
end;

// Adds the block before one of a span of several, unless it was never used: damage that begins
// nearer to it may be its overrun.
procedure NoteBefore(const Place: TDebugPlace; var Finding: TFinding);
var
  Index: NativeUInt;
  Block: PDebugBlock;
begin
  Index := DebugIndexOf(Place.Span, Place.Block);
  if Place.IsClosable or (Index = 0) then
    Exit;
  Block := DebugBlockAt(Place.Span, Index - 1);
  if not (DebugStateOf(LoadAcquire(Block^.State)) in [dsInUse, dsFreed]) then
    Exit;
  Finding.Before := NativeUInt(DebugBlockData(Block));
  Finding.BeforeSize := Block^.Size;
  Finding.BeforeNumber := Block^.Number;
end;

function DebugDamageFind(Block: PDebugBlock; State: TDebugState; Part: TDamagePart;
  out Finding: TFinding): Boolean;
var
  Place: TDebugPlace;
  Expected: TPattern;
begin
  DebugBlockPlace(Block, Place);
  if Part = paRecord then
  begin
    Result := not DebugBlockIsSealed(Block) or (Block^.Size > Place.Capacity);
    if Result then
      Note(Block, State, paRecord, Finding);
    Exit;
  end;
  Expected := ExpectedIn(Place, Block^.Size, State, Part);
  Result := not IsWhole(Expected);
  if not Result then
    Exit;
  Note(Block, State, Part, Finding);
  FindRanges(Expected, Finding);
  if (Part = paBefore) and (Finding.Ranges[0].Offset < -FrontGuardSize div 2) then
    NoteBefore(Place, Finding);
  KeepDump(Finding, Place, Finding.Ranges[0].Offset);
end;

// ---------------------------------------------------------------------------- scans

type
  TScan = record
    Call: TFindingCall;
    DamagedCount: NativeUInt;
    // Of the block that was checked last.
    FindingCount: NativeInt;
    Findings: array[0..Ord(High(TDamagePart))] of TFinding;
  end;
  PScan = ^TScan;

// Finds all damage of a block that may change at any time, and marks it as reported. Under
// Debug.Lock: the pages of a guarded block that were accessible stay so.
function FindDamage(Block: PDebugBlock; var Scan: TScan): Boolean;
var
  Seen: TAtomicWord;
  State: TDebugState;
  Place: TDebugPlace;
  Part: TDamagePart;
begin
  Scan.FindingCount := 0;
  // Acquire: the state before the contents of the block. Pairs with DebugBlockSettle.
  Seen := LoadAcquire(Block^.State);
  if not (DebugStateOf(Seen) in [dsInUse, dsFreed]) or DebugIsReported(Seen) then
    Exit(False);
  DebugBlockPlace(Block, Place);
  State := DebugStateOf(Seen);
  // The state of a guarded block may be corrupt, and its pages inaccessible.
  if not DebugPlaceIsOpen(Place) then
    State := dsFreed;
  if State = dsFreed then
    Result := DebugFreedIsWhole(Place)
  else
    Result := DebugUsedIsWhole(Place);
  if Result then
    Exit(False);
  for Part := Low(Part) to High(Part) do
    if DebugDamageFind(Block, State, Part, Scan.Findings[Scan.FindingCount]) then
      Inc(Scan.FindingCount);
  // Only if the state has not changed. Pairs with DebugBlockChange.
  Result := (Scan.FindingCount > 0) and DebugBlockMarkReported(Block, Seen);
end;

function DebugMayBeTorn(Block: PDebugBlock): Boolean;
begin
  Result := Debug.HasLostThreads
    and (DebugBlockIsInherited(Block^.Number) or not DebugBlockIsSealed(Block));
end;

// Finds the next damaged block of the span from Index on; Index becomes the one after it. Under
// Debug.Lock the span is not released and no thread takes a block from it.
function FindInSpan(Span: PSpan; var Index: Cardinal; var Scan: TScan): Boolean;
var
  Block: PDebugBlock;
begin
  Result := False;
  DebugLockEnter;
  if Span^.Kind = skDebug then
    while not Result and (Index < DebugBlockCount(Span)) do
    begin
      Block := DebugBlockAt(Span, Index);
      Result := not DebugMayBeTorn(Block) and FindDamage(Block, Scan);
      Inc(Index);
    end;
  DebugLockLeave;
end;

procedure ReportAll(var Scan: TScan);
var
  Index: NativeInt;
begin
  for Index := 0 to Scan.FindingCount - 1 do
    Scan.Call(Scan.Findings[Index]);
end;

function DebugCheckBlock(Block: PDebugBlock; Call: TFindingCall): Boolean;
var
  Scan: TScan;
begin
  if DebugLockMayBeOwn then
    Exit(False);
  Scan.Call := Call;
  DebugLockEnter;
  Result := FindDamage(Block, Scan);
  DebugLockLeave;
  if Result then
    ReportAll(Scan);
end;

procedure ScanSpan(Span: PSpan; Context: Pointer);
var
  Index: Cardinal;
begin
  Index := 0;
  while (Span^.Kind = skDebug) and FindInSpan(Span, Index, PScan(Context)^) do
  begin
    Inc(PScan(Context)^.DamagedCount);
    ReportAll(PScan(Context)^);
  end;
end;

function DebugCheckAll(Call: TFindingCall): NativeUInt;
var
  Scan: TScan;
begin
  Scan.Call := Call;
  Scan.DamagedCount := 0;
  if not DebugLockMayBeOwn then
    WalkSpans(ScanSpan, @Scan);
  Result := Scan.DamagedCount;
end;

// Reads the record of a block in use; False when it is not in use, or no longer.
function DescribeInUse(Block: PDebugBlock; out Info: TBlockInfo): Boolean;
var
  Seen: TAtomicWord;
  Place: TDebugPlace;
begin
  // Acquire: State before the record. Pairs with DebugBlockSettle.
  Seen := LoadAcquire(Block^.State);
  DebugBlockPlace(Block, Place);
  if (DebugStateOf(Seen) <> dsInUse) or not DebugPlaceIsOpen(Place) then
    Exit(False);
  Info.Address := Place.Data;
  Info.UsableSize := Block^.Size;
  Info.RequestedSize := Block^.Size;
  Info.Kind := skDebug;
  Info.Number := Block^.Number;
  Info.Thread := Block^.AllocThread;
  Info.Stack := Block^.AllocStack;
  Info.Group := Block^.Group;
  // Full barrier: the record was read in this state. Pairs with DebugBlockChange.
  Result := (FetchAdd(Block^.State, 0) = Seen) and DebugBlockIsSealed(Block);
end;

procedure DebugVisitBlocks(Span: PSpan; Visitor: TBlockVisitor; Context: Pointer);
var
  Index, Count: NativeInt;
  Info: TBlockInfo;
begin
  // Full barrier: either this thread sees that another one has released the span, or the purge of
  // its memory sees the reader. Pairs with Release of LaneMM.DebugBlocks, and PurgeShard in
  // LaneMM.Shards.
  FetchAdd(Process.PurgesHeld, 1);
  Count := DebugBlockCount(Span);
  if Span^.Kind <> skDebug then // the count may be that of another kind of span
    Count := 0;
  for Index := 0 to Count - 1 do
    if DescribeInUse(DebugBlockAt(Span, Index), Info) then
      Visitor(Info, Context);
  PurgeLetGo;
end;

function DebugFindBlock(Span: PSpan; P: Pointer; out Info: TBlockInfo): Boolean;
var
  Block: PDebugBlock;
begin
  FetchAdd(Process.PurgesHeld, 1); // likewise
  Block := DebugBlockOf(P);
  Result := (Block <> nil) and DescribeInUse(Block, Info) and ((P = Info.Address) // of any size
    or (NativeUInt(NativeUInt(P) - NativeUInt(Info.Address)) < Info.UsableSize));
  PurgeLetGo;
end;

end.
