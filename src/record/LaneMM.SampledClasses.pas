/// The sampled blocks by call site and class: what they hold is read when they are freed, or when a
/// report is written.
//
// Owns:       Observe.ClassTable; a TSiteClasses is pages, until SiteClassesClose.
// Invariants: a key is written once, by the thread that then describes the entry; counts are added
//             even before the description is complete. Entries are never removed, except in a child
//             process. What finds the table full counts as `other` in reports: it is missing in
//             the sums by class alone.
//             In the C library there are no classes and no table.
// Callers:    ClassesStart: under no lock. ClassesForget: the one thread of a child process. The
//             others: any thread; a TSiteClasses belongs to one.
// Progress:   lock-free: a thread that loses an entry to another one tries the next.
unit LaneMM.SampledClasses;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Text, LaneMM.CallSites;

const
  /// Entries of a table.
  SiteClassLimit = 16384;

  /// The class number of contents that are not known. A number below the kinds of contents is one
  /// of them, a larger one the address of a class record.
  OtherClass = 0;

type
  PSiteClass = ^TSiteClass;
  /// The blocks of a class at a call site.
  TSiteClass = record
    Key: TAtomicWord;      //< shared  hash of site and class; 0: unused
    IsReady: TAtomicWord;  //< shared  1: the next two are written
    Site: PSite;           //< const   the call site
    ClassId: NativeUInt;   //< const   address of the class record, or Ord of a TContentsKind
    Count: TAtomicWord;    //< shared  blocks allocated; before SiteClassesOpen those freed
    Bytes: TAtomicWord;    //< shared  their bytes
    InUseCount: NativeUInt; //< owner  of Count, blocks in use, after SiteClassesOpen
    InUseBytes: NativeUInt; //< owner  of Bytes, their bytes, after SiteClassesOpen
    Next: PSiteClass;      //< owner   the next class of the site, after SiteClassesSort
  end;

  PSiteClasses = ^TSiteClasses;
  /// The sums of a report, and the first of each site; nil without memory, or without classes.
  TSiteClasses = record
    Items: array[0..SiteClassLimit - 1] of TSiteClass; //< owner   by hash
    Firsts: array[0..SiteLimit - 1] of PSiteClass;     //< owner   by index of the site
  end;

/// Creates the table; returns whether it exists, which it need not in the C library.
function ClassesStart: Boolean;
/// Clears the table, in a child process.
procedure ClassesForget;
/// Reads the contents of the block P of Sample, which is being freed, and adds it to the sums.
procedure ClassesAddFreed(P: Pointer; const Sample: TSample);
/// Starts the sums of a report with the freed blocks.
function SiteClassesOpen: PSiteClasses;
/// Adds a sample in use.
procedure SiteClassesAdd(Sums: PSiteClasses; const Sample: TSample);
/// Orders the sums of each site: most bytes first. Required before SiteClassesOf.
procedure SiteClassesSort(Sums: PSiteClasses);
/// Frees the pages.
procedure SiteClassesClose(Sums: PSiteClasses);
/// Returns the first class of the site, with the others behind Next; nil for none.
function SiteClassesOf(Sums: PSiteClasses; Site: PSite): PSiteClass;
/// Adds the name of a class: Unit.Class, or what other numbers stand for.
procedure ClassIdAddName(var Text: TText; ClassId: NativeUInt);
/// Returns the class of a sampled block in use, or another number of these.
function SampleClass(const Sample: TSample): NativeUInt;
/// Returns the kind of contents: object, string, array or other.
function ClassIdKind(ClassId: NativeUInt): PAnsiChar;

implementation

uses
  LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.Hooks, LaneMM.Arena, LaneMM.Modules,
  LaneMM.ObserveState, LaneMM.Contents;

const
  TableBytes = SiteClassLimit * SizeOf(TSiteClass);
  MostProbes = 64;

function ClassesStart: Boolean;
begin
  if IsLibrary or (Observe.ClassTable <> 0) then
    Exit(True);
  ModulesLook;
  Result := OsTakeTable(Observe.ClassTable, TableBytes); // the modules before the table
end;

procedure ClassesForget;
begin
  if Observe.ClassTable <> 0 then
    OsClear(Pointer(Observe.ClassTable), TableBytes);
end;

// ---------------------------------------------------------------------------- the table

// Returns the entry of the table for site and class, a new one if needed; nil when it is full.
function EntryOf(Table: PSiteClass; Site: PSite; ClassId: NativeUInt): PSiteClass;
var
  Key: NativeUInt;
  Probe: Cardinal;
begin
  // Never 0.
  Key := ((ClassId * SpreadFactor + SiteIndex(Site)) * SpreadFactor) or 1;
  for Probe := 0 to MostProbes - 1 do
  begin
    Result := Table + ((Key shr 8 + Probe) mod SiteClassLimit);
    if (LoadAcquire(Result^.Key) = 0) and CompareAndSwap(Result^.Key, 0, Key) then
    begin
      Result^.Site := Site;
      Result^.ClassId := ClassId;
      // Release: the description before the flag. Pairs with SiteClassesOpen.
      StoreRelease(Result^.IsReady, 1);
      Exit;
    end;
    if LoadAcquire(Result^.Key) = Key then
      Exit;
  end;
  Result := nil;
end;

// Returns the class of the block P of Sample, or another number of these; see ContentsRead. The
// size is that of the sample: another thread may be freeing the block.
function ClassOf(P: Pointer; const Sample: TSample; References: NativeInt): NativeUInt;
var
  Block: TBlockInfo;
  Contents: TContents;
begin
  Block := Default(TBlockInfo);
  Block.Address := P;
  Block.UsableSize := Sample.UsableSize;
  if ArenaSpan(P) <> nil then
    Block.Kind := ArenaSpan(P)^.Kind;
  ContentsRead(Block, Contents, References);
  Result := Contents.ClassId;
  if Contents.Kind <> coObject then
    Result := Ord(Contents.Kind);
end;

procedure ClassesAddFreed(P: Pointer; const Sample: TSample);
var
  Table, Entry: PSiteClass;
begin
  Table := PSiteClass(LoadAcquire(Observe.ClassTable));
  if Table = nil then
    Exit;
  Entry := EntryOf(Table, Sample.Site, ClassOf(P, Sample, {References} 0));
  if Entry = nil then
    Exit;
  FetchAdd(Entry^.Count, Sample.Count);
  FetchAdd(Entry^.Bytes, Sample.Bytes);
end;

// ---------------------------------------------------------------------------- reports

function SiteClassesOpen: PSiteClasses;
var
  Table: PSiteClass;
  Index: NativeInt;
begin
  Table := PSiteClass(LoadAcquire(Observe.ClassTable));
  if Table = nil then
    Exit(nil);
  ModulesLook;
  Result := OsTakePages(SizeOf(TSiteClasses));
  if Result = nil then
    Exit;
  for Index := 0 to SiteClassLimit - 1 do
    if LoadAcquire(Table[Index].IsReady) <> 0 then
      Result^.Items[Index] := Table[Index];
end;

function SampleClass(const Sample: TSample): NativeUInt;
begin
  Result := ClassOf(Pointer(Sample.Block), Sample, {References} 1);
end;

procedure SiteClassesAdd(Sums: PSiteClasses; const Sample: TSample);
var
  Entry: PSiteClass;
begin
  if Sums = nil then
    Exit;
  Entry := EntryOf(@Sums^.Items, Sample.Site, SampleClass(Sample));
  if Entry = nil then
    Exit;
  Inc(Entry^.Count, Sample.Count);
  Inc(Entry^.Bytes, Sample.Bytes);
  Inc(Entry^.InUseCount, Sample.Count);
  Inc(Entry^.InUseBytes, Sample.Bytes);
end;

procedure SiteClassesSort(Sums: PSiteClasses);
var
  Index: NativeInt;
  Item: PSiteClass;
  Link: ^PSiteClass;
begin
  if Sums = nil then
    Exit;
  for Index := 0 to SiteClassLimit - 1 do
  begin
    Item := @Sums^.Items[Index];
    if Item^.Count = 0 then
      Continue;
    Link := @Sums^.Firsts[SiteIndex(Item^.Site)];
    while (Link^ <> nil) and ((Link^^.Bytes > Item^.Bytes)
      or (Link^^.Bytes = Item^.Bytes) and (Link^^.ClassId < Item^.ClassId)) do
      Link := @Link^^.Next;
    Item^.Next := Link^;
    Link^ := Item;
  end;
end;

procedure SiteClassesClose(Sums: PSiteClasses);
begin
  OsReleasePages(Sums, SizeOf(TSiteClasses));
end;

function SiteClassesOf(Sums: PSiteClasses; Site: PSite): PSiteClass;
begin
  Result := nil;
  if Sums <> nil then
    Result := Sums^.Firsts[SiteIndex(Site)];
end;

procedure ClassIdAddName(var Text: TText; ClassId: NativeUInt);
begin
  if ClassId > Ord(High(TContentsKind)) then
    ClassAddName(Text, ClassId)
  else if ClassId = OtherClass then
    TextAdd(Text, 'other')
  else
    TextAddChars(Text, ContentsNames[TContentsKind(ClassId)]);
end;

function ClassIdKind(ClassId: NativeUInt): PAnsiChar;
const
  Kinds: array[TContentsKind] of PAnsiChar = ('other', 'object', 'string', 'string', 'array');
begin
  if ClassId > Ord(High(TContentsKind)) then
    ClassId := Ord(coObject);
  Result := Kinds[TContentsKind(ClassId)];
end;

end.
