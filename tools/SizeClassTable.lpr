/// Prints the size classes with the worst and the mean waste of each, as `make classes` shows it.
program SizeClassTable;

{$mode objfpc}{$H+}

uses
  LaneMM, SysUtils, LaneMM.Layout, LaneMM.Types, LaneMM.SizeClasses;

procedure PrintClass(SizeClass: Cardinal);
var
  Smallest, Largest, Blocks, SpanSize: NativeUInt;
begin
  Largest := ClassToSize(SizeClass);
  Smallest := 1;
  if SizeClass > 0 then
    Smallest := ClassToSize(SizeClass - 1) + 1;
  SpanSize := Process.ClassSlices[SizeClass] * SliceSize;
  Blocks := SpanSize div Largest;
  WriteLn(Format('%5d %7d ..%6d %7d %9.1f %8.1f %8d %7d %9.1f', [SizeClass, Smallest, Largest,
    Largest - Smallest, 100 * (Largest - Smallest) / Largest,
    50 * (Largest - Smallest) / Largest, SpanSize div 1024, Blocks,
    100 * (SpanSize - Blocks * Largest) / SpanSize]));
end;

procedure PrintSummary;
var
  SizeClass: Cardinal;
  Size: NativeUInt;
  Waste, Worst, Sum: Double;
begin
  Worst := 0;
  Sum := 0;
  for Size := 129 to MaxClassSize do
  begin
    SizeClass := SizeToClass(Size);
    Waste := (ClassToSize(SizeClass) - Size) / ClassToSize(SizeClass);
    Sum := Sum + Waste;
    if Waste > Worst then
      Worst := Waste;
  end;
  WriteLn(Format('%d classes. Above 128 bytes the worst waste is %.1f %%, the mean over all '
    + 'sizes %.1f %%;', [SizeClassCount, 100 * Worst, 100 * Sum / (MaxClassSize - 128)]));
  WriteLn('up to 128 bytes a block is at most 15 bytes larger than asked for: its alignment.');
end;

var
  SizeClass: Cardinal;
begin
  WriteLn('class   requested bytes   waste of the smallest     mean   span KB  blocks   unused');
  WriteLn('         from     to     bytes   % of block           %                        %');
  for SizeClass := 0 to SizeClassCount - 1 do
    PrintClass(SizeClass);
  PrintSummary;
end.
