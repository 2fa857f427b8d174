/// Log files: where the setting says, else beside the program, else in the current directory.
//
// Owns:       Report.LogState.
// Invariants: every file that LaneMM writes is opened here. A log is appended to; one that would
//             exceed `log:most` is renamed, and a new one begins. Any other file is new. No
//             symbolic link is followed, no file of another user is emptied, and none is created
//             in a folder of the system; a file there that the setting names is appended to. New
//             files are for the owner alone. No pipe or terminal stops the program for long.
// Callers:    any thread; uses system calls only.
unit LaneMM.LogFile;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Text;

/// Appends Text to the file that the setting names, or to a file with the program's name and Suffix
/// in the first directory that can be written. Path receives the path, ended by #0. Returns False
/// when nothing could be written. The first time that it is not the first choice, a line on stderr
/// says why and where; a place where writing fails is not tried again. A text that was cut ends
/// with a line that says so, and a line on stderr names the file.
function LogFileAppend(const Text: TText; const Suffix: ShortString; var Path: TText): Boolean;
/// Creates a file with the program's name and Suffix, in a library also with its own name between:
/// in the directory that the setting names, or that of the file that it names, else as
/// LogFileAppend. Replaces a regular file of the same user.
/// A line on stderr names a file whose text was cut.
function LogFileCreate(const Text: TText; const Suffix: ShortString; var Path: TText): Boolean;
/// Returns the suffix of a file of this process: Name, its number, Number unless that is 0, and
/// Extension.
function LogFileSuffix(Name: PAnsiChar; Number: NativeUInt; Extension: PAnsiChar): ShortString;
/// Stores in Path, ended by #0, the path of the file that LogFileAppend tries first now. Returns
/// False when there is none left.
function LogFilePath(const Suffix: ShortString; var Path: TText): Boolean;
/// Stores in Path, ended by #0, the path of the file that LogFileCreate tries first. Returns False
/// when there is none.
function LogFileNewPath(const Suffix: ShortString; var Path: TText): Boolean;
/// Deletes the file of LogFilePath. Returns False when it does not exist, is no regular file of
/// this user or does not begin with a report of LaneMM, or the system refuses.
function LogFileDelete(const Suffix: ShortString): Boolean;
/// Lets logs go again to what the setting names, although writing there failed, and a line say
/// where files are: the setting was given anew.
procedure LogFileTryAgain;
/// In a child process: no thread renames a log.
procedure LogFileForget;

implementation

uses
  LaneMM.Layout, LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.OsFiles, LaneMM.SettingsState,
  LaneMM.ReportState, LaneMM.ReportHead;

type
  TOpenCall = function(Path: PAnsiChar): TOsFile;

  // Where a file may go, in this order.
  TPlace = (plSetting, plProgram, plCurrent);

  // A file that looks for its place.
  TSearch = record
    Text: ^TText;        // its contents; nil: only its path is wanted, no file is opened
    Suffix: PShortString; // the end of its name
    Open: TOpenCall;     // OsFileAppend or OsFileCreate
    Path: TText;         // the path that was tried last, ended by #0
    Notice: TText;       // the first choice and why it was refused; empty: not refused
    HasFailed: Boolean;  // the file could be opened, not written
  end;

const
  // Bits of Report.LogState: of each place, that a log could not be written there; that a line said
  // where the log is, where another file is.
  LogNoticeBit = 8;
  FileNoticeBit = 16;
  // That a thread renames the log.
  RenamingBit = 32;

  IsSystem: ShortString = ' is in a folder of the system';
  CutLine: ShortString = #10'LaneMM: the rest of this report is missing.'#10;
  Reasons: array[TOsFileError] of ShortString = (' is a symbolic link', ' has no reader',
    ' is another user''s file in a folder for all', ' cannot be written');

// Sets a bit of Report.LogState; returns whether this call did.
function SetBit(Bit: NativeUInt): Boolean;
var
  Seen: NativeUInt;
begin
  repeat
    Seen := LoadAcquire(Report.LogState);
    if Seen and Bit <> 0 then
      Exit(False);
  until CompareAndSwap(Report.LogState, Seen, Seen or Bit); // any order: the bit says all
  Result := True;
end;

procedure ClearBits(Bits: NativeUInt);
var
  Seen: NativeUInt;
begin
  repeat
    Seen := LoadAcquire(Report.LogState);
  until CompareAndSwap(Report.LogState, Seen, Seen and not Bits);
end;

function BitOf(Place: TPlace): NativeUInt; inline;
begin
  Result := NativeUInt(1) shl Ord(Place);
end;

// ---------------------------------------------------------------------------- paths

// Copies the folder of the file in a path, `./` for a mere name.
procedure CopyFolder(Path: PAnsiChar; out Folder: TPath);
const
  Current: array[0..2] of AnsiChar = './'#0;
var
  Length: NativeUInt;
begin
  Length := TextFileName(Path) - Path;
  if Length = 0 then
    Move(Current, Folder, SizeOf(Current))
  else
  begin
    Move(Path^, Folder, Length);
    Folder[Length] := #0;
  end;
end;

// Returns whether Path begins with the folder Start, which ends with a slash.
function IsBelow(const Path: TText; const Start: ShortString): Boolean;
begin
  Result := (Path.Length >= Length(Start)) and TextBegins(Path.Start, Start);
end;

// Returns whether a path, absolute and without links, lies in a folder that belongs to the system,
// or beside a program of memfd_create, which the kernel shows so and which lies in no folder.
function IsOfSystem(const Path: TText): Boolean;
const
  Folders: array[0..12] of ShortString = ('/usr/', '/bin/', '/sbin/', '/lib/', '/lib32/', '/lib64/',
    '/libx32/', '/etc/', '/dev/', '/proc/', '/sys/', '/boot/', '/memfd:');
  ForAll: ShortString = '/dev/shm/'; // a folder for temporary files of any user
var
  Index: Cardinal;
begin
  Result := False;
  for Index := 0 to High(Folders) do
    Result := Result or IsBelow(Path, Folders[Index]);
  Result := Result and not IsBelow(Path, ForAll);
end;

// Makes Path the absolute path of a folder without links, or the one that was given where that is
// not known, and a slash.
procedure SetFolder(var Path: TText; Folder: PAnsiChar);
var
  Real: TPath;
begin
  Path.Length := 0;
  if OsFolderPath(Folder, @Real, SizeOf(Real)) > 0 then
    Folder := @Real;
  TextAddChars(Path, Folder);
  if (Path.Length > 0) and (Path.Start[Path.Length - 1] <> '/') then
    TextAdd(Path, '/');
end;

// ---------------------------------------------------------------------------- attempts

procedure Refuse(var Search: TSearch; const Reason: ShortString);
begin
  if Search.Notice.Length > 0 then
    Exit;
  TextAddForm(Search.Notice, 'LaneMM: %s', NativeUInt(Search.Path.Start));
  TextAdd(Search.Notice, Reason);
end;

// Returns whether the file at Path is a log of LaneMM: it begins as a report does, or with a title
// of HeadAddTitle.
function IsLog(Path: PAnsiChar): Boolean;
const
  Starts: array[0..2] of ShortString = ('LaneMM:', 'LaneMM event log ', 'LaneMM heap report ');
var
  Head: array[0..31] of AnsiChar;
  Handle: TOsFile;
  Index: Integer;
begin
  FillChar(Head, SizeOf(Head), 0); // the file may be shorter
  Handle := OsFileOpen(Path);
  if Handle >= 0 then
  begin
    OsFileRead(Handle, @Head, High(Head));
    OsFileClose(Handle);
  end;
  Result := False;
  for Index := Low(Starts) to High(Starts) do
    Result := Result or TextBegins(@Head, Starts[Index]);
end;

// Gives the log at the path the ending `.1` if it would exceed its limit, and opens a new one.
procedure BeginAnew(var Search: TSearch; Open: TOpenCall; var Handle: TOsFile);
var
  OldPath: TText;
  Length: UInt64;
begin
  Length := OsFileLength(Handle);
  if (Length = 0) or (Length + Search.Text^.Length <= Settings.Values[opLogMost])
    or not IsLog(Search.Path.Start) or not SetBit(RenamingBit) then
    Exit;
  if TextOpen(OldPath, 2 * OsPageSize) then
  begin
    TextAddChars(OldPath, Search.Path.Start);
    TextAdd(OldPath, '.1'#0);
    if OsFileRename(Search.Path.Start, OldPath.Start) then
    begin
      OsFileClose(Handle);
      Handle := Open(Search.Path.Start);
    end;
    TextClose(OldPath);
  end;
  ClearBits(RenamingBit);
end;

function TryPath(var Search: TSearch; Open: TOpenCall): Boolean;
var
  Handle: TOsFile;
begin
  if Search.Text = nil then
    Exit(True);
  Handle := Open(Search.Path.Start);
  if (Handle >= 0) and (@Open = @OsFileAppend) and IsSet(opLogMost) then
    BeginAnew(Search, Open, Handle);
  if Handle < 0 then
  begin
    Refuse(Search, Reasons[OsFileError(Handle)]);
    Exit(False);
  end;
  Result := TextWrite(Search.Text^, Handle);
  if Result and Search.Text^.IsCut and (@Search.Open = @OsFileAppend) then
    Result := OsFileWrite(Handle, @CutLine[1], Length(CutLine));
  OsFileClose(Handle);
  Search.HasFailed := not Result;
  if Result then
    Exit;
  Refuse(Search, Reasons[feOther]);
  if @Open = @OsFileCreate then
    OsFileDelete(Search.Path.Start); // a part of it, or nothing, would be read as all
end;

// Adds the name of the library that this is, without its extension.
procedure AddLibrary(var Path: TText);
var
  Characters: TPath;
  Name: PAnsiChar;
  Length: NativeUInt;
begin
  Name := HeadLibrary(Characters);
  if Name = nil then
    Exit;
  Length := TextLength(Name);
  while (Length > 0) and (Name[Length] <> '.') do
    Dec(Length);
  if Length = 0 then
    Length := TextLength(Name);
  TextAdd(Path, '_');
  TextAddSome(Path, Name, Length);
end;

// Tries a file with the program's name and the suffix. A new file of a library is one of its own.
function TryFolder(var Search: TSearch; Folder: PAnsiChar): Boolean;
var
  ProgramPath: TPath;
begin
  OsProgramName(@ProgramPath, SizeOf(ProgramPath));
  SetFolder(Search.Path, Folder);
  TextAddChars(Search.Path, TextFileName(@ProgramPath));
  if @Search.Open <> @OsFileAppend then
    AddLibrary(Search.Path);
  TextAdd(Search.Path, Search.Suffix^);
  TextAdd(Search.Path, #0);
  Result := not IsOfSystem(Search.Path);
  if Result then
    Result := TryPath(Search, Search.Open)
  else
    Refuse(Search, IsSystem);
end;

// Tries the file that the setting names. Links in folders of the system are those of the system,
// such as /dev/stderr.
function TrySetFile(var Search: TSearch): Boolean;
var
  Folder: TPath;
  Open: TOpenCall;
begin
  CopyFolder(@Settings.LogPath, Folder);
  SetFolder(Search.Path, @Folder);
  Open := OsFileAppend;
  if IsOfSystem(Search.Path) then
    Open := OsFileAppendExisting;
  Search.Path.Length := 0;
  TextAddChars(Search.Path, @Settings.LogPath);
  TextAdd(Search.Path, #0);
  Result := TryPath(Search, Open);
end;

// Tries what the setting names: a folder, or a file, beside which all but the log goes.
function TrySetting(var Search: TSearch): Boolean;
var
  Path: PAnsiChar;
  Folder: TPath;
begin
  Path := @Settings.LogPath;
  if Path^ = #0 then
    Exit(False);
  if OsFolderPath(Path, @Folder, SizeOf(Folder)) > 0 then
    Exit(TryFolder(Search, Path));
  if @Search.Open = @OsFileAppend then
    Exit(TrySetFile(Search));
  CopyFolder(Path, Folder);
  Result := (TextFileName(Path) <> Path) and TryFolder(Search, @Folder);
end;

function TryPlace(var Search: TSearch; Place: TPlace): Boolean;
var
  ProgramPath, Folder: TPath;
begin
  case Place of
    plSetting: Result := TrySetting(Search);
    plProgram:
      begin
        OsProgramName(@ProgramPath, SizeOf(ProgramPath));
        CopyFolder(@ProgramPath, Folder);
        Result := TryFolder(Search, @Folder);
      end;
  else
    Result := TryFolder(Search, './');
  end;
end;

// Writes the file to the first place that takes it. A log leaves out places where writing failed
// before; those where it fails now are added.
function WriteAnywhere(var Search: TSearch): Boolean;
var
  Place: TPlace;
  FailedBits: NativeUInt;
begin
  Result := False;
  FailedBits := 0;
  if @Search.Open = @OsFileAppend then
    FailedBits := LoadAcquire(Report.LogState);
  for Place := Low(TPlace) to High(TPlace) do
  begin
    if Result or (FailedBits and BitOf(Place) <> 0) then
      Continue;
    Search.HasFailed := False;
    Result := TryPlace(Search, Place);
    if Search.HasFailed and (@Search.Open = @OsFileAppend) then
      SetBit(BitOf(Place));
  end;
end;

// Writes the file and says why it is not at the first choice, and where, unless that was said
// before. Says that it lacks the end of its text, if so.
function Settle(var Search: TSearch): Boolean;
const
  NoticeBits: array[Boolean] of NativeUInt = (FileNoticeBit, LogNoticeBit);
begin
  TextOpen(Search.Notice, 2 * OsPageSize);
  Result := WriteAnywhere(Search);
  if Result then
    ReportTaken(tkFile, Search.Path.Start, Search.Path.Length - 1);
  if (Search.Notice.Length > 0) and SetBit(NoticeBits[@Search.Open = @OsFileAppend]) then
  begin
    if Result then
      TextAddForm(Search.Notice, '; written to %s', NativeUInt(Search.Path.Start));
    TextAdd(Search.Notice, LineEnd);
    TextWrite(Search.Notice, OsStandardError);
  end;
  if Result and Search.Text^.IsCut then
  begin
    Search.Notice.Length := 0;
    TextAddForm(Search.Notice, 'LaneMM: %s is cut at %g byte%+'#10, NativeUInt(Search.Path.Start),
      Search.Text^.Length);
    TextWrite(Search.Notice, OsStandardError);
  end;
  TextClose(Search.Notice);
end;

// Writes Text to a file that Open opens; without a text finds the path alone.
function WriteText(Text: Pointer; const Suffix: ShortString; Open: TOpenCall; var Path: TText)
  : Boolean;
var
  Search: TSearch;
begin
  Search := Default(TSearch);
  Search.Text := Text;
  Search.Suffix := @Suffix;
  Search.Open := Open;
  Search.Path := Path;
  if Text = nil then
    Result := WriteAnywhere(Search)
  else
    Result := Settle(Search);
  Path := Search.Path;
end;

function LogFileAppend(const Text: TText; const Suffix: ShortString; var Path: TText): Boolean;
begin
  Result := WriteText(@Text, Suffix, OsFileAppend, Path);
end;

function LogFileCreate(const Text: TText; const Suffix: ShortString; var Path: TText): Boolean;
begin
  Result := WriteText(@Text, Suffix, OsFileCreate, Path);
end;

function LogFileSuffix(Name: PAnsiChar; Number: NativeUInt; Extension: PAnsiChar): ShortString;
var
  Text: TText;
begin
  TextOpenAt(Text, @Result[1], High(Byte));
  TextAddForm(Text, '_MemoryManager_%s.%u', NativeUInt(Name), OsProcessId);
  if Number > 0 then
    TextAddForm(Text, '.%u', Number);
  TextAddChars(Text, Extension);
  Result[0] := AnsiChar(Text.Length);
end;

function LogFilePath(const Suffix: ShortString; var Path: TText): Boolean;
begin
  Result := WriteText(nil, Suffix, OsFileAppend, Path);
end;

function LogFileNewPath(const Suffix: ShortString; var Path: TText): Boolean;
begin
  Result := WriteText(nil, Suffix, OsFileCreate, Path);
end;

function LogFileDelete(const Suffix: ShortString): Boolean;
var
  Path: TText;
begin
  Result := TextOpen(Path, OsPageSize) and LogFilePath(Suffix, Path) and IsLog(Path.Start)
    and OsFileDelete(Path.Start);
  TextClose(Path);
end;

procedure LogFileTryAgain;
begin
  ClearBits(BitOf(plSetting) or LogNoticeBit or FileNoticeBit);
end;

procedure LogFileForget;
begin
  ClearBits(RenamingBit);
end;

end.
