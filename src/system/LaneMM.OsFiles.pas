/// Files, and the names that the system knows: of the program, of folders, of variables.
//
// Owns:       nothing.
// Invariants: as LaneMM.Os: no routine changes errno or allocates. Windows: texts are UTF-8, and
//             paths have slashes.
// Callers:    any thread.
// Source:     Linux: man-pages 2 and 5 (proc); Windows: learn.microsoft.com.
unit LaneMM.OsFiles;

{$I ../LaneMM.inc}

interface

const
  /// The characters that separate the folders of a path.
  OsSeparators = {$ifdef MSWINDOWS} ['/', '\'] {$else} ['/'] {$endif};
  /// True where a file can be deleted while it is mapped.
  OsDeletesMapped = {$ifdef MSWINDOWS} False {$else} True {$endif};

type
  /// An open file; negative if the open failed.
  TOsFile = NativeInt;
  /// Why a file could not be opened: it is a symbolic link, it is a pipe or a device without a
  /// reader, another user may have put it there, any other reason.
  TOsFileError = (feLink, feNoReader, feOthers, feOther);
  /// The name of a thread, ended by #0.
  TThreadName = array[0..15] of AnsiChar;

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
/// terminal that takes nothing for a second is an error when one of the routines above opened it,
/// and so is stderr when its number seems to be that of a file of the program's, which closed it.
function OsFileWrite(Handle: TOsFile; Buffer: Pointer; Size: NativeUInt): Boolean;
/// Opens the null device as stderr if stderr is closed: else the next file that the program opens
/// would have its number, and receive the reports. Remembers which file stderr is.
procedure OsKeepStandardError;
/// Maps a file for reading until OsFileUnmap. Nil when it is empty or cannot be opened.
function OsFileMap(Path: PAnsiChar; out Size: NativeUInt): PByte;
/// Maps the first Size bytes of a file of this user for reading and writing, shared with the file:
/// what is stored stays in it however the process ends. Follows no link. Nil where the system
/// refuses. The caller owns the memory until OsFileUnmap.
function OsFileShare(Path: PAnsiChar; Size: NativeUInt): Pointer;
/// Releases a mapping of OsFileMap or OsFileShare.
procedure OsFileUnmap(P: Pointer; Size: NativeUInt);

/// Stores the absolute path of a folder, without links, in Buffer, ended by #0; returns its
/// length, 0 if there is no such folder.
function OsFolderPath(Folder, Buffer: PAnsiChar; Size: NativeUInt): NativeUInt;
/// Stores the path of the running program in Buffer, ended by #0; returns its length, 0 if unknown.
/// On Linux without /proc it is the path by which the program was started.
function OsProgramPath(Buffer: PAnsiChar; Size: NativeUInt): NativeUInt;
/// Stores that path without the extension of programs (Windows: .exe), to name other files by it.
function OsProgramName(Buffer: PAnsiChar; Size: NativeUInt): NativeUInt;
/// Stores the words of the command line in Buffer, with spaces between, cut to Size; on Linux
/// without /proc the program's path alone. Returns the length, 0 if unknown.
function OsCommandLine(Buffer: PAnsiChar; Size: NativeUInt): NativeUInt;
/// Copies a variable of the environment at the start of the process, ended by #0 and cut to Size.
/// False when it is not set.
function OsEnvironment(const Name: ShortString; Buffer: PAnsiChar; Size: NativeUInt): Boolean;
{$ifndef MSWINDOWS}
/// Returns whether the main thread has ended (pthread_exit, EndThread) while others run. Below
/// /proc, Linux then shows by these alone what is mapped and open, and the program.
function OsMainHasEnded: Boolean;
/// Stores the path of a file below /proc of this process in Path, ended by #0, and returns it.
function OsOwnFile(const Name: ShortString; out Path: ShortString): PAnsiChar;
var
  /// Owner: where OsEnvironment finds the variables in a library without /proc; nil: nowhere.
  OsHostVariables: PPAnsiChar;
{$endif}
/// Returns the name of a thread of this process; empty where it has none, or has ended.
procedure OsThreadName(Id: Cardinal; out Name: TThreadName);
{$ifdef MSWINDOWS}
/// Returns the index at which the usual form of a path begins. A path that the system has resolved
/// starts with `\\?\`: a path on a drive begins at its letter; for one on a server, the routine
/// writes one of the two leading backslashes. 0 for any other path.
function OsPathStart(Wide: PWideChar): Cardinal;
/// Stores the path of a module, 0 for the program; returns its length, 0 if unknown.
function OsModulePath(Module: NativeUInt; Buffer: PAnsiChar; Size: NativeUInt): NativeUInt;
{$endif}

implementation

uses
  LaneMM.Layout, LaneMM.Hooks, LaneMM.Bits, LaneMM.Os;

{$ifdef MSWINDOWS}
  {$I LaneMM.OsFiles.Windows.inc}
{$else}
  {$I LaneMM.OsFiles.Linux.inc}
{$endif}

end.
