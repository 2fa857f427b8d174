/// Tests of LaneMM.Settings.
unit Test.Settings;

{$mode delphi}{$H+}

interface

uses
  Test.Tools, LaneMM.ReportState, LaneMM.SettingsState;

type
  TSettingsTests = class(TLaneTest)
  strict private
    Kept: TSettings;
    KeptEvents: TEventRules;
    procedure ExpectErrors(const Settings, Text: string);
    procedure ExpectLine(const Settings, Line: string);
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure WordSetsASwitch;
    procedure ZeroTakesAWordBack;
    procedure NumbersHaveUnits;
    procedure CapitalsDoNotMatter;
    procedure SeparatorsAreCommasBlanksAndLines;
    procedure CommentsAreSkipped;
    procedure UnknownWordIsRefusedAndTheOthersCount;
    procedure NumberWithoutValueIsRefused;
    procedure SwitchWithAWrongValueIsRefused;
    procedure HugeNumberIsRefused;
    procedure NumberOfBytesOfAGigabyteIsAccepted;
    procedure NumberThatNoWordHoldsIsTheHighest;
    procedure LongWordIsRefused;
    procedure PathWithoutValueIsRefusedAndTheOneBeforeStays;
    procedure ZeroRestoresTheDefaultOfAPath;
    procedure PathInQuotesMayHaveSeparators;
    procedure PathThatIsNoWholePathIsRefused;
    procedure UnknownWordNamesTheNearest;
    procedure UnknownWordWithAPathInQuotesIsOneLine;
    procedure UnknownWordThatIsNearNoneNamesNone;
    procedure InvalidValueIsNamedWithWhatIsAllowed;
    procedure InvalidRuleIsNamedWithWhatIsAllowed;
    procedure LongValueIsCutInItsMessage;
    procedure WordsThatMessagesAllowAreAccepted;
    procedure KindsAndAttributesThatMessagesAllowAreAccepted;
    procedure NumbersThatNothingCanMeanAreRefused;
    procedure RefusedNumberIsOneLine;
    procedure MessageOfARefusedDepthIsAboutDepths;
    procedure SettingThatNeedsAnotherTurnsItOn;
    procedure SettingWithoutEffectIsOneLine;
    procedure SettingOfDebugModeCountsForOthersThatUseIt;
    procedure HelpNamesEveryOption;
    procedure HelpListsKindsAndAttributesOfEvents;
    procedure RuleSetsWhatItNames;
    procedure RuleForAllSetsAll;
    procedure WrongRuleChangesNothing;
    procedure WordsOfHeaptrcFillWhatIsNotSet;
    procedure WordsOfHeaptrcChangeNothingThatIsSetToItsDefault;
    procedure WordsOfHeaptrcTurnNothingOn;
    procedure DisabledTakesBackDebugAndLeaks;
    procedure OffLeavesThePreviousManager;
    procedure FileBesideTheProgramIsRead;
    procedure ByteOrderMarkOfTheFileIsSkipped;
    procedure FileInUtf16IsNamed;
    procedure EnvironmentWinsOverTheFile;
    procedure FileThatIsTooLongIsCutWithALine;
    procedure VariableThatIsTooLongIsCutWithALine;
  end;

implementation

uses
  SysUtils, Classes, testregistry, Test.System, Test.Programs, LaneMM.Text, LaneMM.EventRules, LaneMM.HeapTrc,
  LaneMM.SettingTable, LaneMM.Settings;

function Planted: TTestProgram;
begin
  Result := TestProgram('WatchEvents');
end;

procedure TSettingsTests.SetUp;
begin
  Kept := Settings;
  KeptEvents := Report.Rules;
  Settings.Given := [];
  // Wrong words are intended here; the tests of programs check the messages.
  SilenceErrors;
end;

procedure TSettingsTests.TearDown;
begin
  Settings := Kept;
  Report.Rules := KeptEvents;
  RestoreErrors;
end;

// Returns whether all words are known; messages go to stderr.
function Reads(const Words: string): Boolean;
begin
  Result := SettingsRead(PAnsiChar(Words), 'test');
end;

procedure TSettingsTests.WordSetsASwitch;
begin
  AssertTrue(Reads('growth'));
  Same(1, Settings.Values[opGrowth], 'growth');
end;

procedure TSettingsTests.ZeroTakesAWordBack;
begin
  AssertTrue(Reads('growth,growth=0'));
  Same(0, Settings.Values[opGrowth], 'growth');
end;

procedure TSettingsTests.NumbersHaveUnits;
begin
  AssertTrue(Reads('rate=64K,least=2m'));
  Same(65536, Settings.Values[opRate], 'rate');
  Same(2097152, Settings.Values[opLeast], 'least');
end;

procedure TSettingsTests.CapitalsDoNotMatter;
begin
  AssertTrue(Reads('Top=7'));
  Same(7, Settings.Values[opTop], 'top');
end;

procedure TSettingsTests.SeparatorsAreCommasBlanksAndLines;
begin
  AssertTrue(Reads(',,top=5 least=6'#13#10'rate=7'#9));
  Same(5, Settings.Values[opTop], 'top');
  Same(6, Settings.Values[opLeast], 'least');
  Same(7, Settings.Values[opRate], 'rate');
end;

procedure TSettingsTests.CommentsAreSkipped;
begin
  AssertTrue(Reads('# top=1'#10'top=3'));
  Same(3, Settings.Values[opTop], 'top');
end;

procedure TSettingsTests.UnknownWordIsRefusedAndTheOthersCount;
begin
  AssertFalse(Reads('nonsense,top=4'));
  Same(4, Settings.Values[opTop], 'top');
end;

procedure TSettingsTests.NumberWithoutValueIsRefused;
begin
  AssertFalse(Reads('top'));
  AssertFalse(Reads('top='));
  AssertFalse(Reads('top=x'));
end;

procedure TSettingsTests.SwitchWithAWrongValueIsRefused;
begin
  AssertFalse(Reads('growth=yes'));
end;

procedure TSettingsTests.HugeNumberIsRefused;
begin
  AssertFalse(Reads('top=99999999999999999999999999'));
end;

procedure TSettingsTests.NumberOfBytesOfAGigabyteIsAccepted;
begin
  AssertTrue(Reads('limit=1073741824,quarantine=268435456,break=200000000,least=167772160'));
  Same(1 shl 30, Settings.Values[opLimit], 'limit');
  Same(1 shl 28, Settings.Values[opQuarantine], 'quarantine');
  Same(200000000, Settings.Values[opBreak], 'break');
  Same(167772160, Settings.Values[opLeast], 'least');
  AssertTrue(Reads('trace:number=200000000-300000000'));
  Same(300000000, Settings.Ranges[opTraceNumber].Last, 'last number');
end;

procedure TSettingsTests.NumberThatNoWordHoldsIsTheHighest;
const
  Wide: array[0..3] of string = ('limit=18446744073709551615', 'limit=99999999999999999999',
    'limit=18446744073709551609G', 'limit=17179869184G');
var
  Word: string;
begin
  for Word in Wide do
  begin
    AssertTrue(Word, Reads('limit=0,' + Word));
    Same(NativeInt(High(NativeUInt)), NativeInt(Settings.Values[opLimit]), Word);
  end;
end;

procedure TSettingsTests.LongWordIsRefused;
begin
  AssertFalse(Reads(StringOfChar('a', 5000)));
end;

procedure TSettingsTests.PathWithoutValueIsRefusedAndTheOneBeforeStays;
const
  Missing: array[0..4] of string = ('log=', 'syslog=', 'leaks:ignore=', 'record=', 'blackbox=');
var
  Word: string;
begin
  AssertTrue(Reads('log=some/Path.txt,syslog=some/socket,leaks:ignore=file,record=calls'));
  for Word in Missing do
    AssertFalse(Word, Reads(Word));
  AssertEquals('some/Path.txt', string(PAnsiChar(@Settings.LogPath)));
  AssertEquals('some/socket', string(PAnsiChar(@Settings.SyslogPath)));
  AssertEquals('file', string(PAnsiChar(@Settings.IgnorePath)));
  AssertEquals('calls', string(PAnsiChar(@Settings.RecordPath)));
  AssertTrue(Reads('log="",syslog="",leaks:ignore="",record=0'));
  AssertEquals('the default again', '', string(PAnsiChar(@Settings.LogPath)));
end;

procedure TSettingsTests.ZeroRestoresTheDefaultOfAPath;
begin
  AssertTrue(Reads('log=some/Path.txt,syslog=some/socket'));
  AssertTrue(Reads('log=0,syslog=0'));
  AssertEquals('', string(PAnsiChar(@Settings.LogPath)));
  AssertEquals('', string(PAnsiChar(@Settings.SyslogPath)));
  AssertTrue(Reads('log=./0'));
  AssertEquals('./0', string(PAnsiChar(@Settings.LogPath)));
end;

procedure TSettingsTests.PathInQuotesMayHaveSeparators;
begin
  AssertTrue(Reads('log="some folder/a, b",top=7'));
  AssertEquals('some folder/a, b', string(PAnsiChar(@Settings.LogPath)));
  Same(7, Settings.Values[opTop], 'the next setting');
  AssertFalse('no end', Reads('log="no end, top=8'));
  AssertEquals('some folder/a, b', string(PAnsiChar(@Settings.LogPath)));
end;

// One longer than 1,023 characters was cut without a word, and files had another name.
procedure TSettingsTests.PathThatIsNoWholePathIsRefused;
const
  Names: array[0..6] of string = ('log', 'syslog', 'leaks:ignore', 'record', 'blackbox', 'hide', 'trace:class');
  Most = 1023;
var
  Name, Long: string;
begin
  AssertTrue(Reads('log=a,syslog=a,leaks:ignore=a,record=a,blackbox=a,trace:class=a,limit=container:a'));
  Long := StringOfChar('p', Most);
  for Name in Names do
  begin
    AssertFalse(Name, Reads(Name + '=' + Long + 'p'));
    AssertFalse(Name, Reads(Name + '="' + Long + ' p"'));
    AssertFalse(Name, Reads(Name + '="b"c'));
  end;
  AssertFalse(Reads('limit=container:' + Long + 'p'));
  AssertEquals('a', string(PAnsiChar(@Settings.LogPath)));
  AssertEquals('a', string(PAnsiChar(@Settings.SyslogPath)));
  AssertEquals('a', string(PAnsiChar(@Settings.IgnorePath)));
  AssertEquals('a', string(PAnsiChar(@Settings.RecordPath)));
  AssertEquals('a', string(PAnsiChar(@Settings.BoxPath)));
  AssertEquals('a', string(PAnsiChar(@Settings.TraceClass)));
  AssertEquals('a', string(PAnsiChar(@Settings.GroupPath)));
  AssertTrue(Reads('log=' + Long + ',top=7'));
  AssertEquals(Long, string(PAnsiChar(@Settings.LogPath)));
  Same(7, Settings.Values[opTop], 'the next setting');
end;

procedure TSettingsTests.UnknownWordNamesTheNearest;
begin
  ExpectLine('contentoin', 'unknown setting `contentoin`; did you mean `contention`? LANEMM=help lists all settings');
end;

procedure TSettingsTests.UnknownWordWithAPathInQuotesIsOneLine;
begin
  ExpectLine('contentoin="some folder/a, top=b"', 'unknown setting `contentoin`; did you mean `contention`? '
    + 'LANEMM=help lists all settings');
end;

procedure TSettingsTests.UnknownWordThatIsNearNoneNamesNone;
const
  Far: array[0..4] of string = ('foo', 'x', 'fast', 'nothing-of-the-kind', 'tpo');
var
  Word: string;
begin
  for Word in Far do
    ExpectLine(Word, 'unknown setting `' + Word + '`; LANEMM=help lists all settings');
  ExpectLine('leak', 'unknown setting `leak`; did you mean `leaks`? LANEMM=help lists all settings');
end;

// Runs a program with Settings and expects this on stderr.
procedure TSettingsTests.ExpectErrors(const Settings, Text: string);
begin
  Planted.Run(Settings, ['none', '1']);
  AssertEquals(Text, Trim(Planted.Errors));
end;

// The same of a line about a word of the variable.
procedure TSettingsTests.ExpectLine(const Settings, Line: string);
begin
  ExpectErrors(Settings, 'LaneMM: LANEMM: ' + Line);
end;

procedure TSettingsTests.InvalidValueIsNamedWithWhatIsAllowed;
begin
  ExpectLine('debug,guard', 'missing value of `guard`; allowed: pages, sample:N, 0');
  ExpectLine('guard=page', 'invalid value `guard=page`; allowed: pages, sample:N, 0');
  ExpectLine('leaks:format=xml', 'invalid value `leaks:format=xml`; allowed: json, junit, heaptrc, html, 0');
  ExpectLine('erase=foo', 'invalid value `erase=foo`; allowed: free, return, new, 0');
  ExpectLine('erase=free=new', 'invalid value `erase=free=new`; allowed: free, return, new, 0');
  ExpectLine('fill=GG', 'invalid value `fill=GG`; allowed: XX, two hexadecimal digits');
  ExpectLine('check=often', 'invalid value `check=often`; allowed: N, always');
  ExpectLine('every=10x', 'invalid value `every=10x`; allowed: N, Nms, Ns, Nm, Nh, 24 days at most');
  ExpectLine('trace:size=9-1', 'invalid value `trace:size=9-1`; allowed: N, N-N from low to high');
  ExpectLine('top=x', 'invalid value `top=x`; allowed: N from 0 to 256');
  ExpectLine('rate=1T', 'invalid value `rate=1T`; allowed: N, also with K, M or G');
  ExpectLine('growth=yes', 'invalid value `growth=yes`; allowed: 1, 0');
  ExpectLine('log', 'missing value of `log`; allowed: PATH');
end;

procedure TSettingsTests.InvalidRuleIsNamedWithWhatIsAllowed;
begin
  ExpectLine('event=foo:off', 'invalid value `event=foo:off`: unknown kind; allowed: leaks, double-free, '
    + 'invalid-free, write-before, write-after, write-after-free, freed-call, wrong-size, uninitialised, '
    + 'guard, bookkeeping, number, mix, allocation, free, limit, corruption, all');
  ExpectLine('event=leaks:offf', 'invalid value `event=leaks:offf`; allowed after the kind: file, stderr, '
    + 'callback, syslog, off, once, always, continue, halt=N (0 to 255)');
  ExpectLine('event=all', 'invalid value `event=all`; allowed after the kind: file, stderr, '
    + 'callback, syslog, off, once, always, continue, halt=N (0 to 255)');
  ExpectLine('event', 'missing value of `event`; allowed: RULE, such as double-free:once:halt=3');
end;

procedure TSettingsTests.LongValueIsCutInItsMessage;
begin
  ExpectLine('guard=' + StringOfChar('p', 500), 'invalid value `guard=' + StringOfChar('p', 94)
    + '...`; allowed: pages, sample:N, 0');
end;

procedure TSettingsTests.WordsThatMessagesAllowAreAccepted;
var
  Option: TOption;
  Form: TOptionForm;
  Word: string;
begin
  for Option := Low(TOption) to High(TOption) do
    if OptionTexts[Option].Kind <> okRule then
    begin
      Form := OptionForms[OptionTexts[Option].Kind];
      for Word in string(Form.Words).Split(['|']) do
        AssertTrue(Word, Reads(OptionTexts[Option].Name + '=' + StringReplace(StringReplace(Word, 'N',
          '1', [rfReplaceAll]), 'XX', '7E', []).Replace('1AME', 'NAME'))
          or (Option = opSignal));
      if string(Form.More).StartsWith(', 0') then
        AssertTrue(Reads(OptionTexts[Option].Name + '=0'));
    end;
end;

// Splits what Add adds.
procedure ListOf(Words: TStringList; const Text: TText);
begin
  Words.CommaText := StringReplace(Copy(Text.Start, 1, Text.Length), 'N (0 to 255)', '7', []);
end;

procedure TSettingsTests.KindsAndAttributesThatMessagesAllowAreAccepted;
var
  Text: TText;
  Words: TStringList;
  Word: string;
begin
  Words := TStringList.Create;
  AssertTrue(TextOpen(Text, 16384));
  EventRulesAddKinds(Text);
  ListOf(Words, Text);
  Same(Ord(High(TEventKind)) + 2, Words.Count, 'kinds');
  for Word in Words do
    AssertTrue(Word, Reads('event=' + Word + ':off'));
  Text.Length := 0;
  EventRulesAddAttributes(Text);
  ListOf(Words, Text);
  Same(9, Words.Count, 'attributes');
  for Word in Words do
    AssertTrue(Word, Reads('event=leaks:' + Word));
  TextClose(Text);
  Words.Free;
end;

procedure TSettingsTests.NumbersThatNothingCanMeanAreRefused;
const
  Wrong: array[0..10] of string = ('debug=2', 'top=257', 'leaks:exit=256', 'leaks:dump=4097', 'debug:exit=256', 'signal=9', 'signal=11',
    'signal=19', 'signal=32', 'signal=65', 'signal=4294967308');
  Right: array[0..{$ifdef LINUX} 5 {$else} 3 {$endif}] of string = ('debug=1', 'top=256', 'leaks:exit=255',
    'signal=0' {$ifdef LINUX}, 'signal=12', 'signal=64' {$endif});
var
  Words: string;
begin
  for Words in Wrong do
    AssertFalse(Words, Reads(Words));
  for Words in Right do
    AssertTrue(Words, Reads(Words));
end;

procedure TSettingsTests.RefusedNumberIsOneLine;
begin
  ExpectLine('signal=11',
    'invalid value of `signal`: 11 is not a signal that a program can use; 12 is SIGUSR2');
  ExpectLine('top=999999', 'invalid value of `top`: 999999 is more than 256');
end;

procedure TSettingsTests.MessageOfARefusedDepthIsAboutDepths;
const
  Wrong: array[0..2] of string = ('depth', 'depth=', 'depth=x');
var
  Words: string;
begin
  ExpectLine('depth=0', 'invalid value of `depth`: 0 is less than 1');
  ExpectLine('depth=257', 'invalid value of `depth`: 257 is more than 256');
  for Words in Wrong do
  begin
    Planted.Run(Words, ['none', '1']);
    AssertTrue(Planted.Errors, Pos('; allowed: N from 1 to 256', Planted.Errors) > 0);
  end;
end;

procedure TSettingsTests.SettingThatNeedsAnotherTurnsItOn;
begin
  Planted.Run('leaks:exit=3', ['frees', '10']);
  Planted.EndedWith(3, 'two events are never freed');
  Has('Memory leaks: ', Planted.Errors);
  Planted.Run('leaks:format=json', ['none', '1']);
  AssertTrue('a file of leaks', Planted.Written('.json') <> '');
  Planted.Run('leaks:dump=8', ['frees', '10']);
  Has('WatchEvents.lpr:', Planted.Errors);
  Planted.Run('break=1', ['none', '1']);
  Has('WatchEvents', Planted.Errors);
  Planted.Run('trace,trace:most=2', ['none', '1']);
  AssertTrue('a log', Planted.Written('EventLog.txt') <> '');
  Planted.Run('folded,temporary=2', ['none', '1']);
  AssertTrue('a profile: folded', Planted.Written('.folded') <> '');
  Planted.Run('rate=1,json', ['none', '1']);
  AssertTrue('a profile: rate', Planted.Written('.json') <> '');
  Planted.Run('contention,rate=1,json', ['none', '1']);
  Has('"heap"', Planted.Written('.json'));
end;

procedure TSettingsTests.SettingWithoutEffectIsOneLine;
begin
  ExpectErrors('trace,mixes,check=5,debug=0',
    'LaneMM: no effect without `debug`: `check`, `trace`, `mixes`');
  ExpectErrors('leaks=0,leaks:exit=3', 'LaneMM: no effect without `leaks`: `leaks:exit`');
  Planted.Run('leaks,stacks=0,leaks:dump=8', ['none', '1']);
  AssertTrue(Planted.Errors, Pos('LaneMM: no effect without `stacks` or `debug`: `leaks:dump`'#10,
    AdjustLineBreaks(Planted.Errors, tlbsLF)) = 1);
  ExpectErrors('profile=0,pprof', 'LaneMM: no effect without `contention`, `growth` or `profile`: `pprof`');
  ExpectErrors('profile=0,rate=1', 'LaneMM: no effect without `profile`: `rate`');
  Planted.Run('trace,mixes,check=5,debug', ['none', '1']);
  AssertTrue(Planted.Errors, Pos('no effect', Planted.Errors) = 0);
end;

procedure TSettingsTests.SettingOfDebugModeCountsForOthersThatUseIt;
begin
  ExpectErrors('guard=sample:1M,quarantine=1M,debug:exit=3,mixes', '');
  ExpectErrors('guard=sample:1M,check=5', 'LaneMM: no effect without `debug`: `check`');
  ExpectErrors('erase=new,fill=AA', '');
end;

procedure TSettingsTests.HelpNamesEveryOption;
begin
  Planted.Run('help', ['none', '1', 'halt']);
  Planted.EndedWith(3, 'exit code: the program goes on');
  Has('  contention ', Planted.Errors);
  Has('  guard=pages|sample:N  guard pages ', Planted.Errors);
  Has('  top=N ', Planted.Errors);
  Has('(524288)', Planted.Errors);
end;

procedure TSettingsTests.HelpListsKindsAndAttributesOfEvents;
begin
  Planted.Run('help', ['none', '1']);
  AssertTrue(Pos('Kinds: leaks, double-free, ', Planted.Errors) > 0);
  AssertTrue(Pos(', corruption, all', Planted.Errors) > 0);
  AssertTrue(Pos('Attributes: file, stderr, callback, syslog, off, ', Planted.Errors) > 0);
end;

procedure TSettingsTests.RuleSetsWhatItNames;
begin
  AssertTrue(Reads('event=double-free:stderr:callback:once:halt=3'));
  AssertTrue(Report.Rules[evDoubleFree].Targets = [etScreen, etCall]);
  AssertTrue(Report.Rules[evDoubleFree].IsOnce);
  AssertTrue(Report.Rules[evDoubleFree].Halts);
  Same(3, Report.Rules[evDoubleFree].ExitCode, 'exit code');
  AssertTrue(Report.Rules[evInvalidFree].Targets = [etFile, etScreen, etCall]);
  AssertFalse(Report.Rules[evInvalidFree].IsOnce);
  AssertFalse(Report.Rules[evInvalidFree].Halts);
  AssertTrue(Reads('event=double-free:always:continue:off'));
  AssertTrue(Report.Rules[evDoubleFree].Targets = []);
  AssertFalse(Report.Rules[evDoubleFree].IsOnce);
  AssertFalse(Report.Rules[evDoubleFree].Halts);
end;

procedure TSettingsTests.RuleForAllSetsAll;
var
  Kind: TEventKind;
begin
  AssertTrue(Reads('event=all:file,top=3'));
  for Kind := Low(TEventKind) to High(TEventKind) do
    AssertTrue(Report.Rules[Kind].Targets = [etFile]);
  Same(3, Settings.Values[opTop], 'the word behind');
end;

procedure TSettingsTests.WrongRuleChangesNothing;
begin
  AssertFalse(Reads('event=double-free:once:halt=256'));
  AssertFalse(Reads('event=double-free:once:never'));
  AssertFalse(Reads('event=double-free'));
  AssertFalse(Reads('event=double-frees:once'));
  AssertFalse(Reads('event'));
  AssertFalse(Report.Rules[evDoubleFree].IsOnce);
end;

procedure TSettingsTests.WordsOfHeaptrcFillWhatIsNotSet;
begin
  AssertTrue(Reads('debug'));
  Settings.LogPath[0] := #0;
  HeapTrcRead('log=/tmp/a.trc keepreleased haltonnotreleased', '', 0);
  AssertEquals('/tmp/a.trc', string(PAnsiChar(@Settings.LogPath)));
  AtLeast(High(NativeInt), Settings.Values[opQuarantine], 'quarantine');
  Same(203, Settings.Values[opLeaksExit], 'exit code');
  AssertTrue(Reads('quarantine=1M,leaks:exit=9,log=/tmp/b'));
  HeapTrcRead('log=/tmp/a.trc keepreleased haltonnotreleased', '', 0);
  AssertEquals('/tmp/b', string(PAnsiChar(@Settings.LogPath)));
  Same(1 shl 20, Settings.Values[opQuarantine], 'quarantine that was set');
  Same(9, Settings.Values[opLeaksExit], 'exit code that was set');
end;

procedure TSettingsTests.WordsOfHeaptrcChangeNothingThatIsSetToItsDefault;
begin
  AssertTrue(Reads('debug,quarantine=16M,leaks:exit=0,log=""'));
  HeapTrcRead('log=/tmp/a.trc keepreleased haltonnotreleased', '', 0);
  Same(16 shl 20, Settings.Values[opQuarantine], 'quarantine');
  Same(0, Settings.Values[opLeaksExit], 'exit code');
  AssertTrue('log', Settings.LogPath[0] = #0);
end;

procedure TSettingsTests.WordsOfHeaptrcTurnNothingOn;
begin
  AssertTrue(Reads('debug=0,leaks=0'));
  Settings.LogPath[0] := #0;
  HeapTrcRead('log=/tmp/a.trc nohalt skipifnoleaks tail_size=8 printleakedblock unknown', '', 0);
  AssertTrue('path', Settings.LogPath[0] = #0);
  Same(0, Settings.Values[opDebug] or Settings.Values[opLeaks], 'words');
end;

procedure TSettingsTests.DisabledTakesBackDebugAndLeaks;
begin
  AssertTrue(Reads('debug,leaks'));
  HeapTrcDisable('keepreleased', '', 0);
  Same(1, Settings.Values[opDebug], 'debug with another word');
  HeapTrcDisable('nohalt disabled', '', 0);
  Same(0, Settings.Values[opDebug], 'debug');
  Same(0, Settings.Values[opLeaks], 'leaks');
end;

procedure TSettingsTests.OffLeavesThePreviousManager;
begin
  Planted.Run('off,contention', ['frees', '300']);
  Planted.EndedWith(0);
  AssertEquals('', Planted.Errors);
end;

// Runs a program with Settings and a file of settings beside it.
procedure RunWithFile(const Text, Settings: string);
var
  Path: string;
begin
  Path := Planted.WriteFile('WatchEvents.lanemm', Text);
  try
    Planted.Run(Settings, ['frees', '300']);
  finally
    DeleteFile(Path);
  end;
end;

procedure TSettingsTests.FileBesideTheProgramIsRead;
begin
  RunWithFile('contention # where do threads meet?', '');
  Has('1. 300 x', Planted.Errors);
end;

// Editors of Windows write such a file.
procedure TSettingsTests.ByteOrderMarkOfTheFileIsSkipped;
begin
  RunWithFile(#$EF#$BB#$BF'contention'#13#10, '');
  Has('1. 300 x', Planted.Errors);
  HasNot('unknown', Planted.Errors);
end;

procedure TSettingsTests.FileInUtf16IsNamed;
begin
  RunWithFile(#$FF#$FE'l'#0'e'#0'a'#0'k'#0's'#0#13#0#10#0, '');
  Has('LaneMM: settings file, UTF-16 and not UTF-8: unknown setting', Planted.Errors);
end;

procedure TSettingsTests.EnvironmentWinsOverTheFile;
begin
  RunWithFile('contention', 'contention=0');
  AssertEquals('', Planted.Errors);
end;

const
  Most = 4096;

// Settings and a comment, together Bytes long; then a setting.
function Padded(const First: string; Bytes: Integer; const Last: string): string;
begin
  Result := First + '#' + StringOfChar('-', Bytes - Length(First) - 2) + #10 + Last;
end;

procedure TSettingsTests.FileThatIsTooLongIsCutWithALine;
const
  Line = 'LaneMM: settings file: the settings after the first 4096 bytes are not read'#10;
begin
  RunWithFile(Padded('contention ', Most - 4, 'contention=0'), '');
  AssertTrue(Planted.Errors, Pos(Line, Planted.Errors) = 1);
  HasNot('unknown', Planted.Errors); // no half setting
  Has('1. 300 x', Planted.Errors); // the settings before
  RunWithFile(Padded('contention ', Most - 4, 'help'), 'help=0');
  AssertTrue(Planted.Errors, Pos('settings', Planted.Errors) = 0);
end;

procedure TSettingsTests.VariableThatIsTooLongIsCutWithALine;
const
  Line = 'LaneMM: LANEMM: the settings after the first 4096 bytes are not read';
begin
  Planted.Run(Padded('', Most - 4, 'contention'), ['frees', '300']);
  AssertEquals(Line, Trim(Planted.Errors));
  Planted.Run(Padded('', Most - 8, 'depth=16'), ['frees', '300']);
  AssertEquals('', Trim(Planted.Errors));
end;

initialization
  RegisterTest(TSettingsTests);
end.
