/// A program that is asked while it is busy: threads come and go, blocks of all sizes cross threads,
/// settings change, and the main thread, which receives the signals, holds one lock after the other.
///
///   Asked        until its standard input ends; exit code 1 if a block lost its contents
program Asked;

{$mode delphi}{$H+}{$pointermath on}

uses
  LaneMM, cthreads, Classes, SysUtils, LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Lock,
  LaneMM.DebugState, LaneMM.LeaksState, LaneMM.ObserveState;

const
  ThreadCount = 4;
  PlaceCount = 256;
  LifeTurns = 20000;

type
  TWorker = class(TThread)
  private
    State: UInt64;
    function Below(Limit: Cardinal): Cardinal;
    procedure Turn;
  protected
    procedure Execute; override;
  end;

var
  Places: array[0..PlaceCount - 1] of TAtomicWord; // blocks that any thread takes and frees
  IsOver: Boolean = False;
  Faults: LongInt = 0;

// A block begins with its size and ends with the complement of it.
procedure Fill(Block: PByte; Size: NativeUInt);
begin
  PNativeUInt(Block)^ := Size;
  PNativeUInt(Block + Size - SizeOf(NativeUInt))^ := not Size;
end;

procedure Check(Block: PByte);
var
  Size: NativeUInt;
begin
  Size := PNativeUInt(Block)^;
  if PNativeUInt(Block + Size - SizeOf(NativeUInt))^ <> not Size then
    InterlockedIncrement(Faults);
end;

function TWorker.Below(Limit: Cardinal): Cardinal;
begin
  State := State xor (State shl 13);
  State := State xor (State shr 7);
  State := State xor (State shl 17);
  Result := Cardinal(State shr 20) mod Limit;
end;

procedure TWorker.Turn;
var
  Size, Old: NativeUInt;
  Block: PByte;
begin
  Size := 16 + Below(1 shl (4 + Below(15)));
  GetMem(Block, Size);
  Fill(Block, Size);
  if Below(4) = 0 then
  begin
    ReallocMem(Block, Size * 2);
    Fill(Block, Size * 2);
  end;
  Old := Swap(Places[Below(PlaceCount)], NativeUInt(Block));
  if Old = 0 then
    Exit;
  Check(PByte(Old));
  FreeMem(Pointer(Old));
end;

procedure TWorker.Execute;
var
  Index: Integer;
begin
  State := UInt64(PtrUInt(Self)) * 2654435761 + 1;
  for Index := 1 to LifeTurns do
    if not IsOver then
      Turn;
end;

// Ends and starts the threads in turn.
procedure Renew(var Worker: TWorker);
begin
  if Worker <> nil then
    Worker.WaitFor;
  Worker.Free;
  Worker := TWorker.Create(False);
end;

procedure Hold(var Lock: TLock);
var
  Index: Integer;
begin
  LockEnter(Lock);
  for Index := 1 to 2000 do
    SpinHint;
  LockLeave(Lock);
end;

// Holds each lock that a thread may wait for or try, and changes settings.
procedure UseLocks;
var
  Number: Cardinal;
  Heap: PHeap;
begin
  Hold(Debug.Lock);
  Hold(Leaks.Lock);
  Hold(Observe.SampleLock);
  for Number := 1 to Process.ShardCount do
    Hold(Process.Shards[Number].Lock);
  Heap := PHeap(LoadAcquire(Process.Heaps));
  while Heap <> nil do
  begin
    Hold(Heap^.Lock);
    Heap := Heap^.NextHeap;
  end;
  LaneMM_Configure('contention,growth,least=5');
  LaneMM_Configure('contention=0,growth=0');
end;

procedure AwaitInput;
var
  Line: string;
begin
  ReadLn(Line);
  IsOver := True;
end;

function AwaitEnd(Parameter: Pointer): PtrInt;
begin
  AwaitInput;
  Result := 0;
end;

var
  Workers: array[1..ThreadCount] of TWorker;
  Own: TWorker;
  Index: Integer;

begin
  for Index := 1 to ThreadCount do
    Renew(Workers[Index]);
  BeginThread(AwaitEnd);
  Own := TWorker.Create(True);
  Own.State := 1;
  WriteLn('ready');
  Flush(Output);
  while not IsOver do
  begin
    UseLocks;
    for Index := 1 to 1000 do
      Own.Turn;
    Index := Random(ThreadCount) + 1;
    if Workers[Index].Finished then
      Renew(Workers[Index]);
  end;
  for Index := 1 to ThreadCount do
    Workers[Index].WaitFor;
  if Faults > 0 then
    Halt(1);
end.
