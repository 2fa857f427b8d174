/// Reports faults of the processor that reveal a use of invalid memory.
//
// Owns:       Hooks.Fault, which LaneMM.Os calls before the signal handler of the program, which
//             runs in any case.
// Invariants: reports a fault only if debug mode has a part in it: an access to a guard page, a use
//             of the class of a freed object, or a fill pattern of debug mode used as an address.
// Callers:    FaultsWatch: any thread, often: the run-time library takes the signals for itself
//             when SysUtils starts. Hooks.Fault: the thread that faulted, inside a signal handler.
unit LaneMM.Faults;

{$I ../LaneMM.inc}

interface

/// Installs the handler before the one of the program, unless it is there.
procedure FaultsWatch;

implementation

uses
  LaneMM.Hooks, LaneMM.Os, LaneMM.ReportState, LaneMM.Messages, LaneMM.Unwind, LaneMM.DebugState,
  LaneMM.DebugCheck, LaneMM.DebugRecords, LaneMM.DebugReport, LaneMM.DebugSpans,
  LaneMM.FreedObjects, LaneMM.GuardPages;

const
  // Words at the top of the stack that are searched for the address of a freed block.
  MostWords = 64;
  // Maximum offset, in bytes, between a fill pattern used as an address and the address accessed.
  MostOffset = 65536;

// Returns True if the word is within MostOffset bytes of a word of Fill bytes.
function IsNear(Word: NativeUInt; Fill: Byte): Boolean;
var
  Pattern: NativeUInt;
begin
  Pattern := Fill * (High(NativeUInt) div High(Byte));
  Result := (Fill <> 0) and (NativeUInt(Word - Pattern + MostOffset) < 2 * MostOffset);
end;

function HasNear(const Fault: TFault; Fill: Byte): Boolean;
var
  Index: Cardinal;
begin
  Result := False;
  for Index := 0 to High(Fault.Registers) do
    Result := Result or IsNear(Fault.Registers[Index], Fill);
end;

// Returns True if P lies in the block and the word there is still the pattern, or 0: the run-time
// library clears the reference to a string before it accesses the string.
function HoldsPattern(Block: PDebugBlock; P: Pointer; Fill: Byte): Boolean;
var
  Offset, Word: NativeUInt;
begin
  Offset := NativeUInt(P) - NativeUInt(DebugBlockData(Block));
  Word := 0;
  Result := (Offset < Block^.Size) and (NativeUInt(P) mod SizeOf(Pointer) = 0)
    and OsRead(NativeUInt(P), @Word, SizeOf(Word)) and ((Word = 0) or IsNear(Word, Fill));
end;

// Returns the freed block that P points into; nil for none.
function FreedBlock(P: NativeUInt): PDebugBlock;
begin
  Result := DebugBlockOf(Pointer(P));
  if (Result <> nil) and ((DebugStateOf(Result^.State) <> dsFreed)
    or (NativeUInt(P - NativeUInt(DebugBlockData(Result))) >= Result^.Size)) then
    Result := nil;
end;

// Returns a freed block that a register points into, or at which a word at the top of the stack
// points; nil for none.
function FindFreedBlock(const Fault: TFault): PDebugBlock;
var
  Index: NativeInt;
  Word, Limit: NativeUInt;
begin
  for Index := 0 to High(Fault.Registers) do
  begin
    Result := FreedBlock(Fault.Registers[Index]);
    if Result <> nil then
      Exit;
  end;
  Limit := StackEnd(Fault.Sp);
  for Index := 0 to MostWords - 1 do
  begin
    if NativeUInt(Limit - Fault.Sp) < NativeUInt(Index + 1) * SizeOf(Word) then
      Break;
    Word := PNativeUInt(Fault.Sp)[Index];
    Result := FreedBlock(Word);
    if (Result <> nil) and (NativeUInt(DebugBlockData(Result)) = Word) then
      Exit;
  end;
  Result := nil;
end;

// Returns a block in this state where a register points to a word of the pattern; nil for none.
function FindBlock(const Fault: TFault; State: TDebugState; Fill: Byte): PDebugBlock;
var
  Index: Cardinal;
begin
  for Index := 0 to High(Fault.Registers) do
  begin
    Result := DebugBlockOf(Pointer(Fault.Registers[Index]));
    if (Result <> nil) and (DebugStateOf(Result^.State) = State)
      and HoldsPattern(Result, Pointer(Fault.Registers[Index]), Fill) then
      Exit;
  end;
  Result := nil;
  if State = dsFreed then
    Result := FindFreedBlock(Fault);
end;

procedure Tell(const Fault: TFault; Kind: TEventKind; Message: TMessage; Block: PDebugBlock);
var
  Finding: TFinding;
  Here: TBacktrace;
begin
  Finding := Default(TFinding);
  if Block <> nil then
    FindingFrom(Finding, Message, Block);
  Finding.Kind := Kind;
  Finding.Message := Message;
  Finding.Address := Fault.Address;
  Finding.Access := Fault.Access;
  BacktraceTakeAt(Fault.Pc, Fault.Sp, Fault.Frame, Here);
  FindingReportAt(Finding, Here);
end;

// Returns what the access to a guarded block was.
function GuardMessage(const Fault: TFault; Block: PDebugBlock): TMessage;
begin
  if DebugStateOf(Block^.State) <> dsInUse then
    Result := msGuardFreed
  else if Fault.Address >= NativeUInt(DebugBlockData(Block)) + Block^.Size then
    Result := msGuardAfter
  else
    Result := msGuardBefore;
end;

procedure Explain(const Fault: TFault);
var
  Place: TDebugPlace;
begin
  if DebugPlaceFind(Pointer(Fault.Address), Place) and (Place.Block <> nil)
    and (Place.HasPages or not DebugPlaceIsOpen(Place)) then
    Tell(Fault, evGuard, GuardMessage(Fault, Place.Block), Place.Block)
  else if FreedObjectExplain(Fault) then
    Exit
  else if HasNear(Fault, Debug.NewFill) then
    Tell(Fault, evUninitialised, msNewUsed, FindBlock(Fault, dsInUse, Debug.NewFill))
  else if HasNear(Fault, Debug.FreeFill) then
    Tell(Fault, evUninitialised, msFreedUsed, FindBlock(Fault, dsFreed, Debug.FreeFill));
end;

procedure FaultsWatch;
begin
  Hooks.Fault := Explain;
  OsFaultWatch;
end;

end.
