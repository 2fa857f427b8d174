/// Detects calls of virtual methods and of interface methods of freed objects.
//
// Owns:       Debug.ObjectTrap, InterfaceTrap; the TTraps that both point into.
// How:        the first word of a freed object, its class, is replaced by the address of a trap
//             table, and so is the word of each of its interfaces. Every method of these tables
//             reports the call and raises run-time error 204.
// Invariants: only a block that LaneMM.Contents takes for an object is changed, and only after the
//             program has freed it. Class records are read through LaneMM.Modules.
// Callers:    FreedObjectsStart: one thread, before the first debug block. FreedObjectTrap: the
//             thread that frees the block.
// Source:     FPC 3.2.2, rtl/inc/objpash.inc: TVmt, TInterfaceEntry.
unit LaneMM.FreedObjects;

{$I ../LaneMM.inc}

interface

/// Makes the trap tables; without memory there are no traps.
procedure FreedObjectsStart;
/// Sets the traps in a freed debug block if it was an object. ClassId is the first word that it
/// had; the contents are already filled with the pattern of free blocks.
procedure FreedObjectTrap(Data: PByte; Size, ClassId: NativeUInt);

implementation

uses
  LaneMM.Layout, LaneMM.Atomic, LaneMM.Os, LaneMM.Errors, LaneMM.ReportState, LaneMM.Messages,
  LaneMM.Modules, LaneMM.Unwind, LaneMM.DebugState, LaneMM.Contents, LaneMM.DebugCheck,
  LaneMM.DebugReport, LaneMM.DebugSpans;

const
  // Indexes of words of a class record, MethodWord that of the first virtual method, and the
  // lengths of the trap tables.
  ParentWord = 2;
  NameWord = 3;
  InterfacesWord = 10;
  MethodWord = 12;
  ClassWords = 256;
  InterfaceWords = 128;
  // Larger counts in a class record are taken for corrupt.
  MostAncestors = 64;
  MostInterfaces = 256;
  // Length of the table of known classes, by a part of their address; the low bits of an entry.
  ClassCount = 1024;
  HasNone = 1;
  HasInterfaces = 2;
  KnownMask = 3;

type
  TTraps = record
    ObjectTable: array[0..ClassWords - 1] of NativeUInt;
    InterfaceTable: array[0..InterfaceWords - 1] of NativeUInt;
    Seen: array[0..ClassCount - 1] of TAtomicWord;
  end;
  PTraps = ^TTraps;

const
  FreedName: ShortString = 'TFreedObject';

// ---------------------------------------------------------------------------- calls

// Reports the call that returns to Return, and raises run-time error 204.
procedure ReportCall(Instance: Pointer; Message: TMessage; Return: NativeUInt);
var
  Finding: TFinding;
  Block: PDebugBlock;
  Offset: NativeInt;
begin
  Block := DebugBlockOf(Instance);
  if Block <> nil then
    FindingFrom(Finding, Message, Block)
  else
  begin
    Finding := Default(TFinding);
    Finding.Message := Message;
  end;
  Finding.Kind := evFreedCall;
  Finding.Address := NativeUInt(Instance);
  Offset := VirtualCallOffset(Return);
  Finding.Slot := -1;
  if Offset >= 0 then
    Finding.Slot := Offset div SizeOf(Pointer);
  if (Message = msFreedMethod) and (Offset >= 0) then
  begin
    Dec(Finding.Slot, MethodWord);
    if ClassIsValid(Finding.FirstWord) then
      ModulesRead(Finding.FirstWord + NativeUInt(Offset), @Finding.Method, SizeOf(Finding.Method));
  end;
  FindingReport(Finding);
  ErrorInvalidPointer;
end;

procedure FreedMethodCalled(Instance: Pointer);
begin
  ReportCall(Instance, msFreedMethod, NativeUInt(get_caller_addr(get_frame)));
end;

procedure FreedInterfaceCalled(Instance: Pointer); stdcall;
begin
  ReportCall(Instance, msFreedInterface, NativeUInt(get_caller_addr(get_frame)));
end;

// ---------------------------------------------------------------------------- traps

// Returns HasNone or HasInterfaces for a known class, 0 for any other word.
function Known(ClassId: NativeUInt): NativeUInt;
var
  Entry: NativeUInt;
begin
  // Any order: the word is complete by itself.
  Entry := LoadAcquire(PTraps(Debug.ObjectTrap)^.Seen[ClassId shr 4 mod ClassCount]);
  if Entry and not KnownMask = ClassId then
    Result := Entry and KnownMask
  else
    Result := 0;
end;

// Sets the traps for the interfaces of one class, without its ancestors.
procedure SetOfClass(Data: PByte; Size, ClassId: NativeUInt; var Found: NativeUInt);
var
  Table, Count, Index: NativeUInt;
  Entry: TInterfaceEntry;
begin
  Table := 0;
  Count := 0;
  if not ModulesRead(ClassId + InterfacesWord * SizeOf(Pointer), @Table, SizeOf(Table))
    or (Table = 0) or not ModulesRead(Table, @Count, SizeOf(Count)) or (Count > MostInterfaces) then
    Exit;
  Inc(Table, SizeOf(Count));
  for Index := 1 to Count do
  begin
    if not ModulesRead(Table, @Entry, SizeOf(Entry)) then
      Exit;
    Inc(Table, SizeOf(Entry));
    if (Entry.IType <> etStandard) or (Entry.IOffset > NativeUInt(Size - SizeOf(Pointer)))
      or (Entry.IOffset mod SizeOf(Pointer) <> 0) then
      Continue;
    PNativeUInt(Data + Entry.IOffset)^ := Debug.InterfaceTrap;
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
    if not ModulesRead(ClassId + ParentWord * SizeOf(Pointer), @Parent, SizeOf(Parent))
      or (Parent = 0) or not ModulesRead(Parent, @ClassId, SizeOf(ClassId)) then
      Exit;
  end;
end;

procedure FreedObjectTrap(Data: PByte; Size, ClassId: NativeUInt);
var
  Kind: NativeUInt;
begin
  if (Debug.ObjectTrap = 0) or (Size < SizeOf(Pointer)) or (ClassId and KnownMask <> 0) then
    Exit;
  Kind := Known(ClassId);
  if (Kind = 0) and not ClassIsValid(ClassId) or (ClassSize(ClassId) > Size) then
    Exit;
  if Kind <> HasNone then
  begin
    Kind := SetInterfaces(Data, Size, ClassId);
    // Any order, as in Known.
    StoreRelease(PTraps(Debug.ObjectTrap)^.Seen[ClassId shr 4 mod ClassCount],
      ClassId or Kind);
  end;
  PNativeUInt(Data)^ := Debug.ObjectTrap;
end;

// ---------------------------------------------------------------------------- start

procedure FillTables(Traps: PTraps);
var
  Index: Cardinal;
begin
  // A class without ancestors whose objects are one word.
  Traps^.ObjectTable[0] := SizeOf(Pointer);
  Traps^.ObjectTable[1] := NativeUInt(-SizeOf(Pointer));
  Traps^.ObjectTable[NameWord] := NativeUInt(@FreedName);
  for Index := MethodWord to ClassWords - 1 do
    Traps^.ObjectTable[Index] := NativeUInt(@FreedMethodCalled);
  for Index := 0 to InterfaceWords - 1 do
    Traps^.InterfaceTable[Index] := NativeUInt(@FreedInterfaceCalled);
end;

procedure FreedObjectsStart;
var
  Traps: PTraps;
begin
  ModulesLook;
  Traps := OsTakePages(SizeOf(TTraps));
  if Traps = nil then
    Exit;
  FillTables(Traps);
  Debug.InterfaceTrap := NativeUInt(@Traps^.InterfaceTable);
  Debug.ObjectTrap := NativeUInt(@Traps^.ObjectTable);
end;

end.
