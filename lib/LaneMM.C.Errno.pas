/// errno of the calling thread.
//
// Owns:       nothing; errno belongs to libc.
// Callers:    any thread, also before libc has started: errno lies in thread-local storage.
unit LaneMM.C.Errno;

{$I ../src/LaneMM.inc}

interface

const
  /// ENOMEM: no memory.
  ErrorNoMemory = 12;
  /// EBUSY: in use.
  ErrorBusy = 16;
  /// EINVAL: invalid argument.
  ErrorInvalid = 22;

/// Returns errno.
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
