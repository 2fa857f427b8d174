/// Blocks of other copies of LaneMM in the process, and of the previous memory manager.
//
// Owns:       Process.Copies, Ranges, Previous, HasPrevious. A Pascal program and each library that
//             it loads have their own copy of this unit; all copies register on pages at a fixed
//             address (CopiesAddress), which outlive them.
// Invariants: a pointer that no arena holds is not dereferenced here. The pages say which copy has
//             an arena that holds it. No other copy is called: it may be unloaded at that moment.
//             The copy that holds it checks whether it owns the block; what no copy holds belongs
//             to the previous manager, if that has blocks in use. An invalid pointer in the arena
//             of a copy is reported by that copy, which knows its backtraces; the error is raised
//             by the one that was called.
//             An entry is whole while Life is odd. A reader that found the same odd number before
//             and after it has read one copy's entry. See tests/model/copies.pml.
// Callers:    any thread; ForeignStart and ForeignStop: at start and unload.
// Progress:   wait-free; registering takes at most MaxCopies tries.
unit LaneMM.Foreign;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Hooks;

type
  /// What a copy does for the others.
  TCopyCalls = record
    Owns: TOwnsCall;                    //< returns whether P is one of its blocks in use
    FreeBlock: TBlockCall;              //< frees one of its blocks
    SizeOfBlock: TBlockCall;            //< returns the usable size of one
    ReportInvalid: TInvalidPointerCall; //< reports a pointer that it holds and does not own
  end;

/// Registers this copy, before it has an arena, and keeps the previous memory manager.
procedure ForeignStart(const Calls: TCopyCalls);
/// Removes the copy with this call from the pages.
procedure ForeignStop(Owns: TOwnsCall);
/// Frees a block of another copy or of the previous manager. Returns false, and changes nothing, if
/// it has no owner. Size is its usable size.
function ForeignFree(P: Pointer; out Size: NativeUInt): Boolean;
/// Stores the usable size of such a block in Size. Returns false if it has no owner.
function ForeignSize(P: Pointer; out Size: NativeUInt): Boolean;
/// Lets the copy whose arena holds P report a call with it. Returns false if no other copy does.
function ForeignReportInvalid(P: Pointer; Call: TInvalidCall): Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Os, LaneMM.Rtl;

const
  // Increases when TCopy or the meaning of its calls changes.
  Version = NativeUInt($4C4D4D02);
  MaxCopies = 60;

type
  TCopy = record
    IsTaken: TAtomicWord;  //< shared  1: a copy has this entry
    Life: TAtomicWord;     //< shared  rises by 1 when the entry is whole, and when its copy leaves
    Calls: TCopyCalls;     //< const   while Life is the same odd number
    Ranges: TArenaRanges;  //< shared  where its arenas lie
  end;
  PCopy = ^TCopy;
  TCopies = record
    Version: NativeUInt;                       //< const   Version of the copy that made the pages
    Copies: array[0..MaxCopies - 1] of TCopy;  //< shared  see TCopy
  end;
  PCopies = ^TCopies;

{$if SizeOf(TCopies) > SliceSize}
  {$message fatal 'TCopies: more than a slice'}
{$ifend}

procedure Register(Copies: PCopies; const Calls: TCopyCalls);
var
  Copy: PCopy;
  Index: Cardinal;
begin
  for Index := 0 to MaxCopies - 1 do
  begin
    Copy := @Copies^.Copies[Index];
    // Full barrier: the entry is written after Life was even. Pairs with FindCopy.
    if CompareAndSwap(Copy^.IsTaken, 0, 1) then
    begin
      Copy^.Calls := Calls;
      // Release: the calls. Pairs with FindCopy.
      StoreRelease(Copy^.Life, Copy^.Life + 1);
      Process.Copies := Copies;
      Process.Ranges := @Copy^.Ranges;
      Exit;
    end;
  end;
end;

procedure KeepPrevious;
begin
  GetMemoryManager(Process.Previous);
  // The run-time library's own manager reports the bytes in use; others may not.
  Process.HasPrevious := (@Process.Previous.GetMem <> @SysGetMem)
    or (Process.Previous.GetFPCHeapStatus().CurrHeapUsed <> RtlArgumentBytes);
end;

procedure ForeignStart(const Calls: TCopyCalls);
var
  Copies: PCopies;
begin
  KeepPrevious;
  if not OsMayLoad then
    Exit; // there is no other copy
  Copies := OsSharedPages(CopiesAddress, SizeOf(TCopies), Version);
  if Copies <> nil then
    Register(Copies, Calls);
end;

procedure Leave(Copy: PCopy);
var
  Index: Cardinal;
begin
  // Release: with nothing; the next copy writes the entry behind a full barrier. Pairs with
  // FindCopy.
  StoreRelease(Copy^.Life, Copy^.Life + 1);
  if Process.Ranges = @Copy^.Ranges then
    Process.Ranges := nil;
  for Index := 0 to ArenaLimit - 1 do
    if Copy^.Ranges[Index].Limit <> 0 then
      StoreRelease(Copy^.Ranges[Index].Limit, 0);
  // Release: the entry is empty. Pairs with Register.
  StoreRelease(Copy^.IsTaken, 0);
end;

procedure ForeignStop(Owns: TOwnsCall);
var
  Copies: PCopies;
  Index: Cardinal;
begin
  Copies := Process.Copies;
  if Copies <> nil then
    for Index := 0 to MaxCopies - 1 do
      if Odd(LoadAcquire(Copies^.Copies[Index].Life))
        and (@Copies^.Copies[Index].Calls.Owns = @Owns) then
        Leave(@Copies^.Copies[Index]);
end;

// Returns whether an arena of the copy holds P.
function Holds(Copy: PCopy; P: Pointer): Boolean;
var
  Index: Cardinal;
  Limit: NativeUInt;
begin
  Result := False;
  for Index := 0 to ArenaLimit - 1 do
  begin
    // Acquire: Limit before First. Pairs with ShowRange in LaneMM.Arena.
    Limit := LoadAcquire(Copy^.Ranges[Index].Limit);
    if Limit = 0 then
      Exit;
    if (NativeUInt(P) < Limit) and (NativeUInt(P) >= LoadAcquire(Copy^.Ranges[Index].First)) then
      Exit(True);
  end;
end;

// Finds the copy whose arena holds P; returns whether there is one. It stays for as long as the
// program uses its blocks.
function FindCopy(P: Pointer; out Calls: TCopyCalls): Boolean;
var
  Copies: PCopies;
  Copy: PCopy;
  Index: Cardinal;
  Life: NativeUInt;
begin
  Copies := Process.Copies;
  Result := False;
  if Copies = nil then
    Exit;
  for Index := 0 to MaxCopies - 1 do
  begin
    Copy := @Copies^.Copies[Index];
    // Acquire: the entry after it. Pairs with Register.
    Life := LoadAcquire(Copy^.Life);
    if not Odd(Life) or not Holds(Copy, P) then
      Continue;
    Calls := Copy^.Calls;
    // The entry before the number: with another one it belongs to another copy, which does not hold
    // P, or has left. Pairs with Register and Leave.
    AcquireFence;
    if LoadAcquire(Copy^.Life) = Life then
      Exit(True);
  end;
end;

// Finds the copy that owns the block P, else the previous manager; Owner holds its calls. Returns
// false if there is neither. No system maps the lowest addresses: what reads them is a fault, but
// for the C library's own routine, which says what an address is.
function FindOwner(P: Pointer; out Owner: TCopyCalls): Boolean;
const
  LowestBlock = 1 shl 16;
begin
  if FindCopy(P, Owner) then
    Exit(Owner.Owns(P));
  Owner := Default(TCopyCalls);
  Owner.FreeBlock := Process.Previous.FreeMem;
  Owner.SizeOfBlock := Process.Previous.MemSize;
  Result := Process.HasPrevious and (Process.IsMalloc or (NativeUInt(P) >= LowestBlock));
end;

function ForeignFree(P: Pointer; out Size: NativeUInt): Boolean;
var
  Owner: TCopyCalls;
begin
  Result := FindOwner(P, Owner);
  if Result then
    Size := Owner.FreeBlock(P);
end;

function ForeignSize(P: Pointer; out Size: NativeUInt): Boolean;
var
  Owner: TCopyCalls;
begin
  Result := FindOwner(P, Owner) and (@Owner.SizeOfBlock <> nil);
  if Result then
    Size := Owner.SizeOfBlock(P);
end;

function ForeignReportInvalid(P: Pointer; Call: TInvalidCall): Boolean;
var
  Holder: TCopyCalls;
begin
  Result := FindCopy(P, Holder);
  if Result then
    Holder.ReportInvalid(P, Call);
end;

end.
