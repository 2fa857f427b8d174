/// A fork after which a child process knows that it is one, also under an emulator.
unit Forking;

{$mode delphi}{$H+}{$pointermath on}
{$unitpath ../src/core}

interface

uses
  BaseUnix;

/// FpFork, for processes that use LaneMM in the child.
function ForkProcess: TPid;
/// What ForkProcess does in the child, after another fork.
procedure BecomeChild;

implementation

uses
  LaneMM.Types;

procedure BecomeChild;
begin
  {$ifdef CPUAARCH64}
  // The system has done it already; qemu-user, which ignores MADV_WIPEONFORK, has not.
  if Process.ForkMark = nil then
    Exit;
  Process.ForkMark[0] := 0;
  Process.ForkMark[1] := 0;
  {$endif}
end;

function ForkProcess: TPid;
begin
  Result := FpFork;
  if Result = 0 then
    BecomeChild;
end;

end.
