/// Guard pages behind a few blocks of a program in production.
//
// Owns:       nothing; counts with THeap.SampleIn, as LaneMM.Sampler does.
// Invariants: every byte that a thread asks for has the same chance to bring its block a guard:
//             the distances are exponential, Settings.Values[opGuard] bytes on average.
// Callers:    any thread.
unit LaneMM.GuardSample;

{$I ../LaneMM.inc}

interface



uses
  LaneMM.Layout;



/// Gets a guarded block: what Hooks.SampledGet calls.
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
  // A thread that has only begun to count has no sample yet, unless all are.
  if not IsFirst or (Heap^.SampleIn < NativeInt(Size)) then
    Result := DebugGetGuarded(Size);
  if Result = nil then
    Result := BlockGet(Size);
end;

end.
