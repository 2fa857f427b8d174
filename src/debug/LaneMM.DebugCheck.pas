/// Finds damage of debug blocks: in one block, in all.
//
// Owns:       nothing.
// Invariants: finds what is there and invents nothing, also while other threads allocate, free
//             and write. A block is looked at between two reads of its state; unless both are the
//             same, what was seen in between does not count.
// Callers:    any thread that holds no lock. A finding is told of under none.
unit LaneMM.DebugCheck;

{$I ../LaneMM.inc}

interface



uses
  LaneMM.ReportState, LaneMM.Messages, LaneMM.DebugState, LaneMM.DebugSpans;



const
  /// Places of damage that are told apart.
  MostRanges = 4;
  /// Bytes that are kept around the first place.
  DumpSize = 96;

type
  /// Bytes that are not as they should be.
  TDamageRange = record
    Offset: NativeInt;    //< from the start of the block's contents
    Length: NativeUInt;   //< bytes
  end;

  /// What else is known of an address.
  TNote = (noNone, noInner, noFree, noNormal, noElsewhere);
  /// What is known when something is found; a copy, nothing in it can change.
  TFinding = record
    Kind: TEventKind;         //< what was found
    Message: TMessage;        //< what is said about it
    Note: TNote;              //< of Address
    Address: NativeUInt;      //< that the program used, or 0
    Given: NativeUInt;        //< size that the program gave, with evWrongSize
    Slot: NativeInt;          //< number of the method, with evFreedCall; negative: unknown
    Method: NativeUInt;       //< its code, or 0
    Block: TDebugBlock;       //< what is noted of the block
    State: TDebugState;       //< its state; dsNever: there is no debug block
    Data: NativeUInt;         //< where its contents begin
    FirstWord: NativeUInt;    //< of the contents, now or when it was freed
    RangeCount: Cardinal;     //< places of damage; more are not told apart
    Ranges: array[0..MostRanges - 1] of TDamageRange; //< the first ones
    DumpOffset: NativeInt;    //< of the bytes that were kept
    DumpLength: Cardinal;     //< how many
    Dump: array[0..DumpSize - 1] of Byte; //< the bytes
  end;
  /// Is told of a finding.
  TFindingCall = procedure(const Finding: TFinding);

/// Notes Block, which the caller may be changing, in Finding.
procedure FindingFrom(out Finding: TFinding; Message: TMessage; Block: PDebugBlock);
/// Looks for damage of a block that was seen in this state, and is or was before the caller
/// changed it. Part counts from 0; each has one kind of damage.
function DebugDamageFind(Block: PDebugBlock; State: TDebugState; Part: Cardinal;
  out Finding: TFinding): Boolean;
/// Whether a block that lies there, was seen in this state, and is or was before the caller changed
/// it, has no damage.
function DebugBlockIsWhole(Block: PDebugBlock; const Place: TDebugPlace;
  State: TDebugState): Boolean;
/// Parts of a block.
function DebugPartCount: Cardinal;
/// Looks at one block that may change at any time. Tells Call of what it finds; returns 1 if the
/// block is damaged, else 0.
function DebugCheckBlock(Block: PDebugBlock; Call: TFindingCall): NativeUInt;
/// Looks at all blocks. The same damage is told of once. Returns how many blocks are damaged.
function DebugCheckAll(Call: TFindingCall): NativeUInt;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Os, LaneMM.Lock, LaneMM.Arena,
  LaneMM.DebugRecords, LaneMM.GuardPages, LaneMM.Patterns;

type
  TPart = (paNotes, paBefore, paBehind, paContents);

  // A range of bytes that should all be the same.
  TSuppression = record
    Data: PByte;        // contents of the block
    First, Limit: NativeInt;
    Value: Byte;
    HasTraps: Boolean;  // may hold the words that LaneMM.FreedObjects writes
  end;

// ---------------------------------------------------------------------------- bytes

// The first offset from First on at which another byte than the expected one lies; Limit: none.
function FirstOther(const Expected: TSuppression; First: NativeInt): NativeInt; inline;
begin
  Result := First
    + NativeInt(PatternLength(Expected.Data + First, Expected.Limit - First, Expected.Value));
end;

// Whether a word of LaneMM.FreedObjects lies at the offset.
function IsTrap(const Expected: TSuppression; Offset: NativeInt): Boolean;
var
  Word: NativeUInt;
begin
  Result := False;
  if not Expected.HasTraps or (Offset + SizeOf(Word) > Expected.Limit) then
    Exit;
  Word := PNativeUInt(Expected.Data + Offset)^;
  Result := (Word <> 0) and ((Word = Debug.ObjectTrap) or (Word = Debug.InterfaceTrap));
end;

// The next damaged byte from First on; Limit: none.
function NextDamage(const Expected: TSuppression; First: NativeInt): NativeInt;
const
  WordMask = SizeOf(NativeUInt) - 1;
begin
  Result := FirstOther(Expected, First);
  while (Result < Expected.Limit) and IsTrap(Expected, Result and not WordMask) do
    Result := FirstOther(Expected, (Result or WordMask) + 1);
end;

procedure FindRanges(const Expected: TSuppression; var Finding: TFinding);
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

// Keeps the bytes around Offset, between the guards.
procedure KeepDump(var Finding: TFinding; const Place: TDebugPlace; Offset: NativeInt);
const
  BytesBefore = 32;
  LineMask = 15;
var
  Last: NativeInt;
begin
  Finding.DumpOffset := (Offset - BytesBefore) and not LineMask;
  if Finding.DumpOffset < -GuardSize then
    Finding.DumpOffset := -GuardSize;
  Last := Place.Capacity + DebugGuardLength(Place, Place.Capacity);
  if Last > Finding.DumpOffset + DumpSize then
    Last := Finding.DumpOffset + DumpSize;
  Finding.DumpLength := Last - Finding.DumpOffset;
  Move(Place.Data[Finding.DumpOffset], Finding.Dump, Finding.DumpLength);
end;

procedure FindingFrom(out Finding: TFinding; Message: TMessage; Block: PDebugBlock);
begin
  Finding := Default(TFinding);
  Finding.Message := Message;
  Finding.Block := Block^;
  Finding.State := DebugStateOf(Block^.State);
  Finding.Data := NativeUInt(DebugBlockData(Block));
  if Finding.State = dsFreed then
    Finding.FirstWord := Block^.FirstWord
  else if Block^.Size >= SizeOf(NativeUInt) then
    // With care: the pages of a guarded block may be out of reach.
    OsRead(Finding.Data, @Finding.FirstWord, SizeOf(Finding.FirstWord));
end;

// What should stand in a part; nothing where the notes of the block cannot be believed.
function ExpectedIn(const Place: TDebugPlace; Size: NativeUInt; State: TDebugState; Part: TPart):
  TSuppression;
begin
  Result.Data := Place.Data;
  Result.First := 0;
  Result.Limit := 0;
  Result.Value := GuardByte;
  Result.HasTraps := False;
  if (State = dsFreed) and Place.HasPages then
    Exit;
  if Part = paBefore then
    Result.First := -GuardSize
  else if Size <= Place.Capacity then
    if Part = paBehind then
    begin
      Result.First := Size;
      Result.Limit := Size + DebugGuardLength(Place, Size);
    end
    else if State = dsFreed then
    begin
      Result.Limit := Size;
      Result.Value := Debug.FreeFill;
      Result.HasTraps := True;
    end;
end;

function DebugPartCount: Cardinal;
begin
  Result := Ord(High(TPart)) + 1;
end;

function IsWhole(const Expected: TSuppression): Boolean;
begin
  Result := (Expected.First >= Expected.Limit)
    or (NextDamage(Expected, Expected.First) >= Expected.Limit);
end;

function GuardsAreWhole(const Place: TDebugPlace; Size: NativeUInt): Boolean; inline;
var
  Behind: NativeUInt;
begin
  Behind := DebugGuardLength(Place, Size);
  Result := (PatternLength(Place.Data - GuardSize, GuardSize, GuardByte) = GuardSize)
    and (PatternLength(Place.Data + Size, Behind, GuardByte) = Behind);
end;

function DebugBlockIsWhole(Block: PDebugBlock; const Place: TDebugPlace;
  State: TDebugState): Boolean;
var
  Size: NativeUInt;
begin
  Size := Block^.Size;
  if not DebugBlockIsSealed(Block) or (Size > Place.Capacity) then
    Exit(False);
  if State <> dsFreed then
    Exit(GuardsAreWhole(Place, Size));
  // The first word may be a trap.
  Result := Place.HasPages or GuardsAreWhole(Place, Size)
    and ((PatternLength(Place.Data, Size, Debug.FreeFill) = Size)
    or IsWhole(ExpectedIn(Place, Size, State, paContents)));
end;

procedure Note(Block: PDebugBlock; State: TDebugState; Part: TPart; out Finding: TFinding);
const
  Kinds: array[TPart] of TEventKind = (evBookkeeping, evWriteBefore, evWriteAfter,
    evWriteAfterFree);
  Messages: array[TPart] of TMessage = (msBookkeeping, msWriteBefore, msWriteAfter,
    msWriteAfterFree);
begin
  FindingFrom(Finding, Messages[Part], Block);
  Finding.Kind := Kinds[Part];
  Finding.State := State;
  Finding.Address := Finding.Data;
  if State = dsFreed then
    Finding.FirstWord := Block^.FirstWord;
end;

function DebugDamageFind(Block: PDebugBlock; State: TDebugState; Part: Cardinal;
  out Finding: TFinding): Boolean;
var
  Place: TDebugPlace;
  Expected: TSuppression;
begin
  DebugBlockPlace(Block, Place);
  if TPart(Part) = paNotes then
  begin
    Result := not DebugBlockIsSealed(Block) or (Block^.Size > Place.Capacity);
    if Result then
      Note(Block, State, paNotes, Finding);
    Exit;
  end;
  Expected := ExpectedIn(Place, Block^.Size, State, TPart(Part));
  Result := not IsWhole(Expected);
  if not Result then
    Exit;
  Note(Block, State, TPart(Part), Finding);
  FindRanges(Expected, Finding);
  KeepDump(Finding, Place, Finding.Ranges[0].Offset);
end;

// ---------------------------------------------------------------------------- scans

type
  TScan = record
    Call: TFindingCall;
    DamagedCount: NativeUInt;
    // Of the block that was looked at last.
    FindingCount: NativeInt;
    Findings: array[TPart] of TFinding;
  end;
  PScan = ^TScan;

// Finds all damage of a block that may change at any time, which is noted as told then. Under
// DebugLock the pages of a guarded block stay readable while it is in use.
function FindDamage(Block: PDebugBlock; var Scan: TScan): Boolean;
var
  Seen: TAtomicWord;
  State: TDebugState;
  Place: TDebugPlace;
  Part: Cardinal;
begin
  Scan.FindingCount := 0;
  // Acquire: the state before what the block holds. Pairs with DebugBlockSettle.
  Seen := LoadAcquire(Block^.State);
  if not (DebugStateOf(Seen) in [dsInUse, dsFreed]) or DebugIsReported(Seen) then
    Exit(False);
  DebugBlockPlace(Block, Place);
  State := DebugStateOf(Seen);
  // A guarded block whose state was written over may be closed.
  if not DebugPlaceIsOpen(Place) then
    State := dsFreed;
  if DebugBlockIsWhole(Block, Place, State) then
    Exit(False);
  for Part := 0 to DebugPartCount - 1 do
    if DebugDamageFind(Block, State, Part, Scan.Findings[TPart(Scan.FindingCount)]) then
      Inc(Scan.FindingCount);
  // Only if the state is the same. Pairs with DebugBlockChange.
  Result := (Scan.FindingCount > 0) and DebugBlockMarkReported(Block, Seen);
end;

// The first damage in the span from block Index on, which moves behind it. Under DebugLock no
// block of the span is taken, and the span is not given back.
function FindInSpan(Span: PSpan; var Index: Cardinal; var Scan: TScan): Boolean;
begin
  Result := False;
  LockEnterUnwatched(Debug.Lock);
  if Span^.Kind = skDebug then
    while not Result and (Index < DebugBlockCount(Span)) do
    begin
      Result := FindDamage(DebugBlockAt(Span, Index), Scan);
      Inc(Index);
    end;
  LockLeave(Debug.Lock);
end;

procedure ReportAll(var Scan: TScan);
var
  Index: NativeInt;
begin
  Inc(Scan.DamagedCount);
  for Index := 0 to Scan.FindingCount - 1 do
    Scan.Call(Scan.Findings[TPart(Index)]);
end;

function DebugCheckBlock(Block: PDebugBlock; Call: TFindingCall): NativeUInt;
var
  Scan: TScan;
  IsDamaged: Boolean;
begin
  Scan.Call := Call;
  Scan.DamagedCount := 0;
  LockEnterUnwatched(Debug.Lock);
  IsDamaged := FindDamage(Block, Scan);
  LockLeave(Debug.Lock);
  if IsDamaged then
    ReportAll(Scan);
  Result := Scan.DamagedCount;
end;

procedure ScanSpan(Span: PSpan; Context: Pointer);
var
  Index: Cardinal;
begin
  if Span^.Kind <> skDebug then
    Exit;
  Index := 0;
  while FindInSpan(Span, Index, PScan(Context)^) do
    ReportAll(PScan(Context)^);
end;

function DebugCheckAll(Call: TFindingCall): NativeUInt;
var
  Scan: TScan;
begin
  Scan.Call := Call;
  Scan.DamagedCount := 0;
  ArenaVisit(ScanSpan, @Scan);
  Result := Scan.DamagedCount;
end;

end.
