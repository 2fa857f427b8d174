// Runs what a project does with its memory while its compiler switches are those that tests/switches.sh
// gives: blocks of all sizes in several threads, an exception, debug mode with a report, a leak search.
// Prints ok.
program Switches;

{$mode objfpc}{$H+}

uses
  LaneMM, {$ifdef unix} cthreads, {$endif} SysUtils, Classes;

type
  TWorker = class(TThread)
  protected
    procedure Execute; override;
  end;

procedure Work;
var
  Blocks: array[0..63] of PByte;
  Index: Integer;
  Lines: TStringList;
begin
  for Index := 0 to High(Blocks) do
  begin
    Blocks[Index] := AllocMem(PtrUInt(1) shl (Index mod 21) + PtrUInt(Index));
    Blocks[Index]^ := Byte(Index);
  end;
  for Index := 0 to High(Blocks) do
  begin
    ReallocMem(Blocks[Index], PtrUInt(Index + 1) * 2000);
    if Blocks[Index]^ <> Index then
      Halt(2);
    FreeMem(Blocks[Index]);
  end;
  Lines := TStringList.Create;
  for Index := 1 to 1000 do
    Lines.Add('line ' + IntToStr(Index));
  Lines.Sort;
  Lines.Free;
  try
    GetMem(Blocks[0], High(PtrInt));
    Halt(3);
  except
    on EOutOfMemory do;
  end;
end;

procedure TWorker.Execute;
begin
  Work;
end;

procedure WorkInThreads;
var
  Workers: array[0..3] of TWorker;
  Index: Integer;
begin
  for Index := 0 to High(Workers) do
    Workers[Index] := TWorker.Create(False);
  Work;
  for Index := 0 to High(Workers) do
  begin
    Workers[Index].WaitFor;
    Workers[Index].Free;
  end;
end;

begin
  WorkInThreads;
  LaneMM_EnterDebugMode;
  WorkInThreads;
  if LaneMM_CheckHeap <> 0 then
    Halt(4);
  LaneMM_ExitDebugMode;
  LaneMM_Trim;
  WriteLn('ok');
end.
