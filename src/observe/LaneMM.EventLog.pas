/// The event log: the counts of the call sites, the most frequent first, with backtraces.
//
// Owns:       nothing; the text lies in pages of its own, which are released after the write.
// Invariants: takes no lock and no memory of the heap. The log of a process is appended to the
//             file in one write, so several processes can share the file.
// Callers:    any thread, at the end of the program, or in a signal handler.
unit LaneMM.EventLog;

{$I ../LaneMM.inc}

interface

/// Appends the log to its file, and writes its first lines to stderr; without a file, writes all of
/// it to stderr. Does nothing when no site of the program has enough events. Returns False when no
/// file could be written.
function EventLogWrite: Boolean;

implementation

uses
  LaneMM.Atomic, LaneMM.Os, LaneMM.SizeClasses, LaneMM.Lock, LaneMM.Events,
  LaneMM.LogFile, LaneMM.ReportHead, LaneMM.Text, LaneMM.SettingsState, LaneMM.BacktraceTable,
  LaneMM.BacktraceText, LaneMM.Symbols, LaneMM.Unwind, LaneMM.ObserveState, LaneMM.Advice,
  LaneMM.CallSites,
  LaneMM.Growth, LaneMM.Version;

const
  TextLimit = 4 shl 20;
  // Most sites that a log lists, and lines of each list on stderr.
  MostListed = 256;
  LinesOnScreen = 3;
  ContentionKinds = [siShardMiss..siRemoteFree];

type
  TSiteKinds = set of TSiteKind;

  // The first sites of some kinds, those of most work first, with their counts when they were
  // chosen.
  TList = record
    Kinds: TSiteKinds;
    Sites: array[0..MostListed - 1] of PSite;
    Counts: array[0..MostListed - 1] of NativeUInt;
    Work: array[0..MostListed - 1] of UInt64;
    Length: Cardinal;
    AllSites: NativeUInt;
    AllEvents: NativeUInt;
    FoldedSites: NativeUInt; // left out of Sites, see Fold
    FoldedEvents: NativeUInt;
  end;

  TLog = record
    Contention, Growths: TList;
    Symbolizer: TSymbolizer;
  end;

// ---------------------------------------------------------------------------- choice

function IsWorthALine(Site: PSite; Count: NativeUInt): Boolean;
begin
  // Growth in place copies nothing: only sites where blocks moved are listed.
  Result := (Count >= Settings.Values[opLeast])
    and ((Site^.Kind <> siGrowth) or (LoadAcquire(Site^.Moves) > 0));
end;

// Returns the work that a site has caused: its events; of growth, which advice can save, in bytes
// copied, where a call counts as much as CallBytes.
function WorkOf(Site: PSite; Count: NativeUInt): UInt64;
const
  CallBytes = 128;
begin
  Result := Count;
  if Site^.Kind = siGrowth then
    Result := Result * CallBytes + LoadAcquire(Site^.CopiedBytes);
end;

procedure Insert(var List: TList; Site: PSite; Count: NativeUInt);
var
  Index: Cardinal;
  Work: UInt64;
begin
  Work := WorkOf(Site, Count);
  if List.Length < MostListed then
    Inc(List.Length)
  else if List.Work[List.Length - 1] >= Work then
    Exit;
  Index := List.Length - 1;
  while (Index > 0) and (List.Work[Index - 1] < Work) do
  begin
    List.Counts[Index] := List.Counts[Index - 1];
    List.Sites[Index] := List.Sites[Index - 1];
    List.Work[Index] := List.Work[Index - 1];
    Dec(Index);
  end;
  List.Counts[Index] := Count;
  List.Sites[Index] := Site;
  List.Work[Index] := Work;
end;

procedure Choose(out List: TList; Kinds: TSiteKinds);
var
  Index: Cardinal;
  Site: PSite;
  Count: NativeUInt;
begin
  List := Default(TList);
  List.Kinds := Kinds;
  for Index := 0 to SiteLimit - 1 do
  begin
    Site := SiteAt(Index);
    if (Site = nil) or not (Site^.Kind in Kinds) then
      Continue;
    Count := LoadAcquire(Site^.Count);
    Inc(List.AllSites);
    Inc(List.AllEvents, Count);
    if IsWorthALine(Site, Count) then
      Insert(List, Site, Count);
  end;
end;

// Adds the backtraces of the sites.
procedure AddStacks(var Log: TLog; const List: TList);
var
  Index: NativeInt;
  Stack: TBacktrace;
begin
  for Index := 0 to NativeInt(List.Length) - 1 do
  begin
    SymbolizerAdd(Log.Symbolizer, List.Sites[Index]^.Stack);
    if BacktraceRead(List.Sites[Index]^.AllocStack, Stack) then
      SymbolizerAdd(Log.Symbolizer, Stack);
  end;
end;

// Returns whether all frames are of routines of Free Pascal's libraries: no line of the program can
// change the events. Threads that start and end cause such.
function IsOfLibraries(const Symbols: TSymbols; const Stack: TBacktrace): Boolean;
var
  Frame: NativeInt;
begin
  Result := Stack.Count > 0;
  for Frame := 0 to NativeInt(Stack.Count) - 1 do
    Result := Result and SymbolIsLibrary(SymbolsFind(Symbols, Stack.Frames[Frame]));
end;

// Leaves out the sites of libraries.
procedure Fold(const Symbols: TSymbols; var List: TList);
var
  Index: NativeInt;
  Kept: Cardinal;
begin
  Kept := 0;
  for Index := 0 to NativeInt(List.Length) - 1 do
    if IsOfLibraries(Symbols, List.Sites[Index]^.Stack) then
    begin
      Inc(List.FoldedSites);
      Inc(List.FoldedEvents, List.Counts[Index]);
    end
    else
    begin
      List.Sites[Kept] := List.Sites[Index];
      List.Counts[Kept] := List.Counts[Index];
      List.Work[Kept] := List.Work[Index];
      Inc(Kept);
    end;
  List.Length := Kept;
end;

// Leaves out what `top` does not want.
procedure Cut(var List: TList);
begin
  if List.Length > Settings.Values[opTop] then
    List.Length := Settings.Values[opTop];
end;

procedure OpenLog(out Log: TLog);
begin
  Log := Default(TLog);
  GrowthFlush;
  Choose(Log.Contention, ContentionKinds);
  Choose(Log.Growths, [siGrowth]);
  SymbolizerOpen(Log.Symbolizer, 2 * Log.Contention.Length + Log.Growths.Length);
  AddStacks(Log, Log.Contention);
  AddStacks(Log, Log.Growths);
  SymbolizerResolve(Log.Symbolizer);
  Fold(Log.Symbolizer.Symbols, Log.Contention);
  Cut(Log.Contention);
  Cut(Log.Growths);
end;

// ---------------------------------------------------------------------------- lines

procedure AddCall(var Text: TText; Call: TManagerCall);
const
  Names: array[TManagerCall] of PAnsiChar = ('the memory manager', 'GetMem', 'FreeMem', 'FreeMem',
    'AllocMem', 'ReallocMem', 'MemSize');
begin
  TextAddChars(Text, Names[Call]);
end;

procedure AddLock(var Text: TText; Kind: TSiteKind);
const
  Names: array[siShardMiss..siSamplesMiss] of PAnsiChar = ('an arena shard', 'a thread heap',
    'the abandoned heap', 'the sampler');
begin
  TextAdd(Text, ' found the lock of ');
  TextAddChars(Text, Names[Kind]);
  TextAdd(Text, ' taken and went another way');
end;

procedure AddContention(var Text: TText; Site: PSite);
begin
  if Site^.Kind = siRemoteFree then
  begin
    TextAdd(Text, ' x remote free of a block of ');
    TextAddCount(Text, ClassToSize(Site^.SizeClass), 'byte');
    TextAdd(Text, ' by ');
    AddCall(Text, Site^.Stack.Call);
    Exit;
  end;
  TextAdd(Text, ' x ');
  AddCall(Text, Site^.Stack.Call);
  AddLock(Text, Site^.Kind);
end;

procedure AddThreads(var Text: TText; Site: PSite);
var
  Count: Cardinal;
begin
  Count := SiteThreadCount(Site); // once: it may grow
  TextAdd(Text, ', ');
  TextAddCount(Text, Count, 'thread');
  if Count = MaxSiteThreads then
    TextAdd(Text, ' or more');
end;

// Adds where the call is, and where the block was allocated that it frees, if that is known.
procedure AddPlaces(var Text: TText; const Log: TLog; Site: PSite);
var
  Stack: TBacktrace;
begin
  TextAdd(Text, ', at ');
  AdviceAddWhere(Text, Log.Symbolizer.Symbols, Site^.Stack);
  if not BacktraceRead(Site^.AllocStack, Stack) then
    Exit;
  TextAdd(Text, ', allocated at ');
  AdviceAddWhere(Text, Log.Symbolizer.Symbols, Stack);
end;

// Adds the headline of one site.
procedure AddSite(var Text: TText; const Log: TLog; const List: TList; Index: Cardinal);
var
  Site: PSite;
begin
  Site := List.Sites[Index];
  TextAdd(Text, '  ');
  TextAddNumber(Text, Index + 1);
  TextAdd(Text, '. ');
  if Site^.Kind = siGrowth then
    AdviceAddGrowth(Text, Log.Symbolizer.Symbols, Site, List.Counts[Index])
  else
  begin
    TextAddGrouped(Text, List.Counts[Index]);
    AddContention(Text, Site);
    AddThreads(Text, Site);
    AddPlaces(Text, Log, Site);
  end;
  TextAdd(Text, LineEnd);
end;

// Adds the backtrace of the allocation of the blocks, if it is known.
procedure AddAllocation(var Text: TText; const Log: TLog; Site: PSite);
var
  Stack: TBacktrace;
begin
  if not BacktraceRead(Site^.AllocStack, Stack) then
    Exit;
  TextAdd(Text, '     Allocated at'#10);
  BacktraceAddText(Text, Log.Symbolizer, Stack);
end;

// Adds what was left out of the list.
procedure AddFolded(var Text: TText; const List: TList);
begin
  if List.FoldedSites = 0 then
    Exit;
  TextAdd(Text, '  Not listed: ');
  TextAddCount(Text, List.FoldedEvents, 'event');
  TextAdd(Text, ' at ');
  TextAddCount(Text, List.FoldedSites, 'call site');
  TextAdd(Text, ' of the run-time library alone, where threads start and end.'#10);
end;

procedure AddList(var Text: TText; const Log: TLog; const List: TList; const Title: ShortString);
const
  Orders: array[Boolean] of PAnsiChar = (', most frequent first', ', most work first');
var
  Index: Cardinal;
begin
  if List.Length = 0 then
    Exit;
  TextAdd(Text, Title);
  TextAddCount(Text, List.AllEvents, 'event');
  TextAdd(Text, ' at ');
  TextAddCount(Text, List.AllSites, 'call site');
  if List.AllSites > 1 then
    TextAddChars(Text, Orders[siGrowth in List.Kinds]);
  TextAdd(Text, ':'#10);
  for Index := 0 to List.Length - 1 do
  begin
    AddSite(Text, Log, List, Index);
    BacktraceAddText(Text, Log.Symbolizer, List.Sites[Index]^.Stack);
    AddAllocation(Text, Log, List.Sites[Index]);
  end;
  AddFolded(Text, List);
end;

// Adds how to learn who allocated the blocks of remote frees, where that is unknown.
procedure AddAllocationNote(var Text: TText; const Log: TLog);
var
  Index: NativeInt;
begin
  for Index := 0 to NativeInt(Log.Contention.Length) - 1 do
    if (Log.Contention.Sites[Index]^.Kind = siRemoteFree)
      and (Log.Contention.Sites[Index]^.AllocStack = 0) then
    begin
      TextAdd(Text, '  LANEMM=contention,stacks also shows where the blocks of remote frees were'
        + ' allocated.'#10);
      Exit;
    end;
end;

// Adds why a log has no line numbers.
procedure AddLineNote(var Text: TText; const Log: TLog);
begin
  if Log.Symbolizer.HasLines then
    Exit;
  if IsLibrary then
    TextAdd(Text, '  `addr2line -Cfie MODULE OFFSET` prints source lines of modules with'
      + ' debug information.'#10)
  else if Log.Symbolizer.Elf.HasUnknownLines then
    TextAdd(Text, '  The line numbers cannot be read: not DWARF 2 to 5, or compressed otherwise'
      + ' than by zlib; compile with -gl.'#10)
  else
    TextAdd(Text, '  No line numbers: compile with -gl, and with -Xs- if the program is'
      + ' stripped.'#10);
end;

procedure AddNotes(var Text: TText; const Log: TLog);
begin
  AddAllocationNote(Text, Log);
  AddLineNote(Text, Log);
  if LoadAcquire(Observe.SitesLost) > 0 then
  begin
    TextAdd(Text, '  The table of call sites is full; not counted: ');
    TextAddCount(Text, LoadAcquire(Observe.SitesLost), 'event');
    TextAdd(Text, LineEnd);
  end;
end;

procedure AddHead(var Text: TText);
begin
  TextAdd(Text, 'LaneMM event log of process ');
  TextAddNumber(Text, OsProcessId);
  TextAdd(Text, ', version ' + ThisVersion + ', ');
  HeadAddTime(Text, OsUnixSeconds);
  TextAdd(Text, ', ');
  HeadAddCommand(Text);
  TextAdd(Text, LineEnd);
end;

// ---------------------------------------------------------------------------- all

procedure AddScreenLines(var Screen: TText; const Log: TLog; const List: TList);
var
  Index: Cardinal;
begin
  Index := 0;
  while (Index < List.Length) and (Index < LinesOnScreen) do
  begin
    AddSite(Screen, Log, List, Index);
    Inc(Index);
  end;
end;

function WriteLog(const Log: TLog; var Text, Screen, Path: TText): Boolean;
begin
  AddHead(Text);
  AddList(Text, Log, Log.Contention, 'Contention: ');
  AddList(Text, Log, Log.Growths, 'Growth: ');
  AddNotes(Text, Log);
  Result := LogFileAppend(Text, EventLogSuffix, Path);
  if not Result then
  begin
    TextWrite(Text, OsStandardError);
    Exit;
  end;
  TextAdd(Screen, 'LaneMM: event log written to ');
  TextAddChars(Screen, Path.Start);
  TextAdd(Screen, LineEnd);
  AddScreenLines(Screen, Log, Log.Contention);
  AddScreenLines(Screen, Log, Log.Growths);
  TextWrite(Screen, OsStandardError);
end;

function EventLogWrite: Boolean;
var
  Log: TLog;
  Text, Screen, Path: TText;
begin
  LockRecover;
  OpenLog(Log);
  Result := (Log.Contention.Length = 0) and (Log.Growths.Length = 0);
  if not Result and TextOpen(Text, TextLimit) and TextOpen(Screen, OsPageSize)
    and TextOpen(Path, OsPageSize) then
  begin
    Result := WriteLog(Log, Text, Screen, Path);
    TextClose(Path);
    TextClose(Screen);
    TextClose(Text);
  end;
  SymbolizerClose(Log.Symbolizer);
end;

end.
