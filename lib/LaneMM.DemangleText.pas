/// The text that LaneMM.Demangle writes, and the parts of it that a name refers to again.
//
// Owns:       nothing; a TPass belongs to one call.
// Invariants: after a failure nothing more is read or written.
// Callers:    LaneMM.Demangle, LaneMM.DemangleRust.
unit LaneMM.DemangleText;

{$I ../src/LaneMM.inc}

interface

const
  /// Maximum number of characters of a name, and of all its parts together.
  MostText = 16384;
  MostKept = 262144;
  /// Maximum number of parts of one kind.
  MostParts = 1024;
  /// The digits.
  Digits = ['0'..'9'];

type
  /// Text with the place for the star of a pointer.
  TPart = record
    First: Cardinal;     //< its first character in TPass.Kept
    Length: Cardinal;    //< its characters
    Hole: Cardinal;      //< where the star goes, from First on; 0: at the end
    IsBare: Boolean;     //< the star goes there in parentheses
    IsPack: Boolean;     //< a pack of template arguments
    PackFirst: Cardinal; //< its first member in TPass.Packs
    PackCount: Cardinal; //< its members
  end;
  /// Parts that a name may refer to by their number.
  TParts = record
    Count: Cardinal;                             //< number of parts
    Items: array[0..MostParts - 1] of TPart;     //< the parts
  end;

  PPass = ^TPass;
  /// The state of a pass over a name; all zero at first but for Next.
  TPass = record
    Next: PAnsiChar;       //< the rest of the name
    HasFailed: Boolean;    //< the name is not understood
    Depth: Cardinal;       //< types around the one that is read
    Nested: Cardinal;      //< routines and packs around the one that is read
    Length: Cardinal;      //< characters in Out
    KeptLength: Cardinal;  //< characters in Kept
    Hole: Cardinal;        //< of the type that was written last, see TPart, from the start of Out
    IsBare: Boolean;       //< likewise
    NameFirst: Cardinal;   //< the last plain name in Out, for constructors
    NameLength: Cardinal;  //< its characters
    HasArguments: Boolean; //< the name ended with template arguments
    HasNoReturn: Boolean;  //< it is a constructor, a destructor or a conversion
    InLambda: Boolean;     //< parameters of a lambda: T_ is auto
    Suffix: Cardinal;      //< qualifiers of a method, as bits
    Parts: TParts;         //< what S_ and its like mean
    Arguments: TParts;     //< what T_ and its like mean
    Packs: TParts;         //< the members of packs among them
    IsExpanding: Boolean;  //< a pack stands for its member PackIndex
    PackIndex: Cardinal;   //< see IsExpanding
    PackCount: Cardinal;   //< the members of the pack that was met
    Start: PAnsiChar;      //< of a name of Rust, see LaneMM.DemangleRust: where it begins
    Followed: Cardinal;    //< references in it that were followed
    Pack: Cardinal;        //< number from 1 on of the argument, a pack, that was read last; 0: none
    Out: array[0..MostText - 1] of AnsiChar;  //< the text
    Kept: array[0..MostKept - 1] of AnsiChar; //< the text of parts
  end;

/// Begins a pass over a name, in pages of its own: the stack of a thread may be small. Nil without
/// memory.
function PassOpen(Name: PAnsiChar): PPass;
/// Releases the pages.
procedure PassClose(Pass: PPass);
/// Makes the pass fail.
procedure Fail(var Pass: TPass);
/// Begins a routine or a pack inside others; fails inside of too many: the stack may be small.
procedure NestBegin(var Pass: TPass);
/// Ends it.
procedure NestEnd(var Pass: TPass); inline;
/// Returns the next character of the name; #0 at its end and after a failure.
function Sign(const Pass: TPass): AnsiChar; inline;
/// Passes the next character if it is Wanted; returns whether it was.
function Take(var Pass: TPass; Wanted: AnsiChar): Boolean;
/// Passes the next two characters if they are First and Second; returns whether they were.
function TakeBoth(var Pass: TPass; First, Second: AnsiChar): Boolean;
/// Passes the next character; fails unless it is Wanted.
procedure Want(var Pass: TPass; Wanted: AnsiChar);
/// Fails unless Count more characters follow.
procedure WantMore(var Pass: TPass; Count: Cardinal);
/// Inserts characters into the text. They may be part of it if At is its end.
procedure InsertChars(var Pass: TPass; At: Cardinal; Chars: PAnsiChar; Count: Cardinal);
/// Adds a string.
procedure Add(var Pass: TPass; const Part: ShortString);
/// Adds characters up to #0.
procedure AddChars(var Pass: TPass; Chars: PAnsiChar);
/// Adds what follows a type, as * and const do, where it belongs.
procedure AddToType(var Pass: TPass; const Part: ShortString);
/// Makes the type that was written last a plain text.
procedure TypeEnds(var Pass: TPass); inline;
/// Keeps the text from First on.
procedure Keep(var Pass: TPass; var Parts: TParts; First: Cardinal);
/// Adds the part Index, or the member that a pack stands for; fails when there is none.
procedure AddKept(var Pass: TPass; const Parts: TParts; Index: Cardinal);
/// Keeps a type from First on as a part; a pack as one.
procedure KeepType(var Pass: TPass; First: Cardinal);
/// Adds a decimal number.
procedure AddNumber(var Pass: TPass; Value: NativeUInt);
/// Reads a decimal number; fails without a digit.
function ReadNumber(var Pass: TPass): NativeUInt;
/// Reads `_` as 0, `0_` as 1 and so on, in base 36 with capital letters.
function ReadSequence(var Pass: TPass): Cardinal;
/// Reads the length of a plain name and the name; adds it.
procedure ReadSourceName(var Pass: TPass);

implementation

uses
  LaneMM.Bits, LaneMM.Os;

// ---------------------------------------------------------------------------- text

function PassOpen(Name: PAnsiChar): PPass;
begin
  Result := OsTakePages(SizeOf(TPass));
  if Result <> nil then
    Result^.Next := Name;
end;

procedure PassClose(Pass: PPass);
begin
  OsReleasePages(Pass, SizeOf(TPass));
end;

procedure Fail(var Pass: TPass);
begin
  Pass.HasFailed := True;
end;

procedure NestBegin(var Pass: TPass);
const
  MostNested = 64;
begin
  Inc(Pass.Nested);
  if Pass.Nested > MostNested then
    Fail(Pass);
end;

procedure NestEnd(var Pass: TPass);
begin
  Dec(Pass.Nested);
end;

function Sign(const Pass: TPass): AnsiChar;
begin
  Result := #0;
  if not Pass.HasFailed then
    Result := Pass.Next^;
end;

function Take(var Pass: TPass; Wanted: AnsiChar): Boolean;
begin
  Result := Sign(Pass) = Wanted;
  if Result then
    Inc(Pass.Next);
end;

function TakeBoth(var Pass: TPass; First, Second: AnsiChar): Boolean;
begin
  Result := (Sign(Pass) = First) and (Pass.Next[1] = Second);
  if Result then
    Inc(Pass.Next, 2);
end;

procedure Want(var Pass: TPass; Wanted: AnsiChar);
begin
  if not Take(Pass, Wanted) then
    Fail(Pass);
end;

procedure WantMore(var Pass: TPass; Count: Cardinal);
var
  Index: Cardinal;
begin
  Index := 0;
  while (Index < Count) and not Pass.HasFailed do
  begin
    if Pass.Next[Index] = #0 then
      Fail(Pass);
    Inc(Index);
  end;
end;

procedure InsertChars(var Pass: TPass; At: Cardinal; Chars: PAnsiChar; Count: Cardinal);
begin
  if Pass.Length + Count > MostText then
  begin
    Fail(Pass);
    Exit;
  end;
  Move(Pass.Out[At], Pass.Out[At + Count], Pass.Length - At);
  Move(Chars^, Pass.Out[At], Count);
  Inc(Pass.Length, Count);
end;

procedure Add(var Pass: TPass; const Part: ShortString);
begin
  InsertChars(Pass, Pass.Length, @Part[1], Length(Part));
end;

procedure AddChars(var Pass: TPass; Chars: PAnsiChar);
begin
  InsertChars(Pass, Pass.Length, Chars, TextLength(Chars));
end;

procedure AddToType(var Pass: TPass; const Part: ShortString);
begin
  if Pass.Hole = 0 then
    Add(Pass, Part)
  else if Pass.IsBare then
  begin
    InsertChars(Pass, Pass.Hole, '()', 2);
    InsertChars(Pass, Pass.Hole + 1, @Part[1], Length(Part));
    Inc(Pass.Hole, 1 + Length(Part));
    Pass.IsBare := False;
  end
  else
  begin
    InsertChars(Pass, Pass.Hole, @Part[1], Length(Part));
    Inc(Pass.Hole, Length(Part));
  end;
end;

procedure TypeEnds(var Pass: TPass);
begin
  Pass.Hole := 0;
  Pass.IsBare := False;
end;

procedure Keep(var Pass: TPass; var Parts: TParts; First: Cardinal);
var
  Part: ^TPart;
  Count: Cardinal;
begin
  Count := Pass.Length - First;
  if (Parts.Count = MostParts) or (Pass.KeptLength + Count > MostKept) then
    Fail(Pass);
  if Pass.HasFailed then
    Exit;
  Part := @Parts.Items[Parts.Count];
  Inc(Parts.Count);
  Part^.First := Pass.KeptLength;
  Part^.Length := Count;
  Part^.Hole := 0;
  if Pass.Hole > First then
    Part^.Hole := Pass.Hole - First;
  Part^.IsBare := Pass.IsBare;
  Part^.IsPack := False;
  Move(Pass.Out[First], Pass.Kept[Part^.First], Count);
  Inc(Pass.KeptLength, Count);
end;

procedure AddKept(var Pass: TPass; const Parts: TParts; Index: Cardinal);
var
  First: Cardinal;
begin
  if Index >= Parts.Count then
    Fail(Pass);
  if Pass.HasFailed then
    Exit;
  if Pass.IsExpanding and Parts.Items[Index].IsPack then
  begin
    Pass.PackCount := Parts.Items[Index].PackCount;
    if Pass.PackCount > 0 then
      AddKept(Pass, Pass.Packs, Parts.Items[Index].PackFirst + Pass.PackIndex);
    Exit;
  end;
  First := Pass.Length;
  InsertChars(Pass, First, @Pass.Kept[Parts.Items[Index].First], Parts.Items[Index].Length);
  TypeEnds(Pass);
  if Parts.Items[Index].Hole <> 0 then
    Pass.Hole := First + Parts.Items[Index].Hole;
  Pass.IsBare := Parts.Items[Index].IsBare;
end;

procedure KeepType(var Pass: TPass; First: Cardinal);
var
  Part: ^TPart;
begin
  Keep(Pass, Pass.Parts, First);
  if Pass.HasFailed then
    Exit;
  Part := @Pass.Parts.Items[Pass.Parts.Count - 1];
  Part^.IsPack := Pass.Pack > 0;
  if Part^.IsPack then
  begin
    Part^.PackFirst := Pass.Arguments.Items[Pass.Pack - 1].PackFirst;
    Part^.PackCount := Pass.Arguments.Items[Pass.Pack - 1].PackCount;
  end;
  Pass.Pack := 0;
end;

procedure AddNumber(var Pass: TPass; Value: NativeUInt);
var
  Digit: AnsiChar;
begin
  if Value >= 10 then
    AddNumber(Pass, Value div 10);
  Digit := AnsiChar(Ord('0') + Value mod 10);
  InsertChars(Pass, Pass.Length, @Digit, 1);
end;

// ---------------------------------------------------------------------------- numbers

function ReadNumber(var Pass: TPass): NativeUInt;
const
  Most = 1000000;
begin
  Result := 0;
  if not (Sign(Pass) in Digits) then
    Fail(Pass);
  while (Sign(Pass) in Digits) and (Result < Most) do
  begin
    Result := Result * 10 + Ord(Pass.Next^) - Ord('0');
    Inc(Pass.Next);
  end;
end;

function ReadSequence(var Pass: TPass): Cardinal;
begin
  Result := 0;
  if Take(Pass, '_') then
    Exit;
  while (Sign(Pass) in Digits + ['A'..'Z']) and (Result < MostParts) do
  begin
    if Pass.Next^ in Digits then
      Result := Result * 36 + Ord(Pass.Next^) - Ord('0')
    else
      Result := Result * 36 + Ord(Pass.Next^) - Ord('A') + 10;
    Inc(Pass.Next);
  end;
  Inc(Result);
  Want(Pass, '_');
end;

procedure ReadSourceName(var Pass: TPass);
const
  Made: ShortString = '_GLOBAL__N'; // begins the compiler's names of namespaces without one
var
  Count: Cardinal;
begin
  Count := ReadNumber(Pass);
  WantMore(Pass, Count);
  if Pass.HasFailed then
    Exit;
  Pass.NameFirst := Pass.Length;
  if (Count >= Length(Made)) and TextBegins(Pass.Next, Made) then
    Add(Pass, '(anonymous namespace)')
  else
    InsertChars(Pass, Pass.Length, Pass.Next, Count);
  Pass.NameLength := Pass.Length - Pass.NameFirst;
  Inc(Pass.Next, Count);
end;

end.
