/// Frees all its memory at its end, which starts LaneMM's thread, and ends at once with exit code 3.
program LastFrees;

{$mode delphi}{$H+}

uses
  LaneMM, cthreads, LaneMM.Types, Promises;

const
  MB = 1024 * 1024;

var
  Blocks: array[1..64] of Pointer;
  Index: Integer;
begin
  for Index := 1 to High(Blocks) do
    Blocks[Index] := AllocMem(MB);
  for Index := 1 to High(Blocks) do
    FreeMem(Blocks[Index]);
  Expect(Process.PurgeState <> 0, 'the memory is worth a thread');
  Halt(3);
end.
