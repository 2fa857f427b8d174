/// Faults of the processor that show a use of memory that the program does not have.
//
// Owns:       Hooks.Fault and the handler of two signals, in front of the one before, which
//             is called in any case.
// Invariants: says something only where debug mode has a part in the fault: a guard page was
//             touched, or a word that debug mode filled a block with was used as an address.
// Callers:    FaultsWatch: any thread, often: the run-time library takes the signals for itself
//             when SysUtils starts.
unit LaneMM.Faults;

{$I ../LaneMM.inc}

interface

/// Puts the handler in front, if it is not.
procedure FaultsWatch;

implementation

uses
  LaneMM.Hooks, LaneMM.Os, LaneMM.ReportState, LaneMM.Messages, LaneMM.Unwind, LaneMM.DebugState,
  LaneMM.DebugCheck, LaneMM.DebugRecords, LaneMM.DebugReport, LaneMM.DebugSpans;

const
  // A word of a pattern that is used as an address has an offset added of at most so many bytes.
  MostOffset = 65536;

// Whether the word is, nearly, what a block was filled with.
function IsNear(Word: NativeUInt; Fill: Byte): Boolean;
var
  Pattern: NativeUInt;
begin
  Pattern := Fill * (High(NativeUInt) div High(Byte));
  Result := (Fill <> 0) and (Word - Pattern + MostOffset < 2 * MostOffset);
end;

function HasNear(const Fault: TFault; Fill: Byte): Boolean;
var
  Index: Cardinal;
begin
  Result := False;
  for Index := 0 to High(Fault.Registers) do
    Result := Result or IsNear(Fault.Registers[Index], Fill);
end;

// Whether the word at P is what the block was filled with, or 0, which the run-time library writes
// over the reference to a string before it looks there.
function HoldsPattern(Block: PDebugBlock; P: Pointer; Fill: Byte): Boolean;
var
  Offset, Word: NativeUInt;
begin
  Offset := NativeUInt(P) - NativeUInt(DebugBlockData(Block));
  Word := 0;
  Result := (Offset < Block^.Size) and (NativeUInt(P) mod SizeOf(Pointer) = 0)
    and OsRead(NativeUInt(P), @Word, SizeOf(Word)) and ((Word = 0) or IsNear(Word, Fill));
end;

// The block with this state where a register leads to a word of the pattern; nil if there is none.
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
  if Kind = evGuard then
    Finding.Note := noInner;
  BacktraceTakeAt(Fault.Pc, Fault.Sp, Fault.Frame, Here);
  FindingReportAt(Finding, Here);
end;

procedure Explain(const Fault: TFault);
var
  Block: PDebugBlock;
begin
  Block := DebugBlockOf(Pointer(Fault.Address));
  if (Block <> nil) and DebugBlockIsGuarded(Block) then
    Tell(Fault, evGuard, msGuard, Block)
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
