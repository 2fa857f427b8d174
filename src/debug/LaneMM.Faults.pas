/// Reports faults of the processor that reveal a use of invalid memory.
//
// Owns:       Hooks.Fault, which LaneMM.Os calls before the signal handler of the program, which
//             runs in any case.
// Invariants: reports a fault only if debug mode has a part in it: an access to a guard page, or an
//             address made of the class of a freed object or of a fill pattern of debug mode. Only
//             the registers that the instruction makes its address of count, their sum, and where a
//             call goes, not registers that hold such a word by chance. A block is named where the
//             word was loaded from it, see LaneMM.FaultOrigin; else as a possible one, where just
//             one is in sight.
// Callers:    FaultsWatch: any thread, often: the run-time library takes the signals for itself
//             when SysUtils starts. Hooks.Fault: the thread that faulted, inside a signal handler.
unit LaneMM.Faults;

{$I ../LaneMM.inc}

interface

/// Installs the handler before the one of the program, unless it is there.
procedure FaultsWatch;

implementation

uses
  LaneMM.Hooks, LaneMM.Os, LaneMM.OsSignals, LaneMM.SettingsState, LaneMM.ReportState,
  LaneMM.ReportStack, LaneMM.Messages, LaneMM.Unwind, LaneMM.DebugState, LaneMM.DebugCheck,
  LaneMM.DebugRecords, LaneMM.DebugReport, LaneMM.DebugSpans, LaneMM.FreedObjects,
  LaneMM.GuardPages, LaneMM.Instructions, LaneMM.A64Code, LaneMM.CallCode, LaneMM.Contents,
  LaneMM.FaultOrigin, LaneMM.Patterns;

type
  PFault = ^TFault;

const
  // Words at the top of the stack that are searched for the address of a freed block.
  MostWords = 64;

// Returns True if Word, used as an address, was made of the pattern of blocks in this state.
function IsPattern(Word: NativeUInt; State: TDebugState): Boolean;
begin
  if State = dsInUse then
    Result := PatternIsNear(Word, Debug.NewFill)
  else
    Result := PatternIsNear(Word, Debug.FreeFill);
end;

// Returns True if P lies in the block and the word there is still the pattern, or 0: the run-time
// library clears the reference to a string before it accesses the string.
function HoldsPattern(Block: PDebugBlock; P: Pointer; State: TDebugState): Boolean;
var
  Offset, Word: NativeUInt;
begin
  Offset := NativeUInt(P) - NativeUInt(DebugBlockData(Block));
  Word := 0;
  Result := (Offset < Block^.Size) and (NativeUInt(P) mod SizeOf(Pointer) = 0)
    and OsRead(NativeUInt(P), @Word, SizeOf(Word)) and ((Word = 0) or IsPattern(Word, State));
end;

// Returns the block in this state that P points into, at a word of the pattern unless it was
// freed; nil for none.
function BlockAt(P: NativeUInt; State: TDebugState): PDebugBlock;
begin
  Result := DebugBlockOf(Pointer(P));
  if (Result = nil) or (DebugStateOf(Result^.State) <> State)
    or (NativeUInt(P - NativeUInt(DebugBlockData(Result))) >= Result^.Size)
    or (State = dsInUse) and not HoldsPattern(Result, Pointer(P), State) then
    Result := nil;
end;

// Adds a block that may be the one; IsSeveral is set when there are two.
procedure AddLikely(var Block: PDebugBlock; var IsSeveral: Boolean; Other: PDebugBlock);
begin
  if Other = nil then
    Exit;
  IsSeveral := IsSeveral or (Block <> nil) and (Block <> Other);
  Block := Other;
end;

// Returns the only block that a register points into, or that a word at the top of the stack points
// at; nil for none or several.
function LikelyBlock(const Fault: TFault; State: TDebugState): PDebugBlock;
var
  Index: Cardinal;
  Limit, Word: NativeUInt;
  Block: PDebugBlock;
  IsSeveral: Boolean;
begin
  Result := nil;
  IsSeveral := False;
  for Index := 0 to High(Fault.Registers) do
    AddLikely(Result, IsSeveral, BlockAt(Fault.Registers[Index], State));
  Limit := StackEnd(Fault.Sp);
  for Index := 0 to MostWords - 1 do
  begin
    if NativeUInt(Limit - Fault.Sp) < NativeUInt(Index + 1) * SizeOf(Word) then
      Break;
    Word := PNativeUInt(Fault.Sp)[Index];
    Block := BlockAt(Word, State);
    if (Block <> nil) and (NativeUInt(DebugBlockData(Block)) = Word) then
      AddLikely(Result, IsSeveral, Block);
  end;
  if IsSeveral then
    Result := nil;
end;

// Returns the block in this state that the register was loaded from; nil where that is unknown.
function OriginBlock(const Scene: TScene; Number: Cardinal; State: TDebugState): PDebugBlock;
var
  Address: NativeUInt;
begin
  Result := nil;
  if not SceneFindOrigin(Scene, Number, Address) then
    Exit;
  Result := BlockAt(Address, State);
  if (Result <> nil) and not HoldsPattern(Result, Pointer(Address), State) then
    Result := nil;
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

// Notes what an instruction that reads the class of a freed object does it for: the next one with
// the class as base accesses a method, or something else of the class.
procedure NoteClass(const Scene: TScene; const Item: TInstruction; var Finding: TFinding);
const
  MostItems = 8;
var
  Pc: NativeUInt;
  Next: TInstruction;
  Count: Cardinal;
begin
  if (Finding.State <> dsFreed) or (Finding.Address <> Finding.Data) or (Item.Kind <> ikLoad)
    or not ClassIsValid(Finding.FirstWord) then
    Exit;
  Finding.Note := noClassRead;
  Pc := Scene.Pc + Item.Length;
  for Count := 1 to MostItems do
  begin
    if (Pc >= Scene.Limit) or not InstructionAt(Pc, Next) then
      Exit;
    if Next.HasOperand and (Next.Operand.Base = Item.Target) then
    begin
      if FreedMethodFind(NativeUInt(Next.Operand.Offset), Finding) then
        Finding.Note := noMethodCalled;
      Exit;
    end;
    if (Next.Writes and RegisterBit(Item.Target) <> 0) or (Next.Kind >= ikCall) then
      Exit;
    Inc(Pc, Next.Length);
  end;
end;

// Reports an access that the system refused: with all bytes of the instruction, if they are known.
procedure TellRefused(const Fault: TFault; Block: PDebugBlock);
const
  Accesses: array[Boolean] of TFaultAccess = (faWrite, faRead);
var
  Finding: TFinding;
  Scene: TScene;
  Item: TInstruction;
  First: NativeUInt;
begin
  FindingFrom(Finding, evGuard, GuardMessage(Fault, Block), Block);
  Finding.Address := Fault.Address;
  Finding.Access := Fault.Access;
  if SceneOpen(Fault, Scene, Item) and Item.HasOperand then
  begin
    if A64IsHere then
      Finding.Access := Accesses[Item.IsRead];
    if SceneFindAccess(Scene, Item, Fault.Address, First) then
    begin
      Finding.Address := First;
      Finding.AccessSize := Item.Access;
      NoteClass(Scene, Item, Finding);
    end;
  end;
  FindingReportFault(Finding, Fault);
end;

// Reports the use of a pattern as an address. Block, if that is known, is the one that it was read
// from.
procedure TellPattern(const Fault: TFault; State: TDebugState; Block: PDebugBlock);
const
  Messages: array[Boolean] of TMessage = (msFreedUsed, msNewUsed);
var
  Finding: TFinding;
  Note: TNote;
begin
  Note := noNone;
  if Block = nil then
  begin
    Block := LikelyBlock(Fault, State);
    if Block <> nil then
      Note := noLikely;
  end;
  if (Block = nil) and (State = dsFreed) and (Settings.Values[opGuard] = 0) then
    Note := noUnknown;
  FindingFrom(Finding, evUninitialised, Messages[State = dsInUse], Block);
  Finding.Note := Note;
  Finding.Address := Fault.Address;
  FindingReportFault(Finding, Fault);
end;

// Explains a fault by a register that its address was made of, and that held the pattern of blocks
// in this state.
function ExplainRegister(const Fault: TFault; const Scene: TScene; Registers: TRegisterSet;
  State: TDebugState): Boolean;
var
  Number: Cardinal;
begin
  for Number := 0 to NoRegister - 1 do
    if (Registers and RegisterBit(Number) <> 0) and IsPattern(Scene.Values[Number], State) then
    begin
      TellPattern(Fault, State, OriginBlock(Scene, Number, State));
      Exit(True);
    end;
  Result := False;
end;

// Explains a call or jump to the pattern, whose word lies in memory.
function ExplainTarget(const Fault: TFault; const Scene: TScene; const Item: TInstruction;
  State: TDebugState): Boolean;
var
  Address, Target: NativeUInt;
begin
  Result := Item.HasOperand and (Item.Kind in [ikCall, ikLeave]);
  if not Result then
    Exit;
  Address := SceneOperand(Scene, Item);
  Target := 0;
  Result := OsRead(Address, @Target, SizeOf(Target)) and IsPattern(Target, State);
  if Result then
    TellPattern(Fault, State, BlockAt(Address, State));
end;

// Explains an address that is near the pattern, and none of its registers: of a copy that counts
// both from the distance between them.
function ExplainSum(const Fault: TFault; const Scene: TScene; const Item: TInstruction;
  State: TDebugState): Boolean;
begin
  Result := Item.HasOperand and IsPattern(SceneOperand(Scene, Item), State);
  if Result then
    TellPattern(Fault, State, nil);
end;

// Explains a fault by what its address was made of.
procedure ExplainWords(const Fault: TFault; const Scene: TScene; const Item: TInstruction);
var
  State: TDebugState;
begin
  if FreedObjectExplain(Fault, @Scene.Values, Item.Parts) then
    Exit;
  for State in [dsInUse, dsFreed] do
    if ExplainRegister(Fault, Scene, Item.Parts, State)
      or ExplainTarget(Fault, Scene, Item, State) or ExplainSum(Fault, Scene, Item, State) then
      Exit;
end;

// Explains a fault at an address of code that is the pattern: the call that led there has ended. On
// AArch64 it left its place in the link register, and the register that it went through.
procedure ExplainCode(const Fault: TFault);
var
  State: TDebugState;
  Call: TFault;
  Scene: TScene;
  Item: TInstruction;
begin
  if A64IsHere then
  begin
    Call := Fault;
    Call.Pc := Fault.Registers[A64Link] - SizeOf(Cardinal);
    if SceneOpen(Call, Scene, Item) and (Item.Kind = ikCall) then
      ExplainWords(Call, Scene, Item);
    Exit;
  end;
  for State in [dsInUse, dsFreed] do
    if IsPattern(Fault.Pc, State) then
    begin
      TellPattern(Fault, State, nil);
      Exit;
    end;
end;

// Explains the TFault at Context.
procedure Explain(Context: Pointer);
var
  Fault: TFault;
  Place: TDebugPlace;
  Scene: TScene;
  Item: TInstruction;
begin
  Fault := PFault(Context)^;
  if DebugPlaceFind(Pointer(Fault.Address), Place) and (Place.Block <> nil)
    and (Place.HasPages or not DebugPlaceIsOpen(Place)) then
    TellRefused(Fault, Place.Block)
  else if SceneOpen(Fault, Scene, Item) then
    ExplainWords(Fault, Scene, Item)
  else
    ExplainCode(Fault);
end;

// The handler may have an alternate stack.
procedure ExplainApart(const Fault: TFault);
begin
  ReportRun(Explain, @Fault);
end;

procedure FaultsWatch;
begin
  Hooks.Fault := ExplainApart;
  OsFaultWatch;
end;

end.
