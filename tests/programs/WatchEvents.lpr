/// Plants what the event log is to find, at known lines: run it with LANEMM=contention,growth.
///   frees N     the main thread frees N blocks of 100 bytes of a sleeping thread
///   growth N    an array grows by one element at a time, to N elements of four bytes
///   text N      an AnsiString grows by one character at a time, to N characters
///   list N      a list grows to N elements
///   waits N     N times a thread gets a large block while another keeps the lock of the arena
///   misses N    a thread frees N large blocks while another keeps that lock; N at most 30
///   none        threads keep to their own blocks
/// A second word says how the program ends: end, halt, exception or signal.
program WatchEvents;

{$mode delphi}{$H+}
{$unitpath ../../src/core} // behind the door

uses
  LaneMM, cthreads, SysUtils, Classes, BaseUnix, SyncObjs, LaneMM.Types, LaneMM.Atomic,
  LaneMM.Lock;

const
  MaxBlocks = 500;
  LargeSize = 100000; // so few of them do not start the purge thread, which takes locks, too

var
  Blocks: array[0..MaxBlocks - 1] of Pointer;
  Count: Integer;
  Filled, Finished: TEvent;

procedure FreeBlock(Index: Integer);
begin
  FreeMem(Blocks[Index]); // planted: remote free
end;

function Producer(Unused: Pointer): PtrInt;
var
  Index: Integer;
begin
  for Index := 0 to Count - 1 do
    GetMem(Blocks[Index], 100);
  Filled.SetEvent;
  Finished.WaitFor(INFINITE);
  Result := 0;
end;

procedure PlantFrees;
var
  Thread: TThreadID;
  Index: Integer;
begin
  Filled := TEvent.Create(nil, True, False, '');
  Finished := TEvent.Create(nil, True, False, '');
  Thread := BeginThread(Producer, nil);
  Filled.WaitFor(INFINITE);
  for Index := 0 to Count - 1 do
    FreeBlock(Index);
  Finished.SetEvent;
  WaitForThreadTerminate(Thread, 0);
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

function Waiter(Unused: Pointer): PtrInt;
var
  Index: Integer;
  Block: Pointer;
begin
  for Index := 1 to Count do
  begin
    Filled.WaitFor(INFINITE);
    GetMem(Block, LargeSize); // planted: wait
    FreeMem(Block);
    Finished.SetEvent;
  end;
  Result := 0;
end;

procedure PlantWaits;
var
  Thread: TThreadID;
  Index: Integer;
  Before: NativeUInt;
begin
  Filled := TEvent.Create(nil, False, False, '');
  Finished := TEvent.Create(nil, False, False, '');
  Thread := BeginThread(Waiter, nil);
  for Index := 1 to Count do
  begin
    LockEnter(Process.ArenaLock);
    Before := LoadAcquire(Process.ArenaLock.Contended);
    Filled.SetEvent;
    while LoadAcquire(Process.ArenaLock.Contended) = Before do
      ThreadSwitch;
    LockLeave(Process.ArenaLock);
    Finished.WaitFor(INFINITE);
  end;
  WaitForThreadTerminate(Thread, 0);
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
  LockEnter(Process.ArenaLock);
  Filled.SetEvent;
  Finished.WaitFor(INFINITE);
  LockLeave(Process.ArenaLock);
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

procedure Plant(const What: string);
begin
  if What = 'frees' then
    PlantFrees
  else if What = 'growth' then
    PlantGrowth
  else if What = 'text' then
    PlantText
  else if What = 'list' then
    PlantList
  else if What = 'waits' then
    PlantWaits
  else if What = 'misses' then
    PlantMisses
  else if What = 'none' then
    RunThreads(Loner);
end;

procedure EndAs(const How: string);
begin
  if How = 'halt' then
    Halt(3)
  else if How = 'exception' then
    raise Exception.Create('planted')
  else if How = 'signal' then
    FpKill(FpGetPid, SIGTERM);
end;

begin
  Count := StrToIntDef(ParamStr(2), 0);
  Plant(ParamStr(1));
  EndAs(ParamStr(3));
end.
