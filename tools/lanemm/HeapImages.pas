/// The engine's records of a target, read from outside: Process, arenas, spans, heaps.
//
// The units of src/core are used as data, and for what they compute from a record alone; this
// program does not run on LaneMM. Their variable Process gets the key of the target.
unit HeapImages;

{$mode delphi}{$H+}
{$pointermath on}

interface

uses
  SysUtils, Generics.Collections, LaneMM.Layout, LaneMM.Types, Targets,
  TargetPages;

type
  PProcess = ^TProcess;

  /// An arena of the target.
  TArenaImage = record
    Address: UInt64;        //< of its record
    Head: TArena;           //< its record
    Records: PSpan;         //< copies of its span records, from that of slice 0 on
    Count: NativeUInt;      //< their number: slices ever handed out
  end;
  PArenaImage = ^TArenaImage;

  /// A run of slices.
  TRun = record
    Span: PSpan;            //< copy of the record of its first slice
    Address: UInt64;        //< of its first byte
    SliceCount: NativeUInt; //< its slices
    Kind: TSpanKind;        //< what it is; skNone: being taken or given back
    Arena: Integer;         //< number of its arena
  end;
  PRun = ^TRun;

  /// The heap of a thread, or one of a region.
  THeapRecord = record
    Address: UInt64;        //< of its record in the target
    Head: THeap;            //< its record
    IsUnused: Boolean;      //< no thread has it
    IsOfRegion: Boolean;    //< it is one of a region
    RegionName: string;     //< of the one that describes a region, unless that was freed; else nothing
    IsAbandoned: Boolean;   //< it has the spans of all ended threads
    Name: string;           //< of the thread, or nothing
  end;
  PHeapRecord = ^THeapRecord;

  /// The engine's records of one copy of LaneMM.
  THeapImage = class
  private
    HeapIndexes: TDictionary<UInt64, Integer>; // by address
    RegionIndexes: TDictionary<Cardinal, Integer>; // of heaps that describe regions, by number
    procedure ReadProcess;
    procedure ReadArenas;
    procedure ReadArena(Address: UInt64);
    procedure NeedRecords(First: UInt64; Zeros: PSpan; Count: NativeUInt);
    procedure ReadRecords(var Arena: TArenaImage);
    procedure FindRuns(Index: Integer);
    procedure ReadHeaps;
    procedure ReadHeap(Index: Integer; Address: UInt64);
    procedure MarkUnused(Word: UInt64; HasSpans: Boolean);
    procedure MarkAllUnused;
    procedure FindRegions;
    procedure Clear;
  public
    Target: TTarget;
    /// Its pages, as a search reads them; anew after Refresh.
    Pages: TTargetPages;
    /// Address of Process in the target.
    Address: UInt64;
    /// Its copy.
    State: PProcess;
    Arenas: array of TArenaImage;
    /// All runs of all arenas, by arena and address.
    Runs: array of TRun;
    Heaps: array of THeapRecord;
    /// Span and heap records that were read, each twice, and those that differed.
    RecordCount, ChangedCount: NativeUInt;
    /// Records that cannot be: the step from one run to the next failed.
    DamagedCount: NativeUInt;
    /// The image of the copy of LaneMM at Address; reads it.
    constructor Create(Source: TTarget; Place: UInt64);
    destructor Destroy; override;
    /// Reads all records anew.
    procedure Refresh;
    /// Returns the blocks in use of a span of blocks; not of debug blocks.
    function BlocksInUse(Span: PSpan): NativeUInt;
    /// Returns the number of blocks that a span of blocks can hold.
    function CapacityOf(Span: PSpan): NativeUInt;
    /// Returns the heap that owns Span; nil: none, or one that is unknown.
    function OwnerOfSpan(Span: PSpan): PHeapRecord;
    /// Returns the heap that describes the region of a span of blocks or a large block; nil: none.
    function RegionOfSpan(Span: PSpan): PHeapRecord;
    /// Returns that of the region whose debug blocks have this allocation group; nil: none.
    function RegionOfGroup(Group: Cardinal): PHeapRecord;
    /// Finds the heap whose record has this address; returns whether it exists.
    function FindHeap(Heap: UInt64; out Index: Integer): Boolean;
    /// Returns the run that holds the address, or nil.
    function FindRun(P: UInt64): PRun;
    /// Reads the record of a span once more; returns whether it is still the same.
    function IsUnchanged(Run: PRun): Boolean;
    /// Returns the sentence on records that changed while they were read; empty: none did.
    function ChangeNote: string;
  end;

/// Returns the addresses of Process of all copies of LaneMM in the target; raises ETool for none.
function FindEngines(Target: TTarget): TArray<UInt64>;

implementation

uses
  BaseUnix, LaneMM.SizeClasses, LaneMM.RemoteList, LaneMM.Groups, ToolCommands, TargetCores, StatusPages,
  HeapThreads, ToolText;

// ---------------------------------------------------------------------------- finding Process

type
  TClassTable = array[0..ClassTableLength - 1] of Byte;

// The table of size classes in Process, 4 KB that are the same in each process and not found
// elsewhere, leads to Process where no status page does.
procedure FillTable(out Table: TClassTable);
var
  Index: Cardinal;
begin
  for Index := 0 to High(Table) do
    Table[Index] := SizeToClass(Index * ClassStep);
end;

// Adds the places of the table in the region.
procedure SearchRegion(Target: TTarget; const Region: TRegion; const Table: TClassTable;
  var Found: TArray<UInt64>);
const
  Step = CacheLineSize; // Process is aligned to it
var
  Bytes: TBytes;
  Offset, Distance: NativeUInt;
begin
  SetLength(Bytes, Region.Limit - Region.First);
  SetLength(Bytes, Target.Read(Region.First, Pointer(Bytes), Length(Bytes)));
  Distance := NativeUInt(@PProcess(nil)^.ClassOf);
  Offset := Distance;
  while Offset + SizeOf(Table) <= NativeUInt(Length(Bytes)) do
  begin
    if (PUInt64(@Bytes[Offset])^ = PUInt64(@Table)^)
      and CompareMem(@Bytes[Offset], @Table, SizeOf(Table)) then
      Insert(Region.First + Offset - Distance, Found, Length(Found));
    Inc(Offset, Step);
  end;
end;

function SearchEngines(Target: TTarget): TArray<UInt64>;
const
  Most = 1 shl 28; // variables of a module are not longer
var
  Table: TClassTable;
  Region: PRegion;
begin
  FillTable(Table);
  Result := nil;
  for Region in Target.AllRegions do
    if Region^.IsWritable and Region^.IsReadable and (Region^.Module <> '')
      and (Region^.Limit - Region^.First <= Most) then
      SearchRegion(Target, Region^, Table, Result);
end;

// Raises ETool for a program with another size of pointers, as the head of its file in the memory
// says.
procedure CheckBits(Target: TTarget);
const
  BitsPerUnit = 32;
  OwnBits = SizeOf(Pointer) * 8;
var
  Region: PRegion;
  Head: TElfHead;
begin
  for Region in Target.AllRegions do
    if (Region^.Path <> '') and (Region^.Path = Target.ProgramPath)
      and (Region^.FileOffset = 0)
      and Target.ReadAll(Region^.First, @Head, SizeOf(Head)) and (Head.Magic = ElfMagic)
      and (Head.Bits * BitsPerUnit <> OwnBits) then
      raise ETool.Create(ecOtherVersion, '%s is a program of %d bits, and this lanemm reads the'
        + ' memory of those of %d; `ps`, `do`, and all reports but leaks and threads ask the process',
        [Target.Name, Head.Bits * BitsPerUnit, OwnBits]);
end;

function FindEngines(Target: TTarget): TArray<UInt64>;
var
  First: Byte;
begin
  CheckBits(Target);
  Result := PageEngines(Target);
  if Result = nil then
    Result := SearchEngines(Target);
  if Result <> nil then
    Exit;
  // To read nothing at all is another error than to find nothing.
  Target.Need(Target.Regions[0]^.First, @First, SizeOf(First), 'the program');
  Target.CheckWhole;
  raise ETool.Create(ecNotOnLaneMM,
    '%s does not run on LaneMM, or on a version without a status page', [Target.Name]);
end;

// ---------------------------------------------------------------------------- THeapImage

// Returns the bytes of the copies of records, one more than there are.
function RecordBytes(Count: NativeUInt): NativeUInt;
begin
  Result := (Count + 1) * SizeOf(TSpan);
end;

constructor THeapImage.Create(Source: TTarget; Place: UInt64);
begin
  inherited Create;
  Target := Source;
  Address := Place;
  New(State);
  HeapIndexes := TDictionary<UInt64, Integer>.Create;
  RegionIndexes := TDictionary<Cardinal, Integer>.Create;
  Refresh;
end;

destructor THeapImage.Destroy;
begin
  Clear;
  RegionIndexes.Free;
  HeapIndexes.Free;
  Dispose(State);
  inherited Destroy;
end;

procedure THeapImage.Clear;
var
  Index: Integer;
begin
  for Index := 0 to High(Arenas) do
    fpMunmap(Arenas[Index].Records, RecordBytes(Arenas[Index].Count));
  FreeAndNil(Pages);
  Arenas := nil;
  Runs := nil;
  Heaps := nil;
  HeapIndexes.Clear;
  RegionIndexes.Clear;
  RecordCount := 0;
  ChangedCount := 0;
  DamagedCount := 0;
end;

procedure THeapImage.Refresh;
begin
  Clear;
  Pages := TTargetPages.Create(Target);
  Target.CheckThere; // another program may have something else there
  ReadProcess;
  ReadArenas;
  ReadHeaps;
  Target.CheckThere;
end;

procedure THeapImage.ReadProcess;
begin
  Target.Need(Address, State, SizeOf(State^), 'the record Process');
  if not State^.IsStarted then
    raise ETool.Create(ecNotOnLaneMM, '%s has not started LaneMM yet', [Target.Name]);
  if (State^.ShardCount = 0) or (State^.ShardCount > ShardLimit)
    or (State^.ClassSlices[0] <> 1) then
    raise ETool.Create(ecOtherVersion,
      '%s has another version of LaneMM, or its record Process is damaged', [Target.Name]);
end;

procedure THeapImage.ReadArenas;
var
  Index: Integer;
begin
  for Index := 0 to ArenaLimit - 1 do
    if State^.Arenas[Index] <> 0 then
    begin
      ReadArena(State^.Arenas[Index]);
      FindRuns(High(Arenas));
    end;
end;

procedure THeapImage.ReadArena(Address: UInt64);
var
  Arena: TArenaImage;
begin
  Arena := Default(TArenaImage);
  Arena.Address := Address;
  Target.Need(Address, @Arena.Head, SizeOf(Arena.Head), 'the record of an arena');
  Arena.Count := Arena.Head.Frontier;
  if (Arena.Count > Arena.Head.Reserved) or (Arena.Head.Reserved > Arena.Head.MostSlices)
    or (Arena.Head.MostSlices > MaxRunSlices) then
    raise ETool.Create(ecDamaged, '%s: the record of the arena at $%x is damaged',
      [Target.Name, Address]);
  Arena.Records := fpMmap(nil, RecordBytes(Arena.Count), PROT_READ or PROT_WRITE,
    MAP_PRIVATE or MAP_ANONYMOUS, -1, 0);
  if Pointer(Arena.Records) = MAP_FAILED then
    raise EOutOfMemory.Create('no memory for the records of spans');
  Insert(Arena, Arenas, Length(Arenas));
  ReadRecords(Arenas[High(Arenas)]);
end;

// Reads records to where zeros are. Those of the inside of a large block may never have been written.
procedure THeapImage.NeedRecords(First: UInt64; Zeros: PSpan; Count: NativeUInt);
begin
  if not Pages.ReadTouched(First, PByte(Zeros), Count * SizeOf(TSpan)) then
    Target.Need(First, Zeros, Count * SizeOf(TSpan), 'span records');
end;

// Reads the span records twice and counts those that differ; the later ones stay.
procedure THeapImage.ReadRecords(var Arena: TArenaImage);
const
  Portion = 8192; // records
var
  Earlier: PSpan;
  First, Count, Index: NativeUInt;
begin
  Earlier := GetMem(Portion * SizeOf(TSpan));
  First := 0;
  while First < Arena.Count do
  begin
    Count := Arena.Count - First;
    if Count > Portion then
      Count := Portion;
    FillChar(Earlier^, Count * SizeOf(TSpan), 0);
    NeedRecords(UInt64(Arena.Head.Spans + First), Earlier, Count);
    NeedRecords(UInt64(Arena.Head.Spans + First), Arena.Records + First, Count);
    for Index := 0 to Count - 1 do
      if CompareByte(Earlier[Index], Arena.Records[First + Index], SizeOf(TSpan)) <> 0 then
        Inc(ChangedCount);
    Inc(First, Count);
  end;
  Inc(RecordCount, Arena.Count);
  FreeMem(Earlier);
end;

// Returns whether the record begins a run; its slices are SliceCount.
function BeginsRun(Span: PSpan; Left: NativeUInt): Boolean; inline;
begin
  Result := (Span^.Kind in KindsInUse + [skFree, skReleased]) and (Span^.SliceCount > 0)
    and (Span^.SliceCount <= Left);
end;

procedure THeapImage.FindRuns(Index: Integer);
var
  Arena: PArenaImage;
  Run: TRun;
  Slice: NativeUInt;
  Count: Integer;
begin
  Arena := @Arenas[Index];
  Count := Length(Runs);
  Slice := 0;
  Run.Arena := Index;
  while Slice < Arena^.Count do
  begin
    Run.Span := Arena^.Records + Slice;
    Run.Address := UInt64(Arena^.Head.Base) + Slice * SliceSize;
    Run.Kind := skNone;
    Run.SliceCount := 1;
    if BeginsRun(Run.Span, Arena^.Count - Slice) then
    begin
      Run.Kind := Run.Span^.Kind;
      Run.SliceCount := Run.Span^.SliceCount;
    end
    else if Run.Span^.Kind in KindsInUse + [skFree, skReleased] then
      Inc(DamagedCount);
    if Count = Length(Runs) then
      SetLength(Runs, Count * 2 + 64);
    Runs[Count] := Run;
    Inc(Count);
    Inc(Slice, Run.SliceCount);
  end;
  SetLength(Runs, Count);
end;

// ---------------------------------------------------------------------------- heaps

procedure THeapImage.ReadHeap(Index: Integer; Address: UInt64);
var
  Earlier: THeap;
  Heap: PHeapRecord;
begin
  Heap := @Heaps[Index];
  Heap^ := Default(THeapRecord);
  Heap^.Address := Address;
  Target.Need(Address, @Earlier, SizeOf(Earlier), 'the heap of a thread');
  Target.Need(Address, @Heap^.Head, SizeOf(Heap^.Head), 'the heap of a thread');
  Heap^.IsAbandoned := Address = UInt64(State^.Abandoned);
  if CompareByte(Earlier, Heap^.Head, SizeOf(Earlier)) <> 0 then
    Inc(ChangedCount);
  Inc(RecordCount);
  HeapIndexes.AddOrSetValue(Address, Index);
end;

// Marks the heaps of a stack of those that wait for a thread, whose word also counts. Spans that they
// have count as those of ended threads.
procedure THeapImage.MarkUnused(Word: UInt64; HasSpans: Boolean);
var
  Next: UInt64;
  Index, Ended, StepsLeft: Integer;
begin
  Next := UInt64(FirstHeapOf(Word));
  StepsLeft := Length(Heaps); // the chain may change meanwhile
  while HeapIndexes.TryGetValue(Next, Index) and (StepsLeft > 0) do
  begin
    Heaps[Index].IsUnused := True;
    Heaps[Index].Head.ThreadNumber := 0;
    if HasSpans and HeapIndexes.TryGetValue(UInt64(State^.Abandoned), Ended) then
      HeapIndexes.AddOrSetValue(Next, Ended);
    Next := UInt64(Heaps[Index].Head.NextUnused);
    Dec(StepsLeft);
  end;
end;

procedure THeapImage.MarkAllUnused;
var
  Index: Integer;
begin
  MarkUnused(State^.UnusedHeaps, False);
  MarkUnused(State^.UnusedRegions, False);
  for Index := 0 to VacantStacks - 1 do
    MarkUnused(State^.VacantHeaps[Index], True);
end;

procedure THeapImage.FindRegions;
const
  NoName = '(no name)';
var
  Heap: PHeapRecord;
  Index: Integer;
begin
  for Index := 0 to High(Heaps) do
  begin
    Heap := @Heaps[Index];
    Heap^.IsOfRegion := not Heap^.IsUnused and (Heap^.Head.Region <> nil);
    if not Heap^.IsOfRegion or (UInt64(Heap^.Head.Region) <> Heap^.Address)
      or (Heap^.Head.Data.Made = RegionEnded) then
      Continue;
    RegionIndexes.AddOrSetValue(Heap^.Head.Data.Number and not RegionGroups, Index);
    Heap^.Head.Data.Name[MostRegionName] := #0;
    Heap^.RegionName := Printable(PAnsiChar(@Heap^.Head.Data.Name));
    if Heap^.RegionName = '' then
      Heap^.RegionName := NoName;
  end;
end;

procedure THeapImage.ReadHeaps;
const
  Most = 1000000; // a damaged chain ends
var
  Next: UInt64;
  Count: Integer;
begin
  Next := State^.Heaps;
  Count := 0;
  while (Next <> 0) and (Count < Most) and not HeapIndexes.ContainsKey(Next) do
  begin
    if Count = Length(Heaps) then
      SetLength(Heaps, Count * 2 + 16);
    ReadHeap(Count, Next);
    Next := UInt64(Heaps[Count].Head.NextHeap);
    Inc(Count);
  end;
  SetLength(Heaps, Count);
  MarkAllUnused;
  FindRegions;
  NameThreads(Self);
end;

// ---------------------------------------------------------------------------- spans

function THeapImage.BlocksInUse(Span: PSpan): NativeUInt;
var
  Count: NativeInt;
begin
  Count := NativeInt(LongInt(Span^.Used)) - Span^.Bias - NativeInt(RemoteFreedCount(Span));
  if Count < 0 then
    Count := 0;
  Result := Count;
end;

function THeapImage.CapacityOf(Span: PSpan): NativeUInt;
begin
  Result := 0;
  if Span^.BlockSize <> 0 then
    Result := Span^.BlockBytes div Span^.BlockSize;
end;

function THeapImage.FindHeap(Heap: UInt64; out Index: Integer): Boolean;
begin
  Result := HeapIndexes.TryGetValue(Heap, Index);
end;

function THeapImage.OwnerOfSpan(Span: PSpan): PHeapRecord;
var
  Index: Integer;
begin
  Result := nil;
  if FindHeap(UInt64(OwnerOf(Span)), Index) then
    Result := @Heaps[Index];
end;

function THeapImage.RegionOfSpan(Span: PSpan): PHeapRecord;
var
  Owner: UInt64;
  Index: Integer;
begin
  Result := nil;
  Owner := UInt64(OwnerOf(Span));
  if (Span^.Kind = skLarge) and (ltRegion in Span^.Traits) then
    Owner := UInt64(Span^.Owner) - UInt64(NoOwner);
  if FindHeap(Owner, Index) and Heaps[Index].IsOfRegion
    and FindHeap(UInt64(Heaps[Index].Head.Region), Index) and (Heaps[Index].RegionName <> '') then
    Result := @Heaps[Index];
end;

function THeapImage.RegionOfGroup(Group: Cardinal): PHeapRecord;
var
  Index: Integer;
begin
  Result := nil;
  if (Group >= RegionGroups) and RegionIndexes.TryGetValue(Group - RegionGroups, Index) then
    Result := @Heaps[Index];
end;

function THeapImage.FindRun(P: UInt64): PRun;
var
  Low, High, Middle: Integer;
  Arena: Integer;
begin
  Result := nil;
  for Arena := 0 to Length(Arenas) - 1 do
    if P - UInt64(Arenas[Arena].Head.Base) < Arenas[Arena].Count * SliceSize then
    begin
      Low := 0;
      High := Length(Runs);
      // Runs are sorted by arena, then by address.
      while Low < High do
      begin
        Middle := (Low + High) div 2;
        if (Runs[Middle].Arena < Arena) or (Runs[Middle].Arena = Arena)
          and (Runs[Middle].Address + Runs[Middle].SliceCount * SliceSize <= P) then
          Low := Middle + 1
        else
          High := Middle;
      end;
      Exit(@Runs[Low]);
    end;
end;

function THeapImage.IsUnchanged(Run: PRun): Boolean;
var
  Arena: PArenaImage;
  Again: TSpan;
begin
  Arena := @Arenas[Run^.Arena];
  Result := Target.ReadAll(UInt64(Arena^.Head.Spans + (Run^.Span - Arena^.Records)), @Again,
    SizeOf(Again)) and (CompareByte(Again, Run^.Span^, SizeOf(Again)) = 0);
end;

function THeapImage.ChangeNote: string;
begin
  Result := '';
  if ChangedCount > 0 then
    Result := Format('%s of %s records changed while they were read.',
      [Grouped(ChangedCount), Grouped(RecordCount)]);
  if DamagedCount > 0 then
    Result := Trim(Result + Format(' %d records could not be read: damaged, or changing.',
      [DamagedCount]));
end;

end.
