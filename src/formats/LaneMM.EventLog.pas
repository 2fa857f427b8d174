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
  LaneMM.Atomic, LaneMM.Os, LaneMM.SizeClasses, LaneMM.Lock, LaneMM.Events, LaneMM.ReportState,
  LaneMM.LogFile, LaneMM.ReportHead, LaneMM.Text, LaneMM.SettingsState, LaneMM.BacktraceTable,
  LaneMM.BacktraceText, LaneMM.Symbols, LaneMM.Unwind, LaneMM.ObserveState, LaneMM.Advice,
  LaneMM.CallSites, LaneMM.CallTree, LaneMM.Growth;

const
  TextLimit = 4 shl 20;
  // Most sites that a log lists, and lines of each list on stderr.
  MostListed = 256;
  LinesOnScreen = 3;
  ContentionKinds = [siShardMiss..siRemoteFree];

type
  TSiteKinds = set of TSiteKind;

  PListed = ^TListed;
  // A site, with its events when it was chosen. Sites whose lines say the same are one line, that
  // of the first: it has the sums of all.
  TListed = record
    Site: PSite;
    Count: NativeUInt;
    Events: NativeUInt; // of the line
    Work: UInt64;       // of the line
    Place: NativeUInt;  // return address of the call that the line names
    Origin: NativeUInt; // likewise of the block's allocation; 0: unknown
    PlaceKey, OriginKey: UInt64; // of both, see AdvicePlaceKey
    Next: PListed;      // the next site of the line
  end;

  // The first sites of some kinds, and their lines, those of most work first.
  TList = record
    Kinds: TSiteKinds;
    Sites: array[0..MostListed - 1] of TListed;
    Lines: array[0..MostListed - 1] of PListed;
    Length: Cardinal;   // of Sites; then of Lines
    AllSites: NativeUInt;
    AllEvents: NativeUInt;
    AllMoves: NativeUInt;  // of growth
    AllCopied: NativeUInt; // bytes that these moves copied
    FoldedSites: NativeUInt; // left out of Lines
    FoldedEvents: NativeUInt;
  end;

  PLog = ^TLog;
  TLog = record
    Contention, Growths: TList;
    Symbolizer: TSymbolizer;
    Tree: PCallTree;    // nil: no memory
  end;

// ---------------------------------------------------------------------------- choice

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
  else if List.Sites[List.Length - 1].Work >= Work then
    Exit;
  Index := List.Length - 1;
  while (Index > 0) and (List.Sites[Index - 1].Work < Work) do
  begin
    List.Sites[Index] := List.Sites[Index - 1];
    Dec(Index);
  end;
  List.Sites[Index].Site := Site;
  List.Sites[Index].Count := Count;
  List.Sites[Index].Events := Count;
  List.Sites[Index].Work := Work;
end;

procedure Choose(var List: TList; Kinds: TSiteKinds);
var
  Site: PSite;
  Count: NativeUInt;
begin
  List.Kinds := Kinds;
  Site := nil;
  while SiteNext(Site) do
  begin
    if not (Site^.Kind in Kinds) then
      Continue;
    Count := LoadAcquire(Site^.Count);
    Inc(List.AllSites);
    Inc(List.AllEvents, Count);
    if Site^.Kind = siGrowth then
    begin
      Inc(List.AllMoves, LoadAcquire(Site^.Moves));
      Inc(List.AllCopied, LoadAcquire(Site^.CopiedBytes));
    end;
    // Growth in place copies nothing: only sites where blocks moved are listed.
    if (Count >= Settings.Values[opLeast])
      and ((Site^.Kind <> siGrowth) or (LoadAcquire(Site^.Moves) > 0)) then
      Insert(List, Site, Count);
  end;
end;

// Adds the backtraces of the sites.
procedure AddSymbols(var Log: TLog; const List: TList);
var
  Index: NativeInt;
  Stack: TBacktrace;
begin
  for Index := 0 to NativeInt(List.Length) - 1 do
  begin
    SymbolizerAdd(Log.Symbolizer, List.Sites[Index].Site^.Stack);
    if BacktraceRead(List.Sites[Index].Site^.AllocStack, Stack) then
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

// Returns whether the lines of two sites would say the same, but for their numbers.
function IsAlike(const Symbols: TSymbols; First, Second: PListed): Boolean;
begin
  Result := (First^.Site^.Kind = Second^.Site^.Kind) and (First^.PlaceKey = Second^.PlaceKey)
    and (First^.OriginKey = Second^.OriginKey);
  if Result and (First^.Site^.Kind = siGrowth) then
    Result := AdviceIsSame(AdviceOf(Symbols, First^.Site^.Stack),
      AdviceOf(Symbols, Second^.Site^.Stack));
end;

// Adds the site to the line that says the same, or as a new line.
procedure Join(const Symbols: TSymbols; var List: TList; var Lines: Cardinal; Listed: PListed);
var
  Index: Cardinal;
begin
  Index := 0;
  while (Index < Lines) and not IsAlike(Symbols, List.Lines[Index], Listed) do
    Inc(Index);
  if Index = Lines then
  begin
    List.Lines[Lines] := Listed;
    Inc(Lines);
    Exit;
  end;
  Inc(List.Lines[Index]^.Events, Listed^.Events);
  Inc(List.Lines[Index]^.Work, Listed^.Work);
  Listed^.Next := List.Lines[Index]^.Next;
  List.Lines[Index]^.Next := Listed;
  Listed := List.Lines[Index];
  while (Index > 0) and (List.Lines[Index - 1]^.Work < Listed^.Work) do
  begin
    List.Lines[Index] := List.Lines[Index - 1];
    Dec(Index);
  end;
  List.Lines[Index] := Listed;
end;

// Makes lines of the sites; leaves out those of libraries, but of growth, and what `top` does not
// want.
procedure JoinAll(const Symbols: TSymbols; var List: TList);
var
  Index: NativeInt;
  Lines: Cardinal;
  Listed: PListed;
  Stack: TBacktrace;
begin
  Lines := 0;
  for Index := 0 to NativeInt(List.Length) - 1 do
  begin
    Listed := @List.Sites[Index];
    if not (siGrowth in List.Kinds) and IsOfLibraries(Symbols, Listed^.Site^.Stack) then
    begin
      Inc(List.FoldedSites);
      Inc(List.FoldedEvents, Listed^.Count);
      Continue;
    end;
    Listed^.Place := AdvicePlace(Symbols, Listed^.Site^.Stack);
    if BacktraceRead(Listed^.Site^.AllocStack, Stack) then
      Listed^.Origin := AdvicePlace(Symbols, Stack);
    Listed^.PlaceKey := AdvicePlaceKey(Symbols, Listed^.Place);
    Listed^.OriginKey := AdvicePlaceKey(Symbols, Listed^.Origin);
    Join(Symbols, List, Lines, Listed);
  end;
  List.Length := Lines;
  if List.Length > Settings.Values[opTop] then
    List.Length := Settings.Values[opTop];
end;

procedure OpenLog(var Log: TLog);
begin
  GrowthFlush;
  Choose(Log.Contention, ContentionKinds);
  Choose(Log.Growths, [siGrowth]);
  SymbolizerOpen(Log.Symbolizer, 2 * Log.Contention.Length + Log.Growths.Length);
  AddSymbols(Log, Log.Contention);
  AddSymbols(Log, Log.Growths);
  SymbolizerResolve(Log.Symbolizer);
  JoinAll(Log.Symbolizer.Symbols, Log.Contention);
  JoinAll(Log.Symbolizer.Symbols, Log.Growths);
end;

// ---------------------------------------------------------------------------- lines

// Returns the events of a line with blocks of this size class.
function EventsOfSize(Line: PListed; SizeClass: Cardinal): NativeUInt;
begin
  Result := 0;
  while Line <> nil do
  begin
    if Line^.Site^.SizeClass = SizeClass then
      Inc(Result, Line^.Count);
    Line := Line^.Next;
  end;
end;

// Returns whether a line has several block sizes; else Lowest and Highest are the same.
function HasSizes(Line: PListed; out Lowest, Highest: Cardinal): Boolean;
begin
  Lowest := Line^.Site^.SizeClass;
  Highest := Lowest;
  while Line <> nil do
  begin
    if Line^.Site^.SizeClass < Lowest then
      Lowest := Line^.Site^.SizeClass;
    if Line^.Site^.SizeClass > Highest then
      Highest := Line^.Site^.SizeClass;
    Line := Line^.Next;
  end;
  Result := Lowest < Highest;
end;

procedure AddContention(var Text: TText; Line: PListed);
const
  Calls: array[TManagerCall] of PAnsiChar = ('the memory manager', 'GetMem', 'FreeMem', 'FreeMem',
    'AllocMem', 'ReallocMem', 'MemSize');
  Locks: array[siShardMiss..siSamplesMiss] of PAnsiChar = ('an arena shard', 'a thread heap',
    'the abandoned heap', 'the sampler');
var
  Lowest, Highest: Cardinal;
  Call: PAnsiChar;
begin
  Call := Calls[Line^.Site^.Stack.Call];
  TextAdd(Text, ' x ');
  if Line^.Site^.Kind <> siRemoteFree then
  begin
    TextAddForm(Text, '%s found the lock of %s taken and went another way', NativeUInt(Call),
      NativeUInt(Locks[Line^.Site^.Kind]));
    Exit;
  end;
  TextAdd(Text, 'remote free of ');
  if HasSizes(Line, Lowest, Highest) then
    TextAddForm(Text, 'blocks of %g to ', ClassToSize(Lowest))
  else
    TextAdd(Text, 'a block of ');
  TextAddForm(Text, '%g byte%+ by %s', ClassToSize(Highest), NativeUInt(Call));
end;

// Returns the threads of all sites of a line, at most MaxSiteThreads.
function ThreadCount(Line: PListed): Cardinal;
var
  Threads: array[0..MaxSiteThreads - 1] of NativeUInt;
  Index: NativeInt;
  Known: Cardinal;
begin
  Result := 0;
  Threads[0] := 0;
  while Line <> nil do
  begin
    for Index := 0 to NativeInt(SiteThreadCount(Line^.Site)) - 1 do
    begin
      Known := 0;
      while (Known < Result) and (Threads[Known] <> LoadAcquire(Line^.Site^.Threads[Index])) do
        Inc(Known);
      if (Known = Result) and (Result < MaxSiteThreads) then
      begin
        Threads[Result] := LoadAcquire(Line^.Site^.Threads[Index]);
        Inc(Result);
      end;
    end;
    Line := Line^.Next;
  end;
end;

// Adds what grew how often, from and to which size, and the advice.
procedure AddGrowth(var Text: TText; const Symbols: TSymbols; Line: PListed);
var
  Advice: TAdvice;
  Listed: PListed;
  First, Last, Moves, Copied, Bytes: NativeUInt;
begin
  First := High(NativeUInt);
  Last := 0;
  Moves := 0;
  Copied := 0;
  Listed := Line;
  while Listed <> nil do
  begin
    Bytes := LoadAcquire(Listed^.Site^.FirstBytes);
    if Bytes < First then
      First := Bytes;
    Bytes := LoadAcquire(Listed^.Site^.LastBytes);
    if Bytes > Last then
      Last := Bytes;
    Inc(Moves, LoadAcquire(Listed^.Site^.Moves));
    Inc(Copied, LoadAcquire(Listed^.Site^.CopiedBytes));
    Listed := Listed^.Next;
  end;
  Advice := AdviceOf(Symbols, Line^.Site^.Stack);
  AdviceAddPlace(Text, Symbols, Line^.Place);
  TextAddForm(Text, ' grew %s', NativeUInt(Advice.Grew));
  if Advice.Called <> nil then
  begin
    TextAdd(Text, ' (');
    SymbolAddRoutine(Text, Advice.Called);
    TextAdd(Text, ')');
  end;
  TextAddForm(Text, ' %g time%+ from %b to %b, %g move%+, %b copied: %s', Line^.Events, First,
    Last, Moves, Copied, NativeUInt(Advice.Text));
end;

// Adds the headline of a line: where the call is, and where the block was allocated that it frees,
// if that is known.
procedure AddLine(var Text: TText; const Log: TLog; const List: TList; Index: Cardinal);
var
  Line: PListed;
  Count: Cardinal;
begin
  Line := List.Lines[Index];
  TextAddForm(Text, '  %u. ', Index + 1);
  if Line^.Site^.Kind = siGrowth then
    AddGrowth(Text, Log.Symbolizer.Symbols, Line)
  else
  begin
    TextAddGrouped(Text, Line^.Events);
    AddContention(Text, Line);
    Count := ThreadCount(Line); // once: it may grow
    TextAddForm(Text, ', %g thread%+', Count);
    if Count = MaxSiteThreads then
      TextAdd(Text, ' or more');
    TextAdd(Text, ', at ');
    AdviceAddPlace(Text, Log.Symbolizer.Symbols, Line^.Place);
    if Line^.Origin <> 0 then
    begin
      TextAdd(Text, ', allocated at ');
      AdviceAddPlace(Text, Log.Symbolizer.Symbols, Line^.Origin);
    end;
  end;
  TextAdd(Text, LineEnd);
end;

// Adds the events of a line by block size, if there are several.
procedure AddSizes(var Text: TText; Line: PListed);
var
  Lowest, Highest, SizeClass: Cardinal;
  Events: NativeUInt;
begin
  if (Line^.Site^.Kind <> siRemoteFree) or not HasSizes(Line, Lowest, Highest) then
    Exit;
  TextAdd(Text, '     By size: ');
  for SizeClass := Lowest to Highest do
  begin
    Events := EventsOfSize(Line, SizeClass);
    if Events = 0 then
      Continue;
    if SizeClass > Lowest then
      TextAdd(Text, ', ');
    TextAddForm(Text, '%g byte%+ %g', ClassToSize(SizeClass), Events);
  end;
  TextAdd(Text, LineEnd);
end;

// Adds the backtraces of the sites of a line, and that of the allocation, if it is known.
procedure AddStacks(var Text: TText; const Log: TLog; Line: PListed);
var
  Stack: TBacktrace;
  Listed: PListed;
begin
  Listed := Line;
  while (Listed <> nil) and (Log.Tree <> nil) do
  begin
    CallTreeAdd(Log.Tree, Log.Symbolizer.Symbols, Listed^.Site^.Stack, Listed^.Count, 0);
    Listed := Listed^.Next;
  end;
  if Log.Tree <> nil then
    CallTreeAddText(Text, Log.Tree, Log.Symbolizer);
  if not BacktraceRead(Line^.Site^.AllocStack, Stack) then
    Exit;
  TextAdd(Text, '     Allocated at'#10);
  BacktraceAddText(Text, Log.Symbolizer, Stack);
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
  TextAddForm(Text, '%g event%+ at %g call site%+', List.AllEvents, List.AllSites);
  if not (siGrowth in List.Kinds) then
    TextAdd(Text, ', none of them a wait')
  else if List.AllMoves > 0 then
    TextAddForm(Text, ', %g of them moves that copied %b in all', List.AllMoves, List.AllCopied);
  if List.AllSites > 1 then
    TextAddChars(Text, Orders[siGrowth in List.Kinds]);
  TextAdd(Text, ':'#10);
  for Index := 0 to List.Length - 1 do
  begin
    AddLine(Text, Log, List, Index);
    AddSizes(Text, List.Lines[Index]);
    AddStacks(Text, Log, List.Lines[Index]);
  end;
  if List.FoldedSites > 0 then
    TextAddForm(Text, '  Not listed: %g event%+ at %g call site%+ of the run-time library alone,'
      + ' where threads start and end.'#10, List.FoldedEvents, List.FoldedSites);
end;

// Adds how to have fewer events, and how to learn who allocated the blocks of remote frees, where
// that is unknown.
procedure AddContentionNotes(var Text: TText; const Log: TLog);
var
  Index: NativeInt;
begin
  if Log.Contention.Length > 0 then
    TextAdd(Text, '  A remote free is that of a block of another thread. For fewer events, free'
      + ' blocks in the thread that allocates them, or hand over fewer and larger ones.'#10);
  for Index := 0 to NativeInt(Log.Contention.Length) - 1 do
    if (Log.Contention.Lines[Index]^.Site^.Kind = siRemoteFree)
      and (Log.Contention.Lines[Index]^.Origin = 0) and not IsSet(opStacks) then
    begin
      TextAdd(Text, '  LANEMM=contention,stacks also shows where the blocks of remote frees were'
        + ' allocated.'#10);
      Exit;
    end;
end;

// Adds why a log has no line numbers.
procedure AddLineNote(var Text: TText; const Log: TLog);
begin
  if Log.Symbolizer.Elf.HasLines then
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
  AddContentionNotes(Text, Log);
  AddLineNote(Text, Log);
  if LoadAcquire(Observe.SitesLost) > 0 then
    TextAddForm(Text, '  The table of call sites is full; not counted: %g event%+'#10,
      LoadAcquire(Observe.SitesLost));
end;

// ---------------------------------------------------------------------------- all

procedure AddScreenLines(var Screen: TText; const Log: TLog; const List: TList);
var
  Index: NativeInt;
begin
  for Index := 0 to NativeInt(List.Length) - 1 do
    if Index < LinesOnScreen then
      AddLine(Screen, Log, List, Index);
end;

function WriteLog(const Log: TLog; var Text, Screen, Path: TText): Boolean;
begin
  HeadAddTitle(Text, 'event log');
  AddList(Text, Log, Log.Contention, 'Contention: ');
  AddList(Text, Log, Log.Growths, 'Growth: ');
  AddNotes(Text, Log);
  Result := LogFileAppend(Text, EventLogSuffix, Path);
  if not Result then
  begin
    TextWrite(Text, OsStandardError);
    Exit;
  end;
  TextAddForm(Screen, 'LaneMM: event log written to %s'#10, NativeUInt(Path.Start));
  AddScreenLines(Screen, Log, Log.Contention);
  AddScreenLines(Screen, Log, Log.Growths);
  TextWrite(Screen, OsStandardError);
end;

procedure SayNoMemory;
begin
  if IsSet(opContention) or IsSet(opGrowth) then
    ReportSayLine('no memory for the event log');
end;

function OpenAndWrite(const Log: TLog): Boolean;
var
  Text, Screen, Path: TText;
begin
  Screen := Default(TText); // these are closed also where they are not opened
  Path := Default(TText);
  Result := TextOpen(Text, TextLimit) and TextOpen(Screen, OsPageSize)
    and TextOpen(Path, OsPageSize);
  if Result then
    Result := WriteLog(Log, Text, Screen, Path)
  else
    SayNoMemory;
  TextClose(Path);
  TextClose(Screen);
  TextClose(Text);
end;

function EventLogWrite: Boolean;
var
  Log: PLog;
begin
  LockRecover;
  Log := OsTakePages(SizeOf(TLog)); // too much for the stack of a signal handler
  if Log = nil then
  begin
    SayNoMemory;
    Exit(False);
  end;
  OpenLog(Log^);
  Log^.Tree := CallTreeOpen;
  Result := (Log^.Contention.Length = 0) and (Log^.Growths.Length = 0);
  if not Result then
    Result := OpenAndWrite(Log^);
  CallTreeClose(Log^.Tree);
  SymbolizerClose(Log^.Symbolizer);
  OsReleasePages(Log, SizeOf(TLog));
end;

end.
