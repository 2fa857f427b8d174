/// Pages on which the copies of LaneMM in the process find each other: a program and each library
/// in Pascal that it loads have their own copy.
//
// Owns:       nothing; a page lies at a fixed address, and outlives all copies.
// Invariants: Key is written last and cleared first, so an entry with a Key is whole. A copy may be
//             unloaded after its entry was read.
// Callers:    any thread.
// Progress:   wait-free. A copy registers in the first free entry, after MostCopies tries at most.
unit LaneMM.CopyPages;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout;

const
  /// Entries of a page.
  MostCopies = 64;

type
  /// The pages, each with what its user has in the entries: LaneMM.CodeRanges, LaneMM.OsSignals.
  TCopyPageKind = (cpCode, cpFaults);

  PCopyEntry = ^TCopyEntry;
  /// The entry of a copy.
  TCopyEntry = record
    IsTaken: TAtomicWord;    //< shared  1: a copy has this entry
    Value: TAtomicWord;      //< shared  of the copy, while Key is not 0
    Key: TAtomicWord;        //< shared  likewise; 0: the entry is not whole
  end;
  PCopyPage = ^TCopyPage;
  /// A page.
  TCopyPage = record
    Version: NativeUInt;     //< const   of the copy that made the page, see CopyPageOpen
    Count: TAtomicWord;      //< shared  entries from the first on that were ever taken
    Changes: TAtomicWord;    //< shared  how often a copy has registered
    Entries: array[0..MostCopies - 1] of TCopyEntry; //< shared  see TCopyEntry
  end;

/// Returns the page of this kind; nil where the address is not available, or another version of
/// LaneMM has made the page.
function CopyPageOpen(Kind: TCopyPageKind): PCopyPage;
/// Registers this copy; does nothing where all entries are taken.
procedure CopyPageEnter(Page: PCopyPage; Key, Value: NativeUInt);
/// Removes all entries with this key; does nothing for nil.
procedure CopyPageLeave(Page: PCopyPage; Key: NativeUInt);

implementation

uses
  LaneMM.Atomic, LaneMM.Os;

const
  // Increase when the meaning of the entries changes.
  Versions: array[TCopyPageKind] of NativeUInt = ($4C4D5201, $4C4D4602);

{$if SizeOf(TCopyPage) > OsPageSize}
  {$message fatal 'TCopyPage: more than a page'}
{$ifend}

function CopyPageOpen(Kind: TCopyPageKind): PCopyPage;
begin
  // The pages follow that of LaneMM.Foreign, at the distance of reservations on Windows.
  Result := OsSharedPages(CopiesAddress + NativeUInt(Ord(Kind) + 1) * SliceSize,
    SizeOf(TCopyPage), Versions[Kind]);
end;

procedure CopyPageEnter(Page: PCopyPage; Key, Value: NativeUInt);
var
  Index: Cardinal;
  Entry: PCopyEntry;
begin
  for Index := 0 to MostCopies - 1 do
  begin
    Entry := @Page^.Entries[Index];
    if not CompareAndSwap(Entry^.IsTaken, 0, 1) then
      Continue;
    StoreRelease(Entry^.Value, Value);
    // Release: the entry before its key. Pairs with FindOther of LaneMM.CodeRanges and LinkOf of
    // LaneMM.OsSignals.
    StoreRelease(Entry^.Key, Key);
    RaiseTo(Page^.Count, Index + 1);
    FetchAdd(Page^.Changes, 1);
    Exit;
  end;
end;

procedure CopyPageLeave(Page: PCopyPage; Key: NativeUInt);
var
  Index: Cardinal;
begin
  if Page <> nil then
    for Index := 0 to MostCopies - 1 do // two threads may have registered the copy at once
      if LoadAcquire(Page^.Entries[Index].Key) = Key then
      begin
        StoreRelease(Page^.Entries[Index].Key, 0);
        StoreRelease(Page^.Entries[Index].IsTaken, 0);
      end;
end;

end.
