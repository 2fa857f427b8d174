/// Is ended by SIGTERM, in debug mode.
///   EndedBySignal damage   after an overrun of a block
///   EndedBySignal locked   the same while its thread holds the lock of debug mode
///   EndedBySignal clean    without an error
program EndedBySignal;

{$mode delphi}{$H+}{$pointermath on}
{$unitpath ../../src/core} {$unitpath ../../src/debug} // behind the door

uses
  LaneMM, cthreads, BaseUnix, LaneMM.Lock, LaneMM.DebugState;

var
  Block: PByte;

begin
  GetMem(Block, 100); // planted: got
  FillChar(Block^, 100, 1);
  if ParamStr(1) <> 'clean' then
    Block[100] := 1;
  if ParamStr(1) = 'locked' then
    LockEnter(Debug.Lock);
  FpKill(FpGetPid, SIGTERM);
  repeat
    FpPause;
  until False;
end.
