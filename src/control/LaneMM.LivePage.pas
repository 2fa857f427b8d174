/// The status page of this process: its creation, the totals on it.
//
// Owns:       Live; Head, Sequence and Totals of the page.
// Invariants: Page is nil, or a page whose Head names this process, or, in a child process that was
//             not asked yet, its parent. The child makes its own in the same place.
// Callers:    LivePageStart: once, before any other thread runs; LivePageForget: the recovery of a
//             child process; the others: any thread.
// Progress:   no routine waits.
unit LaneMM.LivePage;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.OsThread, LaneMM.StatusPage;

/// Makes the page; Answerer: what a thread runs that a tool starts; nil: requests are not answered.
/// Plan: how a tool starts one, all 0 if it cannot. Without memory, or where the system has no such
/// pages, there is none.
procedure LivePageStart(Answerer: TPlainProcedure; const Plan: TBareThreadPlan);
/// Removes the page of a library that is unloaded.
procedure LivePageEnd;
/// Returns the page, or nil.
function LivePage: PStatusPage;
/// Returns whether the page is this process's own: a child process has that of its parent.
function LivePageIsOwn: Boolean;
/// In a child process: the page is that of the parent.
procedure LivePageForget;
/// Makes the page of a child process, unless it has one or another thread is making it.
procedure LivePageRenew;
/// Returns whether the totals can be written: no other thread is writing them.
function LivePageIsQuiet: Boolean;
/// Sums up the heap and writes the totals; leaves them when another thread is writing them.
procedure LivePageWrite;

implementation

uses
  LaneMM.Types, LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.OsProcess,
  LaneMM.Stats, LaneMM.Version;

type
  // The state of the page.
  TLive = record
    Page: PStatusPage;         //< const   the page, or nil
    IsParents: TAtomicWord;    //< shared  1: it is that of the parent; a thread that makes the
                               //  process's own sets it to 0
    Answerer: TPlainProcedure; //< const   the arguments of LivePageStart
    Plan: TBareThreadPlan;     //< const
  end;

var
  Live: TLive;

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

// Fills all but Magic, which comes last.
procedure FillHead(out Head: TPageHead);
const
  Version: PAnsiChar = ThisVersion;
begin
  Head := Default(TPageHead);
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
  Head.HasMailbox := Ord(@Live.Answerer <> nil);
  Head.ThreadCode := Live.Plan.Code;
  Head.ThreadFlags := Live.Plan.Flags;
  Head.ThreadBytes := Live.Plan.Bytes;
  Head.Answerer := NativeUInt(@Live.Answerer);
end;

// Makes a page, in the place of the one that there is.
procedure MakePage;
const
  Magic: PAnsiChar = PageMagic;
var
  Page: PStatusPage;
begin
  Page := OsPageMap(Live.Page, PageBytes);
  if Page = nil then
    Exit;
  FillHead(Page^.Head);
  Page^.Mailbox.Bell.Value := LoadAcquire(Process.BellSeen); // the next ring is a change
  // Release: the head before its first bytes, by which a tool knows it.
  ReleaseFence;
  Move(Magic^, Page^.Head.Magic, SizeOf(Page^.Head.Magic));
  Live.Page := Page;
  Process.Bell := @Page^.Mailbox.Bell.Value;
end;

procedure LivePageStart(Answerer: TPlainProcedure; const Plan: TBareThreadPlan);
begin
  @Live.Answerer := @Answerer;
  Live.Plan := Plan;
  MakePage;
end;

procedure LivePageEnd;
begin
  if Live.Page = nil then
    Exit;
  Process.Bell := @Process.BellSeen;
  OsPageUnmap(Live.Page);
  Live.Page := nil;
end;

// Not of a child process that shares the memory of its parent, nor of one that has no page yet.
function LivePageIsOwn: Boolean;
begin
  Result := (Live.Page <> nil) and (Live.Page^.Head.ProcessId = OsProcessId);
end;

procedure LivePageForget;
begin
  StoreRelease(Live.IsParents, Ord(Live.Page <> nil));
end;

procedure LivePageRenew;
begin
  if CompareAndSwap(Live.IsParents, 1, 0) then
    MakePage;
end;

// ---------------------------------------------------------------------------- totals

procedure FillTier(const Tier: TTierStatus; out Target: TPageTier);
begin
  Target.Blocks := Tier.BlockCount;
  Target.UsedBytes := Tier.UsedBytes;
  Target.SpanBytes := Tier.SpanBytes;
end;

procedure FillTotals(const Status: TStatus; var Totals: TPageTotals);
var
  Kind: TOsCall;
begin
  Inc(Totals.Count);
  Totals.Threads := OsThreadCount;
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
