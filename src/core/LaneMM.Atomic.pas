/// Memory order: the only unit that uses atomic operations or barriers.
//
// Order:      LoadAcquire has acquire, StoreRelease release semantics. Swap, CompareAndSwap and
//             FetchAdd are full barriers on every target: no access moves across them in
//             either direction. LaneMM.Shards relies on that (push a span, then try the lock).
// Yields:     in a build with LANEMM_YIELD each operation calls Hooks.Yield before and after it, a
//             fence once, and tests run other threads there (tests/Yielding.pas).
// Callers:    any unit, any thread.
// Progress:   wait-free on x86; on AArch64 a load/store-exclusive loop, lock-free.
// Source:     FPC 3.2.2, rtl/x86_64, rtl/aarch64: Interlocked* is a full fence on x86 and a
//             bare ldxr/stxr loop on AArch64; Delphi: System.Atomic*. x86 needs a barrier
//             between plain accesses only for a store before a load.
unit LaneMM.Atomic;

{$I ../LaneMM.inc}

interface

/// A barrier in both directions, where plain accesses and atomic operations of the target need it.
procedure Fence; {$ifdef LANEMM_X86} inline; {$endif}
/// Reads Word; no later access of this thread moves before it.
function LoadAcquire(var Word: NativeUInt): NativeUInt; {$ifdef LANEMM_X86} inline; {$endif}
/// Writes Word; no earlier access of this thread moves after it.
procedure StoreRelease(var Word: NativeUInt; Value: NativeUInt);
  {$ifdef LANEMM_X86} inline; {$endif}
/// Writes Value and returns the previous value of Word. Full barrier.
function Swap(var Word: NativeUInt; Value: NativeUInt): NativeUInt;
  {$ifdef LANEMM_X86} inline; {$endif}
/// Writes Value if Word holds Expected; returns whether it did. Full barrier.
function CompareAndSwap(var Word: NativeUInt; Expected, Value: NativeUInt): Boolean;
  {$ifdef LANEMM_X86} inline; {$endif}
/// Adds Value and returns the previous value of Word. Full barrier.
function FetchAdd(var Word: NativeUInt; Value: NativeUInt): NativeUInt;
  {$ifdef LANEMM_X86} inline; {$endif}
/// Raises Word to Value if it is less. Lock-free.
procedure RaiseTo(var Word: NativeUInt; Value: NativeUInt);
/// No later read or write of this thread moves before an earlier read.
procedure AcquireFence; {$ifdef LANEMM_X86} inline; {$endif}
/// No earlier read or write of this thread moves after a later write.
procedure ReleaseFence; {$ifdef LANEMM_X86} inline; {$endif}
/// Hints to the CPU that this thread spins.
procedure SpinHint;
/// Marks a place where other threads may see two plain accesses apart: there, too, a build with
/// LANEMM_YIELD calls Hooks.Yield. In other builds it does nothing.
procedure YieldPoint; {$ifndef LANEMM_YIELD} inline; {$endif}

implementation

{$ifdef LANEMM_YIELD}
uses
  LaneMM.Hooks;
{$endif}

procedure YieldPoint;
begin
  {$ifdef LANEMM_YIELD}
  if @Hooks.Yield <> nil then
    Hooks.Yield;
  {$endif}
end;

procedure Fence;
begin
  {$ifndef LANEMM_X86}
  {$ifdef FPC} ReadWriteBarrier; {$else} MemoryBarrier; {$endif}
  {$endif}
end;

procedure AcquireFence;
begin
  YieldPoint;
  Fence;
end;

procedure ReleaseFence;
begin
  YieldPoint;
  Fence;
end;

function LoadAcquire(var Word: NativeUInt): NativeUInt;
begin
  YieldPoint;
  Result := Word;
  Fence;
  YieldPoint;
end;

procedure StoreRelease(var Word: NativeUInt; Value: NativeUInt);
begin
  YieldPoint;
  Fence;
  Word := Value;
  YieldPoint;
end;

function Swap(var Word: NativeUInt; Value: NativeUInt): NativeUInt;
begin
  YieldPoint;
  Fence;
  {$ifdef FPC} {$ifdef CPU64}
  Result := NativeUInt(InterlockedExchange64(Int64(Word), Int64(Value)));
  {$else}
  Result := NativeUInt(InterlockedExchange(LongInt(Word), LongInt(Value)));
  {$endif} {$else}
  Result := NativeUInt(AtomicExchange(NativeInt(Word), NativeInt(Value)));
  {$endif}
  Fence;
  YieldPoint;
end;

function CompareAndSwap(var Word: NativeUInt; Expected, Value: NativeUInt): Boolean;
begin
  YieldPoint;
  Fence;
  {$ifdef FPC} {$ifdef CPU64}
  Result := NativeUInt(InterlockedCompareExchange64(Int64(Word), Int64(Value),
    Int64(Expected))) = Expected;
  {$else}
  Result := NativeUInt(InterlockedCompareExchange(LongInt(Word), LongInt(Value),
    LongInt(Expected))) = Expected;
  {$endif} {$else}
  Result := NativeUInt(AtomicCmpExchange(NativeInt(Word), NativeInt(Value),
    NativeInt(Expected))) = Expected;
  {$endif}
  Fence;
  YieldPoint;
end;

function FetchAdd(var Word: NativeUInt; Value: NativeUInt): NativeUInt;
begin
  YieldPoint;
  Fence;
  {$ifdef FPC} {$ifdef CPU64}
  Result := NativeUInt(InterlockedExchangeAdd64(Int64(Word), Int64(Value)));
  {$else}
  Result := NativeUInt(InterlockedExchangeAdd(LongInt(Word), LongInt(Value)));
  {$endif} {$else}
  Result := NativeUInt(AtomicIncrement(NativeInt(Word), NativeInt(Value))) - Value;
  {$endif}
  Fence;
  YieldPoint;
end;

procedure RaiseTo(var Word: NativeUInt; Value: NativeUInt);
var
  Last: NativeUInt;
begin
  repeat
    Last := LoadAcquire(Word);
  until (Last >= Value) or CompareAndSwap(Word, Last, Value);
end;

{$if not defined(FPC)}
procedure SpinHint;
begin
  YieldProcessor;
end;
{$elseif defined(LANEMM_X64)}
procedure SpinHint; assembler; nostackframe;
asm
  pause
end;
{$else}
procedure SpinHint;
begin
  Fence;
end;
{$ifend}

end.
