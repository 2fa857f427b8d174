/// The modules of the process as the dynamic linker knows them: segments and exported names.
//
// Owns:       nothing.
// Invariants: a module that the linker visits is loaded until the visit ends; libc and this library
//             stay for ever.
// Callers:    any thread that does not hold a lock of the dynamic linker's caller.
// Source:     Linux Standard Base 5.0, dl_iterate_phdr; System V ABI, chapter 5 (dynamic section);
//             binutils, the section .gnu.hash.
unit LaneMM.C.Modules;

{$I ../src/LaneMM.inc}

interface

const
  // Values of TSegment.Kind.

  /// A part of the file in memory.
  LoadSegment = 1;
  /// The dynamic section.
  DynamicSegment = 2;
  /// The initial thread-local variables.
  TlsSegment = 7;

  // Bits of TSegment.Flags.

  /// The segment is code.
  IsCode = 1;
  /// The segment can be written.
  IsWritable = 2;

  // Entries of ModulesAuxiliary.

  /// The address of the program's segments.
  ProgramHeaders = 3;
  /// The address of random bytes, in the stack of the main thread.
  RandomBytes = 25;

type
  /// A part of a module.
  TSegment = record
    Kind, Flags: Cardinal;                      //< const   LoadSegment etc., IsWritable etc.
    Offset, Address, Physical: NativeUInt;      //< const   Address is relative to TModule.Base
    FileSize, Size, Alignment: NativeUInt;      //< const   Size bytes in memory
  end;
  PSegment = ^TSegment;

  /// A module (struct dl_phdr_info).
  TModule = record
    Base: NativeUInt;        //< const   address of the module's address 0
    Name: PAnsiChar;         //< const   its path; empty for the program
    Segments: PSegment;      //< const   SegmentCount of them
    SegmentCount: Word;      //< const   number of segments
    Added, Removed: UInt64;  //< const   modules loaded and unloaded so far
    TlsNumber: NativeUInt;   //< const   number of its thread-local variables; 0: none
    TlsData: NativeUInt;     //< const   those of the calling thread; 0: not allocated yet
  end;
  PModule = ^TModule;

  /// A symbol.
  TSymbol = record
    Name: Cardinal;          //< const   offset of its name
    Info, Other: Byte;       //< const   type and binding, visibility
    Section: Word;           //< const   0: not defined in this module
    Value, Size: NativeUInt; //< racy    address relative to the module's base, bytes
  end;
  PSymbol = ^TSymbol;

  /// The exported names of a module.
  TNames = record
    Base: NativeUInt;        //< owner   TModule.Base
    Symbols: PSymbol;        //< owner   all symbols
    Texts: PAnsiChar;        //< owner   the names
    Hash: PCardinal;         //< owner   the table of .gnu.hash; nil: no names can be found
  end;

  /// Visits a module; a result that is not 0 ends the visit.
  TModuleCall = function(Module: PModule; Size: NativeUInt; Context: Pointer): LongInt; cdecl;

/// Calls Visitor for each module, the program first.
function ModulesVisit(Visitor: TModuleCall; Context: Pointer): LongInt; cdecl;
  external name 'dl_iterate_phdr';
/// Returns whether a segment of the module holds Address.
function ModuleHas(Module: PModule; Address: NativeUInt): Boolean;
/// Returns whether the module is the program, which musl names, too.
function ModuleIsProgram(Module: PModule): Boolean;
/// Returns an entry of the auxiliary vector of the process; 0 if there is none.
function ModulesAuxiliary(Entry: NativeUInt): NativeUInt; cdecl; external name 'getauxval';
/// Finds the tables of the names that a module exports.
procedure NamesOpen(Module: PModule; out Names: TNames);
/// Returns the symbol that defines Name, or nil.
function NamesFind(const Names: TNames; Name: PAnsiChar): PSymbol;
/// Returns the number of symbols, the last exported one included.
function NamesCount(const Names: TNames): NativeUInt;
/// Returns the address of the first definition of Name in the modules after this library, else in
/// those before; nil without any. Unlike dlsym it is there in every version of glibc, without
/// libdl, and finds names of modules that were opened for one plugin alone.
function ModulesFind(Name: PAnsiChar): Pointer;

implementation

type
  TDynamic = record
    Tag, Value: NativeUInt;
  end;
  PDynamic = ^TDynamic;

const
  // Tags of the dynamic section.
  TagTexts = 5;
  TagSymbols = 6;
  TagHash = $6FFFFEF5;

  // Places in the table, in words.
  BucketCount = 0;
  FirstHashed = 1;
  FilterCount = 2;
  FilterStart = 4;

function ModuleHas(Module: PModule; Address: NativeUInt): Boolean;
var
  Index: NativeInt;
  Segment: PSegment;
begin
  Result := False;
  for Index := 0 to NativeInt(Module^.SegmentCount) - 1 do
  begin
    Segment := @Module^.Segments[Index];
    if (Segment^.Kind = LoadSegment)
      and (Address - (Module^.Base + Segment^.Address) < Segment^.Size) then
      Exit(True);
  end;
end;

function ModuleIsProgram(Module: PModule): Boolean;
begin
  Result := (Module^.Name^ = #0)
    or (NativeUInt(Module^.Segments) = ModulesAuxiliary(ProgramHeaders));
end;

// The dynamic linker adds the base in place, but for modules whose section is read-only.
function Absolute(Base, Value: NativeUInt): Pointer;
begin
  if Value < Base then
    Inc(Value, Base);
  Result := Pointer(Value);
end;

procedure ReadDynamic(Entry: PDynamic; var Names: TNames);
begin
  while Entry^.Tag <> 0 do
  begin
    case Entry^.Tag of
      TagTexts: Names.Texts := Absolute(Names.Base, Entry^.Value);
      TagSymbols: Names.Symbols := Absolute(Names.Base, Entry^.Value);
      TagHash: Names.Hash := Absolute(Names.Base, Entry^.Value);
    end;
    Inc(Entry);
  end;
end;

procedure NamesOpen(Module: PModule; out Names: TNames);
var
  Index: NativeInt;
begin
  Names := Default(TNames);
  Names.Base := Module^.Base;
  for Index := 0 to NativeInt(Module^.SegmentCount) - 1 do
    if Module^.Segments[Index].Kind = DynamicSegment then
      ReadDynamic(PDynamic(Module^.Base + Module^.Segments[Index].Address), Names);
end;

function Buckets(const Names: TNames): PCardinal;
begin
  Result := Names.Hash + FilterStart + 2 * Names.Hash[FilterCount];
end;

// Returns the hash value of symbol number Index; its lowest bit is set in the last one of a bucket.
function HashOf(const Names: TNames; Index: Cardinal): Cardinal;
begin
  Result := Buckets(Names)[Names.Hash[BucketCount] + Index - Names.Hash[FirstHashed]];
end;

function IsSame(First, Second: PAnsiChar): Boolean;
begin
  while (First^ = Second^) and (First^ <> #0) do
  begin
    Inc(First);
    Inc(Second);
  end;
  Result := First^ = Second^;
end;

function HashName(Name: PAnsiChar): Cardinal;
begin
  Result := 5381;
  while Name^ <> #0 do
  begin
    Result := Result * 33 + Ord(Name^);
    Inc(Name);
  end;
end;

function NamesFind(const Names: TNames; Name: PAnsiChar): PSymbol;
var
  Wanted, Index, Hash: Cardinal;
begin
  Result := nil;
  if (Names.Hash = nil) or (Names.Hash[BucketCount] = 0) then
    Exit;
  Wanted := HashName(Name);
  Index := Buckets(Names)[Wanted mod Names.Hash[BucketCount]];
  if Index = 0 then
    Exit;
  repeat
    Hash := HashOf(Names, Index);
    if ((Hash xor Wanted) shr 1 = 0) and (Names.Symbols[Index].Section <> 0)
      and IsSame(Names.Texts + Names.Symbols[Index].Name, Name) then
      Exit(@Names.Symbols[Index]);
    Inc(Index);
  until Hash and 1 <> 0;
end;

function NamesCount(const Names: TNames): NativeUInt;
var
  Index: NativeInt;
begin
  Result := 0;
  if Names.Hash = nil then
    Exit;
  for Index := 0 to NativeInt(Names.Hash[BucketCount]) - 1 do
    if Buckets(Names)[Index] > Result then
      Result := Buckets(Names)[Index];
  if Result = 0 then
    Exit;
  while HashOf(Names, Result) and 1 = 0 do
    Inc(Result);
  Inc(Result);
end;

type
  TSearch = record
    Name: PAnsiChar;
    IsHere: Boolean; // the visit has come to the modules to search
    Found: Pointer;
  end;
  PSearch = ^TSearch;

function SearchIn(Module: PModule; Size: NativeUInt; Context: Pointer): LongInt; cdecl;
var
  Search: PSearch;
  Names: TNames;
  Symbol: PSymbol;
begin
  Search := Context;
  Result := 0;
  if ModuleHas(Module, NativeUInt(@SearchIn)) then
  begin
    Search^.IsHere := True;
    Exit;
  end;
  if not Search^.IsHere then
    Exit;
  NamesOpen(Module, Names);
  Symbol := NamesFind(Names, Search^.Name);
  if Symbol = nil then
    Exit;
  Search^.Found := Pointer(Names.Base + Symbol^.Value);
  Result := 1;
end;

function ModulesFind(Name: PAnsiChar): Pointer;
var
  Search: TSearch;
begin
  Search.Name := Name;
  Search.IsHere := False;
  Search.Found := nil;
  if ModulesVisit(SearchIn, @Search) = 0 then
  begin
    Search.IsHere := True;
    ModulesVisit(SearchIn, @Search);
  end;
  Result := Search.Found;
end;

end.
