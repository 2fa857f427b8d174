/// Guard pages for a few blocks of a program in production.
//
// Owns:       nothing; counts with THeap.SampleIn, as LaneMM.Sampler does.
// Invariants: every requested byte of a thread is equally likely to give its block guard pages: the
//             distances are exponential, Settings.Values[opGuard] bytes on average.
// Callers:    any thread.
unit LaneMM.GuardSample;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout;

/// Returns True while blocks are chosen: a profile needs the same counter for itself.
function GuardSampleIsOn: Boolean;
/// Hooks.SampledGet: allocates a block with guard pages, or a normal one if that fails. Sets the
/// distance to the next one.
function GuardSampleGet(Size: TSize): Pointer;
/// BlockGetZero, with guard pages when the turn of the block has come.
function GuardSampleGetZero(Size: TSize): Pointer;
/// Counts Size bytes, and allocates a block at a multiple of 2 to the power of Shift with guard
/// pages, above the page size without them, when its turn has come. Nil when it has not, or that
/// fails. Debug mode was started.
function GuardSampleTry(Size: TSize; Shift: Byte): Pointer;

implementation

uses
  LaneMM.Types, LaneMM.Os, LaneMM.Allocate, LaneMM.SettingsState, LaneMM.Sampler, LaneMM.Patterns,
  LaneMM.DebugState, LaneMM.DebugSpans, LaneMM.Debug;

function GuardSampleIsOn: Boolean;
begin
  Result := (Settings.Values[opGuard] > 1) and not IsSampling;
end;

// Returns whether an allocation of Size bytes, for which SampleIn has become negative, gets guard
// pages; sets the distance to the next one.
function IsDue(Heap: PHeap; Size: NativeUInt): Boolean;
var
  IsFirst: Boolean;
begin
  if Heap^.Region <> nil then // after a refusal, or with 32 bits, as IsDue of LaneMM.Sampler
  begin
    Heap^.SampleIn := High(Heap^.SampleIn);
    Exit(False);
  end;
  IsFirst := Heap^.SampleSeed = 0;
  SampleDistance(Heap, Settings.Values[opGuard]);
  // The first call of a thread only draws a distance, unless that is shorter than this block.
  Result := not IsFirst or (Heap^.SampleIn < NativeInt(Size));
end;

function GuardSampleGet(Size: TSize): Pointer;
begin
  Result := nil;
  if IsDue(OsThreadHeap, Size) then
    Result := DebugGetGuarded(Size - Debug.MarkBytes, Debug.AlignShift);
  if Result = nil then
    Result := BlockGet(Size);
end;

function GuardSampleTry(Size: TSize; Shift: Byte): Pointer;
var
  Heap: PHeap;
begin
  Result := nil;
  Heap := OsThreadHeap;
  if Heap = nil then
    Exit;
  Dec(Heap^.SampleIn, Size);
  if (Heap^.SampleIn < 0) and IsDue(Heap, Size) then
    Result := DebugGetGuarded(Size, Shift);
end;

function GuardSampleGetZero(Size: TSize): Pointer;
var
  Place: TDebugPlace;
begin
  Result := GuardSampleTry(Size - Debug.MarkBytes, Debug.AlignShift);
  if Result = nil then
    Result := BlockGetZero(Size)
  else if not DebugPlaceFind(Result, Place) or not Place.IsClosable or not Place.Span^.IsZero then
    PatternZero(Result, Size - Debug.MarkBytes); // else it is the first block in a span of its own
end;

end.
