/// The calling thread's errno.
//
// Owns:       nothing; libc does.
// Callers:    any thread, also before libc has started: the word lies in thread-local storage.
unit LaneMM.C.Errno;

{$I ../src/LaneMM.inc}

interface

const
  /// ENOMEM: no memory.
  ErrorNoMemory = 12;
  /// EINVAL: an argument that means nothing.
  ErrorInvalid = 22;

/// Reads errno.
function ErrnoGet: LongInt;
/// Sets errno.
procedure ErrnoSet(Value: LongInt);

implementation

function ErrnoLocation: PLongInt; cdecl; external name '__errno_location';

function ErrnoGet: LongInt;
begin
  Result := ErrnoLocation^;
end;

procedure ErrnoSet(Value: LongInt);
begin
  ErrnoLocation^ := Value;
end;

end.
