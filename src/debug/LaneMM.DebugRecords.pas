/// The bookkeeping record of a debug block: its state, its checksum.
//
// Owns:       TDebugBlock.State, Sum.
// Invariants: a block in use has intact guards, a freed block the pattern of free blocks, unless
//             its pages are inaccessible. Only in the state dsChanging may this be broken, by the
//             one thread that set it. So a thread that reads the state, then other bytes, then the
//             same state has detected damage, also while other threads run. ABA cannot happen:
//             State counts its changes. Damage of a freed block is reported by the thread that
//             marks it.
// Callers:    any thread.
// Progress:   wait-free: every routine is one atomic operation at most.
unit LaneMM.DebugRecords;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Atomic, LaneMM.DebugState;

const
  /// Bits of TDebugBlock.State, from the lowest: the state, damage was reported, number of changes.
  StateMask = 3;
  /// The bit of the second.
  ReportedBit = StateMask + 1;
  /// The first two.
  LowMask = StateMask or ReportedBit;
  /// The lowest bit of the third.
  NextChange = LowMask + 1;

/// Returns the state in a word of TDebugBlock.State.
function DebugStateOf(Word: TAtomicWord): TDebugState; inline;
/// Returns True if the damage of the block was reported in this state.
function DebugIsReported(Word: TAtomicWord): Boolean; inline;
/// Marks the damage of the block as reported; False when State is no longer Seen.
function DebugBlockMarkReported(Block: PDebugBlock; Seen: TAtomicWord): Boolean;
/// Changes State from Seen, the word that was read, to dsChanging; False when it is no longer Seen.
function DebugBlockChange(Block: PDebugBlock; Seen: TAtomicWord): Boolean; inline;
/// Sets dsChanging for a freed or new block that the calling thread has taken out of all lists:
/// other threads only mark it as reported. The caller writes to the block after it, not before.
procedure DebugBlockBegin(Block: PDebugBlock); inline;
/// Ends the state dsChanging. A thread that reads the new state sees all that was written before.
/// Called by the thread that set dsChanging.
procedure DebugBlockSettle(Block: PDebugBlock; State: TDebugState); inline;
/// Computes and writes Sum. Called by the thread that set dsChanging.
procedure DebugBlockSeal(Block: PDebugBlock);
/// Returns True if Sum fits the record.
function DebugBlockIsSealed(Block: PDebugBlock): Boolean;

implementation

function DebugStateOf(Word: TAtomicWord): TDebugState;
begin
  Result := TDebugState(Word and StateMask);
end;

function DebugBlockChange(Block: PDebugBlock; Seen: TAtomicWord): Boolean;
begin
  // Full barrier: the state before the writes to the block. Pairs with DebugBlockMarkReported and
  // DescribeInUse.
  Result := CompareAndSwap(Block^.State, Seen,
    Seen and not LowMask + NextChange + Ord(dsChanging));
end;

function DebugIsReported(Word: TAtomicWord): Boolean;
begin
  Result := Word and ReportedBit <> 0;
end;

function DebugBlockMarkReported(Block: PDebugBlock; Seen: TAtomicWord): Boolean;
begin
  // Full barrier: the block was read before, and its state has not changed since. Pairs with
  // DebugBlockChange.
  Result := CompareAndSwap(Block^.State, Seen, Seen or ReportedBit);
end;

procedure DebugBlockBegin(Block: PDebugBlock);
begin
  // A plain write: a mark that it replaces is of damage that the caller had not found, and a check
  // reports it.
  Block^.State := Block^.State and not LowMask + NextChange + NativeUInt(Ord(dsChanging));
  // Release: the state before the writes to the block. Pairs with DebugBlockMarkReported.
  ReleaseFence;
end;

procedure DebugBlockSettle(Block: PDebugBlock; State: TDebugState);
begin
  // Release: the writes to the block before the state. Pairs with FindDamage and DescribeInUse.
  StoreRelease(Block^.State, Block^.State and not LowMask + NextChange + NativeUInt(Ord(State)));
end;

// A word that is added and multiplied by an odd number changes the sum.
function SumOf(Block: PDebugBlock): Word; inline;
type
  // The fields from AllocStack on; Sum is the high half of the last Cardinal.
  TTail = array[0..2] of UInt64;
  PTail = ^TTail;
const
  Factor = UInt64($5F356495); // an immediate operand of x86_64
  SumBits = SizeOf(Block^.Sum) * 8;
var
  Sum: UInt64;
  Tail: PTail;
begin
  Tail := @Block^.AllocStack;
  Sum := (Block^.Size * Factor + Block^.Number) * Factor + Block^.FirstWord;
  Sum := (Sum * Factor + Tail^[0]) * Factor + Tail^[1];
  Sum := (Sum * Factor + Tail^[2] shl SumBits) * Factor;
  Result := Sum shr 48 xor Sum shr 32;
end;

procedure DebugBlockSeal(Block: PDebugBlock);
begin
  Block^.Sum := SumOf(Block);
end;

function DebugBlockIsSealed(Block: PDebugBlock): Boolean;
begin
  Result := Block^.Sum = SumOf(Block);
end;

end.
