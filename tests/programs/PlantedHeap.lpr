/// Uses the heap in known ways at known places, for the reports of a sampled profile: run it with
/// LANEMM=profile,rate=1 and the name of a part:
///   peak       First: 150 blocks of 1,000 bytes, 50 of them freed; then the peak, with 200 blocks of
///              5,000 bytes of Burst, which are freed; then 30 blocks of First are, and Later keeps
///              50 blocks of 3,000 bytes
///   temporary  Turn: 1,000 blocks freed at once; Beside: 500 pairs, of which the first block is freed
///              when the second is there, then the second; Slow: 300 blocks freed after five other
///              allocations; Cross: 400 blocks freed by another thread
///   lives      Short: 100 blocks freed after at least 150 ms
///   growth     Grow: ten times 10,000 bytes, with pauses; they are kept
///   fragments  Long: 5,000 blocks of 640 bytes, each behind seven of Brief, which are freed; all in
///              one size class
///   classes    Make: 100 objects of TThing; 50 of TOther, of which 20 are freed; Say: 60 strings of
///              500 characters, 30 of them freed
///   array      temporary, and an array that grows to 1,000 elements, one at a time
///   suppressed First, as expected leaks, and Later
///   paths      Deep: a line that allocates 64 blocks of 700 bytes, each on another path; and ten
///              blocks of 3,000 bytes, each at a line of its own; writes a report of the heap in use
///   reports    First; writes the profiles twice while it runs, and a report of the heap in use
///   callers    Lend: a line that allocates ten blocks of 500 bytes for one caller, which keeps them, and thirty for
///              another one, which frees them; writes a report of the heap in use
///   kinds      objects of 480 classes, which are made here: of sixty at each of eight call sites, with most bytes of
///              the first of them, TMost; writes a report of the heap in use
program PlantedHeap;

{$mode delphi}{$H+}

uses
  LaneMM, {$ifdef UNIX} cthreads, {$endif} SysUtils;

type
  TThing = class
    Data: array[0..99] of Byte;
  end;

  TOther = class
    Data: array[0..199] of Byte;
  end;

var
  Kept: array[0..39999] of Pointer;
  Firsts, Bursts, Laters, Crossing: array[0..399] of Pointer;
  Texts: array[0..59] of AnsiString;

procedure First;
var
  Index: Integer;
begin
  for Index := 0 to 149 do
    GetMem(Firsts[Index], 1000);
end;

procedure Burst;
var
  Index: Integer;
begin
  for Index := 0 to 199 do
    GetMem(Bursts[Index], 5000);
end;

procedure Later;
var
  Index: Integer;
begin
  for Index := 0 to 49 do
    GetMem(Laters[Index], 3000);
end;

procedure FreeSome(var Blocks: array of Pointer; From, Count: Integer);
var
  Index: Integer;
begin
  for Index := From to From + Count - 1 do
    FreeMem(Blocks[Index]);
end;

procedure Peak;
begin
  First;
  FreeSome(Firsts, 0, 50);
  Burst;
  FreeSome(Bursts, 0, 200);
  FreeSome(Firsts, 50, 30);
  Later;
end;

procedure Turn;
var
  Index: Integer;
  Block: Pointer;
begin
  for Index := 1 to 1000 do
  begin
    GetMem(Block, 100);
    FreeMem(Block);
  end;
end;

procedure Beside;
var
  Index: Integer;
  Outer, Inner: Pointer;
begin
  for Index := 1 to 500 do
  begin
    GetMem(Outer, 200);
    GetMem(Inner, 300);
    FreeMem(Outer);
    FreeMem(Inner);
  end;
end;

procedure Slow;
var
  Index, Other: Integer;
  Block: Pointer;
begin
  for Index := 0 to 299 do
  begin
    GetMem(Block, 400);
    for Other := 0 to 4 do
      GetMem(Kept[Index * 5 + Other], 80);
    FreeMem(Block);
  end;
end;

function FreeAll(Unused: Pointer): PtrInt;
begin
  FreeSome(Crossing, 0, 400);
  Result := 0;
end;

procedure Cross;
var
  Index: Integer;
begin
  for Index := 0 to 399 do
    GetMem(Crossing[Index], 500);
  WaitForThreadTerminate(BeginThread(FreeAll, nil), 0);
end;

procedure Short;
var
  Index: Integer;
begin
  for Index := 0 to 99 do
    GetMem(Kept[Index], 200);
  Sleep(150);
  FreeSome(Kept, 0, 100);
end;

procedure Grow;
var
  Index: Integer;
begin
  for Index := 0 to 9 do
  begin
    GetMem(Kept[Index], 10000);
    Sleep(120);
  end;
end;

procedure Long(Index: Integer);
begin
  GetMem(Kept[Index], 640);
end;

procedure Brief(Index: Integer);
begin
  GetMem(Kept[Index], 640);
end;

procedure Fragments;
var
  Index: Integer;
begin
  for Index := 0 to 39999 do
    if Index mod 8 = 7 then
      Long(Index)
    else
      Brief(Index);
  for Index := 0 to 39999 do
    if Index mod 8 <> 7 then
      FreeMem(Kept[Index]);
end;

function Make(Kind: TClass): TObject;
begin
  Result := Kind.Create;
end;

procedure Say(Index: Integer);
begin
  SetLength(Texts[Index], 500);
  FillChar(Texts[Index][1], 500, 'x');
end;

procedure MakeAll;
var
  Index: Integer;
  Others: array[0..49] of TObject;
begin
  for Index := 0 to 99 do
    Kept[Index] := Make(TThing);
  for Index := 0 to 49 do
    Others[Index] := Make(TOther);
  for Index := 0 to 19 do
    Others[Index].Free;
  for Index := 0 to 59 do
    Say(Index);
  for Index := 0 to 29 do
    Texts[Index] := '';
  for Index := 30 to 59 do // so that they are not freed before the profile is written
    Pointer(Texts[Index]) := nil;
end;

procedure Temporary;
begin
  Turn;
  Beside;
  Slow;
  Cross;
end;

procedure GrowArray;
var
  Items: array of LongInt;
  Index: Integer;
begin
  Temporary;
  for Index := 1 to 1000 do
    SetLength(Items, Index);
end;

procedure Suppressed;
var
  Block: Pointer;
begin
  First;
  for Block in Firsts do
    if Block <> nil then
      LaneMM_RegisterExpectedMemoryLeak(Block);
  Later;
end;

// Has 2 to the power of Depth paths. Calls between different routines: not recursion of one.
procedure Deep(Depth, Path: Integer); forward;

procedure Deeper(Depth, Path: Integer);
begin
  Deep(Depth - 1, Path * 2);
  Deep(Depth - 1, Path * 2 + 1);
end;

procedure Deep(Depth, Path: Integer);
begin
  if Depth = 0 then
    GetMem(Kept[Path], 700)
  else
    Deeper(Depth, Path);
end;

procedure Paths;
begin
  Deep(6, 1);
  GetMem(Kept[1], 3000);
  GetMem(Kept[2], 3000);
  GetMem(Kept[3], 3000);
  GetMem(Kept[4], 3000);
  GetMem(Kept[5], 3000);
  GetMem(Kept[6], 3000);
  GetMem(Kept[7], 3000);
  GetMem(Kept[8], 3000);
  GetMem(Kept[9], 3000);
  GetMem(Kept[10], 3000);
  LaneMM_WriteHeapReport(hrInUse);
end;

procedure Lend(Index: Integer);
begin
  GetMem(Kept[Index], 500);
end;

procedure Keep;
var
  Index: Integer;
begin
  for Index := 0 to 9 do
    Lend(Index);
end;

procedure Return;
var
  Index: Integer;
begin
  for Index := 10 to 39 do
    Lend(Index);
  FreeSome(Kept, 10, 30);
end;

procedure Callers;
begin
  Return;
  Keep;
  LaneMM_WriteHeapReport(hrInUse);
end;

type
  // The record of a class that is made here.
  TClassRecord = array[0..39] of PtrInt;

const
  SiteCount = 8;
  KindCount = 60;

type
  TKinds = record
    IsData: Boolean;
    Kinds: array[0..SiteCount - 1, 0..KindCount - 1] of TClassRecord;
    Names: array[0..SiteCount - 1, 0..KindCount - 1] of string[15];
  end;

var
  {$warn 3177 off}
  Made: TKinds = (IsData: True); // in the file of the program, as classes are; the rest begins as zero
  {$warn 3177 on}

procedure MakeKinds(Site: Integer);
var
  Kind: Integer;
  Next: ^TClassRecord;
begin
  for Kind := 0 to KindCount - 1 do
  begin
    Next := @Made.Kinds[Site, Kind];
    Move(Pointer(TThing)^, Next^, SizeOf(Next^));
    Made.Names[Site, Kind] := Format('TKind%dx%d', [Site, Kind]);
    if Kind = 0 then
    begin
      Made.Names[Site, Kind] := Format('TMost%d', [Site]);
      Next^[vmtInstanceSize div SizeOf(PtrInt)] := 5000;
      Next^[vmtInstanceSize div SizeOf(PtrInt) + 1] := -5000;
    end;
    Next^[vmtClassName div SizeOf(PtrInt)] := PtrInt(@Made.Names[Site, Kind]);
    Kept[Site * KindCount + Kind] := Make(TClass(Next));
  end;
end;

procedure MakeAllKinds;
begin
  MakeKinds(0);
  MakeKinds(1);
  MakeKinds(2);
  MakeKinds(3);
  MakeKinds(4);
  MakeKinds(5);
  MakeKinds(6);
  MakeKinds(7);
  LaneMM_WriteHeapReport(hrInUse);
end;

procedure Reports;
begin
  First;
  LaneMM_WriteProfiles;
  LaneMM_WriteProfiles;
  LaneMM_WriteHeapReport(hrInUse);
  LaneMM_WriteHeapReport(hrPeak);
end;

type
  TPart = record
    Name: string;
    Call: procedure;
  end;

const
  Parts: array[0..11] of TPart = (
    (Name: 'callers'; Call: Callers),
    (Name: 'kinds'; Call: MakeAllKinds),
    (Name: 'peak'; Call: Peak),
    (Name: 'temporary'; Call: Temporary),
    (Name: 'lives'; Call: Short),
    (Name: 'growth'; Call: Grow),
    (Name: 'fragments'; Call: Fragments),
    (Name: 'classes'; Call: MakeAll),
    (Name: 'array'; Call: GrowArray),
    (Name: 'suppressed'; Call: Suppressed),
    (Name: 'paths'; Call: Paths),
    (Name: 'reports'; Call: Reports));

var
  Part: TPart;

begin
  for Part in Parts do
    if Part.Name = ParamStr(1) then
      Part.Call;
end.
