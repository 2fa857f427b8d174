/// Counts by call site how blocks grow.
//
// Owns:       Observe.Growths, a table of blocks that grew lately, and Observe.GrowthStacks.
//             LaneMM.Watch sets Observe.GrowthBehind, which resizes the blocks.
// Invariants: an entry's fields belong to its Block. Resizes in place are counted in the entry,
//             and added to the site when another block takes the entry or the log is written: a
//             site is looked up only when a block moves or first enters the table.
//             A flush moves Added up to Calls in one step, so that each call is added once. Around
//             the moment when another block takes the entry, a call may be lost, or be added to the
//             site of the block before.
// Callers:    GrowthRealloc: the installed ReallocMem while `growth` is set. GrowthFlush: any
//             thread.
// Progress:   lock-free but for GrowthBehind: an entry that another thread is changing is skipped.
unit LaneMM.Growth;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout;

/// Creates the table; returns whether it exists. Under no lock, any number of times.
function GrowthStart: Boolean;
/// Resizes a block by Observe.GrowthBehind and counts it if the block grows.
function GrowthRealloc(var P: Pointer; Size: TSize): Pointer;
/// Adds the counts of the entries to their sites.
procedure GrowthFlush;
/// Removes the block P, which is being freed, or nil, from the table: another one may get its
/// address.
procedure GrowthSeeFree(P: Pointer);
/// Counts a block of UsableSize bytes that the program copied to one of Size bytes.
procedure GrowthCountCopy(UsableSize, Size: NativeUInt);
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

type
  TEntry = record
    Block: TAtomicWord;      //< shared  the block, 0 or Busy
    UsableSize: NativeUInt;  //< owner   usable size of the block
    LastSize: NativeUInt;    //< owner   size of the last request
    Calls: NativeUInt;       //< owner   resizes in place, of all blocks that had the entry
    Added: TAtomicWord;      //< shared  of Calls, those that were added to sites
    Site: PSite;             //< owner   nil: this block is not counted
    Weight: NativeUInt;      //< owner   events that one call stands for
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

// Removes P from its entry, before it moves, and adds its counts to the site.
procedure Forget(Entry: PEntry; P: Pointer);
begin
  if CompareAndSwap(Entry^.Block, NativeUInt(P), Busy) then
  begin
    Flush(Entry);
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

procedure GrowthCountCopy(UsableSize, Size: NativeUInt);
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
  Forget(EntryOf(P), P);
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

// Returns the size above which a request makes the block larger. The last requested size is known
// of blocks in the table only; for others half the usable size stands in for it.
function SizeBefore(P: Pointer; UsableSize: NativeUInt): NativeUInt;
begin
  if EntryOf(P)^.Block = NativeUInt(P) then
    Result := EntryOf(P)^.LastSize
  else
    Result := UsableSize div 2;
end;

procedure GrowthSeeFree(P: Pointer);
var
  Entry: PEntry;
begin
  Entry := EntryOf(P);
  if (P <> nil) and (Entry^.Block = NativeUInt(P)) then
    Forget(Entry, P);
end;

function ReallocSlow(var P: Pointer; Size: NativeUInt): Pointer;
var
  UsableSize: NativeUInt;
  Before: Pointer;
begin
  if Size = 0 then
    GrowthSeeFree(P);
  if (P = nil) or (Size = 0) or not BlockIsOurs(P) then
    Exit(Observe.GrowthBehind.ReallocMem(P, Size));
  UsableSize := BlockUsableSize(P);
  if Size > SizeBefore(P, UsableSize) then
    Result := Grow(P, Size, UsableSize)
  else
  begin
    Before := P;
    Result := Observe.GrowthBehind.ReallocMem(P, Size);
    if P <> Before then
      GrowthSeeFree(Before);
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
