/// What holds the memory of a target in the form of leaks, for their JSON and their page.
unit HeapHeld;

{$mode delphi}{$H+}

interface

uses
  HeapImages, HeapLeaks, HeapWhys;

/// Returns a tree of what holds memory as leaks: each text is a group, each row a chain. Without places.
function HeldAsLeaks(const Rows: THoldings): TLeaks;
/// Adds the places of the blocks, as far as the target knows them.
procedure AddHeldPlaces(Image: THeapImage; var Leaks: TLeaks);

implementation

uses
  Generics.Collections, HeapWalks, HeapPlaces;

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

function HeldAsLeaks(const Rows: THoldings): TLeaks;
var
  Numbers: TDictionary<string, Integer>; // of groups
  Index, Number: Integer;
  Group: ^TLeakGroup;
begin
  Result := Default(TLeaks);
  SetLength(Result.Chains, Length(Rows));
  SetLength(Result.Groups, Length(Rows));
  Numbers := TDictionary<string, Integer>.Create;
  for Index := 0 to High(Rows) do
  begin
    if not Numbers.TryGetValue(Rows[Index].Text, Number) then
    begin
      Number := Numbers.Count;
      Numbers.Add(Rows[Index].Text, Number);
    end;
    Group := @Result.Groups[Number];
    Group^.Name := Rows[Index].Text;
    Inc(Group^.Blocks, Rows[Index].OwnBlocks);
    Inc(Group^.Bytes, Rows[Index].OwnBytes);
    Inc(Group^.Retained, Rows[Index].Bytes); // no way has a text twice
    Inc(Result.Blocks, Rows[Index].OwnBlocks);
    Inc(Result.Bytes, Rows[Index].OwnBytes);
    Result.Chains[Index].Parent := Rows[Index].Above;
    Result.Chains[Index].Group := Number;
    Result.Chains[Index].Blocks := Rows[Index].OwnBlocks;
    Result.Chains[Index].Bytes := Rows[Index].OwnBytes;
    Result.Chains[Index].Retained := Rows[Index].Bytes;
  end;
  SetLength(Result.Groups, Numbers.Count);
  Numbers.Free;
  Result.InUse := Result.Blocks;
  RankLeaks(Result);
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
