/// Unwinds the stack of the calling thread, without debug information and without the heap.
//
// Owns:       Stacks.Depth, CodeFirst, CodeLimit, ManagerCalls, KnownStarts.
// Invariants: reads the stack of the calling thread between the stack pointer and the end of its
//             mapping, and code of this module; nothing else.
// x86:        the run-time library and optimized code have no frame pointers. The prologue of a
//             routine gives the distance from its stack pointer to its return address; it is
//             searched for backwards from the call, at the alignment of routines. A call
//             instruction must precede the return address, and a direct call must lead to that
//             very routine. The start found for a return address is kept and tried first.
// Others:     the chain of frame pointers; a return address must lie in code of this module.
// In C:       the library unwinds through all modules, see Stacks.StepFrame.
// Callers:    UnwindStart: once, before any other thread runs. The rest: any thread.
unit LaneMM.Unwind;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.SettingsState, LaneMM.StacksState;

const
  /// Stands for the outer frames of a backtrace that has more than Stacks.Depth; the last frame.
  CutFrame = NativeUInt(1);

type
  /// A call of the memory manager by the program.
  TManagerCall = (mcUnknown, mcGetMem, mcFreeMem, mcFreeMemSize, mcAllocMem, mcReallocMem,
    mcMemSize);

  PBacktrace = ^TBacktrace;
  /// A backtrace: return addresses, the innermost first.
  TBacktrace = record
    Call: TManagerCall;  //< the manager call that Frames[0] returns from; mcUnknown: none known
    Count: Cardinal;     //< number of frames
    Frames: array[0..MaxFrames] of NativeUInt; //< the return addresses; CutFrame
  end;

/// Finds the code of this module, and how the run-time library calls its memory manager.
procedure UnwindStart;
/// Begins an unwind at the caller of the routine with this frame pointer; that routine has set it.
/// Limit is the end of the thread's stack.
procedure UnwindFrom(Frame, Limit: NativeUInt; out Walk: TUnwind); inline;
/// Unwinds one frame; returns False when no caller is found. Rule receives the rule that was used.
function UnwindStep(var Walk: TUnwind; out Rule: TUnwindRule): Boolean;
/// Begins an unwind where a signal interrupted the thread, with its registers.
procedure UnwindAt(Pc, Sp, Frame: NativeUInt; out Walk: TUnwind);
/// Unwinds the routine that a signal interrupted; otherwise as UnwindStep.
function UnwindInterrupted(var Walk: TUnwind; out Rule: TUnwindRule): Boolean;
/// Unwinds one frame by a known rule; returns False when the rule does not fit the stack. Return is
/// a return address that the rule fitted before, or 0; it receives the one that was found.
function UnwindLeave(var Walk: TUnwind; const Rule: TUnwindRule; var Return: NativeUInt): Boolean;
/// Adds a frame, but none of the C library's own. If Return follows a call of the memory manager,
/// drops the frames so far: they are the manager's own. Adds CutFrame instead where Stack has
/// Stacks.Depth frames; returns whether it has space for more.
function BacktraceAdd(var Stack: TBacktrace; Return: NativeUInt): Boolean;
/// Takes the backtrace of the caller, without the manager's own frames where they are recognized.
procedure BacktraceTake(out Stack: TBacktrace);
/// Returns the end of the calling thread's stack, which holds Sp; Sp itself when it is unknown.
function StackEnd(Sp: NativeUInt): NativeUInt;
/// Takes a backtrace from the point where a signal interrupted the thread, with its registers.
procedure BacktraceTakeAt(Pc, Sp, Frame: NativeUInt; out Stack: TBacktrace);
/// Returns the offset in bytes into the method table that the call before Return used; -1 when that
/// call is not an indirect one through a register, or cannot be read.
function VirtualCallOffset(Return: NativeUInt): NativeInt;
/// Returns a hash of Seed, the manager call and all frames.
function BacktraceHash(const Stack: TBacktrace; Seed: NativeUInt): NativeUInt;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.Rtl;

const
  // Routines begin at multiples of this many bytes; the search goes back this far.
  RoutineAlignment = 16;
  SearchBytes = 32768;
  MostSteps = SearchBytes div RoutineAlignment;
  // Bits of a word of Stacks.KnownStarts that count alignments back, and the highest count.
  StepBits = 12;
  LastStep = 1 shl StepBits - 1;
  // Bytes that can be read before and after any return address.
  CodeMargin = 16;

type
  TCallKind = (ckNone, ckDirect, ckIndirect);

function WordAt(Address: NativeUInt): NativeUInt; inline;
begin
  Result := PNativeUInt(Address)^;
end;

function DistanceAt(Address: NativeUInt): NativeInt; inline;
begin
  Result := PInteger(Address)^;
end;

// ---------------------------------------------------------------------------- x86 code

// Returns whether an indirect call precedes Return: FF /2 with one of its operand forms.
function IsIndirectCall(Return: NativeUInt): Boolean;
const
  CallOpcode = $FF;
  Extension = 2 shl 3;
var
  Code: PByte;
begin
  Code := PByte(Return);
  Result := (Code[-2] = CallOpcode) and (Code[-1] and $38 = Extension)
    or (Code[-3] = CallOpcode) and (Code[-2] and $F8 = $40 or Extension)
    or (Code[-3] = CallOpcode) and (Code[-2] = $04 or Extension)
    or (Code[-4] = CallOpcode) and (Code[-3] = $44 or Extension)
    or (Code[-6] = CallOpcode) and ((Code[-5] and $F8 = $80 or Extension)
      or (Code[-5] = $05 or Extension))
    or (Code[-7] = CallOpcode) and (Code[-6] in [$04 or Extension, $84 or Extension]);
end;

function IsCode(Address: NativeUInt): Boolean; inline;
begin
  Result := (Address >= Stacks.CodeFirst) and (Address < Stacks.CodeLimit);
end;

// Returns the kind of call before Return; Target receives the target of a direct one.
function CallBefore(Return: NativeUInt; out Target: NativeUInt): TCallKind;
const
  CallOpcode = $E8;
  CallLength = 5;
begin
  Target := 0;
  if not IsCode(Return) then
    Exit(ckNone);
  if PByte(Return - CallLength)^ = CallOpcode then
  begin
    Target := Return + NativeUInt(DistanceAt(Return - SizeOf(Integer)));
    if IsCode(Target) then
      Exit(ckDirect);
  end;
  if IsIndirectCall(Return) then
    Result := ckIndirect
  else
    Result := ckNone;
end;

// Decodes push, mov rbp,rsp and the subtraction from rsp at the start of a routine. Returns whether
// there is more than pushes, which are bytes that other instructions have too. The instructions of
// i386 are the same without the prefix of 64 bits.
function ReadPrologue(Code: PByte; out Rule: TUnwindRule): Boolean;
const
  Prefix = $48;
  PrefixLength = Ord(IsX64);
  MovFrame = $E589;          // mov rbp, rsp
  LeaShort = $24648D;        // lea rsp, [rsp + byte]
  LeaLong = $24A48D;         // lea rsp, [rsp + long]
  SubShort = $EC83;          // sub rsp, byte
  SubLong = $EC81;           // sub rsp, long
  TwoBytes = $FFFF;
  ThreeBytes = $FFFFFF;
  PushFrame = $55;
var
  Instruction: Cardinal;
begin
  Rule := Default(TUnwindRule);
  Rule.Start := NativeUInt(Code);
  repeat
    if Code^ and $F8 = $50 then
    begin
      Inc(Rule.Size, SizeOf(Pointer));
      if Code^ = PushFrame then
        Rule.SavedFrame := Rule.Size;
      Inc(Code);
    end
    else if IsX64 and (Code^ = $41) and (Code[1] and $F8 = $50) then
    begin
      Inc(Rule.Size, SizeOf(Pointer));
      Inc(Code, 2);
    end
    else
      Break;
  until False;
  Result := not IsX64 or (Code^ = Prefix);
  if not Result then
    Exit;
  Inc(Code, PrefixLength);
  Instruction := PCardinal(Code)^ and ThreeBytes;
  if (Instruction and TwoBytes = MovFrame) and (Rule.SavedFrame <> 0) then
    Rule.IsFramed := True
  else if Instruction = LeaShort then
    Dec(Rule.Size, NativeInt(PShortInt(Code + 3)^))
  else if Instruction = LeaLong then
    Dec(Rule.Size, DistanceAt(NativeUInt(Code + 3)))
  else if Instruction and TwoBytes = SubShort then
    Inc(Rule.Size, NativeInt(PShortInt(Code + 2)^))
  else if Instruction and TwoBytes = SubLong then
    Inc(Rule.Size, DistanceAt(NativeUInt(Code + 2)))
  else
    Result := False;
end;

// Returns whether a return stands before Code, with nothing but bytes of the assembler's fillers
// between.
function FollowsRoutine(Code: PByte): Boolean;
const
  ReturnOpcode = $C3;
  ReturnPopOpcode = $C2; // i386: with the bytes of arguments, less than 256
  Fillers = [$90, $66, $0F, $1F, $2E, $40, $44, $80, $84, $00, $8D, $B4, $B6, $BC, $26, $27, $76,
    $74];
var
  First: PByte;
begin
  First := Code - RoutineAlignment;
  repeat
    Dec(Code);
  until (Code = First) or not (Code^ in Fillers);
  Result := (Code^ = ReturnOpcode) or not IsX64 and (Code[-1] = ReturnPopOpcode);
end;

// Returns whether a routine may begin here: with a push, or an instruction with a REX prefix; on
// i386 with any instruction, since a routine may have no prologue.
function MayStart(Code: PByte): Boolean; inline;
begin
  Result := not IsX64 or (Code^ and $F8 = $50) or (Code^ in [$41, $48]);
end;

// ---------------------------------------------------------------------------- AArch64 code

type
  PInstruction = ^Cardinal;

// Returns whether the instruction is a call through a register.
function A64IsCall(Instruction: Cardinal; out Register: Cardinal): Boolean;
begin
  Result := Instruction and $FFFFFC1F = $D63F0000; // blr
  Register := Instruction shr 5 and 31;
end;

// Returns the offset that the instruction adds to a register to load this one; -1 if it is another
// instruction.
function A64LoadOffset(Instruction, Register: Cardinal): NativeInt;
begin
  Result := -1;
  if Instruction and $FFC0001F = $F9400000 or Register then // ldr
    Result := Instruction shr 10 and $FFF * SizeOf(Pointer)
  else if Instruction and $FFF00C1F = $F8400000 or Register then // ldur, offset not negative
    Result := Instruction shr 12 and $FF;
end;

// adrp base, page; add base, base, offset; ldr register, [base, offset]; blr register
function A64CallPointer(Return: PInstruction): NativeUInt;
var
  Register, Base: Cardinal;
  Offset, Pages: NativeInt;
begin
  Result := 0;
  if not A64IsCall(Return[-1], Register) then
    Exit;
  Offset := A64LoadOffset(Return[-2], Register);
  Base := Return[-2] shr 5 and 31;
  if (Offset < 0) or (Return[-3] and $FFC003FF <> $91000000 or Base shl 5 or Base)
    or (Return[-4] and $9F00001F <> $90000000 or Base) then
    Exit;
  // The number of pages is signed; its lowest two bits stand apart.
  Pages := Integer(Return[-4] shl 8 and not $1FFF) div $800 + Integer(Return[-4] shr 29 and 3);
  Result := NativeUInt(Return - 4) and not NativeUInt(4095)
    + NativeUInt(Pages * 4096 + NativeInt(Return[-3] shr 10 and $FFF) + Offset);
end;

// ---------------------------------------------------------------------------- steps

function IsOnStack(const Walk: TUnwind; Address: NativeUInt): Boolean; inline;
begin
  Result := (Address >= Walk.Sp) and (Address < Walk.Limit)
    and (Address and (SizeOf(Pointer) - 1) = 0);
end;

// Unwinds the routine whose return address lies at Slot.
procedure Leave(var Walk: TUnwind; Slot, SavedFrame: NativeUInt); inline;
begin
  Walk.Pc := WordAt(Slot);
  Walk.Sp := Slot + SizeOf(Pointer);
  Walk.FrameAt := 0;
  if SavedFrame <> 0 then
  begin
    Walk.FrameAt := Slot - SavedFrame;
    Walk.Frame := WordAt(Walk.FrameAt);
  end;
end;

// Returns whether the call before Return can have led to the routine.
function IsReturn(Return: NativeUInt; const Rule: TUnwindRule): Boolean;
var
  Target: NativeUInt;
begin
  if not IsX86 then
    Exit(IsCode(Return));
  case CallBefore(Return, Target) of
    ckDirect: Result := (Target = Rule.Start) or (Rule.Start = 0);
    ckIndirect: Result := True;
  else
    Result := False;
  end;
end;

function UnwindLeave(var Walk: TUnwind; const Rule: TUnwindRule; var Return: NativeUInt): Boolean;
var
  Slot, Found: NativeUInt;
begin
  if Rule.IsFramed then
    Slot := Walk.Frame + SizeOf(Pointer)
  else
    Slot := Walk.Sp + Rule.Size;
  if not IsOnStack(Walk, Slot) then
    Exit(False);
  Found := WordAt(Slot);
  Result := (Found <> 0) and ((Rule.Trust = rtExact) or (Found = Return))
    or IsReturn(Found, Rule);
  if not Result then
    Exit;
  Return := Found;
  Leave(Walk, Slot, Rule.SavedFrame);
end;

// Returns whether a direct call of the routine left the return address that its rule leads to.
function IsCalledDirectly(const Walk: TUnwind; const Rule: TUnwindRule): Boolean;
var
  Slot, Target: NativeUInt;
begin
  Slot := Walk.Sp + Rule.Size;
  Result := IsOnStack(Walk, Slot) and (CallBefore(WordAt(Slot), Target) = ckDirect)
    and (Target = Rule.Start);
end;

// i386: arguments that the routine has pushed for its call lie below what its prologue took. A
// direct call of the routine shows how many words they are.
procedure AddArguments(const Walk: TUnwind; var Rule: TUnwindRule);
const
  MostArguments = 8;
var
  Prologue: Cardinal;
begin
  Prologue := Rule.Size;
  while not IsCalledDirectly(Walk, Rule) do
  begin
    Inc(Rule.Size, SizeOf(Pointer));
    if Rule.IsFramed or (Rule.Size > Prologue + MostArguments * SizeOf(Pointer)) then
    begin
      Rule.Size := Prologue;
      Exit;
    end;
  end;
end;

// Unwinds the routine if it begins Steps alignments before the one that Pc lies in. With IsSure set
// there must be more than a push that a call through a register may have led to.
function TryLeaveBack(var Walk: TUnwind; Steps: NativeUInt; IsSure: Boolean; out Rule: TUnwindRule)
  : Boolean;
var
  Code: PByte;
  Return: NativeUInt;
  IsWhole: Boolean;
begin
  Code := PByte(Walk.Pc and not (RoutineAlignment - 1) - Steps * RoutineAlignment);
  if not MayStart(Code) then
    Exit(False);
  IsWhole := ReadPrologue(Code, Rule);
  Return := 0;
  if not IsX64 then
    AddArguments(Walk, Rule);
  Result := ((Rule.Size <> 0)
    and (not IsSure or IsWhole or FollowsRoutine(Code)) or IsCalledDirectly(Walk, Rule))
    and UnwindLeave(Walk, Rule, Return);
end;

// Unwinds the routine; returns those alignments, more than MostSteps when no start was found.
function SearchBack(var Walk: TUnwind; out Rule: TUnwindRule): NativeUInt;
var
  Last, Steps: NativeUInt;
  IsSure: Boolean;
begin
  Last := NativeUInt(Walk.Pc - Stacks.CodeFirst) div RoutineAlignment;
  if Last > MostSteps then
    Last := MostSteps;
  for IsSure := True downto False do
    for Steps := 0 to Last do
      if TryLeaveBack(Walk, Steps, IsSure, Rule) then
        Exit(Steps);
  Result := MostSteps + 1;
end;

// A return address and its count of alignments are one word of Stacks.KnownStarts, so threads need
// no agreement. Where no start was found, each unwind raises the count, and at its highest value
// the search is repeated: the stack may have been misread.
function StepByCode(var Walk: TUnwind; out Rule: TUnwindRule): Boolean;
var
  Pc, Kept, Steps: NativeUInt;
  Entry: PNativeUInt;
begin
  Pc := Walk.Pc;
  if not IsCode(Pc) then
    Exit(False);
  Entry := @Stacks.KnownStarts[(Pc xor Pc shr StepBits) mod KnownStartCount];
  Kept := LoadAcquire(Entry^);
  Steps := Kept and LastStep;
  if Kept shr StepBits = Pc then
  begin
    if (Steps <= MostSteps) and TryLeaveBack(Walk, Steps, False, Rule) then
      Exit(True);
    if (Steps > MostSteps) and (Steps < LastStep) then
    begin
      StoreRelease(Entry^, Kept + 1);
      Exit(False);
    end;
  end;
  Steps := SearchBack(Walk, Rule);
  StoreRelease(Entry^, Pc shl StepBits + Steps);
  Result := Steps <= MostSteps;
end;

function StepByFrame(var Walk: TUnwind; out Rule: TUnwindRule): Boolean;
var
  Return: NativeUInt;
begin
  Rule := Default(TUnwindRule);
  Rule.IsFramed := True;
  Rule.SavedFrame := SizeOf(Pointer);
  Return := 0;
  Result := UnwindLeave(Walk, Rule, Return);
end;

function UnwindStep(var Walk: TUnwind; out Rule: TUnwindRule): Boolean;
begin
  if @Stacks.StepFrame <> nil then
    Exit(Stacks.StepFrame(Walk, Rule));
  Result := IsX86 and StepByCode(Walk, Rule) or StepByFrame(Walk, Rule);
end;

// ---------------------------------------------------------------------------- the stack

// The bounds are kept in the thread heap: the mapping is slow to find.
function StackEnd(Sp: NativeUInt): NativeUInt;
var
  Heap: PHeap;
  Mapping: TOsMapping;
begin
  Heap := OsThreadHeap;
  if (Heap <> nil) and (Sp >= Heap^.Notes.StackFirst) and (Sp < Heap^.Notes.StackLimit) then
    Exit(Heap^.Notes.StackLimit);
  if not OsFindMapping(Sp, Mapping) then
    Exit(Sp);
  if Heap <> nil then
  begin
    Heap^.Notes.StackFirst := Mapping.First;
    Heap^.Notes.StackLimit := Mapping.Limit;
  end;
  Result := Mapping.Limit;
end;

// Returns the address of the pointer that the call before Return goes through, 0 for any other:
// call [rip + distance]; from Free Pascal 3.3 on, call [address], and in the run-time library
// lea rax, [rip + distance], call [rax + offset].
function X64CallPointer(Return: NativeUInt): NativeUInt;
const
  CallRelative = $15FF;
  CallRelativeLength = 6;
  CallAbsolute = $2514FF;
  CallAbsoluteLength = 7;
  CallOffset = $50FF;
  CallOffsetLength = 3;
  LeaRelative = $058D48;
  LeaRelativeLength = 7;
  ThreeBytes = $FFFFFF;
var
  Call: NativeUInt;
begin
  Result := 0;
  Call := Return - CallOffsetLength;
  if PWord(Return - CallRelativeLength)^ = CallRelative then
    Result := Return + NativeUInt(DistanceAt(Return - SizeOf(Integer)))
  else if PCardinal(Return - CallAbsoluteLength)^ and ThreeBytes = CallAbsolute then
    Result := PCardinal(Return - SizeOf(Cardinal))^
  else if (PWord(Call)^ = CallOffset)
    and (PCardinal(Call - LeaRelativeLength)^ and ThreeBytes = LeaRelative) then
    Result := Call + NativeUInt(DistanceAt(Call - SizeOf(Integer))) + PByte(Return)[-1];
end;

// Returns the address of the pointer that the call before Return goes through; 0 if it is not part
// of the instructions.
function CallPointer(Return: NativeUInt): NativeUInt;
const
  CallAbsolute = $15FF; // i386: call [address]
  CallAbsoluteLength = 6;
begin
  Result := 0;
  if not IsCode(Return) then
    Exit;
  if IsA64 then
    Result := A64CallPointer(PInstruction(Return))
  else if IsX64 then
    Result := X64CallPointer(Return)
  else if IsX86 and (PWord(Return - CallAbsoluteLength)^ = CallAbsolute) then
    Result := PNativeUInt(Return - SizeOf(Pointer))^;
end;

// Returns the manager call that returns to Return: one through a word of the run-time library's
// record, or, in position-independent code of x86_64, call [reg + offset].
function ManagerCallBefore(Return: NativeUInt): TManagerCall;
const
  CallOffset = $50FF;
  CallOffsetLength = 3;
var
  Offset: NativeUInt;
begin
  Result := mcUnknown;
  Offset := 0;
  if Stacks.ManagerCalls <> 0 then
    Offset := CallPointer(Return) - Stacks.ManagerCalls
  else if IsX86 and IsCode(Return) and (PWord(Return - CallOffsetLength)^ and $F8FF = CallOffset)
    then
    Offset := PByte(Return)[-1];
  if (Offset mod SizeOf(Pointer) = 0) and (Offset <= Ord(mcMemSize) * SizeOf(Pointer)) then
    Result := TManagerCall(Offset div SizeOf(Pointer));
end;

function BacktraceAdd(var Stack: TBacktrace; Return: NativeUInt): Boolean;
var
  Call: TManagerCall;
begin
  if (@Stacks.StepFrame <> nil) and IsCode(Return) then
    Exit(True);
  Result := Stack.Count < Stacks.Depth;
  if not Result then
    Return := CutFrame;
  if Stack.Call = mcUnknown then
  begin
    Call := ManagerCallBefore(Return);
    if Call <> mcUnknown then
    begin
      Stack.Call := Call;
      Stack.Count := 0;
    end;
  end;
  Stack.Frames[Stack.Count] := Return;
  Inc(Stack.Count);
end;

procedure Clear(out Stack: TBacktrace);
begin
  Stack.Call := mcUnknown;
  Stack.Count := 0;
end;

procedure WalkOn(var Walk: TUnwind; var Stack: TBacktrace);
var
  Rule: TUnwindRule;
begin
  while BacktraceAdd(Stack, Walk.Pc) and UnwindStep(Walk, Rule) do ;
end;

procedure UnwindFrom(Frame, Limit: NativeUInt; out Walk: TUnwind);
begin
  Walk.Limit := Limit;
  Leave(Walk, Frame + SizeOf(Pointer), SizeOf(Pointer));
end;

// Marks a backtrace of another routine that has too many frames, or none, as cut.
procedure MarkCut(var Stack: TBacktrace);
begin
  if (Stack.Count > 0) and (Stack.Count <= Stacks.Depth) then
    Exit;
  if Stack.Count > Stacks.Depth then
    Stack.Count := Stacks.Depth;
  Stack.Frames[Stack.Count] := CutFrame;
  Inc(Stack.Count);
end;

procedure BacktraceTake(out Stack: TBacktrace);
var
  Walk: TUnwind;
  TakeFrames: TFramesCall;
begin
  Clear(Stack);
  TakeFrames := Stacks.TakeFrames; // once: the program may reset it meanwhile
  if @TakeFrames <> nil then
  begin
    Stack.Count := TakeFrames(@Stack.Frames, Stacks.Depth + 1);
    MarkCut(Stack);
    Exit;
  end;
  UnwindFrom(NativeUInt(get_frame), StackEnd(NativeUInt(get_frame)), Walk);
  WalkOn(Walk, Stack);
  if Stack.Count = 0 then
    MarkCut(Stack);
end;

// Returns whether the routine that was interrupted has nothing on the stack but the return address
// of the direct call that led to it.
function IsLeaf(const Walk: TUnwind; out Rule: TUnwindRule): Boolean;
const
  MostBytes = 4096;
var
  Target: NativeUInt;
begin
  Result := IsX86 and (@Stacks.StepFrame = nil) and IsOnStack(Walk, Walk.Sp) and IsCode(Walk.Pc)
    and (CallBefore(WordAt(Walk.Sp), Target) = ckDirect)
    and (NativeUInt(Walk.Pc - Target) < MostBytes);
  if not Result then
    Exit;
  ReadPrologue(PByte(Target), Rule);
  Result := (Rule.Size = 0) and not Rule.IsFramed;
end;

procedure UnwindAt(Pc, Sp, Frame: NativeUInt; out Walk: TUnwind);
begin
  Walk.Pc := Pc + 1; // as if a call returned there: lookups use Pc - 1
  Walk.Sp := Sp;
  Walk.Frame := Frame;
  Walk.FrameAt := 0;
  Walk.Limit := StackEnd(Sp);
end;

function UnwindInterrupted(var Walk: TUnwind; out Rule: TUnwindRule): Boolean;
begin
  Result := IsLeaf(Walk, Rule);
  if Result then
    Leave(Walk, Walk.Sp, 0)
  else
    Result := UnwindStep(Walk, Rule);
end;

procedure BacktraceTakeAt(Pc, Sp, Frame: NativeUInt; out Stack: TBacktrace);
var
  Walk: TUnwind;
  Rule: TUnwindRule;
begin
  UnwindAt(Pc, Sp, Frame, Walk);
  Clear(Stack);
  if BacktraceAdd(Stack, Walk.Pc) and UnwindInterrupted(Walk, Rule) then
    WalkOn(Walk, Stack);
end;

// x86_64: FF /2 with a register and an offset of four bytes, one byte or none.
function VirtualCallOffset(Return: NativeUInt): NativeInt;
const
  CallOpcode = $FF;
  Extension = 2 shl 3;
  LongForm = $80 or Extension;
  ShortForm = $40 or Extension;
  FormMask = $F8;
var
  Code: PByte;
  Register: Cardinal;
begin
  Result := -1;
  if IsA64 and IsCode(Return) and A64IsCall(PInstruction(Return)[-1], Register) then
    Exit(A64LoadOffset(PInstruction(Return)[-2], Register));
  if not IsX86 or not IsCode(Return) then
    Exit;
  Code := PByte(Return);
  if (Code[-6] = CallOpcode) and (Code[-5] and FormMask = LongForm) then
    Result := DistanceAt(Return - SizeOf(Integer))
  else if (Code[-3] = CallOpcode) and (Code[-2] and FormMask = ShortForm) then
    Result := PShortInt(Code - 1)^
  else if (Code[-2] = CallOpcode) and (Code[-1] and FormMask = Extension) then
    Result := 0;
end;

function BacktraceHash(const Stack: TBacktrace; Seed: NativeUInt): NativeUInt;
var
  Index: NativeInt;
begin
  Result := Seed shl 8 + Ord(Stack.Call) + 1;
  for Index := 0 to NativeInt(Stack.Count) - 1 do
  begin
    Result := (Result xor Stack.Frames[Index]) * SpreadFactor;
    Result := Result xor (Result shr (SizeOf(Pointer) * 4));
  end;
end;

// ---------------------------------------------------------------------------- start

// Replaces GetMem for one call, to see how the run-time library calls it.
function ProbeGetMem(Size: TSize): Pointer;
var
  Field: NativeUInt;
begin
  Field := CallPointer(WordAt(NativeUInt(get_frame) + SizeOf(Pointer)));
  if Field <> 0 then
    Stacks.ManagerCalls := Field - Ord(mcGetMem) * SizeOf(Pointer);
  Result := nil;
end;

procedure FindManagerCalls;
var
  Manager, Probe: TMemoryManager;
  Ignored: Pointer;
begin
  GetMemoryManager(Manager);
  Probe := Manager;
  Probe.GetMem := ProbeGetMem;
  SetMemoryManager(Probe);
  GetMem(Ignored, 1);
  SetMemoryManager(Manager);
end;

procedure UnwindStart;
var
  Mapping: TOsMapping;
begin
  Stacks.Depth := DefaultFrames;
  if not OsFindMapping(NativeUInt(@UnwindStart), Mapping) then
    Exit;
  Stacks.CodeFirst := Mapping.First + CodeMargin;
  Stacks.CodeLimit := Mapping.Limit - CodeMargin;
  FindManagerCalls;
end;

end.
