/// Takes all keys of the thread library.
unit AllKeys;

{$mode delphi}

interface

implementation

function pthread_key_create(out Key: Cardinal; Hook: Pointer): LongInt; cdecl; external 'c';

var
  Key: Cardinal;

initialization
  while pthread_key_create(Key, nil) = 0 do;
end.
