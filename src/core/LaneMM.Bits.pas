/// Alignment, bit scans, a keyed hash, hints to the CPU; texts that end with #0.
//
// Owns:       nothing.
// Callers:    any unit, any thread; the routines have no side effects.
// Source:     Aumasson and Bernstein, "SipHash: a Fast Short-Input PRF" (2012).
unit LaneMM.Bits;

{$I ../LaneMM.inc}

interface

const
  /// Hash multiplier: 2 to the power of the word's bits, divided by the golden ratio.
  SpreadFactor = NativeUInt({$ifdef CPU64} $9E3779B97F4A7C15 {$else} $9E3779B9 {$endif});

type
  /// Key of SipHash, random.
  THashKey = array[0..1] of UInt64;

/// Returns SipHash-1-3 of Word: without Key, no result allows a guess at another one.
function SipHash(const Key: THashKey; Word: UInt64): UInt64;
/// Returns the smallest multiple of Alignment, a power of two, not below Value; wraps at the top.
function AlignUp(Value, Alignment: NativeUInt): NativeUInt; inline;
/// Returns the index of the highest set bit of Value, which is not 0.
function FloorLog2(Value: NativeUInt): Cardinal; {$ifdef FPC} inline; {$endif}
/// Returns the index of the lowest set bit of Value, which is not 0.
function LowestBit(Value: Cardinal): Cardinal; {$ifdef FPC} inline; {$endif}
/// Returns whether Value is a power of two.
function IsPowerOfTwo(Value: NativeUInt): Boolean; inline;
/// Returns the number of set bits of Value.
function BitCount(Value: NativeUInt): Cardinal;
/// Prefetches the cache line at P for a read soon; P need not be a valid address.
procedure CacheFetch(P: Pointer); {$ifdef FPC} inline; {$endif}

/// Returns the length of a text that ends with #0.
function TextLength(Text: PAnsiChar): NativeUInt;
/// Returns True if a text, which may be longer, begins with Start.
function TextBegins(Text: PAnsiChar; const Start: ShortString): Boolean;
/// Returns Sign in lower case if it is an ASCII letter, else Sign.
function TextLower(Sign: AnsiChar): AnsiChar;

implementation

type
  TSipState = array[0..3] of UInt64;

procedure SipTurn(var V: TSipState);
begin
  V[0] := V[0] + V[1];
  V[1] := (V[1] shl 13 or V[1] shr 51) xor V[0];
  V[0] := V[0] shl 32 or V[0] shr 32;
  V[2] := V[2] + V[3];
  V[3] := (V[3] shl 16 or V[3] shr 48) xor V[2];
  V[0] := V[0] + V[3];
  V[3] := (V[3] shl 21 or V[3] shr 43) xor V[0];
  V[2] := V[2] + V[1];
  V[1] := (V[1] shl 17 or V[1] shr 47) xor V[2];
  V[2] := V[2] shl 32 or V[2] shr 32;
end;

procedure SipAdd(var V: TSipState; Word: UInt64);
begin
  V[3] := V[3] xor Word;
  SipTurn(V);
  V[0] := V[0] xor Word;
end;

function SipHash(const Key: THashKey; Word: UInt64): UInt64;
const
  Start: TSipState = (UInt64($736F6D6570736575), UInt64($646F72616E646F6D),
    UInt64($6C7967656E657261), UInt64($7465646279746573));
  Length8 = UInt64(8) shl 56;
var
  V: TSipState;
  Index: Cardinal;
begin
  for Index := 0 to 3 do
    V[Index] := Start[Index] xor Key[Index and 1];
  SipAdd(V, Word);
  SipAdd(V, Length8);
  V[2] := V[2] xor $FF;
  for Index := 1 to 3 do
    SipTurn(V);
  Result := V[0] xor V[1] xor V[2] xor V[3];
end;

function TextLength(Text: PAnsiChar): NativeUInt;
begin
  Result := 0;
  while Text[Result] <> #0 do
    Inc(Result);
end;

function TextBegins(Text: PAnsiChar; const Start: ShortString): Boolean;
var
  Index: NativeUInt;
begin
  Index := 0;
  while (Index < Length(Start)) and (Text[Index] = Start[Index + 1]) do
    Inc(Index);
  Result := Index = Length(Start);
end;

function TextLower(Sign: AnsiChar): AnsiChar;
begin
  Result := Sign;
  if Sign in ['A'..'Z'] then
    Inc(Result, Ord('a') - Ord('A'));
end;

function AlignUp(Value, Alignment: NativeUInt): NativeUInt;
begin
  Result := NativeUInt(Value + Alignment - 1) and not NativeUInt(Alignment - 1);
end;

function BitCount(Value: NativeUInt): Cardinal;
begin
  Result := 0;
  while Value <> 0 do
  begin
    Value := Value and NativeUInt(Value - 1);
    Inc(Result);
  end;
end;

procedure CacheFetch(P: Pointer);
begin
  {$ifdef FPC} Prefetch(P^); {$endif}
end;

function IsPowerOfTwo(Value: NativeUInt): Boolean;
begin
  Result := (Value <> 0) and (Value and NativeUInt(Value - 1) = 0);
end;

{$ifdef FPC}
function FloorLog2(Value: NativeUInt): Cardinal;
begin
  {$ifdef CPU64} Result := BsrQWord(Value); {$else} Result := BsrDWord(Value); {$endif}
end;

function LowestBit(Value: Cardinal): Cardinal;
begin
  Result := BsfDWord(Value);
end;
{$else}
function FloorLog2(Value: NativeUInt): Cardinal;
begin
  Result := 0;
  while Value > 1 do
  begin
    Value := Value shr 1;
    Inc(Result);
  end;
end;

function LowestBit(Value: Cardinal): Cardinal;
begin
  Result := FloorLog2(Value and (not Value + 1));
end;
{$endif}

end.
