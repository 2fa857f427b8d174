/// The table of call sites: who waits, frees blocks of others, lets blocks grow, allocates.
//
// Owns:       Observe.SiteKeys, Sites, SitesUsed, SitesLost.
// Invariants: a key is written once, by the thread that then describes the site; a site that is
//             not described yet is counted already. Sites are never removed. What finds the
//             table full is counted in SitesLost.
// Callers:    SitesStart: under no lock, any number of times. SitesForget: the one thread of a
//             child process. SiteFind, SiteAdd...: any thread.
// Progress:   lock-free: a key that another thread wrote first is looked at again.
unit LaneMM.CallSites;

{$I ../LaneMM.inc}

interface


uses
  LaneMM.Layout, LaneMM.Unwind;


const
  /// Entries of the table; three quarters of them are used at most.
  SiteLimit = 8192;
  /// Threads that a site can tell apart.
  MaxSiteThreads = 8;

type
  /// What is counted at a site.
  TSiteKind = (
    siArenaWait,      //< a thread waited for the lock of the arena
    siRegistryWait,   //< ... of the registry of threads
    siHeapWait,       //< ... of a thread heap that another thread swept
    siOrphansWait,    //< ... of the heap of ended threads
    siSamplesWait,    //< ... of the spans of sampled blocks
    siArenaMiss,      //< a thread found the lock of the arena taken, and went on without
    siRegistryMiss,   //< ... of the registry of threads; the rest as above
    siHeapMiss,
    siOrphansMiss,
    siSamplesMiss,
    siRemoteFree,     //< a block was freed that belongs to another thread
    siGrowth,         //< a block was made larger
    siAllocation      //< a sampled block
  );

  PSite = ^TSite;
  /// One call site. Of the counts a kind uses those that its line names.
  TSite = record
    IsReady: TAtomicWord;      //< shared  1: the next three are written
    Kind: TSiteKind;           //< const   what is counted
    SizeClass: Cardinal;       //< const   index of the block size, or NoSizeClass
    Stack: TBacktrace;             //< const   where
    Count: TAtomicWord;        //< shared  events, all kinds
    TotalNs: TAtomicWord;      //< shared  waited, waits
    LongestNs: TAtomicWord;    //< shared  longest wait, waits
    Moves: TAtomicWord;        //< shared  changes of the address, growth
    CopiedBytes: TAtomicWord;  //< shared  copied by them, growth
    FirstBytes: TAtomicWord;   //< shared  smallest usable size before, growth
    LastBytes: TAtomicWord;    //< shared  largest requested size, growth
    Bytes: TAtomicWord;        //< shared  allocated, allocations
    FreedCount: TAtomicWord;   //< shared  of Count, blocks freed since, allocations
    FreedBytes: TAtomicWord;   //< shared  of Bytes, allocations
    Threads: array[0..MaxSiteThreads - 1] of TAtomicWord; //< shared  who
  end;

const
  /// SizeClass of a site where blocks of all sizes count together.
  NoSizeClass = High(Cardinal);

/// Makes the table; tells whether there is one.
function SitesStart: Boolean;
/// Forgets all sites and their counts, in a child process.
procedure SitesForget;
/// The site of this kind, class and stack; nil when the table is full.
function SiteFind(Kind: TSiteKind; SizeClass: Cardinal; const Stack: TBacktrace): PSite;
/// Entry Index of the table, below SiteLimit; nil when it is not in use.
function SiteAt(Index: Cardinal): PSite;
/// Whether the next event is to be looked at, and for how many it stands; 0: not. Each event is at
/// first, then one of sixteen, not at a fixed distance. Events counts them.
function SampleWeight(var Events: TAtomicWord): NativeUInt;
/// Adds Weight events of the calling thread.
procedure SiteAddEvents(Site: PSite; Weight: NativeUInt);
/// Raises Word to Value if it is less.
procedure RaiseTo(var Word: TAtomicWord; Value: NativeUInt);
/// Threads that the site has seen, MaxSiteThreads for that or more.
function SiteThreadCount(Site: PSite): Cardinal;

implementation

uses
  LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.Lock, LaneMM.ObserveState;

const
  MostUsed = SiteLimit div 4 * 3;

type
  TKeys = array[0..SiteLimit - 1] of TAtomicWord;
  PKeys = ^TKeys;

const
  KeyBytes = (SizeOf(TKeys) + OsPageSize - 1) and not (OsPageSize - 1);
  SiteBytes = (SiteLimit * SizeOf(TSite) + OsPageSize - 1) and not (OsPageSize - 1);

function SitesStart: Boolean;
var
  Pages: PByte;
begin
  if Observe.SiteKeys <> 0 then
    Exit(True);
  Pages := OsTakePages(KeyBytes + SiteBytes);
  Result := Pages <> nil;
  if not Result then
    Exit;
  Observe.Sites := PSite(Pages + KeyBytes);
  // Release: the room before the keys. Pairs with SiteFind.
  StoreRelease(Observe.SiteKeys, NativeUInt(Pages));
end;

procedure SitesForget;
begin
  if Observe.SiteKeys <> 0 then
    OsClear(Pointer(Observe.SiteKeys), KeyBytes + SiteBytes);
  Observe.SitesUsed := 0;
  Observe.SitesLost := 0;
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
  // One of each Share events, a different one each time: no rhythm of the program matches it.
  if (Number xor (Number div Share * SpreadFactor shr 16)) mod Share = 0 then
    Result := Share
  else
    Result := 0;
end;

procedure Describe(Site: PSite; Kind: TSiteKind; SizeClass: Cardinal; const Stack: TBacktrace);
begin
  Site^.Kind := Kind;
  Site^.SizeClass := SizeClass;
  Site^.Stack := Stack;
  // Release: the description before the flag. Pairs with SiteAt.
  StoreRelease(Site^.IsReady, 1);
end;

// Counts a new site; tells whether there is room for it.
function MayUse: Boolean;
begin
  Result := FetchAdd(Observe.SitesUsed, 1) < MostUsed;
  if Result then
    Exit;
  FetchAdd(Observe.SitesUsed, NativeUInt(-1));
  FetchAdd(Observe.SitesLost, 1);
end;

function SiteFind(Kind: TSiteKind; SizeClass: Cardinal; const Stack: TBacktrace): PSite;
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
  Key := BacktraceHash(Stack, NativeUInt(Ord(Kind)) shl 8 + NativeUInt(SizeClass)) or 1;
  Index := (Key shr 8) mod SiteLimit;
  repeat
    Result := PSite(Observe.Sites) + Index;
    Found := LoadAcquire(Keys^[Index]);
    if Found = Key then
      Exit;
    if Found <> 0 then
      Index := (Index + 1) mod SiteLimit
    else if not MayUse then
      Exit(nil)
    else if CompareAndSwap(Keys^[Index], 0, Key) then
    begin
      Describe(Result, Kind, SizeClass, Stack);
      Exit;
    end
    else
      FetchAdd(Observe.SitesUsed, NativeUInt(-1)); // another thread took the entry: look again
  until False;
end;

function SiteAt(Index: Cardinal): PSite;
begin
  Result := nil;
  if (LoadAcquire(Observe.SiteKeys) = 0)
    or (LoadAcquire(PKeys(Observe.SiteKeys)^[Index]) = 0) then
    Exit;
  Result := PSite(Observe.Sites) + Index;
  // Acquire: see the description. Pairs with Describe.
  if LoadAcquire(Result^.IsReady) = 0 then
    Result := nil;
end;

procedure AddThread(Site: PSite; Thread: NativeUInt);
var
  Index: Cardinal;
begin
  for Index := 0 to MaxSiteThreads - 1 do
  begin
    if LoadAcquire(Site^.Threads[Index]) = Thread then
      Exit;
    if (LoadAcquire(Site^.Threads[Index]) = 0)
      and CompareAndSwap(Site^.Threads[Index], 0, Thread) then
      Exit;
  end;
end;

procedure SiteAddEvents(Site: PSite; Weight: NativeUInt);
begin
  FetchAdd(Site^.Count, Weight);
  if OsThreadHeap <> nil then
    AddThread(Site, NativeUInt(OsThreadHeap))
  else
    AddThread(Site, OsThreadId); // it has large blocks only
end;

procedure RaiseTo(var Word: TAtomicWord; Value: NativeUInt);
var
  Old: NativeUInt;
begin
  repeat
    Old := LoadAcquire(Word);
  until (Old >= Value) or CompareAndSwap(Word, Old, Value);
end;

function SiteThreadCount(Site: PSite): Cardinal;
begin
  Result := 0;
  while (Result < MaxSiteThreads) and (LoadAcquire(Site^.Threads[Result]) <> 0) do
    Inc(Result);
end;

end.
