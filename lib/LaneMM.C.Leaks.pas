/// Leaks and counts since a moment, for the tests of C programs, declared in include/lanemm.h.
//
// Owns:       nothing.
// Callers:    any thread.
unit LaneMM.C.Leaks;

{$I ../src/LaneMM.inc}

interface

implementation

uses
  LaneMM.Counting, LaneMM.Watch, LaneMM.CountedPlaces, LaneMM.LeaksSince, LaneMM.C.Start,
  LaneMM.C.Status;

type
  /// Visits blocks of one kind and line, or a line; the record is struct lanemm_leak, or
  /// lanemm_counted_place, which grows at its end.
  TRecordCall = procedure(Found, Context: Pointer); cdecl;
  TRecordVisit = record
    Visitor: TRecordCall;
    Context: Pointer;
  end;
  PRecordVisit = ^TRecordVisit;

procedure VisitLeak(const Leak: TLeakInfo; Context: Pointer);
begin
  if @PRecordVisit(Context)^.Visitor <> nil then
    PRecordVisit(Context)^.Visitor(@Leak, PRecordVisit(Context)^.Context);
end;

procedure VisitPlace(const Place: TCountedPlace; Context: Pointer);
begin
  PRecordVisit(Context)^.Visitor(@Place, PRecordVisit(Context)^.Context);
end;

function LibraryCheckpoint: NativeUInt; cdecl; [public, alias: 'lanemm_checkpoint'];
begin
  LibraryStart;
  Result := WatchCheckpoint;
end;

function LibraryLeaksSince(Checkpoint: NativeUInt; Visitor: TRecordCall; Context: Pointer): NativeUInt;
  cdecl; [public, alias: 'lanemm_leaks_since'];
var
  Visit: TRecordVisit;
begin
  Visit.Visitor := Visitor;
  Visit.Context := Context;
  Result := LeaksSince(Checkpoint, nil, VisitLeak, @Visit);
end;

function LibraryReachableSince(Checkpoint: NativeUInt; Visitor: TRecordCall; Context: Pointer):
  NativeUInt; cdecl; [public, alias: 'lanemm_reachable_since'];
var
  Visit: TRecordVisit;
begin
  Visit.Visitor := Visitor;
  Visit.Context := Context;
  Result := ReachableSince(Checkpoint, VisitLeak, @Visit);
end;

function LibraryStartCount(OfAll, WithPlaces: LongInt): LongInt; cdecl;
  [public, alias: 'lanemm_start_count'];
begin
  Result := Ord(LibraryStart and CountStart(OfAll <> 0, WithPlaces <> 0));
  if Result <> 0 then
    WatchApply;
end;

function LibraryStopCount(Target: Pointer; Size: NativeUInt; Visitor: TRecordCall; Context: Pointer)
  : LongInt; cdecl; [public, alias: 'lanemm_stop_count'];
var
  Counts: TCounts;
  Visit: TRecordVisit;
  Visitors: TCountedVisitor;
begin
  Visit.Visitor := Visitor;
  Visit.Context := Context;
  Visitors := nil;
  if @Visitor <> nil then
    Visitors := VisitPlace;
  Result := Ord(CountStopAt(Counts, Visitors, @Visit));
  RecordCopy(Counts, SizeOf(Counts), Target, Size);
  if Result <> 0 then
    WatchApply;
end;

end.
