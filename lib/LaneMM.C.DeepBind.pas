/// dlopen for modules that bind to libc before the program (RTLD_DEEPBIND), as those of PHP.
//
// Owns:       the exported name dlopen, which counts Stacks.CodeChanges; the values of libc's symbols
//             for malloc and its relatives.
// Invariants: such a module would look malloc and free up in libc, and free blocks of this library
//             there. So before the first one is loaded, libc's symbols that this library exports,
//             too, are changed to lead here. That has no effect on calls that are bound already.
//             Blocks that libc's malloc gave out before go back to it, see LaneMM.C.Libc.
// Limits:     where the system forbids to change a page of libc's symbols, nothing is changed;
//             a name space of its own (dlmopen) has a libc of its own, which is left alone.
// Callers:    any thread.
// Source:     Linux man-pages, dlopen(3); glibc 2.36: elf/dl-lookup.c.
unit LaneMM.C.DeepBind;

{$I ../src/LaneMM.inc}

interface

implementation

uses
  LaneMM.Atomic, LaneMM.Os, LaneMM.Bits, LaneMM.Text, LaneMM.StacksState, LaneMM.C.Foreign,
  LaneMM.C.Libc, LaneMM.C.Modules;

const
  DeepBind = 8;                // RTLD_DEEPBIND

  // Access to pages.
  ReadOnly = 1;
  ReadWrite = 3;

function LibcProtect(P: Pointer; Size: NativeUInt; Access: LongInt): LongInt; cdecl;
  external name 'mprotect';

var
  // shared  whether libc's symbols lead here, or cannot; two threads write the same.
  IsRedirected: Boolean;

// Changes the symbols of libc that this module exports, too, but for those that it finds by name.
procedure Redirect(const Own: TNames);
var
  Index: NativeInt;
  Name: PAnsiChar;
  Symbol: PSymbol;
begin
  for Index := 1 to NativeInt(NamesCount(Own)) - 1 do
  begin
    Name := Own.Texts + Own.Symbols[Index].Name;
    if (Own.Symbols[Index].Section = 0) or TextIs(Name, 'dlopen')
      or TextIs(Name, 'pthread_create') then
      Continue;
    Symbol := NamesFind(Libc.Names, Name);
    if Symbol <> nil then
      Symbol^.Value := Own.Base + Own.Symbols[Index].Value - Libc.Names.Base;
  end;
end;

procedure RedirectPages(const Own: TNames);
var
  First, Size: NativeUInt;
begin
  First := NativeUInt(Libc.Names.Symbols) and not NativeUInt(OsGranule - 1);
  Size := AlignUp(NativeUInt(Libc.Names.Symbols + NamesCount(Libc.Names)), OsGranule) - First;
  if LibcProtect(Pointer(First), Size, ReadWrite) <> 0 then
    Exit;
  Redirect(Own);
  LibcProtect(Pointer(First), Size, ReadOnly);
end;

// This module is known by its code: the names that it exports may be those of another one here.
function LookAt(Module: PModule; Size: NativeUInt; Context: Pointer): LongInt; cdecl;
var
  Own: TNames;
begin
  Result := 0;
  if not ModuleHas(Module, NativeUInt(@Redirect)) then
    Exit;
  NamesOpen(Module, Own);
  RedirectPages(Own);
  Result := 1;
end;

// Returns libc's dlopen, or nil.
function DlOpenReady(Flags: LongInt): Pointer;
begin
  if (Flags and DeepBind <> 0) and not IsRedirected and not ForeignIsForProcess then
  begin
    if LibcFind then
      ModulesVisit(LookAt, nil);
    IsRedirected := True;
  end;
  FetchAdd(Stacks.CodeChanges, 1); // the module may come to where another one was
  Result := ModulesFind('dlopen');
end;

// Jumps to libc's dlopen: that looks at the address of its caller.
function DlOpen(Name: PAnsiChar; Flags: LongInt): Pointer; assembler; nostackframe;
  [public, alias: 'dlopen'];
asm
  push rdi
  push rsi
  push rdi // keeps the stack aligned
  mov edi, esi
  call DlOpenReady
  pop rdi
  pop rsi
  pop rdi
  test rax, rax
  jz @Done
  jmp rax
@Done:
end;

end.
