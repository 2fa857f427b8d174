/// The table of a module's routines and their frames that linkers write on 64-bit Windows.
//
// Owns:       nothing.
// Invariants: the table is sorted. Reads it and what it leads to, in this module alone.
// Callers:    any thread.
// Source:     Microsoft, x64 exception handling: RUNTIME_FUNCTION, UNWIND_INFO, UNWIND_CODE.
unit LaneMM.Routines;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.StacksState;

type
  PRoutine = ^TRoutine;
  /// An entry of the table. Its numbers count from the start of the module.
  TRoutine = record
    First: Cardinal;   //< const   start of its code
    Limit: Cardinal;   //< const   end of its code
    Frame: Cardinal;   //< const   what its prologue does
  end;

/// Returns the entry of a table of Size bytes whose code holds Offset; nil if none does.
function RoutineAt(Table: PRoutine; Size, Offset: NativeUInt): PRoutine;
/// Returns the rule of a routine with a frame pointer.
function FramedRule: TUnwindRule;
/// Returns whether the table of this module has the routine that the call before Return lies in;
/// Rule receives how to unwind it, behind its prologue.
function RoutineRule(Return: NativeUInt; out Rule: TUnwindRule): Boolean;

implementation

{$I ../LaneMM.AfterUses.inc}

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

function FramedRule: TUnwindRule;
begin
  Result := Default(TUnwindRule);
  Result.IsFramed := True;
  Result.SavedFrame := SizeOf(Pointer);
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
