/// How fast are blocks above 32 KB of which a program has a few at a time, as buffers are?
//
// One operation frees the block of one of 16 places and puts another there, of a random size within
// the bounds; its first and last word are written, and checked when it is freed. Nothing else is
// touched, so the manager is what is measured, not the memory. Every thread has its own places.
// Source: buffers of files, pictures and messages.
unit Workload.Exchange;

{$I Bench.inc}

interface

implementation

uses
  Bench.Blocks, Bench.Workloads;

const
  PlaceCount = 16;

type
  TPlace = record
    Block: PUInt64;
    LastWord: NativeUInt;
    Key: UInt64;
  end;

  TExchange = class(TWorkload)
  private
    FLowest, FHighest: NativeUInt;
  public
    constructor Create(const Name: string; Lowest, Highest: NativeUInt);
    procedure Run(const Job: TJob); override;
  end;

constructor TExchange.Create(const Name: string; Lowest, Highest: NativeUInt);
begin
  inherited Create(Name, 10000000);
  FLowest := Lowest;
  FHighest := Highest;
end;

procedure Take(var Place: TPlace; Size: NativeUInt; Key: UInt64);
begin
  Place.Block := GetMem(Size);
  Place.LastWord := Size div SizeOf(UInt64) - 1;
  Place.Key := Key;
  Place.Block[0] := Key;
  Place.Block[Place.LastWord] := Key;
end;

procedure GiveBack(var Place: TPlace);
begin
  if Place.Block = nil then
    Exit;
  Check((Place.Block[0] = Place.Key) and (Place.Block[Place.LastWord] = Place.Key),
    'exchange: a block in use was overwritten');
  FreeMem(Place.Block);
  Place.Block := nil;
end;

procedure TExchange.Run(const Job: TJob);
var
  Places: array[0..PlaceCount - 1] of TPlace;
  State, Key: UInt64;
  I: Int64;
  Place: Integer;
begin
  FillChar(Places, SizeOf(Places), 0);
  State := RandomSeed(Job.Thread);
  for I := 1 to Job.Operations do
  begin
    Key := RandomNext(State);
    Place := Key shr 60;
    GiveBack(Places[Place]);
    Take(Places[Place], FLowest + (Key shr 20) mod (FHighest - FLowest), Key);
  end;
  for Place := 0 to High(Places) do
    GiveBack(Places[Place]);
end;

initialization
  TExchange.Create('exchange-33K-64K', 33000, 65536);
  TExchange.Create('exchange-64K-512K', 65537, 524288);

end.
