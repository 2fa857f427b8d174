/// Code addresses and their symbols: routine, source file, line.
//
// Owns:       nothing; a TSymbols owns its array; the texts lie in files that the caller maps.
// Invariants: after SymbolsSort the addresses ascend, each occurs once.
// Callers:    any thread; a TSymbols belongs to one.
unit LaneMM.Symbols;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Text;

const
  /// Inlined routines have frames from here on, as if they were return addresses: no code is there.
  FirstInlined = NativeUInt(High(NativeUInt) - $FFFFFE);
  /// Most routines inlined into each other at one address.
  MostInlined = 32;

type
  PSymbol = ^TSymbol;
  /// One code address and its symbol.
  TSymbol = record
    Address: NativeUInt;   //< lies in the call that returns to Address + 1
    Routine: PAnsiChar;    //< the linker's name, ended by #0; nil when unknown
    FileName: PAnsiChar;   //< source file, ended by #0; nil when unknown
    Line: Cardinal;        //< line in FileName; 0 when unknown
    IsHeader: Boolean;     //< FileName is of the standard library of C++ or Rust
    Module: PAnsiChar;     //< path of the executable file, ended by #0; nil when unknown
    Offset: NativeUInt;    //< Address as that file counts addresses
    Inlined: NativeUInt;   //< the frame of the innermost routine inlined here; of an inlined one
                           //  that of the routine it is inlined in; 0: none
  end;

  /// A set of code addresses.
  TSymbols = record
    Items: PSymbol;        //< the first item
    Count: NativeInt;      //< number of items
    Limit: NativeInt;      //< most items
    IsFull: Boolean;       //< there was no memory for more
  end;

/// Makes an empty set with space for Limit addresses at first, for none without memory. The caller
/// owns it until SymbolsClose.
procedure SymbolsOpen(out Symbols: TSymbols; Limit: NativeUInt);
/// Frees the array.
procedure SymbolsClose(var Symbols: TSymbols);
/// Adds the call that returns to Return; not without memory. Before SymbolsSort.
procedure SymbolsAdd(var Symbols: TSymbols; Return: NativeUInt);
/// Sorts the items and removes duplicates. Required before all that follow.
procedure SymbolsSort(var Symbols: TSymbols);
/// Returns the index of the first item at Address or above; Count when there is none.
function SymbolsIndexOf(const Symbols: TSymbols; Address: NativeUInt): NativeInt;
/// Returns the item of the call that returns to Return; nil when there is none.
function SymbolsFind(const Symbols: TSymbols; Return: NativeUInt): PSymbol;
/// Adds the routine Call.Routine, inlined into those found before at the item Index, as its
/// innermost one, up to MostInlined; it gets the place of the one around it, which gets that of
/// Call. After SymbolsSort.
procedure SymbolsInline(var Symbols: TSymbols; Index: NativeInt; const Call: TSymbol);
/// Returns the return address that a frame has; another one than Return if it is inlined.
function SymbolsReturn(const Symbols: TSymbols; Return: NativeUInt): NativeUInt;
/// Returns whether the routine's name contains Part, which is in upper case; ignores case.
function SymbolHas(Symbol: PSymbol; const Part: ShortString): Boolean;
/// Returns whether the routine belongs to LaneMM itself, or to its units FastMM4 and FastMM5.
function SymbolIsOurs(Symbol: PSymbol): Boolean;
/// Returns whether the routine belongs to LaneMM or to Free Pascal's unit System, which stand
/// between a program and its heap, or fits the setting `hide`.
function SymbolIsInner(Symbol: PSymbol): Boolean;
/// Returns whether the routine belongs to LaneMM or to a unit that comes with Free Pascal: its
/// run-time library or its collections; also if the program specializes a generic of theirs. Or to
/// C++'s standard library.
function SymbolIsLibrary(Symbol: PSymbol): Boolean;
/// Returns whether the routine is a library's, and its unit has no source lines, or is a collection
/// or a template that the program specializes: reports name the program's own instead.
function SymbolIsFolded(Symbol: PSymbol): Boolean;
/// Returns whether a source file lies in a folder of the standard library of C++, c++ of gcc or of
/// LLVM, or of Rust, as its builders name them.
function PathIsOfStandard(Path: PAnsiChar): Boolean;
/// Returns whether the routine has a name of Free Pascal, with its unit.
function SymbolIsOfUnit(Symbol: PSymbol): Boolean;
/// Returns whether the routine is the program's main block; a C program's `main`; the routine from
/// which the library of Rust calls the program, or a thread.
function SymbolIsMain(Symbol: PSymbol): Boolean;
/// Adds the routine's name as Pascal writes it: unit, class, routine; or as C++ does.
procedure SymbolAddRoutine(var Text: TText; Symbol: PSymbol);
/// Adds `File.pas:123`; the symbol must have a line.
procedure SymbolAddPlace(var Text: TText; Symbol: PSymbol);
/// Adds `module+0x1234`, the form that addr2line takes; nothing when the module is unknown.
procedure SymbolAddOffset(var Text: TText; Symbol: PSymbol);

implementation

uses
  LaneMM.Layout, LaneMM.Bits, LaneMM.Os, LaneMM.SettingsState, LaneMM.StacksState;

const
  // Digits of a checksum in the name of a routine.
  ChecksumLength = 8;

procedure SymbolsOpen(out Symbols: TSymbols; Limit: NativeUInt);
begin
  Symbols := Default(TSymbols);
  Symbols.Items := OsTakePages(Limit * SizeOf(TSymbol));
  if Symbols.Items <> nil then
    Symbols.Limit := Limit;
end;

procedure SymbolsClose(var Symbols: TSymbols);
begin
  OsReleasePages(Symbols.Items, Symbols.Limit * SizeOf(TSymbol));
  Symbols := Default(TSymbols);
end;

// Makes room for as many items again; returns False without memory.
function Grow(var Symbols: TSymbols): Boolean;
var
  Larger: TSymbols;
begin
  SymbolsOpen(Larger, Symbols.Limit * 2);
  Result := Larger.Limit > 0;
  if not Result then
    Exit;
  Larger.Count := Symbols.Count;
  Move(Symbols.Items^, Larger.Items^, Symbols.Count * SizeOf(TSymbol));
  SymbolsClose(Symbols);
  Symbols := Larger;
end;

// ---------------------------------------------------------------------------- order

procedure RemoveDoubles(var Symbols: TSymbols);
var
  Index, Kept: NativeInt;
begin
  if Symbols.Count = 0 then
    Exit;
  Kept := 0;
  for Index := 1 to Symbols.Count - 1 do
    if Symbols.Items[Index].Address <> Symbols.Items[Kept].Address then
    begin
      Inc(Kept);
      Symbols.Items[Kept] := Symbols.Items[Index];
    end;
  Symbols.Count := Kept + 1;
end;

// Shell sort: no recursion, no extra memory, little work where most items are in order.
procedure SymbolsSort(var Symbols: TSymbols);
var
  Item: TSymbol;
  Gap, Index, Place: NativeInt;
begin
  Gap := 1;
  while Gap < Symbols.Count div 3 do
    Gap := Gap * 3 + 1;
  while Gap > 0 do
  begin
    for Index := Gap to Symbols.Count - 1 do
    begin
      Item := Symbols.Items[Index];
      Place := Index;
      while (Place >= Gap) and (Symbols.Items[Place - Gap].Address > Item.Address) do
      begin
        Symbols.Items[Place] := Symbols.Items[Place - Gap];
        Dec(Place, Gap);
      end;
      Symbols.Items[Place] := Item;
    end;
    Gap := Gap div 3;
  end;
  RemoveDoubles(Symbols);
end;

procedure SymbolsAdd(var Symbols: TSymbols; Return: NativeUInt);
begin
  if Symbols.Count = Symbols.Limit then
  begin
    if Symbols.IsFull then
      Exit; // to sort them again and again would take long
    SymbolsSort(Symbols); // most addresses are there many times
    Symbols.IsFull := (Symbols.Count > Symbols.Limit div 2) and not Grow(Symbols);
  end;
  if (Symbols.Count = Symbols.Limit) or (Return >= FirstInlined) then
    Exit;
  Symbols.Items[Symbols.Count].Address := Return - 1;
  Inc(Symbols.Count);
end;

function SymbolsIndexOf(const Symbols: TSymbols; Address: NativeUInt): NativeInt;
var
  Limit, Middle: NativeInt;
begin
  Result := 0;
  Limit := Symbols.Count;
  while Result < Limit do
  begin
    Middle := (Result + Limit) div 2;
    if Symbols.Items[Middle].Address < Address then
      Result := Middle + 1
    else
      Limit := Middle;
  end;
end;

function SymbolsFind(const Symbols: TSymbols; Return: NativeUInt): PSymbol;
var
  Index: NativeInt;
begin
  Index := SymbolsIndexOf(Symbols, Return - 1);
  if (Index < Symbols.Count) and (Symbols.Items[Index].Address = NativeUInt(Return - 1)) then
    Result := @Symbols.Items[Index]
  else
    Result := nil;
end;

// ---------------------------------------------------------------------------- inlined routines

function SymbolsReturn(const Symbols: TSymbols; Return: NativeUInt): NativeUInt;
var
  Symbol: PSymbol;
begin
  Result := Return;
  while Result >= FirstInlined do
  begin
    Symbol := SymbolsFind(Symbols, Result);
    if (Symbol = nil) or (Symbol^.Inlined = 0) then
      Exit;
    Result := Symbol^.Inlined;
  end;
end;

procedure SymbolsInline(var Symbols: TSymbols; Index: NativeInt; const Call: TSymbol);
var
  Item, Around: PSymbol;
  Outer: NativeUInt;
  Levels: Cardinal;
begin
  Levels := 0;
  Outer := Symbols.Items[Index].Inlined;
  while Outer >= FirstInlined do
  begin
    Inc(Levels);
    Outer := SymbolsFind(Symbols, Outer)^.Inlined;
  end;
  if (Levels = MostInlined) or (Symbols.Items[Symbols.Count - 1].Address >= High(NativeUInt) - 1)
    or (Symbols.Count = Symbols.Limit) and not Grow(Symbols) then
    Exit;
  Around := @Symbols.Items[Index];
  if Levels > 0 then
    Around := SymbolsFind(Symbols, Around^.Inlined);
  Item := @Symbols.Items[Symbols.Count];
  Item^ := Around^;
  Item^.Address := FirstInlined - 1;
  if Item[-1].Address >= FirstInlined - 1 then
    Item^.Address := Item[-1].Address + 1;
  Item^.Routine := Call.Routine;
  Item^.Inlined := Around^.Address + 1;
  Around^.FileName := Call.FileName;
  Around^.IsHeader := Call.IsHeader;
  Around^.Line := Call.Line;
  Symbols.Items[Index].Inlined := Item^.Address + 1;
  Inc(Symbols.Count);
end;

// ---------------------------------------------------------------------------- names

function SymbolHas(Symbol: PSymbol; const Part: ShortString): Boolean;
var
  Name: PAnsiChar;
  Matching: Cardinal;
begin
  Result := False;
  if (Symbol = nil) or (Symbol^.Routine = nil) then
    Exit;
  Name := Symbol^.Routine;
  while (Name^ <> #0) and not Result do
  begin
    Matching := 0;
    while (Matching < Length(Part)) and (UpCase(Name[Matching]) = Part[Matching + 1]) do
      Inc(Matching);
    Result := Matching = Length(Part);
    Inc(Name);
  end;
end;

// Returns whether the routine belongs to the unit UnitName, in upper case.
function IsOfUnit(Routine: PAnsiChar; const UnitName: ShortString): Boolean;
begin
  Result := TextBegins(Routine, UnitName)
    and (TextBegins(Routine + Length(UnitName), '_$$_')
      or TextBegins(Routine + Length(UnitName), '$_$'));
end;

function SymbolIsOurs(Symbol: PSymbol): Boolean;
begin
  Result := (Symbol <> nil) and (Symbol^.Routine <> nil)
    and (TextBegins(Symbol^.Routine, 'LANEMM.') or TextBegins(Symbol^.Routine, 'LANEMM_')
      or IsOfUnit(Symbol^.Routine, 'FASTMM5') or IsOfUnit(Symbol^.Routine, 'FASTMM4'));
end;

// Returns whether the name of the routine fits a pattern of the setting `hide`.
function IsHidden(Symbol: PSymbol): Boolean;
var
  Name: TPath;
  Text: TText;
  Pattern: PAnsiChar;
begin
  Result := False;
  if (Symbol = nil) or (Symbol^.Routine = nil) then
    Exit;
  TextOpenAt(Text, @Name, SizeOf(Name));
  SymbolAddRoutine(Text, Symbol);
  Pattern := @Settings.Hidden;
  while not Result and (Pattern^ <> #0) do
  begin
    Result := TextFits(@Name, Pattern);
    while Pattern^ <> #0 do
      Inc(Pattern);
    Inc(Pattern);
  end;
end;

function SymbolIsInner(Symbol: PSymbol): Boolean;
begin
  Result := SymbolIsOurs(Symbol) or IsSet(opHide) and IsHidden(Symbol)
    or (Symbol <> nil) and (Symbol^.Routine <> nil)
      and (TextBegins(Symbol^.Routine, 'SYSTEM_$$_') or TextBegins(Symbol^.Routine, 'SYSTEM$_$')
        or TextBegins(Symbol^.Routine, 'fpc_') or TextBegins(Symbol^.Routine, 'FPC_'));
end;

// Returns true if eight hexadecimal digits begin at Name.
function IsChecksum(Name: PAnsiChar): Boolean;
var
  Index: Cardinal;
begin
  Index := 0;
  while (Index < ChecksumLength) and (Name[Index] in ['0'..'9', 'A'..'F']) do
    Inc(Index);
  Result := Index = ChecksumLength;
end;

// Returns the length of the number of parameters and the checksum that the compiler adds to the
// name of a specialized generic, $1$CRC0123ABCD, or of the checksum _CRC0123ABCD that Free Pascal
// 3.3 adds after it; 0 if none is here.
function LengthOfSpecialization(Name: PAnsiChar): NativeUInt;
const
  Mark: ShortString = '$CRC';
  NextMark: ShortString = '_CRC';
begin
  Result := 0;
  if TextBegins(Name, NextMark) and IsChecksum(Name + Length(NextMark)) then
    Exit(Length(NextMark) + ChecksumLength);
  if Name[0] <> '$' then
    Exit;
  repeat
    Inc(Result);
  until not (Name[Result] in ['0'..'9']);
  if (Result > 1) and TextBegins(Name + Result, Mark) then
    Inc(Result, NativeUInt(Length(Mark)) + ChecksumLength)
  else
    Result := 0;
end;

// Returns whether the source file is one of Free Pascal's generic collections.
function IsGenericSource(FileName: PAnsiChar): Boolean;
const
  Names: array[0..6] of ShortString = ('fgl.pp', 'generics.collections.pas',
    'generics.defaults.pas', 'generics.dictionaries', 'generics.hashes.pas',
    'generics.helpers.pas', 'generics.strings.pas');
var
  Index: Cardinal;
begin
  Result := False;
  if FileName <> nil then
    for Index := 0 to High(Names) do
      Result := Result or TextBegins(FileName, Names[Index]);
end;

// Returns whether the routine belongs to one of them, specialized in any unit, by its name alone:
// UNIT$_$TLIST$1$CRC0123ABCD_$__$$_ADD.
function IsOfGeneric(Routine: PAnsiChar): Boolean;
const
  Names: array[0..16] of ShortString = ('TFPG', 'TLIST$', 'TOBJECTLIST$', 'TQUEUE$',
    'TOBJECTQUEUE$', 'TSTACK$', 'TOBJECTSTACK$', 'TTHREADLIST$', 'THASHSET$', 'TSORTED',
    'TOPENADDRESSING', 'TDICTIONARY$', 'TOBJECTDICTIONARY$', 'TCUSTOMLIST$', 'TCUSTOMDICTIONARY$',
    'TCUSTOMSET$', 'TDEAMORTIZED');
var
  Name: PAnsiChar;
  Index: Cardinal;
begin
  Result := False;
  Name := Routine;
  while (Name^ <> #0) and not TextBegins(Name, '$_$') do
    Inc(Name);
  if Name^ = #0 then
    Exit;
  Inc(Name, 3);
  for Index := 0 to High(Names) do
    Result := Result or TextBegins(Name, Names[Index]);
  while Result and (Name^ <> #0) and (LengthOfSpecialization(Name) = 0) do
    Inc(Name);
  Result := Result and (Name^ <> #0);
end;

function IsGeneric(Symbol: PSymbol): Boolean;
begin
  Result := (Symbol^.Routine <> nil)
    and (IsGenericSource(Symbol^.FileName) or (Symbol^.Line = 0) and IsOfGeneric(Symbol^.Routine));
end;

// Returns whether a text has a part.
function Holds(Text: PAnsiChar; const Part: ShortString): Boolean;
begin
  while (Text^ <> #0) and not TextBegins(Text, Part) do
    Inc(Text);
  Result := Text^ <> #0;
end;

// Returns whether the routine belongs to the namespace std or __gnu_cxx of C++.
function IsOfStandard(Routine: PAnsiChar): Boolean;
begin
  Result := TextBegins(Routine, '_ZSt') or TextBegins(Routine, '_ZNSt')
    or TextBegins(Routine, '_ZNKSt') or TextBegins(Routine, '_ZNSa')
    or TextBegins(Routine, '_ZNSs') or TextBegins(Routine, '_ZNKSs')
    or TextBegins(Routine, '_ZN9__gnu_cxx') or TextBegins(Routine, '_ZNK9__gnu_cxx');
end;

// Returns where a name of Rust has the crate that defines the routine; nil for other names. In
// names of the newer form a C goes before it, and a hash; those of the older form end with a hash,
// and may begin with a type.
function RustCrate(Routine: PAnsiChar): PAnsiChar;
begin
  Result := Routine + 2;
  if TextBegins(Routine, '_R') then
    while (Result^ <> #0) and not ((Result^ = 'C') and (Result[1] in ['s', '0'..'9'])) do
      Inc(Result)
  else if not TextBegins(Routine, '_ZN') or not Holds(Routine, '17h') then
    Exit(nil);
  if Result^ = #0 then
    Exit(nil);
  Inc(Result);
  if (Result[-1] = 'C') and (Result^ = 's') then
    while (Result^ <> #0) and (Result[-1] <> '_') do
      Inc(Result);
  while Result^ in ['0'..'9'] do
    Inc(Result);
  if TextBegins(Result, '_$LT$') then
    Inc(Result, 5);
end;

function IsOfRust(Routine: PAnsiChar): Boolean;
const
  Crates: array[0..2] of ShortString = ('core', 'alloc', 'std');
var
  Crate: PAnsiChar;
  Index: Cardinal;
begin
  Result := False;
  Crate := RustCrate(Routine);
  if Crate <> nil then
    for Index := 0 to High(Crates) do
      Result := Result or TextBegins(Crate, Crates[Index])
        and not (Crate[Length(Crates[Index])] in ['a'..'z', '_']);
end;

function PathIsOfStandard(Path: PAnsiChar): Boolean;
begin
  Result := (Path <> nil)
    and (Holds(Path, '/c++/') or Holds(Path, '/rustc/') or Holds(Path, '/rust/deps/')
    or TextBegins(Path, 'library/alloc/src') or TextBegins(Path, 'library/core/src')
    or TextBegins(Path, 'library/std/src')); // below /rustc, where the library itself was built
end;

function SymbolIsLibrary(Symbol: PSymbol): Boolean;
const
  Units: array[0..20] of ShortString = ('CLASSES', 'SYSUTILS', 'CONTNRS', 'FGL', 'OBJPAS',
    'STRUTILS', 'TYPINFO', 'VARIANTS', 'VARUTILS', 'MATH', 'DATEUTILS', 'INIFILES', 'SYNCOBJS',
    'CTHREADS', 'CWSTRING', 'UNIX', 'UNIXCP', 'SORTBASE', 'GENERICS.COLLECTIONS',
    'GENERICS.DEFAULTS', 'GENERICS.HASHES');
  // Names that a program's unit may have, too: then it has lines where the program has.
  Packages: array[0..16] of ShortString = ('FPJSON', 'JSONPARSER', 'JSONREADER', 'JSONSCANNER',
    'DOM', 'XMLREAD', 'XMLWRITE', 'XMLUTILS', 'REGEXPR', 'ZSTREAM', 'PROCESS', 'PIPES', 'SOCKETS',
    'SSOCKETS', 'FPHTTPCLIENT', 'FPHTTPSERVER', 'HTTPDEFS');
var
  Index: Cardinal;
begin
  Result := SymbolIsInner(Symbol);
  if Result or (Symbol = nil) or (Symbol^.Routine = nil) then
    Exit;
  Result := IsGeneric(Symbol) or Symbol^.IsHeader or IsOfStandard(Symbol^.Routine)
    or IsOfRust(Symbol^.Routine);
  for Index := 0 to High(Units) do
    Result := Result or IsOfUnit(Symbol^.Routine, Units[Index]);
  for Index := 0 to High(Packages) do
    Result := Result or (Symbol^.Line = 0) and IsOfUnit(Symbol^.Routine, Packages[Index]);
end;

function SymbolIsFolded(Symbol: PSymbol): Boolean;
begin
  Result := SymbolIsLibrary(Symbol)
    and ((Symbol^.Line = 0) or IsGeneric(Symbol) or Symbol^.IsHeader);
end;

function SymbolIsOfUnit(Symbol: PSymbol): Boolean;
begin
  Result := SymbolHas(Symbol, '_$$_') or SymbolHas(Symbol, '$_$');
end;

function SymbolIsMain(Symbol: PSymbol): Boolean;
begin
  Result := (Symbol <> nil) and (Symbol^.Routine <> nil)
    and (TextIs(Symbol^.Routine, 'main') or Holds(Symbol^.Routine, '__rust_begin_short_backtrace'));
end;

// The compiler writes UNIT$_$CLASS_$__$$_METHOD$PARAMETERS, UNIT_$$_ROUTINE$PARAMETERS, and
// P$PROGRAM for the unit of a program. Separators become a dot; parameters are omitted.
procedure SymbolAddRoutine(var Text: TText; Symbol: PSymbol);
const
  // The last one stands before a class, the others before a routine.
  Separators: array[0..2] of ShortString = ('_$__$$_', '_$$_', '$_$');
var
  Name: PAnsiChar;
  IsRoutine: Boolean;
  Index: Cardinal;
begin
  Name := Symbol^.Routine;
  if (@Stacks.Demangle <> nil) and Stacks.Demangle(Text, Name) then
    Exit;
  if TextBegins(Name, 'P$') then
    Inc(Name, 2);
  IsRoutine := False;
  while (Name^ <> #0) and not (IsRoutine and (Name^ = '$')) do
  begin
    Index := 0;
    while (Index <= High(Separators)) and not TextBegins(Name, Separators[Index]) do
      Inc(Index);
    if LengthOfSpecialization(Name) > 0 then
      Inc(Name, LengthOfSpecialization(Name))
    else if Index <= High(Separators) then
    begin
      TextAdd(Text, '.');
      IsRoutine := IsRoutine or (Index < High(Separators));
      Inc(Name, Length(Separators[Index]));
    end
    else
    begin
      TextAdd(Text, Name^);
      Inc(Name);
    end;
  end;
end;

procedure SymbolAddPlace(var Text: TText; Symbol: PSymbol);
begin
  TextAddForm(Text, '%s:%u', NativeUInt(Symbol^.FileName), Symbol^.Line);
end;

procedure SymbolAddOffset(var Text: TText; Symbol: PSymbol);
begin
  if Symbol^.Module <> nil then
    TextAddForm(Text, '%s+0x%x', NativeUInt(TextFileName(Symbol^.Module)), Symbol^.Offset);
end;

end.
