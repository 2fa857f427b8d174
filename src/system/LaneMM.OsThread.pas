/// Threads of LaneMM's own, which are started without the thread library.
//
// Owns:       OwnThreads.
// Invariants: on Linux on x86_64 the thread has its stack and its thread record from the system,
//             and no library knows it: it can be started before libraries are initialized, within
//             GetMem, by another process, and in a program without them. So its routine uses no
//             heap and calls no library, as a signal handler; OsThreadHeap is nil there, or,
//             without the thread library, the heap of the main thread, which it leaves alone. fork
//             and exec end it.
//             It keeps its user and group when the program changes those of its other threads.
// Callers:    any thread.
// Source:     man-pages 2, clone, prctl (PR_GET_DUMPABLE, which a change of the user resets);
//             System V ABI for x86_64, chapter 3 (the word at fs:0); glibc, tcbhead_t.
unit LaneMM.OsThread;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout;

type
  /// What another process needs to start such a thread in this one.
  TBareThreadPlan = record
    Code: NativeUInt;  //< const   routine whose first system call starts the thread; 0: none
    Flags: NativeUInt; //< const   of that call
    Bytes: NativeUInt; //< const   memory of a thread: a page that faults, the stack, a page, the
                       //  record
  end;
  /// Threads beside that of LaneMM.Purge: the one of timed reports, the one that answers requests.
  TOwnThread = (otReporter, otAnswerer);

var
  /// Shared: their numbers, each written by the thread itself; 0: none.
  OwnThreads: array[TOwnThread] of TAtomicWord;

/// Returns whether the thread is one of LaneMM's own.
function ThreadIsOwn(Id: Cardinal): Boolean;
/// Starts a thread that runs Routine, with all signals blocked, and ends when that returns. False
/// when there are none for this target, or the system refuses.
function OsBareThreadStart(Routine: TPlainProcedure): Boolean;
/// Returns what a tool needs to do the same from outside.
function OsBareThreadPlan: TBareThreadPlan;
/// Returns a number that changes when the program changes its user or group for the first time.
function OsRightsMark: Cardinal;

implementation

uses
  LaneMM.Types, LaneMM.Atomic, LaneMM.Os;

function ThreadIsOwn(Id: Cardinal): Boolean;
begin
  Result := (Id = Process.PurgeThread) or (Id = LoadAcquire(OwnThreads[otReporter]))
    or (Id = LoadAcquire(OwnThreads[otAnswerer]));
end;

{$if defined(LANEMM_ASM) and defined(LINUX)}
  {$I LaneMM.OsThread.x64.inc}
{$else}
function OsBareThreadStart(Routine: TPlainProcedure): Boolean;
begin
  Result := OsThreadStart(Routine);
end;

function OsBareThreadPlan: TBareThreadPlan;
begin
  Result := Default(TBareThreadPlan);
end;

function OsRightsMark: Cardinal;
begin
  Result := 0;
end;
{$ifend}

end.
