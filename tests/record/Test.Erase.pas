/// Tests of LaneMM.Erase.
unit Test.Erase;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools;

type
  TEraseTests = class(TQuietTest)
  strict private
    procedure LooksErased(P: PByte; Size: NativeUInt);
    function IsErasedWhenReturned(const Words: ShortString): Boolean;
    {$ifdef LINUX}
    procedure UntouchedPagesStayUntouched(const Words: ShortString);
    {$endif}
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure FreedBlockHoldsZeros;
    procedure BlockThatMovedLeavesZeros;
    procedure ReallocKeepsContents;
    procedure DoubleFreeIsStillAnError;
    procedure BlockShrinksWithoutMemory;
    procedure NormalBlocksAreErasedInDebugMode;
    procedure BlocksStayAsTheyAreWithoutTheSetting;
    procedure NewBlockIsFilled;
    procedure GrownBytesAreFilled;
    procedure AllocMemStaysZero;
    procedure NewAndFreedBlocksAreFilled;
    procedure ResizedDebugBlockKeepsContents;
    {$ifdef LINUX}
    procedure UntouchedPagesGetNoMemoryWhenTheyAreFreed;
    procedure UntouchedPagesGetNoMemoryInAlignedBlocksOfZeros;
    procedure UntouchedPagesAreNotCopied;
    procedure UntouchedPagesAreNotCopiedInDebugMode;
    procedure UntouchedPagesAreNotErasedInDebugMode;
    procedure UntouchedPagesAreNotErasedInDebugModeBeforeAPurge;
    procedure MemoryGoesBackAsZeros;
    procedure MemoryGoesBackAsItIsWithoutTheSetting;
    {$endif}
  end;

implementation

uses
  testregistry, Test.System, LaneMM, LaneMM.Layout, LaneMM.Os;


const
  // The default of the setting `fill`.
  NewByte = $90;
  Sizes: array[0..4] of NativeUInt = (32, 300, 8000, 30000, 200000);

procedure TEraseTests.SetUp;
begin
  inherited SetUp;
  LaneMM_Configure('erase=free');
end;

procedure TEraseTests.TearDown;
begin
  LaneMM_Configure('erase=0,debug=0');
  inherited TearDown;
end;

// All but the word that links free blocks.
procedure TEraseTests.LooksErased(P: PByte; Size: NativeUInt);
begin
  AssertTrue(IsZero(P + SizeOf(Pointer), Size - SizeOf(Pointer)));
end;

procedure TEraseTests.FreedBlockHoldsZeros;
var
  P: PByte;
  Size: NativeUInt;
begin
  for Size in Sizes do
  begin
    GetMem(P, Size);
    FillPattern(P, Size, Size);
    FreeMem(P);
    LooksErased(P, Size);
    GetMem(P, Size);
    FillPattern(P, Size, Size);
    FreeMem(P, Size);
    LooksErased(P, Size);
  end;
end;

procedure TEraseTests.BlockThatMovedLeavesZeros;
var
  P, Before: PByte;
  Size: NativeUInt;
begin
  for Size in Sizes do
  begin
    GetMem(P, Size);
    FillPattern(P, Size, Size);
    Before := P;
    ReallocMem(P, Size * 10);
    AssertTrue('moved', P <> Before);
    LooksErased(Before, Size);
    Before := P;
    ReallocMem(P, Size);
    AssertTrue('moved', P <> Before);
    LooksErased(Before, Size * 10);
    ReallocMem(P, 0);
  end;
end;

procedure TEraseTests.ReallocKeepsContents;
var
  P: PByte;
  Size: NativeUInt;
begin
  for Size in Sizes do
  begin
    P := nil;
    ReallocMem(P, Size);
    FillPattern(P, Size, Size);
    ReallocMem(P, Size * 3);
    AssertTrue(HasPattern(P, Size, Size));
    ReallocMem(P, Size);
    AssertTrue(HasPattern(P, Size, Size));
    FreeMem(P);
  end;
end;

procedure TEraseTests.DoubleFreeIsStillAnError;
var
  P: Pointer;
begin
  GetMem(P, 100);
  FreeMem(P);
  Same(InvalidPointer, ErrorOfFree(P), 'error');
  Same(InvalidPointer, ErrorOfFree(Pointer(12345)), 'error');
end;

procedure TEraseTests.BlockShrinksWithoutMemory;
const
  Size = 30000;
  Rest = 3000;
var
  P: PByte;
  First, Next: PPointer;
begin
  GetMem(P, Size);
  FillPattern(P, Rest, Size);
  First := nil;
  SilenceErrors;
  ReturnNilIfGrowHeapFails := True;
  LaneMM_SetMemoryLimit(LaneMM_HeapStatus.CommittedBytes + 4 shl 20);
  try
    repeat
      Next := GetMem(Rest);
      if Next <> nil then
      begin
        Next^ := First;
        First := Next;
      end;
    until Next = nil;
    AssertTrue('shrinks', ReallocMem(P, Rest) <> nil);
    AssertTrue(HasPattern(P, Rest, Size));
  finally
    LaneMM_SetMemoryLimit(0);
    ReturnNilIfGrowHeapFails := False;
    RestoreErrors;
  end;
  while First <> nil do
  begin
    Next := First^;
    FreeMem(First);
    First := Next;
  end;
  FreeMem(P);
end;

procedure TEraseTests.NormalBlocksAreErasedInDebugMode;
const
  Size = 300;
var
  P, Q, Before: PByte;
begin
  GetMem(P, Size);
  GetMem(Q, Size);
  FillPattern(P, Size, Size);
  FillPattern(Q, Size, Size);
  LaneMM_EnterDebugMode;
  try
    FreeMem(P);
    Before := Q;
    ReallocMem(Q, 10 * Size);
    AssertTrue('moved', Q <> Before);
    LooksErased(P, Size);
    LooksErased(Before, Size);
    AssertTrue(HasPattern(Q, Size, Size));
  finally
    LaneMM_ExitDebugMode;
  end;
  FreeMem(Q);
end;

procedure TEraseTests.NewBlockIsFilled;
var
  P: PByte;
  Size, Index: NativeUInt;
begin
  LaneMM_Configure('erase=0,erase=new');
  for Size in Sizes do
  begin
    GetMem(P, Size);
    for Index := 0 to MemSize(P) - 1 do
      if P[Index] <> NewByte then
        Fail('byte %d of %d is %d', [Index, Size, P[Index]]);
    FreeMem(P);
  end;
  LaneMM_Configure('erase=0');
  LaneMM_Trim; // no run is warm
  GetMem(P, 64 * SliceSize);
  AssertTrue('fresh memory without the setting', IsZero(P + OsPageSize, OsPageSize));
  FreeMem(P);
end;

procedure TEraseTests.GrownBytesAreFilled;
var
  P: PByte;
  Size, Old: NativeUInt;
begin
  LaneMM_Configure('erase=0,erase=new');
  for Size in Sizes do
  begin
    P := nil;
    ReallocMem(P, Size);
    Same(NewByte, P[0], 'first byte');
    FillPattern(P, Size, Size);
    Old := MemSize(P);
    ReallocMem(P, Old + Size);
    AssertTrue(HasPattern(P, Size and not 7, Size));
    Same(NewByte, P[Old], 'first byte that was added');
    Same(NewByte, P[Old + Size - 1], 'last byte');
    ReallocMem(P, 0);
  end;
end;

procedure TEraseTests.AllocMemStaysZero;
var
  P: PByte;
begin
  LaneMM_Configure('erase=0,erase=new');
  P := AllocMem(1000);
  AssertTrue(IsZero(P, 1000));
  FreeMem(P);
end;

procedure TEraseTests.NewAndFreedBlocksAreFilled;
var
  P: PByte;
begin
  LaneMM_Configure('erase=new');
  GetMem(P, 300);
  Same(NewByte, P[299], 'last byte');
  FreeMem(P);
  LooksErased(P, 300);
end;

procedure TEraseTests.ResizedDebugBlockKeepsContents;
var
  P: PByte;
begin
  LaneMM_Configure('erase=0,erase=new');
  P := LaneMM_DebugGetMem(100);
  FillPattern(P, 96, 1);
  ReallocMem(P, 5000);
  AssertTrue(HasPattern(P, 96, 1));
  Same(NewByte, P[4999], 'last byte');
  FreeMem(P);
end;

procedure TEraseTests.BlocksStayAsTheyAreWithoutTheSetting;
var
  P: PByte;
begin
  LaneMM_Configure('erase=0');
  GetMem(P, 300);
  FillPattern(P, 300, 1);
  FreeMem(P);
  AssertFalse(IsZero(P + 16, 200));
end;

// Whether a block is zero after its memory was to go back. It is locked, so that the system refuses
// to take it, and what would have gone back can be seen.
function TEraseTests.IsErasedWhenReturned(const Words: ShortString): Boolean;
const
  Size = 4 * SliceSize;
var
  P: PByte;
begin
  LaneMM_Configure('erase=0');
  LaneMM_Configure(Words);
  GetMem(P, Size);
  FillPattern(P, Size, 1);
  AssertTrue('locked', LockPages(P, OsPageSize));
  FreeMem(P);
  AssertFalse('not before', IsZero(P, OsPageSize));
  LaneMM_Trim;
  Result := IsZero(P, OsPageSize);
  UnlockPages(P, OsPageSize);
end;

{$ifdef LINUX}
const
  SparseSize = 64 shl 20;
  SparseLimit = 16 shl 20;

procedure TEraseTests.UntouchedPagesGetNoMemoryWhenTheyAreFreed;
var
  P: PByte;
  Resident: NativeUInt;
begin
  LaneMM_Trim;
  P := LaneMM_GetMemAligned(SparseSize, SliceSize);
  P[SparseSize div 2] := 42;
  Resident := ResidentBytes;
  FreeMem(P);
  AtMost(Resident + SparseLimit, ResidentBytes, 'resident bytes');
  Same(0, P[SparseSize div 2], 'byte that was written');
end;

procedure TEraseTests.UntouchedPagesGetNoMemoryInAlignedBlocksOfZeros;
var
  P: PByte;
  Resident: NativeUInt;
  Round: Integer;
begin
  LaneMM_Trim;
  Resident := ResidentBytes;
  for Round := 1 to 3 do
  begin
    P := LaneMM_AllocMemAligned(SparseSize, OsPageSize);
    Same(0, P[SparseSize div 2], 'byte');
    P[SparseSize div 2] := 42;
    AtMost(Resident + SparseLimit, ResidentBytes, 'resident bytes');
    FreeMem(P);
  end;
end;

// Of a block with one byte, while it grows, shrinks and is freed.
procedure TEraseTests.UntouchedPagesStayUntouched(const Words: ShortString);
const
  Place = SparseSize div 16;
var
  P: PByte;
  Most: NativeUInt;
begin
  LaneMM_Configure('erase=0');
  LaneMM_Configure(Words);
  LaneMM_Trim;
  Most := ResidentBytes + SparseSize div 2;
  P := LaneMM_GetMemAligned(SparseSize, SliceSize);
  P[Place] := 42;
  ReallocMem(P, SparseSize + SparseSize div 4);
  Same(42, P[Place], 'byte of the block that has grown');
  AtMost(Most, ResidentBytes, 'resident bytes when it has grown');
  ReallocMem(P, SparseSize div 8);
  Same(42, P[Place], 'byte of the block that has shrunk');
  AtMost(Most, ResidentBytes, 'resident bytes when it has shrunk');
  FreeMem(P);
  AtMost(Most, ResidentBytes, 'resident bytes when it is freed');
end;

procedure TEraseTests.UntouchedPagesAreNotCopied;
begin
  UntouchedPagesStayUntouched('erase=free');
end;

procedure TEraseTests.UntouchedPagesAreNotCopiedInDebugMode;
begin
  UntouchedPagesStayUntouched('debug');
end;

procedure TEraseTests.UntouchedPagesAreNotErasedInDebugMode;
begin
  UntouchedPagesStayUntouched('debug,erase=free');
end;

procedure TEraseTests.UntouchedPagesAreNotErasedInDebugModeBeforeAPurge;
begin
  UntouchedPagesStayUntouched('debug,erase=return');
end;

procedure TEraseTests.MemoryGoesBackAsZeros;
begin
  AssertTrue(IsErasedWhenReturned('erase=return'));
end;

procedure TEraseTests.MemoryGoesBackAsItIsWithoutTheSetting;
begin
  AssertFalse(IsErasedWhenReturned('erase=0'));
end;
{$endif}

initialization
  RegisterTest(TEraseTests);
end.
