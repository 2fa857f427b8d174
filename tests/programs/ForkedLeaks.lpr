/// Leaks blocks of several sizes, and forks: only the child ends with a report.
///   ForkedLeaks none     the child allocates nothing
///   ForkedLeaks freed    it frees all that it allocates
///   ForkedLeaks own      it leaks blocks of its own, from two threads, one after a child of its own
///                        that allocates nothing
///   ForkedLeaks inherited   it puts a block of its own into one that it inherited
program ForkedLeaks;

{$mode delphi}{$H+}{$pointermath on}
{$unitpath ..}

uses
  LaneMM, cthreads, BaseUnix, Forking;

const
  // The child's blocks are so many that it needs more than the memory at hand.
  InheritedCount = 3000;
  OwnCount = 1000;
  OwnSize = 700;

var
  What: string;
  Legacy: array[1..InheritedCount] of PPointer;

procedure LeaveInheritance;
var
  Index: Integer;
begin
  for Index := 1 to InheritedCount do
    Legacy[Index] := AllocMem(16 + Index mod 100 * 8);
end;

function LeakOwn(Unused: Pointer): PtrInt;
var
  Index: Integer;
begin
  for Index := 1 to OwnCount do
    GetMem(OwnSize); // planted: leak of the child
  Result := 0;
end;

procedure FreeOwn;
var
  Blocks: array[1..OwnCount] of Pointer;
  Index: Integer;
begin
  for Index := 1 to OwnCount do
    GetMem(Blocks[Index], OwnSize);
  for Index := 1 to OwnCount do
    FreeMem(Blocks[Index]);
end;

procedure Await(Child: TPid);
var
  Status: Integer;
begin
  FpWaitPid(Child, Status, 0);
  if not WIfExited(Status) or (WExitStatus(Status) <> 0) then
    FpExit(1);
end;

procedure Grandchild;
var
  Child: TPid;
begin
  Child := ForkProcess;
  if Child = 0 then
    Halt(0);
  Await(Child);
end;

procedure RunChild;
begin
  if What = 'freed' then
    FreeOwn
  else if What = 'inherited' then
    Legacy[InheritedCount div 2]^ := GetMem(OwnSize) // planted: leak in a block of the parent
  else if What = 'own' then
  begin
    LeakOwn(nil);
    Grandchild;
    WaitForThreadTerminate(BeginThread(LeakOwn), 0);
  end;
  Halt(0);
end;

var
  Child: TPid;

begin
  What := ParamStr(1);
  LeaveInheritance;
  Child := ForkProcess;
  if Child = 0 then
    RunChild;
  Await(Child);
  FpExit(0);
end.
