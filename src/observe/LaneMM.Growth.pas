/// Counts by call site how blocks grow.
//
// Owns:       Observe.Growths, a table of blocks that grew lately, and GrowthStacks. GrowthCall
//             is BlockRealloc or what stands for it, see LaneMM.Watch.
// Invariants: an entry's fields belong to its Block. Calls that are answered in place are counted
//             in the entry, and added to the site when another block takes the entry or the log
//             is written; a site that lets a block grow is found once per move of the block.
// Callers:    GrowthRealloc: the installed ReallocMem while growth is watched. GrowthFlush: any
//             thread; exact while no other thread reallocates.
// Progress:   wait-free but for BlockRealloc: an entry that another thread is changing is left.
unit LaneMM.Growth;

{$I ../LaneMM.inc}

interface


uses
  LaneMM.Layout;


/// Makes the table; tells whether there is one.
function GrowthStart: Boolean;
/// Observe.GrowthCall, counted.
function GrowthRealloc(var P: Pointer; Size: TSize): Pointer;
/// Adds to the sites what their entries hold.
procedure GrowthFlush;
/// Forgets the entries, in a child process.
procedure GrowthForget;

implementation

uses
  LaneMM.Types, LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.Threads, LaneMM.Blocks,
  LaneMM.Unwind, LaneMM.ObserveState, LaneMM.CallSites;

const
  EntryCount = 4096;
  // Block of an entry that is being changed.
  Busy = 1;

type
  TEntry = record
    Block: TAtomicWord;      //< shared  the block, 0 or Busy
    UsableSize: NativeUInt;  //< owner   of the block
    LastSize: NativeUInt;    //< owner   requested last
    Calls: NativeUInt;       //< owner   not yet added to the site
    Site: PSite;             //< owner   nil: this block is not counted
    Weight: NativeUInt;      //< owner   calls that one call stands for
  end;
  PEntry = ^TEntry;
  TEntries = array[0..EntryCount - 1] of TEntry;
  PEntries = ^TEntries;

function GrowthStart: Boolean;
var
  Pages: Pointer;
begin
  if Observe.Growths <> 0 then
    Exit(True);
  Pages := OsTakePages(SizeOf(TEntries));
  Result := Pages <> nil;
  if Result then
    StoreRelease(Observe.Growths, NativeUInt(Pages));
end;

function EntryOf(P: Pointer): PEntry; inline;
begin
  Result := @PEntries(Observe.Growths)^[(NativeUInt(P) shr 4 xor NativeUInt(P) shr 16)
    mod EntryCount];
end;

procedure Flush(Entry: PEntry);
begin
  if (Entry^.Site <> nil) and (Entry^.Calls > 0) then
  begin
    FetchAdd(Entry^.Site^.Count, Entry^.Calls * Entry^.Weight);
    RaiseTo(Entry^.Site^.LastBytes, Entry^.LastSize);
  end;
  Entry^.Calls := 0;
end;

// Lets P take its entry: the calls that follow in place belong to Site.
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
  // Release: the fields before the block. Pairs with GrowthRealloc, where a thread that owns
  // the block itself looks.
  StoreRelease(Entry^.Block, NativeUInt(P));
end;

// Takes the counts of a block that moves out of the table.
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

// What ReallocMem has counted in this thread.
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

// Resizes a block that needs another place, or is not in the table, to more than it was.
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
  Result := Observe.GrowthCall(P, Size);
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

// The size above which a request makes the block larger. What a block was asked for last is
// known of those in the table only.
function SizeBefore(P: Pointer; UsableSize: NativeUInt): NativeUInt;
begin
  if EntryOf(P)^.Block = NativeUInt(P) then
    Result := EntryOf(P)^.LastSize
  else
    Result := UsableSize div 2;
end;

function ReallocSlow(var P: Pointer; Size: NativeUInt): Pointer;
var
  UsableSize: NativeUInt;
begin
  if (P = nil) or (Size = 0) or not BlockIsOurs(P) then
    Exit(Observe.GrowthCall(P, Size));
  UsableSize := BlockUsableSize(P);
  if Size > SizeBefore(P, UsableSize) then
    Result := Grow(P, Size, UsableSize)
  else
    Result := Observe.GrowthCall(P, Size);
end;

function GrowthRealloc(var P: Pointer; Size: TSize): Pointer;
var
  Entry: PEntry;
begin
  Entry := EntryOf(P);
  if (Entry^.Block <> NativeUInt(P)) or (Size > Entry^.UsableSize) or (Size <= Entry^.LastSize) then
    Exit(ReallocSlow(P, Size));
  Inc(Entry^.Calls);
  Entry^.LastSize := Size;
  Result := Observe.GrowthCall(P, Size);
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
