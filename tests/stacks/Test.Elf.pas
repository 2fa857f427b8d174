/// Tests of LaneMM.Elf: files whose headers and names reach past their end. tests/fuzz makes others.
unit Test.Elf;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Classes, Test.Tools, LaneMM.Symbols, LaneMM.Elf;

type
  TElfTests = class(TLaneTest)
  strict private
    Image: array[0..1 shl 20 - 1] of Byte; // longer than the gaps between mappings
    FileName, DebugFolder: string;
    Start: PByte;
    Symbols: TSymbols;
    Elf: TElf;
    Taken: TFPList; // of places as long as the image
    procedure SetHalf(Offset, Value: Cardinal);
    procedure SetWord(Offset: Cardinal; Value: UInt64);
    procedure SetText(Offset: Cardinal; const Text: string);
    procedure SetSection(Index, Name, First, Size, Link: Cardinal);
    procedure SetSegment(Index, Rights, First, Address: Cardinal);
    procedure SetWhole;
    procedure AddBuildId(const Id: string);
    procedure WriteFile;
    procedure WriteDebugFile(const Id: string);
    function IsReadableBehind(Place: PByte): Boolean;
    procedure TakeReadablePlaces;
    procedure Resolve;
    function Routine: string;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure RoutineHasItsName;
    procedure RoutinesOfManyFilesHaveTheirNames;
    procedure FileThatIsReadForItsNamesIsNoModule;
    procedure RoutinesOfThousandsOfMappedFilesHaveTheirNames;
    procedure SegmentsInOnePageAreToldApartByTheirRights;
    procedure SegmentsPastTheEndOfTheFileAreNotRead;
    procedure SectionsPastTheEndOfTheFileAreNotRead;
    procedure SectionNameThatTheFileCutsIsNoName;
    procedure RoutineNameThatTheFileCutsIsNoName;
    procedure NameOfAPlaceInDebugInformationIsNoRoutine;
    procedure NamesComeFromTheFileOfTheSameBuild;
    procedure FileOfAnotherBuildIdIsNotUsed;
    procedure BuildIdThatTheFileCutsIsNone;
  end;

implementation

uses
  SysUtils, BaseUnix, testregistry, LaneMM.Os, LaneMM.Text;

const
  TypeOffset = 16;
  SegmentsOffset = 32;
  SectionsOffset = 40;
  SegmentLengthOffset = 54;
  SegmentCountOffset = 56;
  SectionLengthOffset = 58;
  SectionCountOffset = 60;
  NamesIndexOffset = 62;
  SegmentTable = 64;
  SegmentLength = 56;
  ToRun = 1;
  ToWrite = 2;
  ToRead = 4;
  SectionTable = 256;
  SectionLength = 64;
  SymbolTable = 1024;
  SymbolLength = 24;
  NameTable = 2048;
  NoteOffset = 2200;
  RoutineOffset = 3000;   // of the code
  RoutineSize = 100;

procedure TElfTests.SetHalf(Offset, Value: Cardinal);
begin
  PWord(@Image[Offset])^ := Value;
end;

procedure TElfTests.SetWord(Offset: Cardinal; Value: UInt64);
begin
  PUInt64(@Image[Offset])^ := Value;
end;

procedure TElfTests.SetText(Offset: Cardinal; const Text: string);
begin
  Move(Text[1], Image[Offset], Length(Text));
end;

procedure TElfTests.SetSection(Index, Name, First, Size, Link: Cardinal);
var
  Entry: Cardinal;
begin
  Entry := SectionTable + Index * SectionLength;
  PCardinal(@Image[Entry])^ := Name;
  SetWord(Entry + 24, First);
  SetWord(Entry + 32, Size);
  PCardinal(@Image[Entry + 40])^ := Link;
end;

// A loaded segment, from First in the file on.
procedure TElfTests.SetSegment(Index, Rights, First, Address: Cardinal);
var
  Entry: Cardinal;
begin
  SetWord(SegmentsOffset, SegmentTable);
  SetHalf(SegmentCountOffset, Index + 1);
  Entry := SegmentTable + Index * SegmentLength;
  SetHalf(Entry, 1);
  SetHalf(Entry + 4, Rights);
  SetWord(Entry + 8, First);
  SetWord(Entry + 16, Address);
  SetWord(Entry + 32, SizeOf(Image) - First);
end;

// One segment: the whole file.
procedure TElfTests.SetWhole;
begin
  SetSegment(0, ToRead or ToRun, 0, 0);
end;

// A library with one routine: sections 1 names, 2 symbols.
procedure TElfTests.SetUp;
begin
  Taken := TFPList.Create;
  FillChar(Image, SizeOf(Image), 0);
  SetText(0, #$7F'ELF');
  SetHalf(TypeOffset, 3);
  SetWord(SectionsOffset, SectionTable);
  SetHalf(SectionLengthOffset, SectionLength);
  SetHalf(SectionCountOffset, 3);
  SetHalf(NamesIndexOffset, 1);
  SetHalf(SegmentLengthOffset, SegmentLength);
  SetText(NameTable, #0'.strtab'#0'.symtab'#0'ROUTINE'#0'.note.gnu.build-id'#0);
  SetSection(1, 1, NameTable, 44, 0);
  SetSection(2, 9, SymbolTable, 2 * SymbolLength, 1);
  PCardinal(@Image[SymbolTable + SymbolLength])^ := 17;
  Image[SymbolTable + SymbolLength + 4] := 2;
  SetWord(SymbolTable + SymbolLength + 8, RoutineOffset);
  SetWord(SymbolTable + SymbolLength + 16, RoutineSize);
  FileName := ExtractFilePath(ParamStr(0)) + 'one-routine.elf';
  DebugFolder := ExtractFilePath(ParamStr(0)) + 'debug-files';
end;

// Adds a note as section 3, the last one.
procedure TElfTests.AddBuildId(const Id: string);
const
  Head: array[0..3] of Cardinal = (4, 0, 3, $554E47);
begin
  SetHalf(SectionCountOffset, 4);
  SetSection(3, 25, NoteOffset, SizeOf(Head) + Length(Id), 0);
  Move(Head, Image[NoteOffset], SizeOf(Head));
  PCardinal(@Image[NoteOffset + 4])^ := Length(Id);
  SetText(NoteOffset + SizeOf(Head), Id);
end;

procedure TElfTests.WriteFile;
var
  Stream: TFileStream;
begin
  Stream := TFileStream.Create(FileName, fmCreate);
  Stream.WriteBuffer(Image, SizeOf(Image));
  Stream.Free;
end;

// Writes the file to the place of the debug information of build 61 62 (`ab`), and takes its names
// out of the one that Resolve writes. Id: its own build.
procedure TElfTests.WriteDebugFile(const Id: string);
const
  Place = '/.build-id/61';
var
  Loaded: string;
begin
  Loaded := FileName;
  AddBuildId(Id);
  ForceDirectories(DebugFolder + Place);
  FileName := DebugFolder + Place + '/62.debug';
  WriteFile;
  FileName := Loaded;
  AddBuildId('ab');
  SetSection(2, 0, SymbolTable, 2 * SymbolLength, 1);
  SetWhole;
end;

function TElfTests.IsReadableBehind(Place: PByte): Boolean;
var
  Behind: Byte;
begin
  Result := OsRead(NativeUInt(Place) + SizeOf(Image), @Behind, SizeOf(Behind));
end;

// Maps the places in which a file of the image's length would come to lie before a page that can be
// read; the first other one is free again, for the next file.
procedure TElfTests.TakeReadablePlaces;
var
  Place: PByte;
  IsReadable: Boolean;
begin
  repeat
    Place := FpMMap(nil, SizeOf(Image), PROT_NONE, MAP_PRIVATE or MAP_ANONYMOUS, -1, 0);
    IsReadable := IsReadableBehind(Place);
    if IsReadable then
      Taken.Add(Place);
  until not IsReadable;
  FpMUnMap(Place, SizeOf(Image));
end;

// Maps the file as a loader does, and reads its symbols. The page after the file that ElfResolve maps
// cannot be read.
procedure TElfTests.Resolve;
var
  Handle: Integer;
begin
  WriteFile;
  Handle := FpOpen(FileName, O_RDONLY);
  Start := FpMMap(nil, SizeOf(Image), PROT_READ or PROT_EXEC, MAP_PRIVATE, Handle, 0);
  FpClose(Handle);
  SymbolsOpen(Symbols, 1);
  SymbolsAdd(Symbols, NativeUInt(Start) + RoutineOffset + 1);
  SymbolsSort(Symbols);
  ElfOpen(Elf);
  Elf.Folder := DebugFolder;
  TakeReadablePlaces;
  ElfResolve(Elf, Symbols);
  if Elf.Count = 1 then // the next one may lie behind it
    AssertFalse('the page after the file can be read', IsReadableBehind(Elf.Files[0].Image));
end;

function TElfTests.Routine: string;
var
  Text: TText;
begin
  Result := '';
  if Symbols.Items[0].Routine = nil then
    Exit;
  TextOpen(Text, OsPageSize);
  SymbolAddRoutine(Text, @Symbols.Items[0]);
  SetString(Result, Text.Start, Text.Length);
  TextClose(Text);
end;

procedure TElfTests.TearDown;
begin
  ElfClose(Elf);
  SymbolsClose(Symbols);
  FpMUnMap(Start, SizeOf(Image));
  while Taken.Count > 0 do
  begin
    FpMUnMap(Taken.Last, SizeOf(Image));
    Taken.Delete(Taken.Count - 1);
  end;
  Taken.Free;
  DeleteFile(FileName);
  DeleteFile(DebugFolder + '/.build-id/61/62.debug');
end;

procedure TElfTests.RoutineHasItsName;
begin
  SetWhole;
  Resolve;
  AssertEquals('name', 'ROUTINE', Routine);
end;

// The same file again and again, as if it were many.
procedure TElfTests.RoutinesOfManyFilesHaveTheirNames;
const
  FileCount = 200;
var
  Mapping: TOsMapping;
  Index: NativeInt;
  Turn: Integer;
begin
  SetWhole;
  Resolve;
  AssertTrue('is mapped', ElfFindModule(NativeUInt(Start), Mapping));
  for Turn := 2 to FileCount do
  begin
    Symbols.Items[0].Routine := nil;
    Index := 0;
    ElfResolveIn(Elf, Symbols, Index, Mapping);
    AssertEquals(Format('file %d', [Turn]), 'ROUTINE', Routine);
  end;
end;

// It may lie where a module was that has been unloaded.
procedure TElfTests.FileThatIsReadForItsNamesIsNoModule;
var
  Inside: TSymbols;
begin
  SetWhole;
  Resolve;
  SymbolsOpen(Inside, 1);
  SymbolsAdd(Inside, NativeUInt(Elf.Files[0].Image) + RoutineOffset + 1);
  SymbolsSort(Inside);
  ElfResolve(Elf, Inside);
  AssertTrue('no module', Inside.Items[0].Module = nil);
  AssertTrue('no name', Inside.Items[0].Routine = nil);
  SymbolsClose(Inside);
end;

// Each mapping is a file of its own; the mappings are found in passes of 256.
procedure TElfTests.RoutinesOfThousandsOfMappedFilesHaveTheirNames;
const
  FileCount = 2000;
var
  Handle, Index: Integer;
  Named: Integer;
  Place: Pointer;
begin
  SetWhole;
  Resolve;
  ElfClose(Elf);
  SymbolsClose(Symbols);
  SymbolsOpen(Symbols, FileCount);
  Handle := FpOpen(FileName, O_RDONLY);
  for Index := 1 to FileCount do
  begin
    Place := FpMMap(nil, SizeOf(Image), PROT_READ or PROT_EXEC, MAP_PRIVATE, Handle, 0);
    SymbolsAdd(Symbols, NativeUInt(Place) + RoutineOffset + 1);
    Taken.Add(Place);
  end;
  FpClose(Handle);
  SymbolsSort(Symbols);
  ElfOpen(Elf);
  ElfResolve(Elf, Symbols);
  Named := 0;
  for Index := 0 to FileCount - 1 do
    if (Symbols.Items[Index].Routine <> nil) and (Symbols.Items[Index].Routine = 'ROUTINE') then
      Inc(Named);
  Same(FileCount, Named, 'names');
end;

// As lld lays out small files: the next segment begins in the same page of the file, at an address in
// the next page. The file is mapped to read and run. No segment has the head of the file, which else is
// compared with what lies Distance before the file.
procedure TElfTests.SegmentsInOnePageAreToldApartByTheirRights;
const
  Distance = $10000;
begin
  SetSegment(0, ToRead, SegmentTable, SegmentTable);
  SetSegment(1, ToRead or ToRun, RoutineOffset, RoutineOffset + Distance);
  SetSegment(2, ToRead or ToWrite, RoutineOffset + RoutineSize, RoutineOffset + RoutineSize + 2 * Distance);
  SetWord(SymbolTable + SymbolLength + 8, RoutineOffset + Distance);
  Resolve;
  AssertEquals('name', 'ROUTINE', Routine);
end;

procedure TElfTests.SegmentsPastTheEndOfTheFileAreNotRead;
begin
  SetHalf(SegmentLengthOffset, 1);
  SetHalf(SegmentCountOffset, 1);
  SetWord(SegmentsOffset, SizeOf(Image) - 2);
  Resolve;
  AssertEquals('files', 1, Elf.Count);
end;

procedure TElfTests.SectionsPastTheEndOfTheFileAreNotRead;
begin
  SetHalf(SectionLengthOffset, 1);
  SetWord(SectionsOffset, SizeOf(Image) - 4);
  Resolve;
  AssertEquals('name', '', Routine);
end;

procedure TElfTests.SectionNameThatTheFileCutsIsNoName;
begin
  SetText(SizeOf(Image) - 4, '.sym');
  SetSection(1, 0, SizeOf(Image) - 4, 4, 0);
  SetSection(2, 0, SymbolTable, 2 * SymbolLength, 1);
  Resolve;
  AssertEquals('name', '', Routine);
end;

procedure TElfTests.RoutineNameThatTheFileCutsIsNoName;
begin
  SetWhole;
  // The names of the routines, section 3, reach to the end of the file.
  SetHalf(SectionCountOffset, 4);
  SetSection(2, 9, SymbolTable, 2 * SymbolLength, 3);
  SetSection(3, 1, SizeOf(Image) - 8, 8, 0);
  SetText(SizeOf(Image) - 8, 'ROUTINES');
  PCardinal(@Image[SymbolTable + SymbolLength])^ := 1;
  Resolve;
  AssertEquals('name', '', Routine);
end;

procedure TElfTests.NameOfAPlaceInDebugInformationIsNoRoutine;
begin
  SetHalf(SymbolTable + SymbolLength + 6, 2); // of a section that is not loaded
  SetWhole;
  Resolve;
  AssertEquals('name', '', Routine);
end;

procedure TElfTests.NamesComeFromTheFileOfTheSameBuild;
begin
  WriteDebugFile('ab');
  Resolve;
  AssertEquals('name', 'ROUTINE', Routine);
  AssertEquals('files', 2, Elf.Count);
end;

procedure TElfTests.FileOfAnotherBuildIdIsNotUsed;
begin
  WriteDebugFile('ac');
  Resolve;
  AssertEquals('name', '', Routine);
  AssertEquals('files', 1, Elf.Count);
end;

procedure TElfTests.BuildIdThatTheFileCutsIsNone;
begin
  WriteDebugFile('ab');
  SetSection(3, 25, NoteOffset, 17, 0);
  Resolve;
  AssertEquals('longer than its section', 1, Elf.Count);
end;

initialization
  // The offsets above are those of the 64-bit format.
  {$ifdef CPU64}
  RegisterTest(TElfTests);
  {$endif}

end.
