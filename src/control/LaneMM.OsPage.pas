/// The system calls of the status page: a page that tools outside of the process can open.
//
// Owns:       nothing.
// Invariants: changes no errno and allocates nothing, as LaneMM.Os.
// Callers:    any thread, also in a signal handler.
// Source:     Linux: man-pages 2, memfd_create (Linux 3.17), fcntl, signal handlers.
unit LaneMM.OsPage;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Os;

/// Returns whether the user who started the process may look at it, as the system sees it: not a
/// process with more rights than that user, nor one that has forbidden it.
function OsPageIsAllowed: Boolean;
/// Maps a new file in memory, Size bytes of zeros, under Name. Its file number is the next free one
/// from FirstNumber on, so that no number changes that the program counts on; it ends with exec. A
/// child process shares the mapping. Nil when the system refuses, or has no such files. FileNumber
/// receives the number, -1 for none.
function OsPageMap(Name: PAnsiChar; Size: NativeUInt; out FileNumber: NativeInt): Pointer;
/// Unmaps it; its file number stays open.
procedure OsPageUnmap(P: Pointer; Size: NativeUInt);
/// Closes its file number; none for -1.
procedure OsPageClose(FileNumber: NativeInt);
/// Sets Handler for two signals that the program neither handles nor ignores, on the alternate
/// stack if the interrupted thread has one. Returns their numbers; 0: none was free.
procedure OsPageSignals(Handler: TOsSignalHandler; out First, Second: Cardinal);

implementation

{$if defined(LINUX)}
uses
  LaneMM.Types;

  {$I LaneMM.OsPage.Linux.inc}
{$else}
  {$I LaneMM.OsPage.None.inc}
{$ifend}

end.
