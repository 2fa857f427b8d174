/// Counts allocations between two moments, of a thread or of all, and by place; for budgets.
//
// Owns:       Counting: the counters.
// Invariants: a counter is in use from CountStart to CountStop, its Heap is the thread's. The
//             counters of a thread are a stack; the newest one counts, and its sums are added to
//             the one before when it ends. One counter may be that of all threads: it counts beside
//             the others of its thread, as if it were not in the stack. The end of a thread ends
//             its counts.
// Callers:    CountCall: the entries of LaneMM.SeenCalls. Nothing is paid without a count.
// Progress:   wait-free; the peak is lock-free.
unit LaneMM.Counting;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout;

const
  /// Places: one for each of 4,095 backtraces, and one for allocations at further ones or at none.
  CountSiteSlots = 4096;

type
  /// The numbers of a count.
  TCounts = record
    Allocations: NativeUInt; //< owner   blocks that were allocated, by ReallocMem from nil too
    Frees: NativeUInt;       //< owner   blocks that were freed, by ReallocMem to 0 too
    Resizes: NativeUInt;     //< owner   other calls of ReallocMem
    Moves: NativeUInt;       //< owner   those of them that moved the block
    Bytes: NativeUInt;       //< owner   bytes that allocations and resizes asked for, all together
    Peak: NativeUInt;        //< owner   most usable bytes beyond those in use at the start
  end;
  /// The events of a count, in the order of the first fields of TCounts.
  TCountEvent = (ceAllocation, ceFree, ceResize, ceMove);
  PCountSite = ^TCountSite;
  /// The allocations with one backtrace.
  TCountSite = record
    Stack: TAtomicWord;   //< shared  its number; 0: unused
    Count: TAtomicWord;   //< shared  allocations
    Bytes: TAtomicWord;   //< shared  bytes that they asked for
    Line: NativeUInt;     //< owner   set at the end: the same for each backtrace of a line
  end;
  PCountSites = ^TCountSites;
  /// The sites of a count; the first has the allocations at no place or beyond the others.
  TCountSites = array[0..CountSiteSlots - 1] of TCountSite;
  /// Receives the sites of a count that has ended, valid during the call. Context is the caller's.
  TCountSitesCall = procedure(Sites: PCountSites; Context: Pointer);

/// Begins to count the calling thread, or all threads if OfAll; WithPlaces also by backtrace. The
/// caller then applies the entries. False without a free counter, or while another one counts all.
function CountStart(OfAll, WithPlaces: Boolean): Boolean;
/// Ends the newest count of the calling thread, and calls See, unless it is nil, if it has sites.
/// Zeros and False without a count.
function CountStop(out Counts: TCounts; See: TCountSitesCall; Context: Pointer): Boolean;
/// Counts an event in the counter of the thread and in that of all: P is a new block, or nil; it
/// has Requested bytes, and Change more usable ones are in use.
procedure CountCall(Event: TCountEvent; P: Pointer; Requested: NativeUInt; Change: NativeInt);
/// Returns whether any counter is in use.
function CountingIsOn: Boolean;
/// In a child process after fork: ends the counts of the threads that it has not.
procedure CountingForget;

implementation

uses
  LaneMM.Types, LaneMM.Hooks, LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.Walk, LaneMM.Threads,
  LaneMM.RegionHeaps, LaneMM.BacktraceTable;

const
  MostCounters = 32;

type
  PCounter = ^TCounter;
  TCounter = record
    Heap: TAtomicWord;    // the heap of its thread; 0: not in use
    Outer: PCounter;      // the one of the thread before
    IsNewest: Boolean;    // of its thread
    Counts: TCounts;
    InUse: TAtomicWord;   // usable bytes allocated, less those freed
    Sites: PCountSites;   // nil: not by place
    Table: PCountSites;   // its pages, or nil: kept, as a thread may still count in them
  end;

  // The state of this unit.
  TCounting = record
    Counters: array[0..MostCounters - 1] of TCounter;
    Active: TAtomicWord;  // counters in use
    OfAll: TAtomicWord;   // the counter of all threads, or 0
    SeesEnds: TAtomicWord; // 1: Hooks.ThreadEnds ends counts
    NextEnds: TPlainProcedure; // the hook before, or nil
  end;

var
  Counting: TCounting;

function CountingIsOn: Boolean;
begin
  Result := LoadAcquire(Counting.Active) > 0;
end;

// Returns the newest counter of the calling thread; nil if it has none.
function OwnCounter: PCounter;
var
  Heap: NativeUInt;
  Index: Cardinal;
begin
  Heap := NativeUInt(HeapOrdinary(OsThreadHeap));
  if Heap <> 0 then
    for Index := 0 to MostCounters - 1 do
    begin
      Result := @Counting.Counters[Index];
      if (LoadAcquire(Result^.Heap) = Heap) and Result^.IsNewest then
        Exit;
    end;
  Result := nil;
end;

// ---------------------------------------------------------------------------- counts

procedure CountIn(Counter: PCounter; Event: TCountEvent; Requested: NativeUInt; Change: NativeInt);
var
  InUse: NativeInt;
begin
  FetchAdd(PNativeUInt(@Counter^.Counts)[Ord(Event)], 1);
  FetchAdd(Counter^.Counts.Bytes, Requested);
  InUse := NativeInt(FetchAdd(Counter^.InUse, NativeUInt(Change))) + Change;
  if InUse > 0 then
    RaiseTo(Counter^.Counts.Peak, InUse);
end;

// Returns the site of a backtrace; with a full table that of no place.
function SiteOf(Sites: PCountSites; Stack: Cardinal): PCountSite;
var
  Index, Tries: Cardinal;
begin
  Index := Cardinal(NativeUInt(Stack * SpreadFactor) shr (SizeOf(Pointer) * 4));
  if Stack <> 0 then
    for Tries := 1 to CountSiteSlots do
    begin
      Index := Index mod (CountSiteSlots - 1) + 1;
      Result := @Sites^[Index];
      if (LoadAcquire(Result^.Stack) = 0) and CompareAndSwap(Result^.Stack, 0, Stack) then
      begin
        BacktracePin(Stack); // the block may be freed before the count ends
        Exit;
      end;
      if LoadAcquire(Result^.Stack) = Stack then
        Exit;
    end;
  Result := @Sites^[0];
end;

// Counts the allocation of P at the place of its backtrace; nothing for nil.
procedure CountSite(Sites: PCountSites; P: Pointer; Size: NativeUInt);
var
  Block: TBlockInfo;
  Site: PCountSite;
begin
  if (P = nil) or (Sites = nil) or not WalkFind(P, Block) then
    Exit;
  Site := SiteOf(Sites, Block.Stack);
  FetchAdd(Site^.Count, 1);
  FetchAdd(Site^.Bytes, Size);
end;

procedure CountCall(Event: TCountEvent; P: Pointer; Requested: NativeUInt; Change: NativeInt);
var
  Own, All: PCounter;
begin
  if not CountingIsOn then
    Exit;
  Own := OwnCounter;
  // Acquire: the counter as it was set up. Pairs with CountStart. It may end meanwhile: an event
  // then counts for none, or for the next count, in pages that stay.
  All := PCounter(LoadAcquire(Counting.OfAll));
  if (Own <> nil) and (Own = All) then
    Own := Own^.Outer;
  if Own <> nil then
  begin
    CountIn(Own, Event, Requested, Change);
    CountSite(Own^.Sites, P, Requested);
  end;
  if All <> nil then
  begin
    CountIn(All, Event, Requested, Change);
    CountSite(All^.Sites, P, Requested);
  end;
end;

// ---------------------------------------------------------------------------- start and stop

// Returns a counter that was not in use, now with Heap; nil when all are.
function TakeCounter(Heap: NativeUInt): PCounter;
var
  Index: Cardinal;
begin
  for Index := 0 to MostCounters - 1 do
  begin
    Result := @Counting.Counters[Index];
    if CompareAndSwap(Result^.Heap, 0, Heap) then
      Exit;
  end;
  Result := nil;
end;

procedure GiveCounter(Counter: PCounter);
begin
  Counter^.Sites := nil;
  Counter^.IsNewest := False;
  // Release: the record before its end. Pairs with TakeCounter.
  StoreRelease(Counter^.Heap, 0);
end;

// Has the counter count by place, in an empty table; not without memory.
procedure UseSites(Counter: PCounter);
begin
  if Counter^.Table = nil then
    Counter^.Table := OsTakePages(SizeOf(TCountSites))
  else
    FillChar(Counter^.Table^, SizeOf(TCountSites), 0);
  Counter^.Sites := Counter^.Table;
end;

// Ends the counts of a thread that ends. Hooks.ThreadEnds. The entries stay until the next change.
procedure EndCounts;
var
  Counts: TCounts;
begin
  while CountStop(Counts, nil, nil) do;
  if @Counting.NextEnds <> nil then
    Counting.NextEnds;
end;

procedure SeeEnds;
begin
  if not CompareAndSwap(Counting.SeesEnds, 0, 1) then // of several threads one; no order is needed
    Exit;
  Counting.NextEnds := Hooks.ThreadEnds;
  ReleaseFence; // the hook before, then this one. Pairs with the call, which needs its address
  Hooks.ThreadEnds := EndCounts;
end;

procedure CountingForget;
var
  Own: NativeUInt;
  Counter: PCounter;
  Index: Cardinal;
begin
  Own := NativeUInt(HeapOrdinary(OsThreadHeap));
  for Index := 0 to MostCounters - 1 do
  begin
    Counter := @Counting.Counters[Index];
    if (Counter^.Heap = 0) or (Counter^.Heap = Own) then
      Continue;
    if Counting.OfAll = NativeUInt(Counter) then
      Counting.OfAll := 0;
    Dec(Counting.Active);
    GiveCounter(Counter);
  end;
end;

function CountStart(OfAll, WithPlaces: Boolean): Boolean;
var
  Counter, Outer: PCounter;
begin
  Result := False;
  if not Process.IsStarted or (ThreadHeap = nil) then
    Exit;
  SeeEnds;
  Outer := OwnCounter;
  Counter := TakeCounter(NativeUInt(HeapOrdinary(OsThreadHeap)));
  if Counter = nil then
    Exit;
  FillChar(Counter^.Counts, SizeOf(TCounts), 0);
  Counter^.InUse := 0;
  Counter^.Outer := Outer;
  if WithPlaces then
    UseSites(Counter);
  if OfAll and not CompareAndSwap(Counting.OfAll, 0, NativeUInt(Counter)) then
  begin
    GiveCounter(Counter);
    Exit;
  end;
  if Outer <> nil then
    Outer^.IsNewest := False;
  Counter^.IsNewest := True;
  FetchAdd(Counting.Active, 1);
  Result := True;
end;

// Adds the sums of a count that has ended inside of another one.
procedure AddToOuter(Outer: PCounter; const Counts: TCounts; InUse: NativeInt);
var
  Peak: NativeInt;
begin
  Inc(Outer^.Counts.Allocations, Counts.Allocations);
  Inc(Outer^.Counts.Frees, Counts.Frees);
  Inc(Outer^.Counts.Resizes, Counts.Resizes);
  Inc(Outer^.Counts.Moves, Counts.Moves);
  Inc(Outer^.Counts.Bytes, Counts.Bytes);
  Peak := NativeInt(Outer^.InUse) + NativeInt(Counts.Peak);
  if Peak > NativeInt(Outer^.Counts.Peak) then
    Outer^.Counts.Peak := Peak;
  Inc(Outer^.InUse, NativeUInt(InUse));
end;

// Adds the sites of a count that has ended inside of another one.
procedure AddSites(Outer, Sites: PCountSites);
var
  Index: Cardinal;
  Site: PCountSite;
begin
  if (Outer <> nil) and (Sites <> nil) then
    for Index := 0 to CountSiteSlots - 1 do
      if Sites^[Index].Count > 0 then
      begin
        Site := SiteOf(Outer, Sites^[Index].Stack);
        Inc(Site^.Count, Sites^[Index].Count);
        Inc(Site^.Bytes, Sites^[Index].Bytes);
      end;
end;

// Returns the counter of the thread outside of Counter that counts it alone; nil if there is none.
function OuterOf(Counter: PCounter): PCounter;
begin
  Result := Counter^.Outer;
  if (Result <> nil) and (LoadAcquire(Counting.OfAll) = NativeUInt(Result)) then
    Result := Result^.Outer;
end;

function CountStop(out Counts: TCounts; See: TCountSitesCall; Context: Pointer): Boolean;
var
  Counter, Outer: PCounter;
  IsOfAll: Boolean;
begin
  FillChar(Counts, SizeOf(Counts), 0);
  Counter := OwnCounter;
  Result := Counter <> nil;
  if not Result then
    Exit;
  Counter^.IsNewest := False;
  IsOfAll := CompareAndSwap(Counting.OfAll, NativeUInt(Counter), 0);
  Counts := Counter^.Counts;
  if Counter^.Outer <> nil then
    Counter^.Outer^.IsNewest := True;
  Outer := OuterOf(Counter);
  if not IsOfAll and (Outer <> nil) then // the one of all does not count for others
  begin
    AddToOuter(Outer, Counts, NativeInt(Counter^.InUse));
    AddSites(Outer^.Sites, Counter^.Sites);
  end;
  FetchAdd(Counting.Active, NativeUInt(-1));
  if (Counter^.Sites <> nil) and (@See <> nil) then
    See(Counter^.Sites, Context);
  GiveCounter(Counter);
end;

end.
