/// Takes the first keys of threads' values, those that LaneMM reads directly.
unit TakenKeys;

{$mode delphi}

interface

implementation

{$ifdef MSWINDOWS}
function TlsAlloc: Cardinal; stdcall; external 'kernel32.dll';

procedure TakeKey;
begin
  TlsAlloc;
end;

{$else}
function pthread_key_create(out Key: Cardinal; Hook: Pointer): LongInt; cdecl; external 'c';

procedure TakeKey;
var
  Key: Cardinal;
begin
  pthread_key_create(Key, nil);
end;
{$endif}

var
  Index: Integer;

initialization
  for Index := 1 to 64 do
    TakeKey;
end.
