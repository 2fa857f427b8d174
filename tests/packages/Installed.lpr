/// Compiled with -FaLaneMM, runs on the installed units: prints the version. `in` names a file, with
/// which Free Pascal 3.2.2 needs the units of -Fa compiled.
program Installed;

{$mode objfpc}{$H+}

uses
  SysUtils, Second in 'Second.pas';

begin
  if not LaneMM_IsInstalled or (LaneMM_HeapStatus.UsedBytes = 0) then
    Halt(1);
  WriteLn(LaneMM_Version, ' ', Twice('x'));
end.
