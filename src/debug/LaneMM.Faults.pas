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
  LaneMM.FreedObjects;

const
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
  Block: PDebugBlock;
begin
  Block := DebugBlockOf(Pointer(Fault.Address));
  if (Block <> nil) and DebugBlockIsGuarded(Block) then
    Tell(Fault, evGuard, GuardMessage(Fault, Block), Block)
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
