/// Text about a call site: its place, what grows there, how to avoid it.
//
// Owns:       nothing.
// Callers:    any thread that writes a log.
unit LaneMM.Advice;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Text, LaneMM.Unwind, LaneMM.Symbols;

type
  /// What a report says of growth, besides its numbers.
  TAdvice = record
    Grew: PAnsiChar;      //< what grows, such as `a list`
    Called: PSymbol;      //< the routine of a library that grows it; nil: none
    Text: PAnsiChar;      //< how to avoid it
  end;

/// Returns the index of the frame that a report names: the innermost one outside the libraries of
/// Free Pascal; the outermost one, if all are theirs.
function AdvicePlaceIndex(const Symbols: TSymbols; const Stack: TBacktrace): Cardinal;
/// Returns its return address.
function AdvicePlace(const Symbols: TSymbols; const Stack: TBacktrace): NativeUInt;
/// Returns a number that is the same for places that a report names by the same text.
function AdvicePlaceKey(const Symbols: TSymbols; Return: NativeUInt): UInt64;
/// Adds the place: its line, else its routine, else the address.
procedure AdviceAddPlace(var Text: TText; const Symbols: TSymbols; Return: NativeUInt);
/// Opens Text with the place of the backtrace Stack, and its routine after a line. Returns its
/// characters up to #0; nil if it is unknown, or without memory. The caller closes Text.
function AdviceOpenLine(out Text: TText; const Symbols: TSymbols; Stack: Cardinal): PAnsiChar;
/// Returns the advice against growth at a backtrace.
function AdviceOf(const Symbols: TSymbols; const Stack: TBacktrace): TAdvice;
/// Returns whether two advices say the same.
function AdviceIsSame(const First, Second: TAdvice): Boolean;

implementation

uses
  LaneMM.Os, LaneMM.BacktraceTable, LaneMM.BacktraceText;

type
  TGrower = (grBlock, grAnsiString, grUnicodeString, grArray, grList, grQueue, grThreadList,
    grDictionary, grHashSet, grBits, grBuilder, grStream);

  TRuleKind = (
    ruContainer, // of a container: the innermost routine that one fits decides
    ruWrapper,   // of a container made of another one: replaces its grList or grDictionary
    ruType       // of what the compiler calls: the outermost decides, without a container
  );

  // A part of a routine's name that stands for what grows.
  TGrowerRule = record
    Kind: TRuleKind;
    Part: ShortString;
    Grower: TGrower;
  end;

  // What a report says of it.
  TGrowerText = record
    Name, Advice: PAnsiChar;
  end;

const
  // The first of a kind that fits a routine counts.
  Rules: array[0..24] of TGrowerRule = (
    (Kind: ruContainer; Part: 'STREAM_$__$$_'; Grower: grStream),
    (Kind: ruContainer; Part: 'STRINGBUILDER'; Grower: grBuilder),
    (Kind: ruContainer; Part: 'HASHSET$'; Grower: grHashSet),
    (Kind: ruContainer; Part: 'REHASH'; Grower: grDictionary),
    (Kind: ruContainer; Part: 'DICTIONARY'; Grower: grDictionary),
    (Kind: ruContainer; Part: 'TOPENADDRESSING'; Grower: grDictionary),
    (Kind: ruContainer; Part: '$_$TBITS_$_'; Grower: grBits),
    (Kind: ruContainer; Part: '$_$TFPGMAP'; Grower: grList),
    (Kind: ruContainer; Part: '_SETCAPACITY'; Grower: grList),
    (Kind: ruContainer; Part: 'LIST_$__$$_'; Grower: grList),
    (Kind: ruContainer; Part: 'LIST$1$CRC'; Grower: grList),
    (Kind: ruContainer; Part: 'QUEUE$1$CRC'; Grower: grList),
    (Kind: ruContainer; Part: 'STACK$1$CRC'; Grower: grList),
    (Kind: ruWrapper; Part: '$_$TCOLLECTION_$_'; Grower: grQueue),
    (Kind: ruWrapper; Part: '$_$TORDEREDLIST_$_'; Grower: grQueue),
    (Kind: ruWrapper; Part: '$_$TQUEUE_$_'; Grower: grQueue),
    (Kind: ruWrapper; Part: '$_$TSTACK_$_'; Grower: grQueue),
    (Kind: ruWrapper; Part: '$_$TOBJECTQUEUE_$_'; Grower: grQueue),
    (Kind: ruWrapper; Part: '$_$TOBJECTSTACK_$_'; Grower: grQueue),
    (Kind: ruWrapper; Part: '$_$TTHREADLIST_$_'; Grower: grThreadList),
    (Kind: ruWrapper; Part: 'HASHSET$'; Grower: grHashSet),
    (Kind: ruType; Part: 'ANSISTR'; Grower: grAnsiString),
    (Kind: ruType; Part: 'UNICODESTR'; Grower: grUnicodeString),
    (Kind: ruType; Part: 'DYNARR'; Grower: grArray),
    (Kind: ruType; Part: 'DYN_ARRAY'; Grower: grArray));
  Texts: array[TGrower] of TGrowerText = (
    (Name: 'a block'; Advice: 'allocate the final size once'),
    (Name: 'an AnsiString'; Advice: 'call SetLength once, or use TStringBuilder'),
    (Name: 'a UnicodeString'; Advice: 'call SetLength once, or use TUnicodeStringBuilder'),
    (Name: 'a dynamic array'; Advice: 'call SetLength once'),
    (Name: 'a list'; Advice: 'set Capacity first'),
    (Name: 'a list'; Advice: 'its capacity cannot be set: use a list with Capacity'),
    (Name: 'a list'; Advice: 'set Capacity of its LockList first'),
    (Name: 'a dictionary'; Advice: 'create it with its capacity'),
    (Name: 'a set'; Advice: 'set Capacity first'),
    (Name: 'a TBits'; Advice: 'set Size first'),
    (Name: 'a string builder'; Advice: 'create it with its capacity'),
    (Name: 'a stream'; Advice: 'set Size first'));
  // Of what a library grows for itself.
  OfLibrary: PAnsiChar = 'inside that routine: call it less often, for more at a time';

// Returns whether more frames of the program may follow the one at Index.
function GoesOn(const Symbols: TSymbols; const Stack: TBacktrace; Index: Cardinal): Boolean;
begin
  Result := (Index + 1 < Stack.Count) and (Stack.Frames[Index + 1] <> CutFrame)
    and not SymbolIsMain(SymbolsFind(Symbols, Stack.Frames[Index]));
end;

// A unit without source lines counts as a library where one farther out has lines; a
// routine of C does not.
function AdvicePlaceIndex(const Symbols: TSymbols; const Stack: TBacktrace): Cardinal;
var
  Symbol: PSymbol;
  Index: Cardinal;
begin
  Result := 0;
  while GoesOn(Symbols, Stack, Result)
    and SymbolIsLibrary(SymbolsFind(Symbols, Stack.Frames[Result])) do
    Inc(Result);
  Index := Result;
  repeat
    Symbol := SymbolsFind(Symbols, Stack.Frames[Index]);
    if (Symbol <> nil) and (Symbol^.Line > 0) and not SymbolIsLibrary(Symbol) then
      Exit(Index);
    Inc(Index);
  until not SymbolIsOfUnit(Symbol) or not GoesOn(Symbols, Stack, Index - 1);
end;

function AdvicePlace(const Symbols: TSymbols; const Stack: TBacktrace): NativeUInt;
var
  Whole: TBacktrace;
begin
  Whole := Stack;
  BacktraceExpand(Symbols, Whole);
  Result := Whole.Frames[AdvicePlaceIndex(Symbols, Whole)];
end;

function AdvicePlaceKey(const Symbols: TSymbols; Return: NativeUInt): UInt64;
var
  Symbol: PSymbol;
  Chars: PAnsiChar;
begin
  Symbol := SymbolsFind(Symbols, Return);
  Result := Return;
  if (Symbol = nil) or (Symbol^.Line = 0) and (Symbol^.Routine = nil) then
    Exit;
  Result := Symbol^.Line;
  Chars := Symbol^.FileName;
  if Symbol^.Line = 0 then
    Chars := Symbol^.Routine;
  while (Chars <> nil) and (Chars^ <> #0) do
  begin
    Result := Result * {FNV-1a} UInt64($100000001B3) xor Ord(Chars^);
    Inc(Chars);
  end;
end;

procedure AdviceAddPlace(var Text: TText; const Symbols: TSymbols; Return: NativeUInt);
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

function AdviceOpenLine(out Text: TText; const Symbols: TSymbols; Stack: Cardinal): PAnsiChar;
var
  Trace: TBacktrace;
  Return: NativeUInt;
  Symbol: PSymbol;
begin
  Result := nil;
  if not TextOpen(Text, 2 * OsPageSize) or not BacktraceRead(Stack, Trace) then
    Exit;
  Result := Text.Start;
  Dec(Text.Capacity); // the last byte is #0 after a name of any length
  Return := AdvicePlace(Symbols, Trace);
  AdviceAddPlace(Text, Symbols, Return);
  Symbol := SymbolsFind(Symbols, Return);
  if (Symbol = nil) or (Symbol^.Line = 0) or (Symbol^.Routine = nil) then
    Exit;
  TextAdd(Text, ' in ');
  SymbolAddRoutine(Text, Symbol);
end;

// Returns the grower of the first rule of a kind that fits the symbol; Default if none does.
function GrowerBy(Kind: TRuleKind; Symbol: PSymbol; Default: TGrower): TGrower;
var
  Index: Cardinal;
begin
  for Index := 0 to High(Rules) do
    if (Rules[Index].Kind = Kind) and SymbolHas(Symbol, Rules[Index].Part) then
      Exit(Rules[Index].Grower);
  Result := Default;
end;

// Returns the kind of grower, by the names of the library routines inside the place.
function GrowerOf(const Symbols: TSymbols; const Stack: TBacktrace; Place: Cardinal): TGrower;
var
  Symbol: PSymbol;
  Index: NativeInt;
  Container: TGrower;
begin
  Result := grBlock;
  Container := grBlock;
  for Index := 0 to NativeInt(Place) do
  begin
    Symbol := SymbolsFind(Symbols, Stack.Frames[Index]);
    if (Index = NativeInt(Place)) and not SymbolIsLibrary(Symbol) then
      Break;
    if Container = grBlock then
      Container := GrowerBy(ruContainer, Symbol, grBlock);
    if Container in [grList, grDictionary] then
      Container := GrowerBy(ruWrapper, Symbol, Container);
    Result := GrowerBy(ruType, Symbol, Result);
  end;
  if Container <> grBlock then
    Result := Container;
end;

// Returns the routine of a library that the program called at Place; nil if it called none.
function CalledAt(const Symbols: TSymbols; const Stack: TBacktrace; Place: Cardinal): PSymbol;
begin
  Result := nil;
  if Place > 0 then
    Result := SymbolsFind(Symbols, Stack.Frames[Place - 1]);
  if (Result <> nil) and (SymbolIsInner(Result) or (Result^.Routine = nil)) then
    Result := nil;
end;

// Returns the advice: of what a library grows, where the routine that the program called is none of
// the container itself, there is none but for the call.
function AdviceFor(Grower: TGrower; Called: PSymbol): PAnsiChar;
const
  Unknown = grBlock;
begin
  Result := Texts[Grower].Advice;
  if (Called <> nil) and (GrowerBy(ruContainer, Called, Unknown) = Unknown)
    and (GrowerBy(ruWrapper, Called, Unknown) = Unknown) then
    Result := OfLibrary;
end;

function AdviceOf(const Symbols: TSymbols; const Stack: TBacktrace): TAdvice;
var
  Grower: TGrower;
  Place: Cardinal;
  Whole: TBacktrace;
begin
  Whole := Stack;
  BacktraceExpand(Symbols, Whole);
  Place := AdvicePlaceIndex(Symbols, Whole);
  Grower := GrowerOf(Symbols, Whole, Place);
  Result.Grew := Texts[Grower].Name;
  Result.Called := CalledAt(Symbols, Whole, Place);
  Result.Text := AdviceFor(Grower, Result.Called);
end;

function IsSameText(First, Second: PAnsiChar): Boolean;
begin
  Result := First = Second;
  if Result or (First = nil) or (Second = nil) then
    Exit;
  while (First^ = Second^) and (First^ <> #0) do
  begin
    Inc(First);
    Inc(Second);
  end;
  Result := First^ = Second^;
end;

function AdviceIsSame(const First, Second: TAdvice): Boolean;
begin
  Result := (First.Grew = Second.Grew) and (First.Text = Second.Text)
    and ((First.Called = nil) = (Second.Called = nil));
  if Result and (First.Called <> nil) then
    Result := IsSameText(First.Called^.Routine, Second.Called^.Routine);
end;

end.
