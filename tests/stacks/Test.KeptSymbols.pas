/// Tests of the symbols that LaneMM.BacktraceText keeps from one report to the next.
unit Test.KeptSymbols;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.BacktraceText;

type
  TKeptSymbolsTests = class(TLaneTest)
  strict private
    Symbolizer: TSymbolizer;
    procedure Resolve(Code: CodePointer);
    procedure HasModule(Code: CodePointer);
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure TheSameAddressIsResolvedOnce;
    procedure EarlierAddressesStayBesideANewOne;
    procedure NoFileStaysMapped;
    procedure AfterAChangeOfTheCodeAllIsResolvedAnew;
  end;

implementation

uses
  SysUtils, testregistry, LaneMM.Atomic, LaneMM.Text, LaneMM.StacksState, LaneMM.Symbols;

procedure TKeptSymbolsTests.Resolve(Code: CodePointer);
begin
  SymbolizerOpen(Symbolizer, 1);
  SymbolizerAddCode(Symbolizer, NativeUInt(Code));
  SymbolizerResolveAgain(Symbolizer);
end;

// The program may have no names of routines.
procedure TKeptSymbolsTests.HasModule(Code: CodePointer);
var
  Symbol: PSymbol;
begin
  Symbol := SymbolsFind(Symbolizer.Symbols, NativeUInt(Code) + 1);
  AssertTrue('the address has a symbol', Symbol <> nil);
  AssertEquals(ExtractFileName(ParamStr(0)), string(TextFileName(Symbol^.Module)));
end;

// Nothing is kept.
procedure TKeptSymbolsTests.SetUp;
begin
  Resolve(@TKeptSymbolsTests.SetUp);
  SymbolizerClose(Symbolizer);
end;

procedure TKeptSymbolsTests.TearDown;
begin
  SymbolizerClose(Symbolizer);
end;

procedure TKeptSymbolsTests.TheSameAddressIsResolvedOnce;
var
  Items: PSymbol;
begin
  Resolve(@TKeptSymbolsTests.SetUp);
  HasModule(@TKeptSymbolsTests.SetUp);
  Items := Symbolizer.Symbols.Items;
  SymbolizerKeep(Symbolizer);
  Resolve(@TKeptSymbolsTests.SetUp);
  AssertTrue('the symbols are those of before', Symbolizer.Symbols.Items = Items);
  HasModule(@TKeptSymbolsTests.SetUp);
end;

procedure TKeptSymbolsTests.EarlierAddressesStayBesideANewOne;
var
  Items: PSymbol;
begin
  Resolve(@TKeptSymbolsTests.SetUp);
  SymbolizerKeep(Symbolizer);
  Resolve(@TKeptSymbolsTests.TearDown);
  HasModule(@TKeptSymbolsTests.SetUp);
  HasModule(@TKeptSymbolsTests.TearDown);
  Items := Symbolizer.Symbols.Items;
  SymbolizerKeep(Symbolizer);
  Resolve(@TKeptSymbolsTests.SetUp);
  AssertTrue('both are kept', Symbolizer.Symbols.Items = Items);
end;

procedure TKeptSymbolsTests.NoFileStaysMapped;
begin
  Resolve(@TKeptSymbolsTests.SetUp);
  Same(0, Symbolizer.Elf.Count, 'files');
  HasModule(@TKeptSymbolsTests.SetUp);
end;

procedure TKeptSymbolsTests.AfterAChangeOfTheCodeAllIsResolvedAnew;
begin
  Resolve(@TKeptSymbolsTests.SetUp);
  SymbolizerKeep(Symbolizer);
  FetchAdd(Stacks.CodeChanges, 1);
  Resolve(@TKeptSymbolsTests.SetUp);
  AssertTrue('the symbols are those of this code',
    Symbolizer.Changes = LoadAcquire(Stacks.CodeChanges));
end;

initialization
  RegisterTest(TKeptSymbolsTests);
end.
