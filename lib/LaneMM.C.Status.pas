/// Memory statistics for C: glibc's mallinfo2, malloc_stats, malloc_info, malloc_trim and mallopt,
/// and the library's own functions, declared in include/lanemm.h.
//
// Owns:       Process.PurgeDelayMs, once the program sets it.
// Callers:    any thread; the sums are exact while no other thread allocates or frees.
// Source:     glibc 2.36, malloc/malloc.h.
unit LaneMM.C.Status;

{$I ../src/LaneMM.inc}

interface

uses
  LaneMM.Hooks;

type
  /// Visits a block of a walk for C.
  TVisitor = procedure(Block: Pointer; UsableSize: NativeUInt; Context: Pointer); cdecl;
  /// A walk for C.
  TVisit = record
    Visitor: TVisitor;  //< owner   what to call
    Context: Pointer;   //< owner   the caller's
  end;

/// Calls the visitor of Context, a TVisit, for a block.
procedure VisitOne(const Block: TBlockInfo; Context: Pointer);
/// Copies a record of OwnSize bytes to Target, where the caller's header has Size bytes for it: an older
/// header gets the fields that it has, a newer one zeros in those that this library does not have.
procedure RecordCopy(const Source; OwnSize: NativeUInt; Target: Pointer; Size: NativeUInt);

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Os, LaneMM.Purge, LaneMM.Walk,
  LaneMM.Stats, LaneMM.Text, LaneMM.Version, LaneMM.GuardPages, LaneMM.ClassStates, LaneMM.Watch,
  LaneMM.SettingsState, LaneMM.ObserveState, LaneMM.Pressure, LaneMM.C.Errno, LaneMM.C.Background,
  LaneMM.C.Start;

type
  /// glibc's struct mallinfo2; fields without a comment are 0.
  TMallInfo2 = record
    Arena: NativeUInt;    //< bytes of memory but Hblkhd, free memory included
    OrdBlks: NativeUInt;
    SmBlks: NativeUInt;
    Hblks: NativeUInt;    //< large blocks in use
    Hblkhd: NativeUInt;   //< their bytes
    UsmBlks: NativeUInt;
    FsmBlks: NativeUInt;
    UordBlks: NativeUInt; //< bytes of other blocks in use
    FordBlks: NativeUInt; //< bytes of Arena that are free
    KeepCost: NativeUInt; //< bytes that malloc_trim would purge
  end;
  /// glibc's struct mallinfo: the same words as int.
  TMallInfo = array[0..9] of LongInt;

  /// struct lanemm_status; grows at its end only
  TLibraryStatus = record
    ReservedBytes, CommittedBytes, PeakBytes, CachedBytes, UsedBytes: NativeUInt;
    Small, Medium, Large: TTierStatus; // struct lanemm_tier
    OsCalls, Contended: NativeUInt;
  end;

// ---------------------------------------------------------------------------- glibc's

// Returns Whole - Part, at least 0: the sums are of several moments while other threads allocate.
function Rest(Whole, Part: NativeUInt): NativeUInt;
begin
  Result := 0;
  if Whole > Part then
    Result := Whole - Part;
end;

// Of a large block its usable bytes count: its span has spare addresses, which take no memory.
function MallInfo2: TMallInfo2; cdecl; [public, alias: 'mallinfo2'];
var
  Status: TStatus;
begin
  LibraryStart;
  StatusRead(Status);
  FillChar(Result, SizeOf(Result), 0);
  Result.Arena := Rest(Status.CommittedBytes, Status.Large.UsedBytes);
  Result.Hblks := Status.Large.BlockCount;
  Result.Hblkhd := Status.Large.UsedBytes;
  Result.UordBlks := Status.Small.UsedBytes + Status.Medium.UsedBytes;
  Result.FordBlks := Rest(Result.Arena, Result.UordBlks);
  Result.KeepCost := Status.CachedBytes;
end;

function MallInfo: TMallInfo; cdecl; [public, alias: 'mallinfo', alias: '__libc_mallinfo',
  alias: 'tc_mallinfo'];
var
  Info: TMallInfo2;
  Word: PNativeUInt;
  Index: Cardinal;
begin
  Info := MallInfo2;
  Word := @Info;
  for Index := 0 to High(Result) do
    if Word[Index] > High(LongInt) then
      Result[Index] := High(LongInt)
    else
      Result[Index] := Word[Index];
end;

function MallocTrim(Pad: NativeUInt): LongInt; cdecl; [public, alias: 'malloc_trim'];
var
  PurgesBefore: NativeUInt;
begin
  LibraryStart;
  PurgesBefore := LoadAcquire(Process.OsCalls[ocPurge]);
  ProcessTrim;
  Result := Ord(LoadAcquire(Process.OsCalls[ocPurge]) <> PurgesBefore);
end;

// Accepts and ignores every parameter.
function MallOpt(Parameter, Value: LongInt): LongInt; cdecl;
  [public, alias: 'mallopt', alias: '__libc_mallopt', alias: 'tc_mallopt'];
begin
  Result := 1;
end;

// ---------------------------------------------------------------------------- malloc_stats

const
  NumberWidth = 16;

// Writes a line: Name and Value, right-aligned.
procedure WriteLine(const Name: ShortString; Value: NativeUInt);
var
  Digits: array[0..NumberWidth] of AnsiChar;
  Index: Cardinal;
begin
  OsWriteError(@Name[1], Length(Name));
  FillChar(Digits, SizeOf(Digits), Ord(' '));
  Digits[NumberWidth] := #10;
  Index := NumberWidth;
  repeat
    Dec(Index);
    Digits[Index] := AnsiChar(Ord('0') + Value mod 10);
    Value := Value div 10;
  until (Value = 0) or (Index = 0);
  OsWriteError(@Digits, SizeOf(Digits));
end;

procedure MallocStats; cdecl; [public, alias: 'malloc_stats', alias: 'tc_malloc_stats'];
var
  Status: TStatus;
begin
  LibraryStart;
  StatusRead(Status);
  WriteLine('reserved bytes  ', Status.ReservedBytes);
  WriteLine('committed bytes ', Status.CommittedBytes);
  WriteLine('peak bytes      ', Status.PeakBytes);
  WriteLine('cached bytes    ', Status.CachedBytes);
  WriteLine('used bytes      ', Status.UsedBytes);
  WriteLine('small blocks    ', Status.Small.BlockCount);
  WriteLine('medium blocks   ', Status.Medium.BlockCount);
  WriteLine('large blocks    ', Status.Large.BlockCount);
end;

// ---------------------------------------------------------------------------- malloc_info

function LibcPut(Text: PAnsiChar; Stream: Pointer): LongInt; cdecl; external name 'fputs';

procedure AddTotal(var Text: TText; Name: PAnsiChar; const Tier: TTierStatus);
begin
  TextAddForm(Text, '<total type="%s" count="%u" size="%u"/>'#10, NativeUInt(Name),
    Tier.BlockCount, Tier.UsedBytes);
end;

function MallocInfo(Options: LongInt; Stream: Pointer): LongInt; cdecl;
  [public, alias: 'malloc_info'];
var
  Status: TStatus;
  Text: TText;
begin
  if Options <> 0 then
    Exit(ErrorInvalid);
  if not LibraryStart or not TextOpen(Text, OsPageSize) then
    Exit(ErrorNoMemory);
  StatusRead(Status);
  TextAdd(Text, '<malloc version="1">'#10);
  AddTotal(Text, 'small', Status.Small);
  AddTotal(Text, 'medium', Status.Medium);
  AddTotal(Text, 'large', Status.Large);
  TextAddForm(Text, '<system type="current" size="%u"/>'#10'<system type="max" size="%u"/>'#10
    + '<aspace type="total" size="%u"/>'#10'</malloc>'#10#0, Status.CommittedBytes,
    Status.PeakBytes, Status.ReservedBytes);
  Result := LibcPut(Text.Start, Stream);
  if Result > 0 then
    Result := 0;
  TextClose(Text);
end;

// ---------------------------------------------------------------------------- lanemm.h

procedure RecordCopy(const Source; OwnSize: NativeUInt; Target: Pointer; Size: NativeUInt);
begin
  FillChar(Target^, Size, 0);
  if OwnSize > Size then
    OwnSize := Size;
  Move(Source, Target^, OwnSize);
end;

procedure LibraryStatusRead(Target: Pointer; Size: NativeUInt); cdecl;
  [public, alias: 'lanemm_status_read'];
var
  Status: TStatus;
  Answer: TLibraryStatus;
  Kind: TOsCall;
begin
  LibraryStart;
  StatusRead(Status);
  FillChar(Answer, SizeOf(Answer), 0);
  Answer.ReservedBytes := Status.ReservedBytes;
  Answer.CommittedBytes := Status.CommittedBytes;
  Answer.PeakBytes := Status.PeakBytes;
  Answer.CachedBytes := Status.CachedBytes;
  Answer.UsedBytes := Status.UsedBytes;
  Answer.Small := Status.Small;
  Answer.Medium := Status.Medium;
  Answer.Large := Status.Large;
  for Kind := Low(TOsCall) to High(TOsCall) do
    Inc(Answer.OsCalls, Status.OsCalls[Kind]);
  Answer.Contended := Status.Contended;
  RecordCopy(Answer, SizeOf(Answer), Target, Size);
end;

function LibraryVersion: PAnsiChar; cdecl; [public, alias: 'lanemm_version'];
begin
  Result := ThisVersion;
end;

type
  /// struct lanemm_class; grows at its end only
  TLibraryClass = TClassState;

// Count is the number of records at Target.
function LibraryState(Target: PByte; Count, Size: NativeUInt): NativeUInt; cdecl;
  [public, alias: 'lanemm_state'];
var
  State: THeapState;
  Index: NativeInt;
begin
  LibraryStart;
  HeapStateRead(State);
  Result := SizeClassCount;
  if Count > SizeClassCount then
    Count := SizeClassCount;
  for Index := 0 to NativeInt(Count) - 1 do
    RecordCopy(State.ByClass[Index], SizeOf(TLibraryClass), Target + NativeUInt(Index) * Size, Size);
end;

procedure LibraryTrim; cdecl; [public, alias: 'lanemm_trim',
  alias: 'MallocExtension_ReleaseFreeMemory', alias: 'MallocExtension_ReleaseToSystem'];
begin
  LibraryStart;
  ProcessTrim;
end;

function LibraryPurgeDelay: Cardinal; cdecl; [public, alias: 'lanemm_purge_delay_ms'];
begin
  LibraryStart;
  Result := Process.PurgeDelayMs;
end;

procedure LibrarySetPurgeDelay(DelayMs: Cardinal); cdecl;
  [public, alias: 'lanemm_set_purge_delay_ms'];
begin
  LibraryStart;
  Process.PurgeDelayMs := DelayMs;
  BackgroundNotify;
end;

procedure VisitOne(const Block: TBlockInfo; Context: Pointer);
var
  Visit: ^TVisit;
begin
  Visit := Context;
  Visit^.Visitor(Block.Address, Block.UsableSize, Visit^.Context);
end;

procedure VisitBlocks(Visitor: TVisitor; Context: Pointer); cdecl;
  [public, alias: 'lanemm_visit_blocks'];
var
  Visit: TVisit;
begin
  if not LibraryStart or not TextHasCall(@Visitor, 'lanemm_visit_blocks') then
    Exit;
  Visit.Visitor := Visitor;
  Visit.Context := Context;
  GuardPagesHold;
  WalkBlocks(VisitOne, @Visit);
  GuardPagesLetGo;
end;

function Configure(Words: PAnsiChar): LongInt; cdecl; [public, alias: 'lanemm_configure'];
begin
  Result := Ord(LibraryConfigure(Words));
end;

function WriteLogs: LongInt; cdecl; [public, alias: 'lanemm_write_logs'];
begin
  Result := Ord(WatchWrite);
end;

// ---------------------------------------------------------------------------- pressure

// A call of C and one of Pascal have their arguments in the same places.
function OnPressure(Call: TPressureCall; Context: Pointer): LongInt; cdecl;
  [public, alias: 'lanemm_on_pressure'];
begin
  if not LibraryStart or not TextHasCall(@Call, 'lanemm_on_pressure') then
    Exit(0);
  Settings.HasContainer := True;
  WatchApply;
  Result := Ord(BackgroundStart and PressureOn(Call, Context));
end;

function OffPressure(Call: TPressureCall; Context: Pointer): LongInt; cdecl;
  [public, alias: 'lanemm_off_pressure'];
begin
  Result := Ord(PressureOff(Call, Context));
end;

end.
