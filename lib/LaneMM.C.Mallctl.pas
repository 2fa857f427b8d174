/// jemalloc's mallctl: the names that have a counterpart in LaneMM. Others do not exist (ENOENT).
//
// Owns:       LastNumber.
// Arenas:     arena 0 has all blocks; those that a program creates stay empty, and so do its caches.
// Callers:    any thread; the sums are exact while no other thread allocates or frees.
// Source:     jemalloc 5.3, jemalloc(3).
unit LaneMM.C.Mallctl;

{$I ../src/LaneMM.inc}

interface

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Os, LaneMM.Purge, LaneMM.Stats, LaneMM.Text,
  LaneMM.Version, LaneMM.C.Errno, LaneMM.C.Background, LaneMM.C.Start;

const
  ErrorPermission = 1;
  ErrorNoEntry = 2;
  // The number that stands for all arenas.
  AllArenas = 4096;

type
  TName = (naVersion, naEpoch, naBackground, naThreadArena, naThreadCache, naThreadFlush,
    naCacheCreate, naCacheFlush, naCacheDestroy, naArenaCreate, naArenaPurge, naArenaDecay,
    naArenaDirty, naArenaMuzzy, naDirty, naMuzzy, naArenaCount, naPage, naQuantum, naBinCount,
    naExtentCount, naHasStats, naAllocated, naActive, naMetadata, naResident, naMapped, naRetained,
    naSmallAllocated, naSmallResident, naLargeAllocated, naPagesActive, naPagesDirty, naPagesMuzzy);
  TEntry = record
    Name: PAnsiChar;  //< const  # stands for a number
    Size: Cardinal;   //< const  bytes of its value
    CanRead: Boolean; //< const  the value can be read
    CanWrite: Boolean; //< const  it can be written
  end;

const
  Entries: array[TName] of TEntry = (
    (Name: 'version'; Size: 8; CanRead: True; CanWrite: False),
    (Name: 'epoch'; Size: 8; CanRead: True; CanWrite: True),
    (Name: 'background_thread'; Size: 1; CanRead: True; CanWrite: True),
    (Name: 'thread.arena'; Size: 4; CanRead: True; CanWrite: True),
    (Name: 'thread.tcache.enabled'; Size: 1; CanRead: True; CanWrite: True),
    (Name: 'thread.tcache.flush'; Size: 0; CanRead: False; CanWrite: False),
    (Name: 'tcache.create'; Size: 4; CanRead: True; CanWrite: False),
    (Name: 'tcache.flush'; Size: 4; CanRead: False; CanWrite: True),
    (Name: 'tcache.destroy'; Size: 4; CanRead: False; CanWrite: True),
    (Name: 'arenas.create'; Size: 4; CanRead: True; CanWrite: False),
    (Name: 'arena.#.purge'; Size: 0; CanRead: False; CanWrite: False),
    (Name: 'arena.#.decay'; Size: 0; CanRead: False; CanWrite: False),
    (Name: 'arena.#.dirty_decay_ms'; Size: 8; CanRead: True; CanWrite: True),
    (Name: 'arena.#.muzzy_decay_ms'; Size: 8; CanRead: True; CanWrite: True),
    (Name: 'arenas.dirty_decay_ms'; Size: 8; CanRead: True; CanWrite: True),
    (Name: 'arenas.muzzy_decay_ms'; Size: 8; CanRead: True; CanWrite: True),
    (Name: 'arenas.narenas'; Size: 4; CanRead: True; CanWrite: False),
    (Name: 'arenas.page'; Size: 8; CanRead: True; CanWrite: False),
    (Name: 'arenas.quantum'; Size: 8; CanRead: True; CanWrite: False),
    (Name: 'arenas.nbins'; Size: 4; CanRead: True; CanWrite: False),
    (Name: 'arenas.nlextents'; Size: 4; CanRead: True; CanWrite: False),
    (Name: 'config.stats'; Size: 1; CanRead: True; CanWrite: False),
    (Name: 'stats.allocated'; Size: 8; CanRead: True; CanWrite: False),
    (Name: 'stats.active'; Size: 8; CanRead: True; CanWrite: False),
    (Name: 'stats.metadata'; Size: 8; CanRead: True; CanWrite: False),
    (Name: 'stats.resident'; Size: 8; CanRead: True; CanWrite: False),
    (Name: 'stats.mapped'; Size: 8; CanRead: True; CanWrite: False),
    (Name: 'stats.retained'; Size: 8; CanRead: True; CanWrite: False),
    (Name: 'stats.arenas.#.small.allocated'; Size: 8; CanRead: True; CanWrite: False),
    (Name: 'stats.arenas.#.small.resident'; Size: 8; CanRead: True; CanWrite: False),
    (Name: 'stats.arenas.#.large.allocated'; Size: 8; CanRead: True; CanWrite: False),
    (Name: 'stats.arenas.#.pactive'; Size: 8; CanRead: True; CanWrite: False),
    (Name: 'stats.arenas.#.pdirty'; Size: 8; CanRead: True; CanWrite: False),
    (Name: 'stats.arenas.#.pmuzzy'; Size: 8; CanRead: True; CanWrite: False));

type
  // A name of the program's.
  TQuery = record
    Name: TName;
    Number: NativeUInt;   // what stands for #
    NumberAt: NativeUInt; // the part of the name that it is
    PartCount: NativeUInt;
  end;

  TNumberWords = array[0..7] of NativeUInt;
  PNumberWords = ^TNumberWords;
  TWriter = procedure(Context: Pointer; Text: PAnsiChar); cdecl;

var
  // shared  the number of the last arena or cache that was created
  LastNumber: TAtomicWord;

// ---------------------------------------------------------------------------- names

// Returns whether the name fits the pattern, and sets the rest of Query.
function Fits(Name, Pattern: PAnsiChar; var Query: TQuery): Boolean;
begin
  Query.Number := 0;
  Query.NumberAt := 0;
  Query.PartCount := 1;
  while Pattern^ <> #0 do
  begin
    if (Pattern^ = '#') and (Name^ in ['0'..'9']) then
    begin
      Query.NumberAt := Query.PartCount - 1;
      while Name^ in ['0'..'9'] do
      begin
        Query.Number := Query.Number * 10 + (Ord(Name^) - Ord('0'));
        Inc(Name);
      end;
    end
    else if Name^ = Pattern^ then
      Inc(Name)
    else
      Exit(False);
    Inc(Query.PartCount, Ord(Pattern^ = '.'));
    Inc(Pattern);
  end;
  Result := Name^ = #0;
end;

function Find(Name: PAnsiChar; out Query: TQuery): Boolean;
var
  Each: TName;
begin
  for Each := Low(TName) to High(TName) do
  begin
    Query.Name := Each;
    if Fits(Name, Entries[Each].Name, Query) then
      Exit(True);
  end;
  Result := False;
end;

// ---------------------------------------------------------------------------- values

// Returns whether the name is of the arena with all blocks, or of none: those of arenas that the
// program created are in arena 0.
function HasBlocks(const Query: TQuery): Boolean;
begin
  Result := (Query.Number = 0) or (Query.Number = AllArenas);
end;

function ArenaValue(const Query: TQuery; const Status: TStatus): UInt64;
begin
  Result := 0;
  if not HasBlocks(Query) then
    Exit;
  case Query.Name of
    naSmallAllocated: Result := Status.Small.UsedBytes + Status.Medium.UsedBytes;
    naSmallResident: Result := Status.Small.SpanBytes + Status.Medium.SpanBytes;
    naLargeAllocated: Result := Status.Large.UsedBytes;
    naPagesActive: Result := (Status.CommittedBytes - Status.CachedBytes) div OsPageSize;
    naPagesDirty: Result := Status.CachedBytes div OsPageSize;
  end;
end;

// The values from naAllocated on are sums over the heap.
function Statistic(const Query: TQuery): UInt64;
var
  Status: TStatus;
begin
  StatusRead(Status);
  case Query.Name of
    naAllocated: Result := Status.UsedBytes;
    naActive: Result := Status.CommittedBytes - Status.CachedBytes;
    naResident, naMapped: Result := Status.CommittedBytes;
    naRetained: Result := Status.ReservedBytes - Status.CommittedBytes;
  else
    Result := ArenaValue(Query, Status);
  end;
end;

function Value(const Query: TQuery): UInt64;
begin
  Result := 0;
  case Query.Name of
    naVersion: Result := NativeUInt(PAnsiChar(ThisVersion));
    naEpoch, naBackground, naThreadCache, naArenaCount, naHasStats: Result := 1;
    naCacheCreate, naArenaCreate: Result := FetchAdd(LastNumber, 1) + 1;
    naArenaDirty, naArenaMuzzy, naDirty, naMuzzy: Result := Process.PurgeDelayMs;
    naPage: Result := OsPageSize;
    naQuantum: Result := BlockAlignment;
    naAllocated..High(TName): Result := Statistic(Query);
  end;
end;

procedure SetDelay(DelayMs: Int64);
begin
  if (DelayMs < 0) or (DelayMs > High(LongInt)) then
    DelayMs := High(LongInt);
  Process.PurgeDelayMs := DelayMs;
  BackgroundNotify;
end;

// Does what writing a value, or a name without one, does here: with arenas that the program created,
// nothing.
procedure Act(const Query: TQuery; Written: PInt64);
begin
  if HasBlocks(Query) then
    case Query.Name of
      naArenaPurge, naArenaDecay: ProcessTrim;
      naArenaDirty, naDirty: SetDelay(Written^);
    end;
end;

// Copies a value to the program; EINVAL where it has another size.
function Copy(const Value: UInt64; Size: NativeUInt; Old: Pointer; OldSize: PNativeUInt): LongInt;
begin
  Result := 0;
  if OldSize^ <> Size then
    Result := ErrorInvalid;
  if OldSize^ > Size then
    OldSize^ := Size;
  Move(Value, Old^, OldSize^);
end;

function Control(const Query: TQuery; Old: Pointer; OldSize: PNativeUInt; New: Pointer;
  NewSize: NativeUInt): LongInt;
var
  Reads: Boolean;
begin
  Reads := (Old <> nil) and (OldSize <> nil);
  if Reads and not Entries[Query.Name].CanRead
    or (New <> nil) and not Entries[Query.Name].CanWrite then
    Exit(ErrorPermission);
  if (New <> nil) and (NewSize <> Entries[Query.Name].Size) then
    Exit(ErrorInvalid);
  Result := 0;
  if Reads then
    Result := Copy(Value(Query), Entries[Query.Name].Size, Old, OldSize);
  if (Result = 0) and ((New <> nil) or (Entries[Query.Name].Size = 0)) then
    Act(Query, New);
end;

function MallCtl(Name: PAnsiChar; Old: Pointer; OldSize: PNativeUInt; New: Pointer;
  NewSize: NativeUInt): LongInt; cdecl; [public, alias: 'mallctl'];
var
  Query: TQuery;
begin
  if LibraryStart and Find(Name, Query) then
    Result := Control(Query, Old, OldSize, New, NewSize)
  else
    Result := ErrorNoEntry;
end;

// A name as numbers: first that of the entry, and the number where the name has one.
function MallCtlNameToMib(Name: PAnsiChar; Words: PNumberWords; Count: PNativeUInt): LongInt; cdecl;
  [public, alias: 'mallctlnametomib'];
var
  Query: TQuery;
  Index: NativeUInt;
begin
  if not LibraryStart or not Find(Name, Query) then
    Exit(ErrorNoEntry);
  Result := 0;
  if Count^ > Query.PartCount then
    Count^ := Query.PartCount;
  Index := 0;
  while Index < Count^ do
  begin
    Words[Index] := 0;
    if Index = 0 then
      Words[Index] := Ord(Query.Name)
    else if Index = Query.NumberAt then
      Words[Index] := Query.Number;
    Inc(Index);
  end;
end;

function MallCtlByMib(Words: PNumberWords; Count: NativeUInt; Old: Pointer; OldSize: PNativeUInt;
  New: Pointer; NewSize: NativeUInt): LongInt; cdecl; [public, alias: 'mallctlbymib'];
var
  Query: TQuery;
  Pattern: PAnsiChar;
begin
  if (Count = 0) or (Words[0] > Ord(High(TName))) then
    Exit(ErrorNoEntry);
  Query.Name := TName(Words[0]);
  Query.Number := 0;
  Query.PartCount := 1;
  Pattern := Entries[Query.Name].Name;
  while Pattern^ <> #0 do
  begin
    if (Pattern^ = '#') and (Query.PartCount <= Count) then
      Query.Number := Words[Query.PartCount - 1];
    Inc(Query.PartCount, Ord(Pattern^ = '.'));
    Inc(Pattern);
  end;
  if not LibraryStart or (Query.PartCount <> Count) then
    Exit(ErrorNoEntry);
  Result := Control(Query, Old, OldSize, New, NewSize);
end;

// ---------------------------------------------------------------------------- statistics

procedure AddStatus(var Text: TText; IsJson: Boolean);
const
  Forms: array[Boolean] of ShortString = (
    '___ Begin jemalloc statistics ___'#10'LaneMM %s'#10'allocated: %u, active: %u, resident: %u,'
    + ' retained: %u'#10'--- End jemalloc statistics ---'#10#0,
    '{"jemalloc":{"version":"%s","stats":{"allocated":%u,"active":%u,"resident":%u,"retained":%u}}}'
    + #10#0);
var
  Status: TStatus;
begin
  StatusRead(Status);
  TextAddForm(Text, Forms[IsJson], NativeUInt(PAnsiChar(ThisVersion)), Status.UsedBytes,
    Status.CommittedBytes - Status.CachedBytes, Status.CommittedBytes,
    Status.ReservedBytes - Status.CommittedBytes);
end;

// Of the options J alone has a meaning here: JSON.
procedure MallocStatsPrint(Writer: TWriter; Context: Pointer; Options: PAnsiChar); cdecl;
  [public, alias: 'malloc_stats_print'];
var
  Text: TText;
  IsJson: Boolean;
begin
  if not LibraryStart or not TextOpen(Text, OsPageSize) then
    Exit;
  IsJson := False;
  while (Options <> nil) and (Options^ <> #0) do
  begin
    IsJson := IsJson or (Options^ = 'J');
    Inc(Options);
  end;
  AddStatus(Text, IsJson);
  if Assigned(Writer) then
    Writer(Context, Text.Start)
  else
    OsWriteError(Text.Start, Text.Length - 1);
  TextClose(Text);
end;

end.
