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
    Path: string;         //< of the open page below /proc; empty: it was read out of the memory
  end;
  TPageCopies = TArray<TPageCopy>;

/// Returns the addresses of Process that the status pages in the target's memory name; nil: it has
/// no page. Raises ETool for one of another version.
function PageEngines(Target: TTarget): TArray<UInt64>;
/// Returns the pages that the process has open. Needs the right to read its files only, not that to
/// read its memory. Empty when it has none, or the system refuses.
function OpenPages(ProcessId: Integer): TPageCopies;
/// Returns whether the process runs on LaneMM, as far as the list of its mappings tells: it has a
/// status page, or the page where all copies register. Also for one that cannot be read.
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
  SysUtils, BaseUnix, LaneMM.Layout, LaneMM.Types, ToolCommands;

const
  MappingName = '/memfd:' + PageName;

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
  Index: Integer;
  Page: TStatusPage;
begin
  Result := nil;
  for Index := 0 to Target.RegionCount - 1 do
    if Target.Regions[Index]^.Path.StartsWith(MappingName)
      and Target.ReadAll(Target.Regions[Index]^.First, @Page, SizeOf(Page)) and IsPage(Page) then
    begin
      CheckRecords(Page, Target.Name);
      Insert(Page.Head.Engine, Result, Length(Result));
    end;
end;

// Reads the number that a page has before and after its totals are written.
function ReadSequence(Handle: THandle; out Sequence: TPageWord): Boolean;
begin
  Result := fpPRead(Handle, @Sequence, SizeOf(Sequence), PtrUInt(@PStatusPage(nil)^.Sequence))
    = SizeOf(Sequence);
  ReadWriteBarrier; // between this read and those around it
end;

// Reads the file until its number is the same before and after; a process that was stopped while it
// wrote the totals has none.
function ReadPage(const Path: string; out Copy: TPageCopy): Boolean;
const
  Tries = 100;
var
  Handle: THandle;
  First, Last: TPageWord;
  Attempt: Integer;
begin
  Copy := Default(TPageCopy);
  Copy.Path := Path;
  Handle := FileOpen(Path, fmOpenRead or fmShareDenyNone);
  Result := Handle <> THandle(-1);
  if not Result then
    Exit;
  for Attempt := 1 to Tries do
  begin
    Result := ReadSequence(Handle, First)
      and (fpPRead(Handle, @Copy.Page, PageBytes, 0) = PageBytes) and IsPage(Copy.Page);
    ReadWriteBarrier; // the totals before the second look at their number
    Copy.HasTotals := Result and (Copy.Page.Head.Layout = PageLayout)
      and ReadSequence(Handle, Last) and not Odd(First.Value)
      and (First.Value = Last.Value) and (Copy.Page.Totals.Count > 0);
    if Copy.HasTotals or not Result or (Copy.Page.Totals.Count = 0) then
      Break;
  end;
  FileClose(Handle);
end;

function OpenPages(ProcessId: Integer): TPageCopies;
var
  Folder: string;
  Found: TSearchRec;
  Copy: TPageCopy;
begin
  Result := nil;
  Folder := Format('/proc/%d/fd/', [ProcessId]);
  if FindFirst(Folder + '*', faAnyFile, Found) <> 0 then
    Exit;
  repeat
    if string(fpReadLink(Folder + Found.Name)).StartsWith(MappingName)
      and ReadPage(Folder + Found.Name, Copy) then
    begin
      Copy.ProcessId := ProcessId;
      Copy.IsParents := Copy.Page.Head.ProcessId <> UInt64(OwnNumber(ProcessId));
      Insert(Copy, Result, Length(Result));
    end;
  until FindNext(Found) <> 0;
  FindClose(Found);
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
var
  Mappings: string;
begin
  Mappings := ReadSmallFile(Format('/proc/%d/maps', [ProcessId]));
  Result := (Pos(' ' + MappingName, Mappings) > 0)
    or (Pos(#10 + LowerCase(HexStr(CopiesAddress, 10)) + '-', Mappings) > 0);
end;

end.
