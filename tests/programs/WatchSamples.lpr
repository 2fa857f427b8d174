/// Allocates known amounts at known lines, for a sampled profile: run it with LANEMM=profile.
///   Keep    100,000 blocks of 640 bytes, kept: 64,000,000 bytes
///   Turn    1,000,000 blocks of 96 bytes, each freed at once: 96,000,000 bytes
///   Cross   50,000 blocks of 320 bytes, freed by another thread: 16,000,000 bytes
///   Large   100 blocks of 300,000 bytes, every second one freed
///   Text    an AnsiString that grows to 20,000,000 characters, kept
/// With a number as its argument, the samples are those that follow from this seed.
program WatchSamples;

{$mode delphi}{$H+}
{$unitpath ../../src/core;../../src/observe} // behind the door

uses
  LaneMM, cthreads, LaneMM.Os, LaneMM.Samples;

var
  Kept: array[0..99999] of Pointer;
  Crossing: array[0..49999] of Pointer;
  Larges: array[0..99] of Pointer;
  KeptText: Pointer;

procedure Keep;
var
  Index: Integer;
begin
  for Index := 0 to High(Kept) do
    GetMem(Kept[Index], 640); // planted: keep
end;

procedure Turn;
var
  Index: Integer;
  Block: Pointer;
begin
  for Index := 1 to 1000000 do
  begin
    GetMem(Block, 96); // planted: turn
    FreeMem(Block);
  end;
end;

function FreeAll(Unused: Pointer): PtrInt;
var
  Index: Integer;
begin
  for Index := 0 to High(Crossing) do
    FreeMem(Crossing[Index]);
  Result := 0;
end;

procedure Cross;
var
  Index: Integer;
begin
  for Index := 0 to High(Crossing) do
    Crossing[Index] := AllocMem(320); // planted: cross
  WaitForThreadTerminate(BeginThread(FreeAll, nil), 0);
end;

procedure Large;
var
  Index: Integer;
begin
  for Index := 0 to High(Larges) do
    GetMem(Larges[Index], 300000); // planted: large
  for Index := 0 to High(Larges) do
    if Odd(Index) then
      FreeMem(Larges[Index]);
end;

procedure Text;
var
  Index: Integer;
  Text: AnsiString;
begin
  Text := '';
  for Index := 1 to 20000000 do
    Text := Text + 'x'; // planted: text
  KeptText := Pointer(Text);
  Pointer(Text) := nil; // so that it is not freed before the profile is written
end;

// The thread goes on as after a sample. What was sampled before, here surely a large block, followed
// from no seed, and the window that it has opened would decide when the next sample comes.
procedure SetSeed(Seed: UInt64);
begin
  FreeMem(GetMem(30 * LaneMM_Settings.Values[opRate]));
  OsThreadHeap^.SampleSeed := Seed;
  OsThreadHeap^.SampleIn := LaneMM_Settings.Values[opRate];
  WindowOpen(OsThreadHeap);
end;

var
  Seed: UInt64;
  Code: Integer;

begin
  Val(ParamStr(1), Seed, Code);
  if Code = 0 then
    SetSeed(Seed);
  Keep;
  Turn;
  Cross;
  Large;
  Text;
end.
