/// A thread of LaneMM's own that is started without the thread library.
//
// Owns:       nothing.
// Invariants: on Linux on x86_64 the thread has its stack and its thread record from the system,
//             and no library knows it: it can be started in a signal handler, before libraries are
//             initialized, and in a program without them. So its routine uses no heap and calls no
//             library, as a signal handler; OsThreadHeap is nil there, or, without the thread
//             library, the heap of the main thread, which it leaves alone. fork and exec end it.
//             It keeps its user and group when the program changes those of its other threads.
// Callers:    any thread; on Linux also in a signal handler.
// Source:     man-pages 2, clone, prctl (PR_GET_DUMPABLE, which a change of the user resets);
//             System V ABI for x86_64, chapter 3 (the word at fs:0).
unit LaneMM.OsThread;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout;

/// Starts a thread that runs Routine, which never returns, with all signals blocked. False when
/// there are none for this target, or the system refuses.
function OsBareThreadStart(Routine: TPlainProcedure): Boolean;
/// Ends the calling thread, which OsBareThreadStart has started, or does nothing on a target where
/// OsRightsMark stays the same.
procedure OsBareThreadEnd;
/// Returns a number that changes when the program changes its user or group for the first time.
function OsRightsMark: Cardinal;

implementation

uses
  LaneMM.Types, LaneMM.Os;

{$if defined(LANEMM_ASM) and defined(LINUX)}
  {$I LaneMM.OsThread.x64.inc}
{$else}
function OsBareThreadStart(Routine: TPlainProcedure): Boolean;
begin
  Result := OsThreadStart(Routine);
end;

procedure OsBareThreadEnd;
begin
end;

function OsRightsMark: Cardinal;
begin
  Result := 0;
end;
{$ifend}

end.
