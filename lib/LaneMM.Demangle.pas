/// Writes the linker's names of routines in C++ and Rust as the program writes them.
//
// Owns:       Stacks.Demangle in a program that names this unit; in the library LaneMM.C.Frames
//             sets it, since no initialization runs there.
// How:        one pass over the name writes the text. A part that later parts may refer to is kept
//             with the place where a pointer to it would put its star: int (*)(char).
// Limits:     no expressions in template arguments but packs, no decltype; return types are left out. A name
//             that is not understood to its end, or is nested too deep, is refused.
// Callers:    any thread, also in an error report: uses no heap.
// Source:     Itanium C++ ABI, section 5.1, https://itanium-cxx-abi.github.io/cxx-abi/abi.html
unit LaneMM.Demangle;

{$I ../src/LaneMM.inc}

interface

uses
  LaneMM.Text;

/// Adds the name of a routine in C++, with its parameters, or in Rust; Name ends with #0. Returns False
/// and adds nothing for any other name.
function DemangleAdd(var Text: TText; Name: PAnsiChar): Boolean;

implementation

uses
  LaneMM.Bits, LaneMM.StacksState, LaneMM.DemangleText,
  LaneMM.DemangleRust;

const
  MostDepth = 48;
  Qualifiers = ['r', 'V', 'K'];

procedure ReadType(var Pass: TPass); forward;
procedure ReadEncoding(var Pass: TPass); forward;
procedure ReadExpansion(var Pass: TPass); forward;
procedure ReadName(var Pass: TPass); forward;

// ---------------------------------------------------------------------------- plain names

type
  TOperatorName = record
    Code: array[0..1] of AnsiChar;
    Text: PAnsiChar;
  end;

const
  OperatorNames: array[0..47] of TOperatorName = (
    (Code: 'nw'; Text: ' new'), (Code: 'na'; Text: ' new[]'), (Code: 'dl'; Text: ' delete'),
    (Code: 'da'; Text: ' delete[]'), (Code: 'ps'; Text: '+'), (Code: 'ng'; Text: '-'),
    (Code: 'ad'; Text: '&'), (Code: 'de'; Text: '*'), (Code: 'co'; Text: '~'),
    (Code: 'pl'; Text: '+'), (Code: 'mi'; Text: '-'), (Code: 'ml'; Text: '*'),
    (Code: 'dv'; Text: '/'), (Code: 'rm'; Text: '%'), (Code: 'an'; Text: '&'),
    (Code: 'or'; Text: '|'), (Code: 'eo'; Text: '^'), (Code: 'aS'; Text: '='),
    (Code: 'pL'; Text: '+='), (Code: 'mI'; Text: '-='), (Code: 'mL'; Text: '*='),
    (Code: 'dV'; Text: '/='), (Code: 'rM'; Text: '%='), (Code: 'aN'; Text: '&='),
    (Code: 'oR'; Text: '|='), (Code: 'eO'; Text: '^='), (Code: 'ls'; Text: '<<'),
    (Code: 'rs'; Text: '>>'), (Code: 'lS'; Text: '<<='), (Code: 'rS'; Text: '>>='),
    (Code: 'eq'; Text: '=='), (Code: 'ne'; Text: '!='), (Code: 'lt'; Text: '<'),
    (Code: 'gt'; Text: '>'), (Code: 'le'; Text: '<='), (Code: 'ge'; Text: '>='),
    (Code: 'ss'; Text: '<=>'), (Code: 'nt'; Text: '!'), (Code: 'aa'; Text: '&&'),
    (Code: 'oo'; Text: '||'), (Code: 'pp'; Text: '++'), (Code: 'mm'; Text: '--'),
    (Code: 'cm'; Text: ','), (Code: 'pm'; Text: '->*'), (Code: 'pt'; Text: '->'),
    (Code: 'cl'; Text: '()'), (Code: 'ix'; Text: '[]'), (Code: 'qu'; Text: '?'));

procedure ReadOperator(var Pass: TPass);
var
  Index: Cardinal;
begin
  Add(Pass, 'operator');
  if TakeBoth(Pass, 'c', 'v') then
  begin
    Add(Pass, ' ');
    ReadType(Pass);
    TypeEnds(Pass);
    Pass.HasNoReturn := True;
    Exit;
  end;
  if TakeBoth(Pass, 'l', 'i') then
  begin
    Add(Pass, '"" ');
    ReadSourceName(Pass);
    Exit;
  end;
  for Index := 0 to High(OperatorNames) do
    if TakeBoth(Pass, OperatorNames[Index].Code[0], OperatorNames[Index].Code[1]) then
    begin
      AddChars(Pass, OperatorNames[Index].Text);
      Exit;
    end;
  Fail(Pass);
end;

// Adds the name of the class again.
procedure ReadStructor(var Pass: TPass);
begin
  if Pass.Next^ = 'D' then
    Add(Pass, '~');
  if (Pass.NameLength = 0) or not (Pass.Next[1] in ['0'..'5']) then
    Fail(Pass);
  InsertChars(Pass, Pass.Length, @Pass.Out[Pass.NameFirst], Pass.NameLength);
  Inc(Pass.Next, 2);
  Pass.HasNoReturn := True;
end;

// Reads types up to the end of the name or E, in parentheses.
procedure ReadParameters(var Pass: TPass);
var
  First: Cardinal;
begin
  Add(Pass, '(');
  if (Sign(Pass) = 'v') and (Pass.Next[1] in [#0, 'E', '.']) then
    Inc(Pass.Next)
  else
    while not (Sign(Pass) in [#0, 'E', '.']) do
    begin
      First := Pass.Length;
      if Pass.Out[First - 1] <> '(' then
        Add(Pass, ', ');
      ReadType(Pass);
      if (Pass.Length = First + 2) and (Pass.Out[First] = ',') then
        Pass.Length := First; // an empty pack
    end;
  TypeEnds(Pass);
  Add(Pass, ')');
end;

// Reads the name of a type or a lambda that the program gave none.
procedure ReadUnnamed(var Pass: TPass);
var
  WasInLambda: Boolean;
begin
  if TakeBoth(Pass, 'U', 'l') then
  begin
    Add(Pass, '{lambda');
    WasInLambda := Pass.InLambda;
    Pass.InLambda := True;
    ReadParameters(Pass);
    Pass.InLambda := WasInLambda;
    Want(Pass, 'E');
  end
  else if TakeBoth(Pass, 'U', 't') then
    Add(Pass, '{unnamed type')
  else
    Fail(Pass);
  Add(Pass, '#');
  if Take(Pass, '_') then
    Add(Pass, '1')
  else
  begin
    AddNumber(Pass, ReadNumber(Pass) + 2);
    Want(Pass, '_');
  end;
  Add(Pass, '}');
end;

procedure ReadPlainName(var Pass: TPass);
var
  First, Count: Cardinal;
begin
  Pass.HasNoReturn := False;
  Pass.HasArguments := False;
  Take(Pass, 'L');
  case Sign(Pass) of
    '0'..'9': ReadSourceName(Pass);
    'C', 'D': ReadStructor(Pass);
    'U': ReadUnnamed(Pass);
    'a'..'z': ReadOperator(Pass);
  else
    Fail(Pass);
  end;
  First := Pass.NameFirst;
  Count := Pass.NameLength;
  while Take(Pass, 'B') do
  begin
    Add(Pass, '[abi:');
    ReadSourceName(Pass);
    Add(Pass, ']');
    Pass.NameFirst := First;
    Pass.NameLength := Count;
  end;
end;

// ---------------------------------------------------------------------------- template arguments

procedure ReadNumberOfType(var Pass: TPass; const Suffix: ShortString);
begin
  if Take(Pass, 'n') then
    Add(Pass, '-');
  while Sign(Pass) in Digits do
  begin
    InsertChars(Pass, Pass.Length, Pass.Next, 1);
    Inc(Pass.Next);
  end;
  Add(Pass, Suffix);
end;

procedure ReadLiteral(var Pass: TPass);
begin
  if TakeBoth(Pass, '_', 'Z') then
  begin
    NestBegin(Pass);
    ReadEncoding(Pass);
    NestEnd(Pass);
  end
  else if TakeBoth(Pass, 'b', '0') then
    Add(Pass, 'false')
  else if TakeBoth(Pass, 'b', '1') then
    Add(Pass, 'true')
  else if Take(Pass, 'i') then
    ReadNumberOfType(Pass, '')
  else if Take(Pass, 'j') then
    ReadNumberOfType(Pass, 'u')
  else if Take(Pass, 'l') then
    ReadNumberOfType(Pass, 'l')
  else if Take(Pass, 'm') then
    ReadNumberOfType(Pass, 'ul')
  else
  begin
    Add(Pass, '(');
    ReadType(Pass);
    TypeEnds(Pass);
    Add(Pass, ')');
    ReadNumberOfType(Pass, '');
  end;
  Want(Pass, 'E');
end;

procedure ReadArgument(var Pass: TPass);
var
  First, Member: Cardinal;
begin
  if Take(Pass, 'L') then
    ReadLiteral(Pass)
  else if Take(Pass, 'J') then
  begin
    NestBegin(Pass);
    First := Pass.Length;
    while not (Sign(Pass) in [#0, 'E']) do
    begin
      if Pass.Length > First then
        Add(Pass, ', ');
      Member := Pass.Length;
      ReadArgument(Pass);
      if Pass.Depth = 0 then
        Keep(Pass, Pass.Packs, Member);
      TypeEnds(Pass);
    end;
    NestEnd(Pass);
    Want(Pass, 'E');
  end
  else if TakeBoth(Pass, 'X', 's') then
  begin
    Want(Pass, 'p');
    ReadExpansion(Pass);
    Want(Pass, 'E');
  end
  else
    ReadType(Pass);
end;

// Reads an argument. Those of the outermost name are kept.
procedure ReadAndKeep(var Pass: TPass; IsFirst: Boolean);
var
  First, PackFirst: Cardinal;
  Argument: ^TPart;
  IsPack: Boolean;
begin
  First := Pass.Length;
  PackFirst := Pass.Packs.Count;
  IsPack := Sign(Pass) = 'J';
  if not IsFirst then
    Add(Pass, ', ');
  ReadArgument(Pass);
  if not IsFirst and (Pass.Length = First + 2) then
    Pass.Length := First // an empty pack
  else if not IsFirst then
    Inc(First, 2);
  if Pass.Depth = 0 then
    Keep(Pass, Pass.Arguments, First);
  TypeEnds(Pass);
  if Pass.HasFailed or (Pass.Depth > 0) then
    Exit;
  Argument := @Pass.Arguments.Items[Pass.Arguments.Count - 1];
  Argument^.IsPack := IsPack;
  Argument^.PackFirst := PackFirst;
  Argument^.PackCount := Pass.Packs.Count - PackFirst;
end;

// Reads the arguments after I.
procedure ReadArguments(var Pass: TPass);
var
  First, NameFirst, NameLength: Cardinal;
  HadNoReturn: Boolean;
begin
  HadNoReturn := Pass.HasNoReturn;
  NameFirst := Pass.NameFirst;
  NameLength := Pass.NameLength;
  if Pass.Depth = 0 then
    Pass.Arguments.Count := 0;
  if (Pass.Length > 0) and (Pass.Out[Pass.Length - 1] = '<') then
    Add(Pass, ' ');
  Add(Pass, '<');
  First := Pass.Length;
  while not (Sign(Pass) in [#0, 'E']) do
    ReadAndKeep(Pass, {IsFirst} Pass.Length = First);
  Want(Pass, 'E');
  if (Pass.Length > 0) and (Pass.Out[Pass.Length - 1] = '>') then
    Add(Pass, ' ');
  Add(Pass, '>');
  Pass.NameFirst := NameFirst;
  Pass.NameLength := NameLength;
  Pass.HasArguments := True;
  Pass.HasNoReturn := HadNoReturn;
end;

// ---------------------------------------------------------------------------- names

type
  TShortName = record
    Code: AnsiChar;
    Text: PAnsiChar;
  end;

const
  ShortNames: array[0..5] of TShortName = (
    (Code: 'a'; Text: 'std::allocator'), (Code: 'b'; Text: 'std::basic_string'),
    (Code: 's'; Text: 'std::string'), (Code: 'i'; Text: 'std::istream'),
    (Code: 'o'; Text: 'std::ostream'), (Code: 'd'; Text: 'std::iostream'));
  StdLength = 5; // of `std::`

// Reads what follows S: a short name of the library, or an earlier part.
procedure ReadReference(var Pass: TPass);
var
  First, Index: Cardinal;
begin
  First := Pass.Length;
  for Index := 0 to High(ShortNames) do
    if Take(Pass, ShortNames[Index].Code) then
    begin
      AddChars(Pass, ShortNames[Index].Text);
      Pass.NameFirst := First + StdLength;
      Pass.NameLength := Pass.Length - Pass.NameFirst;
      Exit;
    end;
  AddKept(Pass, Pass.Parts, ReadSequence(Pass));
  Pass.NameLength := 0;
end;

procedure ReadTemplateParameter(var Pass: TPass);
var
  Index: Cardinal;
begin
  Index := ReadSequence(Pass);
  if Pass.InLambda then
  begin
    Add(Pass, 'auto:');
    AddNumber(Pass, Index + 1);
  end
  else
  begin
    if (Index < Pass.Arguments.Count) and Pass.Arguments.Items[Index].IsPack then
      Pass.Pack := Index + 1;
    AddKept(Pass, Pass.Arguments, Index);
  end;
end;

// Finds the class name before a constructor again: the last part of the text, without arguments.
procedure FindClassName(var Pass: TPass; First: Cardinal);
var
  Limit, Nested: Cardinal;
begin
  Limit := Pass.Length;
  Nested := 0;
  while Limit > First do
  begin
    if Pass.Out[Limit - 1] = '>' then
      Inc(Nested)
    else if Pass.Out[Limit - 1] = '<' then
      Dec(Nested)
    else if (Nested = 0) and (Pass.Out[Limit - 1] <> ' ') then
      Break;
    Dec(Limit);
  end;
  Pass.NameFirst := Limit;
  while (Pass.NameFirst > First) and (Pass.Out[Pass.NameFirst - 1] <> ':') do
    Dec(Pass.NameFirst);
  Pass.NameLength := Limit - Pass.NameFirst;
end;

// Reads one part of a nested name.
procedure ReadPrefix(var Pass: TPass; First: Cardinal; out IsNew: Boolean);
begin
  IsNew := True;
  if Take(Pass, 'I') then
  begin
    ReadArguments(Pass);
    Exit;
  end;
  if Pass.Length > First then
    Add(Pass, '::');
  if TakeBoth(Pass, 'S', 't') then
  begin
    Add(Pass, 'std');
    IsNew := False;
  end
  else if Take(Pass, 'S') then
  begin
    ReadReference(Pass);
    if Pass.NameLength = 0 then
      FindClassName(Pass, First);
    IsNew := False;
  end
  else if Take(Pass, 'T') then
    ReadTemplateParameter(Pass)
  else
    ReadPlainName(Pass);
end;

// The qualifiers of a method, as bits, follow its parameters.
function ReadQualifiers(var Pass: TPass): Cardinal;
begin
  Result := 0;
  Take(Pass, 'r');
  if Take(Pass, 'V') then
    Result := 2;
  if Take(Pass, 'K') then
    Inc(Result, 1);
  if Take(Pass, 'R') then
    Inc(Result, 4)
  else if Take(Pass, 'O') then
    Inc(Result, 8);
end;

procedure AddQualifiers(var Pass: TPass; Bits: Cardinal);
const
  Texts: array[0..3] of PAnsiChar = (' const', ' volatile', ' &', ' &&');
var
  Index: Cardinal;
begin
  for Index := 0 to High(Texts) do
    if Bits and (1 shl Index) <> 0 then
      AddChars(Pass, Texts[Index]);
end;

procedure ReadNested(var Pass: TPass);
var
  First, Bits: Cardinal;
  IsNew: Boolean;
begin
  Bits := ReadQualifiers(Pass);
  First := Pass.Length;
  Pass.NameLength := 0;
  repeat
    ReadPrefix(Pass, First, IsNew);
    if IsNew and (Sign(Pass) <> 'E') then
      Keep(Pass, Pass.Parts, First);
  until Sign(Pass) in [#0, 'E'];
  Want(Pass, 'E');
  Pass.Suffix := Bits;
end;

// Reads the rest of a name that is local to a routine.
procedure ReadLocal(var Pass: TPass);
begin
  ReadEncoding(Pass);
  Want(Pass, 'E');
  Add(Pass, '::');
  if Take(Pass, 's') then
    Add(Pass, 'string literal')
  else
    ReadName(Pass);
  if TakeBoth(Pass, '_', '_') then
  begin
    ReadNumber(Pass);
    Want(Pass, '_');
  end
  else if Take(Pass, '_') then
    ReadNumber(Pass);
end;

procedure ReadName(var Pass: TPass);
var
  First: Cardinal;
  IsKept: Boolean;
begin
  First := Pass.Length;
  Pass.Suffix := 0;
  if Take(Pass, 'N') then
    ReadNested(Pass)
  else if Take(Pass, 'Z') then
  begin
    NestBegin(Pass);
    ReadLocal(Pass);
    NestEnd(Pass);
  end
  else
  begin
    IsKept := (Sign(Pass) = 'S') and (Pass.Next[1] <> 't');
    if TakeBoth(Pass, 'S', 't') then
      Add(Pass, 'std::');
    if IsKept and Take(Pass, 'S') then
      ReadReference(Pass)
    else
      ReadPlainName(Pass);
    if Sign(Pass) <> 'I' then
      Exit;
    if not IsKept then
      Keep(Pass, Pass.Parts, First);
    Want(Pass, 'I');
    ReadArguments(Pass);
  end;
end;

// ---------------------------------------------------------------------------- types

// Reads a builtin type; returns False for any other.
function ReadBuiltin(var Pass: TPass): Boolean;
const
  Names: array['a'..'z'] of PAnsiChar = ('signed char', 'bool', 'char', 'double', 'long double',
    'float', '__float128', 'unsigned char', 'int', 'unsigned int', '', 'long', 'unsigned long',
    '__int128', 'unsigned __int128', '', '', '', 'short', 'unsigned short', '', 'void', 'wchar_t',
    'long long', 'unsigned long long', '...');
begin
  Result := (Sign(Pass) in ['a'..'z']) and (Names[Pass.Next^]^ <> #0);
  if not Result then
    Exit;
  AddChars(Pass, Names[Pass.Next^]);
  Inc(Pass.Next);
end;

// Reads a type once for each member of the pack that it names.
procedure ReadExpansion(var Pass: TPass);
var
  Start: PAnsiChar;
  First, KnownCount: Cardinal;
begin
  Start := Pass.Next;
  First := Pass.Length;
  KnownCount := Pass.Parts.Count;
  Pass.IsExpanding := True;
  Pass.PackIndex := 0;
  Pass.PackCount := 1;
  repeat
    if Pass.PackIndex > 0 then
      Add(Pass, ', ');
    Pass.Next := Start;
    Pass.Parts.Count := KnownCount;
    ReadType(Pass);
    Inc(Pass.PackIndex);
  until Pass.HasFailed or (Pass.PackIndex >= Pass.PackCount);
  if Pass.PackCount = 0 then
    Pass.Length := First;
  TypeEnds(Pass);
  Pass.IsExpanding := False;
end;

// Reads what follows D; returns False for a type that is not kept.
function ReadOther(var Pass: TPass): Boolean;
begin
  Result := False;
  if Take(Pass, 'n') then
    Add(Pass, 'decltype(nullptr)')
  else if Take(Pass, 'i') then
    Add(Pass, 'char32_t')
  else if Take(Pass, 's') then
    Add(Pass, 'char16_t')
  else if Take(Pass, 'u') then
    Add(Pass, 'char8_t')
  else if Take(Pass, 'a') then
    Add(Pass, 'auto')
  else if Take(Pass, 'p') then
  begin
    ReadExpansion(Pass);
    Result := True;
  end
  else
    Fail(Pass);
end;

// Reads a type of a function: its result, the hole, its parameters.
procedure ReadFunction(var Pass: TPass);
var
  Hole: Cardinal;
begin
  Take(Pass, 'Y');
  ReadType(Pass);
  if Pass.Hole <> 0 then
    Fail(Pass); // returns a function or an array by a pointer
  Add(Pass, ' ');
  Hole := Pass.Length;
  ReadParameters(Pass);
  Want(Pass, 'E');
  Pass.Hole := Hole;
  Pass.IsBare := True;
end;

procedure ReadArray(var Pass: TPass);
var
  Count: NativeUInt;
  Hole: Cardinal;
begin
  Count := ReadNumber(Pass);
  Want(Pass, '_');
  ReadType(Pass);
  if Pass.Hole <> 0 then
    Fail(Pass); // an array of arrays, or of pointers to functions
  Add(Pass, ' ');
  Hole := Pass.Length;
  Add(Pass, '[');
  AddNumber(Pass, Count);
  Add(Pass, ']');
  Pass.Hole := Hole;
  Pass.IsBare := True;
end;

// Reads a pointer to a member: the class, then the type.
procedure ReadMember(var Pass: TPass);
const
  MostLength = 200;
var
  First: Cardinal;
  Name: ShortString;
begin
  First := Pass.Length;
  ReadType(Pass);
  TypeEnds(Pass);
  Add(Pass, '::*');
  if NativeUInt(Pass.Length - First) > MostLength then
    Fail(Pass);
  if Pass.HasFailed then
    Exit;
  Name[0] := AnsiChar(Pass.Length - First);
  Move(Pass.Out[First], Name[1], Length(Name));
  Pass.Length := First;
  ReadType(Pass);
  if Pass.Hole = 0 then
    Add(Pass, ' ');
  AddToType(Pass, Name);
end;

procedure ReadQualified(var Pass: TPass);
var
  Bits: Cardinal;
begin
  Bits := ReadQualifiers(Pass);
  ReadType(Pass);
  if Pass.IsBare then
    Fail(Pass); // a method's type
  if Bits and 1 <> 0 then
    AddToType(Pass, ' const');
  if Bits and 2 <> 0 then
    AddToType(Pass, ' volatile');
end;

// A reference to a reference is one.
procedure ReadPointer(var Pass: TPass; const Mark: ShortString);
var
  Limit: Cardinal;
begin
  ReadType(Pass);
  Limit := Pass.Hole;
  if Limit = 0 then
    Limit := Pass.Length;
  if (Mark[1] = '*') or Pass.HasFailed or (Pass.Out[Limit - 1] <> '&') then
    AddToType(Pass, Mark);
end;

// Reads a type that is no builtin one; returns whether later parts may refer to it.
function ReadCompound(var Pass: TPass; First: Cardinal): Boolean;
begin
  Result := True;
  if Take(Pass, 'P') then
    ReadPointer(Pass, '*')
  else if Take(Pass, 'R') then
    ReadPointer(Pass, '&')
  else if Take(Pass, 'O') then
    ReadPointer(Pass, '&&')
  else if Sign(Pass) in Qualifiers then
    ReadQualified(Pass)
  else if Take(Pass, 'F') then
    ReadFunction(Pass)
  else if Take(Pass, 'A') then
    ReadArray(Pass)
  else if Take(Pass, 'M') then
    ReadMember(Pass)
  else if Take(Pass, 'D') then
    Result := ReadOther(Pass)
  else if Take(Pass, 'T') then
  begin
    ReadTemplateParameter(Pass);
    if Sign(Pass) = 'I' then
      Fail(Pass); // a template parameter that is a template
  end
  else if (Sign(Pass) = 'S') and (Pass.Next[1] <> 't') then
  begin
    Inc(Pass.Next);
    ReadReference(Pass);
    Result := Take(Pass, 'I');
    if Result then
      ReadArguments(Pass);
  end
  else
    ReadName(Pass);
end;

procedure ReadType(var Pass: TPass);
var
  First: Cardinal;
begin
  TypeEnds(Pass);
  Inc(Pass.Depth);
  First := Pass.Length;
  if Pass.Depth > MostDepth then
    Fail(Pass);
  Pass.Pack := 0;
  if not Pass.HasFailed and not ReadBuiltin(Pass) and ReadCompound(Pass, First) then
    KeepType(Pass, First);
  Dec(Pass.Depth);
end;

// ---------------------------------------------------------------------------- all

// Reads a name that the compiler gave something of its own; returns False for another one.
function ReadSpecial(var Pass: TPass): Boolean;
begin
  Result := True;
  if TakeBoth(Pass, 'T', 'V') then
    Add(Pass, 'vtable for ')
  else if TakeBoth(Pass, 'T', 'T') then
    Add(Pass, 'VTT for ')
  else if TakeBoth(Pass, 'T', 'I') then
    Add(Pass, 'typeinfo for ')
  else if TakeBoth(Pass, 'T', 'S') then
    Add(Pass, 'typeinfo name for ')
  else if TakeBoth(Pass, 'G', 'V') then
  begin
    Add(Pass, 'guard variable for ');
    ReadName(Pass);
    Exit;
  end
  else
    Exit(False);
  ReadType(Pass);
end;

procedure ReadOffset(var Pass: TPass);
begin
  Take(Pass, 'n');
  ReadNumber(Pass);
  Want(Pass, '_');
end;

procedure ReadThunk(var Pass: TPass);
begin
  if TakeBoth(Pass, 'T', 'h') then
    Add(Pass, 'non-virtual thunk to ')
  else if TakeBoth(Pass, 'T', 'v') then
  begin
    Add(Pass, 'virtual thunk to ');
    ReadOffset(Pass);
  end
  else
    Exit;
  ReadOffset(Pass);
end;

// Reads a routine, or a variable.
procedure ReadEncoding(var Pass: TPass);
var
  First, Bits: Cardinal;
begin
  if ReadSpecial(Pass) then
    Exit;
  ReadThunk(Pass);
  ReadName(Pass);
  Bits := Pass.Suffix;
  if Sign(Pass) in [#0, 'E', '.'] then
    Exit;
  if Pass.HasArguments and not Pass.HasNoReturn then
  begin
    First := Pass.Length;
    ReadType(Pass);
    TypeEnds(Pass);
    Pass.Length := First;
  end;
  ReadParameters(Pass);
  AddQualifiers(Pass, Bits);
end;

// Reads the name of a routine in C++.
procedure ReadWhole(var Pass: TPass);
begin
  ReadEncoding(Pass);
  if Sign(Pass) <> '.' then
    Exit;
  Add(Pass, ' [clone '); // a part of a routine, or a copy that the compiler made
  InsertChars(Pass, Pass.Length, Pass.Next, TextLength(Pass.Next));
  Add(Pass, ']');
  Inc(Pass.Next, TextLength(Pass.Next));
end;

function DemangleAdd(var Text: TText; Name: PAnsiChar): Boolean;
var
  Pass: PPass;
begin
  if (Name[0] <> '_') or not (Name[1] in ['R', 'Z']) then
    Exit(False);
  Pass := PassOpen(Name + 2);
  if Pass = nil then
    Exit(False);
  if Name[1] = 'R' then
    RustRead(Pass^)
  else if not RustReadOlder(Pass^) then
    ReadWhole(Pass^);
  Result := not Pass^.HasFailed and (Pass^.Next^ = #0);
  if Result then
    TextAddSome(Text, @Pass^.Out, Pass^.Length);
  PassClose(Pass);
end;

initialization
  Stacks.Demangle := DemangleAdd;

end.
