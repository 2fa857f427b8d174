/// Bytes that are all the same: written, and looked for.
//
// Owns:       nothing.
// Callers:    any unit, any thread.
unit LaneMM.Patterns;

{$I ../LaneMM.inc}

interface

/// Fills Size bytes at P.
procedure PatternFill(P: PByte; Size: NativeUInt; Value: Byte);
/// How many of the Size bytes at P, from the first on, have the value.
function PatternLength(P: PByte; Size: NativeUInt; Value: Byte): NativeUInt;

implementation
const
  WordSize = SizeOf(NativeUInt);
  WordMask = WordSize - 1;
  // From so many bytes on the run-time library is faster.
  LongSize = 512;
  // A word of these bytes is the value times this.
  Ones = High(NativeUInt) div High(Byte);

procedure PatternFill(P: PByte; Size: NativeUInt; Value: Byte);
var
  Limit: PByte;
begin
  if Size >= LongSize then
  begin
    FillChar(P^, Size, Value);
    Exit;
  end;
  Limit := P + Size;
  while (P < Limit) and (NativeUInt(P) and WordMask <> 0) do
  begin
    P^ := Value;
    Inc(P);
  end;
  while P + WordSize <= Limit do
  begin
    PNativeUInt(P)^ := Value * Ones;
    Inc(P, WordSize);
  end;
  while P < Limit do
  begin
    P^ := Value;
    Inc(P);
  end;
end;

function PatternLength(P: PByte; Size: NativeUInt; Value: Byte): NativeUInt;
var
  First, Limit: PByte;
begin
  First := P;
  Limit := P + Size;
  while (P < Limit) and (NativeUInt(P) and WordMask <> 0) do
  begin
    if P^ <> Value then
      Exit(P - First);
    Inc(P);
  end;
  while (P + WordSize <= Limit) and (PNativeUInt(P)^ = Value * Ones) do
    Inc(P, WordSize);
  while (P < Limit) and (P^ = Value) do
    Inc(P);
  Result := P - First;
end;

end.
