/// A queue of small numbers between threads.
//
// Callers:  any thread. A taker that waits sleeps.
unit Bench.Ring;

{$I Bench.inc}

interface

uses
  Bench.Semaphore;

type
  /// A queue of numbers that has room for all of them.
  TRing = record
    Numbers: array of Integer;   //< lock    the numbers, from Next on
    Next, Count: Integer;        //< lock    first one, how many
    Lock: TSemaphore;            //< shared  one permit: its holder may change the ring
    Filled: TSemaphore;          //< shared  counts the numbers
  end;

/// Prepares an empty ring for at most Room numbers.
procedure RingStart(var Ring: TRing; Room: Integer);
/// Adds Number behind all others.
procedure RingPut(var Ring: TRing; Number: Integer);
/// Removes the first number; sleeps until there is one.
function RingTake(var Ring: TRing): Integer;

implementation

procedure RingStart(var Ring: TRing; Room: Integer);
begin
  SetLength(Ring.Numbers, Room);
  SemaphoreStart(Ring.Lock, 1);
  SemaphoreStart(Ring.Filled, 0);
end;

procedure RingPut(var Ring: TRing; Number: Integer);
begin
  SemaphoreWait(Ring.Lock);
  Ring.Numbers[(Ring.Next + Ring.Count) mod Length(Ring.Numbers)] := Number;
  Inc(Ring.Count);
  SemaphorePost(Ring.Lock);
  SemaphorePost(Ring.Filled);
end;

function RingTake(var Ring: TRing): Integer;
begin
  SemaphoreWait(Ring.Filled);
  SemaphoreWait(Ring.Lock);
  Result := Ring.Numbers[Ring.Next];
  Ring.Next := (Ring.Next + 1) mod Length(Ring.Numbers);
  Dec(Ring.Count);
  SemaphorePost(Ring.Lock);
end;

end.
