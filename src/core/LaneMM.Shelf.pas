/// The shelf: free blocks of spans that their owners do not use, in pages that are purged.
//
// Owns:       Process.ShelveFrom, ShelveNext; TSpan.ShelvedPages and the word that says so are
//             LaneMM.RemoteList's.
// Why:        a current span stays with its owner, which takes blocks from it without a lock, even
//             if it sleeps for ever. So if a span has no block in use by its counts, any thread
//             may shelve the blocks that others have freed: it takes their list, purges the pages
//             that no block in use lies in, and puts the other blocks back. The bytes behind the
//             carved blocks belong to no block: their pages are purged, too.
// Back:       the owner takes the shelved blocks on its slow paths (SpanRefill), and carves none
//             until then. It may leave the span meanwhile: then the later of it and the thread
//             that shelves requests a sweep.
// Callers:    any thread but the owner of the spans, under no lock.
// Progress:   no routine waits. One barrier of all threads for MostAtOnce spans.
unit LaneMM.Shelf;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types;

type
  /// A span whose blocks are being shelved, and those of them that other threads freed.
  TShelvingPart = record
    Span: PSpan;        //< owner   the span
    First: NativeUInt;  //< owner   offset of the first block
    Count: Cardinal;    //< owner   how many
    Damaged: PBlock;    //< owner   one whose link was overwritten, or nil
  end;
  /// Spans that one thread shelves blocks of at the same time.
  TShelving = record
    Count: Cardinal;                              //< owner   the first of Parts are in use
    Parts: array[1..MostAtOnce] of TShelvingPart; //< owner   the spans
  end;

/// Begins to purge the pages of a span of one slice that hold nothing but blocks that other threads
/// freed, and bytes that were never a block. Any thread, also when Span is no such span any more;
/// does nothing while another thread does the same. Shelving has room for one more.
procedure ShelveSpan(Span: PSpan; var Shelving: TShelving);
/// ShelveSpan for the current spans of a heap, of another thread. ShelveEnd when Shelving is full.
procedure ShelveHeap(Heap: PHeap; var Shelving: TShelving);
/// Completes ShelveSpan for all spans of Shelving, after one barrier of all threads; empties it.
procedure ShelveEnd(var Shelving: TShelving);
/// Shelves blocks of the current spans of all other threads.
procedure ShelveAll;
/// ShelveAll by parts: a thread that needs a span does no more than one at a time.
procedure ShelveSome;
/// Returns whether memory has grown since the last part, or that was not the last one.
function ShelveIsDue: Boolean;
/// Purges the pages of a span in which no block in use lies. No thread uses the free blocks any
/// more.
procedure ShelfPurgeFree(Span: PSpan);

implementation

uses
  LaneMM.Hooks, LaneMM.Bits, LaneMM.Atomic, LaneMM.Os, LaneMM.RemoteList, LaneMM.Span, LaneMM.Sweep,
  LaneMM.Backed, LaneMM.Threads;

// ---------------------------------------------------------------------------- pages

type
  // The free bytes of each granule of a span of one slice.
  TPageBytes = array[0..SliceSize div OsPageSize - 1] of NativeUInt;

procedure AddBytes(FreeBytes: PNativeUInt; First, Limit: NativeUInt);
var
  PageLimit: NativeUInt;
begin
  while First < Limit do
  begin
    PageLimit := AlignUp(First + 1, OsGranule);
    if PageLimit > Limit then
      PageLimit := Limit;
    Inc(FreeBytes[First div OsGranule], PageLimit - First);
    First := PageLimit;
  end;
end;

// Returns the pages of a span of one slice without a byte of a block that is in use or on FreeList,
// a bit each, those of a granule together. First leads to Count blocks, which belong to this
// thread; Count becomes less where a link was overwritten: its block, Damaged, else nil, and those
// after it count as used.
function FreePages(Span: PSpan; First: NativeUInt; var Count: Cardinal; out Damaged: PBlock): Word;
var
  FreeBytes: TPageBytes;
  Left: Cardinal;
  Next, Page: NativeUInt;
begin
  FillChar(FreeBytes, SizeOf(FreeBytes), 0);
  AddBytes(@FreeBytes, Span^.CarvedBytes, SliceSize);
  Left := Count;
  Damaged := nil;
  while (Left > 0) and (Damaged = nil) and SpanBlockBegins(Span, First) do
  begin
    Next := LinkOf(Span, PBlock(Span^.Start + First)^.Link);
    if not SpanBlockBegins(Span, Next) and (Next <> EndOfList) then
    begin
      Damaged := PBlock(Span^.Start + First);
      Continue;
    end;
    if Span^.SliceCount = 1 then
      AddBytes(@FreeBytes, First, First + Span^.BlockSize);
    First := Next;
    Dec(Left);
  end;
  Dec(Count, Left);
  Result := 0;
  if Span^.SliceCount = 1 then
    for Page := 0 to SliceSize div OsGranule - 1 do
      if FreeBytes[Page] = OsGranule then
        Result := Result or Word((Cardinal(1) shl (OsGranule div OsPageSize) - 1)
          shl (Page * (OsGranule div OsPageSize)));
end;

// Of Count blocks from First on, takes those in ShelvedPages out of the list. Returns the last one
// that is left, or nil. First words in other pages become 0 here, those in ShelvedPages by the
// purge: a double free that claims a block by its word 0 finds that word changed no more.
function TakeOut(Span: PSpan; var First: NativeUInt; var Count: Cardinal): PBlock;
var
  Next, This: NativeUInt;
  Block: PBlock;
  Left: Cardinal;
begin
  Result := nil;
  Next := First;
  Left := Count;
  Count := 0;
  // The check: a double free may have changed a link since FreePages.
  while (Left > 0) and SpanBlockBegins(Span, Next) do
  begin
    This := Next;
    Block := PBlock(Span^.Start + This);
    Next := LinkOf(Span, Block^.Link);
    Dec(Left);
    if Odd(Span^.ShelvedPages shr (This div OsPageSize)) then
      Continue;
    if RemoteShelfHas(Span, Block) then
      Block^.Link := 0
    else
    begin
      if Result = nil then
        First := This
      else
        Result^.Link := LinkOf(Span, This);
      Result := Block;
      Inc(Count);
    end;
  end;
end;

procedure PurgePages(Span: PSpan; Pages: NativeUInt);
var
  First, Limit: NativeUInt;
begin
  Limit := 0;
  while Pages shr Limit <> 0 do
  begin
    First := Limit;
    while not Odd(Pages shr First) do
      Inc(First);
    Limit := First;
    while Odd(Pages shr Limit) do
      Inc(Limit);
    OsErase(Span^.Start + First * OsPageSize, (Limit - First) * OsPageSize);
    OsClear(Span^.Start + First * OsPageSize, (Limit - First) * OsPageSize);
  end;
end;

// The owner's next free goes the slow path, which looks at the shelf.
procedure WarnOwner(Span: PSpan);
var
  Owner: NativeUInt;
begin
  Owner := NativeUInt(Span^.Owner);
  // An owner that writes Owner at this moment sees that blocks are being shelved. Pairs with
  // SetOwner in LaneMM.Heap.
  if not Odd(Owner) and (Owner and (AwaitsFree * 3) = 0) then
    CompareAndSwap(NativeUInt(Span^.Owner), Owner, Owner + AwaitsFree);
end;

procedure ShelveSpan(Span: PSpan; var Shelving: TShelving);
var
  First: NativeUInt;
  Count: Cardinal;
begin
  First := RemoteShelve(Span, Count);
  if Count = 0 then
    Exit;
  Inc(Shelving.Count);
  Shelving.Parts[Shelving.Count].Span := Span;
  Shelving.Parts[Shelving.Count].First := First;
  Shelving.Parts[Shelving.Count].Count := Count;
end;

// Shelves the blocks of a part. IsCertain: a barrier of all threads has passed since ShelveSpan.
procedure ShelvePart(var Part: TShelvingPart; IsCertain: Boolean);
var
  Span: PSpan;
  Pages: Word;
  First: NativeUInt;
  Last: PBlock;
  Count: Cardinal;
begin
  Span := Part.Span;
  First := Part.First;
  Count := Part.Count;
  Pages := FreePages(Span, First, Count, Part.Damaged);
  if IsCertain then
    Span^.ShelvedPages := Pages;
  if Span^.ShelvedPages <> 0 then
    WarnOwner(Span);
  // Release: a thread that reads the first word 0 finds the block on the shelf.
  ReleaseFence;
  Last := TakeOut(Span, First, Count);
  PurgePages(Span, Span^.ShelvedPages);
  RemoteShelveEnd(Span, First, Last, Count);
end;

procedure ShelveEnd(var Shelving: TShelving);
var
  Index: Cardinal;
  IsCertain: Boolean;
begin
  if Shelving.Count = 0 then
    Exit;
  // An owner sees that blocks are being shelved, or this thread what it has carved and written to
  // Owner. Pairs with RemoteHasShelf.
  IsCertain := OsBarrier;
  for Index := 1 to Shelving.Count do
    ShelvePart(Shelving.Parts[Index], IsCertain);
  // An owner has left its span meanwhile, as after a push. Pairs with PushTaken in LaneMM.Heap.
  for Index := 1 to Shelving.Count do
    if not Shelving.Parts[Index].Span^.IsCurrent then
      SweepRequest;
  for Index := 1 to Shelving.Count do
    if Shelving.Parts[Index].Damaged <> nil then
      SpanReport(coLink, Shelving.Parts[Index].Span, Shelving.Parts[Index].Damaged);
  Shelving.Count := 0;
end;

procedure ShelveHeap(Heap: PHeap; var Shelving: TShelving);
var
  SizeClass: Cardinal;
  Span: PSpan;
begin
  if not OsPurgedIsCommitted then
    Exit;
  for SizeClass := 0 to FirstCoarseClass - 1 do
  begin
    // Any span by now, or none: ShelveSpan sees to that.
    Span := Heap^.Current[SizeClass];
    if (RemoteCount(Span) = 0) or (SpanUsedCount(Span) <> 0) then
      Continue;
    if Shelving.Count = MostAtOnce then
      ShelveEnd(Shelving);
    ShelveSpan(Span, Shelving);
  end;
end;

// ---------------------------------------------------------------------------- all heaps

// Returns the slices that may be backed.
function UnshelvedSlices: NativeUInt;
var
  Shelved: NativeUInt;
begin
  Result := BackedSlices;
  Shelved := LoadAcquire(Process.ShelvedPages) * OsPageSize div SliceSize;
  if Shelved < Result then
    Dec(Result, Shelved);
end;

// Purges pages of current spans of other threads, from the heap Heap on, until Most heaps and spans
// or some more were tried. Returns the heap to go on with, nil after the last one. The next look is
// due then when memory has grown by one part in ShelveShare.
function ShelveHeaps(Heap: PHeap; Most: Cardinal): PHeap;
const
  ShelveShare = 8;
var
  Tried: Cardinal;
  Shelving: TShelving;
begin
  Result := Heap;
  Tried := 0;
  Shelving.Count := 0;
  while (Result <> nil) and (Tried < Most) and (Shelving.Count < Most) do
  begin
    Inc(Tried);
    if Result <> OsThreadHeap then
      ShelveHeap(Result, Shelving);
    Result := Result^.NextHeap;
  end;
  ShelveEnd(Shelving);
  if Result = nil then
    Process.ShelveFrom := UnshelvedSlices + UnshelvedSlices div ShelveShare + 1;
end;

procedure ShelveAll;
begin
  ShelveHeaps(ThreadsFirstHeap, High(Cardinal));
end;

procedure ShelveSome;
var
  Heap: PHeap;
begin
  Heap := Process.ShelveNext;
  if Heap = nil then
    Heap := ThreadsFirstHeap;
  Process.ShelveNext := ShelveHeaps(Heap, MostAtOnce);
end;

function ShelveIsDue: Boolean;
begin
  Result := (Process.ShelveNext <> nil) or (UnshelvedSlices >= Process.ShelveFrom);
end;

// ---------------------------------------------------------------------------- unloaded libraries

// Adds the blocks of a list, which may be damaged: no more than there are, and none outside of the
// span.
procedure AddList(FreeBytes: PNativeUInt; Span: PSpan; Free: NativeUInt);
var
  Left: NativeUInt;
begin
  Left := Span^.CarvedBytes div Span^.BlockSize;
  while (Left > 0) and SpanBlockBegins(Span, Free) do
  begin
    AddBytes(FreeBytes, Free, Free + Span^.BlockSize);
    Free := LinkOf(Span, PBlock(Span^.Start + Free)^.Link);
    Dec(Left);
  end;
end;

procedure ShelfPurgeFree(Span: PSpan);
var
  FreeBytes: array[0..1 shl OffsetBits div OsPageSize - 1] of NativeUInt;
  Page: NativeUInt;
begin
  FillChar(FreeBytes, SizeOf(FreeBytes), 0);
  AddBytes(@FreeBytes, Span^.CarvedBytes, Span^.SliceCount * SliceSize);
  AddList(@FreeBytes, Span, Span^.FreeList);
  AddList(@FreeBytes, Span, RemoteFirst(Span));
  for Page := 0 to Span^.SliceCount * SliceSize div OsGranule - 1 do
    if FreeBytes[Page] = OsGranule then
      OsPurge(Span^.Start + Page * OsGranule, OsGranule);
end;

end.
