/// The extended interface of gperftools' tcmalloc: programs that were linked with it find it here.
/// Its names for malloc's relatives, for the operators, and for lanemm_trim are with those.
//
// Owns:       HasBegun.
// Callers:    any thread; the sums are exact while no other thread allocates or frees.
// Source:     gperftools 2.10, tcmalloc.h and malloc_extension_c.h.
unit LaneMM.C.Tcmalloc;

{$I ../src/LaneMM.inc}

interface

implementation

uses
  LaneMM.Arena, LaneMM.Stats, LaneMM.Text, LaneMM.Version, LaneMM.C.Malloc,
  LaneMM.C.Jemalloc, LaneMM.C.Modules, LaneMM.C.Start;

var
  // racy    whether tcmalloc has been begun; two threads at once begin it twice
  HasBegun: Boolean;

// Begins tcmalloc where the process has it, too: from gperftools 2.16 on it begins in its own
// tc_malloc, and its library calls this one instead, again and again until it has begun.
procedure TcBegin;
var
  OwnMalloc: function(Size: NativeUInt): Pointer; cdecl;
  OwnFree: procedure(P: Pointer); cdecl;
begin
  HasBegun := True; // before: it may call the one here
  @OwnMalloc := ModulesFind('tc_malloc');
  @OwnFree := ModulesFind('tc_free');
  if (@OwnMalloc <> nil) and (@OwnFree <> nil) then
    OwnFree(OwnMalloc(1));
end;

function TcMalloc(Size: NativeUInt): Pointer; cdecl; [public, alias: 'tc_malloc'];
begin
  if not HasBegun then
    TcBegin;
  Result := Malloc(Size);
end;

function TcVersion(Major, Minor: PLongInt; Patch: PPAnsiChar): PAnsiChar; cdecl;
  [public, alias: 'tc_version'];
begin
  if Major <> nil then
    Major^ := 0;
  if Minor <> nil then
    Minor^ := 0;
  if Patch <> nil then
    Patch^ := '';
  Result := ThisVersion;
end;

// C's functions never call the new handler, whatever the mode.
function TcSetNewMode(Mode: LongInt): LongInt; cdecl; [public, alias: 'tc_set_new_mode'];
begin
  Result := 0;
end;

// Debug mode checks blocks: LANEMM=debug.
function VerifyMemory(P: Pointer): LongInt; cdecl;
  [public, alias: 'MallocExtension_VerifyAllMemory', alias: 'MallocExtension_VerifyNewMemory',
  alias: 'MallocExtension_VerifyArrayNewMemory', alias: 'MallocExtension_VerifyMallocMemory'];
begin
  Result := 1;
end;

function MallocMemoryStats(Blocks: PLongInt; Total: PNativeUInt; Histogram: PLongInt): LongInt; cdecl;
  [public, alias: 'MallocExtension_MallocMemoryStats'];
const
  HistogramLength = 64;
var
  Status: TStatus;
begin
  LibraryStart;
  StatusRead(Status);
  Blocks^ := Status.Small.BlockCount + Status.Medium.BlockCount + Status.Large.BlockCount;
  Total^ := Status.UsedBytes;
  FillChar(Histogram^, HistogramLength * SizeOf(LongInt), 0);
  Result := 1;
end;

procedure GetStats(Buffer: PAnsiChar; Size: LongInt); cdecl;
  [public, alias: 'MallocExtension_GetStats'];
var
  Status: TStatus;
  Text: TText;
begin
  if (Size <= 0) or not LibraryStart then
    Exit;
  StatusRead(Status);
  FillChar(Buffer^, Size, 0);
  TextOpenAt(Text, Buffer, Size - 1);
  TextAddForm(Text, 'MALLOC: %u bytes in use by application'#10
    + 'MALLOC: %u bytes in page heap freelist'#10'MALLOC: %u bytes committed'#10
    + 'MALLOC: %u bytes of addresses'#10, Status.UsedBytes, Status.CachedBytes,
    Status.CommittedBytes, Status.ReservedBytes);
end;

// Returns 1 and the value of a property that has a counterpart, else 0.
function GetNumericProperty(Name: PAnsiChar; Value: PNativeUInt): LongInt; cdecl;
  [public, alias: 'MallocExtension_GetNumericProperty'];
var
  Status: TStatus;
begin
  LibraryStart;
  StatusRead(Status);
  Result := 1;
  if TextIs(Name, 'generic.current_allocated_bytes') then
    Value^ := Status.UsedBytes
  else if TextIs(Name, 'generic.heap_size')
    or TextIs(Name, 'generic.total_physical_bytes') then
    Value^ := Status.CommittedBytes
  else if TextIs(Name, 'tcmalloc.pageheap_free_bytes') then
    Value^ := Status.CachedBytes
  else if TextIs(Name, 'tcmalloc.pageheap_unmapped_bytes') then
    Value^ := Status.ReservedBytes - Status.CommittedBytes
  else if TextIs(Name, 'tcmalloc.current_total_thread_cache_bytes') then
    Value^ := 0
  else
    Result := 0;
end;

function SetNumericProperty(Name: PAnsiChar; Value: NativeUInt): LongInt; cdecl;
  [public, alias: 'MallocExtension_SetNumericProperty'];
begin
  Result := 0;
end;

// Memory of an idle thread is given back anyway.
procedure MarkThread; cdecl; [public, alias: 'MallocExtension_MarkThreadIdle',
  alias: 'MallocExtension_MarkThreadBusy', alias: 'MallocExtension_MarkThreadTemporarilyIdle'];
begin
end;

// Memory is returned after the purge delay; there is no rate.
procedure SetReleaseRate(Rate: Double); cdecl;
  [public, alias: 'MallocExtension_SetMemoryReleaseRate'];
begin
end;

function ReleaseRate: Double; cdecl; [public, alias: 'MallocExtension_GetMemoryReleaseRate'];
begin
  Result := 1; // tcmalloc's default
end;

function ThreadCacheSize: NativeUInt; cdecl; [public, alias: 'MallocExtension_GetThreadCacheSize'];
begin
  Result := 0;
end;

function EstimatedSize(Size: NativeUInt): NativeUInt; cdecl;
  [public, alias: 'MallocExtension_GetEstimatedAllocatedSize'];
begin
  Result := NallocX(Size, 0);
end;

function Ownership(P: Pointer): LongInt; cdecl; [public, alias: 'MallocExtension_GetOwnership'];
const
  Owned = 1;
  NotOwned = 2;
begin
  Result := NotOwned;
  if ArenaSpan(P) <> nil then
    Result := Owned;
end;

end.
