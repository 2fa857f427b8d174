/// What does the shortest way through the manager cost: a block taken and given back at once?
//
// One operation is GetMem and FreeMem of one block. A second block of the same size lives
// through the run and must keep its contents.
// Source: the best case of every manager; the floor is an empty function called through
//         the manager record.
unit Workload.Pairs;

{$I Bench.inc}

interface

implementation

uses
  SysUtils, Bench.Blocks, Bench.Workloads;

type
  TPairs = class(TWorkload)
  private
    FSize: NativeUInt;
  public
    constructor Create(Size: NativeUInt);
    procedure Run(const Job: TJob); override;
  end;

constructor TPairs.Create(Size: NativeUInt);
begin
  inherited Create('pairs-' + IntToStr(Size), 50000000);
  FSize := Size;
end;

procedure TPairs.Run(const Job: TJob);
var
  Size: NativeUInt;
  Witness, Block: PUInt64;
  I: Int64;
begin
  Size := FSize;
  Witness := GetMem(Size);
  Witness^ := RandomSeed(Job.Thread);
  for I := 1 to Job.Operations do
  begin
    Block := GetMem(Size);
    Block^ := I;
    if Block = Witness then
      Fail('pairs: a block in use was handed out');
    FreeMem(Block);
  end;
  if Witness^ <> RandomSeed(Job.Thread) then
    Fail('pairs: a block in use was overwritten');
  FreeMem(Witness);
end;

initialization
  TPairs.Create(16);
  TPairs.Create(64);
  TPairs.Create(256);
  TPairs.Create(1024);

end.
