/// What LaneMM asks of the operating system. One contract, one include file per system.
//
// Owns:       Process.OsCalls, the counts of the calls below by kind.
// Invariants: sizes are bytes and multiples of OsPageSize unless said otherwise. No routine
//             changes errno or allocates.
// Callers:    any thread.
// Source:     Linux: man-pages 2 (mmap, madvise, mremap, futex), kernel 4.14 or later for
//             MADV_WIPEONFORK; glibc: nptl/descr.h (the thread-specific slots lie in the
//             thread control block).
unit LaneMM.Os;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types;

const
  /// Smallest unit of memory protection and backing, in bytes.
  OsPageSize = 4096;
  /// The standard error output.
  OsStandardError = 2;

type
  /// An open file; negative when it could not be opened.
  TOsFile = NativeInt;
  /// What becomes of a signal after its handler: taken again, or the system's default.
  TOsSignalUse = (suAgain, suLast);
  /// Called in the middle of anything: uses nothing but this unit.
  TOsSignalHandler = procedure(Signal: LongInt); cdecl;
  /// A range of addresses that the system mapped in one go.
  TOsMapping = record
    First, Limit: NativeUInt;             //< its addresses
    IsReadable, IsWritable, IsCode: Boolean; //< what may be done there
    FileOffset: NativeUInt;               //< where First lies in the file
    Path: TPath;                          //< the file, or a name in brackets, or nothing
  end;
  /// Looks at one mapping. Context is the caller's.
  TOsMappingVisitor = procedure(const Mapping: TOsMapping; Context: Pointer);

  /// Looks at one thread. Context is the caller's.
  TOsThreadVisitor = procedure(Id: Cardinal; Context: Pointer);

/// Reserves address space aligned to SliceSize; backs none of it. Nil when refused.
/// The caller owns the range until OsRelease.
function OsReserve(Size: NativeUInt): Pointer;
/// Gives the address range back.
procedure OsRelease(P: Pointer; Size: NativeUInt);
/// Memory of at least Size bytes that reads as zeros and is backed on touch; nil when refused. The
/// caller owns it until OsReleasePages.
function OsTakePages(Size: NativeUInt): Pointer;
/// Gives it back; nil is allowed.
procedure OsReleasePages(P: Pointer; Size: NativeUInt);
/// Makes a reserved range usable; it reads as zeros and is backed on touch. False when refused.
function OsCommit(P: Pointer; Size: NativeUInt): Boolean;
/// Makes a committed range read as zeros.
procedure OsClear(P: Pointer; Size: NativeUInt);
/// Asks the system to back a committed range with huge pages (2 MB) where it is touched.
procedure OsUseHugePages(P: Pointer; Size: NativeUInt);
/// Makes a committed range one that cannot be touched, until it is committed again. False when
/// refused.
function OsForbid(P: Pointer; Size: NativeUInt): Boolean;
/// Gives the memory behind a committed range back; it stays usable and reads as zeros. False,
/// and nothing changed, when the system refuses (locked memory).
function OsPurge(P: Pointer; Size: NativeUInt): Boolean;
/// The same for a range that pages were moved to; makes it one with its surroundings again.
function OsRenew(P: Pointer; Size: NativeUInt): Boolean;
/// Fills a range with zeros before it goes back, if Process.ErasesPages.
procedure OsErase(P: Pointer; Size: NativeUInt);
/// Moves the pages of Source to Target, both committed, without copying; Source then reads as
/// zeros. False, and only Target's contents lost, when the system cannot.
function OsMove(Source, Target: Pointer; Size: NativeUInt): Boolean;
/// A coarse clock that never goes back, in milliseconds; wraps after 49 days.
function OsNowMs: Cardinal;
/// CPUs that this process may use, at least 1.
function OsCpuCount: Cardinal;
/// Parks the thread while the low 32 bits of Word are Expected; may return early.
procedure OsWait(var Word: TAtomicWord; Expected: Cardinal);
/// The same for at most Ms milliseconds.
procedure OsWaitMs(var Word: TAtomicWord; Expected, Ms: Cardinal);
/// Wakes one thread that is parked on Word.
procedure OsWake(var Word: TAtomicWord);
/// Wakes all of them.
procedure OsWakeAll(var Word: TAtomicWord);
/// A word that holds 1 and reads 0 in a child process after fork. Nil when there is no such thing.
function OsForkMark: PNativeUInt;
/// One committed page at Address, shared by whoever asks for the same address in this process.
/// IsNew tells whether it was made now, all zeros. Nil when the address is used otherwise.
function OsSharedPage(Address: NativeUInt; out IsNew: Boolean): Pointer;
/// Copies Size bytes from an address that may not be mapped; tells whether it could copy all.
function OsRead(Address: NativeUInt; Target: Pointer; Size: NativeUInt): Boolean;
/// A random word.
function OsRandom: NativeUInt;
/// Writes Length bytes to the standard error output.
procedure OsWriteError(Text: PAnsiChar; Length: NativeUInt);

/// Finds where threads keep their heap: sets HasThreads, HasFastSlot, ThreadSlot, ThreadKey of
/// Process. ThreadEnded is called at the end of each thread that has set a heap.
procedure OsThreadSlotCreate(ThreadEnded: Pointer);
/// Forgets ThreadEnded; for a library that is unloaded.
procedure OsThreadSlotDestroy;
/// The calling thread's heap; nil when it has none.
function OsThreadHeap: PHeap;
/// Sets the calling thread's heap; tells whether it could.
function OsSetThreadHeap(Heap: PHeap): Boolean;

/// Starts a thread that runs Routine, which takes no signals and never returns. False where
/// threads cannot be had.
function OsThreadStart(Routine: TPlainProcedure): Boolean;

/// Opens a file for reading.
function OsFileOpen(Path: PAnsiChar): TOsFile;
/// Opens a file for writing at its end, also while others do; makes it when there is none.
function OsFileAppend(Path: PAnsiChar): TOsFile;
/// Makes a file, or empties it, for writing.
function OsFileCreate(Path: PAnsiChar): TOsFile;
/// Closes it.
procedure OsFileClose(Handle: TOsFile);
/// Reads up to Size bytes; returns their number, 0 at the end, negative on error.
function OsFileRead(Handle: TOsFile; Buffer: Pointer; Size: NativeUInt): NativeInt;
/// Writes all of Size bytes; tells whether it could. Whatever is wrong, no signal comes of it.
function OsFileWrite(Handle: TOsFile; Buffer: Pointer; Size: NativeUInt): Boolean;
/// Lets nothing but a standard error output have its number: where there is none, a file that the
/// program opens would get it, and what is written there.
procedure OsKeepStandardError;
/// The contents of a file, to be read only, until OsFileUnmap. Nil when there is no such file.
function OsFileMap(Path: PAnsiChar; out Size: NativeUInt): PByte;
/// Gives the addresses back.
procedure OsFileUnmap(P: PByte; Size: NativeUInt);

/// Writes the path of the running program, ended by #0; returns its length, 0 if unknown.
function OsProgramPath(Buffer: PAnsiChar; Size: NativeUInt): NativeUInt;
/// Copies a variable of the environment that the process was started with, ended by #0 and cut
/// to Size. False when there is none.
function OsEnvironment(const Name: ShortString; Buffer: PAnsiChar; Size: NativeUInt): Boolean;
/// Whether the process has more rights than the user who started it: his environment is no order
/// then.
function OsIsPrivileged: Boolean;
/// Finds the mapping that holds Address.
function OsFindMapping(Address: NativeUInt; out Mapping: TOsMapping): Boolean;
/// Calls Visitor for each mapping of the process, in the order of address.
procedure OsVisitMappings(Visitor: TOsMappingVisitor; Context: Pointer);
/// CPUs whose time this process may use at most by a quota of the system, rounded up; the highest
/// number when there is none.
function OsCpuQuota: Cardinal;
/// The same by the control groups (version 2) below the folder Root, and the file that names the
/// one of the process: it counts with all groups around it.
function OsCpuQuotaIn(Root, GroupFile: PAnsiChar): Cardinal;
/// Number of the process.
function OsProcessId: Cardinal;
/// Number of the calling thread.
function OsThreadId: Cardinal;
/// Calls Visitor for each thread of the process that the system knows.
procedure OsVisitThreads(Visitor: TOsThreadVisitor; Context: Pointer);
/// A clock that never goes back, in nanoseconds.
function OsNowNs: UInt64;
/// Has Handler called on a signal that nobody handles or ignores. False where somebody does.
function OsSignalSet(Signal: Cardinal; Handler: TOsSignalHandler; Use: TOsSignalUse): Boolean;
/// Has Hooks.Fault called on faults, before the handler that is set now, if it is not already.
procedure OsFaultWatch;
/// Sends a signal to this process.
procedure OsSignalSend(Signal: Cardinal);
/// Sends a signal to one of its threads.
procedure OsSignalSendTo(Thread, Signal: Cardinal);

implementation

uses
  LaneMM.Hooks, LaneMM.Atomic, LaneMM.Bits;

procedure CountCall(Kind: TOsCall); inline;
begin
  FetchAdd(Process.OsCalls[Kind], 1);
end;

function OsTakePages(Size: NativeUInt): Pointer;
begin
  Size := AlignUp(Size, OsPageSize);
  Result := OsReserve(Size);
  if (Result <> nil) and not OsCommit(Result, Size) then
  begin
    OsRelease(Result, Size);
    Result := nil;
  end;
end;

procedure OsErase(P: Pointer; Size: NativeUInt);
begin
  if Process.ErasesPages then
    FillChar(P^, Size, 0);
end;

procedure OsReleasePages(P: Pointer; Size: NativeUInt);
begin
  if P <> nil then
    OsRelease(P, AlignUp(Size, OsPageSize));
end;

procedure OsClear(P: Pointer; Size: NativeUInt);
begin
  if not OsPurge(P, Size) then
    FillChar(P^, Size, 0);
end;

{$ifdef LINUX}
  {$I LaneMM.Os.Linux.inc}
  {$I LaneMM.Os.Linux.Files.inc}
  {$I LaneMM.Os.Linux.Faults.inc}
{$else}
  {$message fatal 'LaneMM: this operating system has no LaneMM.Os include file yet'}
{$endif}

end.
