/// Backtraces as lines of text: address, routine, source line.
//
// Owns:       nothing; a TSymbolizer owns its symbols and mapped files until SymbolizerClose.
// Callers:    any thread; a TSymbolizer belongs to one.
unit LaneMM.BacktraceText;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Text, LaneMM.Elf, LaneMM.Symbols, LaneMM.Unwind;

type
  /// Backtraces that are symbolized together, so that each executable file is read once.
  TSymbolizer = record
    Symbols: TSymbols;   //< the addresses of all frames
    Elf: TElf;           //< their executable files
    HasLines: Boolean;   //< the files have line numbers that can be read
  end;

/// Makes an empty symbolizer with space for StackCount backtraces and one routine, for none without
/// memory. The caller owns it until SymbolizerClose.
procedure SymbolizerOpen(out Symbolizer: TSymbolizer; StackCount: NativeUInt);
/// Frees the symbols and unmaps the files.
procedure SymbolizerClose(var Symbolizer: TSymbolizer);
/// Adds the frames of a backtrace. Before SymbolizerResolve.
procedure SymbolizerAdd(var Symbolizer: TSymbolizer; const Stack: TBacktrace);
/// Adds the routine whose code begins at Code. Before SymbolizerResolve.
procedure SymbolizerAddCode(var Symbolizer: TSymbolizer; Code: NativeUInt);
/// Finds the names and line numbers of everything added.
procedure SymbolizerResolve(var Symbolizer: TSymbolizer);
/// Adds a line for each frame, from the first one outside the memory manager outwards.
procedure BacktraceAddText(var Text: TText; const Symbolizer: TSymbolizer; const Stack: TBacktrace);

implementation

procedure SymbolizerOpen(out Symbolizer: TSymbolizer; StackCount: NativeUInt);
begin
  Symbolizer := Default(TSymbolizer);
  SymbolsOpen(Symbolizer.Symbols, StackCount * MaxFrames + 1);
end;

procedure SymbolizerClose(var Symbolizer: TSymbolizer);
begin
  ElfClose(Symbolizer.Elf);
  SymbolsClose(Symbolizer.Symbols);
end;

procedure SymbolizerAdd(var Symbolizer: TSymbolizer; const Stack: TBacktrace);
var
  Frame: NativeInt;
begin
  for Frame := 0 to NativeInt(Stack.Count) - 1 do
    SymbolsAdd(Symbolizer.Symbols, Stack.Frames[Frame]);
end;

procedure SymbolizerAddCode(var Symbolizer: TSymbolizer; Code: NativeUInt);
begin
  SymbolsAdd(Symbolizer.Symbols, Code + 1);
end;

procedure SymbolizerResolve(var Symbolizer: TSymbolizer);
begin
  SymbolsSort(Symbolizer.Symbols);
  ElfOpen(Symbolizer.Elf);
  Symbolizer.HasLines := ElfResolve(Symbolizer.Elf, Symbolizer.Symbols);
end;

// Returns the index of the first frame outside the memory manager, at most the outermost frame.
function FirstFrame(const Symbolizer: TSymbolizer; const Stack: TBacktrace): Cardinal;
begin
  Result := 0;
  while (Result + 1 < Stack.Count)
    and SymbolIsOurs(SymbolsFind(Symbolizer.Symbols, Stack.Frames[Result])) do
    Inc(Result);
end;

procedure AddFrame(var Text: TText; const Symbolizer: TSymbolizer; Return: NativeUInt);
var
  Symbol: PSymbol;
begin
  Symbol := SymbolsFind(Symbolizer.Symbols, Return);
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

procedure BacktraceAddText(var Text: TText; const Symbolizer: TSymbolizer; const Stack: TBacktrace);
var
  Frame: NativeInt;
begin
  for Frame := FirstFrame(Symbolizer, Stack) to NativeInt(Stack.Count) - 1 do
    AddFrame(Text, Symbolizer, Stack.Frames[Frame]);
end;

end.
