/// References from outside into a region whose debug blocks are about to be freed.
//
// Owns:       nothing.
// What:       words that hold an address in a block of the region: in blocks outside, in variables
//             of modules, in other writable memory without a name, such as that of thread
//             variables, and in the variables of the calling thread. Of stacks nothing is searched:
//             their words may be left over. The items of a container end at its count.
// Limits:     of more than MostSearched blocks outside a sample is searched. Variables of threads
//             beside their stacks are searched for the calling thread alone. Elsewhere than on
//             Linux: blocks and modules.
// Callers:    any thread that holds no lock.
unit LaneMM.References;

{$I ../LaneMM.inc}

interface

/// Reports the references into the blocks of an allocation group from blocks of others and from
/// variables, if there are any.
procedure ReferencesReport(Group: Cardinal);

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Hooks, LaneMM.Atomic, LaneMM.Os, LaneMM.OsProcess,
  LaneMM.Arena, LaneMM.Walk, LaneMM.Text, LaneMM.ReportState, LaneMM.Events,
  LaneMM.Messages, LaneMM.ReportHead, LaneMM.StacksState, LaneMM.Modules, LaneMM.Unwind,
  LaneMM.BacktraceTable, LaneMM.Symbols, LaneMM.BacktraceText, LaneMM.ObserveState,
  LaneMM.Contents, LaneMM.DebugState, LaneMM.Groups, LaneMM.GuardPages, LaneMM.LeaksState,
  LaneMM.Snapshot, LaneMM.Roots;

const
  // Blocks outside that are searched at most.
  MostSearched = 100000;
  // References that are listed at most.
  MostShown = 10;
  // Longer mappings without a name are not searched.
  MostMapping = NativeUInt(16) shl 20;

type
  // A reference, or the first one of a block.
  TReference = record
    Address: NativeUInt;   // of the word
    Holder: PByte;         // the block that the word lies in, or nil
    Block: PByte;          // the block of the region
    IsOfModule: Boolean;   // the word is a variable of a module
  end;

  TSearch = record
    Snapshot: TSnapshot;
    Group: Cardinal;
    First, Bytes: NativeUInt;      // the range of all blocks of the region
    Holder: PByte;                 // the block that is searched now, or nil
    IsOfModule: Boolean;           // a module is searched now
    Count: NativeUInt;             // references found
    Shown: Cardinal;               // of them in Items
    Items: array[0..MostShown - 1] of TReference;
    Step: NativeUInt;              // of so many blocks outside one is searched
    Outside: NativeUInt;           // blocks outside
    LastLimit: NativeUInt;         // end of the mapping seen last
    LastIsReadable: Boolean;       // that one can be read
    LastIsFile: Boolean;           // it is of a module, or the variables behind one
  end;
  PSearch = ^TSearch;

// ---------------------------------------------------------------------------- words

// Returns whether the address is one of LaneMM's own variables.
function IsOwn(Address: NativeUInt): Boolean;
begin
  Result := (NativeUInt(Address - NativeUInt(@Process)) < SizeOf(Process))
    or (NativeUInt(Address - NativeUInt(@Debug)) < SizeOf(Debug))
    or (NativeUInt(Address - NativeUInt(@Observe)) < SizeOf(Observe))
    or (NativeUInt(Address - NativeUInt(@Leaks)) < SizeOf(Leaks))
    or (NativeUInt(Address - NativeUInt(@Stacks)) < SizeOf(Stacks))
    or (NativeUInt(Address - NativeUInt(@Report)) < SizeOf(Report));
end;

// Adds a reference; one for each block outside, and for each variable.
procedure AddReference(var Search: TSearch; Address: NativeUInt; Block: PByte);
var
  Item: ^TReference;
  Index: NativeInt;
begin
  for Index := 0 to NativeInt(Search.Shown) - 1 do
    if (Search.Items[Index].Address = Address)
      or (Search.Holder <> nil) and (Search.Items[Index].Holder = Search.Holder) then
      Exit;
  Inc(Search.Count);
  if Search.Shown = MostShown then
    Exit;
  Item := @Search.Items[Search.Shown];
  Item^.Address := Address;
  Item^.Holder := Search.Holder;
  Item^.Block := Block;
  Item^.IsOfModule := Search.IsOfModule;
  Inc(Search.Shown);
end;

// Looks at the word that lies at Address.
procedure SeeWord(var Search: TSearch; Word, Address: NativeUInt);
var
  Index: Cardinal;
  Node: PNode;
  Block: TBlockInfo;
begin
  if NativeUInt(Word - Search.First) >= Search.Bytes then
    Exit;
  Index := SnapshotNodeAt(Search.Snapshot, Word);
  if Index = NoNode then
    Exit;
  Node := Search.Snapshot.Nodes + Index;
  if (Node^.State = nsCounted) and not IsOwn(Address)
    and WalkFind(Node^.Address, Block) and (Block.Group = Search.Group) then
    AddReference(Search, Address, Node^.Address);
end;

// Looks at all words from First up to Limit that can be read, but for those in memory of LaneMM.
procedure SeeRange(var Search: TSearch; First, Limit: NativeUInt);
var
  Words: array[0..OsPageSize div SizeOf(NativeUInt) - 1] of NativeUInt;
  Next: NativeUInt;
  Index: Cardinal;
begin
  while First < Limit do
  begin
    Next := (First + OsPageSize) and not NativeUInt(OsPageSize - 1);
    if Next > Limit then
      Next := Limit;
    // Twice: another thread may be taking the pages.
    if not OsIsTaken(First) and OsRead(First, @Words, NativeUInt(Next - First))
      and not OsIsTaken(First) then
      for Index := 0 to NativeUInt(Next - First) div SizeOf(NativeUInt) - 1 do
        SeeWord(Search, Words[Index], First + Index * SizeOf(NativeUInt));
    First := Next;
  end;
end;

// ---------------------------------------------------------------------------- where they are

procedure SeeBlocks(var Search: TSearch);
var
  Index: NativeInt;
  Node: PNode;
  Address, Limit: PNativeUInt;
begin
  for Index := 0 to NativeInt(Search.Snapshot.NodeCount) - 1 do
  begin
    Node := Search.Snapshot.Nodes + Index;
    if (Node^.State <> nsOther) or (NativeUInt(Index) mod Search.Step <> 0) then
      Continue;
    Search.Holder := Node^.Address;
    Address := PNativeUInt(Node^.Address);
    Limit := PNativeUInt(Node^.Address + Node^.Size);
    Dec(Limit, Node^.Spare);
    while Address + 1 <= Limit do
    begin
      SeeWord(Search, Address^, NativeUInt(Address));
      Inc(Address);
    end;
  end;
  Search.Holder := nil;
end;

// Returns whether the mapping is memory of the engine: arenas, and the records before them.
function IsOfEngine(const Mapping: TOsMapping): Boolean;
var
  Index: NativeUInt;
  Arena: PArena;
begin
  Index := 0;
  Arena := FrontierArena(Index);
  while (Arena <> nil)
    and ((Mapping.First >= NativeUInt(Arena^.Base) + LoadAcquire(Arena^.Reserved) * SliceSize)
    or (Mapping.Limit <= NativeUInt(Arena^.Base)))
    and ((Mapping.First >= NativeUInt(Arena^.Spans + Arena^.MostSlices))
    or (Mapping.Limit <= NativeUInt(Arena))) do
  begin
    Inc(Index);
    Arena := FrontierArena(Index);
  end;
  Result := Arena <> nil;
end;

// The stack of a thread has a guard before it. Variables of a module that begin as zero lie behind
// the mapping of its file.
procedure SeeMapping(const Mapping: TOsMapping; Context: Pointer);
var
  Search: PSearch;
  IsBehind, IsFile: Boolean;
begin
  Search := Context;
  IsBehind := Mapping.First = Search^.LastLimit;
  IsFile := Mapping.IsFile and ModulesHaveData(Mapping.First, SizeOf(Pointer))
    or (Mapping.Path[0] = #0) and IsBehind and Search^.LastIsFile;
  Search^.IsOfModule := IsFile;
  if Mapping.IsWritable and Mapping.IsReadable and not IsOfEngine(Mapping)
    and (IsFile or OsHasThreadPages and (Mapping.Path[0] = #0)
    and not (IsBehind and not Search^.LastIsReadable)
    and (NativeUInt(Mapping.Limit - Mapping.First) <= MostMapping)) then
    SeeRange(Search^, Mapping.First, Mapping.Limit);
  Search^.IsOfModule := False;
  Search^.LastLimit := Mapping.Limit;
  Search^.LastIsReadable := Mapping.IsReadable;
  Search^.LastIsFile := IsFile;
end;

// Looks at the variables of the calling thread. Their mapping may touch others, also one that
// cannot be read, as the stack of a thread does.
procedure SeeThread(var Search: TSearch);
var
  First, Limit: NativeUInt;
begin
  if OsHasThreadPages and Process.HasThreads and RootsOwnVariables(First, Limit) then
    SeeRange(Search, First, Limit);
end;

// Counts the blocks outside, and finds the range of the others.
procedure SetRange(var Search: TSearch);
var
  Index: NativeInt;
  Node: PNode;
begin
  for Index := 0 to NativeInt(Search.Snapshot.NodeCount) - 1 do
  begin
    Node := Search.Snapshot.Nodes + Index;
    if Node^.State = nsOther then
      Inc(Search.Outside)
    else
    begin
      if Search.First = 0 then
        Search.First := NativeUInt(Node^.Address);
      Search.Bytes := NativeUInt(Node^.Address) + Node^.Size - Search.First + 1;
    end;
  end;
  Search.Step := Search.Outside div MostSearched + 1;
end;

// ---------------------------------------------------------------------------- the report

// Adds what a block holds, of a string its beginning, too.
procedure AddContents(var Text: TText; const Block: TBlockInfo);
const
  Names: array[TContentsKind] of PAnsiChar = ('data', '', 'AnsiString', 'UnicodeString',
    'dynamic array');
  MostText = 40;
var
  Contents: TContents;
begin
  ContentsRead(Block, Contents);
  if Contents.Kind = coObject then
    ClassAddName(Text, Contents.ClassId)
  else
    TextAddChars(Text, Names[Contents.Kind]);
  TextAdd(Text, ' of ');
  TextAddCount(Text, Block.RequestedSize, 'byte');
  if not (Contents.Kind in [coAnsiString, coUnicodeString]) or Report.HidesContents then
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
    TextAdd(Text, '$');
    TextAddHex(Text, Address, SizeOf(Address) * 2);
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
  FieldName(Fields, fiThread, Block.Thread);
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
  begin
    TextAdd(Fields.Values, 'a variable of a thread, or other memory, at $');
    TextAddHex(Fields.Values, Item.Address, SizeOf(Item.Address) * 2);
  end;
  FieldEnd(Fields, fiRetainer);
  FieldStart(Fields, fiClass);
  AddContents(Fields.Values, Block);
  FieldEnd(Fields, fiClass);
  MessageAdd(Text, msReference, Fields);
  FieldsClose(Fields);
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

procedure AddItems(var Text: TText; const Search: TSearch);
var
  Symbolizer: TSymbolizer;
  Here: TBacktrace;
  Fields: TFields;
  Index: NativeInt;
begin
  BacktraceTake(Here);
  SymbolizerOpen(Symbolizer, 3 * MostShown + 1);
  SymbolizerAdd(Symbolizer, Here);
  for Index := 0 to NativeInt(Search.Shown) - 1 do
  begin
    AddStackOf(Symbolizer, Search.Items[Index].Holder);
    AddStackOf(Symbolizer, Search.Items[Index].Block);
    if Search.Items[Index].IsOfModule then
      SymbolizerAddCode(Symbolizer, Search.Items[Index].Address);
  end;
  SymbolizerResolve(Symbolizer);
  for Index := 0 to NativeInt(Search.Shown) - 1 do
    AddItem(Text, Symbolizer, Search.Items[Index]);
  FieldsOpen(Fields);
  FieldNumber(Fields, fiCount, NativeUInt(Search.Count - Search.Shown));
  if Search.Count > Search.Shown then
    MessageAdd(Text, msMoreReferences, Fields);
  FieldNumber(Fields, fiNumber, Search.Step);
  FieldCount(Fields, fiBlocks, Search.Outside, 'block');
  if Search.Step > 1 then
    MessageAdd(Text, msReferenceSample, Fields);
  MessageAdd(Text, msHereStack, Fields);
  FieldsClose(Fields);
  BacktraceAddText(Text, Symbolizer, Here);
  SymbolizerClose(Symbolizer);
end;

procedure WriteReport(const Search: TSearch);
var
  Event: TEvent;
  Fields: TFields;
begin
  if not EventOpen(Event, evLeaks) then
    Exit;
  FieldsOpen(Fields);
  HeadAdd(Event.Text, Fields);
  FieldCount(Fields, fiCount, Search.Count, 'reference');
  FieldStart(Fields, fiRegion);
  GroupAddRegion(Fields.Values, Search.Group);
  FieldEnd(Fields, fiRegion);
  MessageAdd(Event.Text, msReferences, Fields);
  FieldsClose(Fields);
  AddItems(Event.Text, Search);
  EventClose(Event);
end;

procedure FindReferences(var Search: TSearch);
begin
  SnapshotSelect(Search.Snapshot, Search.Group, Search.Group);
  SetRange(Search);
  if Search.Bytes = 0 then
    Exit;
  ModulesLook;
  SnapshotFindContainers(Search.Snapshot);
  SeeThread(Search); // first: its variables may lie behind a module, as those of the module do
  OsVisitMappings(SeeMapping, @Search);
  SeeBlocks(Search);
end;

procedure ReferencesReport(Group: Cardinal);
var
  Search: TSearch;
begin
  if not Debug.IsStarted then
    Exit;
  FillChar(Search, SizeOf(Search), 0);
  Search.Group := Group;
  GuardPagesHold;
  if SnapshotOpen(Search.Snapshot) then
    FindReferences(Search);
  if Search.Count > 0 then
    WriteReport(Search);
  SnapshotClose(Search.Snapshot);
  GuardPagesLetGo;
end;

end.
