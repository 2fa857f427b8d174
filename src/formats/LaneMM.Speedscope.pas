/// A profile as folded stacks, the input of flame graphs, and as JSON for speedscope.
//
// Owns:       nothing.
// Callers:    any thread.
// Source:     github.com/brendangregg/FlameGraph (stackcollapse); speedscope.app, file format.
unit LaneMM.Speedscope;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Text, LaneMM.ProfileData;

/// Adds one line per site that has some of the value: its frames, outermost first, and the value.
procedure FoldedAdd(var Text: TText; const Profile: TProfile; Value: TProfileValue);
/// Adds a JSON object with all values of the profile.
procedure SpeedscopeAdd(var Text: TText; const Profile: TProfile);

implementation

uses
  LaneMM.Json, LaneMM.ReportHead, LaneMM.Symbols, LaneMM.Unwind, LaneMM.CallSites;

// ---------------------------------------------------------------------------- folded

procedure FoldSite(var Text: TText; const Profile: TProfile; Site: PSite; Amount: UInt64);
var
  Stack: TBacktrace;
  Frame: NativeInt;
begin
  ProfileReadStack(Profile, Site, Stack);
  for Frame := NativeInt(Stack.Count) - 1 downto 0 do
  begin
    ProfileAddName(Text, SymbolsFind(Profile.Symbols, Stack.Frames[Frame]));
    if Frame > 0 then
      TextAdd(Text, ';');
  end;
  TextAddForm(Text, ' %u'#10, Amount);
end;

procedure FoldedAdd(var Text: TText; const Profile: TProfile; Value: TProfileValue);
var
  Site: PSite;
  Amount: UInt64;
begin
  Site := nil;
  while ProfileNext(Profile, Site) do
  begin
    Amount := ProfileValue(Profile, Site, Value);
    if Amount > 0 then
      FoldSite(Text, Profile, Site, Amount);
  end;
end;

// ---------------------------------------------------------------------------- JSON

procedure AddSamples(var Text: TText; const Profile: TProfile);
var
  Site: PSite;
begin
  JsonOpen(Text, 'samples', '[');
  Site := nil;
  while ProfileNext(Profile, Site) do
  begin
    JsonAddComma(Text);
    TextAdd(Text, '[');
    ProfileAddStack(Text, Profile, Site);
  end;
  TextAdd(Text, ']');
end;

procedure AddWeights(var Text: TText; const Profile: TProfile; Value: TProfileValue);
var
  Site: PSite;
  Sum, Weight: UInt64;
begin
  Sum := 0;
  JsonOpen(Text, 'weights', '[');
  Site := nil;
  while ProfileNext(Profile, Site) do
  begin
    Weight := ProfileValue(Profile, Site, Value);
    Inc(Sum, Weight);
    JsonAddItem(Text, Weight);
  end;
  TextAdd(Text, ']');
  JsonAddNumber(Text, 'startValue', 0);
  JsonAddNumber(Text, 'endValue', Sum);
end;

procedure AddValues(var Text: TText; const Profile: TProfile; Value: TProfileValue);
var
  UnitName: PAnsiChar;
begin
  UnitName := ValueKinds[Value].UnitName;
  if UnitName^ = 'c' then
    UnitName := 'none'; // the unit that speedscope has for counts
  JsonOpenItem(Text);
  JsonAddText(Text, 'type', 'sampled');
  JsonAddText(Text, 'name', ValueKinds[Value].Name);
  JsonAddText(Text, 'unit', UnitName);
  AddSamples(Text, Profile);
  AddWeights(Text, Profile, Value);
  TextAdd(Text, '}');
end;

// Adds what was measured, when and of which process.
procedure AddTitle(var Text: TText; const Profile: TProfile);
var
  Title: TText;
  Characters: array[0..511] of AnsiChar;
begin
  TextOpenAt(Title, @Characters, SizeOf(Characters));
  TextAddChars(Title, ProfileNames[Profile.Kind]);
  TextAdd(Title, ': ');
  HeadAddLine(Title);
  JsonAddText(Text, 'name', @Characters);
end;

procedure SpeedscopeAdd(var Text: TText; const Profile: TProfile);
var
  Index: NativeInt;
  Range: TValueRange;
  Value: TProfileValue;
begin
  Range := ValueRanges[Profile.Kind];
  TextAdd(Text, '{');
  JsonAddText(Text, '$schema', 'https://www.speedscope.app/file-format-schema.json');
  AddTitle(Text, Profile);
  JsonAddNumber(Text, 'activeProfileIndex', Ord(Range.Main) - Ord(Range.First));
  JsonOpen(Text, 'shared', '{');
  JsonOpen(Text, 'frames', '[');
  for Index := 0 to Profile.Symbols.Count - 1 do
  begin
    JsonOpenItem(Text);
    ProfileAddFrame(Text, @Profile.Symbols.Items[Index]);
    TextAdd(Text, '}');
  end;
  TextAdd(Text, ']}');
  JsonOpen(Text, 'profiles', '[');
  for Value := Range.First to Range.Shown do
    AddValues(Text, Profile, Value);
  TextAdd(Text, ']}');
end;

end.
