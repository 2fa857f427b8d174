/// Addresses of code and what is known about them: routine, file, line.
//
// Owns:       the room of each TSymbols; the texts lie in files that the caller keeps mapped.
// Invariants: after SymbolsSort the items stand in ascending order, each address once.
// Callers:    any thread; a TSymbols belongs to one.
unit LaneMM.Symbols;

{$I ../LaneMM.inc}

interface


uses
  LaneMM.Text;


type
  PSymbol = ^TSymbol;
  /// One address of code.
  TSymbol = record
    Address: NativeUInt;   //< in the call that returns to Address + 1
    Routine: PAnsiChar;    //< the linker's name, ended by #0; nil when unknown
    FileName: PAnsiChar;   //< of the source, ended by #0; nil when unknown
    Line: Cardinal;        //< in it; 0 when unknown
    Module: PAnsiChar;     //< path of the file that holds the code, ended by #0; nil when unknown
    Offset: NativeUInt;    //< the address in that file's own counting
  end;

  /// A set of addresses.
  TSymbols = record
    Items: PSymbol;        //< the first one
    Count: NativeInt;      //< how many
    Limit: NativeInt;      //< most
  end;

/// An empty set that takes Limit addresses; it takes none when there is no memory.
procedure SymbolsOpen(out Symbols: TSymbols; Limit: NativeUInt);
/// Gives the room back.
procedure SymbolsClose(var Symbols: TSymbols);
/// Adds the call that returns to Return. Before SymbolsSort.
procedure SymbolsAdd(var Symbols: TSymbols; Return: NativeUInt);
/// Sorts, and keeps each address once. Before anything below.
procedure SymbolsSort(var Symbols: TSymbols);
/// Index of the first item at Address or behind it; Count when there is none.
function SymbolsIndexOf(const Symbols: TSymbols; Address: NativeUInt): NativeInt;
/// The item of the call that returns to Return, or nil.
function SymbolsFind(const Symbols: TSymbols; Return: NativeUInt): PSymbol;
/// Whether Part, in capitals, stands in the routine's name, written in either case.
function SymbolHas(Symbol: PSymbol; const Part: ShortString): Boolean;
/// Whether the routine belongs to the manager itself.
function SymbolIsOurs(Symbol: PSymbol): Boolean;
/// Adds the routine's name as a reader writes it: unit, class, routine.
procedure SymbolAddRoutine(var Text: TText; Symbol: PSymbol);
/// Adds `File.pas:123` of a symbol that has a line.
procedure SymbolAddPlace(var Text: TText; Symbol: PSymbol);
/// Adds `module+0x1234`: what addr2line takes. Nothing when the module is unknown.
procedure SymbolAddOffset(var Text: TText; Symbol: PSymbol);

implementation

uses
  LaneMM.Os;

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

procedure SymbolsAdd(var Symbols: TSymbols; Return: NativeUInt);
begin
  if Symbols.Count = Symbols.Limit then
    Exit;
  Symbols.Items[Symbols.Count].Address := Return - 1;
  Inc(Symbols.Count);
end;

// ---------------------------------------------------------------------------- order

procedure Exchange(var First, Second: TSymbol); inline;
var
  Kept: TSymbol;
begin
  Kept := First;
  First := Second;
  Second := Kept;
end;

// Lets the item at Root sink until its children, at 2 * Root + 1 and + 2, are not greater.
procedure Sink(Items: PSymbol; Root, Count: NativeInt);
var
  Child: NativeInt;
begin
  repeat
    Child := 2 * Root + 1;
    if Child >= Count then
      Exit;
    if (Child + 1 < Count) and (Items[Child + 1].Address > Items[Child].Address) then
      Inc(Child);
    if Items[Child].Address <= Items[Root].Address then
      Exit;
    Exchange(Items[Child], Items[Root]);
    Root := Child;
  until False;
end;

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

// Heap sort: no recursion, no room.
procedure SymbolsSort(var Symbols: TSymbols);
var
  Index: NativeInt;
begin
  for Index := Symbols.Count div 2 - 1 downto 0 do
    Sink(Symbols.Items, Index, Symbols.Count);
  for Index := Symbols.Count - 1 downto 1 do
  begin
    Exchange(Symbols.Items[0], Symbols.Items[Index]);
    Sink(Symbols.Items, 0, Index);
  end;
  RemoveDoubles(Symbols);
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
  if (Index < Symbols.Count) and (Symbols.Items[Index].Address = Return - 1) then
    Result := @Symbols.Items[Index]
  else
    Result := nil;
end;

// ---------------------------------------------------------------------------- names

function StartsWith(Name: PAnsiChar; const Part: ShortString): Boolean;
var
  Index: Cardinal;
begin
  for Index := 1 to Length(Part) do
    if Name[Index - 1] <> Part[Index] then
      Exit(False);
  Result := True;
end;

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

function SymbolIsOurs(Symbol: PSymbol): Boolean;
begin
  Result := (Symbol <> nil) and (Symbol^.Routine <> nil)
    and (StartsWith(Symbol^.Routine, 'LANEMM.') or StartsWith(Symbol^.Routine, 'LANEMM_'));
end;

// The compiler writes UNIT$_$CLASS_$__$$_METHOD$PARAMETERS, UNIT_$$_ROUTINE$PARAMETERS, and
// P$PROGRAM for the unit in a program. Separators become a dot, parameters are left out.
procedure SymbolAddRoutine(var Text: TText; Symbol: PSymbol);
var
  Name: PAnsiChar;
  IsRoutine: Boolean;
begin
  Name := Symbol^.Routine;
  if StartsWith(Name, 'P$') then
    Inc(Name, 2);
  IsRoutine := False;
  while (Name^ <> #0) and not (IsRoutine and (Name^ = '$')) do
    if StartsWith(Name, '_$__$$_') then
    begin
      TextAdd(Text, '.');
      IsRoutine := True;
      Inc(Name, 7);
    end
    else if StartsWith(Name, '_$$_') then
    begin
      TextAdd(Text, '.');
      IsRoutine := True;
      Inc(Name, 4);
    end
    else if StartsWith(Name, '$_$') then
    begin
      TextAdd(Text, '.');
      Inc(Name, 3);
    end
    else
    begin
      TextAdd(Text, Name^);
      Inc(Name);
    end;
end;

procedure SymbolAddPlace(var Text: TText; Symbol: PSymbol);
begin
  TextAddChars(Text, Symbol^.FileName);
  TextAdd(Text, ':');
  TextAddNumber(Text, Symbol^.Line);
end;

procedure SymbolAddOffset(var Text: TText; Symbol: PSymbol);
var
  Name, Next: PAnsiChar;
begin
  Next := Symbol^.Module;
  if Next = nil then
    Exit;
  Name := Next;
  while Next^ <> #0 do
  begin
    if Next^ = '/' then
      Name := Next + 1;
    Inc(Next);
  end;
  TextAddChars(Text, Name);
  TextAdd(Text, '+0x');
  TextAddHex(Text, Symbol^.Offset, 1);
end;

end.
