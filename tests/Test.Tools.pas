/// What the tests share: generators, patterns, errors as numbers, threads that run a method.
unit Test.Tools;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Classes, SysUtils, SyncObjs, fpcunit, LaneMM.Types, LaneMM.Hooks, Test.System;

const
  /// The errors of the memory manager, as numbers.
  NoError = 0;
  OutOfMemory = 203;
  InvalidPointer = 204;

  /// More bytes than any address space of today can hold.
  Impossible = {$ifdef CPU64} NativeUInt(1) shl 50 {$else} NativeUInt(7) shl 29 {$endif};

  /// Requested sizes in bytes of all tiers, on both sides of their borders.
  SampleSizes: array[0..19] of NativeUInt = (0, 1, 15, 16, 17, 48, 100, 250, 1000, 3000, 8192,
    8193, 20000, 40000, 65536, 65537, 100000, 262144, 1000000, 5000000);

type
  /// A small generator of pseudo-random numbers (xorshift), so that a seed says all.
  TGenerator = record
    State: UInt64;
    procedure Start(Seed: UInt64);
    function Next: UInt64;
    /// A number of 0 to Limit - 1.
    function Below(Limit: UInt64): UInt64;
    /// A requested size over all tiers up to Limit bytes; small ones are frequent.
    function NextSize(Limit: NativeUInt): NativeUInt;
  end;

  TPointers = array of PByte;
  TWork = Test.System.TWork;

  /// Runs a method in a thread of its own.
  TWorker = class
  strict private
    Id: TThreadID;
    Work: TWork;
    Park: TEvent;
    Parked: TEvent;
  private
    procedure Execute;
  public
    Failure: string;
    constructor Create(Method: TWork; IsParking: Boolean);
    destructor Destroy; override;
    /// Returns when the method is done; a parking thread goes on sleeping.
    procedure AwaitWork;
    /// Ends the thread and waits for it.
    procedure AwaitEnd;
  end;

  /// Another thread that runs one method after the other, on call. A call allocates nothing, so
  /// that blocks just freed stay free.
  TServant = class
  strict private
    Worker: TWorker;
    Work: TWork;
    Wanted, Done: TEvent;
    procedure Serve;
    procedure Rest;
  public
    constructor Create;
    destructor Destroy; override;
    /// Runs Method in the other thread and waits for its end.
    procedure Call(Method: TWork);
  end;

  /// Counts on a barrier: each thread that comes waits until all have come.
  TStartLine = record
    Missing: LongInt;
    procedure Start(Count: LongInt);
    procedure Await;
  end;

  /// A test case with the words that the tests use.
  TLaneTest = class(TTestCase)
  strict private
    ChildCount: Integer;
    ChildWork: TWork;
    IsChild: Boolean; // of InChild
    procedure WorkInChild;
    procedure RunHere;
  protected
    procedure RunTest; override;
  strict protected
    /// Whether each test of the class runs in a child process after SetUp: what it does to the process
    /// goes with that.
    class function IsInChild: Boolean; virtual;
    /// Called in a child process before its work: recovers it, so that the work finds the counts of
    /// the child.
    procedure ChildStarts; virtual;
    /// Fails unless both numbers are the same.
    procedure Same(Expected, Actual: Int64; const What: string);
    /// Fails unless Actual <= Limit.
    procedure AtMost(Limit, Actual: Int64; const What: string);
    /// Fails unless Actual >= Limit.
    procedure AtLeast(Limit, Actual: Int64; const What: string);
    /// Fails unless Part stands in Text.
    procedure Has(const Part, Text: string);
    /// Fails if Part stands in Text, or if there is no text.
    procedure HasNot(const Part, Text: string);
    /// Runs Work in a new thread and waits for its end. A failure there is a failure here.
    procedure InThread(Work: TWork);
    /// Runs Work in Count threads at a time.
    procedure InThreads(Count: Integer; Work: TWork);
    /// Runs Work in a new thread that then sleeps, until it is given to EndThread.
    function StartIdleThread(Work: TWork): TWorker;
    procedure EndThread(Worker: TWorker);
    /// Runs the test once more, in a child process, and returns False after it has passed. Returns True there.
    function InChild: Boolean;
    /// Runs Work in a child process; returns its exit code: 0, or 1 where Work raised.
    function RunInChild(Work: TWork): Integer; overload;
    /// The same; Errors is what it wrote to stderr.
    function RunInChild(Work: TWork; out Errors: string): Integer; overload;
  end;

  /// A test case during which LaneMM's own thread sleeps: a test that counts free slices or system
  /// calls finds what it did itself. All free memory is cold at the start. It may change HugeFrom,
  /// SavingFrom and HasSpare of Process, which are as before after it.
  TQuietTest = class(TLaneTest)
  strict private
    KeptHugeFrom, KeptSavingFrom: NativeUInt;
    HadSpare: Boolean;
    KeptDelay: Cardinal;
    HadNoThread: Boolean; // for purges; none is started then
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  end;

var
  /// The seed of this run; set before the tests start.
  TestSeed: UInt64 = 20250101;
  /// The reports that CountCorruption got.
  Corruptions: Integer;

/// For Hooks.Corruption: counts the report.
procedure CountCorruption(Corruption: TCorruption; Span: PSpan; Block: PBlock);
/// The error that the call raises, or NoError.
function ErrorOfGet(out P: Pointer; Size: NativeUInt): Integer;
function ErrorOfAlloc(out P: Pointer; Size: NativeUInt): Integer;
function ErrorOfFree(P: Pointer): Integer;
function ErrorOfRealloc(var P: Pointer; Size: NativeUInt): Integer;
function ErrorOfMemSize(P: Pointer): Integer;

/// Fills Size bytes with a pattern that depends on Key.
procedure FillPattern(P: PByte; Size: NativeUInt; Key: UInt64);
/// Whether Size bytes hold the pattern of Key.
function HasPattern(P: PByte; Size: NativeUInt; Key: UInt64): Boolean;
/// Whether Size bytes are zero.
function IsZero(P: PByte; Size: NativeUInt): Boolean;

/// Returns the value of --Name=Value on the command line, or Default without one.
function Option(const Name: string; const Default: string = ''): string;
/// Returns the text of a file.
function ReadText(const Path: string): string;
/// Returns how many lines of Text begin with Start.
function LinesFrom(const Text, Start: string): Integer;

/// Frees every Step-th of Blocks, the first of them included, and sets them to nil.
procedure FreeEach(const Blocks: TPointers; Step: Integer);

/// Allocates blocks until one is refused, and adds them to List. ReturnNilIfGrowHeapFails is set.
procedure GetUntilRefused(List: TList; Size: NativeUInt);
/// Frees the blocks of a list, and leaves it empty.
procedure FreeListed(List: TList);

/// Usable bytes of all blocks in use, as LaneMM counts them.
function UsedBytes: NativeUInt;
/// Resident memory of this process in bytes.
function ResidentBytes: NativeUInt;
/// Returns the slices of all cold runs.
function ColdSlices: NativeUInt;
/// Returns the slices of all free runs, warm and cold.
function FreeSlices: NativeUInt;
/// Returns records of heaps, beside each other, that no thread has. They stay: a span may name them, and a heap
/// record is never freed.
function NewHeaps(Count: Integer): PHeap;
/// Returns the newest arena.
function NewestArena: PArena;
/// Makes the newest arena one with SliceCount reserved slices that were never used; returns it. The
/// other slices become free.
function ArenaWithNew(SliceCount: NativeUInt): PArena;
/// Makes slices that FrontierTake gave, and that are not used, a free run.
procedure GiveBackNew(Span: PSpan; SliceCount: NativeUInt);
/// Takes the locks of all shards: what this thread then takes comes from the frontier.
procedure LockShards;
/// Leaves them.
procedure UnlockShards;
/// Returns the end of the newest arena's committed memory. The slice before it was never taken.
function UntouchedLimit: PByte;
/// Uses blocks of all tiers; returns whether they are disjoint and keep their contents.
function HeapWorks: Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.Bits, LaneMM.Atomic, LaneMM.Os, LaneMM.Lock, LaneMM.Arena, LaneMM.Shards,
  LaneMM.HeapRecords, LaneMM.Purge, LaneMM.Stats;

// ---------------------------------------------------------------------------- numbers

procedure TGenerator.Start(Seed: UInt64);
begin
  State := Seed * UInt64($9E3779B97F4A7C15) + 1;
  if State = 0 then
    State := 1;
  Next;
end;

function TGenerator.Next: UInt64;
begin
  State := State xor (State shl 13);
  State := State xor (State shr 7);
  State := State xor (State shl 17);
  Result := State;
end;

function TGenerator.Below(Limit: UInt64): UInt64;
begin
  Result := (Next shr 11) mod Limit;
end;

function TGenerator.NextSize(Limit: NativeUInt): NativeUInt;
const
  SmallestLog2 = 4;
var
  Log2: Cardinal;
begin
  Log2 := SmallestLog2;
  while (NativeUInt(1) shl Log2 < Limit) and (Below(3) <> 0) do
    Inc(Log2);
  Result := Below(NativeUInt(1) shl Log2 + 1);
  if Result > Limit then
    Result := Limit;
end;

procedure FillPattern(P: PByte; Size: NativeUInt; Key: UInt64);
var
  Index: NativeUInt;
begin
  Key := Key * UInt64($9E3779B97F4A7C15);
  for Index := 1 to Size div 8 do
  begin
    PUInt64(P)^ := Key xor Index;
    Inc(P, 8);
  end;
  for Index := 1 to Size and 7 do
  begin
    P^ := Byte(Key) xor Index;
    Inc(P);
  end;
end;

function HasPattern(P: PByte; Size: NativeUInt; Key: UInt64): Boolean;
var
  Index: NativeUInt;
begin
  Key := Key * UInt64($9E3779B97F4A7C15);
  for Index := 1 to Size div 8 do
  begin
    if PUInt64(P)^ <> Key xor Index then
      Exit(False);
    Inc(P, 8);
  end;
  for Index := 1 to Size and 7 do
  begin
    if P^ <> Byte(Key) xor Index then
      Exit(False);
    Inc(P);
  end;
  Result := True;
end;

function IsZero(P: PByte; Size: NativeUInt): Boolean;
var
  Index: NativeUInt;
begin
  for Index := 1 to Size do
  begin
    if P^ <> 0 then
      Exit(False);
    Inc(P);
  end;
  Result := True;
end;

// ---------------------------------------------------------------------------- errors

procedure CountCorruption(Corruption: TCorruption; Span: PSpan; Block: PBlock);
begin
  Inc(Corruptions);
end;

function ErrorOfGet(out P: Pointer; Size: NativeUInt): Integer;
begin
  P := nil;
  Result := NoError;
  try
    GetMem(P, Size);
  except
    on EOutOfMemory do
      Result := OutOfMemory;
  end;
end;

function ErrorOfAlloc(out P: Pointer; Size: NativeUInt): Integer;
begin
  P := nil;
  Result := NoError;
  try
    P := AllocMem(Size);
  except
    on EOutOfMemory do
      Result := OutOfMemory;
  end;
end;

function ErrorOfFree(P: Pointer): Integer;
begin
  Result := NoError;
  try
    FreeMem(P);
  except
    on EInvalidPointer do
      Result := InvalidPointer;
  end;
end;

function ErrorOfRealloc(var P: Pointer; Size: NativeUInt): Integer;
begin
  Result := NoError;
  try
    ReallocMem(P, Size);
  except
    on EOutOfMemory do
      Result := OutOfMemory;
    on EInvalidPointer do
      Result := InvalidPointer;
  end;
end;

function ErrorOfMemSize(P: Pointer): Integer;
begin
  Result := NoError;
  try
    MemSize(P);
  except
    on EInvalidPointer do
      Result := InvalidPointer;
  end;
end;

// ---------------------------------------------------------------------------- measurements

function Option(const Name, Default: string): string;
var
  Index: Integer;
begin
  Result := Default;
  for Index := 1 to ParamCount do
    if ParamStr(Index).StartsWith('--' + Name + '=') then
      Result := Copy(ParamStr(Index), Length(Name) + 4, MaxInt);
end;

function ReadText(const Path: string): string;
var
  Lines: TStringList;
begin
  Lines := TStringList.Create;
  try
    Lines.LoadFromFile(Path);
    Result := Lines.Text;
  finally
    Lines.Free;
  end;
end;

function LinesFrom(const Text, Start: string): Integer;
var
  Line: string;
begin
  Result := 0;
  for Line in Text.Split([#10]) do
    Inc(Result, Ord(Line.StartsWith(Start)));
end;

procedure FreeEach(const Blocks: TPointers; Step: Integer);
var
  Index: Integer;
begin
  for Index := 0 to High(Blocks) div Step do
  begin
    FreeMem(Blocks[Index * Step]);
    Blocks[Index * Step] := nil;
  end;
end;

procedure GetUntilRefused(List: TList; Size: NativeUInt);
var
  P: PPointer;
begin
  P := GetMem(Size);
  while P <> nil do
  begin
    P^ := nil;
    List.Add(P);
    P := GetMem(Size);
  end;
end;

procedure FreeListed(List: TList);
var
  Index: Integer;
begin
  for Index := 0 to List.Count - 1 do
    FreeMem(List[Index]);
  List.Clear;
end;

function UsedBytes: NativeUInt;
var
  Status: TStatus;
begin
  StatusRead(Status);
  Result := Status.UsedBytes;
end;

function ResidentBytes: NativeUInt;
begin
  Result := Test.System.ResidentBytes;
end;

function ColdSlices: NativeUInt;
var
  Number: NativeUInt;
begin
  Result := 0;
  for Number := 1 to Process.ShardCount do
    Inc(Result, Process.Shards[Number].ColdSlices);
end;

function FreeSlices: NativeUInt;
begin
  Result := ShardsWarmSlices + ColdSlices;
end;

function NewHeaps(Count: Integer): PHeap;
var
  Size: NativeUInt;
  Index: Integer;
begin
  Size := AlignUp(Count * SizeOf(THeap), OsPageSize);
  Result := OsReserve(Size);
  OsCommit(Result, Size);
  for Index := 0 to Count - 1 do
    HeapFormat(Result + Index);
end;

function NewestArena: PArena;
var
  Index: Integer;
begin
  Index := 0;
  while FrontierArena(Index + 1) <> nil do
    Inc(Index);
  Result := FrontierArena(Index);
end;

procedure GiveBackNew(Span: PSpan; SliceCount: NativeUInt);
begin
  Span^.Shard := 1;
  Span^.SliceCount := SliceCount;
  Span^.SpareCount := SliceCount; // not counted as backed
  ShardsReleaseZero(Span);
end;

// Takes the next slices of the newest arena, or of a new one, and makes them free.
procedure PassSlices(SliceCount: NativeUInt);
var
  Span, Tail: PSpan;
  TailCount: NativeUInt;
begin
  Span := FrontierTake(SliceCount, Tail, TailCount);
  if Span = nil then
    raise Exception.CreateFmt('no %d new slices', [SliceCount]);
  GiveBackNew(Span, SliceCount);
  if Tail <> nil then
    GiveBackNew(Tail, TailCount);
end;

// Lets no arena but the newest one give slices any more. One that found the addresses behind it
// taken may grow later: they were those of a thread's stack, say.
procedure EndOlderArenas;
var
  Index: Integer;
  Arena: PArena;
begin
  Index := 0;
  while FrontierArena(Index + 1) <> nil do
  begin
    Arena := FrontierArena(Index);
    Arena^.MostSlices := Arena^.Reserved;
    if Arena^.Reserved > Arena^.Frontier then
      PassSlices(Arena^.Reserved - Arena^.Frontier);
    Inc(Index);
  end;
end;

function ArenaWithNew(SliceCount: NativeUInt): PArena;
begin
  EndOlderArenas;
  Result := NewestArena;
  while Result^.Reserved - Result^.Frontier < SliceCount do
  begin
    if Result^.Reserved > Result^.Frontier then
      PassSlices(Result^.Reserved - Result^.Frontier);
    PassSlices(1); // the arena grows, or there is another one
    EndOlderArenas;
    Result := NewestArena;
  end;
end;

procedure LockShards;
var
  Number: NativeUInt;
begin
  for Number := 1 to Process.ShardCount do
    LockEnter(Process.Shards[Number].Lock);
end;

procedure UnlockShards;
var
  Number: NativeUInt;
begin
  for Number := 1 to Process.ShardCount do
    LockLeave(Process.Shards[Number].Lock);
end;

function UntouchedLimit: PByte;
var
  Arena: PArena;
begin
  Arena := ArenaWithNew(2);
  if Arena^.Frontier = Arena^.Committed then
    PassSlices(1); // commits many
  if Arena^.Frontier = Arena^.Committed then
    raise Exception.Create('no slice is committed ahead');
  Result := Arena^.Base + Arena^.Committed * SliceSize;
end;

function HeapWorks: Boolean;
var
  Blocks: array[0..High(SampleSizes) * 8 + 7] of Pointer;
  Index: Integer;
begin
  Result := True;
  for Index := 0 to High(Blocks) do
  begin
    GetMem(Blocks[Index], SampleSizes[Index div 8]);
    FillPattern(Blocks[Index], SampleSizes[Index div 8], Index);
  end;
  for Index := 0 to High(Blocks) do
  begin
    Result := Result and HasPattern(Blocks[Index], SampleSizes[Index div 8], Index);
    FreeMem(Blocks[Index]);
  end;
end;

// ---------------------------------------------------------------------------- threads

function RunWorker(Worker: Pointer): PtrInt;
begin
  TWorker(Worker).Execute;
  Result := 0;
end;

constructor TWorker.Create(Method: TWork; IsParking: Boolean);
begin
  inherited Create;
  Work := Method;
  Parked := TEvent.Create(nil, True, False, '');
  if IsParking then
    Park := TEvent.Create(nil, True, False, '');
  Id := BeginThread(RunWorker, Self);
  if Id = TThreadID(0) then
    raise EThread.Create('no thread');
end;

destructor TWorker.Destroy;
begin
  Park.Free;
  Parked.Free;
  inherited Destroy;
end;

// With a frame: an assertion of fpcunit follows two frame pointers, and what starts a thread may have
// anything in that register (glibc 2.41).
{$stackframes on}
procedure TWorker.Execute;
begin
  try
    Work;
  except
    on Error: Exception do
      Failure := Error.ClassName + ': ' + Error.Message;
  end;
  Parked.SetEvent;
  if Park <> nil then
    Park.WaitFor(INFINITE);
end;
{$stackframes off}

procedure TWorker.AwaitWork;
begin
  Parked.WaitFor(INFINITE);
end;

procedure TWorker.AwaitEnd;
begin
  if Park <> nil then
    Park.SetEvent;
  WaitForThreadTerminate(Id, 0);
end;

constructor TServant.Create;
begin
  inherited Create;
  Wanted := TEvent.Create(nil, False, False, '');
  Done := TEvent.Create(nil, False, False, '');
  Worker := TWorker.Create(Serve, False);
  Call(Rest); // the start of a thread frees memory, too
end;

procedure TServant.Rest;
begin
end;

destructor TServant.Destroy;
begin
  Call(nil);
  Worker.AwaitEnd;
  Worker.Free;
  Wanted.Free;
  Done.Free;
  inherited Destroy;
end;

procedure TServant.Serve;
var
  IsLast: Boolean;
begin
  repeat
    Wanted.WaitFor(INFINITE);
    IsLast := not Assigned(Work);
    if not IsLast then
      Work;
    Done.SetEvent;
  until IsLast;
end;

procedure TServant.Call(Method: TWork);
begin
  Work := Method;
  Wanted.SetEvent;
  Done.WaitFor(INFINITE);
end;

procedure TStartLine.Start(Count: LongInt);
begin
  Missing := Count;
end;

procedure TStartLine.Await;
begin
  InterlockedDecrement(Missing);
  while InterlockedCompareExchange(Missing, 0, 0) > 0 do
    ThreadSwitch;
end;

// ---------------------------------------------------------------------------- TLaneTest

procedure TLaneTest.Same(Expected, Actual: Int64; const What: string);
begin
  Inc(AssertCount);
  if Expected <> Actual then
    Fail('%s: expected %d, found %d', [What, Expected, Actual]);
end;

procedure TLaneTest.AtMost(Limit, Actual: Int64; const What: string);
begin
  Inc(AssertCount);
  if Actual > Limit then
    Fail('%s: expected at most %d, found %d', [What, Limit, Actual]);
end;

procedure TLaneTest.AtLeast(Limit, Actual: Int64; const What: string);
begin
  Inc(AssertCount);
  if Actual < Limit then
    Fail('%s: expected at least %d, found %d', [What, Limit, Actual]);
end;

procedure TLaneTest.Has(const Part, Text: string);
begin
  Inc(AssertCount);
  if Pos(Part, Text) = 0 then
    Fail('`%s` is missing in: %s', [Part, Text]);
end;

procedure TLaneTest.HasNot(const Part, Text: string);
begin
  Inc(AssertCount);
  if (Text = '') or (Pos(Part, Text) > 0) then
    Fail('`%s` stands in: %s', [Part, Text]);
end;

function TLaneTest.StartIdleThread(Work: TWork): TWorker;
begin
  Result := TWorker.Create(Work, True);
  Result.AwaitWork;
end;

procedure TLaneTest.EndThread(Worker: TWorker);
var
  Failure: string;
begin
  Worker.AwaitEnd;
  Failure := Worker.Failure;
  Worker.Free;
  if Failure <> '' then
    Fail('in a thread: ' + Failure);
end;

class function TLaneTest.IsInChild: Boolean;
begin
  Result := False;
end;

procedure TLaneTest.RunHere;
begin
  inherited RunTest;
end;

procedure TLaneTest.RunTest;
begin
  if IsInChild then
    Same(0, RunInChild(RunHere), 'exit code of the child')
  else
    RunHere;
end;

procedure TLaneTest.ChildStarts;
begin
  LockRecover;
end;

procedure TLaneTest.WorkInChild;
begin
  ChildStarts;
  ChildWork;
end;

function TLaneTest.InChild: Boolean;
begin
  Result := IsChild;
  IsChild := True;
  if not Result then
    Same(0, RunInChild(RunHere), 'exit code of the child');
end;

function TLaneTest.RunInChild(Work: TWork): Integer;
var
  Errors: string;
begin
  Result := RunInChild(Work, Errors);
end;

function TLaneTest.RunInChild(Work: TWork; out Errors: string): Integer;
begin
  Inc(ChildCount);
  ChildWork := Work;
  Result := RunInChildProcess(WorkInChild, ClassName, TestName, ChildCount, Errors);
  AssertTrue('child has ended by itself', Result >= 0);
end;

procedure TLaneTest.InThread(Work: TWork);
begin
  InThreads(1, Work);
end;

procedure TLaneTest.InThreads(Count: Integer; Work: TWork);
var
  Workers: array of TWorker;
  Index: Integer;
  Failure: string;
begin
  SetLength(Workers, Count);
  for Index := 0 to Count - 1 do
    Workers[Index] := TWorker.Create(Work, False);
  Failure := '';
  for Index := 0 to Count - 1 do
  begin
    Workers[Index].AwaitEnd;
    if Workers[Index].Failure <> '' then
      Failure := Workers[Index].Failure;
    Workers[Index].Free;
  end;
  if Failure <> '' then
    Fail('in a thread: ' + Failure);
end;

// ---------------------------------------------------------------------------- TQuietTest

const
  // Values of Process.PurgeState: see LaneMM.Purge.
  NotStarted = 0;
  Running = 1;
  Parked = 2;
  Refused = 3;

// Purges until LaneMM's own thread has nothing to do and parks, if it runs.
procedure AwaitParkedPurgeThread;
begin
  ProcessTrim;
  while LoadAcquire(Process.PurgeState) = Running do
  begin
    OsWake(Process.PurgeState); // it may have begun a long wait
    ThreadSwitch;
    ProcessTrim;
  end;
end;

procedure TQuietTest.SetUp;
const
  LongTimeMs = 1000000;
begin
  Process.LeavingThreads := 0; // threads of earlier tests that left blocks behind
  KeptHugeFrom := Process.HugeFrom;
  KeptSavingFrom := Process.SavingFrom;
  HadSpare := Process.HasSpare;
  KeptDelay := Process.PurgeDelayMs;
  Process.PurgeDelayMs := LongTimeMs;
  AwaitParkedPurgeThread;
  Process.SweepNext := nil; // a sweep by parts that an earlier test began would go on in any call
  // No call wakes a thread that seems to run: one that parks late would take it for the end of its
  // long wait, and purge.
  CompareAndSwap(Process.PurgeState, Parked, Running);
  // One that a call of the test starts would purge at its first look, at any moment.
  HadNoThread := CompareAndSwap(Process.PurgeState, NotStarted, Refused);
end;

procedure TQuietTest.TearDown;
begin
  if HadNoThread then
    CompareAndSwap(Process.PurgeState, Refused, NotStarted);
  Process.PurgeDelayMs := KeptDelay;
  Process.HugeFrom := KeptHugeFrom;
  Process.SavingFrom := KeptSavingFrom;
  Process.HasSpare := HadSpare;
  AwaitParkedPurgeThread;
end;

initialization
  // The tests of one process use up many addresses; what becomes scarce then has tests of its own.
  Process.SavingFrom := High(NativeUInt);
end.
