/// The table of call sites: taken locks, remote frees, growing blocks, sampled allocations.
//
// Owns:       Observe.SiteKeys, Sites, SitesUsed, SitesLost, StartMs, StartSeconds, LockMisses,
//             RemoteFrees; Hooks.LockMiss.
// Invariants: a key is written once, by the thread that then describes the site; events are
//             counted even before the description is complete. Sites are never removed, except
//             in a child process. Where the table is nearly full, new backtraces are cut behind
//             their innermost frames: recursion has endless others. SitesLost counts the events
//             for which even that has no entry.
// Callers:    SitesStart: under no lock, any number of times. SitesForget: the one thread of a
//             child process. The others: any thread.
// Progress:   lock-free: a thread that loses an entry to another one examines it again.
unit LaneMM.CallSites;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Unwind;

const
  /// Entries of the table; at most fifteen in sixteen are used, see Invariants.
  SiteLimit = 8192;
  /// Entries of the table of LaneMM.Samples.
  SampleLimit = 65536;
  /// Threads that a site distinguishes.
  MaxSiteThreads = 8;
  /// Upper limits of the classes of lifetimes, in milliseconds; blocks of the last class live
  /// longer.
  LifeLimits: array[0..4] of Cardinal = (10, 100, 1000, 10000, 100000);

type
  /// The events that a site counts.
  TSiteKind = (
    siShardMiss,      //< a thread found the lock of a shard taken, and went another way
    siHeapMiss,       //< ... the lock of a thread heap
    siAbandonedMiss,  //< ... the lock of the abandoned heap
    siSamplesMiss,    //< ... the lock of the spans of sampled blocks
    siRemoteFree,     //< a thread freed a block of another thread
    siGrowth,         //< a block was resized to a larger size
    siAllocation      //< a sampled block was allocated
  );

  PSite = ^TSite;
  /// One call site. Each kind uses the counts that name it.
  TSite = record
    IsReady: TAtomicWord;      //< shared  1: the next four are written
    Kind: TSiteKind;           //< const   the events that are counted
    SizeClass: Cardinal;       //< const   index of the block size, or NoSizeClass
    AllocStack: Cardinal;      //< const   number of the backtrace of the block's allocation, remote
                               //  frees; 0: unknown
    Stack: TBacktrace;         //< const   backtrace of the call
    Count: TAtomicWord;        //< shared  events, all kinds
    Moves: TAtomicWord;        //< shared  changes of the block's address, growth
    CopiedBytes: TAtomicWord;  //< shared  bytes copied by them, growth
    FirstBytes: TAtomicWord;   //< shared  smallest usable size before, growth
    LastBytes: TAtomicWord;    //< shared  largest requested size, growth
    Bytes: TAtomicWord;        //< shared  bytes allocated, allocations
    FreedCount: TAtomicWord;   //< shared  of Count, blocks freed since, allocations
    FreedBytes: TAtomicWord;   //< shared  of Bytes, bytes freed since, allocations
    Slack: TAtomicWord;        //< shared  usable less requested bytes of all blocks, allocations
    FreedSlack: TAtomicWord;   //< shared  of Slack, of blocks freed since, allocations
    Samples: TAtomicWord;      //< shared  samples that Count stands for, allocations
    FreedSamples: TAtomicWord; //< shared  of Samples, of blocks freed since, allocations
    TemporaryCount: TAtomicWord; //< shared  of FreedCount, temporary blocks, allocations
    TemporaryBytes: TAtomicWord; //< shared  of FreedBytes, bytes of them, allocations
    LifeMs: TAtomicWord;       //< shared  sum of the lifetimes of FreedCount, allocations
    Lives: array[0..High(LifeLimits) + 1] of TAtomicWord; //< shared  FreedCount by class of
                               //  lifetime, but for lost samples, allocations
    KeptPeak: TAtomicWord;     //< shared  the peak of the next two, see LaneMM.Samples, allocations
    PeakCount: TAtomicWord;    //< shared  blocks in use at that peak, allocations
    PeakBytes: TAtomicWord;    //< shared  bytes in use at that peak, allocations
    LeakedCount: TAtomicWord;  //< shared  blocks that leaked, see LaneMM.Leaks, allocations
    LeakedBytes: TAtomicWord;  //< shared  their bytes, allocations
    Threads: array[0..MaxSiteThreads - 1] of TAtomicWord; //< shared  the first threads seen
  end;

  PSample = ^TSample;
  /// A sampled block in use, see LaneMM.Samples.
  TSample = record
    Block: TAtomicWord;     //< shared  the block, 0, or 1 while a thread writes the rest
    Site: PSite;            //< const   its call site; this and the rest, while Block is the block
    Count: NativeUInt;      //< const   blocks that the sample stands for
    Bytes: NativeUInt;      //< const   bytes that the sample stands for
    Size: NativeUInt;       //< const   requested bytes of the block
    UsableSize: NativeUInt; //< const   its usable bytes, when it was allocated
    BornMs: Cardinal;       //< const   when it was allocated, by OsNowMs
    Heap: PHeap;            //< const   the heap of the thread that allocated it
    Number: NativeUInt;     //< const   the number of the allocation, see LaneMM.Samples
    Like: PSpan;            //< const   the thread's current span of the size class then; nil: none
  end;

const
  /// SizeClass of a site that counts blocks of all sizes together.
  NoSizeClass = High(Cardinal);

/// Creates the table, and registers the code of this module for the backtraces of other copies of
/// LaneMM; returns whether the table exists.
function SitesStart: Boolean;
/// Clears all sites and their counts, in a child process.
procedure SitesForget;
/// Returns the site of this kind, size class and backtrace, which may be cut, a new one if needed;
/// nil when the table is full or does not exist.
function SiteFind(Kind: TSiteKind; SizeClass: Cardinal; const Stack: TBacktrace): PSite;
/// Returns the index of a site, below SiteLimit.
function SiteIndex(Site: PSite): Cardinal;
/// Moves Site to the next one that is described, from nil to the first; returns whether there is
/// one.
function SiteNext(var Site: PSite): Boolean;
/// Counts one event in Events and returns its sampling weight: the number of events that it stands
/// for, 0 to skip it. The first 65,536 events weigh 1; later, one event of 16, at irregular
/// distances, weighs 16.
function SampleWeight(var Events: TAtomicWord): NativeUInt;
/// Adds Weight events of the calling thread to the site, unless that is nil.
procedure SiteAddEvents(Site: PSite; Weight: NativeUInt);
/// Returns All less Part, two sums of which Part grows second; never negative.
function Remaining(var All, Part: TAtomicWord): NativeUInt;
/// Returns the number of threads seen at the site; MaxSiteThreads means that many or more.
function SiteThreadCount(Site: PSite): Cardinal;
/// Counts the locks that threads find taken while the setting `contention` is on; the counts stay.
procedure LockMissesApply;
/// Counts the free of a remote block, by its size class and the number of the backtrace of its
/// allocation; 0: unknown.
procedure RemoteFreeCount(SizeClass, AllocStack: Cardinal);

implementation

uses
  LaneMM.Hooks, LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.OsProcess, LaneMM.Lock,
  LaneMM.Threads, LaneMM.SettingsState, LaneMM.CodeRanges, LaneMM.BacktraceTable,
  LaneMM.ObserveState;

const
  // Entries that are used by sites with whole backtraces, and by all.
  MostWhole = SiteLimit div 4 * 3;
  MostUsed = SiteLimit div 16 * 15;
  // Frames of a backtrace that is cut.
  CutFrames = 4;

type
  // What a site has besides its backtrace, see TSite.
  TSiteKey = record
    Kind: TSiteKind;
    SizeClass: Cardinal;
    AllocStack: Cardinal;
  end;

  TKeys = array[0..SiteLimit - 1] of TAtomicWord;
  PKeys = ^TKeys;

const
  TableBytes = SizeOf(TKeys) + SiteLimit * SizeOf(TSite);

procedure SetStart;
begin
  Observe.StartMs := OsNowMs;
  Observe.StartSeconds := OsUnixSeconds;
end;

function SitesStart: Boolean;
var
  Pages: PByte;
begin
  if Observe.SiteKeys <> 0 then
    Exit(True);
  CodeRangesStart;
  Pages := OsTakePages(TableBytes);
  Result := Pages <> nil;
  if not Result then
    Exit;
  Observe.Sites := PSite(Pages + SizeOf(TKeys));
  SetStart;
  // Release: Sites before the keys. Pairs with SiteFind.
  StoreRelease(Observe.SiteKeys, NativeUInt(Pages));
end;

procedure SitesForget;
begin
  if Observe.SiteKeys <> 0 then
    OsClear(Pointer(Observe.SiteKeys), TableBytes);
  Observe.SitesUsed := 0;
  Observe.SitesLost := 0;
  Observe.RemoteFrees := 0;
  Observe.LockMisses := 0;
  SetStart;
end;

function SampleWeight(var Events: TAtomicWord): NativeUInt;
const
  ExactEvents = 65536;
  Share = 16;
var
  Number: NativeUInt;
begin
  Number := FetchAdd(Events, 1);
  if Number < ExactEvents then
    Exit(1);
  // One of each Share events, at a different place each time: no rhythm of the program matches it.
  if (Number xor (Number div Share * SpreadFactor shr 16)) mod Share = 0 then
    Result := Share
  else
    Result := 0;
end;

procedure Describe(Site: PSite; const Key: TSiteKey; const Stack: TBacktrace);
begin
  Site^.Kind := Key.Kind;
  Site^.SizeClass := Key.SizeClass;
  Site^.AllocStack := Key.AllocStack;
  BacktracePin(Key.AllocStack);
  Site^.Stack := Stack;
  // Release: the description before the flag. Pairs with SiteNext.
  StoreRelease(Site^.IsReady, 1);
end;

// Counts a new site; returns whether fewer than Most are used.
function MayUse(Most: NativeUInt): Boolean;
begin
  Result := FetchAdd(Observe.SitesUsed, 1) < Most;
  if not Result then
    FetchAdd(Observe.SitesUsed, NativeUInt(-1));
end;

// Returns the site with this key and backtrace; nil if it would be a new one beyond Most.
function FindWhole(const SiteKey: TSiteKey; const Stack: TBacktrace; Most: NativeUInt): PSite;
var
  Keys: PKeys;
  Key, Found: NativeUInt;
  Index: Cardinal;
begin
  LockRecover;
  Keys := PKeys(LoadAcquire(Observe.SiteKeys));
  if Keys = nil then
    Exit(nil);
  // Never 0.
  Key := BacktraceHash(Stack, NativeUInt(Ord(SiteKey.Kind)) shl 8 + NativeUInt(SiteKey.SizeClass)
    + NativeUInt(SiteKey.AllocStack) * SpreadFactor) or 1;
  Index := (Key shr 8) mod SiteLimit;
  repeat
    Result := PSite(Observe.Sites) + Index;
    Found := LoadAcquire(Keys^[Index]);
    if Found = Key then
      Exit;
    if Found <> 0 then
      Index := (Index + 1) mod SiteLimit
    else if not MayUse(Most) then
      Exit(nil)
    else if CompareAndSwap(Keys^[Index], 0, Key) then
    begin
      Describe(Result, SiteKey, Stack);
      Exit;
    end
    else
      FetchAdd(Observe.SitesUsed, NativeUInt(-1)); // another thread took the entry: look again
  until False;
end;

// Returns the site of this kind, size class, allocation and backtrace, as SiteFind.
function Find(Kind: TSiteKind; SizeClass, AllocStack: Cardinal; const Stack: TBacktrace): PSite;
var
  Key: TSiteKey;
  Cut: TBacktrace;
begin
  Key.Kind := Kind;
  Key.SizeClass := SizeClass;
  Key.AllocStack := AllocStack;
  Result := FindWhole(Key, Stack, MostWhole);
  if (Result <> nil) or (LoadAcquire(Observe.SiteKeys) = 0) then
    Exit;
  if Stack.Count > CutFrames then
  begin
    Cut := Stack;
    Cut.Frames[CutFrames] := CutFrame;
    Cut.Count := CutFrames + 1;
    Result := FindWhole(Key, Cut, MostUsed);
  end;
  if Result = nil then
    FetchAdd(Observe.SitesLost, 1);
end;

function SiteFind(Kind: TSiteKind; SizeClass: Cardinal; const Stack: TBacktrace): PSite;
begin
  Result := Find(Kind, SizeClass, 0, Stack);
end;

function SiteIndex(Site: PSite): Cardinal;
begin
  Result := Site - PSite(Observe.Sites);
end;

function SiteNext(var Site: PSite): Boolean;
var
  Keys: PKeys;
  Index: Cardinal;
begin
  Keys := PKeys(LoadAcquire(Observe.SiteKeys));
  if Keys = nil then
    Exit(False);
  Index := 0;
  if Site <> nil then
    Index := SiteIndex(Site) + 1;
  Site := PSite(Observe.Sites) + Index;
  // The keys first: they are dense. Acquire: the description before the flag. Pairs with Describe.
  while (Index < SiteLimit)
    and ((LoadAcquire(Keys^[Index]) = 0) or (LoadAcquire(Site^.IsReady) = 0)) do
  begin
    Inc(Index);
    Inc(Site);
  end;
  Result := Index < SiteLimit;
end;

procedure SiteAddEvents(Site: PSite; Weight: NativeUInt);
var
  Thread: NativeUInt;
  Index: Cardinal;
begin
  if Site = nil then
    Exit;
  FetchAdd(Site^.Count, Weight);
  Thread := ThreadNumber; // its heap may come later, and be another thread's before
  for Index := 0 to MaxSiteThreads - 1 do
    if (LoadAcquire(Site^.Threads[Index]) = Thread) or (LoadAcquire(Site^.Threads[Index]) = 0)
      and CompareAndSwap(Site^.Threads[Index], 0, Thread) then
      Exit;
end;

function Remaining(var All, Part: TAtomicWord): NativeUInt;
var
  Gone: NativeUInt;
begin
  // This order: what is added meanwhile counts too much, and never as less than nothing.
  Gone := LoadAcquire(Part);
  Result := LoadAcquire(All) - Gone;
end;

function SiteThreadCount(Site: PSite): Cardinal;
begin
  Result := 0;
  while (Result < MaxSiteThreads) and (LoadAcquire(Site^.Threads[Result]) <> 0) do
    Inc(Result);
end;

// ---------------------------------------------------------------------------- locks, remote frees

procedure CountEvent(var Events: TAtomicWord; Kind: TSiteKind; SizeClass, AllocStack: Cardinal);
var
  Stack: TBacktrace;
  Weight: NativeUInt;
begin
  Weight := SampleWeight(Events);
  if Weight = 0 then
    Exit;
  BacktraceTake(Stack);
  SiteAddEvents(Find(Kind, SizeClass, BacktraceTrim(AllocStack), Stack), Weight);
end;

procedure CountMiss(var Lock: TLock);
var
  Kind: TSiteKind;
begin
  Kind := siHeapMiss;
  if NativeUInt(NativeUInt(@Lock) - NativeUInt(@Process.Shards)) < SizeOf(Process.Shards) then
    Kind := siShardMiss
  else if @Lock = @Process.Abandoned^.Lock then
    Kind := siAbandonedMiss
  else if @Lock = @Observe.SampleLock then
    Kind := siSamplesMiss;
  CountEvent(Observe.LockMisses, Kind, NoSizeClass, 0);
end;

procedure RemoteFreeCount(SizeClass, AllocStack: Cardinal);
begin
  CountEvent(Observe.RemoteFrees, siRemoteFree, SizeClass, AllocStack);
end;

procedure LockMissesApply;
begin
  if IsSet(opContention) then
    Hooks.LockMiss := CountMiss
  else
    Hooks.LockMiss := nil;
end;

end.
