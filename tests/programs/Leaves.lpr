/// Uses the contents of a freed block as an address, in routines that are called in different ways and
/// save nothing, or some registers, on the stack, some of them in assembler:
///   Leaves WAY   one of those in Ways; `none` uses a block that is not freed in all of them
program Leaves;

{$mode delphi}{$H+}
{$if defined(CPUX86_64) or defined(CPUI386)}{$asmmode intel}{$ifend}

uses
  LaneMM, SysUtils;

type
  PPlace = ^PInteger;

  IReader = interface
    function ReadIt(Place: PPlace): Integer;
  end;

  TReader = class(TInterfacedObject, IReader)
    Kept: Integer;
    function ReadIt(Place: PPlace): Integer;
    function Read(Place: PPlace): Integer; virtual;
    function ReadTwice(Place: PPlace): Integer; virtual;
    function Choose(Place: PPlace): Integer; virtual;
  end;

  TOtherReader = class(TReader)
    function Read(Place: PPlace): Integer; override;
  end;

  TReadCall = function(Place: PPlace): Integer;
  TReadMethod = function(Place: PPlace): Integer of object;

  TWay = record
    Name: string;
    Run: TProcedure;
  end;

var
  Place: PPlace;
  Sum: Integer;
  Reader: TReader;
  Call, CallInAssembler, CallFrameless: TReadCall;
  Method: TReadMethod;
  Actor: IReader;

// A frame before the leaves, with a jump over its own return.
function Before(Number: Integer): Integer;
var
  Text: string;
begin
  Text := IntToStr(Number);
  if Text = '' then
    Exit(1);
  Result := Length(Text);
end;

function Read(Place: PPlace): Integer;
begin
  Result := Place^^;
end;

function TReader.ReadIt(Place: PPlace): Integer;
begin
  Result := Kept + Place^^;
end;

function TReader.Read(Place: PPlace): Integer;
begin
  Result := Kept + Place^^ * 2;
end;

function TOtherReader.Read(Place: PPlace): Integer;
begin
  Result := Place^^ + 3;
end;

// Jumps and loops, all within the routine.
function TReader.Choose(Place: PPlace): Integer;
begin
  if Kept > 5 then
    Exit(Kept);
  Result := 0;
  while Result < Kept do
    Inc(Result, 2);
  Result := Result + Place^^;
end;

// Saves registers.
function TReader.ReadTwice(Place: PPlace): Integer;
begin
  Result := Before(Kept);
  Result := Result + Place^^;
end;

// A routine in assembler has no frame of its own.
function ReadInAssembler(Place: PPlace): Integer; assembler; nostackframe;
asm
  {$if defined(CPUX86_64)}
  mov rax, [{$ifdef MSWINDOWS} rcx {$else} rdi {$endif}]
  mov eax, [rax]
  {$elseif defined(CPUI386)}
  mov eax, [eax]
  mov eax, [eax]
  {$else}
  ldr x0, [x0]
  ldr w0, [x0]
  {$ifend}
end;

// With space on the stack.
function ReadWithSpace(Place: PPlace): Integer; assembler; nostackframe;
asm
  {$if defined(CPUX86_64)}
  sub rsp, 24
  mov rax, [{$ifdef MSWINDOWS} rcx {$else} rdi {$endif}]
  mov eax, [rax]
  add rsp, 24
  {$elseif defined(CPUI386)}
  sub esp, 24
  mov eax, [eax]
  mov eax, [eax]
  add esp, 24
  {$else}
  sub sp, sp, #32
  ldr x0, [x0]
  ldr w0, [x0]
  add sp, sp, #32
  {$ifend}
end;

// Calls another routine, on x86 with nothing on the stack but its return address.
function PassOn(Place: PPlace): Integer; assembler; nostackframe;
asm
  {$if defined(CPUX86_64) or defined(CPUI386)}
  call ReadInAssembler
  {$else}
  stp x29, x30, [sp, #-16]!
  mov x29, sp
  bl ReadInAssembler
  ldp x29, x30, [sp], #16
  {$ifend}
end;

procedure ByAssembler;
begin
  Inc(Sum, ReadInAssembler(Place));
end;

procedure ByAssemblerPointer;
begin
  Inc(Sum, CallInAssembler(Place));
end;

procedure ByFrameless;
begin
  Inc(Sum, CallFrameless(Place));
end;

procedure BySpace;
begin
  Inc(Sum, ReadWithSpace(Place));
end;

procedure ByName;
begin
  Inc(Sum, Read(Place));
end;

procedure ByPointer;
begin
  Inc(Sum, Call(Place));
end;

procedure ByMethod;
begin
  Inc(Sum, Method(Place));
end;

procedure ByVirtual;
begin
  Inc(Sum, Reader.Read(Place));
end;

procedure ByOverride;
var
  Other: TReader;
begin
  Other := TOtherReader.Create;
  try
    Inc(Sum, Other.Read(Place));
  finally
    Other.Free;
  end;
end;

procedure ByInterface;
begin
  Inc(Sum, Actor.ReadIt(Place));
end;

procedure ByChoice;
begin
  Inc(Sum, Reader.Choose(Place));
end;

procedure BySaving;
begin
  Inc(Sum, Reader.ReadTwice(Place));
end;

const
  Ways: array[0..11] of TWay = ((Name: 'name'; Run: ByName), (Name: 'pointer'; Run: ByPointer),
    (Name: 'method'; Run: ByMethod), (Name: 'virtual'; Run: ByVirtual),
    (Name: 'override'; Run: ByOverride), (Name: 'interface'; Run: ByInterface),
    (Name: 'choice'; Run: ByChoice), (Name: 'saving'; Run: BySaving),
    (Name: 'assembler'; Run: ByAssembler), (Name: 'assembler-pointer'; Run: ByAssemblerPointer),
    (Name: 'frameless'; Run: ByFrameless), (Name: 'space'; Run: BySpace));

procedure Go(const Way: TWay);
begin
  try
    Way.Run();
  except
    on E: EAccessViolation do ;
  end;
end;

var
  Number: Integer;
  Way: TWay;
begin
  Number := 1;
  GetMem(Place, SizeOf(Place^));
  Place^ := @Number;
  Reader := TReader.Create;
  Actor := TReader.Create;
  Call := Read;
  @CallInAssembler := @ReadInAssembler;
  @CallFrameless := @PassOn;
  Method := Reader.Read;
  if ParamStr(1) <> 'none' then
    FreeMem(Place);
  for Way in Ways do
    if (ParamStr(1) = 'none') or (Way.Name = ParamStr(1)) then
      Go(Way);
  if ParamStr(1) = 'none' then
    FreeMem(Place);
  Reader.Free;
end.
