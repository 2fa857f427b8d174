/// The process as the system sees it: its mappings, its threads, its rights, its status page.
//
// Owns:       nothing.
// Invariants: as LaneMM.Os: no routine changes errno or allocates. The status page is a segment of
//             shared memory without a key (shmget). It was marked for removal as soon as it was
//             mapped, so it goes with the last process that maps it, however that ends; on Linux
//             others map it until then, by its number, which /proc/PID/maps shows. It needs no file
//             number.
// Callers:    any thread.
// Source:     Linux: man-pages 5 (proc), 2 (shmget, shmop, shmctl with IPC_INFO, futex, prctl);
//             Windows: learn.microsoft.com.
unit LaneMM.OsProcess;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Os;

type
  /// Visits a mapping. Context is the caller's.
  TOsMappingVisitor = procedure(const Mapping: TOsMapping; Context: Pointer);
  /// Visits a thread. Context is the caller's.
  TOsThreadVisitor = procedure(Id: Cardinal; Context: Pointer);

/// Returns true if the process has more rights than the user that started it: then neither the
/// environment nor a file beside the program, which may be a link of that user, must be obeyed.
function OsIsPrivileged: Boolean;
/// Returns the seconds since 1970-01-01 00:00:00 UTC.
function OsUnixSeconds: UInt64;
/// Finds the mapping that holds Address. False if none.
function OsFindMapping(Address: NativeUInt; out Mapping: TOsMapping): Boolean;
/// OsFindMapping while threads are paused, of code in the program, too, without a file to read. Of
/// that, and of Windows, where it takes a loader lock, without the path.
function OsFindRegion(Address: NativeUInt; out Mapping: TOsMapping): Boolean;
/// Finds the stack that holds Sp, also while threads are paused: its mapping, up to the next page
/// that cannot be read. From glibc 2.42 on, stacks of several threads may be one mapping, with a
/// marked page before each. False, and Limit is Sp, where nothing is mapped.
function OsFindStack(Sp: NativeUInt; out First, Limit: NativeUInt): Boolean;
/// Returns the end of the stack that holds Sp, in a mapping that ends at Limit.
function OsStackEnd(Sp, Limit: NativeUInt): NativeUInt;
/// Calls Visitor for each mapping of the process, in the order of address.
procedure OsVisitMappings(Visitor: TOsMappingVisitor; Context: Pointer);
/// OsVisitMappings while threads are paused: on Windows without the paths, as OsFindRegion.
procedure OsVisitRegions(Visitor: TOsMappingVisitor; Context: Pointer);
/// Moves First on to the next word, of any alignment, in pages that the process has ever touched;
/// at most to Limit. All before is zeros that need no memory. Returns where no such word begins any
/// more, at most Limit. Where the pages are not known, as on Windows, First stays, up to Limit.
function OsTouched(var First: PByte; Limit: PByte): PByte;
/// Moves First on to the next word before Limit, of any alignment, that can be read: a program may
/// protect pages, also of its blocks, and stacks have guard pages. From 1 MB after Start on, leaves
/// out pages that the process never touched. Returns where a word begins that is none of these, at
/// most Limit; others may follow. First is not below that where there was none up to it.
function OsNextWords(Start, Limit: PByte; var First: PByte): PByte;
/// Calls Visitor for each thread of the process.
procedure OsVisitThreads(Visitor: TOsThreadVisitor; Context: Pointer);
/// Returns the number of threads of the process, LaneMM's own included.
function OsThreadCount: NativeUInt;
/// Returns whether Parent is the process that has started this one, and still runs.
function OsParentIs(Parent: Cardinal): Boolean;

/// Returns whether the user who started the process may look at it, as the system sees it: not a
/// process with more rights than that user, nor one that has forbidden it.
function OsPageIsAllowed: Boolean;
/// Maps a new page, zeros, for this user alone. In place of the page at Place, unless that is nil.
/// A child process shares it; it ends with exec. Nil when the system refuses, has no such pages, or
/// half of those that it can have are in use: the rest is left to others.
function OsPageMap(Place: Pointer; Size: NativeUInt): Pointer;
/// Unmaps it.
procedure OsPageUnmap(P: Pointer);
/// Parks the thread while the low 32 bits of Word, on the page, are Expected, until any process
/// that has the page wakes it; may return early.
procedure OsPageWait(var Word: TAtomicWord; Expected: Cardinal);

implementation

uses
  {$ifndef MSWINDOWS} LaneMM.Bits, {$endif} LaneMM.OsFiles;

{$ifdef MSWINDOWS}
  {$I LaneMM.OsProcess.Windows.inc}
{$else}
  {$I LaneMM.OsProcess.Linux.inc}
{$endif}

function OsStackEnd(Sp, Limit: NativeUInt): NativeUInt;
const
  MostStep = NativeUInt(1) shl 20;
var
  Step: NativeUInt;
begin
  Result := Sp and not NativeUInt(OsGranule - 1);
  Step := OsGranule;
  while (Result < Limit) and (Step >= OsGranule) do
  begin
    if Step > NativeUInt(Limit - Result) then
      Step := Limit - Result;
    if not OsCanRead(Pointer(Result), Step) then
      Step := Step div 2 and not NativeUInt(OsGranule - 1)
    else
    begin
      Inc(Result, Step);
      if Step < MostStep then
        Inc(Step, Step);
    end;
  end;
  if Result <= Sp then
    Result := Limit; // the system does not say: the page of Sp is one of them
end;

function OsFindStack(Sp: NativeUInt; out First, Limit: NativeUInt): Boolean;
var
  Mapping: TOsMapping;
begin
  First := Sp;
  Limit := Sp;
  Result := OsFindRegion(Sp, Mapping);
  if not Result then
    Exit;
  First := Mapping.First;
  Limit := OsStackEnd(Sp, Mapping.Limit);
end;

// Returns whether all words can be read that begin from First on and before Limit.
function CanReadWords(First, Limit: PByte): Boolean;
begin
  First := PByte(NativeUInt(First) and not NativeUInt(OsPageSize - 1));
  Result := OsCanRead(First, NativeUInt(Limit - First) + SizeOf(Pointer) - 1);
end;

function OsNextWords(Start, Limit: PByte; var First: PByte): PByte;
const
  WholeBytes = 1 shl 20;
  MostBytes = 16 shl 20;
begin
  Result := Limit;
  if NativeUInt(Limit - First) > MostBytes then
    Result := First + MostBytes;
  if NativeUInt(First - Start) >= WholeBytes then
    Result := OsTouched(First, Result)
  else if NativeUInt(Result - Start) > WholeBytes then
    Result := Start + WholeBytes;
  if (First >= Result) or CanReadWords(First, Result) then
    Exit;
  while (First < Result) and not CanReadWords(First, First + 1) do
    First := PByte(NativeUInt(First) and not NativeUInt(OsPageSize - 1)) + OsPageSize;
  while (First < Result) and not CanReadWords(First, Result) do
    Result := First + NativeUInt(Result - First) div 2;
end;

procedure CountThread(Id: Cardinal; Context: Pointer);
begin
  Inc(PNativeUInt(Context)^);
end;

function OsThreadCount: NativeUInt;
begin
  Result := 0;
  OsVisitThreads(CountThread, @Result);
end;

end.
