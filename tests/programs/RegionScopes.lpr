/// Objects, strings and lists in the scopes of regions, as a program uses them. Exit code 0 on
/// success. With an argument it does what is to be reported:
///   inside   frees and resets a region while it is inside, leaves twice, uses a freed handle
///   limit    exceeds the limit of a region
///   leaks    forgets objects in regions, of which several have one name
///   held W   frees a region that is still referred to: by a string, object, list, array, thread
///            variable, or field outside; W says by which
///   clean    uses regions 200 times, in threads too, and keeps nothing
///   called   calls a virtual method of an object of a freed region, in debug mode
///   freed    frees a block of a freed region, in debug mode
///   written  writes to a block of a freed region, in debug mode
program RegionScopes;

{$mode delphi}{$H+}

uses
  LaneMM, {$ifdef UNIX} cthreads, {$endif} Classes, Contnrs, SysUtils;

type
  TItem = class
    Number: Integer;
    Text: string;
    function Double: Integer; virtual;
  end;

var
  Region: TLaneMM_Region;
  // LaneMM_RegionOf knows no debug blocks.
  IsDebug: Boolean;
  // What is kept outside.
  HeldText: string;
  HeldItem, Outside: TItem;
  HeldList: TList;
  HeldItems: array of TItem;

threadvar
  HeldByThread: string;

function TItem.Double: Integer;
begin
  Result := 2 * Number;
end;

procedure Check(IsTrue: Boolean; const What: string);
begin
  if IsTrue then
    Exit;
  WriteLn('not so: ', What);
  Halt(1);
end;

procedure CheckRegion(P: Pointer; Expected: TLaneMM_Region; const What: string);
begin
  Check(IsDebug or (LaneMM_RegionOf(P) = Expected), What);
end;

procedure CheckBlocks(Expected: NativeUInt; const What: string);
begin
  Check(LaneMM_RegionState(Region).BlocksInUse = Expected, What);
end;

function NewItem(Number: Integer): TItem;
begin
  Result := TItem.Create;
  Result.Number := Number;
  Result.Text := 'item ' + IntToStr(Number);
end;

// ---------------------------------------------------------------------------- scopes

procedure RaiseInside(Number: Integer);
begin
  LaneMM_RegionEnter(Region);
  try
    NewItem(Number);
    raise Exception.CreateFmt('number %d', [Number]);
  finally
    LaneMM_RegionLeave;
  end;
end;

// The exception lies in the region: it is handled before the region is freed.
procedure ExceptionsLeaveScopes;
var
  Number: Integer;
  Outside: TItem;
begin
  for Number := 1 to 100 do
  begin
    try
      RaiseInside(Number);
      Check(False, 'an exception');
    except
      on E: Exception do
      begin
        CheckRegion(Pointer(E), Region, 'the exception lies in the region');
        Check(E.Message = 'number ' + IntToStr(Number), 'its message');
      end;
    end;
    Outside := NewItem(Number);
    CheckRegion(Pointer(Outside), 0, 'the scope was left');
    Outside.Free;
  end;
  CheckBlocks(200, 'items and texts are left, no exception');
  Check(LaneMM_RegionReset(Region), 'reset');
  CheckBlocks(0, 'nothing is left');
end;

procedure ScopesNest;
var
  Inner: TLaneMM_Region;
  First, Second, Third: TItem;
begin
  Inner := LaneMM_RegionCreate('inner', 0);
  LaneMM_RegionEnter(Region);
  First := NewItem(1);
  LaneMM_RegionEnter(Inner);
  Second := NewItem(2);
  LaneMM_RegionLeave;
  Third := NewItem(3);
  LaneMM_RegionLeave;
  CheckRegion(Pointer(First), Region, 'outer');
  CheckRegion(Pointer(Second), Inner, 'inner');
  CheckRegion(Pointer(Second.Text), Inner, 'its text');
  CheckRegion(Pointer(Third), Region, 'outer again');
  Check(LaneMM_RegionFree(Inner), 'the inner one is freed');
  Check((First.Double = 2) and (Third.Text = 'item 3'), 'the outer one stays');
  CheckBlocks(4, 'blocks of the outer one');
  Check(LaneMM_RegionReset(Region), 'reset');
end;

// ---------------------------------------------------------------------------- lists

// What is done in a scope is a routine of its own: the compiler keeps strings of expressions until
// the end of their routine.
procedure FillLists(out Names: TStringList; out Items: TObjectList; Count: Integer);
var
  Number: Integer;
begin
  Names := TStringList.Create;
  Items := TObjectList.Create;
  for Number := 1 to Count do
  begin
    Names.AddObject('name ' + IntToStr(Number), NewItem(Number));
    Items.Add(NewItem(Number));
  end;
  Names.Sort;
end;

procedure UseLists;
var
  Names: TStringList;
  Items: TObjectList;
begin
  LaneMM_RegionEnter(Region);
  try
    FillLists(Names, Items, 10000);
  finally
    LaneMM_RegionLeave;
  end;
  Items.Delete(0); // freed and resized outside of the scope
  Names.Add('later');
  Check(Names[Names.Count - 1] = 'later', 'the last name');
  Check(TItem(Items[0]).Double = 4, 'the first item');
  CheckRegion(Pointer(Names), Region, 'the list');
end;

// The first list makes TEncoding.Default, which must not lie in the region.
procedure ListsLieInARegion;
var
  Names: TStringList;
  Turn: Integer;
begin
  for Turn := 1 to 3 do
  begin
    UseLists;
    Check(LaneMM_RegionReset(Region), 'reset');
    CheckBlocks(0, 'nothing is left');
  end;
  Names := TStringList.Create;
  Names.Add('a list of no region');
  Check(Names.Text = 'a list of no region' + LineEnding, 'its text');
  Names.Free;
end;

procedure CopyOut(out Kept, Also, Unique: string);
var
  Inside: string;
begin
  LaneMM_RegionEnter(Region);
  Inside := 'made in the region ' + IntToStr(1);
  LaneMM_RegionLeave;
  Unique := Inside;
  UniqueString(Unique); // of two references: copied
  SetString(Kept, PChar(Inside), Length(Inside));
  Also := Copy(Inside, 1, Length(Inside));
  CheckRegion(Pointer(Inside), Region, 'the string');
  CheckRegion(Pointer(Unique), 0, 'UniqueString copies');
  CheckRegion(Pointer(Kept), 0, 'SetString copies');
  CheckRegion(Pointer(Also), 0, 'Copy copies');
end;

procedure StringsAreCopiedOut;
var
  Kept, Also, Unique: string;
begin
  CopyOut(Kept, Also, Unique);
  Check(LaneMM_RegionReset(Region), 'reset');
  Check((Kept = 'made in the region 1') and (Also = Kept) and (Unique = Kept), 'the copies');
end;

// The names of regions leave those of groups their room.
procedure ManyRegionsHaveNames;
var
  Number: Integer;
  Many: TLaneMM_Region;
begin
  for Number := 1 to 1000 do
  begin
    Many := LaneMM_RegionCreate('many', 0);
    Check(LaneMM_RegionFree(Many), 'one of many is freed');
  end;
  Check(LaneMM_SetGroupName(7, 'a group'), 'a group has its name');
end;

procedure WorkInScopes;
begin
  ManyRegionsHaveNames;
  TStringList.Create.Free; // makes what lists share, outside
  ExceptionsLeaveScopes;
  ScopesNest;
  ListsLieInARegion;
  StringsAreCopiedOut;
  Check(LaneMM_RegionFree(Region), 'freed');
end;

// ---------------------------------------------------------------------------- what is reported

procedure ReportInside;
var
  Item: TItem;
begin
  LaneMM_RegionEnter(Region);
  Item := NewItem(21);
  Check(not LaneMM_RegionFree(Region), 'no free inside');
  Check(not LaneMM_RegionReset(Region), 'no reset inside');
  Check((Item.Double = 42) and (Item.Text = 'item 21'), 'nothing was freed');
  CheckBlocks(2, 'nor counted as free');
  Check(LaneMM_RegionLeave, 'left');
  Check(not LaneMM_RegionLeave, 'left once');
  Check(LaneMM_RegionFree(Region), 'freed');
  Check(not LaneMM_RegionFree(Region), 'freed once');
  Check(not LaneMM_RegionEnter(Region), 'not entered');
  Check(LaneMM_RegionGetMem(Region, 100) = nil, 'no block');
  CheckBlocks(0, 'no state');
end;

procedure ExceedLimit;
var
  Texts: TStringList;
begin
  Texts := TStringList.Create;
  while Texts.Count < 100000 do
    Texts.Add(StringOfChar('x', 1000));
end;

// What fails for a single block, without a scope, leaves the thread outside.
procedure RefuseOne(Small: TLaneMM_Region);
var
  P: Pointer;
  Caught: Integer;
begin
  P := LaneMM_RegionGetMem(Small, 100);
  Caught := 0;
  try
    LaneMM_RegionGetMem(Small, 1 shl 20);
  except
    on E: EOutOfMemory do
      Inc(Caught);
  end;
  try
    ReallocMem(P, 1 shl 20);
  except
    on E: EOutOfMemory do
      Inc(Caught);
  end;
  LaneMM_RegionEnter(Region);
  P := NewItem(1);
  try
    LaneMM_RegionGetMem(Small, 1 shl 20);
  except
    on E: EOutOfMemory do
      Inc(Caught);
  end;
  Check(Caught = 3, 'each fails');
  CheckRegion(P, Region, 'in the scope');
  Check(LaneMM_RegionLeave, 'the scope');
  CheckRegion(Pointer(NewItem(1)), 0, 'outside');
end;

procedure ReportLimit;
var
  Small: TLaneMM_Region;
  Caught: Integer;
begin
  TStringList.Create.Free; // makes what lists share, outside
  Small := LaneMM_RegionCreate('small', 1 shl 20);
  Caught := 0;
  LaneMM_RegionEnter(Small);
  try
    ExceedLimit;
  except
    on E: EOutOfMemory do
      Inc(Caught);
  end;
  LaneMM_RegionLeave;
  Check(Caught = 1, 'EOutOfMemory');
  Check(LaneMM_RegionState(Small).PeakBytes <= 1 shl 20, 'the limit holds');
  RefuseOne(Small);
  Check(LaneMM_RegionFree(Small), 'freed');
end;

procedure Forget(const Name: string; Count: Integer);
var
  Number: Integer;
begin
  LaneMM_RegionEnter(LaneMM_RegionCreate(PAnsiChar(Name), 0));
  for Number := 1 to Count do
    TItem.Create;
  LaneMM_RegionLeave;
end;

procedure LeakInRegions;
var
  Number: Integer;
begin
  Forget('orders', 40);
  Forget('request', 15);
  Forget('request', 15);
  for Number := 1 to 20 do
    Forget('many ' + IntToStr(Number), 1);
end;

procedure Hold(const Where: string);
var
  Item: TItem;
begin
  LaneMM_RegionEnter(Region);
  Item := NewItem(7);
  LaneMM_RegionLeave;
  if Where = 'string' then
    HeldText := Item.Text
  else if Where = 'object' then
    HeldItem := Item
  else if Where = 'list' then
    HeldList.Add(Item)
  else if Where = 'array' then
    HeldItems[3] := Item
  else if Where = 'thread' then
    HeldByThread := Item.Text
  else
    Outside.Text := Item.Text;
end;

procedure HoldAndFree(const Where: string);
begin
  HeldList := TList.Create;
  HeldList.Capacity := 10;
  SetLength(HeldItems, 10);
  Outside := NewItem(1);
  Hold(Where);
  LaneMM_RegionFree(Region);
  Pointer(HeldText) := nil; // nothing is freed twice
  Pointer(HeldByThread) := nil;
  Pointer(Outside.Text) := nil;
end;

procedure UseAndFree(Number: Integer);
var
  Names: TStringList;
  Items: TObjectList;
begin
  Region := LaneMM_RegionCreate('scopes', 0);
  LaneMM_RegionEnter(Region);
  FillLists(Names, Items, 10);
  LaneMM_RegionLeave;
  HeldList.Add(Items[0]);
  HeldList.Delete(HeldList.Count - 1); // behind the count its address stays
  try
    RaiseInside(Number);
  except
    on E: Exception do
      HeldText := Copy(E.Message, 1, 3);
  end;
end;

function UseManyTimes(Parameter: Pointer): PtrInt;
var
  Number: Integer;
begin
  for Number := 1 to 100 do
  begin
    UseAndFree(Number);
    Check(LaneMM_RegionReset(Region) and LaneMM_RegionFree(Region), 'freed');
  end;
  Result := 0;
end;

procedure FillOne(Own: TLaneMM_Region);
var
  Names: TStringList;
  Items: TObjectList;
begin
  LaneMM_RegionEnter(Own);
  FillLists(Names, Items, 50);
  LaneMM_RegionLeave;
end;

// Threads at the same time: the search of one finds no tables of the others'.
function UseOwn(Parameter: Pointer): PtrInt;
var
  Number: Integer;
  Own: TLaneMM_Region;
begin
  for Number := 1 to 20 do
  begin
    Own := LaneMM_RegionCreate('own', 0);
    FillOne(Own);
    Check(LaneMM_RegionFree(Own), 'freed');
  end;
  Result := 0;
end;

procedure UseCleanly;
var
  Threads: array[1..4] of TThreadID;
  Index: Integer;
begin
  TStringList.Create.Free; // makes what lists share, outside
  HeldList := TList.Create;
  HeldList.Capacity := 10;
  UseManyTimes(nil);
  WaitForThreadTerminate(BeginThread(UseManyTimes), 0);
  for Index := 1 to High(Threads) do
    Threads[Index] := BeginThread(UseOwn);
  for Index := 1 to High(Threads) do
    WaitForThreadTerminate(Threads[Index], 0);
  WriteLn(HeldText);
end;

function FreedItem: TItem;
begin
  LaneMM_RegionEnter(Region);
  Result := NewItem(1);
  LaneMM_RegionLeave;
  LaneMM_RegionFree(Region);
end;

procedure CallFreed;
var
  Item: TItem;
begin
  Item := FreedItem;
  try
    Item.Double;
  except
    on E: Exception do
      WriteLn(E.ClassName);
  end;
end;

procedure FreeFreed;
var
  Item: TItem;
begin
  Item := FreedItem;
  try
    FreeMem(Pointer(Item));
  except
    on E: Exception do
      WriteLn(E.ClassName);
  end;
end;

begin
  IsDebug := LaneMM_Settings.Values[opDebug] <> 0;
  Region := LaneMM_RegionCreate('scopes', 0);
  if ParamStr(1) = 'inside' then
    ReportInside
  else if ParamStr(1) = 'limit' then
    ReportLimit
  else if ParamStr(1) = 'leaks' then
    LeakInRegions
  else if ParamStr(1) = 'held' then
    HoldAndFree(ParamStr(2))
  else if ParamStr(1) = 'clean' then
    UseCleanly
  else if ParamStr(1) = 'called' then
    CallFreed
  else if ParamStr(1) = 'freed' then
    FreeFreed
  else if ParamStr(1) = 'written' then
    FreedItem.Number := 7
  else
    WorkInScopes;
end.
