/// A program that is recorded, for `lanemm replay`.
///
///   Recorded WORK [FILE]   prints its allocations, frees, resizes and bytes, those of all threads
///                          while it does WORK; with FILE just these are recorded
///
/// WORK is `threads`: two threads free each other's blocks; `fork`: a child process allocates, too, and
/// ends as the parent does; `many`: 100,000 blocks; `ends`: 500 threads, one after another; `raise`: a
/// resize raises, and its block is freed; `fault`: the handler of a signal that interrupts a resize allocates;
/// `before`: a block from before is resized and freed; `wait`: waits for a signal.
program Recorded;

{$mode delphi}{$H+}

uses
  LaneMM, cthreads, BaseUnix, Unix, Classes, SysUtils;

const
  Rounds = 500;

type
  // Allocates and resizes blocks, and frees those of the other one.
  TWorker = class(TThread)
  private
    Own: Integer;
  public
    procedure Execute; override;
  end;

var
  Blocks: array[0..1, 0..Rounds - 1] of Pointer;
  Made: array[0..1] of LongInt; // blocks so far
  BlockBefore: Pointer;

procedure TWorker.Execute;
var
  Round: Integer;
  Block: Pointer;
begin
  for Round := 0 to Rounds - 1 do
  begin
    if Odd(Round) then
      Block := AllocMem(Round)
    else
      GetMem(Block, Round);
    ReallocMem(Block, 3 * Round + 1);
    Blocks[Own, Round] := Block;
    InterlockedIncrement(Made[Own]);
    while InterlockedCompareExchange(Made[1 - Own], 0, 0) <= Round do
      ThreadSwitch;
    FreeMem(Blocks[1 - Own, Round]);
  end;
end;

procedure RunThreads;
var
  Workers: array[0..1] of TWorker;
  Index: Integer;
  Block: Pointer;
begin
  for Index := 0 to 1 do
  begin
    Made[Index] := 0;
    Workers[Index] := TWorker.Create(True);
    Workers[Index].Own := Index;
  end;
  for Index := 0 to 1 do
    Workers[Index].Start;
  for Index := 0 to 1 do
  begin
    Workers[Index].WaitFor;
    Workers[Index].Free;
  end;
  Block := LaneMM_GetMemAligned(1000, 256);
  FreeMem(Block);
end;

procedure RunChild;
var
  Child: TPid;
begin
  Child := FpFork;
  if Child = 0 then
  begin
    TObject.Create;
    Halt(0);
  end;
  WaitProcess(Child);
  TObject.Create.Free;
end;

function ShortThread(Nothing: Pointer): PtrInt;
begin
  TObject.Create.Free;
  Result := 0;
end;

procedure RunManyThreads;
var
  Index: Integer;
begin
  for Index := 1 to 500 do
    WaitForThreadTerminate(BeginThread(ShortThread), 0);
end;

procedure AllocateMany;
var
  Index: Integer;
  Block: Pointer;
begin
  for Index := 1 to 100000 do
  begin
    GetMem(Block, Index mod 1000);
    FreeMem(Block);
  end;
end;

procedure RaiseInResize;
var
  Block: Pointer;
begin
  GetMem(Block, 100);
  try
    ReallocMem(Block, High(NativeInt));
  except
    on EOutOfMemory do
      FreeMem(Block);
  end;
end;

procedure Open(Signal: LongInt; Info: PSigInfo; Context: PSigContext); cdecl;
begin
  FpMProtect(Pointer(NativeUInt(Info^._sifields._sigfault._addr) and not NativeUInt(4095)), 4096,
    PROT_READ or PROT_WRITE);
  TObject.Create.Free;
end;

procedure FaultInResize;
var
  Block: PByte;
  Action: SigActionRec;
begin
  GetMem(Block, 40000);
  FillChar(Action, SizeOf(Action), 0);
  Action.sa_flags := SA_SIGINFO;
  Action.sa_handler := SigActionHandler(@Open);
  FpSigAction(SIGSEGV, @Action, nil);
  FpMProtect(Pointer(NativeUInt(Block + 20000) and not NativeUInt(4095)), 4096, PROT_NONE);
  ReallocMem(Block, 60000);
  FreeMem(Block);
end;

procedure ResizeBlockBefore;
begin
  ReallocMem(BlockBefore, 1000);
  FreeMem(BlockBefore);
end;

procedure Work;
begin
  if ParamStr(1) = 'threads' then
    RunThreads
  else if ParamStr(1) = 'fork' then
    RunChild
  else if ParamStr(1) = 'many' then
    AllocateMany
  else if ParamStr(1) = 'ends' then
    RunManyThreads
  else if ParamStr(1) = 'raise' then
    RaiseInResize
  else if ParamStr(1) = 'fault' then
    FaultInResize
  else if ParamStr(1) = 'before' then
    ResizeBlockBefore
  else
    FpPause;
end;

var
  Counts: TLaneMM_Counts;

begin
  if ParamStr(1) = 'threads' then
    RunThreads; // from now on they use nothing from before
  GetMem(BlockBefore, 100);
  if ParamStr(2) <> '' then
    LaneMM_Configure('record=' + ParamStr(2));
  LaneMM_StartCount(True);
  Work;
  Counts := LaneMM_StopCount;
  if ParamStr(2) <> '' then
    LaneMM_Configure('record=0');
  WriteLn(Counts.Allocations, ' allocations, ', Counts.Frees, ' frees, ', Counts.Resizes, ' resizes, ',
    Counts.Bytes, ' bytes');
end.
