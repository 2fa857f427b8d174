/// The file of a black box as memory: how the system maps it.
//
// Owns:    nothing.
// Callers: any thread; uses system calls only.
// Limits:  Linux; another system has none.
unit LaneMM.OsBox;

{$I ../LaneMM.inc}

interface

type
  /// The name of a thread, ended by #0.
  TThreadName = array[0..15] of AnsiChar;

/// Maps the first Size bytes of a file of this user for reading and writing, shared with the file:
/// what is stored stays in it however the process ends. Follows no link. Nil where the system
/// refuses. The caller owns the memory until OsBoxUnmap.
function OsBoxMap(Path: PAnsiChar; Size: NativeUInt): Pointer;
/// Unmaps it.
procedure OsBoxUnmap(P: Pointer; Size: NativeUInt);
/// Returns whether Parent is the process that has started this one, and still runs.
function OsBoxParentIs(Parent: Cardinal): Boolean;
/// Returns the name of a thread of this process; empty where it has none, or has ended.
procedure OsBoxThreadName(Id: Cardinal; out Name: TThreadName);

implementation

{$if defined(LINUX)}
uses
  LaneMM.Types, LaneMM.Os;

  {$I LaneMM.OsBox.Linux.inc}
{$else}
  {$I LaneMM.OsBox.None.inc}
{$ifend}

end.
