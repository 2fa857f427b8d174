/// Allocation groups: scopes of a thread, names, totals.
//
// Owns:       TThreadNotes.Group, GroupDepth; TDebugThread.Groups; Debug.GroupNames.
// Invariants: a group is a number that the program chooses; 0 is none. A debug block records the
//             group of the thread that allocates it. Nothing is counted: totals need a walk.
//             Numbers from RegionGroups on are those of regions; the last 255 have their names.
// Callers:    GroupSetName: one thread at a time, but for regions. The others: any thread; scopes
//             are its own.
unit LaneMM.Groups;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Types, LaneMM.Hooks, LaneMM.Text;

const
  /// The first group of a region.
  RegionGroups = Cardinal($80000000);

type
  /// Totals of a group.
  TGroupStatus = record
    BlockCount: NativeUInt;  //< blocks in use
    Bytes: NativeUInt;       //< their requested bytes
  end;

/// Opens a scope: further blocks of the thread belong to Group, until GroupEnd. False, and nothing
/// changed, when 1,024 scopes are open or there is no memory.
function GroupBegin(Group: Cardinal): Boolean;
/// Closes the scope and restores the group before. False when no scope is open.
function GroupEnd: Boolean;
/// Makes Group the group of further blocks of the thread; returns the group before.
function GroupSet(Group: Cardinal): Cardinal;
/// Makes the group of a block that moves that of further blocks if either is a region's: the block
/// stays in its region, or outside of all. Returns the group before.
function GroupStay(Group: Cardinal): Cardinal;
/// Returns the group of further blocks of the thread.
function GroupCurrent: Cardinal;
/// Copies a name, cut to 55 bytes, for a group other than 0. False when 255 groups have a name, or
/// without memory.
function GroupSetName(Group: Cardinal; Name: PAnsiChar): Boolean;
/// Adds the number of a group, and its name if it has one.
procedure GroupAddName(var Text: TText; Group: Cardinal);
/// Returns the group of a region, by its first heap. A program that makes a region for each request
/// may make more than there are groups of them: these begin again.
function RegionGroup(Region: PHeap): Cardinal;
/// Returns the name, or nil.
function GroupName(Group: Cardinal): PAnsiChar;
/// Returns the group of a block of any kind: of a region's block that of the region.
function GroupOfBlock(const Block: TBlockInfo): Cardinal;
/// Returns a number that the regions of one name share; of another group its own. Group is that of
/// Block. Searches for no region, unless that is a debug block.
function GroupKey(const Block: TBlockInfo; Group: Cardinal): NativeUInt;
/// Adds the name of a region, or its number where that is no longer known.
procedure GroupAddRegion(var Text: TText; Group: Cardinal);
/// Sums up the blocks of a group.
procedure GroupRead(Group: Cardinal; out Status: TGroupStatus);

implementation

uses
  LaneMM.Layout, LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.Threads, LaneMM.Walk,
  LaneMM.DebugState, LaneMM.DebugThreads, LaneMM.GuardPages;

const
  NameLimit = 255;
  MostNameBytes = 55;

type
  TEntry = record
    Group: TAtomicWord;                    //< shared  0: free
    Name: array[0..MostNameBytes] of AnsiChar;  //< racy    written before Group; a thread that
                                                //  reads a replaced name may see parts of both
  end;
  PEntry = ^TEntry;

  // The sums of a walk.
  TSum = record
    Group: Cardinal;
    Status: TGroupStatus;
  end;
  PSum = ^TSum;

function RegionGroup(Region: PHeap): Cardinal;
begin
  Result := RegionGroups or Region^.Data.Number;
end;

// ---------------------------------------------------------------------------- scopes

function GroupBegin(Group: Cardinal): Boolean;
var
  Thread: PDebugThread;
  Depth: Cardinal;
begin
  Thread := DebugThread;
  if Thread = nil then
    Exit(False);
  Depth := OsThreadHeap^.Notes.GroupDepth;
  Result := Depth < MostGroupScopes;
  if not Result then
    Exit;
  Thread^.Groups[Depth] := OsThreadHeap^.Notes.Group;
  OsThreadHeap^.Notes.GroupDepth := Depth + 1;
  OsThreadHeap^.Notes.Group := Group;
end;

// Returns the group of the region that the thread of Heap is in; 0: of none.
function GroupOfScope(Heap: PHeap): Cardinal;
begin
  Result := 0;
  if Heap^.Region <> nil then
    Result := RegionGroup(Heap^.Region);
end;

function GroupEnd: Boolean;
var
  Thread: PDebugThread;
  Depth: Cardinal;
begin
  Thread := DebugThread;
  Result := (Thread <> nil) and (OsThreadHeap^.Notes.GroupDepth > 0);
  if not Result then
    Exit;
  Depth := OsThreadHeap^.Notes.GroupDepth - 1;
  OsThreadHeap^.Notes.GroupDepth := Depth;
  OsThreadHeap^.Notes.Group := Thread^.Groups[Depth];
  if Thread^.Groups[Depth] >= RegionGroups then // the thread may have left that region
    OsThreadHeap^.Notes.Group := GroupOfScope(OsThreadHeap);
end;

function GroupSet(Group: Cardinal): Cardinal;
var
  Heap: PHeap;
begin
  Result := 0;
  Heap := ThreadHeap;
  if Heap = nil then
    Exit;
  Result := Heap^.Notes.Group;
  Heap^.Notes.Group := Group;
end;

function GroupStay(Group: Cardinal): Cardinal;
begin
  Result := GroupCurrent;
  if Group or Result >= RegionGroups then
    GroupSet(Group);
end;

function GroupCurrent: Cardinal;
var
  Heap: PHeap;
begin
  Heap := ThreadHeap;
  Result := 0;
  if Heap <> nil then
    Result := Heap^.Notes.Group;
end;

// ---------------------------------------------------------------------------- names

// Returns the entry of the group, or the first free one; nil without either. Group 0 finds a free
// one. Regions have entries of their own, behind the others, each in turn.
function FindEntry(Group: Cardinal): PEntry;
var
  Index: NativeInt;
begin
  // Acquire: the empty entries of the table. Pairs with GroupSetName.
  Result := PEntry(LoadAcquire(Debug.GroupNames));
  if Result = nil then
    Exit;
  if Group >= RegionGroups then
  begin
    Inc(Result, NameLimit + Group mod NameLimit);
    Exit;
  end;
  for Index := 0 to NameLimit - 1 do
  begin
    // Acquire: the name of the entry. Pairs with GroupSetName.
    if (LoadAcquire(Result^.Group) = Group) or (LoadAcquire(Result^.Group) = 0) then
      Exit;
    Inc(Result);
  end;
  Result := nil;
end;

function GroupSetName(Group: Cardinal; Name: PAnsiChar): Boolean;
var
  Entry: PEntry;
  Length: NativeUInt;
begin
  OsTakeTable(Debug.GroupNames, 2 * NameLimit * SizeOf(TEntry)); // pairs with FindEntry
  Entry := FindEntry(Group);
  Result := (Entry <> nil) and (Group <> 0);
  if not Result then
    Exit;
  Length := TextLength(Name);
  if Length > MostNameBytes then
    Length := TextWhole(Name, MostNameBytes);
  Move(Name^, Entry^.Name, Length);
  Entry^.Name[Length] := #0;
  // Release: the name before the group. Pairs with FindEntry.
  StoreRelease(Entry^.Group, Group);
end;

// Returns the name of the region with this group if it was not freed; else nil.
function RegionName(Group: Cardinal): PAnsiChar;
var
  Heap: PHeap;
begin
  Heap := PHeap(LoadAcquire(Process.Heaps)); // acquire: the records. Pairs with HeapRecordNew
  while (Heap <> nil) and ((Heap^.Region <> Heap) or (RegionGroup(Heap) <> Group)
    or (LoadAcquire(Heap^.Data.Made) = RegionEnded)) do
    Heap := Heap^.NextHeap;
  Result := nil;
  if Heap <> nil then
    Result := @Heap^.Data.Name;
end;

function GroupName(Group: Cardinal): PAnsiChar;
var
  Entry: PEntry;
begin
  if Group >= RegionGroups then
  begin
    Result := RegionName(Group);
    if Result <> nil then
      Exit;
  end;
  Entry := FindEntry(Group);
  Result := nil;
  if (Group <> 0) and (Entry <> nil) and (LoadAcquire(Entry^.Group) = Group) then
    Result := @Entry^.Name;
end;

procedure GroupAddName(var Text: TText; Group: Cardinal);
var
  Name: PAnsiChar;
begin
  TextAddNumber(Text, Group);
  Name := GroupName(Group);
  if Name <> nil then
    TextAddForm(Text, ' (%s)', NativeUInt(Name));
end;

procedure GroupAddRegion(var Text: TText; Group: Cardinal);
var
  Name: PAnsiChar;
begin
  Name := GroupName(Group);
  if Name <> nil then
    TextAddChars(Text, Name)
  else
    TextAddNumber(Text, Cardinal(Group - RegionGroups));
end;

function GroupOfBlock(const Block: TBlockInfo): Cardinal;
var
  Region: PHeap;
begin
  Result := Block.Group;
  if (Result <> 0) or (LoadAcquire(Process.RegionsMade) = 0) then
    Exit;
  Region := RegionOfBlock(Block.Address);
  if Region <> nil then
    Result := RegionGroup(Region);
end;

function KeyOfName(Name: PAnsiChar): NativeUInt;
begin
  Result := 0;
  while Name^ <> #0 do
  begin
    Result := NativeUInt(Result xor Ord(Name^)) * NativeUInt(SpreadFactor);
    Inc(Name);
  end;
  Result := Result or RegionGroups;
end;

function GroupKey(const Block: TBlockInfo; Group: Cardinal): NativeUInt;
var
  Region: PHeap;
  Name: PAnsiChar;
begin
  Result := Group;
  if Group < RegionGroups then
    Exit;
  Region := nil;
  if Block.Group = 0 then
    Region := RegionOfBlock(Block.Address);
  if (Region <> nil) and (RegionGroup(Region) = Group) then
    Name := @Region^.Data.Name
  else
    Name := GroupName(Group);
  if Name <> nil then
    Result := KeyOfName(Name);
end;

// ---------------------------------------------------------------------------- totals

procedure AddBlock(const Block: TBlockInfo; Context: Pointer);
var
  Sum: PSum;
begin
  Sum := Context;
  if (Block.Kind <> skDebug) or (Block.Group <> Sum^.Group) then
    Exit;
  Inc(Sum^.Status.BlockCount);
  Inc(Sum^.Status.Bytes, Block.UsableSize);
end;

procedure GroupRead(Group: Cardinal; out Status: TGroupStatus);
var
  Sum: TSum;
begin
  Sum := Default(TSum);
  Sum.Group := Group;
  GuardPagesHold;
  WalkBlocks(AddBlock, @Sum);
  GuardPagesLetGo;
  Status := Sum.Status;
end;

end.
