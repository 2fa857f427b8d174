/// The entries of the memory manager for debug mode with a sampled profile.
//
// Owns:       nothing.
// Invariants: a sampled debug block is a debug block like any other; Debug.FreeWatch ends its
//             sample when it is freed.
// Callers:    any thread.
unit LaneMM.DebugSampler;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout;

/// DebugGet, sampled.
function SampledDebugGet(Size: TSize): Pointer;
/// DebugGetZero, sampled.
function SampledDebugGetZero(Size: TSize): Pointer;
/// DebugRealloc, sampled where the block moves.
function SampledDebugRealloc(var P: Pointer; Size: TSize): Pointer;

implementation

uses
  LaneMM.Sampler, LaneMM.Debug;

function SampledDebugGet(Size: TSize): Pointer;
begin
  Result := DebugGet(Size);
  SamplerSee(Result, Size);
end;

function SampledDebugGetZero(Size: TSize): Pointer;
begin
  Result := DebugGetZero(Size);
  SamplerSee(Result, Size);
end;

function SampledDebugRealloc(var P: Pointer; Size: TSize): Pointer;
var
  Before: Pointer;
begin
  Before := P;
  Result := DebugRealloc(P, Size);
  if Result <> Before then
    SamplerSee(Result, Size);
end;

end.
