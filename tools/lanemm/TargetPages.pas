/// The pages of a target as one search sees them: those with small blocks are read once, and those
/// that the program has never touched not at all.
//
// To read a page that was never touched is no help, for it holds zeros, and costs the process
// memory: the system enters it in the page tables.
unit TargetPages;

{$mode delphi}{$H+}
{$pointermath on}

interface

uses
  SysUtils, Classes, Targets;

const
  /// Bytes of a page.
  PageBytes = 4096;
  /// Maximum number of pages whose copies are kept.
  MostCopies = 65536;
  /// Reads of so many bytes and more leave untouched pages out.
  LeastSparse = 32768;

type
  /// Reads a target. Copies are those of the first read of a page.
  TTargetPages = class
  private
    Target: TTarget;
    Copies: array of PByte;   // of pages: each has one place
    Numbers: array of UInt64; // of the pages that were read; 0: none
    Map: TFileStream;         // what the system says of each page; nil: of none
    Entries: array[0..4095] of UInt64; // from FirstEntry on
    FirstEntry, EntryCount: UInt64;
    procedure OpenMap;
    procedure ReadEntries(Page: UInt64);
    function IsTouched(Address: UInt64): Boolean;
    function ScanTouched(var Address: UInt64; Limit: UInt64): Boolean;
    function TouchedBytes(Address, Size: UInt64): UInt64;
    function CopyOf(Page: UInt64): PByte;
    function ReadCopies(Address: UInt64; Buffer: PByte; Size: NativeUInt): NativeUInt;
  public
    constructor Create(Source: TTarget);
    destructor Destroy; override;
    /// Copies at most Size bytes from Address on; returns the number of bytes up to the first that
    /// cannot be read, or of LeastSparse bytes and more up to the first untouched page.
    function Read(Address: UInt64; Buffer: Pointer; Size: NativeUInt): NativeUInt;
    /// Copies touched pages to their places among Size bytes that are 0; returns whether all could
    /// be read.
    function ReadTouched(Address: UInt64; Zeros: PByte; Size: NativeUInt): Boolean;
    /// Returns whether all of Size bytes could be read; those of untouched pages are 0.
    function ReadAll(Address: UInt64; Buffer: Pointer; Size: NativeUInt): Boolean;
    /// Returns the first address from Address, that of a page, up to Limit that may hold anything
    /// but zeros; Limit, rounded up to a page, or the end of the mapping if there is none. From
    /// Linux 6.7 on its time grows with the pages that were touched, before with all pages.
    function NextTouched(Address, Limit: UInt64): UInt64;
  end;

implementation

uses
  Math, BaseUnix;

const
  // Entries that are read at first, and how many times more each time that they are used up.
  FirstEntries = 64;
  EntryGrowth = 8;
  // The bits of an entry from here on: of a file, in the swap space, in memory.
  HeldShift = 61;
  // The call of Linux 6.7 and later that finds pages, and the kinds: in memory, in the swap space.
  ScanCall = $C0606610;
  HeldKinds = 8 or 16;

type
  // Pages of one kind, as ScanCall returns them.
  TFoundPages = record
    First, Limit, Kinds: UInt64;
  end;
  // The argument of ScanCall: pages of any of the kinds in Any.
  TPageScan = record
    Size, Flags, First, Limit, Ended: UInt64;
    Found: ^TFoundPages;
    MostFound, MostPages, Inverted, All, Any, Told: UInt64;
  end;

constructor TTargetPages.Create(Source: TTarget);
begin
  inherited Create;
  Target := Source;
  if Source is TProcessTarget then
    OpenMap;
end;

destructor TTargetPages.Destroy;
var
  Copy: PByte;
begin
  for Copy in Copies do
    FreeMem(Copy);
  Map.Free;
  inherited Destroy;
end;

// ---------------------------------------------------------------------------- touched pages

function OpenPageMap(Id: Integer): TFileStream;
begin
  try
    Result := TFileStream.Create(Format('/proc/%d/pagemap', [Id]), fmOpenRead or fmShareDenyNone);
  except
    on EStreamError do
      Result := nil; // as where /proc is that of another system: all pages are read
  end;
end;

// An emulator may show pages of its own, and pages may be larger: then the stack of this routine is
// not where its address says, or a page that this program never had is touched.
procedure TTargetPages.OpenMap;
var
  OnStack: UInt64;
  IsRight: Boolean;
begin
  Map := OpenPageMap(GetProcessID);
  if Map = nil then
    Exit;
  ReadEntries(UInt64(@OnStack) div PageBytes);
  IsRight := (EntryCount > 0) and (Entries[0] shr HeldShift <> 0);
  Map.Free;
  Map := nil;
  EntryCount := 0;
  if IsRight then
    Map := OpenPageMap(Target.ProcessId);
end;

// Reads entries from that of Page on, of which there may be none.
procedure TTargetPages.ReadEntries(Page: UInt64);
var
  Wanted: UInt64;
begin
  Wanted := FirstEntries;
  if (EntryCount > 0) and (Page = FirstEntry + EntryCount) then
    Wanted := Min(EntryCount * EntryGrowth, UInt64(Length(Entries)));
  Map.Position := Page * SizeOf(UInt64);
  FirstEntry := Page;
  EntryCount := Max(0, Map.Read(Entries, Wanted * SizeOf(UInt64))) div SizeOf(UInt64);
end;

// Only memory without a file begins with zeros.
function BeginsWithZeros(Region: PRegion): Boolean;
begin
  Result := (Region <> nil) and ((Region^.Path = '') or Region^.Path.StartsWith('['));
end;

// Returns whether a page has contents of its own.
function TTargetPages.IsTouched(Address: UInt64): Boolean;
var
  Page: UInt64;
begin
  if Map = nil then
    Exit(True);
  Page := Address div PageBytes;
  if Page - FirstEntry >= EntryCount then
    ReadEntries(Page);
  if (EntryCount = 0) or (Entries[Page - FirstEntry] shr HeldShift <> 0) then
    Exit(True);
  Result := not BeginsWithZeros(Target.FindRegion(Address));
end;

// Moves Address on to the first page that the system holds, or to Limit; False if it cannot tell.
function TTargetPages.ScanTouched(var Address: UInt64; Limit: UInt64): Boolean;
var
  Scan: TPageScan;
  Found: TFoundPages;
  Count: Integer;
begin
  Scan := Default(TPageScan);
  Scan.Size := SizeOf(Scan);
  Scan.First := Address;
  Scan.Limit := Limit;
  Scan.Found := @Found;
  Scan.MostFound := 1;
  Scan.MostPages := 1;
  Scan.Any := HeldKinds;
  Scan.Told := HeldKinds;
  Count := fpIOCtl(Map.Handle, ScanCall, @Scan);
  Result := Count >= 0;
  if Count > 0 then
    Address := Found.First
  else if Count = 0 then
    Address := Limit;
end;

function TTargetPages.NextTouched(Address, Limit: UInt64): UInt64;
var
  Region: PRegion;
begin
  Result := Address;
  Region := Target.FindRegion(Address);
  if (Map = nil) or not BeginsWithZeros(Region) then
    Exit;
  Limit := Min((Limit + PageBytes - 1) and not UInt64(PageBytes - 1), Region^.Limit);
  if IsTouched(Result) or ScanTouched(Result, Limit) then
    Exit;
  while (Result < Limit) and not IsTouched(Result) do
    Inc(Result, PageBytes);
end;

// Returns how many of Size bytes from Address on come before the first untouched page.
function TTargetPages.TouchedBytes(Address, Size: UInt64): UInt64;
begin
  Result := 0;
  while (Result < Size) and IsTouched(Address + Result) do
    Inc(Result, PageBytes - (Address + Result) mod PageBytes);
  Result := Min(Result, Size);
end;

// ---------------------------------------------------------------------------- copies

// Returns the copy of a page; nil if it cannot be read, which is not tried again.
function TTargetPages.CopyOf(Page: UInt64): PByte;
var
  Place: NativeUInt;
begin
  if Copies = nil then
  begin
    SetLength(Copies, MostCopies);
    SetLength(Numbers, MostCopies);
  end;
  Place := Page mod MostCopies;
  if Numbers[Place] <> Page then
  begin
    Numbers[Place] := Page;
    if Copies[Place] = nil then
      Copies[Place] := GetMem(PageBytes);
    if Target.Read(Page * PageBytes, Copies[Place], PageBytes) <> PageBytes then
    begin
      FreeMem(Copies[Place]);
      Copies[Place] := nil;
    end;
  end;
  Result := Copies[Place];
end;

function TTargetPages.ReadCopies(Address: UInt64; Buffer: PByte; Size: NativeUInt): NativeUInt;
var
  Page: PByte;
  Offset, Part: NativeUInt;
begin
  Result := 0;
  while Result < Size do
  begin
    Page := CopyOf((Address + Result) div PageBytes);
    if Page = nil then // a core file may have a part of it
      Exit(Result + Target.Read(Address + Result, Buffer + Result, Size - Result));
    Offset := (Address + Result) mod PageBytes;
    Part := Min(PageBytes - Offset, NativeUInt(Size - Result));
    Move(Page[Offset], Buffer[Result], Part);
    Inc(Result, Part);
  end;
end;

function TTargetPages.Read(Address: UInt64; Buffer: Pointer; Size: NativeUInt): NativeUInt;
begin
  if Size <= PageBytes then
    Exit(ReadCopies(Address, Buffer, Size));
  if Size >= LeastSparse then
    Size := TouchedBytes(Address, Size);
  Result := 0;
  if Size > 0 then
    Result := Target.Read(Address, Buffer, Size);
end;

function TTargetPages.ReadTouched(Address: UInt64; Zeros: PByte; Size: NativeUInt): Boolean;
var
  Limit, Next: UInt64;
  Part: NativeUInt;
begin
  Result := True;
  Limit := Address + Size;
  while Result and (Address < Limit) do
  begin
    Part := TouchedBytes(Address, Limit - Address);
    Next := Address + Part;
    if Part > 0 then
      Result := Target.ReadAll(Address, Zeros, Part)
    else
      Next := NextTouched(Address - Address mod PageBytes + PageBytes, Limit);
    Inc(Zeros, Next - Address);
    Address := Next;
  end;
end;

function TTargetPages.ReadAll(Address: UInt64; Buffer: Pointer; Size: NativeUInt): Boolean;
begin
  FillChar(Buffer^, Size, 0);
  Result := ReadTouched(Address, Buffer, Size);
end;

end.
