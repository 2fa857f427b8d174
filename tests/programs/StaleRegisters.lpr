/// Uses the contents of a freed block as an address while another register holds the address of
/// another freed block. The report must name the block that was used.
///   StaleRegisters USE  (`nil`: the word that is used is none of a block)
/// Writes on the standard error output the address of the block that is used, then that of the other one.
program StaleRegisters;

{$mode delphi}{$H+}{$pointermath on}
{$ifdef CPUX86_64} {$asmmode intel} {$endif}
{$ifdef CPUI386} {$asmmode intel} {$endif}

uses
  LaneMM, cthreads, SysUtils;

const
  Size = 100;
  // Objects whose classes are near each other, as are their addresses.
  ThingCount = 8;

type
  PNode = ^TNode;
  TNode = record
    Next: PNode;
    Number: NativeInt;
  end;

// The block's first word is loaded and used.
procedure Follow(Other, Block: PPointer); assembler; nostackframe;
asm
{$if defined(CPUAARCH64)}
  ldr x2, [x1]
  ldr x2, [x2]
{$elseif defined(CPUI386)}
  mov ecx, [edx]
  mov ecx, [ecx]
{$elseif defined(MSWINDOWS)}
  mov r9, [rdx]
  mov r9, [r9]
{$else}
  mov rdx, [rsi]
  mov rdx, [rdx]
{$ifend}
end;

// As above, after an instruction that hides where the word is from: the bytes of a pattern are all
// the same. No register holds the block then.
procedure FollowHidden(Other, Block: PPointer); assembler; nostackframe;
asm
{$if defined(CPUAARCH64)}
  ldr x1, [x1]
  rev x1, x1
  ldr x1, [x1]
{$elseif defined(CPUI386)}
  mov edx, [edx]
  bswap edx
  mov edx, [edx]
{$elseif defined(MSWINDOWS)}
  mov rdx, [rdx]
  bswap rdx
  mov rdx, [rdx]
{$else}
  mov rsi, [rsi]
  bswap rsi
  mov rsi, [rsi]
{$ifend}
end;

// As above; the jump shows that the word may be from elsewhere.
procedure FollowJoined(Other, Block: PPointer); assembler; nostackframe;
asm
{$if defined(CPUAARCH64)}
  ldr x2, [x0]
  cbz x0, .LJoin
  ldr x2, [x1]
.LJoin:
  ldr x2, [x2]
{$elseif defined(CPUI386)}
  mov ecx, [eax]
  test eax, eax
  jz @Join
  mov ecx, [edx]
@Join:
  mov ecx, [ecx]
{$elseif defined(MSWINDOWS)}
  mov r9, [rcx]
  test rcx, rcx
  jz @Join
  mov r9, [rdx]
@Join:
  mov r9, [r9]
{$else}
  mov rdx, [rdi]
  test rdi, rdi
  jz @Join
  mov rdx, [rsi]
@Join:
  mov rdx, [rdx]
{$ifend}
end;

// Two registers hold the classes of freed objects; one is used.
procedure ReadClass(Other, Thing: PPointer); assembler; nostackframe;
asm
{$if defined(CPUAARCH64)}
  ldr x0, [x0]
  ldr x2, [x1]
  ldr x2, [x2]
{$elseif defined(CPUI386)}
  mov ecx, [edx]
  mov ecx, [ecx]
{$elseif defined(MSWINDOWS)}
  mov rcx, [rcx]
  mov r9, [rdx]
  mov r9, [r9]
{$else}
  mov rdi, [rdi]
  mov rdx, [rsi]
  mov rdx, [rdx]
{$ifend}
end;

var
  Sum: NativeInt;

// Faults on the caller's parameter.
procedure AddNode(Node: PNode);
begin
  Sum := Sum + Node^.Number;
end;

procedure FollowParameter(Other, Block: PPointer);
begin
  if Other <> nil then
    AddNode(PNode(Block)^.Next);
end;

var
  Copied: array[0..Size - 1] of Byte;

// The address is computed from the distance between the blocks.
procedure CopyFrom(Block: PPointer);
begin
  Move(Block^^, Copied, Size);
end;

{$ifdef LINUX}
function LengthOf(Text: Pointer): SizeUInt; cdecl; external 'c' name 'strlen';

// Faults in the C library, which has no frame pointers.
procedure Measure(Block: PPointer);
begin
  Sum := LengthOf(Block^); // planted: library
end;
{$endif}

type
  PHandler = ^TProcedure;

procedure CallHandler(Handler: PHandler);
begin
  Handler^;
end;

procedure Announce(Block, Other: Pointer);
begin
  WriteLn(StdErr, HexStr(Block), ' ', HexStr(Other));
  Flush(StdErr);
end;

procedure UseBlocks(const Name: string);
var
  Block, Other: PPointer;
  Nothing: Pointer;
begin
  Nothing := nil;
  GetMem(Other, Size);
  GetMem(Block, Size);
  FreeMem(Other);
  FreeMem(Block);
  Announce(Block, Other);
  if Name = 'plain' then
    Follow(Other, Block)
  else if Name = 'nil' then
    Follow(Other, @Nothing)
  else if Name = 'hidden' then
    FollowHidden(Other, Block)
  else if Name = 'joined' then
    FollowJoined(Other, Block)
  else if Name = 'called' then
    CallHandler(PHandler(Block))
  else if Name = 'unset' then
    CopyFrom(GetMem(Size))
  else if Name = 'copied' then
    CopyFrom(Block)
  {$ifdef LINUX}
  else if Name = 'library' then
    Measure(Block)
  {$endif}
  else if Name = 'freed' then
    FreeMem(Block^)
  else
    FollowParameter(Other, Block);
end;

type
  TAnswer = class
    Value: NativeInt;
    procedure Ignore; virtual;
    procedure Give(Number: NativeInt); virtual;
  end;

procedure TAnswer.Ignore;
begin
  Value := 0;
end;

procedure TAnswer.Give(Number: NativeInt);
begin
  Value := Number;
end;

// With guard pages the read of the class is refused already.
procedure UseAnswer;
var
  Answer: TAnswer;
begin
  Answer := TAnswer.Create;
  Answer.Free;
  Announce(Answer, Answer);
  if ParamStr(1) = 'method' then
    Answer.Give(42)
  else if Answer.ClassName = '' then
    Halt(1);
end;

procedure UseThings;
var
  Things: array[1..ThingCount] of TObject;
  Index, First, Last: Integer;
begin
  First := 1;
  Last := 1;
  for Index := 1 to ThingCount do
  begin
    Things[Index] := TObject.Create;
    if Pointer(Things[Index]) < Pointer(Things[First]) then
      First := Index;
    if Pointer(Things[Index]) > Pointer(Things[Last]) then
      Last := Index;
  end;
  for Index := 1 to ThingCount do
    Things[Index].Free;
  Announce(Things[Last], Things[First]);
  ReadClass(Pointer(Things[First]), Pointer(Things[Last]));
end;

begin
  try
    if ParamStr(1) = 'class' then
      UseThings
    else if (ParamStr(1) = 'method') or (ParamStr(1) = 'name') then
      UseAnswer
    else
      UseBlocks(ParamStr(1));
  except
    on E: EAccessViolation do ;
    on E: EInvalidPointer do ;
  end;
end.
