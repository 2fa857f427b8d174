/// Text about a call site: its place, the growth there, how to avoid it.
//
// Owns:       nothing.
// Callers:    any thread that writes a log.
unit LaneMM.Advice;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Text, LaneMM.Unwind, LaneMM.Symbols, LaneMM.CallSites;

/// Adds the place of the call that a backtrace begins with, the program's innermost: its line, else
/// its routine, else the address.
procedure AdviceAddWhere(var Text: TText; const Symbols: TSymbols; const Stack: TBacktrace);
/// Adds the growth: the grower, Count times, from and to which size, and how to avoid it.
procedure AdviceAddGrowth(var Text: TText; const Symbols: TSymbols; Site: PSite;
  Count: NativeUInt);

implementation

uses
  LaneMM.Atomic;

type
  TGrower = (grBlock, grAnsiString, grUnicodeString, grArray, grList, grDictionary,
    grBuilder, grStream);

// Returns the innermost frame outside the libraries of Free Pascal; the outermost one, if all are
// theirs.
function PlaceOf(const Symbols: TSymbols; const Stack: TBacktrace): Cardinal;
begin
  Result := 0;
  while (Result + 1 < Stack.Count)
    and SymbolIsLibrary(SymbolsFind(Symbols, Stack.Frames[Result])) do
    Inc(Result);
end;

procedure AddPlaceAt(var Text: TText; const Symbols: TSymbols; Return: NativeUInt);
var
  Symbol: PSymbol;
begin
  Symbol := SymbolsFind(Symbols, Return);
  if (Symbol <> nil) and (Symbol^.Line > 0) then
    SymbolAddPlace(Text, Symbol)
  else if (Symbol <> nil) and (Symbol^.Routine <> nil) then
    SymbolAddRoutine(Text, Symbol)
  else if (Symbol <> nil) and (Symbol^.Module <> nil) then
    SymbolAddOffset(Text, Symbol)
  else
    TextAddHex(Text, Return, SizeOf(Return) * 2);
end;

procedure AdviceAddWhere(var Text: TText; const Symbols: TSymbols; const Stack: TBacktrace);
begin
  AddPlaceAt(Text, Symbols, Stack.Frames[PlaceOf(Symbols, Stack)]);
end;

// Returns the kind of grower, by the names of the library routines between manager and place.
function GrowerOf(const Symbols: TSymbols; Site: PSite): TGrower;
var
  Symbol: PSymbol;
  Index: Cardinal;
begin
  Result := grBlock;
  for Index := 0 to PlaceOf(Symbols, Site^.Stack) do
  begin
    Symbol := SymbolsFind(Symbols, Site^.Stack.Frames[Index]);
    if SymbolHas(Symbol, 'STREAM') then
      Exit(grStream)
    else if SymbolHas(Symbol, 'STRINGBUILDER') then
      Exit(grBuilder)
    else if SymbolHas(Symbol, 'REHASH') or SymbolHas(Symbol, 'DICTIONARY') then
      Exit(grDictionary)
    else if SymbolHas(Symbol, '_SETCAPACITY') or SymbolHas(Symbol, 'LIST_$__$$_')
      or SymbolHas(Symbol, 'LIST$1$CRC') then
      Exit(grList)
    else if SymbolHas(Symbol, 'ANSISTR') then
      Result := grAnsiString
    else if SymbolHas(Symbol, 'UNICODESTR') then
      Result := grUnicodeString
    else if SymbolHas(Symbol, 'DYNARR') or SymbolHas(Symbol, 'DYN_ARRAY') then
      Result := grArray;
  end;
end;

// Adds the routine of a library that the program called, if it called one.
procedure AddCalled(var Text: TText; const Symbols: TSymbols; Site: PSite);
var
  Place: Cardinal;
  Called: PSymbol;
begin
  Place := PlaceOf(Symbols, Site^.Stack);
  if Place = 0 then
    Exit;
  Called := SymbolsFind(Symbols, Site^.Stack.Frames[Place - 1]);
  if SymbolIsInner(Called) or not SymbolIsLibrary(Called) then
    Exit;
  TextAdd(Text, ' (');
  SymbolAddRoutine(Text, Called);
  TextAdd(Text, ')');
end;

procedure AdviceAddGrowth(var Text: TText; const Symbols: TSymbols; Site: PSite;
  Count: NativeUInt);
const
  Names: array[TGrower] of PAnsiChar = ('a block', 'an AnsiString', 'a UnicodeString',
    'a dynamic array', 'a list', 'a dictionary', 'a string builder', 'a stream');
  Advice: array[TGrower] of PAnsiChar = ('allocate the final size once',
    'call SetLength once, or use TStringBuilder', 'call SetLength once', 'call SetLength once',
    'set Capacity first', 'create it with its capacity', 'create it with its capacity',
    'set Size first');
var
  Grower: TGrower;
begin
  Grower := GrowerOf(Symbols, Site);
  AddPlaceAt(Text, Symbols, Site^.Stack.Frames[PlaceOf(Symbols, Site^.Stack)]);
  TextAdd(Text, ' grew ');
  TextAddChars(Text, Names[Grower]);
  AddCalled(Text, Symbols, Site);
  TextAdd(Text, ' ');
  TextAddCount(Text, Count, 'time');
  TextAdd(Text, ' from ');
  TextAddBytes(Text, LoadAcquire(Site^.FirstBytes));
  TextAdd(Text, ' to ');
  TextAddBytes(Text, LoadAcquire(Site^.LastBytes));
  TextAdd(Text, ', ');
  TextAddCount(Text, LoadAcquire(Site^.Moves), 'move');
  TextAdd(Text, ', ');
  TextAddBytes(Text, LoadAcquire(Site^.CopiedBytes));
  TextAdd(Text, ' copied: ');
  TextAddChars(Text, Advice[Grower]);
end;

end.
