/// The types of records that New allocated, and the blocks that their fields still refer to.
//
// Owns:       nothing.
// How:        after the call of New the compiler passes the block and its type information to the
//             run-time library, which clears the managed fields: the instructions up to that call
//             have the type. Finalize and Dispose clear these fields again.
// Invariants: what is not certain has no type, and no reference: another instruction, management
//             operators, variants, arrays. Type information is read through LaneMM.Modules.
// Callers:    the thread that frees the block.
// Source:     Free Pascal 3.2.2, compiler/pinline.pas, ngenutil.pas; see LaneMM.RtlRecords.
unit LaneMM.TypedBlocks;

{$I ../LaneMM.inc}

interface

/// Returns the type information of the record that was allocated by the call of New which returns
/// to Return; 0 for a type without managed fields, and where that is unknown.
function TypeOfNew(Return: NativeUInt): NativeUInt;
/// Returns whether a managed field of the record at Data, Size bytes of this type, refers to a heap
/// block in use. False for type information 0.
function TypeHasReferences(TypeInfo, Data, Size: NativeUInt): Boolean;

implementation

uses
  LaneMM.Hooks, LaneMM.Walk, LaneMM.CodeRanges, LaneMM.CallCode, LaneMM.Instructions,
  LaneMM.Modules, LaneMM.RtlRecords, LaneMM.Contents;

const
  // Instructions from the return of New to the call that initializes the block.
  MostInstructions = 16;
  // More fields, and deeper records, are not read.
  MostFields = 256;
  MostDepth = 4;

type
  // The kinds of types that are read, by their numbers in type information.
  TTypeKinds = set of Byte;

const
  // Strings, interfaces, dynamic arrays: one pointer, nil when empty.
  References: TTypeKinds = [9, 10, 14, 21, 24];
  // Record, object.
  Records: TTypeKinds = [13, 16];

// ---------------------------------------------------------------------------- code

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
// Returns False where that is not certain.
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

function TypeHasReferences(TypeInfo, Data, Size: NativeUInt): Boolean;
begin
  Result := (TypeInfo <> 0) and RecordHasReferences(TypeInfo, Data, Size, 0);
end;

end.
