/// Tests of LaneMM.Faults, FaultOrigin, X86Code and A64Code: a fault is explained by the block whose
/// contents were used, not by one that a register happens to point to.
unit Test.FaultOrigin;

{$mode delphi}{$H+}

interface

uses
  SysUtils, Test.Cases, LaneMM.Instructions;

type
  TExpectedCode = record
    Bytes: string;
    Kind: TInstructionKind;
    Target: Integer;
    Parts, Writes: TRegisterSet;
    Access: Byte;
  end;

  TFaultOriginTests = class(TProgramTest)
  strict private
    Blocks: TStringArray;
    procedure CheckCode(const Expected: TExpectedCode; IsX86Code: Boolean);
  protected
    procedure Act(const Word, Rest: string); override;
    function Value(const Name: string): string; override;
    function Number(const Name: string): Int64; override;
  published
    {$ifndef CPUAARCH64}
    // There a search does not go on in callers.
    procedure NodeThatOnlyRegistersHoldIsNamedWithClassAndBacktraces;
    {$endif}
    procedure InstructionsHaveTheirLengthRegistersAndAccess;
  end;

implementation

uses
  StrUtils, Test.Programs, LaneMM.Layout, LaneMM.X86Code,
  LaneMM.A64Code;

procedure TFaultOriginTests.Act(const Word, Rest: string);
begin
  if Word = 'use' then
  begin
    inherited Act('run', Rest);
    CheckExit(0);
    Blocks := LowerCase(Output.Split([#10])[0]).Split([' ']);
    Same(2, Length(Blocks), 'blocks');
  end
  else
    inherited Act(Word, Rest);
end;

function TFaultOriginTests.Value(const Name: string): string;
begin
  if Name = 'used' then
    Result := '$' + Blocks[0]
  else if Name = 'other' then
    Result := '$' + Blocks[1]
  else
    Result := inherited Value(Name);
end;

function TFaultOriginTests.Number(const Name: string): Int64;
begin
  case IndexStr(Name, ['block', 'no-block', 'wide', 'x64']) of
    0: Result := Ord(Pos('  Block $', Output) > 0);
    1: Result := Ord(Pos('  Block $', Output) = 0);
    2: Result := Ord(WordSize = 8);
    3: Result := Ord({$ifdef CPUX86_64} True {$else} False {$endif});
  else
    Result := inherited Number(Name);
  end;
end;

{$ifndef CPUAARCH64}
procedure TFaultOriginTests.NodeThatOnlyRegistersHoldIsNamedWithClassAndBacktraces;
begin
  Act('do', 'tree');
end;
{$endif}

// ---------------------------------------------------------------------------- instructions

const
  None = NoRegister;
  OfCode64: array[0..31] of TExpectedCode = (
    // mov rax, [rdi+8]; mov [rbp-8], rdi; mov rbx, rdi; lea rsi, [rbp+rcx*8+16]
    (Bytes: '488B4708'; Kind: ikLoad; Target: 0; Parts: 1 shl 7; Writes: 1; Access: 8),
    (Bytes: '48897DF8'; Kind: ikStore; Target: 7; Parts: 1 shl 5; Writes: 0; Access: 8),
    (Bytes: '4889FB'; Kind: ikAddress; Target: 3; Parts: 0; Writes: 1 shl 3; Access: 0),
    (Bytes: '488D74CD10'; Kind: ikAddress; Target: 6; Parts: 0; Writes: 1 shl 6; Access: 0),
    // mov r9, [r12+r13*4]; mov rdx, [rsp+8]; mov rax, [rip+16]; mov rax, [12345678h] (64 bits)
    (Bytes: '4F8B0CAC'; Kind: ikLoad; Target: 9; Parts: 1 shl 12 + 1 shl 13; Writes: 1 shl 9;
      Access: 8),
    (Bytes: '488B542408'; Kind: ikLoad; Target: 2; Parts: 1 shl 4; Writes: 1 shl 2; Access: 8),
    (Bytes: '488B0510000000'; Kind: ikLoad; Target: 0; Parts: 0; Writes: 1; Access: 8),
    (Bytes: '48A17856341200000000'; Kind: ikLoad; Target: 0; Parts: 0; Writes: 1; Access: 8),
    // mov eax, [rdi]; cmp qword [rax-24], 0; movzx eax, byte [rsi]; movdqu xmm0, [rsi]
    (Bytes: '8B07'; Kind: ikOther; Target: None; Parts: 1 shl 7; Writes: 1; Access: 4),
    (Bytes: '488378E800'; Kind: ikOther; Target: None; Parts: 1; Writes: 0; Access: 8),
    (Bytes: '0FB606'; Kind: ikOther; Target: None; Parts: 1 shl 6; Writes: 1; Access: 1),
    (Bytes: 'F30F6F06'; Kind: ikOther; Target: None; Parts: 1 shl 6; Writes: 0; Access: 16),
    // vmovdqu ymm0, [rsi]; rep movsb; push r12; mov rax, imm64; endbr64; mul rcx
    (Bytes: 'C5FE6F06'; Kind: ikOther; Target: None; Parts: 1 shl 6; Writes: 0; Access: 32),
    (Bytes: 'F3A4'; Kind: ikOther; Target: None; Parts: 1 shl 6 + 1 shl 7; Writes: $C7; Access: 0),
    (Bytes: '4154'; Kind: ikPush; Target: 12; Parts: 0; Writes: 1 shl 4; Access: 0),
    (Bytes: '48B80102030405060708'; Kind: ikAddress; Target: 0; Parts: 0; Writes: 1; Access: 0),
    (Bytes: 'F30F1EFA'; Kind: ikOther; Target: None; Parts: 0; Writes: 0; Access: 0),
    (Bytes: '48F7E1'; Kind: ikOther; Target: None; Parts: 0; Writes: 7; Access: 0),
    // mov rsi, -2; mov r8d, 12345678h
    (Bytes: '48C7C6FEFFFFFF'; Kind: ikAddress; Target: 6; Parts: 0; Writes: 1 shl 6; Access: 0),
    (Bytes: '41B878563412'; Kind: ikAddress; Target: 8; Parts: 0; Writes: 1 shl 8; Access: 0),
    // mov [rdi+2], ax; mov byte [rdi], 0; movsd [rdi], xmm0; movss xmm0, [rdi]; fld tbyte [rdi]
    (Bytes: '66894702'; Kind: ikOther; Target: None; Parts: 1 shl 7; Writes: 0; Access: 2),
    (Bytes: 'C60700'; Kind: ikOther; Target: None; Parts: 1 shl 7; Writes: 0; Access: 1),
    (Bytes: 'F20F1107'; Kind: ikOther; Target: None; Parts: 1 shl 7; Writes: 0; Access: 8),
    (Bytes: 'F30F1007'; Kind: ikOther; Target: None; Parts: 1 shl 7; Writes: 0; Access: 4),
    (Bytes: 'DB2F'; Kind: ikOther; Target: None; Parts: 1 shl 7; Writes: 0; Access: 0),
    // movd [rdi], xmm0; movq xmm0, [rdi]; vmovss xmm0, [rdi]; movzx eax, word [rdi]
    (Bytes: '660F7E07'; Kind: ikOther; Target: None; Parts: 1 shl 7; Writes: 1; Access: 4),
    (Bytes: '66480F6E07'; Kind: ikOther; Target: None; Parts: 1 shl 7; Writes: 0; Access: 8),
    (Bytes: 'C5FA1007'; Kind: ikOther; Target: None; Parts: 1 shl 7; Writes: 0; Access: 4),
    (Bytes: '0FB707'; Kind: ikOther; Target: None; Parts: 1 shl 7; Writes: 1; Access: 2),
    // cpuid; mulx rax, rbx, rcx; vcvttsd2usi eax, xmm0
    (Bytes: '0FA2'; Kind: ikOther; Target: None; Parts: 0; Writes: $CF; Access: 0),
    (Bytes: 'C4E2E3F6C1'; Kind: ikOther; Target: None; Parts: 0; Writes: High(TRegisterSet);
      Access: 0),
    (Bytes: '62F17F0878C0'; Kind: ikOther; Target: None; Parts: 0; Writes: 1; Access: 0));
  OfCode32: array[0..4] of TExpectedCode = (
    // mov eax, [edx]; inc ecx; mov eax, [12345678h]; push ebx; call through [eax+4]
    (Bytes: '8B02'; Kind: ikLoad; Target: 0; Parts: 1 shl 2; Writes: 1; Access: 4),
    (Bytes: '41'; Kind: ikOther; Target: None; Parts: 0; Writes: 1 shl 1; Access: 0),
    (Bytes: 'A178563412'; Kind: ikLoad; Target: 0; Parts: 0; Writes: 1; Access: 4),
    (Bytes: '53'; Kind: ikPush; Target: 3; Parts: 0; Writes: 1 shl 4; Access: 0),
    (Bytes: 'FF5004'; Kind: ikCall; Target: None; Parts: 1; Writes: $FC7; Access: 4));
  OfA64: array[0..10] of TExpectedCode = (
    // ldr x2, [x1, 8]; str x3, [sp, 16]; mov x19, x0; add x1, x2, 16
    (Bytes: '220440F9'; Kind: ikLoad; Target: 2; Parts: 1 shl 1; Writes: 1 shl 2; Access: 8),
    (Bytes: 'E30B00F9'; Kind: ikStore; Target: 3; Parts: 1 shl 31; Writes: 0; Access: 8),
    (Bytes: 'F30300AA'; Kind: ikAddress; Target: 19; Parts: 0; Writes: 1 shl 19; Access: 0),
    (Bytes: '41400091'; Kind: ikAddress; Target: 1; Parts: 0; Writes: 1 shl 1; Access: 0),
    // ldp x29, x30, [sp], 32; ldr x0, [x1, x2, lsl 3]; cmp x0, 1; ldr w0, [x1]
    (Bytes: 'FD7BC2A8'; Kind: ikOther; Target: 29; Parts: 1 shl 31; Writes: $E0000000; Access: 0),
    (Bytes: '207862F8'; Kind: ikLoad; Target: 0; Parts: 6; Writes: 1; Access: 8),
    (Bytes: '1F0400F1'; Kind: ikOther; Target: None; Parts: 0; Writes: 0; Access: 0),
    (Bytes: '200040B9'; Kind: ikOther; Target: 0; Parts: 1 shl 1; Writes: 1; Access: 4),
    // ldadd x1, x2, [x3]
    (Bytes: '620021F8'; Kind: ikOther; Target: 2; Parts: 1 shl 3; Writes: 1 shl 2; Access: 8),
    // ret; br x3
    (Bytes: 'C0035FD6'; Kind: ikLeave; Target: None; Parts: 0; Writes: 0; Access: 0),
    (Bytes: '60001FD6'; Kind: ikLeave; Target: None; Parts: 1 shl 3; Writes: 0; Access: 0));

procedure TFaultOriginTests.CheckCode(const Expected: TExpectedCode; IsX86Code: Boolean);
var
  Code: array[0..31] of Byte;
  Item: TInstruction;
begin
  FillChar(Code, SizeOf(Code), 0);
  HexToBin(PChar(Expected.Bytes), @Code, Length(Expected.Bytes) div 2);
  if IsX86Code then
    AssertTrue(Expected.Bytes, X86Decode(@Code, Item))
  else
    A64Decode(NativeUInt(@Code), Item);
  Same(Length(Expected.Bytes) div 2, Item.Length, Expected.Bytes + ': length');
  Same(Ord(Expected.Kind), Ord(Item.Kind), Expected.Bytes + ': kind');
  if Expected.Kind in [ikLoad, ikStore, ikAddress, ikPush] then
    Same(Expected.Target, Item.Target, Expected.Bytes + ': target');
  Same(Expected.Parts, Item.Parts, Expected.Bytes + ': parts');
  Same(Expected.Writes, Item.Writes, Expected.Bytes + ': writes');
  Same(Expected.Access, Item.Access, Expected.Bytes + ': access');
end;

procedure TFaultOriginTests.InstructionsHaveTheirLengthRegistersAndAccess;
var
  Expected: TExpectedCode;
begin
  if IsX64 then
    for Expected in OfCode64 do
      CheckCode(Expected, True)
  else if IsX86 then
    for Expected in OfCode32 do
      CheckCode(Expected, True);
  for Expected in OfA64 do
    CheckCode(Expected, False);
end;

initialization
  RegisterCases(TFaultOriginTests, 'debug/FaultOrigin');
end.
