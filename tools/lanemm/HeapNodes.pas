/// The blocks in use of a target as a snapshot, which the search of LaneMM itself goes through.
unit HeapNodes;

{$mode delphi}{$H+}
{$I Comparers.inc}
{$pointermath on}

interface

uses
  SysUtils, Generics.Collections, LaneMM.Snapshot, HeapImages, HeapWalks;

type
  /// The snapshot.
  THeapNodes = class
  protected
    Image: THeapImage;
    Snapshot: TSnapshot;
    Nodes: TArray<TNode>; //< of Snapshot: blocks in use, by address
    Count: Integer;       //< their number
    /// Adds a block, if it is in use, as the last node.
    procedure AddBlock(const Block: TBlockFound); virtual;
  public
    constructor Create(Heap: THeapImage);
  end;

implementation

uses
  Generics.Defaults;

procedure THeapNodes.AddBlock(const Block: TBlockFound);
begin
  if Block.IsFree then
    Exit;
  if Count = Length(Nodes) then
    SetLength(Nodes, Count * 2 + 1024);
  Nodes[Count] := Default(TNode);
  Nodes[Count].Address := PByte(Block.Address);
  Nodes[Count].Size := Block.Size;
  Nodes[Count].Retainer := NoNode;
  Inc(Count);
end;

function ByAddress(constref Left, Right: TNode): Integer;
begin
  Result := Ord(Left.Address > Right.Address) - Ord(Left.Address < Right.Address);
end;

function ReadTarget(Address: NativeUInt; Target: Pointer; Size: NativeUInt; Source: Pointer)
  : NativeUInt;
begin
  Result := THeapImage(Source).Pages.Read(Address, Target, Size);
end;

function NextOfTarget(Address, Limit: NativeUInt; Source: Pointer): NativeUInt;
begin
  Result := THeapImage(Source).Pages.NextTouched(Address, Limit);
end;

constructor THeapNodes.Create(Heap: THeapImage);
begin
  inherited Create;
  Image := Heap;
  VisitBlocks(Image, AddBlock);
  SetLength(Nodes, Count);
  TArrayHelper<TNode>.Sort(Nodes, TComparer<TNode>.Construct(ByAddress));
  Snapshot.Read := ReadTarget;
  Snapshot.Next := NextOfTarget;
  Snapshot.Source := Image;
  Snapshot.Nodes := Pointer(Nodes);
  Snapshot.NodeCount := Count;
end;

end.
