/// The rules of events: targets of the reports, once or always, and the end of the program.
//
// Owns:       Report.Rules, but for TEventRule.Count, which LaneMM.Events counts.
// Callers:    EventRulesStart: once, before any other thread runs. EventRuleRead: any thread.
unit LaneMM.EventRules;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Text;

/// Sets the default of every kind: all reports go to file, stderr and callback; none ends the
/// program.
procedure EventRulesStart;
/// Reads `KIND:WORD:...` up to the end of the setting, e.g. `double-free:once:halt=3`; the kind
/// `all` means every kind. Words moves past the part that was read. Returns False, and changes
/// nothing, when a part is unknown; Words has not moved when that is the kind.
function EventRuleRead(var Words: PAnsiChar): Boolean;
/// Adds the names of all kinds, with commas between.
procedure EventRulesAddKinds(var Text: TText);
/// Adds what may follow a kind, with commas between.
procedure EventRulesAddAttributes(var Text: TText);

implementation

uses
  LaneMM.Bits, LaneMM.ReportState, LaneMM.SettingValues;

const
  Names: array[TEventKind] of PAnsiChar = ('leaks', 'double-free', 'invalid-free', 'write-before',
    'write-after', 'write-after-free', 'freed-call', 'wrong-size', 'uninitialised', 'guard',
    'bookkeeping', 'number', 'mix', 'allocation', 'free', 'limit',
    'corruption');
  AnyKind: PAnsiChar = 'all';
  // The targets, then what a rule says besides.
  Off = Ord(High(TEventTarget)) + 1;
  Attributes: array[0..Off + 3] of PAnsiChar = ('file', 'stderr', 'callback', 'syslog', 'off',
    'once', 'always', 'continue');
  HaltName: PAnsiChar = 'halt=';
  DefaultTargets = [etFile, etScreen, etCall];

procedure AddName(var Text: TText; Name: PAnsiChar);
begin
  TextAddChars(Text, Name);
  TextAdd(Text, ', ');
end;

procedure EventRulesAddKinds(var Text: TText);
var
  Kind: TEventKind;
begin
  for Kind := Low(TEventKind) to High(TEventKind) do
    AddName(Text, Names[Kind]);
  TextAddChars(Text, AnyKind);
end;

procedure EventRulesAddAttributes(var Text: TText);
var
  Index: Cardinal;
begin
  for Index := 0 to High(Attributes) do
    AddName(Text, Attributes[Index]);
  TextAddChars(Text, HaltName);
  TextAdd(Text, 'N (0 to 255)');
end;

procedure EventRulesStart;
var
  Kind: TEventKind;
begin
  for Kind := Low(TEventKind) to High(TEventKind) do
  begin
    Report.Rules[Kind] := Default(TEventRule);
    Report.Rules[Kind].Targets := DefaultTargets;
  end;
end;

// ---------------------------------------------------------------------------- words

function IsEnd(Sign: AnsiChar): Boolean; inline;
begin
  Result := Sign in [#0..' ', ',', ':'];
end;

// Returns whether Words continues with Name, in either case; if so, moves past it.
function Takes(var Words: PAnsiChar; Name: PAnsiChar): Boolean;
var
  Length: NativeInt;
begin
  Length := 0;
  while (Name[Length] <> #0) and (TextLower(Words[Length]) = Name[Length]) do
    Inc(Length);
  Result := Name[Length] = #0;
  if Result then
    Inc(Words, Length);
end;

// Takes where Name is a whole part between colons.
function TakesPart(var Words: PAnsiChar; Name: PAnsiChar): Boolean;
var
  Kept: PAnsiChar;
begin
  Kept := Words;
  Result := Takes(Words, Name) and IsEnd(Words^);
  if not Result then
    Words := Kept;
end;

// Reads `halt=N`, N from 0 to 255; returns whether it could.
function TakesHalt(var Words: PAnsiChar; var Rule: TEventRule): Boolean;
var
  Code: UInt64;
begin
  Result := Takes(Words, HaltName) and ValueDigits(Words, Code) and IsEnd(Words^)
    and (Code <= High(Byte));
  Rule.Halts := True;
  if Result then
    Rule.ExitCode := Code;
end;

// Reads one part after the kind. The first target that is named drops those that are not: Named
// holds the targets named so far.
function TakesWord(var Words: PAnsiChar; var Rule: TEventRule; var Named: TEventTargets): Boolean;
var
  Index: Cardinal;
begin
  Index := 0;
  while (Index <= High(Attributes)) and not TakesPart(Words, Attributes[Index]) do
    Inc(Index);
  Result := True;
  case Index of
    0..Off - 1:
      begin
        Include(Named, TEventTarget(Index));
        Rule.Targets := Named;
      end;
    Off: Rule.Targets := [];
    Off + 1: Rule.IsOnce := True;
    Off + 2: Rule.IsOnce := False;
    Off + 3: Rule.Halts := False;
  else
    Result := TakesHalt(Words, Rule);
  end;
end;

function ReadRule(var Words: PAnsiChar; Kind: TEventKind): Boolean;
var
  Rule: TEventRule;
  Named: TEventTargets;
begin
  Rule := Report.Rules[Kind];
  Named := [];
  Result := Words^ = ':';
  while Result and (Words^ = ':') do
  begin
    Inc(Words);
    Result := TakesWord(Words, Rule, Named);
  end;
  if not Result then
    Exit;
  // All but Count: another thread may count an event meanwhile.
  Report.Rules[Kind].Targets := Rule.Targets;
  Report.Rules[Kind].IsOnce := Rule.IsOnce;
  Report.Rules[Kind].Halts := Rule.Halts;
  Report.Rules[Kind].ExitCode := Rule.ExitCode;
end;

function EventRuleRead(var Words: PAnsiChar): Boolean;
var
  Kind: TEventKind;
  Rest: PAnsiChar;
begin
  for Kind := Low(TEventKind) to High(TEventKind) do
    if TakesPart(Words, Names[Kind]) then
      Exit(ReadRule(Words, Kind));
  if not TakesPart(Words, AnyKind) then
    Exit(False);
  for Kind := Low(TEventKind) to High(TEventKind) do
  begin
    Rest := Words;
    Result := ReadRule(Rest, Kind);
  end;
  Words := Rest;
end;

end.
