/// Tests of LaneMM.Foreign: copies and a previous manager that exist in this test only.
unit Test.Foreign;

{$mode delphi}{$H+}

interface

uses
  Test.Tools;

type
  TForeignTests = class(TLaneTest)
  strict private
    Previous: TMemoryManager;
    HadPrevious: Boolean;
    Size: NativeUInt; // that a call returned
    procedure RegisterCopy;
    procedure UseFakePrevious;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure CopyIsAskedForItsBlocks;
    procedure CopyThatHasLeftIsNotAsked;
    procedure CopyThatDoesNotHoldABlockIsNotCalled;
    procedure ArenasAreShownToOtherCopies;
    procedure UnknownPointerIsRefused;
    procedure PreviousManagerGetsWhatNobodyKnows;
    procedure CopyComesBeforeThePreviousManager;
    procedure CopyReportsWhatItHoldsAndDoesNotOwn;
    procedure PreviousManagerDoesNotGetWhatACopyHolds;
    procedure MoreCopiesThanThereIsRoomForAreHarmless;
    procedure PlaceOfACopyThatHasLeftIsUsedAgain;
    procedure FreeMemReachesTheCopy;
    procedure MemSizeReachesTheCopy;
    procedure ReallocMemTakesTheBlockOver;
    procedure PlainProgramHasNoPreviousManager;
    procedure FreedBlockIsNotOurs;
  end;

implementation

uses
  testregistry, LaneMM.Layout, LaneMM.Hooks, LaneMM.Types, LaneMM.Foreign, LaneMM.Blocks;

const
  FakeSize = 48;

var
  // Stands for a foreign block: an address outside LaneMM's arenas.
  FakeBlock: array[0..FakeSize - 1] of Byte;
  AskedCopy, FreedByCopy, FreedByPrevious, ReportedByCopy: Integer;

function CopyOwns(P: Pointer): Boolean;
begin
  Inc(AskedCopy);
  Result := P = @FakeBlock;
end;

procedure CopyReportInvalid(P: Pointer; Call: TInvalidCall);
begin
  Inc(ReportedByCopy);
end;

function CopyFree(P: Pointer): TSize;
begin
  Inc(FreedByCopy);
  Result := FakeSize;
end;

function CopySize(P: Pointer): TSize;
begin
  Result := FakeSize;
end;

function PreviousFree(P: Pointer): TSize;
begin
  Inc(FreedByPrevious);
  Result := FakeSize + 1;
end;

function PreviousSize(P: Pointer): TSize;
begin
  Result := FakeSize + 1;
end;

procedure TForeignTests.SetUp;
begin
  Previous := Process.Previous;
  HadPrevious := Process.HasPrevious;
  AskedCopy := 0;
  FreedByCopy := 0;
  FreedByPrevious := 0;
  ReportedByCopy := 0;
  FillPattern(@FakeBlock, FakeSize, 1);
end;

procedure TForeignTests.TearDown;
begin
  ForeignStop(CopyOwns);
  Process.Previous := Previous;
  Process.HasPrevious := HadPrevious;
end;

// ForeignStart takes the installed manager, LaneMM itself here, for the previous one. The copy's arena
// holds the bytes of the block after the first, too, where no block begins.
procedure TForeignTests.RegisterCopy;
var
  Calls: TCopyCalls;
  OwnRanges: Pointer;
begin
  Calls.Owns := CopyOwns;
  Calls.FreeBlock := CopyFree;
  Calls.SizeOfBlock := CopySize;
  Calls.ReportInvalid := CopyReportInvalid;
  OwnRanges := Process.Ranges;
  ForeignStart(Calls);
  if Process.Ranges <> OwnRanges then
  begin
    Process.Ranges^[0].First := NativeUInt(@FakeBlock);
    Process.Ranges^[0].Limit := NativeUInt(@FakeBlock) + FakeSize;
  end;
  Process.Ranges := OwnRanges;
  Process.Previous := Previous;
  Process.HasPrevious := HadPrevious;
end;

procedure TForeignTests.UseFakePrevious;
begin
  Process.Previous.FreeMem := PreviousFree;
  Process.Previous.MemSize := PreviousSize;
  Process.HasPrevious := True;
end;

procedure TForeignTests.CopyIsAskedForItsBlocks;
begin
  RegisterCopy;
  AssertTrue('size', ForeignSize(@FakeBlock, Size));
  Same(FakeSize, Size, 'size');
  AssertTrue('free', ForeignFree(@FakeBlock, Size));
  Same(FakeSize, Size, 'result');
  Same(1, FreedByCopy, 'blocks freed');
end;

procedure TForeignTests.CopyThatHasLeftIsNotAsked;
begin
  RegisterCopy;
  ForeignStop(CopyOwns);
  AssertFalse('free', ForeignFree(@FakeBlock, Size));
  Same(0, FreedByCopy, 'blocks freed');
end;

// It may be unloaded at this moment.
procedure TForeignTests.CopyThatDoesNotHoldABlockIsNotCalled;
begin
  RegisterCopy;
  AssertFalse('free', ForeignFree(@FreedByCopy, Size));
  AssertFalse('size', ForeignSize(PByte(@FakeBlock) + FakeSize, Size));
  AssertFalse('report', ForeignReportInvalid(PByte(@FakeBlock) - 1, icFree));
  Same(0, AskedCopy, 'calls');
end;

procedure TForeignTests.ArenasAreShownToOtherCopies;
var
  P: Pointer;
begin
  P := GetMem(100);
  AssertTrue('shown', Process.Ranges <> nil);
  AssertTrue('first', Process.Ranges^[0].First <= NativeUInt(P));
  AssertTrue('limit', Process.Ranges^[0].Limit > NativeUInt(P));
  FreeMem(P);
end;

procedure TForeignTests.UnknownPointerIsRefused;
begin
  RegisterCopy;
  AssertFalse('free', ForeignFree(@FreedByCopy, Size));
  AssertFalse('size', ForeignSize(@FreedByCopy, Size));
  Same(InvalidPointer, ErrorOfFree(@FreedByCopy), 'FreeMem');
  Same(0, FreedByCopy, 'blocks freed');
end;

procedure TForeignTests.PreviousManagerGetsWhatNobodyKnows;
begin
  UseFakePrevious;
  AssertTrue('size', ForeignSize(@FakeBlock, Size));
  Same(FakeSize + 1, Size, 'size');
  AssertTrue('free', ForeignFree(@FakeBlock, Size));
  Same(1, FreedByPrevious, 'blocks freed');
end;

procedure TForeignTests.CopyComesBeforeThePreviousManager;
begin
  RegisterCopy;
  UseFakePrevious;
  AssertTrue('free', ForeignFree(@FakeBlock, Size));
  Same(1, FreedByCopy, 'blocks freed by the copy');
  Same(0, FreedByPrevious, 'blocks freed by the previous manager');
end;

procedure TForeignTests.CopyReportsWhatItHoldsAndDoesNotOwn;
begin
  RegisterCopy;
  Same(InvalidPointer, ErrorOfFree(@FakeBlock[1]), 'FreeMem');
  Same(1, ReportedByCopy, 'reports');
  ForeignStop(CopyOwns);
  Same(InvalidPointer, ErrorOfFree(@FakeBlock[1]), 'FreeMem without the copy');
  Same(1, ReportedByCopy, 'reports without the copy');
  Same(0, FreedByCopy, 'blocks freed');
end;

procedure TForeignTests.PreviousManagerDoesNotGetWhatACopyHolds;
begin
  RegisterCopy;
  UseFakePrevious;
  Same(InvalidPointer, ErrorOfFree(@FakeBlock[1]), 'FreeMem');
  Same(0, FreedByPrevious, 'blocks freed');
end;

procedure TForeignTests.MoreCopiesThanThereIsRoomForAreHarmless;
var
  Index: Integer;
begin
  for Index := 1 to 200 do
    RegisterCopy;
  AssertTrue('known', ForeignSize(@FakeBlock, Size));
  AssertTrue('heap works', HeapWorks);
  ForeignStop(CopyOwns);
  AssertFalse('unknown', ForeignSize(@FakeBlock, Size));
end;

procedure TForeignTests.PlaceOfACopyThatHasLeftIsUsedAgain;
var
  Index: Integer;
begin
  for Index := 1 to 200 do
  begin
    RegisterCopy;
    AssertTrue('known', ForeignSize(@FakeBlock, Size));
    ForeignStop(CopyOwns);
  end;
end;

procedure TForeignTests.FreeMemReachesTheCopy;
begin
  RegisterCopy;
  Same(FakeSize, FreeMem(@FakeBlock), 'result');
  Same(1, FreedByCopy, 'blocks freed');
end;

procedure TForeignTests.MemSizeReachesTheCopy;
begin
  RegisterCopy;
  Same(FakeSize, MemSize(@FakeBlock), 'usable size');
end;

procedure TForeignTests.ReallocMemTakesTheBlockOver;
var
  P: Pointer;
begin
  RegisterCopy;
  P := @FakeBlock;
  ReallocMem(P, 1000);
  AssertTrue('a new block', P <> @FakeBlock);
  AssertTrue('contents', HasPattern(P, FakeSize, 1));
  Same(1, FreedByCopy, 'blocks freed');
  FreeMem(P);
  Same(1, FreedByCopy, 'blocks freed after FreeMem');
end;

procedure TForeignTests.PlainProgramHasNoPreviousManager;
begin
  AssertFalse('LaneMM comes first here', HadPrevious);
end;

procedure TForeignTests.FreedBlockIsNotOurs;
var
  P: Pointer;
begin
  GetMem(P, 100);
  AssertTrue('in use', BlockIsOurs(P));
  FreeMem(P);
  AssertFalse('freed', BlockIsOurs(P));
end;

initialization
  RegisterTest(TForeignTests);
end.
