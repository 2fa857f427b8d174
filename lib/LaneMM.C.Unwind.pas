/// Unwinds one frame, from a routine to its caller, in any module of the process.
//
// Owns:       Known.
// How:        the rule for a return address is read from its module's table once, and kept if it
//             has the usual form: the return address at an offset from the stack pointer, or above
//             the frame pointer.
// Invariants: reads the stack between the stack pointer and its end, and the unwind tables of the
//             modules, see LaneMM.C.FrameTables. The stack pointer only grows, so every walk ends.
// Callers:    UnwindStep: any thread; takes no lock and allocates no memory.
// Errors:     code without a table is unwound by its frame pointer, if that leads to code.
// Source:     glibc 2.35, _dl_find_object.
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
  LaneMM.Layout, LaneMM.Atomic, LaneMM.Bits, LaneMM.Unwind, LaneMM.C.Modules, LaneMM.C.FrameTables;

const
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

// ---------------------------------------------------------------------------- frame pointers

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
  Result := (Slot > Walk.Sp) and UnwindHas(Walk, Slot);
  if not Result then
    Exit;
  Return := StackWord(Slot);
  Result := (Return <> 0) and ((@FindModule = nil) or (FindModule(Return, Module) = 0));
  if Result then
    UnwindTo(Walk, Slot, Rule.SavedFrame);
end;

// ---------------------------------------------------------------------------- known rules

// Makes the rule of a routine without a caller, or of one that has the usual form. Returns false
// for any other.
function IsUsual(const Rules: TFrameRules; out Rule: TUnwindRule): Boolean;
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
    Result := FrameEntry(Module.Table, Pc);
end;

function TableFindRoutine(Pc: NativeUInt; out First, Limit: NativeUInt): Boolean;
var
  Entry: PByte;
begin
  Entry := EntryAt(Pc);
  Result := (Entry <> nil) and FrameCode(Entry, First, Limit)
    and (NativeUInt(Pc - First) < Limit);
  if Result then
    Inc(Limit, First);
end;

// Reads the rules for a return address from the table of its module; returns false without any.
function ReadRules(Pc: NativeUInt; out Rules: TFrameRules): Boolean;
var
  Entry: PByte;
begin
  Entry := EntryAt(Pc - 1);
  Result := (Entry <> nil) and FrameRules(Entry, Pc - 1, Rules);
end;

function TableStep(var Walk: TUnwind; out Rule: TUnwindRule): Boolean;
var
  Rules: TFrameRules;
begin
  if not IsKnown(Walk.Pc, Rule) then
  begin
    if not ReadRules(Walk.Pc, Rules) then
      Exit(LeaveByFrame(Walk, Rule));
    if not IsUsual(Rules, Rule) then
    begin
      Rule.Trust := rtOnce;
      Exit(FrameLeave(Walk, Rules));
    end;
    Keep(Walk.Pc, Rule);
  end;
  Result := UnwindLeave(Walk, Rule);
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
