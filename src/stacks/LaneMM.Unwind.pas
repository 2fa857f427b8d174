/// Unwinds the stack of the calling thread, without debug information and without the heap.
//
// Owns:       Stacks.Depth, Shown, CodeFirst, CodeLimit, ManagerCalls, KnownStarts, Module,
//             Routines, RoutinesSize.
// Invariants: reads the stack of the calling thread between the stack pointer and its end, and the
//             code that LaneMM.CodeRanges has; nothing else.
// x86:        the run-time library and optimized code have no frame pointers. The prologue of a
//             routine gives the distance from its stack pointer to its return address; it is
//             searched for backwards from the call, at the alignment of routines. A call
//             instruction must precede the return address, and a direct call must lead to that
//             very routine. The start found for a return address is kept and tried first. One
//             without a prologue that was called through a pointer is found by LaneMM.Leaves.
// Windows:    of 64 bits, the linker's table of this module has the routines and what their
//             prologues do.
// Others:     the chain of frame pointers; a return address must lie in that code, too.
// In C:       the library unwinds through all modules, see Stacks.StepFrame.
// Callers:    UnwindStart: once, before any other thread runs. The rest: any thread.
unit LaneMM.Unwind;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Hooks, LaneMM.SettingsState, LaneMM.StacksState;

const
  /// Stands for the outer frames of a backtrace that has more than Stacks.Depth; the last frame.
  CutFrame = NativeUInt(1);

type
  /// A call of the memory manager by the program.
  TManagerCall = (mcUnknown, mcGetMem, mcFreeMem, mcFreeMemSize, mcAllocMem, mcReallocMem,
    mcMemSize);

  /// A backtrace: return addresses, the innermost first.
  TBacktrace = record
    Call: TManagerCall;  //< the manager call that Frames[0] returns from; mcUnknown: none known
    Count: Cardinal;     //< number of frames
    Frames: array[0..MostFrames] of NativeUInt; //< the return addresses; CutFrame
  end;

/// Finds the code of this module, and how the run-time library calls its memory manager.
procedure UnwindStart;
/// Sets the most frames of a backtrace that reports show, up to MaxFrames.
procedure StacksSetDepth(Count: Cardinal);
/// Begins an unwind at the caller of the routine with this frame pointer; that routine has set it.
/// Limit is the end of the thread's stack.
procedure UnwindFrom(Frame, Limit: NativeUInt; out Walk: TUnwind); inline;
/// Unwinds one frame; returns False when no caller is found. Rule receives the rule that was used.
function UnwindStep(var Walk: TUnwind; out Rule: TUnwindRule): Boolean;
/// Begins an unwind where a fault interrupted the thread.
procedure UnwindAt(const Fault: TFault; out Walk: TUnwind);
/// Unwinds the routine that a fault interrupted; otherwise as UnwindStep.
function UnwindInterrupted(var Walk: TUnwind; out Rule: TUnwindRule): Boolean;
/// Returns where the return address of the routine lies by this rule; any address.
function UnwindSlot(const Walk: TUnwind; const Rule: TUnwindRule): NativeUInt; inline;
/// Unwinds the routine whose return address lies at Slot, SavedFrame bytes after the frame pointer
/// that it saved; 0: none.
procedure UnwindTo(var Walk: TUnwind; Slot, SavedFrame: NativeUInt); inline;
/// Unwinds one frame by a known rule; returns False when the rule does not fit the stack.
function UnwindLeave(var Walk: TUnwind; const Rule: TUnwindRule): Boolean;
/// Adds a frame, but none of the C library's own. If Return follows a call of the memory manager,
/// drops the frames so far: they are the manager's own. Adds CutFrame instead where Stack has
/// Stacks.Depth frames; returns whether it has space for more.
function BacktraceAdd(var Stack: TBacktrace; Return: NativeUInt): Boolean;
/// Takes the backtrace of the caller, without the manager's own frames where they are recognized.
procedure BacktraceTake(out Stack: TBacktrace);
/// Returns the end of the calling thread's stack, which holds Sp; Sp itself when it is unknown.
function StackEnd(Sp: NativeUInt): NativeUInt;
/// Takes a backtrace from the point where a fault interrupted the thread.
procedure BacktraceTakeAt(const Fault: TFault; out Stack: TBacktrace);
/// Leaves out of recursion the frames between two calls at the same place, from the frame First on:
/// what follows a frame did call it. Keys has a number for each frame, the same for those of one
/// place, and loses what Stack loses; it may be the frames.
procedure BacktraceFoldRecursion(var Stack: TBacktrace; First: Cardinal; Keys: PNativeUInt);
/// Returns a hash of Seed, the manager call and all frames.
function BacktraceHash(const Stack: TBacktrace; Seed: NativeUInt): NativeUInt;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.OsProcess,
  LaneMM.Pause, LaneMM.Rtl, LaneMM.CodeRanges, LaneMM.CallCode, LaneMM.A64Code, LaneMM.Instructions,
  LaneMM.Leaves, LaneMM.Pe;

{$I ../LaneMM.AfterUses.inc}

const
  // Bytes that can be read before and after any return address.
  CodeMargin = 16;

// ---------------------------------------------------------------------------- steps

procedure UnwindTo(var Walk: TUnwind; Slot, SavedFrame: NativeUInt);
begin
  Walk.Pc := StackWord(Slot);
  Walk.Sp := Slot + SizeOf(Pointer);
  Walk.FrameAt := 0;
  if SavedFrame <> 0 then
  begin
    Walk.FrameAt := Slot - SavedFrame;
    Walk.Frame := StackWord(Walk.FrameAt);
  end;
end;

function UnwindSlot(const Walk: TUnwind; const Rule: TUnwindRule): NativeUInt;
begin
  if Rule.IsFramed then
    Result := Walk.Frame + SizeOf(Pointer)
  else
    Result := Walk.Sp + Rule.Size;
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

function UnwindLeave(var Walk: TUnwind; const Rule: TUnwindRule): Boolean;
var
  Slot, Found: NativeUInt;
begin
  Slot := UnwindSlot(Walk, Rule);
  if not UnwindHas(Walk, Slot) then
    Exit(False);
  Found := StackWord(Slot);
  Result := (Found <> 0) and (Rule.Trust = rtExact) or IsReturn(Found, Rule);
  if Result then
    UnwindTo(Walk, Slot, Rule.SavedFrame);
end;

// Returns whether a direct call of the routine left the return address that its rule leads to.
function IsCalledDirectly(const Walk: TUnwind; const Rule: TUnwindRule): Boolean;
var
  Slot, Target: NativeUInt;
begin
  Slot := Walk.Sp + Rule.Size;
  Result := UnwindHas(Walk, Slot) and (CallBefore(StackWord(Slot), Target) = ckDirect)
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

// Unwinds the routine if it begins at Start. With IsSure set there must be more than a push that a
// call through a register may have led to. IsStart: whether or not, a routine begins there.
function TryLeave(var Walk: TUnwind; Start: NativeUInt; IsSure: Boolean; out Rule: TUnwindRule;
  out IsStart: Boolean): Boolean;
var
  Code: PByte;
  Bytes: TCodeBytes;
  IsWhole: Boolean;
begin
  IsStart := False;
  Code := CodeAt(Start, Bytes);
  if (Code = nil) or not RoutineMayStart(Code) then
    Exit(False);
  IsWhole := PrologueRead(Code, Rule);
  IsStart := IsWhole and RoutineFollows(Code);
  Rule.Start := Start;
  if not IsX64 then
    AddArguments(Walk, Rule);
  Result := ((Rule.Size <> 0)
    and (not IsSure or IsWhole or RoutineFollows(Code)) or IsCalledDirectly(Walk, Rule))
    and UnwindLeave(Walk, Rule);
end;

// Unwinds the routine, in code that begins at First. The search ends at the nearest place where a
// routine begins for certain: what is before it is another one's, whatever the stack holds.
function SearchBack(var Walk: TUnwind; First: NativeUInt; out Rule: TUnwindRule): Boolean;
var
  Start, Last: NativeUInt;
  IsSure, IsStart: Boolean;
begin
  Last := First;
  if NativeUInt(Walk.Pc - First) > SearchBytes then
    Last := Walk.Pc - SearchBytes;
  for IsSure := True downto False do
  begin
    Start := Walk.Pc and not NativeUInt(RoutineAlignment - 1);
    IsStart := False;
    while (Start >= Last) and not IsStart do
    begin
      if TryLeave(Walk, Start, IsSure, Rule, IsStart) then
        Exit(True);
      Dec(Start, RoutineAlignment);
    end;
  end;
  Result := False;
end;

function KnownAt(Key: NativeUInt): PKnownStart; inline;
begin
  Result := @Stacks.KnownStarts[Key mod KnownStartCount];
end;

// Keeps the value of a key: the start of a routine, or how often none was found.
procedure KeepKnown(Key, Value: NativeUInt);
begin
  StoreRelease(KnownAt(Key)^.Value, Value);
  StoreRelease(KnownAt(Key)^.Mixed, NativeUInt(Value * SpreadFactor) xor Key);
end;

// Returns the value that is kept of a key; 0: none.
function KnownOf(Key: NativeUInt): NativeUInt;
begin
  Result := LoadAcquire(KnownAt(Key)^.Value);
  if NativeUInt(Result * SpreadFactor) xor Key <> LoadAcquire(KnownAt(Key)^.Mixed) then
    Result := 0;
end;

// Returns whether no start was found at this place of the stack, the one with this key. Each time
// raises the count, and at its highest value the answer is no: the stack may hold something else.
function IsKnownEnd(Place: NativeUInt): Boolean;
const
  MostTimes = 2048;
var
  Times: NativeUInt;
begin
  Times := KnownOf(Place);
  Result := (Times > 0) and (Times < MostTimes);
  if Result then
    KeepKnown(Place, Times + 1);
end;

// Unwinds a routine that was called through a pointer and has nothing on the stack but its return
// address, as on 32-bit Windows one that saves no register.
function LeaveFrameless(var Walk: TUnwind; out Rule: TUnwindRule): Boolean;
var
  Target: NativeUInt;
begin
  Rule := Default(TUnwindRule);
  Result := UnwindHas(Walk, Walk.Sp) and (CallBefore(StackWord(Walk.Sp), Target) = ckIndirect)
    and FramelessFind(Walk.Pc, Rule.Start);
  if Result then
    UnwindTo(Walk, Walk.Sp, 0);
end;

// The key of a start is the return address. That none was found holds for one place of the stack:
// it may have been misread, which says nothing about the routine elsewhere.
function StepByCode(var Walk: TUnwind; out Rule: TUnwindRule): Boolean;
var
  Pc, Place, First, Start: NativeUInt;
  IsStart: Boolean;
begin
  Pc := Walk.Pc;
  if not CodeFind(Pc, First) then
    Exit(False);
  Start := KnownOf(Pc);
  if (Start <> 0) and TryLeave(Walk, Start, False, Rule, IsStart)
    or LeaveFrameless(Walk, Rule) then
    Exit(True);
  Place := Pc xor NativeUInt(Walk.Sp * SpreadFactor);
  if IsKnownEnd(Place) then
    Exit(False);
  Result := SearchBack(Walk, First, Rule);
  if Result then
    KeepKnown(Pc, Rule.Start)
  else
    KeepKnown(Place, 1);
end;

function UnwindStep(var Walk: TUnwind; out Rule: TUnwindRule): Boolean;
begin
  if @Stacks.StepFrame <> nil then
    Exit(Stacks.StepFrame(Walk, Rule));
  // In a routine of the table a search would find nothing better.
  if OsTablesRoutines and RoutineRule(Walk.Pc, Rule) then
    Result := UnwindLeave(Walk, Rule)
  else
    Result := IsX86 and StepByCode(Walk, Rule);
  if Result then
    Exit;
  Rule := FramedRule;
  Result := UnwindLeave(Walk, Rule);
end;

// ---------------------------------------------------------------------------- the stack

// The bounds are kept in the thread heap: they are slow to find.
function StackEnd(Sp: NativeUInt): NativeUInt;
var
  Heap: PHeap;
  First: NativeUInt;
begin
  Heap := OsThreadHeap;
  if (Heap <> nil) and (Sp >= Heap^.Notes.StackFirst) and (Sp < Heap^.Notes.StackLimit) then
    Exit(Heap^.Notes.StackLimit);
  if not PauseFindStack(Sp, First, Result) or (Heap = nil) then
    Exit;
  Heap^.Notes.StackFirst := First;
  Heap^.Notes.StackLimit := Result;
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
  else if IsX86 and CodeIsOwn(Return) and (PWord(Return - CallOffsetLength)^ and $F8FF = CallOffset)
    then
    Offset := PByte(Return)[-1];
  if (Offset mod SizeOf(Pointer) = 0) and (Offset <= Ord(mcMemSize) * SizeOf(Pointer)) then
    Result := TManagerCall(Offset div SizeOf(Pointer));
end;

function BacktraceAdd(var Stack: TBacktrace; Return: NativeUInt): Boolean;
var
  Call: TManagerCall;
begin
  if (@Stacks.StepFrame <> nil) and CodeIsOwn(Return) then
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
  UnwindTo(Walk, Frame + SizeOf(Pointer), SizeOf(Pointer));
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

// Lets the program's routine take the backtrace; returns False where there is none, where its own
// call led here, or where the thread has no heap to note that in.
function TakeByProgram(var Stack: TBacktrace): Boolean;
var
  TakeFrames: TFramesCall;
  Heap: PHeap;
begin
  TakeFrames := Stacks.TakeFrames; // once: the program may reset it meanwhile
  if @TakeFrames = nil then
    Exit(False);
  Heap := OsThreadHeap;
  if (Heap = nil) or Heap^.Notes.IsTaking then
    Exit(False);
  Clear(Stack);
  Heap^.Notes.IsTaking := True;
  Stack.Count := TakeFrames(@Stack.Frames, Stacks.Depth + 1);
  Heap^.Notes.IsTaking := False;
  MarkCut(Stack);
  Result := True;
end;

procedure BacktraceTake(out Stack: TBacktrace);
var
  Walk: TUnwind;
begin
  if (@Stacks.TakeFrames <> nil) and TakeByProgram(Stack) then
    Exit;
  Clear(Stack);
  UnwindFrom(NativeUInt(get_frame), StackEnd(NativeUInt(get_frame)), Walk);
  WalkOn(Walk, Stack);
  if Stack.Count = 0 then
    MarkCut(Stack);
end;

// Unwinds the routine that was interrupted if it is a leaf, as LaneMM.Leaves finds; returns whether
// it is one.
function LeaveLeaf(var Walk: TUnwind; out Rule: TUnwindRule): Boolean;
begin
  Rule := Default(TUnwindRule);
  if @Stacks.StepFrame <> nil then
    Exit(False);
  if IsX86 then
  begin
    Result := UnwindHas(Walk, Walk.Sp) and LeafFind(Walk.Pc, StackWord(Walk.Sp), Rule.Start);
    if Result then
      UnwindTo(Walk, Walk.Sp, 0);
    Exit;
  end;
  Result := LeafFind(Walk.Pc, Walk.Link, Rule.Start);
  if Result then
    Walk.Pc := Walk.Link;
end;

procedure UnwindAt(const Fault: TFault; out Walk: TUnwind);
begin
  Walk.Pc := Fault.Pc + 1; // as if a call returned there: lookups use Pc - 1
  Walk.Sp := Fault.Sp;
  Walk.Frame := Fault.Frame;
  Walk.FrameAt := 0;
  Walk.Link := Fault.Registers[A64Link];
  Walk.Limit := StackEnd(Fault.Sp);
end;

// Returns whether a routine of this module called one of another module by the call before Return:
// through the jump that the linker makes for such calls, or through a variable with its address.
function IsLibraryCall(Return: NativeUInt): Boolean;
var
  Target, Variable: NativeUInt;
  Item: TInstruction;
begin
  Result := CodeIsOwn(Return);
  if not Result then
    Exit;
  if CallBefore(Return, Target) = ckDirect then
    Exit(CodeIsOwn(Target) and InstructionAt(Target, Item) and (Item.Kind = ikLeave)
      and Item.HasOperand);
  Variable := CallPointer(Return);
  Result := (Variable <> 0) and OsRead(Variable, @Target, SizeOf(Target))
    and not CodeIsOwn(Target);
end;

// Returns whether a call led to an address where there is no code, and left its return address at
// the top of the stack.
function IsNowhere(const Walk: TUnwind): Boolean;
var
  Target: NativeUInt;
  Code: Byte;
begin
  Code := 0;
  Result := not OsRead(Walk.Pc - 1, @Code, SizeOf(Code)) and UnwindHas(Walk, Walk.Sp)
    and (CallBefore(StackWord(Walk.Sp), Target) <> ckNone);
end;

// Returns whether this may be the frame of a routine whose callers' frames lie above Sp.
function IsFrame(const Walk: TUnwind; Frame, Sp: NativeUInt): Boolean;
var
  Target: NativeUInt;
begin
  Result := (Frame >= Sp) and (Frame < NativeUInt(Walk.Limit - SizeOf(Pointer)))
    and UnwindHas(Walk, Frame)
    and (CallBefore(StackWord(Frame + SizeOf(Pointer)), Target) <> ckNone);
end;

// Finds the frame pointer that the routine had which called a library at Slot: the library's
// routines keep it, in the register or on the stack.
procedure FindFrame(var Walk: TUnwind; Slot: NativeUInt);
var
  At: NativeUInt;
begin
  if IsFrame(Walk, Walk.Frame, Slot) then
    Exit;
  At := Walk.Sp;
  while At < Slot do
  begin
    if IsFrame(Walk, StackWord(At), Slot) then
    begin
      Walk.Frame := StackWord(At);
      Exit;
    end;
    Inc(At, SizeOf(Pointer));
  end;
end;

// Leaves the library that was called at Slot; returns whether the caller has a caller, too: else
// the word is of a call that has returned.
function LeaveTo(var Walk: TUnwind; Slot: NativeUInt): Boolean;
var
  Caller, Beyond: TUnwind;
  Rule: TUnwindRule;
begin
  Caller := Walk;
  FindFrame(Caller, Slot);
  UnwindTo(Caller, Slot, 0);
  Beyond := Caller;
  Result := UnwindStep(Beyond, Rule);
  if Result then
    Walk := Caller;
end;

// Unwinds the routines of a library without frame pointers, as the C library, that a fault
// interrupted: to the innermost word of the stack that a call of a library has left. Large frames
// are not searched: they hold such words of calls that have returned.
function LeaveLibrary(var Walk: TUnwind; out Rule: TUnwindRule): Boolean;
const
  MostBytes = 512;
var
  Slot, Target: NativeUInt;
begin
  Rule := Default(TUnwindRule);
  if (@Stacks.StepFrame <> nil) or OsTablesRoutines or IsCode(Walk.Pc) then
    Exit(False);
  if not IsX86 then
  begin
    // AArch64: a routine of the library that has called none itself.
    Result := CodeIsOwn(Walk.Link) and (CallBefore(Walk.Link, Target) <> ckNone);
    if Result then
      Walk.Pc := Walk.Link;
    Exit;
  end;
  Slot := Walk.Sp;
  repeat
    if (UnwindHas(Walk, Slot) and IsLibraryCall(StackWord(Slot))
      or (Slot = Walk.Sp) and IsNowhere(Walk)) and LeaveTo(Walk, Slot) then
      Exit(True);
    Inc(Slot, SizeOf(Pointer));
  until Slot >= Walk.Sp + MostBytes;
  Result := False;
end;

function UnwindInterrupted(var Walk: TUnwind; out Rule: TUnwindRule): Boolean;
begin
  Result := LeaveLeaf(Walk, Rule) or LeaveLibrary(Walk, Rule) or UnwindStep(Walk, Rule);
end;

procedure BacktraceTakeAt(const Fault: TFault; out Stack: TBacktrace);
var
  Walk: TUnwind;
  Rule: TUnwindRule;
begin
  UnwindAt(Fault, Walk);
  Clear(Stack);
  if BacktraceAdd(Stack, Walk.Pc) and UnwindInterrupted(Walk, Rule) then
    WalkOn(Walk, Stack);
end;

procedure BacktraceFoldRecursion(var Stack: TBacktrace; First: Cardinal; Keys: PNativeUInt);
var
  Next, Last, Count: NativeInt;
begin
  Count := First;
  Next := First;
  while Next < NativeInt(Stack.Count) do
  begin
    Last := NativeInt(Stack.Count) - 1;
    while Keys[Last] <> Keys[Next] do
      Dec(Last);
    Stack.Frames[Count] := Stack.Frames[Last];
    Keys[Count] := Keys[Last];
    Inc(Count);
    Next := Last + 1;
  end;
  Stack.Count := Count;
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
  Field := CallPointer(StackWord(NativeUInt(get_frame) + SizeOf(Pointer)));
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

procedure StacksSetDepth(Count: Cardinal);
begin
  Stacks.Depth := Count + InnerFrames;
  Stacks.Shown := Count;
end;

procedure UnwindStart;
var
  Mapping: TOsMapping;
  Pe: TPeFile;
begin
  StacksSetDepth(DefaultFrames);
  if not OsFindRegion(NativeUInt(@UnwindStart), Mapping) then
    Exit;
  Stacks.CodeFirst := Mapping.First + CodeMargin;
  Stacks.CodeLimit := Mapping.Limit - CodeMargin;
  Stacks.Module := Mapping.First - Mapping.FileOffset;
  if OsTablesRoutines and PeOpen(Pe, PByte(Stacks.Module), OsPageSize, Stacks.Module) then
    Stacks.Routines := PRoutine(PeRoutines(Pe, Stacks.RoutinesSize));
  FindManagerCalls;
end;

end.
