/// Signals and faults of the processor.
//
// Owns:       Signals: what handled faults before, and the entry among other copies of LaneMM.
// Invariants: as LaneMM.Os: no routine changes errno or allocates. Windows has no signals.
// Callers:    any thread.
// Source:     Linux: man-pages 2 (sigaction); the kernel's asm/sigcontext.h. Windows:
//             learn.microsoft.com (vectored exception handling, CONTEXT).
unit LaneMM.OsSignals;

{$I ../LaneMM.inc}

interface

type
  /// Use of a signal handler: for each signal, or once, after which the system's default applies.
  TOsSignalUse = (suAgain, suLast);
  /// Handles a signal. It may interrupt any code, so it calls only routines that allow that.
  TOsSignalHandler = procedure(Signal: Integer); cdecl;

/// Returns true if a program may use the signal for its own purposes: it exists, is no fault, does
/// not end the process by itself, and can be caught.
function OsSignalIsFree(Signal: NativeUInt): Boolean;
/// Sets Handler for a signal. Returns false, and changes nothing, if the signal has a handler or is
/// ignored.
function OsSignalSet(Signal: Cardinal; Handler: TOsSignalHandler; Use: TOsSignalUse): Boolean;
/// Returns whether Handler is that of a signal still.
function OsSignalIs(Signal: Cardinal; Handler: TOsSignalHandler): Boolean;
/// Returns whether a handler of a signal seems to run on the stack at Frame: whether a word of the
/// next 64 KB is an address that handlers of this process return to.
function OsHandlerIsBelow(Frame: NativeUInt): Boolean;
/// Sets a fault handler that calls Hooks.Fault and then the previous handler, unless it is set,
/// also behind those of other copies of LaneMM.
procedure OsFaultWatch;
/// Takes the handlers of this module back, before its code is unloaded: the previous fault handlers
/// are set again, other signals get the system's action. A handler that was set after LaneMM's
/// fault handler and has kept its address calls code that is gone.
procedure OsSignalsLeave;
/// Sends this process a signal, to end it. Where that is refused, it ends with the exit code that
/// shells give such a process.
procedure OsSignalSend(Signal: Cardinal);
/// Ends the process at once, as abort does in C: by SIGABRT, which a debugger, a core file and a
/// handler of the program see in the calling thread; does not return from that handler.
procedure OsAbort;
/// Sends a signal to a thread of this process; returns false if it has ended.
function OsSignalSendTo(Thread, Signal: Cardinal): Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.Hooks, LaneMM.Atomic, LaneMM.Os, LaneMM.OsProcess, LaneMM.CopyPages;

type
  // What handled a signal.
  TSignalBefore = record
    Handler: NativeUInt; // racy    0: the system's action, 1: none
    Flags: NativeUInt;   // racy    of sigaction
  end;
  // What handled the signals of faults. On Windows, the first Handler is 1 once LaneMM's handler
  // is set, and the second is its handle.
  TFaultsBefore = array[0..1] of TSignalBefore;

  TSignals = record
    Before: TFaultsBefore; //< racy    the fault handlers before LaneMM's; written before it is set.
                           //  A fault at that moment may reach the previous or the new one
    Links: PCopyPage;      //< racy    Linux: see OsFaultWatch; nil: none yet, which is looked for
                           //  once more
  end;

var
  Signals: TSignals;

{$ifdef MSWINDOWS}
  {$I LaneMM.OsSignals.Windows.inc}
{$else}
  {$I LaneMM.OsSignals.Linux.inc}
{$endif}

end.
