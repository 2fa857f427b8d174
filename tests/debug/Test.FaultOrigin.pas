/// Tests of LaneMM.Faults, FaultOrigin, X86Code and A64Code: a fault is explained by the block whose
/// contents were used, not by one that a register happens to point to.
unit Test.FaultOrigin;

{$mode delphi}{$H+}

interface

uses
  Test.Tools, LaneMM.Instructions;

type
  TExpectedCode = record
    Bytes: string;
    Kind: TInstructionKind;
    Target: Integer;
    Parts, Writes: TRegisterSet;
    Access: Byte;
  end;

  TFaultOriginTests = class(TLaneTest)
  strict private
    FUsed, FOther: string;
    procedure Use(const Name: string; const Settings: string = '');
    procedure NamesTheUsedBlock(const Name: string);
    procedure NamesNoBlockForCertain(const Name: string);
    procedure Evaluate(Tries: Integer);
    procedure CheckCode(const Expected: TExpectedCode; IsX86Code: Boolean);
  published
    procedure StaleRegisterOfAnotherFreedBlockNamesNoWrongBlock;
    procedure StaleRegisterOfAnotherFreedObjectNamesNoWrongObject;
    procedure BlockOfAParameterIsNamed;
    procedure WordOfUnknownOriginNamesNoBlockForCertain;
    procedure WordOfTwoPossibleOriginsNamesNoBlockForCertain;
    {$ifndef CPUAARCH64}
    // There a search does not go on in callers.
    procedure NodeThatOnlyRegistersHoldIsNamedWithClassAndBacktraces;
    {$endif}
    procedure HandlerOfAFreedBlockThatIsCalledIsFound;
    procedure CopyFromAnAddressInAFreedBlockIsFound;
    procedure CallerOfTheLibraryThatFaultsIsNamed;
    procedure GuardReportNamesTheMethodThatIsCalled;
    procedure UnknownBlockIsNotAnnounced;
    procedure FreeOfAnAddressInAFreedBlockSaysSo;
    procedure SameUseOfABlockIsReportedOnce;
    procedure NilAccessWithFillFFIsNoUseOfABlock;
    procedure InstructionsHaveTheirLengthRegistersAndAccess;
  end;

implementation

uses
  SysUtils, Classes, testregistry, Test.Programs, LaneMM.Layout, LaneMM.X86Code,
  LaneMM.A64Code;

const
  Possible = '  Possibly of this block, which a register or the stack points to.'#10;
  Followed = 'Use after free: the contents of a freed block were used as an address.'#10;

var
  Stale, Tree: TTestProgram;

procedure TFaultOriginTests.Use(const Name, Settings: string);
var
  Words: TStringArray;
begin
  if Stale = nil then
    Stale := TTestProgram.Create('StaleRegisters', '-O2 -gl -Xs-');
  Stale.Run('debug' + Settings, [Name]);
  Stale.EndedWith(0, Name + ': exit code');
  Words := Stale.Errors.Split([#10])[0].Split([' ']);
  Same(2, Length(Words), Name + ': blocks');
  FUsed := LowerCase(Words[0]);
  FOther := LowerCase(Words[1]);
end;

procedure TFaultOriginTests.NamesTheUsedBlock(const Name: string);
begin
  Use(Name);
  Has('  Block $' + FUsed + ': ', Stale.Errors);
  HasNot(Possible, Stale.Errors);
  HasNot('  Block $' + FOther + ': ', Stale.Errors);
end;

procedure TFaultOriginTests.NamesNoBlockForCertain(const Name: string);
begin
  Use(Name);
  Has(Followed, Stale.Errors);
  if Pos('  Block $', Stale.Errors) > 0 then
    Has(Possible, Stale.Errors);
end;

procedure TFaultOriginTests.StaleRegisterOfAnotherFreedBlockNamesNoWrongBlock;
begin
  NamesTheUsedBlock('plain');
end;

procedure TFaultOriginTests.StaleRegisterOfAnotherFreedObjectNamesNoWrongObject;
begin
  NamesTheUsedBlock('class');
end;

procedure TFaultOriginTests.BlockOfAParameterIsNamed;
begin
  Use('parameter');
  Has('  Block $' + FUsed + ': ', Stale.Errors);
  HasNot('  Block $' + FOther + ': ', Stale.Errors);
end;

procedure TFaultOriginTests.WordOfUnknownOriginNamesNoBlockForCertain;
begin
  NamesNoBlockForCertain('hidden');
end;

procedure TFaultOriginTests.WordOfTwoPossibleOriginsNamesNoBlockForCertain;
begin
  NamesNoBlockForCertain('joined');
end;

// The word is the operand of the call, or the code where it goes: then the call's operand is not
// looked at on i386.
procedure TFaultOriginTests.HandlerOfAFreedBlockThatIsCalledIsFound;
begin
  Use('called');
  Has(Followed, Stale.Errors);
  Has('  STALEREGISTERS.CALLHANDLER  ', Copy(Stale.Errors, Pos('  Occurred at', Stale.Errors), MaxInt));
  if WordSize = SizeOf(UInt64) then
    Has('  Block $' + FUsed + ': ', Stale.Errors);
  {$ifdef CPUX86_64}
  HasNot(Possible, Stale.Errors);
  {$endif}
end;

procedure TFaultOriginTests.CopyFromAnAddressInAFreedBlockIsFound;
begin
  Use('copied');
  Has(Followed, Stale.Errors);
  if Pos('  Block $', Stale.Errors) = 0 then
    Has('  The block is not known: LANEMM=debug,guard=pages reports it', Stale.Errors);
  Use('copied', ',guard=pages');
  Has(Format(' of %d bytes at offset 0 of a freed block.'#10'  Block $%s', [WordSize, FUsed]),
    Stale.Errors);
end;

procedure TFaultOriginTests.GuardReportNamesTheMethodThatIsCalled;
const
  Refused = ' of %d bytes at offset 0 of a freed block.'#10;
begin
  Use('method', ',guard=pages');
  Has(Format(Refused + '  Virtual method STALEREGISTERS.TANSWER.GIVE of the freed object was called.'#10,
    [WordSize]), Stale.Errors);
  Use('name', ',guard=pages');
  Has(Format(Refused + '  The class of the freed object was read.'#10, [WordSize]), Stale.Errors);
end;

procedure TFaultOriginTests.CallerOfTheLibraryThatFaultsIsNamed;
begin
  Use('library');
  Has(Followed, Stale.Errors);
  Has(Format('  STALEREGISTERS.MEASURE  StaleRegisters.lpr:%d'#10, [Stale.PlantedLine('library')]),
    Copy(Stale.Errors, Pos('  Occurred at', Stale.Errors), MaxInt));
  Has('  STALEREGISTERS.USEBLOCKS  ', Copy(Stale.Errors, Pos('  Occurred at', Stale.Errors), MaxInt));
end;

procedure TFaultOriginTests.UnknownBlockIsNotAnnounced;
begin
  Use('unset');
  Has('Use of uninitialized memory: ', Stale.Errors);
  if Pos('  Block $', Stale.Errors) = 0 then
    HasNot(Possible, Stale.Errors);
end;

procedure TFaultOriginTests.FreeOfAnAddressInAFreedBlockSaysSo;
begin
  Use('freed');
  Has('Invalid free: ', Stale.Errors);
  Has('  The address is the pattern of freed blocks: it was read from a block that was freed.'#10,
    Stale.Errors);
end;

// A tree of three nodes is freed while it is evaluated; each node is used by so many tries.
procedure TFaultOriginTests.Evaluate(Tries: Integer);
begin
  if Tree = nil then
    Tree := TTestProgram.Create('FreedTree', '-O2 -gl -Xs-');
  Tree.Run('debug', [IntToStr(Tries)]);
  Tree.EndedWith(0);
  Has(IntToStr(3 * Tries) + ' caught', Tree.Errors);
end;

{$ifndef CPUAARCH64}
procedure TFaultOriginTests.NodeThatOnlyRegistersHoldIsNamedWithClassAndBacktraces;

  procedure HasStack(const Heading, Planted: string);
  begin
    Has(Heading, Tree.Errors);
    Has(Format('FreedTree.lpr:%d'#10, [Tree.PlantedLine(Planted)]),
      Copy(Tree.Errors, Pos(Heading, Tree.Errors), MaxInt));
  end;

begin
  Evaluate(1);
  Has(Followed + '  Block $', Tree.Errors);
  HasNot(Possible, Tree.Errors);
  Has('  Class: FreedTree.TNode'#10, Tree.Errors);
  HasStack('  Allocated by thread ', 'allocated');
  HasStack('  Freed by thread ', 'freed');
  HasStack('  Occurred at'#10, 'used');
end;
{$endif}

procedure TFaultOriginTests.SameUseOfABlockIsReportedOnce;
begin
  Evaluate(6);
  Same(3, Length(Tree.Errors.Split([Followed])) - 1, 'reports');
  HasNot('ollow from', Tree.Errors);
end;

procedure TFaultOriginTests.NilAccessWithFillFFIsNoUseOfABlock;
begin
  Use('nil', ',fill=FF,freefill=FF');
  HasNot('Use ', Stale.Errors);
  Use('plain', ',freefill=FF');
  Has(Followed, Stale.Errors);
end;

// ---------------------------------------------------------------------------- instructions

const
  None = NoRegister;
  OfCode64: array[0..28] of TExpectedCode = (
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
    (Bytes: '0FB707'; Kind: ikOther; Target: None; Parts: 1 shl 7; Writes: 1; Access: 2));
  OfCode32: array[0..4] of TExpectedCode = (
    // mov eax, [edx]; inc ecx; mov eax, [12345678h]; push ebx; call through [eax+4]
    (Bytes: '8B02'; Kind: ikLoad; Target: 0; Parts: 1 shl 2; Writes: 1; Access: 4),
    (Bytes: '41'; Kind: ikOther; Target: None; Parts: 0; Writes: 1 shl 1; Access: 0),
    (Bytes: 'A178563412'; Kind: ikLoad; Target: 0; Parts: 0; Writes: 1; Access: 4),
    (Bytes: '53'; Kind: ikPush; Target: 3; Parts: 0; Writes: 1 shl 4; Access: 0),
    (Bytes: 'FF5004'; Kind: ikCall; Target: None; Parts: 1; Writes: $FC7; Access: 4));
  OfA64: array[0..9] of TExpectedCode = (
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
  RegisterTest(TFaultOriginTests);
finalization
  Stale.Free;
  Tree.Free;
end.
