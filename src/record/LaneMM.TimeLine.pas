/// The time line of the samples: bytes in use at points in time, by call site.
//
// Owns:       Observe.TimeLine, TimeLineBusy, TimeLineMs, TimeLineStepMs.
// Invariants: no clock runs: the first sampled event after the time for a point adds the point;
//             each report adds one. TimeLineStepMs lie between two points at least, but for those
//             of reports. When there are MostPoints, every second one is removed, and
//             TimeLineStepMs doubles. The points belong to the thread that has set TimeLineBusy; a
//             thread that finds it set goes on without.
// Callers:    TimeLineStart: under no lock. TimeLineForget: the one thread of a child process. The
//             others: any thread.
// Progress:   wait-free.
unit LaneMM.TimeLine;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.CallSites;

const
  /// Most points.
  MostPoints = 128;

type
  /// The sums at a point in time.
  TPoint = record
    Ms: UInt64;              //< lock TimeLineBusy  milliseconds, see RunMs
    InUseCount: NativeUInt;  //< lock TimeLineBusy  blocks in use
    InUseBytes: NativeUInt;  //< lock TimeLineBusy  bytes in use
    AllocatedBytes: NativeUInt; //< lock TimeLineBusy  bytes allocated since the start
    Committed: NativeUInt;   //< lock TimeLineBusy  bytes that the heap has from the system
  end;
  /// Bytes in use of each site.
  TPointSites = array[0..SiteLimit - 1] of NativeUInt;
  PTimeLine = ^TTimeLine;
  /// The points so far.
  TTimeLine = record
    Count: NativeUInt;                             //< lock TimeLineBusy  points
    Points: array[0..MostPoints - 1] of TPoint;    //< lock TimeLineBusy  the sums
    Sites: array[0..MostPoints - 1] of TPointSites; //< lock TimeLineBusy  the same by site
  end;

/// Creates the table; returns whether it exists.
function TimeLineStart: Boolean;
/// In a child process: removes all points.
procedure TimeLineForget;
/// Adds a point if it is time for it.
procedure TimeLineTick;
/// Adds a point for now and returns the points; nil when there are none, or another thread has
/// them. The caller has them until TimeLineClose.
function TimeLineOpen: PTimeLine;
/// Ends what TimeLineOpen began; does nothing for nil.
procedure TimeLineClose(Line: PTimeLine);
/// Returns the milliseconds since the table of call sites was created: since the first profile,
/// `contention` or `growth`.
function RunMs: UInt64;

implementation

uses
  LaneMM.Atomic, LaneMM.Os, LaneMM.OsProcess, LaneMM.Backed, LaneMM.Layout, LaneMM.ObserveState;

const
  FirstStepMs = 100;

function RunMs: UInt64;
const
  Wrap = UInt64(1) shl 32;
var
  Ms: Cardinal;
  Rough: UInt64;
begin
  Ms := OsNowMs - Observe.StartMs;
  // The fine clock wraps; the rough one says how often.
  Rough := (OsUnixSeconds - Observe.StartSeconds) * 1000 + Wrap div 2;
  Result := Ms;
  if Rough > Ms then
    Inc(Result, (Rough - Ms) and not (Wrap - 1));
end;

procedure Restart;
begin
  Observe.TimeLineMs := OsNowMs;
  Observe.TimeLineStepMs := FirstStepMs;
end;

function TimeLineStart: Boolean;
begin
  if Observe.TimeLine = 0 then
    Restart; // before the points. Pairs with TimeLineOpen
  Result := OsTakeTable(Observe.TimeLine, SizeOf(TTimeLine));
end;

procedure TimeLineForget;
begin
  if Observe.TimeLine <> 0 then
    PTimeLine(Observe.TimeLine)^.Count := 0;
  Observe.TimeLineBusy := 0;
  Restart;
end;

// Removes every second point.
procedure Thin(Line: PTimeLine);
var
  Index: NativeUInt;
begin
  for Index := 0 to MostPoints div 2 - 1 do
  begin
    Line^.Points[Index] := Line^.Points[2 * Index + 1];
    Line^.Sites[Index] := Line^.Sites[2 * Index + 1];
  end;
  Line^.Count := MostPoints div 2;
  StoreRelease(Observe.TimeLineStepMs, 2 * LoadAcquire(Observe.TimeLineStepMs));
end;

procedure AddPoint(Line: PTimeLine);
var
  Point: ^TPoint;
  Site: PSite;
begin
  if Line^.Count = MostPoints then
    Thin(Line);
  Point := @Line^.Points[Line^.Count];
  Point^.Ms := RunMs;
  Point^.InUseCount := LoadAcquire(Observe.InUseCount);
  Point^.InUseBytes := LoadAcquire(Observe.InUseBytes);
  Point^.AllocatedBytes := LoadAcquire(Observe.AllocatedBytes);
  Point^.Committed := BackedSlices * SliceSize;
  FillChar(Line^.Sites[Line^.Count], SizeOf(TPointSites), 0);
  Site := nil;
  while SiteNext(Site) do
    if Site^.Kind = siAllocation then
      Line^.Sites[Line^.Count][SiteIndex(Site)] := Remaining(Site^.Bytes, Site^.FreedBytes);
  Inc(Line^.Count);
  StoreRelease(Observe.TimeLineMs, OsNowMs);
end;

function TimeLineOpen: PTimeLine;
begin
  Result := PTimeLine(LoadAcquire(Observe.TimeLine));
  if Result = nil then
    Exit;
  // Acquire: the points that another thread wrote. Pairs with TimeLineClose.
  if not CompareAndSwap(Observe.TimeLineBusy, 0, 1) then
    Exit(nil);
  AddPoint(Result);
end;

procedure TimeLineClose(Line: PTimeLine);
begin
  if Line <> nil then
    StoreRelease(Observe.TimeLineBusy, 0); // the points before it
end;

procedure TimeLineTick;
begin
  if Cardinal(OsNowMs - Cardinal(LoadAcquire(Observe.TimeLineMs)))
    >= LoadAcquire(Observe.TimeLineStepMs) then
    TimeLineClose(TimeLineOpen);
end;

end.
