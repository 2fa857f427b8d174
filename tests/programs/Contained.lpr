/// Near the limit of a control group of the system a cache is asked to shrink, before the program is
/// killed. Exit code 3 where no such group can be made.
program Contained;

{$mode delphi}{$H+}

uses
  LaneMM, cthreads, SysUtils, MemoryGroup, ProcessInGroup, Promises;

const
  Megabyte = 1 shl 20;
  CannotSee = 3;
  PatienceMs = 20000;
  GroupBytes = 96 * Megabyte;
  PageSize = 16 * 1024;
  PageCount = 88 * Megabyte div PageSize;

var
  Pages: array[1..PageCount] of PByte;
  SeenUsed, SeenLimit: UInt64;
  IsCalled: Boolean;

function Nothing(Unused: Pointer): PtrInt;
begin
  Result := 0;
end;

procedure Shrink(Used, Limit: UInt64; Context: Pointer);
var
  Index: Integer;
begin
  if IsCalled then
    Exit;
  for Index := 1 to PageCount do
    FreeMem(Pages[Index]);
  SeenUsed := Used;
  SeenLimit := Limit;
  ReadWriteBarrier;
  IsCalled := True;
end;

/// Returns the exit code.
function FillGroup(const Group: TGroupFolder): Integer;
var
  Index: Integer;
  Start: QWord;
begin
  if (Group = '') or not GroupLimitTo(Group, GroupBytes) or not GroupEnter(Group) then
    Exit(CannotSee);
  for Index := 1 to PageCount do
    Pages[Index] := FilledBlock(PageSize, Index);
  WaitForThreadTerminate(BeginThread(Nothing), 0);
  Expect(LaneMM_OnPressure(Shrink, nil), 'a thread purges');
  Start := GetTickCount64;
  while (not IsCalled or (GroupCharged(Group) > GroupBytes div 2))
    and (GetTickCount64 - Start < PatienceMs) do
    Sleep(20);
  Expect(IsCalled, 'the cache is asked to shrink');
  Expect((SeenLimit = GroupBytes) and (SeenUsed >= GroupBytes div 10 * 9), 'near the limit');
  Expect(GroupCharged(Group) < GroupBytes div 2, 'its memory is not charged any more');
  Result := Ord(BrokenCount > 0);
end;

begin
  RunInGroup(FillGroup);
end.
