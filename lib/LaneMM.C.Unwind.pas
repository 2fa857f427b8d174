/// Unwinds one frame, from a routine to its caller, in any module of the process.
//
// Owns:       Known.
// How:        the rule for a return address is read from its module's table once, and kept if it
//             has the usual form: the return address at an offset from the stack pointer, or above
//             the frame pointer.
// Invariants: reads the stack between the stack pointer and its end, and the unwind tables of the
//             modules. The stack pointer only grows, so every walk ends. Of the registers only rsp
//             and rbp are tracked: compiled code defines the end of a frame (the CFA of DWARF) by
//             no other.
// Callers:    UnwindStep: any thread; takes no lock and allocates no memory.
// Errors:     code without a table is unwound by its frame pointer, if that leads to code.
// Source:     DWARF Debugging Information Format 4, section 6.4; Linux Standard Base 5.0, 10.6
//             (.eh_frame, .eh_frame_hdr); glibc 2.35, _dl_find_object.
unit LaneMM.C.Unwind;

{$I ../src/LaneMM.inc}

interface

uses
  LaneMM.StacksState;

/// Finds glibc's search for unwind tables; without it frames are unwound by their frame pointers.
procedure TableUnwindStart;
/// Unwinds a frame, for Stacks.StepFrame; returns false if the caller is unknown.
function TableStep(var Walk: TUnwind; out Rule: TUnwindRule): Boolean;
/// Finds the code of a routine, for Stacks.FindRoutine; returns false without a table.
function TableFindRoutine(Pc: NativeUInt; out First, Limit: NativeUInt): Boolean;
/// Finds the module that Address lies in, and whether it is the program; returns false when libc
/// does not tell.
function TableModuleFind(Address: NativeUInt; out First, Limit: NativeUInt;
  out IsProgram: Boolean): Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.Atomic, LaneMM.Bits, LaneMM.Unwind, LaneMM.Dwarf, LaneMM.C.Modules;

const
  // DWARF numbers of registers.
  RegisterRbp = 6;
  RegisterRsp = 7;
  RegisterReturn = 16;
  // Return addresses whose rule is kept; a power of two.
  KnownCount = 4096;
  // TUnwindRule.Size of the outermost routine: leads out of every stack.
  NoCaller = High(Cardinal);

type
  // glibc's struct dl_find_object.
  TModule = record
    Flags: UInt64;
    First, Limit: NativeUInt;
    LinkMap: Pointer;
    Table: PByte;
    Reserved: array[0..6] of UInt64;
  end;

  TRuleKind = (rkSame, rkAtOffset, rkAtPlace, rkUnknown);
  // Where a register was saved: at an offset from the end of the frame, or at the address that an
  // expression computes.
  TRule = record
    Kind: TRuleKind;
    Offset: NativeInt;
    Place: PByte;
  end;

  TRuleOwner = (roRbp, roReturn, roOther);
  // How to unwind a routine at one of its instructions. The end of the frame is a register and an
  // offset, or the value of an expression.
  TRules = record
    EndRegister: NativeUInt;
    EndOffset: NativeInt;
    EndPlace: PByte;
    Kept: array[TRuleOwner] of TRule;
  end;

  // The state of a call frame program, which changes the rules from instruction to instruction.
  TRun = record
    Code: TDwarfCursor;
    CodeUnit: NativeUInt;
    DataUnit: NativeInt;
    Location: NativeUInt;
    Rules, FirstRules: TRules;
    Saved: array[0..3] of TRules;
    SavedCount: Cardinal;
    IsUnknown: Boolean;
  end;

  // The rule of a return address in one word, and both together in the other: words of two threads
  // that write at once do not match.
  TKnownRule = record
    Key: TAtomicWord;
    Data: TAtomicWord;
  end;

var
  Known: array[0..KnownCount - 1] of TKnownRule; // shared  see TKnownRule
  // const  _dl_find_object, or nil
  FindModule: function(Pc: NativeUInt; out Module: TModule): LongInt; cdecl;

// glibc 2.35 and later. build.sh gives the reference its real name in the static library; the shared
// one looks it up, since the dynamic linker refuses a library with a name of a later glibc.
function LinkedFindModule(Pc: NativeUInt; out Module: TModule): LongInt; cdecl;
  weakexternal name 'lanemm_dl_find_object';

function WordAt(Address: NativeUInt): NativeUInt; inline;
begin
  Result := PNativeUInt(Address)^;
end;

function DistanceAt(P: PByte): NativeInt; inline;
begin
  Result := PLongInt(P)^;
end;

function IsOnStack(const Walk: TUnwind; Address: NativeUInt): Boolean; inline;
begin
  Result := (Address >= Walk.Sp) and (Address < Walk.Limit)
    and (Address and (SizeOf(Pointer) - 1) = 0);
end;

// ---------------------------------------------------------------------------- tables

// Returns the entry of .eh_frame for the last routine that begins at Pc or before, or nil.
function FindEntry(Table: PByte; Pc: NativeUInt): PByte;
const
  UsualEncodings = $3B031B01; // version 1; distances of four bytes, sorted
  CountOffset = 8;
  RowsOffset = 12;
  RowSize = 8;
var
  First, Limit, Middle: NativeInt;
begin
  if (Table = nil) or (PCardinal(Table)^ <> UsualEncodings) then
    Exit(nil);
  First := 0;
  Limit := PCardinal(Table + CountOffset)^;
  while First < Limit do
  begin
    Middle := (First + Limit) div 2;
    if NativeUInt(Table + DistanceAt(Table + RowsOffset + Middle * RowSize)) <= Pc then
      First := Middle + 1
    else
      Limit := Middle;
  end;
  if First = 0 then
    Exit(nil);
  Result := Table + DistanceAt(Table + RowsOffset + (First - 1) * RowSize + 4);
end;

// Returns the fields after the length of an entry.
function OpenEntry(Entry: PByte): TDwarfCursor;
begin
  Result.Next := Entry + 4;
  Result.Limit := Result.Next + PCardinal(Entry)^;
end;

// Returns the bytes of an address in this encoding.
function EncodedSize(Encoding: Byte): Cardinal;
begin
  if Encoding and 7 = 3 then
    Result := 4
  else
    Result := 8;
end;

// Reads the augmentation string at Letters with its data; returns the encoding of addresses.
function ReadEncoding(Letters: PAnsiChar; var Fields: TDwarfCursor): Byte;
begin
  Result := 0;
  Inc(Letters); // z: the length, which the caller has read
  while Letters^ <> #0 do
  begin
    case Letters^ of
      'R':
        Exit(DwarfReadFixed(Fields, 1));
      'P':
        DwarfReadFixed(Fields, EncodedSize(DwarfReadFixed(Fields, 1)));
      'L':
        DwarfReadFixed(Fields, 1);
    end;
    Inc(Letters);
  end;
end;

// Reads the common information entry of several routines; its program yields the initial rules.
function OpenShared(Entry: PByte; out Run: TRun; out Encoding: Byte): Boolean;
var
  Letters: PAnsiChar;
  Length: NativeUInt;
begin
  Run := Default(TRun);
  Run.Code := OpenEntry(Entry);
  Inc(Run.Code.Next, 5); // number, version
  Letters := PAnsiChar(Run.Code.Next);
  while DwarfReadFixed(Run.Code, 1) <> 0 do;
  Run.CodeUnit := DwarfReadUnsigned(Run.Code);
  Run.DataUnit := DwarfReadSigned(Run.Code);
  Result := (DwarfReadUnsigned(Run.Code) = RegisterReturn) and (Letters^ = 'z');
  if not Result then
    Exit;
  Length := DwarfReadUnsigned(Run.Code);
  Entry := Run.Code.Next + Length;
  Encoding := ReadEncoding(Letters, Run.Code);
  Run.Code.Next := Entry;
end;

// ---------------------------------------------------------------------------- the program

function OwnerOf(Number: NativeUInt): TRuleOwner;
begin
  case Number of
    RegisterRbp: Result := roRbp;
    RegisterReturn: Result := roReturn;
  else
    Result := roOther;
  end;
end;

procedure SetRule(var Run: TRun; Number: NativeUInt; Kind: TRuleKind; Offset: NativeInt);
var
  Rule: ^TRule;
begin
  Rule := @Run.Rules.Kept[OwnerOf(Number)];
  Rule^.Kind := Kind;
  Rule^.Offset := Offset;
end;

procedure Restore(var Run: TRun; Number: NativeUInt);
begin
  Run.Rules.Kept[OwnerOf(Number)] := Run.FirstRules.Kept[OwnerOf(Number)];
end;

// Returns the expression at the cursor and skips it.
function ReadPlace(var Run: TRun): PByte;
var
  Length: NativeUInt;
begin
  Result := Run.Code.Next;
  Length := DwarfReadUnsigned(Run.Code);
  Inc(Run.Code.Next, Length);
end;

procedure SetPlace(var Run: TRun; Number: NativeUInt);
begin
  SetRule(Run, Number, rkAtPlace, 0);
  Run.Rules.Kept[OwnerOf(Number)].Place := ReadPlace(Run);
end;

procedure SaveRules(var Run: TRun);
begin
  Run.IsUnknown := Run.SavedCount > High(Run.Saved);
  if Run.IsUnknown then
    Exit;
  Run.Saved[Run.SavedCount] := Run.Rules;
  Inc(Run.SavedCount);
end;

procedure TakeRules(var Run: TRun);
begin
  Run.IsUnknown := Run.SavedCount = 0;
  if Run.IsUnknown then
    Exit;
  Dec(Run.SavedCount);
  Run.Rules := Run.Saved[Run.SavedCount];
end;

procedure SetEnd(var Run: TRun; Number: NativeUInt; Offset: NativeInt);
begin
  Run.Rules.EndPlace := nil;
  Run.Rules.EndRegister := Number;
  Run.Rules.EndOffset := Offset;
end;

// Runs the operations that name a register, or the size of arguments.
procedure RunRegister(var Run: TRun; Operation: Byte);
var
  Number: NativeUInt;
begin
  Number := DwarfReadUnsigned(Run.Code);
  case Operation of
    $05: SetRule(Run, Number, rkAtOffset, NativeInt(DwarfReadUnsigned(Run.Code)) * Run.DataUnit);
    $06: Restore(Run, Number);
    $07: SetRule(Run, Number, rkUnknown, 0);
    $08: SetRule(Run, Number, rkSame, 0);
    $0C: SetEnd(Run, Number, DwarfReadUnsigned(Run.Code));
    $0D: SetEnd(Run, Number, Run.Rules.EndOffset);
    $0E: SetEnd(Run, Run.Rules.EndRegister, Number);
    $10: SetPlace(Run, Number);
    $11: SetRule(Run, Number, rkAtOffset, DwarfReadSigned(Run.Code) * Run.DataUnit);
    $12: SetEnd(Run, Number, DwarfReadSigned(Run.Code) * Run.DataUnit);
    $2E: ; // size of the arguments: not needed
  else
    Run.IsUnknown := True;
  end;
end;

procedure RunOperation(var Run: TRun);
const
  Advance = 1;
  Offset = 2;
  RestoreFirst = 3;
var
  Operation, Low: Byte;
begin
  Operation := DwarfReadFixed(Run.Code, 1);
  Low := Operation and 63;
  case Operation shr 6 of
    Advance: Inc(Run.Location, Low * Run.CodeUnit);
    Offset: SetRule(Run, Low, rkAtOffset, NativeInt(DwarfReadUnsigned(Run.Code)) * Run.DataUnit);
    RestoreFirst: Restore(Run, Low);
  else
    case Operation of
      $00: ;
      $02: Inc(Run.Location, DwarfReadFixed(Run.Code, 1) * Run.CodeUnit);
      $03: Inc(Run.Location, DwarfReadFixed(Run.Code, 2) * Run.CodeUnit);
      $04: Inc(Run.Location, DwarfReadFixed(Run.Code, 4) * Run.CodeUnit);
      $0A: SaveRules(Run);
      $0B: TakeRules(Run);
      $0F: Run.Rules.EndPlace := ReadPlace(Run);
      $13: SetEnd(Run, Run.Rules.EndRegister, DwarfReadSigned(Run.Code) * Run.DataUnit);
    else
      RunRegister(Run, Operation);
    end;
  end;
end;

// Runs the program up to the instruction at Pc.
procedure RunTo(var Run: TRun; Pc: NativeUInt);
begin
  while (Run.Code.Next < Run.Code.Limit) and (Run.Location <= Pc) and not Run.IsUnknown do
    RunOperation(Run);
end;

// Reads the entry of a routine up to its program; Run is that of the entry it shares.
function OpenRoutine(Entry: PByte; out Run: TRun; out Own: TDwarfCursor;
  out First, Size: NativeUInt): Boolean;
var
  Encoding: Byte;
begin
  Own := OpenEntry(Entry);
  Result := OpenShared(Own.Next - PCardinal(Own.Next)^, Run, Encoding);
  if not Result then
    Exit;
  Inc(Own.Next, 4);
  First := NativeUInt(Own.Next + DistanceAt(Own.Next)); // as in the sorted table
  Inc(Own.Next, EncodedSize(Encoding));
  Size := DwarfReadFixed(Own, EncodedSize(Encoding));
end;

// Reads the rules at Pc from the entry of its routine; returns false if they are unknown.
function FindRules(Entry: PByte; Pc: NativeUInt; out Rules: TRules): Boolean;
var
  Run: TRun;
  Own: TDwarfCursor;
  First, Size, Length: NativeUInt;
begin
  Result := OpenRoutine(Entry, Run, Own, First, Size);
  if not Result then
    Exit;
  RunTo(Run, Pc);
  Run.FirstRules := Run.Rules;
  Length := DwarfReadUnsigned(Own);
  Inc(Own.Next, Length);
  Run.Code := Own;
  Run.Location := First;
  RunTo(Run, Pc);
  Rules := Run.Rules;
  Result := (Pc - First < Size) and not Run.IsUnknown;
end;

// ---------------------------------------------------------------------------- steps

// Reads the value of a register in the routine; returns false for one that is not tracked.
function ReadRegister(const Walk: TUnwind; Number: NativeUInt;
  out Value: NativeUInt): Boolean;
begin
  Result := True;
  case Number of
    RegisterRbp: Value := Walk.Frame;
    RegisterRsp: Value := Walk.Sp;
  else
    Result := False;
  end;
end;

// Evaluates an expression: a register and an offset, then any number of dereferences.
function FindPlace(const Walk: TUnwind; Place: PByte; out Address: NativeUInt): Boolean;
const
  RegisterAndOffset = $70;
  Dereference = $06;
var
  Code: TDwarfCursor;
  Length, Number: NativeUInt;
begin
  Code.Next := Place;
  Code.Limit := Place + 16;
  Length := DwarfReadUnsigned(Code);
  Code.Limit := Code.Next + Length;
  Number := DwarfReadFixed(Code, 1) - RegisterAndOffset;
  Result := ReadRegister(Walk, Number, Address);
  if not Result then
    Exit;
  Inc(Address, DwarfReadSigned(Code));
  while Result and (Code.Next < Code.Limit) do
  begin
    Result := (DwarfReadFixed(Code, 1) = Dereference) and IsOnStack(Walk, Address);
    if Result then
      Address := WordAt(Address);
  end;
end;

function FindEnd(const Walk: TUnwind; const Rules: TRules;
  out FrameEnd: NativeUInt): Boolean;
begin
  if Rules.EndPlace <> nil then
    Exit(FindPlace(Walk, Rules.EndPlace, FrameEnd));
  Result := ReadRegister(Walk, Rules.EndRegister, FrameEnd);
  Inc(FrameEnd, Rules.EndOffset);
end;

// Replaces Value by its value in the caller, according to Rule, and At by its address, if it was
// saved; returns false if unknown.
function Recover(const Walk: TUnwind; const Rule: TRule; FrameEnd: NativeUInt;
  var Value, At: NativeUInt): Boolean;
var
  Address: NativeUInt;
begin
  case Rule.Kind of
    rkSame: Exit(True);
    rkAtOffset: Address := FrameEnd + NativeUInt(Rule.Offset);
    rkAtPlace:
      if not FindPlace(Walk, Rule.Place, Address) then
        Exit(False);
  else
    Exit(False);
  end;
  Result := IsOnStack(Walk, Address);
  if not Result then
    Exit;
  Value := WordAt(Address);
  At := Address;
end;

// Unwinds by rules of any form.
function LeaveByTable(var Walk: TUnwind; const Rules: TRules): Boolean;
var
  FrameEnd, Return, Frame, At: NativeUInt;
begin
  Return := 0;
  Frame := Walk.Frame;
  At := 0;
  Result := FindEnd(Walk, Rules, FrameEnd) and (FrameEnd > Walk.Sp)
    and (FrameEnd <= Walk.Limit)
    and Recover(Walk, Rules.Kept[roReturn], FrameEnd, Return, At) and (Return <> 0);
  if not Result then
    Exit;
  At := 0;
  Recover(Walk, Rules.Kept[roRbp], FrameEnd, Frame, At);
  Walk.Pc := Return;
  Walk.Sp := FrameEnd;
  Walk.Frame := Frame;
  Walk.FrameAt := At;
end;

// Unwinds a routine that has a frame pointer and no table; returns false if its caller is no code.
function LeaveByFrame(var Walk: TUnwind; out Rule: TUnwindRule): Boolean;
var
  Slot, Return: NativeUInt;
  Module: TModule;
begin
  Rule := Default(TUnwindRule);
  Rule.IsFramed := True;
  Rule.SavedFrame := SizeOf(Pointer);
  Slot := Walk.Frame + SizeOf(Pointer);
  Result := (Slot > Walk.Sp) and IsOnStack(Walk, Slot);
  if not Result then
    Exit;
  Return := WordAt(Slot);
  Result := ((@FindModule = nil) or (FindModule(Return, Module) = 0))
    and UnwindLeave(Walk, Rule, Return);
end;

// ---------------------------------------------------------------------------- known rules

// Makes the rule of a routine without a caller, or of one that has the usual form. Returns false
// for any other.
function IsUsual(const Rules: TRules; out Rule: TUnwindRule): Boolean;
const
  ReturnOffset = -SizeOf(Pointer);
  FramedEnd = 2 * SizeOf(Pointer);
var
  Saved: NativeInt;
begin
  Rule := Default(TUnwindRule);
  Rule.Trust := rtExact;
  Rule.Size := NoCaller;
  if Rules.Kept[roReturn].Kind = rkUnknown then
    Exit(True);
  Saved := 0;
  if Rules.Kept[roRbp].Kind = rkAtOffset then
    Saved := ReturnOffset - Rules.Kept[roRbp].Offset;
  Rule.SavedFrame := Saved;
  Rule.IsFramed := Rules.EndRegister = RegisterRbp;
  Result := (Rules.EndPlace = nil) and (Rules.Kept[roRbp].Kind <> rkAtPlace)
    and (Rules.Kept[roReturn].Kind = rkAtOffset) and (Rules.Kept[roReturn].Offset = ReturnOffset);
  if not Result then
    Exit;
  if Rule.IsFramed then
    Exit((Rules.EndOffset = FramedEnd) and (Saved in [0, SizeOf(Pointer)]));
  Rule.Size := Rules.EndOffset + ReturnOffset;
  Result := (Rules.EndRegister = RegisterRsp) and (Rules.EndOffset >= SizeOf(Pointer))
    and (Rules.EndOffset < High(LongInt)) and (Saved >= 0) and (Saved <= NativeInt(Rule.Size));
end;

function PlaceOf(Pc: NativeUInt): Pointer; inline;
begin
  Result := @Known[(Pc xor Pc shr 12) mod KnownCount];
end;

function KeyOf(Pc, Data: NativeUInt): NativeUInt; inline;
begin
  Result := Pc xor Data xor LoadAcquire(Stacks.CodeChanges) * SpreadFactor;
end;

// Keeps an exact rule. The lowest bit is always set.
procedure Keep(Pc: NativeUInt; const Rule: TUnwindRule);
var
  Place: ^TKnownRule;
  Data: NativeUInt;
begin
  Data := NativeUInt(Rule.Size) shl 32 or Rule.SavedFrame shl 2 or Ord(Rule.IsFramed) shl 1 or 1;
  Place := PlaceOf(Pc);
  // Any order: a reader compares one word with the other.
  StoreRelease(Place^.Data, Data);
  StoreRelease(Place^.Key, KeyOf(Pc, Data));
end;

function IsKnown(Pc: NativeUInt; out Rule: TUnwindRule): Boolean;
var
  Place: ^TKnownRule;
  Data: NativeUInt;
begin
  Place := PlaceOf(Pc);
  Data := LoadAcquire(Place^.Data);
  Result := (Data <> 0) and (LoadAcquire(Place^.Key) = KeyOf(Pc, Data));
  if not Result then
    Exit;
  Rule.Start := 0;
  Rule.Size := Data shr 32;
  Rule.SavedFrame := Cardinal(Data) shr 2;
  Rule.IsFramed := Data and 2 <> 0;
  Rule.Trust := rtExact;
end;

// ---------------------------------------------------------------------------- all

procedure TableUnwindStart;
begin
  if @LinkedFindModule = nil then
    @FindModule := ModulesFind('_dl_find_object');
end;

// The start of libc in a static program calls malloc while the search is half prepared, and would
// fault. So a constructor, which build.sh adds, calls this: it runs after that.
procedure LinkedSearchIsReady; cdecl; [public, alias: 'lanemm_search_is_ready'];
begin
  @FindModule := @LinkedFindModule;
  FetchAdd(Stacks.CodeChanges, 1); // there are tables now
end;

// Returns the entry for the routine that Pc lies in, or one before; nil without a table.
function EntryAt(Pc: NativeUInt): PByte;
var
  Module: TModule;
begin
  Result := nil;
  if (@FindModule <> nil) and (FindModule(Pc, Module) = 0) then
    Result := FindEntry(Module.Table, Pc);
end;

function TableFindRoutine(Pc: NativeUInt; out First, Limit: NativeUInt): Boolean;
var
  Entry: PByte;
  Run: TRun;
  Own: TDwarfCursor;
begin
  Entry := EntryAt(Pc);
  Result := (Entry <> nil) and OpenRoutine(Entry, Run, Own, First, Limit)
    and (NativeUInt(Pc - First) < Limit);
  if Result then
    Inc(Limit, First);
end;

// Reads the rules for a return address from the table of its module; returns false without any.
function ReadRules(Pc: NativeUInt; out Rules: TRules): Boolean;
var
  Entry: PByte;
begin
  Entry := EntryAt(Pc - 1);
  Result := (Entry <> nil) and FindRules(Entry, Pc - 1, Rules);
end;

function TableStep(var Walk: TUnwind; out Rule: TUnwindRule): Boolean;
var
  Rules: TRules;
  Ignored: NativeUInt;
begin
  if not IsKnown(Walk.Pc, Rule) then
  begin
    if not ReadRules(Walk.Pc, Rules) then
      Exit(LeaveByFrame(Walk, Rule));
    if not IsUsual(Rules, Rule) then
    begin
      Rule.Trust := rtOnce;
      Exit(LeaveByTable(Walk, Rules));
    end;
    Keep(Walk.Pc, Rule);
  end;
  Ignored := 0;
  Result := UnwindLeave(Walk, Rule, Ignored);
end;

function TableModuleFind(Address: NativeUInt; out First, Limit: NativeUInt;
  out IsProgram: Boolean): Boolean;
const
  NameField = 1; // in words, of glibc's struct link_map
var
  Module: TModule;
begin
  Result := (@FindModule <> nil) and (FindModule(Address, Module) = 0);
  if not Result then
    Exit;
  First := Module.First;
  Limit := Module.Limit;
  IsProgram := PPAnsiChar(Module.LinkMap)[NameField]^ = #0;
end;

end.
