/// Tests of the commands of lanemm: map, top, prom, record, diff, symbolize, core, threads, and errors.
unit Test.Lanemm.Words;

{$mode delphi}{$H+}
{$pointermath on}

interface

uses
  Test.Lanemm.Tools;

type
  /// The segments in the head of an ELF file.
  TSegment = array[0..6] of UInt64;
  TSegments = array of TSegment;
  TChange = procedure(var Segments: TSegments);

  /// Core files of a program that has stopped itself, made by gcore of gdb.
  TCoreTests = class(TLanemmTest)
  private
    function CoreFile: string;
    function CopyWithCount(const FileName: string; Count: Word): Word;
    procedure ChangeSegments(const FileName: string; Change: TChange);
  protected
    procedure SetUp; override;
  published
    procedure ACoreFileHasTheNumbersOfTheProcess;
    procedure AnAddressOfADeadProcessIsFound;
    procedure ACoreFileThatWasCutOffIsRefused;
    procedure ACoreFileThatWasCutOffAnywhereSaysSo;
    procedure ACoreFileOfAHugeProcessIsRead;
    procedure SegmentsOfACoreFileComeInAnyOrder;
    procedure SegmentsThatCannotBeAreLeftOut;
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
    procedure AMapByClassShowsLetters;
    procedure AMapAsSvgIsWellFormed;
    procedure MetricsOfAllProcessesAreLabelled;
  end;

  /// What lanemm refuses, and how it says so.
  TRefusalTests = class(TPlantedTest)
  published
    procedure AnotherVersionIsRefused;
    procedure AnotherUsersProcessIsRefused;
    procedure RootWithoutCapabilitiesIsRefused;
  end;

implementation

uses
  SysUtils, Classes, fpJson, testregistry, Test.Cases, DOM, XMLRead, BaseUnix, Ipc,
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
  Refuses('core cut.core', 7, 'cut off');
  Shell(Format('head -c 100 %s > cut.core', [CoreFile]));
  Refuses('core cut.core', 7, 'cut off');
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

// Lets Change change the segments in the head of a copy.
procedure TCoreTests.ChangeSegments(const FileName: string; Change: TChange);
const
  SegmentsOffset = 64;
var
  Copy: TFileStream;
  Segments: TSegments;
begin
  SetLength(Segments, CopyWithCount(FileName, 1));
  CopyWithCount(FileName, Length(Segments));
  Copy := TFileStream.Create(Built + FileName, fmOpenReadWrite);
  Copy.Position := SegmentsOffset;
  Copy.ReadBuffer(Segments[0], Length(Segments) * SizeOf(TSegment));
  Change(Segments);
  Copy.Position := SegmentsOffset;
  Copy.WriteBuffer(Segments[0], Length(Segments) * SizeOf(TSegment));
  Copy.Free;
end;

procedure Reverse(var Segments: TSegments);
var
  Index: Integer;
  Moved: TSegment;
begin
  for Index := 0 to Length(Segments) div 2 - 1 do
  begin
    Moved := Segments[Index];
    Segments[Index] := Segments[High(Segments) - Index];
    Segments[High(Segments) - Index] := Moved;
  end;
end;

// Other programs than the system write core files, too.
procedure TCoreTests.SegmentsOfACoreFileComeInAnyOrder;
begin
  ChangeSegments('order.core', Reverse);
  CallWell('core order.core');
  Has('Planted.TAlpha', Printed);
  CallWell('report order.core threads');
  Has('Planted.lpr:', Printed);
  DeleteFile(Built + 'order.core');
end;

// From the start of memory to its end, and from the middle past it.
procedure Lengthen(var Segments: TSegments);
const
  Address = 2;
  Bytes = 5;
var
  Index: Integer;
begin
  for Index := 0 to High(Segments) do
    if Index mod 3 = 1 then
    begin
      Segments[Index][Address] := 0;
      Segments[Index][Bytes] := High(UInt64);
    end
    else if Index mod 3 = 2 then
      Segments[Index][Bytes] := High(UInt64) - 1000;
end;

procedure TCoreTests.SegmentsThatCannotBeAreLeftOut;
const
  Calls: array[0..3] of string = ('core long.core', 'report long.core threads', 'report long.core leaks',
    'map long.core');
var
  Arguments: string;
begin
  ChangeSegments('long.core', Lengthen);
  for Arguments in Calls do
  begin
    Shell(Format('timeout 60 %sbuild/lanemm %s', [Root, Arguments]));
    Check(ExitStatus in [0, 1, 4, 7], Format('exit code %d of %s', [ExitStatus, Arguments]));
  end;
  DeleteFile(Built + 'long.core');
end;

procedure TCoreTests.ACoreFileWithoutMemoryIsRefused;
begin
  CopyWithCount('empty.core', 0);
  Refuses('core empty.core', 7, 'has no memory in it');
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

// ---------------------------------------------------------------------------- TRefusalTests

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

initialization
  RegisterTest(TCoreTests);
  RegisterCases(TWordTests, 'lanemm/Word');
  RegisterCases(TPlantedTest, 'lanemm/File');
  RegisterCases(TRefusalTests, 'lanemm/Refusal');
  RegisterCases(TPlantedTest, 'lanemm/Thread');
finalization
  ForgetCore;
end.
