/// Plants events and forks: the child, which plants others, logs its own and no others.
///   WatchFork            both end as programs do
///   WatchFork child      the parent leaves no log
/// Run it with LANEMM=contention,growth,profile or some of them.
program WatchFork;

{$mode delphi}{$H+}
{$unitpath ..}

uses
  LaneMM, cthreads, BaseUnix, Forking;

const
  BlockCount = 300;
  LargeSize = 100000;

var
  Blocks: array[1..BlockCount] of Pointer;
  Kept: array[1..BlockCount] of Pointer;
  BlocksWanted: Integer;
  IsFilled, IsOver: LongInt;

function GetInThread(Unused: Pointer): PtrInt;
var
  Index: Integer;
begin
  for Index := 1 to BlocksWanted do
    GetMem(Blocks[Index], 100);
  InterlockedIncrement(IsFilled);
  while InterlockedCompareExchange(IsOver, 0, 0) = 0 do
    ThreadSwitch;
  Result := 0;
end;

// Blocks of a thread that lives.
procedure GetOthers(Count: Integer; out Thread: TThreadID);
begin
  IsFilled := 0;
  IsOver := 0;
  BlocksWanted := Count;
  Thread := BeginThread(GetInThread);
  while InterlockedCompareExchange(IsFilled, 0, 0) = 0 do
    ThreadSwitch;
end;

procedure PlantInParent;
var
  Items: array of LongInt;
  Thread: TThreadID;
  Index: Integer;
begin
  SetLength(Items, 1);
  for Index := 2 to 1001 do
    SetLength(Items, Index); // planted: growth in the parent
  GetOthers(300, Thread);
  for Index := 1 to 300 do
    FreeMem(Blocks[Index]); // planted: free in the parent
  InterlockedIncrement(IsOver);
  WaitForThreadTerminate(Thread, 0);
  for Index := 1 to BlockCount do
    GetMem(Kept[Index], LargeSize);
end;

// Frees the blocks of the parent, and allocates some itself.
procedure PlantInChild;
var
  Items: array of LongInt;
  Thread: TThreadID;
  Index: Integer;
begin
  for Index := 1 to BlockCount do
    FreeMem(Kept[Index]);
  SetLength(Items, 1);
  for Index := 2 to 701 do
    SetLength(Items, Index); // planted: growth in the child
  GetOthers(200, Thread);
  for Index := 1 to 200 do
    FreeMem(Blocks[Index]); // planted: free in the child
  InterlockedIncrement(IsOver);
  WaitForThreadTerminate(Thread, 0);
  for Index := 1 to BlockCount do
    GetMem(Kept[Index], LargeSize);
end;

var
  Child: TPid;
  Status: Integer;

begin
  PlantInParent;
  Child := ForkProcess;
  if Child = 0 then
  begin
    PlantInChild;
    Halt(0);
  end;
  FpWaitPid(Child, Status, 0);
  if not WIfExited(Status) or (WExitStatus(Status) <> 0) then
    FpExit(1);
  if ParamStr(1) = 'child' then
    FpExit(0);
end.
