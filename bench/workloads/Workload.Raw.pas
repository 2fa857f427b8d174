/// How fast are the manager's bare calls when thousands of blocks of mixed sizes come and go?
//
// Fills 8,192 places, seven of eight with blocks of the small mix and one with a block of
// 1 KB to 64 KB; then every other place is emptied and filled again, then the others, then
// all are emptied. One operation is one block.
// Source: the raw performance case of the FastCode memory manager challenge (docs/seeds.md,
//         E4), single- and multi-threaded; written anew.
unit Workload.Raw;

{$I Bench.inc}

interface

implementation

uses
  Bench.Blocks, Bench.Workloads;

const
  PlaceCount = 8192;
  RoundBlocks = 2 * PlaceCount;
  MidEvery = 8;

type
  TPlaces = record
    Blocks: array[0..PlaceCount - 1] of Pointer; //< owner   blocks of the mix of their place
    Keys: array[0..PlaceCount - 1] of UInt64;    //< owner   what they were made from
    State: UInt64;                               //< owner   generator
  end;

/// The size mix of the blocks in a place.
function PlaceMix(Index: Integer): PSizeMix; inline;
begin
  if Index mod MidEvery = MidEvery - 1 then
    Result := @MidMix
  else
    Result := @SmallMix;
end;

procedure Fill(var Places: TPlaces; First, Step: Integer);
begin
  while First < PlaceCount do
  begin
    Places.Keys[First] := RandomNext(Places.State);
    Places.Blocks[First] := BlockNew(PlaceMix(First)^, Places.Keys[First]);
    Inc(First, Step);
  end;
end;

procedure Empty(var Places: TPlaces; First, Step: Integer);
begin
  while First < PlaceCount do
  begin
    BlockFree(PlaceMix(First)^, Places.Blocks[First], Places.Keys[First]);
    Inc(First, Step);
  end;
end;

procedure RawRun(const Job: TJob);
var
  Places: ^TPlaces;
  I: Int64;
begin
  New(Places);
  Places^.State := RandomSeed(Job.Thread);
  for I := 1 to Job.Operations div RoundBlocks do
  begin
    Fill(Places^, 0, 1);
    Empty(Places^, 0, 2);
    Fill(Places^, 0, 2);
    Empty(Places^, 1, 2);
    Fill(Places^, 1, 2);
    Empty(Places^, 0, 1);
  end;
  Dispose(Places);
end;

initialization
  AddWorkload('raw', 4000000, RawRun);

end.
