/// The bookkeeping record of a debug block: its state, its checksum.
//
// Owns:       TDebugBlock.State, Sum.
// Invariants: a block in use has whole guards; a free one that was used before holds the pattern of
//             free blocks. Only while its state is dsChanging may it be otherwise: then one thread
//             fills it. A thread that finds something else, and then the state that it saw before,
//             has found damage, also while other threads run.
// Callers:    any thread.
// Progress:   every routine is one atomic operation at most.
unit LaneMM.DebugRecords;

{$I ../LaneMM.inc}

interface



uses
  LaneMM.Layout, LaneMM.DebugState;


/// The state in a word of TDebugBlock.State.
function DebugStateOf(Word: TAtomicWord): TDebugState;
/// Whether its damage was reported already.
function DebugIsReported(Word: TAtomicWord): Boolean;
/// Notes that the damage of the block was reported; False when its state is no longer Seen.
function DebugBlockMarkReported(Block: PDebugBlock; Seen: TAtomicWord): Boolean;
/// Goes from Seen, the word that was read, to dsChanging; False when another thread was quicker.
function DebugBlockChange(Block: PDebugBlock; Seen: TAtomicWord): Boolean;
/// Ends the state dsChanging; what was written before is seen by who sees the state.
procedure DebugBlockSettle(Block: PDebugBlock; State: TDebugState);
/// Writes Sum.
procedure DebugBlockSeal(Block: PDebugBlock);
/// Whether Sum fits what is noted.
function DebugBlockIsSealed(Block: PDebugBlock): Boolean;

implementation

uses
  LaneMM.Atomic;

const
  // In TDebugBlock.State: the state, whether damage was reported, the number of changes.
  StateMask = 3;
  ReportedBit = StateMask + 1;
  LowMask = StateMask or ReportedBit;
  NextChange = LowMask + 1;

function DebugStateOf(Word: TAtomicWord): TDebugState;
begin
  Result := TDebugState(Word and StateMask);
end;

function DebugBlockChange(Block: PDebugBlock; Seen: TAtomicWord): Boolean;
begin
  // Full barrier: the state before what is written to the block. Pairs with LaneMM.DebugCheck.
  Result := CompareAndSwap(Block^.State, Seen,
    Seen and not LowMask + NextChange + Ord(dsChanging));
end;

function DebugIsReported(Word: TAtomicWord): Boolean;
begin
  Result := Word and ReportedBit <> 0;
end;

function DebugBlockMarkReported(Block: PDebugBlock; Seen: TAtomicWord): Boolean;
begin
  // Full barrier: what was read of the block before, and its state is still the same.
  Result := CompareAndSwap(Block^.State, Seen, Seen or ReportedBit);
end;

procedure DebugBlockSettle(Block: PDebugBlock; State: TDebugState);
begin
  // Release: what was written to the block before the state. Pairs with LaneMM.DebugCheck.
  StoreRelease(Block^.State, Block^.State and not LowMask + NextChange + NativeUInt(Ord(State)));
end;

function SumOf(Block: PDebugBlock): Cardinal;
type
  PHalves = ^THalves;
  THalves = array[0..4] of Cardinal;
var
  Sum: UInt64;
  Halves: PHalves;
begin
  Halves := @Block^.AllocStack;
  // Each field has a factor of its own, odd so that no bit of it is lost.
  Sum := UInt64(Block^.Size) * $9E3779B97F4A7C15 + UInt64(Block^.Number) * $C2B2AE3D27D4EB4F
    + UInt64(Block^.FirstWord) * $165667B19E3779F9
    + (Halves^[0] + UInt64(Halves^[1]) shl 32) * $85EBCA77C2B2AE63
    + (Halves^[2] + UInt64(Halves^[3]) shl 32) * $27D4EB2F165667C5 + Halves^[4];
  Result := Sum shr 32 xor Sum;
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
