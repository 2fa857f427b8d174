/// References from outside into a region whose debug blocks are about to be freed.
//
// Owns:       nothing.
// What:       words that hold an address in a block of the region: in blocks outside, in variables
//             of modules, in other writable memory without a name, such as that of thread
//             variables, and in the variables of the calling thread. Of stacks nothing is searched:
//             their words may be left over. The items of a container end at its count. Blocks of
//             a region that another thread is freeing refer to nothing: what they point to may be
//             freed, and in use again.
// Limits:     of more than MostSearched blocks outside a sample is searched. Variables of threads
//             beside their stacks are searched for the calling thread alone. Elsewhere than on
//             Linux: blocks and modules.
// Callers:    any thread that holds no lock.
unit LaneMM.References;

{$I ../LaneMM.inc}

interface

const
  /// References of TReferences that are kept at most.
  MostReferences = 10;

type
  /// A reference, or the first one of a block.
  TReference = record
    Address: NativeUInt;   //< of the word
    Holder: PByte;         //< the block that the word lies in, or nil
    Block: PByte;          //< the block of the region
    IsOfModule: Boolean;   //< the word is a variable of a module
  end;
  /// The references that a search has found.
  TReferences = record
    Count: NativeUInt;     //< references
    Shown: Cardinal;       //< of them in Items
    Items: array[0..MostReferences - 1] of TReference; //< the first of them
    Step: NativeUInt;      //< of so many blocks outside one was searched
    Outside: NativeUInt;   //< blocks outside
  end;

/// Finds the references into the blocks of an allocation group with numbers up to Mark, from blocks
/// of others and from variables. While blocks are held readable.
procedure ReferencesFind(Group: Cardinal; Mark: NativeUInt; out Found: TReferences);

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Hooks, LaneMM.Atomic, LaneMM.Os, LaneMM.OsProcess,
  LaneMM.Arena, LaneMM.Walk, LaneMM.ReportState, LaneMM.StacksState, LaneMM.Modules,
  LaneMM.ObserveState, LaneMM.DebugState, LaneMM.DebugThreads, LaneMM.LeaksState,
  LaneMM.Snapshot, LaneMM.Retainers, LaneMM.Roots;

const
  // Blocks outside that are searched at most.
  MostSearched = 100000;
  // Longer mappings without a name are not searched.
  MostMapping = NativeUInt(16) shl 20;

type
  TSearch = record
    Snapshot: TSnapshot;
    Range: TSnapshot;              // its nodes from the first to the last one of the region
    Group: Cardinal;
    Mark: NativeUInt;              // the highest number of a block of the region
    First, Bytes: NativeUInt;      // the range of all blocks of the region
    Holder: PByte;                 // the block that is searched now, or nil
    Counted: PByte;                // the block whose reference was counted last, or nil
    IsOfModule: Boolean;           // a module is searched now
    Found: TReferences;
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
  if (Search.Holder <> nil) and (Search.Holder = Search.Counted) then
    Exit;
  for Index := 0 to NativeInt(Search.Found.Shown) - 1 do
    if Search.Found.Items[Index].Address = Address then
      Exit;
  Search.Counted := Search.Holder;
  Inc(Search.Found.Count);
  if Search.Found.Shown = MostReferences then
    Exit;
  Item := @Search.Found.Items[Search.Found.Shown];
  Item^.Address := Address;
  Item^.Holder := Search.Holder;
  Item^.Block := Block;
  Item^.IsOfModule := Search.IsOfModule;
  Inc(Search.Found.Shown);
end;

// Returns whether what the block refers to counts: it is in use, and not freed with its region now.
function IsHolder(P: PByte): Boolean;
var
  Block: TBlockInfo;
  Number: NativeUInt;
begin
  Result := WalkFind(P, Block);
  Number := Block.Number;
  // Found once more: the thread may have freed the last block of the region before it was asked.
  Result := Result and not DebugIsEmptied(Block.Group) and WalkFind(P, Block)
    and (Block.Number = Number);
end;

// Looks at the block of Range that the word at Place points into.
procedure SeeNode(Index: Cardinal; Place: NativeUInt; Context: Pointer);
var
  Search: PSearch;
  Node: PNode;
  Block: TBlockInfo;
begin
  Search := Context;
  Node := Search^.Range.Nodes + Index;
  if (Node^.State = nsCounted) and not IsOwn(Place)
    and WalkFind(Node^.Address, Block) and (Block.Group = Search^.Group)
    and (Block.Number <= Search^.Mark)
    and ((Search^.Holder = nil) or IsHolder(Search^.Holder)) then
    AddReference(Search^, Place, Node^.Address);
end;

// Looks at the word that lies at Address.
procedure SeeWord(var Search: TSearch; Word, Address: NativeUInt);
var
  Index: Cardinal;
begin
  if NativeUInt(Word - Search.First) >= Search.Bytes then
    Exit;
  Index := SnapshotNodeAt(Search.Range, Word);
  if Index <> NoNode then
    SeeNode(Index, Address, @Search);
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
begin
  for Index := 0 to NativeInt(Search.Snapshot.NodeCount) - 1 do
  begin
    Node := Search.Snapshot.Nodes + Index;
    if (Node^.State <> nsOther) or (NativeUInt(Index) mod Search.Found.Step <> 0) then
      Continue;
    Search.Holder := Node^.Address;
    RetainersSee(Search.Range, NativeUInt(Node^.Address),
      NativeUInt(Node^.Address) + Node^.Size - Node^.Spare * SizeOf(Pointer), SeeNode, @Search);
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

// Returns whether the mapping may have stacks of threads: a guard page lies before it or, from
// glibc 2.42 on, at its start.
function MayHaveStacks(const Search: TSearch; const Mapping: TOsMapping): Boolean;
var
  Word: NativeUInt;
begin
  Result := (Mapping.First = Search.LastLimit) and not Search.LastIsReadable
    or not OsRead(Mapping.First, @Word, SizeOf(Word));
end;

// Linux: variables of a module that begin as zero lie behind the mapping of its file. Elsewhere a
// stack may lie there.
procedure SeeMapping(const Mapping: TOsMapping; Context: Pointer);
var
  Search: PSearch;
  IsFile: Boolean;
begin
  Search := Context;
  IsFile := Mapping.IsFile and ModulesHaveData(Mapping.First, SizeOf(Pointer))
    or OsHasThreadPages and (Mapping.Path[0] = #0) and (Mapping.First = Search^.LastLimit)
    and Search^.LastIsFile;
  Search^.IsOfModule := IsFile;
  if Mapping.IsWritable and Mapping.IsReadable and not IsOfEngine(Mapping)
    and (IsFile or OsHasThreadPages and (Mapping.Path[0] = #0)
    and (NativeUInt(Mapping.Limit - Mapping.First) <= MostMapping)
    and not MayHaveStacks(Search^, Mapping)) then
    SeeRange(Search^, Mapping.First, Mapping.Limit);
  Search^.IsOfModule := False;
  Search^.LastLimit := Mapping.Limit;
  Search^.LastIsReadable := Mapping.IsReadable;
  Search^.LastIsFile := IsFile;
end;

// Counts the blocks outside, and finds the range of the others.
procedure SetRange(var Search: TSearch);
var
  Index, First: NativeInt;
  Node: PNode;
begin
  First := 0;
  Search.Range := Search.Snapshot;
  for Index := 0 to NativeInt(Search.Snapshot.NodeCount) - 1 do
  begin
    Node := Search.Snapshot.Nodes + Index;
    if Node^.State = nsOther then
      Inc(Search.Found.Outside)
    else
    begin
      if Search.First = 0 then
      begin
        Search.First := NativeUInt(Node^.Address);
        Search.Range.Nodes := Node;
        First := Index;
      end;
      Search.Bytes := NativeUInt(Node^.Address) + Node^.Size - Search.First + 1;
      Search.Range.NodeCount := Index - First + 1;
    end;
  end;
  Search.Found.Step := Search.Found.Outside div MostSearched + 1;
end;

procedure FindReferences(var Search: TSearch);
var
  First, Limit: NativeUInt;
begin
  SnapshotSelect(Search.Snapshot, Search.Group, Search.Group, 0);
  SetRange(Search);
  if Search.Bytes = 0 then
    Exit;
  ModulesLook;
  SnapshotFindContainers(Search.Snapshot);
  // The variables of this thread, first: they may lie behind a module, as its own do. Their mapping
  // may touch others, also one that cannot be read, as the stack of a thread does.
  if OsHasThreadPages and Process.HasThreads and RootsOwnVariables(First, Limit) then
    SeeRange(Search, First, Limit);
  OsVisitMappings(SeeMapping, @Search);
  SeeBlocks(Search);
end;

procedure ReferencesFind(Group: Cardinal; Mark: NativeUInt; out Found: TReferences);
var
  Search: TSearch;
begin
  FillChar(Search, SizeOf(Search), 0);
  Search.Group := Group;
  Search.Mark := Mark;
  if SnapshotOpen(Search.Snapshot) then
    FindReferences(Search);
  SnapshotClose(Search.Snapshot);
  Found := Search.Found;
end;

end.
