/// Memory order: the only unit that uses atomic operations or barriers.
//
// Order:      LoadAcquire and StoreRelease are what they say. Swap, CompareAndSwap and
//             FetchAdd are full barriers on every target: nothing moves across them in
//             either direction. LaneMM.Arena relies on that (give back, then look at the lock).
// Callers:    any unit, any thread.
// Progress:   wait-free on x86; on AArch64 a load/store-exclusive loop, lock-free.
// Source:     FPC 3.2.2, rtl/x86_64, rtl/aarch64: Interlocked* is a full fence on x86 and a
//             bare ldxr/stxr loop on AArch64; Delphi: System.Atomic*.
unit LaneMM.Atomic;

{$I LaneMM.inc}

interface

// Targets whose plain loads and stores are already ordered as wanted.
{$if defined(CPUX86_64) or defined(CPUI386) or defined(CPUX64) or defined(CPUX86)}
  {$define ORDERED}
{$ifend}

/// Reads Word; no later access of this thread moves before it.
function LoadAcquire(var Word: NativeUInt): NativeUInt;
/// Writes Word; no earlier access of this thread moves after it.
procedure StoreRelease(var Word: NativeUInt; Value: NativeUInt);
/// Writes Value and returns what Word held. Full barrier.
function Swap(var Word: NativeUInt; Value: NativeUInt): NativeUInt;
/// Writes Value if Word holds Expected; tells whether it did. Full barrier.
function CompareAndSwap(var Word: NativeUInt; Expected, Value: NativeUInt): Boolean;
/// Adds Value and returns what Word held before. Full barrier.
function FetchAdd(var Word: NativeUInt; Value: NativeUInt): NativeUInt;
/// No earlier write of this thread moves after a later one.
procedure ReleaseFence; inline;
/// Tells the CPU that this thread waits in a loop.
procedure SpinHint;

implementation

procedure Fence; {$ifdef ORDERED} inline; {$endif}
begin
  {$ifndef ORDERED}
  {$ifdef FPC} ReadWriteBarrier; {$else} MemoryBarrier; {$endif}
  {$endif}
end;

procedure ReleaseFence;
begin
  {$ifndef ORDERED}
  {$ifdef FPC} WriteBarrier; {$else} MemoryBarrier; {$endif}
  {$endif}
end;

function LoadAcquire(var Word: NativeUInt): NativeUInt;
begin
  Result := Word;
  Fence;
end;

procedure StoreRelease(var Word: NativeUInt; Value: NativeUInt);
begin
  Fence;
  Word := Value;
end;

{$ifdef FPC}
function RawSwap(var Word: NativeUInt; Value: NativeUInt): NativeUInt; inline;
begin
  {$ifdef CPU64}
  Result := NativeUInt(InterlockedExchange64(Int64(Word), Int64(Value)));
  {$else}
  Result := NativeUInt(InterlockedExchange(LongInt(Word), LongInt(Value)));
  {$endif}
end;

function RawCompareAndSwap(var Word: NativeUInt; Expected, Value: NativeUInt): Boolean; inline;
begin
  {$ifdef CPU64}
  Result := NativeUInt(InterlockedCompareExchange64(Int64(Word), Int64(Value),
    Int64(Expected))) = Expected;
  {$else}
  Result := NativeUInt(InterlockedCompareExchange(LongInt(Word), LongInt(Value),
    LongInt(Expected))) = Expected;
  {$endif}
end;

function RawFetchAdd(var Word: NativeUInt; Value: NativeUInt): NativeUInt; inline;
begin
  {$ifdef CPU64}
  Result := NativeUInt(InterlockedExchangeAdd64(Int64(Word), Int64(Value)));
  {$else}
  Result := NativeUInt(InterlockedExchangeAdd(LongInt(Word), LongInt(Value)));
  {$endif}
end;
{$else}
function RawSwap(var Word: NativeUInt; Value: NativeUInt): NativeUInt; inline;
begin
  Result := NativeUInt(AtomicExchange(NativeInt(Word), NativeInt(Value)));
end;

function RawCompareAndSwap(var Word: NativeUInt; Expected, Value: NativeUInt): Boolean; inline;
begin
  Result := NativeUInt(AtomicCmpExchange(NativeInt(Word), NativeInt(Value),
    NativeInt(Expected))) = Expected;
end;

function RawFetchAdd(var Word: NativeUInt; Value: NativeUInt): NativeUInt; inline;
begin
  Result := NativeUInt(AtomicIncrement(NativeInt(Word), NativeInt(Value))) - Value;
end;
{$endif}

function Swap(var Word: NativeUInt; Value: NativeUInt): NativeUInt;
begin
  Fence;
  Result := RawSwap(Word, Value);
  Fence;
end;

function CompareAndSwap(var Word: NativeUInt; Expected, Value: NativeUInt): Boolean;
begin
  Fence;
  Result := RawCompareAndSwap(Word, Expected, Value);
  Fence;
end;

function FetchAdd(var Word: NativeUInt; Value: NativeUInt): NativeUInt;
begin
  Fence;
  Result := RawFetchAdd(Word, Value);
  Fence;
end;

{$ifdef LANEMM_X64}
procedure SpinHint; assembler; {$ifdef FPC} nostackframe; {$endif}
asm
  pause
end;
{$else}
procedure SpinHint;
begin
  Fence;
end;
{$endif}

end.
