/// Writes the profiles to files, in the formats that the settings name, or in another one.
//
// Owns:       nothing.
// Invariants: a file holds the profile of one process at one time: the numbers of the process and
//             of the report, from 1, are part of the file name.
// Callers:    any thread, at the end of the program, or in a signal handler.
unit LaneMM.Profile;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.SettingsState;

/// Writes the files and prints their paths to stderr. Returns False when a file could not be
/// written.
function ProfileWrite: Boolean;
/// ProfileWrite in one format alone, of opPprof to opJson.
function ProfileWriteAs(Format: TOption): Boolean;
/// Writes the files, and prints only what could not be written.
procedure ProfileWriteQuietly;

implementation

uses
  LaneMM.Bits, LaneMM.Atomic, LaneMM.Os, LaneMM.OsFiles, LaneMM.ReportState, LaneMM.LogFile,
  LaneMM.Text, LaneMM.ObserveState, LaneMM.Growth, LaneMM.Html, LaneMM.Pprof, LaneMM.ProfileData,
  LaneMM.ProfileJson, LaneMM.Speedscope;

const
  FileLimit = 64 shl 20;

type
  TAdd = procedure(var Text: TText; const Profile: TProfile);

  // The formats that are wanted.
  TFormats = array[opPprof..opJson] of Boolean;

  // A report while it is written.
  TReport = record
    Number: NativeUInt;    // from 1
    Formats: TFormats;
    IsQuiet: Boolean;      // prints only what could not be written
    Page, Data: TText;     // the formats that hold all profiles; without memory or not wanted: nil
    IsWritten: Boolean;    // no file failed
    LacksMemory: Boolean;  // there was no memory for a file
  end;

  // A file of folded stacks: a value, and the name of the file.
  TFolded = record
    Value: TProfileValue;
    Name: PAnsiChar;
  end;

const
  FoldedFiles: array[0..6] of TFolded = (
    (Value: pvContentions; Name: 'contention'), (Value: pvCopiedBytes; Name: 'growth'),
    (Value: pvAllocatedBytes; Name: 'heap'), (Value: pvInUseBytes; Name: 'heap-inuse'),
    (Value: pvPeakBytes; Name: 'heap-peak'), (Value: pvTemporaryBytes; Name: 'heap-temporary'),
    (Value: pvLeakedBytes; Name: 'heap-leaks'));

// Returns the formats that settings name; for an allocation profile without any, all that other
// programs read.
procedure ReadFormats(out Formats: TFormats);
var
  Format: TOption;
  IsNamed: Boolean;
begin
  IsNamed := not IsSet(opProfile);
  for Format := Low(Formats) to High(Formats) do
  begin
    Formats[Format] := IsSet(Format);
    IsNamed := IsNamed or Formats[Format];
  end;
  if not IsNamed then
    for Format := opPprof to opSpeedscope do
      Formats[Format] := True;
end;

// Deletes the files of older reports beside Path, which ends with Written: those which the setting
// does not keep, down to the first that is missing.
procedure DeleteOlder(var Path: TText; const Written: ShortString; Name, Extension: PAnsiChar;
  Number: NativeUInt);
var
  Start: NativeUInt;
begin
  if not IsSet(opKeep) then
    Exit;
  Start := TextLength(Path.Start) - Length(Written);
  while Number > Settings.Values[opKeep] do
  begin
    Path.Length := Start;
    TextAdd(Path, LogFileSuffix(Name, Number - Settings.Values[opKeep], Extension));
    TextAdd(Path, #0);
    if not OsFileDelete(Path.Start) then
      Exit;
    Dec(Number);
  end;
end;

procedure WriteFile(var Report: TReport; const Text: TText; Name, Extension: PAnsiChar);
const
  Outcomes: array[Boolean] of ShortString = ('cannot write profile ', 'profile written to ');
var
  Path: TText;
  Ending: ShortString;
  IsWritten: Boolean;
begin
  Ending := LogFileSuffix(Name, Report.Number, Extension);
  IsWritten := TextOpen(Path, OsPageSize) and LogFileCreate(Text, Ending, Path);
  if not (IsWritten and Report.IsQuiet) then
    TextSay(Outcomes[IsWritten], Path.Start, '');
  if IsWritten then
    DeleteOlder(Path, Ending, Name, Extension, Report.Number)
  else
    Report.IsWritten := False;
  TextClose(Path);
end;

function OpenText(var Report: TReport; out Text: TText): Boolean;
begin
  Result := TextOpen(Text, FileLimit);
  Report.LacksMemory := Report.LacksMemory or not Result;
end;

procedure WriteAs(var Report: TReport; const Profile: TProfile; Add: TAdd; Extension: PAnsiChar);
var
  Text: TText;
begin
  if OpenText(Report, Text) then
  begin
    Add(Text, Profile);
    WriteFile(Report, Text, ProfileNames[Profile.Kind], Extension);
  end;
  TextClose(Text);
end;

procedure WriteFolded(var Report: TReport; const Profile: TProfile);
var
  Text: TText;
  Index: Cardinal;
begin
  for Index := 0 to High(FoldedFiles) do
  begin
    if (FoldedFiles[Index].Value < ValueRanges[Profile.Kind].First)
      or (FoldedFiles[Index].Value > ValueRanges[Profile.Kind].Last) then
      Continue;
    if OpenText(Report, Text) then
    begin
      FoldedAdd(Text, Profile, FoldedFiles[Index].Value);
      if Text.Length > 0 then
        WriteFile(Report, Text, FoldedFiles[Index].Name, '.folded');
    end;
    TextClose(Text);
  end;
end;

// Writes a profile in the formats that have a file for each.
procedure WriteProfile(var Report: TReport; const Profile: TProfile);
begin
  if Report.Formats[opPprof] then
    WriteAs(Report, Profile, PprofAdd, '.pb.gz');
  if Report.Formats[opFolded] then
    WriteFolded(Report, Profile);
  if Report.Formats[opSpeedscope] then
    WriteAs(Report, Profile, SpeedscopeAdd, '.speedscope.json');
  if Report.Page.Start <> nil then
    ProfileJsonAdd(Report.Page, Profile);
  if Report.Data.Start <> nil then
    ProfileJsonAdd(Report.Data, Profile);
end;

procedure OpenAll(out Report: TReport; const Formats: TFormats);
begin
  Report := Default(TReport);
  Report.Formats := Formats;
  Report.IsWritten := True;
  Report.Number := FetchAdd(Observe.ReportCount, 1) + 1;
  GrowthFlush;
  if Formats[opHtml] and OpenText(Report, Report.Page) then
  begin
    HtmlOpen(Report.Page);
    ProfileJsonBegin(Report.Page, Report.Number);
  end;
  if Formats[opJson] and OpenText(Report, Report.Data) then
    ProfileJsonBegin(Report.Data, Report.Number);
end;

procedure CloseAll(var Report: TReport);
begin
  if Report.Page.Start <> nil then
  begin
    ProfileJsonEnd(Report.Page);
    HtmlClose(Report.Page, pgProfiles);
    WriteFile(Report, Report.Page, 'Profile', '.html');
  end;
  if Report.Data.Start <> nil then
  begin
    ProfileJsonEnd(Report.Data);
    WriteFile(Report, Report.Data, 'Profile', '.json');
  end;
  TextClose(Report.Page);
  TextClose(Report.Data);
end;

procedure WriteAll(var Report: TReport);
var
  Profile: TProfile;
  Kind: TProfileKind;
begin
  for Kind := Low(TProfileKind) to High(TProfileKind) do
  begin
    if ProfileOpen(Profile, Kind) then
      WriteProfile(Report, Profile);
    Report.LacksMemory := Report.LacksMemory or Profile.LacksMemory;
    ProfileClose(Profile);
  end;
  CloseAll(Report);
  if not Report.LacksMemory then
    Exit;
  Report.IsWritten := False;
  ReportSayLine('no memory for the profile: all or some of it is missing');
end;

function WriteIn(const Formats: TFormats): Boolean;
var
  Report: TReport;
begin
  OpenAll(Report, Formats);
  WriteAll(Report);
  if IsSet(opProfile) and (LoadAcquire(Observe.AllocatedBytes) = 0)
    and not (Formats[opHtml] or Formats[opJson]) then // these are written without samples, too
    ReportSayLine('no profile written: no block was sampled');
  Result := Report.IsWritten;
end;

function ProfileWrite: Boolean;
var
  Formats: TFormats;
begin
  ReadFormats(Formats);
  Result := WriteIn(Formats);
end;

function ProfileWriteAs(Format: TOption): Boolean;
var
  Formats: TFormats;
begin
  FillChar(Formats, SizeOf(Formats), 0);
  Formats[Format] := True;
  Result := WriteIn(Formats);
end;

procedure ProfileWriteQuietly;
var
  Formats: TFormats;
  Report: TReport;
begin
  ReadFormats(Formats);
  OpenAll(Report, Formats);
  Report.IsQuiet := True;
  WriteAll(Report);
end;

end.
