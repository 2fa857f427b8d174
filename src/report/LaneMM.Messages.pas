/// The messages of all reports, with named fields, replaceable at run time.
//
// Owns:       Report.Messages, the table of the messages that the program replaced.
// Invariants: a message has fields as `{class}`; a field without a value stays as it is written. A
//             replaced text is never freed: a thread may still read it. Texts are UTF-8.
// Callers:    any thread; a TFields belongs to one. MessageSet: one thread at a time.
unit LaneMM.Messages;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Text;

type
  /// The messages.
  TMessage = (
    msHead,              //< first line of each report
    msDoubleFree, msDoubleRealloc, msInvalidFree, msInvalidRealloc, msInvalidSize,
    msWriteBefore, msWriteAfter, msWriteAfterFree, msFreedMethod, msFreedInterface,
    msWrongSize, msNewUsed, msFreedUsed, msGuard, msBookkeeping,
    msBlock,             //< the record of a debug block
    msNormalBlock,       //< a block that was allocated while debug mode was off
    msClass, msGroup, msDamage, msMoreDamage,
    msIsInner, msIsStack, msIsModule, msIsMemory, msIsNowhere, msIsFree,
    msAllocStack, msFreeStack, msHereStack, msFoundStack, msNoStack,
    msLeaks,             //< total of the leaks
    msInUse,             //< total of the blocks in use
    msGrown,             //< growth between two snapshots
    msNothingGrown,
    msLeakGroup,         //< one group of leaks
    msLeakRetains, msLeakRetained, msLeakCycle, msLeakTexts, msLeakStack, msMoreLeaks,
    msLeakTotal,         //< total of an allocation group
    msLeaksSuppressed, msLeaksRunning, msLeaksLost,
    msNumber,            //< the allocation number of the setting `break`
    msMismatchFree, msMismatchDispose,
    msLogAllocated, msLogFreed, msLogLeft,
    msLimitSoft, msLimitHard,
    msReserve            //< the emergency reserve is in use
  );

  /// The named fields.
  TField = (fiAddress, fiBlock, fiSize, fiUsable, fiClass, fiNumber, fiThread, fiFreeThread,
    fiOffset, fiLength, fiCount, fiGroup, fiMethod, fiPath, fiGiven, fiProcess, fiRetainer,
    fiText);

  /// The values of the fields of a message.
  TFields = record
    Known: set of TField;                     //< fields that have a value
    Values: TText;                            //< all values, one after the other
    First: array[TField] of NativeUInt;       //< offset of the value in Values
    Limit: array[TField] of NativeUInt;       //< offset of its end
  end;

/// Makes an empty set of values. The caller owns it until FieldsClose.
procedure FieldsOpen(out Fields: TFields);
/// Frees the values.
procedure FieldsClose(var Fields: TFields);
/// Begins the value of Field: the text added to Fields.Values until FieldEnd.
procedure FieldStart(var Fields: TFields; Field: TField);
/// Ends the value of Field.
procedure FieldEnd(var Fields: TFields; Field: TField);
/// Sets a number that identifies a thing, without commas.
procedure FieldName(var Fields: TFields; Field: TField; Value: UInt64);
/// Sets a number, with commas.
procedure FieldNumber(var Fields: TFields; Field: TField; Value: UInt64);
/// Sets a number that may be negative, with commas.
procedure FieldSigned(var Fields: TFields; Field: TField; Value: Int64);
/// Sets an address.
procedure FieldAddress(var Fields: TFields; Field: TField; Value: NativeUInt);
/// Sets characters up to #0.
procedure FieldChars(var Fields: TFields; Field: TField; Value: PAnsiChar);

/// Adds the message with its fields replaced by their values, and a line end.
procedure MessageAdd(var Text: TText; Message: TMessage; const Fields: TFields);
/// Returns the name of a message, as MessageSet takes it.
function MessageName(Message: TMessage): PAnsiChar;
/// Replaces the text of the message Name; nil restores the original. Copies NewText, which ends
/// with #0. Returns False when no message has this name, or the table of 1 MB is full.
function MessageSet(Name, NewText: PAnsiChar): Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.Atomic, LaneMM.Os, LaneMM.ReportState;

const
  TableSize = 1 shl 20;
  FieldLimit = 16 * OsPageSize;

type
  TEntry = record
    Name, Text: PAnsiChar;
  end;
  // The replaced texts; 0 where the original holds. The texts follow the record.
  TTable = record
    Texts: array[TMessage] of TAtomicWord; //< shared  address of the text
    Used: NativeUInt;                      //< owner   bytes used after the record
  end;
  PTable = ^TTable;

const
  FieldNames: array[TField] of PAnsiChar = ('address', 'block', 'size', 'usable', 'class',
    'number', 'thread', 'freethread', 'offset', 'length', 'count', 'group', 'method',
    'path', 'given', 'process', 'holder', 'text');

  Entries: array[TMessage] of TEntry = (
    (Name: 'head'; Text: 'LaneMM: process {process}, thread {thread}:'),
    (Name: 'double-free'; Text: 'A block was freed that is free already.'),
    (Name: 'double-realloc'; Text: 'A block was resized that is free.'),
    (Name: 'invalid-free'; Text: '{address} was freed, which is no block.'),
    (Name: 'invalid-realloc'; Text: '{address} was resized, which is no block.'),
    (Name: 'invalid-size'; Text: 'The size of {address} was asked for, which is no block.'),
    (Name: 'write-before'; Text: 'Somebody has written before the start of a block.'),
    (Name: 'write-after'; Text: 'Somebody has written behind the end of a block.'),
    (Name: 'write-after-free'; Text: 'Somebody has written into a block after it was freed.'),
    (Name: 'freed-method'; Text: 'Virtual method {method} of a freed object was called.'),
    (Name: 'freed-interface'; Text:
      'Method {method} of an interface of a freed object was called.'),
    (Name: 'wrong-size'; Text: 'A block was freed with the size {given}; it has {size} bytes.'),
    (Name: 'new-used'; Text: 'The contents of a new block were used as an address'
      + ' before anything was written there.'),
    (Name: 'freed-used'; Text: 'The contents of a freed block were used as an address.'),
    (Name: 'guard'; Text: '{address} was used, which belongs to no block in use.'),
    (Name: 'bookkeeping'; Text: 'What was noted of the block at {address} has been written over.'),
    (Name: 'block'; Text:
      '  Block {block}: {size} bytes, allocation number {number}, thread {thread}.'),
    (Name: 'normal-block'; Text:
      '  Block {block}: {usable} usable bytes, got while debug mode was off.'),
    (Name: 'class'; Text: '  Class: {class}'),
    (Name: 'group'; Text: '  Group: {group}'),
    (Name: 'damage'; Text: '  Damage at offset {offset}, length {length}.'),
    (Name: 'more-damage'; Text: '  More damage behind that.'),
    (Name: 'is-inner'; Text: '  The address lies {offset} bytes behind the start of a block.'),
    (Name: 'is-stack'; Text: '  The address lies on the stack of this thread.'),
    (Name: 'is-module'; Text: '  The address lies in {path}.'),
    (Name: 'is-memory'; Text: '  The address lies in memory of another manager.'),
    (Name: 'is-nowhere'; Text: '  There is no memory at the address.'),
    (Name: 'is-free'; Text: '  The address lies in memory that is free.'),
    (Name: 'got-stack'; Text: '  It was got by thread {thread} at'),
    (Name: 'freed-stack'; Text: '  It was freed by thread {freethread} at'),
    (Name: 'here-stack'; Text: '  This happened at'),
    (Name: 'found-stack'; Text: '  It was found at'),
    (Name: 'no-stack'; Text: '      (this stack was not kept)'),
    (Name: 'leaks'; Text: '{count} blocks, {size} bytes, were not freed:'),
    (Name: 'in-use'; Text: '{count} blocks, {size} bytes, are in use:'),
    (Name: 'grown'; Text: '{count} blocks, {size} bytes, more are in use than before:'),
    (Name: 'nothing-grown'; Text: 'Nothing more is in use than before.'),
    (Name: 'leak-group'; Text: '  {count} x {class}, {size} bytes'),
    (Name: 'leak-holds'; Text: '      with all that is held by them: {size} bytes'),
    (Name: 'leak-held'; Text: '      {count} held by {holder}'),
    (Name: 'leak-cycle'; Text: '      {count} held by the {text}{holder}'),
    (Name: 'leak-texts'; Text: '      {text}'),
    (Name: 'leak-stack'; Text: '      allocation number {number}, thread {thread}, at'),
    (Name: 'more-leaks'; Text: '  and {count} blocks, {size} bytes, of other kinds'),
    (Name: 'leak-total'; Text: '  Group {group}: {count} blocks, {size} bytes'),
    (Name: 'leaks-expected'; Text: '  Expected, not counted: {count} blocks, {size} bytes'),
    (Name: 'leaks-running'; Text:
      '  Held by what has not ended, not counted: {count} blocks, {size} bytes'),
    (Name: 'leaks-lost'; Text: '  No room to look at {count} blocks'),
    (Name: 'number'; Text: 'Allocation number {number} was reached.'),
    (Name: 'mixed-free'; Text:
      'A block was got by New and freed by FreeMem: its fields are not finalized.'),
    (Name: 'mixed-dispose'; Text:
      'A block was got by GetMem and freed by Dispose: New had not prepared its fields.'),
    (Name: 'trace-got'; Text: 'A chosen block was got.'),
    (Name: 'trace-freed'; Text: 'A chosen block was freed.'),
    (Name: 'trace-left'; Text:
      '{count} more chosen allocations and frees were not written, after the first {size}.'),
    (Name: 'limit-soft'; Text:
      'The heap holds {usable} bytes, more than the soft limit of {size}.'),
    (Name: 'limit-hard'; Text:
      '{given} bytes were refused: the heap has come to its limit of {size} bytes.'),
    (Name: 'reserve'; Text: '{given} bytes were refused: there is no memory, but for a reserve of'
      + ' {size} bytes, which is in use from now on.')
  );

// ---------------------------------------------------------------------------- fields

procedure FieldsOpen(out Fields: TFields);
begin
  Fields := Default(TFields);
  TextOpen(Fields.Values, FieldLimit);
end;

procedure FieldsClose(var Fields: TFields);
begin
  TextClose(Fields.Values);
end;

procedure FieldStart(var Fields: TFields; Field: TField);
begin
  Fields.First[Field] := Fields.Values.Length;
end;

procedure FieldEnd(var Fields: TFields; Field: TField);
begin
  Fields.Limit[Field] := Fields.Values.Length;
  Include(Fields.Known, Field);
end;

procedure FieldName(var Fields: TFields; Field: TField; Value: UInt64);
begin
  FieldStart(Fields, Field);
  TextAddNumber(Fields.Values, Value);
  FieldEnd(Fields, Field);
end;

procedure FieldNumber(var Fields: TFields; Field: TField; Value: UInt64);
begin
  FieldStart(Fields, Field);
  TextAddGrouped(Fields.Values, Value);
  FieldEnd(Fields, Field);
end;

procedure FieldSigned(var Fields: TFields; Field: TField; Value: Int64);
begin
  FieldStart(Fields, Field);
  TextAddSigned(Fields.Values, Value);
  FieldEnd(Fields, Field);
end;

procedure FieldAddress(var Fields: TFields; Field: TField; Value: NativeUInt);
begin
  FieldStart(Fields, Field);
  TextAdd(Fields.Values, '$');
  TextAddHex(Fields.Values, Value, SizeOf(Value) * 2);
  FieldEnd(Fields, Field);
end;

procedure FieldChars(var Fields: TFields; Field: TField; Value: PAnsiChar);
begin
  FieldStart(Fields, Field);
  TextAddChars(Fields.Values, Value);
  FieldEnd(Fields, Field);
end;

// ---------------------------------------------------------------------------- texts

// Returns whether Part begins with Name, followed by Ending.
function StartsWith(Part, Name: PAnsiChar; Ending: AnsiChar): Boolean;
begin
  while (Name^ <> #0) and (Part^ = Name^) do
  begin
    Inc(Part);
    Inc(Name);
  end;
  Result := (Name^ = #0) and (Part^ = Ending);
end;

// Adds the value of the field named at Part, after a brace; returns whether it has one.
function AddField(var Text: TText; Part: PAnsiChar; const Fields: TFields): Boolean;
var
  Field: TField;
begin
  Result := False;
  for Field := Low(TField) to High(TField) do
    if StartsWith(Part, FieldNames[Field], '}') and (Field in Fields.Known) then
    begin
      TextAddSome(Text, Fields.Values.Start + Fields.First[Field],
        Fields.Limit[Field] - Fields.First[Field]);
      Exit(True);
    end;
end;

function MessageText(Message: TMessage): PAnsiChar;
var
  Table: PTable;
begin
  // Acquire: the text before its address. Pairs with MessageSet.
  Table := PTable(LoadAcquire(Report.Messages));
  Result := nil;
  if Table <> nil then
    Result := PAnsiChar(LoadAcquire(Table^.Texts[Message]));
  if Result = nil then
    Result := Entries[Message].Text;
end;

procedure MessageAdd(var Text: TText; Message: TMessage; const Fields: TFields);
var
  Part: PAnsiChar;
begin
  Part := MessageText(Message);
  while Part^ <> #0 do
  begin
    if (Part^ = '{') and AddField(Text, Part + 1, Fields) then
      while Part^ <> '}' do
        Inc(Part)
    else
      TextAddSome(Text, Part, 1);
    Inc(Part);
  end;
  TextAdd(Text, LineEnd);
end;

function MessageName(Message: TMessage): PAnsiChar;
begin
  Result := Entries[Message].Name;
end;

function OpenTable: PTable;
begin
  Result := PTable(LoadAcquire(Report.Messages));
  if Result <> nil then
    Exit;
  Result := OsTakePages(TableSize);
  if Result <> nil then
    StoreRelease(Report.Messages, NativeUInt(Result));
end;

// Returns a copy of the text; nil when the table is full.
function Kept(Table: PTable; NewText: PAnsiChar): PAnsiChar;
var
  Length: NativeUInt;
begin
  Length := IndexByte(NewText^, -1, 0) + 1;
  if Length > TableSize - SizeOf(TTable) - Table^.Used then
    Exit(nil);
  Result := PAnsiChar(Table) + SizeOf(TTable) + Table^.Used;
  Move(NewText^, Result^, Length);
  Inc(Table^.Used, Length);
end;

function MessageSet(Name, NewText: PAnsiChar): Boolean;
var
  Message: TMessage;
  Table: PTable;
  Copied: PAnsiChar;
begin
  Result := False;
  Table := OpenTable;
  if Table = nil then
    Exit;
  for Message := Low(TMessage) to High(TMessage) do
    if StartsWith(Name, Entries[Message].Name, #0) then
    begin
      Copied := nil;
      if NewText <> nil then
        Copied := Kept(Table, NewText);
      Result := (NewText = nil) or (Copied <> nil);
      if Result then
        // Release: the text before its address. Pairs with MessageText.
        StoreRelease(Table^.Texts[Message], NativeUInt(Copied));
      Exit;
    end;
end;

end.
