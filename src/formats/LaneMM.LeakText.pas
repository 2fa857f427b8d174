/// A leak report as text for the user.
//
// Owns:       nothing.
// Callers:    any thread; allocates nothing from the heap.
unit LaneMM.LeakText;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Text, LaneMM.LeakList;

/// Adds the report: the groups with most bytes, their retainers, their backtraces, then allocation
/// groups and the blocks that are not counted.
procedure LeakTextAdd(var Text: TText; const List: TLeakList);
/// Adds the groups with most bytes of a list of those in use, and how to see their places.
procedure LeakTextAddMost(var Text: TText; const List: TLeakList);
/// Adds the lines about the group at Index of the list.
procedure LeakTextAddGroup(var Text: TText; const List: TLeakList; Index: Cardinal);

implementation

uses
  LaneMM.Atomic, LaneMM.Os, LaneMM.ReportState, LaneMM.Messages, LaneMM.SettingsState,
  LaneMM.Unwind, LaneMM.DebugState, LaneMM.Groups, LaneMM.BacktraceTable, LaneMM.CallTree,
  LaneMM.Places, LaneMM.Retainers, LaneMM.Snapshot;

const
  // Chains of retainers that are reported for a group.
  ShownRetainers = 3;
  // Places that are reported for a group.
  ShownPlaces = 3;
  // Bytes of a line of a dump.
  PerLine = 16;

procedure AddCounts(var Text: TText; Message: TMessage; Count, Bytes: NativeUInt);
var
  Fields: TFields;
begin
  FieldsOpen(Fields);
  FieldNumber(Fields, fiBlocks, '%g block%+', Count);
  FieldNumber(Fields, fiSize, '%g byte%+', Bytes);
  MessageEnd(Text, Message, Fields);
end;

procedure AddRetainer(var Text: TText; const List: TLeakList; Path: PRetainerPath);
const
  CycleNames: array[Boolean] of PAnsiChar = ('cycle ', 'cycle of interfaces ');
  Messages: array[Boolean] of TMessage = (msLeakRetained, msLeakStale);
var
  Fields: TFields;
  Chain: TChain;
  Message: TMessage;
  Index: NativeInt;
begin
  LeakChain(List, Path, Chain);
  FieldsOpen(Fields);
  FieldNumber(Fields, fiCount, '%g', Path^.Count);
  FieldStart(Fields, fiRetainer);
  for Index := 0 to NativeInt(Chain.Count) - 1 do
  begin
    if Index > 0 then
      TextAdd(Fields.Values, ' -> ');
    LeakAddName(Fields.Values, List, List.Snapshot.Groups + Chain.Links[Index]);
  end;
  Message := Messages[Path^.Container <> 0];
  if Path^.IsCycle then
  begin
    FieldChars(Fields, fiText, CycleNames[LeakCycleHasInterface(List, Path)]);
    Message := msLeakCycle;
  end;
  MessageEnd(Text, Message, Fields);
end;

procedure AddRetainers(var Text: TText; const List: TLeakList; Index: Cardinal);
var
  Rank: Cardinal;
  Path: PRetainerPath;
  Rest: NativeUInt;
  Fields: TFields;
begin
  Rank := 0;
  Path := nil;
  Rest := LeakRetainedCount(List, Index);
  while (Rank < ShownRetainers) and LeakRetainer(List, Index, Path) do
  begin
    AddRetainer(Text, List, Path);
    Dec(Rest, Path^.Count);
    Inc(Rank);
  end;
  if Rest = 0 then
    Exit;
  FieldsOpen(Fields);
  FieldNumber(Fields, fiCount, '%g', Rest);
  MessageEnd(Text, msMoreRetainers, Fields);
end;

procedure AddTexts(var Text: TText; Group: PGroup);
var
  Fields: TFields;
  Index: NativeInt;
begin
  if Group^.ExampleCount = 0 then
    Exit;
  FieldsOpen(Fields);
  FieldStart(Fields, fiText);
  for Index := 0 to NativeInt(Group^.ExampleCount) - 1 do
  begin
    if Index > 0 then
      TextAdd(Fields.Values, ', ');
    TextAddChars(Fields.Values, @Group^.Examples[Index]);
  end;
  if Group^.Count > Group^.ExampleCount then
    TextAdd(Fields.Values, ', ...');
  MessageEnd(Text, msLeakTexts, Fields);
end;

// Adds a line of bytes at Address.
procedure AddBytes(var Text: TText; Address: NativeUInt; Bytes: PByte; Count: NativeInt);
var
  Index: NativeInt;
begin
  TextAdd(Text, '      ');
  TextAddHex(Text, Address, SizeOf(Address) * 2);
  TextAdd(Text, ' ');
  for Index := 0 to PerLine - 1 do
    if Index < Count then
    begin
      TextAdd(Text, ' ');
      TextAddHex(Text, Bytes[Index], 2);
    end
    else
      TextAdd(Text, '   ');
  TextAdd(Text, '  ');
  for Index := 0 to Count - 1 do
    if Bytes[Index] in [32..126] then
      TextAdd(Text, AnsiChar(Bytes[Index]))
    else
      TextAdd(Text, '.');
  TextAdd(Text, LineEnd);
end;

// Adds the first bytes of a block of the place, as many as the setting `leaks:dump` says.
procedure AddDump(var Text: TText; Place: PPlace);
var
  Bytes: array[0..PerLine - 1] of Byte;
  Offset, Limit, Count: NativeUInt;
begin
  Limit := Settings.Values[opLeaksDump];
  if Limit > Place^.Size then
    Limit := Place^.Size;
  Offset := 0;
  while Offset < Limit do
  begin
    Count := Limit - Offset;
    if Count > PerLine then
      Count := PerLine;
    // Through the system: the block may be gone.
    if not OsRead(Place^.Address + Offset, @Bytes, Count) then
      Exit;
    AddBytes(Text, Place^.Address + Offset, @Bytes, Count);
    Inc(Offset, PerLine);
  end;
end;

// Adds the backtraces of the places of one line.
procedure AddTree(var Text: TText; const List: TLeakList; Place: PPlace);
var
  Tree: PCallTree;
  Stack: TBacktrace;
  Number: Cardinal;
begin
  Tree := CallTreeOpen;
  if Tree = nil then
    Exit;
  repeat
    if BacktraceRead(Place^.Stack, Stack) then
      CallTreeAdd(Tree, List.Symbolizer.Symbols, Stack, Place^.OwnCount, Place^.OwnBytes);
    Number := Place^.Line;
    Place := @List.Snapshot.Places^.Items[Number];
  until Number = NoPlace;
  CallTreeAddText(Text, Tree, List.Symbolizer);
  CallTreeClose(Tree);
end;

procedure AddPlace(var Text: TText; const List: TLeakList; Place: PPlace);
var
  Fields: TFields;
begin
  FieldsOpen(Fields);
  FieldNumber(Fields, fiCount, '%g', Place^.Count);
  FieldNumber(Fields, fiSize, '%g byte%+', Place^.Bytes);
  FieldNumber(Fields, fiNumber, '%u', Place^.Number);
  FieldNumber(Fields, fiThread, '%u', Place^.Thread);
  MessageEnd(Text, msLeakStack, Fields);
  AddTree(Text, List, Place);
  if IsSet(opDump) then
    AddDump(Text, Place);
end;

// Subtracts Part; no fewer than 0 remain: blocks of other places may have become fewer.
procedure TakeOff(var Rest: NativeUInt; Part: NativeUInt);
begin
  if Part > Rest then
    Part := Rest;
  Dec(Rest, Part);
end;

// Adds the places that are reported, and sums up the others.
procedure AddPlaces(var Text: TText; const List: TLeakList; Index: Cardinal);
var
  Place: PPlace;
  Rank: Cardinal;
  Blocks, Bytes, OtherBlocks, OtherBytes: NativeUInt;
  Group: PGroup;
begin
  Place := LeakPlace(List, Index, nil);
  if Place = nil then
    Exit;
  Group := LeakGroup(List, Index);
  PlacesSum(List.Snapshot.Places^, Group^.Place, OtherBlocks, OtherBytes);
  Blocks := Group^.Count;
  Bytes := Group^.Bytes;
  TakeOff(Blocks, OtherBlocks);
  TakeOff(Bytes, OtherBytes);
  Rank := 0;
  while (Place <> nil) and (Rank < ShownPlaces) do
  begin
    AddPlace(Text, List, Place);
    Dec(OtherBlocks, Place^.Count);
    Dec(OtherBytes, Place^.Bytes);
    Inc(Rank);
    Place := LeakPlace(List, Index, Place);
  end;
  if OtherBlocks + OtherBytes > 0 then
    AddCounts(Text, msMorePlaces, OtherBlocks, OtherBytes);
  if Blocks + Bytes > 0 then
    AddCounts(Text, msUnknownPlaces, Blocks, Bytes);
end;

procedure LeakTextAddGroup(var Text: TText; const List: TLeakList; Index: Cardinal);
var
  Fields: TFields;
  Group: PGroup;
begin
  Group := LeakGroup(List, Index);
  FieldsOpen(Fields);
  FieldNumber(Fields, fiCount, '%g', Group^.Count);
  FieldNumber(Fields, fiSize, '%g byte%+', Group^.Bytes);
  FieldStart(Fields, fiClass);
  LeakAddName(Fields.Values, List, Group);
  MessageEnd(Text, msLeakGroup, Fields);
  AddTexts(Text, Group);
  if Group^.Retained > Group^.Bytes then
    AddCounts(Text, msLeakRetains, Group^.Count, Group^.Retained);
  AddRetainers(Text, List, Index);
  AddPlaces(Text, List, Index);
end;

procedure AddNote(var Text: TText; Message: TMessage; Number: NativeUInt);
var
  Fields: TFields;
begin
  FieldsOpen(Fields);
  FieldNumber(Fields, fiBlocks, '%g block%+', Number);
  MessageEnd(Text, Message, Fields);
end;

procedure AddNotes(var Text: TText; const List: TLeakList);
const
  Advice: array[TLeakTopic] of TMessage = (msLeaksAdvice, msPlacesAdvice, msPlacesAdvice);
begin
  if List.Snapshot.Counts[nsSuppressed] > 0 then
    AddCounts(Text, msLeaksSuppressed, List.Snapshot.Counts[nsSuppressed],
      List.Snapshot.Bytes[nsSuppressed]);
  if List.Snapshot.Counts[nsRunning] > 0 then
    AddCounts(Text, msLeaksRunning, List.Snapshot.Counts[nsRunning],
      List.Snapshot.Bytes[nsRunning]);
  if List.Snapshot.LostCount > 0 then
    AddNote(Text, msLeaksLost, List.Snapshot.LostCount);
  if (List.Topic = ltLeaks) and (LoadAcquire(Report.DamageCount) > 0) then
    AddNote(Text, msLeaksFollow, List.Blocks);
  if List.Blocks = 0 then
    Exit;
  if List.Snapshot.Places^.LostCount > 0 then
    AddNote(Text, msPlacesLost, List.Snapshot.Places^.LostCount)
  else if (List.PlaceCount = 0) and not IsSet(opStacks) and not Debug.IsStarted then
    AddNote(Text, Advice[List.Topic], List.Blocks);
end;

procedure AddGroups(var Text: TText; const List: TLeakList);
var
  Index: Cardinal;
  Blocks, Bytes: NativeUInt;
begin
  Index := 0;
  Blocks := List.Blocks;
  Bytes := List.Bytes;
  while (Index < List.Count) and (Index < Settings.Values[opTop]) do
  begin
    LeakTextAddGroup(Text, List, Index);
    Dec(Blocks, LeakGroup(List, Index)^.Count);
    Dec(Bytes, LeakGroup(List, Index)^.Bytes);
    Inc(Index);
  end;
  if Index < List.Count then
    AddCounts(Text, msMoreLeaks, Blocks, Bytes);
end;

procedure LeakTextAddMost(var Text: TText; const List: TLeakList);
const
  ShownMost = 3;
var
  Index: NativeInt;
begin
  AddCounts(Text, msMostUsed, List.Blocks, List.Bytes);
  for Index := 0 to NativeInt(List.Count) - 1 do
    if Index < ShownMost then
      LeakTextAddGroup(Text, List, Index);
  if (List.PlaceCount = 0) and not IsSet(opStacks) and not Debug.IsStarted then
    AddNote(Text, msPlacesAdvice, List.Blocks);
end;

// Returns the total with most bytes after Last, or of all if Last is nil; nil when there is none.
function NextTotal(const List: TLeakList; Last: PTotal): PTotal;
var
  Index: NativeInt;
  Total: PTotal;
begin
  Result := nil;
  for Index := 0 to NativeInt(List.Snapshot.TotalCount) - 1 do
  begin
    Total := List.Snapshot.Totals + Index;
    if (Total^.Count > 0) and (Total^.Key <> 0)
      and ((Last = nil) or (Total^.Bytes < Last^.Bytes)
      or (Total^.Bytes = Last^.Bytes) and (Total > Last))
      and ((Result = nil) or (Total^.Bytes > Result^.Bytes)) then
      Result := Total;
  end;
end;

procedure AddTotal(var Text: TText; Total: PTotal);
var
  Fields: TFields;
begin
  FieldsOpen(Fields);
  FieldNumber(Fields, fiBlocks, '%g block%+', Total^.Count);
  FieldNumber(Fields, fiSize, '%g byte%+', Total^.Bytes);
  if Total^.Group < RegionGroups then
  begin
    FieldStart(Fields, fiGroup);
    GroupAddName(Fields.Values, Total^.Group);
    MessageEnd(Text, msLeakTotal, Fields);
  end
  else
  begin
    FieldStart(Fields, fiRegion);
    GroupAddRegion(Fields.Values, Total^.Group);
    MessageEnd(Text, msLeakRegion, Fields);
  end;
end;

// Adds the largest totals of allocation groups and regions, and the sum of the others.
procedure AddTotals(var Text: TText; const List: TLeakList);
var
  Total: PTotal;
  Rank: Cardinal;
  Index: NativeInt;
  Count, Bytes: NativeUInt;
begin
  Count := 0;
  Bytes := 0;
  for Index := 0 to NativeInt(List.Snapshot.TotalCount) - 1 do
  begin
    Inc(Count, List.Snapshot.Totals[Index].Count);
    Inc(Bytes, List.Snapshot.Totals[Index].Bytes);
  end;
  Rank := 0;
  Total := NextTotal(List, nil);
  while (Total <> nil) and (Rank < Settings.Values[opTop]) do
  begin
    AddTotal(Text, Total);
    Dec(Count, Total^.Count);
    Dec(Bytes, Total^.Bytes);
    Inc(Rank);
    Total := NextTotal(List, Total);
  end;
  if Count > 0 then
    AddCounts(Text, msMoreTotals, Count, Bytes);
end;

procedure LeakTextAdd(var Text: TText; const List: TLeakList);
const
  Heads: array[TLeakTopic] of TMessage = (msLeaks, msInUse, msGrown);
  UnknownHeads: array[TLeakTopic] of TMessage = (msLeaksUnknown, msInUseUnknown, msGrown);
begin
  if List.IsUnknown then
  begin
    AddNote(Text, UnknownHeads[List.Topic], List.Snapshot.LostCount);
    Exit;
  end;
  if (List.Topic = ltGrown) and (List.Count = 0) then
    AddCounts(Text, msNothingGrown, 0, 0)
  else
    AddCounts(Text, Heads[List.Topic], List.Blocks, List.Bytes);
  AddGroups(Text, List);
  AddTotals(Text, List);
  AddNotes(Text, List);
end;

end.
