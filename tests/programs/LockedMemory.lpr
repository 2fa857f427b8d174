/// A program that locks all its memory, which the system then does not take back: memory that was
/// freed is still dirty, and AllocMem must know.
program LockedMemory;

{$mode delphi}{$pointermath on}

uses
  LaneMM, cthreads, Promises;

const
  LockCurrent = 1;

function mlockall(Flags: LongInt): LongInt; cdecl; external 'c';

function IsZero(P: PByte; Size: NativeUInt): Boolean;
var
  Index: NativeUInt;
begin
  Result := True;
  for Index := 0 to Size - 1 do
    Result := Result and (P[Index] = 0);
end;

procedure DirtyThenZero(Size: NativeUInt);
var
  P: PByte;
begin
  P := FilledBlock(Size, 1);
  mlockall(LockCurrent); // without the right to do so, this tests little
  FreeMem(P);
  LaneMM_Trim;
  P := AllocMem(Size);
  Expect(IsZero(P, MemSize(P)), 'AllocMem gives zeros');
  FreeMem(P);
end;

var
  Index: Integer;
begin
  for Index := 0 to High(SampleSizes) do
    DirtyThenZero(SampleSizes[Index]);
  Finish;
end.
