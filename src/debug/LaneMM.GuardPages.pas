/// Inaccessible pages around debug blocks.
//
// Owns:       Debug.GuardReaders, GuardChanges.
// Invariants: while a thread reads all blocks (GuardPagesHold), no more pages become inaccessible:
//             a block that was readable when it was found stays readable. Blocks that are allocated
//             or freed meanwhile have no such pages.
// Callers:    any thread. DebugBlockClose: the thread that frees the block.
// Progress:   GuardPagesHold waits a bounded time for threads in GuardPagesForbid. DebugBlockClose
//             takes Debug.Lock. The others do not wait.
unit LaneMM.GuardPages;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.DebugState, LaneMM.DebugSpans;

/// Keeps pages from becoming inaccessible, until GuardPagesLetGo; call it before contents of blocks
/// are read that other threads may free. Calls nest. Waits for threads in GuardPagesForbid, about
/// 100 ms at most.
procedure GuardPagesHold;
/// Ends one call of GuardPagesHold.
procedure GuardPagesLetGo;
/// Makes pages inaccessible, unless GuardPagesHold is in effect; returns whether it did.
function GuardPagesForbid(P: Pointer; Size: NativeUInt): Boolean;
/// Returns True if the contents are accessible. Asks the system if the block has guard pages.
function DebugPlaceIsOpen(const Place: TDebugPlace): Boolean;
/// Purges the contents of a guarded block, and makes them inaccessible as GuardPagesForbid does.
procedure DebugBlockClose(Block: PDebugBlock);

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Os, LaneMM.Lock, LaneMM.Frontier;

const
  // How long a reader waits for threads in GuardPagesForbid: they may have been stopped there.
  PatienceMs = 1;
  MostRounds = 100;

procedure GuardPagesHold;
var
  Round, Changes: NativeUInt;
begin
  // Full barrier: either GuardPagesForbid sees the reader, or this thread sees GuardChanges and
  // waits. Pairs with GuardPagesForbid.
  FetchAdd(Debug.GuardReaders, 1);
  for Round := 1 to MostRounds do
  begin
    Changes := LoadAcquire(Debug.GuardChanges);
    if Changes = 0 then
      Exit;
    OsWaitMs(Debug.GuardChanges, Changes, PatienceMs);
  end;
end;

procedure GuardPagesLetGo;
begin
  // Full barrier: the reads of the blocks come before. Pairs with GuardPagesForbid.
  FetchAdd(Debug.GuardReaders, NativeUInt(-1));
end;

function GuardPagesForbid(P: Pointer; Size: NativeUInt): Boolean;
begin
  // Full barrier: either this thread sees the reader, or the reader sees GuardChanges and waits.
  // Pairs with GuardPagesHold.
  FetchAdd(Debug.GuardChanges, 1);
  Result := (LoadAcquire(Debug.GuardReaders) = 0) and OsForbid(P, Size);
  // Full barrier: the pages before the count. Pairs with GuardPagesHold.
  FetchAdd(Debug.GuardChanges, NativeUInt(-1));
end;

function DebugPlaceIsOpen(const Place: TDebugPlace): Boolean;
var
  Sign: Byte;
begin
  Result := not Place.HasPages or OsRead(NativeUInt(Place.Data) - 1, @Sign, SizeOf(Sign));
end;

procedure DebugBlockClose(Block: PDebugBlock);
var
  Span: PSpan;
  Size: NativeUInt;
begin
  Span := ArenaSpan(Block);
  Size := (Span^.SliceCount shl SliceShift) - 2 * OsPageSize;
  OsErase(Span^.Start + OsPageSize, Size);
  LockEnter(Debug.Lock); // a check may be reading the block
  OsPurge(Span^.Start + OsPageSize, Size);
  GuardPagesForbid(Span^.Start + OsPageSize, Size);
  LockLeave(Debug.Lock);
end;

end.
