/// Regions as programs use them: checked handles, one line for what goes wrong, debug blocks.
//
// Owns:       nothing.
// Debug mode: debug blocks lie in no region's spans. In a scope they get the allocation group of
//             the region, RegionGroup, unless the program opens a group of its own in the scope;
//             blocks of that group are freed one by one with the region, so each use of them
//             afterwards is found like any other use after free.
// Callers:    any thread.
unit LaneMM.RegionCalls;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Hooks;

type
  /// The state of a region, in bytes but for BlocksInUse. In debug mode the first two count its
  /// debug blocks by their requested bytes.
  TRegionState = record
    BlocksInUse: NativeUInt;    //< owner   its blocks
    BytesInUse: NativeUInt;     //< owner   their usable bytes
    PeakBytes: NativeUInt;      //< owner   most CommittedBytes at a time
    CommittedBytes: NativeUInt; //< owner   backed memory that it has, in slices of 64 KB
    Limit: NativeUInt;          //< owner   most CommittedBytes that it may have; 0: any number
    Name: PAnsiChar;            //< owner   its name, valid until it is freed
  end;

/// Makes a region; Limit is in bytes, rounded down to slices but at least 256 KB; 0: none. Returns
/// its handle, 0 without memory.
function RegionNew(Name: PAnsiChar; Limit: NativeUInt): NativeUInt;
/// Begins a scope of the calling thread. False, and a line on stderr, if there is no such region,
/// or without memory.
function RegionBegin(Handle: NativeUInt): Boolean;
/// Ends the innermost scope of the calling thread. False, and a line, if it is in none.
function RegionEnd: Boolean;
/// Allocates in a region, outside of a scope; nil without memory. IsZero: of zeros.
function RegionGet(Handle, Size: NativeUInt; IsZero: Boolean): Pointer;
/// Frees the blocks of a region, and the region itself if IsLast. False, and a line, while a thread
/// is in it.
function RegionEmpty(Handle: NativeUInt; IsLast: Boolean): Boolean;
/// Releases what memory of a region holds no block.
procedure RegionRelease(Handle: NativeUInt);
/// Returns the state of a region; zeros if there is no such region.
procedure RegionRead(Handle: NativeUInt; out State: TRegionState);
/// Returns the region of a block; 0 if none.
function RegionAt(P: Pointer): NativeUInt;
/// Visits the blocks in use of a region.
procedure RegionVisitBlocks(Handle: NativeUInt; Visitor: TBlockVisitor; Context: Pointer);

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Bits, LaneMM.Os, LaneMM.Walk, LaneMM.Regions, LaneMM.Threads,
  LaneMM.Purge, LaneMM.Text, LaneMM.ReportState, LaneMM.DebugState, LaneMM.DebugThreads,
  LaneMM.GuardPages, LaneMM.Groups, LaneMM.ReferenceReport;

const
  // Slices of the lowest limit.
  LeastLimit = RegionReserve + 2;

// ---------------------------------------------------------------------------- lines

// Adds the name of a call as the program writes it, in Pascal or in C.
procedure AddCall(var Text: TText; Call: PAnsiChar);
begin
  if not Process.IsMalloc then
    TextAdd(Text, 'LaneMM_Region')
  else
  begin
    TextAdd(Text, 'lanemm_region_');
    TextAdd(Text, TextLower(Call[0]));
    Inc(Call);
  end;
  TextAddChars(Text, Call);
end;

procedure Say(Call, Name, What: PAnsiChar);
var
  Text: TText;
begin
  if not TextOpen(Text, OsPageSize) then
    Exit;
  TextAdd(Text, 'LaneMM: ');
  AddCall(Text, Call);
  if Name <> nil then
    TextAddForm(Text, ' "%s"', NativeUInt(Name));
  TextAddForm(Text, ': %s', NativeUInt(What));
  ReportSayText(Text);
end;

procedure SayNone(Call: PAnsiChar);
begin
  Say(Call, nil, 'no such region; it may have been freed');
end;

// Returns the region, or nil after a line.
function Find(Call: PAnsiChar; Handle: NativeUInt): PHeap;
begin
  Result := RegionFind(Handle);
  if Result = nil then
    SayNone(Call);
end;

// ---------------------------------------------------------------------------- debug blocks

type
  // Blocks to free, as many as fit.
  TBatch = record
    Group: Cardinal;
    Mark: NativeUInt;   // the highest number
    Count, Most: NativeUInt;
    Blocks: PPointer;
  end;
  PBatch = ^TBatch;

procedure CollectBlock(const Block: TBlockInfo; Context: Pointer);
var
  Batch: PBatch;
begin
  Batch := Context;
  if (Block.Group <> Batch^.Group) or (Block.Number > Batch^.Mark)
    or (Batch^.Count = Batch^.Most) then
    Exit;
  Batch^.Blocks[Batch^.Count] := Block.Address;
  Inc(Batch^.Count);
end;

// Frees the debug blocks of a group with numbers up to Mark: with memory for their addresses all in
// one walk.
procedure FreeDebugBlocks(Group: Cardinal; Mark: NativeUInt);
var
  Batch: TBatch;
  Status: TGroupStatus;
  Few: array[0..255] of Pointer;
  Size: NativeUInt;
  Pages: Pointer;
  Index: NativeInt;
begin
  GroupRead(Group, Status);
  Size := AlignUp(Status.BlockCount * SizeOf(Pointer), OsPageSize);
  Pages := nil;
  if Status.BlockCount > Length(Few) then
    Pages := OsTakePages(Size);
  Batch.Group := Group;
  Batch.Mark := Mark;
  Batch.Blocks := Pages;
  Batch.Most := Status.BlockCount;
  if Pages = nil then
  begin
    Batch.Blocks := @Few;
    Batch.Most := Length(Few);
  end;
  repeat
    Batch.Count := 0;
    GuardPagesHold;
    WalkBlocks(CollectBlock, @Batch);
    GuardPagesLetGo;
    for Index := 0 to NativeInt(Batch.Count) - 1 do
      FreeMem(Batch.Blocks[Index]);
  until Batch.Count = 0;
  if Pages <> nil then
  begin
    FillChar(Pages^, Size, 0); // as in SnapshotDropNodes
    OsReleasePages(Pages, Size);
  end;
end;

// ---------------------------------------------------------------------------- calls

function RegionNew(Name: PAnsiChar; Limit: NativeUInt): NativeUInt;
var
  Slices: NativeUInt;
begin
  if not Process.IsStarted then
    Exit(0);
  Slices := Limit shr SliceShift;
  if (Slices < LeastLimit) and (Limit <> 0) then
    Slices := LeastLimit;
  Result := RegionMake(Name, Slices);
  Debug.QuickBlocks := 0; // blocks of regions do not wait: see LaneMM.Hard
  if (Result <> 0) and (Name <> nil) then
    GroupSetName(RegionGroup(RegionFind(Result)), @RegionFind(Result)^.Data.Name[0]);
end;

// Begins a scope for the routine Call.
function Enter(Call: PAnsiChar; Handle: NativeUInt): Boolean;
var
  Region, Outer: PHeap;
begin
  Result := False;
  Region := Find(Call, Handle);
  if Region = nil then
    Exit;
  Outer := ThreadHeap;
  if Outer = nil then
    Exit;
  case RegionEnter(Region, Outer) of
    raDone: Result := True;
    raNone: SayNone(Call);
  end;
  if Result and (RegionFind(Handle) = nil) then
  begin
    RegionLeave(OsThreadHeap); // it was freed meanwhile, and its record used again
    SayNone(Call);
    Exit(False);
  end;
  if Result then
    GroupSet(RegionGroup(Region));
end;

function RegionBegin(Handle: NativeUInt): Boolean;
begin
  Result := Enter('Enter', Handle);
end;

function RegionEnd: Boolean;
begin
  Result := RegionLeave(OsThreadHeap) = raDone;
  if not Result then
    Say('Leave', nil, 'the thread is in no region');
end;

function RegionGet(Handle, Size: NativeUInt; IsZero: Boolean): Pointer;
const
  Calls: array[Boolean, Boolean] of PAnsiChar = (('GetMem', 'AllocMem'), ('Malloc', 'Calloc'));
var
  Inside: PHeap;
begin
  Result := nil;
  if not Enter(Calls[Process.IsMalloc, IsZero], Handle) then
    Exit;
  Inside := OsThreadHeap;
  Inside^.IsForOne := True; // an exception begins outside
  if IsZero then
    Result := AllocMem(Size)
  else
    GetMem(Result, Size);
  if OsThreadHeap = Inside then
    RegionEnd; // else an error, as nil, has ended it
end;

function RegionEmpty(Handle: NativeUInt; IsLast: Boolean): Boolean;
const
  Calls: array[Boolean] of PAnsiChar = ('Reset', 'Free');
var
  Region: PHeap;
  Group: Cardinal;
  Mark: NativeUInt;
  Answer: TRegionAnswer;
begin
  Result := False;
  Region := Find(Calls[IsLast], Handle);
  if Region = nil then
    Exit;
  Group := RegionGroup(Region);
  Mark := High(Mark);
  if Debug.HasRegions and not IsLast then
    Mark := DebugNumbersMark; // what threads that enter from now on allocate stays
  if IsLast then
    Answer := LaneMM.Regions.RegionFree(Region)
  else
    Answer := RegionReset(Region);
  Result := Answer = raDone;
  if not Result then
    Say(Calls[IsLast], @Region^.Data.Name[0], 'not done, a thread is in the region')
  else if Debug.HasRegions then
  begin
    ReferencesReport(Group, Mark);
    DebugSetEmptied(Group);
    FreeDebugBlocks(Group, Mark);
    DebugSetEmptied(0);
  end;
  PurgeNotify;
end;

procedure RegionRelease(Handle: NativeUInt);
var
  Region: PHeap;
begin
  Region := Find('Trim', Handle);
  if Region = nil then
    Exit;
  RegionTrim(Region);
  ProcessTrim;
end;

procedure RegionRead(Handle: NativeUInt; out State: TRegionState);
var
  Region: PHeap;
  Group: TGroupStatus;
begin
  State := Default(TRegionState);
  Region := Find('State', Handle);
  if Region = nil then
    Exit;
  RegionSum(Region, State.BlocksInUse, State.BytesInUse);
  if Debug.HasRegions then
  begin
    GroupRead(RegionGroup(Region), Group);
    Inc(State.BlocksInUse, Group.BlockCount);
    Inc(State.BytesInUse, Group.Bytes);
  end;
  State.CommittedBytes := Region^.Data.Slices shl SliceShift;
  State.PeakBytes := Region^.Data.Peak shl SliceShift;
  State.Limit := Region^.Data.Limit shl SliceShift;
  State.Name := @Region^.Data.Name[0];
end;

function RegionAt(P: Pointer): NativeUInt;
var
  Region: PHeap;
begin
  Result := 0;
  Region := RegionOfBlock(P);
  if Region <> nil then
    Result := RegionHandle(Region);
end;

procedure RegionVisitBlocks(Handle: NativeUInt; Visitor: TBlockVisitor; Context: Pointer);
var
  Region: PHeap;
begin
  Region := Find('Walk', Handle);
  if Region <> nil then
    WalkRegion(Region, Visitor, Context);
end;

end.
