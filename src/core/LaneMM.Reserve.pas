/// The emergency reserve: memory that becomes available when no other is left.
//
// Owns:       Process.Reserve and its span.
// Invariants: the reserve is one span, never touched, which the arena counts as backed: it is part
//             of the memory that a limit allows; without a limit it is committed. It is opened when
//             no second span of its size is available, and filled again when two are: in between
//             the program must have freed as much.
// Callers:    any thread that holds no lock.
unit LaneMM.Reserve;

{$I ../LaneMM.inc}

interface

/// Takes a reserve of Process.ReserveSlices if there is none and the memory is available.
procedure ReserveTake;
/// The same if as much memory again is left for the program.
procedure ReserveFill;
/// Releases the reserve to the program if memory has run out. Returns whether it did.
function ReserveOpen: Boolean;
/// Releases the reserve in any case: its size is about to change.
procedure ReserveDrop;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Arena;

// Takes a span of the reserve's size, or nil.
function TakePiece: PSpan;
begin
  Result := ArenaTakeSpare(Process.ReserveSlices, 0);
end;

procedure ReleasePiece(Span: PSpan);
begin
  if Span <> nil then
    ArenaReleaseZero(Span);
end;

procedure ReserveTake;
var
  Span: PSpan;
begin
  if (Process.ReserveSlices = 0) or (LoadAcquire(Process.Reserve) <> 0) then
    Exit;
  Span := TakePiece;
  if Span = nil then
    Exit;
  Span^.Kind := skReserve;
  // Release: the span before its address. Pairs with TakeOut.
  if not CompareAndSwap(Process.Reserve, 0, NativeUInt(Span)) then
    ReleasePiece(Span);
end;

procedure ReserveFill;
var
  Other: PSpan;
begin
  if (Process.ReserveSlices = 0) or (LoadAcquire(Process.Reserve) <> 0) then
    Exit;
  Other := TakePiece;
  if Other = nil then
    Exit;
  ReserveTake;
  ReleasePiece(Other);
end;

// Takes the reserve's span out; of several threads, one takes it and the others nil.
function TakeOut: PSpan;
begin
  Result := PSpan(Swap(Process.Reserve, 0));
end;

function ReserveOpen: Boolean;
var
  Kept, Other: PSpan;
begin
  if LoadAcquire(Process.Reserve) = 0 then
    Exit(False);
  Other := TakePiece;
  ReleasePiece(Other);
  if Other <> nil then
    Exit(False);
  Kept := TakeOut;
  ReleasePiece(Kept);
  Result := Kept <> nil;
end;

procedure ReserveDrop;
begin
  ReleasePiece(TakeOut);
end;

end.
