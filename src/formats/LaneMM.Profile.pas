/// Writes the profiles to files, in the formats that the settings name.
//
// Owns:       nothing.
// Invariants: a file holds the profile of one process at one time: the numbers of the process and
//             of the report, from 1, are part of the file name.
// Callers:    any thread, at the end of the program, or in a signal handler.
unit LaneMM.Profile;

{$I ../LaneMM.inc}

interface

/// Writes the files and prints their paths to stderr. Returns False when a file could not be
/// written.
function ProfileWrite: Boolean;
/// Writes the files, and prints only what could not be written.
procedure ProfileWriteQuietly;

implementation

uses
  LaneMM.Bits, LaneMM.Atomic, LaneMM.Os, LaneMM.OsFiles, LaneMM.ReportState, LaneMM.LogFile,
  LaneMM.Text, LaneMM.SettingsState, LaneMM.ObserveState, LaneMM.Growth, LaneMM.Html, LaneMM.Pprof,
  LaneMM.ProfileData, LaneMM.ProfileJson, LaneMM.Speedscope;

const
  FileLimit = 64 shl 20;

type
  TAdd = procedure(var Text: TText; const Profile: TProfile);

  // A report while it is written.
  TReport = record
    Number: NativeUInt;    // from 1
    IsQuiet: Boolean;      // prints only what could not be written
    Page, Data: TText;     // the formats that hold all profiles; without memory or not wanted: nil
    IsWritten: Boolean;    // no file failed
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

// Returns whether a format is wanted: one that a setting names; for an allocation profile without
// a named format, all that other programs read.
function IsWanted(Format: TOption): Boolean;
begin
  Result := IsSet(Format) or IsSet(opProfile) and not (IsSet(opPprof) or IsSet(opFolded)
    or IsSet(opSpeedscope) or IsSet(opHtml) or IsSet(opJson));
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

procedure WriteAs(var Report: TReport; const Profile: TProfile; Add: TAdd; Extension: PAnsiChar);
var
  Text: TText;
begin
  if TextOpen(Text, FileLimit) then
  begin
    Add(Text, Profile);
    WriteFile(Report, Text, ProfileNames[Profile.Kind], Extension);
  end
  else
    Report.IsWritten := False;
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
    if TextOpen(Text, FileLimit) then
    begin
      FoldedAdd(Text, Profile, FoldedFiles[Index].Value);
      if Text.Length > 0 then
        WriteFile(Report, Text, FoldedFiles[Index].Name, '.folded');
    end
    else
      Report.IsWritten := False;
    TextClose(Text);
  end;
end;

// Writes a profile in the formats that have a file for each.
procedure WriteProfile(var Report: TReport; const Profile: TProfile);
begin
  if IsWanted(opPprof) then
    WriteAs(Report, Profile, PprofAdd, '.pb.gz');
  if IsWanted(opFolded) then
    WriteFolded(Report, Profile);
  if IsWanted(opSpeedscope) then
    WriteAs(Report, Profile, SpeedscopeAdd, '.speedscope.json');
  if Report.Page.Start <> nil then
    ProfileJsonAdd(Report.Page, Profile);
  if Report.Data.Start <> nil then
    ProfileJsonAdd(Report.Data, Profile);
end;

procedure OpenAll(out Report: TReport);
begin
  Report := Default(TReport);
  Report.IsWritten := True;
  Report.Number := FetchAdd(Observe.ReportCount, 1) + 1;
  GrowthFlush;
  if IsSet(opHtml) and TextOpen(Report.Page, FileLimit) then
  begin
    HtmlOpen(Report.Page);
    ProfileJsonBegin(Report.Page, Report.Number);
  end;
  if IsSet(opJson) and TextOpen(Report.Data, FileLimit) then
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
    ProfileClose(Profile);
  end;
  CloseAll(Report);
end;

function ProfileWrite: Boolean;
var
  Report: TReport;
begin
  OpenAll(Report);
  WriteAll(Report);
  if IsSet(opProfile) and (LoadAcquire(Observe.AllocatedBytes) = 0)
    and not (IsSet(opHtml) or IsSet(opJson)) then // these are written without samples, too
    ReportSayLine('no profile written: no block was sampled');
  Result := Report.IsWritten;
end;

procedure ProfileWriteQuietly;
var
  Report: TReport;
begin
  OpenAll(Report);
  Report.IsQuiet := True;
  WriteAll(Report);
end;

end.
