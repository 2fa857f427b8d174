/// The call stack of the running thread, without debug information and without the heap.
//
// Owns:       Stacks.CodeFirst, CodeLimit, ManagerCalls, StackSteps.
// Invariants: reads the stack of the calling thread between the stack pointer and the end of its
//             mapping, and code of this module; nothing else. A frame is taken only if a call
//             stands before the return address.
// x86_64:     the run-time library and optimised code have no frame pointers. The first
//             instructions of a routine say how far its return address lies from its stack
//             pointer; they are looked for backwards from the point of the call, where the
//             compiler aligns routines. A direct call must lead to that very routine. What was
//             found for a return address is kept, and tried first the next time.
// Others:     the chain of frame pointers.
// In C:       the library walks through all modules, see Stacks.TakeFrames.
// Callers:    UnwindStart: once, before any other thread runs. The rest: any thread.
unit LaneMM.Unwind;

{$I ../LaneMM.inc}

interface



const
  /// Most frames of a stack.
  MaxFrames = 16;

type
  /// A call of the memory manager by the program.
  TManagerCall = (mcUnknown, mcGetMem, mcFreeMem, mcFreeMemSize, mcAllocMem, mcReallocMem,
    mcMemSize);

  PBacktrace = ^TBacktrace;
  /// A call stack: return addresses, the innermost first.
  TBacktrace = record
    Call: TManagerCall;  //< what the program called; its frames are all that follows
    Count: Cardinal;     //< frames
    Frames: array[0..MaxFrames - 1] of NativeUInt; //< the return addresses
  end;

  /// Where the return address and the frame pointer of a routine's caller lie.
  TUnwindRule = record
    Start: NativeUInt;    //< where the routine begins; 0: not known
    Size: Cardinal;       //< bytes from its stack pointer up to the return address
    SavedFrame: Cardinal; //< bytes from the caller's frame pointer up to it; 0: not saved
    IsFramed: Boolean;    //< the return address lies above its frame pointer
  end;

  /// A thread on its way up its own stack.
  TUnwind = record
    Pc: NativeUInt;      //< in the routine that is left next
    Sp: NativeUInt;      //< its stack pointer when it made its call
    Frame: NativeUInt;   //< its frame pointer
    FrameAt: NativeUInt; //< where Frame was read; 0: it is the one of the routine left before
    Limit: NativeUInt;   //< end of the stack
  end;

/// Finds out where the code lies and how the run-time library calls its memory manager.
procedure UnwindStart;
/// Begins a walk at the caller of the routine with this frame pointer, which is set.
procedure UnwindFrom(Frame: NativeUInt; out Walk: TUnwind);
/// Goes on to the caller; False when there is none, or none is found. Rule says how it was done.
function UnwindStep(var Walk: TUnwind; out Rule: TUnwindRule): Boolean;
/// Does the same as the rule says; False when that does not fit what is on the stack. Return is a
/// return address for which it fitted, or 0, and becomes the one that was found.
function UnwindLeave(var Walk: TUnwind; const Rule: TUnwindRule; var Return: NativeUInt): Boolean;
/// Adds a frame. All frames so far were the manager's own if this one is the program's call of it.
procedure BacktraceAdd(var Stack: TBacktrace; Return: NativeUInt);
/// Takes the stack of the caller, without the manager's own frames where they can be told.
procedure BacktraceTake(out Stack: TBacktrace);
/// The end of the stack that Sp lies on; Sp itself when it is not known.
function StackEnd(Sp: NativeUInt): NativeUInt;
/// The same from a point where a thread was interrupted, with its registers there.
procedure BacktraceTakeAt(Pc, Sp, Frame: NativeUInt; out Stack: TBacktrace);
/// The offset in the table of methods that the call before Return has used; -1 when that call is
/// another one, or cannot be read.
function VirtualCallOffset(Return: NativeUInt): NativeInt;
/// A number that depends on Seed, the call and all frames.
function BacktraceHash(const Stack: TBacktrace; Seed: NativeUInt): NativeUInt;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.StacksState;

const
  // Routines begin at multiples of this many bytes and are searched this far back.
  RoutineAlignment = 16;
  SearchBytes = 32768;
  MostSteps = SearchBytes div RoutineAlignment;
  // Bits for the steps in a word of Stacks.KnownStarts, and the highest number.
  StepBits = 12;
  LastStep = 1 shl StepBits - 1;
  // Bytes that can be read before and after a return address.
  CodeMargin = 8;

type
  TCallKind = (ckNone, ckDirect, ckIndirect);

function WordAt(Address: NativeUInt): NativeUInt; inline;
begin
  Result := PNativeUInt(Address)^;
end;

function DistanceAt(Address: NativeUInt): NativeInt; inline;
begin
  Result := PLongInt(Address)^;
end;

// ---------------------------------------------------------------------------- x86_64 code

// Whether an indirect call stands before Return: FF /2 with one of its operand forms.
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

// The call before Return; Target is where a direct one leads.
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
    Target := Return + NativeUInt(DistanceAt(Return - SizeOf(LongInt)));
    if IsCode(Target) then
      Exit(ckDirect);
  end;
  if IsIndirectCall(Return) then
    Result := ckIndirect
  else
    Result := ckNone;
end;

// Follows push, mov rbp,rsp and the subtraction from rsp at the start of a routine.
procedure ReadPrologue(Code: PByte; out Rule: TUnwindRule);
const
  MovFrame = $E58948;        // mov rbp, rsp
  LeaShort = $24648D48;      // lea rsp, [rsp + byte]
  LeaLong = $24A48D48;       // lea rsp, [rsp + long]
  SubShort = $EC8348;        // sub rsp, byte
  SubLong = $EC8148;         // sub rsp, long
  ThreeBytes = $FFFFFF;
  PushFrame = $55;
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
    else if (Code^ = $41) and (Code[1] and $F8 = $50) then
    begin
      Inc(Rule.Size, SizeOf(Pointer));
      Inc(Code, 2);
    end
    else if (PCardinal(Code)^ and ThreeBytes = MovFrame) and (Rule.SavedFrame <> 0) then
    begin
      Rule.IsFramed := True;
      Exit;
    end
    else
      Break;
  until False;
  if PCardinal(Code)^ = LeaShort then
    Dec(Rule.Size, NativeInt(PShortInt(Code + 4)^))
  else if PCardinal(Code)^ = LeaLong then
    Dec(Rule.Size, DistanceAt(NativeUInt(Code + 4)))
  else if PCardinal(Code)^ and ThreeBytes = SubShort then
    Inc(Rule.Size, NativeInt(PShortInt(Code + 3)^))
  else if PCardinal(Code)^ and ThreeBytes = SubLong then
    Inc(Rule.Size, DistanceAt(NativeUInt(Code + 3)));
end;

// Whether a routine may begin here.
function MayStart(Code: PByte): Boolean; inline;
begin
  Result := (Code^ and $F8 = $50) or (Code^ in [$41, $48]);
end;

// ---------------------------------------------------------------------------- steps

function IsOnStack(const Walk: TUnwind; Address: NativeUInt): Boolean; inline;
begin
  Result := (Address >= Walk.Sp) and (Address < Walk.Limit)
    and (Address and (SizeOf(Pointer) - 1) = 0);
end;

// Leaves the routine whose return address lies at Slot.
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

// Whether the call before Return can have led to the routine.
function IsReturn(Return: NativeUInt; const Rule: TUnwindRule): Boolean;
var
  Target: NativeUInt;
begin
  if not IsX64 then
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
  Result := (Found = Return) and (Found <> 0) or IsReturn(Found, Rule);
  if not Result then
    Exit;
  Return := Found;
  Leave(Walk, Slot, Rule.SavedFrame);
end;

// Leaves the routine if it began Steps alignments before the one that Pc lies in.
function TryLeaveBack(var Walk: TUnwind; Steps: NativeUInt; out Rule: TUnwindRule): Boolean;
var
  Code: PByte;
  Return: NativeUInt;
begin
  Code := PByte(Walk.Pc and not (RoutineAlignment - 1) - Steps * RoutineAlignment);
  if not MayStart(Code) then
    Exit(False);
  ReadPrologue(Code, Rule);
  Return := 0;
  Result := (Rule.Size <> 0) and UnwindLeave(Walk, Rule, Return);
end;

// Leaves the routine; returns those steps, or more than MostSteps when no beginning was found.
function SearchBack(var Walk: TUnwind; out Rule: TUnwindRule): NativeUInt;
var
  Last, Steps: NativeUInt;
begin
  Last := (Walk.Pc - Stacks.CodeFirst) div RoutineAlignment;
  if Last > MostSteps then
    Last := MostSteps;
  for Steps := 0 to Last do
    if TryLeaveBack(Walk, Steps, Rule) then
      Exit(Steps);
  Result := MostSteps + 1;
end;

// A return address and its steps are one word of StackSteps, so threads need not agree. Where no
// beginning was found the steps count on, and at their end it is searched again: the stack may
// have been misread.
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
    if (Steps <= MostSteps) and TryLeaveBack(Walk, Steps, Rule) then
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
  Result := IsX64 and StepByCode(Walk, Rule) or StepByFrame(Walk, Rule);
end;

// ---------------------------------------------------------------------------- the stack

// Kept in the thread's heap, as finding it is slow.
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

// The manager's call that returns to Return, if it is one: call [rip + distance] with an operand
// in the run-time library's record of calls, or, in position-independent code, call [reg + offset].
function ManagerCallBefore(Return: NativeUInt): TManagerCall;
const
  CallRelative = $15FF;
  CallRelativeLength = 6;
  CallOffset = $50FF;
  CallOffsetLength = 3;
var
  Offset: NativeUInt;
begin
  Result := mcUnknown;
  Offset := 0;
  if not IsX64 or not IsCode(Return) then
    Exit;
  if (Stacks.ManagerCalls <> 0) and (PWord(Return - CallRelativeLength)^ = CallRelative) then
    Offset := Return + NativeUInt(DistanceAt(Return - SizeOf(LongInt))) - Stacks.ManagerCalls
  else if (Stacks.ManagerCalls = 0) and (PWord(Return - CallOffsetLength)^ and $F8FF = CallOffset)
    then
    Offset := PByte(Return)[-1];
  if (Offset mod SizeOf(Pointer) = 0) and (Offset <= Ord(mcMemSize) * SizeOf(Pointer)) then
    Result := TManagerCall(Offset div SizeOf(Pointer));
end;

procedure BacktraceAdd(var Stack: TBacktrace; Return: NativeUInt);
var
  Call: TManagerCall;
begin
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

procedure WalkOn(var Walk: TUnwind; out Stack: TBacktrace);
var
  Rule: TUnwindRule;
begin
  Stack.Call := mcUnknown;
  Stack.Count := 0;
  repeat
    BacktraceAdd(Stack, Walk.Pc);
  until (Stack.Count = MaxFrames) or not UnwindStep(Walk, Rule);
end;

procedure UnwindFrom(Frame: NativeUInt; out Walk: TUnwind);
begin
  Walk.Sp := Frame;
  Walk.Limit := StackEnd(Frame);
  Leave(Walk, Frame + SizeOf(Pointer), SizeOf(Pointer));
end;

procedure BacktraceTake(out Stack: TBacktrace);
var
  Walk: TUnwind;
begin
  if @Stacks.TakeFrames <> nil then
  begin
    Stack.Call := mcUnknown;
    Stack.Count := Stacks.TakeFrames(@Stack.Frames, MaxFrames);
    Exit;
  end;
  UnwindFrom(NativeUInt(get_frame), Walk);
  WalkOn(Walk, Stack);
end;

procedure BacktraceTakeAt(Pc, Sp, Frame: NativeUInt; out Stack: TBacktrace);
var
  Walk: TUnwind;
begin
  Walk.Pc := Pc + 1; // as if a call had led away from there
  Walk.Sp := Sp;
  Walk.Frame := Frame;
  Walk.FrameAt := 0;
  Walk.Limit := StackEnd(Sp);
  WalkOn(Walk, Stack);
end;

// FF /2 with a register and an offset of four bytes, one or none.
function VirtualCallOffset(Return: NativeUInt): NativeInt;
const
  CallOpcode = $FF;
  Extension = 2 shl 3;
  LongForm = $80 or Extension;
  ShortForm = $40 or Extension;
  FormMask = $F8;
var
  Code: PByte;
begin
  Result := -1;
  if not IsX64 or not IsCode(Return) then
    Exit;
  Code := PByte(Return);
  if (Code[-6] = CallOpcode) and (Code[-5] and FormMask = LongForm) then
    Result := DistanceAt(Return - SizeOf(LongInt))
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

// Stands in for GetMem once, to see how it is called.
function ProbeGetMem(Size: TSize): Pointer;
const
  CallRelative = $15FF;
  CallRelativeLength = 6;
var
  Return: NativeUInt;
begin
  Return := WordAt(NativeUInt(get_frame) + SizeOf(Pointer));
  if IsCode(Return) and (PWord(Return - CallRelativeLength)^ = CallRelative) then
    Stacks.ManagerCalls := Return + NativeUInt(DistanceAt(Return - SizeOf(LongInt)))
      - Ord(mcGetMem) * SizeOf(Pointer);
  Result := nil;
end;

procedure FindManagerCalls;
var
  Manager, Probe: TMemoryManager;
begin
  GetMemoryManager(Manager);
  Probe := Manager;
  Probe.GetMem := ProbeGetMem;
  SetMemoryManager(Probe);
  GetMem(1);
  SetMemoryManager(Manager);
end;

procedure UnwindStart;
var
  Mapping: TOsMapping;
begin
  if not OsFindMapping(NativeUInt(@UnwindStart), Mapping) then
    Exit;
  Stacks.CodeFirst := Mapping.First + CodeMargin;
  Stacks.CodeLimit := Mapping.Limit - CodeMargin;
  if IsX64 then
    FindManagerCalls;
end;

end.
