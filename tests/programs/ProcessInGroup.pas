/// Runs a program of its own in a control group.
unit ProcessInGroup;

{$mode delphi}{$H+}

interface

uses
  MemoryGroup;

type
  /// What the child process does; returns its exit code. No folder: no group could be made.
  TRunInGroup = function(const Group: TGroupFolder): Integer;

/// Runs Run in a child process, and ends the program with its exit code.
procedure RunInGroup(Run: TRunInGroup);

implementation

uses
  BaseUnix, SysUtils, Forking, Promises;

procedure RunInGroup(Run: TRunInGroup);
var
  Group: TGroupFolder;
  Child: TPid;
  Status: LongInt;
begin
  Group := GroupMake(IntToStr(FpGetPid));
  Flush(Output);
  Child := ForkProcess;
  if Child = 0 then
  begin
    Status := Run(Group);
    Flush(Output);
    FpExit(Status);
  end;
  FpWaitPid(Child, Status, 0);
  GroupRemove(Group);
  Expect(WIfExited(Status), 'the process ends by itself');
  if BrokenCount > 0 then
    Finish;
  Halt(WExitStatus(Status));
end;

end.
