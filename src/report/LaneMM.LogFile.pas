/// Log files: where the setting says, else beside the program, else in the current directory.
//
// Owns:       nothing.
// Invariants: an existing file is appended to or replaced; symbolic links are followed, as by any
//             program.
// Callers:    any thread; uses system calls only.
unit LaneMM.LogFile;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Text;

/// Appends Text to the file that the setting names, or to a file with the program's name and Suffix
/// in the first directory that can be written. Path receives the path, ended by #0. Returns False
/// when nothing could be written.
function LogFileAppend(const Text: TText; const Suffix: ShortString; var Path: TText): Boolean;
/// Creates or replaces a file with the program's name and Suffix: in the directory that the setting
/// names, or that of the file that it names, else as LogFileAppend.
function LogFileCreate(const Text: TText; const Suffix: ShortString; var Path: TText): Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.Os, LaneMM.ReportState;

type
  TOpenCall = function(Path: PAnsiChar): TOsFile;

// Returns the setting, ended by #0; nil when it is empty.
function SetPath: PAnsiChar;
begin
  Result := PAnsiChar(Report.LogPath);
  if (Result <> nil) and (Result^ = #0) then
    Result := nil;
end;

// Returns the file name in a path.
function NameOf(Path: PAnsiChar): PAnsiChar;
begin
  Result := Path;
  while Path^ <> #0 do
  begin
    if Path^ = '/' then
      Result := Path + 1;
    Inc(Path);
  end;
end;

function TryPath(const Text, Path: TText; Open: TOpenCall): Boolean;
var
  Handle: TOsFile;
begin
  Handle := Open(Path.Start);
  if Handle < 0 then
    Exit(False);
  Result := TextWrite(Text, Handle);
  OsFileClose(Handle);
end;

// Makes a path of Folder, which may be empty, the program's name and Suffix.
procedure MakePath(var Path: TText; Folder: PAnsiChar; FolderLength: NativeUInt;
  const Suffix: ShortString);
var
  ProgramPath: TPath;
begin
  OsProgramPath(@ProgramPath, SizeOf(ProgramPath));
  Path.Length := 0;
  TextAddSome(Path, Folder, FolderLength);
  if (FolderLength > 0) and (Folder[FolderLength - 1] <> '/') then
    TextAdd(Path, '/');
  TextAddChars(Path, NameOf(@ProgramPath));
  TextAdd(Path, Suffix);
  TextAdd(Path, #0);
end;

// Tries the directory that the setting names.
function TrySetFolder(const Text: TText; const Suffix: ShortString; var Path: TText;
  Open: TOpenCall): Boolean;
var
  Setting: PAnsiChar;
begin
  Setting := SetPath;
  if Setting = nil then
    Exit(False);
  MakePath(Path, Setting, IndexByte(Setting^, -1, 0), Suffix);
  Result := TryPath(Text, Path, Open);
end;

// Tries the directory of the file that the setting names.
function TryBesideSetFile(const Text: TText; const Suffix: ShortString; var Path: TText): Boolean;
var
  Setting: PAnsiChar;
begin
  Setting := SetPath;
  if (Setting = nil) or (NameOf(Setting) = Setting) then
    Exit(False);
  MakePath(Path, Setting, NameOf(Setting) - Setting, Suffix);
  Result := TryPath(Text, Path, OsFileCreate);
end;

function TryOtherFolders(const Text: TText; const Suffix: ShortString; var Path: TText;
  Open: TOpenCall): Boolean;
var
  ProgramPath: TPath;
begin
  OsProgramPath(@ProgramPath, SizeOf(ProgramPath));
  MakePath(Path, @ProgramPath, NameOf(@ProgramPath) - PAnsiChar(@ProgramPath), Suffix);
  Result := TryPath(Text, Path, Open);
  if Result then
    Exit;
  MakePath(Path, nil, 0, Suffix);
  Result := TryPath(Text, Path, Open);
end;

// Tries the file that the setting names.
function TrySetFile(const Text: TText; var Path: TText): Boolean;
begin
  Path.Length := 0;
  TextAddChars(Path, SetPath);
  if Path.Length = 0 then
    Exit(False);
  TextAdd(Path, #0);
  Result := TryPath(Text, Path, OsFileAppend);
end;

function LogFileAppend(const Text: TText; const Suffix: ShortString; var Path: TText): Boolean;
begin
  Result := TrySetFile(Text, Path) or TrySetFolder(Text, Suffix, Path, OsFileAppend)
    or TryOtherFolders(Text, Suffix, Path, OsFileAppend);
end;

function LogFileCreate(const Text: TText; const Suffix: ShortString; var Path: TText): Boolean;
begin
  Result := TrySetFolder(Text, Suffix, Path, OsFileCreate)
    or TryBesideSetFile(Text, Suffix, Path)
    or TryOtherFolders(Text, Suffix, Path, OsFileCreate);
end;

end.
