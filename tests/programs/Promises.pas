/// What the programs share: promises that are kept or broken, and patterns.
unit Promises;

{$mode delphi}{$pointermath on}

interface

/// Notes and prints a broken promise. Any thread.
procedure Expect(IsKept: Boolean; const Promise: ShortString);
/// Ends the program: exit code 0 if all promises were kept, otherwise 1.
procedure Finish;
/// How many promises were broken so far.
function BrokenCount: Integer;

/// Fills Size bytes with a pattern that depends on Key.
procedure Fill(P: PByte; Size: NativeUInt; Key: Cardinal);
/// Whether Size bytes hold the pattern of Key; of a shortened block ask for whole words.
function IsFilled(P: PByte; Size: NativeUInt; Key: Cardinal): Boolean;
/// A block of Size bytes with the pattern of Key.
function FilledBlock(Size: NativeUInt; Key: Cardinal): PByte;
/// The next number below Limit of a small generator.
function NextRandom(var State: Cardinal; Limit: Cardinal): Cardinal;

const
  /// Requested sizes in bytes of all tiers.
  SampleSizes: array[0..11] of NativeUInt = (0, 1, 16, 24, 100, 1000, 8192, 10000, 65536, 65537,
    300000, 3000000);

implementation

const
  Multiplier = NativeUInt($9E3779B97F4A7C15);

var
  Broken: LongInt;

procedure Expect(IsKept: Boolean; const Promise: ShortString);
begin
  if IsKept then
    Exit;
  InterlockedIncrement(Broken);
  WriteLn('broken: ', Promise);
  Flush(Output);
end;

function BrokenCount: Integer;
begin
  Result := Broken;
end;

procedure Finish;
begin
  Halt(Ord(Broken <> 0));
end;

procedure Fill(P: PByte; Size: NativeUInt; Key: Cardinal);
var
  Index: NativeUInt;
begin
  for Index := 1 to Size div SizeOf(Index) do
    PNativeUInt(P)[Index - 1] := (Index xor Key) * Multiplier;
  for Index := Size and not (SizeOf(Index) - 1) + 1 to Size do
    P[Index - 1] := Byte(Index xor Key);
end;

function IsFilled(P: PByte; Size: NativeUInt; Key: Cardinal): Boolean;
var
  Index: NativeUInt;
begin
  Result := False;
  for Index := 1 to Size div SizeOf(Index) do
    if PNativeUInt(P)[Index - 1] <> (Index xor Key) * Multiplier then
      Exit;
  for Index := Size and not (SizeOf(Index) - 1) + 1 to Size do
    if P[Index - 1] <> Byte(Index xor Key) then
      Exit;
  Result := True;
end;

function FilledBlock(Size: NativeUInt; Key: Cardinal): PByte;
begin
  GetMem(Result, Size);
  Fill(Result, Size, Key);
end;

function NextRandom(var State: Cardinal; Limit: Cardinal): Cardinal;
begin
  State := State * 1664525 + 1013904223;
  Result := (State shr 8) mod Limit;
end;

end.
