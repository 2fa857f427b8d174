/// Leak reports: at the end of the program, on demand, between two moments.
//
// Owns:       the exit code, where `leaks:exit` sets it; the memory of each snapshot;
//             Observe.HasLeaks, LeakedCount, LeakedBytes, and those of each site.
// Invariants: costs nothing while the program runs: a report is the result of a walk.
// Callers:    LeaksFind, LeaksReport: the end of the program. The others: any thread that holds no
//             lock.
unit LaneMM.Leaks;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Text, LaneMM.Snapshot, LaneMM.LeakList;

/// Reports the blocks in use of the allocation groups First to Last, if there are any, also to
/// files in the formats More, bits of opLeaksFormat, besides those that the setting names. Returns
/// their number.
function LeaksReportInUse(First, Last: Cardinal; More: NativeUInt = 0): NativeUInt;
/// Finalizes the other units, then looks for the blocks that were not freed, if `leaks` is set, and
/// counts the sampled ones at their call sites. Frame lies in the stack of the calling thread, see
/// LaneMM.Roots. The caller owns the list until LeaksReport; nil
/// without the setting, without any memory, or in a child process after fork without a block of its
/// own, which costs no search.
function LeaksFind(Frame: NativeUInt): PLeakList;
/// Reports what LeaksFind has found, sets the exit code, and frees the list. With nil says that
/// there is no memory, if `leaks` is set and any block is in use. Returns whether none is known or
/// possible.
function LeaksReport(List: PLeakList): Boolean;

/// Applies the suppressions to the groups of a snapshot, and describes the rest. Opens files.
procedure LeaksDescribe(var Snapshot: TSnapshot);
/// Says that a report of leaks has no memory.
procedure LeaksSayNoMemory;

/// In a child process after fork: frees the locks, and notes how many blocks each span has in use.
/// Where blocks have no numbers, a child has leaks of its own if any span has more at its end.
procedure LeaksForget;

/// Adds the groups in use with most bytes; without memory those of unknown contents by size.
procedure LeaksAddMost(var Text: TText);
/// Adds a report of the blocks in use, with retainers unless there are more than a million; without
/// memory for it those of LaneMM.MostUsed.
procedure LeaksAddInUse(var Text: TText);
/// Takes a snapshot of the blocks in use, as groups; nil without memory. The caller owns it until
/// SnapshotFree.
function SnapshotTake: PSnapshot;
/// Reports the groups that have more bytes in Later than in Earlier. Returns the number of bytes
/// that they grew by.
function SnapshotCompare(Earlier, Later: PSnapshot): NativeUInt;
/// Releases a snapshot; nil is allowed.
procedure SnapshotFree(Snapshot: PSnapshot);

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Os, LaneMM.OsFiles, LaneMM.OsProcess,
  LaneMM.Rtl, LaneMM.Lock, LaneMM.Stats, LaneMM.ReportState, LaneMM.Events, LaneMM.LogFile,
  LaneMM.Messages, LaneMM.ReportHead, LaneMM.SettingsState, LaneMM.Modules, LaneMM.ObserveState,
  LaneMM.CallSites, LaneMM.Samples, LaneMM.DebugThreads, LaneMM.GuardPages, LaneMM.LeaksState,
  LaneMM.LeakFiles, LaneMM.LeakText, LaneMM.MostUsed, LaneMM.Pause, LaneMM.Roots,
  LaneMM.Suppressions;

procedure LeaksSayNoMemory;
begin
  ReportSayLine('no memory for the report of leaks');
end;

procedure WriteText(const List: TLeakList);
var
  Event: TEvent;
  Fields: TFields;
begin
  if not EventOpen(Event, evLeaks) then
    Exit;
  if Event.Text.Start = nil then
    LeaksSayNoMemory;
  FieldsOpen(Fields);
  HeadAdd(Event.Text, Fields);
  FieldsClose(Fields);
  LeakTextAdd(Event.Text, List);
  EventClose(Event);
end;

type
  TAddFormat = procedure(var Text: TText; const List: TLeakList);

// Writes the report to a file in the folder of the log, or to stderr if there is none, but for a
// page, which no terminal shows.
procedure WriteFile(const List: TLeakList; Add: TAddFormat; Extension: PAnsiChar);
const
  FileLimit = 256 shl 20;
var
  Text, Path: TText;
begin
  Path := Default(TText); // it is closed also where it is not opened
  if TextOpen(Text, FileLimit) and TextOpen(Path, OsPageSize) then
  begin
    Add(Text, List);
    if not LogFileCreate(Text, LogFileSuffix('Leaks', 0, Extension), Path)
      and (@Add <> @LeakPageAdd) then
      TextWrite(Text, OsStandardError);
  end
  else
    ReportSayLine('no memory for a file of leaks');
  TextClose(Path);
  TextClose(Text);
end;

function IsWanted(Formats: NativeUInt; Format: TLeakFormat): Boolean;
begin
  Result := Odd(Formats shr Ord(Format));
end;

// More: formats besides those that the setting names.
procedure WriteList(const List: TLeakList; More: NativeUInt);
var
  Formats: NativeUInt;
begin
  Formats := Settings.Values[opLeaksFormat] or More;
  if IsWanted(Formats, lfJson) then
    WriteFile(List, LeakJsonAdd, '.json');
  if IsWanted(Formats, lfJunit) then
    WriteFile(List, LeakJunitAdd, '.xml');
  if IsWanted(Formats, lfHeaptrc) then
    WriteFile(List, LeakHeaptrcAdd, '.trc');
  if IsWanted(Formats, lfHtml) then
    WriteFile(List, LeakPageAdd, '.html');
  if (List.Blocks > 0) or List.IsUnknown then
    WriteText(List);
end;

// Applies the suppressions of a file: that of `leaks:ignore`, or `<program>.lanemm-leaks`, which
// may be missing.
procedure MarkPatterns(var Snapshot: TSnapshot);
const
  FileExtension: ShortString = '.lanemm-leaks'#0;
var
  Path: TPath;
  Length: NativeUInt;
  Text: TText;
begin
  Path := Settings.IgnorePath;
  if (Path[0] = '0') and (Path[1] = #0) then
    Exit; // the setting was turned off
  if Path[0] <> #0 then
  begin
    if SuppressionsMarkFile(Snapshot, @Path) then
      Exit;
    TextOpen(Text, 2 * OsPageSize);
    TextAddForm(Text, 'LaneMM: %s, the file of `leaks:ignore`, cannot be read', NativeUInt(@Path));
    ReportSayText(Text);
    Exit;
  end;
  Length := OsProgramName(@Path, SizeOf(Path) - 16);
  Move(FileExtension[1], Path[Length], System.Length(FileExtension));
  SuppressionsMarkFile(Snapshot, @Path);
end;

procedure LeaksDescribe(var Snapshot: TSnapshot);
begin
  SuppressionsMark(Snapshot);
  MarkPatterns(Snapshot);
  SnapshotDescribe(Snapshot);
end;

// Lists the blocks in use of the allocation groups First to Last; those of more than MostSearched
// without their retainers.
procedure ListInUse(out List: TLeakList; First, Last: Cardinal; MostSearched: NativeUInt);
var
  Snapshot: TSnapshot;
begin
  if SnapshotOpen(Snapshot) then
  begin
    SnapshotSelect(Snapshot, First, Last, 0);
    SnapshotFindContainers(Snapshot);
    SnapshotGroup(Snapshot);
    LeaksDescribe(Snapshot);
  end;
  if Snapshot.NodeCount <= MostSearched then
    LeakListOpen(List, Snapshot, ltInUse)
  else
    LeakListOpenGroups(List, Snapshot, ltInUse);
end;

function LeaksReportInUse(First, Last: Cardinal; More: NativeUInt): NativeUInt;
var
  List: TLeakList;
begin
  ModulesLook;
  GuardPagesHold;
  ListInUse(List, First, Last, High(NativeUInt));
  Result := List.Blocks;
  WriteList(List, More);
  LeakListClose(List);
  GuardPagesLetGo;
end;

// ---------------------------------------------------------------------------- the end

// Counts the blocks that Sample stands for as leaked if its block is a leak.
procedure CountLeak(const Sample: TSample; Context: Pointer);
var
  Snapshot: PSnapshot;
  Index: Cardinal;
begin
  Snapshot := Context;
  Index := SnapshotNodeAt(Snapshot^, Sample.Block);
  if (Index = NoNode) or (Snapshot^.Nodes[Index].State <> nsCounted) then
    Exit;
  FetchAdd(Sample.Site^.LeakedCount, Sample.Count);
  FetchAdd(Sample.Site^.LeakedBytes, Sample.Bytes);
end;

procedure FindLeaks(out List: TLeakList; Frame: NativeUInt);
var
  Snapshot: TSnapshot;
  IsOpen: Boolean;
begin
  ModulesLook;
  LockEnter(Leaks.SearchLock);
  GuardPagesHold; // first: this would wait for a thread that is paused in GuardPagesForbid
  PauseOthers;
  IsOpen := SnapshotOpen(Snapshot);
  if IsOpen then
  begin
    SnapshotFindContainers(Snapshot);
    RootsMarkEnd(Snapshot, Frame); // through inherited blocks, too
    SnapshotSelectOwn(Snapshot);
    SnapshotGroup(Snapshot);
  end;
  // Before a file is opened, that of the suppressions or one with symbols: Windows takes memory of
  // its heap for that, and a paused thread may have the lock of it.
  PauseEnd;
  LockLeave(Leaks.SearchLock);
  if IsOpen then
  begin
    LeaksDescribe(Snapshot);
    if Snapshot.LostCount = 0 then
    begin
      Observe.LeakedCount := Snapshot.Counts[nsCounted];
      Observe.LeakedBytes := Snapshot.Bytes[nsCounted];
      SamplesVisit(CountLeak, @Snapshot);
      Observe.HasLeaks := True;
    end;
  end;
  LeakListOpen(List, Snapshot, ltLeaks);
  if (List.Blocks <> 0) and (OsThreadCount = 0) then // Linux: without /proc no thread is known
    ReportSayLine('/proc cannot be read here, and so no stack: blocks that only stacks hold are'
      + ' reported as leaks, too');
end;

function AreLeaksWanted: Boolean;
begin
  Result := IsSet(opLeaks) and Process.IsStarted;
end;

// ---------------------------------------------------------------------------- inherited blocks

type
  // A span of a child process when it first needed the engine.
  TSpanCount = record
    Address: PByte;
    Blocks: NativeUInt;
  end;
  PSpanCount = ^TSpanCount;

  // A way through the table of these spans, by address.
  TSpanWay = record
    Next, Limit: PSpanCount;
    Count: NativeUInt; // spans that were met, or have grown
  end;
  PSpanWay = ^TSpanWay;

procedure CountSpan(const Span: TSpanInfo; Context: Pointer);
begin
  Inc(PSpanWay(Context)^.Count);
end;

procedure AddSpan(const Span: TSpanInfo; Context: Pointer);
var
  Way: PSpanWay;
begin
  Way := Context;
  if Way^.Next = Way^.Limit then
    Exit;
  Way^.Next^.Address := Span.Address;
  Way^.Next^.Blocks := Span.BlockCount;
  Inc(Way^.Next);
end;

procedure CountGrownSpan(const Span: TSpanInfo; Context: Pointer);
var
  Way: PSpanWay;
begin
  Way := Context;
  while (Way^.Next < Way^.Limit) and (Way^.Next^.Address < Span.Address) do
    Inc(Way^.Next);
  if (Span.BlockCount > 0) and ((Way^.Next = Way^.Limit) or (Way^.Next^.Address > Span.Address)
    or (Span.BlockCount > Way^.Next^.Blocks)) then
    Inc(Way^.Count);
end;

procedure LeaksForget;
var
  Way: TSpanWay;
begin
  LockReset(Leaks.Lock); // its entries are whole after every single write
  LockReset(Leaks.SearchLock);
  PauseEnd; // the fork may have come before the signal of a pause that had begun
  OsReleasePages(Leaks.Spans, Leaks.SpanCount * SizeOf(TSpanCount));
  Leaks.Spans := nil;
  Way.Count := 0;
  if IsSet(opLeaks) then
    SpansVisit(CountSpan, @Way);
  Leaks.SpanCount := Way.Count;
  if Way.Count > 0 then
    Leaks.Spans := OsTakePages(Way.Count * SizeOf(TSpanCount));
  if Leaks.Spans = nil then
    Exit;
  Way.Next := Leaks.Spans;
  Way.Limit := Way.Next + Way.Count;
  SpansVisit(AddSpan, @Way);
end;

// Returns whether this is a child process after fork without leaks of its own, as far as that is
// known without a search.
function HasInheritedOnly: Boolean;
var
  Way: TSpanWay;
begin
  if DebugIsChild then
    Exit(SnapshotCount = 0);
  if Leaks.Spans = nil then
    Exit(False);
  Way.Next := Leaks.Spans;
  Way.Limit := Way.Next + Leaks.SpanCount;
  Way.Count := 0;
  SpansVisit(CountGrownSpan, @Way);
  Result := Way.Count = 0;
end;

// ---------------------------------------------------------------------------- the report

function LeaksFind(Frame: NativeUInt): PLeakList;
begin
  Result := nil;
  if not AreLeaksWanted then
    Exit;
  Leaks.HasNone := DebugIsUnusedChild;
  if not Leaks.HasNone then
  begin
    RtlFinalizeUnits;
    Leaks.HasNone := HasInheritedOnly;
  end;
  Observe.HasLeaks := Leaks.HasNone;
  if Leaks.HasNone then
    Exit;
  Result := OsTakePages(SizeOf(TLeakList));
  if Result <> nil then
    FindLeaks(Result^, Frame);
end;

function LeaksReport(List: PLeakList): Boolean;
begin
  Result := not AreLeaksWanted or (List = nil)
    and (Leaks.HasNone or (SnapshotCount = 0));
  if List <> nil then
  begin
    WriteList(List^, 0);
    Result := (List^.Blocks = 0) and not List^.IsUnknown;
    LeakListClose(List^);
    OsReleasePages(List, SizeOf(TLeakList));
    GuardPagesLetGo;
  end
  else if not Result then
    LeaksSayNoMemory;
  if not Result and (ExitCode = 0) then
    ExitCode := Settings.Values[opLeaksExit];
end;

// ---------------------------------------------------------------------------- snapshots

// Takes a snapshot and keeps its groups only; False without memory.
function NoteGroups(out Snapshot: TSnapshot): Boolean;
begin
  GuardPagesHold;
  Result := SnapshotOpen(Snapshot) and (Snapshot.NodeLimit > 0);
  if Result then
  begin
    SnapshotGroup(Snapshot);
    SnapshotDescribe(Snapshot);
  end;
  GuardPagesLetGo;
  if Result then
    SnapshotDropNodes(Snapshot)
  else
    SnapshotClose(Snapshot);
end;

procedure LeaksAddMost(var Text: TText);
var
  Snapshot: TSnapshot;
  List: TLeakList;
begin
  if NoteGroups(Snapshot) and (Snapshot.LostCount = 0) then
  begin
    LeakListOpenGroups(List, Snapshot, ltInUse);
    LeakTextAddMost(Text, List);
    LeakListClose(List);
  end
  else
    MostUsedAdd(Text);
  SnapshotClose(Snapshot);
end;

procedure LeaksAddInUse(var Text: TText);
const
  MostSearched = 1000000; // the thread that reached the limit waits
var
  List: TLeakList;
begin
  GuardPagesHold;
  ListInUse(List, 0, High(Cardinal), MostSearched);
  if List.Snapshot.LostCount > 0 then
    MostUsedAdd(Text)
  else
    LeakTextAdd(Text, List);
  LeakListClose(List);
  GuardPagesLetGo;
end;

function SnapshotTake: PSnapshot;
begin
  Result := OsTakePages(SizeOf(TSnapshot));
  if Result = nil then
    Exit;
  ModulesLook;
  if NoteGroups(Result^) then
    Exit;
  OsReleasePages(Result, SizeOf(TSnapshot));
  Result := nil;
end;

function SnapshotCompare(Earlier, Later: PSnapshot): NativeUInt;
var
  Grown: TSnapshot;
  List: TLeakList;
begin
  if not SnapshotCopyGrown(Grown, Earlier^, Later^) then
    Exit(0);
  LeakListOpenGroups(List, Grown, ltGrown);
  Result := List.Bytes;
  WriteText(List);
  LeakListClose(List);
end;

procedure SnapshotFree(Snapshot: PSnapshot);
begin
  if Snapshot = nil then
    Exit;
  SnapshotClose(Snapshot^);
  OsReleasePages(Snapshot, SizeOf(TSnapshot));
end;

end.
