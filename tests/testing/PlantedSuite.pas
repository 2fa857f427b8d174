/// Tests with one mistake each, whose names say what is to be reported; and clean ones.
unit PlantedSuite;

{$mode objfpc}{$H+}

interface

uses
  Classes, SysUtils, fpcunit, testregistry, LaneMM, LaneMM.FpcUnit;

type
  TNode = class
    Next: TNode;
    Text: string;
  end;

  INode = interface
    procedure Link(const Other: INode);
  end;

  TLinked = class(TInterfacedObject, INode)
    Other: INode;
    procedure Link(const AOther: INode);
  end;

  TLeakTests = class(TTestCase)
  private
    Kept: TNode;
  protected
    procedure TearDown; override;
  published
    procedure ThreeNodes;
    procedure ListAndItems;
    procedure CycleOfInterfaces;
    procedure InOtherThread;
    procedure OfSetUpOrField;
    procedure RawMemory;
    procedure AfterExpectedException;
    procedure InNodeThatWasRemoved;
  end;

  TCleanTests = class(TTestCase)
  private
    Text: string;
    Numbers: array of Integer;
    Linked: INode;
    List: TStringList;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure FieldsOfTheTest;
    procedure LazyGlobal;
    procedure GlobalList;
    procedure ExpectedException;
    procedure RaisedAndHandled;
    procedure Threads;
    procedure ThreadVariable;
    procedure Suppressed;
    procedure Ignored;
    procedure ByNameLeaksIgnored;
    procedure Region;
  end;

  // One of many clean tests, by its number.
  TManyTests = class(TTestCase)
  private
    Number: Integer;
    Text: string;
    Lines: TStringList;
    procedure Build;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
    procedure RunTest; override;
  end;

  TOwnedTests = class(TTestCase)
  private
    Owned: TNode;
  public
    destructor Destroy; override;
  published
    procedure FreedByDestructor;
  end;

  TFailingTests = class(TTestCase)
  published
    procedure FailsAndLeaks;
    procedure RaisesAndLeaks;
    procedure IgnoresItself;
  end;

  TBudgetTests = class(TTestCase)
  private
    procedure ThreeBlocks;
    procedure FourBlocks;
  published
    procedure Within;
    procedure Beyond;
  end;

  TErrorTests = class(TTestCase)
  published
    procedure Overrun;
    procedure DoubleFree;
    procedure Clean;
  end;

implementation

type
  TLosing = class(TThread)
    Loses: Boolean;
    procedure Execute; override;
  end;

var
  Global: TNode;
  Items: TList;

threadvar
  OfThread: TNode;

procedure TLinked.Link(const AOther: INode);
begin
  Other := AOther;
end;

procedure TLosing.Execute;
var
  Node: TNode;
  Index: Integer;
begin
  for Index := 1 to 100 do
  begin
    Node := TNode.Create;
    Node.Text := IntToStr(Index);
    Node.Free;
  end;
  if Loses then
    TNode.Create; // leak InOtherThread
end;

procedure RunThreads(Count: Integer; Loses: Boolean);
var
  Threads: array[1..4] of TLosing;
  Index: Integer;
begin
  for Index := 1 to Count do
  begin
    Threads[Index] := TLosing.Create(True);
    Threads[Index].Loses := Loses and (Index = 1);
    Threads[Index].Start;
  end;
  for Index := 1 to Count do
  begin
    Threads[Index].WaitFor;
    Threads[Index].Free;
  end;
end;

// ---------------------------------------------------------------------------- leaks

procedure TLeakTests.TearDown;
begin
  // forgets to free Kept
end;

procedure TLeakTests.ThreeNodes;
var
  Index: Integer;
begin
  for Index := 1 to 3 do
    TNode.Create; // leak ThreeNodes
end;

procedure TLeakTests.ListAndItems;
var
  List: TList;
begin
  List := TList.Create; // leak ListAndItems
  List.Add(TNode.Create);
end;

procedure TLeakTests.CycleOfInterfaces;
var
  First, Second: INode;
begin
  First := TLinked.Create; // leak CycleOfInterfaces
  Second := TLinked.Create;
  First.Link(Second);
  Second.Link(First);
end;

procedure TLeakTests.InOtherThread;
begin
  RunThreads(2, True);
end;

procedure TLeakTests.OfSetUpOrField;
begin
  Kept := TNode.Create; // leak OfSetUpOrField
end;

procedure TLeakTests.RawMemory;
begin
  GetMem(100); // leak RawMemory
end;

procedure TLeakTests.AfterExpectedException;
begin
  ExpectException(EConvertError);
  TNode.Create; // leak AfterExpectedException
  StrToInt('x');
end;

procedure TLeakTests.InNodeThatWasRemoved;
var
  List: TList;
begin
  List := TList.Create;
  List.Add(TNode.Create); // leak InNodeThatWasRemoved
  List.Delete(0);
  List.Free;
end;

// ---------------------------------------------------------------------------- clean tests

procedure TCleanTests.SetUp;
begin
  List := TStringList.Create;
  List.Add(IntToStr(12345));
end;

procedure TCleanTests.TearDown;
begin
  List.Free;
end;

procedure TCleanTests.FieldsOfTheTest;
begin
  Text := IntToStr(ParamCount) + 'x';
  SetLength(Numbers, 100);
  Linked := TLinked.Create;
  AssertEquals(100, Length(Numbers));
end;

procedure TCleanTests.LazyGlobal;
begin
  Global := TNode.Create; // reached LazyGlobal
  Global.Next := TNode.Create;
end;

procedure TCleanTests.GlobalList;
var
  Index: Integer;
begin
  Items := TList.Create;
  for Index := 1 to 100 do
    Items.Add(TNode.Create);
end;

procedure TCleanTests.ExpectedException;
begin
  ExpectException(EConvertError);
  StrToInt('x');
end;

procedure TCleanTests.RaisedAndHandled;
begin
  try
    raise Exception.Create('planted ' + IntToStr(1));
  except
    on Exception do
      AssertTrue(True);
  end;
end;

procedure TCleanTests.Threads;
begin
  RunThreads(4, False);
end;

procedure TCleanTests.ThreadVariable;
begin
  OfThread := TNode.Create;
end;

procedure TCleanTests.Suppressed;
begin
  LaneMM_RegisterExpectedMemoryLeak(TNode.Create);
end;

procedure TCleanTests.Ignored;
begin
  IgnoreLeaks;
  TNode.Create;
end;

procedure TCleanTests.ByNameLeaksIgnored;
begin
  TNode.Create;
end;

procedure TCleanTests.Region;
var
  Own: TLaneMM_Region;
begin
  Own := LaneMM_RegionCreate('test', 0);
  LaneMM_RegionEnter(Own);
  TNode.Create;
  LaneMM_RegionLeave;
end;

procedure TManyTests.SetUp;
begin
  Lines := TStringList.Create;
  Lines.Sorted := Odd(Number);
  Text := StringOfChar('x', Number);
end;

procedure TManyTests.TearDown;
begin
  Lines.Free;
end;

// Fills lists, strings, interfaces and blocks, and frees what does not free itself.
procedure TManyTests.Build;
var
  Index: Integer;
  Node: TNode;
  Linked: INode;
  Blocks: array[0..9] of Pointer;
  Parts: array of string;
begin
  Node := nil;
  Linked := TLinked.Create;
  for Index := 0 to 9 do
  begin
    GetMem(Blocks[Index], Number * 100 + Index);
    Lines.AddObject(IntToStr(Index * Number), Node);
  end;
  SetLength(Parts, Number);
  for Index := 0 to High(Parts) do
    Parts[Index] := Text + IntToStr(Index);
  Linked.Link(TLinked.Create);
  for Index := 9 downto 0 do
    FreeMem(Blocks[Index]);
end;

procedure TManyTests.RunTest;
begin
  Build;
  case Number mod 5 of
    0: Items.Add(TNode.Create); // a global list that grows
    1: Global.Text := Text;
    2: try
        raise Exception.CreateFmt('%d', [Number]);
      except
        on Exception do
          Text := '';
      end;
    3: if Number < 20 then
        RunThreads(2, False);
  end;
end;

procedure RegisterMany;
var
  Index: Integer;
  Test: TManyTests;
  Suite: TTestSuite;
begin
  Suite := TTestSuite.Create('TManyTests');
  for Index := 1 to 200 do
  begin
    Test := TManyTests.CreateWithName('Number' + IntToStr(Index));
    Test.Number := Index;
    Suite.AddTest(Test);
  end;
  GetTestRegistry.AddTest(Suite);
end;

destructor TOwnedTests.Destroy;
begin
  Owned.Free;
  inherited Destroy;
end;

procedure TOwnedTests.FreedByDestructor;
begin
  Owned := TNode.Create;
end;

// ---------------------------------------------------------------------------- failures

procedure TFailingTests.FailsAndLeaks;
begin
  TNode.Create;
  Fail('planted failure');
end;

procedure TFailingTests.RaisesAndLeaks;
begin
  TNode.Create;
  raise EConvertError.Create('planted error');
end;

procedure TFailingTests.IgnoresItself;
begin
  TNode.Create;
  Ignore('planted');
end;

// ---------------------------------------------------------------------------- budgets

procedure TBudgetTests.ThreeBlocks;
var
  Node: TNode;
begin
  TNode.Create.Free;
  Node := TNode.Create;
  Node.Text := StringOfChar('x', 100);
  Node.Free;
end;

procedure TBudgetTests.FourBlocks;
begin
  ThreeBlocks;
  TNode.Create.Free; // beyond
end;

procedure TBudgetTests.Within;
begin
  AssertAllocations(3, @ThreeBlocks);
end;

procedure TBudgetTests.Beyond;
begin
  AssertAllocations(3, @FourBlocks);
end;

// ---------------------------------------------------------------------------- memory errors

procedure TErrorTests.Overrun;
var
  P: PByte;
begin
  if not LaneMM_DebugModeActive then
    Exit;
  P := GetMem(10);
  P[10] := 1;
  FreeMem(P); // error Overrun
end;

procedure TErrorTests.DoubleFree;
var
  P, Again: Pointer;
begin
  if not LaneMM_DebugModeActive then
    Exit;
  P := GetMem(10);
  Again := P;
  FreeMem(P);
  FreeMem(Again); // error DoubleFree
end;

procedure TErrorTests.Clean;
begin
  AssertTrue(True);
end;

initialization
  RegisterTests([TLeakTests, TCleanTests, TOwnedTests, TFailingTests, TBudgetTests]);
  RegisterTest('In.A.Path', TErrorTests);
  RegisterMany;
finalization
  if Global <> nil then
    Global.Next.Free;
  Global.Free;
end.
