/// Tests of LaneMM.RegionCalls: what regions cost where debug mode has none of their blocks; what a
/// region frees, and what counts as a reference into it, while other threads go on; walks without a
/// routine to call.
unit Test.RegionCalls;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools;

type
  TRegionCallsTests = class(TQuietTest)
  published
    procedure EndOfARegionWithoutDebugBlocksWalksNoHeap;
    procedure ResetFreesNoBlockOfAThreadThatHasEnteredSince;
    procedure BlocksThatGoWithTheirRegionReferToNothing;
    procedure WordsOnTheStackAreNoReferences;
    {$ifdef LINUX} procedure WordsBehindAMarkedGuardPageAreNoReferences; {$endif}
    procedure BlockWithManyWordsIsOneReference;
    procedure KeyOfABlockIsThatOfTheNameOfItsRegion;
    procedure GroupOfARegionIsNeverOneOfTheProgram;
    {$ifdef LINUX} procedure WalkWithoutARoutineToCallIsALine; {$endif}
  end;

implementation

uses
  {$ifdef LINUX} BaseUnix, {$endif} SysUtils, testregistry, LaneMM, LaneMM.Types, LaneMM.Hooks, LaneMM.Os, LaneMM.Walk,
  LaneMM.DebugState, LaneMM.DebugThreads, LaneMM.Groups, LaneMM.References;

var
  Visits: Integer;
  KeptDebugVisit: TDebugVisit;

procedure CountVisit(Span: PSpan; Visitor: TBlockVisitor; Context: Pointer);
begin
  Inc(Visits);
end;

procedure SeeBlock(const Block: TBlockInfo; Context: Pointer);
begin
end;

// The debug block that stays has each walk of the heap visit its span.
procedure TRegionCallsTests.EndOfARegionWithoutDebugBlocksWalksNoHeap;
var
  Kept: Pointer;
  KeptVisit: TDebugVisit;
  HadRegions: Boolean;
  Region: TLaneMM_Region;
begin
  Kept := LaneMM_DebugGetMem(100);
  HadRegions := Debug.HasRegions;
  Debug.HasRegions := False;
  KeptVisit := Hooks.DebugVisit;
  Hooks.DebugVisit := CountVisit;
  Visits := 0;
  Region := LaneMM_RegionCreate('plain', 0);
  LaneMM_RegionGetMem(Region, 100);
  AssertTrue('is reset', LaneMM_RegionReset(Region));
  LaneMM_RegionGetMem(Region, 100);
  AssertTrue('is freed', LaneMM_RegionFree(Region));
  Same(0, Visits, 'walks of the end');
  LaneMM_WalkBlocks(SeeBlock, nil);
  Hooks.DebugVisit := KeptVisit;
  Debug.HasRegions := HadRegions;
  FreeMem(Kept);
  AtLeast(1, Visits, 'a walk visits the span');
end;

// Returns a debug block that a thread inside of the region would have.
function BlockInside(Region: TLaneMM_Region): PPointer;
begin
  LaneMM_RegionEnter(Region);
  Result := LaneMM_DebugGetMem(100);
  LaneMM_RegionLeave;
end;

var
  Entered: TLaneMM_Region;
  LateInverted: NativeUInt; // its address would be a reference

// A thread enters after the reset, before the debug blocks are freed.
procedure EnterOnce(Span: PSpan; Visitor: TBlockVisitor; Context: Pointer);
begin
  Hooks.DebugVisit := KeptDebugVisit;
  LateInverted := not NativeUInt(BlockInside(Entered));
  KeptDebugVisit(Span, Visitor, Context);
end;

procedure TRegionCallsTests.ResetFreesNoBlockOfAThreadThatHasEnteredSince;
var
  Early: Pointer;
  HadRegions: Boolean;
  Block: TBlockInfo;
begin
  HadRegions := Debug.HasRegions;
  Debug.HasRegions := True;
  Entered := LaneMM_RegionCreate('entered', 0);
  Early := BlockInside(Entered);
  KeptDebugVisit := Hooks.DebugVisit;
  Hooks.DebugVisit := EnterOnce;
  AssertTrue('is reset', LaneMM_RegionReset(Entered));
  AssertFalse('the earlier block is freed', WalkFind(Early, Block));
  AssertTrue('the later one is in use', WalkFind(Pointer(not LateInverted), Block));
  AssertTrue('is freed', LaneMM_RegionFree(Entered));
  Debug.HasRegions := HadRegions;
  AssertFalse('with the later block', WalkFind(Pointer(not LateInverted), Block));
end;

// Returns whether a search has found a reference from the block. What other tests have left in
// memory may refer to the address, too.
function Refers(Holder: Pointer; Group: Cardinal; Mark: NativeUInt): Boolean;
var
  Found: TReferences;
  Index: Integer;
begin
  ReferencesFind(Group, Mark, Found);
  Result := False;
  for Index := 0 to Integer(Found.Shown) - 1 do
    Result := Result or (Found.Items[Index].Holder = Holder);
end;

// Another thread is freeing its region: the block that this one points to was freed, and is in use
// again in a region that ends now.
procedure TRegionCallsTests.BlocksThatGoWithTheirRegionReferToNothing;
var
  Ending, Other: TLaneMM_Region;
  Block: TBlockInfo;
  Target, Holder, Outside: PPointer;
  Group: Cardinal;
  Number: NativeUInt;
begin
  Ending := LaneMM_RegionCreate('ending', 0);
  Other := LaneMM_RegionCreate('other', 0);
  Target := BlockInside(Ending);
  Holder := BlockInside(Other);
  Outside := LaneMM_DebugGetMem(100);
  Holder^ := Target;
  Outside^ := Target;
  AssertTrue('in use', WalkFind(Target, Block));
  Group := Block.Group;
  Number := Block.Number;
  AssertTrue('a reference', Refers(Holder, Group, Number));
  AssertFalse('none to earlier blocks', Refers(Holder, Group, Number - 1));
  AssertTrue('in use', WalkFind(Holder, Block));
  DebugSetEmptied(Block.Group);
  AssertFalse('a block that goes with its region', Refers(Holder, Group, Number));
  AssertTrue('one that stays', Refers(Outside, Group, Number));
  DebugSetEmptied(0);
  FreeMem(Target);
  FreeMem(Holder);
  FreeMem(Outside);
  LaneMM_RegionFree(Ending);
  LaneMM_RegionFree(Other);
end;

procedure TRegionCallsTests.WordsOnTheStackAreNoReferences;
var
  Ending: TLaneMM_Region;
  Target: Pointer;
  Block: TBlockInfo;
  Found: TReferences;
  Index, OnStack: Integer;
begin
  Ending := LaneMM_RegionCreate('ending', 0);
  Target := BlockInside(Ending);
  AssertTrue('in use', WalkFind(Target, Block));
  ReferencesFind(Block.Group, Block.Number, Found);
  OnStack := 0;
  for Index := 0 to Integer(Found.Shown) - 1 do
    Inc(OnStack, Ord(NativeUInt(Found.Items[Index].Address - NativeUInt(StackBottom))
      < NativeUInt(StackLength)));
  Same(0, OnStack, 'words on the stack');
  FreeMem(Target);
  LaneMM_RegionFree(Ending);
end;

{$ifdef LINUX}
// The mapping begins with a page that cannot be read, as the stacks of glibc 2.42 do. Without it the
// word is a reference.
procedure TRegionCallsTests.WordsBehindAMarkedGuardPageAreNoReferences;
const
  Place = NativeUInt(1) shl {$ifdef CPU64} 33 {$else} 29 {$endif}; // wanted, and free
var
  Ending: TLaneMM_Region;
  Target: Pointer;
  Memory: PByte;
  Block: TBlockInfo;

  function References: Integer;
  var
    Found: TReferences;
    Index: Integer;
  begin
    ReferencesFind(Block.Group, Block.Number, Found);
    Result := 0;
    for Index := 0 to Integer(Found.Shown) - 1 do
      Inc(Result, Ord(NativeUInt(Found.Items[Index].Address - NativeUInt(Memory)) < 4 * OsGranule));
  end;

begin
  Ending := LaneMM_RegionCreate('ending', 0);
  Target := BlockInside(Ending);
  AssertTrue('in use', WalkFind(Target, Block));
  Memory := FpMMap(Pointer(Place), 4 * OsGranule, PROT_READ or PROT_WRITE, MAP_PRIVATE or MAP_ANONYMOUS, -1, 0);
  AssertTrue('is mapped', Memory <> MAP_FAILED);
  PPointer(Memory + 2 * OsGranule)^ := Target;
  Same(1, References, 'references from memory without a name');
  AssertTrue('guarded', OsGuard(Memory, OsGranule));
  Same(0, References, 'references from a stack');
  FpMUnMap(Memory, 4 * OsGranule);
  FreeMem(Target);
  LaneMM_RegionFree(Ending);
end;
{$endif}

// More blocks than are listed refer to it, each by all of its words.
procedure TRegionCallsTests.BlockWithManyWordsIsOneReference;
const
  More = MostReferences + 10;
var
  Ending: TLaneMM_Region;
  Target: Pointer;
  Holders: array[1..More] of PPointer;
  Block: TBlockInfo;
  Found: TReferences;
  Before: NativeUInt;
  Index, Word: Integer;
begin
  Ending := LaneMM_RegionCreate('ending', 0);
  Target := BlockInside(Ending);
  AssertTrue('in use', WalkFind(Target, Block));
  ReferencesFind(Block.Group, Block.Number, Found);
  Before := Found.Count; // what other tests have left
  for Index := 1 to More do
  begin
    Holders[Index] := LaneMM_DebugGetMem(8 * SizeOf(Pointer));
    for Word := 0 to 7 do
      Holders[Index][Word] := Target;
  end;
  ReferencesFind(Block.Group, Block.Number, Found);
  for Index := 1 to More do
    FreeMem(Holders[Index]);
  FreeMem(Target);
  LaneMM_RegionFree(Ending);
  Same(More, Int64(Found.Count - Before), 'blocks that refer to it');
  Same(MostReferences, Found.Shown, 'those that are listed');
end;

// A report asks for the key of each block: it takes it from the region of the block, without a search
// through all regions for the one of a number.
procedure TRegionCallsTests.KeyOfABlockIsThatOfTheNameOfItsRegion;
const
  Names: array[0..2] of PAnsiChar = ('one', 'other', 'one');
var
  Regions: array[0..2] of TLaneMM_Region;
  Keys: array[0..2] of NativeUInt;
  Block: TBlockInfo;
  P: Pointer;
  Index: Integer;
begin
  for Index := 0 to High(Names) do
  begin
    Regions[Index] := LaneMM_RegionCreate(Names[Index], 0);
    P := LaneMM_RegionGetMem(Regions[Index], 100);
    Check(WalkFind(P, Block), 'the block');
    Keys[Index] := GroupKey(Block, GroupOfBlock(Block));
    Block.Group := GroupOfBlock(Block); // as in a debug block: the region is searched for
    Check(Keys[Index] = GroupKey(Block, Block.Group), 'the key of its group');
  end;
  Check(Keys[0] = Keys[2], 'regions of one name');
  Check(Keys[0] <> Keys[1], 'regions of two names');
  for Index := 0 to High(Names) do
    LaneMM_RegionFree(Regions[Index]);
end;

// A server that makes a region for each of 1,000 requests a second has made two billion in 25 days.
procedure TRegionCallsTests.GroupOfARegionIsNeverOneOfTheProgram;
const
  Many = NativeUInt($7FFFFFFE);
var
  Made: NativeUInt;
  Regions: array[0..2] of TLaneMM_Region;
  Block: TBlockInfo;
  Index: Integer;
begin
  Made := Process.RegionsMade;
  Process.RegionsMade := Many;
  try
    for Index := 0 to High(Regions) do
    begin
      Regions[Index] := LaneMM_RegionCreate('late', 0);
      Check(WalkFind(LaneMM_RegionGetMem(Regions[Index], 100), Block), 'the block');
      Check(GroupOfBlock(Block) >= RegionGroups, 'a group of a region');
      AssertEquals('late', string(GroupName(GroupOfBlock(Block))));
      LaneMM_RegionFree(Regions[Index]);
    end;
  finally
    Process.RegionsMade := Made + Length(Regions);
  end;
end;

{$ifdef LINUX}
// Nothing is held: memory can be purged afterwards.
procedure TRegionCallsTests.WalkWithoutARoutineToCallIsALine;
const
  Line = 'LaneMM: LaneMM_%s: no routine to call'#10;
var
  Ends: TFilDes;
  Kept: LongInt;
  Region: TLaneMM_Region;
  Text: array[0..999] of AnsiChar;
begin
  Region := LaneMM_RegionCreate('plain', 0);
  AssertTrue('pipe', fpPipe(Ends) = 0);
  Kept := fpDup(StdErrorHandle);
  fpDup2(Ends[1], StdErrorHandle);
  LaneMM_WalkBlocks(nil, nil);
  LaneMM_WalkFreeBlocks(nil, nil);
  LaneMM_WalkSpans(nil, nil);
  LaneMM_WalkSuppressions(nil, nil);
  LaneMM_RegionWalk(Region, nil, nil);
  LaneMM_OnPressure(nil, nil);
  fpDup2(Kept, StdErrorHandle);
  fpClose(Kept);
  fpClose(Ends[1]);
  FillChar(Text, SizeOf(Text), 0);
  fpRead(Ends[0], Text, SizeOf(Text) - 1);
  fpClose(Ends[0]);
  LaneMM_RegionFree(Region);
  AssertEquals(Format(Line + Line + Line + Line + Line + Line, ['WalkBlocks', 'WalkFreeBlocks',
    'WalkSpans', 'WalkSuppressions', 'RegionWalk', 'OnPressure']), string(PAnsiChar(@Text)));
  Same(0, Process.PurgesHeld, 'readers');
end;
{$endif}

initialization
  RegisterTest(TRegionCallsTests);
end.
