/// Where the blocks of a target were allocated, in the tree of what holds them.
unit HeapHeld;

{$mode delphi}{$H+}

interface

uses
  HeapImages, HeapLeaks;

/// Adds the places of the blocks to TWhys.Holdings, as far as the target knows them.
procedure AddHeldPlaces(Image: THeapImage; var Leaks: TLeaks);

implementation

uses
  Generics.Collections, HeapWalks, HeapPlaces, HeapWhys;

type
  // Places while they are collected: of each block with a known backtrace its group and that.
  TCollector = class
  private
    Groups: TDictionary<string, Integer>;
    Places: TPlaces;
    Found: TList<TLeakPlace>; // Blocks is the number of the backtrace
    procedure Add(const Block: TBlockFound);
  public
    constructor Create(Image: THeapImage; const Leaks: TLeaks);
    destructor Destroy; override;
  end;

constructor TCollector.Create(Image: THeapImage; const Leaks: TLeaks);
var
  Index: Integer;
begin
  inherited Create;
  Groups := TDictionary<string, Integer>.Create;
  Places := TPlaces.Create(Image);
  Found := TList<TLeakPlace>.Create;
  for Index := 0 to High(Leaks.Groups) do
    Groups.Add(Leaks.Groups[Index].Name, Index);
end;

destructor TCollector.Destroy;
begin
  Found.Free;
  Places.Free;
  Groups.Free;
  inherited Destroy;
end;

procedure TCollector.Add(const Block: TBlockFound);
var
  Place: TLeakPlace;
  Stack: Integer;
begin
  if Block.IsFree then
    Exit;
  Stack := Places.StackOf(Block);
  Place := Default(TLeakPlace);
  if (Stack < 0) or not Groups.TryGetValue(LinkNameOf(Block), Place.Group) then
    Exit;
  Place.Blocks := Stack;
  Place.Bytes := Block.Size;
  Found.Add(Place);
end;

procedure AddHeldPlaces(Image: THeapImage; var Leaks: TLeaks);
var
  Collector: TCollector;
  Numbers: TDictionary<string, Integer>;
  Place: TLeakPlace;
begin
  Collector := TCollector.Create(Image, Leaks);
  Numbers := TDictionary<string, Integer>.Create;
  try
    VisitBlocks(Image, Collector.Add);
    Collector.Places.Resolve;
    for Place in Collector.Found do
      AddLeakPlace(Leaks, Numbers, Collector.Places, Place.Group, Place.Blocks, Place.Bytes);
    RankLeaks(Leaks);
  finally
    Numbers.Free;
    Collector.Free;
  end;
end;

end.
