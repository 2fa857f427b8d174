/// Leak reports as files: JSON, JUnit XML, the text of heaptrc, a page.
//
// Owns:       nothing.
// Callers:    any thread; allocates nothing from the heap.
// Source:     JUnit: the format that continuous-integration servers read; heaptrc: FPC 3.2.2,
//             rtl/inc/heaptrc.pp, as the leak view of Lazarus reads it.
unit LaneMM.LeakFiles;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Text, LaneMM.LeakList;

/// Adds the report as one JSON object.
procedure LeakJsonAdd(var Text: TText; const List: TLeakList);
/// Adds the report as a test suite: one failure for each group, one error where blocks were not
/// examined, or one test that passes.
procedure LeakJunitAdd(var Text: TText; const List: TLeakList);
/// Adds the report as heaptrc would write it, block by block. The numbers of allocated and freed
/// blocks cover those of the report only.
procedure LeakHeaptrcAdd(var Text: TText; const List: TLeakList);
/// Adds the report as an HTML page, whose data are the JSON object.
procedure LeakPageAdd(var Text: TText; const List: TLeakList);

implementation

uses
  LaneMM.Layout, LaneMM.Os, LaneMM.OsFiles, LaneMM.Json, LaneMM.ReportHead, LaneMM.BacktraceTable,
  LaneMM.BacktraceText, LaneMM.Symbols, LaneMM.Unwind, LaneMM.Html, LaneMM.Contents, LaneMM.Groups,
  LaneMM.LeakText, LaneMM.NodeStacks, LaneMM.Places, LaneMM.Retainers, LaneMM.Snapshot;

procedure ReadGroupName(const List: TLeakList; Group: PGroup; out Name: TPath);
var
  Text: TText;
begin
  TextOpenAt(Text, @Name, SizeOf(Name));
  LeakAddName(Text, List, Group);
end;

procedure ReadProgramName(out Name: TPath);
begin
  Name := Default(TPath);
  OsProgramPath(@Name, High(Name));
end;

// ---------------------------------------------------------------------------- JSON

procedure AddJsonCounts(var Text: TText; const Key: ShortString; Blocks, Bytes: NativeUInt);
begin
  JsonOpen(Text, Key, '{');
  JsonAddNumber(Text, 'blocks', Blocks);
  JsonAddNumber(Text, 'bytes', Bytes);
  TextAdd(Text, '}');
end;

procedure AddJsonRetainer(var Text: TText; const List: TLeakList; Path: PRetainerPath);
var
  Chain: TChain;
  Index: NativeInt;
  Name: TPath;
begin
  JsonOpenItem(Text);
  JsonAddNumber(Text, 'blocks', Path^.Count);
  JsonAddNumber(Text, 'bytes', Path^.Bytes);
  JsonAddFlag(Text, 'cycle', Path^.IsCycle);
  JsonAddFlag(Text, 'interfaces', LeakCycleHasInterface(List, Path));
  JsonAddFlag(Text, 'stale', Path^.Container <> 0);
  JsonOpen(Text, 'chain', '[');
  LeakChain(List, Path, Chain);
  for Index := 0 to NativeInt(Chain.Count) - 1 do
  begin
    JsonAddComma(Text);
    ReadGroupName(List, List.Snapshot.Groups + Chain.Links[Index], Name);
    JsonAddString(Text, @Name);
  end;
  TextAdd(Text, ']}');
end;

procedure AddJsonRetainers(var Text: TText; const List: TLeakList; Index: Cardinal);
const
  MostRetainers = 10;
var
  Rank: Cardinal;
  Path: PRetainerPath;
begin
  JsonOpen(Text, 'retainers', '[');
  Rank := 0;
  Path := nil;
  while (Rank < MostRetainers) and LeakRetainer(List, Index, Path) do
  begin
    AddJsonRetainer(Text, List, Path);
    Inc(Rank);
  end;
  TextAdd(Text, ']');
end;

procedure AddJsonTexts(var Text: TText; Group: PGroup);
var
  Index: NativeInt;
begin
  JsonOpen(Text, 'texts', '[');
  for Index := 0 to NativeInt(Group^.ExampleCount) - 1 do
  begin
    JsonAddComma(Text);
    JsonAddString(Text, @Group^.Examples[Index]);
  end;
  TextAdd(Text, ']');
end;

procedure AddJsonFrame(var Text: TText; const List: TLeakList; Return: NativeUInt);
var
  Symbol: PSymbol;
  Place: TText;
  Name: TPath;
begin
  Symbol := SymbolsFind(List.Symbolizer.Symbols, Return);
  JsonOpenItem(Text);
  JsonAddNumber(Text, 'address', SymbolsReturn(List.Symbolizer.Symbols, Return));
  TextOpenAt(Place, @Name, SizeOf(Name));
  if (Symbol <> nil) and (Symbol^.Routine <> nil) then
  begin
    SymbolAddRoutine(Place, Symbol);
    JsonAddText(Text, 'routine', @Name);
  end
  else if (Symbol <> nil) and (Symbol^.Module <> nil) then
  begin
    SymbolAddOffset(Place, Symbol);
    JsonAddText(Text, 'module', @Name);
  end;
  if (Symbol <> nil) and (Symbol^.Line > 0) then
  begin
    JsonAddText(Text, 'file', Symbol^.FileName);
    JsonAddNumber(Text, 'line', Symbol^.Line);
  end;
  if Return >= FirstInlined then
    JsonAddNumber(Text, 'inlined', 1);
  TextAdd(Text, '}');
end;

procedure AddJsonStack(var Text: TText; const List: TLeakList; Place: PPlace);
var
  Stack: TBacktrace;
  Frame: NativeInt;
begin
  JsonOpen(Text, 'stack', '[');
  if BacktraceRead(Place^.Stack, Stack) then
    BacktraceFold(List.Symbolizer.Symbols, Stack);
  for Frame := 0 to NativeInt(Stack.Count) - 1 do
    AddJsonFrame(Text, List, Stack.Frames[Frame]);
  TextAdd(Text, ']}');
end;

// Adds a line of the program: its first backtrace, and if there are several, all.
procedure AddJsonPlace(var Text: TText; const List: TLeakList; Place: PPlace);
var
  Other: PPlace;
  Stacks: Cardinal;
begin
  JsonOpenItem(Text);
  JsonAddNumber(Text, 'blocks', Place^.Count);
  JsonAddNumber(Text, 'bytes', Place^.Bytes);
  JsonAddNumber(Text, 'number', Place^.Number);
  JsonAddNumber(Text, 'thread', Place^.Thread);
  if Place^.Line <> NoPlace then
  begin
    JsonOpen(Text, 'stacks', '[');
    Other := Place;
    for Stacks := 1 to MostStacks do
    begin
      JsonOpenItem(Text);
      JsonAddNumber(Text, 'blocks', Other^.OwnCount);
      JsonAddNumber(Text, 'bytes', Other^.OwnBytes);
      AddJsonStack(Text, List, Other);
      if Other^.Line = NoPlace then
        Break;
      Other := @List.Snapshot.Places^.Items[Other^.Line];
    end;
    TextAdd(Text, ']');
  end;
  AddJsonStack(Text, List, Place);
end;

procedure AddJsonPlaces(var Text: TText; const List: TLeakList; Index: Cardinal);
var
  Rank: Cardinal;
  Place: PPlace;
begin
  JsonOpen(Text, 'places', '[');
  Rank := 0;
  Place := LeakPlace(List, Index, nil);
  while (Place <> nil) and (Rank < MostPlaces) do
  begin
    AddJsonPlace(Text, List, Place);
    Inc(Rank);
    Place := LeakPlace(List, Index, Place);
  end;
  TextAdd(Text, ']');
end;

// Returns the bytes of each block of unknown contents, 0 where they differ.
function SizeOfEach(Group: PGroup): NativeUInt;
begin
  Result := 0;
  if (Group^.Kind = coUnknown) and (Group^.Least = Group^.Most) then
    Result := Group^.Most;
end;

procedure AddJsonGroup(var Text: TText; const List: TLeakList; Index: Cardinal);
const
  Kinds: array[TContentsKind] of PAnsiChar = ('unknown', 'object', 'AnsiString', 'UnicodeString',
    'array');
var
  Group: PGroup;
  Region: TText;
  Name: TPath;
begin
  Group := LeakGroup(List, Index);
  ReadGroupName(List, Group, Name);
  JsonOpenLine(Text);
  JsonAddNumber(Text, 'group', List.Order[Index]);
  JsonAddText(Text, 'kind', Kinds[Group^.Kind]);
  JsonAddText(Text, 'name', @Name);
  if Group^.Region <> 0 then
  begin
    TextOpenAt(Region, @Name, SizeOf(Name));
    GroupAddRegion(Region, Group^.Allocation);
    JsonAddText(Text, 'region', @Name);
  end;
  JsonAddNumber(Text, 'blocks', Group^.Count);
  JsonAddNumber(Text, 'bytes', Group^.Bytes);
  JsonAddNumber(Text, 'retained', Group^.Retained);
  JsonAddNumber(Text, 'blockSize', SizeOfEach(Group));
  AddJsonTexts(Text, Group);
  AddJsonRetainers(Text, List, Index);
  AddJsonPlaces(Text, List, Index);
  TextAdd(Text, '}');
end;

procedure AddJsonTotals(var Text: TText; const List: TLeakList);
var
  Index: NativeInt;
  Total: PTotal;
begin
  JsonOpen(Text, 'allocationGroups', '[');
  for Index := 0 to NativeInt(List.Snapshot.TotalCount) - 1 do
  begin
    Total := List.Snapshot.Totals + Index;
    JsonOpenItem(Text);
    JsonAddNumber(Text, 'group', Total^.Group);
    if GroupName(Total^.Group) <> nil then
      JsonAddText(Text, 'name', GroupName(Total^.Group));
    JsonAddNumber(Text, 'blocks', Total^.Count);
    JsonAddNumber(Text, 'bytes', Total^.Bytes);
    TextAdd(Text, '}');
  end;
  TextAdd(Text, ']');
end;

// Adds the chains of retainers as a tree: the blocks of each node, whose parent is a number of this
// list from 1 on, or 0 for none. What a node retains is its bytes and those below it.
procedure AddJsonTree(var Text: TText; const List: TLeakList);
var
  Index: NativeInt;
  Path: PRetainerPath;
  Count, Bytes: NativeUInt;
begin
  JsonOpen(Text, 'retainerTree', '[');
  for Index := NoPath + 1 to NativeInt(List.Retainers.PathCount) - 1 do
  begin
    Path := List.Retainers.Paths + Index;
    RetainersSumPath(List.Retainers, Index, Count, Bytes);
    JsonOpenItem(Text);
    JsonAddNumber(Text, 'parent', Path^.Parent);
    JsonAddNumber(Text, 'group', Path^.Group);
    JsonAddNumber(Text, 'blocks', Count);
    JsonAddNumber(Text, 'bytes', Bytes);
    JsonAddFlag(Text, 'cycle', Path^.IsCycle);
    TextAdd(Text, '}');
  end;
  TextAdd(Text, ']');
end;

procedure LeakJsonAdd(var Text: TText; const List: TLeakList);
const
  Topics: array[TLeakTopic] of PAnsiChar = ('leaks', 'inUse', 'grown');
var
  Index: NativeInt;
begin
  TextAdd(Text, '{');
  HeadAddJson(Text);
  JsonAddText(Text, 'topic', Topics[List.Topic]);
  JsonAddNumber(Text, 'exitCode', Cardinal(ExitCode) and OsExitCodeBits);
  JsonAddNumber(Text, 'blocks', List.Blocks);
  JsonAddNumber(Text, 'bytes', List.Bytes);
  AddJsonCounts(Text, 'suppressed', List.Snapshot.Counts[nsSuppressed],
    List.Snapshot.Bytes[nsSuppressed]);
  AddJsonCounts(Text, 'reachable', List.Snapshot.Counts[nsRunning],
    List.Snapshot.Bytes[nsRunning]);
  JsonAddNumber(Text, 'notExamined', List.Snapshot.LostCount);
  AddJsonTotals(Text, List);
  JsonOpen(Text, 'groups', '[');
  for Index := 0 to NativeInt(List.Count) - 1 do
    AddJsonGroup(Text, List, Index);
  TextAdd(Text, ']');
  if List.HasRetainers then
    AddJsonTree(Text, List);
  TextAdd(Text, '}'#10);
end;

procedure LeakPageAdd(var Text: TText; const List: TLeakList);
begin
  HtmlOpen(Text);
  LeakJsonAdd(Text, List);
  HtmlClose(Text, pgLeaks);
end;

// ---------------------------------------------------------------------------- JUnit

procedure AddXmlName(var Text: TText; Name: PAnsiChar);
begin
  TextAdd(Text, ' name="');
  TextAddXml(Text, Name);
  TextAdd(Text, '"');
end;

// Adds the lines of the text report about the group, with dots at the end if they were cut.
procedure AddXmlLines(var Text: TText; const List: TLeakList; Index: Cardinal);
const
  Ending: ShortString = '...'#0;
var
  Lines: TText;
begin
  if not TextOpen(Lines, SliceSize) then
    Exit;
  LeakTextAddGroup(Lines, List, Index);
  TextAdd(Lines, #0);
  if Lines.IsCut then
  begin
    Dec(Lines.Length, Length(Ending));
    TextAdd(Lines, Ending);
  end;
  TextAddXml(Text, Lines.Start);
  TextClose(Lines);
end;

procedure AddFailure(var Text: TText; const List: TLeakList; Index: Cardinal);
var
  Group: PGroup;
  Name: TPath;
begin
  Group := LeakGroup(List, Index);
  ReadGroupName(List, Group, Name);
  TextAdd(Text, '<testcase classname="leaks"');
  AddXmlName(Text, @Name);
  TextAddForm(Text, '><failure type="leak" message="%g block%+, %g byte%+ leaked">', Group^.Count,
    Group^.Bytes);
  AddXmlLines(Text, List, Index);
  TextAdd(Text, '</failure></testcase>'#10);
end;

procedure LeakJunitAdd(var Text: TText; const List: TLeakList);
var
  Index: NativeInt;
  Name: TPath;
  Errors: Cardinal;
begin
  ReadProgramName(Name);
  TextAdd(Text, '<?xml version="1.0" encoding="UTF-8"?>'#10'<testsuites><testsuite');
  AddXmlName(Text, @Name);
  Errors := Ord(List.Snapshot.LostCount > 0);
  TextAddForm(Text, ' tests="%u" failures="%u" errors="%u">'#10, List.Count + Errors
    + Cardinal(Ord(List.Count + Errors = 0)), List.Count, Errors);
  for Index := 0 to NativeInt(List.Count) - 1 do
    AddFailure(Text, List, Index);
  if Errors > 0 then
    TextAddForm(Text, '<testcase classname="leaks" name="all blocks are examined"><error'
      + ' type="memory" message="%g block%+ not examined for lack of memory"/></testcase>'#10,
      List.Snapshot.LostCount)
  else if List.Count = 0 then
    TextAdd(Text, '<testcase classname="leaks" name="no leaks"/>'#10);
  TextAdd(Text, '</testsuite></testsuites>'#10);
end;

// ---------------------------------------------------------------------------- heaptrc

procedure AddHeaptrcFrame(var Text: TText; const Symbolizer: TSymbolizer; Return: NativeUInt);
var
  Symbol: PSymbol;
begin
  // Blanks also at the end of a line: the next one is not taken for a continuation.
  TextAddForm(Text, '  %p  ', SymbolsReturn(Symbolizer.Symbols, Return));
  Symbol := SymbolsFind(Symbolizer.Symbols, Return);
  if (Symbol <> nil) and (Symbol^.Routine <> nil) then
  begin
    SymbolAddRoutine(Text, Symbol);
    if Symbol^.Line > 0 then
      TextAddForm(Text, ',  line %u of %s', Symbol^.Line, NativeUInt(Symbol^.FileName));
  end;
  TextAdd(Text, LineEnd);
end;

procedure AddHeaptrcBlock(var Text: TText; const Symbolizer: TSymbolizer; Node: PNode);
var
  Stack: TBacktrace;
  Frame: NativeInt;
begin
  TextAddForm(Text, 'Call trace for block %p size %u'#10, NativeUInt(Node^.Address), Node^.Size);
  if BacktraceRead(NodeStack(Node), Stack) then
    BacktraceFold(Symbolizer.Symbols, Stack);
  for Frame := 0 to NativeInt(Stack.Count) - 1 do
    AddHeaptrcFrame(Text, Symbolizer, Stack.Frames[Frame]);
end;

procedure LeakHeaptrcAdd(var Text: TText; const List: TLeakList);
var
  Index: NativeInt;
  Symbolizer: TSymbolizer;
  Name: TPath;
begin
  ReadProgramName(Name);
  TextAddForm(Text, 'Heap dump by heaptrc unit of %s'#10, NativeUInt(@Name));
  TextAddForm(Text, '%u memory blocks allocated : %u/%u'#10'0 memory blocks freed     : 0/0'#10
    + '%u unfreed memory blocks : %u'#10'True heap size : %u'#10'True free heap : 0'#10,
    List.Blocks, List.Bytes, List.Bytes, List.Blocks, List.Bytes, List.Bytes);
  if List.Snapshot.LostCount > 0 then
    TextAddForm(Text, 'Blocks not examined for lack of memory : %u'#10, List.Snapshot.LostCount);
  NodesSymbolize(List.Snapshot, Symbolizer);
  for Index := 0 to NativeInt(List.Snapshot.NodeCount) - 1 do
    if List.Snapshot.Nodes[Index].State = nsCounted then
      AddHeaptrcBlock(Text, Symbolizer, List.Snapshot.Nodes + Index);
  SymbolizerClose(Symbolizer);
end;

end.
