/// The main thread ends before another one: the program ends with that one, also where LaneMM has a
/// thread of its own. With the argument `after` that one is wanted after the main thread has ended.
program LastThread;

{$mode delphi}{$H+}

uses
  LaneMM, cthreads, SysUtils, LaneMM.Types, Promises;

const
  MB = 1024 * 1024;
  PauseMs = 100;

procedure FreeABurst;
var
  Blocks: array[1..64] of Pointer;
  Index: Integer;
begin
  for Index := 1 to High(Blocks) do
    Blocks[Index] := AllocMem(MB);
  for Index := 1 to High(Blocks) do
    FreeMem(Blocks[Index]);
  Expect(Process.PurgeState <> 0, 'the memory is worth a thread');
end;

function Run(Argument: Pointer): PtrInt;
begin
  Sleep(PauseMs); // the main thread ends meanwhile
  FreeABurst;
  Sleep(PauseMs);
  Result := 0;
  if BrokenCount <> 0 then
    Halt(1);
end;

begin
  if ParamStr(1) <> 'after' then
    FreeABurst;
  BeginThread(Run);
  EndThread(0);
end.
