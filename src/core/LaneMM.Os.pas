/// The interface to the operating system. One contract, include files for each system.
//
// Owns:       Process.OsCalls, FaultsBefore, FaultLinks, HasThreads, HasFastSlot, ThreadSlot,
//             ThreadKey, EndingKey, MainHeap, TakenPages.
// Invariants: sizes of memory are bytes, multiples of OsPageSize unless stated otherwise. No
//             routine changes errno or allocates.
// Callers:    any thread.
// Source:     Linux: man-pages 2 (mmap, madvise, mremap, futex), kernel 4.14 or later for
//             MADV_WIPEONFORK; glibc: nptl/descr.h (the thread-specific slots lie in the
//             thread control block). Windows: learn.microsoft.com, Windows 7 or later; the
//             thread-local slots lie in the thread environment block.
unit LaneMM.Os;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types;

const
  /// Smallest unit of memory protection and backing, in bytes.
  OsPageSize = 4096;
  /// File number of stderr.
  OsStandardError = 2;
  /// True where pages can be moved, see OsMove.
  OsMovesPages = {$ifdef LINUX} True {$else} False {$endif};
  /// True where huge pages can be requested, see OsUseHugePages.
  OsHasHugePages = OsMovesPages;
  /// True where the variables of threads lie in mappings of their own.
  OsHasThreadPages = OsMovesPages;
  /// True where a purged range stays committed: OsUse does nothing.
  OsPurgedIsCommitted = OsMovesPages;
  /// True where the run-time library keeps the arguments of the program in blocks, from argv on.
  OsArgumentsAreBlocks = {$ifdef MSWINDOWS} True {$else} False {$endif};
  /// True where linkers write a table of all routines of a module.
  OsTablesRoutines = {$if defined(MSWINDOWS) and defined(CPU64)} True {$else} False {$ifend};
  /// The characters that separate the folders of a path.
  OsSeparators = {$ifdef MSWINDOWS} ['/', '\'] {$else} ['/'] {$endif};
  /// The bits of a program's exit code that the system keeps.
  OsExitCodeBits = {$ifdef MSWINDOWS} High(Cardinal) {$else} High(Byte) {$endif};
  {$ifdef MSWINDOWS}
  /// Thread-local slots that lie in the record of a thread.
  OsFastSlots = 64;
  {$endif}

type
  /// An open file; negative if the open failed.
  TOsFile = NativeInt;
  /// Why a file could not be opened: it is a symbolic link, it is a pipe or a device without a
  /// reader, another user may have put it there, any other reason.
  TOsFileError = (feLink, feNoReader, feOthers, feOther);
  /// Use of a signal handler: for each signal, or once, after which the system's default applies.
  TOsSignalUse = (suAgain, suLast);
  /// Handles a signal. It may interrupt any code, so it calls only routines that allow that.
  TOsSignalHandler = procedure(Signal: Integer); cdecl;
  /// A range of addresses that is one mapping of the system.
  TOsMapping = record
    First, Limit: NativeUInt;             //< its addresses
    IsReadable, IsWritable, IsCode: Boolean; //< its access rights
    IsFile: Boolean;                      //< Path is a file
    FileOffset: NativeUInt;               //< offset of First in the file; Windows: in the module
    Path: TPath;                          //< the file, or a name in brackets, or empty
  end;
  /// Visits a mapping. Context is the caller's.
  TOsMappingVisitor = procedure(const Mapping: TOsMapping; Context: Pointer);

  /// A range of OsTakePages.
  TOsTaken = record
    First: TAtomicWord;        //< shared  its address, or 0
    Size: NativeUInt;          //< owner   its bytes; the thread that took it
  end;
  POsTakenTable = ^TOsTakenTable;
  /// Ranges of OsTakePages, in a page of its own. Process.TakenPages is the last table: a library
  /// that is unloaded releases them all, and they are no roots of a program's blocks.
  TOsTakenTable = record
    Next: POsTakenTable;       //< const   the table before it
    Ranges: array[0..OsPageSize div SizeOf(TOsTaken) - 2] of TOsTaken; //< shared  see above
  end;

  /// Visits a thread. Context is the caller's.
  TOsThreadVisitor = procedure(Id: Cardinal; Context: Pointer);
  {$ifdef MSWINDOWS}
  /// A paused thread.
  TOsPaused = record
    Handle: NativeUInt;                    //< the system's handle
    Sp: NativeUInt;                        //< its stack pointer
    Registers: array[0..15] of NativeUInt; //< its general registers, the rest 0
    Slots: PNativeUInt;                    //< its OsFastSlots thread-local slots; nil: unknown
  end;
  {$endif}

/// Reserves address space aligned to SliceSize; backs none of it. Nil when refused.
/// The caller owns the range until OsRelease.
function OsReserve(Size: NativeUInt): Pointer;
/// Reserves the addresses from P on, a multiple of SliceSize. Returns false, and changes nothing,
/// when one of them is in use or the system refuses.
function OsReserveAt(P: Pointer; Size: NativeUInt): Boolean;
/// Releases an address range; Windows: one that a single call has reserved, whatever Size is.
procedure OsRelease(P: Pointer; Size: NativeUInt);
/// Reserves and commits at least Size bytes, any number; they read as zeros and are backed on
/// touch. Nil when refused. The caller owns them until OsReleasePages.
function OsTakePages(Size: NativeUInt): Pointer;
/// Returns whether Address lies in pages of OsTakePages, or in the table of them.
function OsIsTaken(Address: NativeUInt): Boolean;
/// Releases memory of OsTakePages; nil is allowed.
procedure OsReleasePages(P: Pointer; Size: NativeUInt);
/// Releases all memory of OsTakePages, of a library that is unloaded.
procedure OsReleaseAllPages;
/// Releases a part of a range that OsReserve and OsReserveAt have reserved. Windows: purges it.
procedure OsReleasePart(P: Pointer; Size: NativeUInt);
/// Commits a reserved range; it reads as zeros and is backed on touch. False when refused.
function OsCommit(P: Pointer; Size: NativeUInt): Boolean;
/// Prepares a reserved range for OsUse. False when refused.
function OsPrepare(P: Pointer; Size: NativeUInt): Boolean;
/// Commits a range that was prepared or purged, or is in use. It is backed on touch; the parts that
/// were not in use read as zeros. False when refused.
function OsUse(P: Pointer; Size: NativeUInt): Boolean;
/// Makes a committed range read as zeros.
procedure OsClear(P: Pointer; Size: NativeUInt);
/// Requests huge pages (2 MB) for a committed range where it is touched. Its contents become zeros.
procedure OsUseHugePages(P: Pointer; Size: NativeUInt);
/// Forbids huge pages in a committed range from now on: what is touched is backed by small ones.
procedure OsUseSmallPages(P: Pointer; Size: NativeUInt);
/// Forbids all access to a committed range until it is committed again. False when refused.
function OsForbid(P: Pointer; Size: NativeUInt): Boolean;
/// Purges a committed range: after OsUse it reads as zeros. False, and nothing changed, when the
/// system refuses (locked memory).
function OsPurge(P: Pointer; Size: NativeUInt): Boolean;
/// Purges a committed range, which the system then does not charge for either. It allows no access
/// until OsUse. False, and nothing changed, when the system refuses.
function OsUncharge(P: Pointer; Size: NativeUInt): Boolean;
/// Purges a range that pages were moved to; joins it with the mappings around it again.
function OsRenew(P: Pointer; Size: NativeUInt): Boolean;
/// Prepares OsBarrier. False where there is no such call, or no assembler that needs it.
function OsBarrierStart: Boolean;
/// Makes every running thread of the process pass a full barrier before this call returns. False
/// when the system refuses. Without Process.HasBarrier no barrier is needed: True, without a call.
function OsBarrier: Boolean;
/// Fills a range with zeros before a purge, if Process.ErasesPages.
procedure OsErase(P: Pointer; Size: NativeUInt);
/// Excludes a reserved range without committed pages from core files, where some tools write 1 GB
/// of zeros for it.
procedure OsLeaveOutOfCores(P: Pointer; Size: NativeUInt);
/// Includes a part of such a range in core files, before it has contents.
procedure OsPutIntoCores(P: Pointer; Size: NativeUInt);
/// Moves the pages of Source to Target, both committed, without copying; the moved part of Source
/// then reads as zeros. Returns the bytes moved, from the start on: fewer than Size when the system
/// cannot move more. The system may then have unmapped the rest of Target, and refuse to map it.
function OsMove(Source, Target: Pointer; Size: NativeUInt): NativeUInt;
/// Returns whether the page at P, of a range for OsMove, is still mapped.
function OsIsMapped(P: Pointer): Boolean;
/// Tells the bytes of memory and swap that the system has, the highest number where it lets
/// programs take more (Linux: vm.overcommit_memory is 1), and whether it charges for spare slices,
/// which were never touched (Linux: vm.overcommit_memory is 2, or the process has a
/// limit of its data).
procedure OsMemory(out MostBytes: NativeUInt; out ChargesUntouched: Boolean);
/// Returns a coarse monotonic time in milliseconds; wraps after 49 days.
function OsNowMs: Cardinal;
/// Returns the number of CPUs that this process may use, at least 1.
function OsCpuCount: Cardinal;
/// Parks the thread while the low 32 bits of Word are Expected; may return early.
procedure OsWait(var Word: TAtomicWord; Expected: Cardinal);
/// Parks the thread like OsWait, for at most Ms milliseconds.
procedure OsWaitMs(var Word: TAtomicWord; Expected, Ms: Cardinal);
/// Wakes one thread that is parked on Word.
procedure OsWake(var Word: TAtomicWord);
/// Wakes all threads that are parked on Word.
procedure OsWakeAll(var Word: TAtomicWord);
/// Returns a word that holds 1, and reads 0 in a child process after fork, as the two behind it do,
/// which hold 0. Nil where the system does not support it.
function OsForkMark: PNativeUInt;
/// Returns committed pages at Address, at least Size bytes, the same for all callers in this
/// process. IsNew is true if this call created them, all zeros. Nil when the address is not
/// available.
function OsSharedPages(Address, Size: NativeUInt; out IsNew: Boolean): Pointer;
/// Copies Size bytes from an address that may be unmapped. False unless all of them were copied.
function OsRead(Address: NativeUInt; Target: Pointer; Size: NativeUInt): Boolean;
/// Returns a random word.
function OsRandom: NativeUInt;
/// Writes Length bytes to stderr.
procedure OsWriteError(Text: PAnsiChar; Length: NativeUInt);

/// Creates the slot where threads keep their heap: sets HasThreads, HasFastSlot, ThreadSlot,
/// ThreadKey, EndingKey of Process. The thread library calls ThreadEnded at the end of each thread
/// that has a heap. False where it has no key left: threads could not keep their heaps apart.
function OsThreadSlotCreate(ThreadEnded: Pointer): Boolean;
/// Destroys the slot, so that ThreadEnded is no longer called; for a library that is unloaded.
/// IsUnused: no other thread has a heap, so the next library may read the same slot directly.
procedure OsThreadSlotDestroy(IsUnused: Boolean);
/// Returns whether this module may be unloaded before the process ends: then no thread and no
/// signal may find its code gone.
function OsMayUnload: Boolean;
/// Prepares OsExitHasBegun.
procedure OsExitWatch;
/// Returns whether the process is ending, or may be: other threads still run then.
function OsExitHasBegun: Boolean;
/// Returns the calling thread's heap; nil when it has none.
function OsThreadHeap: PHeap;
/// Sets the calling thread's heap. False when the system refuses.
function OsSetThreadHeap(Heap: PHeap): Boolean;
/// Exchanges the heap of the calling thread, which has one, for another one.
procedure OsSwitchThreadHeap(Heap: PHeap);
/// Records that the calling thread is ending: the thread library has called ThreadEnded.
procedure OsSetThreadEnding;
/// Returns whether OsSetThreadEnding was called in this thread.
function OsThreadIsEnding: Boolean;

/// Starts a thread that runs Routine, which never returns, with all signals blocked. False where
/// threads are not available.
function OsThreadStart(Routine: TPlainProcedure): Boolean;

/// Opens a file for reading. Does not wait for a writer of a pipe.
function OsFileOpen(Path: PAnsiChar): TOsFile;
/// Opens a file for appending, which other processes may do, too; creates a missing one with
/// rights for the owner alone. Fails for a symbolic link, for a pipe without a reader, and for a
/// file of another user in a folder such as /tmp, see OsFileError.
function OsFileAppend(Path: PAnsiChar): TOsFile;
/// Opens an existing file or device for appending, follows links; creates nothing.
function OsFileAppendExisting(Path: PAnsiChar): TOsFile;
/// Creates a new file for writing, with rights for the owner alone, after it has deleted a regular
/// file of the same owner. Fails when the name exists then: nothing is followed or emptied.
function OsFileCreate(Path: PAnsiChar): TOsFile;
/// Renames a file; replaces one that has the new name. False on error.
function OsFileRename(Path, NewPath: PAnsiChar): Boolean;
/// Returns the length of a file; 0 of a pipe or a device.
function OsFileLength(Handle: TOsFile): UInt64;
/// Sends a message to the socket of the system's log at Path; waits for nothing. False when there
/// is none, or it takes no more. Windows: to the output of a debugger.
function OsLogSend(Path, Text: PAnsiChar; Length: NativeUInt): Boolean;
/// Deletes a regular file of the user that the process acts for, no link. False when there is none
/// or the system refuses.
function OsFileDelete(Path: PAnsiChar): Boolean;
/// Returns the reason for a negative result of the routines above.
function OsFileError(Handle: TOsFile): TOsFileError;
/// Closes a file.
procedure OsFileClose(Handle: TOsFile);
/// Reads up to Size bytes, any number; returns the number read, 0 at the end, negative on error.
function OsFileRead(Handle: TOsFile; Buffer: Pointer; Size: NativeUInt): NativeInt;
/// Writes all Size bytes, any number. False on error; an error raises no signal. A pipe or a
/// terminal that takes nothing for a second is an error when one of the routines above opened it.
function OsFileWrite(Handle: TOsFile; Buffer: Pointer; Size: NativeUInt): Boolean;
/// Opens the null device as stderr if stderr is closed: else the next file that the program opens
/// would have its number, and receive the reports.
procedure OsKeepStandardError;
/// Maps a file for reading until OsFileUnmap. Nil when it is empty or cannot be opened.
function OsFileMap(Path: PAnsiChar; out Size: NativeUInt): PByte;
/// Releases a mapping of OsFileMap.
procedure OsFileUnmap(P: PByte; Size: NativeUInt);

/// Stores the absolute path of a folder, without links, in Buffer, ended by #0; returns its
/// length, 0 if there is no such folder.
function OsFolderPath(Folder, Buffer: PAnsiChar; Size: NativeUInt): NativeUInt;
/// Stores the path of the running program in Buffer, ended by #0; returns its length, 0 if unknown.
function OsProgramPath(Buffer: PAnsiChar; Size: NativeUInt): NativeUInt;
/// Stores that path without the extension of programs (Windows: .exe), to name other files by it.
function OsProgramName(Buffer: PAnsiChar; Size: NativeUInt): NativeUInt;
/// Stores the words of the command line in Buffer, with spaces between, cut to Size; returns the
/// length, 0 if unknown.
function OsCommandLine(Buffer: PAnsiChar; Size: NativeUInt): NativeUInt;
/// Copies a variable of the environment at the start of the process, ended by #0 and cut to Size.
/// False when it is not set.
function OsEnvironment(const Name: ShortString; Buffer: PAnsiChar; Size: NativeUInt): Boolean;
/// Returns true if the process has more rights than the user that started it: then neither the
/// environment nor a file beside the program, which may be a link of that user, must be obeyed.
function OsIsPrivileged: Boolean;
/// Returns true if the system's pages are OsPageSize bytes long.
function OsPagesFit: Boolean;
/// Finds the mapping that holds Address. False if none.
function OsFindMapping(Address: NativeUInt; out Mapping: TOsMapping): Boolean;
/// OsFindMapping while threads are paused. Windows: without the path, which takes a loader lock.
function OsFindRegion(Address: NativeUInt; out Mapping: TOsMapping): Boolean;
/// Calls Visitor for each mapping of the process, in the order of address.
procedure OsVisitMappings(Visitor: TOsMappingVisitor; Context: Pointer);
/// Returns the number of CPUs whose time a quota of the system allows this process, rounded up; the
/// highest number without a quota.
function OsCpuQuota: Cardinal;
{$ifdef LINUX}
/// Returns that number for the control groups (version 2) below the folder Root; GroupFile names
/// the group of the process. The quotas of that group and of all groups around it apply.
function OsCpuQuotaIn(Root, GroupFile: PAnsiChar): Cardinal;
{$endif}
/// Returns the seconds since 1970-01-01 00:00:00 UTC.
function OsUnixSeconds: UInt64;
/// Returns the number of the process.
function OsProcessId: Cardinal;
/// Returns the number of the calling thread.
function OsThreadId: Cardinal;
/// Returns true if the calling thread is the program's first one.
function OsThreadIsMain: Boolean;
/// Calls Visitor for each thread of the process.
procedure OsVisitThreads(Visitor: TOsThreadVisitor; Context: Pointer);
{$ifdef MSWINDOWS}
/// Returns the index at which the usual form of a path begins. A path that the system has resolved
/// starts with `\\?\`: a path on a drive begins at its letter; for one on a server, the routine
/// writes one of the two leading backslashes. 0 for any other path.
function OsPathStart(Wide: PWideChar): Cardinal;
/// Pauses a thread of this process, which may hold any lock, also one of the process heap: until
/// OsThreadResume only routines of this unit may be called that neither open a file nor return a
/// path. False when the system refuses. OsPauseBegin comes before the first thread.
function OsThreadPause(Id: Cardinal; out Thread: TOsPaused): Boolean;
/// Resumes a paused thread.
procedure OsThreadResume(const Thread: TOsPaused);
/// Takes the lock of the system's loader: no paused thread has it, and no new thread begins.
/// Returns the argument for OsPauseEnd.
function OsPauseBegin: NativeUInt;
/// Releases that lock, after the last thread was resumed.
procedure OsPauseEnd(Cookie: NativeUInt);
/// Returns whether a thread-local slot, from 0 on, is one of LaneMM's own.
function OsIsOwnSlot(Slot: Cardinal): Boolean;
{$endif}
/// Returns true if a program may use the signal for its own purposes: it exists, is no fault, does
/// not end the process by itself, and can be caught.
function OsSignalIsFree(Signal: NativeUInt): Boolean;
/// Sets Handler for a signal. Returns false, and changes nothing, if the signal has a handler or is
/// ignored.
function OsSignalSet(Signal: Cardinal; Handler: TOsSignalHandler; Use: TOsSignalUse): Boolean;
/// Sets a fault handler that calls Hooks.Fault and then the previous handler, unless it is set,
/// also behind those of other copies of LaneMM.
procedure OsFaultWatch;
/// Takes the handlers of this module back, before its code is unloaded: the previous fault handlers
/// are set again, other signals get the system's action. A handler that was set after LaneMM's
/// fault handler and has kept its address calls code that is gone.
procedure OsSignalsLeave;
/// Sends a signal to this process.
procedure OsSignalSend(Signal: Cardinal);
/// Ends the process at once, as abort does in C: by SIGABRT, which a debugger, a core file and a
/// handler of the program see in the calling thread; does not return from that handler.
procedure OsAbort;
/// Sends a signal to a thread of this process.
procedure OsSignalSendTo(Thread, Signal: Cardinal);

implementation

uses
  LaneMM.Hooks, LaneMM.Atomic, LaneMM.Bits;

procedure CountCall(Kind: TOsCall); inline;
begin
  FetchAdd(Process.OsCalls[Kind], 1);
end;

// ---------------------------------------------------------------------------- pages

function TakeUnnoted(Size: NativeUInt): Pointer;
begin
  Result := OsReserve(Size);
  if (Result <> nil) and not OsCommit(Result, Size) then
  begin
    OsRelease(Result, Size);
    Result := nil;
  end;
end;

// Changes the entry with the address Old to New, of Size bytes; returns false if there is none.
function ChangeNote(Old, New, Size: NativeUInt): Boolean;
var
  Table: POsTakenTable;
  Index: NativeUInt;
begin
  Table := POsTakenTable(LoadAcquire(Process.TakenPages));
  Result := True;
  while Table <> nil do
  begin
    for Index := 0 to High(Table^.Ranges) do
      if (LoadAcquire(Table^.Ranges[Index].First) = Old)
        and CompareAndSwap(Table^.Ranges[Index].First, Old, New) then
      begin
        Table^.Ranges[Index].Size := Size;
        Exit;
      end;
    Table := Table^.Next;
  end;
  Result := False;
end;

// Lock-free: a turn is repeated after other threads have filled a table. False without memory.
function Note(P: Pointer; Size: NativeUInt): Boolean;
var
  Table: POsTakenTable;
begin
  while not ChangeNote(0, NativeUInt(P), Size) do
  begin
    Table := TakeUnnoted(OsPageSize);
    if Table = nil then
      Exit(False);
    repeat
      Table^.Next := POsTakenTable(LoadAcquire(Process.TakenPages));
      // Release: the table. Pairs with ChangeNote.
    until CompareAndSwap(Process.TakenPages, NativeUInt(Table^.Next), NativeUInt(Table));
  end;
  Result := True;
end;

function OsIsTaken(Address: NativeUInt): Boolean;
var
  Table: POsTakenTable;
  Index: NativeUInt;
begin
  Table := POsTakenTable(LoadAcquire(Process.TakenPages));
  Result := False;
  while (Table <> nil) and not Result do
  begin
    Result := NativeUInt(Address - NativeUInt(Table)) < OsPageSize;
    for Index := 0 to High(Table^.Ranges) do
      if (Table^.Ranges[Index].First <> 0) and (NativeUInt(Address - Table^.Ranges[Index].First)
        < Table^.Ranges[Index].Size) then
        Exit(True);
    Table := Table^.Next;
  end;
end;

function OsMayUnload: Boolean;
begin
  Result := IsLibrary and not Process.StaysLoaded;
end;

function OsTakePages(Size: NativeUInt): Pointer;
begin
  Size := AlignUp(Size, OsPageSize);
  Result := TakeUnnoted(Size);
  if (Result = nil) or Note(Result, Size) or not OsMayUnload then
    Exit;
  OsRelease(Result, Size);
  Result := nil;
end;

procedure OsReleaseAllPages;
var
  Table, Next: POsTakenTable;
  Index: NativeUInt;
begin
  Table := POsTakenTable(Swap(Process.TakenPages, 0));
  while Table <> nil do
  begin
    for Index := 0 to High(Table^.Ranges) do
      if Table^.Ranges[Index].First <> 0 then
        OsRelease(Pointer(Table^.Ranges[Index].First), Table^.Ranges[Index].Size);
    Next := Table^.Next;
    OsRelease(Table, OsPageSize);
    Table := Next;
  end;
end;

procedure OsErase(P: Pointer; Size: NativeUInt);
begin
  if Process.ErasesPages then
    FillChar(P^, Size, 0);
end;

procedure OsReleasePages(P: Pointer; Size: NativeUInt);
begin
  if P = nil then
    Exit;
  ChangeNote(NativeUInt(P), 0, 0);
  OsRelease(P, AlignUp(Size, OsPageSize));
end;

function OsThreadIsMain: Boolean;
begin
  Result := OsThreadId = {$ifdef MSWINDOWS} Process.MainThread {$else} OsProcessId {$endif};
end;

procedure OsClear(P: Pointer; Size: NativeUInt);
begin
  if not OsPurgedIsCommitted or not OsPurge(P, Size) then
    FillChar(P^, Size, 0);
end;

{$if defined(LINUX)}
  {$I LaneMM.Os.Linux.inc}
  {$I LaneMM.Os.Linux.Files.inc}
  {$I LaneMM.Os.Linux.Faults.inc}
{$elseif defined(MSWINDOWS)}
  {$I LaneMM.Os.Windows.inc}
  {$I LaneMM.Os.Windows.Files.inc}
  {$I LaneMM.Os.Windows.Faults.inc}
{$else}
  {$message fatal 'LaneMM: this operating system has no LaneMM.Os include file yet'}
{$ifend}

procedure OsSwitchThreadHeap(Heap: PHeap);
begin
  {$ifdef LINUX}
  if Process.HasThreads then
    ThreadKeySet(Process.ThreadKey, Heap)
  else
    Process.MainHeap := Heap;
  {$else}
  OsSetThreadHeap(Heap);
  {$endif}
end;

end.
