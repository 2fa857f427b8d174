/// Damage in the heap of a target: free lists that lead nowhere, guards that were overwritten.
unit HeapDamage;

{$mode delphi}{$H+}
{$pointermath on}

interface

uses
  HeapImages;

type
  /// Something that cannot be in a sound heap.
  TDamage = record
    Address: UInt64;  //< of the block, or of the span
    Text: string;     //< a sentence
  end;
  TDamages = TArray<TDamage>;

/// Checks all spans. Exact for a target that stands still; while it runs, a list that changes looks
/// damaged: what later looks do not confirm is left out.
function FindDamage(Image: THeapImage): TDamages;

implementation

uses
  SysUtils, Generics.Collections, LaneMM.Layout, LaneMM.Types, LaneMM.RemoteList,
  LaneMM.DebugState, LaneMM.DebugSpans, LaneMM.DebugRecords, HeapWalks;

type
  TChecker = class
    Image: THeapImage;
    Walker: TWalker;
    Bytes: TBytes;
    Damages: TDamages;
    procedure Add(Address: UInt64; const Text: string);
    function WalkList(Run: PRun; First: NativeUInt; const Name: string;
      out Length: NativeUInt): Boolean;
    procedure CheckSpan(Run: PRun);
    procedure CheckGuards(const Place: TDebugPlace; Size: NativeUInt);
    procedure CheckDebug(Run: PRun);
    procedure CheckAll;
  end;

procedure TChecker.Add(Address: UInt64; const Text: string);
var
  Damage: TDamage;
begin
  Damage.Address := Address;
  Damage.Text := Text;
  Insert(Damage, Damages, System.Length(Damages));
end;

// Follows a list from the offset First on; returns whether it ends as it must.
function TChecker.WalkList(Run: PRun; First: NativeUInt; const Name: string;
  out Length: NativeUInt): Boolean;
var
  Next, Block: NativeUInt;
begin
  Length := 0;
  Block := 0;
  Next := First;
  while Next <> EndOfList do
  begin
    Result := (Next < Run^.Span^.CarvedBytes)
      and (Next mod Run^.Span^.BlockSize = 0);
    if not Result then
    begin
      if Length = 0 then
        Add(Run^.Address, Format('%s of the span does not begin at a block', [Name]))
      else
        Add(Run^.Address + Block,
          Format('free block of %d bytes: its first word was overwritten; %s ends there',
          [Run^.Span^.BlockSize, Name]));
      Exit;
    end;
    Inc(Length);
    if Length > Run^.Span^.CarvedBytes div Run^.Span^.BlockSize then
    begin
      Add(Run^.Address + Next, Name + ' of the span leads to itself: a double free');
      Exit(False);
    end;
    Block := Next;
    Next := LinkOf(Run^.Span, PNativeUInt(@Bytes[Block])^);
  end;
  Result := True;
end;

procedure TChecker.CheckSpan(Run: PRun);
var
  Span: PSpan;
  Free, Remote: NativeUInt;
  First: NativeUInt;
begin
  Span := Run^.Span;
  if (Span^.BlockSize < BlockAlignment) or (Span^.CarvedBytes > Run^.SliceCount * SliceSize)
    or (Span^.SizeClass >= SizeClassCount) then
  begin
    Add(Run^.Address, 'the record of the span is damaged');
    Exit;
  end;
  SetLength(Bytes, Run^.SliceCount * SliceSize);
  if not Image.Target.ReadAll(Run^.Address, Pointer(Bytes), Span^.CarvedBytes)
    or not Image.IsUnchanged(Run) then
    Exit; // a span that changes cannot be judged
  First := EndOfList;
  if RemoteCount(Span) > 0 then
    First := RemoteFirst(Span);
  if not WalkList(Run, Span^.FreeList, 'the free list', Free)
    or not WalkList(Run, First, 'the list of what other threads freed', Remote) then
    Exit;
  // Used is not compared: a thread may have been stopped between a list and its count.
  if Remote <> RemoteCount(Span) then
    Add(Run^.Address, Format('the list of what other threads freed has %d blocks, counted are %d',
      [Remote, RemoteCount(Span)]));
end;

// Returns whether Count bytes are those of a guard.
function IsGuard(Bytes: PByte; Count: NativeUInt): Boolean;
begin
  Result := (Count = 0)
    or (Bytes[0] = GuardByte) and (CompareByte(Bytes[0], Bytes[1], Count - 1) = 0);
end;

procedure TChecker.CheckGuards(const Place: TDebugPlace; Size: NativeUInt);
var
  Guard: array[0..MostGuard - 1] of Byte;
  Length: NativeUInt;
begin
  if not Place.HasPages and Image.Target.ReadAll(UInt64(Place.Data) - FrontGuardSize, @Guard,
    FrontGuardSize) and not IsGuard(@Guard, FrontGuardSize) then
    Add(UInt64(Place.Data),
      Format('debug block of %d bytes: underrun, bytes before it were modified', [Size]));
  Length := DebugGuardLength(Place, Size);
  if Image.Target.ReadAll(UInt64(Place.Data) + Size, @Guard, Length)
    and not IsGuard(@Guard, Length) then
    Add(UInt64(Place.Data),
      Format('debug block of %d bytes: overrun, bytes past the end were modified', [Size]));
end;

procedure TChecker.CheckDebug(Run: PRun);
var
  Records: TArray<TDebugBlock>;
  Place: TDebugPlace;
  Index: Integer;
begin
  Records := Walker.DebugRecords(Run);
  for Index := 0 to High(Records) do
    if DebugStateOf(Records[Index].State) = dsInUse then
    begin
      DebugPlaceIn(Run^.Span, @Records[Index], Index, Place);
      if not DebugBlockIsSealed(@Records[Index]) then
        Add(UInt64(Place.Data), 'debug block: its bookkeeping record is damaged')
      else if Records[Index].Size <= Place.Capacity then
        CheckGuards(Place, Records[Index].Size);
    end;
end;

procedure TChecker.CheckAll;
var
  Index: Integer;
begin
  for Index := 0 to High(Image.Runs) do
    case Image.Runs[Index].Kind of
      skBlocks: CheckSpan(@Image.Runs[Index]);
      skDebug: CheckDebug(@Image.Runs[Index]);
    end;
end;

function CheckOnce(Image: THeapImage): TDamages;
var
  Checker: TChecker;
begin
  Checker := TChecker.Create;
  Checker.Image := Image;
  Checker.Walker := TWalker.Create(Image);
  Checker.CheckAll;
  Result := Checker.Damages;
  Checker.Walker.Free;
  Checker.Free;
end;

// Leaves out what is not in Earlier. There may be hundreds of thousands.
function Confirmed(const Damages, Earlier: TDamages): TDamages;
var
  Known: TDictionary<string, Boolean>;
  Damage: TDamage;
  Count: Integer;
begin
  Known := TDictionary<string, Boolean>.Create;
  for Damage in Earlier do
    Known.AddOrSetValue(HexStr(Damage.Address, 16) + Damage.Text, True);
  Result := nil;
  SetLength(Result, Length(Damages));
  Count := 0;
  for Damage in Damages do
    if Known.ContainsKey(HexStr(Damage.Address, 16) + Damage.Text) then
    begin
      Result[Count] := Damage;
      Inc(Count);
    end;
  SetLength(Result, Count);
  Known.Free;
end;

function FindDamage(Image: THeapImage): TDamages;
const
  Looks = 5; // a program that runs may repeat what it does at the same addresses
var
  Earlier: TDamages;
  Look: Integer;
begin
  Result := CheckOnce(Image);
  for Look := 2 to Looks do
  begin
    if Result = nil then
      Exit;
    Earlier := Result;
    Image.Refresh;
    Result := Confirmed(CheckOnce(Image), Earlier);
  end;
end;

end.
