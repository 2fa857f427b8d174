/// Plants what the event log is to find, at known lines: run it with LANEMM=contention,growth.
///   frees N     the main thread frees N blocks of 100 bytes of a sleeping thread
///   origins N   likewise; every third block was allocated at a second line
///   sizes N     likewise; the blocks have 100, 200 and 300 bytes in turn
///   late N      a thread frees N blocks of the main thread, and gets a heap half way
///   growth N    an array grows by one element at a time, to N elements of four bytes
///   callers N   as growth, called at two lines
///   text N      an AnsiString grows by one character at a time, to N characters
///   list N      a list grows to N elements
///   misses N    a thread frees N large blocks while another keeps the locks of all shards; N at
///               most 30
///   sweeps N    a thread trims N times while another keeps the locks of its own heap and of the
///               abandoned heap
///   starts N    N threads start and end, one after the other
///   crowd N     the same, then as frees
///   none        threads keep to their own blocks
/// A second word says how the program ends: end, halt, exception or signal; after user-signal, which
/// sends SIGUSR2, it goes on to its end.
program WatchEvents;

{$mode delphi}{$H+}
{$unitpath ../../src/core} // behind the door

uses
  LaneMM, cthreads, SysUtils, Classes, {$ifdef LINUX} BaseUnix, {$endif} SyncObjs, LaneMM.Layout, LaneMM.Types,
  LaneMM.Os, LaneMM.Lock;

const
  MaxBlocks = 500;
  LargeSize = (LongestKept + 1) * SliceSize; // no heap keeps its run

var
  Blocks: array[0..MaxBlocks - 1] of Pointer;
  Count: Integer;
  Sizes: Integer = 1;
  Filled, Finished: TEvent;

procedure FreeBlock(Index: Integer);
begin
  FreeMem(Blocks[Index]); // planted: remote free
end;

// Each block number Other is allocated at another line.
function Producer(Other: Pointer): PtrInt;
var
  Index: Integer;
begin
  for Index := 0 to Count - 1 do
    if (Index + 1) mod PtrInt(Other) <> 0 then
      GetMem(Blocks[Index], 100 * (1 + Index mod Sizes)) // planted: first origin
    else
      GetMem(Blocks[Index], 100); // planted: second origin
  Filled.SetEvent;
  Finished.WaitFor(INFINITE);
  Result := 0;
end;

procedure PlantFrees(Other: Integer);
var
  Thread: TThreadID;
  Index: Integer;
begin
  Filled := TEvent.Create(nil, True, False, '');
  Finished := TEvent.Create(nil, True, False, '');
  Thread := BeginThread(Producer, Pointer(Other));
  Filled.WaitFor(INFINITE);
  for Index := 0 to Count - 1 do
    FreeBlock(Index);
  Finished.SetEvent;
  WaitForThreadTerminate(Thread, 0);
end;

function LateOwner(Unused: Pointer): PtrInt;
var
  Index: Integer;
  Own: Pointer;
begin
  for Index := 0 to Count - 1 do
  begin
    if Index = Count div 2 then
    begin
      GetMem(Own, 100);
      FreeMem(Own);
    end;
    FreeBlock(Index);
  end;
  Result := 0;
end;

procedure PlantLate;
var
  Index: Integer;
begin
  for Index := 0 to Count - 1 do
    GetMem(Blocks[Index], 100);
  WaitForThreadTerminate(BeginThread(LateOwner, nil), 0);
end;

procedure PlantGrowth;
var
  Items: array of LongInt;
  Index: Integer;
begin
  SetLength(Items, 1);
  for Index := 2 to Count do
    SetLength(Items, Index); // planted: growth
end;

procedure PlantCallers;
begin
  PlantGrowth;
  PlantGrowth; // planted: second caller
end;

procedure PlantText;
var
  Text: AnsiString;
  Index: Integer;
begin
  Text := '';
  for Index := 1 to Count do
    Text := Text + 'x'; // planted: text
end;

procedure PlantList;
var
  List: TList;
  Index: Integer;
begin
  List := TList.Create;
  for Index := 1 to Count do
    List.Add(nil); // planted: list
  List.Free;
end;

function Freer(Unused: Pointer): PtrInt;
var
  Index: Integer;
begin
  Filled.WaitFor(INFINITE);
  for Index := 0 to Count - 1 do
    FreeMem(Blocks[Index]); // planted: miss
  Finished.SetEvent;
  Result := 0;
end;

procedure PlantMisses;
var
  Thread: TThreadID;
  Index: Integer;
begin
  Filled := TEvent.Create(nil, True, False, '');
  Finished := TEvent.Create(nil, True, False, '');
  for Index := 0 to Count - 1 do
    GetMem(Blocks[Index], LargeSize);
  Thread := BeginThread(Freer, nil);
  for Index := 1 to Process.ShardCount do
    LockEnter(Process.Shards[Index].Lock);
  Filled.SetEvent;
  Finished.WaitFor(INFINITE);
  for Index := 1 to Process.ShardCount do
    LockLeave(Process.Shards[Index].Lock);
  WaitForThreadTerminate(Thread, 0);
end;

function Sweeper(Unused: Pointer): PtrInt;
var
  Index: Integer;
begin
  Filled.WaitFor(INFINITE);
  for Index := 1 to Count do
    LaneMM_Trim; // planted: sweep
  Finished.SetEvent;
  Result := 0;
end;

procedure PlantSweeps;
var
  Thread: TThreadID;
begin
  Filled := TEvent.Create(nil, True, False, '');
  Finished := TEvent.Create(nil, True, False, '');
  Thread := BeginThread(Sweeper, nil);
  LockEnter(OsThreadHeap^.Lock);
  LockEnter(Process.Abandoned^.Lock);
  Filled.SetEvent;
  Finished.WaitFor(INFINITE);
  LockLeave(Process.Abandoned^.Lock);
  LockLeave(OsThreadHeap^.Lock);
  WaitForThreadTerminate(Thread, 0);
end;

function Loner(Unused: Pointer): PtrInt;
var
  Index: Integer;
  Block: Pointer;
begin
  for Index := 1 to Count do
  begin
    GetMem(Block, 100);
    FreeMem(Block);
  end;
  Result := 0;
end;

procedure RunThreads(Work: TThreadFunc);
var
  Threads: array[1..4] of TThreadID;
  Index: Integer;
begin
  for Index := 1 to 4 do
    Threads[Index] := BeginThread(Work, nil);
  for Index := 1 to 4 do
    WaitForThreadTerminate(Threads[Index], 0);
end;

function Idle(Unused: Pointer): PtrInt;
begin
  Result := 0;
end;

// The run-time library frees in each thread a block of the main thread.
procedure PlantStarts;
var
  Index: Integer;
begin
  for Index := 1 to Count do
    WaitForThreadTerminate(BeginThread(Idle, nil), 0);
end;

procedure Plant(const What: string);
begin
  if What = 'frees' then
    PlantFrees(MaxBlocks + 1)
  else if What = 'origins' then
    PlantFrees(3)
  else if What = 'sizes' then
  begin
    Sizes := 3;
    PlantFrees(MaxBlocks + 1);
  end
  else if What = 'late' then
    PlantLate
  else if What = 'growth' then
    PlantGrowth
  else if What = 'callers' then
    PlantCallers
  else if What = 'text' then
    PlantText
  else if What = 'list' then
    PlantList
  else if What = 'misses' then
    PlantMisses
  else if What = 'sweeps' then
    PlantSweeps
  else if (What = 'starts') or (What = 'crowd') then
    PlantStarts
  else if What = 'none' then
    RunThreads(Loner);
  if What = 'crowd' then
    PlantFrees(MaxBlocks + 1);
end;

procedure EndAs(const How: string);
begin
  if How = 'halt' then
    Halt(3)
  else if How = 'exception' then
    raise Exception.Create('planted');
  {$ifdef LINUX}
  if How = 'signal' then
    FpKill(FpGetPid, SIGTERM)
  else if How = 'user-signal' then
    FpKill(FpGetPid, SIGUSR2);
  {$endif}
end;

begin
  Count := StrToIntDef(ParamStr(2), 0);
  Plant(ParamStr(1));
  EndAs(ParamStr(3));
end.
