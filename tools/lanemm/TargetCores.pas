/// A dead process: its core file, with the files that were mapped.
unit TargetCores;

{$mode delphi}{$H+}
{$pointermath on}

interface

uses
  SysUtils, Classes, Generics.Collections, Targets;

type
  /// Memory in a core file.
  TCorePart = record
    First, Size: UInt64;   //< addresses
    Offset: UInt64;        //< in the file
    Bytes: UInt64;         //< of Size, those that are in the file
    Rights: Cardinal;      //< CodeRight, WriteRight, ReadRight
  end;

  /// The memory of a process in a core file. What the system left out of it, code and constants, is
  /// read from the files that were mapped.
  TCoreTarget = class(TTarget)
  private
    Path: string;
    Core: TFileStream;
    Parts: array of TCorePart;
    Files: TObjectDictionary<string, TFileStream>;
    procedure ReadHead;
    procedure ReadSegment(Kind: Cardinal; const Part: TCorePart);
    procedure ReadNotes(const Part: TCorePart);
    procedure ReadThreadNote(Data: PByte; Size: UInt64);
    procedure ReadFileNote(Data: PByte; Size: UInt64);
    procedure ReplaceProgram(const ProgramFile: string);
    function HasCode(const FileName: string; Offset: UInt64): Boolean;
    function RegionOf(const Part: TCorePart; const Named: array of TRegion): TRegion;
    procedure MakeRegions;
    function FindPart(Address: UInt64): Integer;
    function ReadMapped(Address: UInt64; Buffer: Pointer; Size: NativeUInt): NativeUInt;
    function ReadPart(Address: UInt64; Buffer: Pointer; Size: NativeUInt): NativeUInt;
    function OpenMapped(const Name: string): TFileStream;
  public
    /// The signal that ended the process; 0: unknown, or a picture of a running one.
    Signal: Integer;
    /// The numbers of its threads; the first is the one that got the signal.
    ThreadNumbers: TArray<Cardinal>;
    /// Their registers.
    ThreadRegisters: TArray<TRegisters>;
    /// Bytes that its head promises and the file does not have: it was cut off.
    MissingBytes: UInt64;
    /// ProgramFile takes the place of the path that the core file names; empty: it does not. Raises
    /// ETool for a file that is not a core file of this kind of processor.
    constructor Create(const CoreFile, ProgramFile: string);
    destructor Destroy; override;
    function Read(Address: UInt64; Buffer: Pointer; Size: NativeUInt): NativeUInt; override;
    function Name: string; override;
    function Threads: TArray<Cardinal>; override;
    function Registers: TArray<TRegisters>; override;
    procedure Need(Address: UInt64; Buffer: Pointer; Size: NativeUInt; const What: string);
      override;
  end;

implementation

uses
  ToolCommands;

const
  ElfMagic = $464C457F;
  CoreType = 4;
  LoadSegment = 1;
  NoteSegment = 4;
  StatusNote = 1;       // one for each thread
  ProcessNote = 3;
  FileNote = $46494C45; // `FILE`
  // Rights of a segment.
  CodeRight = 1;
  WriteRight = 2;
  ReadRight = 4;
  PageBytes = UInt64(4096);
  // Offsets in the notes of 64-bit systems.
  SignalOffset = 12;
  ThreadOffset = 32;
  RegistersOffset = 112;
  ProcessIdOffset = 24;

type
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

  TElfSegment = packed record
    Kind, Rights: Cardinal;
    Offset, Address, Physical, FileBytes, Bytes, Alignment: UInt64;
  end;

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

function TCoreTarget.Registers: TArray<TRegisters>;
begin
  Result := ThreadRegisters;
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

// ---------------------------------------------------------------------------- the file

procedure TCoreTarget.ReadHead;
const
  Machine = {$ifdef CPUAARCH64} 183 {$else} 62 {$endif};
var
  Head: TElfHead;
  Segment: TElfSegment;
  Part: TCorePart;
  Index: Integer;
begin
  if (Core.Read(Head, SizeOf(Head)) <> SizeOf(Head)) or (Head.Magic <> ElfMagic)
    or (Head.Kind <> CoreType) then
    raise ETool.Create(ecDamaged, '%s is not a core file', [Path]);
  if (Head.Bits <> 2) or (Head.Machine <> Machine) then
    raise ETool.Create(ecDamaged, '%s is the core file of another processor', [Path]);
  for Index := 0 to Head.SegmentCount - 1 do
  begin
    Core.Position := Head.Segments + UInt64(Index) * Head.SegmentSize;
    if Core.Read(Segment, SizeOf(Segment)) <> SizeOf(Segment) then
      raise ETool.Create(ecDamaged, '%s is cut off in its head', [Path]);
    Part.First := Segment.Address;
    Part.Size := Segment.Bytes;
    Part.Offset := Segment.Offset;
    Part.Bytes := Segment.FileBytes;
    Part.Rights := Segment.Rights;
    ReadSegment(Segment.Kind, Part);
  end;
end;

procedure TCoreTarget.ReadSegment(Kind: Cardinal; const Part: TCorePart);
var
  Limit: UInt64;
begin
  Limit := Part.Offset + Part.Bytes;
  if (Part.Bytes > 0) and (Limit > UInt64(Core.Size)) then
    if Limit - UInt64(Core.Size) > MissingBytes then
      MissingBytes := Limit - UInt64(Core.Size);
  if Kind = LoadSegment then
    Insert(Part, Parts, Length(Parts))
  else if Kind = NoteSegment then
    ReadNotes(Part);
end;

procedure TCoreTarget.ReadNotes(const Part: TCorePart);
var
  Bytes: TBytes;
  Place, Size: UInt64;
  Kind: Cardinal;
begin
  SetLength(Bytes, Part.Bytes);
  Core.Position := Part.Offset;
  if Core.Read(Pointer(Bytes)^, Length(Bytes)) <> Length(Bytes) then
    raise ETool.Create(ecDamaged, '%s is cut off in its notes', [Path]);
  Place := 0;
  // A note: length of its name, length of its data, kind; then both, each padded to four bytes.
  while Place + 12 <= UInt64(Length(Bytes)) do
  begin
    Size := PCardinal(@Bytes[Place + 4])^;
    Kind := PCardinal(@Bytes[Place + 8])^;
    Place := Place + 12 + (PCardinal(@Bytes[Place])^ + 3) and not UInt64(3);
    if Place + Size > UInt64(Length(Bytes)) then
      Exit;
    case Kind of
      StatusNote: ReadThreadNote(@Bytes[Place], Size);
      ProcessNote: ProcessId := PInteger(@Bytes[Place + ProcessIdOffset])^;
      FileNote: ReadFileNote(@Bytes[Place], Size);
    end;
    Place := Place + (Size + 3) and not UInt64(3);
  end;
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
  Insert(Found, ThreadRegisters, Length(ThreadRegisters));
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

// Returns whether a file has code at Offset.
function TCoreTarget.HasCode(const FileName: string; Offset: UInt64): Boolean;
var
  Source: TFileStream;
  Head: TElfHead;
  Segment: TElfSegment;
  Index: Integer;
begin
  Result := False;
  Source := OpenMapped(FileName);
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
      and (Offset - (Segment.Offset and not (PageBytes - 1)) < Segment.FileBytes) then
      Exit(True);
  end;
end;

// Returns the region of a part, with the file that the notes name for it.
function TCoreTarget.RegionOf(const Part: TCorePart; const Named: array of TRegion): TRegion;
var
  Each: TRegion;
begin
  Result := Default(TRegion);
  Result.First := Part.First;
  Result.Limit := Part.First + Part.Size;
  Result.IsCode := Part.Rights and CodeRight <> 0;
  Result.IsWritable := Part.Rights and WriteRight <> 0;
  Result.IsReadable := Part.Rights and ReadRight <> 0;
  for Each in Named do
    if (Each.First <= Part.First) and (Part.First < Each.Limit) then
    begin
      Result.Path := Each.Path;
      Result.FileOffset := Each.FileOffset + Part.First - Each.First;
    end;
end;

// Makes the regions: the parts, and the mapped files that have none, as code has none in a file by
// gcore. Both are in the order of address.
procedure TCoreTarget.MakeRegions;
var
  Named: array of TRegion;
  Next, Index: Integer;
begin
  Named := Copy(List);
  List := nil;
  Next := 0;
  for Index := 0 to High(Named) do
  begin
    while (Next < Length(Parts)) and (Parts[Next].First < Named[Index].First) do
    begin
      AddRegion(RegionOf(Parts[Next], Named));
      Inc(Next);
    end;
    if (Next < Length(Parts)) and (Parts[Next].First < Named[Index].Limit) then
      Continue;
    Named[Index].IsReadable := True;
    Named[Index].IsCode := HasCode(Named[Index].Path, Named[Index].FileOffset);
    AddRegion(Named[Index]);
  end;
  for Index := Next to High(Parts) do
    AddRegion(RegionOf(Parts[Index], Named));
end;

// ---------------------------------------------------------------------------- reading

function TCoreTarget.FindPart(Address: UInt64): Integer;
var
  Low, High, Middle: Integer;
begin
  Low := 0;
  High := Length(Parts);
  while Low < High do
  begin
    Middle := (Low + High) div 2;
    if Parts[Middle].First + Parts[Middle].Size <= Address then
      Low := Middle + 1
    else
      High := Middle;
  end;
  Result := -1;
  if (Low < Length(Parts)) and (Parts[Low].First <= Address) then
    Result := Low;
end;

function TCoreTarget.OpenMapped(const Name: string): TFileStream;
begin
  if Files.TryGetValue(Name, Result) then
    Exit;
  Result := nil;
  if FileExists(Name) then
    Result := TFileStream.Create(Name, fmOpenRead or fmShareDenyNone);
  Files.Add(Name, Result);
end;

function TCoreTarget.ReadMapped(Address: UInt64; Buffer: Pointer; Size: NativeUInt): NativeUInt;
var
  Region: PRegion;
  Source: TFileStream;
begin
  Result := 0;
  Region := FindRegion(Address);
  if (Region = nil) or not Region^.Path.StartsWith('/') then
    Exit;
  Source := OpenMapped(Region^.Path);
  if Source = nil then
    Exit;
  if Size > Region^.Limit - Address then
    Size := Region^.Limit - Address;
  Source.Position := Region^.FileOffset + Address - Region^.First;
  Result := Source.Read(Buffer^, Size);
end;

// Reads what one part has of the addresses from Address on.
function TCoreTarget.ReadPart(Address: UInt64; Buffer: Pointer; Size: NativeUInt): NativeUInt;
var
  Index: Integer;
  Offset: UInt64;
begin
  Index := FindPart(Address);
  if Index < 0 then
    Exit(ReadMapped(Address, Buffer, Size));
  Offset := Address - Parts[Index].First;
  if Size > Parts[Index].Size - Offset then
    Size := Parts[Index].Size - Offset;
  if Offset >= Parts[Index].Bytes then
    Exit(ReadMapped(Address, Buffer, Size));
  if Size > Parts[Index].Bytes - Offset then
    Size := Parts[Index].Bytes - Offset;
  Core.Position := Parts[Index].Offset + Offset;
  Result := Core.Read(Buffer^, Size);
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
