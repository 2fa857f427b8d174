/// Takes the thread library's first keys, whose values lie where LaneMM reads them directly.
unit TakenKeys;

{$mode delphi}

interface

implementation

function pthread_key_create(out Key: Cardinal; Hook: Pointer): LongInt; cdecl; external 'c';

var
  Key: Cardinal;
  Index: Integer;

initialization
  for Index := 1 to 64 do
    pthread_key_create(Key, nil);
end.
