/// The status page of this process: its creation, the totals on it.
//
// Owns:       Live; Head, Sequence and Totals of the page.
// Invariants: Page is nil, or a page whose Head is complete and names this process. The page of a
//             parent is dropped in the child process, which makes its own when it is asked; its
//             file number stays open until exec.
// Callers:    LivePageStart: once, before any other thread runs; LivePageRenew: a signal handler;
//             LivePageForget: the recovery of a child process; the others: any thread.
// Progress:   no routine waits.
unit LaneMM.LivePage;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.StatusPage;

type
  /// The signals that ask for an answer; 0: none.
  TLiveSignals = array[0..1] of Cardinal;

/// Returns whether the settings allow a page: not `live=0`, nor more rights than the user's.
function LivePageIsWanted: Boolean;
/// Makes the page, which names the signals. Without memory, or where the system has no such pages,
/// there is none.
procedure LivePageStart(const Signals: TLiveSignals);
/// Removes the page of a library that is unloaded.
procedure LivePageEnd;
/// Returns the page, or nil.
function LivePage: PStatusPage;
/// In a child process: drops the page of the parent.
procedure LivePageForget;
/// Makes the page of a child process, if the parent had one and no other thread is making it.
procedure LivePageRenew;
/// Returns whether the totals can be written: no other thread is writing them.
function LivePageIsQuiet: Boolean;
/// Sums up the heap and writes the totals; leaves them when another thread is writing them.
procedure LivePageWrite;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.OsPage, LaneMM.Stats,
  LaneMM.Version, LaneMM.SettingsState;

type
  // The state of the page.
  TLive = record
    Page: PStatusPage;     //< racy    the page, or nil; a handler that reads nil makes one
    Parent: PStatusPage;   //< racy    in a child process that has none yet: that of the parent
    IsMaking: TAtomicWord; //< shared  1: a thread makes the page
    Signals: TLiveSignals; //< const   the argument of LivePageStart
    FileNumber: NativeInt; //< owner   the open file of the page, or -1; the thread that makes it
  end;

var
  Live: TLive;

function LivePageIsWanted: Boolean;
begin
  Result := IsSet(opLive) and not Settings.IsPrivileged and OsPageIsAllowed;
end;

function LivePage: PStatusPage;
begin
  Result := Live.Page;
end;

function UseOfLaneMM: TPageUse;
begin
  Result := puProgram;
  if Process.IsMalloc then
    Result := puMalloc
  else if IsLibrary then
    Result := puLibrary;
end;

procedure FillHead(out Head: TPageHead);
const
  Magic: PAnsiChar = PageMagic;
  Version: PAnsiChar = ThisVersion;
begin
  Head := Default(TPageHead);
  Move(Magic^, Head.Magic, SizeOf(Head.Magic));
  Head.Layout := PageLayout;
  Head.PointerBytes := SizeOf(Pointer);
  Head.RecordBytes[prProcess] := SizeOf(TProcess);
  Head.RecordBytes[prSpan] := SizeOf(TSpan);
  Head.RecordBytes[prHeap] := SizeOf(THeap);
  Head.RecordBytes[prArena] := SizeOf(TArena);
  Head.RecordBytes[prShard] := SizeOf(TShard);
  Head.IsChecked := Ord(Checked);
  Move(Version^, Head.Version, TextLength(Version));
  Head.ProcessId := OsProcessId;
  Head.StartedMs := Process.LookedMs;
  Head.Engine := NativeUInt(@Process);
  Head.Use := Ord(UseOfLaneMM);
  Head.HasMailbox := Ord(Live.Signals[0] <> 0);
  Head.Signals[0] := Live.Signals[0];
  Head.Signals[1] := Live.Signals[1];
end;

procedure MakePage;
var
  Page: PStatusPage;
begin
  Page := OsPageMap(PageName, PageBytes, Live.FileNumber);
  if Page = nil then
    Exit;
  FillHead(Page^.Head);
  // Release: the head before the page. Pairs with nothing: a handler in another thread that reads
  // nil leaves the request to the next signal.
  ReleaseFence;
  Live.Page := Page;
end;

procedure LivePageStart(const Signals: TLiveSignals);
begin
  Live.Signals := Signals;
  MakePage;
end;

procedure LivePageEnd;
begin
  if Live.Page = nil then
    Exit;
  OsPageUnmap(Live.Page, PageBytes);
  OsPageClose(Live.FileNumber);
  Live.Page := nil;
end;

procedure LivePageForget;
begin
  StoreRelease(Live.IsMaking, 0);
  if Live.Page = nil then
    Exit;
  Live.Parent := Live.Page;
  Live.Page := nil;
end;

procedure LivePageRenew;
begin
  if (Live.Parent = nil) or not CompareAndSwap(Live.IsMaking, 0, 1) then
    Exit;
  OsPageUnmap(Live.Parent, PageBytes);
  Live.Parent := nil;
  MakePage;
  StoreRelease(Live.IsMaking, 0);
end;

// ---------------------------------------------------------------------------- totals

procedure FillTier(const Tier: TTierStatus; out Target: TPageTier);
begin
  Target.Blocks := Tier.BlockCount;
  Target.UsedBytes := Tier.UsedBytes;
  Target.SpanBytes := Tier.SpanBytes;
end;

procedure CountThread(Id: Cardinal; Context: Pointer);
begin
  Inc(PUInt64(Context)^);
end;

procedure FillTotals(const Status: TStatus; var Totals: TPageTotals);
var
  Kind: TOsCall;
begin
  Inc(Totals.Count);
  Totals.Threads := 0;
  OsVisitThreads(CountThread, @Totals.Threads);
  Totals.WrittenMs := OsNowMs;
  Totals.UsedBytes := Status.UsedBytes;
  Totals.CommittedBytes := Status.CommittedBytes;
  Totals.CachedBytes := Status.CachedBytes;
  Totals.PeakBytes := Status.PeakBytes;
  Totals.ReservedBytes := Status.ReservedBytes;
  FillTier(Status.Small, Totals.Small);
  FillTier(Status.Medium, Totals.Medium);
  FillTier(Status.Large, Totals.Large);
  Totals.Contended := Status.Contended;
  for Kind := Low(TOsCall) to High(TOsCall) do
    Totals.OsCalls[Ord(Kind)] := Status.OsCalls[Kind];
  Totals.Resizes := Status.Realloc.Calls;
  Totals.Moves := Status.Realloc.Moves;
  Totals.CopiedBytes := Status.Realloc.CopiedBytes;
end;

function LivePageIsQuiet: Boolean;
begin
  Result := not Odd(LoadAcquire(Live.Page^.Sequence.Value));
end;

procedure LivePageWrite;
var
  Page: PStatusPage;
  Status: TStatus;
  Sequence: NativeUInt;
begin
  Page := LivePage;
  StatusRead(Status);
  Sequence := LoadAcquire(Page^.Sequence.Value);
  // Full barrier: the odd number before the totals.
  if Odd(Sequence) or not CompareAndSwap(Page^.Sequence.Value, Sequence, Sequence + 1) then
    Exit;
  FillTotals(Status, Page^.Totals);
  // Release: the totals before the even number. Pairs with the tool's read.
  StoreRelease(Page^.Sequence.Value, Sequence + 2);
end;

end.
