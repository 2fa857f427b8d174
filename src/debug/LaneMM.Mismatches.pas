/// Blocks got by New and freed by FreeMem, or got by GetMem and freed by Dispose.
//
// Owns:       nothing.
// Invariants: who called the manager is told by its return address: the compiler calls routines of
//             its own for New and Dispose. What is not seen on both sides is not told.
// Callers:    MismatchCheck: the thread that frees the block.
// Source:     FPC 3.2.2, compiler/pinline.pas (New, Dispose), rtl/inc/heap.inc (FPC_GETMEM,
//             FPC_FREEMEM), rtl/inc/generic.inc (FPC_HELP_CONSTRUCTOR, FPC_HELP_DESTRUCTOR).
unit LaneMM.Mismatches;

{$I ../LaneMM.inc}

interface



uses
  LaneMM.DebugState;



/// A block is about to be freed; what is to be noted of that is. Reports it if it is freed by a
/// call that does not go with the one that got it.
procedure MismatchCheck(Block: PDebugBlock);

implementation

uses
  LaneMM.ReportState, LaneMM.Messages, LaneMM.BacktraceTable, LaneMM.Unwind, LaneMM.DebugCheck,
  LaneMM.DebugReport, LaneMM.DebugSpans;

type
  // How a block is got or freed.
  TWay = (waUnknown, waPlain, waTyped);

// What New and Dispose call, and the same for objects with a constructor, which get and free their
// memory as the program's GetMem does. Nil where there is no run-time library.
procedure NewCall; weakexternal name 'FPC_GETMEM';
procedure DisposeCall; weakexternal name 'FPC_FREEMEM';
procedure ConstructorCall; weakexternal name 'FPC_HELP_CONSTRUCTOR';
procedure DestructorCall; weakexternal name 'FPC_HELP_DESTRUCTOR';

const
  // Bytes of these routines, at most.
  CallLength = 32;
  HelperLength = 256;

// Whether the call that returns to Return stands in the routine.
function IsIn(Return: NativeUInt; Routine: Pointer; Length: NativeUInt): Boolean;
begin
  Result := (Routine <> nil) and (Return - NativeUInt(Routine) < Length);
end;

function WayOf(Number: Cardinal; Typed, Helper: Pointer): TWay;
var
  Stack: TBacktrace;
begin
  Result := waUnknown;
  if (Typed = nil) or not BacktraceRead(Number, Stack) or (Stack.Call = mcUnknown)
    or (Stack.Count < 2) then
    Exit;
  if IsIn(Stack.Frames[0], Typed, CallLength) then
    Result := waTyped
  else if not IsIn(Stack.Frames[1], Helper, HelperLength) then
    Result := waPlain;
end;

procedure Tell(Block: PDebugBlock; Message: TMessage);
var
  Finding: TFinding;
begin
  Finding := Default(TFinding);
  Finding.Kind := evMismatch;
  Finding.Message := Message;
  Finding.Block := Block^;
  Finding.Data := NativeUInt(DebugBlockData(Block));
  Finding.State := dsFreed;
  FindingReport(Finding);
end;

procedure MismatchCheck(Block: PDebugBlock);
var
  Got, Freed: TWay;
begin
  Got := WayOf(Block^.AllocStack, @NewCall, @ConstructorCall);
  Freed := WayOf(Block^.FreeStack, @DisposeCall, @DestructorCall);
  if (Got = waTyped) and (Freed = waPlain) then
    Tell(Block, msMismatchFree)
  else if (Got = waPlain) and (Freed = waTyped) then
    Tell(Block, msMismatchDispose);
end;

end.
