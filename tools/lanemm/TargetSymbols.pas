/// The symbols of a target's addresses: routines, lines and variables, out of the files of its modules.
unit TargetSymbols;

{$mode delphi}{$H+}
{$pointermath on}

interface

uses
  Generics.Collections, LaneMM.Os, LaneMM.Symbols, LaneMM.Elf, LaneMM.Unwind, Targets;

type
  /// A frame of a backtrace.
  TPlaceFrame = record
    Address: UInt64;          //< its return address
    Routine, FileName: string; //< empty: unknown
    Module: string;           //< `module+0xOFFSET`; empty: unknown
    Line: Cardinal;           //< 0: unknown
  end;

  /// Addresses, and their symbols.
  TTargetSymbols = class
  private
    Target: TTarget;
    Returns: TList<UInt64>;
    Elf: TElf;
    function MappingOf(Address: UInt64; out Mapping: TOsMapping): Boolean;
  public
    /// What was added. After Resolve.
    Symbols: TSymbols;
    constructor Create(Source: TTarget);
    destructor Destroy; override;
    /// Adds a return address.
    procedure Add(Return: UInt64);
    /// Adds the address of a variable.
    procedure AddVariable(Address: UInt64);
    /// Finds the symbols of what was added. Once.
    procedure Resolve;
    /// Returns the symbol of what was added. After Resolve.
    function FrameOf(Return: UInt64): TPlaceFrame;
    /// Returns the name of the variable that lies there, UNIT.NAME; empty: unknown. After Resolve.
    function VariableAt(Address: UInt64): string;
    /// Returns a backtrace of these frames. After Resolve.
    function BacktraceOf(const Frames: TArray<UInt64>): TBacktrace;
    /// Returns the frame of the program that a backtrace, of BacktraceOf, is named by.
    function PlaceOf(const Stack: TBacktrace): TPlaceFrame;
    /// Returns its frames.
    function FramesOf(const Stack: TBacktrace): TArray<TPlaceFrame>;
  end;

/// Returns TTargetSymbols.VariableAt of one address.
function VariableName(Target: TTarget; Address: UInt64): string;
/// Returns routine, file and line of a frame, as far as they are known.
function FrameLine(const Frame: TPlaceFrame): string;

implementation

uses
  SysUtils, Math, LaneMM.Layout, LaneMM.Text, LaneMM.StacksState, LaneMM.Advice, ToolText;

constructor TTargetSymbols.Create(Source: TTarget);
begin
  inherited Create;
  Target := Source;
  Returns := TList<UInt64>.Create;
  ElfOpen(Elf);
end;

destructor TTargetSymbols.Destroy;
begin
  ElfClose(Elf);
  SymbolsClose(Symbols);
  Returns.Free;
  inherited Destroy;
end;

procedure TTargetSymbols.Add(Return: UInt64);
begin
  Returns.Add(Return);
end;

procedure TTargetSymbols.AddVariable(Address: UInt64);
begin
  Returns.Add(Address + 1); // as if a call ended there
end;

// Returns the mapping of the code of the module that the address lies in; for a variable as if it
// reached up to that.
function TTargetSymbols.MappingOf(Address: UInt64; out Mapping: TOsMapping): Boolean;
var
  Region, Code: PRegion;
  Path: string;
begin
  Region := Target.FindRegion(Address);
  Result := (Region <> nil) and (Region^.Module <> '');
  if not Result then
    Exit;
  Code := Region;
  while not Code^.IsCode and (Code > Target.Regions[0]) and ((Code - 1)^.Module = Region^.Module) do
    Dec(Code);
  Path := Region^.Module;
  if Target is TProcessTarget then
    Path := FileOf(Target.ProcessId, Path, Code^.First, Code^.Limit);
  Mapping := Default(TOsMapping);
  Mapping.First := Code^.First;
  Mapping.Limit := Region^.Limit;
  Mapping.FileOffset := Code^.FileOffset;
  Mapping.IsCode := Code^.IsCode;
  StrPLCopy(@Mapping.Path, Path, High(Mapping.Path));
end;

procedure TTargetSymbols.Resolve;
var
  Return: UInt64;
  Index: NativeInt;
  Mapping: TOsMapping;
begin
  SymbolsOpen(Symbols, Returns.Count + 1);
  for Return in Returns do
    SymbolsAdd(Symbols, Return);
  SymbolsSort(Symbols);
  Index := 0;
  while (Index < Symbols.Count) and (Symbols.Items[Index].Address < FirstInlined - 1) do
    if MappingOf(Symbols.Items[Index].Address, Mapping) then
      ElfResolveIn(Elf, Symbols, Index, Mapping)
    else
      Inc(Index);
end;

function TTargetSymbols.FrameOf(Return: UInt64): TPlaceFrame;
var
  Symbol: PSymbol;
  Text: TText;
  Name: TPath;
begin
  Result := Default(TPlaceFrame);
  Result.Address := SymbolsReturn(Symbols, Return);
  Symbol := SymbolsFind(Symbols, Return);
  if Symbol = nil then
    Exit;
  TextOpenAt(Text, @Name, SizeOf(Name));
  if Symbol^.Routine <> nil then
  begin
    SymbolAddRoutine(Text, Symbol);
    Result.Routine := PAnsiChar(@Name);
  end
  else
  begin
    SymbolAddOffset(Text, Symbol);
    Result.Module := Printable(PAnsiChar(@Name));
  end;
  Result.Line := Symbol^.Line;
  if Symbol^.Line > 0 then
    Result.FileName := Printable(Symbol^.FileName);
end;

function TTargetSymbols.VariableAt(Address: UInt64): string;
const
  Prefixes: array[0..1] of string = ('U_$', 'P$'); // of variables, of those of the program
var
  Prefix: string;
begin
  Result := FrameOf(Address + 1).Routine;
  for Prefix in Prefixes do
    if Result.StartsWith(Prefix) then
      Delete(Result, 1, Length(Prefix));
end;

function TTargetSymbols.BacktraceOf(const Frames: TArray<UInt64>): TBacktrace;
begin
  Result := Default(TBacktrace);
  Result.Count := Min(Length(Frames), MostFrames);
  Move(Pointer(Frames)^, Result.Frames, Result.Count * SizeOf(UInt64));
end;

function FrameLine(const Frame: TPlaceFrame): string;
begin
  Result := Frame.Routine;
  if Result = '' then
    Result := Frame.Module;
  if Result = '' then
    Result := HexAddress(Frame.Address);
  if Frame.Line > 0 then
    Result := Format('%s  %s:%d', [Result, Frame.FileName, Frame.Line]);
end;

function TTargetSymbols.PlaceOf(const Stack: TBacktrace): TPlaceFrame;
begin
  Result := FrameOf(AdvicePlace(Symbols, Stack));
end;

function TTargetSymbols.FramesOf(const Stack: TBacktrace): TArray<TPlaceFrame>;
var
  Index: Integer;
begin
  Result := nil;
  SetLength(Result, Stack.Count);
  for Index := 0 to High(Result) do
    Result[Index] := FrameOf(Stack.Frames[Index]);
end;

function VariableName(Target: TTarget; Address: UInt64): string;
var
  Symbols: TTargetSymbols;
begin
  Symbols := TTargetSymbols.Create(Target);
  Symbols.AddVariable(Address);
  Symbols.Resolve;
  Result := Symbols.VariableAt(Address);
  Symbols.Free;
end;

end.
