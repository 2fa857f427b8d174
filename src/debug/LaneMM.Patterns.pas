/// Fills memory with one byte value, and counts bytes of one value.
//
// Owns:       nothing.
// Callers:    any unit, any thread.
unit LaneMM.Patterns;

{$I ../LaneMM.inc}

interface

/// Fills Size bytes at P with Value.
procedure PatternFill(P: PByte; Size: NativeUInt; Value: Byte);
/// Returns how many bytes at the start of a block of Size bytes are filled and checked: all of a
/// block of up to 1 MB, 64 KB of a larger one, so that pages which the program never touches get no
/// memory.
function PatternHead(Size: NativeUInt): NativeUInt; inline;
/// Returns how many bytes at its end: 0 where PatternHead is all of it.
function PatternTail(Size: NativeUInt): NativeUInt; inline;
/// Fills head and tail of a block of Size bytes at P with Value.
procedure PatternFillEnds(P: PByte; Size: NativeUInt; Value: Byte);
/// Returns how many of the Size bytes at P, from the first on, are Value without a gap.
function PatternLength(P: PByte; Size: NativeUInt; Value: Byte): NativeUInt;

implementation

const
  // The largest block that is filled as a whole, and the length of an end of a larger one.
  WholeSize = 1 shl 20;
  EndSize = 64 shl 10;
  WordSize = SizeOf(NativeUInt);
  WordMask = WordSize - 1;
  // From this size on the run-time library is faster.
  LongSize = 512;
  // A word of equal bytes is their value times this.
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

function PatternHead(Size: NativeUInt): NativeUInt;
begin
  Result := Size;
  if Size > WholeSize then
    Result := EndSize;
end;

function PatternTail(Size: NativeUInt): NativeUInt;
begin
  Result := 0;
  if Size > WholeSize then
    Result := EndSize;
end;

procedure PatternFillEnds(P: PByte; Size: NativeUInt; Value: Byte);
begin
  PatternFill(P, PatternHead(Size), Value);
  PatternFill(P + Size - PatternTail(Size), PatternTail(Size), Value);
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
