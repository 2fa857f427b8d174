/// Writes the profiles to files, in the formats that the settings name.
//
// Owns:       nothing.
// Invariants: a file holds the profile of one process, whose number is part of the file name. The
//             process replaces its file when it writes again.
// Callers:    any thread, at the end of the program, or in a signal handler.
unit LaneMM.Profile;

{$I ../LaneMM.inc}

interface

/// Writes the files and prints their paths to stderr. Returns False when a file could not be
/// written.
function ProfileWrite: Boolean;

implementation

uses
  LaneMM.Os, LaneMM.LogFile, LaneMM.Text, LaneMM.SettingsState, LaneMM.Growth, LaneMM.Html,
  LaneMM.Pprof, LaneMM.ProfileData, LaneMM.Speedscope;

const
  FileLimit = 64 shl 20;

type
  TAdd = procedure(var Text: TText; const Profile: TProfile);

// Returns whether a format is wanted: one that a setting names; for an allocation profile without
// a named format, all that other programs read.
function IsWanted(Format: TOption): Boolean;
begin
  Result := IsSet(Format) or IsSet(opProfile) and (Format <> opHtml) and not (IsSet(opPprof)
    or IsSet(opFolded) or IsSet(opSpeedscope) or IsSet(opHtml));
end;

procedure Add(var Suffix: ShortString; Part: PAnsiChar);
begin
  while Part^ <> #0 do
  begin
    Suffix := Suffix + Part^;
    Inc(Part);
  end;
end;

function Suffix(Name, Extension: PAnsiChar): ShortString;
var
  Digits: ShortString;
begin
  Str(UInt64(OsProcessId), Digits);
  Result := '';
  Add(Result, '_MemoryManager_');
  Add(Result, Name);
  Add(Result, '.');
  Result := Result + Digits;
  Add(Result, Extension);
end;

procedure SayWhere(const Path: TText; IsWritten: Boolean);
var
  Text: TText;
begin
  if not TextOpen(Text, OsPageSize) then
    Exit;
  if IsWritten then
    TextAdd(Text, 'LaneMM: profile written to ')
  else
    TextAdd(Text, 'LaneMM: cannot write profile ');
  TextAddChars(Text, Path.Start);
  TextAdd(Text, LineEnd);
  TextWrite(Text, OsStandardError);
  TextClose(Text);
end;

function WriteFile(const Text: TText; Name, Extension: PAnsiChar): Boolean;
var
  Path: TText;
begin
  Result := TextOpen(Path, OsPageSize);
  if not Result then
    Exit;
  Result := LogFileCreate(Text, Suffix(Name, Extension), Path);
  SayWhere(Path, Result);
  TextClose(Path);
end;

function WriteAs(const Profile: TProfile; Add: TAdd; Extension: PAnsiChar): Boolean;
var
  Text: TText;
begin
  Result := TextOpen(Text, FileLimit);
  if not Result then
    Exit;
  Add(Text, Profile);
  Result := WriteFile(Text, ProfileNames[Profile.Kind], Extension);
  TextClose(Text);
end;

function WriteFormats(const Profile: TProfile): Boolean;
begin
  Result := True;
  if IsWanted(opPprof) and not WriteAs(Profile, PprofAdd, '.pb.gz') then
    Result := False;
  if IsWanted(opFolded) and not WriteAs(Profile, FoldedAdd, '.folded') then
    Result := False;
  if IsWanted(opSpeedscope) and not WriteAs(Profile, SpeedscopeAdd, '.speedscope.json') then
    Result := False;
end;

function ProfileWrite: Boolean;
var
  Profile: TProfile;
  Kind: TProfileKind;
  Page: TText;
  HasPage: Boolean;
begin
  Result := True;
  GrowthFlush;
  HasPage := IsSet(opHtml) and TextOpen(Page, FileLimit);
  if HasPage then
    HtmlAddHead(Page);
  for Kind := Low(TProfileKind) to High(TProfileKind) do
  begin
    if ProfileOpen(Profile, Kind) then
    begin
      Result := WriteFormats(Profile) and Result;
      if HasPage then
        HtmlAdd(Page, Profile);
    end;
    ProfileClose(Profile);
  end;
  if not HasPage then
    Exit;
  HtmlAddTail(Page);
  Result := WriteFile(Page, 'Profile', '.html') and Result;
  TextClose(Page);
end;

end.
