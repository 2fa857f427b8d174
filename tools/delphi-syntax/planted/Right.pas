// No finding here: what another compiler or target reads may be wrong.
unit Right;

interface

function Double(Value: NativeUInt): NativeUInt; inline;

implementation

{$ifdef FPC}
procedure Wrong; weakexternal name 'wrong';
{$endif}

function Double(Value: NativeUInt): NativeUInt;
begin
  {$ifdef CPU64BITS}
  Result := Value * 2;
  {$else}
  Result := Value + Value;
  {$endif}
end;

end.
