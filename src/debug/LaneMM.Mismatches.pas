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
// Types:      after the call of New the compiler passes the block and its type information to the
//             run-time library, which clears the managed fields: the instructions up to that call
//             have the type. Finalize and Dispose clear these fields again. What is not certain has
//             no type, and no reference: another instruction, management operators, variants,
//             arrays. Type information is read through LaneMM.Modules.
// Callers:    MismatchCheck: the thread that frees the block.
// Source:     FPC 3.2.2, compiler/pinline.pas (New, Dispose), ngenutil.pas, rtl/inc/heap.inc
//             (FPC_GETMEM, FPC_FREEMEM), rtl/inc/generic.inc (FPC_HELP_CONSTRUCTOR,
//             FPC_HELP_DESTRUCTOR); see LaneMM.RtlRecords.
unit LaneMM.Mismatches;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.DebugState;

/// Reports Block if its backtraces show that the call that frees it does not match the call that
/// allocated it.
procedure MismatchCheck(Block: PDebugBlock);

implementation

uses
  LaneMM.Hooks, LaneMM.Rtl, LaneMM.Walk, LaneMM.ReportState, LaneMM.Messages, LaneMM.CodeRanges,
  LaneMM.BacktraceTable, LaneMM.CallCode, LaneMM.Instructions, LaneMM.Modules, LaneMM.Unwind,
  LaneMM.RtlRecords, LaneMM.Contents, LaneMM.DebugReport, LaneMM.DebugSpans;

type
  // The calls that allocate or free a block: GetMem and FreeMem, or New and Dispose.
  TWay = (waUnknown, waPlain, waTyped);

const
  // Maximum size of the routines of New and Dispose, in bytes, and of the helpers for objects with
  // a constructor or destructor, which call the memory manager as the program's GetMem does.
  CallLength = 32;
  HelperLength = 256;
  // Instructions from the return of New to the call that initializes the block.
  MostInstructions = 16;
  // More fields, and deeper records, are not read.
  MostFields = 256;
  MostDepth = 4;
  // Type numbers of strings, interfaces, dynamic arrays: one pointer, nil when empty.
  References: set of Byte = [9, 10, 14, 21, 24];
  // Of records, objects.
  Records: set of Byte = [13, 16];

// ---------------------------------------------------------------------------- types of New

// Returns the value that an instruction gives to the parameter, which had Value before; 0 where it
// is unknown.
function ValueAfter(const Item: TInstruction; Value: NativeUInt): NativeUInt;
begin
  Result := NativeUInt(Item.Operand.Offset);
  if (Item.Target <> SecondParameter) or (Item.Operand.Index <> NoRegister)
    or not (Item.Kind in [ikLoad, ikAddress]) then
    Exit(0);
  // AArch64: an address is made of a page and an offset.
  if (Item.Operand.Base = SecondParameter) and (Value <> 0) then
    Inc(Result, Value)
  else if Item.Operand.Base <> NoRegister then
    Exit(0);
  if (Item.Kind = ikLoad) and not ModulesRead(Result, @Result, SizeOf(Result)) then
    Result := 0;
end;

function TypeOfNew(Return: NativeUInt): NativeUInt;
var
  Item: TInstruction;
  Target: NativeUInt;
  Index: Cardinal;
begin
  Result := 0;
  for Index := 1 to MostInstructions do
  begin
    if not CodeIsOwn(Return) or not InstructionAt(Return, Item)
      or (Item.Kind in [ikJump, ikLeave]) then
      Exit(0);
    Inc(Return, Item.Length);
    if Item.Kind = ikCall then
    begin
      if (CallBefore(Return, Target) <> ckDirect) or (Target <> NativeUInt(RecordInitializer)) then
        Result := 0;
      Exit;
    end;
    if Item.Writes and RegisterBit(SecondParameter) <> 0 then
      Result := ValueAfter(Item, Result);
  end;
  Result := 0;
end;

// ---------------------------------------------------------------------------- types

// Reads the kind of a type, and of a record its head; Fields receives the address of its fields.
// Returns False where that is not certain, as for type information 0.
function ReadType(TypeInfo: NativeUInt; out Kind: Byte; out Head: TRecordTypeHead;
  out Fields: NativeUInt): Boolean;
begin
  Head := Default(TRecordTypeHead);
  Fields := TypeData(TypeInfo, Kind);
  Result := Fields <> 0;
  if not Result or not (Kind in Records) then
    Exit;
  Inc(Fields, RecordTypeFirst);
  Result := ModulesRead(Fields, @Head, SizeOf(Head)) and (Head.Terminator = nil)
    and (Head.Operators = nil) and (Head.Count <= MostFields);
  Inc(Fields, SizeOf(Head));
end;

function RecordHasReferences(TypeInfo, Data, Size: NativeUInt; Depth: Cardinal): Boolean; forward;

// Returns whether the field of the record at Data, Size bytes, refers to a block.
function FieldRefers(const Field: TRecordTypeField; Data, Size: NativeUInt; Depth: Cardinal)
  : Boolean;
var
  TypeInfo: NativeUInt;
  Head: TRecordTypeHead;
  Fields, Value: NativeUInt;
  Kind: Byte;
  Block: TBlockInfo;
begin
  Result := False;
  TypeInfo := 0;
  if (Size < SizeOf(Pointer)) or (NativeUInt(Field.Offset) > NativeUInt(Size - SizeOf(Pointer)))
    or not ModulesRead(Field.TypeInfo, @TypeInfo, SizeOf(TypeInfo))
    or not ReadType(TypeInfo, Kind, Head, Fields) then
    Exit;
  Value := PNativeUInt(Data + NativeUInt(Field.Offset))^;
  if Kind in References then
    Result := (Value <> 0) and WalkFind(Pointer(Value), Block)
  else if (Kind in Records) and (Depth < MostDepth) then
    Result := RecordHasReferences(TypeInfo, Data + NativeUInt(Field.Offset),
      Size - NativeUInt(Field.Offset), Depth + 1);
end;

function RecordHasReferences(TypeInfo, Data, Size: NativeUInt; Depth: Cardinal): Boolean;
var
  Head: TRecordTypeHead;
  Field: TRecordTypeField;
  Fields: NativeUInt;
  Index: NativeInt;
  Kind: Byte;
begin
  Result := False;
  if not ReadType(TypeInfo, Kind, Head, Fields) or not (Kind in Records)
    or (Head.Size < 0) or (NativeUInt(Head.Size) > Size) then
    Exit;
  for Index := 1 to Head.Count do
  begin
    if not ModulesRead(Fields, @Field, SizeOf(Field)) then
      Exit;
    Inc(Fields, SizeOf(Field));
    if FieldRefers(Field, Data, Head.Size, Depth) then
      Exit(True);
  end;
end;

// ---------------------------------------------------------------------------- calls

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
    and RecordHasReferences(TypeOfNew(Stack.Frames[1]), NativeUInt(DebugBlockData(Block)),
      Block^.Size, 0);
end;

procedure MismatchCheck(Block: PDebugBlock);
begin
  if IsNewFreedPlainly(Block) then
    FindingReportChange(Block, evMismatch, msMismatchFree, dsFreed)
  else if IsObjectFreedPlainly(Block) then
    FindingReportChange(Block, evMismatch, msMismatchObject, dsFreed);
end;

end.
