/// The records of the run-time library by which contents are recognized: strings, arrays, classes,
/// records of New.
//
// Owns:       nothing.
// Invariants: one layout for each compiler and version; the code of other units fits all of them.
//             A class is known by the address of its record, which has words before that address
//             in Delphi, after it in Free Pascal.
// Callers:    any thread.
// Source:     Free Pascal 3.2.2, 3.2.3 and 3.3.1, rtl/inc: astrings.inc, ustrings.inc, dynarr.inc,
//             objpash.inc, objpas.inc (UnitName), rttidecl.inc, rtti.inc (fpc_Initialize). Delphi:
//             docwiki, Internal Data Formats; API:System.
unit LaneMM.RtlRecords;

{$I ../LaneMM.inc}

interface

const
  {$ifdef FPC}
  /// Words of a class record that are read: offset of the first, and of the end.
  ClassFirst = vmtInstanceSize;
  ClassLimit = vmtFreeInstance + SizeOf(Pointer);
  /// Offset of the first virtual method in a class record.
  ClassMethods = vmtMethodStart;
  /// The kind of classes in type information.
  ClassTypeKind = 15;
  /// Bytes after the name in the type information of a class, up to the name of its unit: class,
  /// parent, number of properties; from 3.3 on attributes first.
  ClassUnitName = {$if FPC_FULLVERSION < 30300} 2 {$else} 3 {$ifend} * SizeOf(Pointer) + 2;
  /// Most bytes of an object of the class TObject: the class; from 3.3 on, a monitor.
  RootSize = {$if FPC_FULLVERSION < 30300} 1 {$else} 2 {$ifend} * SizeOf(Pointer);
  /// The length of a dynamic array less the number in its header.
  ArrayExtra = 1;
  /// Bytes after the name in the type information of a record, up to TRecordTypeHead.
  RecordTypeFirst = {$if FPC_FULLVERSION < 30300} 0 {$else} SizeOf(Pointer) {$ifend};
  /// The types of an object's managed fields are known.
  HasFieldTypes = True;
  /// TFPHashList begins with the address of its items; from 3.2.3 on of a table before them.
  HashListHasItems = {$if FPC_FULLVERSION < 30203} True {$else} False {$ifend};
  /// GetMem and FreeMem are inline: the program calls the memory manager itself.
  HasInlineCalls = {$if FPC_FULLVERSION < 30300} False {$else} True {$ifend};
  {$else}
  ClassFirst = vmtSelfPtr;
  ClassLimit = vmtDestroy + SizeOf(Pointer);
  ClassMethods = 0;
  ClassTypeKind = 7;
  ClassUnitName = 2 * SizeOf(Pointer) + 2;
  RootSize = 2 * SizeOf(Pointer);
  ArrayExtra = 0;
  RecordTypeFirst = 0;
  HasFieldTypes = False;
  HashListHasItems = False;
  HasInlineCalls = False;
  {$endif}
  /// The number, in instructions, of the register that a routine takes its second parameter in.
  SecondParameter = {$if defined(CPUAARCH64) or defined(CPUARM64)} 1
    {$elseif defined(MSWINDOWS) or not defined(LANEMM_X64)} 2 {$else} 6 {$ifend};

type
  /// What precedes the first character of a string.
  TStringHead = record
    {$if not defined(FPC) and defined(CPU64)} Padding: Integer; {$ifend}
    CodePage: Word;                //< of its characters
    ElementSize: Word;             //< bytes of a character
    References: {$ifdef FPC} {$if FPC_FULLVERSION < 30300} NativeInt {$else} Integer {$ifend}
      {$else} Integer {$endif};    //< negative: a constant
    Length: {$ifdef FPC} NativeInt {$else} Integer {$endif}; //< in characters
  end;

  /// What precedes the first element of a dynamic array.
  TArrayHead = record
    {$if not defined(FPC) and defined(CPU64)} Padding: Integer; {$ifend}
    References: {$ifdef FPC} NativeInt {$else} Integer {$endif}; //< of the array
    Size: NativeInt; //< its length less ArrayExtra
  end;
  PArrayHead = ^TArrayHead;

  /// The type information of a record that New initializes: what is read of it. Free Pascal's;
  /// Delphi's New is not recognized.
  TRecordTypeHead = {$ifndef FPC_REQUIRES_PROPER_ALIGNMENT} packed {$endif} record
    Terminator: Pointer;     //< nil; type information for another use has another word here
    Size: Integer;           //< bytes of the record
    FieldOperators: Pointer; //< of its fields; nil: none
    Operators: Pointer;      //< routines of the program that initialize and finalize it; nil: none
    Count: Integer;          //< managed fields, which follow
  end;
  /// A managed field of a record.
  TRecordTypeField = {$ifndef FPC_REQUIRES_PROPER_ALIGNMENT} packed {$endif} record
    TypeInfo: NativeUInt;    //< where the address of its type information stands
    Offset: NativeInt;       //< bytes from the start of the record
  end;

  /// The words of a class record that are read.
  TClassHead = array[0..(ClassLimit - ClassFirst) div SizeOf(Pointer) - 1] of NativeUInt;

/// Returns the word of a class record at Offset, one of the constants vmt... of the System unit.
function ClassWord(const Head: TClassHead; Offset: NativeInt): NativeUInt; inline;
/// Returns the bytes of an object of the class.
function ClassObjectSize(const Head: TClassHead): NativeUInt;
/// Returns True if a class record says of itself that it is one.
function ClassIsMarked(const Head: TClassHead; ClassId: NativeUInt): Boolean;
/// Returns the offset of an interface in the object; 0 if it is not in the object itself.
function InterfaceOffset(const Entry: TInterfaceEntry): NativeUInt;
/// Returns the routine that initializes the managed fields of a record, with the record and its
/// type information; nil where it is unknown.
function RecordInitializer: Pointer;

implementation

function ClassWord(const Head: TClassHead; Offset: NativeInt): NativeUInt;
begin
  Result := Head[(Offset - ClassFirst) div SizeOf(Pointer)];
end;

{$ifdef FPC}
// Nil in the C library, which has no run-time library.
procedure InitializeCall;
  {$ifdef UNIX} weakexternal {$else} external {$endif} name 'FPC_INITIALIZE';
{$endif}

function RecordInitializer: Pointer;
begin
  Result := {$ifdef FPC} @InitializeCall {$else} nil {$endif};
end;

function ClassObjectSize(const Head: TClassHead): NativeUInt;
begin
  Result := {$ifdef FPC} NativeUInt {$else} Cardinal {$endif} (ClassWord(Head, vmtInstanceSize));
end;

// Free Pascal: the second word is the size, negated. Delphi: the first is the address of the class.
function ClassIsMarked(const Head: TClassHead; ClassId: NativeUInt): Boolean;
begin
  Result := {$ifdef FPC} NativeUInt(Head[0] + Head[1]) = 0 {$else} Head[0] = ClassId {$endif};
end;

function InterfaceOffset(const Entry: TInterfaceEntry): NativeUInt;
begin
  {$ifdef FPC}
  Result := 0;
  if Entry.IType = etStandard then
    Result := Entry.IOffset;
  {$else}
  Result := Cardinal(Entry.IOffset);
  {$endif}
end;

end.
