/// A dead process: its core file, with the files that were mapped.
unit TargetCores;

{$mode delphi}{$H+}
{$I Comparers.inc}
{$pointermath on}

interface

uses
  SysUtils, Classes, Generics.Collections, Targets;

type
  /// The head of an ELF file of 64 bits; Magic is ElfMagic. The other ones begin alike.
  TElfHead = packed record
    Magic: Cardinal;
    Bits, Order: Byte;
    Rest: array[0..9] of Byte;
    Kind, Machine: Word;
    Version: Cardinal;
    Entry, Segments, Sections: UInt64;
    Flags: Cardinal;
    HeadSize, SegmentSize, SegmentCount, SectionSize, SectionCount, SectionNames: Word;
  end;

  /// A segment in it.
  TElfSegment = packed record
    Kind, Rights: Cardinal;
    Offset, Address, Physical, FileBytes, Bytes, Alignment: UInt64;
  end;
  PElfHead = ^TElfHead;
  PElfSegment = ^TElfSegment;

const
  ElfMagic = $464C457F;
  /// A segment that is loaded.
  LoadSegment = 1;

type

  /// The memory of a process in a core file. What the system left out of it, code and constants, is
  /// read from the files that were mapped.
  TCoreTarget = class(TTarget)
  private
    Path: string;
    Core: TFileStream;
    Parts: TArray<TRegion>; // those of which the file has something
    Files: TObjectDictionary<string, TFileStream>;
    procedure ReadHead;
    function CountSegments(const Head: TElfHead): Cardinal;
    procedure ReadSegment(const Segment: TElfSegment);
    procedure ReadNotes(Offset, Count: UInt64);
    procedure ReadProcessNote(Data: PByte; Size: UInt64);
    procedure ReadThreadNote(Data: PByte; Size: UInt64);
    procedure ReadFileNote(Data: PByte; Size: UInt64);
    procedure ReplaceProgram(const ProgramFile: string);
    function HasCode(const Region: TRegion): Boolean;
    procedure NamePart(var Part: TRegion; const Named: TArray<TRegion>);
    procedure AddBehind(const Region: TRegion);
    procedure MakeRegions;
    function ReadMapped(Region: PRegion; Offset: UInt64; Buffer: Pointer;
      Size: NativeUInt): NativeUInt;
    function ReadPart(Address: UInt64; Buffer: Pointer; Size: NativeUInt): NativeUInt;
    function OpenMapped(const Name: string): TFileStream;
  public
    /// The signal that ended the process; 0: unknown, or a picture of a running one.
    Signal: Integer;
    /// The numbers of its threads, in the order of Registers; the first is the one that got the signal.
    ThreadNumbers: TArray<Cardinal>;
    /// Bytes that its head promises and the file does not have: it was cut off.
    MissingBytes: UInt64;
    /// ProgramFile takes the place of the path that the core file names; empty: it does not. Raises
    /// ETool for a file that is not a core file of this kind of processor.
    constructor Create(const CoreFile, ProgramFile: string);
    destructor Destroy; override;
    function Read(Address: UInt64; Buffer: Pointer; Size: NativeUInt): NativeUInt; override;
    function Name: string; override;
    function Threads: TArray<Cardinal>; override;
    procedure Need(Address: UInt64; Buffer: Pointer; Size: NativeUInt; const What: string);
      override;
    procedure CheckWhole; override;
    function ReadableLimit(Region: PRegion): UInt64; override;
  end;

implementation

uses
  Math, BaseUnix, Generics.Defaults, ToolCommands;

const
  CoreType = 4;
  NoteSegment = 4;
  StatusNote = 1;       // one for each thread
  ProcessNote = 3;
  FileNote = $46494C45; // `FILE`
  // Rights of a segment.
  CodeRight = 1;
  WriteRight = 2;
  ReadRight = 4;
  // Offsets in the notes of 64-bit systems.
  SignalOffset = 12;
  ThreadOffset = 32;
  RegistersOffset = 112;
  ProcessIdOffset = 24;

constructor TCoreTarget.Create(const CoreFile, ProgramFile: string);
begin
  inherited Create;
  Path := CoreFile;
  Files := TObjectDictionary<string, TFileStream>.Create([doOwnsValues]);
  if not FileExists(CoreFile) then
    raise ETool.Create(ecFailed, 'there is no file %s', [CoreFile]);
  Core := TFileStream.Create(CoreFile, fmOpenRead or fmShareDenyNone);
  ReadHead;
  MakeRegions;
  if ProgramFile <> '' then
    ReplaceProgram(ProgramFile);
  FindModules;
end;

destructor TCoreTarget.Destroy;
begin
  Files.Free;
  Core.Free;
  inherited Destroy;
end;

function TCoreTarget.Name: string;
begin
  Result := 'core file ' + Path;
end;

function TCoreTarget.Threads: TArray<Cardinal>;
begin
  Result := ThreadNumbers;
end;

procedure TCoreTarget.Need(Address: UInt64; Buffer: Pointer; Size: NativeUInt;
  const What: string);
begin
  if (MissingBytes > 0) and not ReadAll(Address, Buffer, Size) then
    raise ETool.Create(ecDamaged,
      '%s is cut off, %d bytes are missing at its end: %s at $%x is not in it',
      [Name, MissingBytes, What, Address]);
  inherited Need(Address, Buffer, Size, What);
end;

procedure TCoreTarget.CheckWhole;
begin
  if MissingBytes > 0 then
    raise ETool.Create(ecDamaged, '%s is cut off, %d bytes are missing at its end: there is no LaneMM in'
      + ' the rest', [Name, MissingBytes]);
end;

// ---------------------------------------------------------------------------- the file

// Returns the number of segments, which stands in the first section where the head has no room for it.
function TCoreTarget.CountSegments(const Head: TElfHead): Cardinal;
const
  ElsewhereCount = $FFFF;
  PlaceInSection = 44;
begin
  Result := Head.SegmentCount;
  if Result <> ElsewhereCount then
    Exit;
  Core.Position := Head.Sections + PlaceInSection;
  if Core.Read(Result, SizeOf(Result)) <> SizeOf(Result) then
    raise ETool.Create(ecDamaged, '%s is cut off: it lacks the number of its segments', [Path]);
end;

procedure TCoreTarget.ReadHead;
const
  Machine = {$ifdef CPUAARCH64} 183 {$else} 62 {$endif};
var
  Head: TElfHead;
  Segment: TElfSegment;
  Index: Integer;
begin
  if (Core.Read(Head, SizeOf(Head)) <> SizeOf(Head)) or (Head.Magic <> ElfMagic)
    or (Head.Kind <> CoreType) then
    raise ETool.Create(ecDamaged, '%s is not a core file', [Path]);
  if (Head.Bits <> 2) or (Head.Machine <> Machine) then
    raise ETool.Create(ecDamaged, '%s is the core file of another processor', [Path]);
  if Head.SegmentSize <> SizeOf(Segment) then
    raise ETool.Create(ecDamaged, '%s is damaged: its segments have %d bytes', [Path,
      Head.SegmentSize]);
  for Index := 0 to Int64(CountSegments(Head)) - 1 do
  begin
    Core.Position := Head.Segments + UInt64(Index) * Head.SegmentSize;
    if Core.Read(Segment, SizeOf(Segment)) <> SizeOf(Segment) then
      raise ETool.Create(ecDamaged, '%s is cut off in its head', [Path]);
    ReadSegment(Segment);
  end;
end;

procedure TCoreTarget.ReadSegment(const Segment: TElfSegment);
var
  Limit: UInt64;
  Part: TRegion;
begin
  Limit := Segment.Offset + Segment.FileBytes;
  if (Segment.FileBytes > 0) and (Limit > UInt64(Core.Size)) then
    MissingBytes := Max(MissingBytes, Limit - UInt64(Core.Size));
  if Segment.Kind = NoteSegment then
    ReadNotes(Segment.Offset, Segment.FileBytes);
  if Segment.Kind <> LoadSegment then
    Exit;
  Part := Default(TRegion);
  Part.First := Segment.Address;
  Part.Limit := Segment.Address + Segment.Bytes;
  Part.IsCode := Segment.Rights and CodeRight <> 0;
  Part.IsWritable := Segment.Rights and WriteRight <> 0;
  Part.IsReadable := Segment.Rights and ReadRight <> 0;
  Part.CoreOffset := Segment.Offset;
  Part.CoreBytes := Segment.FileBytes;
  Insert(Part, Parts, Length(Parts));
end;

procedure TCoreTarget.ReadNotes(Offset, Count: UInt64);
var
  Bytes: TBytes;
  Place, Size: UInt64;
  Kind: Cardinal;
begin
  if (Offset > UInt64(Core.Size)) or (Count > UInt64(Core.Size) - Offset) then
    raise ETool.Create(ecDamaged, '%s is cut off in its notes', [Path]);
  SetLength(Bytes, Count + 1); // the last name ends there, if not before
  Core.Position := Offset;
  Core.ReadBuffer(Pointer(Bytes)^, Count);
  Place := 0;
  // A note: length of its name, length of its data, kind; then both, each padded to four bytes.
  while Place + 12 <= Count do
  begin
    Size := PCardinal(@Bytes[Place + 4])^;
    Kind := PCardinal(@Bytes[Place + 8])^;
    Place := Place + 12 + (PCardinal(@Bytes[Place])^ + 3) and not UInt64(3);
    if Place + Size > Count then
      Exit;
    case Kind of
      StatusNote: ReadThreadNote(@Bytes[Place], Size);
      ProcessNote: ReadProcessNote(@Bytes[Place], Size);
      FileNote: ReadFileNote(@Bytes[Place], Size);
    end;
    Place := Place + (Size + 3) and not UInt64(3);
  end;
end;

procedure TCoreTarget.ReadProcessNote(Data: PByte; Size: UInt64);
begin
  if Size >= ProcessIdOffset + SizeOf(Integer) then
    ProcessId := PInteger(Data + ProcessIdOffset)^;
end;

procedure TCoreTarget.ReadThreadNote(Data: PByte; Size: UInt64);
var
  Found: TRegisters;
begin
  if Size < RegistersOffset + SizeOf(Found) then
    Exit;
  if ThreadNumbers = nil then
    Signal := PWord(Data + SignalOffset)^;
  Insert(PCardinal(Data + ThreadOffset)^, ThreadNumbers, Length(ThreadNumbers));
  Move(Data[RegistersOffset], Found, SizeOf(Found));
  Insert(Found, Registers, Length(Registers));
end;

// The mapped files: their number, the size of a page; first, limit, and offset in pages of each;
// then their names, each ended by #0.
procedure TCoreTarget.ReadFileNote(Data: PByte; Size: UInt64);
var
  Words: PUInt64;
  Names, Limit: PAnsiChar;
  Index: UInt64;
  Region: TRegion;
begin
  Words := Pointer(Data);
  Limit := PAnsiChar(Data) + Size;
  if (Size < 16) or (Words[0] > Size div 24) then
    Exit;
  Names := PAnsiChar(Words + 2 + Words[0] * 3);
  for Index := 1 to Words[0] do
  begin
    if Names >= Limit then
      Exit;
    Region := Default(TRegion);
    Region.First := Words[Index * 3 - 1];
    Region.Limit := Words[Index * 3];
    Region.FileOffset := Words[Index * 3 + 1] * Words[1];
    Region.Path := Names;
    AddRegion(Region);
    Inc(Names, Length(Region.Path) + 1);
  end;
  if RegionCount > 0 then
    ProgramPath := Regions[0]^.Path;
end;

procedure TCoreTarget.ReplaceProgram(const ProgramFile: string);
var
  Index: Integer;
begin
  if not FileExists(ProgramFile) then
    raise ETool.Create(ecFailed, 'there is no file %s', [ProgramFile]);
  for Index := 0 to High(List) do
    if (List[Index].Path <> '') and (List[Index].Path = ProgramPath) then
      List[Index].Path := ProgramFile;
  ProgramPath := ProgramFile;
end;

// Returns whether a mapping has code of its file: no matter how long pages are, it begins at or before its
// segment.
function TCoreTarget.HasCode(const Region: TRegion): Boolean;
var
  Source: TFileStream;
  Head: TElfHead;
  Segment: TElfSegment;
  Index: Integer;
begin
  Result := False;
  Source := OpenMapped(Region.Path);
  if Source = nil then
    Exit;
  Source.Position := 0;
  if (Source.Read(Head, SizeOf(Head)) <> SizeOf(Head)) or (Head.Magic <> ElfMagic) then
    Exit;
  for Index := 0 to Head.SegmentCount - 1 do
  begin
    Source.Position := Head.Segments + UInt64(Index) * Head.SegmentSize;
    if (Source.Read(Segment, SizeOf(Segment)) = SizeOf(Segment)) and (Segment.Kind = LoadSegment)
      and (Segment.Rights and CodeRight <> 0)
      and (Region.FileOffset < Segment.Offset + Segment.FileBytes)
      and (Segment.Offset < Region.FileOffset + (Region.Limit - Region.First)) then
      Exit(True);
  end;
end;

function ByAddress(constref Left, Right: TRegion): Integer;
begin
  Result := Ord(Left.First > Right.First) - Ord(Left.First < Right.First);
end;

// Sets the file that the notes name for a part. Named is sorted.
procedure TCoreTarget.NamePart(var Part: TRegion; const Named: TArray<TRegion>);
var
  Low, Limit, Middle: Integer;
begin
  Low := 0;
  Limit := Length(Named);
  while Low < Limit do
  begin
    Middle := (Low + Limit) div 2;
    if Named[Middle].First <= Part.First then
      Low := Middle + 1
    else
      Limit := Middle;
  end;
  if (Low = 0) or (Part.First >= Named[Low - 1].Limit) then
    Exit;
  Part.Path := Named[Low - 1].Path;
  Part.FileOffset := Named[Low - 1].FileOffset + Part.First - Named[Low - 1].First;
end;

// Adds a region, unless the file is damaged: then it may begin in the one before, or end before it begins.
procedure TCoreTarget.AddBehind(const Region: TRegion);
begin
  if (Region.First < Region.Limit) and ((List = nil) or (Region.First >= List[High(List)].Limit)) then
    AddRegion(Region);
end;

// Makes the regions: the parts, and the mapped files that have none, as code has none in a file by
// gcore.
procedure TCoreTarget.MakeRegions;
var
  Named: TArray<TRegion>;
  Next, Index: Integer;
begin
  Named := nil;
  SetLength(Named, RegionCount);
  for Index := 0 to High(Named) do
    Named[Index] := List[Index];
  List := nil;
  TArrayHelper<TRegion>.Sort(Named, TComparer<TRegion>.Construct(ByAddress));
  TArrayHelper<TRegion>.Sort(Parts, TComparer<TRegion>.Construct(ByAddress));
  for Index := 0 to High(Parts) do
    NamePart(Parts[Index], Named);
  Next := 0;
  for Index := 0 to High(Named) do
  begin
    while (Next < Length(Parts)) and (Parts[Next].First < Named[Index].First) do
    begin
      AddBehind(Parts[Next]);
      Inc(Next);
    end;
    if (Next < Length(Parts)) and (Parts[Next].First < Named[Index].Limit) then
      Continue;
    Named[Index].IsReadable := True;
    Named[Index].IsCode := HasCode(Named[Index]);
    AddBehind(Named[Index]);
  end;
  for Index := Next to High(Parts) do
    AddBehind(Parts[Index]);
  if RegionCount = 0 then
    raise ETool.Create(ecDamaged, '%s has no memory in it', [Path]);
end;

// ---------------------------------------------------------------------------- reading

// Opens a mapped file, until the next one is opened; nil without one. Only a regular one: to open a
// device could do something.
function TCoreTarget.OpenMapped(const Name: string): TFileStream;
const
  MostOpen = 100; // the process may have had more than this program may open
begin
  if Files.TryGetValue(Name, Result) then
    Exit;
  if Files.Count >= MostOpen then
    Files.Clear;
  Result := nil;
  if IsPlainFile(Name) and (FpAccess(Name, R_OK) = 0) then
    Result := TFileStream.Create(Name, fmOpenRead or fmShareDenyNone);
  Files.Add(Name, Result);
end;

// Returns the bytes that were read from Position on, at most Size.
function ReadFrom(Source: TFileStream; Position: UInt64; Buffer: Pointer;
  Size: NativeUInt): NativeUInt;
begin
  Result := 0;
  if (Position <= UInt64(High(Int64))) and (Source.Seek(Int64(Position), soBeginning) = Int64(Position)) then
    Result := Max(0, Source.Read(Buffer^, Size)); // negative on error
end;

// Reads from the file that was mapped there.
function TCoreTarget.ReadMapped(Region: PRegion; Offset: UInt64; Buffer: Pointer;
  Size: NativeUInt): NativeUInt;
var
  Source: TFileStream;
begin
  Result := 0;
  if not Region^.Path.StartsWith('/') then
    Exit;
  Source := OpenMapped(Region^.Path);
  if Source <> nil then
    Result := ReadFrom(Source, Region^.FileOffset + Offset, Buffer, Size);
end;

// Reads what one region has of the addresses from Address on.
function TCoreTarget.ReadPart(Address: UInt64; Buffer: Pointer; Size: NativeUInt): NativeUInt;
var
  Region: PRegion;
  Offset: UInt64;
begin
  Region := FindRegion(Address);
  if Region = nil then
    Exit(0);
  Offset := Address - Region^.First;
  Size := Min(Size, Region^.Limit - Address);
  if Offset < Region^.CoreBytes then
    Result := ReadFrom(Core, Region^.CoreOffset + Offset, Buffer,
      Min(Size, Region^.CoreBytes - Offset))
  else
    Result := ReadMapped(Region, Offset, Buffer, Size);
end;

// A segment may be long beyond measure and have nothing in the file, as memory that a program keeps
// out of its core file.
function TCoreTarget.ReadableLimit(Region: PRegion): UInt64;
var
  Bytes: UInt64;
  Source: TFileStream;
begin
  Bytes := 0;
  if Region^.CoreOffset < UInt64(Core.Size) then
    Bytes := Min(Region^.CoreBytes, UInt64(Core.Size) - Region^.CoreOffset);
  if Region^.Path.StartsWith('/') then
  begin
    Source := OpenMapped(Region^.Path);
    if (Source <> nil) and (Region^.FileOffset < UInt64(Source.Size)) then
      Bytes := Max(Bytes, UInt64(Source.Size) - Region^.FileOffset);
  end;
  Result := Region^.First + Min(Bytes, Region^.Limit - Region^.First);
end;

function TCoreTarget.Read(Address: UInt64; Buffer: Pointer; Size: NativeUInt): NativeUInt;
var
  Part: NativeUInt;
begin
  Result := 0;
  while Result < Size do
  begin
    Part := ReadPart(Address + Result, PByte(Buffer) + Result, Size - Result);
    if Part = 0 then
      Exit;
    Inc(Result, Part);
  end;
end;

end.
