/// Frees a wild pointer in a program without exceptions: run-time error 204.
program RunError;

{$mode delphi}

uses
  LaneMM;

var
  Global: NativeUInt;
begin
  FreeMem(@Global);
end.
