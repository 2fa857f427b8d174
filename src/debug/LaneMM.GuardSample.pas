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

/// Hooks.SampledGet: allocates a block with guard pages, or a normal one if that fails. Sets the
/// distance to the next one.
function GuardSampleGet(Size: TSize): Pointer;

implementation

uses
  LaneMM.Types, LaneMM.Os, LaneMM.Allocate, LaneMM.SettingsState, LaneMM.Sampler, LaneMM.Debug;

function GuardSampleGet(Size: TSize): Pointer;
var
  Heap: PHeap;
  IsFirst: Boolean;
begin
  Heap := OsThreadHeap;
  IsFirst := Heap^.SampleSeed = 0;
  SampleDistance(Heap, Settings.Values[opGuard]);
  Result := nil;
  // The first call of a thread only draws a distance, unless that is shorter than this block.
  if not IsFirst or (Heap^.SampleIn < NativeInt(Size)) then
    Result := DebugGetGuarded(Size);
  if Result = nil then
    Result := BlockGet(Size);
end;

end.
