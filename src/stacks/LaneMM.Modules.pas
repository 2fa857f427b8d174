/// The modules of the process: the ranges of their data and code, and safe reads of both.
//
// Owns:       Stacks.Modules, a table that is never freed.
// Invariants: a range in the table may be unmapped by the time it is read, with its library: only
//             this module's own data are read directly. Other mapped files take no room in it: a
//             program may map more than it has.
// Callers:    any thread, also during an error report; takes no lock.
unit LaneMM.Modules;

{$I ../LaneMM.inc}

interface

/// Updates the table to the modules that are loaded now. Call it before the first use, and whenever
/// libraries may have been loaded. Without memory, or while another thread does it, does nothing.
procedure ModulesLook;
/// In a child process after fork: resets an update that a thread of the parent had begun.
procedure ModulesRecover;
/// Returns whether Size bytes from Address on are readable data of a module.
function ModulesHaveData(Address, Size: NativeUInt): Boolean;
/// Returns whether Address lies in the code of a module.
function ModulesHaveCode(Address: NativeUInt): Boolean;
/// Copies Size bytes of a module's code or data to Target; returns whether all could be read.
function ModulesRead(Address: NativeUInt; Target: Pointer; Size: NativeUInt): Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.Atomic, LaneMM.Os, LaneMM.OsProcess, LaneMM.StacksState;

const
  MostRanges = 4096; // pages without one are never touched

type
  TRange = record
    First, Limit: NativeUInt;
    PathKey: NativeUInt;   // hash of the path of its file
    IsCode: Boolean;
    IsOwn: Boolean;        // of this module, which stays mapped; set by FindIn
  end;
  PRange = ^TRange;

  // The ranges that one update found.
  TRanges = record
    Count: NativeUInt;
    OwnKey: NativeUInt;    // the PathKey of this module
    Items: array[0..MostRanges - 1] of TRange;
  end;
  PRanges = ^TRanges;

  // Readers use one of the two tables while an update fills the other: that of the number of the
  // last update, modulo 2.
  TModules = record
    IsBusy: TAtomicWord;
    Current: TAtomicWord;
    Looks: array[0..1] of TRanges;
  end;
  PModules = ^TModules;

function PathKeyOf(Path: PAnsiChar): NativeUInt;
begin
  Result := 5381;
  while Path^ <> #0 do
  begin
    Result := Result * 33 + Ord(Path^);
    Inc(Path);
  end;
end;

// Removes the ranges of files without code, which are no modules, but for the file OpenKey, whose
// code may come. Those of a module follow each other.
procedure KeepModules(var Ranges: TRanges; OpenKey: NativeUInt);
var
  First, Limit, Kept: NativeUInt;
  IsModule: Boolean;
begin
  First := 0;
  Kept := 0;
  while First < Ranges.Count do
  begin
    IsModule := Ranges.Items[First].PathKey = OpenKey;
    Limit := First;
    repeat
      IsModule := IsModule or Ranges.Items[Limit].IsCode;
      Inc(Limit);
    until (Limit = Ranges.Count) or (Ranges.Items[Limit].PathKey <> Ranges.Items[First].PathKey);
    if IsModule then
    begin
      Move(Ranges.Items[First], Ranges.Items[Kept], (Limit - First) * SizeOf(TRange));
      Inc(Kept, Limit - First);
    end;
    First := Limit;
  end;
  Ranges.Count := Kept;
end;

procedure SeeMapping(const Mapping: TOsMapping; Context: Pointer);
var
  Ranges: PRanges;
  Range: PRange;
  PathKey: NativeUInt;
begin
  Ranges := Context;
  if not Mapping.IsReadable or not Mapping.IsFile then
    Exit;
  PathKey := PathKeyOf(@Mapping.Path);
  if Ranges^.Count = MostRanges then
    KeepModules(Ranges^, PathKey);
  if Ranges^.Count = MostRanges then
    Exit;
  Range := @Ranges^.Items[Ranges^.Count];
  Range^.First := Mapping.First;
  Range^.Limit := Mapping.Limit;
  Range^.PathKey := PathKey;
  Range^.IsCode := Mapping.IsCode;
  if (NativeUInt(@ModulesLook) >= Mapping.First) and (NativeUInt(@ModulesLook) < Mapping.Limit) then
    Ranges^.OwnKey := PathKey;
  Inc(Ranges^.Count);
end;

procedure ModulesLook;
var
  Modules: PModules;
  Ranges: PRanges;
  Next: NativeUInt;
begin
  OsTakeTable(Stacks.Modules, SizeOf(TModules));
  Modules := PModules(LoadAcquire(Stacks.Modules));
  // A second thread does not wait: the ranges that it finds were read a moment ago.
  // Full barrier: the last publication before the other table is written. Pairs with FindRange.
  if (Modules = nil) or not CompareAndSwap(Modules^.IsBusy, 0, 1) then
    Exit;
  Next := LoadAcquire(Modules^.Current) + 1;
  Ranges := @Modules^.Looks[Next and 1];
  Ranges^.Count := 0;
  Ranges^.OwnKey := 0;
  OsVisitMappings(SeeMapping, Ranges);
  KeepModules(Ranges^, 0);
  // Release: the ranges before their publication. Pairs with FindRange.
  StoreRelease(Modules^.Current, Next);
  StoreRelease(Modules^.IsBusy, 0);
end;

procedure ModulesRecover;
var
  Modules: PModules;
begin
  Modules := PModules(LoadAcquire(Stacks.Modules));
  if Modules <> nil then
    StoreRelease(Modules^.IsBusy, 0);
end;

// FindRange in one table, which another update may overwrite meanwhile.
function FindIn(const Ranges: TRanges; Address: NativeUInt; out Range: TRange): Boolean;
var
  First, Limit, Count, Middle: NativeUInt;
begin
  Count := Ranges.Count;
  First := 0;
  Limit := Count;
  while First < Limit do
  begin
    Middle := (First + Limit) div 2;
    if Ranges.Items[Middle].Limit <= Address then
      First := Middle + 1
    else
      Limit := Middle;
  end;
  if First < Count then
    Range := Ranges.Items[First]
  else
    Range := Default(TRange);
  Range.IsOwn := Range.PathKey = Ranges.OwnKey;
  Result := (Address >= Range.First) and (Address < Range.Limit);
end;

// Copies the range that holds Address; returns whether there is one. The ranges are in the order of
// their addresses, as the system lists them. Lock-free: repeated where an update has ended.
function FindRange(Address: NativeUInt; out Range: TRange): Boolean;
var
  Modules: PModules;
  Current: NativeUInt;
begin
  Range := Default(TRange);
  Modules := PModules(LoadAcquire(Stacks.Modules));
  if Modules = nil then
    Exit(False);
  repeat
    Current := LoadAcquire(Modules^.Current);
    Result := FindIn(Modules^.Looks[Current and 1], Address, Range);
    // The reads before the second look: the next update writes the other table, and the one after
    // that this one, once the next is published. Pairs with ModulesLook.
    AcquireFence;
  until LoadAcquire(Modules^.Current) = Current;
end;

function ModulesHaveData(Address, Size: NativeUInt): Boolean;
var
  Range: TRange;
begin
  Result := FindRange(Address, Range) and not Range.IsCode
    and (Size <= NativeUInt(Range.Limit - Address));
end;

function ModulesHaveCode(Address: NativeUInt): Boolean;
var
  Range: TRange;
begin
  Result := FindRange(Address, Range) and Range.IsCode;
end;

function ModulesRead(Address: NativeUInt; Target: Pointer; Size: NativeUInt): Boolean;
var
  Range: TRange;
begin
  Result := FindRange(Address, Range) and (Size <= NativeUInt(Range.Limit - Address));
  if not Result then
    Exit;
  if Range.IsOwn then
    Move(Pointer(Address)^, Target^, Size)
  else
    Result := OsRead(Address, Target, Size);
end;

end.
