/// The executable files of Windows: their sections, the names of their routines, and on 64-bit
/// Windows the table of routines and their frames that linkers write.
//
// Owns:       nothing; the caller maps the file.
// Invariants: checks the offsets that it reads from a file against the file's size; names end
//             within their table. A name of eight characters, which has no end, counts as none.
// Callers:    any thread.
// Names:      Free Pascal writes the routines of interfaces and of programs into the symbol table,
//             and where the code of a unit with debug information begins and ends. Another routine
//             of such a unit gets the name of the unit, or that of the routine before it, where
//             LaneMM and System need no more; elsewhere none, as far as .pdata says.
// Source:     Microsoft, PE Format: headers, section and symbol tables, .pdata; x64 exception
//             handling: RUNTIME_FUNCTION, UNWIND_INFO, UNWIND_CODE.
unit LaneMM.Pe;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.StacksState, LaneMM.Symbols, LaneMM.Dwarf;

type
  /// A mapped file and its tables.
  TPeFile = record
    Image: PByte;             //< its contents, mapped read-only
    Size: NativeUInt;         //< bytes
    Base: NativeUInt;         //< address that the module was loaded to
    Bias: NativeUInt;         //< distance from the addresses in the file to those of the process
    LoadedSize: NativeUInt;   //< bytes of the loaded module
    Sections: NativeUInt;     //< offset of the section table
    SectionCount: Cardinal;   //< its entries
    Symbols: NativeUInt;      //< offset of the symbol table; the texts follow it
    SymbolCount: NativeUInt;  //< its entries
  end;

  PRoutine = ^TRoutine;
  /// An entry of the table of routines, which is sorted. Its numbers count from the start of the
  /// module.
  TRoutine = record
    First: Cardinal;   //< const   start of its code
    Limit: Cardinal;   //< const   end of its code
    Frame: Cardinal;   //< const   what its prologue does
  end;

/// Reads the headers of a mapped file that was loaded to Base. Returns false if it is no executable
/// file of Windows.
function PeOpen(out Pe: TPeFile; Image: PByte; Size, Base: NativeUInt): Boolean;
/// Returns a section of the file; nothing if it has none of this name.
function PeFindSection(const Pe: TPeFile; const Name: ShortString): TDwarfSection;
/// Returns where a loaded module of 64 bits has the table of its routines; Size receives its bytes,
/// 0 if there is none.
function PeRoutines(const Pe: TPeFile; out Size: NativeUInt): NativeUInt;
/// Sets the routines of the symbols that lie in the module. Offset holds the start of the routine
/// meanwhile; it must be 0.
procedure PeFindRoutines(const Pe: TPeFile; const Symbols: TSymbols);
/// Returns the entry of a table of Size bytes whose code holds Offset; nil if none does.
function RoutineAt(Table: PRoutine; Size, Offset: NativeUInt): PRoutine;
/// Returns whether the table of this module has the routine that the call before Return lies in;
/// Rule receives how to unwind it, behind its prologue.
function RoutineRule(Return: NativeUInt; out Rule: TUnwindRule): Boolean;

implementation

uses
  LaneMM.Bits, LaneMM.Text;

{$I ../LaneMM.AfterUses.inc}

const
  // Offsets in the file; those of the headers count from the signature `PE`.
  HeaderAt = $3C;
  Signature = $4550;
  SectionCountAt = 6;
  SymbolsAt = 12;
  SymbolCountAt = 16;
  OptionalSizeAt = 20;
  OptionalAt = 24;
  Base32At = OptionalAt + 28;
  Base64At = OptionalAt + 24;
  LoadedSizeAt = OptionalAt + 56;
  HeadersSize = OptionalAt + 60;
  RoutinesAt = OptionalAt + 136; // of 64 bits: where the loaded module has .pdata, and its bytes
  Is64Magic = $20B;

  // Fields of an entry of the section table, after its name.
  NameLength = 8;
  SectionLoadedSize = 8;
  SectionAddress = 12;
  SectionSize = 16;
  SectionOffset = 20;
  SectionFlags = 36;
  SectionEntry = 40;
  ContainsCode = $20;

  // Fields of an entry of the symbol table, after its name.
  SymbolValue = 8;
  SymbolSection = 12;
  SymbolExtras = 17;
  SymbolEntry = 18;

// Returns whether Length bytes from Offset on lie in the file.
function Holds(const Pe: TPeFile; Offset, Length: NativeUInt): Boolean; inline;
begin
  Result := (Offset <= Pe.Size) and (Length <= NativeUInt(Pe.Size - Offset));
end;

function HalfAt(const Pe: TPeFile; Offset: NativeUInt): Cardinal; inline;
begin
  Result := PWord(Pe.Image + Offset)^;
end;

function LongAt(const Pe: TPeFile; Offset: NativeUInt): Cardinal; inline;
begin
  Result := PCardinal(Pe.Image + Offset)^;
end;

function PeOpen(out Pe: TPeFile; Image: PByte; Size, Base: NativeUInt): Boolean;
var
  Header: NativeUInt;
begin
  Pe := Default(TPeFile);
  Pe.Image := Image;
  Pe.Size := Size;
  Pe.Base := Base;
  if not Holds(Pe, HeaderAt, SizeOf(Cardinal)) then
    Exit(False);
  Header := LongAt(Pe, HeaderAt);
  if not Holds(Pe, Header, HeadersSize) or (LongAt(Pe, Header) <> Signature) then
    Exit(False);
  Pe.SectionCount := HalfAt(Pe, Header + SectionCountAt);
  Pe.Sections := Header + OptionalAt + HalfAt(Pe, Header + OptionalSizeAt);
  Pe.Symbols := LongAt(Pe, Header + SymbolsAt);
  Pe.SymbolCount := LongAt(Pe, Header + SymbolCountAt);
  Pe.LoadedSize := LongAt(Pe, Header + LoadedSizeAt);
  if HalfAt(Pe, Header + OptionalAt) = Is64Magic then
    Pe.Bias := Base - PNativeUInt(Pe.Image + Header + Base64At)^
  else
    Pe.Bias := Base - LongAt(Pe, Header + Base32At);
  Result := Holds(Pe, Pe.Sections, NativeUInt(Pe.SectionCount) * SectionEntry);
  if not Holds(Pe, Pe.Symbols, Pe.SymbolCount * SymbolEntry) then
    Pe.SymbolCount := 0;
end;

function PeRoutines(const Pe: TPeFile; out Size: NativeUInt): NativeUInt;
var
  Header: NativeUInt;
begin
  Size := 0;
  Header := LongAt(Pe, HeaderAt);
  if not Holds(Pe, Header + RoutinesAt, 2 * SizeOf(Cardinal)) then
    Exit(0);
  Result := Pe.Base + LongAt(Pe, Header + RoutinesAt);
  Size := LongAt(Pe, Header + RoutinesAt + SizeOf(Cardinal));
end;

// ---------------------------------------------------------------------------- names

// Returns the text at Offset of the string table; empty if it does not end within the file.
function TextAt(const Pe: TPeFile; Offset: NativeUInt): PAnsiChar;
var
  Start, Last: NativeUInt;
begin
  Result := '';
  Start := Pe.Symbols + Pe.SymbolCount * SymbolEntry + Offset;
  if (Pe.SymbolCount = 0) or not Holds(Pe, Start, 1) then
    Exit;
  Last := Start;
  while (Last < Pe.Size) and (Pe.Image[Last] <> 0) do
    Inc(Last);
  if Last < Pe.Size then
    Result := PAnsiChar(Pe.Image + Start);
end;

// Returns a name that is ended by #0 within its eight bytes; else an empty one.
function ShortName(P: PAnsiChar): PAnsiChar;
begin
  Result := P;
  if P[NameLength - 1] <> #0 then
    Result := '';
end;

// Returns the name of a section: a slash and digits stand for an offset of the string table.
function SectionName(const Pe: TPeFile; Entry: NativeUInt): PAnsiChar;
var
  Offset: NativeUInt;
  Index: Cardinal;
begin
  Result := ShortName(PAnsiChar(Pe.Image + Entry));
  if Result^ <> '/' then
    Exit;
  Offset := 0;
  Index := 1;
  while Result[Index] in ['0'..'9'] do
  begin
    Offset := Offset * 10 + NativeUInt(Ord(Result[Index]) - Ord('0'));
    Inc(Index);
  end;
  Result := TextAt(Pe, Offset);
end;

// ---------------------------------------------------------------------------- sections

function PeFindSection(const Pe: TPeFile; const Name: ShortString): TDwarfSection;
var
  Entry, Offset, Length, LoadedSize: NativeUInt;
  Index: Cardinal;
begin
  Result := Default(TDwarfSection);
  Entry := Pe.Sections;
  for Index := 1 to Pe.SectionCount do
  begin
    if TextIs(SectionName(Pe, Entry), Name) then
    begin
      Offset := LongAt(Pe, Entry + SectionOffset);
      // In the file zeros fill a section up, which a table must not have. 0: unknown.
      LoadedSize := LongAt(Pe, Entry + SectionLoadedSize);
      Length := LongAt(Pe, Entry + SectionSize);
      if (LoadedSize <> 0) and (LoadedSize < Length) then
        Length := LoadedSize;
      if not Holds(Pe, Offset, Length) then
        Exit;
      Result.Start := Pe.Image + Offset;
      Result.Size := Length;
      Exit;
    end;
    Inc(Entry, SectionEntry);
  end;
end;

// Returns the address of section Number, from 1 on, in the process; 0 if it has no code.
function CodeAddress(const Pe: TPeFile; Number: Cardinal): NativeUInt;
var
  Entry: NativeUInt;
begin
  Result := 0;
  if (Number = 0) or (Number > Pe.SectionCount) then
    Exit;
  Entry := Pe.Sections + NativeUInt(Number - 1) * SectionEntry;
  if LongAt(Pe, Entry + SectionFlags) and ContainsCode <> 0 then
    Result := Pe.Base + LongAt(Pe, Entry + SectionAddress);
end;

// ---------------------------------------------------------------------------- symbols

// Gives the routine that begins at Start to the first symbol from there on, unless that has one
// that begins later.
procedure NameFrom(const Pe: TPeFile; const Symbols: TSymbols; Start: NativeUInt; Name: PAnsiChar);
var
  Index: NativeInt;
  Symbol: PSymbol;
begin
  Index := SymbolsIndexOf(Symbols, Start);
  if Index = Symbols.Count then
    Exit;
  Symbol := @Symbols.Items[Index];
  if (NativeUInt(Symbol^.Address - Pe.Base) >= Pe.LoadedSize) or (Symbol^.Offset > Start) then
    Exit;
  Symbol^.Routine := Name;
  Symbol^.Offset := Start;
end;

// Gives each symbol the routine of the one before it, unless its own begins later: the table has no
// sizes.
procedure NameRest(const Pe: TPeFile; const Symbols: TSymbols);
var
  Index: NativeInt;
  Symbol: PSymbol;
begin
  for Index := SymbolsIndexOf(Symbols, Pe.Base) + 1 to Symbols.Count - 1 do
  begin
    Symbol := @Symbols.Items[Index];
    if NativeUInt(Symbol^.Address - Pe.Base) >= Pe.LoadedSize then
      Exit;
    if Symbol[-1].Offset <= Symbol^.Offset then
      Continue;
    Symbol^.Routine := Symbol[-1].Routine;
    Symbol^.Offset := Symbol[-1].Offset;
  end;
end;

// Returns the name that a symbol gives to code from there on; nil where the code of a unit ends. On
// i386 names of C, as that of the main block, begin with an underscore.
function CodeName(Name: PAnsiChar): PAnsiChar;
const
  UnitStart: ShortString = 'DEBUGSTART_$';
  UnitEnd: ShortString = 'DEBUGEND_$';
begin
  Result := Name;
  if TextBegins(Name, UnitStart) then
    Inc(Result, Length(UnitStart))
  else if TextBegins(Name, UnitEnd) then
    Result := nil
  else if TextIs(Name, '_main') then
    Inc(Result);
end;

function RoutineAt(Table: PRoutine; Size, Offset: NativeUInt): PRoutine;
var
  First, Limit, Middle: NativeUInt;
begin
  First := 0;
  Limit := Size div SizeOf(TRoutine);
  while First < Limit do
  begin
    Middle := (First + Limit) div 2;
    if Table[Middle].Limit <= Offset then
      First := Middle + 1
    else
      Limit := Middle;
  end;
  Result := @Table[First];
  if (First >= Size div SizeOf(TRoutine)) or (Result^.First > Offset) then
    Result := nil;
end;

// Takes back the names of routines that begin elsewhere.
procedure DropWrongNames(const Pe: TPeFile; const Symbols: TSymbols);
var
  Table: TDwarfSection;
  Offset: NativeUInt;
  Index: NativeInt;
  Symbol: PSymbol;
  Routine: PRoutine;
begin
  Table := PeFindSection(Pe, '.pdata');
  if Table.Start = nil then
    Exit;
  for Index := SymbolsIndexOf(Symbols, Pe.Base) to Symbols.Count - 1 do
  begin
    Symbol := @Symbols.Items[Index];
    Offset := NativeUInt(Symbol^.Address - Pe.Base);
    if Offset >= Pe.LoadedSize then
      Exit;
    Routine := RoutineAt(PRoutine(Table.Start), Table.Size, Offset);
    if (Routine <> nil) and (Pe.Base + Routine^.First <> Symbol^.Offset)
      and not SymbolIsInner(Symbol) then
      Symbol^.Routine := nil;
  end;
end;

procedure PeFindRoutines(const Pe: TPeFile; const Symbols: TSymbols);
var
  Index, Entry, Code: NativeUInt;
  Name: PAnsiChar;
begin
  Index := 0;
  while Index < Pe.SymbolCount do
  begin
    Entry := Pe.Symbols + Index * SymbolEntry;
    Code := CodeAddress(Pe, HalfAt(Pe, Entry + SymbolSection));
    if Code <> 0 then
    begin
      Name := ShortName(PAnsiChar(Pe.Image + Entry));
      if LongAt(Pe, Entry) = 0 then // four zeros stand before an offset of the string table
        Name := TextAt(Pe, LongAt(Pe, Entry + SizeOf(Cardinal)));
      if Name^ <> #0 then
        NameFrom(Pe, Symbols, Code + LongAt(Pe, Entry + SymbolValue), CodeName(Name));
    end;
    Inc(Index, 1 + Pe.Image[Entry + SymbolExtras]);
  end;
  NameRest(Pe, Symbols);
  DropWrongNames(Pe, Symbols);
end;

// ---------------------------------------------------------------------------- frames

const
  // Kinds of codes, and the words that each has; none: unknown.
  Push = 0;
  TakeMuch = 1;
  Take = 2;
  SetFrame = 3;
  Save = 4;
  CodeWords: array[0..15] of Byte = (1, 2, 1, 1, 2, 3, 0, 0, 2, 3, 0, 0, 0, 0, 0, 0);
  // Bits of the first byte of a description, beside its version: another one follows.
  IsChained = $20;
  // The register of frame pointers, in the numbers of instructions.
  FrameRegister = 5;
  WordSize = 8;
  // push rbp; mov rbp, rcx: how Free Pascal begins a block of `finally`.
  BlockStart = $CD894855;

type
  PFrameInfo = ^TFrameInfo;
  // The description of a prologue. Codes follow, that of its last instruction first.
  TFrameInfo = record
    Kind, Size, CodeCount, FramePointer: Byte;
  end;
  // The stack of a routine, from its stack pointer on, as far as the codes were read.
  TFrameReader = record
    Size: Cardinal;     // bytes that they take
    SavedAt: Cardinal;  // where the caller's frame pointer lies
    FrameAt: Cardinal;  // where its own frame pointer leads to
    IsSaved, IsFramed: Boolean;
  end;

procedure ReadSaved(var Reader: TFrameReader; Register, At: Cardinal);
begin
  if Register <> FrameRegister then
    Exit;
  Reader.IsSaved := True;
  Reader.SavedAt := At;
end;

// Reads a code; returns the words that it has, 0 for one that is not known.
function ReadCode(Code: PWord; var Reader: TFrameReader): Cardinal;
var
  Kind, Operand: Cardinal;
begin
  Kind := Code^ shr 8 and 15;
  Operand := Code^ shr 12;
  Result := CodeWords[Kind];
  case Kind of
    Push:
      begin
        ReadSaved(Reader, Operand, Reader.Size);
        Inc(Reader.Size, WordSize);
      end;
    TakeMuch:
      begin
        Inc(Result, Operand);
        if Operand = 0 then
          Inc(Reader.Size, Code[1] * WordSize)
        else
          Inc(Reader.Size, PCardinal(Code + 1)^);
      end;
    Take: Inc(Reader.Size, (Operand + 1) * WordSize);
    SetFrame:
      begin
        Reader.IsFramed := True;
        Reader.FrameAt := Reader.Size;
      end;
    Save: ReadSaved(Reader, Operand, Code[1] * WordSize);
  end;
end;

// Reads the description of a prologue; returns false where it is not known, or has several parts.
function ReadFrame(Info: PFrameInfo; out Reader: TFrameReader): Boolean;
var
  Code, Limit: PWord;
  Words: Cardinal;
begin
  Reader := Default(TFrameReader);
  Code := PWord(Info + 1);
  Limit := Code + Info^.CodeCount;
  Words := Ord(Info^.Kind and IsChained = 0);
  while (Words <> 0) and (Code < Limit) do
  begin
    Words := ReadCode(Code, Reader);
    Inc(Code, Words);
  end;
  Result := Words <> 0;
end;

function RoutineRule(Return: NativeUInt; out Rule: TUnwindRule): Boolean;
var
  Routine: PRoutine;
  Reader: TFrameReader;
begin
  Rule := Default(TUnwindRule);
  Routine := RoutineAt(Stacks.Routines, Stacks.RoutinesSize,
    NativeUInt(Return - 1 - Stacks.Module));
  Result := (Routine <> nil) and ReadFrame(PFrameInfo(Stacks.Module + Routine^.Frame), Reader);
  if not Result then
    Exit;
  Rule.Start := Stacks.Module + Routine^.First;
  Rule.Size := Reader.Size;
  if Reader.IsSaved then
    Rule.SavedFrame := Reader.Size - Reader.SavedAt;
  // Right below the return address, where LaneMM.Unwind looks for it.
  Rule.IsFramed := Reader.IsFramed and (Reader.Size = Reader.FrameAt + WordSize);
  // A block of `finally` has the frame of its routine, whose caller is found. Its return address
  // may lie in the system's handler of exceptions.
  if PCardinal(Rule.Start)^ = BlockStart then
    Rule := FramedRule;
end;

end.
