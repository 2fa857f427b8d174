/// Pages that processes share: the status page, and the file of the black box.
//
// Owns:       nothing.
// Invariants: changes no errno and allocates nothing, as LaneMM.Os. The status page is a segment
//             of shared memory without a key (shmget). It was marked for removal as soon as it was
//             mapped, so it goes with the last process that maps it, however that ends; on Linux
//             others map it until then, by its number, which /proc/PID/maps shows. It needs no file
//             number.
// Callers:    any thread.
// Source:     Linux: man-pages 2, shmget, shmop, shmctl (IPC_INFO), futex, prctl.
unit LaneMM.OsPage;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout;

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

/// Maps the first Size bytes of a file of this user for reading and writing, shared with the file:
/// what is stored stays in it however the process ends. Follows no link. Nil where the system
/// refuses. The caller owns the memory until OsBoxUnmap.
function OsBoxMap(Path: PAnsiChar; Size: NativeUInt): Pointer;
/// Unmaps it.
procedure OsBoxUnmap(P: Pointer; Size: NativeUInt);
/// Returns whether Parent is the process that has started this one, and still runs.
function OsBoxParentIs(Parent: Cardinal): Boolean;

implementation

{$if defined(LINUX)}
uses
  LaneMM.Os;

  {$I LaneMM.OsPage.Linux.inc}
{$else}
  {$I LaneMM.OsPage.Windows.inc}
{$ifend}

end.
