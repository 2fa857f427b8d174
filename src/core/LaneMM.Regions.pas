/// Regions: heaps whose blocks are freed at once.
//
// Owns:       TRegion; THeap.Region, RegionLife, Outer.
// What:       a region is a set of heaps, each used by one thread at a time. Its first one
//             describes it. A scope exchanges the heap in the thread's slot for one of the region,
//             so the paths of GetMem and FreeMem know nothing of regions. Blocks of a region are
//             freed like those of another thread, also by the thread itself when it is outside of
//             the scope.
// Invariants: a heap of a region is in use by the thread that entered, or on Idle, or in the hands
//             of a thread that frees or resets the region: Made counts these. Or it dissolves
//             (THeap.Dissolves), and no thread enters it any more. Left counts all, so that the
//             record that describes the region outlives them. A region's spans are never given
//             up: a full one stays in the heap's queues. So all spans are found from the heaps. No
//             heap of a region keeps runs (RunsClaimed).
// Free:       a thread takes all heaps from Idle. If these are as many as Made says, no thread is
//             in the region, and none can enter after the same compare-and-swap that ends it.
//             Otherwise it puts them back. A thread that enters meanwhile makes another heap. Then
//             the heaps dissolve, which a thread that has their lock does or completes: a span
//             whose blocks are just being shelved is left to the next sweep. A push by a thread
//             that frees a block at this moment fails, since the span's life has ended.
// Reset:      takes the heaps in the same way, releases their spans, and puts them back. A heap
//             that another thread sweeps just now, or with a span that is left, leaves the region
//             and dissolves.
// Handles:    the address of the first heap, a multiple of 2 KB, plus the low bits of its
//             RegionLife. The bits above addresses are made of the address, so that no other number
//             is followed; where there are no such bits, all heaps are searched for it. A record
//             that has described a region describes only regions afterwards: a thread that found
//             the earlier one, and enters, finds that it has ended, or finds the next one.
// Callers:    any thread that holds no lock.
// Progress:   no thread waits. A thread that was stopped in a scope, or with heaps in its hands,
//             keeps the region from being freed, and delays no other thread.
unit LaneMM.Regions;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types;

type
  /// Why a call did not do its work.
  TRegionAnswer = (
    raDone,    //< it did
    raNone,    //< the handle is that of no region, or of one that was freed
    raInside,  //< a thread is in the region; for RegionLeave: this one is in none
    raMemory   //< there is no memory for another heap
  );

/// Makes a region, whose name is copied, control characters as `?`; LimitSlices is the most that it
/// may have, 0: any number. Returns its handle; 0 without memory.
function RegionMake(Name: PAnsiChar; LimitSlices: NativeUInt): NativeUInt;
/// Returns the first heap of a region, which describes it; nil if there is no such region now.
function RegionFind(Handle: NativeUInt): PHeap;
/// Returns the handle of a region by its first heap.
function RegionHandle(Region: PHeap): NativeUInt;
/// Begins a scope of the calling thread, whose heap Outer is.
function RegionEnter(Region, Outer: PHeap): TRegionAnswer;
/// Ends the innermost scope of the calling thread, whose heap Heap is.
function RegionLeave(Heap: PHeap): TRegionAnswer;
/// Ends all scopes of the calling thread; returns its own heap.
function RegionLeaveAll(Heap: PHeap): PHeap;
/// Makes the thread's own heap, or one of Region if that is not nil, the calling thread's for a
/// moment; returns false without memory. RegionReturn with Before ends that.
function RegionVisit(Region, Before: PHeap): Boolean;
/// Ends RegionVisit.
procedure RegionReturn(Before: PHeap);
/// Frees all blocks of a region, and the region.
function RegionFree(Region: PHeap): TRegionAnswer;
/// Frees all blocks of a region, and keeps it with some of its memory.
function RegionReset(Region: PHeap): TRegionAnswer;
/// Releases the memory of a region that holds no block, as far as no thread is in it.
procedure RegionTrim(Region: PHeap);
/// Puts the heaps of lost threads back in a child process, without a current span. Own is the
/// calling thread's heap.
procedure RegionsRecover(Own: PHeap);

implementation

uses
  LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.Sweep, LaneMM.KeptRuns, LaneMM.HeapRecords,
  LaneMM.Heap, LaneMM.RegionHeaps;

const
  // The bits of a handle that tell one life of the record from the next.
  LifeMask = HeapLines * CacheLineSize - 1;
  // The bits of an address.
  AddressMask = High(NativeUInt) shr HeapWordShift;

// ---------------------------------------------------------------------------- handles

// Returns the bits of a handle above the address of the region.
function CheckBits(Region: PHeap): NativeUInt;
begin
  Result := NativeUInt(Region) * SpreadFactor and not AddressMask;
end;

function RegionHandle(Region: PHeap): NativeUInt;
begin
  Result := CheckBits(Region) + NativeUInt(Region) + Region^.RegionLife and LifeMask;
end;

// Returns whether Heap, of a handle that the program passed, can be read.
function IsRecord(Handle: NativeUInt; Heap: PHeap): Boolean;
var
  Next: PHeap;
begin
  if HeapWordShift <> 0 then
    Exit(Handle and not AddressMask = CheckBits(Heap));
  Next := PHeap(LoadAcquire(Process.Heaps)); // acquire: pairs with the swap of HeapRecordNew
  while (Next <> nil) and (Next <> Heap) do
    Next := Next^.NextHeap;
  Result := Next <> nil;
end;

function RegionFind(Handle: NativeUInt): PHeap;
begin
  Result := PHeap(Handle and AddressMask and not NativeUInt(LifeMask));
  if (Result = nil) or not IsRecord(Handle, Result) then
    Exit(nil);
  if (Result^.Region <> Result) or (RegionHandle(Result) <> Handle) then
    Result := nil;
end;

// ---------------------------------------------------------------------------- heaps

// Returns an unused record, or a new one, that keeps no runs; nil without memory. A sweep may be
// about to release those that the last thread kept: it writes the record until then.
function TakeRecord: PHeap;
begin
  Result := HeapPop(Process.UnusedHeaps);
  if (Result <> nil) and RunsEnd(Result) then
    Exit;
  if Result <> nil then
    HeapPush(Process.UnusedHeaps, Result);
  Result := HeapRecordNew;
  if Result <> nil then
    RunsEnd(Result);
end;

// Makes an unused record a heap of Region, which may be the record itself.
procedure Join(Region, Heap: PHeap);
begin
  Heap^.Outer := nil;
  Heap^.Dissolves := 0;
  FillChar(Heap^.Borrowed, SizeOf(Heap^.Borrowed), 0);
  // Release: the fields before the heap is one of a region. Pairs with HeapIsDissolving.
  ReleaseFence;
  Heap^.Region := Region;
end;

// Makes another heap of the region; nil without memory, or when the region was freed.
function AddHeap(Region: PHeap; out Reason: TRegionAnswer): PHeap;
var
  Made: TAtomicWord;
begin
  Reason := raMemory;
  Result := TakeRecord;
  if Result = nil then
    Exit;
  repeat
    Made := LoadAcquire(Region^.Data.Made);
    if Made = RegionEnded then
    begin
      Result^.RunsClaimed := 0;
      HeapPush(Process.UnusedHeaps, Result);
      Reason := raNone;
      Exit(nil);
    end;
    // Full barrier: either a thread that frees the region sees the heap, or this one the end.
  until CompareAndSwap(Region^.Data.Made, Made, Made + 1);
  FetchAdd(Region^.Data.Left, 1); // no order: the region is not freed before this heap is idle
  Join(Region, Result);
  Reason := raDone;
end;

function RegionMake(Name: PAnsiChar; LimitSlices: NativeUInt): NativeUInt;
var
  Heap: PHeap;
  Index: NativeUInt;
begin
  Heap := HeapPop(Process.UnusedRegions);
  if Heap = nil then
  begin
    Heap := TakeRecord;
    if Heap = nil then
      Exit(0);
    FillChar(Heap^.Data, SizeOf(Heap^.Data), 0);
  end;
  Heap^.Data.Slices := 0;
  Heap^.Data.Peak := 0;
  Heap^.Data.IsRefused := False;
  Heap^.Data.IsReported := False;
  FillChar(Heap^.Data.Name, SizeOf(Heap^.Data.Name), 0);
  Index := 0;
  while (Name <> nil) and (Name[Index] <> #0) and (Index < MostRegionName) do
  begin
    Heap^.Data.Name[Index] := Name[Index];
    if Name[Index] in [#1..#31, #127] then
      Heap^.Data.Name[Index] := '?'; // reports print it
    Inc(Index);
  end;
  Heap^.Data.Limit := LimitSlices;
  Heap^.Data.Number := FetchAdd(Process.RegionsMade, 1) + 1;
  Heap^.Data.Left := 2;
  Join(Heap, Heap);
  // Release: the region before it can be entered, also by a thread that had found the one before.
  // Pairs with AddHeap.
  StoreRelease(Heap^.Data.Made, 1);
  HeapPush(Heap^.Data.Idle, Heap);
  Result := RegionHandle(Heap);
end;

// ---------------------------------------------------------------------------- scopes

// Carries what the rooms above know of the thread from one of its heaps to the next.
procedure Carry(Source, Target: PHeap);
begin
  Target^.ThreadNumber := Source^.ThreadNumber;
  Target^.Notes := Source^.Notes;
end;

function RegionEnter(Region, Outer: PHeap): TRegionAnswer;
var
  Heap: PHeap;
begin
  Result := raDone;
  Heap := HeapPop(Region^.Data.Idle);
  if Heap = nil then
    Heap := AddHeap(Region, Result);
  if Heap = nil then
    Exit;
  Heap^.Outer := Outer;
  Heap^.IsForOne := False;
  Heap^.SampleIn := High(Heap^.SampleIn); // samples are blocks of no region
  Carry(Outer, Heap);
  Heap^.DebugThread := Outer^.DebugThread;
  OsSwitchThreadHeap(Heap);
end;

function RegionLeave(Heap: PHeap): TRegionAnswer;
var
  Outer: PHeap;
  Group: Cardinal;
begin
  if (Heap = nil) or (Heap^.Region = nil) then
    Exit(raInside);
  Outer := Heap^.Outer;
  Group := Outer^.Notes.Group; // that of debug blocks is the scope's
  Carry(Heap, Outer);
  Outer^.Notes.Group := Group;
  if Heap^.DebugThread <> nil then // else Outer may have one from RegionVisit
    Outer^.DebugThread := Heap^.DebugThread;
  Heap^.ThreadNumber := 0;
  Heap^.Notes := Default(TThreadNotes);
  Heap^.DebugThread := nil;
  Heap^.Outer := nil;
  OsSwitchThreadHeap(Outer);
  HeapPush(Heap^.Region^.Data.Idle, Heap);
  Result := raDone;
end;

function RegionLeaveAll(Heap: PHeap): PHeap;
begin
  Result := Heap;
  while Result^.Region <> nil do
  begin
    Heap := Result^.Outer;
    RegionLeave(Result);
    Result := Heap;
  end;
end;

function RegionVisit(Region, Before: PHeap): Boolean;
begin
  Result := True;
  if Region <> nil then
    Result := RegionEnter(Region, Before) = raDone
  else
    OsSwitchThreadHeap(HeapOrdinary(Before));
end;

procedure RegionReturn(Before: PHeap);
var
  Heap: PHeap;
begin
  Heap := OsThreadHeap;
  if Heap^.Region <> nil then
    RegionLeave(Heap)
  else
    OsSwitchThreadHeap(Before);
end;

// ---------------------------------------------------------------------------- all blocks at once

// Takes all idle heaps, linked by NextUnused; Count is their number.
function TakeIdle(Region: PHeap; out Count: NativeUInt): PHeap;
var
  Heap: PHeap;
begin
  Result := nil;
  Count := 0;
  repeat
    Heap := HeapPop(Region^.Data.Idle);
    if Heap = nil then
      Exit;
    Heap^.NextUnused := Result;
    Result := Heap;
    Inc(Count);
  until False;
end;

function TakeFirst(var First: PHeap): PHeap;
begin
  Result := First;
  if Result <> nil then
    First := Result^.NextUnused;
end;

procedure PutBack(Region, First: PHeap);
var
  Heap: PHeap;
begin
  Heap := TakeFirst(First);
  while Heap <> nil do
  begin
    HeapPush(Region^.Data.Idle, Heap);
    Heap := TakeFirst(First);
  end;
end;

function RegionFree(Region: PHeap): TRegionAnswer;
var
  First, Heap: PHeap;
  Count: NativeUInt;
begin
  First := TakeIdle(Region, Count);
  // Full barrier: no thread is in the region now, and none enters it any more. Pairs with AddHeap.
  if not CompareAndSwap(Region^.Data.Made, Count, RegionEnded) then
  begin
    PutBack(Region, First);
    Exit(raInside);
  end;
  Inc(Region^.RegionLife);
  Heap := TakeFirst(First);
  while Heap <> nil do
  begin
    RegionHeapDissolve(Heap);
    Heap := TakeFirst(First);
  end;
  RegionShareEnd(Region);
  Result := raDone;
end;

function RegionReset(Region: PHeap): TRegionAnswer;
var
  First, Heap: PHeap;
  Count: NativeUInt;
begin
  First := TakeIdle(Region, Count);
  if LoadAcquire(Region^.Data.Made) <> Count then
  begin
    PutBack(Region, First);
    Exit(raInside);
  end;
  Heap := TakeFirst(First);
  while Heap <> nil do
  begin
    if RegionHeapReset(Heap) then
      HeapPush(Region^.Data.Idle, Heap)
    else
    begin
      // Full barrier: Left counts the heap, so the region lasts until it has dissolved, even if it
      // is freed now. Pairs with RegionFree.
      FetchAdd(Region^.Data.Made, NativeUInt(-1));
      RegionHeapDissolve(Heap);
    end;
    Heap := TakeFirst(First);
  end;
  Result := raDone;
end;

procedure RegionTrim(Region: PHeap);
var
  First, Heap: PHeap;
  Count: NativeUInt;
begin
  First := TakeIdle(Region, Count);
  Heap := First;
  while Heap <> nil do
  begin
    HeapRetireEmpty(Heap);
    HeapSweepQueued(Heap);
    Heap := Heap^.NextUnused;
  end;
  PutBack(Region, First);
end;

// ---------------------------------------------------------------------------- fork

// Returns whether the heap is that of a scope of the thread whose heap Own is.
function IsInScope(Own, Heap: PHeap): Boolean;
begin
  while (Own <> nil) and (Own <> Heap) do
    if Own^.Region = nil then
      Own := nil
    else
      Own := Own^.Outer;
  Result := Own <> nil;
end;

// Counts a heap in its region. One that no scope of this thread uses has no current span, no
// Outer, and is idle, or dissolves with the next sweep where the region was freed.
procedure RecoverHeap(Own, Heap: PHeap);
begin
  Inc(Heap^.Region^.Data.Left);
  if Heap^.Region^.Data.Made <> RegionEnded then
    Inc(Heap^.Region^.Data.Made);
  if IsInScope(Own, Heap) then
    Exit;
  HeapFormat(Heap);
  Heap^.Outer := nil;
  Heap^.DebugThread := nil; // that of a lost thread's own heap
  Heap^.Dissolves := Ord(Heap^.Region^.Data.Made = RegionEnded);
  if Heap^.Dissolves = 0 then
    HeapPush(Heap^.Region^.Data.Idle, Heap)
  else
    SweepRequest;
end;

procedure RegionsRecover(Own: PHeap);
var
  Heap: PHeap;
begin
  Heap := PHeap(Process.Heaps);
  while Heap <> nil do
  begin
    if Heap^.Region = Heap then
    begin
      Heap^.Data.Idle := 0;
      Heap^.Data.Slices := 0;
      Heap^.Data.Left := Ord(Heap^.Data.Made <> RegionEnded);
      if Heap^.Data.Made <> RegionEnded then
        Heap^.Data.Made := 0;
    end;
    Heap := Heap^.NextHeap;
  end;
  Heap := PHeap(Process.Heaps);
  while Heap <> nil do
  begin
    if Heap^.Region <> nil then
      RecoverHeap(Own, Heap);
    Heap := Heap^.NextHeap;
  end;
end;

end.
