/// Finds where a faulting instruction has the parts of its address from.
//
// Owns:       nothing.
// How:        the registers of the instruction's operand are followed back through the routine:
//             from a register to the instruction that wrote it last, from there to the address that
//             it loaded, from a variable on the stack to the store before, from a parameter to the
//             caller.
// Invariants: an origin is found only where every way to the fault passes the instruction that the
//             register was written by: no jump from elsewhere leads between them. An unknown
//             instruction, register or way ends the search. The answer is the address of the word
//             that was loaded, which may have changed since.
// Callers:    the handler of faults. Takes no lock and uses no heap.
unit LaneMM.FaultOrigin;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Hooks, LaneMM.StacksState, LaneMM.Instructions;

type
  /// A routine at the instruction that faulted, or that made the call farther in.
  TScene = record
    Walk: TUnwind;           //< owner   its place on the stack
    IsInner: Boolean;        //< owner   it faulted
    Pc: NativeUInt;          //< owner   the instruction
    Start: NativeUInt;       //< owner   of the routine; 0: unknown
    Limit: NativeUInt;       //< owner   end of its code
    Known: TRegisterSet;     //< owner   registers whose values are known
    Values: array[0..NoRegister - 1] of NativeUInt; //< owner   their values, by their numbers
  end;

/// Reads the instruction that faulted, and its registers; returns False where that is no code, or
/// an instruction that is not known.
function SceneOpen(const Fault: TFault; out Scene: TScene; out Item: TInstruction): Boolean;
/// Returns the address of the faulting instruction's operand; unknown registers count 0.
function SceneOperand(const Scene: TScene; const Item: TInstruction): NativeUInt;
/// Finds the first byte that the faulting instruction, Item, accesses, if Address is among them;
/// returns False where it is not known.
function SceneFindAccess(const Scene: TScene; const Item: TInstruction; Address: NativeUInt;
  out First: NativeUInt): Boolean;
/// Finds the address of the word that a register was loaded with; returns False where it is not
/// certain.
function SceneFindOrigin(const Scene: TScene; Number: Cardinal; out Address: NativeUInt): Boolean;

implementation

uses
  LaneMM.Os, LaneMM.CallCode, LaneMM.A64Code, LaneMM.Unwind, LaneMM.Leaves;

const
  // Routines that are longer are not followed.
  MostBytes = 32768;
  // Steps of a search, and loads within one address.
  MostSteps = 16;
  MostLoads = 4;
  // Bytes of an instruction, at most.
  MostLength = 16;

// ---------------------------------------------------------------------------- the routine

// Finds the end of the routine: the instruction that leaves it, with no jump past it.
procedure FindLimit(var Scene: TScene; MostLimit: NativeUInt);
var
  Farthest: NativeUInt;
  Item: TInstruction;
begin
  Farthest := Scene.Pc;
  Scene.Limit := Scene.Start;
  while (Scene.Limit < MostLimit) and InstructionAt(Scene.Limit, Item) do
  begin
    if (Item.JumpTo > Farthest) and (Item.JumpTo < MostLimit) then
      Farthest := Item.JumpTo;
    Inc(Scene.Limit, Item.Length);
    if (Item.Kind = ikLeave) and (Scene.Limit > Farthest) then
      Exit;
  end;
end;

// Finds the code of the routine that the walk has just left, with this rule.
procedure FindCode(var Scene: TScene; const Rule: TUnwindRule);
var
  MostLimit: NativeUInt;
begin
  Scene.Start := Rule.Start;
  MostLimit := Stacks.CodeLimit;
  if @Stacks.FindRoutine <> nil then
  begin
    if not Stacks.FindRoutine(Scene.Pc, Scene.Start, MostLimit) then
      Scene.Start := 0;
  end
  else if (Scene.Pc < Stacks.CodeFirst) or (Scene.Pc >= Stacks.CodeLimit) then
    Scene.Start := 0
  else if A64IsHere and (Rule.Start = 0) then
    Scene.Start := A64FrameFind(Scene.Pc);
  if (Scene.Start = 0) or (NativeUInt(Scene.Pc - Scene.Start) >= MostBytes) then
  begin
    Scene.Start := 0;
    Exit;
  end;
  if NativeUInt(MostLimit - Scene.Start) > MostBytes then
    MostLimit := Scene.Start + MostBytes;
  FindLimit(Scene, MostLimit);
end;

// Finds the last instruction from First on and before Limit that may write one of the registers;
// Place receives its address, 0 for none. Returns False where an instruction is not known.
function FindWrite(const Scene: TScene; First, Limit: NativeUInt; Registers: TRegisterSet;
  out Place: NativeUInt): Boolean;
var
  Pc: NativeUInt;
  Item: TInstruction;
begin
  Place := 0;
  Pc := Scene.Start;
  while (Pc <> 0) and (Pc < Limit) and InstructionAt(Pc, Item) do
  begin
    if (Pc >= First) and (Item.Writes and Registers <> 0) then
      Place := Pc;
    Inc(Pc, Item.Length);
  end;
  Result := Pc = Limit;
end;

// Returns whether the instructions after First, up to the scene's, are reached from there alone.
function IsOnlyWay(const Scene: TScene; First: NativeUInt): Boolean;
var
  Pc: NativeUInt;
  Item: TInstruction;
begin
  Pc := Scene.Start;
  while (Pc < Scene.Limit) and InstructionAt(Pc, Item) do
  begin
    // A jump through a register or a table, but no return, may lead to any address.
    if (Item.Kind = ikLeave) and (Item.JumpTo = 0)
      and ((Item.Parts <> 0) or Item.HasOperand) then
      Exit(False);
    if (Item.JumpTo > First) and (Item.JumpTo <= Scene.Pc)
      and ((Pc < First) or (Pc > Scene.Pc)) then
      Exit(False);
    Inc(Pc, Item.Length);
  end;
  Result := Pc >= Scene.Limit;
end;

// ---------------------------------------------------------------------------- values

function FindAddress(const Scene: TScene; const Operand: TOperand; Limit: NativeUInt;
  Loads: Cardinal; out Address: NativeUInt): Boolean; forward;
// Finds the value that the caller had in a register at its call.
function FindPassed(const Scene: TScene; Number, Loads: Cardinal; out Value: NativeUInt)
  : Boolean; forward;

// Finds the value that a register had before the instruction at Limit.
function FindValue(const Scene: TScene; Number: Cardinal; Limit: NativeUInt; Loads: Cardinal;
  out Value: NativeUInt): Boolean;
var
  Place: NativeUInt;
  Item: TInstruction;
begin
  Value := 0;
  if Number = NoRegister then
    Exit(True);
  Result := FindWrite(Scene, Limit, Scene.Pc, RegisterBit(Number), Place);
  if not Result then
    Exit;
  if (Place = 0) and (Scene.Known and RegisterBit(Number) <> 0) then
  begin
    Value := Scene.Values[Number];
    Exit;
  end;
  Result := (Loads > 0) and FindWrite(Scene, Scene.Start, Limit, RegisterBit(Number), Place);
  if not Result then
    Exit;
  if Place = 0 then
    Exit(FindPassed(Scene, Number, Loads - 1, Value));
  Result := IsOnlyWay(Scene, Place) and InstructionAt(Place, Item)
    and (Item.Kind in [ikLoad, ikAddress])
    and FindAddress(Scene, Item.Operand, Place, Loads - 1, Value);
  if Result and (Item.Kind = ikLoad) then
    Result := OsRead(Value, @Value, SizeOf(Value));
end;

// Finds the address that an operand had before the instruction at Limit.
function FindAddress(const Scene: TScene; const Operand: TOperand; Limit: NativeUInt;
  Loads: Cardinal; out Address: NativeUInt): Boolean;
var
  Index: NativeUInt;
begin
  Result := FindValue(Scene, Operand.Base, Limit, Loads, Address)
    and FindValue(Scene, Operand.Index, Limit, Loads, Index);
  if Result then
    Inc(Address, NativeUInt(Index shl Operand.Shift + NativeUInt(Operand.Offset)));
end;

// Finds the last store to an operand before the instruction at Limit, with the same registers.
function FindStore(const Scene: TScene; const Operand: TOperand; Limit: NativeUInt;
  out Place: NativeUInt; out Number: Byte): Boolean;
var
  Pc: NativeUInt;
  Item: TInstruction;
  Registers: TRegisterSet;
begin
  Place := 0;
  Registers := RegisterBit(Operand.Base) or RegisterBit(Operand.Index);
  Pc := Scene.Start;
  while (Pc < Limit) and InstructionAt(Pc, Item) do
  begin
    if Item.Writes and Registers <> 0 then
      Place := 0
    else if (Item.Kind = ikStore) and (Item.Operand.Base = Operand.Base)
      and (Item.Operand.Index = Operand.Index) and (Item.Operand.Shift = Operand.Shift)
      and (Item.Operand.Offset = Operand.Offset) then
    begin
      Place := Pc;
      Number := Item.Target;
    end;
    Inc(Pc, Item.Length);
  end;
  Result := (Pc = Limit) and (Place <> 0) and IsOnlyWay(Scene, Place);
end;

// ---------------------------------------------------------------------------- the caller

procedure SetValue(var Scene: TScene; Number: Cardinal; Value: NativeUInt);
begin
  Scene.Known := Scene.Known or RegisterBit(Number);
  Scene.Values[Number] := Value;
end;

procedure SetValueAt(var Scene: TScene; Number: Cardinal; Address: NativeUInt);
var
  Value: NativeUInt;
begin
  Value := 0;
  if OsRead(Address, @Value, SizeOf(Value)) then
    SetValue(Scene, Number, Value);
end;

// Restores the registers that the routine has saved, whose return address lies below Sp.
procedure RestoreSaved(const Scene: TScene; Sp: NativeUInt; var Caller: TScene);
var
  Pc, Address, Pushed: NativeUInt;
  Item: TInstruction;
  Written: TRegisterSet;
  IsMoved: Boolean; // the stack pointer, by more than pushes
begin
  Pc := Scene.Start;
  Pushed := Sp - SizeOf(Pointer);
  Written := 0;
  IsMoved := False;
  while (Pc < Scene.Pc) and InstructionAt(Pc, Item) do
  begin
    if (Item.Kind = ikStore) and ((Written or Caller.Known) and RegisterBit(Item.Target) = 0)
      and FindAddress(Scene, Item.Operand, Pc, 0, Address) then
      SetValueAt(Caller, Item.Target, Address);
    if Item.Kind = ikPush then
    begin
      Dec(Pushed, SizeOf(Pointer));
      if not IsMoved and ((Written or Caller.Known) and RegisterBit(Item.Target) = 0) then
        SetValueAt(Caller, Item.Target, Pushed);
    end
    else
      IsMoved := IsMoved or (Item.Writes and RegisterBit(StackRegister) <> 0);
    Written := Written or Item.Writes;
    Inc(Pc, Item.Length);
  end;
  Caller.Known := Caller.Known or Scene.Known and not Written;
end;

// Finds the call that returns to the caller's place on the stack.
function FindCall(var Caller: TScene): Boolean;
var
  Pc: NativeUInt;
  Item: TInstruction;
begin
  Pc := Caller.Start;
  Result := False;
  while (Pc <> 0) and (Pc < Caller.Walk.Pc) and InstructionAt(Pc, Item) do
  begin
    Caller.Pc := Pc;
    Result := Item.Kind = ikCall;
    Inc(Pc, Item.Length);
  end;
  Result := Result and (Pc = Caller.Walk.Pc);
end;

// Returns whether the scene comes after the frame of its routine, with no end of a routine between.
// AArch64: else the frame pointer may be the caller's own.
function IsFramed(const Scene: TScene): Boolean;
var
  Pc: NativeUInt;
  Item: TInstruction;
begin
  Pc := Scene.Start + 2 * SizeOf(Cardinal);
  Result := (Scene.Pc >= Pc) and A64MakesFrame(Scene.Start);
  while Result and (Pc < Scene.Pc) do
  begin
    Result := InstructionAt(Pc, Item) and (Item.Kind <> ikLeave);
    Inc(Pc, Item.Length);
  end;
end;

// Replaces a scene by that of its caller.
function SceneLeave(var Scene: TScene): Boolean;
var
  Caller: TScene;
  Beyond: TUnwind;
  Rule: TUnwindRule;
begin
  Result := (Scene.Start <> 0) and (not A64IsHere or IsFramed(Scene))
    and IsOnlyWay(Scene, Scene.Start);
  if not Result then
    Exit;
  Caller := Scene;
  Caller.Known := 0;
  Caller.IsInner := False;
  if Scene.IsInner then
    Result := UnwindInterrupted(Caller.Walk, Rule)
  else
    Result := UnwindStep(Caller.Walk, Rule);
  if not Result then
    Exit;
  Beyond := Caller.Walk;
  Rule := Default(TUnwindRule);
  UnwindStep(Beyond, Rule);
  Caller.Pc := Caller.Walk.Pc - 1;
  FindCode(Caller, Rule);
  Result := FindCall(Caller);
  if not Result then
    Exit;
  RestoreSaved(Scene, Caller.Walk.Sp, Caller);
  SetValue(Caller, StackRegister, Caller.Walk.Sp);
  SetValue(Caller, FrameRegister, Caller.Walk.Frame);
  Scene := Caller;
end;

function FindPassed(const Scene: TScene; Number, Loads: Cardinal; out Value: NativeUInt)
  : Boolean;
var
  Caller: TScene;
begin
  Caller := Scene;
  Result := SceneLeave(Caller) and FindValue(Caller, Number, Caller.Pc, Loads, Value);
end;

// ---------------------------------------------------------------------------- all

function SceneOpen(const Fault: TFault; out Scene: TScene; out Item: TInstruction): Boolean;
var
  Index: Cardinal;
  Code: array[0..MostLength - 1] of Byte;
  Beyond: TUnwind;
  Rule: TUnwindRule;
begin
  Scene := Default(TScene);
  Scene.IsInner := True;
  Scene.Pc := Fault.Pc;
  UnwindAt(Fault, Scene.Walk);
  for Index := 0 to GeneralRegisters - 1 do
    SetValue(Scene, Index, Fault.Registers[Index]);
  SetValue(Scene, StackRegister, Fault.Sp);
  Result := OsRead(Fault.Pc, @Code, SizeOf(Code)) and InstructionAt(NativeUInt(@Code), Item);
  if not Result then
    Exit;
  Beyond := Scene.Walk;
  Rule := Default(TUnwindRule);
  UnwindInterrupted(Beyond, Rule);
  FindCode(Scene, Rule);
end;

// Returns the value of a register at the fault; 0 of none, and of one that is not known.
function ValueAt(const Scene: TScene; Number: Cardinal): NativeUInt;
begin
  Result := 0;
  if Scene.Known and RegisterBit(Number) <> 0 then
    Result := Scene.Values[Number];
end;

function SceneOperand(const Scene: TScene; const Item: TInstruction): NativeUInt;
begin
  Result := ValueAt(Scene, Item.Operand.Base)
    + ValueAt(Scene, Item.Operand.Index) shl Item.Operand.Shift + NativeUInt(Item.Operand.Offset);
end;

function SceneFindAccess(const Scene: TScene; const Item: TInstruction; Address: NativeUInt;
  out First: NativeUInt): Boolean;
begin
  First := SceneOperand(Scene, Item);
  Result := Item.HasOperand and (NativeUInt(Address - First) < Item.Access);
end;

function SceneFindOrigin(const Scene: TScene; Number: Cardinal; out Address: NativeUInt): Boolean;
var
  Here: TScene;
  Item: TInstruction;
  Place, Limit: NativeUInt;
  Next: Byte;
  Step: Cardinal;
begin
  Result := False;
  Here := Scene;
  Limit := Here.Pc;
  Next := Number;
  for Step := 1 to MostSteps do
  begin
    if (Next >= NoRegister)
      or not FindWrite(Here, Here.Start, Limit, RegisterBit(Next), Place) then
      Exit;
    if Place = 0 then
    begin
      if not SceneLeave(Here) then
        Exit;
      Limit := Here.Pc;
      Continue;
    end;
    if not IsOnlyWay(Here, Place) or not InstructionAt(Place, Item) then
      Exit;
    Limit := Place;
    if (Item.Kind = ikAddress) and (Item.Operand.Index = NoRegister) then
      Next := Item.Operand.Base
    else if Item.Kind <> ikLoad then
      Exit
    else
    begin
      if not FindAddress(Here, Item.Operand, Place, MostLoads, Address) then
        Exit;
      if (Address < Here.Walk.Sp) or (Address >= Here.Walk.Limit) then
        Exit(True);
      if not FindStore(Here, Item.Operand, Place, Limit, Next) then
        Exit;
    end;
  end;
end;

end.
