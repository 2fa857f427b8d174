/// A thread that stands still, wherever it is, makes no other thread wait.
///
/// Three threads allocate, free and resize blocks. A signal stops one of them at a random
/// instruction, until both others have done a number of turns: no time is measured. If one of them
/// waits for the stopped thread, the program hangs, and says where the stopped thread is.
///
///   StoppedThreads [STOPS [SEED]]     stops for each range of sizes and each kind of work
program StoppedThreads;

{$mode delphi}{$pointermath on}

uses
  LaneMM, cthreads, BaseUnix, SysUtils, Promises, BareThreads, MarkedBlocks, ThreadSignals, LaneMM.Elf,
  LaneMM.Symbols, LaneMM.Text;

const
  StandardOutput = 1;
  DefaultStops = 100;
  LaneCount = 3;
  PlaceCount = 64;
  // What the others do while a thread stands: births and ends of threads among it.
  TurnsPerStop = 50;
  TurnsPerThread = 100;
  ShortPauseNs = 50000;
  LongestPauseUs = 1000;
  // So many short pauses, some seconds: the others stand still.
  PausesBeforeMessage = 50000;
  Smallest = 16;
  RegionCount = 2;

type
  /// How the work is done: each block stays in its thread; blocks are exchanged; by threads that
  /// end soon; beside a thread that trims, and is stopped, too; in scopes of two regions that all
  /// enter, with regions that each makes, resets and frees.
  TKind = (kiPlain, kiShared, kiSpawn, kiTrim, kiRegions);
  TRange = record
    First, Last: Cardinal;
  end;

  /// A sequence of turns, done by one thread, or by one thread after the other.
  PLane = ^TLane;
  TLane = record
    Blocks: array[0..PlaceCount - 1] of PBlock;
    State: Cardinal;
    TurnCount: Int64;
    Thread: Cardinal;
    IsInside: Boolean;       //< in a call of the memory manager
    Padding: array[0..15] of Int64;
  end;

  TStop = (stNone, stWanted, stStanding);

const
  KindNames: array[TKind] of string = ('plain', 'shared', 'spawn', 'trim', 'regions');
  Ranges: array[0..3] of TRange = ((First: Smallest; Last: 1000), (First: 1000; Last: 32000),
    (First: 33000; Last: 500000), (First: Smallest; Last: 2000000));

var
  Lanes: array[0..LaneCount] of TLane; // the last one trims
  Shared: array[0..PlaceCount - 1] of PBlock;
  Regions: array[0..RegionCount - 1] of TLaneMM_Region;
  Kind: TKind;
  Range: TRange;
  IsOver: Boolean;
  Stop: LongInt;           // a TStop
  Victim: PLane;
  Place: NativeUInt;       // where the stopped thread is
  StopsInside: Integer = 0; // in a call of the memory manager

// ---------------------------------------------------------------------------- turns

procedure Release(var Lane: TLane; var Block: PBlock);
begin
  Expect(MarkedRelease(Lane.IsInside, Block), 'a block keeps its contents');
end;

procedure Resize(var Lane: TLane; var Block: PBlock; Size: NativeUInt);
begin
  Expect(MarkedResize(Lane.IsInside, Block, Size), 'a block keeps its contents');
end;

// A size of the range; every doubling is as frequent as the next.
function SomeSize(var State: Cardinal): Cardinal;
var
  Top: Cardinal;
begin
  Top := Range.Last shr NextRandom(State, BsrDWord(Range.Last div Range.First) + 1);
  Result := Range.First + NextRandom(State, Top - Range.First + 1);
end;

// The size of the block, up to an eighth smaller or larger.
function SimilarSize(Block: PBlock; var State: Cardinal): Cardinal;
begin
  Result := Block^.Size - Block^.Size div 8 + NextRandom(State, Block^.Size div 4 + 1);
  if Result < Smallest then
    Result := Smallest;
end;

// Resizes that copy are rare, or the stops would all be in copies.
procedure Turn(var Lane: TLane);
var
  Block: ^PBlock;
begin
  Block := @Lane.Blocks[NextRandom(Lane.State, PlaceCount)];
  if Block^ = nil then
    MarkedMake(Lane.IsInside, Block^, SomeSize(Lane.State))
  else
    case NextRandom(Lane.State, 16) of
      0..2: Resize(Lane, Block^, SimilarSize(Block^, Lane.State));
      3: Resize(Lane, Block^, SomeSize(Lane.State));
      4..5:
        if Kind in [kiShared, kiRegions] then
          Block^ := InterlockedExchange(Pointer(Shared[NextRandom(Lane.State, PlaceCount)]), Block^)
        else
          Release(Lane, Block^);
    else
      Release(Lane, Block^);
    end;
  Inc(Lane.TurnCount);
end;

// A region of its own: made, filled, reset, filled and freed.
procedure UseOwnRegion(var Lane: TLane);
var
  Region: TLaneMM_Region;
  Round: Integer;
begin
  Region := LaneMM_RegionCreate('own', 0);
  LaneMM_RegionEnter(Region);
  for Round := 1 to 3 do
    GetMem(SomeSize(Lane.State));
  LaneMM_RegionLeave;
  Expect(LaneMM_RegionReset(Region), 'a region that no thread is in is reset');
  LaneMM_RegionGetMem(Region, SomeSize(Lane.State));
  Expect(LaneMM_RegionFree(Region), 'a region that no thread is in is freed');
end;

// A turn in the scope of a region that others are in, too; blocks are freed and resized in the scope
// of another one as well.
procedure TurnInRegion(var Lane: TLane);
begin
  Lane.IsInside := True;
  if NextRandom(Lane.State, 8) = 0 then
    UseOwnRegion(Lane);
  LaneMM_RegionEnter(Regions[NextRandom(Lane.State, RegionCount)]);
  Turn(Lane);
  Lane.IsInside := True;
  LaneMM_RegionLeave;
  Lane.IsInside := False;
end;

procedure WorkShortly(Lane: Pointer);
var
  Index: Integer;
begin
  PLane(Lane)^.Thread := ThreadNumber;
  for Index := 1 to TurnsPerThread do
    if Kind = kiRegions then
      TurnInRegion(PLane(Lane)^)
    else
      Turn(PLane(Lane)^);
end;

// A thread of the run-time library takes a lock of its own heap, which is not the one that is tested,
// at its start and end (rtl/inc/heap.inc).
procedure StartAndAwait(Lane: Pointer);
var
  Thread: TBareThread;
begin
  if BareStart(Thread, WorkShortly, Lane) then
    BareJoin(Thread);
end;

function Work(Lane: Pointer): PtrInt;
begin
  repeat
    if Kind = kiSpawn then
      StartAndAwait(Lane)
    else
      WorkShortly(Lane);
  until IsOver;
  Result := 0;
end;

function Trim(Lane: Pointer): PtrInt;
begin
  PLane(Lane)^.Thread := ThreadNumber;
  PLane(Lane)^.IsInside := True;
  repeat
    LaneMM_Trim;
    Inc(PLane(Lane)^.TurnCount);
  until IsOver;
  Result := 0;
end;

// ---------------------------------------------------------------------------- stops

// The C library's own, whose errno needs no thread that the run-time library knows.
function NanoSleep(Time, Rest: PTimeSpec): LongInt; cdecl; external 'c' name 'nanosleep';

procedure PauseNs(Ns: Cardinal);
var
  Time: TTimeSpec;
begin
  Time.tv_sec := 0;
  Time.tv_nsec := Ns;
  NanoSleep(@Time, nil);
end;

// The signal handler: only system calls. A signal that comes too late stops nothing.
procedure StandStill(Signal: LongInt; Info: PSigInfo; Context: PSigContext); cdecl;
var
  Index, Needed: Integer;
  Ends: array[0..LaneCount - 1] of Int64;
begin
  if InterlockedCompareExchange(Stop, Ord(stStanding), Ord(stWanted)) <> Ord(stWanted) then
    Exit;
  Place := SignalPlace(Context);
  Needed := TurnsPerStop;
  if Kind = kiSpawn then
    Needed := 2 * TurnsPerThread;
  for Index := 0 to LaneCount - 1 do
    Ends[Index] := Lanes[Index].TurnCount + Needed;
  for Index := 0 to LaneCount - 1 do
    while (@Lanes[Index] <> Victim) and (Lanes[Index].TurnCount < Ends[Index]) do
      PauseNs(ShortPauseNs);
  InterlockedExchange(Stop, Ord(stNone));
end;

function StopIs(State: TStop): Boolean;
begin
  Result := InterlockedCompareExchange(Stop, Ord(State), Ord(State)) = Ord(State);
end;

// Stops a thread by its number; false if it has ended before.
function StopBegin(Thread: Cardinal): Boolean;
begin
  InterlockedExchange(Stop, Ord(stWanted));
  if SignalTo(Thread, SIGUSR2) then
    repeat
      PauseNs(ShortPauseNs);
    until not StopIs(stWanted) or not SignalTo(Thread, 0);
  Result := InterlockedCompareExchange(Stop, Ord(stNone), Ord(stWanted)) <> Ord(stWanted);
end;

// Allocates nothing: the stopped thread may be the reason why nothing can be allocated.
procedure PrintPlace;
var
  Symbols: TSymbols;
  Elf: TElf;
  Text: TText;
  Symbol: PSymbol;
begin
  SymbolsOpen(Symbols, 1);
  SymbolsAdd(Symbols, Place + 1);
  SymbolsSort(Symbols);
  ElfOpen(Elf);
  ElfResolve(Elf, Symbols);
  Symbol := SymbolsFind(Symbols, Place + 1);
  if TextOpen(Text, 4096) then
  begin
    TextAdd(Text, '  threads stand still; the stopped one is in ');
    if (Symbol <> nil) and (Symbol^.Routine <> nil) then
      SymbolAddRoutine(Text, Symbol);
    TextAdd(Text, #10);
    TextWrite(Text, StandardOutput);
  end;
end;

// Returns when the stop is over.
procedure AwaitEnd;
var
  Pauses: Integer;
begin
  Pauses := 0;
  while StopIs(stStanding) do
  begin
    PauseNs(ShortPauseNs);
    Inc(Pauses);
    if Pauses = PausesBeforeMessage then
      PrintPlace;
  end;
end;

// Returns whether the thread was stopped in a call of the memory manager.
function StopOne(var State: Cardinal): Boolean;
begin
  repeat
    PauseNs(1000 * NextRandom(State, LongestPauseUs));
    if (Kind = kiTrim) and (NextRandom(State, 2) = 0) then
      Victim := @Lanes[LaneCount]
    else
      Victim := @Lanes[NextRandom(State, LaneCount)];
  until StopBegin(Victim^.Thread);
  Result := Victim^.IsInside;
  AwaitEnd;
end;

// ---------------------------------------------------------------------------- runs

procedure EmptyAll;
var
  Lane, Index: Integer;
begin
  for Index := 0 to PlaceCount - 1 do
  begin
    Release(Lanes[0], Shared[Index]);
    for Lane := 0 to LaneCount - 1 do
      Release(Lanes[Lane], Lanes[Lane].Blocks[Index]);
  end;
end;

procedure AwaitTurns;
var
  Index: Integer;
begin
  for Index := 0 to LaneCount - 1 + Ord(Kind = kiTrim) do
    while Lanes[Index].TurnCount = 0 do
      PauseNs(ShortPauseNs);
end;

// A thread of LaneMM may just have freed blocks in its hands, which count until it shelves them.
procedure ExpectNoBlock(Region: TLaneMM_Region);
var
  Pauses: Integer;
begin
  Pauses := 0;
  while (LaneMM_RegionState(Region).BlocksInUse > 0) and (Pauses < PausesBeforeMessage) do
  begin
    PauseNs(ShortPauseNs);
    Inc(Pauses);
  end;
  Expect(LaneMM_RegionState(Region).BlocksInUse = 0, 'no block of a region is left');
end;

procedure Run(StopCount: Integer; Seed: Cardinal);
var
  Threads: array[0..LaneCount] of TThreadID;
  Index, Inside: Integer;
begin
  Write(KindNames[Kind], ', ', Range.First, ' to ', Range.Last, ' bytes: ');
  Flush(Output);
  FillChar(Lanes, SizeOf(Lanes), 0);
  IsOver := False;
  for Index := 0 to RegionCount - 1 do
    Regions[Index] := LaneMM_RegionCreate('shared', 0);
  for Index := 0 to LaneCount - 1 do
  begin
    Lanes[Index].State := Seed + Cardinal(Index);
    Threads[Index] := BeginThread(Work, @Lanes[Index]);
  end;
  if Kind = kiTrim then
    Threads[LaneCount] := BeginThread(Trim, @Lanes[LaneCount]);
  AwaitTurns;
  Inside := 0;
  for Index := 1 to StopCount do
    Inc(Inside, Ord(StopOne(Seed)));
  IsOver := True;
  for Index := 0 to LaneCount - 1 + Ord(Kind = kiTrim) do
    WaitForThreadTerminate(Threads[Index], 0);
  EmptyAll;
  for Index := 0 to RegionCount - 1 do
  begin
    ExpectNoBlock(Regions[Index]);
    Expect(LaneMM_RegionFree(Regions[Index]), 'a region that all have left is freed');
  end;
  WriteLn(StopCount, ' stops, ', Inside, ' in a call of the memory manager');
  Inc(StopsInside, Inside);
end;

procedure Prepare;
var
  Action: SigActionRec;
begin
  FillChar(Action, SizeOf(Action), 0);
  Action.sa_handler := SigActionHandler(@StandStill);
  Action.sa_flags := SA_RESTART or SA_SIGINFO;
  FpSigAction(SIGUSR2, @Action, nil);
end;

var
  Seed: Cardinal;
begin
  Seed := StrToIntDef(ParamStr(2), GetTickCount64 and $FFFFFF);
  WriteLn('seed ', Seed);
  Prepare;
  for Kind in TKind do
    for Range in Ranges do
      Run(StrToIntDef(ParamStr(1), DefaultStops), Seed);
  // In a single run few stops may all be outside.
  Expect(StopsInside > 0, 'a thread is stopped in the memory manager');
  Finish;
end.
