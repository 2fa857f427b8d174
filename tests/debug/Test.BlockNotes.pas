/// Tests of LaneMM.BlockNotes.
unit Test.BlockNotes;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM;

type
  TBlockNotesTests = class(TLaneTest)
  strict private
    Noted: Pointer;
    Seen: Cardinal;
    function Info(P: Pointer): TLaneMM_BlockInfo;
    function GetHere(Size: NativeUInt): Pointer;
    procedure IsFrom(P: Pointer; First, Limit: CodePointer);
    procedure GetNoted;
    procedure MoveIt;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure BlocksOfAnySizeAreNoted;
    procedure NumbersRise;
    procedure BlockOfZerosIsNoted;
    procedure BlockThatMovesIsNotedAnew;
    procedure BlockResizedInPlaceKeepsItsNote;
    procedure SizeIsTheOneThatWasRequested;
    procedure BlockUsedAgainHasTheLaterNote;
    procedure NoteNamesTheThread;
    procedure BlocksFromBeforeHaveNoNote;
    procedure NotesAreForgottenWhenSwitchedOnAgain;
    procedure NotesTakeLittleMoreThanTheirBlocksNeed;
    procedure SmallerBlocksInTheSamePlaceAreAllNoted;
    procedure NormalBlockResizedInDebugModeIsNoted;
    procedure AllWatchersSeeTheCalls;
    procedure AlignedBlocksAreNotedOnceThereAreNotes;
    procedure AlignedBlocksAreDebugBlocksOnceDebugModeHasStarted;
  end;

implementation

uses
  testregistry, LaneMM.Layout, LaneMM.Types, LaneMM.Hooks, LaneMM.Os, LaneMM.Arena, LaneMM.SettingsState,
  LaneMM.Unwind, LaneMM.BacktraceTable, LaneMM.DebugState;

const
  Sizes: array[0..8] of NativeUInt = (1, 16, 100, 1000, 8192, 20000, 60000, 70000, 5 shl 20);

procedure TBlockNotesTests.SetUp;
begin
  LaneMM_Configure('stacks');
end;

procedure TBlockNotesTests.TearDown;
begin
  LaneMM_Configure('stacks=0,growth=0,profile=0');
end;

function TBlockNotesTests.Info(P: Pointer): TLaneMM_BlockInfo;
begin
  AssertTrue(LaneMM_BlockInfo(P, Result));
end;

function TBlockNotesTests.GetHere(Size: NativeUInt): Pointer;
begin
  GetMem(Result, Size);
end;

// One of the frames lies between the two addresses.
procedure TBlockNotesTests.IsFrom(P: Pointer; First, Limit: CodePointer);
var
  Stack: TBacktrace;
  Index, Found: Integer;
begin
  AssertTrue('it has a backtrace', BacktraceRead(Info(P).Stack, Stack));
  Found := 0;
  for Index := 0 to Stack.Count - 1 do
    Inc(Found, Ord((Stack.Frames[Index] > NativeUInt(First))
      and (Stack.Frames[Index] < NativeUInt(Limit))));
  Same(1, Found, 'frames of the routine');
end;

procedure TBlockNotesTests.BlocksOfAnySizeAreNoted;
var
  Blocks: array[0..99] of Pointer;
  Size: NativeUInt;
  Index: Integer;
begin
  for Size in Sizes do
  begin
    for Index := 0 to High(Blocks) do
      Blocks[Index] := GetHere(Size);
    for Index := 0 to High(Blocks) do
    begin
      IsFrom(Blocks[Index], @TBlockNotesTests.GetHere, @TBlockNotesTests.IsFrom);
      FreeMem(Blocks[Index]);
    end;
  end;
end;

// By 1, but for the numbers that another thread reserved meanwhile.
procedure TBlockNotesTests.NumbersRise;
var
  Blocks: array[0..99] of Pointer;
  Index: Integer;
begin
  for Index := 0 to High(Blocks) do
    GetMem(Blocks[Index], 10 + Index * 50);
  for Index := 1 to High(Blocks) do
    AtLeast(1, Int64(Info(Blocks[Index]).Number) - Int64(Info(Blocks[Index - 1]).Number),
      'numbers between');
  for Index := 0 to High(Blocks) do
    FreeMem(Blocks[Index]);
end;

procedure TBlockNotesTests.BlockOfZerosIsNoted;
var
  P: Pointer;
begin
  P := AllocMem(1000);
  AssertTrue(IsZero(P, 1000));
  IsFrom(P, @TBlockNotesTests.BlockOfZerosIsNoted, @TBlockNotesTests.MoveIt);
  FreeMem(P);
end;

procedure TBlockNotesTests.MoveIt;
begin
  ReallocMem(Noted, 3000);
end;

procedure TBlockNotesTests.BlockThatMovesIsNotedAnew;
var
  Number: NativeUInt;
begin
  Noted := GetHere(50);
  Number := Info(Noted).Number;
  MoveIt;
  AssertTrue('a later number', Info(Noted).Number > Number);
  IsFrom(Noted, @TBlockNotesTests.MoveIt, @TBlockNotesTests.BlockThatMovesIsNotedAnew);
  FreeMem(Noted);
end;

procedure TBlockNotesTests.BlockResizedInPlaceKeepsItsNote;
var
  P, Before: Pointer;
  Note: TLaneMM_BlockInfo;
begin
  P := GetHere(100);
  Before := P;
  Note := Info(P);
  ReallocMem(P, MemSize(P));
  AssertTrue('in place', P = Before);
  Same(Note.Number, Info(P).Number, 'number');
  Same(Note.Stack, Info(P).Stack, 'backtrace');
  FreeMem(P);
end;

procedure TBlockNotesTests.SizeIsTheOneThatWasRequested;
var
  P, Before, Empty: Pointer;
begin
  P := GetHere(100);
  Before := P;
  Same(100, Info(P).RequestedSize, 'requested');
  Same(MemSize(P), Info(P).UsableSize, 'usable');
  ReallocMem(P, 101);
  AssertTrue('in place', P = Before);
  Same(101, Info(P).RequestedSize, 'resized in place');
  GetMem(Empty, 0);
  Same(0, Info(Empty).RequestedSize, 'of no bytes');
  FreeMem(Empty);
  ReallocMem(P, 40001);
  Same(40001, Info(P).RequestedSize, 'moved');
  FreeMem(P);
end;

procedure TBlockNotesTests.BlockUsedAgainHasTheLaterNote;
var
  P, Again: Pointer;
  Number: NativeUInt;
begin
  P := GetHere(40);
  Number := Info(P).Number;
  FreeMem(P);
  GetMem(Again, 40);
  AssertTrue('the same block', P = Again);
  AssertTrue('a later number', Info(Again).Number > Number);
  IsFrom(Again, @TBlockNotesTests.BlockUsedAgainHasTheLaterNote,
    @TBlockNotesTests.NoteNamesTheThread);
  FreeMem(Again);
end;

procedure TBlockNotesTests.GetNoted;
begin
  GetMem(Noted, 200);
  Seen := Info(Noted).Thread;
end;

procedure TBlockNotesTests.NoteNamesTheThread;
var
  P: Pointer;
begin
  P := GetHere(200);
  InThread(GetNoted);
  Same(Seen, Info(Noted).Thread, 'thread');
  AssertTrue('two threads', Info(P).Thread <> Seen);
  AssertTrue('known', Info(P).Thread <> 0);
  FreeMem(Noted);
  FreeMem(P);
end;

procedure TBlockNotesTests.BlocksFromBeforeHaveNoNote;
var
  P: Pointer;
begin
  LaneMM_Configure('stacks=0');
  P := GetHere(70);
  LaneMM_Configure('stacks');
  Same(0, Info(P).Stack, 'backtrace');
  Same(0, Info(P).Number, 'number');
  FreeMem(P);
end;

procedure TBlockNotesTests.NotesAreForgottenWhenSwitchedOnAgain;
var
  P: Pointer;
begin
  P := GetHere(70);
  LaneMM_Configure('stacks=0');
  Same(0, Info(P).Stack, 'backtrace while it is off');
  FreeMem(P);
  P := GetHere(70);
  LaneMM_Configure('stacks');
  Same(0, Info(P).Stack, 'backtrace');
  FreeMem(P);
end;

// Returns the bytes that LaneMM has taken from the system for itself.
function TakenBytes: NativeUInt;
var
  Table: POsTakenTable;
  Index: Integer;
begin
  Result := 0;
  Table := POsTakenTable(Process.TakenPages);
  while Table <> nil do
  begin
    for Index := 0 to High(Table^.Ranges) do
      if Table^.Ranges[Index].First <> 0 then
        Inc(Result, Table^.Ranges[Index].Size);
    Table := Table^.Next;
  end;
end;

// A system with a limit of data charges for all of it.
procedure TBlockNotesTests.NotesTakeLittleMoreThanTheirBlocksNeed;
const
  Count = 40000;
  NoteBytes = 16;
  OneStock = 1 shl 20;
var
  Blocks: array of Pointer;
  Index: Integer;
  Before: NativeUInt;
begin
  SetLength(Blocks, Count);
  Before := TakenBytes;
  for Index := 0 to Count - 1 do
    GetMem(Blocks[Index], 1000);
  AtMost(2 * Count * NoteBytes + 2 * OneStock, TakenBytes - Before, 'bytes');
  IsFrom(Blocks[Count - 1], @TBlockNotesTests.NotesTakeLittleMoreThanTheirBlocksNeed,
    @TBlockNotesTests.SmallerBlocksInTheSamePlaceAreAllNoted);
  for Index := 0 to Count - 1 do
    FreeMem(Blocks[Index]);
end;

procedure TBlockNotesTests.SmallerBlocksInTheSamePlaceAreAllNoted;
const
  Count = 20000;
  Sizes: array[0..2] of Integer = (5000, 300, 24);
var
  Blocks: array of Pointer;
  Size, Index: Integer;
begin
  SetLength(Blocks, Count);
  for Size in Sizes do
  begin
    for Index := 0 to Count - 1 do
      GetMem(Blocks[Index], Size);
    for Index := 1 to Count - 1 do
      AssertTrue('number', Info(Blocks[Index]).Number > Info(Blocks[Index - 1]).Number);
    for Index := 0 to Count - 1 do
      FreeMem(Blocks[Index]);
  end;
end;

procedure TBlockNotesTests.NormalBlockResizedInDebugModeIsNoted;
begin
  Noted := GetHere(50);
  LaneMM_EnterDebugMode;
  try
    MoveIt;
  finally
    LaneMM_ExitDebugMode;
  end;
  AssertTrue('a normal block', Info(Noted).Kind <> skDebug);
  IsFrom(Noted, @TBlockNotesTests.MoveIt, @TBlockNotesTests.BlockThatMovesIsNotedAnew);
  FreeMem(Noted);
end;

procedure TBlockNotesTests.AllWatchersSeeTheCalls;
begin
  LaneMM_Configure('stacks,growth,profile');
  Noted := GetHere(50);
  IsFrom(Noted, @TBlockNotesTests.GetHere, @TBlockNotesTests.IsFrom);
  MoveIt;
  IsFrom(Noted, @TBlockNotesTests.MoveIt, @TBlockNotesTests.BlockThatMovesIsNotedAnew);
  FreeMem(Noted);
end;

// Another thread has read the setting, and is about to apply it.
procedure TBlockNotesTests.AlignedBlocksAreNotedOnceThereAreNotes;
var
  KeptHook: TBlockNoteCall;
  KeptNotes, P: Pointer;
begin
  KeptHook := Hooks.BlockNote;
  KeptNotes := Debug.Notes;
  Hooks.BlockNote := nil;
  Debug.Notes := nil;
  try
    P := LaneMM_GetMemAligned(100, 64);
  finally
    Debug.Notes := KeptNotes;
    Hooks.BlockNote := KeptHook;
  end;
  FreeMem(P);
  P := LaneMM_GetMemAligned(100, 64);
  AtLeast(1, Info(P).Number, 'allocation number');
  FreeMem(P);
end;

procedure TBlockNotesTests.AlignedBlocksAreDebugBlocksOnceDebugModeHasStarted;
var
  HadStarted, IsDebug: Boolean;
  P: Pointer;
begin
  HadStarted := Debug.IsStarted;
  Debug.IsStarted := False;
  Settings.Values[opDebug] := 1;
  try
    P := LaneMM_GetMemAligned(100, 64);
    IsDebug := ArenaSpan(P)^.Kind = skDebug;
  finally
    Settings.Values[opDebug] := 0;
    Debug.IsStarted := HadStarted;
  end;
  FreeMem(P);
  AssertFalse('a debug block', IsDebug);
end;

initialization
  RegisterTest(TBlockNotesTests);
end.
