/// Leaks what its first argument names, and ends as the second says: `halt` with exit code 3,
/// `halt-negative` with -1, `exception`, `thread` with threads still at work.
program Leaking;

{$mode delphi}{$H+}{$pointermath on}

uses
  LaneMM, cthreads, LaneMM.Os, Classes, Contnrs, fgl, SysUtils;

type
  TGrow = procedure;

  TFoo = class
    Number: Integer;
    Next: TObject;
  end;

  TFooClass = class of TFoo;

  TFooItem = record
    Number: array[0..2] of NativeInt;
    Foo: TFoo;
  end;
  TOwner1 = class(TFoo);
  TOwner2 = class(TFoo);
  TOwner3 = class(TFoo);
  TOwner4 = class(TFoo);
  TOwner5 = class(TFoo);

  TForm1 = class
    Items: TList;
  end;

  INode = interface
    ['{5C1C0B5E-0B3B-4A86-9F0B-6F9B6D7C6F11}']
    procedure SetPeer(const Peer: INode);
  end;

  TParent = class(TInterfacedObject, INode)
    Peer: INode;
    procedure SetPeer(const Other: INode);
  end;

  TChild = class(TInterfacedObject, INode)
    Peer: INode;
    procedure SetPeer(const Other: INode);
  end;

  // Of the name and the fields of the run-time library's, with larger items.
  TFPList = class
    Items: ^TFooItem;
    Count, Capacity: Integer;
  end;

  TShelf = class
    Foos: array of TFoo;
  end;

  // Seven of eight addresses in an array of these lie at no multiple of a word.
  TCard = packed record
    Kind: Byte;
    Foo: TFoo;
  end;

  TDeck = class
    Cards: array of TCard;
    Rows: array of array of TFoo;
  end;

  TFooList = TFPGList<TFoo>;

  TLink = class
    Next: TLink;
  end;

  TResident = class(TThread)
  public
    Text: string;
    IsReady: Boolean;
  protected
    procedure Execute; override;
  end;

var
  Keep: array[0..99] of Pointer;
  Texts: array[0..99] of string;
  Wide: array[0..9] of UnicodeString;
  Numbers: array[0..9] of array of Integer;
  Resident: TResident;

procedure TParent.SetPeer(const Other: INode);
begin
  Peer := Other;
end;

procedure TChild.SetPeer(const Other: INode);
begin
  Peer := Other;
end;

{$ifdef MSWINDOWS}
function TlsAlloc: Cardinal; stdcall; external 'kernel32';
function TlsSetValue(Slot: Cardinal; Value: Pointer): LongBool; stdcall; external 'kernel32';
function VirtualAlloc(P: Pointer; Size: PtrUInt; Kind, Protection: Cardinal): PByte; stdcall;
  external 'kernel32';
{$endif}

// Windows: variables of this thread that end where nothing can be read any more.
procedure UseLastWords;
{$ifdef MSWINDOWS}
const
  PageBytes = 4096;
  Reserve = $2000;
  Commit = $1000;
  ReadWrite = 4;
var
  Page: PByte;
begin
  Page := VirtualAlloc(nil, 2 * PageBytes, Reserve, ReadWrite);
  VirtualAlloc(Page, PageBytes, Commit, ReadWrite);
  TlsSetValue(TlsAlloc, Page + PageBytes - 4 * SizeOf(Pointer));
end;
{$else}
begin
end;
{$endif}

procedure TResident.Execute;
var
  Own: TStringList;
  Cards: ^TCard;
  Index: Integer;
begin
  UseLastWords;
  Cards := AllocMem(20 * SizeOf(TCard));
  for Index := 0 to 19 do
    Cards[Index].Foo := TFoo.Create;
  Own := TStringList.Create;
  Own.Add('held by ' + IntToStr(PtrInt(Own)));
  Text := 'of a thread ' + IntToStr(PtrInt(Own));
  IsReady := True;
  repeat
    Sleep(1);
  until Own.Count > 1;
  FreeMem(Cards);
end;

procedure LeakObjects;
var
  Index: Integer;
begin
  for Index := 1 to 12 do
    TFoo.Create; // planted: leak
  TObject.Create;
  TObject.Create;
end;

procedure LeakTexts;
var
  Index: Integer;
begin
  for Index := 0 to 4 do
  begin
    Texts[Index] := 'Item ' + IntToStr(Index);
    Pointer(Texts[Index]) := nil;
  end;
  Wide[0] := UnicodeString('Wide ' + IntToStr(7));
  Pointer(Wide[0]) := nil;
end;

procedure LeakArrays;
var
  Index: Integer;
begin
  for Index := 0 to 2 do
  begin
    SetLength(Numbers[Index], 1000);
    Pointer(Numbers[Index]) := nil;
  end;
end;

procedure LeakArraysOfSizes;
const
  Lengths: array[0..2] of Integer = (10, 100, 1000);
var
  Index: Integer;
begin
  for Index := 0 to 2 do
  begin
    SetLength(Numbers[Index], Lengths[Index]);
    Pointer(Numbers[Index]) := nil;
  end;
end;

procedure LeakUnknown;
var
  Index: Integer;
begin
  for Index := 0 to 9 do
    Keep[Index] := AllocMem(100);
end;

// Blocks of no bytes: one that nothing points to, one that a block of 208 bytes points to, and one
// that is suppressed.
procedure LeakEmpty;
var
  Pointing: PPointer;
begin
  Keep[0] := AllocMem(0);
  Pointing := AllocMem(208);
  GetMem(Pointing[1], 0);
  GetMem(Keep[1], 0);
  LaneMM_RegisterExpectedMemoryLeak(Keep[1]);
end;

// Two texts, allocated at the same place; the first one is suppressed.
procedure LeakSecret;
const
  Names: array[0..1] of string = ('Secret ', 'Public ');
var
  Index: Integer;
begin
  for Index := 0 to 1 do
    Texts[Index] := Names[Index] + IntToStr(4711);
  LaneMM_RegisterExpectedMemoryLeak(Pointer(Texts[0]));
  for Index := 0 to 1 do
    Pointer(Texts[Index]) := nil;
end;

// Where backtraces are known, all of the line are one row.
procedure LeakSizes;
var
  Size: Integer;
begin
  for Size := 1 to 8500 do
    AllocMem(Size);
end;

procedure LeakLarge;
begin
  Keep[0] := AllocMem(3000000);
  Keep[1] := AllocMem(100000);
end;

procedure LeakForm;
var
  Form: TForm1;
  Index: Integer;
begin
  Form := TForm1.Create;
  Form.Items := TList.Create;
  for Index := 1 to 12000 do
    Form.Items.Add(TFoo.Create);
end;

// Each container held ten objects, and counts six of them. No stale item was freed.
procedure LeakStale;
var
  Shelf: TShelf;
  List: Classes.TFPList;
  Texts: TStringList;
  Hashed: TFPHashList;
  Generic: TFooList;
  Index: Integer;
begin
  Shelf := TShelf.Create;
  List := Classes.TFPList.Create;
  Texts := TStringList.Create;
  Hashed := TFPHashList.Create;
  Generic := TFooList.Create;
  SetLength(Shelf.Foos, 10);
  for Index := 0 to 9 do
  begin
    Shelf.Foos[Index] := TOwner1.Create;
    List.Add(TOwner2.Create);
    Texts.AddObject('', TOwner3.Create);
    Hashed.Add(IntToStr(Index), TOwner4.Create);
    Generic.Add(TOwner5.Create);
  end;
  SetLength(Shelf.Foos, 6);
  for Index := 9 downto 6 do
  begin
    List.Delete(Index);
    Texts.Delete(Index);
    Hashed.Delete(Index);
  end;
  Generic.Count := 6;
end;

// Owners that a list no longer counts, and others that were lost, each with one that it retains.
procedure LeakStaleOwners;
var
  List: Classes.TFPList;
  Owner: TFoo;
  Index: Integer;
begin
  List := Classes.TFPList.Create;
  for Index := 0 to 12 do
  begin
    Owner := TOwner1.Create;
    Owner.Next := TOwner2.Create;
    if Index < 10 then
      List.Add(Owner);
  end;
  for Index := 9 downto 6 do
    List.Delete(Index);
end;

// All items count, though they lie behind twice the size of those of Classes.TFPList.
// In packed records, and in an array of arrays.
procedure LeakPacked;
var
  Deck: TDeck;
  Index: Integer;
begin
  Deck := TDeck.Create;
  SetLength(Deck.Cards, 40);
  for Index := 0 to 39 do
    Deck.Cards[Index].Foo := TFoo.Create;
  SetLength(Deck.Rows, 10, 3);
  for Index := 0 to 9 do
    Deck.Rows[Index, 1] := TFoo.Create;
end;

// Lists in lists: the items of each lie below those of another one, with objects between.
procedure LeakNestedLists;
var
  Inner, Outer: Classes.TFPList;
  Depth: Integer;
begin
  Outer := nil;
  for Depth := 1 to 4 do
  begin
    Inner := Outer;
    Outer := Classes.TFPList.Create;
    Outer.Capacity := 4;
    Outer.Add(Inner);
  end;
end;

procedure LeakOwnList;
var
  List: TFPList;
begin
  List := TFPList.Create;
  List.Items := AllocMem(2 * SizeOf(TFooItem));
  List.Capacity := 2;
  List.Count := 1;
  List.Items^.Foo := TFoo.Create;
end;

procedure LeakCycle;
var
  Parent, Child: INode;
  Index: Integer;
begin
  for Index := 1 to 3 do
  begin
    if Odd(Index) then
      Parent := TParent.Create;
    Child := TChild.Create;
    if not Odd(Index) then
      Parent := TParent.Create;
    Parent.SetPeer(Child);
    Child.SetPeer(Parent);
  end;
end;

// Blocks without a class, as a program in C has them: of 208 and 416 bytes.
procedure LeakDataRing;
var
  First, Second: PPointer;
begin
  First := AllocMem(208);
  Second := AllocMem(416);
  First[1] := Second;
  Second[1] := First;
end;

// Plain objects; their first field is 0.
procedure LeakRing;
var
  First, Second: TFoo;
begin
  First := TFoo.Create;
  Second := TFoo.Create;
  First.Next := Second;
  Second.Next := First;
end;

// A cycle with a block whose first page cannot be read, as the stack of a coroutine.
procedure LeakGuarded;
var
  Foo: TFoo;
  Block: PByte;
begin
  Foo := TFoo.Create;
  Block := LaneMM_GetMemAligned(4 * OsGranule, OsGranule);
  Pointer(Foo.Next) := Block;
  PPointer(Block + OsGranule)^ := Foo;
  OsForbid(Block, OsGranule);
end;

procedure LeakChain;
var
  First, Last: TLink;
  Index: Integer;
begin
  First := TLink.Create;
  Last := First;
  for Index := 2 to 1000 do
  begin
    Last.Next := TLink.Create;
    Last := Last.Next;
  end;
end;

function FreeHalf(Unused: Pointer): PtrInt;
var
  Index: Integer;
begin
  for Index := 0 to High(Keep) do
    if Odd(Index) then
      TObject(Keep[Index]).Free;
  Result := 0;
end;

procedure LeakAcrossThreads;
var
  Index: Integer;
begin
  for Index := 0 to High(Keep) do
    Keep[Index] := TFoo.Create;
  WaitForThreadTerminate(BeginThread(FreeHalf), 0);
end;

procedure LeakTwoKinds;
begin
  LeakObjects;
  LeakArrays;
end;

// 12 TFoo, 2 TObject, 10 blocks of 100 bytes and a text: 2 TFoo, 3 blocks are not expected.
procedure LeakExpected;
begin
  LeakObjects;
  LeakUnknown;
  Texts[0] := 'Item ' + IntToStr(4711);
  LaneMM_RegisterExpectedLeakOfClass(TFoo, 11);
  LaneMM_UnregisterExpectedLeakOfClass(TFoo, 1);
  LaneMM_RegisterExpectedLeakOfClass(TObject, 5);
  LaneMM_RegisterExpectedLeakOfSize(100, 7);
  LaneMM_RegisterExpectedMemoryLeak(Pointer(Texts[0]));
  LaneMM_RegisterExpectedMemoryLeak(Keep[0]);
  LaneMM_UnregisterExpectedMemoryLeak(Keep[0]);
  Pointer(Texts[0]) := nil;
end;

// Returns the bytes of the block of an object.
function BlockSize(Kind: TClass): Integer;
begin
  Result := (Kind.InstanceSize + 15) and not 15;
end;

procedure LeakBetweenSnapshots;
var
  Before, After: TLaneMM_Snapshot;
begin
  LeakTexts;
  LeakObjects;
  Before := LaneMM_TakeSnapshot;
  LeakArrays;
  LeakObjects;
  After := LaneMM_TakeSnapshot;
  ExitCode := Ord(LaneMM_CompareSnapshots(Before, After)
    = 3 * 4096 + 12 * BlockSize(TFoo) + 2 * BlockSize(TObject));
  LaneMM_CompareSnapshots(After, After);
  LaneMM_FreeSnapshot(Before);
  LaneMM_FreeSnapshot(After);
end;

procedure LeakAndReportNow;
begin
  LeakObjects;
  LaneMM_ReportMemoryInUse;
end;

procedure WishWithoutLeaks;
begin
  LaneMM_ReportMemoryLeaksOnShutdown;
end;

procedure LeakByOwnWish;
begin
  LaneMM_ReportMemoryLeaksOnShutdown;
  LeakObjects;
end;

// The objects of one kind of which most are allocated at the last of four lines.
procedure LeakAtPlaces;
var
  Index: Integer;
begin
  TFoo.Create; // planted: one
  for Index := 1 to 10 do
    TFoo.Create; // planted: ten
  for Index := 1 to 3 do
    TFoo.Create; // planted: three
  for Index := 1 to 10000 do
    TFoo.Create; // planted: most
end;

// As a loop that the compiler unrolls.
procedure LeakInOneLine;
begin
  TFoo.Create; TFoo.Create; TFoo.Create; // planted: one line
end;

// One of them in a routine of a library.
procedure LeakInOneLineAndALibrary;
var
  List: Classes.TFPList;
begin
  List := Classes.TFPList.Create;
  Keep[0] := AllocMem(4 * SizeOf(Pointer)); List.Capacity := 4; // planted: with a library
end;

// Five objects without a known place, and three.
procedure LeakBeforeStacks;
var
  Index: Integer;
begin
  for Index := 1 to 5 do
    TFoo.Create;
  LaneMM_Configure('stacks');
  for Index := 1 to 3 do
    TFoo.Create; // planted: known
end;

procedure LeakBeforeDebug;
begin
  TFoo.Create;
  LaneMM_EnterDebugMode;
end;

// Each object is retained by one of another class.
procedure LeakOwned;
const
  Classes: array[0..4] of TFooClass = (TOwner1, TOwner2, TOwner3, TOwner4, TOwner5);
var
  Owner: TFooClass;
begin
  for Owner in Classes do
    Owner.Create.Next := TFoo.Create;
end;

// Reports what grows between two snapshots by Grow.
procedure CompareAround(Grow: TGrow);
var
  Before, After: TLaneMM_Snapshot;
begin
  Before := LaneMM_TakeSnapshot;
  Grow;
  After := LaneMM_TakeSnapshot;
  LaneMM_CompareSnapshots(Before, After);
  LaneMM_FreeSnapshot(Before);
  LaneMM_FreeSnapshot(After);
end;

procedure AddFoos;
var
  Index: Integer;
begin
  for Index := 1 to 7 do
    TFoo.Create; // planted: growth
end;

procedure GrowAtPlaces;
begin
  LeakAtPlaces;
  CompareAround(AddFoos);
end;

procedure AddEmpty;
var
  Index: Integer;
begin
  for Index := 1 to 7 do
    Keep[Index] := AllocMem(0);
end;

procedure GrowByEmpty;
begin
  Keep[0] := AllocMem(0);
  CompareAround(AddEmpty);
end;

// What shrinks at one line grows at another one.
procedure Exchange;
var
  Index: Integer;
begin
  for Index := 0 to 9 do
    TObject(Keep[Index]).Free;
  AddFoos;
  for Index := 1 to 13 do
    TFoo.Create; // planted: exchanged
end;

procedure GrowElsewhere;
var
  Index: Integer;
begin
  for Index := 0 to 9 do
    Keep[Index] := TFoo.Create;
  CompareAround(Exchange);
end;

procedure AddText;
begin
  Texts[0] := 'Item ' + IntToStr(4711);
end;

procedure GrowBySize;
begin
  LeakSizes;
  CompareAround(AddText);
end;

type
  TPlan = record
    Name: string;
    Run: procedure;
  end;

const
  Plans: array[0..36] of TPlan = (
    (Name: 'objects'; Run: LeakObjects), (Name: 'texts'; Run: LeakTexts),
    (Name: 'arrays'; Run: LeakArrays), (Name: 'unknown'; Run: LeakUnknown),
    (Name: 'array-sizes'; Run: LeakArraysOfSizes), (Name: 'large'; Run: LeakLarge), (Name: 'form'; Run: LeakForm),
    (Name: 'own-list'; Run: LeakOwnList), (Name: 'stale'; Run: LeakStale), (Name: 'stale-owners'; Run: LeakStaleOwners),
    (Name: 'cycle'; Run: LeakCycle), (Name: 'chain'; Run: LeakChain),
    (Name: 'ring'; Run: LeakRing), (Name: 'data-ring'; Run: LeakDataRing),
    (Name: 'guarded'; Run: LeakGuarded),
    (Name: 'threads'; Run: LeakAcrossThreads), (Name: 'empty'; Run: LeakEmpty),
    (Name: 'grow-empty'; Run: GrowByEmpty), (Name: 'secret'; Run: LeakSecret),
    (Name: 'sizes'; Run: LeakSizes),
    (Name: 'expected'; Run: LeakExpected), (Name: 'snapshots'; Run: LeakBetweenSnapshots),
    (Name: 'two'; Run: LeakTwoKinds), (Name: 'places'; Run: LeakAtPlaces),
    (Name: 'packed'; Run: LeakPacked), (Name: 'nested-lists'; Run: LeakNestedLists),
    (Name: 'one-line-library'; Run: LeakInOneLineAndALibrary),
    (Name: 'one-line'; Run: LeakInOneLine), (Name: 'before-stacks'; Run: LeakBeforeStacks),
    (Name: 'before-debug'; Run: LeakBeforeDebug),
    (Name: 'owned'; Run: LeakOwned),
    (Name: 'grow'; Run: GrowAtPlaces), (Name: 'grow-elsewhere'; Run: GrowElsewhere),
    (Name: 'grow-sizes'; Run: GrowBySize),
    (Name: 'now'; Run: LeakAndReportNow), (Name: 'wish'; Run: LeakByOwnWish),
    (Name: 'clean-wish'; Run: WishWithoutLeaks));

procedure Leak(const What: string);
var
  Plan: TPlan;
begin
  for Plan in Plans do
    if Plan.Name = What then
      Plan.Run;
end;

// Overwrites what ended routines have left on the stack: it would be reachable after Halt.
procedure ClearStack;
var
  Space: array[0..4095] of Byte;
begin
  FillChar(Space, SizeOf(Space), 0);
end;

procedure StartResident;
begin
  Resident := TResident.Create(False);
  while not Resident.IsReady do
    Sleep(1);
end;

procedure EndAs(const How: string);
var
  Text: string;
begin
  Text := 'in use by ' + How;
  if How = 'halt' then
    Halt(3)
  else if How = 'halt-negative' then
    Halt(-1)
  else if How = 'exception' then
    raise Exception.Create('planted ' + Text)
  else if How = 'thread' then
    StartResident;
end;

begin
  Leak(ParamStr(1));
  ClearStack;
  EndAs(ParamStr(2));
end.
