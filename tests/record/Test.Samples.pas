/// Tests of LaneMM.Samples, LaneMM.TimeLine and LaneMM.ProfileData, with samples made by hand.
unit Test.Samples;

{$mode delphi}{$H+}

interface

uses
  Test.Tools, LaneMM.Text, LaneMM.CallSites, LaneMM.ProfileData;

type
  TAdd = procedure(var Text: TText; const Profile: TProfile);

  TSamplesTests = class(TLaneTest)
  strict private
    Site: array[0..7] of PSite;
    function NewSite(Address: NativeUInt): PSite;
    procedure AddBlock(Place: PSite; P: Pointer; Bytes: NativeUInt);
    procedure AddTo(Index: Integer; P: Pointer; Bytes: NativeUInt);
    procedure Work(Index: Integer);
    procedure WorkHere;
    function PeakBytes(Index: Integer): Int64;
    function WrittenAs(Add: TAdd; const Profile: TProfile): string;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure SiteKeepsWhatItHadAtThePeak;
    procedure NewSiteHadNothingAtAnOldPeak;
    procedure EqualTotalIsNoNewPeak;
    procedure FreeRecordsThePeakOfAStoppedThread;
    procedure ThreadsLeaveNothingInUse;
    procedure PeakOfThreadsIsOffByTheirSamplesAtMost;
    procedure FullTableCountsWhatItLoses;
    procedure WhereSitesAreNearlyFullBacktracesAreCut;
    procedure WindowNumbersTheAllocationsAfterASample;
    procedure PointsAreThinnedOut;
    procedure BusyTimeLineGivesNoPoints;
    procedure SiteThatComesDuringAReportIsLeftToTheNext;
    procedure ReportHasTheValuesOfItsBeginning;
  end;

implementation

uses
  SysUtils, testregistry, LaneMM, LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Os,
  LaneMM.Unwind, LaneMM.ObserveState, LaneMM.Samples, LaneMM.TimeLine,
  LaneMM.Pprof, LaneMM.ProfileJson, LaneMM.Speedscope;

const
  ThreadCount = 4;
  Rounds = 20000;
  MostBytes = 1000;

var
  // Stand for blocks.
  Places: array[0..3] of array[0..MostBytes] of Byte;
  // Numbers the threads of a test.
  Started: TAtomicWord;

function TSamplesTests.NewSite(Address: NativeUInt): PSite;
var
  Stack: TBacktrace;
begin
  Stack := Default(TBacktrace);
  Stack.Count := 1;
  Stack.Frames[0] := Address;
  Result := SiteFind(siAllocation, NoSizeClass, Stack);
end;

procedure TSamplesTests.SetUp;
var
  Index: Integer;
begin
  inherited SetUp;
  AssertTrue('tables', SitesStart and SamplesStart);
  SitesForget;
  SamplesForget;
  FreeMem(GetMem(1)); // now the thread has a heap
  for Index := 0 to High(Site) do
    Site[Index] := NewSite(1000 + Index);
end;

procedure TSamplesTests.TearDown;
begin
  SitesForget;
  SamplesForget;
  inherited TearDown;
end;

procedure TSamplesTests.AddBlock(Place: PSite; P: Pointer; Bytes: NativeUInt);
var
  Sample: TSample;
begin
  Sample := Default(TSample);
  Sample.Site := Place;
  Sample.Count := 1;
  Sample.Bytes := Bytes;
  Sample.Size := Bytes;
  Sample.UsableSize := Bytes;
  Sample.Heap := OsThreadHeap;
  Sample.Number := WindowNumber(Sample.Heap);
  SamplesAdd(P, Sample);
end;

procedure TSamplesTests.AddTo(Index: Integer; P: Pointer; Bytes: NativeUInt);
begin
  AddBlock(Site[Index], P, Bytes);
end;

function TSamplesTests.PeakBytes(Index: Integer): Int64;
var
  Count, Bytes: NativeUInt;
begin
  SitePeak(Site[Index], Count, Bytes);
  Result := Bytes;
end;

procedure TSamplesTests.SiteKeepsWhatItHadAtThePeak;
begin
  AddTo(0, @Places[0], 100);
  AddTo(1, @Places[1], 500); // the peak: 600
  SamplesRemove(@Places[1]);
  AddTo(0, @Places[2], 300);
  Same(100, PeakBytes(0), 'first site');
  Same(500, PeakBytes(1), 'second site');
  AddTo(2, @Places[3], 400); // a higher one: 800
  Same(400, PeakBytes(0), 'first site');
  Same(0, PeakBytes(1), 'second site');
  Same(400, PeakBytes(2), 'third site');
  SamplesRemove(@Places[0]);
  SamplesRemove(@Places[2]);
  SamplesRemove(@Places[3]);
  Same(400, PeakBytes(0), 'first site, later');
  Same(400, PeakBytes(2), 'third site, later');
end;

procedure TSamplesTests.NewSiteHadNothingAtAnOldPeak;
begin
  AddTo(0, @Places[0], 1000);
  SamplesRemove(@Places[0]);
  AddTo(1, @Places[1], 900);
  Same(0, PeakBytes(1), 'the later site');
  Same(1000, PeakBytes(0), 'the earlier one');
end;

procedure TSamplesTests.EqualTotalIsNoNewPeak;
begin
  AddTo(0, @Places[0], 700);
  SamplesRemove(@Places[0]);
  AddTo(1, @Places[1], 700);
  Same(700, PeakBytes(0), 'the first to reach it');
  Same(0, PeakBytes(1), 'the second');
end;

// A thread has added to the sums, and was stopped before it could raise the peak.
procedure TSamplesTests.FreeRecordsThePeakOfAStoppedThread;
begin
  AddTo(0, @Places[0], 300);
  FetchAdd(Site[1]^.Count, 1);
  FetchAdd(Site[1]^.Bytes, 500);
  FetchAdd(Observe.InUseBytes, 500);
  SamplesRemove(@Places[0]);
  Same(800, Observe.PeakTotal, 'the peak');
  Same(300, PeakBytes(0), 'the site of the free');
  Same(500, PeakBytes(1), 'the site of the other thread');
end;

// Adds and removes samples of up to MostBytes at two sites; the number in use goes up and down.
procedure TSamplesTests.Work(Index: Integer);
var
  Blocks: array[0..63] of Pointer;
  Numbers: TGenerator;
  Round, Place: Integer;
begin
  Numbers.Start(TestSeed + UInt64(Index));
  FillChar(Blocks, SizeOf(Blocks), 0);
  for Round := 1 to Rounds do
  begin
    Place := Numbers.Below(Length(Blocks));
    if Blocks[Place] = nil then
    begin
      Blocks[Place] := AllocMem(MostBytes);
      AddTo(2 * Index + Round mod 2, Blocks[Place], 1 + Numbers.Below(MostBytes));
    end
    else
    begin
      SamplesRemove(Blocks[Place]);
      FreeMem(Blocks[Place]);
      Blocks[Place] := nil;
    end;
  end;
  for Place := 0 to High(Blocks) do
    if Blocks[Place] <> nil then
    begin
      SamplesRemove(Blocks[Place]);
      FreeMem(Blocks[Place]);
    end;
end;

procedure TSamplesTests.WorkHere;
begin
  Work(FetchAdd(Started, 1));
end;

procedure TSamplesTests.ThreadsLeaveNothingInUse;
var
  Index: Integer;
begin
  Started := 0;
  InThreads(ThreadCount, WorkHere);
  Same(0, Observe.InUseBytes, 'bytes in use');
  Same(0, Observe.InUseCount, 'blocks in use');
  Same(0, Observe.SamplesLost, 'samples lost');
  for Index := 0 to High(Site) do
  begin
    Same(Site[Index]^.Bytes, Site[Index]^.FreedBytes, 'bytes freed at a site');
    Same(Site[Index]^.Samples, Site[Index]^.FreedSamples, 'samples freed at a site');
    AtLeast(1, Site[Index]^.Samples, 'samples');
  end;
end;

procedure TSamplesTests.PeakOfThreadsIsOffByTheirSamplesAtMost;
var
  Index: Integer;
  Bytes: Int64;
begin
  Started := 0;
  InThreads(ThreadCount, WorkHere);
  Bytes := 0;
  for Index := 0 to High(Site) do
    Inc(Bytes, PeakBytes(Index));
  AtLeast(Observe.PeakTotal - ThreadCount * MostBytes, Bytes, 'bytes of all sites at the peak');
  AtMost(Observe.PeakTotal + ThreadCount * MostBytes, Bytes, 'bytes of all sites at the peak');
end;

procedure TSamplesTests.FullTableCountsWhatItLoses;
var
  Index: Integer;
  Blocks: PByte;
begin
  WindowPasses(OsThreadHeap, 0); // now its allocations have numbers
  Blocks := AllocMem(MostBytes);
  for Index := 1 to 100 do // more than there are places for one address
    AddTo(0, Blocks, 10);
  AtLeast(1, Observe.SamplesLost, 'samples lost');
  Same(1000, Site[0]^.Bytes, 'bytes allocated');
  Same(1000 - Observe.SamplesLost * 10, Observe.InUseBytes, 'bytes in use');
  Same(0, Site[0]^.TemporaryCount, 'temporary blocks');
  Same(0, Site[0]^.Lives[0], 'blocks that lived shortly');
  for Index := 1 to 100 do
    SamplesRemove(Blocks);
  Same(0, Observe.InUseBytes, 'bytes in use');
  FreeMem(Blocks);
end;

// As in a program of which a routine calls itself: it has more backtraces than the table entries.
procedure TSamplesTests.WhereSitesAreNearlyFullBacktracesAreCut;
const
  Depth = 10;
  Inner = 5000;
  InnerFrames = 4;
var
  Stack: TBacktrace;
  Index: Integer;
  Before, Last: PSite;
begin
  Stack := Default(TBacktrace);
  Stack.Count := Depth;
  for Index := 0 to Depth - 1 do
    Stack.Frames[Index] := Inner + Index;
  Last := nil;
  for Index := 1 to 2 * SiteLimit do
  begin
    Stack.Frames[Depth - 1] := Inner * 100 + Index;
    Before := Last;
    Last := SiteFind(siAllocation, NoSizeClass, Stack);
    AssertTrue('each backtrace has a site', Last <> nil);
  end;
  AssertTrue('the last ones have the same', Last = Before);
  Same(InnerFrames + 1, Last^.Stack.Count, 'its frames');
  Same(Inner + InnerFrames - 1, Last^.Stack.Frames[InnerFrames - 1], 'the last one');
  Same(CutFrame, Last^.Stack.Frames[InnerFrames], 'the sign that more are missing');
  Same(0, LoadAcquire(Observe.SitesLost), 'events that are lost');
end;

procedure TSamplesTests.WindowNumbersTheAllocationsAfterASample;
var
  Heap: PHeap;
  First: NativeUInt;
begin
  Heap := OsThreadHeap;
  while WindowPasses(Heap, 0) do
    ; // closes a window that other tests have left
  LaneMM_Configure('temporary=2');
  First := WindowNumber(Heap);
  AssertFalse('no window', WindowPasses(Heap, 10));
  Same(First + 1, WindowNumber(Heap), 'the sample');
  Heap^.SampleIn := 100;
  WindowOpen(Heap);
  AtMost(-1, Heap^.SampleIn, 'bytes to the next allocation that is numbered');
  AssertTrue('first', WindowPasses(Heap, 10));
  AtMost(-1, Heap^.SampleIn, 'bytes to the next allocation that is numbered');
  AssertTrue('second', WindowPasses(Heap, 10));
  AssertTrue('third', WindowPasses(Heap, 10));
  Same(First + 4, WindowNumber(Heap), 'the third');
  Same(70, Heap^.SampleIn, 'bytes to the next sample');
  AssertFalse('closed', WindowPasses(Heap, 10));
  Heap^.SampleIn := 100;
  WindowOpen(Heap);
  AssertFalse('a large block is sampled', WindowPasses(Heap, 101));
  LaneMM_Configure('temporary=1');
end;

procedure TSamplesTests.PointsAreThinnedOut;
var
  Index: Integer;
  Block: array[0..MostBytes] of Byte;
  Line: PTimeLine;
begin
  FillChar(Block, SizeOf(Block), 0);
  AddTo(0, @Block, 10);
  for Index := 1 to MostPoints - 1 do
    TimeLineClose(TimeLineOpen);
  AddTo(1, @Block, 5);
  TimeLineClose(TimeLineOpen);
  AddTo(0, @Block, 20);
  Line := TimeLineOpen;
  Same(MostPoints div 2 + 1, Line^.Count, 'points');
  Same(10, Line^.Points[MostPoints div 2 - 2].InUseBytes, 'bytes before');
  Same(15, Line^.Points[MostPoints div 2 - 1].InUseBytes, 'bytes of the last one before');
  Same(5, Line^.Sites[MostPoints div 2 - 1][SiteIndex(Site[1])], 'bytes of its site');
  Same(35, Line^.Points[MostPoints div 2].InUseBytes, 'bytes now');
  Same(30, Line^.Sites[MostPoints div 2][SiteIndex(Site[0])], 'bytes of the site');
  TimeLineClose(Line);
end;

procedure TSamplesTests.BusyTimeLineGivesNoPoints;
var
  Line: PTimeLine;
begin
  Line := TimeLineOpen;
  AssertTrue('points', Line <> nil);
  AssertTrue('nothing while they are used', TimeLineOpen = nil);
  TimeLineClose(Line);
  Line := TimeLineOpen;
  AssertTrue('points again', Line <> nil);
  TimeLineClose(Line);
end;

function TSamplesTests.WrittenAs(Add: TAdd; const Profile: TProfile): string;
var
  Text: TText;
begin
  AssertTrue('text', TextOpen(Text, 1 shl 20));
  TextAdd(Text, '[');
  Add(Text, Profile);
  SetString(Result, Text.Start, Text.Length);
  TextClose(Text);
end;

procedure AddFolded(var Text: TText; const Profile: TProfile);
begin
  FoldedAdd(Text, Profile, pvInUseBytes);
end;

// Frames at addresses without a symbol have the address as name; the call is one byte before.
procedure TSamplesTests.SiteThatComesDuringAReportIsLeftToTheNext;
const
  Formats: array[0..3] of TAdd = (AddFolded, SpeedscopeAdd, ProfileJsonAdd, PprofAdd);
var
  Profile: TProfile;
  Late, Site: PSite;
  Add: TAdd;
begin
  AddTo(0, @Places[0], 100);
  AssertTrue('profile', ProfileOpen(Profile, pkHeap));
  Late := NewSite($5001);
  AddBlock(Late, @Places[1], 50);
  for Add in Formats do
  begin
    Has('000003e7', WrittenAs(Add, Profile));
    HasNot('00005000', WrittenAs(Add, Profile));
  end;
  Site := nil;
  while ProfileNext(Profile, Site) do
    AssertTrue('no site of the profile', Site <> Late);
  Same(100, ProfileSum(Profile, pvInUseBytes), 'bytes in use');
  ProfileClose(Profile);
  AssertTrue('the next profile', ProfileOpen(Profile, pkHeap));
  Has('5000 50'#10, WrittenAs(AddFolded, Profile));
  Same(150, ProfileSum(Profile, pvInUseBytes), 'bytes in use');
  ProfileClose(Profile);
end;

procedure TSamplesTests.ReportHasTheValuesOfItsBeginning;
var
  Profile: TProfile;
  Before: string;
begin
  AddTo(0, @Places[0], 100);
  AddTo(1, @Places[1], 200);
  AssertTrue('profile', ProfileOpen(Profile, pkHeap));
  Before := WrittenAs(SpeedscopeAdd, Profile);
  AddTo(0, @Places[2], 50);
  SamplesRemove(@Places[1]);
  Same(300, ProfileSum(Profile, pvAllocatedBytes), 'bytes allocated');
  Same(300, ProfileSum(Profile, pvInUseBytes), 'bytes in use');
  Same(200, ProfileValue(Profile, Site[1], pvPeakBytes), 'bytes of a site at the peak');
  Has(Copy(Before, Pos('"shared"', Before), MaxInt), WrittenAs(SpeedscopeAdd, Profile));
  ProfileClose(Profile);
  AssertTrue('the next profile', ProfileOpen(Profile, pkHeap));
  Same(350, ProfileSum(Profile, pvAllocatedBytes), 'bytes allocated');
  Same(150, ProfileSum(Profile, pvInUseBytes), 'bytes in use');
  ProfileClose(Profile);
end;

initialization
  RegisterTest(TSamplesTests);
end.
