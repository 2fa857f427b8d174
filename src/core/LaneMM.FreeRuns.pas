/// Runs of free slices of a shard: bins by length, neighbours joined, warm runs in order of age.
//
// Owns:       TShard.Warm, Cold, Oldest, Youngest, WarmSlices, ColdSlices; the records of
//             free runs.
// Invariants: a free run's first record is skFree with SliceCount, its last, if it
//             is another, skFreeEnd with Distance; both have the number of the shard. Two
//             neighbouring runs of one warmth and one shard are one run. Warm runs may hold backed
//             pages with any contents; cold runs read as zeros.
//             Oldest to Youngest: the warm runs, unused for longest first.
// Other shards: a neighbour of another shard may change at any time. Its number never does, and is
//             0 before it is written: a thread never takes it for one of its own shard.
// Callers:    any thread, under the lock of the runs' shard only.
// Source:     bins: Masmano, Ripoll, Crespo and Real, "TLSF: A New Dynamic Memory Allocator
//             for Real-Time Systems" (2004); neighbours: Knuth, TAOCP 1, 2.5, boundary tags.
unit LaneMM.FreeRuns;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Types;

/// Adds the run of SliceCount slices at Span, joined with its free neighbours of the same warmth.
/// Span has the number of the shard.
procedure FreeRunAdd(Span: PSpan; SliceCount: NativeUInt; IsWarm: Boolean);
/// Takes SliceCount slices from a free run in Bins that has at least as many; prefers short runs.
/// Checks at most Tries runs in the bin whose runs may be too short. Nil when it finds none.
function FreeRunTake(var Bins: TBins; SliceCount, Tries: NativeUInt): PSpan;
/// Takes slices from the warm runs of a shard; nil also when a cold run is long enough and shorter.
function FreeRunTakeFitting(Shard: PShard; SliceCount, Tries: NativeUInt): PSpan;
/// Returns the run after Run in Bins, in any order, the first one after nil; nil after the last.
function FreeRunNext(var Bins: TBins; Run: PSpan): PSpan;
/// Takes SliceCount slices from the front of the free run Span; the rest stays free.
procedure FreeRunCut(Span: PSpan; SliceCount: NativeUInt);
/// Returns true if Span is the first record of a free run.
function IsFreeRun(Span: PSpan): Boolean;
/// Empties the bins of a shard; the records of the runs stay as they are. For a child process,
/// which adds the runs anew.
procedure FreeRunsForget(Shard: PShard);
/// Returns the shard of a span or a free run.
function ShardOf(Span: PSpan): PShard; inline;

implementation

uses
  LaneMM.Layout, LaneMM.Bits;

const
  ExactBins = 8;

// ---------------------------------------------------------------------------- bins

function BinOf(SliceCount: NativeUInt): Cardinal;
var
  Log2: Cardinal;
begin
  if SliceCount < ExactBins then
    Exit(SliceCount);
  Log2 := FloorLog2(SliceCount);
  Result := (Log2 - 2) * ExactBins + Cardinal(SliceCount shr (Log2 - 3)) - ExactBins;
end;

function ShardOf(Span: PSpan): PShard;
begin
  Result := @Process.Shards[Span^.Shard];
end;

function BinsOf(Span: PSpan): Pointer; inline;
begin
  if Span^.IsWarm then
    Result := @ShardOf(Span)^.Warm
  else
    Result := @ShardOf(Span)^.Cold;
end;

procedure BinLink(var Bins: TBins; Span: PSpan);
var
  Bin: Cardinal;
begin
  Bin := BinOf(Span^.SliceCount);
  Span^.Prev := nil;
  Span^.Next := Bins.Heads[Bin];
  if Span^.Next <> nil then
    Span^.Next^.Prev := Span;
  Bins.Heads[Bin] := Span;
  Bins.Map[Bin shr 5] := Bins.Map[Bin shr 5] or Cardinal(1) shl (Bin and 31);
end;

procedure BinUnlink(var Bins: TBins; Span: PSpan);
var
  Bin: Cardinal;
begin
  if Span^.Next <> nil then
    Span^.Next^.Prev := Span^.Prev;
  if Span^.Prev <> nil then
  begin
    Span^.Prev^.Next := Span^.Next;
    Exit;
  end;
  Bin := BinOf(Span^.SliceCount);
  Bins.Heads[Bin] := Span^.Next;
  if Span^.Next = nil then
    Bins.Map[Bin shr 5] := Bins.Map[Bin shr 5] and not (Cardinal(1) shl (Bin and 31));
end;

// Returns the first run of the first non-empty bin from Bin on, or nil.
function BinFirst(var Bins: TBins; Bin: Cardinal): PSpan;
var
  Word: Cardinal;
  Bits: Cardinal;
begin
  Word := Bin shr 5;
  if Word >= BinMapWords then
    Exit(nil);
  Bits := Bins.Map[Word] and not Cardinal(Cardinal(1) shl (Bin and 31) - 1);
  while Bits = 0 do
  begin
    Inc(Word);
    if Word = BinMapWords then
      Exit(nil);
    Bits := Bins.Map[Word];
  end;
  Result := Bins.Heads[Word shl 5 + LowestBit(Bits)];
end;

// ---------------------------------------------------------------------------- age

procedure AgeLinkYoungest(Shard: PShard; Span: PSpan);
begin
  Span^.Younger := nil;
  Span^.Older := Shard^.Youngest;
  Shard^.Youngest := Span;
  if Span^.Older = nil then
    Shard^.Oldest := Span
  else
    Span^.Older^.Younger := Span;
end;

procedure AgeLinkOldest(Shard: PShard; Span: PSpan);
begin
  Span^.Older := nil;
  Span^.Younger := Shard^.Oldest;
  Shard^.Oldest := Span;
  if Span^.Younger = nil then
    Shard^.Youngest := Span
  else
    Span^.Younger^.Older := Span;
end;

procedure AgeUnlink(Shard: PShard; Span: PSpan);
begin
  if Span^.Older = nil then
    Shard^.Oldest := Span^.Younger
  else
    Span^.Older^.Younger := Span^.Younger;
  if Span^.Younger = nil then
    Shard^.Youngest := Span^.Older
  else
    Span^.Younger^.Older := Span^.Older;
end;

// ---------------------------------------------------------------------------- runs

function IsFreeRun(Span: PSpan): Boolean;
begin
  Result := Span^.Kind = skFree;
end;

// Removes the whole free run Span.
procedure Remove(Span: PSpan);
begin
  BinUnlink(TBins(BinsOf(Span)^), Span);
  if Span^.IsWarm then
  begin
    AgeUnlink(ShardOf(Span), Span);
    Dec(ShardOf(Span)^.WarmSlices, Span^.SliceCount);
  end
  else
    Dec(ShardOf(Span)^.ColdSlices, Span^.SliceCount);
  Span^.Kind := skNone;
  PSpan(Span + Span^.SliceCount - 1)^.Kind := skNone;
end;

// Formats a free run and adds it to its bin, but not to the order of age.
procedure Insert(Span: PSpan; SliceCount: NativeUInt; IsWarm: Boolean);
var
  Last: PSpan;
begin
  Span^.SliceCount := SliceCount;
  Span^.IsWarm := IsWarm;
  Span^.Owner := NoOwner; // not that of a thread without a heap: see LaneMM.Free.x64.Put.inc
  Last := Span + SliceCount - 1;
  Last^.Kind := skFreeEnd;
  Last^.Distance := SliceCount - 1;
  Last^.Shard := Span^.Shard;
  Span^.Kind := skFree;
  BinLink(TBins(BinsOf(Span)^), Span);
  if IsWarm then
    Inc(ShardOf(Span)^.WarmSlices, SliceCount)
  else
    Inc(ShardOf(Span)^.ColdSlices, SliceCount);
end;

// Returns true if Run is the first record of a free run of this shard and warmth.
function IsRunOf(Run: PSpan; Shard: Byte; IsWarm: Boolean): Boolean;
begin
  Result := (Run^.Shard = Shard) and IsFreeRun(Run) and (Run^.IsWarm = IsWarm);
end;

// Returns the first record of the free run of Span's shard that may end right before Span.
function RunBefore(Span: PSpan): PSpan;
begin
  Result := Span - 1;
  if (Result^.Shard = Span^.Shard) and (Result^.Kind = skFreeEnd) then
    Dec(Result, Result^.Distance);
end;

procedure FreeRunAdd(Span: PSpan; SliceCount: NativeUInt; IsWarm: Boolean);
var
  Neighbour: PSpan;
begin
  Neighbour := Span + SliceCount;
  if IsRunOf(Neighbour, Span^.Shard, IsWarm) then
  begin
    Remove(Neighbour);
    Inc(SliceCount, Neighbour^.SliceCount);
  end;
  Neighbour := RunBefore(Span);
  if IsRunOf(Neighbour, Span^.Shard, IsWarm) then
  begin
    Remove(Neighbour);
    Inc(SliceCount, Neighbour^.SliceCount);
    Span := Neighbour;
  end;
  Insert(Span, SliceCount, IsWarm);
  if IsWarm then
    AgeLinkYoungest(ShardOf(Span), Span);
end;

procedure FreeRunCut(Span: PSpan; SliceCount: NativeUInt);
var
  Rest: PSpan;
begin
  Remove(Span);
  if Span^.SliceCount = SliceCount then
    Exit;
  Rest := Span + SliceCount;
  Rest^.Start := Span^.Start + SliceCount * SliceSize;
  Rest^.Shard := Span^.Shard;
  Insert(Rest, Span^.SliceCount - SliceCount, Span^.IsWarm);
  if Rest^.IsWarm then
    AgeLinkOldest(ShardOf(Rest), Rest); // this request did not need it either
end;

// Returns the run of FreeRunTake.
function Find(var Bins: TBins; SliceCount, Tries: NativeUInt): PSpan;
var
  Bin: Cardinal;
begin
  Bin := BinOf(SliceCount);
  Result := Bins.Heads[Bin];
  while (Result <> nil) and (Result^.SliceCount < SliceCount) do
  begin
    Result := Result^.Next;
    Dec(Tries);
    if Tries = 0 then
      Result := nil;
  end;
  if Result = nil then
    Result := BinFirst(Bins, Bin + 1);
end;

function FreeRunTake(var Bins: TBins; SliceCount, Tries: NativeUInt): PSpan;
begin
  Result := Find(Bins, SliceCount, Tries);
  if Result <> nil then
    FreeRunCut(Result, SliceCount);
end;

function FreeRunNext(var Bins: TBins; Run: PSpan): PSpan;
begin
  if Run = nil then
    Exit(BinFirst(Bins, 0));
  Result := Run^.Next;
  if Result = nil then
    Result := BinFirst(Bins, BinOf(Run^.SliceCount) + 1);
end;

function FreeRunTakeFitting(Shard: PShard; SliceCount, Tries: NativeUInt): PSpan;
var
  Cold: PSpan;
begin
  Result := Find(Shard^.Warm, SliceCount, Tries);
  if Result = nil then
    Exit;
  Cold := Find(Shard^.Cold, SliceCount, Tries);
  if (Cold <> nil) and (Cold^.SliceCount < Result^.SliceCount) then
    Exit(nil);
  FreeRunCut(Result, SliceCount);
end;

procedure FreeRunsForget(Shard: PShard);
begin
  FillChar(Shard^.Warm, SizeOf(TBins), 0);
  FillChar(Shard^.Cold, SizeOf(TBins), 0);
  Shard^.Oldest := nil;
  Shard^.Youngest := nil;
  Shard^.WarmSlices := 0;
  Shard^.ColdSlices := 0;
end;

end.
