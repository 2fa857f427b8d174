/// What numbers of several runs say: the middle, the noise, and whether two differ.
unit TryStatistics;

{$mode delphi}{$H+}
{$pointermath on}

interface

type
  TValues = TArray<Int64>;

const
  /// With fewer values of each no difference is significant.
  FewestValues = 5;

/// Returns the median; 0 of none.
function Median(const Values: TValues): Int64;
/// Returns half of the distance between the smallest and the largest, as a part of the median.
function Noise(const Values: TValues): Double;
/// Returns the probability that chance alone parts two lists of values as far as these, or
/// farther: the exact rank-sum test of Wilcoxon, Mann and Whitney, two-sided, with ties.
function ChanceOf(const Left, Right: TValues): Double;
/// Returns whether the values differ: by more than chance (below 1 %), and by 1 % or more.
function Differ(const Left, Right: TValues): Boolean;

implementation

uses
  Math, Generics.Collections;

function Sorted(const Values: TValues): TValues;
begin
  Result := Copy(Values);
  TArrayHelper<Int64>.Sort(Result);
end;

function Median(const Values: TValues): Int64;
var
  Ordered: TValues;
begin
  if Values = nil then
    Exit(0);
  Ordered := Sorted(Values);
  Result := (Ordered[High(Ordered) div 2] + Ordered[Length(Ordered) div 2]) div 2;
end;

function Noise(const Values: TValues): Double;
var
  Ordered: TValues;
begin
  if Median(Values) = 0 then
    Exit(0);
  Ordered := Sorted(Values);
  Result := (Ordered[High(Ordered)] - Ordered[0]) / 2 / Median(Values);
end;

// Returns the rank of Value among All, doubled: equal values share the mean of their ranks.
function DoubledRank(Value: Int64; const All: TValues): Integer;
var
  Other: Int64;
begin
  Result := 1;
  for Other in All do
    if Other < Value then
      Inc(Result, 2)
    else if Other = Value then
      Inc(Result);
end;

// Returns, by count and sum, how many choices among Ranks have them.
function CountChoices(const Ranks: TArray<Integer>; MostCount, MostSum: Integer): TArray<Double>;
var
  Rank, Count, Sum: Integer;
begin
  Result := nil;
  SetLength(Result, (MostCount + 1) * (MostSum + 1));
  Result[0] := 1;
  for Rank in Ranks do
    for Count := MostCount downto 1 do
      for Sum := MostSum downto Rank do
        Result[Count * (MostSum + 1) + Sum] := Result[Count * (MostSum + 1) + Sum]
          + Result[(Count - 1) * (MostSum + 1) + Sum - Rank];
end;

function ChanceOf(const Left, Right: TValues): Double;
var
  All: TValues;
  Ranks: TArray<Integer>;
  Choices: TArray<Double>;
  Index, Sum, Own, MostSum: Integer;
  Mean, Total, AsFar: Double;
begin
  All := Concat(Left, Right);
  Ranks := nil;
  SetLength(Ranks, Length(All));
  Own := 0;
  MostSum := 0;
  for Index := 0 to High(All) do
  begin
    Ranks[Index] := DoubledRank(All[Index], All);
    Inc(MostSum, Ranks[Index]);
    if Index < Length(Left) then
      Inc(Own, Ranks[Index]);
  end;
  Choices := CountChoices(Ranks, Length(Left), MostSum);
  Mean := MostSum * Length(Left) / Length(All);
  Total := 0;
  AsFar := 0;
  for Sum := 0 to MostSum do
  begin
    Total := Total + Choices[Length(Left) * (MostSum + 1) + Sum];
    if Abs(Sum - Mean) >= Abs(Own - Mean) - 0.001 then
      AsFar := AsFar + Choices[Length(Left) * (MostSum + 1) + Sum];
  end;
  Result := AsFar / Total;
end;

function Differ(const Left, Right: TValues): Boolean;
const
  MostChance = 0.01;
  LeastDifference = 0.01;
begin
  Result := (Left <> nil) and (Right <> nil)
    and (Abs(Median(Left) - Median(Right)) >= LeastDifference * Max(Median(Left), Median(Right)))
    and (ChanceOf(Left, Right) <= MostChance);
end;

end.
