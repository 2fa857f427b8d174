/// What the engine needs of the operating system. One contract, include files for each system.
//
// Owns:       Process.OsCalls, HasThreads, HasFastSlot, ThreadSlot, ThreadKey, EndingKey, MainHeap,
//             TakenPages.
// Invariants: addresses and sizes of memory are bytes, multiples of OsGranule unless stated
//             otherwise. No routine changes errno or allocates.
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
  /// The pages that LaneMM counts in, in bytes.
  OsPageSize = 4096;
  {$ifndef LANEMM_GRANULES}
  /// Smallest unit of memory protection and backing, in bytes.
  OsGranule = OsPageSize;
  {$endif}
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
  /// The bits of a program's exit code that the system keeps.
  OsExitCodeBits = {$ifdef MSWINDOWS} High(Cardinal) {$else} High(Byte) {$endif};
  {$ifdef MSWINDOWS}
  /// Thread-local slots that lie in the record of a thread.
  OsFastSlots = 64;
  {$endif}

type
  /// A range of addresses that is one mapping of the system.
  TOsMapping = record
    First, Limit: NativeUInt;             //< its addresses
    IsReadable, IsWritable, IsCode: Boolean; //< its access rights
    IsFile: Boolean;                      //< Path is a file
    FileOffset: NativeUInt;               //< offset of First in the file; Windows: in the module
    Path: TPath;                          //< the file, or a name in brackets, or empty
  end;

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

  {$ifdef LINUX}
  /// Reads a file character by character, without an allocation.
  TOsReader = record
    Handle: NativeInt;         //< owner   the open file
    Next, Count: NativeInt;    //< owner   next character in Buffer, and how many it has; 0 or less
                               //  at the end
    Buffer: array[0..4095] of AnsiChar; //< owner   what was read ahead
  end;
  {$endif}

{$ifdef LANEMM_GRANULES}
/// Returns the smallest unit of memory protection and backing, the pages of this kernel, in bytes:
/// a power of two from OsPageSize to SliceSize.
function OsGranule: NativeUInt;
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
/// Sets Table to the address of pages as of OsTakePages, unless it has one already. If several
/// threads call it at once, one takes them. False without memory.
function OsTakeTable(var Table: TAtomicWord; Size: NativeUInt): Boolean;
/// OsTakePages, but not at a multiple of SliceSize: a single call of the system.
function OsTakeAnywhere(Size: NativeUInt): Pointer;
/// Returns whether Address lies in pages of these two routines, or in the table of them.
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
/// Forbids all access to a committed range until OsUnguard; its contents may be lost. False when
/// the system refuses.
function OsGuard(P: Pointer; Size: NativeUInt): Boolean;
/// Allows access to a range in which parts may be guarded. False when the system refuses.
function OsUnguard(P: Pointer; Size: NativeUInt): Boolean;
/// Purges a committed range: after OsUse it reads as zeros. False, and nothing changed, when the
/// system refuses (locked memory).
function OsPurge(P: Pointer; Size: NativeUInt): Boolean;
/// Purges a committed range, which the system then does not charge for either. It allows no access
/// until OsUse. False, and nothing changed, when the system refuses.
function OsUncharge(P: Pointer; Size: NativeUInt): Boolean;
/// Makes the next trim end the charge of all cold runs once more: some have one again, or the
/// system has refused memory.
procedure OsUnchargeLater;
/// Purges a range that pages were moved to; joins it with the mappings around it again.
function OsRenew(P: Pointer; Size: NativeUInt): Boolean;
/// Prepares OsBarrier. False where there is no such call, or no assembler that needs it.
function OsBarrierStart: Boolean;
/// Makes every running thread of the process pass a full barrier before this call returns. False
/// when the system refuses. Without Process.HasBarrier no barrier is needed: True, without a call.
function OsBarrier: Boolean;
/// Returns whether a page holds zeros alone. Backs no page.
function OsPageIsZero(Words: PNativeUInt): Boolean;
/// Fills whole pages with zeros, and backs none: pages of zeros are only read.
procedure OsZeroPages(P: PByte; Size: NativeUInt);
/// OsZeroPages before a purge, if Process.ErasesPages.
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
/// Returns the bytes of memory and swap that the system has, the highest number where it lets
/// programs take more (Linux: vm.overcommit_memory is 1), and whether it charges for spare slices,
/// which were never touched (Linux: vm.overcommit_memory is 2, or the process has a
/// limit of its data).
procedure OsMemory(out MostBytes: NativeUInt; out ChargesUntouched: Boolean);
/// Returns a coarse monotonic time in milliseconds; wraps after 49 days.
function OsNowMs: Cardinal;
/// Returns whether OsNowMs makes no system call: it takes some 5 ns then.
function OsClockIsCheap: Boolean;
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
/// process. Their first word is Version; new ones hold zeros behind it. Nil when the address is not
/// available, or another word is there.
function OsSharedPages(Address, Size, Version: NativeUInt): Pointer;
/// Returns whether pages of blocks can be read: a program may protect some. Their protection may
/// change afterwards. True where the system does not say.
function OsCanRead(P: Pointer; Size: NativeUInt): Boolean;
/// Copies Size bytes from an address that may be unmapped. False unless all of them were copied.
function OsRead(Address: NativeUInt; Target: Pointer; Size: NativeUInt): Boolean;
/// Returns a random word.
function OsRandom: NativeUInt;
/// Writes Length bytes to stderr. False on error.
function OsWriteError(Text: PAnsiChar; Length: NativeUInt): Boolean;

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
/// Returns whether this process may load libraries: it has the C library, or is Windows.
function OsMayLoad: Boolean;
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

/// Starts a thread that runs Routine, which never returns, with all signals blocked but those of
/// the thread library. False where threads are not available.
function OsThreadStart(Routine: TPlainProcedure): Boolean;

/// Returns the number of CPUs whose time a quota of the system allows this process, rounded up; the
/// highest number without a quota.
function OsCpuQuota: Cardinal;
{$ifdef LINUX}
/// Returns that number for the control groups (version 2) below the folder Root; GroupFile names
/// the group of the process. The quotas of that group and of all groups around it apply.
function OsCpuQuotaIn(Root, GroupFile: PAnsiChar): Cardinal;
{$endif}
/// Returns the number of the process.
function OsProcessId: Cardinal;
/// Returns the number of the calling thread.
function OsThreadId: Cardinal;
/// Returns true if the calling thread is the program's first one.
function OsThreadIsMain: Boolean;

{$ifdef LINUX}
// The calls of the system that the units of system/ use.

/// Makes a system call. Returns its answer, on error the negative errno.
function SystemCall(Number, P1, P2, P3, P4, P5, P6: NativeUInt): NativeInt;
/// Returns the address that a system call has answered; nil for an error.
function OsPointer(Answer: NativeInt): Pointer;
/// Opens a file, which exec closes; waits for no other end of a pipe. Negative on error.
function OsOpen(Path: PAnsiChar; Flags: NativeUInt): NativeInt;
/// Reads the start of a file into Buffer, by one call, and ends it with #0. Returns the bytes read,
/// 0 on error.
function OsReadStart(Path, Buffer: PAnsiChar; Size: NativeUInt): NativeUInt;
/// Opens a file to be read character by character, until OsReaderClose. False on error.
function OsReaderOpen(out Reader: TOsReader; Path: PAnsiChar): Boolean;
/// Closes it.
procedure OsReaderClose(const Reader: TOsReader);
/// Returns the next character; #0 at the end.
function OsReaderNext(var Reader: TOsReader): AnsiChar;
/// Reads past the next Ending, or to the end of the file. Sign is the last character read.
procedure OsReaderSkip(var Reader: TOsReader; Ending, Sign: AnsiChar);
/// Reads up to Ending into Buffer of Size characters, cut to fit.
procedure OsReaderCopy(var Reader: TOsReader; Ending: AnsiChar; Buffer: PAnsiChar;
  Size: NativeUInt);
/// Returns the variables of the environment at the start of the program, ended by nil, with the
/// kernel's auxiliary vector behind them; nil in a library, which the system gives no such table.
function OsVariables: PPAnsiChar;
/// Returns the value of an entry of the auxiliary vector; 0 without one.
function OsAuxiliary(Entry: NativeUInt): NativeUInt;
{$else}
// Likewise.

/// Describes the region from the page of Address on, or the end of all of them. Returns whether it
/// is backed.
function OsRegion(Address: NativeUInt; out Mapping: TOsMapping): Boolean;
/// Writes all Size bytes to a handle of the system. False on error.
function OsWriteAll(Handle: NativeInt; Buffer: PByte; Size: NativeUInt): Boolean;
/// Writes to the output of a debugger, if one runs.
procedure OsWriteDebugger(Text: PByte; Size: NativeUInt);
{$endif}

implementation

uses
  LaneMM.Atomic, LaneMM.Bits;

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

// OsTakeAnywhere without a note.
function TakeMapping(Size: NativeUInt): Pointer; forward;

// Lock-free: a turn is repeated after other threads have filled a table. False without memory.
function Note(P: Pointer; Size: NativeUInt): Boolean;
var
  Table: POsTakenTable;
begin
  while not ChangeNote(0, NativeUInt(P), Size) do
  begin
    Table := TakeMapping(OsGranule);
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

// Returns P, or nil where the pages would outlive the library.
function Noted(P: Pointer; Size: NativeUInt): Pointer;
begin
  Result := P;
  if (P = nil) or Note(P, Size) or not OsMayUnload then
    Exit;
  OsRelease(P, Size);
  Result := nil;
end;

function OsTakePages(Size: NativeUInt): Pointer;
begin
  Size := AlignUp(Size, OsGranule);
  Result := Noted(TakeUnnoted(Size), Size);
end;

function OsTakeAnywhere(Size: NativeUInt): Pointer;
begin
  Size := AlignUp(Size, OsGranule);
  Result := Noted(TakeMapping(Size), Size);
end;

function OsTakeTable(var Table: TAtomicWord; Size: NativeUInt): Boolean;
var
  Pages: Pointer;
begin
  if LoadAcquire(Table) <> 0 then
    Exit(True);
  Pages := OsTakePages(Size);
  // Release: the zeros, and what the caller has set, before the table. Pairs with its readers.
  if (Pages <> nil) and not CompareAndSwap(Table, 0, NativeUInt(Pages)) then
    OsReleasePages(Pages, Size);
  Result := LoadAcquire(Table) <> 0;
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
    OsRelease(Table, OsGranule);
    Table := Next;
  end;
end;

function OsPageIsZero(Words: PNativeUInt): Boolean;
const
  Step = 8; // words at a time, in pairs: one by one takes four times as long, in a row 1.7 times
var
  Limit: PNativeUInt;
begin
  Limit := Words + OsPageSize div SizeOf(NativeUInt);
  repeat
    if (Words[0] or Words[1]) or (Words[2] or Words[3]) or ((Words[4] or Words[5])
      or (Words[6] or Words[7])) <> 0 then
      Exit(False);
    Inc(Words, Step);
  until Words = Limit;
  Result := True;
end;

procedure OsZeroPages(P: PByte; Size: NativeUInt);
var
  Limit: PByte;
begin
  Limit := P + Size;
  while P < Limit do
  begin
    if not OsPageIsZero(PNativeUInt(P)) then
      FillChar(P^, OsPageSize, 0);
    Inc(P, OsPageSize);
  end;
end;

procedure OsUnchargeLater;
begin
  // Full barrier: with nothing; a trim comes to all shards.
  CompareAndSwap(Process.Refused, RefusedAndUncharged, RefusedOnce);
end;

procedure OsErase(P: Pointer; Size: NativeUInt);
begin
  if Process.ErasesPages then
    OsZeroPages(P, Size);
end;

procedure OsReleasePages(P: Pointer; Size: NativeUInt);
begin
  if P = nil then
    Exit;
  ChangeNote(NativeUInt(P), 0, 0);
  OsRelease(P, AlignUp(Size, OsGranule));
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
  {$I LaneMM.Os.Linux.Machine.inc}
{$elseif defined(MSWINDOWS)}
  {$I LaneMM.Os.Windows.inc}
  {$I LaneMM.Os.Windows.Machine.inc}
{$else}
  {$message fatal 'LaneMM: this operating system has no LaneMM.Os include file yet'}
{$ifend}

// The thread that has just made the pages may not have written the word yet: waits a moment.
function OsSharedPages(Address, Size, Version: NativeUInt): Pointer;
const
  MostRounds = 10;
  RoundMs = 1;
var
  IsNew: Boolean;
  Round: Cardinal;
begin
  Result := TakeShared(Address, AlignUp(Size, OsGranule), IsNew);
  if Result = nil then
    Exit;
  if IsNew then
    StoreRelease(PNativeUInt(Result)^, Version); // with nothing: what is behind it is zero
  for Round := 1 to MostRounds do
    if LoadAcquire(PNativeUInt(Result)^) = 0 then
      OsWaitMs(PNativeUInt(Result)^, 0, RoundMs);
  if LoadAcquire(PNativeUInt(Result)^) <> Version then
    Result := nil;
end;

procedure OsSwitchThreadHeap(Heap: PHeap);
begin
  {$ifdef LINUX}
  if Process.HasThreads then
    SlotSet(Heap)
  else
    Process.MainHeap := Heap;
  {$else}
  OsSetThreadHeap(Heap);
  {$endif}
end;

end.
