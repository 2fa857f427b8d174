/// Waits for a line, in which time `lanemm do` may switch a profile on, and then frees and allocates
/// COUNT blocks of 16 to 1,039 bytes: cost.sh counts the instructions.
program Switched;

{$mode delphi}

uses
  LaneMM;

var
  Blocks: array[0..1023] of Pointer;
  Count, Index, Random: Cardinal;
  Code: Integer;
begin
  Val(ParamStr(1), Count, Code);
  WriteLn('ready');
  Flush(Output);
  ReadLn;
  Random := 1;
  for Index := 1 to Count do
  begin
    Random := Random * 1664525 + 1013904223;
    FreeMem(Blocks[Random shr 22]);
    GetMem(Blocks[Random shr 22], 16 + (Random shr 8) and 1023);
  end;
end.
