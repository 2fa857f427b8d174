/// How much memory does the manager need beyond what the program asked for?
//
// The peak of memory is the answer, the time stands beside it.
// space-spread: 400,000 blocks of every size from 8 to 2,607 bytes in turn, all alive at the
// same time, then freed: waste by size classes. One operation is one block.
// space-creep: 1,000 blocks; 200 times a random half is replaced by blocks that are 1 %
// larger than those before: memory may follow, but not pile up. One operation is one block.
// space-holes: 400,000 small blocks; nine of ten are freed, one stays, and nearly as many
// bytes are taken in blocks of twice the size; eight times over: holes must be used again.
// One operation is one block.
// Source: the block-size spread, address-space creep and fragmentation cases of the FastCode
//         memory manager challenge (docs/seeds.md, E4); written anew.
unit Workload.Space;

{$I Bench.inc}

interface

implementation

uses
  Bench.Blocks, Bench.Sized, Bench.Workloads;

const
  SpreadCount = 400000;
  SmallestSize = 8;
  LargestSize = 2607;
  CreepCount = 1000;
  CreepRounds = 200;
  CreepFirstSize = 100;
  HolesCount = 800000; // in all rounds
  HolesFirstSize = 24;
  HolesRounds = 8;
  HolesKeepEvery = 10;

procedure SpreadRun(Count: Int64);
var
  Blocks: TSizedBlocks;
  I: Integer;
begin
  SetLength(Blocks, Count);
  for I := 0 to High(Blocks) do
    SizedNew(Blocks[I], SmallestSize + I mod (LargestSize - SmallestSize + 1), RandomSeed(I));
  SizedFreeAll(Blocks);
end;

/// Replaces a random half of Blocks by blocks of Size bytes.
procedure ReplaceHalf(var Blocks: TSizedBlocks; Size: Cardinal; var State: UInt64);
var
  I: Integer;
begin
  for I := 0 to High(Blocks) do
    if RandomNext(State) shr 63 = 0 then
    begin
      SizedFree(Blocks[I]);
      SizedNew(Blocks[I], Size, RandomNext(State));
    end;
end;

procedure CreepRun(const Job: TJob);
var
  Blocks: TSizedBlocks;
  State: UInt64;
  Round: Integer;
  I: Int64;
begin
  SetLength(Blocks, CreepCount);
  State := RandomSeed(Job.Thread);
  for I := 1 to Job.Operations div (CreepRounds * CreepCount div 2) do
    for Round := 0 to CreepRounds - 1 do
      ReplaceHalf(Blocks, Trunc(CreepFirstSize * Exp(Round * Ln(1.01))), State);
  SizedFreeAll(Blocks);
end;

procedure HolesRun(Count: Int64);
var
  Blocks: TSizedBlocks;
  Round, I: Integer;
begin
  SetLength(Blocks, Count div 2); // 1 + 1/2 + 1/4 ... of it are made
  for Round := 0 to HolesRounds - 1 do
  begin
    for I := 0 to Length(Blocks) shr Round - 1 do
      if Blocks[I].Size = 0 then
        SizedNew(Blocks[I], HolesFirstSize shl Round, RandomSeed(I));
    for I := 0 to High(Blocks) do
      if I mod HolesKeepEvery > Round then
        SizedFree(Blocks[I]);
  end;
  SizedFreeAll(Blocks);
end;

initialization
  AddWorkloadInParts('space-spread', SpreadCount, SpreadCount, SpreadRun);
  AddWorkload('space-creep', 20 * CreepRounds * CreepCount div 2, CreepRun);
  AddWorkloadInParts('space-holes', 4 * HolesCount, HolesCount, HolesRun);

end.
