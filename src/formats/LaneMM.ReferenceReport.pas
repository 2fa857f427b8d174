/// The report of references into a region that is freed.
//
// Owns:       nothing.
// Callers:    any thread that holds no lock.
unit LaneMM.ReferenceReport;

{$I ../LaneMM.inc}

interface

/// Reports the references into the blocks of an allocation group with numbers up to Mark, from
/// blocks of others and from variables, if there are any, in debug mode.
procedure ReferencesReport(Group: Cardinal; Mark: NativeUInt);

implementation

uses
  LaneMM.Hooks, LaneMM.Bits, LaneMM.Walk, LaneMM.Text, LaneMM.ReportState, LaneMM.Events,
  LaneMM.SettingsState, LaneMM.Messages, LaneMM.ReportHead, LaneMM.Unwind, LaneMM.BacktraceTable,
  LaneMM.Symbols, LaneMM.BacktraceText, LaneMM.Contents, LaneMM.DebugState, LaneMM.Groups,
  LaneMM.GuardPages, LaneMM.References;

// Adds what a block holds, of a string its beginning, too.
procedure AddContents(var Text: TText; const Block: TBlockInfo);
const
  MostText = 40;
var
  Contents: TContents;
begin
  ContentsRead(Block, Contents);
  if Contents.Kind = coObject then
    ClassAddName(Text, Contents.ClassId)
  else
    TextAddChars(Text, ContentsNames[Contents.Kind]);
  TextAddForm(Text, ' of %g byte%+', Block.RequestedSize);
  if not (Contents.Kind in [coAnsiString, coUnicodeString]) or not IsSet(opDump) then
    Exit;
  TextAdd(Text, ' ');
  ContentsAddText(Text, Contents, MostText);
end;

// Adds the name of a variable of a module, or the module; the compiler writes U_$UNIT_$$_NAME.
procedure AddVariable(var Text: TText; const Symbolizer: TSymbolizer; Address: NativeUInt);
var
  Found: PSymbol;
  Symbol: TSymbol;
begin
  TextAdd(Text, 'the variable ');
  Found := SymbolsFind(Symbolizer.Symbols, Address + 1);
  if Found = nil then
  begin
    TextAddForm(Text, '%p', Address);
    Exit;
  end;
  Symbol := Found^;
  if Symbol.Routine = nil then
  begin
    SymbolAddOffset(Text, @Symbol);
    Exit;
  end;
  if TextBegins(Symbol.Routine, 'U_$') then
    Inc(Symbol.Routine, 3)
  else if TextBegins(Symbol.Routine, 'TC_$') then
    Inc(Symbol.Routine, 4);
  SymbolAddRoutine(Text, @Symbol);
end;

procedure AddStack(var Text: TText; Message: TMessage; const Symbolizer: TSymbolizer;
  const Block: TBlockInfo);
var
  Fields: TFields;
  Stack: TBacktrace;
begin
  if not BacktraceRead(Block.Stack, Stack) then
    Exit;
  FieldsOpen(Fields);
  FieldNumber(Fields, fiThread, '%u', Block.Thread);
  MessageAdd(Text, Message, Fields);
  BacktraceAddText(Text, Symbolizer, Stack);
  FieldsClose(Fields);
end;

procedure AddItem(var Text: TText; const Symbolizer: TSymbolizer; const Item: TReference);
var
  Holder, Block: TBlockInfo;
  Fields: TFields;
  HasHolder: Boolean;
begin
  if not WalkFind(Item.Block, Block) then
    Exit;
  HasHolder := (Item.Holder <> nil) and WalkFind(Item.Holder, Holder);
  FieldsOpen(Fields);
  FieldStart(Fields, fiRetainer);
  if HasHolder then
    AddContents(Fields.Values, Holder)
  else if Item.IsOfModule then
    AddVariable(Fields.Values, Symbolizer, Item.Address)
  else
    TextAddForm(Fields.Values, 'a variable of a thread, or other memory, at %p', Item.Address);
  FieldStart(Fields, fiClass);
  AddContents(Fields.Values, Block);
  MessageEnd(Text, msReference, Fields);
  AddStack(Text, msReferenceBlock, Symbolizer, Block);
  if HasHolder then
    AddStack(Text, msReferenceOutside, Symbolizer, Holder);
end;

procedure AddStackOf(var Symbolizer: TSymbolizer; P: PByte);
var
  Block: TBlockInfo;
  Stack: TBacktrace;
begin
  if (P <> nil) and WalkFind(P, Block) and BacktraceRead(Block.Stack, Stack) then
    SymbolizerAdd(Symbolizer, Stack);
end;

procedure AddItems(var Text: TText; const Found: TReferences);
var
  Symbolizer: TSymbolizer;
  Here: TBacktrace;
  Fields: TFields;
  Index: NativeInt;
begin
  BacktraceTake(Here);
  SymbolizerOpen(Symbolizer, 3 * MostReferences + 1);
  SymbolizerAdd(Symbolizer, Here);
  for Index := 0 to NativeInt(Found.Shown) - 1 do
  begin
    AddStackOf(Symbolizer, Found.Items[Index].Holder);
    AddStackOf(Symbolizer, Found.Items[Index].Block);
    if Found.Items[Index].IsOfModule then
      SymbolizerAddCode(Symbolizer, Found.Items[Index].Address);
  end;
  SymbolizerResolve(Symbolizer);
  for Index := 0 to NativeInt(Found.Shown) - 1 do
    AddItem(Text, Symbolizer, Found.Items[Index]);
  FieldsOpen(Fields);
  FieldNumber(Fields, fiCount, '%g', NativeUInt(Found.Count - Found.Shown));
  if Found.Count > Found.Shown then
    MessageAdd(Text, msMoreReferences, Fields);
  FieldNumber(Fields, fiNumber, '%g', Found.Step);
  FieldNumber(Fields, fiBlocks, '%g block%+', Found.Outside);
  if Found.Step > 1 then
    MessageAdd(Text, msReferenceSample, Fields);
  MessageEnd(Text, msHereStack, Fields);
  BacktraceAddText(Text, Symbolizer, Here);
  SymbolizerClose(Symbolizer);
end;

procedure WriteReport(Group: Cardinal; const Found: TReferences);
var
  Event: TEvent;
  Fields: TFields;
begin
  if not EventOpen(Event, evLeaks) then
    Exit;
  FieldsOpen(Fields);
  HeadAdd(Event.Text, Fields);
  FieldNumber(Fields, fiCount, '%g reference%+', Found.Count);
  FieldStart(Fields, fiRegion);
  GroupAddRegion(Fields.Values, Group);
  MessageEnd(Event.Text, msReferences, Fields);
  AddItems(Event.Text, Found);
  EventClose(Event);
end;

procedure ReferencesReport(Group: Cardinal; Mark: NativeUInt);
var
  Found: TReferences;
begin
  if not Debug.IsStarted then
    Exit;
  GuardPagesHold;
  ReferencesFind(Group, Mark, Found);
  if Found.Count > 0 then
    WriteReport(Group, Found);
  GuardPagesLetGo;
end;

end.
