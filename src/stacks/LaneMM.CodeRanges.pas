/// The code of the modules that have a copy of LaneMM: the program, and its libraries in Pascal.
//
// Owns:       Stacks.Ranges, a page that all copies share; this copy's entry: its Key is the end of
//             the copy's code, its Value the start.
// Invariants: a library may be unloaded after its entry was read: the code of other modules is read
//             through the system, which refuses where nothing is mapped.
// Callers:    CodeRangesStart: under no lock, any number of times. CodeRangesStop: before a library
//             is unloaded. The others: any thread.
// Progress:   wait-free, as LaneMM.CopyPages.
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
  LaneMM.Atomic, LaneMM.Os, LaneMM.CopyPages;

// ---------------------------------------------------------------------------- reads

function CodeIsOwn(Address: NativeUInt): Boolean;
begin
  Result := (Address >= Stacks.CodeFirst) and (Address < Stacks.CodeLimit);
end;

// CodeFind for code outside of this module.
function FindOther(Address: NativeUInt; out First: NativeUInt): Boolean;
var
  Ranges: PCopyPage;
  Range: PCopyEntry;
  Index: NativeInt;
  Limit, Changes: NativeUInt;
begin
  Result := False;
  First := 0;
  Ranges := PCopyPage(LoadAcquire(Stacks.Ranges));
  if Ranges = nil then
    Exit;
  // Where another copy has registered since, other code may have been: this copy forgets its rules.
  Changes := LoadAcquire(Ranges^.Changes);
  if Changes <> LoadAcquire(Stacks.RangeChanges) then
  begin
    StoreRelease(Stacks.RangeChanges, Changes);
    FetchAdd(Stacks.CodeChanges, 1);
  end;
  for Index := 0 to NativeInt(LoadAcquire(Ranges^.Count)) - 1 do
  begin
    Range := @Ranges^.Entries[Index];
    // Acquire: the limit before the start. Pairs with CopyPageEnter. The same limit again: the same
    // entry.
    Limit := LoadAcquire(Range^.Key);
    First := LoadAcquire(Range^.Value);
    if (Address < Limit) and (Address >= First) and (LoadAcquire(Range^.Key) = Limit) then
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

procedure CodeRangesStart;
var
  Ranges: PCopyPage;
begin
  if (LoadAcquire(Stacks.Ranges) <> 0) or (Stacks.CodeLimit = 0)
    or (@Stacks.StepFrame <> nil) then
    Exit;
  Ranges := CopyPageOpen(cpCode);
  if (Ranges <> nil) and CompareAndSwap(Stacks.Ranges, 0, NativeUInt(Ranges)) then
    CopyPageEnter(Ranges, Stacks.CodeLimit, Stacks.CodeFirst);
end;

procedure CodeRangesStop;
begin
  CopyPageLeave(PCopyPage(LoadAcquire(Stacks.Ranges)), Stacks.CodeLimit);
end;

end.
