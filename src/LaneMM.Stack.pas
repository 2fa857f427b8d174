/// The call stack of the running thread, without debug information and without the heap.
//
// Owns:       Process.CodeFirst, CodeLimit, ManagerCalls, StackSteps.
// Invariants: reads the stack of the calling thread between the stack pointer and the end of its
//             mapping, and code of this module; nothing else. A frame is taken only if a call
//             stands before the return address.
// x86_64:     the run-time library and optimised code have no frame pointers. The first
//             instructions of a routine say how far its return address lies from its stack
//             pointer; they are looked for backwards from the point of the call, where the
//             compiler aligns routines. A direct call must lead to that very routine. What was
//             found for a return address is kept, and tried first the next time.
// Others:     the chain of frame pointers.
// In C:       the library walks through all modules, see Process.FramesTake.
// Callers:    StackStart: once, before any other thread runs. The rest: any thread.
unit LaneMM.Stack;

{$I LaneMM.inc}

interface

uses
  LaneMM.Types;

const
  /// Most frames of a stack.
  MaxFrames = 16;

type
  /// A call of the memory manager by the program.
  TManagerCall = (mcUnknown, mcGetMem, mcFreeMem, mcFreeMemSize, mcAllocMem, mcReallocMem,
    mcMemSize);

  PStack = ^TStack;
  /// A call stack: return addresses, the innermost first.
  TStack = record
    Call: TManagerCall;  //< what the program called; its frames are all that follows
    Count: Cardinal;     //< frames
    Frames: array[0..MaxFrames - 1] of NativeUInt; //< the return addresses
  end;

/// Finds out where the code lies and how the run-time library calls its memory manager.
procedure StackStart;
/// Takes the stack of the caller, without the manager's own frames where they can be told.
procedure StackTake(out Stack: TStack);
/// The end of the stack that Sp lies on; Sp itself when it is not known.
function StackEnd(Sp: NativeUInt): NativeUInt;
/// The same from a point where a thread was interrupted, with its registers there.
procedure StackTakeAt(Pc, Sp, Frame: NativeUInt; out Stack: TStack);
/// The offset in the table of methods that the call before Return has used; -1 when that call is
/// another one, or cannot be read.
function StackCallOffset(Return: NativeUInt): NativeInt;
/// A number that depends on Seed, the call and all frames.
function StackHash(const Stack: TStack; Seed: NativeUInt): NativeUInt;

implementation

uses
  LaneMM.Atomic, LaneMM.Bits, LaneMM.Os;

const
  // Routines begin at multiples of this many bytes and are searched this far back.
  RoutineAlignment = 16;
  SearchBytes = 32768;
  MostSteps = SearchBytes div RoutineAlignment;
  // Bits for the steps in a word of Process.StackSteps, and the highest number.
  StepBits = 12;
  LastStep = 1 shl StepBits - 1;
  // Bytes that can be read before and after a return address.
  CodeMargin = 8;

type
  // A thread on its way up its own stack.
  TWalk = record
    Pc: NativeUInt;      // in the routine that is left next
    Sp: NativeUInt;      // its stack pointer when it made its call
    Frame: NativeUInt;   // its frame pointer
    Limit: NativeUInt;   // end of the stack
  end;

  // What the first instructions of a routine do to the stack.
  TPrologue = record
    Size: NativeUInt;       // bytes from the stack pointer up to the return address
    SavedFrame: NativeUInt; // bytes from the caller's frame pointer up to it; 0: not saved
    IsFramed: Boolean;      // the frame pointer is set
  end;

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
  Result := (Address >= Process.CodeFirst) and (Address < Process.CodeLimit);
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
procedure ReadPrologue(Code: PByte; out Prologue: TPrologue);
const
  MovFrame = $E58948;        // mov rbp, rsp
  LeaShort = $24648D48;      // lea rsp, [rsp + byte]
  LeaLong = $24A48D48;       // lea rsp, [rsp + long]
  SubShort = $EC8348;        // sub rsp, byte
  SubLong = $EC8148;         // sub rsp, long
  ThreeBytes = $FFFFFF;
  PushFrame = $55;
begin
  Prologue := Default(TPrologue);
  repeat
    if Code^ and $F8 = $50 then
    begin
      Inc(Prologue.Size, SizeOf(Pointer));
      if Code^ = PushFrame then
        Prologue.SavedFrame := Prologue.Size;
      Inc(Code);
    end
    else if (Code^ = $41) and (Code[1] and $F8 = $50) then
    begin
      Inc(Prologue.Size, SizeOf(Pointer));
      Inc(Code, 2);
    end
    else if (PCardinal(Code)^ and ThreeBytes = MovFrame) and (Prologue.SavedFrame <> 0) then
    begin
      Prologue.IsFramed := True;
      Exit;
    end
    else
      Break;
  until False;
  if PCardinal(Code)^ = LeaShort then
    Dec(Prologue.Size, NativeInt(PShortInt(Code + 4)^))
  else if PCardinal(Code)^ = LeaLong then
    Dec(Prologue.Size, DistanceAt(NativeUInt(Code + 4)))
  else if PCardinal(Code)^ and ThreeBytes = SubShort then
    Inc(Prologue.Size, NativeInt(PShortInt(Code + 3)^))
  else if PCardinal(Code)^ and ThreeBytes = SubLong then
    Inc(Prologue.Size, DistanceAt(NativeUInt(Code + 3)));
end;

// Whether a routine may begin here.
function MayStart(Code: PByte): Boolean; inline;
begin
  Result := (Code^ and $F8 = $50) or (Code^ in [$41, $48]);
end;

// ---------------------------------------------------------------------------- steps

function IsOnStack(const Walk: TWalk; Address: NativeUInt): Boolean; inline;
begin
  Result := (Address >= Walk.Sp) and (Address < Walk.Limit)
    and (Address and (SizeOf(Pointer) - 1) = 0);
end;

// Leaves the routine whose return address lies at Slot.
procedure Leave(var Walk: TWalk; Slot, SavedFrame: NativeUInt);
begin
  Walk.Pc := WordAt(Slot);
  Walk.Sp := Slot + SizeOf(Pointer);
  if SavedFrame <> 0 then
    Walk.Frame := WordAt(Slot - SavedFrame);
end;

// Leaves the routine if it began at Start; tells whether that fits what is on the stack.
function TryLeave(var Walk: TWalk; Start: NativeUInt): Boolean;
var
  Prologue: TPrologue;
  Slot, Target: NativeUInt;
begin
  ReadPrologue(PByte(Start), Prologue);
  if Prologue.IsFramed then
    Slot := Walk.Frame + SizeOf(Pointer)
  else
    Slot := Walk.Sp + Prologue.Size;
  Result := False;
  if (Prologue.Size = 0) or not IsOnStack(Walk, Slot) then
    Exit;
  case CallBefore(WordAt(Slot), Target) of
    ckDirect: Result := Target = Start;
    ckIndirect: Result := True;
  end;
  if Result then
    Leave(Walk, Slot, Prologue.SavedFrame);
end;

// Leaves the routine if it began Steps alignments before the one that Pc lies in.
function TryLeaveBack(var Walk: TWalk; Steps: NativeUInt): Boolean; inline;
var
  Start: NativeUInt;
begin
  Start := Walk.Pc and not (RoutineAlignment - 1) - Steps * RoutineAlignment;
  Result := MayStart(PByte(Start)) and TryLeave(Walk, Start);
end;

// Leaves the routine; returns those steps, or more than MostSteps when no beginning was found.
function SearchBack(var Walk: TWalk): NativeUInt;
var
  Last, Steps: NativeUInt;
begin
  Last := (Walk.Pc - Process.CodeFirst) div RoutineAlignment;
  if Last > MostSteps then
    Last := MostSteps;
  for Steps := 0 to Last do
    if TryLeaveBack(Walk, Steps) then
      Exit(Steps);
  Result := MostSteps + 1;
end;

// A return address and its steps are one word of StackSteps, so threads need not agree. Where no
// beginning was found the steps count on, and at their end it is searched again: the stack may
// have been misread.
function StepByCode(var Walk: TWalk): Boolean;
var
  Pc, Kept, Steps: NativeUInt;
  Entry: PNativeUInt;
begin
  Pc := Walk.Pc;
  if not IsCode(Pc) then
    Exit(False);
  Entry := @Process.StackSteps[(Pc xor Pc shr StepBits) mod StackStepCount];
  Kept := LoadAcquire(Entry^);
  Steps := Kept and LastStep;
  if Kept shr StepBits = Pc then
  begin
    if (Steps <= MostSteps) and TryLeaveBack(Walk, Steps) then
      Exit(True);
    if (Steps > MostSteps) and (Steps < LastStep) then
    begin
      StoreRelease(Entry^, Kept + 1);
      Exit(False);
    end;
  end;
  Steps := SearchBack(Walk);
  StoreRelease(Entry^, Pc shl StepBits + Steps);
  Result := Steps <= MostSteps;
end;

function StepByFrame(var Walk: TWalk): Boolean;
var
  Slot, Target: NativeUInt;
begin
  Slot := Walk.Frame + SizeOf(Pointer);
  Result := IsOnStack(Walk, Slot) and IsCode(WordAt(Slot))
    and (not IsX64 or (CallBefore(WordAt(Slot), Target) <> ckNone));
  if Result then
    Leave(Walk, Slot, SizeOf(Pointer));
end;

// ---------------------------------------------------------------------------- the stack

// Kept in the thread's heap, as finding it is slow.
function StackEnd(Sp: NativeUInt): NativeUInt;
var
  Heap: PHeap;
  Mapping: TOsMapping;
begin
  Heap := OsThreadHeap;
  if (Heap <> nil) and (Sp >= Heap^.StackFirst) and (Sp < Heap^.StackLimit) then
    Exit(Heap^.StackLimit);
  if not OsFindMapping(Sp, Mapping) then
    Exit(Sp);
  if Heap <> nil then
  begin
    Heap^.StackFirst := Mapping.First;
    Heap^.StackLimit := Mapping.Limit;
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
  if (Process.ManagerCalls <> 0) and (PWord(Return - CallRelativeLength)^ = CallRelative) then
    Offset := Return + NativeUInt(DistanceAt(Return - SizeOf(LongInt))) - Process.ManagerCalls
  else if (Process.ManagerCalls = 0) and (PWord(Return - CallOffsetLength)^ and $F8FF = CallOffset)
    then
    Offset := PByte(Return)[-1];
  if (Offset mod SizeOf(Pointer) = 0) and (Offset <= Ord(mcMemSize) * SizeOf(Pointer)) then
    Result := TManagerCall(Offset div SizeOf(Pointer));
end;

// Notes the frame that the walk stands in. All frames so far were the manager's own if this one
// is the program's call of the manager.
procedure Note(const Walk: TWalk; var Stack: TStack);
var
  Call: TManagerCall;
begin
  if Stack.Call = mcUnknown then
  begin
    Call := ManagerCallBefore(Walk.Pc);
    if Call <> mcUnknown then
    begin
      Stack.Call := Call;
      Stack.Count := 0;
    end;
  end;
  Stack.Frames[Stack.Count] := Walk.Pc;
  Inc(Stack.Count);
end;

procedure WalkOn(var Walk: TWalk; var Stack: TStack);
begin
  repeat
    Note(Walk, Stack);
  until (Stack.Count = MaxFrames)
    or not (IsX64 and StepByCode(Walk) or StepByFrame(Walk));
end;

procedure StackTake(out Stack: TStack);
var
  Walk: TWalk;
begin
  if @Process.FramesTake <> nil then
  begin
    Stack.Call := mcUnknown;
    Stack.Count := Process.FramesTake(@Stack.Frames, MaxFrames);
    Exit;
  end;
  Walk.Sp := NativeUInt(get_frame);
  Walk.Limit := StackEnd(Walk.Sp);
  Leave(Walk, Walk.Sp + SizeOf(Pointer), SizeOf(Pointer));
  Stack.Call := mcUnknown;
  Stack.Count := 0;
  WalkOn(Walk, Stack);
end;

procedure StackTakeAt(Pc, Sp, Frame: NativeUInt; out Stack: TStack);
var
  Walk: TWalk;
begin
  Walk.Pc := Pc + 1; // as if a call had led away from there
  Walk.Sp := Sp;
  Walk.Frame := Frame;
  Walk.Limit := StackEnd(Sp);
  Stack.Call := mcUnknown;
  Stack.Count := 0;
  WalkOn(Walk, Stack);
end;

// FF /2 with a register and an offset of four bytes, one or none.
function StackCallOffset(Return: NativeUInt): NativeInt;
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

function StackHash(const Stack: TStack; Seed: NativeUInt): NativeUInt;
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
    Process.ManagerCalls := Return + NativeUInt(DistanceAt(Return - SizeOf(LongInt)))
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

procedure StackStart;
var
  Mapping: TOsMapping;
begin
  if not OsFindMapping(NativeUInt(@StackStart), Mapping) then
    Exit;
  Process.CodeFirst := Mapping.First + CodeMargin;
  Process.CodeLimit := Mapping.Limit - CodeMargin;
  if IsX64 then
    FindManagerCalls;
end;

end.
