/// Backtraces as lines of text: address, routine, source line.
//
// Owns:       Stacks.Kept. A TSymbolizer owns its symbols and mapped files until SymbolizerClose or
//             SymbolizerKeep.
// Keeping:    a report of an error mostly has the addresses of the last one, and the debug
//             information of a library may take 0.1 s to decompress. So the last symbols stay, with
//             copies of their texts: no file stays mapped. Where an address is new they are found
//             once more, with those of before.
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
    Texts: TText;        //< copies of the texts of Symbols, if these are kept
    Changes: NativeUInt; //< Stacks.CodeChanges before they were found
  end;
  PSymbolizer = ^TSymbolizer;

/// Puts before each frame those of the routines that are inlined there, but once.
procedure BacktraceExpand(const Symbols: TSymbols; var Stack: TBacktrace);
/// Removes the frames that reports do not show: those of the memory manager and of unit System
/// inside the program's, those outside its main block, those of recursion, and those beyond
/// Stacks.Shown.
procedure BacktraceFold(const Symbols: TSymbols; var Stack: TBacktrace);
/// Leaves the frames that a text has: also without those of libraries inside the program's, but for
/// the one that it called.
procedure BacktraceFoldText(const Symbols: TSymbols; var Stack: TBacktrace);
/// Returns the same for two frames of one routine and source line; without a line the address.
function BacktraceFrameKey(const Symbols: TSymbols; Return: NativeUInt): NativeUInt;
/// Returns a number of the text of a backtrace: equal where BacktraceAddText adds the same lines,
/// but for the addresses of frames whose source line is known.
function BacktraceTextHash(const Symbols: TSymbols; const Stack: TBacktrace): UInt64;
/// Makes an empty symbolizer with space for StackCount backtraces and one routine at first, without
/// memory for none. The caller owns it until SymbolizerClose.
procedure SymbolizerOpen(out Symbolizer: TSymbolizer; StackCount: NativeUInt);
/// Frees the symbols and unmaps the files.
procedure SymbolizerClose(var Symbolizer: TSymbolizer);
/// Adds the frames of a backtrace. Before SymbolizerResolve.
procedure SymbolizerAdd(var Symbolizer: TSymbolizer; const Stack: TBacktrace);
/// Adds the routine whose code begins at Code. Before SymbolizerResolve.
procedure SymbolizerAddCode(var Symbolizer: TSymbolizer; Code: NativeUInt);
/// Finds the names and line numbers of everything added.
procedure SymbolizerResolve(var Symbolizer: TSymbolizer);
/// SymbolizerResolve that takes the symbols of the last SymbolizerKeep, if it has all of these.
procedure SymbolizerResolveAgain(var Symbolizer: TSymbolizer);
/// SymbolizerClose that leaves the symbols to the next SymbolizerResolveAgain of any thread.
procedure SymbolizerKeep(var Symbolizer: TSymbolizer);
/// Begins a line of a backtrace, two more characters from the left for each fork of a tree.
procedure BacktraceAddIndent(var Text: TText; Forks: Cardinal);
/// Adds the line of one frame.
procedure BacktraceAddFrame(var Text: TText; const Symbolizer: TSymbolizer; Return: NativeUInt;
  Forks: Cardinal);
/// Adds a line for each frame that BacktraceFoldText leaves.
/// With Stacks.FramesText, adds the text of that routine instead.
procedure BacktraceAddText(var Text: TText; const Symbolizer: TSymbolizer; const Stack: TBacktrace);
/// Writes LaneMM's text of up to MostFrames return addresses to Buffer, at most Size bytes; returns
/// its length.
function FramesToText(Frames: PNativeUInt; Count: Cardinal; Buffer: PAnsiChar; Size: NativeUInt):
  NativeUInt;

implementation

uses
  LaneMM.Bits, LaneMM.Atomic, LaneMM.Os, LaneMM.SettingsState, LaneMM.StacksState;

const
  // Most symbols that are kept.
  MostKept = 4096;

procedure SymbolizerOpen(out Symbolizer: TSymbolizer; StackCount: NativeUInt);
begin
  Symbolizer := Default(TSymbolizer);
  SymbolsOpen(Symbolizer.Symbols, StackCount * (Stacks.Depth + 1) + 1);
end;

procedure SymbolizerClose(var Symbolizer: TSymbolizer);
begin
  ElfClose(Symbolizer.Elf);
  SymbolsClose(Symbolizer.Symbols);
  TextClose(Symbolizer.Texts);
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
  ElfResolve(Symbolizer.Elf, Symbolizer.Symbols);
end;

// ---------------------------------------------------------------------------- keeping

// Returns whether All has all symbols of Some.
function HasAll(const All, Some: TSymbols): Boolean;
var
  Index: NativeInt;
begin
  Result := True;
  for Index := 0 to Some.Count - 1 do
    Result := Result and (SymbolsFind(All, Some.Items[Index].Address + 1) <> nil);
end;

function BytesOf(Chars: PAnsiChar): NativeUInt;
begin
  Result := 0;
  if Chars <> nil then
    Result := TextLength(Chars) + 1;
end;

function Copied(var Texts: TText; Chars: PAnsiChar): PAnsiChar;
begin
  Result := nil;
  if Chars = nil then
    Exit;
  Result := Texts.Start + Texts.Length;
  TextAddSome(Texts, Chars, BytesOf(Chars));
end;

// Makes the texts copies, so that the files can be closed; not without memory.
procedure CopyTexts(var Symbolizer: TSymbolizer);
var
  Bytes: NativeUInt;
  Index: NativeInt;
  Symbol: PSymbol;
begin
  Bytes := 1; // there may be no text
  for Index := 0 to Symbolizer.Symbols.Count - 1 do
  begin
    Symbol := Symbolizer.Symbols.Items + Index;
    Inc(Bytes, BytesOf(Symbol^.Routine) + BytesOf(Symbol^.FileName) + BytesOf(Symbol^.Module));
  end;
  if not TextOpen(Symbolizer.Texts, AlignUp(Bytes, OsPageSize))
    or (Symbolizer.Texts.Capacity < Bytes) then
  begin
    TextClose(Symbolizer.Texts);
    Exit;
  end;
  for Index := 0 to Symbolizer.Symbols.Count - 1 do
  begin
    Symbol := Symbolizer.Symbols.Items + Index;
    Symbol^.Routine := Copied(Symbolizer.Texts, Symbol^.Routine);
    Symbol^.FileName := Copied(Symbolizer.Texts, Symbol^.FileName);
    Symbol^.Module := Copied(Symbolizer.Texts, Symbol^.Module);
  end;
  ElfClose(Symbolizer.Elf);
end;

procedure SymbolizerResolveAgain(var Symbolizer: TSymbolizer);
var
  Kept: PSymbolizer;
  Changes: NativeUInt;
  Index: NativeInt;
begin
  Changes := LoadAcquire(Stacks.CodeChanges); // before the names are found
  // Acquire: the symbols of the thread that kept them. Pairs with SymbolizerKeep.
  Kept := PSymbolizer(Swap(Stacks.Kept, 0));
  if (Kept <> nil) and (Kept^.Changes = Changes) then
  begin
    if HasAll(Kept^.Symbols, Symbolizer.Symbols) then
    begin
      SymbolsClose(Symbolizer.Symbols);
      Symbolizer := Kept^;
      OsReleasePages(Kept, SizeOf(TSymbolizer));
      Exit;
    end;
    if Kept^.Symbols.Count < MostKept then
      for Index := 0 to Kept^.Symbols.Count - 1 do // as far as there is memory
        SymbolsAdd(Symbolizer.Symbols, Kept^.Symbols.Items[Index].Address + 1);
  end;
  if Kept <> nil then
  begin
    SymbolizerClose(Kept^);
    OsReleasePages(Kept, SizeOf(TSymbolizer));
  end;
  Symbolizer.Changes := Changes;
  SymbolizerResolve(Symbolizer);
  CopyTexts(Symbolizer);
end;

procedure SymbolizerKeep(var Symbolizer: TSymbolizer);
var
  Kept: PSymbolizer;
begin
  Kept := nil;
  if Symbolizer.Texts.Start <> nil then
    Kept := OsTakePages(SizeOf(TSymbolizer));
  if Kept <> nil then
  begin
    Kept^ := Symbolizer;
    // Release: the symbols before the pointer. Pairs with SymbolizerResolveAgain. No ABA: only 0 is
    // expected.
    if CompareAndSwap(Stacks.Kept, 0, NativeUInt(Kept)) then
      Exit;
    OsReleasePages(Kept, SizeOf(TSymbolizer));
  end;
  SymbolizerClose(Symbolizer);
end;

// ---------------------------------------------------------------------------- frames

// Adds the frames of the routines inlined at Return, and Return; returns False if they do not fit.
function AddExpanded(const Symbols: TSymbols; var Stack: TBacktrace; Return: NativeUInt): Boolean;
var
  Symbol: PSymbol;
  Inlined: NativeUInt;
begin
  Symbol := SymbolsFind(Symbols, Return);
  Inlined := 0;
  if Symbol <> nil then
    Inlined := Symbol^.Inlined;
  while (Inlined >= FirstInlined) and (Stack.Count < MostFrames) do
  begin
    Stack.Frames[Stack.Count] := Inlined;
    Inc(Stack.Count);
    Inlined := SymbolsFind(Symbols, Inlined)^.Inlined;
  end;
  Result := (Inlined < FirstInlined) and ((Stack.Count < MostFrames) or (Return = CutFrame));
  if not Result then
    Return := CutFrame;
  Stack.Frames[Stack.Count] := Return;
  Inc(Stack.Count);
end;

procedure BacktraceExpand(const Symbols: TSymbols; var Stack: TBacktrace);
var
  Whole: TBacktrace;
  Frame: Cardinal;
begin
  if (Symbols.Count = 0) or (Symbols.Items[Symbols.Count - 1].Address < FirstInlined - 1) then
    Exit; // no routine is inlined
  Whole := Stack;
  Stack.Count := 0;
  Frame := 0;
  while (Frame < Whole.Count) and (Whole.Frames[Frame] < FirstInlined)
    and AddExpanded(Symbols, Stack, Whole.Frames[Frame]) do
    Inc(Frame);
  if (Frame < Whole.Count) and (Whole.Frames[Frame] >= FirstInlined) then
    Stack := Whole; // it is expanded already
end;

type
  TIsFolded = function(Symbol: PSymbol): Boolean;

// Returns the index of the first frame below Limit that IsFolded is false for; Limit if none.
function FirstOutside(const Symbols: TSymbols; const Stack: TBacktrace; Limit: Cardinal;
  IsFolded: TIsFolded): Cardinal;
begin
  Result := 0;
  while (Result < Limit) and IsFolded(SymbolsFind(Symbols, Stack.Frames[Result])) do
    Inc(Result);
end;

// Returns the number of frames up to the main block; all, when it is not among them.
function UpToMain(const Symbols: TSymbols; const Stack: TBacktrace): Cardinal;
begin
  Result := 0;
  while Result < Stack.Count do
  begin
    Inc(Result);
    if SymbolIsMain(SymbolsFind(Symbols, Stack.Frames[Result - 1])) then
      Exit;
  end;
end;

// Leaves the frames from First on and before Limit.
procedure Drop(var Stack: TBacktrace; First, Limit: Cardinal);
begin
  Stack.Count := Limit - First;
  Move(Stack.Frames[First], Stack.Frames[0], Stack.Count * SizeOf(Stack.Frames[0]));
end;

// Leaves as many frames as reports show.
procedure Cut(var Stack: TBacktrace);
begin
  if Stack.Count <= Stacks.Shown then
    Exit;
  Stack.Frames[Stacks.Shown] := CutFrame;
  Stack.Count := Stacks.Shown + 1;
end;

// Removes the frames of the memory manager and of unit System inside the program's, and those
// outside its main block.
procedure FoldEnds(const Symbols: TSymbols; var Stack: TBacktrace);
var
  First, Limit: Cardinal;
begin
  BacktraceExpand(Symbols, Stack);
  Limit := UpToMain(Symbols, Stack);
  First := FirstOutside(Symbols, Stack, Limit, SymbolIsInner);
  if First = Limit then
    First := FirstOutside(Symbols, Stack, Limit, SymbolIsOurs);
  if First = Limit then
    First := 0;
  Drop(Stack, First, Limit);
end;

procedure BacktraceFold(const Symbols: TSymbols; var Stack: TBacktrace);
begin
  FoldEnds(Symbols, Stack);
  BacktraceFoldRecursion(Stack, 0, @Stack.Frames);
  Cut(Stack);
end;

// Removes the frames of libraries inside the program's, but for the one that it called.
procedure FoldLibraries(const Symbols: TSymbols; var Stack: TBacktrace);
var
  First: Cardinal;
begin
  First := FirstOutside(Symbols, Stack, Stack.Count, SymbolIsFolded);
  if (First > 1) and (First < Stack.Count) and (Stack.Frames[First] <> CutFrame) then
    Drop(Stack, First - 1, Stack.Count);
end;

procedure BacktraceFoldText(const Symbols: TSymbols; var Stack: TBacktrace);
begin
  FoldEnds(Symbols, Stack);
  FoldLibraries(Symbols, Stack);
  BacktraceFoldRecursion(Stack, 0, @Stack.Frames);
  Cut(Stack);
end;

function BacktraceFrameKey(const Symbols: TSymbols; Return: NativeUInt): NativeUInt;
var
  Symbol: PSymbol;
begin
  Symbol := SymbolsFind(Symbols, Return);
  Result := Return;
  if (Symbol <> nil) and (Symbol^.Line > 0) then
    Result := NativeUInt(Symbol^.Routine) * SpreadFactor + Symbol^.Line;
end;

function BacktraceTextHash(const Symbols: TSymbols; const Stack: TBacktrace): UInt64;
const
  Factor = UInt64($9E3779B97F4A7C15);
var
  Folded: TBacktrace;
  Frame: NativeInt;
begin
  Folded := Stack;
  BacktraceFoldText(Symbols, Folded);
  Result := 0;
  for Frame := 0 to NativeInt(Folded.Count) - 1 do
  begin
    Result := Result xor BacktraceFrameKey(Symbols, Folded.Frames[Frame]);
    Result := Result * Factor xor Result shr 32;
  end;
end;

procedure BacktraceAddIndent(var Text: TText; Forks: Cardinal);
begin
  TextAdd(Text, '      ');
  while Forks > 0 do
  begin
    TextAdd(Text, '  ');
    Dec(Forks);
  end;
end;

procedure BacktraceAddFrame(var Text: TText; const Symbolizer: TSymbolizer; Return: NativeUInt;
  Forks: Cardinal);
var
  Symbol: PSymbol;
begin
  BacktraceAddIndent(Text, Forks);
  if Return = CutFrame then
  begin
    TextAdd(Text, '(cut here');
    if Stacks.Shown < MaxFrames then
      TextAdd(Text, ': depth=N sets the number of frames');
    TextAdd(Text, ')'#10);
    Exit;
  end;
  Symbol := SymbolsFind(Symbolizer.Symbols, Return);
  TextAddHex(Text, SymbolsReturn(Symbolizer.Symbols, Return), SizeOf(Return) * 2);
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
  if Return >= FirstInlined then
    TextAdd(Text, '  (inlined)');
  TextAdd(Text, LineEnd);
end;

// Replaces frames of inlined routines by those that they are inlined in.
procedure Contract(const Symbols: TSymbols; var Stack: TBacktrace);
var
  Frame: NativeInt;
  Return: NativeUInt;
  Whole: TBacktrace;
begin
  Whole := Stack;
  Stack.Count := 0;
  for Frame := 0 to NativeInt(Whole.Count) - 1 do
  begin
    Return := SymbolsReturn(Symbols, Whole.Frames[Frame]);
    if (Frame > 0) and (Whole.Frames[Frame - 1] >= FirstInlined)
      and (Stack.Frames[Stack.Count - 1] = Return) then
      Continue;
    Stack.Frames[Stack.Count] := Return;
    Inc(Stack.Count);
  end;
end;

// Adds the text that the program's routine gives, at the end of Text.
procedure AddTextOf(FramesText: TFramesTextCall; var Text: TText; const Stack: TBacktrace);
var
  Count: Cardinal;
  Length: NativeUInt;
begin
  Count := Stack.Count;
  if (Count > 0) and (Stack.Frames[Count - 1] = CutFrame) then
    Dec(Count);
  Length := 0;
  if Text.Start <> nil then
    Length := FramesText(@Stack.Frames, Count, Text.Start + Text.Length,
      Text.Capacity - Text.Length);
  if Length <= NativeUInt(Text.Capacity - Text.Length) then
    Inc(Text.Length, Length);
end;

procedure AddFrames(var Text: TText; const Symbolizer: TSymbolizer; const Stack: TBacktrace);
var
  Frame: NativeInt;
begin
  for Frame := 0 to NativeInt(Stack.Count) - 1 do
    BacktraceAddFrame(Text, Symbolizer, Stack.Frames[Frame], 0);
end;

procedure BacktraceAddText(var Text: TText; const Symbolizer: TSymbolizer; const Stack: TBacktrace);
var
  Folded: TBacktrace;
  FramesText: TFramesTextCall;
begin
  Folded := Stack;
  BacktraceFoldText(Symbolizer.Symbols, Folded);
  FramesText := Stacks.FramesText; // once: the program may reset it meanwhile
  if @FramesText <> nil then
  begin
    Contract(Symbolizer.Symbols, Folded);
    AddTextOf(FramesText, Text, Folded);
  end
  else
    AddFrames(Text, Symbolizer, Folded);
end;

function FramesToText(Frames: PNativeUInt; Count: Cardinal; Buffer: PAnsiChar; Size: NativeUInt):
  NativeUInt;
var
  Text: TText;
  Symbolizer: TSymbolizer;
  Stack: TBacktrace;
begin
  Text := Default(TText);
  Text.Start := Buffer;
  Text.Capacity := Size;
  Stack := Default(TBacktrace);
  if Count > MostFrames then
    Count := MostFrames;
  Stack.Count := Count;
  Move(Frames^, Stack.Frames, Count * SizeOf(Frames^));
  SymbolizerOpen(Symbolizer, 1);
  SymbolizerAdd(Symbolizer, Stack);
  SymbolizerResolve(Symbolizer);
  FoldEnds(Symbolizer.Symbols, Stack);
  FoldLibraries(Symbolizer.Symbols, Stack);
  AddFrames(Text, Symbolizer, Stack);
  SymbolizerClose(Symbolizer);
  Result := Text.Length;
end;

end.
