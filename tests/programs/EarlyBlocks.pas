/// Blocks that exist before LaneMM is installed.
unit EarlyBlocks;

{$mode delphi}

interface

uses
  Promises;

type
  TEarlyObject = class
    Name: AnsiString;
  end;

var
  Early, Resized: array[0..High(SampleSizes)] of Pointer;
  EarlyText: AnsiString;
  EarlyNumbers: array of Integer;
  EarlyObject: TEarlyObject;

implementation

var
  Index: Integer;

initialization
  for Index := 0 to High(SampleSizes) do
  begin
    Early[Index] := FilledBlock(SampleSizes[Index], Index);
    Resized[Index] := FilledBlock(SampleSizes[Index], Index);
  end;
  EarlyText := 'early';
  UniqueString(EarlyText);
  SetLength(EarlyNumbers, 1000);
  EarlyObject := TEarlyObject.Create;
  EarlyObject.Name := EarlyText + ' object';
end.
