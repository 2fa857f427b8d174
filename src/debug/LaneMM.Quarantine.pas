/// The quarantine: freed debug blocks wait here before they are used again.
//
// Owns:       Debug.Quarantine; the freed blocks of each TDebugCache.
// Invariants: a freed block is in a parcel: first in the TDebugCache of one thread, then in the
//             quarantine, then in Debug.Ready, unless it goes to FreeList of its span.
// Callers:    any thread that does not hold Debug.Lock. QuarantineForget: a child process with one
//             thread.
// Progress:   the list changes under Debug.Lock, taken once for many blocks.
unit LaneMM.Quarantine;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Types, LaneMM.DebugState, LaneMM.DebugSpans;

/// Puts a block in the state dsFreed into the quarantine, by way of Cache, that of the calling
/// thread, unless it is nil. Returns the spans that became empty, a chain linked through Next: the
/// caller passes them to DebugSpanRelease.
function QuarantineAdd(Cache: PDebugCache; const Place: TDebugPlace): PSpan;
/// Sets Debug.Quarantine.MostBytes and takes out the oldest blocks beyond it; those that threads
/// have not passed on yet stay. Returns empty spans likewise.
function QuarantineLimit(MostBytes: NativeUInt): PSpan;
/// Takes all blocks out of Cache, out of the quarantine and out of Debug.Ready. Returns empty spans
/// likewise.
function QuarantineEmpty(Cache: PDebugCache): PSpan;
/// Empties the quarantine in a child process whose copy of it may be torn; its blocks stay freed.
procedure QuarantineForget;

implementation

uses
  LaneMM.Layout, LaneMM.DebugThreads, LaneMM.DebugBlocks, LaneMM.Parcels;

const
  // Most blocks in the quarantine.
  MostBlocks = 1 shl 18;
  // The share of the quarantine that a parcel may have.
  ParcelShare = 512;

// Takes the oldest parcel out. Under the lock, like the routines after it.
procedure Leave(var Empty: PSpan);
var
  Parcel: PParcel;
begin
  Parcel := ParcelsTake(Debug.Quarantine.Parcels);
  Dec(Debug.Quarantine.Count, ParcelCount(Parcel));
  Dec(Debug.Quarantine.Bytes, ParcelBytes(Parcel));
  DebugParcelKeep(Parcel, Empty);
end;

// Takes the oldest parcels out until the rest may stay.
procedure LeaveBeyond(var Empty: PSpan);
begin
  while (Debug.Quarantine.Bytes > Debug.Quarantine.MostBytes)
    or (Debug.Quarantine.Count > MostBlocks) do
    Leave(Empty);
end;

// Adds a parcel; one with more than half of the bytes of the quarantine does not wait at all.
procedure Enter(Parcel: PParcel; var Empty: PSpan);
begin
  if ParcelBytes(Parcel) > DebugMostHeld then
  begin
    DebugParcelKeep(Parcel, Empty);
    Exit;
  end;
  ParcelsAdd(Debug.Quarantine.Parcels, Parcel);
  Inc(Debug.Quarantine.Count, ParcelCount(Parcel));
  Inc(Debug.Quarantine.Bytes, ParcelBytes(Parcel));
  LeaveBeyond(Empty);
end;

// Returns an empty parcel for blocks like that at Place. Those with a span of their own differ in
// size: each has a parcel.
function ParcelFor(const Place: TDebugPlace): PParcel;
var
  Bytes, Room: NativeUInt;
begin
  Bytes := DebugBytesHeld(Place);
  Room := Debug.Quarantine.MostBytes div ParcelShare div Bytes + 1;
  if Room > ParcelLimit then
    Room := ParcelLimit;
  if Place.IsClosable then
    Room := 1;
  Result := ParcelNew(Room, Bytes);
end;

// Adds a block for which the thread has no parcel: the first one of its class, or that of a thread
// without a cache. Without memory for one the block does not wait. Returns empty spans, like the
// routine after it.
function AddFirst(Cache: PDebugCache; const Place: TDebugPlace): PSpan;
var
  Parcel: PParcel;
begin
  Result := nil;
  DebugLockEnter;
  Parcel := ParcelFor(Place);
  if Parcel = nil then
    DebugBlockRecycle(Place.Span, Place.Block, Result)
  else
  begin
    ParcelPut(Parcel, Place);
    if (Cache = nil) or (Parcel^.Limit = Parcel^.Full) then
      Enter(Parcel, Result)
    else
      Cache^.Freed[Place.Span^.SizeClass] := Parcel;
  end;
  DebugLockLeave;
end;

// Puts the freed blocks of a thread into the quarantine, the last one that at Place; the thread
// goes on with an empty parcel, or nil without memory.
function Pass(var Freed: PParcel; const Place: TDebugPlace): PSpan;
begin
  Result := nil;
  DebugLockEnter;
  Enter(Freed, Result);
  Freed := ParcelFor(Place);
  DebugLockLeave;
end;

function QuarantineAdd(Cache: PDebugCache; const Place: TDebugPlace): PSpan;
var
  Freed: ^PParcel;
begin
  if Cache = nil then
    Exit(AddFirst(Cache, Place));
  Freed := @Cache^.Freed[Place.Span^.SizeClass];
  if Freed^ = nil then
    Exit(AddFirst(Cache, Place));
  ParcelPut(Freed^, Place);
  if Freed^^.Limit = Freed^^.Full then
    Exit(Pass(Freed^, Place));
  Result := nil;
end;

function QuarantineLimit(MostBytes: NativeUInt): PSpan;
begin
  Result := nil;
  DebugLockEnter;
  Debug.Quarantine.MostBytes := MostBytes;
  LeaveBeyond(Result);
  DebugLockLeave;
end;

function QuarantineEmpty(Cache: PDebugCache): PSpan;
var
  Index: Cardinal;
begin
  Result := nil;
  DebugLockEnter;
  while Debug.Quarantine.Parcels.First <> nil do
    Leave(Result);
  if Cache <> nil then
  begin
    for Index := 0 to SizeClassCount - 1 do
      DebugParcelRecycle(Cache^.Ready[Index], Result);
    for Index := 0 to DebugClassCount - 1 do
      DebugParcelRecycle(Cache^.Freed[Index], Result);
    FillChar(Cache^, SizeOf(Cache^), 0);
  end;
  DebugParcelsEmpty(Result);
  DebugLockLeave;
end;

procedure QuarantineForget;
begin
  Debug.Quarantine.Parcels.First := nil;
  Debug.Quarantine.Count := 0;
  Debug.Quarantine.Bytes := 0;
end;

end.
