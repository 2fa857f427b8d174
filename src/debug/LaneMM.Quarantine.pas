/// The quarantine: freed debug blocks wait here before they are used again.
//
// Owns:       Debug.Quarantine; the freed blocks of each TDebugCache.
// Invariants: a freed block is in the TDebugCache of one thread or in the quarantine, then on
//             FreeList of its span.
// Callers:    any thread that does not hold Debug.Lock. QuarantineForget: a child process with one
//             thread.
// Progress:   the ring changes under Debug.Lock, taken once for many blocks.
unit LaneMM.Quarantine;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Types, LaneMM.DebugState, LaneMM.DebugSpans;

/// Makes the quarantine, once; False without memory.
function QuarantineStart: Boolean;
/// Puts a block in the state dsFreed into the quarantine, by way of Cache, that of the calling
/// thread, unless it is nil. Returns the spans that became empty, a chain linked through Next: the
/// caller passes them to DebugSpanRelease.
function QuarantineAdd(Cache: PDebugCache; const Place: TDebugPlace): PSpan;
/// Takes all blocks out of Cache and out of the quarantine. Returns empty spans likewise.
function QuarantineEmpty(Cache: PDebugCache): PSpan;
/// Empties the ring in a child process whose copy of it may be torn; its blocks stay freed.
procedure QuarantineForget;

implementation

uses
  LaneMM.Os, LaneMM.Lock, LaneMM.DebugBlocks;

const
  // Words of the ring; a power of two.
  RingLength = 1 shl 18;
  // Words of a parcel before its blocks.
  HeadWords = 2;
  // The share of the quarantine that may wait in a TDebugCache.
  FreedShare = 64;

type
  // Freed blocks that come and go together.
  TParcel = record
    Blocks: PNativeUInt; // their addresses
    Count: NativeUInt;
    Bytes: NativeUInt;   // that they hold
  end;

function QuarantineStart: Boolean;
begin
  if Debug.Quarantine.Ring <> nil then
    Exit(True);
  Debug.Quarantine.Ring := OsTakePages(RingLength * SizeOf(NativeUInt));
  Result := Debug.Quarantine.Ring <> nil;
end;

function RingPlace(Number: NativeUInt): PNativeUInt; inline;
begin
  Result := Debug.Quarantine.Ring + Number mod RingLength;
end;

// Takes the oldest parcel out: its blocks go to Cache as far as that keeps them, or, as without a
// Cache, to the free lists of their spans. Under the lock, like the two routines after it.
procedure RecycleOldest(Cache: PDebugCache; var Empty: PSpan);
var
  Ring: PNativeUInt;
  Next, Limit: NativeUInt;
  Block: PDebugBlock;
begin
  Ring := Debug.Quarantine.Ring;
  Next := Debug.Quarantine.First + HeadWords;
  Limit := Next + RingPlace(Debug.Quarantine.First)^;
  Dec(Debug.Quarantine.Bytes, RingPlace(Debug.Quarantine.First + 1)^);
  Debug.Quarantine.First := Limit;
  while Next <> Limit do
  begin
    Block := PDebugBlock(Ring[Next mod RingLength]);
    if (Cache = nil) or not DebugBlockKeep(Cache^, Block) then
      DebugBlockRecycle(Block, Empty);
    Inc(Next);
  end;
end;

// Adds a parcel. It is in the ring when Limit passes its last word: a child process that
// interrupts this loses its blocks.
procedure AddParcel(const Parcel: TParcel);
var
  Ring: PNativeUInt;
  Place: NativeUInt;
  Index: NativeInt;
begin
  Ring := Debug.Quarantine.Ring;
  Place := Debug.Quarantine.Limit;
  RingPlace(Place)^ := Parcel.Count;
  RingPlace(Place + 1)^ := Parcel.Bytes;
  Inc(Place, HeadWords);
  for Index := 0 to NativeInt(Parcel.Count) - 1 do
    Ring[(Place + NativeUInt(Index)) mod RingLength] := Parcel.Blocks[Index];
  Debug.Quarantine.Limit := Place + Parcel.Count;
  Inc(Debug.Quarantine.Bytes, Parcel.Bytes);
end;

// Makes place for a parcel, by way of Cache, and adds it.
procedure Keep(const Parcel: TParcel; Cache: PDebugCache; var Empty: PSpan);
begin
  while NativeUInt(Debug.Quarantine.Limit + HeadWords + Parcel.Count - Debug.Quarantine.First)
    > RingLength do
    RecycleOldest(Cache, Empty);
  AddParcel(Parcel);
  while Debug.Quarantine.Bytes > Debug.Quarantine.MostBytes do
    RecycleOldest(Cache, Empty);
end;

function ParcelOf(Blocks: PNativeUInt; Count, Bytes: NativeUInt): TParcel;
begin
  Result.Blocks := Blocks;
  Result.Count := Count;
  Result.Bytes := Bytes;
end;

// Puts the freed blocks of Cache into the quarantine; those that leave it go to Next. Returns empty
// spans, like the routine after it.
function KeepFreed(var Cache: TDebugCache; Next: PDebugCache): PSpan;
begin
  Result := nil;
  if Cache.FreedCount = 0 then
    Exit;
  LockEnter(Debug.Lock);
  Keep(ParcelOf(@Cache.Freed, Cache.FreedCount, Cache.FreedBytes), Next, Result);
  LockLeave(Debug.Lock);
  Cache.FreedCount := 0;
  Cache.FreedBytes := 0;
end;

// Adds a block that does not wait in a TDebugCache; one of more than half of the quarantine does
// not wait at all.
function AddAlone(Block: PDebugBlock; Bytes: NativeUInt): PSpan;
begin
  Result := nil;
  LockEnter(Debug.Lock);
  if Bytes > Debug.Quarantine.MostBytes div 2 then
    DebugBlockRecycle(Block, Result)
  else
    Keep(ParcelOf(@Block, 1, Bytes), nil, Result);
  LockLeave(Debug.Lock);
end;

function QuarantineAdd(Cache: PDebugCache; const Place: TDebugPlace): PSpan;
var
  Bytes, Most: NativeUInt;
begin
  Bytes := DebugBytesHeld(Place);
  Most := Debug.Quarantine.MostBytes div FreedShare;
  if (Cache = nil) or (Bytes > Most) then
    Exit(AddAlone(Place.Block, Bytes));
  Cache^.Freed[Cache^.FreedCount] := Place.Block;
  Inc(Cache^.FreedCount);
  Inc(Cache^.FreedBytes, Bytes);
  Result := nil;
  if (Cache^.FreedCount = FreedLimit) or (Cache^.FreedBytes > Most) then
    Result := KeepFreed(Cache^, Cache);
end;

function QuarantineEmpty(Cache: PDebugCache): PSpan;
begin
  Result := nil;
  if Cache <> nil then
    Result := KeepFreed(Cache^, nil);
  LockEnter(Debug.Lock);
  while Debug.Quarantine.First <> Debug.Quarantine.Limit do
    RecycleOldest(nil, Result);
  LockLeave(Debug.Lock);
end;

procedure QuarantineForget;
begin
  Debug.Quarantine.First := Debug.Quarantine.Limit;
  Debug.Quarantine.Bytes := 0;
end;

end.
