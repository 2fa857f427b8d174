/// The groups in use with most bytes, found without memory: for a report that there is none.
//
// Owns:       nothing.
// How:        one walk over all blocks finds candidates, a second one counts them. In the first a
//             group that finds no place replaces the one with fewest bytes and takes over these: so
//             none is missed that has more than the bytes of all divided by the places.
// Callers:    any thread that holds no lock.
// Source:     Metwally, Agrawal and El Abbadi: Efficient Computation of Frequent and Top-k
//             Elements in Data Streams (2005).
unit LaneMM.MostUsed;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Text;

/// Adds the groups in use with most bytes; blocks of unknown contents by size.
procedure MostUsedAdd(var Text: TText);

implementation

uses
  LaneMM.Hooks, LaneMM.Walk, LaneMM.GuardPages, LaneMM.Contents, LaneMM.Snapshot, LaneMM.LeakList,
  LaneMM.LeakText;

const
  Places = 24;
  Shown = 3;

type
  TMost = record
    Groups: array[0..Places] of TGroup; // from 1 on; 0 is that of other blocks
    IsCounting: Boolean;                // the second walk
    Blocks, Bytes: NativeUInt;          // all, in the second walk
  end;
  PMost = ^TMost;

// Returns the place of the group of a block; in the first walk one that it gets.
function PlaceOf(Most: PMost; const Key: TGroup): PGroup;
var
  Index, Least: Cardinal;
begin
  Least := 1;
  for Index := 1 to Places do
  begin
    Result := @Most^.Groups[Index];
    if (Result^.Kind = Key.Kind) and (Result^.ClassId = Key.ClassId)
      and (Result^.BlockSize = Key.BlockSize) and (Result^.Most <> 0) then
      Exit;
    if Result^.Bytes < Most^.Groups[Least].Bytes then
      Least := Index;
  end;
  Result := @Most^.Groups[Least];
  if Most^.IsCounting then
    Exit(@Most^.Groups[0]);
  Result^.Kind := Key.Kind;
  Result^.ClassId := Key.ClassId;
  Result^.BlockSize := Key.BlockSize;
  Result^.Least := Key.BlockSize;
  Result^.Most := Key.BlockSize + 1;
end;

procedure SeeBlock(const Block: TBlockInfo; Context: Pointer);
var
  Most: PMost;
  Contents: TContents;
  Key: TGroup;
  Group: PGroup;
begin
  Most := Context;
  ContentsRead(Block, Contents);
  Key.Kind := Contents.Kind;
  Key.ClassId := Contents.ClassId;
  Key.BlockSize := 0;
  if Contents.Kind = coUnknown then
    Key.BlockSize := Block.RequestedSize;
  Group := PlaceOf(Most, Key);
  Inc(Group^.Count);
  Inc(Group^.Bytes, Block.RequestedSize);
  Inc(Most^.Blocks);
  Inc(Most^.Bytes, Block.RequestedSize);
end;

// Returns the number of the group with most bytes after that of number Last, or of all if Last is
// 0: of fewer bytes, or as many and a higher number; 0 if there is none.
function Next(const Most: TMost; Last: Cardinal): Cardinal;
var
  Index: Cardinal;
begin
  Result := 0;
  for Index := 1 to Places do
    if (Most.Groups[Index].Bytes > 0)
      and ((Last = 0) or (Most.Groups[Index].Bytes < Most.Groups[Last].Bytes)
      or (Most.Groups[Index].Bytes = Most.Groups[Last].Bytes) and (Index > Last))
      and ((Result = 0) or (Most.Groups[Index].Bytes > Most.Groups[Result].Bytes)) then
      Result := Index;
end;

procedure MostUsedAdd(var Text: TText);
var
  Most: TMost;
  List: TLeakList;
  Order: array[0..Shown - 1] of Cardinal;
  Index: Cardinal;
begin
  FillChar(Most, SizeOf(Most), 0);
  GuardPagesHold;
  WalkBlocks(SeeBlock, @Most);
  Most.IsCounting := True;
  Most.Blocks := 0;
  Most.Bytes := 0;
  for Index := 0 to Places do
  begin
    Most.Groups[Index].Count := 0;
    Most.Groups[Index].Bytes := 0;
  end;
  WalkBlocks(SeeBlock, @Most);
  GuardPagesLetGo;
  List := Default(TLeakList);
  List.Topic := ltInUse;
  List.Snapshot.Groups := @Most.Groups;
  List.Order := @Order;
  List.Blocks := Most.Blocks;
  List.Bytes := Most.Bytes;
  Index := Next(Most, 0);
  while (Index <> 0) and (List.Count < Shown) do
  begin
    Most.Groups[Index].Most := Most.Groups[Index].BlockSize;
    Order[List.Count] := Index;
    Inc(List.Count);
    Index := Next(Most, Index);
  end;
  LeakTextAddMost(Text, List);
end;

end.
