/// Tests of LaneMM.OsFiles and LaneMM.OsProcess.
unit Test.OsFiles;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools;

type
  TOsFilesTests = class(TLaneTest)
  {$ifndef MSWINDOWS}
  strict private
    procedure WriteInASandbox;
  {$endif}
  published
    procedure MappingsAreVisitedInOrderWithTheirRights;
    {$ifdef MSWINDOWS}
    procedure RegionsAreVisitedWithoutPaths;
    procedure CallsKeepTheLastErrorOfTheThread;
    procedure PathsAreUtf8WithSlashes;
    procedure ResolvedPathsKeepTheirServer;
    procedure LongVariableOfTheEnvironmentIsRead;
    procedure CutTextEndsBetweenTwoCharacters;
    {$else}
    procedure FileThatAnotherUserPlantedIsNotAppendedTo;
    procedure CodeOfTheProgramIsFoundWithoutAFile;
    procedure StackEndsBeforeTheNextGuardPage;
    procedure VariablesOfTheProgramAreThoseOfTheKernel;
    procedure AuxiliaryVectorIsThatOfTheKernel;
    procedure FileOfMoreThan2GBIsAppendedTo;
    procedure ScreenStaysInASandboxThatRefusesToSayWhetherItIsOpen;
    procedure SignalsDoNotEndThePatienceWithAPipe;
    {$endif}
  end;

implementation

uses
  SysUtils, Classes, {$ifdef MSWINDOWS} Windows, LaneMM.Layout, {$else} BaseUnix, {$endif} testregistry, Test.System, LaneMM.Os,
  LaneMM.OsFiles, LaneMM.OsProcess;

type
  TMappingsSeen = record
    Count, Disorder: Integer;
    Last, Code, Data: NativeUInt;
    HasCode, HasData: Boolean;
  end;
  PMappingsSeen = ^TMappingsSeen;

procedure SeeMapping(const Mapping: TOsMapping; Context: Pointer);
var
  Seen: PMappingsSeen;
begin
  Seen := Context;
  Inc(Seen^.Count);
  if (Mapping.First < Seen^.Last) or (Mapping.Limit <= Mapping.First) then
    Inc(Seen^.Disorder);
  Seen^.Last := Mapping.Limit;
  if (Seen^.Code >= Mapping.First) and (Seen^.Code < Mapping.Limit) then
    Seen^.HasCode := Mapping.IsReadable and Mapping.IsCode and Mapping.IsFile;
  if (Seen^.Data >= Mapping.First) and (Seen^.Data < Mapping.Limit) then
    Seen^.HasData := Mapping.IsReadable and Mapping.IsWritable and not Mapping.IsCode;
end;

procedure TOsFilesTests.MappingsAreVisitedInOrderWithTheirRights;
var
  Seen: TMappingsSeen;
begin
  Seen := Default(TMappingsSeen);
  Seen.Code := NativeUInt(@SeeMapping);
  Seen.Data := NativeUInt(@Seen);
  OsVisitMappings(SeeMapping, @Seen);
  AtLeast(5, Seen.Count, 'mappings');
  Same(0, Seen.Disorder, 'mappings out of order');
  AssertTrue('code', Seen.HasCode);
  AssertTrue('stack', Seen.HasData);
end;

{$ifdef MSWINDOWS}
procedure SeePath(const Mapping: TOsMapping; Context: Pointer);
begin
  if Mapping.Path[0] <> #0 then
    Inc(PInteger(Context)^);
end;

// A paused thread may have a lock that the question for a path waits for.
procedure TOsFilesTests.RegionsAreVisitedWithoutPaths;
var
  Seen: TMappingsSeen;
  Paths: Integer;
begin
  Seen := Default(TMappingsSeen);
  Seen.Code := NativeUInt(@SeeMapping);
  OsVisitRegions(SeeMapping, @Seen);
  AssertTrue('code', Seen.HasCode);
  Paths := 0;
  OsVisitRegions(SeePath, @Paths);
  Same(0, Paths, 'paths');
end;

procedure TOsFilesTests.CallsKeepTheLastErrorOfTheThread;
const
  SomeError = 12345;
var
  Path: TPath;
begin
  SetLastError(SomeError);
  OsFileOpen('no such file');
  OsFileCreate('no such folder/x');
  OsFolderPath('no such folder', @Path, SizeOf(Path));
  OsEnvironment('NO_SUCH_VARIABLE', @Path, SizeOf(Path));
  OsProgramPath(@Path, 2);
  Same(SomeError, GetLastError, 'last error');
end;

procedure TOsFilesTests.PathsAreUtf8WithSlashes;
var
  Path, Folder: TPath;
  Name: UnicodeString;
  Handle: TOsFile;
begin
  AtLeast(1, OsProgramPath(@Path, SizeOf(Path)), 'length of the program''s path');
  AssertEquals('separators', 0, Pos('\', PAnsiChar(@Path)));
  Name := ExtractFilePath(UnicodeString(ParamStr(0))) + 'folder ' + WideChar($E4);
  CreateDirectoryW(PWideChar(Name), nil);
  AtLeast(1, OsFolderPath(PAnsiChar(UTF8Encode(Name)), @Folder, SizeOf(Folder)),
    'length of the folder''s path');
  AssertTrue('its name', Pos(UTF8Encode(UnicodeString('/folder ') + WideChar($E4)),
    RawByteString(PAnsiChar(@Folder))) > 0);
  Handle := OsFileCreate(PAnsiChar(UTF8Encode(Name + '/file')));
  AssertTrue('a file in it', Handle >= 0);
  OsFileClose(Handle);
  DeleteFileW(PWideChar(Name + '/file'));
  RemoveDirectoryW(PWideChar(Name));
end;

// Returns the path that others take for one that the system has resolved.
function Plain(Path: UnicodeString): string;
begin
  UniqueString(Path);
  Result := string(UnicodeString(PWideChar(Path) + OsPathStart(PWideChar(Path))));
end;

procedure TOsFilesTests.ResolvedPathsKeepTheirServer;
begin
  AssertEquals('C:\folder', Plain('\\?\C:\folder'));
  AssertEquals('C:\', Plain('\\?\C:\'));
  AssertEquals('\\server\share\folder', Plain('\\?\UNC\server\share\folder'));
  AssertEquals('\\?\Volume{1}\folder', Plain('\\?\Volume{1}\folder'));
end;

const
  Variable: ShortString = 'LANEMM_TEST_VARIABLE';

// Sets the variable to Count times a text of 10 bytes, with characters of 1, 2, 3 and 4 bytes.
procedure SetVariable(Count: Integer);
var
  Text: UnicodeString;
begin
  Text := '';
  while Length(Text) < Count * 5 do
    Text := Text + 'a' + WideChar($E4) + WideChar($65E5) + WideChar($D83D) + WideChar($DE00);
  SetEnvironmentVariableW(PWideChar(UnicodeString(Variable)), PWideChar(Text));
end;

procedure TOsFilesTests.LongVariableOfTheEnvironmentIsRead;
var
  Read: array[0..9999] of AnsiChar;
begin
  SetVariable(800);
  AssertTrue('read', OsEnvironment(Variable, @Read, SizeOf(Read)));
  Same(8000, StrLen(@Read), 'bytes');
  AssertEquals('at the end', 'a'#$C3#$A4#$E6#$97#$A5#$F0#$9F#$98#$80, PAnsiChar(@Read[7990]));
  SetEnvironmentVariableW(PWideChar(UnicodeString(Variable)), nil);
  AssertFalse('deleted', OsEnvironment(Variable, @Read, SizeOf(Read)));
end;

procedure TOsFilesTests.CutTextEndsBetweenTwoCharacters;
const
  Ends: array[0..9] of Integer = (0, 1, 1, 3, 3, 3, 6, 6, 6, 6);
var
  Read: array[0..99] of AnsiChar;
  Size: Integer;
begin
  SetVariable(2);
  for Size := 1 to 10 do
  begin
    OsEnvironment(Variable, @Read, Size);
    Same(Ends[Size - 1], StrLen(@Read), Format('bytes of %d', [Size]));
  end;
end;
{$else}
procedure TOsFilesTests.CodeOfTheProgramIsFoundWithoutAFile;
var
  Region, Mapping: TOsMapping;
begin
  AssertTrue('a file', OsFindMapping(NativeUInt(@SeeMapping), Mapping) and (Mapping.Path[0] <> #0));
  AssertTrue('no file', OsFindRegion(NativeUInt(@SeeMapping), Region) and (Region.Path[0] = #0));
  AssertTrue('rights', Region.IsReadable and Region.IsCode and not Region.IsWritable);
  Same(Mapping.First, Region.First, 'its start');
  Same(Mapping.Limit, Region.Limit, 'its end');
  AssertFalse('not of a program', OsFindRegion(8, Region));
end;

// Where the kernel marks guard pages, all is one mapping, as the stacks of glibc 2.42 are.
procedure TOsFilesTests.StackEndsBeforeTheNextGuardPage;
const
  Pages = 64;
var
  Base, Guard: PByte;
  First, Limit: NativeUInt;
  Index: Integer;
begin
  Base := OsReserve(Pages * OsGranule);
  AssertTrue('reserved', (Base <> nil) and OsCommit(Base, Pages * OsGranule));
  for Index := 1 to Pages - 1 do
  begin
    Guard := Base + NativeUInt(Index) * OsGranule;
    AssertTrue('guarded', OsGuard(Guard, OsGranule));
    AssertTrue('found', OsFindStack(NativeUInt(Base) + 100, First, Limit));
    AtMost(NativeUInt(Base), First, 'its start');
    Same(NativeUInt(Guard), Limit, 'its end');
    AssertTrue('open again', OsUnguard(Guard, OsGranule));
  end;
  OsRelease(Base, Pages * OsGranule);
  AssertFalse('no stack', OsFindStack(8, First, Limit));
end;

// The bytes of a file of /proc, followed by zeros.
function KernelText(const FileName: string): string;
var
  Stream: TFileStream;
  Count: Integer;
begin
  SetLength(Result, 1 shl 18);
  FillChar(Result[1], Length(Result), 0);
  Stream := TFileStream.Create(FileName, fmOpenRead or fmShareDenyNone);
  Count := Stream.Read(Result[1], Length(Result) - 64);
  Stream.Free;
  if Count <= 0 then
    raise Exception.Create(FileName + ' is empty');
end;

procedure TOsFilesTests.VariablesOfTheProgramAreThoseOfTheKernel;
var
  Text, Name: string;
  Next, Value: PAnsiChar;
  Read: array[0..8191] of AnsiChar;
  Count: Integer;
begin
  Text := KernelText('/proc/self/environ');
  Next := @Text[1];
  Count := 0;
  while Next^ <> #0 do
  begin
    Value := StrScan(Next, '=') + 1;
    Name := Copy(Next, 1, Value - Next - 1);
    AssertTrue(Name, OsEnvironment(Name, @Read, SizeOf(Read)));
    AssertEquals(Name, Copy(Value, 1, SizeOf(Read) - 1), PAnsiChar(@Read));
    OsEnvironment(Name, @Read, 3);
    AssertEquals(Name + ', cut', Copy(Value, 1, 2), PAnsiChar(@Read));
    AssertFalse('longer name', OsEnvironment(Name + '_WITH_MORE', @Read, SizeOf(Read)));
    Inc(Next, StrLen(Next) + 1);
    Inc(Count);
  end;
  AtLeast(1, Count, 'variables');
end;

procedure TOsFilesTests.AuxiliaryVectorIsThatOfTheKernel;
var
  Text: string;
  Pair: PNativeUInt;
  Count: Integer;
begin
  Text := KernelText('/proc/self/auxv');
  Pair := @Text[1];
  Count := 0;
  while Pair^ <> 0 do
  begin
    Same(Pair[1], OsAuxiliary(Pair^), Format('entry %d', [Pair^]));
    Inc(Pair, 2);
    Inc(Count);
  end;
  AtLeast(5, Count, 'entries');
  Same(0, OsAuxiliary(123456), 'no such entry');
end;

// As in /tmp, whatever fs.protected_regular is. Only root can plant a file for another user.
procedure TOsFilesTests.FileOfMoreThan2GBIsAppendedTo;
const
  Length = UInt64(5) shl 30;
var
  Path: string;
  Handle: THandle;
  Log: TOsFile;
  Sign: AnsiChar;
begin
  Path := GetTempDir + 'lanemm-long-' + IntToStr(GetProcessID);
  Handle := FileCreate(Path);
  AssertTrue('made long, without contents', FileTruncate(Handle, Length));
  FileClose(Handle);
  Log := OsFileAppend(PAnsiChar(Path));
  DeleteFile(Path);
  AssertTrue('opened', Log >= 0);
  Sign := '.';
  AssertTrue('written', OsFileWrite(Log, @Sign, 1));
  AssertEquals('length', Int64(Length + 1), Int64(OsFileLength(Log)));
  OsFileClose(Log);
end;

// The sandbox refuses fcntl.
procedure TOsFilesTests.WriteInASandbox;
const
  Text: array[0..4] of AnsiChar = 'text'#10;
  FileControl = {$if defined(CPUX86_64)} 72 {$elseif defined(CPUAARCH64)} 25 {$else} 55 {$ifend};
begin
  if not SystemRefuses(FileControl) then
    Halt(2);
  OsKeepStandardError;
  if not OsFileWrite(OsStandardError, @Text, SizeOf(Text)) then
    Halt(3);
end;

procedure TOsFilesTests.ScreenStaysInASandboxThatRefusesToSayWhetherItIsOpen;
var
  Errors: string;
begin
  Same(0, RunInChild(WriteInASandbox, Errors), 'exit code');
  AssertEquals('text', 'text'#10, Errors);
end;

procedure TOsFilesTests.FileThatAnotherUserPlantedIsNotAppendedTo;
const
  Other = 65534;
  OfAll = &1777;
  OfOwner = &755;
var
  Folder, Planted: string;
  Lines: TStringList;

  function OpensWith(FileUser, Mode: Cardinal): Boolean;
  var
    Handle: TOsFile;
  begin
    Same(0, FpChown(Planted, FileUser, FileUser), 'chown');
    Same(0, FpChmod(Folder, Mode), 'chmod');
    Handle := OsFileAppend(PAnsiChar(Planted));
    Result := Handle >= 0;
    if Result then
      OsFileClose(Handle)
    else
      Same(Ord(feOthers), Ord(OsFileError(Handle)), 'reason');
  end;

begin
  if FpGetUid <> 0 then
    Ignore('needs root');
  Folder := GetTempDir + 'lanemm-planted-' + IntToStr(GetProcessID);
  Planted := Folder + '/log';
  AssertTrue('folder', CreateDir(Folder));
  Lines := TStringList.Create;
  Lines.SaveToFile(Planted);
  Lines.Free;
  AssertTrue('in a folder of its own user alone', OpensWith(Other, OfOwner));
  AssertTrue('its own file', OpensWith(0, OfAll));
  AssertFalse('the file of another user', OpensWith(Other, OfAll));
  DeleteFile(Planted);
  RemoveDir(Folder);
end;
var
  SignalCount: Integer;

procedure CountSignal(Signal: cint); cdecl;
begin
  Inc(SignalCount);
end;

// Sends signals to its parent, and then reads the pipe to its end.
procedure ReadLate(const Ends: TFilDes);
var
  Part: array[0..4095] of Byte;
  Turn: Integer;
begin
  for Turn := 1 to 5 do
  begin
    FpKill(FpGetPPid, SIGUSR1);
    FpSelect(0, nil, nil, nil, 2);
  end;
  FpClose(Ends[1]);
  while FpRead(Ends[0], Part, SizeOf(Part)) > 0 do;
  FpKill(FpGetPid, SIGKILL);
end;

procedure TOsFilesTests.SignalsDoNotEndThePatienceWithAPipe;
var
  Ends: TFilDes;
  Text: array[0..65535] of Byte;
  Kept: SignalHandler;
  Child: TPid;
  Status: cint;
  IsWritten: Boolean;
begin
  Same(0, FpPipe(Ends), 'a pipe');
  FillChar(Text, SizeOf(Text), 32);
  FpFcntl(Ends[1], F_SETFL, O_NONBLOCK);
  while FpWrite(Ends[1], Text, SizeOf(Text)) > 0 do;
  SignalCount := 0;
  Kept := FpSignal(SIGUSR1, CountSignal);
  Child := FpFork;
  if Child = 0 then
    ReadLate(Ends);
  IsWritten := OsFileWrite(Ends[1], @Text, SizeOf(Text));
  FpClose(Ends[1]);
  FpWaitPid(Child, @Status, 0);
  FpClose(Ends[0]);
  FpSignal(SIGUSR1, Kept);
  AtLeast(1, SignalCount, 'signals');
  AssertTrue('all is written', IsWritten);
end;

{$endif}

initialization
  RegisterTest(TOsFilesTests);
end.
