/// Reads what LaneMM and the tool `lanemm` write: leaks and profiles as JSON, errors of the event log.
//
// Source:  docs/leaks.md, docs/profile-data.md, docs/debugging.md; `lanemm state --json`.
// Errors:  ELaneIde with a text for the user.
// Callers: one thread at a time.
unit LaneIdeReading;

{$mode objfpc}{$H+}

interface

uses
  Classes, SysUtils, LaneIdeRows, LaneIdeReports;

type
  ELaneIde = class(Exception);

/// Adds what a file holds: JSON of leaks, of `lanemm why` or of a profile, or an event log.
procedure ReadFile(Report: TReport; const FileName: string);
/// Adds what the files of a run hold, in the folder of its log. An error is raised after all are read.
procedure ReadFolder(Report: TReport; const Folder: string; Kind: TRunKind);
/// Adds JSON of leaks, of `lanemm why` or of a profile.
procedure ReadJson(Report: TReport; const Text: string);
/// Adds the memory errors of an event log.
procedure ReadLog(Report: TReport; Lines: TStrings);
/// Replaces the view of the running program by what `lanemm state --contents --json` printed. Before is
/// that of the first time, with which growth is compared; nil: this is the first time.
procedure ReadLive(Report: TReport; const Text: string; Before: TRow);
/// Replaces the view of what holds its memory by what `lanemm why --json` printed.
procedure ReadHeld(Report: TReport; const Text: string);

implementation

uses
  fpjson, jsonparser, LaneIdeWords;

type
  TFrame = record
    Name, FileName: string;
    Line: Integer;
    IsLibrary: Boolean;
  end;
  // The innermost first.
  TFrames = array of TFrame;

// ---------------------------------------------------------------------------- frames

// Returns the number of the innermost frame of the program with a line; else 0.
function OwnFrame(const Frames: TFrames): Integer;
begin
  for Result := 0 to High(Frames) do
    if (Frames[Result].Line > 0) and not Frames[Result].IsLibrary then
      Exit;
  Result := 0;
end;

procedure AddAmounts(Row: TRow; const Amounts: TAmounts);
var
  Column: Integer;
begin
  for Column := 0 to MostAmounts - 1 do
    Inc(Row.Amounts[Column], Amounts[Column]);
end;

// Adds amounts to the row of a frame below Row, and to the rows of its callers below that.
// Returns the row of the frame.
function AddCallers(Row: TRow; const Frames: TFrames; First: Integer;
  const Amounts: TAmounts): TRow;
var
  Number: Integer;
begin
  Result := nil;
  if First > High(Frames) then
  begin
    Result := Row.Obtain(rsUnknownPlace, '', 0);
    AddAmounts(Result, Amounts);
    Exit;
  end;
  for Number := First to High(Frames) do
  begin
    Row := Row.Obtain(Frames[Number].Name, Frames[Number].FileName, Frames[Number].Line);
    AddAmounts(Row, Amounts);
    if Result = nil then
      Result := Row;
  end;
end;

// ---------------------------------------------------------------------------- leaks

function LeakFrames(Stack: TJSONArray): TFrames;
var
  Number: Integer;
  Frame: TJSONObject;
begin
  Result := nil;
  SetLength(Result, Stack.Count);
  for Number := 0 to Stack.Count - 1 do
  begin
    Frame := Stack.Objects[Number];
    Result[Number].Name := Frame.Get('routine', Frame.Get('module', '?'));
    Result[Number].FileName := Frame.Get('file', '');
    Result[Number].Line := Frame.Get('line', 0);
    Result[Number].IsLibrary := False; // those of Free Pascal have no lines
  end;
end;

// Adds blocks of a group that have a backtrace: below the line the group, below that its callers.
procedure AddLeakStack(View: TView; Group, Place: TJSONObject);
var
  Frames: TFrames;
  Own: Integer;
  Amounts: TAmounts;
  Row: TRow;
begin
  Frames := LeakFrames(Place.Arrays['stack']);
  Amounts := Default(TAmounts);
  Amounts[0] := Place.Get('bytes', Int64(0));
  Amounts[1] := Place.Get('blocks', Int64(0));
  Own := OwnFrame(Frames);
  if Length(Frames) = 0 then
    Row := View.Root.Obtain(rsUnknownPlace, '', 0)
  else
    Row := View.Root.Obtain(Frames[Own].Name, Frames[Own].FileName, Frames[Own].Line);
  AddAmounts(Row, Amounts);
  Row := Row.Obtain(Group.Get('name', ''), Row.FileName, Row.Line);
  AddAmounts(Row, Amounts);
  if Own + 1 <= High(Frames) then
    AddCallers(Row, Frames, Own + 1, Amounts);
end;

procedure AddLeakPlaces(View: TView; Group: TJSONObject);
var
  Places, Stacks: TJSONArray;
  Number, Other: Integer;
begin
  Places := Group.Arrays['places'];
  for Number := 0 to Places.Count - 1 do
  begin
    Stacks := Places.Objects[Number].Get('stacks', TJSONArray(nil));
    if Stacks = nil then
      AddLeakStack(View, Group, Places.Objects[Number])
    else
      for Other := 0 to Stacks.Count - 1 do
        AddLeakStack(View, Group, Stacks.Objects[Other]);
  end;
end;

// Gives a row the name of a group, and the line that allocated most of it.
procedure NameGroup(Row: TRow; Group: TJSONObject; IsCycle: Boolean);
var
  Frames: TFrames;
  Own: Integer;
begin
  Row.Text := Group.Get('name', '');
  if IsCycle then
    Row.Text := Format(rsCycle, [Row.Text]);
  if Group.Arrays['places'].Count = 0 then
    Exit;
  Frames := LeakFrames(Group.Arrays['places'].Objects[0].Arrays['stack']);
  Own := OwnFrame(Frames);
  if Length(Frames) = 0 then
    Exit;
  Row.FileName := Frames[Own].FileName;
  Row.Line := Frames[Own].Line;
end;

// Adds what the rows below retain.
procedure SumRetained(Row: TRow);
var
  Number: Integer;
begin
  for Number := 0 to Row.Count - 1 do
  begin
    SumRetained(Row[Number]);
    Inc(Row.Amounts[0], Row[Number].Amounts[0]);
  end;
end;

// Returns the groups by their numbers.
function GroupsByNumber(Groups: TJSONArray): TFPList;
var
  Number, Position: Integer;
begin
  Result := TFPList.Create;
  for Number := 0 to Groups.Count - 1 do
  begin
    Position := Groups.Objects[Number].Get('group', Number + 1);
    if (Position < 0) or (Position > 1 shl 24) then
      Continue;
    while Result.Count <= Position do
      Result.Add(nil);
    Result[Position] := Groups.Objects[Number];
  end;
end;

// Adds a tree of retainers, with what each row retains.
procedure AddRetainerTree(Root: TRow; Tree, GroupList: TJSONArray);
var
  Rows, Groups: TFPList;
  Number, Parent: Integer;
  Entry: TJSONObject;
  Row: TRow;
begin
  Groups := GroupsByNumber(GroupList);
  Rows := TFPList.Create;
  try
    for Number := 0 to Tree.Count - 1 do
    begin
      Entry := Tree.Objects[Number];
      Parent := Entry.Get('parent', 0);
      if (Parent < 0) or (Parent > Number) then
        raise ELaneIde.CreateFmt('retainerTree[%d].parent is %d', [Number, Parent]);
      if Parent = 0 then
        Row := Root.Add('')
      else
        Row := TRow(Rows[Parent - 1]).Add('');
      Rows.Add(Row);
      Parent := Entry.Get('group', 0);
      if (Parent <= 0) or (Parent >= Groups.Count) or (Groups[Parent] = nil) then
        raise ELaneIde.CreateFmt('retainerTree[%d].group is %d', [Number, Parent]);
      NameGroup(Row, TJSONObject(Groups[Parent]), Entry.Get('cycle', False));
      Row.Amounts[0] := Entry.Get('bytes', Int64(0));
      Row.Amounts[1] := Row.Amounts[0];
      Row.Amounts[2] := Entry.Get('blocks', Int64(0));
    end;
  finally
    Rows.Free;
    Groups.Free;
  end;
  SumRetained(Root);
end;

procedure AddGroups(View: TView; Groups: TJSONArray);
var
  Number: Integer;
  Row: TRow;
begin
  for Number := 0 to Groups.Count - 1 do
  begin
    Row := View.Root.Add('');
    NameGroup(Row, Groups.Objects[Number], False);
    Row.Amounts[0] := Groups.Objects[Number].Get('retained', Int64(0));
    Row.Amounts[1] := Groups.Objects[Number].Get('bytes', Int64(0));
    Row.Amounts[2] := Groups.Objects[Number].Get('blocks', Int64(0));
  end;
end;

// Returns bytes with their unit.
function SizeText(Bytes: Int64): string;
begin
  Result := BytesText(Bytes);
  if Result = CountText(Bytes) then
    Result := Format(rsBytesOf, [Result]);
end;

// Returns the sum of a report: blocks, bytes, and what it left out.
function LeakSummary(Json: TJSONObject): string;
var
  Part: TJSONObject;
begin
  Result := Format(rsLeakSum, [CountText(Json.Get('blocks', Int64(0))),
    SizeText(Json.Get('bytes', Int64(0)))]);
  Part := Json.Get('suppressed', TJSONObject(nil));
  if (Part <> nil) and (Part.Get('blocks', Int64(0)) > 0) then
    Result := Result + Format(rsSuppressed, [CountText(Part.Get('blocks', Int64(0)))]);
  if Json.Get('notExamined', Int64(0)) > 0 then
    Result := Result + Format(rsNotExamined, [CountText(Json.Get('notExamined', Int64(0)))]);
end;

procedure ReadLeaks(Report: TReport; Json: TJSONObject);
var
  Groups, Tree: TJSONArray;
  Number: Integer;
begin
  Groups := Json.Arrays['groups'];
  Tree := Json.Get('retainerTree', TJSONArray(nil));
  if Tree = nil then
    AddGroups(Report.Views[vkRetained], Groups)
  else
    AddRetainerTree(Report.Views[vkRetained].Root, Tree, Groups);
  for Number := 0 to Groups.Count - 1 do
    AddLeakPlaces(Report.Views[vkLeakLines], Groups.Objects[Number]);
  Report.Views[vkRetained].Summary := LeakSummary(Json);
  Report.Views[vkLeakLines].Summary := Report.Views[vkRetained].Summary;
  Report.Views[vkRetained].Advice := rsNoLeaks;
  Report.Views[vkLeakLines].Advice := rsNoLeaks;
end;

// Replaces the view of what holds memory.
procedure TakeHeld(View: TView; Json: TJSONObject);
var
  Root: TRow;
begin
  Root := TRow.Create;
  try
    AddRetainerTree(Root, Json.Arrays['retainerTree'], Json.Arrays['groups']);
    View.TakeRows(Root);
    Root := nil;
  finally
    Root.Free;
  end;
  View.Summary := Format(rsHeldSum, [IntToStr(Json.Get('process', Int64(0))),
    SizeText(Json.Get('bytes', Int64(0))), CountText(Json.Get('blocks', Int64(0)))]);
end;

// ---------------------------------------------------------------------------- profiles

type
  // A profile of the file, and where its columns are.
  TProfile = record
    Json: TJSONObject;
    Frames, Sites, Columns: TJSONArray;
  end;

  // One of its sites, and which of its frames is that of the program.
  TSite = record
    Json: TJSONObject;
    Frames: TFrames;
    Own: Integer;
  end;

  TSiteReader = procedure(Report: TReport; const Profile: TProfile; const Site: TSite);

function ProfileOf(Json: TJSONObject): TProfile;
begin
  Result.Json := Json;
  Result.Frames := Json.Arrays['frames'];
  Result.Sites := Json.Arrays['sites'];
  Result.Columns := Json.Arrays['columns'];
end;

// Returns the value of a site in the column of this name; 0 without such a column.
function SiteValue(const Profile: TProfile; Site: TJSONObject; const Column: string): Int64;
var
  Number: Integer;
begin
  for Number := 0 to Profile.Columns.Count - 1 do
    if Profile.Columns.Objects[Number].Get('name', '') = Column then
      Exit(Site.Arrays['values'].Int64s[Number]);
  Result := 0;
end;

function SiteFrames(const Profile: TProfile; Site: TJSONObject): TFrames;
var
  Stack: TJSONArray;
  Number: Integer;
  Frame: TJSONObject;
begin
  Stack := Site.Arrays['stack'];
  Result := nil;
  SetLength(Result, Stack.Count);
  for Number := 0 to Stack.Count - 1 do
  begin
    Frame := Profile.Frames.Objects[Stack.Integers[Stack.Count - 1 - Number]];
    Result[Number].Name := Frame.Get('name', '?');
    Result[Number].FileName := Frame.Get('file', '');
    Result[Number].Line := Frame.Get('line', 0);
    Result[Number].IsLibrary := Frame.Get('library', 0) <> 0;
  end;
end;

// Adds a site to the classes: below each class its lines.
procedure AddSiteClasses(Report: TReport; const Profile: TProfile; const Site: TSite);
var
  Classes, Parts, Part: TJSONArray;
  Number: Integer;
  Amounts: TAmounts;
  Row: TRow;
begin
  Classes := Profile.Json.Get('classes', TJSONArray(nil));
  Parts := Site.Json.Get('classes', TJSONArray(nil));
  if (Classes = nil) or (Parts = nil) then
    Exit;
  for Number := 0 to Parts.Count - 1 do
  begin
    Part := Parts.Arrays[Number];
    if Part.Int64s[3] = 0 then
      Continue; // none of this class is in use
    Amounts := Default(TAmounts);
    Amounts[0] := Part.Int64s[4];
    Amounts[1] := Part.Int64s[3];
    Amounts[2] := Part.Int64s[2];
    Amounts[3] := Part.Int64s[1];
    Row := Report.Views[vkClasses].Root.Obtain(
      Classes.Objects[Part.Integers[0]].Get('name', '?'), '', 0);
    AddAmounts(Row, Amounts);
    AddCallers(Row, Site.Frames, Site.Own, Amounts);
  end;
end;

// Returns the values of a site in these columns.
function SiteAmounts(const Profile: TProfile; const Site: TSite;
  const Columns: array of string): TAmounts;
var
  Number: Integer;
begin
  Result := Default(TAmounts);
  for Number := 0 to High(Columns) do
    Result[Number] := SiteValue(Profile, Site.Json, Columns[Number]);
end;

procedure AddHeapSite(Report: TReport; const Profile: TProfile; const Site: TSite);
begin
  // In the order of the amounts from InUseBytes on.
  AddCallers(Report.Views[vkLines].Root, Site.Frames, Site.Own, SiteAmounts(Profile, Site,
    ['inuse_space', 'inuse_objects', 'peak_space', 'alloc_space', 'alloc_objects']));
  AddSiteClasses(Report, Profile, Site);
end;

procedure AddGrowthSite(Report: TReport; const Profile: TProfile; const Site: TSite);
var
  Amounts: TAmounts;
  Row: TRow;
begin
  Amounts := SiteAmounts(Profile, Site, ['copied_space', 'reallocs']);
  Row := Report.Views[vkGrowth].Root;
  if Length(Site.Frames) = 0 then
    Row := Row.Obtain(Site.Json.Get('grew', '?'), '', 0)
  else
    Row := Row.Obtain(Format(rsGrew, [Site.Json.Get('grew', '?'), Site.Frames[Site.Own].Name]),
      Site.Frames[Site.Own].FileName, Site.Frames[Site.Own].Line);
  AddAmounts(Row, Amounts);
  Row.Note := Site.Json.Get('advice', '');
  AddCallers(Row, Site.Frames, Site.Own, Amounts);
end;

procedure AddLockSite(Report: TReport; const Profile: TProfile; const Site: TSite);
var
  Row: TRow;
begin
  Row := AddCallers(Report.Views[vkLocks].Root, Site.Frames, Site.Own,
    SiteAmounts(Profile, Site, ['contentions', 'remote_frees', 'taken_locks']));
  if Row.Amounts[1] >= Row.Amounts[2] then
    Row.Note := rsAdviceRemote
  else
    Row.Note := rsAdviceLock;
end;

procedure ReadSites(Report: TReport; const Profile: TProfile; Add: TSiteReader);
var
  Number: Integer;
  Site: TSite;
begin
  for Number := 0 to Profile.Sites.Count - 1 do
  begin
    Site.Json := Profile.Sites.Objects[Number];
    Site.Frames := SiteFrames(Profile, Site.Json);
    Site.Own := OwnFrame(Site.Frames);
    Add(Report, Profile, Site);
  end;
end;

procedure ReadProfiles(Report: TReport; Json: TJSONObject);
var
  Profiles: TJSONArray;
  Head: TJSONObject;
  Number: Integer;
  Profile: TProfile;
begin
  Head := Json.Objects['head'];
  Profiles := Json.Arrays['profiles'];
  Report.Views[vkClasses].Advice := rsNoSamples;
  Report.Views[vkLines].Advice := rsNoSamples;
  Report.Views[vkGrowth].Advice := rsNoGrowth;
  Report.Views[vkLocks].Advice := rsNoLocks;
  for Number := 0 to Profiles.Count - 1 do
  begin
    Profile := ProfileOf(Profiles.Objects[Number]);
    case Profile.Json.Get('kind', '') of
      'heap': ReadSites(Report, Profile, @AddHeapSite);
      'growth': ReadSites(Report, Profile, @AddGrowthSite);
      'contention': ReadSites(Report, Profile, @AddLockSite);
    end;
  end;
  if Report.Views[vkLines].Root.Count > 0 then
    Report.Views[vkClasses].Advice := rsNothingInUse;
  Report.Views[vkLines].Summary := Format(rsHeapSum, [SizeText(Head.Get('used', Int64(0))),
    CountText(Head.Get('samples', Int64(0)))]);
  Report.Views[vkClasses].Summary := Report.Views[vkLines].Summary;
end;

// ---------------------------------------------------------------------------- JSON

// Returns the object that Text is; the caller frees it.
function ParseObject(const Text: string): TJSONObject;
var
  Data: TJSONData;
begin
  Data := GetJSON(Text);
  if Data is TJSONObject then
    Exit(TJSONObject(Data));
  Data.Free;
  raise ELaneIde.Create('no object');
end;

procedure ReadJson(Report: TReport; const Text: string);
var
  Json, Head: TJSONObject;
begin
  Json := ParseObject(Text);
  try
    Head := Json;
    if Json.Get('topic', '') = 'leaks' then
      ReadLeaks(Report, Json)
    else if Json.Get('topic', '') = 'held' then
      TakeHeld(Report.Views[vkHeld], Json)
    else if Json.Get('format', '') = 'lanemm' then
    begin
      if Json.Get('version', 0) <> 1 then
        raise ELaneIde.CreateFmt('version %d', [Json.Get('version', 0)]);
      Head := Json.Objects['head'];
      ReadProfiles(Report, Json);
    end
    else
      raise ELaneIde.Create('neither leaks nor a profile');
    Report.IsEmpty := False;
    Report.Head := Format(rsHead, [ExtractFileName(Head.Get('program', '?')),
      IntToStr(Head.Get('process', Int64(0)))]);
  finally
    Json.Free;
  end;
end;

// ---------------------------------------------------------------------------- errors

// Returns whether Text begins with an address of 8 or 16 digits and two blanks, as a frame does.
function IsFrame(const Text: string): Boolean;
var
  Digits: Integer;
begin
  Digits := 0;
  while (Digits < Length(Text)) and (Text[Digits + 1] in ['0'..'9', 'a'..'f']) do
    Inc(Digits);
  Result := ((Digits = 8) or (Digits = 16)) and (Copy(Text, Digits + 1, 2) = '  ');
  // A line of the dump has pairs of digits there.
  if Result and (Length(Text) > Digits + 5) then
    Result := not ((Text[Digits + 3] in ['0'..'9', 'a'..'f'])
      and (Text[Digits + 4] in ['0'..'9', 'a'..'f']) and (Text[Digits + 5] in [' ', '*']));
end;

// Splits a frame, `ADDRESS  ROUTINE  Unit.pas:12`, into name and place.
procedure AddFrame(Row: TRow; const Text: string);
var
  Rest, Place: string;
  Cut, Line: Integer;
begin
  Rest := Trim(Copy(Text, Pos('  ', Text), MaxInt));
  Cut := Pos('  ', Rest);
  if Cut = 0 then
  begin
    Row.Add(Rest);
    Exit;
  end;
  Place := Trim(Copy(Rest, Cut, MaxInt));
  Row := Row.Add(Copy(Rest, 1, Cut - 1));
  Cut := Pos(' ', Place);
  if Cut > 0 then
    SetLength(Place, Cut - 1); // such as ` (inlined)`
  Cut := LastDelimiter(':', Place);
  if (Cut > 0) and TryStrToInt(Copy(Place, Cut + 1, MaxInt), Line) then
  begin
    Row.FileName := Copy(Place, 1, Cut - 1);
    Row.Line := Line;
  end;
end;

// Returns whether the first line of a report is that of a memory error.
function IsError(const Title: string): Boolean;
const
  Others: array[0..5] of string = ('Memory leaks', 'Memory in use', 'Memory growth',
    'No memory growth', 'Allocation log', 'Soft memory limit');
var
  Start: string;
begin
  for Start in Others do
    if Copy(Title, 1, Length(Start)) = Start then
      Exit(False);
  Result := Title <> '';
end;

// Gives an error the first line of the program in the part that says where it was seen: the last one.
procedure PlaceError(Error: TRow);
var
  Part, Number: Integer;
begin
  for Part := Error.Count - 1 downto 0 do
    for Number := 0 to Error[Part].Count - 1 do
      if Error[Part][Number].Line > 0 then
      begin
        Error.FileName := Error[Part][Number].FileName;
        Error.Line := Error[Part][Number].Line;
        Exit;
      end;
end;

procedure ReadLog(Report: TReport; Lines: TStrings);
const
  Start = 'LaneMM: process ';
var
  Number: Integer;
  Text: string;
  Error, Part: TRow;
begin
  Error := nil;
  Part := nil;
  for Number := 0 to Lines.Count - 1 do
  begin
    Text := Lines[Number];
    if (Copy(Text, 1, 2) <> '  ') and (Error <> nil) then
    begin
      PlaceError(Error);
      Error := nil;
    end;
    if (Copy(Text, 1, Length(Start)) = Start) and (Number + 1 < Lines.Count)
      and IsError(Lines[Number + 1]) then
      Continue;
    if (Number > 0) and (Copy(Lines[Number - 1], 1, Length(Start)) = Start) and IsError(Text) then
    begin
      Error := Report.Views[vkErrors].Root.Add(Text);
      Part := Error;
    end
    else if Error <> nil then
      if IsFrame(Trim(Text)) then
        AddFrame(Part, Trim(Text))
      else
        Part := Error.Add(Trim(Text));
  end;
  if Error <> nil then
    PlaceError(Error);
end;

// ---------------------------------------------------------------------------- a running program

// Adds a row with bytes and blocks, and their growth since Before.
procedure AddLive(Group: TRow; const Text: string; Json: TJSONObject; Before: TRow);
var
  Row, Known: TRow;
begin
  Row := Group.Add(Text);
  Row.Amounts[1] := Json.Get('bytes', Int64(0));
  Row.Amounts[2] := Json.Get('blocks', Int64(0));
  if Before = nil then
    Exit;
  Row.Amounts[0] := Row.Amounts[1];
  Known := Before.Find(Group.Text, '', 0);
  if Known <> nil then
    Known := Known.Find(Text, '', 0);
  if Known <> nil then
    Dec(Row.Amounts[0], Known.Amounts[1]);
end;

procedure AddLiveRows(Root: TRow; Json: TJSONObject; Before: TRow);
var
  List: TJSONArray;
  Group: TRow;
  Number: Integer;
begin
  Group := Root.Add(rsContents);
  List := Json.Arrays['contents'];
  for Number := 0 to List.Count - 1 do
    AddLive(Group, List.Objects[Number].Get('name', '?'), List.Objects[Number], Before);
  Group := Root.Add(rsSizes);
  List := Json.Arrays['classes'];
  for Number := 0 to List.Count - 1 do
    AddLive(Group, Format(rsSizeClass, [CountText(List.Objects[Number].Get('blockSize', 0))]),
      List.Objects[Number], Before);
  AddLive(Group, rsLarge, Json.Objects['large'], Before);
  Group := Root.Add(rsThreads);
  List := Json.Arrays['threads'];
  for Number := 0 to List.Count - 1 do
    if List.Objects[Number].Get('ended', False) then
      AddLive(Group, rsEndedThread, List.Objects[Number], Before)
    else
      AddLive(Group, Format(rsThread, [IntToStr(List.Objects[Number].Get('thread', Int64(0))),
        List.Objects[Number].Get('name', '')]), List.Objects[Number], Before);
end;

procedure ReadLive(Report: TReport; const Text: string; Before: TRow);
var
  Json, Totals: TJSONObject;
  Root: TRow;
  View: TView;
  Number, Part, Column: Integer;
begin
  Json := ParseObject(Text);
  Root := TRow.Create;
  try
    AddLiveRows(Root, Json, Before);
    for Number := 0 to Root.Count - 1 do
      for Part := 0 to Root[Number].Count - 1 do
        for Column := 0 to 2 do
          Inc(Root[Number].Amounts[Column], Root[Number][Part].Amounts[Column]);
    View := Report.Views[vkLive];
    Totals := Json.Objects['totals'];
    View.Summary := Format(rsLiveSum, [IntToStr(Json.Get('process', Int64(0))),
      SizeText(Totals.Get('usedBytes', Int64(0))), CountText(Totals.Get('blocks', Int64(0))),
      SizeText(Totals.Get('committedBytes', Int64(0))),
      SizeText(Totals.Get('peakBytes', Int64(0)))]);
    View.TakeRows(Root);
    Root := nil;
  finally
    Root.Free;
    Json.Free;
  end;
end;

procedure ReadHeld(Report: TReport; const Text: string);
var
  Json: TJSONObject;
begin
  Json := ParseObject(Text);
  try
    TakeHeld(Report.Views[vkHeld], Json);
  finally
    Json.Free;
  end;
end;

// ---------------------------------------------------------------------------- files

function TextOf(const FileName: string): string;
var
  Stream: TFileStream;
begin
  Result := '';
  Stream := TFileStream.Create(FileName, fmOpenRead or fmShareDenyNone);
  try
    SetLength(Result, Stream.Size);
    if Result <> '' then
      Stream.ReadBuffer(Result[1], Length(Result));
  finally
    Stream.Free;
  end;
end;

procedure ReadFile(Report: TReport; const FileName: string);
var
  Lines: TStringList;
begin
  try
    if LowerCase(ExtractFileExt(FileName)) = '.json' then
      ReadJson(Report, TextOf(FileName))
    else
    begin
      Lines := TStringList.Create;
      try
        Lines.Text := TextOf(FileName);
        ReadLog(Report, Lines);
        Report.Views[vkErrors].Advice := rsNoErrors;
      finally
        Lines.Free;
      end;
    end;
  except
    on Error: Exception do
      raise ELaneIde.CreateFmt(rsDamaged, [FileName, Error.Message]);
  end;
  Report.Sort;
end;

procedure ReadFolder(Report: TReport; const Folder: string; Kind: TRunKind);
var
  Found: TSearchRec;
  Names: TStringList;
  Name, Reason: string;
begin
  Reason := '';
  Names := TStringList.Create;
  try
    if FindFirst(IncludeTrailingPathDelimiter(Folder) + '*_MemoryManager_*', faAnyFile, Found) = 0 then
      repeat
        if ((ExtractFileExt(Found.Name) = '.json') or (ExtractFileExt(Found.Name) = '.txt'))
          and (Pos('.speedscope.', Found.Name) = 0) then // a profile for another tool
          Names.Add(IncludeTrailingPathDelimiter(Folder) + Found.Name);
      until FindNext(Found) <> 0;
    FindClose(Found);
    Names.Sort;
    for Name in Names do
      try
        ReadFile(Report, Name);
      except
        on Error: ELaneIde do
          Reason := Error.Message;
      end;
  finally
    Names.Free;
  end;
  if (Kind = rkDebug) and not Report.IsEmpty then
    Report.Views[vkErrors].Advice := rsNoErrors;
  if Reason <> '' then
    raise ELaneIde.Create(Reason);
end;

end.
