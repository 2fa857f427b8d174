/// The status pages of processes, as far as the system lets others see them.
unit StatusPages;

{$mode delphi}{$H+}

interface

uses
  LaneMM.StatusPage, Targets;

type
  /// A status page of a process.
  TPageCopy = record
    ProcessId: Integer;   //< the process that was asked for
    Page: TStatusPage;    //< a copy
    HasTotals: Boolean;   //< Totals were written, and are not torn
    IsParents: Boolean;   //< the page is that of the parent: the process was forked a moment ago
    Segment: Integer;     //< number of its segment of shared memory
  end;
  TPageCopies = TArray<TPageCopy>;

/// Returns the addresses of Process that the status pages in the target's memory name; nil: it has
/// no page. Raises ETool for one of another version.
function PageEngines(Target: TTarget): TArray<UInt64>;
/// Returns the numbers of the segments of shared memory that the process maps and that may be pages.
function PageSegments(ProcessId: Integer): TArray<Integer>;
/// Maps a segment that the process has; ShmRdOnly: for reading. Nil when the system refuses. Ends
/// with UnmapSegment.
function MapSegment(ProcessId, Segment, Flags: Integer): PStatusPage;
procedure UnmapSegment(Page: PStatusPage);
/// Returns the pages that the process has. Needs the right to read its list of mappings only, not
/// that to read its memory. Empty when it has none, or the system refuses.
function OpenPages(ProcessId: Integer): TPageCopies;
/// Returns whether the process runs on LaneMM, as far as the list of its mappings tells: it has the
/// page where all copies register. Also for one that cannot be read.
function IsOnLaneMM(ProcessId: Integer): Boolean;
/// Returns the text in Room, up to its #0 or its end.
function TextIn(const Room: array of AnsiChar): string;
/// Returns how old the totals are as `12 s old`; empty: less than a second.
function AgeText(const Totals: TPageTotals): string;
/// Returns whether the page begins as one of LaneMM.
function IsPage(const Page: TStatusPage): Boolean;
/// Raises ETool if the page differs from the one that this program knows. Its parts lie at the same
/// places for both sizes of pointers.
procedure CheckPage(const Page: TStatusPage; const Name: string);

implementation

uses
  SysUtils, BaseUnix, Ipc, SysCall, LaneMM.Layout, LaneMM.Types, ToolCommands;

function TextIn(const Room: array of AnsiChar): string;
begin
  SetString(Result, PAnsiChar(@Room), Length(Room));
  Result := Result.Split([#0])[0];
end;

procedure RaiseOther(const Page: TStatusPage; const Name: string);
begin
  raise ETool.Create(ecOtherVersion,
    '%s has LaneMM %s with layout %d for %d bits; this is the tool for layout %d and %d bits',
    [Name, Printable(TextIn(Page.Head.Version)), Page.Head.Layout, Page.Head.PointerBytes * 8,
    PageLayout, SizeOf(Pointer) * 8]);
end;

procedure CheckPage(const Page: TStatusPage; const Name: string);
begin
  if Page.Head.Layout <> PageLayout then
    RaiseOther(Page, Name);
end;

// Raises ETool if the records of the process differ, too, from those that this program knows.
procedure CheckRecords(const Page: TStatusPage; const Name: string);
begin
  CheckPage(Page, Name);
  if (Page.Head.PointerBytes <> SizeOf(Pointer))
    or (Page.Head.RecordBytes[prProcess] <> SizeOf(TProcess))
    or (Page.Head.RecordBytes[prSpan] <> SizeOf(TSpan))
    or (Page.Head.RecordBytes[prHeap] <> SizeOf(THeap)) then
    RaiseOther(Page, Name);
end;

function IsPage(const Page: TStatusPage): Boolean;
begin
  Result := CompareMem(@Page.Head.Magic, PAnsiChar(PageMagic), SizeOf(Page.Head.Magic));
end;

function PageEngines(Target: TTarget): TArray<UInt64>;
var
  Region: PRegion;
  Page: TStatusPage;
begin
  Result := nil;
  for Region in Target.AllRegions do
    if Region^.Path.StartsWith(PageMapping)
      and Target.ReadAll(Region^.First, @Page, SizeOf(Page)) and IsPage(Page) then
    begin
      CheckRecords(Page, Target.Name);
      Insert(Page.Head.Engine, Result, Length(Result));
    end;
end;

// ---------------------------------------------------------------------------- segments

type
  // The fields of a line of maps.
  TMapsField = (mfRange, mfRights, mfOffset, mfDevice, mfInode);

// Returns the fields of the mappings that may be pages.
function PageMappings(ProcessId: Integer): TArray<TStringArray>;
var
  Line: string;
  Fields: TStringArray;
begin
  Result := nil;
  for Line in ReadSmallFile(Format('/proc/%d/maps', [ProcessId])).Split([#10]) do
  begin
    if Pos(' ' + PageMapping, Line) = 0 then
      Continue;
    Fields := Line.Split([' '], TStringSplitOptions.ExcludeEmpty);
    if (Length(Fields) > Ord(High(TMapsField))) and (Fields[Ord(mfRights)] = 'rw-s') then
      Insert(Fields, Result, Length(Result));
  end;
end;

// A file may have such a name, too, and a number that no segment has.
function PageSegments(ProcessId: Integer): TArray<Integer>;
var
  Fields: TStringArray;
  Number: Integer;
begin
  Result := nil;
  for Fields in PageMappings(ProcessId) do
    if TryStrToInt(Fields[Ord(mfInode)], Number) then
      Insert(Number, Result, Length(Result));
end;

// Goes to the namespace of segments that the file of /proc stands for.
procedure EnterNamespace(Handle: THandle);
const
  EnterCall = {$ifdef CPUAARCH64} 268 {$else} 308 {$endif};
  OfIpc = $8000000;
begin
  do_syscall(EnterCall, Handle, OfIpc);
end;

// Returns whether the process made a segment of this number here: it may have left for a namespace of
// its own since.
function IsMadeHere(ProcessId, Segment: Integer): Boolean;
var
  State: TShmid_ds;
begin
  Result := (shmctl(Segment, IPC_STAT, @State) = 0) and (State.shm_cpid = ProcessId);
end;

// Maps a segment by the file of its mapping, which root may open wherever the segment was made.
function MapFile(ProcessId, Segment, Flags: Integer): PStatusPage;
const
  Access: array[Boolean] of Integer = (O_RDWR, O_RDONLY);
  Rights: array[Boolean] of Integer = (PROT_READ or PROT_WRITE, PROT_READ);
var
  Fields: TStringArray;
  Handle: THandle;
  Status: TStat;
begin
  Result := nil;
  for Fields in PageMappings(ProcessId) do
    if Fields[Ord(mfInode)] = IntToStr(Segment) then
    begin
      Handle := fpOpen(Format('/proc/%d/map_files/%s', [ProcessId, Fields[Ord(mfRange)]]),
        Access[Flags = SHM_RDONLY]);
      if Handle < 0 then
        Continue;
      // To read beyond the end of a file would end lanemm.
      if (fpFStat(Handle, Status) = 0) and (Status.st_size >= SizeOf(TStatusPage)) then
        Result := fpMMap(nil, SizeOf(TStatusPage), Rights[Flags = SHM_RDONLY], MAP_SHARED, Handle, 0);
      fpClose(Handle);
      if Result = MAP_FAILED then
        Result := nil;
    end;
end;

procedure UnmapSegment(Page: PStatusPage);
begin
  fpMUnmap(Page, SizeOf(TStatusPage));
end;

// The segments of a container have numbers of their own; root may go there.
function MapSegment(ProcessId, Segment, Flags: Integer): PStatusPage;
const
  Own = '/proc/self/ns/ipc';
var
  Theirs: string;
  Back, There: THandle;
  IsForeign: Boolean;
begin
  Back := -1;
  Theirs := Format('/proc/%d/ns/ipc', [ProcessId]);
  IsForeign := (fpReadLink(Theirs) <> fpReadLink(Own)) and not IsMadeHere(ProcessId, Segment);
  if IsForeign then
  begin
    Back := FileOpen(Own, fmOpenRead or fmShareDenyNone);
    There := FileOpen(Theirs, fmOpenRead or fmShareDenyNone);
    if (Back >= 0) and (There >= 0) then
      EnterNamespace(There);
    if There >= 0 then
      FileClose(There);
    IsForeign := fpReadLink(Theirs) <> fpReadLink(Own);
  end;
  Result := nil;
  if not IsForeign then
    Result := shmat(Segment, nil, Flags);
  if NativeInt(Result) = -1 then
    Result := nil;
  if Back >= 0 then
  begin
    EnterNamespace(Back);
    FileClose(Back);
  end;
  if Result = nil then
    Result := MapFile(ProcessId, Segment, Flags);
end;

// Copies the page until its number is the same before and after; a process that was stopped while it
// wrote the totals has none.
procedure CopyPage(Page: PStatusPage; out Copy: TPageCopy);
const
  Tries = 100;
var
  First: UInt64;
  Attempt: Integer;
begin
  for Attempt := 1 to Tries do
  begin
    First := Page^.Sequence.Room;
    ReadBarrier; // the number before the totals
    Copy.Page := Page^;
    ReadBarrier; // the totals before the second look at their number
    Copy.HasTotals := (Copy.Page.Head.Layout = PageLayout) and not Odd(First)
      and (First = Page^.Sequence.Room) and (Copy.Page.Totals.Count > 0);
    if Copy.HasTotals or (Copy.Page.Totals.Count = 0) then
      Break;
  end;
end;

// Returns whether the segment is a page, with a copy of it.
function ReadPage(ProcessId, Segment: Integer; out Copy: TPageCopy): Boolean;
var
  Page: PStatusPage;
begin
  Copy := Default(TPageCopy);
  Copy.ProcessId := ProcessId;
  Copy.Segment := Segment;
  Page := MapSegment(ProcessId, Segment, SHM_RDONLY);
  if Page = nil then
    Exit(False);
  CopyPage(Page, Copy);
  UnmapSegment(Page);
  Copy.IsParents := Copy.Page.Head.ProcessId <> UInt64(OwnNumber(ProcessId));
  Result := IsPage(Copy.Page);
end;

function OpenPages(ProcessId: Integer): TPageCopies;
var
  Segment: Integer;
  Copy: TPageCopy;
begin
  Result := nil;
  for Segment in PageSegments(ProcessId) do
    if ReadPage(ProcessId, Segment, Copy) then
      Insert(Copy, Result, Length(Result));
end;

function AgeText(const Totals: TPageTotals): string;
var
  AgeMs: Cardinal;
begin
  Result := '';
  AgeMs := Cardinal(GetTickCount64 - Totals.WrittenMs); // the same clock, its low bits
  if AgeMs >= 1000 then
    Result := Format('%d s old', [AgeMs div 1000]);
end;

function IsOnLaneMM(ProcessId: Integer): Boolean;
begin
  Result := Pos(#10 + LowerCase(HexStr(CopiesAddress, 10)) + '-',
    #10 + ReadSmallFile(Format('/proc/%d/maps', [ProcessId]))) > 0;
end;

end.
