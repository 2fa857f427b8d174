/// Another memory manager comes after LaneMM: heaptrc with -dHEAPTRC, cmem with
/// -dCMEM.
program Successor;

{$mode delphi}{$H+}

uses
  LaneMM, {$ifdef HEAPTRC} heaptrc, {$endif} {$ifdef CMEM} cmem, {$endif} cthreads;

var
  Block: Pointer;
begin
  GetMem(Block, 100);
  FreeMem(Block);
end.
