/// Threads that free nearly all blocks that others make: does the memory follow what is in use, or
/// what has passed through? Counts the backed slices after Rounds rounds and after three times as
/// many: what came to be in use meanwhile, and little more, may be added.
program BlowUp;

{$mode delphi}{$pointermath on}

uses
  LaneMM, cthreads, SysUtils, Classes, LaneMM.Layout, LaneMM.Backed, Promises;

const
  Batch = 1024;
  KeepOne = 100;
  Rounds = 60;

type
  TShape = record
    Name: string;
    Sizes: array of Integer;  //< owner   of the blocks, in turn
    Consumers: Integer;       //< owner   threads that free, in turn
    IsFirst: Boolean;         //< owner   the program's first thread frees, another one makes
    IsEnding: Boolean;        //< owner   each consumer ends after a batch
    IsMixed: Boolean;         //< owner   consumers make blocks of these sizes, too
  end;

var
  Shape: TShape;
  Blocks: array[0..Batch - 1] of PByte;
  Kept: array of Pointer;
  KeptCount, KeptBytes, Turn: Integer;

procedure Make;
var
  Index: Integer;
begin
  for Index := 0 to Batch - 1 do
    GetMem(Blocks[Index], Shape.Sizes[Index mod Length(Shape.Sizes)]);
end;

procedure Consume;
var
  Index: Integer;
  Own: Pointer;
begin
  for Index := 0 to Batch - 1 do
  begin
    Inc(Turn);
    if Turn mod KeepOne <> 0 then
      FreeMem(Blocks[Index])
    else
    begin
      Kept[KeptCount] := Blocks[Index];
      Inc(KeptCount);
      Inc(KeptBytes, Shape.Sizes[Index mod Length(Shape.Sizes)]);
    end;
    if Shape.IsMixed and (Index mod 10 = 0) then
    begin
      GetMem(Own, Shape.Sizes[Index mod Length(Shape.Sizes)]);
      FreeMem(Own);
    end;
  end;
end;

type
  /// A thread that works when it is told to, and sleeps otherwise.
  TWorker = class(TThread)
  private
    Work: TProcedure;
    Start, Done: PRTLEvent;
  protected
    procedure Execute; override;
  public
    constructor Create(AWork: TProcedure);
    procedure Step;
  end;

constructor TWorker.Create(AWork: TProcedure);
begin
  Work := AWork;
  Start := RTLEventCreate;
  Done := RTLEventCreate;
  inherited Create(False);
end;

procedure TWorker.Execute;
begin
  repeat
    RTLEventWaitFor(Start);
    if Terminated then
      Exit;
    Work;
    RTLEventSetEvent(Done);
  until False;
end;

procedure TWorker.Step;
begin
  RTLEventSetEvent(Start);
  RTLEventWaitFor(Done);
end;

procedure EndWorker(Worker: TWorker);
begin
  Worker.Terminate;
  RTLEventSetEvent(Worker.Start);
  Worker.WaitFor;
  RTLEventDestroy(Worker.Start);
  RTLEventDestroy(Worker.Done);
  Worker.Free;
end;

var
  Workers: array of TWorker;

procedure Run(RoundCount: Integer);
var
  Round, Index: Integer;
begin
  for Round := 1 to RoundCount do
  begin
    Index := Round mod Length(Workers);
    if Shape.IsFirst then
    begin
      Workers[Index].Step;
      Consume;
      Continue;
    end;
    Make;
    Workers[Index].Step;
    if Shape.IsEnding then
    begin
      EndWorker(Workers[Index]);
      Workers[Index] := TWorker.Create(Consume);
    end;
  end;
end;

procedure Check;
var
  Before, Added: NativeUInt;
  Index, InUse, MostAdded: Integer;
begin
  KeptCount := 0;
  KeptBytes := 0;
  SetLength(Kept, Batch * Rounds * 3 div KeepOne + Batch);
  SetLength(Workers, Shape.Consumers);
  for Index := 0 to High(Workers) do
    if Shape.IsFirst then
      Workers[Index] := TWorker.Create(Make)
    else
      Workers[Index] := TWorker.Create(Consume);
  Run(Rounds);
  Before := BackedSlices;
  InUse := KeptBytes;
  Run(Rounds * 2);
  Added := (BackedSlices - Before) * SliceSize;
  MostAdded := (KeptBytes - InUse) * 3 div 2 + Length(Shape.Sizes) * (Shape.Consumers + 1) * 4 * SliceSize;
  WriteLn(Format('%s: %d KB more in use, %d KB more backed, %d allowed', [Shape.Name, (KeptBytes - InUse) div 1024,
    NativeInt(Added) div 1024, MostAdded div 1024]));
  Expect(NativeInt(Added) <= MostAdded, Shape.Name + ': memory follows what is in use');
  for Index := 0 to High(Workers) do
    EndWorker(Workers[Index]);
  for Index := 0 to KeptCount - 1 do
    FreeMem(Kept[Index]);
end;

procedure CheckShape(const Name: string; const Sizes: array of Integer; Consumers: Integer);
var
  Index: Integer;
begin
  Shape.Name := Name;
  SetLength(Shape.Sizes, Length(Sizes));
  for Index := 0 to High(Sizes) do
    Shape.Sizes[Index] := Sizes[Index];
  Shape.Consumers := Consumers;
  Check;
  Shape.IsFirst := False;
  Shape.IsEnding := False;
  Shape.IsMixed := False;
end;

begin
  CheckShape('one consumer, 64 bytes', [64], 1);
  CheckShape('several classes', [24, 64, 200, 1000], 1);
  CheckShape('7 KB', [7000], 1);
  CheckShape('spans of several slices', [20000], 1);
  CheckShape('many consumers', [64], 8);
  Shape.IsEnding := True;
  CheckShape('consumers that end', [300], 2);
  Shape.IsFirst := True;
  CheckShape('the first thread frees', [300], 2);
  Shape.IsMixed := True;
  CheckShape('a consumer that makes blocks, too', [300], 1);
  Finish;
end.
