/// Requests of a sweep: idle owners may have spans, or kept runs, that others can use.
//
// Owns:       Process.SweepWanted.
// Callers:    any thread, under any lock. A caller that makes work calls PurgeNotify later, under
//             no lock, so that some thread does it; PurgeRequest is both.
// Progress:   at most one atomic operation; no system call.
unit LaneMM.Sweep;

{$I ../LaneMM.inc}

interface

/// Requests a sweep; returns true if none was requested yet.
function SweepRequest: Boolean;
/// Returns whether a sweep is requested.
function SweepIsRequested: Boolean;
/// Takes the request, to obey it; returns whether there was one.
function SweepTake: Boolean;

implementation

uses
  LaneMM.Types, LaneMM.Atomic;

function SweepRequest: Boolean;
begin
  // Full barrier: the purge thread sees the request, or is seen parked. Pairs with PurgeRun in
  // LaneMM.Purge.
  Result := (LoadAcquire(Process.SweepWanted) = 0) and (Swap(Process.SweepWanted, 1) = 0);
end;

function SweepIsRequested: Boolean;
begin
  // Acquire: with nothing; an old value delays a sweep.
  Result := LoadAcquire(Process.SweepWanted) <> 0;
end;

function SweepTake: Boolean;
begin
  // Full barrier: the sweep sees all that was freed before the request. Pairs with SweepRequest.
  Result := (LoadAcquire(Process.SweepWanted) <> 0) and (Swap(Process.SweepWanted, 0) <> 0);
end;

end.
