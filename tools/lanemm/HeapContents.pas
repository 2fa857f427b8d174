/// What the blocks of a target hold: objects by class, strings, arrays; and who holds a block.
unit HeapContents;

{$mode delphi}{$H+}
{$I Comparers.inc}
{$pointermath on}

interface

uses
  SysUtils, Generics.Collections, LaneMM.Contents, LaneMM.DebugState, Targets, TargetPages,
  HeapImages, HeapWalks;

type
  /// Blocks in use with contents of one name.
  TContentsGroup = record
    Name: string;        //< Unit.Class, `AnsiString`, ..., or `data of N bytes`
    Blocks: UInt64;      //< their number
    Bytes: UInt64;       //< their usable bytes
  end;
  TContentsGroups = TArray<TContentsGroup>;

  /// A place that holds the address of a block, or of a byte inside of it.
  THolder = record
    Address: UInt64;     //< of the place
    Target: UInt64;      //< what it holds
    Block: UInt64;       //< the block in use that the place lies in; 0: in none
    Name: string;        //< of the contents of that block, or where else the place lies
  end;
  THolders = TArray<THolder>;

  /// What lies at an address.
  TPlace = record
    Block: TBlockFound;  //< the block that holds it; Run nil: none. Data and Debug are not valid
    HasDebug: Boolean;   //< it is a debug block
    Debug: TDebugBlock;  //< its bookkeeping record
    Name: string;        //< of its contents
    Text: string;        //< of a string, its beginning
    Where: string;       //< a sentence on what else the address is
  end;

const
  /// Begins the names of data without a type.
  DataName = 'data of ';

/// Returns what the block holds, in the words of TContentsGroup.Name, and its kind.
function ContentsName(const Block: TBlockFound; out Kind: TContentsKind): string; overload;
function ContentsName(const Block: TBlockFound): string; overload;
/// Returns the name of the region that the block belongs to; empty: none.
function RegionNameOf(Image: THeapImage; const Block: TBlockFound): string;
/// Returns Name with the name of a region behind it, if that is not empty.
function InRegion(const Name, Region: string): string;
/// Adds to the group of a name, a new one if there is none. Numbers has the indexes of the groups.
procedure AddContents(var Groups: TContentsGroups; Numbers: TDictionary<string, Integer>;
  const Name: string; Blocks, Bytes: UInt64);
/// Sorts by bytes, most first.
procedure SortContents(var Groups: TContentsGroups);
/// Groups the blocks in use by what they hold, most bytes first.
function GroupContents(Image: THeapImage): TContentsGroups;
/// Names memory outside of the heap.
function NameOfRegion(Region: PRegion): string;
/// Finds the block at an address of any kind.
function FindPlace(Image: THeapImage; Address: UInt64): TPlace;
/// Finds the places that hold an address of Size bytes from Address on: in blocks in use, in
/// variables of modules, and on stacks. Data that look like an address count too.
function FindHolders(Image: THeapImage; Address, Size: UInt64): THolders;
/// The same in variables of modules alone.
function FindVariables(Target: TTarget; Address, Size: UInt64): THolders;

implementation

uses
  Math, Generics.Defaults, LaneMM.Layout, LaneMM.Hooks, LaneMM.Text;

// ---------------------------------------------------------------------------- contents

procedure ReadContents(const Block: TBlockFound; out Contents: TContents);
var
  Info: TBlockInfo;
begin
  Contents := Default(TContents);
  if Block.Data = nil then
    Exit;
  Info := Default(TBlockInfo);
  Info.Address := Block.Data; // the copy
  Info.UsableSize := Block.Size;
  Info.Kind := Block.Run^.Kind;
  ContentsRead(Info, Contents);
end;

var
  // The names of classes by the address of their records.
  ClassNames: TDictionary<UInt64, string>;

function ClassName(ClassId: UInt64): string;
var
  Text: TText;
begin
  if ClassNames.TryGetValue(ClassId, Result) then
    Exit;
  TextOpen(Text, 65536);
  ClassAddName(Text, ClassId);
  SetString(Result, Text.Start, Text.Length);
  Result := Printable(Result);
  TextClose(Text);
  ClassNames.Add(ClassId, Result);
end;

function NameOf(const Block: TBlockFound; const Contents: TContents): string;
begin
  case Contents.Kind of
    coObject: Result := ClassName(Contents.ClassId);
    coAnsiString: Result := 'AnsiString';
    coUnicodeString: Result := 'UnicodeString';
    coDynamicArray: Result := 'dynamic array';
  else
    Result := Format(DataName + '%d bytes', [Block.Size]);
  end;
end;

function ContentsName(const Block: TBlockFound; out Kind: TContentsKind): string;
var
  Contents: TContents;
begin
  ReadContents(Block, Contents);
  Kind := Contents.Kind;
  Result := NameOf(Block, Contents);
end;

function ContentsName(const Block: TBlockFound): string;
var
  Ignored: TContentsKind;
begin
  Result := ContentsName(Block, Ignored);
end;

function RegionNameOf(Image: THeapImage; const Block: TBlockFound): string;
var
  Region: PHeapRecord;
begin
  if Block.Debug <> nil then
    Region := Image.RegionOfGroup(Block.Debug^.Group)
  else
    Region := Image.RegionOfSpan(Block.Run^.Span);
  Result := '';
  if Region <> nil then
    Result := Region^.RegionName;
end;

function InRegion(const Name, Region: string): string;
begin
  Result := Name;
  if Region <> '' then
    Result := Format('%s in region "%s"', [Name, Region]);
end;

type
  TGrouper = class
    Image: THeapImage;
    Groups: TContentsGroups;
    Numbers: TDictionary<string, Integer>;
    procedure Visit(const Block: TBlockFound);
  end;

procedure TGrouper.Visit(const Block: TBlockFound);
begin
  if not Block.IsFree then
    AddContents(Groups, Numbers, InRegion(ContentsName(Block), RegionNameOf(Image, Block)), 1,
      Block.Size);
end;

// Most bytes first; the same number by name.
function CompareGroups(constref Left, Right: TContentsGroup): Integer;
begin
  Result := CompareValue(Right.Bytes, Left.Bytes);
  if Result = 0 then
    Result := CompareStr(Left.Name, Right.Name);
end;

procedure AddContents(var Groups: TContentsGroups; Numbers: TDictionary<string, Integer>;
  const Name: string; Blocks, Bytes: UInt64);
var
  Index: Integer;
begin
  if not Numbers.TryGetValue(Name, Index) then
  begin
    Index := Length(Groups);
    Numbers.Add(Name, Index);
    SetLength(Groups, Index + 1);
    Groups[Index].Name := Name;
  end;
  Inc(Groups[Index].Blocks, Blocks);
  Inc(Groups[Index].Bytes, Bytes);
end;

procedure SortContents(var Groups: TContentsGroups);
begin
  TArrayHelper<TContentsGroup>.Sort(Groups, TComparer<TContentsGroup>.Construct(CompareGroups));
end;

function GroupContents(Image: THeapImage): TContentsGroups;
var
  Grouper: TGrouper;
begin
  Grouper := TGrouper.Create;
  Grouper.Image := Image;
  Grouper.Numbers := TDictionary<string, Integer>.Create;
  try
    VisitBlocks(Image, Grouper.Visit);
    Result := Grouper.Groups;
    SortContents(Result);
  finally
    Grouper.Numbers.Free;
    Grouper.Free;
  end;
end;

// ---------------------------------------------------------------------------- places

type
  TPlaceFinder = class
    Address: UInt64;
    Place: TPlace;
    procedure Visit(const Block: TBlockFound);
  end;

procedure TPlaceFinder.Visit(const Block: TBlockFound);
const
  MostText = 60;
var
  Contents: TContents;
  Text: TText;
begin
  if (Address < Block.Address) or (Address - Block.Address >= Block.Size) then
    Exit;
  Place.Block := Block;
  Place.HasDebug := Block.Debug <> nil;
  if Place.HasDebug then
    Place.Debug := Block.Debug^;
  if Block.IsFree then
    Exit;
  ReadContents(Block, Contents);
  Place.Name := NameOf(Block, Contents);
  if not (Contents.Kind in [coAnsiString, coUnicodeString]) then
    Exit;
  TextOpen(Text, 65536);
  ContentsAddText(Text, Contents, MostText);
  SetString(Place.Text, Text.Start, Text.Length);
  TextClose(Text);
end;

function NameOfRegion(Region: PRegion): string;
begin
  if Region^.Module <> '' then
    Result := 'variables of ' + Printable(Region^.Module)
  else if Region^.Path <> '' then
    Result := Printable(Region^.Path)
  else
    Result := 'memory without a name, maybe the stack of a thread';
end;

// Names an address that lies in no block.
function WhereIs(Image: THeapImage; Address: UInt64; Run: PRun): string;
var
  Region: PRegion;
begin
  if Run <> nil then
    case Run^.Kind of
      skBlocks: Exit('in a span, in memory that no block has been in yet, or behind the last one');
      skLarge: Exit('in the slices of a large block, behind its end');
      skDebug: Exit('in a span of debug blocks: a guard, or a bookkeeping record');
      skFree, skReleased: Exit('in a free run: no block is there now');
      skReserve: Exit('in the emergency reserve');
    else
      Exit('in slices that are being taken or given back');
    end;
  Region := Image.Target.FindRegion(Address);
  if Region = nil then
    Result := 'not mapped'
  else if Region^.IsCode then
    Result := 'in the code of ' + Printable(Region^.Module)
  else
    Result := 'in ' + NameOfRegion(Region);
end;

function FindPlace(Image: THeapImage; Address: UInt64): TPlace;
var
  Finder: TPlaceFinder;
  Walker: TWalker;
  Run: PRun;
begin
  Finder := TPlaceFinder.Create;
  Walker := TWalker.Create(Image);
  Finder.Address := Address;
  Run := Image.FindRun(Address);
  if Run <> nil then
    Walker.VisitRun(Run, Finder.Visit);
  Result := Finder.Place;
  if Result.Block.Run = nil then
    Result.Where := WhereIs(Image, Address, Run);
  Walker.Free;
  Finder.Free;
end;

// ---------------------------------------------------------------------------- holders

const
  Portion = 1 shl 20; // bytes that are read at once; larger blocks may have no copy

type
  THolderFinder = class
    First, Size: UInt64; // the block
    Target: TTarget;
    Pages: TTargetPages; // of the target; nil: all are read
    Holders: THolders;
    function Holds(Word: UInt64): Boolean; inline;
    procedure Add(Place, Word, Block: UInt64; const Name: string);
    procedure Visit(const Block: TBlockFound);
    procedure SearchRange(Address, Limit, Block: UInt64; const Name: string);
    procedure SearchRegion(Region: PRegion);
  end;

function THolderFinder.Holds(Word: UInt64): Boolean;
begin
  Result := Word - First < Size;
end;

procedure THolderFinder.Add(Place, Word, Block: UInt64; const Name: string);
var
  Holder: THolder;
begin
  Holder.Address := Place;
  Holder.Target := Word;
  Holder.Block := Block;
  Holder.Name := Name;
  Insert(Holder, Holders, Length(Holders));
end;

// In packed records an address begins at any byte.
procedure THolderFinder.Visit(const Block: TBlockFound);
var
  Index: Int64;
begin
  if Block.IsFree or (Block.Address = First) then
    Exit;
  if (Block.Data = nil) or (Block.Size > Portion) then
    SearchRange(Block.Address, Block.Address + Block.Size, Block.Address, ContentsName(Block))
  else
    for Index := 0 to Int64(Block.Size) - SizeOf(UInt64) do
      if Holds(PUInt64(Block.Data + Index)^) then
        Add(Block.Address + UInt64(Index), PUInt64(Block.Data + Index)^, Block.Address,
          ContentsName(Block));
end;

// Leaves out pages that were never touched.
procedure THolderFinder.SearchRange(Address, Limit, Block: UInt64; const Name: string);
var
  Bytes: TBytes;
  Next, Count, Index: UInt64;
begin
  SetLength(Bytes, Portion);
  while Address < Limit do
  begin
    if Pages <> nil then
    begin
      Next := Min(Pages.NextTouched(Address and not UInt64(PageBytes - 1), Limit), Limit);
      if Next > Address + SizeOf(UInt64) then
        Address := Next - SizeOf(UInt64) + 1; // a word may begin just before the page
    end;
    Count := Target.Read(Address, Pointer(Bytes), Min(Limit - Address, UInt64(Portion)));
    if Count < SizeOf(UInt64) then
      Exit;
    for Index := 0 to Count - SizeOf(UInt64) do
      if Holds(PUInt64(@Bytes[Index])^) then
        Add(Address + Index, PUInt64(@Bytes[Index])^, Block, Name);
    Inc(Address, Count - SizeOf(UInt64) + 1); // the last ones go on in the next portion
  end;
end;

procedure THolderFinder.SearchRegion(Region: PRegion);
begin
  SearchRange(Region^.First, Region^.Limit, 0, NameOfRegion(Region));
end;

// Returns whether the region belongs to the heap itself.
function IsOfHeap(Image: THeapImage; Region: PRegion): Boolean;
var
  Arena: TArenaImage;
begin
  Result := True;
  for Arena in Image.Arenas do
    if (Region^.First - UInt64(Arena.Head.Base) < Arena.Head.Reserved * SliceSize)
      or (Region^.First >= Arena.Address)
      and (Region^.First < UInt64(Arena.Head.Spans + Arena.Head.Reserved)) then
      Exit;
  Result := False;
end;

function FindHolders(Image: THeapImage; Address, Size: UInt64): THolders;
const
  MostRegion = UInt64(1) shl 30; // longer ones are no variables and no stacks
var
  Finder: THolderFinder;
  Region: PRegion;
begin
  Finder := THolderFinder.Create;
  Finder.First := Address;
  Finder.Size := Size;
  Finder.Target := Image.Target;
  Finder.Pages := Image.Pages;
  VisitBlocks(Image, Finder.Visit);
  for Region in Image.Target.AllRegions do
    if Region^.IsWritable and Region^.IsReadable and not IsOfHeap(Image, Region)
      and (Region^.Limit - Region^.First <= MostRegion)
      and not Region^.Path.StartsWith('/dev/') then
      Finder.SearchRegion(Region);
  Result := Finder.Holders;
  Finder.Free;
end;

function FindVariables(Target: TTarget; Address, Size: UInt64): THolders;
var
  Finder: THolderFinder;
  Region: PRegion;
begin
  Finder := THolderFinder.Create;
  Finder.First := Address;
  Finder.Size := Size;
  Finder.Target := Target;
  for Region in Target.AllRegions do
    if Region^.IsWritable and Region^.IsReadable and (Region^.Module <> '') then
      Finder.SearchRegion(Region);
  Result := Finder.Holders;
  Finder.Free;
end;

initialization
  ClassNames := TDictionary<UInt64, string>.Create;
finalization
  ClassNames.Free;
end.
