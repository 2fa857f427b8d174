/// The memory of a target outside of its heap: where words are pointers of the program, and what LaneMM
/// has taken for itself, where they are not.
unit HeapRanges;

{$mode delphi}{$H+}
{$I Comparers.inc}
{$pointermath on}

interface

uses
  Targets, HeapImages;

type
  /// Addresses.
  TRange = record
    First, Limit: UInt64; //< the first one, and the first one behind
  end;
  TRanges = TArray<TRange>;

/// Returns the memory of the program outside of the heap, by address: variables of modules, or all
/// other that it can write. A stack begins at its stack pointer, if Registers has those of its thread.
function ProgramRanges(Image: THeapImage; const Registers: TArray<TRegisters>; OfModules: Boolean)
  : TRanges;

implementation

uses
  SysUtils, Math, Generics.Defaults, Generics.Collections, LaneMM.Layout, LaneMM.Types, LaneMM.Os;

procedure AddRange(var Ranges: TRanges; First, Size: UInt64);
var
  Range: TRange;
begin
  Range.First := First;
  Range.Limit := First + Size;
  Insert(Range, Ranges, Length(Ranges));
end;

// Adds the pages of OsTakePages: tables of samples, of growing blocks, of calls.
procedure AddTaken(Image: THeapImage; var Ranges: TRanges);
var
  Table: TOsTakenTable;
  Each: TOsTaken;
  Address: UInt64;
  Left: Integer;
begin
  Address := Image.State^.TakenPages;
  Left := 1000; // tables that change meanwhile may lead in a circle
  while (Address <> 0) and (Left > 0)
    and Image.Target.ReadAll(Address, @Table, SizeOf(Table)) do
  begin
    AddRange(Ranges, Address, SizeOf(Table));
    for Each in Table.Ranges do
      if Each.First <> 0 then
        AddRange(Ranges, Each.First, Each.Size);
    Address := UInt64(Table.Next);
    Dec(Left);
  end;
end;

function ByAddress(constref Left, Right: TRange): Integer;
begin
  Result := CompareValue(Left.First, Right.First);
end;

// Joins ranges, which are in the order of address, that overlap: heaps lie in pages of OsTakePages. Then
// their ends are in that order, too.
procedure JoinRanges(var Ranges: TRanges);
var
  Index, Count: Integer;
begin
  Count := 0;
  for Index := 0 to High(Ranges) do
    if (Count > 0) and (Ranges[Index].First <= Ranges[Count - 1].Limit) then
      Ranges[Count - 1].Limit := Max(Ranges[Count - 1].Limit, Ranges[Index].Limit)
    else
    begin
      Ranges[Count] := Ranges[Index];
      Inc(Count);
    end;
  SetLength(Ranges, Count);
end;

// Returns LaneMM's memory, by address. Its records hold addresses of blocks, too: those that it carved
// or freed last.
function OwnRanges(Image: THeapImage): TRanges;
var
  Arena: TArenaImage;
  Index: Integer;
begin
  Result := nil;
  AddRange(Result, Image.Address, SizeOf(TProcess));
  for Arena in Image.Arenas do
  begin
    AddRange(Result, UInt64(Arena.Head.Base), Arena.Head.Reserved * SliceSize);
    AddRange(Result, Arena.Address, UInt64(Arena.Head.Spans + Arena.Head.Reserved) - Arena.Address);
  end;
  for Index := 0 to High(Image.Heaps) do
    AddRange(Result, Image.Heaps[Index].Address, SizeOf(THeap));
  AddTaken(Image, Result);
  TArrayHelper<TRange>.Sort(Result, TComparer<TRange>.Construct(ByAddress));
  JoinRanges(Result);
end;

// Returns the index of the first range that ends behind Address.
function IndexBehind(const Ranges: TRanges; Address: UInt64): Integer;
var
  Limit, Middle: Integer;
begin
  Result := 0;
  Limit := Length(Ranges);
  while Result < Limit do
  begin
    Middle := (Result + Limit) div 2;
    if Ranges[Middle].Limit <= Address then
      Result := Middle + 1
    else
      Limit := Middle;
  end;
end;

// Adds what is in none of Own of the memory from First up to Limit.
procedure AddOutside(var Ranges: TRanges; const Own: TRanges; First, Limit: UInt64);
var
  Index: Integer;
begin
  Index := IndexBehind(Own, First);
  while (Index < Length(Own)) and (Own[Index].First < Limit) do
  begin
    if First < Own[Index].First then
      AddRange(Ranges, First, Own[Index].First - First);
    First := Max(First, Own[Index].Limit);
    Inc(Index);
  end;
  if First < Limit then
    AddRange(Ranges, First, Limit - First);
end;

// Returns whether the region has variables, stacks or other words of the program.
function IsOfProgram(Region: PRegion): Boolean;
begin
  Result := Region^.IsReadable
    and (Region^.IsWritable or (Region^.Module <> '') and not Region^.IsCode)
    and not Region^.Path.StartsWith('/dev/');
end;

// Returns whether what lies before the region cannot be read: the guard below a stack.
function HasGuard(Target: TTarget; Region: PRegion): Boolean;
var
  Before: PRegion;
begin
  Before := Target.FindRegion(Region^.First - 1);
  Result := (Before = nil) or not Before^.IsReadable;
end;

// Returns the first address of a region that is in use. Stacks without guards between them are one.
function FirstInUse(Target: TTarget; Region: PRegion; const Registers: TArray<TRegisters>): UInt64;
const
  RedZone = 128; // bytes below the stack pointer that a routine may use
var
  Stack, Lowest: UInt64;
  Index: Integer; // the records of some thousand threads are not copied for each region
begin
  Lowest := Region^.Limit;
  for Index := 0 to High(Registers) do
  begin
    Stack := Registers[Index][StackRegister];
    if (Stack >= Region^.First) and (Stack < Lowest) then
      Lowest := Stack;
  end;
  Result := Region^.First;
  if (Lowest < Region^.Limit) and (Lowest - Result > RedZone) and HasGuard(Target, Region) then
    Result := (Lowest - RedZone) and not UInt64(SizeOf(UInt64) - 1);
end;

function ProgramRanges(Image: THeapImage; const Registers: TArray<TRegisters>; OfModules: Boolean)
  : TRanges;
var
  Own: TRanges;
  Region: PRegion;
begin
  Result := nil;
  Own := OwnRanges(Image);
  for Region in Image.Target.AllRegions do
    if IsOfProgram(Region) and ((Region^.Module <> '') = OfModules) then
      AddOutside(Result, Own, FirstInUse(Image.Target, Region, Registers),
        Image.Target.ReadableLimit(Region));
end;

end.
