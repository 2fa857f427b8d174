/// A small program for the fuzzer: its settings come from outside, its work is always the same.
program Target;

{$mode delphi}{$pointermath on}

uses
  LaneMM, cthreads;

type
  TNode = class
    Text: string;
    Next: TNode;
  end;

const
  BlockCount = 60;

var
  Blocks: array[0..BlockCount - 1] of PByte;

function FreeHalf(Argument: Pointer): PtrInt;
var
  Index: Integer;
begin
  for Index := 0 to BlockCount - 1 do
    if Odd(Index) then
      FreeMem(Blocks[Index]);
  Result := 0;
end;

var
  Index, Turn: Integer;
  Node: TNode;
begin
  for Turn := 1 to 3 do
  begin
    for Index := 0 to BlockCount - 1 do
    begin
      GetMem(Blocks[Index], 10 + Index * Index * 20);
      FillChar(Blocks[Index]^, 10 + Index * Index * 20, Index);
      ReallocMem(Blocks[Index], 30 + Index * Index * 30);
    end;
    WaitForThreadTerminate(BeginThread(FreeHalf), 0);
    for Index := 0 to BlockCount - 1 do
      if not Odd(Index) then
        FreeMem(Blocks[Index]);
  end;
  Node := TNode.Create;
  Node.Text := ParamStr(0) + '!';
  Node.Next := TNode.Create;
  Node.Next.Next := Node;
  Pointer(Node) := nil;
  LaneMM_WriteEventLog;
  WriteLn('done');
end.
