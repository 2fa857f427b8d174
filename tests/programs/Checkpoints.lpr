/// LaneMM_LeaksSince and LaneMM_ReachableSince: what is lost since a checkpoint, in any thread, and
/// nothing else. Exit code 0 on success.
program Checkpoints;

{$mode delphi}{$H+}

uses
  LaneMM, {$ifdef UNIX} cthreads, {$endif} LaneMM.Os, Classes, SysUtils, Promises;

type
  TNode = class
    Next: TNode;
    Text: string;
  end;

  TFixture = class
    Node: TNode;
    Text: string;
    Numbers: array of Integer;
    Counted: IInterface;
    Card: packed record
      Kind: Byte;
      Text: string;
    end;
    Nodes: array of TNode;
    Rows: array of array of string;
    Stack: array of Byte;
  end;

  TWorker = class(TThread)
    Loses, Waits: Boolean;
    Count: Integer;
    IsReady, MayEnd: PRTLEvent;
    procedure Execute; override;
  end;

  TPacked = packed record
    Kind: Byte;
    Node: TNode;
  end;

  // What a search found.
  TFound = record
    Nodes, Others: NativeUInt;
    Places: string;
  end;
  PFound = ^TFound;

var
  Global: TNode;
  List: TList;
  Packs: array of TPacked;

threadvar
  Shift: Byte; // of the next, where variables of threads are not aligned
  OfThread: TNode;

procedure Note(const Leak: TLaneMM_LeakInfo; Context: Pointer);
begin
  if Leak.Name = 'Checkpoints.TNode' then
    Inc(PFound(Context)^.Nodes, Leak.Count)
  else
    Inc(PFound(Context)^.Others, Leak.Count);
  PFound(Context)^.Places := PFound(Context)^.Places + Leak.Name + ' at ' + Leak.Place + LineEnding;
end;

// Overwrites what ended routines have left on the stack: it would lie between the variables of those
// that are called next, and hide a loss.
procedure ClearStack;
var
  Words: array[0..2047] of Pointer;
begin
  FillChar(Words, SizeOf(Words), 0);
end;

// Returns the number of nodes lost since Start, and promises that nothing else is.
function LostNodes(Start: TLaneMM_Checkpoint; Finished: TObject = nil): NativeUInt;
var
  Found: TFound;
begin
  Found := Default(TFound);
  LaneMM_LeaksSince(Start, @Note, @Found, Finished);
  Expect(Found.Others = 0, 'nothing but nodes is lost: ' + Found.Places);
  Result := Found.Nodes;
end;

function ReachedNodes(Start: TLaneMM_Checkpoint): NativeUInt;
var
  Found: TFound;
begin
  Found := Default(TFound);
  LaneMM_ReachableSince(Start, @Note, @Found);
  Result := Found.Nodes;
end;

procedure Lose(Count: Integer);
var
  Index: Integer;
begin
  for Index := 1 to Count do
    TNode.Create;
end;

procedure TWorker.Execute;
var
  Held: TNode;
  Index: Integer;
begin
  for Index := 1 to Count do
    TNode.Create.Free;
  Held := TNode.Create;
  OfThread := TNode.Create;
  if Waits then
  begin
    RTLEventSetEvent(IsReady);
    RTLEventWaitFor(MayEnd);
  end;
  if Loses then
    Lose(1);
  Held.Free;
  FreeAndNil(OfThread);
end;

procedure StartWorker(out Worker: TWorker);
begin
  Worker := TWorker.Create(True);
  Worker.IsReady := RTLEventCreate;
  Worker.MayEnd := RTLEventCreate;
  Worker.Waits := True;
  Worker.Start;
  RTLEventWaitFor(Worker.IsReady);
end;

procedure EndWorker(Worker: TWorker);
begin
  RTLEventSetEvent(Worker.MayEnd);
  Worker.WaitFor;
  RTLEventDestroy(Worker.IsReady);
  RTLEventDestroy(Worker.MayEnd);
  Worker.Free;
end;

procedure PackedRecordsReach;
var
  Start: TLaneMM_Checkpoint;
  Index: Integer;
begin
  Start := LaneMM_Checkpoint;
  SetLength(Packs, 20);
  for Index := 0 to High(Packs) do
    Packs[Index].Node := TNode.Create;
  ClearStack;
  Expect(LostNodes(Start) = 0, 'what packed records hold is not lost');
  for Index := 0 to High(Packs) do
    Packs[Index].Node.Free;
  Packs := nil;
end;

procedure LostAloneCount;
var
  Start: TLaneMM_Checkpoint;
  Local: TNode;
begin
  Lose(5);
  Start := LaneMM_Checkpoint;
  Local := TNode.Create;
  Local.Next := TNode.Create;
  Local.Text := IntToStr(ParamCount);
  Global := TNode.Create;
  Lose(3);
  ClearStack;
  Expect(LostNodes(Start) = 3, 'what is lost since the checkpoint, no more, no less');
  Expect(ReachedNodes(Start) = 3, 'locals, what they lead to, and globals are reached');
  Local.Next.Free;
  Local.Free;
  Start := LaneMM_Checkpoint;
  Expect((LaneMM_LeaksSince(Start, nil, nil) = 0) and (LaneMM_ReachableSince(Start, nil, nil) = 0),
    'nothing is new right after a checkpoint');
  Global.Free;
  Global := nil;
end;

// A loss of an item whose list no longer counts it.
procedure FillAndDelete;
begin
  List.Add(TNode.Create);
  List.Add(TNode.Create);
  List.Delete(1);
end;

procedure ItemsCountAsLongAsTheListCountsThem;
var
  Start: TLaneMM_Checkpoint;
begin
  Start := LaneMM_Checkpoint;
  List := TList.Create;
  FillAndDelete;
  ClearStack;
  Expect(LostNodes(Start) = 1, 'an item behind the count of its list is lost');
  Expect(ReachedNodes(Start) = 1, 'one before it is not');
  TNode(List[0]).Free;
  FreeAndNil(List);
end;

procedure FillFixture(Fixture: TFixture);
begin
  Fixture.Node := TNode.Create;
  Fixture.Text := IntToStr(ParamCount);
  SetLength(Fixture.Numbers, 10);
  Fixture.Counted := TInterfacedObject.Create;
  Fixture.Card.Text := IntToStr(ParamCount) + 'packed';
  SetLength(Fixture.Rows, 2, 2);
  Fixture.Rows[1, 1] := IntToStr(ParamCount) + 'row';
end;

procedure AddNode(Fixture: TFixture);
begin
  SetLength(Fixture.Nodes, 3);
  Fixture.Nodes[1] := TNode.Create;
end;

// Protects a page in the middle of the array, as a coroutine does below its stack. Returns the
// complement of its address, which nothing else holds.
function GuardStack(Fixture: TFixture): NativeUInt;
begin
  SetLength(Fixture.Stack, 4 * OsGranule);
  Result := (NativeUInt(Fixture.Stack) + OsGranule) and not NativeUInt(OsGranule - 1);
  Expect(OsForbid(Pointer(Result), OsGranule), 'a page is protected');
  Result := Result xor High(NativeUInt);
end;

procedure FinishedObjectHoldsWhatFreesItself;
var
  Start: TLaneMM_Checkpoint;
  Fixture: TFixture;
  Hidden: NativeUInt;
begin
  Start := LaneMM_Checkpoint;
  Fixture := TFixture.Create;
  FillFixture(Fixture);
  ClearStack;
  Expect(LostNodes(Start) = 0, 'an object holds its fields');
  Expect(LostNodes(Start, Fixture) = 1, 'a finished one only its strings, arrays, interfaces');
  AddNode(Fixture);
  Hidden := GuardStack(Fixture);
  ClearStack;
  Expect(LostNodes(Start, Fixture) = 2, 'its arrays hold no objects');
  Expect(OsCommit(Pointer(Hidden xor High(NativeUInt)), OsGranule), 'the page is there again');
  Fixture.Nodes[1].Free;
  Fixture.Node.Free;
  Fixture.Free;
end;

procedure OtherThreadsCount;
var
  Start: TLaneMM_Checkpoint;
  First, Second: TWorker;
begin
  StartWorker(First); // has numbers in reserve, from before the checkpoint
  Start := LaneMM_Checkpoint;
  StartWorker(Second);
  Expect(LostNodes(Start) = 0, 'what a running thread holds is not lost');
  Second.Count := 100;
  First.Loses := True;
  Second.Loses := True;
  EndWorker(First);
  EndWorker(Second);
  ClearStack;
  Expect(LostNodes(Start) = 2, 'what ended threads have lost, also one that is older');
end;

procedure HoldInThread;
begin
  OfThread := TNode.Create;
end;

procedure VariablesOfTheThreadHold;
var
  Start: TLaneMM_Checkpoint;
begin
  Start := LaneMM_Checkpoint;
  HoldInThread;
  Expect(LostNodes(Start) = 0, 'a variable of the thread holds');
  FreeAndNil(OfThread);
end;

procedure LoseExpected;
begin
  LaneMM_RegisterExpectedMemoryLeak(TNode.Create);
end;

procedure SuppressedAndRegionsAreNone;
var
  Start: TLaneMM_Checkpoint;
  Region: TLaneMM_Region;
begin
  Region := LaneMM_RegionCreate('checkpoints', 0);
  Start := LaneMM_Checkpoint;
  LoseExpected;
  LaneMM_RegionEnter(Region);
  Lose(2);
  LaneMM_RegionLeave;
  Expect(LostNodes(Start) = 0, 'what is suppressed, or freed with its region, is not lost');
  LaneMM_RegionFree(Region);
end;

procedure ExceptionsThatAreHandledHold;
var
  Start: TLaneMM_Checkpoint;
begin
  Start := LaneMM_Checkpoint;
  try
    raise Exception.Create('text ' + IntToStr(ParamCount));
  except
    on Exception do
      Expect(LostNodes(Start) = 0, 'an exception holds its text');
  end;
end;

procedure All;
begin
  PackedRecordsReach;
  LostAloneCount;
  ItemsCountAsLongAsTheListCountsThem;
  FinishedObjectHoldsWhatFreesItself;
  OtherThreadsCount;
  VariablesOfTheThreadHold;
  SuppressedAndRegionsAreNone;
  ExceptionsThatAreHandledHold;
end;

procedure RaiseAll(const Leak: TLaneMM_LeakInfo; Context: Pointer);
begin
  raise Exception.Create(Leak.Name);
end;

{$ifdef LINUX}
// The visitor of a framework that fails a test raises. Freed blocks are inaccessible afterwards, too.
procedure VisitorMayRaise;
var
  Start: TLaneMM_Checkpoint;
  P: PByte;
  IsRaised, IsCaught: Boolean;
begin
  LaneMM_EnterDebugMode;
  LaneMM_Configure('guard=pages');
  Start := LaneMM_Checkpoint;
  Global := TNode.Create;
  IsRaised := False;
  try
    LaneMM_ReachableSince(Start, nil, nil);
    Global := nil;
    ClearStack;
    LaneMM_LeaksSince(Start, RaiseAll, nil);
  except
    on Exception do
      IsRaised := True;
  end;
  Expect(IsRaised, 'the exception of a visitor passes');
  P := GetMem(100);
  FreeMem(P);
  IsCaught := False;
  try
    P^ := P^ + 1;
  except
    on EAccessViolation do
      IsCaught := True;
  end;
  Expect(IsCaught, 'guard pages work after it');
  LaneMM_Configure('guard=0');
  LaneMM_ExitDebugMode;
end;
{$endif}

// Without /proc no root is found: nothing is called lost.
procedure Blind;
var
  Start: TLaneMM_Checkpoint;
begin
  Start := LaneMM_Checkpoint;
  Global := TNode.Create;
  Expect(LaneMM_LeaksSince(Start, nil, nil) = 0, 'what a global holds is no leak where it is not found');
  Global.Free;
end;

begin
  if ParamStr(1) = 'blind' then
  begin
    Blind;
    Finish;
  end;
  All;
  LaneMM_EnterDebugMode;
  All;
  LaneMM_ExitDebugMode;
  {$ifdef LINUX}
  VisitorMayRaise;
  {$endif}
  Finish;
end.
