/// Is ended by SIGTERM, in debug mode.
///   EndedBySignal damage   after an overrun of a block
///   EndedBySignal locked   the same while its thread holds the lock of debug mode
///   EndedBySignal clean    without an error
///   EndedBySignal handled  ends by itself; says whether SIGTERM has a handler
program EndedBySignal;

{$mode delphi}{$H+}{$pointermath on}
{$unitpath ../../src/core} {$unitpath ../../src/debug} // behind the door

uses
  LaneMM, cthreads, BaseUnix, LaneMM.Lock, LaneMM.DebugState;

var
  Block: PByte;
  Action: SigActionRec;

begin
  if ParamStr(1) = 'handled' then
  begin
    FpSigAction(SIGTERM, nil, @Action);
    WriteLn(StdErr, 'SIGTERM has a handler: ', @Action.sa_handler <> nil);
    Exit;
  end;
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
