/// Blocks with an alignment, and an alignment of all blocks, as a program uses them. Exit code 0 on
/// success. With an argument it does what is to be reported:
///   wrong    asks for alignments that do not exist
///   overrun  writes past an aligned block, in debug mode
///   freed    frees an aligned block twice, in debug mode
///   leak     leaves aligned blocks behind
program AlignedBlocks;

{$mode delphi}{$H+}{$pointermath on}

uses
  LaneMM, {$ifdef UNIX} cthreads, {$endif} Classes, SysUtils;

procedure Check(IsTrue: Boolean; const What: string);
begin
  if IsTrue then
    Exit;
  WriteLn('not so: ', What);
  Halt(1);
end;

function IsAligned(P: Pointer; Alignment: NativeUInt): Boolean;
begin
  Result := (P <> nil) and (NativeUInt(P) mod Alignment = 0);
end;

function Holds(P: PByte; Size: NativeUInt; Value: Byte): Boolean;
begin
  Result := True;
  while Size > 0 do
  begin
    Dec(Size);
    Result := Result and (P[Size] = Value);
  end;
end;

function LeastOf(A, B: NativeUInt): NativeUInt;
begin
  Result := A;
  if B < A then
    Result := B;
end;

const
  MostAlignment = 1024 * 1024;
  Sizes: array[0..9] of NativeUInt = (1, 24, 100, 1000, 5000, 70000, 40, 400000, 66000, 3);

procedure UseBlocks(Alignment: NativeUInt);
var
  P, Q: PByte;
  Size, Before: NativeUInt;
  Info: TLaneMM_BlockInfo;
begin
  Q := nil;
  Before := 0;
  for Size in Sizes do
  begin
    P := LaneMM_GetMemAligned(Size, Alignment);
    Check(IsAligned(P, Alignment), 'an aligned block');
    Check(MemSize(P) >= Size, 'its size');
    if LaneMM_DebugModeActive then
      Check(LaneMM_BlockInfo(P, Info) and (Info.RequestedSize = NativeInt(Size)), 'its requested size');
    FillChar(P^, Size, 5);
    FreeMem(P);
    P := LaneMM_AllocMemAligned(Size, Alignment);
    Check(IsAligned(P, Alignment) and Holds(P, Size, 0), 'an aligned block of zeros');
    FillChar(P^, Size, 6);
    FreeMem(P);
    Check(LaneMM_ReallocMemAligned(Pointer(Q), Size, Alignment) = Q, 'resized');
    Check(IsAligned(Q, Alignment) and Holds(Q, LeastOf(Size, Before), 7), 'contents of a resized block');
    FillChar(Q^, Size, 7);
    Before := Size;
  end;
  ReallocMem(Q, 10000);
  Check(Holds(Q, 3, 7), 'contents after ReallocMem');
  Check((LaneMM_ReallocMemAligned(Pointer(Q), 0, Alignment) = nil) and (Q = nil), 'freed');
end;

// An ordinary block becomes an aligned one.
procedure AlignOthers;
var
  Blocks: array[0..99] of Pointer;
  Index: Integer;
begin
  for Index := 0 to High(Blocks) do
  begin
    GetMem(Blocks[Index], 48);
    FillChar(Blocks[Index]^, 48, Index);
    Check(LaneMM_ReallocMemAligned(Blocks[Index], 48, 256) = Blocks[Index], 'aligned later');
    Check(IsAligned(Blocks[Index], 256) and Holds(Blocks[Index], 48, Index), 'its contents');
  end;
  for Index := 0 to High(Blocks) do
    FreeMem(Blocks[Index]);
end;

// ---------------------------------------------------------------------------- regions

procedure UseScope(Region: TLaneMM_Region; Outside: Pointer);
var
  P: Pointer;
begin
  P := LaneMM_GetMemAligned(100, 64);
  if not LaneMM_DebugModeActive then
  begin
    Check(LaneMM_RegionOf(P) = Region, 'an aligned block in a scope');
    Check(LaneMM_RegionOf(LaneMM_GetMemAligned(100, MostAlignment)) = Region, 'a large one');
  end;
  LaneMM_ReallocMemAligned(Outside, 5000, 128);
  Check(IsAligned(Outside, 128) and (LaneMM_RegionOf(Outside) = 0), 'one of no region stays outside');
  FreeMem(Outside);
  LaneMM_EnterAlignment(32);
  Check(IsAligned(TObject.Create, 32), 'an object in both scopes');
  LaneMM_ExitAlignment(32);
end;

procedure UseRegions;
var
  Region: TLaneMM_Region;
  Outside: Pointer;
begin
  Region := LaneMM_RegionCreate('aligned', 0);
  GetMem(Outside, 100);
  LaneMM_RegionEnter(Region);
  UseScope(Region, Outside);
  LaneMM_RegionLeave;
  Check(LaneMM_RegionFree(Region), 'the region is freed');
end;

// ---------------------------------------------------------------------------- all blocks

type
  TVector = class
    Values: array[0..2] of Double;
  end;

var
  Alignment: NativeUInt;
  Misaligned: Integer;

// Objects, strings, arrays and blocks of all sizes, in any thread.
procedure Allocate;
var
  Size: NativeUInt;
  Text: string;
  Numbers: array of Double;
  Vector: TVector;
  P: Pointer;
begin
  Text := '';
  for Size := 1 to 700 do
  begin
    Vector := TVector.Create;
    SetLength(Text, Size);
    SetLength(Numbers, Size);
    P := AllocMem(Size);
    if not IsAligned(Pointer(Vector), Alignment) or not IsAligned(P, Alignment) then
      Inc(Misaligned);
    FreeMem(P);
    Vector.Free;
  end;
end;

function AllocateInThread(Argument: Pointer): PtrInt;
begin
  Allocate;
  Result := 0;
end;

procedure ExpectAlignment(Expected: NativeUInt);
begin
  Alignment := Expected;
  Misaligned := 0;
  Check(LaneMM_Alignment = Expected, 'the alignment of all blocks');
  Allocate;
  WaitForThreadTerminate(BeginThread(@AllocateInThread), 0);
  Check(Misaligned = 0, 'all blocks have the alignment');
end;

procedure AlignAll;
begin
  Check(not LaneMM_ExitAlignment(64), 'nothing to take back');
  Check(LaneMM_EnterAlignment(32), '32');
  ExpectAlignment(32);
  Check(LaneMM_EnterAlignment(64), '64');
  LaneMM_EnterDebugMode;
  ExpectAlignment(64);
  LaneMM_ExitDebugMode;
  Check(LaneMM_EnterAlignment(16), '16');
  ExpectAlignment(64);
  Check(not LaneMM_ExitAlignment(24) and not LaneMM_ExitAlignment(0), 'what cannot be entered');
  Check(LaneMM_ExitAlignment(64), '64 is taken back');
  ExpectAlignment(32);
  Check(LaneMM_ExitAlignment(32) and LaneMM_ExitAlignment(16), 'the others, too');
  ExpectAlignment(16);
end;

// ---------------------------------------------------------------------------- mistakes

procedure AskForWrong;
var
  P: Pointer;
begin
  Check(LaneMM_GetMemAligned(10, 0) = nil, 'no alignment');
  Check(LaneMM_AllocMemAligned(10, 24) = nil, 'no power of two');
  GetMem(P, 10);
  Check((LaneMM_ReallocMemAligned(P, 20, 2 * MostAlignment) = nil) and (P <> nil), 'too much');
  FreeMem(P);
  Check(not LaneMM_EnterAlignment(128), 'too much for all blocks');
  ReturnNilIfGrowHeapFails := True;
  Check(LaneMM_GetMemAligned(High(NativeInt), 64) = nil, 'no memory');
  Check(LaneMM_GetMemAligned(High(NativeUInt), MostAlignment) = nil, 'no such number');
end;

var
  P: PByte;
  Index: Integer;

begin
  case Copy(ParamStr(1) + ' ', 1, 1)[1] of
    'w':
      AskForWrong;
    'o':
      begin
        P := LaneMM_GetMemAligned(100, 256);
        P[100] := 1;
        FreeMem(P);
      end;
    'f':
      begin
        P := LaneMM_GetMemAligned(100, 4096);
        FreeMem(P);
        try
          FreeMem(P);
        except
          on EInvalidPointer do
            ;
        end;
      end;
    'l':
      begin
        for Index := 1 to 3 do
          P := LaneMM_GetMemAligned(333, 128);
        P := nil;
      end;
  else
    Alignment := 1;
    while Alignment <= MostAlignment do
    begin
      UseBlocks(Alignment);
      Alignment := Alignment * 2;
    end;
    AlignOthers;
    UseRegions;
    AlignAll;
  end;
end.
