/// What does the shortest path through the manager cost: a block allocated and freed at once?
//
// One operation is GetMem and FreeMem of one block, of which the first and the last word are
// written. Blocks of the same size before and after it live through the run and must keep
// their contents.
// Source: the best case of every manager; the floor is an empty function called through
//         the manager record.
unit Workload.Pairs;

{$I Bench.inc}

interface

implementation

uses
  SysUtils, Bench.Blocks, Bench.Workloads;

const
  WitnessCount = 4;
  Gap = 1; // the pairs take the place of this one, between blocks in use

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
  inherited Create('pairs-' + IntToStr(Size), 40000000);
  FSize := Size;
end;

/// Allocates and frees Count blocks of Size bytes.
procedure TakeAndGiveBack(Size: NativeUInt; Count: Int64);
var
  Block: PUInt64;
  LastWord: NativeUInt;
  I: Int64;
begin
  LastWord := Size div SizeOf(UInt64) - 1;
  for I := 1 to Count do
  begin
    Block := GetMem(Size);
    Block[0] := I;
    Block[LastWord] := I;
    Check(Block[0] = UInt64(I), 'pairs: a block cannot be written');
    FreeMem(Block);
  end;
end;

/// Ends the process unless all words of Block are as they were filled.
procedure CheckWitness(Block: PUInt64; Size: NativeUInt; Value: UInt64);
var
  I: NativeUInt;
begin
  for I := 0 to Size div SizeOf(UInt64) - 1 do
    Check(Block[I] = Value, 'pairs: a block in use was overwritten');
end;

procedure TPairs.Run(const Job: TJob);
var
  Witnesses: array[0..WitnessCount - 1] of PUInt64;
  I: Integer;
begin
  for I := 0 to High(Witnesses) do
  begin
    Witnesses[I] := GetMem(FSize);
    FillQWord(Witnesses[I]^, FSize div SizeOf(UInt64), RandomSeed(I));
  end;
  CheckWitness(Witnesses[Gap], FSize, RandomSeed(Gap));
  FreeMem(Witnesses[Gap]);
  TakeAndGiveBack(FSize, Job.Operations);
  for I := 0 to High(Witnesses) do
    if I <> Gap then
    begin
      CheckWitness(Witnesses[I], FSize, RandomSeed(I));
      FreeMem(Witnesses[I]);
    end;
end;

initialization
  TPairs.Create(16);
  TPairs.Create(64);
  TPairs.Create(256);
  TPairs.Create(1024);
  TPairs.Create(32768);

end.
