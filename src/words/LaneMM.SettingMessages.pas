/// What the settings print: the help, and a line for each that is unknown, wrong or without effect.
//
// Owns:       nothing.
// Invariants: each message is one line; its text lies in pages of its own.
// Callers:    LaneMM.Settings, the C library. Any thread. A tool that asked for a change gets the
//             lines, otherwise stderr.
unit LaneMM.SettingMessages;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.SettingsState;

/// Prints all settings with their defaults.
procedure SettingsHelp;
/// Says that Word is no setting, and names Nearest if it is near: Distance is the number of
/// characters to insert, delete or replace.
procedure SettingSayUnknown(const Word, Source: ShortString; Nearest: TOption;
  Distance: Cardinal);
/// Says that the value of a setting is missing or wrong, and what is allowed. Setting points to its
/// name, Wrong to where the value could not be read.
procedure SettingSayWrong(Option: TOption; Setting, Wrong: PAnsiChar; const Source: ShortString);
/// Says that a setting cannot have the number Value.
procedure SettingSayNotAllowed(Option: TOption; Value: NativeUInt; const Source: ShortString);
/// Names those of Options that are set, in vain, as Needed is not.
procedure SettingSayWithoutEffect(const Options: TOptions; const Needed: ShortString);
/// Says that only the first ByteCount bytes of the settings are read.
procedure SettingSayCut(ByteCount: NativeUInt; const Source: ShortString);

implementation

uses
  LaneMM.ReportState, LaneMM.EventRules, LaneMM.Text, LaneMM.SettingTable, LaneMM.SettingValues;

const
  SmallText = 16384;

procedure AddPrefix(out Text: TText; const Source: ShortString);
begin
  TextOpen(Text, SmallText);
  TextAdd(Text, 'LaneMM: ');
  TextAdd(Text, Source);
  TextAdd(Text, ': ');
end;

// ---------------------------------------------------------------------------- help

procedure AddDefault(var Text: TText; const Option: TOptionText);
begin
  TextAdd(Text, ' (');
  TextAddChars(Text, OptionForms[Option.Kind].Initial);
  case Option.Kind of
    okNumber: TextAddNumber(Text, Option.Initial);
    okByte: TextAddHex(Text, Option.Initial, 2);
  end;
  TextAdd(Text, ')');
end;

procedure AddHelpLine(var Text: TText; const Option: TOptionText);
const
  HelpColumn = 22; // longer than the settings with their values but one
var
  Start: NativeUInt;
begin
  TextAdd(Text, '  ');
  Start := Text.Length;
  TextAddChars(Text, Option.Name);
  if Option.Kind <> okSwitch then
  begin
    TextAdd(Text, '=');
    TextAddChars(Text, OptionForms[Option.Kind].Words);
  end;
  repeat
    TextAdd(Text, ' ');
  until NativeUInt(Text.Length - Start) >= HelpColumn;
  TextAddChars(Text, Option.Help);
  AddDefault(Text, Option);
  TextAdd(Text, LineEnd);
end;

procedure SettingsHelp;
var
  Text: TText;
  Option: TOption;
begin
  TextOpen(Text, SmallText);
  TextAdd(Text, 'LaneMM: settings for the environment variable LANEMM, separated by commas,'#10);
  TextAdd(Text, 'or for the file <program>.lanemm; defaults in parentheses:'#10);
  for Option := Low(TOption) to High(TOption) do
    AddHelpLine(Text, OptionTexts[Option]);
  TextAdd(Text, 'SETTING=0 turns a setting off. Numbers may end in K, M or G.'#10);
  TextAdd(Text, 'RULE is a kind of event and attributes, with colons between.'#10'Kinds: ');
  EventRulesAddKinds(Text);
  TextAdd(Text, #10'Attributes: ');
  EventRulesAddAttributes(Text);
  ReportSayText(Text);
end;

// ---------------------------------------------------------------------------- messages

procedure SettingSayUnknown(const Word, Source: ShortString; Nearest: TOption;
  Distance: Cardinal);
const
  MostDistance = 3;
var
  Text: TText;
begin
  AddPrefix(Text, Source);
  TextAdd(Text, 'unknown setting `');
  TextAdd(Text, Word);
  TextAdd(Text, '`');
  // One change for each three characters: of short words most others are near.
  if (Distance <= MostDistance) and (Distance * 3 <= Cardinal(Length(Word)) + 1) then
    TextAddForm(Text, '; did you mean `%s`? ', NativeUInt(OptionTexts[Nearest].Name))
  else
    TextAdd(Text, '; ');
  TextAdd(Text, 'LANEMM=help lists all settings');
  ReportSayText(Text);
end;

// Adds a setting as it was given; one that is long is cut.
procedure AddSetting(var Text: TText; Setting: PAnsiChar);
const
  Most = 100;
var
  Length: NativeUInt;
begin
  Length := 0;
  while (Length < Most) and not ValueEnds(Setting[Length]) do
    Inc(Length);
  TextAdd(Text, '`');
  TextAddSome(Text, Setting, Length);
  if not ValueEnds(Setting[Length]) then
    TextAdd(Text, '...');
  TextAdd(Text, '`');
end;

procedure AddAllowed(var Text: TText; Option: TOption);
var
  Word: PAnsiChar;
begin
  TextAdd(Text, '; allowed: ');
  Word := OptionForms[OptionTexts[Option].Kind].Words;
  while Word^ <> #0 do
  begin
    if Word^ = '|' then
      TextAdd(Text, ', ')
    else
      TextAdd(Text, Word^);
    Inc(Word);
  end;
  if (OptionTexts[Option].Kind = okNumber) and (OptionHighest(Option) < High(NativeUInt)) then
    TextAddForm(Text, ' from %u to %u', OptionLowest(Option), OptionHighest(Option))
  else
    TextAddChars(Text, OptionForms[OptionTexts[Option].Kind].More);
end;

procedure SettingSayWrong(Option: TOption; Setting, Wrong: PAnsiChar; const Source: ShortString);
var
  Text: TText;
  Value: PAnsiChar;
begin
  Value := Setting;
  while not ValueEnds(Value^) and (Value^ <> '=') do
    Inc(Value);
  if Value^ = '=' then
    Inc(Value);
  AddPrefix(Text, Source);
  if ValueEnds(Value^) then
    TextAddForm(Text, 'missing value of `%s`', NativeUInt(OptionTexts[Option].Name))
  else
  begin
    TextAdd(Text, 'invalid value ');
    AddSetting(Text, Setting);
  end;
  if (OptionTexts[Option].Kind <> okRule) or ValueEnds(Value^) then
    AddAllowed(Text, Option)
  else if Wrong = Value then
  begin
    TextAdd(Text, ': unknown kind; allowed: ');
    EventRulesAddKinds(Text);
  end
  else
  begin
    TextAdd(Text, '; allowed after the kind: ');
    EventRulesAddAttributes(Text);
  end;
  ReportSayText(Text);
end;

procedure SettingSayNotAllowed(Option: TOption; Value: NativeUInt; const Source: ShortString);
var
  Text: TText;
begin
  AddPrefix(Text, Source);
  TextAddForm(Text, 'invalid value of `%s`: %u', NativeUInt(OptionTexts[Option].Name), Value);
  if Value > OptionHighest(Option) then
    TextAddForm(Text, ' is more than %u', OptionHighest(Option))
  else if Value < OptionLowest(Option) then
    TextAddForm(Text, ' is less than %u', OptionLowest(Option))
  else
    TextAdd(Text, ' is not a signal that a program can use; 12 is SIGUSR2');
  ReportSayText(Text);
end;

procedure SettingSayWithoutEffect(const Options: TOptions; const Needed: ShortString);
var
  Text: TText;
  Option: TOption;
  Separator: AnsiChar;
begin
  if not OptionsAreChanged(Options) then
    Exit;
  TextOpen(Text, SmallText);
  TextAdd(Text, 'LaneMM: no effect without ');
  TextAdd(Text, Needed);
  Separator := ':';
  for Option := Low(TOption) to High(TOption) do
    if (Option in Options) and OptionIsChanged(Option) then
    begin
      TextAdd(Text, Separator);
      TextAddForm(Text, ' `%s`', NativeUInt(OptionTexts[Option].Name));
      Separator := ',';
    end;
  ReportSayText(Text);
end;

procedure SettingSayCut(ByteCount: NativeUInt; const Source: ShortString);
var
  Text: TText;
begin
  AddPrefix(Text, Source);
  TextAddForm(Text, 'the settings after the first %u bytes are not read', ByteCount);
  ReportSayText(Text);
end;

end.
