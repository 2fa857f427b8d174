/// Leaks that somebody expects: by block, by class, by size; registered, or named in a file.
//
// Owns:       Leaks.Suppressions, ExpectedLock.
// Invariants: an entry with Count 0 is free. Entries are few: they are looked at one by one.
// Callers:    ExpectedAdd, ExpectedRemove: any thread. ExpectedMark: whoever makes a report.
unit LaneMM.Suppressions;

{$I ../LaneMM.inc}

interface


uses
  LaneMM.Snapshot;


type
  /// How an expected leak is told.
  TExpectation = (
    exBlock,  //< by an address inside it
    exClass,  //< by the class of the object
    exSize    //< by the size that was asked for
  );

const
  /// For ExpectedAdd: any number of leaks.
  AnyCount = High(NativeUInt) shr 1;

/// Expects Count more leaks that Value tells. False when there is no room to note it.
function ExpectedAdd(Expectation: TExpectation; Value, Count: NativeUInt): Boolean;
/// Takes back what was registered with the same values. False when there is no such thing.
function ExpectedRemove(Expectation: TExpectation; Value, Count: NativeUInt): Boolean;
/// Takes the expected leaks out of a census that has groups.
procedure ExpectedMark(var Census: TCensus);
/// Takes out what Patterns, the text of a file, names: lines of `class PATTERN` or `routine
/// PATTERN`, in which a star stands for any characters, large and small ones are the same, and `#`
/// begins a comment. A routine is looked for in the stack of the allocation, where one is known.
procedure ExpectedMarkPatterns(var Census: TCensus; Patterns: PAnsiChar; Length: NativeUInt);

implementation

uses
  LaneMM.Layout, LaneMM.Hooks, LaneMM.Bits, LaneMM.Os, LaneMM.SizeClasses, LaneMM.Lock,
  LaneMM.Walk, LaneMM.Text, LaneMM.BacktraceTable, LaneMM.BacktraceText, LaneMM.Symbols,
  LaneMM.Unwind, LaneMM.Contents, LaneMM.LeaksState;

const
  MostExpected = 4096;
  NameRoom = 511;

type
  TExpected = record
    Expectation: TExpectation;
    Value: NativeUInt;
    Count: NativeUInt;
  end;
  PExpected = ^TExpected;

  // A name or pattern as text of its own.
  TName = array[0..NameRoom] of AnsiChar;

  // One line of the file.
  TPattern = record
    IsRoutine: Boolean;
    Text: TName;
  end;

// ---------------------------------------------------------------------------- registration

// The entry with these values, or a free one; nil when there is none. Under the lock.
function FindEntry(Expectation: TExpectation; Value: NativeUInt): PExpected;
var
  Index: Cardinal;
  Entry: PExpected;
begin
  Result := nil;
  for Index := 0 to MostExpected - 1 do
  begin
    Entry := PExpected(Leaks.Suppressions) + Index;
    if Entry^.Count = 0 then
    begin
      if Result = nil then
        Result := Entry;
    end
    else if (Entry^.Expectation = Expectation) and (Entry^.Value = Value) then
      Exit(Entry);
  end;
end;

function ExpectedAdd(Expectation: TExpectation; Value, Count: NativeUInt): Boolean;
var
  Entry: PExpected;
begin
  LockEnter(Leaks.Lock);
  if Leaks.Suppressions = nil then
    Leaks.Suppressions := OsTakePages(MostExpected * SizeOf(TExpected));
  Entry := nil;
  if Leaks.Suppressions <> nil then
    Entry := FindEntry(Expectation, Value);
  Result := (Entry <> nil) and (Count > 0);
  if Result then
  begin
    Entry^.Expectation := Expectation;
    Entry^.Value := Value;
    if Count > AnyCount - Entry^.Count then
      Count := AnyCount - Entry^.Count;
    Inc(Entry^.Count, Count);
  end;
  LockLeave(Leaks.Lock);
end;

function ExpectedRemove(Expectation: TExpectation; Value, Count: NativeUInt): Boolean;
var
  Entry: PExpected;
begin
  LockEnter(Leaks.Lock);
  Entry := nil;
  if Leaks.Suppressions <> nil then
    Entry := FindEntry(Expectation, Value);
  Result := (Entry <> nil) and (Entry^.Count >= Count) and (Count > 0);
  if Result then
    Dec(Entry^.Count, Count);
  LockLeave(Leaks.Lock);
end;

// ---------------------------------------------------------------------------- marks

function IsOfSize(Node: PNode; Size: NativeUInt): Boolean;
var
  Block: TBlockInfo;
begin
  if WalkFind(Node^.Address, Block) and (Block.Kind = skDebug) then
    Result := Node^.Size = Size
  else if Size <= MaxClassSize then
    Result := Node^.Size = ClassToSize(SizeToClass(Size))
  else
    Result := Node^.Size = AlignUp(Size, OsPageSize);
end;

function IsExpected(const Census: TCensus; Node: PNode; const Entry: TExpected): Boolean;
begin
  case Entry.Expectation of
    exBlock:
      Result := Entry.Value - NativeUInt(Node^.Address) < Node^.Size;
    exClass:
      Result := Census.Groups[Node^.Group].ClassId = Entry.Value;
  else
    Result := IsOfSize(Node, Entry.Value);
  end;
end;

procedure MarkEntry(var Census: TCensus; Entry: TExpected);
var
  Index: NativeInt;
  Node: PNode;
begin
  for Index := 0 to NativeInt(Census.NodeCount) - 1 do
  begin
    Node := Census.Nodes + Index;
    if (Entry.Count > 0) and (Node^.State = noCounted) and IsExpected(Census, Node, Entry) then
    begin
      CensusExclude(Census, Index);
      Dec(Entry.Count);
    end;
  end;
end;

procedure ExpectedMark(var Census: TCensus);
var
  Index: Cardinal;
begin
  if Leaks.Suppressions = nil then
    Exit;
  for Index := 0 to MostExpected - 1 do
    if PExpected(Leaks.Suppressions)[Index].Count > 0 then
      MarkEntry(Census, PExpected(Leaks.Suppressions)[Index]);
end;

// ---------------------------------------------------------------------------- patterns

procedure OpenName(out Text: TText; var Name: TName);
begin
  Name := Default(TName);
  Text := Default(TText);
  Text.Start := @Name;
  Text.Room := NameRoom;
end;

procedure MarkGroup(var Census: TCensus; Group: Cardinal);
var
  Index: NativeInt;
begin
  for Index := 0 to NativeInt(Census.NodeCount) - 1 do
    if (Census.Nodes[Index].Group = Group) and (Census.Nodes[Index].State = noCounted) then
      CensusExclude(Census, Index);
end;

procedure MarkClasses(var Census: TCensus; const Pattern: TPattern);
var
  Group: Cardinal;
  Text: TText;
  Name: TName;
begin
  for Group := 1 to Census.GroupCount - 1 do
    if (Census.Groups[Group].Kind = coObject) and (Census.Groups[Group].Count > 0) then
    begin
      OpenName(Text, Name);
      ClassAddName(Text, Census.Groups[Group].ClassId);
      if TextFits(@Name, @Pattern.Text) then
        MarkGroup(Census, Group);
    end;
end;

function StackFits(const Traces: TTraces; const Stack: TStack;
  const Pattern: TPattern): Boolean;
var
  Frame: NativeInt;
  Symbol: PSymbol;
  Text: TText;
  Name: TName;
begin
  Result := False;
  for Frame := 0 to NativeInt(Stack.Count) - 1 do
  begin
    Symbol := SymbolsFind(Traces.Symbols, Stack.Frames[Frame]);
    if (Symbol = nil) or (Symbol^.Routine = nil) then
      Continue;
    OpenName(Text, Name);
    SymbolAddRoutine(Text, Symbol);
    if TextFits(@Name, @Pattern.Text) then
      Exit(True);
  end;
end;

function StackOf(const Census: TCensus; Index: Cardinal): Cardinal;
var
  Block: TBlockInfo;
begin
  Result := 0;
  if (Census.Nodes[Index].State = noCounted) and WalkFind(Census.Nodes[Index].Address, Block) then
    Result := Block.Stack;
end;

procedure MarkRoutines(var Census: TCensus; const Pattern: TPattern);
const
  MostTraced = 65536;
var
  Traces: TTraces;
  Index: NativeInt;
  Number, Last: Cardinal;
  Stack: TStack;
begin
  TracesOpen(Traces, MostTraced);
  Last := 0;
  for Index := 0 to NativeInt(Census.NodeCount) - 1 do
  begin
    Number := StackOf(Census, Index);
    if (Number <> Last) and StackRead(Number, Stack) then
      TracesAdd(Traces, Stack);
    Last := Number;
  end;
  if Traces.Symbols.Count > 0 then
  begin
    TracesResolve(Traces);
    for Index := 0 to NativeInt(Census.NodeCount) - 1 do
    begin
      if StackRead(StackOf(Census, Index), Stack) and StackFits(Traces, Stack, Pattern) then
        CensusExclude(Census, Index);
    end;
  end;
  TracesClose(Traces);
end;

// ---------------------------------------------------------------------------- the file

function IsBlank(Sign: AnsiChar): Boolean; inline;
begin
  Result := Sign in [' ', #9, #13];
end;

// Whether the line from First up to Limit begins with Word and a blank; First moves behind them.
function TakesWord(var First: PAnsiChar; Limit: PAnsiChar; const Word: ShortString): Boolean;
var
  Index: Cardinal;
begin
  Result := (Limit - First > Length(Word)) and IsBlank(First[Length(Word)]);
  for Index := 1 to Length(Word) do
    Result := Result and (LowerCase(First[Index - 1]) = Word[Index]);
  if not Result then
    Exit;
  Inc(First, Length(Word));
  while (First < Limit) and IsBlank(First^) do
    Inc(First);
end;

function ReadPattern(First, Limit: PAnsiChar; out Pattern: TPattern): Boolean;
begin
  Pattern := Default(TPattern);
  while (First < Limit) and IsBlank(First^) do
    Inc(First);
  Pattern.IsRoutine := TakesWord(First, Limit, 'routine');
  Result := Pattern.IsRoutine or TakesWord(First, Limit, 'class');
  while (Limit > First) and IsBlank(Limit[-1]) do
    Dec(Limit);
  Result := Result and (Limit > First) and (Limit - First <= NameRoom);
  if Result then
    Move(First^, Pattern.Text, Limit - First);
end;

procedure ExpectedMarkPatterns(var Census: TCensus; Patterns: PAnsiChar; Length: NativeUInt);
var
  Limit, Last, Ending: PAnsiChar;
  Pattern: TPattern;
begin
  Limit := Patterns + Length;
  while Patterns < Limit do
  begin
    Last := Patterns;
    while (Last < Limit) and (Last^ <> #10) do
      Inc(Last);
    Ending := Patterns;
    while (Ending < Last) and (Ending^ <> '#') do
      Inc(Ending);
    if ReadPattern(Patterns, Ending, Pattern) then
      if Pattern.IsRoutine then
        MarkRoutines(Census, Pattern)
      else
        MarkClasses(Census, Pattern);
    Patterns := Last + 1;
  end;
end;

end.
