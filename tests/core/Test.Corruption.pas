/// Tests of what the engine does with a span that the program has damaged: it reports the damage, hands
/// out no block twice and none that is no block, and goes on.
unit Test.Corruption;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.Types, LaneMM.Hooks;

type
  TCorruptionTests = class(TLaneTest)
  strict private
    KeptHook: TCorruptionCall;
    Blocks: TPointers;
    Size: NativeUInt;
    Servant: TServant;
    First: Integer;
    procedure GetBlocks;
    procedure FreeOne;
    procedure FreeAllBut(Kept: Integer);
    procedure OverwritesLink(const Bytes: array of Byte; const What: string);
    procedure OverwriteAll(const Bytes: array of Byte; const What: string);
    procedure AllDisjoint(const More: TPointers);
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure TextPastTheEndIsNoLink;
    procedure ZeroPastTheEndIsNoLink;
    procedure LinkOfABlockThatAnotherThreadFreedIsChecked;
    procedure LinkOfABlockThatAnotherThreadFreedIsCheckedBeforeAFree;
    procedure LinkIsCheckedWhereABlockMoves;
    procedure OddLinkEndsTheListWithAReport;
    procedure LinkIntoABlockIsNotFollowed;
    procedure BlocksOfALostListAreNotHandedOut;
    procedure SearchInADamagedListEnds;
  end;

implementation

uses
  SysUtils, testregistry, Test.Repair, LaneMM.Layout, LaneMM.Os, LaneMM.Arena, LaneMM.Span, LaneMM.Heap,
  LaneMM.Blocks, LaneMM.Purge;

const
  LeastBlocks = 100;
  ClassSizes: array[0..8] of NativeUInt = (16, 32, 48, 64, 512, 768, 3072, 8192, 20544);

var
  Damaged: array[1..100] of PSpan;
  DamagedCount: Integer;
  // Reports of Watched, the span of the last of Blocks: spans that earlier tests damaged may be found, too.
  Watched: PSpan;
  Reports: Integer;
  LastCorruption: TCorruption;
  LastBlock: Pointer;

procedure Note(Corruption: TCorruption; Span: PSpan; Block: PBlock);
begin
  Inc(DamagedCount);
  Damaged[DamagedCount] := Span;
  if Block <> nil then
    Block^.Link := LinkOf(Span, EndOfList); // for SpanRepair
  if Span <> Watched then
    Exit;
  Inc(Reports);
  LastCorruption := Corruption;
  LastBlock := Block;
end;

procedure RepairAll;
begin
  while DamagedCount > 0 do
  begin
    SpanRepair(Damaged[DamagedCount]);
    Dec(DamagedCount);
  end;
  Reports := 0;
end;

procedure TCorruptionTests.SetUp;
begin
  ProcessTrim;
  KeptHook := Hooks.Corruption;
  Hooks.Corruption := Note;
  Servant := TServant.Create;
  SetLength(Blocks, LeastBlocks * 2);
end;

procedure TCorruptionTests.TearDown;
begin
  RepairAll;
  Servant.Free;
  AssertTrue('heap works', HeapWorks);
  Hooks.Corruption := KeptHook;
end;

// Gets blocks until one begins where the block before it ends: First is its number, and the current
// span has it, and one more: a free of the two does not release the span.
procedure TCorruptionTests.GetBlocks;
var
  Span: PSpan;
begin
  First := -1;
  repeat
    Inc(First);
    if First > High(Blocks) then
      SetLength(Blocks, First * 2);
    Blocks[First] := GetMem(Size);
    FillPattern(Blocks[First], Size, First);
    Span := BlockSpan(Blocks[First]);
  until (First >= LeastBlocks) and (Span^.Used - Span^.Bias > 2) and (Blocks[First] = Blocks[First - 1] + Size)
    and (NativeUInt(Blocks[First]) mod SliceSize <> 0);
  SetLength(Blocks, First + 1);
  Watched := Span;
end;

procedure TCorruptionTests.FreeOne;
begin
  FreeMem(Blocks[First]);
end;

procedure TCorruptionTests.FreeAllBut(Kept: Integer);
var
  Index: Integer;
begin
  for Index := 0 to High(Blocks) do
    if Index <> Kept then
    begin
      AssertTrue('contents', HasPattern(Blocks[Index], Size, Index));
      FreeMem(Blocks[Index]);
    end;
end;

procedure TCorruptionTests.AllDisjoint(const More: TPointers);
var
  Index, Other: Integer;
begin
  for Index := 0 to High(More) do
    for Other := 0 to High(Blocks) do
      if Other <> First then
        AssertTrue('a block in use is not handed out', (More[Index] >= Blocks[Other] + Size)
          or (More[Index] + Size <= Blocks[Other]));
end;

procedure TCorruptionTests.OverwritesLink(const Bytes: array of Byte; const What: string);
var
  More: TPointers;
  Index: Integer;
begin
  SetLength(More, 20);
  GetBlocks;
  FreeMem(Blocks[First]);
  Move(Bytes[0], (Blocks[First - 1] + Size)^, Length(Bytes));
  for Index := 0 to High(More) do
    More[Index] := GetMem(Size);
  Same(1, Reports, Format('%s, %d bytes: reports', [What, Size]));
  AssertTrue(What + ': kind', LastCorruption = coLink);
  AssertTrue(What + ': block', LastBlock = Blocks[First]);
  AllDisjoint(More);
  for Index := 0 to High(More) do
  begin
    Same(0, NativeUInt(More[Index]) mod BlockAlignment, What + ': alignment');
    FreeMem(More[Index]);
  end;
  FreeAllBut(First);
  RepairAll;
end;

procedure TCorruptionTests.OverwriteAll(const Bytes: array of Byte; const What: string);
var
  Index: Integer;
begin
  for Index := 0 to High(ClassSizes) do
  begin
    Size := ClassSizes[Index];
    OverwritesLink(Bytes, What);
  end;
end;

procedure TCorruptionTests.TextPastTheEndIsNoLink;
begin
  OverwriteAll([Ord('A')], 'one letter');
  OverwriteAll([Ord('l'), Ord('a'), Ord('n'), Ord('e')], 'four letters');
  OverwriteAll([Ord('a'), 0, Ord('b'), 0, Ord('c'), 0, Ord('d'), 0], 'wide letters');
end;

procedure TCorruptionTests.ZeroPastTheEndIsNoLink;
begin
  OverwriteAll([0], 'a byte');
  OverwriteAll([0, 0], 'two bytes');
  OverwriteAll([0, 0, 0, 0], 'four bytes');
  OverwriteAll([0, 0, 0, 0, 0, 0, 0, 0], 'a word');
  OverwriteAll([$FF, $FF, $FF, $FF, $FF, $FF, $FF, $FF], 'ones');
end;

procedure TCorruptionTests.LinkOfABlockThatAnotherThreadFreedIsChecked;
var
  More: TPointers;
  Index: Integer;
begin
  Size := 512;
  GetBlocks;
  Servant.Call(FreeOne);
  PWord(Blocks[First])^ := 0;
  SetLength(More, 500);
  for Index := 0 to High(More) do
    More[Index] := GetMem(Size);
  Same(1, Reports, 'reports');
  AssertTrue('block', LastBlock = Blocks[First]);
  AllDisjoint(More);
  for Index := 0 to High(More) do
    FreeMem(More[Index]);
  FreeAllBut(First);
end;

// A sweep lets the owner's next free take what others have freed.
procedure TCorruptionTests.LinkOfABlockThatAnotherThreadFreedIsCheckedBeforeAFree;
begin
  Size := 512;
  GetBlocks;
  HeapRetireAll(OsThreadHeap);
  Servant.Call(FreeOne);
  PWord(Blocks[First])^ := 0;
  HeapSweepQueued(OsThreadHeap);
  FreeMem(Blocks[First - 1]);
  Same(1, Reports, 'reports');
  AssertTrue('block', LastBlock = Blocks[First]);
  Blocks[First - 1] := GetMem(Size);
  FillPattern(Blocks[First - 1], Size, First - 1);
  FreeAllBut(First);
end;

procedure TCorruptionTests.LinkIsCheckedWhereABlockMoves;
var
  P: Pointer;
begin
  P := GetMem(1000);
  Size := 64;
  GetBlocks;
  FreeMem(Blocks[First]);
  PWord(Blocks[First])^ := 0;
  ReallocMem(P, Size);
  Same(1, Reports, 'reports');
  AssertTrue('block', LastBlock = Blocks[First]);
  AssertTrue('another block', P <> Blocks[First]);
  FreeMem(P);
  FreeAllBut(First);
end;

procedure TCorruptionTests.OddLinkEndsTheListWithAReport;
var
  More: TPointers;
  Index: Integer;
begin
  Size := 64;
  GetBlocks;
  FreeMem(Blocks[First]);
  PBlock(Blocks[First])^.Link := LinkOf(ArenaSpan(Blocks[First]), Size * 3 + 1); // an odd offset, of no block
  SetLength(More, 20);
  for Index := 0 to High(More) do
    More[Index] := GetMem(Size);
  Same(1, Reports, 'reports');
  AllDisjoint(More);
  for Index := 0 to High(More) do
    FreeMem(More[Index]);
  FreeAllBut(First);
end;

procedure TCorruptionTests.LinkIntoABlockIsNotFollowed;
var
  More: TPointers;
  Span: PSpan;
  Index: Integer;
begin
  Size := 48;
  GetBlocks;
  FreeMem(Blocks[First]);
  Span := ArenaSpan(Blocks[First]);
  Index := 0;
  while ArenaSpan(Blocks[Index]) <> Span do
    Inc(Index);
  // As by a program that knows the key: to the middle of a block in use, whose bytes end the list.
  PBlock(Blocks[First])^.Link := LinkOf(Span, NativeUInt(Blocks[Index] + 16 - Span^.Start));
  PBlock(Blocks[Index] + 16)^.Link := LinkOf(Span, EndOfList);
  SetLength(More, 20);
  for Index := 0 to High(More) do
    More[Index] := GetMem(Size);
  Same(1, Reports, 'reports');
  AssertTrue('block', LastBlock = Blocks[First]);
  AllDisjoint(More);
  FreeEach(More, 1);
  for Index := 0 to First - 1 do
    FreeMem(Blocks[Index]);
end;

procedure TCorruptionTests.BlocksOfALostListAreNotHandedOut;
var
  More: TPointers;
  Index, Lost: Integer;
begin
  Size := 512;
  GetBlocks;
  Lost := First - 1;
  FreeMem(Blocks[Lost]);
  FreeMem(Blocks[First]);
  PWord(Blocks[First])^ := 0;
  SetLength(More, 200);
  for Index := 0 to High(More) do
    More[Index] := GetMem(Size);
  Same(1, Reports, 'reports');
  for Index := 0 to High(More) do
    AssertTrue('a lost block', More[Index] <> Blocks[Lost]);
  for Index := 0 to High(More) do
    FreeMem(More[Index]);
  for Index := 0 to Lost - 1 do
    FreeMem(Blocks[Index]);
end;

procedure TCorruptionTests.SearchInADamagedListEnds;
var
  Answer: Integer;
begin
  Size := 512;
  GetBlocks;
  FreeMem(Blocks[First - 1]);
  FreeMem(Blocks[First]);
  // A circle.
  PBlock(Blocks[First - 1])^.Link := LinkOf(ArenaSpan(Blocks[First]),
    Blocks[First] - ArenaSpan(Blocks[First])^.Start);
  AssertFalse('not in the list', SpanHasFreeBlock(ArenaSpan(Blocks[First]),
    PBlock(Blocks[First - 2])));
  Answer := ErrorOfFree(Blocks[First - 1]);
  Same(InvalidPointer, Answer, 'second free');
  DamagedCount := 1;
  Damaged[1] := Watched;
end;

initialization
  RegisterTest(TCorruptionTests);
end.
