/// Detects mismatched frees: New or an object with FreeMem; in C++, families.
//
// Owns:       nothing.
// Invariants: the return address identifies the call: for New and Dispose the compiler calls
//             routines of their own; of a plain one the program's call must name the routine that
//             called the manager. Unless both calls of a block are identified, nothing is
//             reported. New with FreeMem is correct where Finalize came between: it is reported
//             only while a managed field still refers to a block, which then leaks. GetMem with
//             Dispose is correct where Initialize came between; where not, Dispose uses
//             uninitialized contents, which LaneMM.Faults reports.
// Callers:    MismatchCheck: the thread that frees the block.
// Source:     FPC 3.2.2, compiler/pinline.pas (New, Dispose), rtl/inc/heap.inc (FPC_GETMEM,
//             FPC_FREEMEM), rtl/inc/generic.inc (FPC_HELP_CONSTRUCTOR, FPC_HELP_DESTRUCTOR).
unit LaneMM.Mismatches;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.DebugState;

/// Reports Block if its backtraces show that the call that frees it does not match the call that
/// allocated it.
procedure MismatchCheck(Block: PDebugBlock);
/// Reports Block, in use, which a routine of Family is about to free. Its own family is another.
procedure MismatchReport(Block: PDebugBlock; Family: TFamily);

implementation

uses
  LaneMM.Rtl, LaneMM.ReportState, LaneMM.Messages, LaneMM.BacktraceTable, LaneMM.CallCode,
  LaneMM.Unwind, LaneMM.RtlRecords, LaneMM.Contents, LaneMM.DebugCheck, LaneMM.DebugReport,
  LaneMM.DebugSpans, LaneMM.TypedBlocks;

type
  // The calls that allocate or free a block: GetMem and FreeMem, or New and Dispose.
  TWay = (waUnknown, waPlain, waTyped);

const
  // Maximum size of the routines of New and Dispose, in bytes, and of the helpers for objects with
  // a constructor or destructor, which call the memory manager as the program's GetMem does.
  CallLength = 32;
  HelperLength = 256;

// Returns True if the call that returns to Return is part of the routine.
function IsIn(Return: NativeUInt; Routine: Pointer; Length: NativeUInt): Boolean;
begin
  Result := (Routine <> nil) and (NativeUInt(Return - NativeUInt(Routine)) < Length);
end;

// Returns True if the caller's frame is certain: the program has called the memory manager itself,
// inline, or the call that it returns from names the routine that did. Inline calls go through a
// word at a known address, those of the run-time library's own routines through a register. A frame
// that an unwind has misread mostly does not.
function IsCertain(const Stack: TBacktrace): Boolean;
var
  Target: NativeUInt;
begin
  Result := HasInlineCalls and CallNamesPointer(Stack.Frames[0])
    or (CallBefore(Stack.Frames[1], Target) = ckDirect)
      and IsIn(Stack.Frames[0], Pointer(Target), HelperLength);
end;

function WayOf(Number: Cardinal; Typed, Helper: Pointer): TWay;
var
  Stack: TBacktrace;
begin
  Result := waUnknown;
  if (Typed = nil) or not BacktraceRead(Number, Stack)
    or (Stack.Call = mcUnknown) or (Stack.Count < 2) then
    Exit;
  if IsIn(Stack.Frames[0], Typed, CallLength) then
    Result := waTyped
  else if not IsIn(Stack.Frames[0], Helper, HelperLength)
    and not IsIn(Stack.Frames[1], Helper, HelperLength) and IsCertain(Stack) then
    Result := waPlain;
end;

// Returns how the routine is part of the backtrace: the memory manager was called by it, waTyped,
// or by another one, waPlain.
function WayThrough(Number: Cardinal; Routine: NativeUInt): TWay;
var
  Stack: TBacktrace;
begin
  Result := waUnknown;
  if not BacktraceRead(Number, Stack) or (Stack.Call = mcUnknown) or (Stack.Count < 2) then
    Exit;
  if IsIn(Stack.Frames[0], Pointer(Routine), HelperLength)
    or IsIn(Stack.Frames[1], Pointer(Routine), HelperLength) then
    Result := waTyped
  else if IsCertain(Stack) then
    Result := waPlain;
end;

// Returns True if the block is an object that TObject.NewInstance allocated, and TObject's
// FreeInstance, which its class has, too, did not free.
function IsObjectFreedPlainly(Block: PDebugBlock): Boolean;
var
  Allocator, Deallocator: NativeUInt;
begin
  Result := ClassAllocators(Block^.FirstWord, Allocator, Deallocator)
    and (ClassSize(Block^.FirstWord) = Block^.Size)
    and (WayThrough(Block^.AllocStack, Allocator) = waTyped)
    and (WayThrough(Block^.FreeStack, Deallocator) = waPlain);
end;

// Returns True if New allocated the block, the program's FreeMem freed it, and a managed field of
// it still refers to a block: it was not finalized.
function IsNewFreedPlainly(Block: PDebugBlock): Boolean;
var
  Stack: TBacktrace;
begin
  Result := (WayOf(Block^.AllocStack, RtlCall(rcNew), RtlCall(rcConstructor)) = waTyped)
    and (WayOf(Block^.FreeStack, RtlCall(rcDispose), RtlCall(rcDestructor)) = waPlain)
    and BacktraceRead(Block^.AllocStack, Stack)
    and TypeHasReferences(TypeOfNew(Stack.Frames[1]), NativeUInt(DebugBlockData(Block)),
      Block^.Size);
end;

procedure Tell(Block: PDebugBlock; Message: TMessage);
var
  Finding: TFinding;
begin
  FindingFrom(Finding, evMismatch, Message, Block);
  Finding.State := dsFreed;
  Finding.FirstWord := Block^.FirstWord;
  FindingReport(Finding);
end;

procedure MismatchReport(Block: PDebugBlock; Family: TFamily);
var
  Finding: TFinding;
begin
  FindingFrom(Finding, evMismatch, msMismatchFamily, Block);
  Finding.Family := Family;
  FindingReport(Finding);
end;

procedure MismatchCheck(Block: PDebugBlock);
begin
  if IsNewFreedPlainly(Block) then
    Tell(Block, msMismatchFree)
  else if IsObjectFreedPlainly(Block) then
    Tell(Block, msMismatchObject);
end;

end.
