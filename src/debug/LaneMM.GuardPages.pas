/// Pages around debug blocks that no thread can touch.
//
// Owns:       Debug.GuardReaders, GuardChanges.
// Invariants: while a thread reads all blocks (GuardPagesHold), no more pages become untouchable:
//             what could be read when it was found can be read until the end. Blocks that are
//             allocated or freed meanwhile do without.
// Callers:    any thread.
// Progress:   GuardPagesHold waits a bounded time for threads that make pages untouchable.
unit LaneMM.GuardPages;

{$I ../LaneMM.inc}

interface



uses
  LaneMM.DebugState, LaneMM.DebugSpans;


/// From now on no page becomes untouchable, until GuardPagesLetGo: before the contents of blocks
/// are read that other threads may free. Calls nest. Waits for threads that are at it.
procedure GuardPagesHold;
/// Ends what one call of GuardPagesHold began.
procedure GuardPagesLetGo;
/// Makes pages untouchable, unless a thread reads all blocks now; returns whether it did.
function GuardPagesForbid(P: Pointer; Size: NativeUInt): Boolean;
/// Whether the contents can be touched. Asks the system where the block has such pages.
function DebugPlaceIsOpen(const Place: TDebugPlace): Boolean;
/// Makes the contents of a guarded block untouchable, too, and gives their memory back.
procedure DebugBlockClose(Block: PDebugBlock);

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Os, LaneMM.Lock, LaneMM.Arena;

const
  // How long a reader waits for threads that take pages away: they may have been stopped there.
  PatienceMs = 1;
  MostRounds = 100;

procedure GuardPagesHold;
var
  Round, Changes: NativeUInt;
begin
  // Full barrier: either Forbid sees the reader, or this thread sees it at work and waits.
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
  FetchAdd(Debug.GuardReaders, NativeUInt(-1));
end;

// Makes pages untouchable, unless somebody reads all blocks now; tells whether it did.
function GuardPagesForbid(P: Pointer; Size: NativeUInt): Boolean;
begin
  // Full barrier: pairs with GuardPagesHold.
  FetchAdd(Debug.GuardChanges, 1);
  Result := (LoadAcquire(Debug.GuardReaders) = 0) and OsForbid(P, Size);
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
  LockEnterUnwatched(Debug.Lock); // a scan may be looking at the block
  OsPurge(Span^.Start + OsPageSize, Size);
  GuardPagesForbid(Span^.Start + OsPageSize, Size);
  LockLeave(Debug.Lock);
end;

end.
