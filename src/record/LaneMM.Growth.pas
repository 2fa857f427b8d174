/// Counts by call site how blocks grow: by a resize, or, as those of lists and hash tables do, by a
/// larger block, a copy, and a free of the smaller one.
//
// Owns:       Observe.Growths, a table of blocks that grew lately, and Observe.GrowthStacks;
//             LastGot and LastGotSize of the threads' notes. LaneMM.Watch sets
//             Observe.GrowthBehind, the calls that it goes through.
// Invariants: an entry's fields belong to its Block. Resizes in place are counted in the entry,
//             and added to the site when another block takes the entry or the log is written: a
//             site is looked up only when a block moves or first enters the table.
//             A flush moves Added up to Calls in one step, so that each call is added once. Around
//             the moment when another block takes the entry, a call may be lost, or be added to the
//             site of the block before.
// Copies:     a thread frees a block next after it allocated a larger one: that is a link. A site
//             counts from the second link on, where the block that is freed was the larger one of
//             the link before: a single replacement of an object by a larger one is no growth. An
//             entry whose Chain becomes another block's ends that chain.
// Callers:    the entries: the installed manager while `growth` is set. GrowthFlush: any thread.
// Progress:   lock-free but for GrowthBehind: an entry that another thread is changing is skipped.
unit LaneMM.Growth;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout;

/// Creates the table; returns whether it exists. Under no lock, any number of times.
function GrowthStart: Boolean;
/// Puts the counter in front of Observe.GrowthBehind.
procedure GrowthUseEntries(var Manager: TMemoryManager);
/// Adds the counts of the entries to their sites.
procedure GrowthFlush;
/// Clears the entries, in a child process.
procedure GrowthForget;

implementation

uses
  LaneMM.Types, LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.Threads, LaneMM.Blocks,
  LaneMM.Unwind, LaneMM.ObserveState, LaneMM.CallSites;

const
  EntryCount = 4096;
  // Block of an entry that a thread is changing.
  Busy = 1;
  // Of copies: smaller blocks are not watched; the larger one has at most so many times the bytes.
  LeastWatched = 512;
  MostGrowth = 8;

type
  TEntry = record
    Block: TAtomicWord;      //< shared  the block, 0 or Busy
    UsableSize: NativeUInt;  //< owner   usable size of the block
    LastSize: NativeUInt;    //< owner   size of the last request
    Calls: NativeUInt;       //< owner   resizes in place, of all blocks that had the entry
    Added: TAtomicWord;      //< shared  of Calls, those that were added to sites
    Site: PSite;             //< owner   nil: this block is not counted
    Weight: NativeUInt;      //< owner   events that one call stands for
    Chain: TAtomicWord;      //< shared  the newest block of a chain of copies, or 0
  end;
  PEntry = ^TEntry;
  TEntries = array[0..EntryCount - 1] of TEntry;
  PEntries = ^TEntries;

function GrowthStart: Boolean;
begin
  Result := OsTakeTable(Observe.Growths, SizeOf(TEntries));
end;

function EntryOf(P: Pointer): PEntry; inline;
begin
  Result := @PEntries(Observe.Growths)^[(NativeUInt(P) shr 4 xor NativeUInt(P) shr 16)
    mod EntryCount];
end;

// Adds the new calls to the site. Another thread may change fields meanwhile: each is read once.
procedure Flush(Entry: PEntry);
var
  Site: PSite;
  Calls, Added, Weight: NativeUInt;
begin
  Site := Entry^.Site;
  Weight := Entry^.Weight;
  Added := LoadAcquire(Entry^.Added);
  Calls := Entry^.Calls;
  // Any order: of two threads one adds them. No ABA: Added only grows.
  if (NativeInt(Calls - Added) <= 0) or not CompareAndSwap(Entry^.Added, Added, Calls)
    or (Site = nil) then
    Exit;
  FetchAdd(Site^.Count, NativeUInt(Calls - Added) * Weight);
  RaiseTo(Site^.LastBytes, Entry^.LastSize);
end;

// Stores P in its entry: the resizes in place that follow belong to Site.
procedure Keep(P: Pointer; Size, Weight: NativeUInt; Site: PSite);
var
  Entry: PEntry;
begin
  Entry := EntryOf(P);
  if Swap(Entry^.Block, Busy) = Busy then
    Exit;
  Flush(Entry);
  Entry^.UsableSize := BlockUsableSize(P);
  Entry^.LastSize := Size;
  Entry^.Site := Site;
  Entry^.Weight := Weight;
  // Release: the fields before the block. Pairs with the read in GrowthRealloc by the thread that
  // uses the block.
  StoreRelease(Entry^.Block, NativeUInt(P));
end;

// Removes P, any pointer, from its entry before it moves or is freed, and adds its counts to the
// site: another block may get its address.
procedure Forget(P: Pointer);
var
  Entry: PEntry;
begin
  Entry := EntryOf(P);
  if (P <> nil) and (Entry^.Block = NativeUInt(P))
    and CompareAndSwap(Entry^.Block, NativeUInt(P), Busy) then
  begin
    Flush(Entry);
    Entry^.UsableSize := 0; // nil, which the entry then has, is resized by the slow path
    StoreRelease(Entry^.Block, 0);
  end;
end;

procedure LowerTo(var Word: TAtomicWord; Value: NativeUInt);
var
  Old: NativeUInt;
begin
  repeat
    Old := LoadAcquire(Word);
  until (Old <> 0) and (Old <= Value) or CompareAndSwap(Word, Old, Value);
end;

function FindSite(Weight, UsableSize, Size: NativeUInt): PSite;
var
  Stack: TBacktrace;
begin
  BacktraceTake(Stack);
  Result := SiteFind(siGrowth, NoSizeClass, Stack);
  if Result = nil then
    Exit;
  SiteAddEvents(Result, Weight);
  LowerTo(Result^.FirstBytes, UsableSize);
  RaiseTo(Result^.LastBytes, Size);
end;

// Counts a block of UsableSize bytes that the program copied to one of Size bytes.
procedure CountCopy(UsableSize, Size: NativeUInt);
var
  Weight: NativeUInt;
  Site: PSite;
begin
  Weight := SampleWeight(Observe.GrowthStacks);
  if Weight = 0 then
    Exit;
  Site := FindSite(Weight, UsableSize, Size);
  if Site = nil then
    Exit;
  FetchAdd(Site^.Moves, Weight);
  FetchAdd(Site^.CopiedBytes, UsableSize * Weight);
end;

// Returns the counts of ReallocMem for this thread.
function CountsSoFar: TReallocCounts;
var
  Heap: PHeap;
begin
  Heap := ThreadHeap;
  if Heap = nil then
    Result := Default(TReallocCounts)
  else
    Result := Heap^.Realloc;
end;

// Resizes a block that must move, or is not in the table, to a larger size.
function Grow(var P: Pointer; Size, UsableSize: NativeUInt): Pointer;
var
  Before, After: TReallocCounts;
  Weight: NativeUInt;
  Site: PSite;
begin
  Weight := SampleWeight(Observe.GrowthStacks);
  Site := nil;
  if Weight > 0 then
    Site := FindSite(Weight, UsableSize, Size);
  Forget(P);
  Before := CountsSoFar;
  Result := Observe.GrowthBehind.ReallocMem(P, Size);
  if Result = nil then
    Exit;
  if Site <> nil then
  begin
    After := CountsSoFar;
    FetchAdd(Site^.Moves, (After.Moves - Before.Moves) * Weight);
    FetchAdd(Site^.CopiedBytes, (After.CopiedBytes - Before.CopiedBytes) * Weight);
  end;
  Keep(Result, Size, Weight, Site);
end;

function ReallocSlow(var P: Pointer; Size: NativeUInt): Pointer;
var
  UsableSize, LastSize: NativeUInt;
  Before: Pointer;
begin
  if Size = 0 then
    Forget(P);
  if (P = nil) or (Size = 0) or not BlockIsOurs(P) then
    Exit(Observe.GrowthBehind.ReallocMem(P, Size));
  UsableSize := BlockUsableSize(P);
  LastSize := UsableSize div 2; // stands for it, which is known of blocks in the table alone
  if EntryOf(P)^.Block = NativeUInt(P) then
    LastSize := EntryOf(P)^.LastSize;
  if Size > LastSize then
    Result := Grow(P, Size, UsableSize)
  else
  begin
    Before := P;
    Result := Observe.GrowthBehind.ReallocMem(P, Size);
    if P <> Before then
      Forget(Before);
  end;
end;

function GrowthRealloc(var P: Pointer; Size: TSize): Pointer;
var
  Entry: PEntry;
begin
  AcquireFence; // see SetEntries of LaneMM.Watch
  Entry := EntryOf(P);
  if (Entry^.Block <> NativeUInt(P)) or (Size > Entry^.UsableSize) or (Size <= Entry^.LastSize) then
    Exit(ReallocSlow(P, Size));
  Inc(Entry^.Calls);
  Entry^.LastSize := Size;
  Result := Observe.GrowthBehind.ReallocMem(P, Size);
end;

// ---------------------------------------------------------------------------- copies

// Notes a block that may become a copy.
procedure NoteGot(P: Pointer; Size: TSize); inline;
var
  Heap: PHeap;
begin
  if Size < LeastWatched then
    Exit;
  Heap := OsThreadHeap;
  if Heap = nil then
    Exit;
  Heap^.Notes.LastGot := P;
  Heap^.Notes.LastGotSize := Size;
end;

// P is freed, next after Notes.LastGot was allocated.
procedure SeeCopy(var Notes: TThreadNotes; P: Pointer);
var
  Got: Pointer;
  Size, GotSize: NativeUInt;
begin
  Got := Notes.LastGot;
  GotSize := Notes.LastGotSize;
  Notes.LastGot := nil;
  if (P = Got) or not BlockIsOurs(P) then
    Exit;
  Size := BlockUsableSize(P);
  if (Size >= GotSize) or (GotSize div MostGrowth > Size) then
    Exit;
  if CompareAndSwap(EntryOf(P)^.Chain, NativeUInt(P), 0) then // ends its chain, if it has one
    CountCopy(Size, GotSize);
  StoreRelease(EntryOf(Got)^.Chain, NativeUInt(Got));
end;

procedure SeeFree(P: Pointer); inline;
var
  Heap: PHeap;
begin
  Forget(P);
  Heap := OsThreadHeap;
  if (Heap <> nil) and (Heap^.Notes.LastGot <> nil) and (P <> nil) then
    SeeCopy(Heap^.Notes, P);
end;

// ---------------------------------------------------------------------------- entries

function GrowthGet(Size: TSize): Pointer;
begin
  AcquireFence; // see SetEntries of LaneMM.Watch
  Result := Observe.GrowthBehind.GetMem(Size);
  NoteGot(Result, Size);
end;

function GrowthGetZero(Size: TSize): Pointer;
begin
  AcquireFence; // likewise
  Result := Observe.GrowthBehind.AllocMem(Size);
  NoteGot(Result, Size);
end;

function GrowthFree(P: Pointer): TSize;
begin
  AcquireFence; // likewise
  SeeFree(P);
  Result := Observe.GrowthBehind.FreeMem(P);
end;

function GrowthFreeSize(P: Pointer; Size: TSize): TSize;
begin
  AcquireFence; // likewise
  SeeFree(P);
  Result := Observe.GrowthBehind.FreeMemSize(P, Size);
end;

procedure GrowthUseEntries(var Manager: TMemoryManager);
begin
  Manager.GetMem := GrowthGet;
  Manager.AllocMem := GrowthGetZero;
  Manager.FreeMem := GrowthFree;
  Manager.FreeMemSize := GrowthFreeSize;
  Manager.ReallocMem := GrowthRealloc;
end;

// ---------------------------------------------------------------------------- all

procedure GrowthForget;
begin
  if Observe.Growths <> 0 then
    OsClear(Pointer(Observe.Growths), AlignUp(SizeOf(TEntries), OsPageSize));
  Observe.GrowthStacks := 0;
end;

procedure GrowthFlush;
var
  Index: Cardinal;
begin
  if Observe.Growths <> 0 then
    for Index := 0 to EntryCount - 1 do
      Flush(@PEntries(Observe.Growths)^[Index]);
end;

end.
