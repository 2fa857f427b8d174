/// The code of the modules that have a copy of LaneMM: the program, and its libraries in Pascal.
//
// Owns:       Stacks.Ranges, a page at a fixed address that all copies share; this copy's entry.
// Invariants: Limit is written last and cleared first, so an entry with a Limit is whole. A library
//             may be unloaded after its entry was read: the code of other modules is read through
//             the system, which refuses where nothing is mapped.
// Callers:    CodeRangesStart: under no lock, any number of times. CodeRangesStop: before a library
//             is unloaded. The others: any thread.
// Progress:   wait-free. A copy that registers takes the first free entry, at most MaxRanges tries.
unit LaneMM.CodeRanges;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.StacksState;

const
  /// Bytes of code that CodeAt makes readable before and after an address.
  CodeBefore = 32;
  CodeAfter = 48;

type
  /// A copy of the code around an address.
  TCodeBytes = array[0..CodeBefore + CodeAfter - 1] of Byte;

/// Registers the code of this copy; then backtraces of other copies pass it, and its own pass
/// theirs. Without the page, or in the C library, does nothing.
procedure CodeRangesStart;
/// Removes the entry of this copy.
procedure CodeRangesStop;
/// Returns whether Address lies in the code of this module.
function CodeIsOwn(Address: NativeUInt): Boolean; inline;
/// Returns whether Address lies in the code of any copy; First receives the start of that code.
function CodeFind(Address: NativeUInt; out First: NativeUInt): Boolean;
/// Returns whether Address lies in the code of any copy.
function IsCode(Address: NativeUInt): Boolean;
/// Returns where the code around Address can be read, from CodeBefore bytes before it up to
/// CodeAfter bytes after it: Address itself in this module, else a place in Bytes, which receives a
/// copy. Nil where that is no readable code of any copy.
function CodeAt(Address: NativeUInt; out Bytes: TCodeBytes): PByte;

implementation

uses
  LaneMM.Layout, LaneMM.Atomic, LaneMM.Os;

const
  // The page follows that of LaneMM.Foreign, at the distance of reservations on Windows.
  RangesAddress = CopiesAddress + SliceSize;
  // Increases when TCodeRange changes.
  Version = NativeUInt($4C4D5201);
  MaxRanges = 64;

type
  TCodeRange = record
    IsTaken: TAtomicWord;    //< shared  1: a copy has this entry
    First: TAtomicWord;      //< shared  start of its code
    Limit: TAtomicWord;      //< shared  end of its code; 0: the entry is not whole
  end;
  PCodeRange = ^TCodeRange;
  TCodeRanges = record
    Version: NativeUInt;     //< const   Version of the copy that made the page
    Count: TAtomicWord;      //< shared  entries from the first on that were ever taken
    Changes: TAtomicWord;    //< shared  how often a copy has registered
    Ranges: array[0..MaxRanges - 1] of TCodeRange; //< shared  see TCodeRange
  end;
  PCodeRanges = ^TCodeRanges;

{$if SizeOf(TCodeRanges) > OsPageSize}
  {$message fatal 'TCodeRanges: more than a page'}
{$ifend}

// ---------------------------------------------------------------------------- reads

function CodeIsOwn(Address: NativeUInt): Boolean;
begin
  Result := (Address >= Stacks.CodeFirst) and (Address < Stacks.CodeLimit);
end;

// Makes this copy forget the rules of code addresses where another copy has registered since: other
// code may have been there before.
procedure LookForChanges(Ranges: PCodeRanges);
var
  Changes: NativeUInt;
begin
  Changes := LoadAcquire(Ranges^.Changes);
  if Changes = LoadAcquire(Stacks.RangeChanges) then
    Exit;
  StoreRelease(Stacks.RangeChanges, Changes);
  FetchAdd(Stacks.CodeChanges, 1);
end;

// CodeFind for code outside of this module.
function FindOther(Address: NativeUInt; out First: NativeUInt): Boolean;
var
  Ranges: PCodeRanges;
  Range: PCodeRange;
  Index: NativeInt;
  Limit: NativeUInt;
begin
  Result := False;
  First := 0;
  Ranges := PCodeRanges(LoadAcquire(Stacks.Ranges));
  if Ranges = nil then
    Exit;
  LookForChanges(Ranges);
  for Index := 0 to NativeInt(LoadAcquire(Ranges^.Count)) - 1 do
  begin
    Range := @Ranges^.Ranges[Index];
    // Acquire: Limit before First. Pairs with Enter. The same Limit again: the same entry.
    Limit := LoadAcquire(Range^.Limit);
    First := LoadAcquire(Range^.First);
    if (Address < Limit) and (Address >= First) and (LoadAcquire(Range^.Limit) = Limit) then
      Exit(True);
  end;
end;

function CodeFind(Address: NativeUInt; out First: NativeUInt): Boolean;
begin
  First := Stacks.CodeFirst;
  Result := CodeIsOwn(Address) or FindOther(Address, First);
end;

function IsCode(Address: NativeUInt): Boolean;
var
  First: NativeUInt;
begin
  Result := CodeIsOwn(Address) or FindOther(Address, First);
end;

function CodeAt(Address: NativeUInt; out Bytes: TCodeBytes): PByte;
var
  First: NativeUInt;
begin
  Result := nil;
  if CodeIsOwn(Address) then
    Result := PByte(Address)
  else if FindOther(Address, First)
    and OsRead(Address - CodeBefore, @Bytes, SizeOf(Bytes)) then
    Result := @Bytes[CodeBefore];
end;

// ---------------------------------------------------------------------------- start, end

// Raises the number of entries that are searched to Count.
procedure RaiseCount(Ranges: PCodeRanges; Count: NativeUInt);
var
  Seen: NativeUInt;
begin
  repeat
    Seen := LoadAcquire(Ranges^.Count);
  until (Seen >= Count) or CompareAndSwap(Ranges^.Count, Seen, Count);
end;

procedure Enter(Ranges: PCodeRanges);
var
  Index: Cardinal;
  Range: PCodeRange;
begin
  for Index := 0 to MaxRanges - 1 do
  begin
    Range := @Ranges^.Ranges[Index];
    if not CompareAndSwap(Range^.IsTaken, 0, 1) then
      Continue;
    StoreRelease(Range^.First, Stacks.CodeFirst);
    // Release: the entry before its Limit. Pairs with FindOther.
    StoreRelease(Range^.Limit, Stacks.CodeLimit);
    RaiseCount(Ranges, Index + 1);
    FetchAdd(Ranges^.Changes, 1);
    Exit;
  end;
end;

procedure CodeRangesStart;
var
  Ranges: PCodeRanges;
  IsNew: Boolean;
begin
  if (LoadAcquire(Stacks.Ranges) <> 0) or (Stacks.CodeLimit = 0)
    or (@Stacks.StepFrame <> nil) then
    Exit;
  Ranges := OsSharedPages(RangesAddress, SizeOf(TCodeRanges), IsNew);
  if Ranges = nil then
    Exit;
  if IsNew then
    Ranges^.Version := Version;
  if (Ranges^.Version = Version) and CompareAndSwap(Stacks.Ranges, 0, NativeUInt(Ranges)) then
    Enter(Ranges);
end;

procedure CodeRangesStop;
var
  Ranges: PCodeRanges;
  Index: Cardinal;
begin
  Ranges := PCodeRanges(LoadAcquire(Stacks.Ranges));
  if Ranges = nil then
    Exit;
  for Index := 0 to MaxRanges - 1 do
    if LoadAcquire(Ranges^.Ranges[Index].Limit) = Stacks.CodeLimit then
    begin
      StoreRelease(Ranges^.Ranges[Index].Limit, 0);
      StoreRelease(Ranges^.Ranges[Index].IsTaken, 0);
    end;
end;

end.
