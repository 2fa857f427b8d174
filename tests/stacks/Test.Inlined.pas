/// Tests of LaneMM.Inlined: entries of debug information in the forms that compilers write them.
unit Test.Inlined;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.Symbols, LaneMM.Dwarf, LaneMM.Inlined;

type
  TSectionKind = (skInfo, skAbbreviations, skRanges, skRangeLists, skAddresses, skNameOffsets,
    skNames, skLines);

  TInlinedTests = class(TLaneTest)
  strict private
    Sections: array[TSectionKind] of string;
    Places: array[TSectionKind] of PByte; // each section ends at a page that cannot be read
    Symbols: TSymbols;
    IsHeader: Boolean; // the code of all addresses is in C++'s standard library
    function Section(Kind: TSectionKind; Size: Integer): TDwarfSection;
    procedure Find(const Cut: TSectionKind; Size: Integer);
    procedure AddUnit(Version: Integer; const Entries: string; Layout: Integer = 0);
    procedure AddNested;
    function Frames(Address: NativeUInt): string;
    procedure ExpectFrames(Address: NativeUInt; const Expected: string);
    procedure ExpectListOfVersion5(const Entry: string; First, Limit: NativeUInt);
    function LineOf(Start: NativeUInt): Integer;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure InlinedRoutinesAreFramesInsideTheirCallers;
    procedure RangesOfVersion4AreRead;
    procedure RangeListsOfVersion5AreRead;
    procedure RoutinesOfDroppedCodeAreNowhere;
    procedure LinesOfDroppedCodeAreNowhere;
    procedure ListOfFoldersWithoutFieldsEndsItsUnit;
    procedure FileNameThatItsUnitCutsIsNone;
    procedure IndexedFormsOfVersion5AreRead;
    procedure NameComesFromAnotherUnit;
    procedure NameOfTheLinkerComesBeforeThatOfTheSource;
    procedure UnknownFormsEndTheUnitAlone;
    procedure HugeBlockEndsItsUnit;
    procedure ReferencesInACircleEnd;
    procedure DeepNestingIsBounded;
    procedure BacktraceIsExpandedOnce;
    procedure LongBacktraceIsCut;
    procedure LineOfARowIsTheProgramsOwn;
    procedure FileOfTheProgramMayBeginAsAUnitOfGenerics;
    procedure TextOfTheProgramGetsReturnAddresses;
    procedure CutSectionsAreNotReadPastTheirEnd;
    procedure DamagedSectionsAreNotReadPastTheirEnd;
  end;

implementation

uses
  SysUtils, testregistry, LaneMM.Os, LaneMM.Text, LaneMM.StacksState, LaneMM.Unwind,
  LaneMM.BacktraceText, LaneMM.Advice;

const
  Room = 1 shl 18; // other tests need that longer gaps between mappings are rare
  CodeStart = $1000;
  Bias = $500000;
  UnitHead = 11;   // bytes before the entries of version 4
  Unit5Head = 12;

function Number(Value: UInt64; Size: Integer): string;
begin
  SetLength(Result, Size);
  Move(Value, Result[1], Size);
end;

function Address(Value: UInt64): string;
begin
  Result := Number(Value, SizeOf(Pointer));
end;

function Unsigned(Value: NativeUInt): string;
begin
  Result := '';
  while Value >= $80 do
  begin
    Result := Result + Chr(Value and $7F or $80);
    Value := Value shr 7;
  end;
  Result := Result + Chr(Value);
end;

function Abbreviation(Code, Tag: Cardinal; const Layout: array of Cardinal): string;
var
  Item: Cardinal;
begin
  Result := Unsigned(Code) + Unsigned(Tag) + #1;
  for Item in Layout do
    Result := Result + Unsigned(Item);
  Result := Result + #0#0;
end;

procedure TInlinedTests.SetUp;
var
  Kind: TSectionKind;
begin
  IsHeader := False;
  for Kind in TSectionKind do
  begin
    Places[Kind] := OsReserve(Room + OsPageSize);
    OsCommit(Places[Kind], Room);
    Sections[Kind] := '';
  end;
  // Files 1 and 2 of version 4; the second one is of C++'s standard library.
  Sections[skLines] := #4#0 + Number(0, 4) + #1#1#1#0#1#1 + '/usr/include/c++/12'#0#0
    + 'own.cc'#0#0#0#0 + 'vector.h'#0#1#0#0#0;
  PCardinal(@Sections[skLines][3])^ := Length(Sections[skLines]) - 6;
  Sections[skLines] := Number(Length(Sections[skLines]), 4) + Sections[skLines];
  Sections[skNames] := #0'first'#0'second'#0;
  // 1 to 4 of version 4: unit, routine, inlined by address, inlined by ranges.
  Sections[skAbbreviations] :=
    Abbreviation(1, $11, [$10, $17, $11, $01, $12, $06])
    + Abbreviation(2, $2E, [$03, $08])
    + Abbreviation(3, $1D, [$31, $13, $11, $01, $12, $06, $58, $0B, $59, $0B])
    + Abbreviation(4, $1D, [$31, $13, $55, $17, $58, $0B, $59, $0B])
    + Abbreviation(5, $2E, [$03, $08, $6E, $0E])
    + Abbreviation(6, $1D, [$31, $10, $11, $01, $12, $06, $58, $0B, $59, $0B])
    + Abbreviation(7, $34, [$02, $7F])
    + Abbreviation(8, $2E, [$47, $13])
    + Abbreviation(9, $34, [$02, $09]) + #0;
end;

procedure TInlinedTests.TearDown;
var
  Kind: TSectionKind;
begin
  SymbolsClose(Symbols);
  for Kind in TSectionKind do
    OsRelease(Places[Kind], Room + OsPageSize);
end;

// Adds a unit whose first entry follows from its version.
procedure TInlinedTests.AddUnit(Version: Integer; const Entries: string; Layout: Integer);
var
  Head: string;
begin
  Head := Number(Layout, 4);
  if Version < 5 then
    Head := Head + Chr(SizeOf(Pointer))
  else
    Head := #1 + Chr(SizeOf(Pointer)) + Head;
  Head := Number(Version, 2) + Head;
  Sections[skInfo] := Sections[skInfo] + Number(Length(Head) + Length(Entries), 4) + Head + Entries;
end;

// The first entry of a unit of version 4.
function FirstEntry: string;
begin
  Result := #1 + Number(0, 4) + Address(CodeStart) + Number($100, 4);
end;

function Inlined(Origin: Cardinal; First: NativeUInt; Size, CallFile, Line: Cardinal): string;
begin
  Result := #3 + Number(Origin, 4) + Address(First) + Number(Size, 4) + Chr(CallFile) + Chr(Line);
end;

// Two routines that are inlined into each other.
procedure TInlinedTests.AddNested;
var
  Origin: Cardinal;
begin
  Origin := UnitHead + Length(FirstEntry);
  AddUnit(4, FirstEntry + #2'alpha'#0 + #2'beta'#0
    + Inlined(Origin, CodeStart + 16, 64, 1, 11)
    + Inlined(Origin + 7, CodeStart + 32, 16, 2, 22) + #0#0#0);
end;

function TInlinedTests.Section(Kind: TSectionKind; Size: Integer): TDwarfSection;
begin
  Result.Start := Places[Kind] + Room - Size;
  Result.Size := Size;
  Move(Sections[Kind][1], Result.Start^, Size);
  if Size = 0 then
    Result.Start := nil
  else if (Kind = skNames) and (Result.Start[Size - 1] <> 0) then
    Result := Default(TDwarfSection); // as ElfFileNames does
end;

// Finds what is inlined; of one section there are only the first bytes.
procedure TInlinedTests.Find(const Cut: TSectionKind; Size: Integer);
var
  Info: TDwarfInfo;
  Parts: array[TSectionKind] of TDwarfSection;
  Kind: TSectionKind;
  Index: Integer;
begin
  for Kind in TSectionKind do
    if Kind = Cut then
      Parts[Kind] := Section(Kind, Size)
    else
      Parts[Kind] := Section(Kind, Length(Sections[Kind]));
  Info := Default(TDwarfInfo);
  Info.Info := Parts[skInfo];
  Info.Abbreviations := Parts[skAbbreviations];
  Info.Ranges := Parts[skRanges];
  Info.RangeLists := Parts[skRangeLists];
  Info.Addresses := Parts[skAddresses];
  Info.NameOffsets := Parts[skNameOffsets];
  Info.Lines.Names := Parts[skNames];
  Info.Lines.Lines := Parts[skLines];
  SymbolsClose(Symbols);
  SymbolsOpen(Symbols, 8);
  for Index := 0 to 7 do
    SymbolsAdd(Symbols, Bias + CodeStart + Index * 16 + 5);
  SymbolsSort(Symbols);
  for Index := 0 to 7 do
  begin
    Symbols.Items[Index].Routine := 'outer';
    Symbols.Items[Index].FileName := 'code.h';
    Symbols.Items[Index].IsHeader := IsHeader;
    Symbols.Items[Index].Line := 99;
  end;
  InlinedFind(Symbols, Info, Bias);
end;

// Returns the frames at an address as a report has them, the innermost first.
function TInlinedTests.Frames(Address: NativeUInt): string;
var
  Stack: TBacktrace;
  Index: Integer;
  Symbol: PSymbol;
begin
  Stack := Default(TBacktrace);
  Stack.Count := 1;
  Stack.Frames[0] := Bias + CodeStart + Address + 5;
  BacktraceExpand(Symbols, Stack);
  Result := '';
  for Index := 0 to Stack.Count - 1 do
  begin
    Symbol := SymbolsFind(Symbols, Stack.Frames[Index]);
    AssertEquals('address', Bias + CodeStart + Address + 5,
      SymbolsReturn(Symbols, Stack.Frames[Index]));
    Result := Result + Format('%s %s:%d', [Symbol^.Routine, Symbol^.FileName, Symbol^.Line]);
    if SymbolIsLibrary(Symbol) then
      Result := Result + '*';
    if Index < Integer(Stack.Count) - 1 then
      Result := Result + ', ';
  end;
end;

procedure TInlinedTests.ExpectFrames(Address: NativeUInt; const Expected: string);
begin
  AssertEquals(Format('at %d', [Address]), Expected, Frames(Address));
end;

procedure TInlinedTests.InlinedRoutinesAreFramesInsideTheirCallers;
begin
  AddNested;
  Find(skInfo, Length(Sections[skInfo]));
  ExpectFrames(0, 'outer code.h:99');
  ExpectFrames(16, 'alpha code.h:99, outer own.cc:11');
  ExpectFrames(32, 'beta code.h:99, alpha vector.h:22*, outer own.cc:11');
  ExpectFrames(48, 'alpha code.h:99, outer own.cc:11');
  ExpectFrames(64, 'alpha code.h:99, outer own.cc:11');
  ExpectFrames(80, 'outer code.h:99');
end;

procedure TInlinedTests.RangesOfVersion4AreRead;
begin
  AddUnit(4, FirstEntry + #2'alpha'#0
    + #4 + Number(UnitHead + Length(FirstEntry), 4) + Number(1, 4) + #1#7#0);
  // From the address of the unit on, then from another one.
  Sections[skRanges] := #0 + Address(16) + Address(32) + Address(High(UInt64))
    + Address(CodeStart + 32) + Address(32) + Address(48) + Address(0) + Address(0)
    + Address(0) + Address(16);
  Find(skInfo, Length(Sections[skInfo]));
  ExpectFrames(0, 'outer code.h:99');
  ExpectFrames(16, 'alpha code.h:99, outer own.cc:7');
  ExpectFrames(32, 'outer code.h:99');
  ExpectFrames(64, 'alpha code.h:99, outer own.cc:7');
  ExpectFrames(80, 'outer code.h:99');
end;

// Entry: a list with one range, from First up to Limit.
procedure TInlinedTests.ExpectListOfVersion5(const Entry: string; First, Limit: NativeUInt);
var
  Place: NativeUInt;
begin
  Sections[skInfo] := '';
  Sections[skRangeLists] := Entry;
  AddUnit(5, FirstEntry + #2'alpha'#0
    + #4 + Number(Unit5Head + Length(FirstEntry), 4) + Number(0, 4) + #1#7#0);
  Find(skInfo, Length(Sections[skInfo]));
  Place := 0;
  while Place <= 112 do
  begin
    if (Place + 4 >= First) and (Place + 4 < Limit) then
      ExpectFrames(Place, 'alpha code.h:99, outer own.cc:7')
    else
      ExpectFrames(Place, 'outer code.h:99');
    Inc(Place, 16);
  end;
end;

procedure TInlinedTests.RangeListsOfVersion5AreRead;
begin
  Sections[skAddresses] := Address(CodeStart + 16) + Address(CodeStart + 48);
  ExpectListOfVersion5(#4#32#64#0, 32, 64);
  ExpectListOfVersion5(#1#1#4#0#16#0, 48, 64);
  ExpectListOfVersion5(#2#0#1#0, 16, 48);
  ExpectListOfVersion5(#3#1#16#0, 48, 64);
  ExpectListOfVersion5(#5 + Address(CodeStart + 64) + #4#0#16#0, 64, 80);
  ExpectListOfVersion5(#6 + Address(CodeStart) + Address(CodeStart + 16) + #0, 0, 16);
  ExpectListOfVersion5(#7 + Address(CodeStart + 80) + #32#0, 80, 112);
  ExpectListOfVersion5(#9#7#0, 0, 0);
end;

// Linkers leave the debug information of routines that they drop, at addresses where no code is.
procedure TInlinedTests.RoutinesOfDroppedCodeAreNowhere;
const
  Size = 2 * CodeStart;
var
  Origin: Cardinal;
begin
  Origin := UnitHead + Length(FirstEntry);
  Sections[skRanges] := Address(High(UInt64)) + Address(0) + Address(8) + Address(Size)
    + Address(0) + Address(0);
  AddUnit(4, FirstEntry + #2'alpha'#0 + Inlined(Origin, 0, Size, 1, 11)
    + Inlined(Origin, High(NativeUInt) - 1, Size, 1, 11)
    + #4 + Number(Origin, 4) + Number(0, 4) + #1#7#0);
  Find(skInfo, Length(Sections[skInfo]));
  ExpectFrames(16, 'outer code.h:99');
  ExpectListOfVersion5(#7 + Address(0) + Unsigned(Size) + #0, 0, 0);
  ExpectListOfVersion5(#5 + Address(0) + #4#8 + Unsigned(Size) + #0, 0, 0);
  ExpectListOfVersion5(#5 + Address(0) + #7 + Address(CodeStart + 80) + #32#0, 80, 112);
end;

// Returns the line of the first symbol, by the lines of code that begins at Start.
function TInlinedTests.LineOf(Start: NativeUInt): Integer;
var
  Head: string;
  Lines: TDwarfLines;
begin
  // An address, then rows of 128 bytes each, which are of line 1.
  Head := Sections[skLines];
  Sections[skLines] := Head + #0 + Chr(1 + SizeOf(Pointer)) + #2 + Address(Start) + #1
    + StringOfChar(#129, 2 * CodeStart div 128) + #0#1#1;
  PCardinal(@Sections[skLines][1])^ := Length(Sections[skLines]) - 4;
  Lines := Default(TDwarfLines);
  Lines.Lines := Section(skLines, Length(Sections[skLines]));
  SymbolsOpen(Symbols, 1);
  SymbolsAdd(Symbols, Bias + CodeStart + 5);
  SymbolsSort(Symbols);
  AssertTrue('a unit', DwarfFindLines(Symbols, Lines, Bias));
  Result := Symbols.Items[0].Line;
  SymbolsClose(Symbols);
  Sections[skLines] := Head;
end;

procedure TInlinedTests.LinesOfDroppedCodeAreNowhere;
begin
  Same(1, LineOf(16), 'line');
  Same(0, LineOf(0), 'line of dropped code, as by GNU');
  Same(0, LineOf(High(NativeUInt)), 'line of dropped code, as by LLVM');
  Same(0, LineOf(High(NativeUInt) - 1), 'likewise');
end;

// A damaged file: 2 to the power of 64 folders of no bytes each.
procedure TInlinedTests.ListOfFoldersWithoutFieldsEndsItsUnit;
var
  Head: string;
  Lines: TDwarfLines;
begin
  Head := #1#1#1#0#1#1#0 + Unsigned(High(NativeUInt)) + StringOfChar(#0, 8);
  Head := #5#0 + Chr(SizeOf(Pointer)) + #0 + Number(Length(Head), 4) + Head;
  Sections[skLines] := Number(Length(Head), 4) + Head;
  Lines := Default(TDwarfLines);
  Lines.Lines := Section(skLines, Length(Sections[skLines]));
  SymbolsOpen(Symbols, 1);
  AssertFalse('a unit', DwarfFindLines(Symbols, Lines, Bias));
end;

// A damaged file: the names are said to begin with the rows, behind whose last #0 is the one of the row.
procedure TInlinedTests.FileNameThatItsUnitCutsIsNone;
var
  Head: string;
  Lines: TDwarfLines;
begin
  // Four opcodes below the special ones; no folders; many files, each with a path alone.
  Head := #1#1#1#0#1#5#0#1#1#1 + #1#1#8#0 + #1#1#8#127;
  // The file by its number, an address, a row, one 100 bytes behind it, and the end of the unit.
  Head := #5#0 + Chr(SizeOf(Pointer)) + #0 + Number(Length(Head), 4) + Head
    + #4 + Chr(SizeOf(Pointer)) + #0 + Chr(1 + SizeOf(Pointer)) + #2 + Address(CodeStart) + #1#105'end';
  Sections[skLines] := Number(Length(Head), 4) + Head;
  Lines := Default(TDwarfLines);
  Lines.Lines := Section(skLines, Length(Sections[skLines]));
  SymbolsOpen(Symbols, 1);
  SymbolsAdd(Symbols, Bias + CodeStart + 5);
  SymbolsSort(Symbols);
  AssertTrue('a unit', DwarfFindLines(Symbols, Lines, Bias));
  Same(1, Symbols.Items[0].Line, 'line');
  AssertTrue('no name', Symbols.Items[0].FileName = nil);
end;

procedure TInlinedTests.IndexedFormsOfVersion5AreRead;
begin
  // stmt_list, low_pc addrx, high_pc, str_offsets_base, addr_base, rnglists_base; name strx1;
  // ranges rnglistx, call_file implicit_const.
  Sections[skAbbreviations] :=
    Abbreviation(1, $11, [$10, $17, $11, $1B, $12, $06, $72, $17, $73, $17, $74, $17])
    + Abbreviation(2, $2E, [$03, $25])
    + Abbreviation(3, $1D, [$31, $11, $55, $23, $58, $21, 1, $59, $0F]) + #0;
  Sections[skAddresses] := Number(0, 8) + Address(1) + Address(CodeStart);
  Sections[skNameOffsets] := Number(0, 8) + Number(0, 4) + Number(7, 4);
  Sections[skRangeLists] := Number(0, 12) + Number(8, 4) + Number(9, 4) + #0#4#16#32#0;
  AddUnit(5, #1 + Number(0, 4) + #1 + Number($100, 4) + Number(8, 4) + Number(8, 4)
    + Number(12, 4) + #2#1 + #3 + Chr(Unit5Head + 22) + #1#33#0);
  Find(skInfo, Length(Sections[skInfo]));
  ExpectFrames(0, 'outer code.h:99');
  ExpectFrames(16, 'second code.h:99, outer own.cc:33');
  ExpectFrames(32, 'outer code.h:99');
end;

procedure TInlinedTests.NameComesFromAnotherUnit;
var
  Layout: Cardinal;
begin
  Layout := Length(Sections[skAbbreviations]);
  Sections[skAbbreviations] := Sections[skAbbreviations] + Abbreviation(1, $11, [$03, $08])
    + Abbreviation(2, $2E, [$03, $0E]) + #0;
  AddUnit(4, #1'a.cc'#0 + #2 + Number(1, 4) + #0, Layout);
  AddUnit(4, FirstEntry + #6 + Number(UnitHead + 6, 4) + Address(CodeStart) + Number(16, 4)
    + #1#5#0);
  Find(skInfo, Length(Sections[skInfo]));
  ExpectFrames(0, 'first code.h:99, outer own.cc:5');
end;

procedure TInlinedTests.NameOfTheLinkerComesBeforeThatOfTheSource;
var
  Origin: Cardinal;
begin
  Origin := UnitHead + Length(FirstEntry);
  AddUnit(4, FirstEntry + #5'push'#0 + Number(7, 4) + #8 + Number(Origin, 4)
    + Inlined(Origin + 10, CodeStart, 16, 1, 3) + #0);
  Find(skInfo, Length(Sections[skInfo]));
  ExpectFrames(0, 'second code.h:99, outer own.cc:3');
end;

procedure TInlinedTests.UnknownFormsEndTheUnitAlone;
begin
  AddUnit(4, FirstEntry + #7#1#2#3 + Inlined(UnitHead, CodeStart, 16, 1, 3) + #0);
  AddNested;
  Find(skInfo, Length(Sections[skInfo]));
  ExpectFrames(0, 'outer code.h:99');
  ExpectFrames(16, 'alpha code.h:99, outer own.cc:11');
end;

// A length by which the address of the next entry wraps, back to this one.
procedure TInlinedTests.HugeBlockEndsItsUnit;
begin
  AddUnit(4, FirstEntry + #9 + Unsigned(High(NativeUInt) - SizeOf(Pointer) * 8 div 7 - 1)
    + Inlined(UnitHead, CodeStart, 16, 1, 3) + #0);
  AddNested;
  Find(skInfo, Length(Sections[skInfo]));
  ExpectFrames(0, 'outer code.h:99');
  ExpectFrames(16, 'alpha code.h:99, outer own.cc:11');
end;

procedure TInlinedTests.ReferencesInACircleEnd;
var
  Origin: Cardinal;
begin
  Origin := UnitHead + Length(FirstEntry);
  AddUnit(4, FirstEntry + #8 + Number(Origin + 5, 4) + #8 + Number(Origin, 4)
    + Inlined(Origin, CodeStart, 16, 1, 3) + #0);
  Find(skInfo, Length(Sections[skInfo]));
  ExpectFrames(0, '?? code.h:99, outer own.cc:3');
end;

procedure TInlinedTests.DeepNestingIsBounded;
var
  Entries: string;
  Level: Integer;
begin
  Entries := FirstEntry + #2'alpha'#0;
  for Level := 1 to 100 do
    Entries := Entries + Inlined(UnitHead + Length(FirstEntry), CodeStart, 16, 1, Level);
  AddUnit(4, Entries);
  Find(skInfo, Length(Sections[skInfo]));
  AssertEquals('items', 8 + MostInlined, Symbols.Count);
  AssertEquals('the outermost one is kept', 'outer own.cc:1',
    Copy(Frames(0), Length(Frames(0)) - 13, 14));
end;

procedure TInlinedTests.BacktraceIsExpandedOnce;
var
  Stack: TBacktrace;
begin
  AddNested;
  Find(skInfo, Length(Sections[skInfo]));
  Stack := Default(TBacktrace);
  Stack.Count := 3;
  Stack.Frames[0] := Bias + CodeStart + 5;
  Stack.Frames[1] := Bias + CodeStart + 32 + 5;
  Stack.Frames[2] := CutFrame;
  BacktraceExpand(Symbols, Stack);
  AssertEquals('frames', 5, Stack.Count);
  AssertEquals('the last one', CutFrame, Stack.Frames[4]);
  BacktraceExpand(Symbols, Stack);
  AssertEquals('frames once more', 5, Stack.Count);
  BacktraceFold(Symbols, Stack);
  AssertEquals('frames of a report', 5, Stack.Count);
end;

procedure TInlinedTests.LongBacktraceIsCut;
var
  Stack: TBacktrace;
  Index, Count: Integer;
begin
  AddNested;
  Find(skInfo, Length(Sections[skInfo]));
  for Count := MostFrames - 5 to MostFrames do
  begin
    Stack := Default(TBacktrace);
    Stack.Count := Count;
    for Index := 0 to Count - 1 do
      Stack.Frames[Index] := Bias + CodeStart + 32 + 5;
    Stack.Frames[0] := Bias + CodeStart + Cardinal(Count mod 3) * 16 + 5; // with 0 to 2 inlined
    BacktraceExpand(Symbols, Stack);
    AssertEquals('frames', MostFrames + 1, Stack.Count);
    AssertEquals('the last one', CutFrame, Stack.Frames[MostFrames]);
  end;
end;

procedure TInlinedTests.FileOfTheProgramMayBeginAsAUnitOfGenerics;
var
  Symbol: TSymbol;
begin
  Symbol := Default(TSymbol);
  Symbol.Routine := 'GENERICS_$$_LISTS';
  Symbol.FileName := 'generics.lpr';
  Symbol.Line := 5;
  AssertFalse('of the program', SymbolIsLibrary(@Symbol));
  Symbol.FileName := 'generics.dictionaries.inc';
  AssertTrue('of Free Pascal', SymbolIsLibrary(@Symbol));
end;

procedure TInlinedTests.LineOfARowIsTheProgramsOwn;
var
  Stack: TBacktrace;
begin
  AddNested;
  IsHeader := True;
  Find(skInfo, Length(Sections[skInfo]));
  ExpectFrames(32, 'beta code.h:99*, alpha vector.h:22*, outer own.cc:11');
  Stack := Default(TBacktrace);
  Stack.Count := 2;
  Stack.Frames[0] := Bias + CodeStart + 32 + 5;
  Stack.Frames[1] := Bias + CodeStart + 16 + 5;
  AssertEquals('line', 11, SymbolsFind(Symbols, AdvicePlace(Symbols, Stack))^.Line);
  AssertEquals('frame', Stack.Frames[0], AdvicePlace(Symbols, Stack));
end;

var
  Received: TBacktrace;

function ReceiveFrames(Frames: PNativeUInt; Count: Cardinal; Buffer: PAnsiChar; Size: NativeUInt):
  NativeUInt;
begin
  Received.Count := Count;
  Move(Frames^, Received.Frames, Count * SizeOf(Frames^));
  Result := 0;
end;

procedure TInlinedTests.TextOfTheProgramGetsReturnAddresses;
var
  Text: TText;
  Symbolizer: TSymbolizer;
  Stack: TBacktrace;
begin
  AddNested;
  Find(skInfo, Length(Sections[skInfo]));
  Symbolizer := Default(TSymbolizer);
  Symbolizer.Symbols := Symbols;
  Stack := Default(TBacktrace);
  Stack.Count := 2;
  Stack.Frames[0] := Bias + CodeStart + 32 + 5;
  Stack.Frames[1] := Bias + CodeStart + 5;
  TextOpen(Text, OsPageSize);
  Stacks.FramesText := ReceiveFrames;
  BacktraceAddText(Text, Symbolizer, Stack);
  Stacks.FramesText := nil;
  BacktraceAddText(Text, Symbolizer, Stack);
  AssertEquals('frames', 2, Received.Count);
  AssertEquals('the first', Stack.Frames[0], Received.Frames[0]);
  AssertEquals('the second', Stack.Frames[1], Received.Frames[1]);
  AssertTrue('text', Pos('  beta  code.h:99  (inlined)', Text.Start) > 0);
  TextClose(Text);
end;

procedure TInlinedTests.CutSectionsAreNotReadPastTheirEnd;
var
  Kind: TSectionKind;
  Size: Integer;
begin
  AddNested;
  AddUnit(4, FirstEntry + #2'alpha'#0 + #4 + Number(UnitHead, 4) + Number(0, 4) + #1#7#0);
  Sections[skRanges] := Address(16) + Address(32) + Address(0) + Address(0);
  AddUnit(5, FirstEntry + #2'gamma'#0 + #4 + Number(Unit5Head, 4) + Number(0, 4) + #2#7#0);
  Sections[skRangeLists] := #1#1#3#1#16#6 + Address(CodeStart) + Address(CodeStart + 16) + #0;
  Sections[skAddresses] := Address(CodeStart + 16) + Address(CodeStart + 48);
  for Kind in TSectionKind do
    for Size := 0 to Length(Sections[Kind]) do
      Find(Kind, Size);
  // Then all are whole.
  AssertTrue('items', Symbols.Count > 12);
end;

procedure TInlinedTests.DamagedSectionsAreNotReadPastTheirEnd;
var
  Generator: TGenerator;
  Turn, Place: Integer;
  Kind: TSectionKind;
  Kept: Char;
begin
  Generator.Start(34);
  AddNested;
  AddUnit(5, FirstEntry + #2'gamma'#0 + #4 + Number(Unit5Head, 4) + Number(0, 4) + #2#7#0);
  Sections[skRangeLists] := #1#1#3#1#16#6 + Address(CodeStart) + Address(CodeStart + 16) + #0;
  Sections[skAddresses] := Address(CodeStart + 16) + Address(CodeStart + 48);
  for Turn := 1 to 20000 do
  begin
    repeat
      Kind := TSectionKind(Generator.Below(Ord(High(TSectionKind)) + 1));
    until Sections[Kind] <> '';
    Place := 1 + Integer(Generator.Below(Length(Sections[Kind])));
    UniqueString(Sections[Kind]);
    Kept := Sections[Kind][Place];
    Sections[Kind][Place] := Chr(Generator.Below(256));
    Find(skInfo, Length(Sections[skInfo]));
    if Generator.Below(4) > 0 then
      Sections[Kind][Place] := Kept;
    AssertTrue('items', Symbols.Count <= 8 + 8 * MostInlined);
    Frames(32);
  end;
end;

initialization
  RegisterTest(TInlinedTests);

end.
