/// Tests of the commands of lanemm: map, top, prom, record, diff, symbolize, core, and errors.
unit Test.Lanemm.Words;

{$mode delphi}{$H+}
{$pointermath on}

interface

uses
  Test.Lanemm.Tools;

type
  /// Core files of a program that has stopped itself, made by gcore of gdb.
  TCoreTests = class(TLanemmTest)
  private
    function CoreFile: string;
    function CopyWithCount(const FileName: string; Count: Word): Word;
  protected
    procedure SetUp; override;
  published
    procedure ACoreFileHasTheNumbersOfTheProcess;
    procedure AnAddressOfADeadProcessIsFound;
    procedure ACoreFileThatWasCutOffIsRefused;
    procedure ACoreFileThatWasCutOffAnywhereSaysSo;
    procedure ACoreFileOfAHugeProcessIsRead;
    procedure ACoreFileWithoutMemoryIsRefused;
    procedure CodeIsFoundWherePagesAreLarger;
    procedure OnlyFilesAreOpenedForACoreFile;
    procedure AMapIsMadeOfACoreFile;
  end;

  /// Commands that show numbers of a stopped program.
  TWordTests = class(TPlantedTest)
  private
    function CountOf(Symbol: AnsiChar; const Text: string): Integer;
  protected
    procedure SetUp; override;
  published
    procedure AMapShowsEachSliceOfLargeBlocks;
    procedure AMapByThreadNamesThreads;
    procedure AMapByClassShowsLetters;
    procedure AMapAsSvgIsWellFormed;
    procedure TopShowsClassesOnce;
    procedure MetricsPassPromtool;
    procedure MetricsOfAllProcessesAreLabelled;
    procedure AMetricsFileIsReplacedAtOnce;
    procedure ATimeLineHasALineEachTime;
    procedure ATimeLineEndsWithTheProcess;
  end;

  /// Commands that read files.
  TFileTests = class(TLanemmTest)
  published
    procedure StatesAreCompared;
    procedure DebugBlocksAreCompared;
    procedure FoldedStacksAreCompared;
    procedure ProfilesForPprofAreCompared;
    procedure AProfileIsTheSameInAllFormats;
    procedure FilesOfTwoKindsAreRefused;
    procedure FilesOfNoKnownKindAreRefused;
    procedure AProfileThatWasCutOffIsRefused;
    procedure FramesWithoutNamesGetThem;
    procedure InlinedRoutinesHaveALineEach;
    procedure NamesComeFromAFileOfDebugInformation;
    procedure AFileOfAnotherBuildIsNotUsed;
    procedure ANameMayHaveBlanks;
    procedure APlaceThatIsNotThereIsRefused;
    procedure AFileWithoutNamesIsNamed;
    procedure AModuleThatIsNotFoundIsNamed;
    procedure AnOffsetThatCannotBeIsNoError;
  end;

  /// What lanemm refuses, and how it says so.
  TRefusalTests = class(TPlantedTest)
  private
    function WithoutAttach(const Arguments: string): string;
  published
    procedure HelpNamesCommandsAndTheVersion;
    procedure EachCommandHasItsOwnHelp;
    procedure AnUnknownCommandIsRefused;
    procedure AReportIsFoundByItsNameAlone;
    procedure AnUnknownOptionIsRefused;
    procedure AMissingArgumentIsNamed;
    procedure WrongNumbersAreRefused;
    procedure AWordTooManyIsRefused;
    procedure NoSuchProcessIsRefused;
    procedure AProcessThatIsNotWaitedForHasEnded;
    procedure AProcessNotOnLaneMMIsRefused;
    procedure AnotherVersionIsRefused;
    procedure AnotherUsersProcessIsRefused;
    procedure RootWithoutCapabilitiesIsRefused;
    procedure TotalsNeedNoRightToAttach;
    procedure TotalsOfAStoppedProcessHaveTheirAge;
    procedure AFileThatIsNoCoreFileIsRefused;
  end;

implementation

uses
  SysUtils, Classes, fpJson, testregistry, DOM, XMLRead, BaseUnix, Ipc, LaneMM.Version,
  LaneMM.StatusPage;

const
  // Slices of three blocks of 1,000,000 bytes.
  LargeSlices = 3 * 16;

// ---------------------------------------------------------------------------- TCoreTests

var
  // One for all tests of core files, which are long.
  Planted: TPlanted;

function TCoreTests.CoreFile: string;
begin
  Result := Format('%score.%d', [Built, Planted.Id]);
end;

procedure TCoreTests.SetUp;
begin
  if Planted <> nil then
    Exit;
  Planted := TPlanted.Create('./Planted stop', '');
  Planted.AwaitStop;
  // The core files of the kernel may go to a program, or nowhere, as its core_pattern says.
  Shell(Format('gcore -o core %d', [Planted.Id]));
  Check(FileExists(CoreFile), 'gcore wrote a file');
end;

procedure ForgetCore;
begin
  if Planted <> nil then
    DeleteFile(Format('%score.%d', [Built, Planted.Id]));
  Planted.Free;
end;

procedure TCoreTests.ACoreFileHasTheNumbersOfTheProcess;
const
  Parts: array[0..8] of string = ('totals', 'classes', 'large', 'debug', 'contents', 'damage',
    'cachedRuns', 'returnedRuns', 'records');
var
  Live, Dead: TJSONObject;
  Part: string;
begin
  Live := CallForJson(Format('state %d --contents --damage --json', [Planted.Id]));
  Dead := CallForJson(Format('core %s --json', [CoreFile]));
  for Part in Parts do
    CheckEquals(Live.Elements[Part].AsJSON, Dead.Elements[Part].AsJSON, Part);
  Same(Planted.Id, Dead.Int64s['process'], 'number of the process');
  Live.Free;
  Dead.Free;
end;

procedure TCoreTests.AnAddressOfADeadProcessIsFound;
begin
  CallWell(Format('core %s --at %d --holders', [CoreFile, Planted.Number('alpha')]));
  Has('contents: Planted.TAlpha', Printed);
  Has(Format('Planted.TBeta at $%x, offset 8', [Planted.Number('beta')]), Printed);
end;

procedure TCoreTests.ACoreFileThatWasCutOffIsRefused;
begin
  Shell(Format('head -c 1000000 %s > cut.core', [CoreFile]));
  Call('core cut.core');
  Refused(7, 'cut off');
  Shell(Format('head -c 100 %s > cut.core', [CoreFile]));
  Call('core cut.core');
  Refused(7, 'cut off');
end;

// What is left may be enough for the numbers.
procedure TCoreTests.ACoreFileThatWasCutOffAnywhereSaysSo;
var
  Tenths: Integer;
begin
  for Tenths := 0 to 9 do
  begin
    Shell(Format('cp --sparse=always %s cut.core', [CoreFile]));
    Shell(Format('truncate -s $(($(stat -c %%s %s) * %d / 10)) cut.core', [CoreFile, Tenths]));
    Call('core cut.core');
    Check(ExitStatus in [0, 7], Format('exit code %d at %d tenths: %s', [ExitStatus, Tenths,
      Errors]));
    if Tenths > 0 then
      Has('cut off', Errors);
  end;
end;

// Writes a copy of the core file whose head says that it has so many segments; returns how many it had.
function TCoreTests.CopyWithCount(const FileName: string; Count: Word): Word;
const
  CountOffset = 56;
var
  Copy: TFileStream;
begin
  Shell(Format('cp --sparse=always %s %s', [CoreFile, FileName]));
  Copy := TFileStream.Create(Built + FileName, fmOpenReadWrite);
  Copy.Position := CountOffset;
  Result := Copy.ReadWord;
  Copy.Position := CountOffset;
  Copy.WriteWord(Count);
  Copy.Free;
end;

// The number of more than 65,534 segments stands in the first section.
procedure TCoreTests.ACoreFileOfAHugeProcessIsRead;
const
  SectionsOffset = 40;
  CountInSection = 44;
var
  Copy: TFileStream;
  Section: array[0..63] of Byte;
  Place: Int64;
begin
  FillChar(Section, SizeOf(Section), 0);
  PCardinal(@Section[CountInSection])^ := CopyWithCount('many.core', $FFFF);
  Copy := TFileStream.Create(Built + 'many.core', fmOpenReadWrite);
  Place := Copy.Seek(0, soEnd);
  Copy.WriteBuffer(Section, SizeOf(Section));
  Copy.Position := SectionsOffset;
  Copy.WriteQWord(Place);
  Copy.Free;
  CallWell('core many.core');
  Has('Planted.TAlpha', Printed);
end;

procedure TCoreTests.ACoreFileWithoutMemoryIsRefused;
begin
  CopyWithCount('empty.core', 0);
  Call('core empty.core');
  Refused(7, 'has no memory in it');
end;

// Where a segment of a file begins within a page, its mapping begins before it. The copy's note of mapped
// files is that of a system with pages of 16 KB.
procedure TCoreTests.CodeIsFoundWherePagesAreLarger;
const
  FileNote = 'ELIFCORE'#0#0#0#0;
  NoteSegment = 4;
  PageBytes = 16384;
var
  Copy: TFileStream;
  Segment: array[0..6] of UInt64;
  Notes: AnsiString;
  Note: PUInt64;
  Index: Integer;
  Found: Boolean;
begin
  Shell(Format('cp --sparse=always %s pages.core', [CoreFile]));
  Copy := TFileStream.Create(Built + 'pages.core', fmOpenReadWrite);
  Copy.Position := 64; // the first segment
  repeat
    Copy.ReadBuffer(Segment, SizeOf(Segment));
  until Cardinal(Segment[0]) = NoteSegment;
  SetLength(Notes, Segment[4]);
  Copy.Position := Segment[1];
  Copy.ReadBuffer(Notes[1], Length(Notes));
  Index := Pos(FileNote, Notes);
  AtLeast(1, Index, 'the note of mapped files');
  Note := @Notes[Index + Length(FileNote)];
  Found := False;
  for Index := 1 to Note[0] do
  begin
    Found := Found or (Note[3 * Index + 1] * Note[1] mod PageBytes <> 0);
    Note[3 * Index + 1] := Note[3 * Index + 1] * Note[1] div PageBytes;
  end;
  Note[1] := PageBytes;
  Check(Found, 'a mapping begins within a page');
  Copy.Position := Segment[1];
  Copy.WriteBuffer(Notes[1], Length(Notes));
  Copy.Free;
  CallWell(Format('core pages.core --at 0x%s', [Trim(Shell(Format(
    'sed -n ''s|-.* r-xp .*/libc[.-].*||p'' /proc/%d/maps', [Planted.Id])))]));
  Has('is in the code of', Printed);
  DeleteFile(Built + 'pages.core');
end;

// A pipe that has the name of a file which the process had mapped is not waited for.
procedure TCoreTests.OnlyFilesAreOpenedForACoreFile;
var
  Other: TPlanted;
begin
  Shell('rm -f Piped; cp Planted Piped');
  Other := TPlanted.Create('./Piped stop', '');
  try
    Other.AwaitStop;
    Shell(Format('gcore -o piped %d; rm Piped; mkfifo Piped', [Other.Id]));
    Shell(Format('timeout 60 %sbuild/lanemm core piped.%d', [Root, Other.Id]));
    Check(ExitStatus in [0, 7], Format('exit code %d', [ExitStatus]));
  finally
    Shell(Format('rm -f Piped piped.%d', [Other.Id]));
    Other.Free;
  end;
end;

procedure TCoreTests.AMapIsMadeOfACoreFile;
begin
  CallWell(Format('map %s --plain --width 142', [CoreFile]));
  Has('LLLLLLLLLLLLLLLL', Printed);
end;

// ---------------------------------------------------------------------------- TWordTests

procedure TWordTests.SetUp;
begin
  StartAndStop('./Planted stop', '');
end;

// Returns how often the symbol stands in the lines of a map.
function TWordTests.CountOf(Symbol: AnsiChar; const Text: string): Integer;
var
  Lines: TStringList;
  Line: string;
  Sign: AnsiChar;
begin
  Result := 0;
  Lines := TStringList.Create;
  Lines.Text := Text;
  for Line in Lines do
    if Line.StartsWith('$') then
      for Sign in Line.Substring(14) do
        Inc(Result, Ord(Sign = Symbol));
  Lines.Free;
end;

procedure TWordTests.AMapShowsEachSliceOfLargeBlocks;
begin
  CallWell(Format('map %d --plain', [Planted.Id]));
  Has('A character is 64.0 KB', Printed);
  Same(LargeSlices, CountOf('L', Printed), 'slices of large blocks');
  AtLeast(1, CountOf('#', Printed), 'full slices');
end;

procedure TWordTests.AMapByThreadNamesThreads;
begin
  CallWell(Format('map %d --plain --by thread', [Planted.Id]));
  Has(Format(' %d Planted', [Planted.Id]), Printed);
  Has('ended threads', Printed);
end;

procedure TWordTests.AMapByClassShowsLetters;
begin
  CallWell(Format('map %d --plain --by=class', [Planted.Id]));
  // h: 2,048 to 4,095 bytes, of which are 500 blocks of 3,072.
  AtLeast(400 * 3072 div 65536, CountOf('h', Printed), 'slices with blocks of 3,072 bytes');
end;

procedure TWordTests.AMapAsSvgIsWellFormed;
var
  Document: TXMLDocument;
begin
  CallWell(Format('map %d --svg=%smap.svg', [Planted.Id, Built]));
  ReadXMLFile(Document, Built + 'map.svg');
  CheckEquals('svg', string(Document.DocumentElement.TagName));
  AtLeast(20, Document.DocumentElement.GetElementsByTagName('rect').Count, 'rectangles');
  Document.Free;
end;

procedure TWordTests.TopShowsClassesOnce;
begin
  CallWell(Format('top %d --once --lines 3 --sort=used', [Planted.Id]));
  Has('large', Printed);
  Has(Format('process %d', [Planted.Id]), Printed);
  HasNot(#27, Printed);
end;

procedure TWordTests.MetricsPassPromtool;
begin
  CallWell(Format('prom %d --output=%smetrics.prom', [Planted.Id, Built]));
  CheckEquals('', Shell('promtool check metrics < metrics.prom'));
  Same(0, ExitStatus, 'exit code of promtool');
  Has(Format('lanemm_used_bytes{pid="%d",program="Planted"} %s', [Planted.Id,
    Planted.Value('used')]), Shell('cat metrics.prom'));
end;

procedure TWordTests.MetricsOfAllProcessesAreLabelled;
var
  Other: TPlanted;
begin
  Other := TPlanted.Create('./Planted stop', 'LANEMM=debug');
  try
    Other.AwaitStop;
    CallWell('prom');
    Has(Format('lanemm_up{pid="%d",program="Planted"} 1', [Planted.Id]), Printed);
    Has(Format('lanemm_up{pid="%d",program="Planted"} 1', [Other.Id]), Printed);
  finally
    Other.Free;
  end;
end;

procedure TWordTests.AMetricsFileIsReplacedAtOnce;
var
  Before: string;
begin
  WriteText('old.prom', 'old');
  Before := Shell('ln -f old.prom kept.prom; cat kept.prom');
  CallWell(Format('prom %d --output=%sold.prom', [Planted.Id, Built]));
  // The old file was not written to: its other name still shows it.
  CheckEquals(Before, Shell('cat kept.prom'));
  Has('lanemm_up', Shell('cat old.prom'));
  CheckEquals('', Shell('ls | grep new$'));
  Call(Format('prom %d --output=/nowhere/at/all.prom', [Planted.Id]));
  Refused(1, 'all.prom');
end;

procedure TWordTests.ATimeLineHasALineEachTime;
var
  Lines: TStringList;
begin
  CallWell(Format('record %d --every=10ms --lines=3', [Planted.Id]));
  Lines := TStringList.Create;
  Lines.Text := Printed;
  Same(4, Lines.Count, 'lines');
  Same(12, Length(Lines[0].Split([','])), 'columns of the head');
  Same(12, Length(Lines[3].Split([','])), 'columns of a line');
  CheckEquals(Planted.Value('used'), Lines[1].Split([','])[2]);
  Lines.Free;
end;

procedure TWordTests.ATimeLineEndsWithTheProcess;
begin
  Shell(Format('rm -f line.csv; (turns=0; until grep -q used_bytes line.csv || [ $turns -eq 600 ]; '
    + 'do turns=$((turns + 1)); sleep 0.1; done; kill -KILL %d) 2> killed & '
    + 'exec %sbuild/lanemm record %0:d --every=50ms --output=line.csv', [Planted.Id, Root]));
  Same(0, ExitStatus, 'exit code');
  Has('used_bytes', Shell('head -n 1 line.csv'));
end;

// ---------------------------------------------------------------------------- TFileTests

procedure TFileTests.StatesAreCompared;
var
  Planted: TPlanted;
begin
  Planted := TPlanted.Create('./Planted stop', '');
  Planted.AwaitStop;
  Shell(Format('%sbuild/lanemm state %d --contents --json > before.json', [Root, Planted.Id]));
  Planted.Free;
  Planted := TPlanted.Create('./Planted damage', '');
  Planted.AwaitStop;
  Shell(Format('%sbuild/lanemm state %d --contents --json > after.json', [Root, Planted.Id]));
  Planted.Free;
  // `damage` has 50 blocks of 7,000 bytes more, and one that does not look free any more.
  CallWell('diff before.json after.json');
  Has('+357.0 KB         +51', Printed);
  Has('data of 7168 bytes', Printed);
end;

procedure TFileTests.DebugBlocksAreCompared;
begin
  WriteText('before.json', '{"classes": [], "debug": {"blocks": 3, "bytes": 70}}');
  WriteText('after.json', '{"classes": [], "debug": {"blocks": 7, "bytes": 150}}');
  CallWell('diff before.json after.json');
  Has('       +80 B          +4        70 B       150 B  debug blocks', Printed);
end;

procedure TFileTests.FoldedStacksAreCompared;
begin
  WriteText('before.folded', 'main;Load;Parse 1000'#10'main;Draw 500');
  WriteText('after.folded', 'main;Load;Parse 9000'#10'main;Save 7');
  CallWell('diff before.folded after.folded');
  Has('    +8,000 B           0     1,000 B     9,000 B  Parse < Load < main', Printed);
  Has('      -500 B           0       500 B         0 B  Draw < main', Printed);
  Check(Pos('Parse', Printed) < Pos('Save', Printed), 'the largest growth comes first');
  Check(Pos('Save', Printed) < Pos('Draw', Printed), 'what fell comes last');
  CallWell('diff --folded before.folded after.folded');
  Has('main;Load;Parse 1000 9000'#10, Printed);
  Has('main;Draw 500 0'#10, Printed);
  WriteText('after.folded', 'red'#27'[31m 7');
  CallWell('diff before.folded after.folded');
  Has('red?[31m', Printed);
end;

procedure TFileTests.ProfilesForPprofAreCompared;
begin
  // Two profiles of one program: the second has allocated twice as much.
  Shell('rm -f Profiled_*.pb.gz; for times in 1 2; do LANEMM=profile,rate=1K ./Profiled $times; '
    + 'mv $(ls Profiled_*heap*.pb.gz) profile$times.pb.gz; done');
  Same(0, ExitStatus, 'profiles were written');
  CallWell('diff profile1.pb.gz profile2.pb.gz --value=alloc_space');
  Has('LOADDATA Profiled.lpr:', Printed);
  Has('+', Printed);
  Call('diff profile1.pb.gz profile2.pb.gz --value=nothing');
  Refused(2, 'inuse_space');
end;

procedure TFileTests.AProfileIsTheSameInAllFormats;
const
  Formats: array[0..2] of string = ('profile.html', 'profile.json', 'profile.folded');
var
  FileName, Line: string;
begin
  Shell('rm -f Profiled_*; LANEMM=profile,rate=1K,html,json,folded,pprof ./Profiled 1; '
    + 'mv $(ls Profiled_*Profile*.html) profile.html; mv $(ls Profiled_*Profile*.json) profile.json; '
    + 'mv $(ls Profiled_*heap.[0-9]*.folded) profile.folded; mv $(ls Profiled_*heap.*.pb.gz) '
    + 'profile.pb.gz');
  Same(0, ExitStatus, 'profiles were written');
  for FileName in Formats do
  begin
    // Each site that they have has the same bytes; folded stacks have no blocks.
    CallWell(Format('diff profile.pb.gz %s --value=alloc_space', [FileName]));
    for Line in Printed.TrimRight.Split([#10]) do
      Check(Line.StartsWith('      change ') or Line.StartsWith('         0 B '), Line);
    Has('  all', Printed);
  end;
  Call('diff profile.html profile.json --value=nothing');
  Refused(2, 'profile.html has no values `nothing`');
end;

procedure TFileTests.FilesOfTwoKindsAreRefused;
begin
  WriteText('sites.folded', 'main;Load 10');
  WriteText('contents.json', '{"contents": [{"name": "TAlpha", "blocks": 1, "bytes": 16}]}');
  WriteText('sizes.json', '{"classes": [{"blockSize": 16, "blocks": 1, "bytes": 16}]}');
  WriteText('inuse.json', '{"topic": "inUse", "groups": []}');
  WriteText('leaks.json', '{"topic": "leaks", "groups": []}');
  Call('diff sites.folded contents.json');
  Refused(2, 'sites.folded has call sites, contents.json has contents of blocks in use');
  Call('diff sizes.json contents.json');
  Refused(2, 'sizes.json has size classes');
  Call('diff inuse.json leaks.json');
  Refused(2, 'leaks.json has leaks');
  CallWell('diff contents.json inuse.json');
  Has('TAlpha', Printed);
end;

procedure TFileTests.FilesOfNoKnownKindAreRefused;
begin
  WriteText('text.txt', 'this is a text without numbers');
  WriteText('other.json', '{"a": 1}');
  WriteText('broken.json', '{"a": ');
  Call('diff text.txt text.txt');
  Refused(7, 'text.txt');
  Call('diff other.json other.json');
  Refused(7, 'without `contents`');
  Call('diff broken.json broken.json');
  Refused(7, 'broken.json');
  Call('diff nothing.json nothing.json');
  Refused(1, 'there is no file nothing.json');
  Shell('printf ''\037\213\010\000'' > broken.pb.gz');
  Call('diff broken.pb.gz broken.pb.gz');
  Refused(7, 'broken.pb.gz');
end;

procedure TFileTests.AProfileThatWasCutOffIsRefused;
begin
  Shell('rm -f Profiled_*.pb.gz; LANEMM=profile,rate=1K ./Profiled 1; '
    + 'head -c $(($(stat -c %s Profiled_*heap*.pb.gz) / 2)) Profiled_*heap*.pb.gz > cut.pb.gz');
  Same(0, ExitStatus, 'a profile was written');
  Call('diff cut.pb.gz cut.pb.gz');
  Refused(7, 'cut.pb.gz is damaged');
end;

procedure TFileTests.FramesWithoutNamesGetThem;
var
  Offset: string;
begin
  // The address of a routine out of the symbols of the program with debug information.
  Offset := Trim(Shell('nm Planted | grep -i makebetas | cut -d " " -f 1 | sed "s/^0*//"'));
  WriteText('log.txt', 'Allocated at'#10'  Planted+0x' + Offset + ' and more'#10'no frame');
  Shell('mkdir -p debug && cp Planted debug/');
  CallWell('symbolize log.txt debug');
  Has('Planted+0x' + Offset + '  PLANTED.MAKEBETAS  Planted.lpr:', Printed);
  Has(' and more'#10'no frame', Printed);
end;

procedure TFileTests.InlinedRoutinesHaveALineEach;
begin
  Shell('printf "static inline __attribute__((always_inline)) int inner(int x) {\nreturn x / 3;\n}\n'
    + 'int outer(int x) {\nreturn inner(x);\n}\nint main() {\nreturn outer(1);\n}\n" > Inlined.c; '
    + 'gcc -g -O1 -fno-ipa-cp -o Inlined Inlined.c');
  Same(0, ExitStatus, 'the program was built');
  Shell('nm Inlined | sed -n "s/^0*\(.*\) T outer/  Inlined+0x\1/p" > log.txt');
  CallWell('symbolize log.txt Inlined');
  Has('  inner  Inlined.c:2  (inlined)'#10'          outer  Inlined.c:5'#10, Printed);
end;

// As `fpc -Xg` and objcopy write it.
procedure TFileTests.NamesComeFromAFileOfDebugInformation;
const
  Offset = '$(nm Planted | grep -i makebetas | cut -d " " -f 1 | sed "s/^0*//")';
  Suffixes: array[0..1] of string = ('dbg', 'debug');
var
  Suffix: string;
begin
  Shell('rm -rf kept; mkdir -p kept; echo "  Planted+0x' + Offset + '" > kept/log.txt');
  for Suffix in Suffixes do
  begin
    Shell(Format('rm -f kept/Planted.*; objcopy --only-keep-debug Planted kept/Planted.%s',
      [Suffix]));
    Same(0, ExitStatus, 'debug information was kept');
    CallWell('symbolize kept/log.txt');
    Has('PLANTED.MAKEBETAS  Planted.lpr:', Printed);
    CallWell(Format('symbolize kept/log.txt kept/Planted.%s', [Suffix]));
    Has('PLANTED.MAKEBETAS  Planted.lpr:', Printed);
  end;
end;

// As the program itself would refuse it.
procedure TFileTests.AFileOfAnotherBuildIsNotUsed;
begin
  Shell('rm -rf shipped other; mkdir shipped other; objcopy --only-keep-debug Planted shipped/Planted.dbg; '
    + 'strip -o shipped/Planted Planted; objcopy --add-gnu-debuglink=shipped/Planted.dbg shipped/Planted; '
    + '(cat shipped/Planted.dbg; echo) > other/Planted.dbg; '
    + 'nm Planted | sed -n "s/^0*\(.*\) [Tt] .*MAKEBETAS.*/  Planted+0x\1/p" > shipped/log.txt');
  Same(0, ExitStatus, 'the files were made');
  CallWell('symbolize shipped/log.txt');
  Has('PLANTED.MAKEBETAS  Planted.lpr:', Printed);
  CallWell('symbolize shipped/log.txt other');
  HasNot('MAKEBETAS', Printed);
  Has('other/Planted.dbg is of another build than Planted', Errors);
end;

procedure TFileTests.ANameMayHaveBlanks;
begin
  Shell('rm -rf blanks; mkdir blanks; cp Planted "blanks/My Planted 2"; nm Planted | sed -n '
    + '"s/^0*\(.*\) [Tt] .*MAKEBETAS.*/  00000  My Planted 2+0x\1 grew\n  1. My Planted 2+0x\1/p" > blanks/log.txt');
  CallWell('symbolize blanks/log.txt');
  Same(2, Length(Printed.Split(['  PLANTED.MAKEBETAS  Planted.lpr:'])) - 1, 'frames ' + Printed);
end;

procedure TFileTests.APlaceThatIsNotThereIsRefused;
begin
  WriteText('log.txt', '  Planted+0x401000');
  Call('symbolize log.txt nowhere');
  Refused(1, 'there is no file or folder nowhere');
end;

procedure TFileTests.AFileWithoutNamesIsNamed;
begin
  WriteText('log.txt', '  PlantedStripped+0x401000');
  CallWell('symbolize log.txt');
  Has('PlantedStripped has no names for the frames of PlantedStripped', Errors);
  Has('  PlantedStripped+0x401000', Printed);
end;

procedure TFileTests.AModuleThatIsNotFoundIsNamed;
begin
  WriteText('log.txt', '  libmissing.so.3+0x1234');
  CallWell('symbolize log.txt');
  Has('libmissing.so.3', Errors);
  Has('libmissing.so.3+0x1234', Printed);
end;

procedure TFileTests.AnOffsetThatCannotBeIsNoError;
begin
  WriteText('log.txt', '  Planted+0x123456789abcdef0123456');
  CallWell('symbolize log.txt debug');
  Has('  Planted+0x123456789abcdef0123456', Printed);
end;

// ---------------------------------------------------------------------------- TRefusalTests

const
  CommandNames: array[0..11] of string = ('ps', 'top', 'state', 'map', 'core', 'prom', 'record',
    'diff', 'symbolize', 'do', 'report', 'run');

procedure TRefusalTests.HelpNamesCommandsAndTheVersion;
const
  Calls: array[0..1] of string = ('', 'help');
var
  Name, Each: string;
begin
  for Each in Calls do
  begin
    CallWell(Each);
    for Name in CommandNames do
      Has('  ' + Name + ' ', Printed);
  end;
  CallWell('--version');
  CheckEquals('lanemm ' + ThisVersion, Trim(Printed));
end;

procedure TRefusalTests.EachCommandHasItsOwnHelp;
var
  Name: string;
begin
  for Name in CommandNames do
  begin
    CallWell(Name + ' --help');
    Has('lanemm ' + Name + ' ', Printed);
    CallWell(Name + ' -h');
    Has('lanemm ' + Name + ' ', Printed);
  end;
end;

procedure TRefusalTests.AnUnknownCommandIsRefused;
begin
  Call('tops 1');
  Refused(2, 'there is no command `tops`; `lanemm help` lists them');
end;

procedure TRefusalTests.AReportIsFoundByItsNameAlone;
const
  Calls: array[0..2] of string = ('leaks 1', 'core FILE --leaks', 'state 1 --leaks');
var
  Words: string;
begin
  for Words in Calls do
  begin
    Call(Words);
    Refused(2, '`lanemm report PID leaks` reports that');
  end;
  Call('growth 1');
  Refused(2, '`lanemm report PID growth` reports that');
end;

procedure TRefusalTests.AnUnknownOptionIsRefused;
begin
  Call('ps --nothing');
  Refused(2, 'nothing');
end;

procedure TRefusalTests.AMissingArgumentIsNamed;
begin
  Call('state');
  Refused(2, 'PID is missing; see `lanemm ');
  Call('diff a');
  AtLeast(1, ExitStatus, 'exit code');
end;

procedure TRefusalTests.WrongNumbersAreRefused;
begin
  Call('state abc');
  Refused(2, '`abc` is not the number of a process');
  Call('do 99999999999 status');
  Refused(2, '`99999999999` is not the number of a process');
  Call('top 1 --every=soon');
  Refused(2, 'soon');
  Call('record 1 --lines=0');
  Refused(2, '--lines');
  Call('record 1 --every=9223372036854775807h');
  Refused(2, 'up to 596h');
  Call('run /tmp');
  Refused(1, 'there is no program `/tmp`');
  Call('run ./serverr --port=80');
  Refused(1, 'there is no program `./serverr`');
  Call('run units/Planted.o');
  Refused(1, '`units/Planted.o` is no program: it is not executable');
  Call('run Planted now');
  Refused(1, 'there is no program `Planted` on the path; did you mean `./Planted`?');
  Has('there is no file /none.so', Shell('LIBLANEMM=/none.so ../lanemm run /bin/true'));
  Same(1, ExitStatus, 'exit code');
end;

procedure TRefusalTests.AWordTooManyIsRefused;
const
  Calls: array[0..8] of string = ('ps more', 'top 1 more', 'state 1 more', 'map 1 more',
    'core a b more', 'prom 1 more', 'record 1 more', 'diff a b more', 'report 1 inuse more');
var
  Words: string;
begin
  for Words in Calls do
  begin
    Call(Words);
    Refused(2, '`more` is one word too many');
  end;
end;

procedure TRefusalTests.NoSuchProcessIsRefused;
begin
  Call('state 4194303');
  Refused(3, 'there is no process 4194303');
end;

procedure TRefusalTests.AProcessThatIsNotWaitedForHasEnded;
const
  Calls: array[0..7] of string = ('state %d', 'do %d status', 'report %d inuse', 'report %d leaks',
    'map %d', 'top %d --once', 'prom %d', 'record %d');
var
  Words: string;
begin
  StartAndStop('./Planted stop', '');
  Planted.Send(SIGKILL);
  while Pos('State:'#9'Z', Shell(Format('cat /proc/%d/status', [Planted.Id]))) = 0 do
    Sleep(1);
  for Words in Calls do
  begin
    Call(Format(Words, [Planted.Id]));
    Refused(3, Format('process %d has ended', [Planted.Id]));
  end;
end;

procedure TRefusalTests.AProcessNotOnLaneMMIsRefused;
begin
  Start('sh -c "echo ready 1; read line"', ''); // no exec after it is ready
  Call(Format('state %d', [Planted.Id]));
  Refused(4, 'does not run on LaneMM');
end;

// Its page has the layout 1 then.
procedure TRefusalTests.AnotherVersionIsRefused;
const
  Number = 'awk ''/SYSV00000000/ { print $5 }'' /proc/%d/maps';
  Calls: array[0..5] of string = ('state %d', 'do %d status', 'report %d leaks', 'map %d',
    'top %d --once', 'record %d');
var
  Words: string;
  Page: PStatusPage;
begin
  Start('./Planted churn', '');
  Page := shmat(StrToInt(Trim(Shell(Format(Number, [Planted.Id])))), nil, 0);
  Page^.Head.Layout := 1;
  shmdt(Page);
  for Words in Calls do
  begin
    Call(Format(Words, [Planted.Id]));
    Refused(6, Format('with layout 1 for 64 bits; this is the tool for layout %d and 64 bits',
      [PageLayout]));
  end;
  CallWell('ps');
  Has('with layout 1', Printed);
end;

procedure TRefusalTests.AnotherUsersProcessIsRefused;
begin
  StartAndStop('./Planted stop', '');
  if fpGetUid = 0 then
    Errors := Shell(Format('setpriv --reuid=65534 --regid=65534 --clear-groups %sbuild/lanemm '
      + 'state %d', [Root, Planted.Id]))
  else
  begin
    Call('state 1');
    Errors := Errors + Printed;
  end;
  Refused(5, 'not permitted to read the memory of process');
end;

procedure TRefusalTests.RootWithoutCapabilitiesIsRefused;
var
  Caller: string;
  Id: Integer;
begin
  StartAndStop('./Planted stop', '');
  Caller := 'setpriv --bounding-set=-all --inh-caps=-all ' + Root + 'build/lanemm';
  Id := Planted.Id;
  if fpGetUid <> 0 then
  begin
    Caller := Root + 'build/lanemm';
    Id := 1; // a process of root
  end;
  Errors := Shell(Format('%s state %d', [Caller, Id]));
  Refused(5, 'not permitted to read the memory of process');
  if fpGetUid = 0 then
    Has('lacks CAP_SYS_PTRACE', Errors);
  Errors := Shell(Format('%s do %d status', [Caller, Id]));
  Refused(5, 'may be asked by its user and by root only');
end;

// Calls lanemm where it may read files of a process and not its memory, as with Yama: the call that
// reads memory fails, and so does the one that leads to an address in /proc/PID/mem.
function TRefusalTests.WithoutAttach(const Arguments: string): string;
begin
  Result := Shell('strace -qq -o /dev/null -e inject=process_vm_readv,lseek:error=EPERM ' + Root
    + 'build/lanemm ' + Arguments);
end;

procedure TRefusalTests.TotalsNeedNoRightToAttach;
var
  Metrics: string;
begin
  Start('./Planted churn', '');
  Errors := WithoutAttach(Format('state %d', [Planted.Id]));
  Has('status page: used ', Errors);
  Refused(5, 'not permitted to read the memory of process');
  Has('* not permitted', WithoutAttach('ps'));
  Metrics := WithoutAttach(Format('prom %d', [Planted.Id]));
  Has(Format('lanemm_up{pid="%d",program="Planted"} 1', [Planted.Id]), Metrics);
  Has('lanemm_used_bytes{', Metrics);
  HasNot('lanemm_class_blocks{', Metrics);
end;

procedure TRefusalTests.TotalsOfAStoppedProcessHaveTheirAge;
begin
  Start('./Planted churn', '');
  CallWell(Format('do %d status', [Planted.Id]));
  Planted.Send(SIGSTOP);
  Planted.AwaitStop;
  Sleep(1100);
  Errors := WithoutAttach(Format('state %d', [Planted.Id]));
  Has(' s old', Errors);
  Refused(5, 'not permitted to read the memory of process');
end;

procedure TRefusalTests.AFileThatIsNoCoreFileIsRefused;
begin
  WriteText('text.core', 'no core file');
  Call('core text.core');
  Refused(7, 'text.core is not a core file');
  Call('core Planted');
  Refused(7, 'Planted is not a core file');
  Call('core nothing.core');
  Refused(1, 'there is no file nothing.core');
end;

initialization
  RegisterTest(TCoreTests);
  RegisterTest(TWordTests);
  RegisterTest(TFileTests);
  RegisterTest(TRefusalTests);
finalization
  ForgetCore;
end.
