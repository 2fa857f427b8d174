/// The messages of all reports, with named fields, replaceable at run time.
//
// Owns:       Report.Messages, the table of the messages that the program replaced.
// Invariants: a message has fields as `{class}`; a field without a value stays as it is written.
//             Sizes and `{blocks}` include the noun: `1 block`, `64 bytes`. A replaced text is
//             never freed: a thread may still read it. Texts are UTF-8.
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
    msDoubleFree, msDoubleRealloc, msInvalidFree, msInvalidRealloc, msInvalidSize, msFreedSize,
    msWriteBefore, msWriteAfter, msWriteAfterFree, msFreedMethod, msFreedInterface, msFreedClass,
    msWrongSize, msNewUsed, msFreedUsed, msGuardBefore, msGuardAfter, msGuardFreed,
    msBookkeeping,
    msBlock,             //< the record of a debug block
    msNormalBlock,       //< a block that was allocated while debug mode was off
    msClass, msGroup, msDamage, msMoreDamage,
    msIsInner, msIsStack, msIsModule, msIsMemory, msIsUnmapped, msIsFree,
    msClassRead, msMethodCalled, //< what an access to a freed object was for
    msMayBeOverrun,      //< an underrun may be of the block before
    msIsFreedFill, msIsNewFill, //< the address is a pattern of debug mode
    msIsLikely,          //< the block is a possible one
    msIsUnknown,         //< the block is not known, and how to find it
    msAllocStack, msFreeStack, msHereStack, msFoundStack, msNoStack, msEndStack,
    msLostStack,
    msFollows,           //< an error of the same block was reported before
    msWriteAdvice, msNearAdvice, //< how to find a write: guard pages; a check, of one near the end
    msLeaks,             //< total of the leaks
    msInUse,             //< total of the blocks in use
    msLeaksUnknown, msInUseUnknown, //< there is no memory to examine blocks
    msGrown,             //< growth between two snapshots
    msNothingGrown,
    msLeakGroup,         //< one group of leaks
    msLeakRetains, msLeakRetained, msLeakStale, msLeakCycle, msLeakTexts, msLeakStack,
    msMoreRetainers,     //< blocks of a group with other retainers
    msMorePlaces,        //< leaks of a group that were allocated at other places
    msUnknownPlaces,     //< the same without a backtrace
    msMoreLeaks,
    msLeakTotal,         //< total of an allocation group
    msLeakRegion,        //< total of the regions of one name
    msMoreTotals,        //< total of further groups and regions
    msReferences, msReference, msReferenceBlock, msReferenceOutside, msMoreReferences,
    msReferenceSample,   //< references from outside into a region that is freed
    msLeaksSuppressed, msLeaksRunning, msLeaksLost,
    msPlacesLost,        //< blocks for whose backtraces there was no space
    msLeaksFollow,       //< memory errors were reported before
    msLeaksAdvice, msPlacesAdvice, //< how to find where leaks, or blocks in use, were allocated
    msNumber,            //< the allocation number of the setting `break`
    msMismatchFree, msMismatchObject, msMismatchFamily,
    msLogAllocated, msLogFreed, msLogLeft,
    msLimitSoft, msLimitHard, msLimitRegion,
    msReserve,           //< the emergency reserve is in use
    msRefused,           //< the system has no memory
    msContainer, msContainerWaits, //< the container is near its limit, or waits for memory
    msMostUsed,           //< the groups in use with most bytes follow
    msCorruptLink, msCorruptList, msCorruptCount, msCorruptWord, msBlockBefore,
    msDebugAdvice        //< how to find the cause of a corruption
  );

  /// The named fields.
  TField = (fiAddress, fiBlock, fiSize, fiUsable, fiClass, fiNumber, fiThread, fiFreeThread,
    fiOffset, fiLength, fiCount, fiBlocks, fiGroup, fiRegion, fiMethod, fiPath, fiGiven, fiProcess,
    fiRetainer, fiText, fiAllocator, fiDeallocator, fiTime, fiCommand,
    fiVersion);

  /// The values of the fields of a message.
  TFields = record
    Known: set of TField;                     //< fields that have a value
    Values: TText;                            //< all values, one after the other, #0 before each
    First: array[TField] of NativeUInt;       //< offset of the value in Values
    Few: array[0..1023] of AnsiChar;          //< holds Values where there is no memory for them
  end;

/// Makes an empty set of values, which stays where it is. The caller owns it until FieldsClose.
procedure FieldsOpen(out Fields: TFields);
/// Frees the values.
procedure FieldsClose(var Fields: TFields);
/// Begins the value of Field: the text added to Fields.Values until the next one, without #0.
procedure FieldStart(var Fields: TFields; Field: TField);
/// Sets a number in the form of TextAddForm: %u for one that identifies a thing, %g for others, %p
/// for an address.
procedure FieldNumber(var Fields: TFields; Field: TField; const Form: ShortString; Value: UInt64);
/// Sets characters up to #0.
procedure FieldChars(var Fields: TFields; Field: TField; Value: PAnsiChar);

/// Adds the message with its fields replaced by their values, and a line end.
procedure MessageAdd(var Text: TText; Message: TMessage; const Fields: TFields);
/// MessageAdd, then FieldsClose.
procedure MessageEnd(var Text: TText; Message: TMessage; var Fields: TFields);
/// Returns the name of a message, as MessageSet takes it.
function MessageName(Message: TMessage): PAnsiChar;
/// Replaces the text of the message Name; nil restores the original. Copies NewText, which ends
/// with #0. Returns False when no message has this name, or the table of 1 MB is full.
function MessageSet(Name, NewText: PAnsiChar): Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.ReportState;

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
    'number', 'thread', 'freethread', 'offset', 'length', 'count', 'blocks', 'group', 'region',
    'method', 'path', 'given', 'process', 'retainer', 'text', 'allocator', 'deallocator', 'time',
    'command', 'version');

  Entries: array[TMessage] of TEntry = (
    (Name: 'head'; Text: 'LaneMM: process {process}, thread {thread}, version {version}, '
      + '{time}, {command}:'),
    (Name: 'double-free'; Text: 'Double free: the block was already freed.'),
    (Name: 'double-realloc'; Text: 'Invalid resize: the block was already freed.'),
    (Name: 'invalid-free'; Text: 'Invalid free: {address} is not a heap block.'),
    (Name: 'invalid-realloc'; Text: 'Invalid resize: {address} is not a heap block.'),
    (Name: 'invalid-size'; Text: 'Invalid size query: {address} is not a heap block in use.'),
    (Name: 'freed-size'; Text: 'Invalid size query: the block was already freed.'),
    (Name: 'write-before'; Text: 'Heap block underrun: bytes before the start were modified.'),
    (Name: 'write-after'; Text: 'Heap block overrun: bytes past the end were modified.'),
    (Name: 'write-after-free'; Text: 'Write after free: bytes of a freed block were modified.'),
    (Name: 'freed-method'; Text:
      'Use after free: virtual method {method} of a freed object was called.'),
    (Name: 'freed-interface'; Text:
      'Use after free: interface method {method} of a freed object was called.'),
    (Name: 'freed-class'; Text: 'Use after free: the class of a freed object was read.'),
    (Name: 'wrong-size'; Text: 'Wrong size: allocated with {size}, freed with {given}.'),
    (Name: 'new-used'; Text: 'Use of uninitialized memory: the contents of a new block were used'
      + ' as an address.'),
    (Name: 'freed-used'; Text:
      'Use after free: the contents of a freed block were used as an address.'),
    (Name: 'guard-before'; Text: 'Heap block underrun: {text} at offset {offset} of a block.'),
    (Name: 'guard-after'; Text:
      'Heap block overrun: {text} at offset {offset} of a block of {size}.'),
    (Name: 'guard-freed'; Text: 'Use after free: {text} at offset {offset} of a freed block.'),
    (Name: 'bookkeeping'; Text:
      'Heap corruption: the bookkeeping record of the block at {address} was overwritten.'),
    (Name: 'block'; Text: '  Block {block}: {size}, allocation number {number}, thread {thread}.'),
    (Name: 'normal-block'; Text:
      '  Block {block}: {usable} usable, allocated while debug mode was off.'),
    (Name: 'class'; Text: '  Class: {class}'),
    (Name: 'group'; Text: '  Group: {group}'),
    (Name: 'damage'; Text: '  Modified: {length} at offset {offset}.'),
    (Name: 'more-damage'; Text: '  More bytes after these were modified.'),
    (Name: 'is-inner'; Text: '  The address is at offset {offset} from the start of a block.'),
    (Name: 'is-stack'; Text: '  The address is on the stack of this thread.'),
    (Name: 'is-module'; Text: '  The address is in {path}.'),
    (Name: 'is-memory'; Text: '  The address is in memory that LaneMM does not manage.'),
    (Name: 'is-unmapped'; Text: '  The address is not mapped.'),
    (Name: 'is-free'; Text: '  The address is in free heap memory.'),
    (Name: 'class-read'; Text: '  The class of the freed object was read.'),
    (Name: 'method-called'; Text: '  Virtual method {method} of the freed object was called.'),
    (Name: 'may-be-overrun'; Text: '  Possibly an overrun of the block before it, {block}: {size},'
      + ' allocation number {number}.'),
    (Name: 'is-freed-pattern'; Text:
      '  The address is the pattern of freed blocks: it was read from a block that was freed.'),
    (Name: 'is-new-pattern'; Text:
      '  The address is the pattern of new blocks: it was read from a block before it was set.'),
    (Name: 'likely'; Text: '  Possibly from this block, which a register or the stack points to.'),
    (Name: 'unknown'; Text:
      '  The block is not known: LANEMM=debug,guard=pages reports it at the first access.'),
    (Name: 'allocated-stack'; Text: '  Allocated by thread {thread} at'),
    (Name: 'freed-stack'; Text: '  Freed by thread {freethread} at'),
    (Name: 'here-stack'; Text: '  Occurred at'),
    (Name: 'detected-stack'; Text: '  Detected at'),
    (Name: 'no-stack'; Text: '      (no backtrace was recorded)'),
    (Name: 'end-stack'; Text: '      (the end of the program)'),
    (Name: 'lost-stack'; Text: '      (no backtrace was recorded: the table of them is full)'),
    (Name: 'follows'; Text: '  May follow from the error in this block that was reported before.'),
    (Name: 'write-advice'; Text:
      '  LANEMM=debug,guard=pages reports such a write where it happens.'),
    (Name: 'near-advice'; Text: '  Guard pages miss it, as they begin behind it, at a multiple of'
      + ' 16 bytes: LANEMM=debug,check=always narrows it down.'),
    (Name: 'leaks'; Text: 'Memory leaks: {blocks}, {size}:'),
    (Name: 'in-use'; Text: 'Memory in use: {blocks}, {size}:'),
    (Name: 'leaks-unknown'; Text: 'Memory leaks are unknown: {blocks} in use could not be examined'
      + ' for lack of memory.'),
    (Name: 'in-use-unknown'; Text: 'Memory in use is unknown: {blocks} could not be examined for'
      + ' lack of memory.'),
    (Name: 'grown'; Text: 'Memory growth between the snapshots: {blocks}, {size}:'),
    (Name: 'nothing-grown'; Text: 'No memory growth between the snapshots.'),
    (Name: 'leak-group'; Text: '  {count} x {class}, {size}'),
    (Name: 'leak-retained'; Text: '      retained size: {size}'),
    (Name: 'leak-retainer'; Text: '      {count} retained by {retainer}'),
    (Name: 'leak-stale'; Text: '      {count} still in a slot that {retainer} no longer counts'),
    (Name: 'leak-cycle'; Text: '      {count} retained by the {text}{retainer}'),
    (Name: 'leak-texts'; Text: '      {text}'),
    (Name: 'leak-stack'; Text:
      '      {count}, {size} allocated, the first as allocation number {number} by thread'
      + ' {thread}, at'),
    (Name: 'more-retainers'; Text: '      {count} retained by others'),
    (Name: 'more-places'; Text: '      and {blocks}, {size} allocated at other places'),
    (Name: 'unknown-places'; Text:
      '      and {blocks}, {size} allocated at places that are not known'),
    (Name: 'more-leaks'; Text: '  and {blocks}, {size} of other kinds'),
    (Name: 'leak-total'; Text: '  Group {group}: {blocks}, {size}'),
    (Name: 'leak-region'; Text: '  Region "{region}": {blocks}, {size}'),
    (Name: 'more-totals'; Text: '  Other groups and regions: {blocks}, {size}'),
    (Name: 'references'; Text: 'Dangling references: {count} from outside into the region'
      + ' "{region}", whose blocks are freed:'),
    (Name: 'reference'; Text: '  {retainer} refers to {class}'),
    (Name: 'reference-block'; Text: '    freed now, allocated by thread {thread} at'),
    (Name: 'reference-outside'; Text: '    the block outside was allocated by thread {thread} at'),
    (Name: 'more-references'; Text: '  and {count} further ones'),
    (Name: 'reference-sample'; Text:
      '  One in {number} of the {blocks} outside was searched.'),
    (Name: 'leaks-suppressed'; Text: '  Suppressed, not counted: {blocks}, {size}'),
    (Name: 'leaks-reachable'; Text: '  Still reachable, not counted: {blocks}, {size}'),
    (Name: 'leaks-lost'; Text: '  Not examined for lack of memory: {blocks}'),
    (Name: 'places-lost';
      Text: '  Without callers, as the table of backtraces is full: {blocks}.'),
    (Name: 'leaks-follow';
      Text: '  These leaks may follow from the memory errors reported before.'),
    (Name: 'leaks-advice'; Text: '  LANEMM=leaks,stacks also shows where they were allocated.'),
    (Name: 'places-advice'; Text: '  LANEMM=stacks also shows where they were allocated.'),
    (Name: 'number'; Text: 'Allocation number {number} was reached.'),
    (Name: 'mismatched-free'; Text: 'Mismatched free: allocated by New, freed by FreeMem:'
      + ' managed fields were not finalized.'),
    (Name: 'mismatched-object'; Text: 'Mismatched free: an object was freed by FreeMem: its'
      + ' destructor was not called.'),
    (Name: 'mismatched-family'; Text:
      'Mismatched free: allocated by {allocator}, freed by {deallocator}.'),
    (Name: 'log-allocated'; Text: 'Allocation log: a block was allocated.'),
    (Name: 'log-freed'; Text: 'Allocation log: a block was freed.'),
    (Name: 'log-left'; Text: 'Allocation log: {count} not logged after the first {number}.'),
    (Name: 'limit-soft'; Text:
      'Soft memory limit exceeded: the heap holds {usable}, the limit is {size}.'),
    (Name: 'limit-hard'; Text:
      'Memory limit reached: an allocation of {given} failed, the limit is {size}.'),
    (Name: 'limit-region'; Text: 'Limit of the region "{region}" reached: an allocation of {given}'
      + ' failed, the limit is {size}.'),
    (Name: 'reserve'; Text: 'Out of memory: an allocation of {given} failed, the reserve of {size}'
      + ' is in use from now on.'),
    (Name: 'out-of-memory'; Text: 'Out of memory: an allocation of {given} failed; the heap holds'
      + ' {usable}.'),
    (Name: 'container-limit'; Text: 'Container near its memory limit: {given} of {size} are in use,'
      + ' the heap holds {usable}.'),
    (Name: 'container-waits'; Text: 'Memory pressure in the container: its tasks wait for memory;'
      + ' the heap holds {usable}.'),
    (Name: 'most-used'; Text: '  In use: {blocks}, {size}; most of it:'),
    (Name: 'corrupt-link'; Text:
      'Heap corruption: the first bytes of the free block {address} of {size} were overwritten.'),
    (Name: 'corrupt-list'; Text:
      'Heap corruption: the first bytes of a free block of {size} were overwritten.'),
    (Name: 'corrupt-count'; Text: 'Heap corruption: of the blocks of {size} around {address}, which'
      + ' is in use, one was freed twice.'),
    (Name: 'corrupt-word'; Text: '  Found: {text}'),
    (Name: 'block-before'; Text: '  Either the block before it, {block}, was written past its end,'
      + ' or {address} was written after its free.'),
    (Name: 'debug-advice'; Text: '  The free blocks after it are not used any more. To find the'
      + ' faulty line, run the program with LANEMM=debug from its start.')
  );

// ---------------------------------------------------------------------------- fields

procedure FieldsOpen(out Fields: TFields);
begin
  Fields := Default(TFields);
  if not TextOpen(Fields.Values, FieldLimit) then
    TextOpenAt(Fields.Values, @Fields.Few, SizeOf(Fields.Few));
end;

procedure FieldsClose(var Fields: TFields);
begin
  if Fields.Values.Start <> @Fields.Few then
    TextClose(Fields.Values);
end;

procedure FieldStart(var Fields: TFields; Field: TField);
begin
  TextAddSome(Fields.Values, #0, 1);
  Fields.First[Field] := Fields.Values.Length;
  Include(Fields.Known, Field);
end;

procedure FieldNumber(var Fields: TFields; Field: TField; const Form: ShortString; Value: UInt64);
begin
  FieldStart(Fields, Field);
  TextAddForm(Fields.Values, Form, Value);
end;

procedure FieldChars(var Fields: TFields; Field: TField; Value: PAnsiChar);
begin
  FieldStart(Fields, Field);
  TextAddChars(Fields.Values, Value);
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
  First, Limit: NativeUInt;
begin
  for Field := Low(TField) to High(TField) do
    if StartsWith(Part, FieldNames[Field], '}') and (Field in Fields.Known) then
    begin
      First := Fields.First[Field];
      Limit := First;
      while (Limit < Fields.Values.Length) and (Fields.Values.Start[Limit] <> #0) do
        Inc(Limit);
      TextAddSome(Text, Fields.Values.Start + First, Limit - First);
      Exit(True);
    end;
  Result := False;
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

procedure MessageEnd(var Text: TText; Message: TMessage; var Fields: TFields);
begin
  MessageAdd(Text, Message, Fields);
  FieldsClose(Fields);
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
  Length := TextLength(NewText) + 1;
  if Length > NativeUInt(TableSize - SizeOf(TTable) - Table^.Used) then
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
