/// Memory that is kept back, and used when there is no other.
//
// Owns:       Process.Reserve; the span that it leads to.
// Invariants: what is kept back is one span, never touched, which the arena counts as backed: with
//             a limit it is a part of what the heap may hold, without one the system has granted
//             it. It is opened when a second piece of its size cannot be had, and filled again
//             when two can: in between as much must have been freed.
// Callers:    any thread that holds no lock.
unit LaneMM.Reserve;

{$I ../LaneMM.inc}

interface

/// Puts Process.ReserveSlices aside if nothing is, and if they can be had.
procedure ReserveTake;
/// The same if as much again is left for the program.
procedure ReserveFill;
/// Gives what is kept back to the program if memory has run out; tells whether it did.
function ReserveOpen: Boolean;
/// Gives it to the program anyway: another size is wanted.
procedure ReserveDrop;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Arena;

// A piece of the size, or nil.
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

// Takes the span out; one thread gets it.
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
