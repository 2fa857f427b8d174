/// Detects uses of the class of freed objects, and calls of their virtual and interface methods.
//
// Owns:       Debug.Traps, InterfaceTrap.
// How:        the first word of a freed object, its class, is replaced by an address of the
//             system's half of the address space, one for each object: a virtual call, `is`, `as`
//             and ClassName fault there, and the fault tells the object and what was read of its
//             class. The word of each interface is replaced by the address of a table whose
//             methods report the call and raise run-time error 204.
// Invariants: only a block that LaneMM.Contents takes for an object is changed, and only after the
//             program has freed it. Class records are read through LaneMM.Modules.
// Callers:    FreedObjectsStart: one thread, before the first debug block. FreedObjectTrap: the
//             thread that frees the block. FreedObjectExplain: the fault handler.
// Source:     LaneMM.RtlRecords.
unit LaneMM.FreedObjects;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Hooks, LaneMM.Instructions, LaneMM.DebugCheck;

/// Makes the trap tables; without memory there are no traps.
procedure FreedObjectsStart;
/// Sets the traps in a freed debug block if it was an object. ClassId is the first word that it
/// had; the contents are already filled with the pattern of free blocks.
procedure FreedObjectTrap(Data: PByte; Size, ClassId: NativeUInt);
/// Stores in Finding, about a freed object, the virtual method whose code lies at Offset in the
/// class; returns False, and changes nothing, if no method's does.
function FreedMethodFind(Offset: NativeUInt; var Finding: TFinding): Boolean;
/// Reports a fault that a use of the class of a freed object raised; Values are those of all
/// registers, of which the instruction made its address of Registers. Returns False for any other.
function FreedObjectExplain(const Fault: TFault; Values: PNativeUInt; Registers: TRegisterSet)
  : Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.Atomic, LaneMM.Os, LaneMM.Rtl, LaneMM.Errors, LaneMM.Arena,
  LaneMM.ReportState, LaneMM.Messages, LaneMM.CallCode, LaneMM.Modules, LaneMM.DebugState,
  LaneMM.RtlRecords, LaneMM.Contents, LaneMM.DebugRecords, LaneMM.DebugReport, LaneMM.DebugSpans;

const
  // Bytes of a class record that a use may read; length of the trap table of interfaces.
  MostOffset = 65536;
  InterfaceWords = 2048;
  // Larger counts in a class record are taken for corrupt.
  MostAncestors = 64;
  MostInterfaces = 256;
  // Length of the table of known first words, by a part of them; the low bits of an entry: a class
  // without interfaces, one with them, no class.
  WordCount = 1024;
  HasNone = 1;
  HasInterfaces = 2;
  IsOther = 3;
  KnownMask = 3;

type
  TTraps = record
    InterfaceTable: array[0..InterfaceWords - 1] of NativeUInt;
    Seen: array[0..WordCount - 1] of TAtomicWord;
  end;
  PTraps = ^TTraps;

// ---------------------------------------------------------------------------- calls

// Makes a finding about the freed object at or around Instance.
procedure Find(Instance: Pointer; Message: TMessage; out Finding: TFinding);
begin
  FindingFrom(Finding, evFreedCall, Message, DebugBlockOf(Instance));
  Finding.Address := NativeUInt(Instance);
  Finding.Slot := -1;
end;

procedure FreedInterfaceCalled(Instance: Pointer); stdcall;
var
  Finding: TFinding;
  Offset: NativeInt;
begin
  Find(Instance, msFreedInterface, Finding);
  Offset := VirtualCallOffset(PNativeUInt(get_frame)[1]);
  if Offset >= 0 then
    Finding.Slot := Offset div SizeOf(Pointer);
  FindingReport(Finding);
  ErrorInvalidPointer;
end;

// Returns the freed object whose class is in one of the registers, and which the fault accessed at
// Offset; nil for none.
function FreedObjectIn(const Fault: TFault; Values: PNativeUInt; Registers: TRegisterSet;
  out Offset: NativeUInt): Pointer;
var
  Number: Cardinal;
  Block: PDebugBlock;
begin
  for Number := 0 to NoRegister - 1 do
  begin
    Offset := Fault.Address - Values[Number];
    if (Registers and RegisterBit(Number) = 0) or (Offset >= MostOffset)
      or (Values[Number] and FreedClassBase <> FreedClassBase) then
      Continue;
    Result := Pointer(Values[Number] - FreedClassBase);
    Block := DebugBlockOf(Result);
    if (Block <> nil) and (DebugBlockData(Block) = Result)
      and (DebugStateOf(LoadAcquire(Block^.State)) = dsFreed) then
      Exit;
  end;
  Result := nil;
end;

function FreedMethodFind(Offset: NativeUInt; var Finding: TFinding): Boolean;
begin
  Result := (Offset >= ClassMethods) and (Offset < MostOffset);
  if not Result then
    Exit;
  Finding.Slot := NativeUInt(Offset - ClassMethods) div SizeOf(Pointer);
  if ClassIsValid(Finding.FirstWord) then
    ModulesRead(Finding.FirstWord + Offset, @Finding.Method, SizeOf(Finding.Method));
end;

function FreedObjectExplain(const Fault: TFault; Values: PNativeUInt; Registers: TRegisterSet)
  : Boolean;
var
  Instance: Pointer;
  Offset: NativeUInt;
  Finding: TFinding;
begin
  Instance := nil;
  Offset := 0;
  if FreedClassBase <> 0 then
    Instance := FreedObjectIn(Fault, Values, Registers, Offset);
  Result := Instance <> nil;
  if not Result then
    Exit;
  Find(Instance, msFreedClass, Finding);
  if FreedMethodFind(Offset, Finding) then
    Finding.Message := msFreedMethod;
  FindingReportFault(Finding, Fault);
end;

// ---------------------------------------------------------------------------- traps

// Returns HasNone, HasInterfaces or IsOther for a known word, 0 for any other.
function Known(ClassId: NativeUInt): NativeUInt;
var
  Entry: NativeUInt;
begin
  // Any order: the word is complete by itself.
  Entry := LoadAcquire(PTraps(Debug.Traps)^.Seen[ClassId shr 4 mod WordCount]);
  if Entry and not KnownMask = ClassId then
    Result := Entry and KnownMask
  else
    Result := 0;
end;

procedure Remember(ClassId, Kind: NativeUInt);
begin
  // Any order, as in Known.
  StoreRelease(PTraps(Debug.Traps)^.Seen[ClassId shr 4 mod WordCount], ClassId or Kind);
end;

// Returns True if a word that is not known is the address of a class record. Of other words those
// that point to data of a module are remembered: programs have few, and many blocks that begin with
// them.
function IsClass(ClassId: NativeUInt): Boolean;
begin
  Result := (ArenaSpan(Pointer(ClassId)) = nil)
    and ModulesHaveData(ClassId + NativeUInt(ClassFirst), SizeOf(Pointer));
  if not Result then
    Exit;
  Result := ClassIsValid(ClassId);
  if not Result then
    Remember(ClassId, IsOther);
end;

// Sets the traps for the interfaces of one class, without its ancestors.
procedure SetOfClass(Data: PByte; Size, ClassId: NativeUInt; var Found: NativeUInt);
var
  Table, Index, Offset: NativeUInt;
  Count: Cardinal;
  Entry: TInterfaceEntry;
begin
  Table := 0;
  Count := 0;
  if not ModulesRead(ClassId + NativeUInt(vmtIntfTable), @Table, SizeOf(Table))
    or (Table = 0) or not ModulesRead(Table, @Count, SizeOf(Count)) or (Count > MostInterfaces) then
    Exit;
  Inc(Table, SizeOf(Pointer));
  for Index := 1 to Count do
  begin
    if not ModulesRead(Table, @Entry, SizeOf(Entry)) then
      Exit;
    Inc(Table, SizeOf(Entry));
    Offset := InterfaceOffset(Entry);
    if (Offset = 0) or (Offset > NativeUInt(Size - SizeOf(Pointer)))
      or (Offset mod SizeOf(Pointer) <> 0) then
      Continue;
    PNativeUInt(Data + Offset)^ := Debug.InterfaceTrap;
    Found := HasInterfaces;
  end;
end;

// Sets the traps for the interfaces of a class and its ancestors; returns HasNone or HasInterfaces.
function SetInterfaces(Data: PByte; Size, ClassId: NativeUInt): NativeUInt;
var
  Ancestors: Cardinal;
  Parent: NativeUInt;
begin
  Result := HasNone;
  for Ancestors := 1 to MostAncestors do
  begin
    SetOfClass(Data, Size, ClassId, Result);
    Parent := 0;
    if not ModulesRead(ClassId + NativeUInt(vmtParent), @Parent, SizeOf(Parent))
      or (Parent = 0) or not ModulesRead(Parent, @ClassId, SizeOf(ClassId)) then
      Exit;
  end;
end;

procedure FreedObjectTrap(Data: PByte; Size, ClassId: NativeUInt);
var
  Kind: NativeUInt;
begin
  if (Debug.Traps = nil) or (Size < SizeOf(Pointer))
    or (ClassId and (SizeOf(Pointer) - 1) <> 0) then
    Exit;
  Kind := Known(ClassId);
  if Kind = IsOther then
    Exit;
  if Kind <> HasNone then
  begin
    if (Kind = 0) and not IsClass(ClassId) or (ClassSize(ClassId) > Size) then
      Exit;
    Remember(ClassId, SetInterfaces(Data, Size, ClassId));
  end;
  if FreedClassBase <> 0 then
    PNativeUInt(Data)^ := FreedClassBase + NativeUInt(Data);
end;

// ---------------------------------------------------------------------------- start

procedure FreedObjectsStart;
var
  Traps: PTraps;
  Index: Cardinal;
begin
  ModulesLook;
  Traps := OsTakePages(SizeOf(TTraps));
  if Traps = nil then
    Exit;
  for Index := 0 to InterfaceWords - 1 do
    Traps^.InterfaceTable[Index] := NativeUInt(@FreedInterfaceCalled);
  Traps^.Seen[0] := IsOther; // nil
  Debug.InterfaceTrap := NativeUInt(@Traps^.InterfaceTable);
  Debug.Traps := Traps;
end;

end.
