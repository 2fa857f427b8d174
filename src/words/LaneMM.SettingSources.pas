/// The sources of settings at the start: the file beside the program, variables of the environment.
//
// Owns:       nothing.
// Invariants: at most MostWords bytes of a source are read, without a setting that begins before
//             and ends after them. The buffer is on the stack only where there is a source: most
//             programs have none, and would touch its pages.
// Callers:    LaneMM.Settings, LaneMMLean: once, before any other thread runs.
unit LaneMM.SettingSources;

{$I ../LaneMM.inc}

interface

type
  /// Reads the settings in Words, which ends with #0. Source is its name in messages. CutAt is the
  /// number of bytes after which the source was cut, 0 of a whole one.
  TSourceCall = procedure(Words: PAnsiChar; const Source: ShortString; CutAt: NativeUInt);

/// Calls Read for the file `<program>.lanemm`, if there is one.
procedure SourceReadFile(Read: TSourceCall);
/// Calls Read for the variable Name, if it is set; returns whether it is.
function SourceReadVariable(const Name: ShortString; Read: TSourceCall): Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.OsFiles, LaneMM.Text, LaneMM.SettingValues;

const
  FileExtension = '.lanemm';
  MostWords = 4096;

type
  // Room for one byte more than is read, and the end.
  TWords = array[0..MostWords + 1] of AnsiChar;

procedure ReadWords(var Words: TWords; const Source: ShortString; Read: TSourceCall);
var
  Length, CutAt: NativeUInt;
begin
  Length := 0;
  CutAt := 0;
  while (Length <= MostWords) and (Words[Length] <> #0) do
    Inc(Length);
  if Length > MostWords then
  begin
    CutAt := MostWords;
    repeat
      Dec(Length);
    until (Length = 0) or ValueEnds(Words[Length]);
  end;
  Words[Length] := #0;
  Read(@Words[TextMarkLength(@Words, Length)], Source, CutAt);
end;

procedure ReadFile(Handle: TOsFile; Read: TSourceCall);
var
  Words: TWords;
  Length: NativeInt;
begin
  Length := OsFileRead(Handle, @Words, MostWords + 1);
  if Length < 0 then
    Exit;
  Words[Length] := #0;
  if Words[0] = #$FF then // PowerShell 5 writes UTF-16 by `>`
    ReadWords(Words, 'settings file, UTF-16 and not UTF-8', Read)
  else
    ReadWords(Words, 'settings file', Read);
end;

procedure SourceReadFile(Read: TSourceCall);
var
  Path: TPath;
  Length: NativeInt;
  Handle: TOsFile;
begin
  Length := OsProgramName(@Path, SizeOf(Path) - 8);
  if Length = 0 then
    Exit;
  Move(FileExtension[1], Path[Length], System.Length(FileExtension));
  Path[Length + System.Length(FileExtension)] := #0;
  Handle := OsFileOpen(@Path);
  if Handle < 0 then
    Exit;
  ReadFile(Handle, Read);
  OsFileClose(Handle);
end;

procedure ReadVariable(const Name: ShortString; Read: TSourceCall);
var
  Words: TWords;
begin
  if OsEnvironment(Name, @Words, SizeOf(Words)) then
    ReadWords(Words, Name, Read);
end;

function SourceReadVariable(const Name: ShortString; Read: TSourceCall): Boolean;
var
  Ignored: AnsiChar;
begin
  Result := OsEnvironment(Name, @Ignored, SizeOf(Ignored));
  if Result then
    ReadVariable(Name, Read);
end;

end.
