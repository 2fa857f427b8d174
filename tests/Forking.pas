/// A fork after which a child process knows that it is one, also under an emulator.
unit Forking;

{$mode delphi}{$H+}
{$unitpath ../src/core}

interface

uses
  BaseUnix;

/// FpFork, for processes that use LaneMM in the child.
function ForkProcess: TPid;

implementation

uses
  LaneMM.Types;

function ForkProcess: TPid;
begin
  Result := FpFork;
  {$ifdef CPUAARCH64}
  // The system has done it already; qemu-user, which ignores MADV_WIPEONFORK, has not.
  if (Result = 0) and (Process.ForkMark <> nil) then
    Process.ForkMark^ := 0;
  {$endif}
end;

end.
