/// Overruns a block that is never freed, frees another one twice, and ends as its argument says:
/// `halt` with exit code 3, an unhandled `exception`, `fault`, `leaf`, which faults in a routine without a
/// frame where a program for x86_64 can, and has lost blocks, `kill`, otherwise normally;
/// `file` frees twice once more while it writes a file, whose path is its second argument; `taken`
/// closes stderr before it opens that file; `captured` keeps stderr, and puts the file in its place.
program DamagedEnd;

{$mode delphi}{$H+}{$pointermath on}

uses
  LaneMM, cthreads, {$ifdef LINUX} BaseUnix, {$else} Windows, {$endif} SysUtils;

var
  Block, Freed: PByte;

procedure WriteBehind;
begin
  GetMem(Block, 100); // planted: got
  Block[100] := 1;
end;

procedure FreeTwice;
begin
  GetMem(Freed, 50);
  FreeMem(Freed);
  try
    FreeMem(Freed); // planted: twice
  except
    on EInvalidPointer do
      WriteLn('caught');
  end;
end;

procedure FreeTwiceBesideFile(const Path: string);
var
  Handle: THandle;
begin
  Handle := FileCreate(Path);
  FileWrite(Handle, PAnsiChar('own')^, 3);
  FreeTwice;
  FileClose(Handle);
end;

{$ifdef LINUX}
procedure FreeTwiceCaptured(const Path: string);
var
  Kept: cint;
  Handle: THandle;
begin
  Kept := FpDup(2);
  Handle := FileCreate(Path);
  FpDup2(Handle, 2);
  FileClose(Handle);
  FreeTwice;
  FpDup2(Kept, 2);
  FpClose(Kept);
end;
{$endif}

{$ifdef CPUX86_64}
{$asmmode intel}
procedure FaultInLeaf; assembler; nostackframe;
asm
  xor eax, eax
  mov eax, [rax]
end;
{$else}
procedure FaultInLeaf;
begin
  PByte(nil)^ := 1;
end;
{$endif}

// Many blocks: what is left on the stack may still point to one of them, which is no leak then.
procedure LoseAndFault;
var
  Index: Integer;
  Lost: Pointer;
begin
  for Index := 1 to 30 do
    GetMem(Lost, 1000);
  FaultInLeaf;
end;

procedure EndAs(const How: string);
begin
  if How = 'halt' then
    Halt(3)
  else if How = 'exception' then
    raise Exception.Create('nobody handles this')
  else if How = 'fault' then
    PByte(nil)^ := 1
  else if How = 'leaf' then
    LoseAndFault
  else if How = 'file' then
    FreeTwiceBesideFile(ParamStr(2))
  else if How = 'taken' then
  begin
    {$ifdef LINUX}
    FpClose(2);
    {$endif}
    FreeTwiceBesideFile(ParamStr(2));
  end
  {$ifdef LINUX}
  else if How = 'captured' then
    FreeTwiceCaptured(ParamStr(2))
  {$endif};
  if How = 'kill' then
    {$ifdef LINUX} FpKill(FpGetPid, SIGKILL); {$else} TerminateProcess(GetCurrentProcess, 1); {$endif}
end;

begin
  WriteBehind;
  FreeTwice;
  EndAs(ParamStr(1));
  WriteLn('ended');
end.
