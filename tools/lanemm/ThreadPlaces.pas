/// Where in the program a thread waits: the frames of its backtrace outside the libraries of C and C++.
unit ThreadPlaces;

{$mode delphi}{$H+}
{$pointermath on}

interface

uses
  TargetSymbols;

/// Returns the number of innermost frames in these libraries.
function LibraryFrames(Symbols: TTargetSymbols; const Frames: TArray<UInt64>): Integer;
/// Returns whether a routine of the backtrace has this in its name.
function HasRoutine(Symbols: TTargetSymbols; const Frames: TArray<UInt64>; const Name: string): Boolean;
/// Returns whether one of the innermost does, which the thread waits in: up to the program's own.
function WaitsIn(Symbols: TTargetSymbols; const Frames: TArray<UInt64>; const Name: string): Boolean;
/// Returns the linker's name of the routine that called the libraries; empty: unknown.
function CallerOf(Symbols: TTargetSymbols; const Frames: TArray<UInt64>): string;
/// Returns the frames as reports show them.
function ShownFrames(Symbols: TTargetSymbols; const Frames: TArray<UInt64>): TArray<TPlaceFrame>;
/// Returns the line of the program where the thread is, ` at FILE:LINE`; empty: unknown.
function LineText(Symbols: TTargetSymbols; const Frames: TArray<UInt64>): string;

implementation

uses
  SysUtils, Math, LaneMM.Unwind, LaneMM.Symbols, LaneMM.BacktraceText;

// Returns whether an address lies in the library of C or C++, or in the dynamic linker.
function IsOfLibrary(Symbols: TTargetSymbols; Return: UInt64): Boolean;
const
  Names: array[0..6] of string = ('libc.so', 'libc-', 'libpthread', 'ld-', 'libstdc++.so', 'libc++',
    'libgcc_s');
var
  Symbol: PSymbol;
  Name: string;
begin
  Symbol := SymbolsFind(Symbols.Symbols, Return);
  if (Symbol <> nil) and (Symbol^.Module <> nil) then
    for Name in Names do
      if string(ExtractFileName(Symbol^.Module)).StartsWith(Name) then
        Exit(True);
  Result := False;
end;

function LibraryFrames(Symbols: TTargetSymbols; const Frames: TArray<UInt64>): Integer;
begin
  Result := 0;
  while (Result < Length(Frames)) and IsOfLibrary(Symbols, Frames[Result]) do
    Inc(Result);
end;

function HasRoutine(Symbols: TTargetSymbols; const Frames: TArray<UInt64>; const Name: string): Boolean;
var
  Each: UInt64;
begin
  for Each in Frames do
    if SymbolHas(SymbolsFind(Symbols.Symbols, Each), UpperCase(Name)) then
      Exit(True);
  Result := False;
end;

// In a static program the libraries are part of it: there the first frames are looked at.
function WaitsIn(Symbols: TTargetSymbols; const Frames: TArray<UInt64>; const Name: string): Boolean;
const
  LeastFrames = 3;
begin
  Result := HasRoutine(Symbols, Copy(Frames, 0, Max(LeastFrames, LibraryFrames(Symbols, Frames))), Name);
end;

function CallerOf(Symbols: TTargetSymbols; const Frames: TArray<UInt64>): string;
var
  Count: Integer;
  Symbol: PSymbol;
begin
  Result := '';
  Count := LibraryFrames(Symbols, Frames);
  if (Count = 0) or (Count = Length(Frames)) then
    Exit;
  Symbol := SymbolsFind(Symbols.Symbols, Frames[Count]);
  if (Symbol <> nil) and (Symbol^.Routine <> nil) then
    Result := Symbol^.Routine;
end;

// With the routine that the program called.
function ShownFrames(Symbols: TTargetSymbols; const Frames: TArray<UInt64>): TArray<TPlaceFrame>;
var
  Stack: TBacktrace;
begin
  Stack := Symbols.BacktraceOf(Copy(Frames, Max(0, LibraryFrames(Symbols, Frames) - 1), MaxInt));
  BacktraceFoldText(Symbols.Symbols, Stack);
  Result := Symbols.FramesOf(Stack);
end;

// Templates of C++ lie in the program, and call the libraries again: no frame of these is the place.
function LineText(Symbols: TTargetSymbols; const Frames: TArray<UInt64>): string;
var
  Own: TArray<UInt64>;
  Each: UInt64;
  Frame: TPlaceFrame;
begin
  Result := '';
  Own := nil;
  for Each in Frames do
    if not IsOfLibrary(Symbols, Each) then
      Insert(Each, Own, Length(Own));
  if Own = nil then
    Exit;
  Frame := Symbols.PlaceOf(Symbols.BacktraceOf(Own));
  if Frame.Line > 0 then
    Result := Format(' at %s:%d', [Frame.FileName, Frame.Line])
  else if Frame.Routine <> '' then
    Result := ' in ' + Frame.Routine;
end;

end.
