/// Tests of LaneMM.Modules in a process that maps many files.
unit Test.Modules;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools;

type
  TModulesTests = class(TLaneTest)
  strict private
    FileName: string;
    Before: array of NativeUInt; // starts of the data of modules, before the file was mapped
    Places: array of PByte;      // where it is mapped
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure ModulesBehindManyMappedFilesAreFound;
    procedure FileWithoutCodeIsNoModule;
  end;

implementation

uses
  SysUtils, BaseUnix, testregistry, LaneMM.Os, LaneMM.OsProcess, LaneMM.Modules;

const
  MappingCount = 5000; // more than the table has
  FileBytes = OsPageSize;
  // Wanted, and free: libraries lie at higher addresses.
  FirstPlace = NativeUInt(1) shl {$ifdef CPU64} 32 {$else} 29 {$endif};
  Distance = 65536;

type
  TStarts = record
    Items: array[0..999] of NativeUInt;
    Count: Integer;
  end;
  PStarts = ^TStarts;

procedure SeeData(const Mapping: TOsMapping; Context: Pointer);
var
  Starts: PStarts;
begin
  Starts := Context;
  if not ModulesHaveData(Mapping.First, 1) or (Starts^.Count > High(Starts^.Items)) then
    Exit;
  Starts^.Items[Starts^.Count] := Mapping.First;
  Inc(Starts^.Count);
end;

// Maps the same page again and again: no two mappings become one.
procedure TModulesTests.SetUp;
var
  Starts: TStarts;
  Handle, Index: Integer;
begin
  Starts.Count := 0;
  ModulesLook;
  OsVisitMappings(SeeData, @Starts);
  SetLength(Before, Starts.Count);
  Move(Starts.Items, Before[0], Starts.Count * SizeOf(NativeUInt));
  FileName := ExtractFilePath(ParamStr(0)) + 'mapped-data';
  Handle := FpOpen(FileName, O_RDWR or O_CREAT);
  AssertTrue('the file', (Handle >= 0) and (FpFTruncate(Handle, FileBytes) = 0));
  SetLength(Places, MappingCount);
  for Index := 0 to High(Places) do
  begin
    Places[Index] := FpMMap(Pointer(FirstPlace + NativeUInt(Index) * Distance), FileBytes, PROT_READ,
      MAP_PRIVATE, Handle, 0);
    AssertTrue('is mapped', Places[Index] <> MAP_FAILED);
  end;
  FpClose(Handle);
  ModulesLook;
end;

procedure TModulesTests.TearDown;
var
  Place: PByte;
begin
  for Place in Places do
    FpMUnMap(Place, FileBytes);
  DeleteFile(FileName);
  ModulesLook;
end;

procedure TModulesTests.ModulesBehindManyMappedFilesAreFound;
var
  Start: NativeUInt;
  Behind: Integer;
begin
  Behind := 0;
  for Start in Before do
  begin
    AssertTrue(Format('data at %x', [Start]), ModulesHaveData(Start, 1));
    Inc(Behind, Ord(Start > NativeUInt(Places[High(Places)])));
  end;
  AtLeast(1, Behind, 'ranges of modules behind the file');
end;

procedure TModulesTests.FileWithoutCodeIsNoModule;
begin
  AssertFalse('its data', ModulesHaveData(NativeUInt(Places[0]), 1));
  AssertFalse('its code', ModulesHaveCode(NativeUInt(Places[0])));
end;

initialization
  RegisterTest(TModulesTests);
end.
