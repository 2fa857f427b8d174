/// Leaks of a part of the program that has ended, such as a test: blocks that were allocated since
/// a moment, and that nothing reaches any more.
//
// Owns:       nothing.
// How:        new blocks have higher allocation numbers; `stacks`, which the first checkpoint
//             switches on where debug mode is off, gives them, and the places. The search is that
//             of the end of the program, with the roots of one that runs on.
// Limits:     a word that happens to be the address of a lost block hides it, as does an old copy
//             of its address in a routine that runs.
// Callers:    any thread that holds no lock; one search at a time, the next one waits.
unit LaneMM.LeaksSince;

{$I ../LaneMM.inc}

interface

type
  /// Blocks of one kind that were allocated at one line. The texts are valid during the call.
  TLeakInfo = record
    Name: PAnsiChar;       //< owner   class with its unit, kind of string, or `100-byte block`
    Count: NativeUInt;     //< owner   number of blocks
    Bytes: NativeUInt;     //< owner   bytes that were requested
    Place: PAnsiChar;      //< owner   `parser.pas:88 in PARSER.READNODE`, less of it where lines or
                           //  names are unknown; nil: unknown
  end;
  /// Receives such blocks. Context is the caller's.
  TLeakVisitor = procedure(const Leak: TLeakInfo; Context: Pointer);

/// Visits the blocks with allocation numbers above Mark that nothing reaches, and that no
/// suppression matches, those first that hold others. Finished is an object, or nil, that is used
/// no longer: its fields hold strings, arrays and interfaces, nothing else. Visitor may be nil.
/// Returns the number of blocks; 0 also without memory, and on Linux without /proc, where threads
/// and variables are found, each with a line on stderr.
function LeaksSince(Mark: NativeUInt; Finished: Pointer; Visitor: TLeakVisitor; Context: Pointer):
  NativeUInt;
/// Visits the blocks with allocation numbers above Mark that something reaches, likewise.
function ReachableSince(Mark: NativeUInt; Visitor: TLeakVisitor; Context: Pointer): NativeUInt;

implementation

uses
  LaneMM.Types, LaneMM.Hooks, LaneMM.Os, LaneMM.OsProcess, LaneMM.Rtl, LaneMM.Lock, LaneMM.Walk,
  LaneMM.ReportState, LaneMM.Text, LaneMM.Contents, LaneMM.Modules, LaneMM.Advice, LaneMM.Groups,
  LaneMM.GuardPages, LaneMM.LeaksState, LaneMM.Pause, LaneMM.Places, LaneMM.Retainers,
  LaneMM.Snapshot, LaneMM.LeakList, LaneMM.Leaks, LaneMM.Roots;

type
  TSearch = record
    Mark: NativeUInt;
    Finished: Pointer;
    IsForReachable: Boolean;
    Visitor: TLeakVisitor;
    Context: Pointer;
    Blocks: NativeUInt;    // new ones, before the search; the result
  end;
  PSearch = ^TSearch;

procedure CountNew(const Block: TBlockInfo; Context: Pointer);
begin
  if Block.Number > PSearch(Context)^.Mark then
    Inc(PSearch(Context)^.Blocks);
end;

// ---------------------------------------------------------------------------- the search

// Marks strings, arrays and interfaces of the block, which are freed with it: words, at any byte as
// in packed records, lead to these not at the start, but inside of their blocks. Of arrays it marks
// those of their items. After the roots, which may lead to the same arrays.
procedure MarkFields(var Snapshot: TSnapshot; Index: Cardinal);
var
  Held: Cardinal;
  First, Word, Past, Limit: PByte;
  Address: NativeUInt;
  Block: TBlockInfo;
  Contents: TContents;
begin
  First := Snapshot.Nodes[Index].Address;
  Word := First;
  Past := First;
  Limit := First + Snapshot.Nodes[Index].Size - (SizeOf(Address) - 1);
  if Snapshot.Nodes[Index].Size < OsPageSize then
    Past := Limit; // nothing smaller than a page is protected
  while Word < Limit do
  begin
    if Word >= Past then
    begin
      Past := OsNextWords(First, Limit, Word);
      Continue;
    end;
    Address := PNativeUInt(Word)^;
    Inc(Word);
    Held := SnapshotNodeAt(Snapshot, Address);
    if (Held = NoNode) or (Address = NativeUInt(Snapshot.Nodes[Held].Address))
      or (Snapshot.Nodes[Held].State <> nsCounted)
      or not WalkFind(Snapshot.Nodes[Held].Address, Block) then
      Continue;
    ContentsRead(Block, Contents);
    if Contents.Kind <> coDynamicArray then
      RetainersMarkWord(Snapshot, Address, nsRunning)
    else
    begin
      Snapshot.Nodes[Held].State := nsOther;
      MarkFields(Snapshot, Held);
    end;
  end;
end;

// Marks the blocks of regions, which are freed with these, and what they reach.
procedure MarkRegions(var Snapshot: TSnapshot);
var
  Index: NativeInt;
  Address: NativeUInt;
  Block: TBlockInfo;
begin
  for Index := 0 to NativeInt(Snapshot.NodeCount) - 1 do
  begin
    Address := NativeUInt(Snapshot.Nodes[Index].Address);
    if (RegionOfBlock(Pointer(Address)) <> nil)
      or WalkFind(Pointer(Address), Block) and (Block.Group >= RegionGroups) then
      RetainersMarkWord(Snapshot, Address, nsRunning);
  end;
end;

// Makes the blocks that something reaches those that count.
procedure CountReachable(var Snapshot: TSnapshot);
var
  Index: NativeInt;
  Node: PNode;
begin
  for Index := 0 to NativeInt(Snapshot.NodeCount) - 1 do
  begin
    Node := Snapshot.Nodes + Index;
    if Node^.State = nsCounted then
      Node^.State := nsOther
    else if Node^.State = nsRunning then
      Node^.State := nsCounted;
  end;
end;

// Returns whether a block since Mark was not reached.
function HasNew(const Snapshot: TSnapshot; Mark: NativeUInt): Boolean;
var
  Index: NativeInt;
  Block: TBlockInfo;
begin
  Result := False;
  for Index := 0 to NativeInt(Snapshot.NodeCount) - 1 do
    Result := Result or (Snapshot.Nodes[Index].State = nsCounted)
      and WalkFind(Snapshot.Nodes[Index].Address, Block) and (Block.Number > Mark);
end;

// Takes the snapshot while the other threads are paused. Returns whether there is one.
function Find(const Search: TSearch; Frame: NativeUInt; out Snapshot: TSnapshot): Boolean;
var
  Finished: Cardinal;
begin
  ModulesLook;
  LockEnter(Leaks.SearchLock);
  GuardPagesHold; // first: this would wait for a thread that is paused in GuardPagesForbid
  PauseOthers;
  Result := SnapshotOpen(Snapshot);
  if Result then
  begin
    SnapshotFindContainers(Snapshot);
    Finished := NoNode;
    if Search.Finished <> nil then
      Finished := SnapshotNodeAt(Snapshot, NativeUInt(Search.Finished));
    if Finished <> NoNode then
      Snapshot.Nodes[Finished].State := nsOther; // its fields are no roots
    RootsMarkAll(Snapshot, Frame);
    MarkRegions(Snapshot);
    if Finished <> NoNode then
      MarkFields(Snapshot, Finished);
    if HasNew(Snapshot, Search.Mark) and RetainersPack(Snapshot, nsRunning) then
      RootsMarkAll(Snapshot, Frame);
    SnapshotSelect(Snapshot, 0, High(Cardinal), Search.Mark + 1);
    if Search.IsForReachable then
      CountReachable(Snapshot);
    SnapshotGroup(Snapshot);
  end;
  PauseEnd;
  LockLeave(Leaks.SearchLock);
end;

// ---------------------------------------------------------------------------- the list

procedure VisitPlace(const Search: TSearch; const List: TLeakList; Place: PPlace;
  var Leak: TLeakInfo);
var
  Text: TText;
begin
  Leak.Place := AdviceOpenLine(Text, List.Symbolizer.Symbols, Place^.Stack);
  Leak.Count := Place^.Count;
  Leak.Bytes := Place^.Bytes;
  Search.Visitor(Leak, Search.Context);
  TextClose(Text);
end;

// Visits the places of a group, then its other blocks.
procedure VisitGroup(const Search: TSearch; const List: TLeakList; Index: Cardinal);
var
  Text: TText;
  Place: PPlace;
  Leak: TLeakInfo;
  Count, Bytes: NativeUInt;
begin
  TextOpen(Text, OsPageSize);
  LeakAddName(Text, List, LeakGroup(List, Index));
  Leak.Name := Text.Start;
  Count := LeakGroup(List, Index)^.Count;
  Bytes := LeakGroup(List, Index)^.Bytes;
  Place := LeakPlace(List, Index, nil);
  while Place <> nil do
  begin
    Dec(Count, Place^.Count);
    Dec(Bytes, Place^.Bytes);
    VisitPlace(Search, List, Place, Leak);
    Place := LeakPlace(List, Index, Place);
  end;
  Leak.Place := nil;
  Leak.Count := Count;
  Leak.Bytes := Bytes;
  if Count > 0 then
    Search.Visitor(Leak, Search.Context);
  TextClose(Text);
end;

procedure VisitList(var Search: TSearch; var Snapshot: TSnapshot);
const
  Topics: array[Boolean] of TLeakTopic = (ltLeaks, ltInUse);
var
  List: TLeakList;
  Index: NativeInt;
begin
  LeakListOpen(List, Snapshot, Topics[Search.IsForReachable]);
  GuardPagesLetGo; // before Visitor, which an exception may leave
  Search.Blocks := List.Blocks;
  for Index := 0 to NativeInt(List.Count) - 1 do
    VisitGroup(Search, List, Index);
  LeakListClose(List);
end;

// Context is the TSearch. The caller's registers lie above the frame.
procedure Run(Context: Pointer);
var
  Search: PSearch;
  Snapshot: TSnapshot;
begin
  Search := Context;
  if Find(Search^, NativeUInt(get_frame), Snapshot) then
    LeaksDescribe(Snapshot);
  Search^.Blocks := Snapshot.Counts[nsCounted];
  if Snapshot.LostCount > 0 then
    LeaksSayNoMemory;
  if (Search^.Blocks > 0) and (@Search^.Visitor <> nil) then
    VisitList(Search^, Snapshot)
  else
  begin
    SnapshotClose(Snapshot);
    GuardPagesLetGo;
  end;
end;

// Overwrites what ended routines have left on the stack: it would stand between the words of those
// that run.
procedure ForgetEndedRoutines;
var
  Words: array[0..511] of Pointer;
begin
  FillChar(Words, SizeOf(Words), 0);
end;

procedure SeeOwn(Id: Cardinal; Context: Pointer);
begin
  if Id = OsThreadId then
    PNativeUInt(Context)^ := 1;
end;

// Returns whether threads, stacks and variables can be found; False after a line.
function CanFindRoots: Boolean;
var
  Mapping: TOsMapping;
  Seen: NativeUInt;
begin
  Seen := 0;
  OsVisitThreads(SeeOwn, @Seen);
  Result := (Seen <> 0) and OsFindRegion(NativeUInt(@Mapping), Mapping);
  if not Result then
    ReportSayLine('leaks since a checkpoint are unknown: /proc is not mounted');
end;

// Search is all zero but for its fields: nothing of an ended routine lies between them.
function Start(Mark: NativeUInt; Finished: Pointer; IsForReachable: Boolean;
  Visitor: TLeakVisitor; Context: Pointer): NativeUInt;
var
  Search: TSearch;
begin
  if not Process.IsStarted then
    Exit(0);
  FillChar(Search, SizeOf(Search), 0);
  Search.Mark := Mark;
  Search.Finished := Finished;
  Search.IsForReachable := IsForReachable;
  Search.Visitor := Visitor;
  Search.Context := Context;
  GuardPagesHold;
  WalkBlocks(CountNew, @Search);
  GuardPagesLetGo;
  if (Search.Blocks > 0) and not CanFindRoots then
    Search.Blocks := 0;
  if Search.Blocks > 0 then
  begin
    ForgetEndedRoutines; // those of the walk and the look for roots
    RtlSpillRegisters(Run, @Search);
  end;
  Result := Search.Blocks;
end;

function LeaksSince(Mark: NativeUInt; Finished: Pointer; Visitor: TLeakVisitor; Context: Pointer):
  NativeUInt;
begin
  ForgetEndedRoutines;
  Result := Start(Mark, Finished, False, Visitor, Context);
end;

function ReachableSince(Mark: NativeUInt; Visitor: TLeakVisitor; Context: Pointer): NativeUInt;
begin
  ForgetEndedRoutines;
  Result := Start(Mark, nil, True, Visitor, Context);
end;

end.
