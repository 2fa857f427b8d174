/// Counts by call site blocks that grow without ReallocMem: a larger block, a copy, and a free of
/// the smaller one, as lists and hash tables do.
//
// Owns:       Observe.Chains, the newest blocks of such chains; LastGot and LastGotSize of the
//             threads' notes. LaneMM.Watch sets the calls that it goes through.
// Invariants: a thread frees a block next after it allocated a larger one: that is a link. A site
//             counts from the second link on, where the block that is freed was the larger one of
//             the link before: a single replacement of an object by a larger one is no growth. A
//             word of Chains that another block takes ends that chain.
// Callers:    the entries: the installed manager while `growth` is set.
// Progress:   wait-free but for the calls behind.
unit LaneMM.Copies;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout;

/// Creates the table; returns whether it exists. Under no lock, any number of times.
function CopiesStart: Boolean;
/// Puts the counter, and that of LaneMM.Growth, in front of Observe.GrowthBehind: blocks grow by a
/// resize, or by a copy.
procedure CopiesUseEntries(var Manager: TMemoryManager);
/// Ends all chains, in a child process.
procedure CopiesForget;

implementation

uses
  LaneMM.Types, LaneMM.Atomic, LaneMM.Os, LaneMM.Blocks, LaneMM.Growth, LaneMM.ObserveState;

const
  ChainCount = 4096;
  // Smaller blocks are not watched; a copy is at most so many times as large.
  LeastWatched = 512;
  MostGrowth = 8;

type
  TChains = array[0..ChainCount - 1] of TAtomicWord;
  PChains = ^TChains;

function CopiesStart: Boolean;
begin
  Result := OsTakeTable(Observe.Chains, SizeOf(TChains));
end;

function ChainOf(P: Pointer): PNativeUInt; inline;
begin
  Result := @PChains(Observe.Chains)^[(NativeUInt(P) shr 4 xor NativeUInt(P) shr 16)
    mod ChainCount];
end;

// Notes a block that may become a copy.
procedure NoteGot(P: Pointer; Size: TSize);
var
  Heap: PHeap;
begin
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
  if CompareAndSwap(ChainOf(P)^, NativeUInt(P), 0) then // ends the chain of a block that has one
    GrowthCountCopy(Size, GotSize);
  StoreRelease(ChainOf(Got)^, NativeUInt(Got));
end;

procedure SeeFree(P: Pointer); inline;
var
  Heap: PHeap;
begin
  GrowthSeeFree(P);
  Heap := OsThreadHeap;
  if (Heap <> nil) and (Heap^.Notes.LastGot <> nil) and (P <> nil) then
    SeeCopy(Heap^.Notes, P);
end;

// ---------------------------------------------------------------------------- entries

function CopiesGet(Size: TSize): Pointer;
begin
  AcquireFence; // see SetEntries of LaneMM.Watch
  Result := Observe.GrowthBehind.GetMem(Size);
  if Size >= LeastWatched then
    NoteGot(Result, Size);
end;

function CopiesGetZero(Size: TSize): Pointer;
begin
  AcquireFence; // likewise
  Result := Observe.GrowthBehind.AllocMem(Size);
  if Size >= LeastWatched then
    NoteGot(Result, Size);
end;

function CopiesFree(P: Pointer): TSize;
begin
  AcquireFence; // likewise
  SeeFree(P);
  Result := Observe.GrowthBehind.FreeMem(P);
end;

function CopiesFreeSize(P: Pointer; Size: TSize): TSize;
begin
  AcquireFence; // likewise
  SeeFree(P);
  Result := Observe.GrowthBehind.FreeMemSize(P, Size);
end;

procedure CopiesUseEntries(var Manager: TMemoryManager);
begin
  Manager.GetMem := CopiesGet;
  Manager.AllocMem := CopiesGetZero;
  Manager.FreeMem := CopiesFree;
  Manager.FreeMemSize := CopiesFreeSize;
  Manager.ReallocMem := GrowthRealloc;
end;

procedure CopiesForget;
begin
  if Observe.Chains <> 0 then
    OsClear(Pointer(Observe.Chains), SizeOf(TChains));
end;

end.
