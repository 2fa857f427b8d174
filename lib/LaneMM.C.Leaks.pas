/// Leaks since a moment, for the tests of C programs, declared in include/lanemm.h.
//
// Owns:       nothing.
// Callers:    any thread.
unit LaneMM.C.Leaks;

{$I ../src/LaneMM.inc}

interface

implementation

uses
  LaneMM.Watch, LaneMM.LeaksSince, LaneMM.C.Start;

type
  /// Visits blocks of one kind and line; the record is struct lanemm_leak, which grows at its end.
  TLeakCall = procedure(Leak, Context: Pointer); cdecl;
  TLeakVisit = record
    Visitor: TLeakCall;
    Context: Pointer;
  end;
  PLeakVisit = ^TLeakVisit;

procedure VisitLeak(const Leak: TLeakInfo; Context: Pointer);
begin
  if @PLeakVisit(Context)^.Visitor <> nil then
    PLeakVisit(Context)^.Visitor(@Leak, PLeakVisit(Context)^.Context);
end;

function LibraryCheckpoint: NativeUInt; cdecl; [public, alias: 'lanemm_checkpoint'];
begin
  LibraryStart;
  Result := WatchCheckpoint;
end;

function LibraryLeaksSince(Checkpoint: NativeUInt; Visitor: TLeakCall; Context: Pointer): NativeUInt;
  cdecl; [public, alias: 'lanemm_leaks_since'];
var
  Visit: TLeakVisit;
begin
  Visit.Visitor := Visitor;
  Visit.Context := Context;
  Result := LeaksSince(Checkpoint, nil, VisitLeak, @Visit);
end;

function LibraryReachableSince(Checkpoint: NativeUInt; Visitor: TLeakCall; Context: Pointer):
  NativeUInt; cdecl; [public, alias: 'lanemm_reachable_since'];
var
  Visit: TLeakVisit;
begin
  Visit.Visitor := Visitor;
  Visit.Context := Context;
  Result := ReachableSince(Checkpoint, VisitLeak, @Visit);
end;

end.
