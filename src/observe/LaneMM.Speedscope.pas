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
  LaneMM.Layout, LaneMM.Symbols, LaneMM.Unwind, LaneMM.CallSites;

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
  TextAdd(Text, ' ');
  TextAddNumber(Text, Amount);
  TextAdd(Text, LineEnd);
end;

procedure FoldedAdd(var Text: TText; const Profile: TProfile; Value: TProfileValue);
var
  Index: Cardinal;
  Site: PSite;
  Amount: UInt64;
begin
  for Index := 0 to SiteLimit - 1 do
  begin
    Site := ProfileSite(Profile, Index);
    if Site = nil then
      Continue;
    Amount := ProfileValue(Profile, Site, Value);
    if Amount > 0 then
      FoldSite(Text, Profile, Site, Amount);
  end;
end;

// ---------------------------------------------------------------------------- JSON

// Adds a comma unless Text is at the start of a list.
procedure AddComma(var Text: TText);
begin
  if not (Text.Start[Text.Length - 1] in ['[', '{']) then
    TextAdd(Text, ',');
end;

procedure AddFrame(var Text: TText; Symbol: PSymbol);
var
  Name: TText;
  Characters: TPath;
begin
  // Through a text of its own: a file name may hold characters that JSON escapes.
  Characters := Default(TPath);
  Name := Default(TText);
  Name.Start := @Characters;
  Name.Capacity := High(Characters);
  ProfileAddName(Name, Symbol);
  AddComma(Text);
  TextAdd(Text, '{"name":"');
  TextAddJson(Text, @Characters);
  TextAdd(Text, '"');
  if Symbol^.Line > 0 then
  begin
    TextAdd(Text, ',"file":"');
    TextAddJson(Text, Symbol^.FileName);
    TextAdd(Text, '","line":');
    TextAddNumber(Text, Symbol^.Line);
  end;
  TextAdd(Text, '}');
end;

procedure AddSample(var Text: TText; const Profile: TProfile; Site: PSite);
var
  Stack: TBacktrace;
  Frame: NativeInt;
begin
  ProfileReadStack(Profile, Site, Stack);
  AddComma(Text);
  TextAdd(Text, '[');
  for Frame := NativeInt(Stack.Count) - 1 downto 0 do
  begin
    AddComma(Text);
    TextAddNumber(Text,
      SymbolsFind(Profile.Symbols, Stack.Frames[Frame]) - Profile.Symbols.Items);
  end;
  TextAdd(Text, ']');
end;

procedure AddSamples(var Text: TText; const Profile: TProfile);
var
  Index: Cardinal;
begin
  TextAdd(Text, ',"samples":[');
  for Index := 0 to SiteLimit - 1 do
    if ProfileSite(Profile, Index) <> nil then
      AddSample(Text, Profile, ProfileSite(Profile, Index));
  TextAdd(Text, ']');
end;

procedure AddWeights(var Text: TText; const Profile: TProfile; Value: TProfileValue);
var
  Index: Cardinal;
  Sum, Weight: UInt64;
begin
  Sum := 0;
  TextAdd(Text, ',"weights":[');
  for Index := 0 to SiteLimit - 1 do
    if ProfileSite(Profile, Index) <> nil then
    begin
      Weight := ProfileValue(Profile, ProfileSite(Profile, Index), Value);
      Inc(Sum, Weight);
      AddComma(Text);
      TextAddNumber(Text, Weight);
    end;
  TextAdd(Text, '],"startValue":0,"endValue":');
  TextAddNumber(Text, Sum);
end;

procedure AddValues(var Text: TText; const Profile: TProfile; Value: TProfileValue);
var
  UnitName: PAnsiChar;
begin
  UnitName := ValueKinds[Value].UnitName;
  if UnitName^ = 'c' then
    UnitName := 'none'; // the unit that speedscope has for counts
  AddComma(Text);
  TextAdd(Text, '{"type":"sampled","name":"');
  TextAddChars(Text, ValueKinds[Value].Name);
  TextAdd(Text, '","unit":"');
  TextAddChars(Text, UnitName);
  TextAdd(Text, '"');
  AddSamples(Text, Profile);
  AddWeights(Text, Profile, Value);
  TextAdd(Text, '}');
end;

procedure SpeedscopeAdd(var Text: TText; const Profile: TProfile);
var
  Index: NativeInt;
  Range: TValueRange;
  Value: TProfileValue;
begin
  Range := ValueRanges[Profile.Kind];
  TextAdd(Text, '{"$schema":"https://www.speedscope.app/file-format-schema.json","name":"');
  TextAddChars(Text, ProfileNames[Profile.Kind]);
  TextAdd(Text, '","activeProfileIndex":');
  TextAddNumber(Text, Ord(Range.Main) - Ord(Range.First));
  TextAdd(Text, ',"shared":{"frames":[');
  for Index := 0 to Profile.Symbols.Count - 1 do
    AddFrame(Text, @Profile.Symbols.Items[Index]);
  TextAdd(Text, ']},"profiles":[');
  for Value := Range.First to Range.Shown do
    AddValues(Text, Profile, Value);
  TextAdd(Text, ']}');
end;

end.
