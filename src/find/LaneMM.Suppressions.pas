/// Suppressions: leaks that are not reported, by block, class, size or routine; registered by calls
/// of the program, or listed in a file.
//
// Owns:       Leaks.Suppressions, Lock.
// Invariants: an entry with Count 0 is free. Entries are few: a linear search finds them.
// Callers:    SuppressionAdd, SuppressionRemove: any thread. SuppressionsMark,
//             SuppressionsMarkFile: the thread that makes a report; they take no lock, as a
//             paused thread may hold it (LaneMM.Pause).
unit LaneMM.Suppressions;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Snapshot;

type
  /// How a suppression matches a block.
  TSuppressionKind = (
    suBlock,  //< by an address inside it
    suClass,  //< by the class of the object
    suSize    //< by its requested size; of a normal block, by the usable size for that
  );

  /// A registered suppression. Of Block, AnyClass and Size only the one that it matches by is set.
  TSuppressionInfo = record
    Block: Pointer;    //< an address inside the block
    AnyClass: TClass;  //< class of the objects
    Size: NativeUInt;  //< requested size of the blocks
    Count: NativeUInt; //< number of leaks that it suppresses
  end;
  /// Visits a suppression. Context is the caller's.
  TSuppressionVisitor = procedure(const Suppression: TSuppressionInfo; Context: Pointer);

const
  /// For SuppressionAdd: any number of leaks.
  AnyCount = High(NativeUInt) shr 1;

/// Suppresses Count more leaks that match Value. False when Count is 0, the table of 4,096 entries
/// is full or there is no memory.
function SuppressionAdd(Kind: TSuppressionKind; Value, Count: NativeUInt): Boolean;
/// Takes back the suppression of Count leaks that match Value. False, and nothing changed, when
/// Count is 0 or fewer are suppressed.
function SuppressionRemove(Kind: TSuppressionKind; Value, Count: NativeUInt): Boolean;
/// Calls Visitor for each suppression of the table, not those of a file, under no lock. Those that
/// are added or removed meanwhile may be visited or not.
procedure SuppressionsVisit(Visitor: TSuppressionVisitor; Context: Pointer);
/// Excludes the leaks that match from a snapshot after SnapshotGroup.
procedure SuppressionsMark(var Snapshot: TSnapshot);
/// Excludes the leaks that match the patterns in the file at Path: lines of `class PATTERN` or
/// `routine PATTERN`. `*` matches any text, matching ignores case, and `#` begins a comment. A
/// routine matches in any frame of the backtrace of the allocation, where there is one. Prints the
/// numbers of the first lines that are neither to stderr, and how many others are. Returns False,
/// and prints nothing, when the file cannot be read.
function SuppressionsMarkFile(var Snapshot: TSnapshot; Path: PAnsiChar): Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.Hooks, LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.OsFiles,
  LaneMM.SizeClasses, LaneMM.Lock, LaneMM.Walk, LaneMM.ReportState, LaneMM.Text,
  LaneMM.BacktraceTable, LaneMM.BacktraceText, LaneMM.Symbols, LaneMM.Unwind, LaneMM.Contents,
  LaneMM.LeaksState, LaneMM.NodeStacks;

const
  MostSuppressions = 4096;
  NameLimit = 511;
  // Lines of a file that a message each names.
  MostMessages = 3;
  AnswersBytes = (NodeMask + 1) * SizeOf(Cardinal);

type
  TSuppression = record
    Kind: TSuppressionKind;
    Value: NativeUInt;
    Count: NativeUInt;
  end;
  PSuppression = ^TSuppression;

  // A name or a pattern, ended by #0.
  TName = array[0..NameLimit] of AnsiChar;

  // One line of the file.
  TPattern = record
    IsRoutine: Boolean;
    Text: TName;
  end;

  // The file while it is read.
  TPatternFile = record
    Path: PAnsiChar;
    LineNumber: Cardinal;  // of the current line, from 1
    WrongCount: Cardinal;  // lines so far that are neither patterns nor blank
    HasNames: Boolean;     // Names are those of all backtraces
    Names: TSymbolizer;
    Answers: PCardinal;    // of each backtrace: the line that it was compared with last, times two,
                           // and 1 if it fitted; nil: not kept, for lack of memory
  end;

// ---------------------------------------------------------------------------- registration

// Returns the entry with these values, or a free one; nil when there is none. Under the lock.
function FindEntry(Kind: TSuppressionKind; Value: NativeUInt): PSuppression;
var
  Index: Cardinal;
  Entry: PSuppression;
begin
  Result := nil;
  if Leaks.Suppressions = nil then
    Exit;
  for Index := 0 to MostSuppressions - 1 do
  begin
    Entry := PSuppression(Leaks.Suppressions) + Index;
    if Entry^.Count = 0 then
    begin
      if Result = nil then
        Result := Entry;
    end
    else if (Entry^.Kind = Kind) and (Entry^.Value = Value) then
      Exit(Entry);
  end;
end;

function SuppressionAdd(Kind: TSuppressionKind; Value, Count: NativeUInt): Boolean;
var
  Entry: PSuppression;
begin
  LockEnter(Leaks.Lock);
  if Leaks.Suppressions = nil then
    Leaks.Suppressions := OsTakePages(MostSuppressions * SizeOf(TSuppression));
  Entry := FindEntry(Kind, Value);
  Result := (Entry <> nil) and (Count > 0);
  if Result then
  begin
    Entry^.Kind := Kind;
    Entry^.Value := Value;
    if Count > NativeUInt(AnyCount - Entry^.Count) then
      Count := AnyCount - Entry^.Count;
    // Release: Kind and Value before Count. Pairs with SuppressionsMark.
    StoreRelease(Entry^.Count, Entry^.Count + Count);
  end;
  LockLeave(Leaks.Lock);
end;

function SuppressionRemove(Kind: TSuppressionKind; Value, Count: NativeUInt): Boolean;
var
  Entry: PSuppression;
begin
  LockEnter(Leaks.Lock);
  Entry := FindEntry(Kind, Value);
  Result := (Entry <> nil) and (Entry^.Count >= Count) and (Count > 0);
  if Result then
    Dec(Entry^.Count, Count);
  LockLeave(Leaks.Lock);
end;

procedure Describe(const Entry: TSuppression; out Info: TSuppressionInfo);
begin
  Info := Default(TSuppressionInfo);
  Info.Count := Entry.Count;
  case Entry.Kind of
    suBlock: Info.Block := Pointer(Entry.Value);
    suClass: Info.AnyClass := TClass(Entry.Value);
  else
    Info.Size := Entry.Value;
  end;
end;

procedure SuppressionsVisit(Visitor: TSuppressionVisitor; Context: Pointer);
var
  Index: Cardinal;
  Entry: TSuppression;
  Info: TSuppressionInfo;
begin
  for Index := 0 to MostSuppressions - 1 do
  begin
    Entry.Count := 0;
    LockEnter(Leaks.Lock);
    if Leaks.Suppressions <> nil then
      Entry := PSuppression(Leaks.Suppressions)[Index];
    LockLeave(Leaks.Lock);
    if Entry.Count = 0 then
      Continue;
    Describe(Entry, Info);
    Visitor(Info, Context);
  end;
end;

// ---------------------------------------------------------------------------- marks

function IsSuppressed(const Snapshot: TSnapshot; Node: PNode; const Entry: TSuppression): Boolean;
var
  Block: TBlockInfo;
begin
  if Entry.Kind = suClass then
    Result := Snapshot.Groups[Node^.Group].ClassId = Entry.Value
  else if WalkFind(Node^.Address, Block) and (Block.Kind = skDebug) then
    Result := Node^.Size = Entry.Value
  else
    Result := SizeMayBe(Entry.Value, Node^.Size);
end;

procedure MarkEntry(var Snapshot: TSnapshot; Entry: TSuppression);
var
  Index: NativeInt;
  Node: PNode;
  Number: Cardinal;
begin
  if Entry.Kind = suBlock then
  begin
    Number := SnapshotNodeAt(Snapshot, Entry.Value);
    if (Number <> NoNode) and (Snapshot.Nodes[Number].State = nsCounted) then
      SnapshotExclude(Snapshot, Number);
    Exit;
  end;
  Index := 0;
  while (Entry.Count > 0) and (Index < NativeInt(Snapshot.NodeCount)) do
  begin
    Node := Snapshot.Nodes + Index;
    if (Node^.State = nsCounted) and IsSuppressed(Snapshot, Node, Entry) then
    begin
      SnapshotExclude(Snapshot, Index);
      Dec(Entry.Count);
    end;
    Inc(Index);
  end;
end;

procedure SuppressionsMark(var Snapshot: TSnapshot);
var
  Index: Cardinal;
begin
  if Leaks.Suppressions = nil then
    Exit;
  for Index := 0 to MostSuppressions - 1 do
    if PSuppression(Leaks.Suppressions)[Index].Count > 0 then
      MarkEntry(Snapshot, PSuppression(Leaks.Suppressions)[Index]);
end;

// ---------------------------------------------------------------------------- patterns

procedure MarkClasses(var Snapshot: TSnapshot; const Pattern: TPattern);
var
  Fits: array[0..GroupLimit - 1] of Boolean;
  Group: Cardinal;
  Index: NativeInt;
  Text: TText;
  Name: TName;
begin
  FillChar(Fits, SizeOf(Fits), 0);
  for Group := 1 to Snapshot.GroupCount - 1 do
    if (Snapshot.Groups[Group].Kind = coObject) and (Snapshot.Groups[Group].Count > 0) then
    begin
      TextOpenAt(Text, @Name, SizeOf(Name));
      ClassAddName(Text, Snapshot.Groups[Group].ClassId);
      Fits[Group] := TextFits(@Name, @Pattern.Text);
    end;
  for Index := 0 to NativeInt(Snapshot.NodeCount) - 1 do
    if (Snapshot.Nodes[Index].State = nsCounted) and Fits[Snapshot.Nodes[Index].Group] then
      SnapshotExclude(Snapshot, Index);
end;

function StackFits(const Symbolizer: TSymbolizer; const Stack: TBacktrace;
  const Pattern: TPattern): Boolean;
var
  Frame: NativeInt;
  Symbol: PSymbol;
  Text: TText;
  Name: TName;
  Whole: TBacktrace;
begin
  Result := False;
  Whole := Stack;
  BacktraceExpand(Symbolizer.Symbols, Whole);
  for Frame := 0 to NativeInt(Whole.Count) - 1 do
  begin
    Symbol := SymbolsFind(Symbolizer.Symbols, Whole.Frames[Frame]);
    if (Symbol = nil) or (Symbol^.Routine = nil) then
      Continue;
    TextOpenAt(Text, @Name, SizeOf(Name));
    SymbolAddRoutine(Text, Symbol);
    if TextFits(@Name, @Pattern.Text) then
      Exit(True);
  end;
end;

function Compare(const Source: TPatternFile; Number: Cardinal; const Pattern: TPattern): Boolean;
var
  Stack: TBacktrace;
begin
  Result := BacktraceRead(Number, Stack) and StackFits(Source.Names, Stack, Pattern);
end;

// Returns whether the backtrace fits the pattern of the current line. Each is compared once: many
// blocks have it.
function NumberFits(const Source: TPatternFile; Number: Cardinal; const Pattern: TPattern): Boolean;
var
  Answer: PCardinal;
begin
  if Source.Answers = nil then
    Exit(Compare(Source, Number, Pattern));
  Answer := Source.Answers + Number and NodeMask;
  if Answer^ shr 1 <> Source.LineNumber then
    Answer^ := Source.LineNumber shl 1 or Cardinal(Ord(Compare(Source, Number, Pattern)));
  Result := Odd(Answer^);
end;

procedure MarkRoutines(var Snapshot: TSnapshot; var Source: TPatternFile; const Pattern: TPattern);
var
  Index: NativeInt;
begin
  if not Source.HasNames then
  begin
    NodesSymbolize(Snapshot, Source.Names);
    Source.Answers := OsTakePages(AnswersBytes);
    Source.HasNames := True;
  end;
  if Source.Names.Symbols.Count > 0 then
    for Index := 0 to NativeInt(Snapshot.NodeCount) - 1 do
      if NumberFits(Source, NodeStack(Snapshot.Nodes + Index), Pattern) then
        SnapshotExclude(Snapshot, Index);
end;

// ---------------------------------------------------------------------------- the file

function IsBlank(Sign: AnsiChar): Boolean; inline;
begin
  Result := Sign in [' ', #9, #13];
end;

// Returns True if the line from First up to Limit begins with Word and a blank; skips both.
function TakesWord(var First: PAnsiChar; Limit: PAnsiChar; const Word: ShortString): Boolean;
var
  Index: Cardinal;
begin
  Result := (Limit - First > Length(Word)) and IsBlank(First[Length(Word)]);
  for Index := 1 to Length(Word) do
    Result := Result and (TextLower(First[Index - 1]) = Word[Index]);
  if not Result then
    Exit;
  Inc(First, Length(Word));
  while (First < Limit) and IsBlank(First^) do
    Inc(First);
end;

function ReadPattern(First, Limit: PAnsiChar; out Pattern: TPattern): Boolean;
begin
  Pattern := Default(TPattern);
  Pattern.IsRoutine := TakesWord(First, Limit, 'routine');
  Result := Pattern.IsRoutine or TakesWord(First, Limit, 'class');
  while (Limit > First) and IsBlank(Limit[-1]) do
    Dec(Limit);
  Result := Result and (Limit > First) and (Limit - First <= NameLimit);
  if Result then
    Move(First^, Pattern.Text, Limit - First);
end;

procedure OpenMessage(out Text: TText; const Source: TPatternFile);
begin
  TextOpen(Text, 2 * OsPageSize);
  TextAddForm(Text, 'LaneMM: %s:', NativeUInt(Source.Path));
end;

// Says that the current line is no pattern.
procedure SayWrong(const Source: TPatternFile);
var
  Text: TText;
begin
  OpenMessage(Text, Source);
  TextAddForm(Text, '%u: neither `class PATTERN` nor `routine PATTERN` of at most %u characters',
    Source.LineNumber, NameLimit);
  ReportSayText(Text);
end;

// Applies the line from First up to Limit, without its comment.
procedure MarkLine(var Snapshot: TSnapshot; var Source: TPatternFile; First, Limit: PAnsiChar);
var
  Pattern: TPattern;
begin
  while (First < Limit) and IsBlank(First^) do
    Inc(First);
  if First = Limit then
    Exit;
  if not ReadPattern(First, Limit, Pattern) then
  begin
    Inc(Source.WrongCount);
    if Source.WrongCount <= MostMessages then
      SayWrong(Source);
  end
  else if Pattern.IsRoutine then
    MarkRoutines(Snapshot, Source, Pattern)
  else
    MarkClasses(Snapshot, Pattern);
end;

procedure MarkLines(var Snapshot: TSnapshot; var Source: TPatternFile; First, Limit: PAnsiChar);
var
  Last, Ending: PAnsiChar;
  Text: TText;
begin
  Inc(First, TextMarkLength(First, Limit - First));
  while First < Limit do
  begin
    Inc(Source.LineNumber);
    Last := First;
    while (Last < Limit) and (Last^ <> #10) do
      Inc(Last);
    Ending := First;
    while (Ending < Last) and (Ending^ <> '#') do
      Inc(Ending);
    MarkLine(Snapshot, Source, First, Ending);
    First := Last + 1;
  end;
  if Source.WrongCount <= MostMessages then
    Exit;
  OpenMessage(Text, Source);
  TextAddForm(Text, ' %g more such line%+', NativeUInt(Source.WrongCount - MostMessages));
  ReportSayText(Text);
end;

// Returns whether a file that cannot be mapped is only empty.
function IsEmpty(Path: PAnsiChar): Boolean;
var
  Handle: TOsFile;
  Sign: AnsiChar;
begin
  Handle := OsFileOpen(Path);
  if Handle < 0 then
    Exit(False);
  Result := OsFileRead(Handle, @Sign, SizeOf(Sign)) = 0;
  OsFileClose(Handle);
end;

function SuppressionsMarkFile(var Snapshot: TSnapshot; Path: PAnsiChar): Boolean;
var
  Source: TPatternFile;
  Lines: PAnsiChar;
  Size: NativeUInt;
begin
  Lines := PAnsiChar(OsFileMap(Path, Size));
  if Lines = nil then
    Exit(IsEmpty(Path));
  Source := Default(TPatternFile);
  Source.Path := Path;
  MarkLines(Snapshot, Source, Lines, Lines + Size);
  SymbolizerClose(Source.Names);
  OsReleasePages(Source.Answers, AnswersBytes);
  OsFileUnmap(PByte(Lines), Size);
  Result := True;
end;

end.
