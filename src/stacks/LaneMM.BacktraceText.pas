/// Call stacks as lines of text: address, routine, source line.
//
// Owns:       the room of each TTraces.
// Callers:    any thread; a TTraces belongs to one.
unit LaneMM.BacktraceText;

{$I ../LaneMM.inc}

interface


uses
  LaneMM.Text, LaneMM.Elf, LaneMM.Symbols, LaneMM.Unwind;


type
  /// Stacks whose addresses are resolved together, as the file with their names is read once.
  TTraces = record
    Symbols: TSymbols;   //< all their addresses
    Elf: TElf;           //< their files
    HasLines: Boolean;   //< it has line numbers
  end;

/// Room for the addresses of StackCount stacks.
procedure TracesOpen(out Traces: TTraces; StackCount: NativeUInt);
/// Gives the room back.
procedure TracesClose(var Traces: TTraces);
/// Adds the addresses of a stack; before TracesResolve.
procedure TracesAdd(var Traces: TTraces; const Stack: TStack);
/// Adds the routine at Code; before TracesResolve.
procedure TracesAddCode(var Traces: TTraces; Code: NativeUInt);
/// Finds their names.
procedure TracesResolve(var Traces: TTraces);
/// Adds a line for each frame from the first that is not the manager's own on.
procedure TraceAdd(var Text: TText; const Traces: TTraces; const Stack: TStack);

implementation


procedure TracesOpen(out Traces: TTraces; StackCount: NativeUInt);
begin
  Traces := Default(TTraces);
  SymbolsOpen(Traces.Symbols, StackCount * MaxFrames + 1);
end;

procedure TracesClose(var Traces: TTraces);
begin
  ElfClose(Traces.Elf);
  SymbolsClose(Traces.Symbols);
end;

procedure TracesAdd(var Traces: TTraces; const Stack: TStack);
var
  Frame: NativeInt;
begin
  for Frame := 0 to NativeInt(Stack.Count) - 1 do
    SymbolsAdd(Traces.Symbols, Stack.Frames[Frame]);
end;

procedure TracesAddCode(var Traces: TTraces; Code: NativeUInt);
begin
  SymbolsAdd(Traces.Symbols, Code + 1);
end;

procedure TracesResolve(var Traces: TTraces);
begin
  SymbolsSort(Traces.Symbols);
  ElfOpen(Traces.Elf);
  Traces.HasLines := ElfResolve(Traces.Elf, Traces.Symbols);
end;

// The first frame of the stack that is not the manager's own.
function FirstFrame(const Traces: TTraces; const Stack: TStack): Cardinal;
begin
  Result := 0;
  while (Result + 1 < Stack.Count)
    and SymbolIsOurs(SymbolsFind(Traces.Symbols, Stack.Frames[Result])) do
    Inc(Result);
end;

procedure AddFrame(var Text: TText; const Traces: TTraces; Return: NativeUInt);
var
  Symbol: PSymbol;
begin
  Symbol := SymbolsFind(Traces.Symbols, Return);
  TextAdd(Text, '      ');
  TextAddHex(Text, Return, SizeOf(Return) * 2);
  if (Symbol <> nil) and (Symbol^.Routine <> nil) then
  begin
    TextAdd(Text, '  ');
    SymbolAddRoutine(Text, Symbol);
  end;
  if (Symbol <> nil) and (Symbol^.Line > 0) then
  begin
    TextAdd(Text, '  ');
    SymbolAddPlace(Text, Symbol);
  end
  else if (Symbol <> nil) and (Symbol^.Module <> nil) then
  begin
    TextAdd(Text, '  ');
    SymbolAddOffset(Text, Symbol);
  end;
  TextAdd(Text, LineEnd);
end;

procedure TraceAdd(var Text: TText; const Traces: TTraces; const Stack: TStack);
var
  Frame: NativeInt;
begin
  for Frame := FirstFrame(Traces, Stack) to NativeInt(Stack.Count) - 1 do
    AddFrame(Text, Traces, Stack.Frames[Frame]);
end;

end.
