/// Runs of free slices: bins by length, neighbours joined, warm runs in order of age.
//
// Owns:       Process.Warm, Cold, Oldest, Youngest, WarmSlices, ColdSlices; the records of
//             free runs.
// Invariants: a free run's first record is skFree with SliceCount, its last, if it
//             is another, skFreeEnd with Distance. Two neighbouring runs of one warmth are one
//             run. Warm runs may hold backed pages with any contents; cold runs read as zeros.
//             Oldest to Youngest: the warm runs, unused for longest first.
// Callers:    any thread, under Process.ArenaLock only.
// Source:     bins: Masmano, Ripoll, Crespo and Real, "TLSF: A New Dynamic Memory Allocator
//             for Real-Time Systems" (2004); neighbours: Knuth, TAOCP 1, 2.5, boundary tags.
unit LaneMM.FreeRuns;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Types;

/// Adds the run of SliceCount slices at Span, joined with its free neighbours of the same warmth.
procedure FreeRunAdd(Span: PSpan; SliceCount: NativeUInt; IsWarm: Boolean);
/// Takes SliceCount slices from a free run in Bins that has at least as many; prefers short runs.
/// Checks at most Tries runs in the bin whose runs may be too short. Nil when it finds none.
function FreeRunTake(var Bins: TBins; SliceCount, Tries: NativeUInt): PSpan;
/// Takes SliceCount slices from the front of the free run Span; the rest stays free.
procedure FreeRunCut(Span: PSpan; SliceCount: NativeUInt);
/// Returns true if Span is the first record of a free run.
function IsFreeRun(Span: PSpan): Boolean;
/// Empties the bins; the records of the runs stay as they are. For a child process, which adds the
/// runs anew.
procedure FreeRunsForget;

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

function BinsOf(Span: PSpan): Pointer; inline;
begin
  if Span^.IsWarm then
    Result := @Process.Warm
  else
    Result := @Process.Cold;
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
  Bits := Bins.Map[Word] and not (Cardinal(1) shl (Bin and 31) - 1);
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

procedure AgeLinkYoungest(Span: PSpan);
begin
  Span^.Younger := nil;
  Span^.Older := Process.Youngest;
  Process.Youngest := Span;
  if Span^.Older = nil then
    Process.Oldest := Span
  else
    Span^.Older^.Younger := Span;
end;

procedure AgeLinkOldest(Span: PSpan);
begin
  Span^.Older := nil;
  Span^.Younger := Process.Oldest;
  Process.Oldest := Span;
  if Span^.Younger = nil then
    Process.Youngest := Span
  else
    Span^.Younger^.Older := Span;
end;

procedure AgeUnlink(Span: PSpan);
begin
  if Span^.Older = nil then
    Process.Oldest := Span^.Younger
  else
    Span^.Older^.Younger := Span^.Younger;
  if Span^.Younger = nil then
    Process.Youngest := Span^.Older
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
    AgeUnlink(Span);
    Dec(Process.WarmSlices, Span^.SliceCount);
  end
  else
    Dec(Process.ColdSlices, Span^.SliceCount);
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
  Last := Span + SliceCount - 1;
  Last^.Kind := skFreeEnd;
  Last^.Distance := SliceCount - 1;
  Span^.Kind := skFree;
  BinLink(TBins(BinsOf(Span)^), Span);
  if IsWarm then
    Inc(Process.WarmSlices, SliceCount)
  else
    Inc(Process.ColdSlices, SliceCount);
end;

// Returns the free run that ends right before Span, or nil.
function RunBefore(Span: PSpan): PSpan;
begin
  Result := Span - 1;
  if Result^.Kind = skFreeEnd then
    Dec(Result, Result^.Distance);
  if not IsFreeRun(Result) then
    Result := nil;
end;

procedure FreeRunAdd(Span: PSpan; SliceCount: NativeUInt; IsWarm: Boolean);
var
  Neighbour: PSpan;
begin
  Neighbour := Span + SliceCount;
  if IsFreeRun(Neighbour) and (Neighbour^.IsWarm = IsWarm) then
  begin
    Remove(Neighbour);
    Inc(SliceCount, Neighbour^.SliceCount);
  end;
  Neighbour := RunBefore(Span);
  if (Neighbour <> nil) and (Neighbour^.IsWarm = IsWarm) then
  begin
    Remove(Neighbour);
    Inc(SliceCount, Neighbour^.SliceCount);
    Span := Neighbour;
  end;
  Insert(Span, SliceCount, IsWarm);
  if IsWarm then
    AgeLinkYoungest(Span);
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
  Insert(Rest, Span^.SliceCount - SliceCount, Span^.IsWarm);
  if Rest^.IsWarm then
    AgeLinkOldest(Rest); // this request did not need it either
end;

function FreeRunTake(var Bins: TBins; SliceCount, Tries: NativeUInt): PSpan;
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
  if Result <> nil then
    FreeRunCut(Result, SliceCount);
end;

procedure FreeRunsForget;
begin
  FillChar(Process.Warm, SizeOf(TBins), 0);
  FillChar(Process.Cold, SizeOf(TBins), 0);
  Process.Oldest := nil;
  Process.Youngest := nil;
  Process.WarmSlices := 0;
  Process.ColdSlices := 0;
end;

end.
