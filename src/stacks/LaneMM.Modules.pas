/// The modules of the process: the ranges of their data and code, and safe reads of both.
//
// Owns:       Stacks.Modules, a table that is never freed.
// Invariants: a range in the table may be unmapped by the time it is read, with its library: only
//             this module's own data are read directly.
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
  MostRanges = 1024;

type
  TRange = record
    First, Limit: NativeUInt;
    PathKey: NativeUInt;   // hash of the path of its file
    IsCode: Boolean;
    IsOwn: Boolean;        // of this module: it stays mapped
  end;
  PRange = ^TRange;

  // The ranges that one update found.
  TRanges = record
    Count: NativeUInt;
    Items: array[0..MostRanges - 1] of TRange;
  end;
  PRanges = ^TRanges;

  // Readers use one of the two tables while an update fills the other.
  TModules = record
    IsBusy: TAtomicWord;
    Current: TAtomicWord;
    Looks: array[0..1] of TRanges;
  end;
  PModules = ^TModules;

  TLook = record
    Ranges: PRanges;
    OwnKey: NativeUInt;
  end;
  PLook = ^TLook;

function PathKeyOf(Path: PAnsiChar): NativeUInt;
begin
  Result := 5381;
  while Path^ <> #0 do
  begin
    Result := Result * 33 + Ord(Path^);
    Inc(Path);
  end;
end;

procedure SeeMapping(const Mapping: TOsMapping; Context: Pointer);
var
  Look: PLook;
  Range: PRange;
begin
  Look := Context;
  if not Mapping.IsReadable or not Mapping.IsFile or (Look^.Ranges^.Count = MostRanges) then
    Exit;
  Range := @Look^.Ranges^.Items[Look^.Ranges^.Count];
  Range^.First := Mapping.First;
  Range^.Limit := Mapping.Limit;
  Range^.PathKey := PathKeyOf(@Mapping.Path);
  Range^.IsCode := Mapping.IsCode;
  Range^.IsOwn := False;
  if (NativeUInt(@ModulesLook) >= Mapping.First) and (NativeUInt(@ModulesLook) < Mapping.Limit) then
    Look^.OwnKey := Range^.PathKey;
  Inc(Look^.Ranges^.Count);
end;

function HasCode(const Ranges: TRanges; PathKey: NativeUInt): Boolean;
var
  Index: NativeInt;
begin
  for Index := 0 to NativeInt(Ranges.Count) - 1 do
    if Ranges.Items[Index].IsCode and (Ranges.Items[Index].PathKey = PathKey) then
      Exit(True);
  Result := False;
end;

// Removes the ranges of files without code: they are no modules.
procedure KeepModules(var Ranges: TRanges; OwnKey: NativeUInt);
var
  Index: NativeInt;
  Kept: NativeUInt;
  Range: PRange;
begin
  Kept := 0;
  for Index := 0 to NativeInt(Ranges.Count) - 1 do
  begin
    Range := @Ranges.Items[Index];
    if not HasCode(Ranges, Range^.PathKey) then
      Continue;
    Range^.IsOwn := Range^.PathKey = OwnKey;
    Ranges.Items[Kept] := Range^;
    Inc(Kept);
  end;
  Ranges.Count := Kept;
end;

procedure ModulesLook;
var
  Modules: PModules;
  Look: TLook;
  Next: NativeUInt;
begin
  OsTakeTable(Stacks.Modules, SizeOf(TModules));
  Modules := PModules(LoadAcquire(Stacks.Modules));
  // A second thread does not wait: the ranges that it finds were read a moment ago.
  if (Modules = nil) or not CompareAndSwap(Modules^.IsBusy, 0, 1) then
    Exit;
  Next := 1 - LoadAcquire(Modules^.Current);
  Look.OwnKey := 0;
  Look.Ranges := @Modules^.Looks[Next];
  Look.Ranges^.Count := 0;
  OsVisitMappings(SeeMapping, @Look);
  KeepModules(Look.Ranges^, Look.OwnKey);
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

// Copies the range that holds Address; returns whether there is one. The ranges are in the order of
// their addresses, as the system lists them.
function FindRange(Address: NativeUInt; out Range: TRange): Boolean;
var
  Modules: PModules;
  Ranges: PRanges;
  First, Limit, Count, Middle: NativeUInt;
begin
  Range := Default(TRange);
  Modules := PModules(LoadAcquire(Stacks.Modules));
  if Modules = nil then
    Exit(False);
  Ranges := @Modules^.Looks[LoadAcquire(Modules^.Current)];
  Count := Ranges^.Count;
  First := 0;
  Limit := Count;
  while First < Limit do
  begin
    Middle := (First + Limit) div 2;
    if Ranges^.Items[Middle].Limit <= Address then
      First := Middle + 1
    else
      Limit := Middle;
  end;
  Result := (First < Count) and (Ranges^.Items[First].First <= Address);
  if Result then
    Range := Ranges^.Items[First];
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
