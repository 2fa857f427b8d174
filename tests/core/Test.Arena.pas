/// Tests of LaneMM.Arena, each in a child process: another arena, or memory that the system has refused,
/// would stay.
unit Test.Arena;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.Types;

type
  TArenaTests = class(TQuietTest)
  strict private
    // Of a full arena that FrontierTake has left.
    Tail: PSpan;
    TailCount: NativeUInt;
    function Arena: PArena;
    function Take(SliceCount: NativeUInt): PSpan;
    procedure LeaveSlices(SliceCount: NativeUInt);
    {$ifdef LINUX}
    function CanGrow: Boolean;
    {$endif}
  strict protected
    class function IsInChild: Boolean; override;
  protected
    procedure SetUp; override;
  published
    procedure SlicesAreTakenInOrder;
    {$ifdef CPU64} // with 32 bits the tests of growth would have no addresses left
    procedure LittleIsAccessibleAheadWhileNarrow;
    {$endif}
    procedure SlicesReadAsZerosAndHaveRecords;
    procedure SpanAtTheFrontierGrows;
    procedure OtherSpansDoNotGrow;
    {$ifdef LINUX}
    procedure RefusedMemoryTakesNoSlices;
    {$endif}
    {$if defined(LINUX) and defined(CPUX86_64)} // an emulator needs mappings of its own
    procedure SlicesCanBeHadWithoutRoomForMappings;
    {$endif}
    procedure FullArenaIsFollowedByANewOne;
    procedure RestOfAFullArenaBecomesFree;
    {$ifdef LINUX}
    procedure ArenaGrowsWhereAddressesAreFree;
    procedure ArenaEndsAtAddressesOfOthers;
    procedure AddressesThatAThreadPublishesLateAreUsedNext;
    procedure OlderArenaGrowsWhenItsAddressesBecomeFree;
    {$endif}
  end;

implementation

uses
  Math, testregistry, LaneMM.Layout, LaneMM.Bits, LaneMM.Os, LaneMM.Arena, LaneMM.Shards;

const
  // More slices than are committed ahead.
  ManySlices = 1536;

class function TArenaTests.IsInChild: Boolean;
begin
  Result := True;
end;

procedure TArenaTests.SetUp;
begin
  inherited;
  ArenaWithNew(ManySlices + 10);
end;

function TArenaTests.Arena: PArena;
begin
  Result := NewestArena;
end;

function TArenaTests.Take(SliceCount: NativeUInt): PSpan;
begin
  Result := FrontierTake(SliceCount, Tail, TailCount);
  AssertTrue('taken', Result <> nil);
  AssertTrue('no new arena', Tail = nil);
end;

procedure TArenaTests.SlicesAreTakenInOrder;
var
  First, Second: PSpan;
  Last: NativeUInt;
begin
  Last := Arena^.Frontier;
  First := Take(3);
  Second := Take(5);
  AssertTrue('first', First = Arena^.Spans + Last);
  AssertTrue('second', Second = First + 3);
  Same(Last + 8, Arena^.Frontier, 'frontier');
  GiveBackNew(First, 8);
end;

{$ifdef CPU64}
procedure TArenaTests.LittleIsAccessibleAheadWhileNarrow;
const
  MostAhead = 16; // 1 MB
var
  First: PSpan;
  SliceCount: NativeUInt;
begin
  Process.IsNarrow := True;
  SliceCount := Arena^.Committed - Arena^.Frontier + 3; // more than are accessible
  First := Take(SliceCount);
  Process.IsNarrow := False;
  AssertTrue('slices ahead', Arena^.Committed - Arena^.Frontier < MostAhead);
  GiveBackNew(First, SliceCount);
end;
{$endif}

procedure TArenaTests.SlicesReadAsZerosAndHaveRecords;
var
  Span: PSpan;
begin
  Span := Take(ManySlices);
  AssertTrue('record', ArenaSpan(Span^.Start) = Span);
  AssertTrue('last record', ArenaSpan(Span^.Start + ManySlices * SliceSize - 1)
    = Span + ManySlices - 1);
  AssertTrue('committed', OsUse(Span^.Start, ManySlices * SliceSize));
  AssertTrue('zero', IsZero(Span^.Start, SliceSize));
  AssertTrue('zero at the end', IsZero(Span^.Start + (ManySlices - 1) * SliceSize, SliceSize));
  GiveBackNew(Span, ManySlices);
end;

procedure TArenaTests.SpanAtTheFrontierGrows;
var
  Span: PSpan;
begin
  Span := Take(3);
  AssertTrue('grown', FrontierGrow(Span + 3, ManySlices));
  AssertTrue('record', ArenaSpan(Span^.Start + (ManySlices + 3) * SliceSize - 1)
    = Span + ManySlices + 2);
  GiveBackNew(Span, ManySlices + 3);
end;

procedure TArenaTests.OtherSpansDoNotGrow;
var
  Span: PSpan;
  Last: NativeUInt;
begin
  Span := Take(5);
  Last := Arena^.Frontier;
  AssertFalse('before the frontier', FrontierGrow(Span + 4, 1));
  AssertFalse('behind the frontier', FrontierGrow(Span + 6, 1));
  AssertFalse('past the end of the arena', FrontierGrow(Span + 5, Arena^.MostSlices - Last + 1));
  Same(Last, Arena^.Frontier, 'frontier');
  GiveBackNew(Span, 5);
end;

{$ifdef LINUX} // Windows commits no memory here, see Test.Os.Windows
procedure TArenaTests.RefusedMemoryTakesNoSlices;
var
  Span: PSpan;
  Last: NativeUInt;
begin
  while Arena^.Reserved - Arena^.Committed < ManySlices do
    Take(Arena^.Reserved - Arena^.Frontier + 1);
  Last := Arena^.Frontier;
  // Addresses that were released cannot be committed.
  OsRelease(Arena^.Base + (Arena^.Committed + ManySlices div 2) * SliceSize, SliceSize);
  Span := FrontierTake(ManySlices, Tail, TailCount);
  AssertTrue('refused', Span = nil);
  AssertTrue('no new arena', Tail = nil);
  Same(Last, Arena^.Frontier, 'frontier');
  AssertTrue('less is there', Take(10) = Arena^.Spans + Last);
end;
{$endif}

{$if defined(LINUX) and defined(CPUX86_64)}
// Takes all mappings that the process may have: the system joins neighbours that are alike, so each
// pair of pages is two. Where it may have far more than is usual, many.
procedure TakeAllMappings;
const
  MostPairs = 200000;
var
  Count: Integer;
  Pair: Pointer;
begin
  Count := 0;
  repeat
    Pair := OsTakePages(2 * OsPageSize);
    Inc(Count);
  until (Pair = nil) or not OsForbid(Pair, OsPageSize) or (Count = MostPairs);
end;

procedure TArenaTests.SlicesCanBeHadWithoutRoomForMappings;
var
  Span: PSpan;
begin
  while Arena^.Reserved - Arena^.Committed < 3 * ManySlices do
    Take(Arena^.Reserved - Arena^.Frontier + 1);
  Take(Arena^.Committed - Arena^.Frontier + 1);
  TakeAllMappings;
  Span := FrontierTake(ManySlices, Tail, TailCount);
  AssertTrue('taken', Span <> nil);
  FillChar(Span^.Start^, ManySlices * SliceSize, 1);
end;
{$endif}

// Makes the newest arena one that has this many slices left.
procedure TArenaTests.LeaveSlices(SliceCount: NativeUInt);
begin
  Arena^.Reserved := Arena^.Frontier + SliceCount;
  Arena^.MostSlices := Arena^.Reserved;
end;

procedure TArenaTests.FullArenaIsFollowedByANewOne;
var
  Last: PArena;
  Frontier: NativeUInt;
  Span: PSpan;
begin
  LeaveSlices(10);
  Last := Arena;
  Frontier := Last^.Frontier;
  Span := FrontierTake(20, Tail, TailCount);
  AssertTrue('taken', Span <> nil);
  AssertTrue('a new arena', Arena <> Last);
  AssertTrue('its first slice', Span = Arena^.Spans);
  AssertTrue('found', ArenaSpan(Span^.Start + 19 * SliceSize) = Span + 19);
  AssertTrue('no slice after it', ArenaSpan(Arena^.Base + Arena^.Committed * SliceSize) = nil);
  AssertTrue('committed', OsUse(Span^.Start, 20 * SliceSize));
  FillChar(Span^.Start^, 20 * SliceSize, 1);
  AssertTrue('the rest', Tail = Last^.Spans + Frontier);
  Same(10, TailCount, 'slices of the rest');
  Same(Last^.MostSlices, Last^.Frontier, 'frontier of the last arena');
end;

procedure TArenaTests.RestOfAFullArenaBecomesFree;
var
  Last: PArena;
  Span: PSpan;
  Free: NativeUInt;
begin
  Free := FreeSlices;
  LeaveSlices(10);
  Last := Arena;
  LockShards;
  Span := ShardsTake(ManySlices);
  UnlockShards;
  ShardsPurge(0); // what was released meanwhile becomes free
  AssertTrue('taken', Span <> nil);
  AssertTrue('a new arena', Arena <> Last);
  Same(Free + 10, FreeSlices, 'free slices');
end;

{$ifdef LINUX} // on Windows arenas do not grow
// Returns the bytes of the records of so many slices, from the record of the arena on.
function RecordBytes(Arena: PArena; SliceCount: NativeUInt): NativeUInt;
begin
  Result := AlignUp(NativeUInt(PByte(Arena^.Spans + SliceCount + 1) - PByte(Arena)), SliceSize);
end;

function IsFree(Place: PByte; Size: NativeUInt): Boolean;
begin
  Result := (Size = 0) or OsReserveAt(Place, Size);
  if Result and (Size > 0) then
    OsRelease(Place, Size);
end;

// Returns whether the newest arena may grow to twice its length, and the addresses for it are free.
function TArenaTests.CanGrow: Boolean;
var
  Size, Records: NativeUInt;
begin
  Size := Arena^.Reserved * SliceSize;
  Records := RecordBytes(Arena, Arena^.Reserved);
  Result := (Arena^.Reserved * 2 <= Arena^.MostSlices) and IsFree(Arena^.Base + Size, Size)
    and IsFree(PByte(Arena) + Records, RecordBytes(Arena, Arena^.Reserved * 2) - Records);
end;

procedure TArenaTests.ArenaGrowsWhereAddressesAreFree;
var
  Last, Count: NativeUInt;
  Span: PSpan;
begin
  while not CanGrow do
    ArenaWithNew(Arena^.Reserved - Arena^.Frontier + 1);
  Last := Arena^.Reserved;
  Count := Last - Arena^.Frontier + 1000; // more records than a granule has behind those of Last
  Span := Take(Count);
  Same(Last * 2, Arena^.Reserved, 'reserved slices');
  AssertTrue('found', ArenaSpan(Span^.Start + Count * SliceSize - 1) = Span + Count - 1);
  FillChar((Span^.Start + (Count - 10) * SliceSize)^, 10 * SliceSize, 1);
end;

procedure TArenaTests.ArenaEndsAtAddressesOfOthers;
var
  Last: PArena;
  Count, Frontier: NativeUInt;
  Span: PSpan;
begin
  while Arena^.Reserved - Arena^.Frontier < 10 do
    Take(10);
  Last := Arena;
  Frontier := Last^.Frontier;
  Count := Last^.Reserved - Frontier;
  AssertTrue('occupied', OsReserveAt(Last^.Base + Last^.Reserved * SliceSize, SliceSize));
  Span := FrontierTake(Count + 1, Tail, TailCount);
  AssertTrue('taken', Span <> nil);
  AssertTrue('a new arena', Arena <> Last);
  AssertTrue('the rest', Tail = Last^.Spans + Frontier);
  Same(Count, TailCount, 'slices of the rest');
end;

// A thread was stopped after it had reserved the next addresses of an arena, and their records.
procedure TArenaTests.AddressesThatAThreadPublishesLateAreUsedNext;
var
  Last: PArena;
  Reserved: NativeUInt;
  Records: NativeUInt;
begin
  while not CanGrow do
    ArenaWithNew(Arena^.Reserved - Arena^.Frontier + 1);
  Last := Arena;
  Reserved := Last^.Reserved;
  AssertTrue('reserved', OsReserveAt(Last^.Base + Reserved * SliceSize, Reserved * SliceSize));
  Records := RecordBytes(Last, Reserved);
  AssertTrue('records', OsReserveAt(PByte(Last) + Records, RecordBytes(Last, Reserved * 2) - Records));
  ArenaWithNew(Reserved - Last^.Frontier + 1);
  AssertTrue('another arena', Arena <> Last);
  // Now it goes on.
  Last^.Reserved := Reserved * 2;
  AssertTrue('the next addresses',
    FrontierTake(Min(ManySlices, Reserved), Tail, TailCount) = Last^.Spans + Reserved);
end;

// The stack of a thread lay behind the arena, until the thread ended.
procedure TArenaTests.OlderArenaGrowsWhenItsAddressesBecomeFree;
var
  First: PArena;
  Reserved, Count: NativeUInt;
  Stack: PByte;
  Span: PSpan;
begin
  while not CanGrow do
    ArenaWithNew(Arena^.Reserved - Arena^.Frontier + 1);
  First := Arena;
  Reserved := First^.Reserved;
  Count := Reserved - First^.Frontier + 1;
  Stack := First^.Base + Reserved * SliceSize;
  AssertTrue('occupied', OsReserveAt(Stack, SliceSize));
  FrontierTake(Count, Tail, TailCount);
  AssertTrue('a new arena', Arena <> First);
  OsRelease(Stack, SliceSize);
  Span := FrontierTake(Arena^.Reserved - Arena^.Frontier + 1, Tail, TailCount);
  AssertTrue('the older arena grows', Span = First^.Spans + Reserved);
  // Tests that ask for new slices get an arena that gives them.
  ArenaWithNew(ManySlices);
  SlicesAreTakenInOrder;
end;
{$endif}

initialization
  RegisterTest(TArenaTests);
end.
