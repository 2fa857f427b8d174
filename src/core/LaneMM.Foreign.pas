/// Pointers that are not ours: other copies of LaneMM in the process, and the previous manager.
//
// Owns:       Process.Copies, Previous, HasPrevious. A Pascal program and each Pascal library
//             that it loads have their own copy of this unit; all of them register on one page
//             at an address that each of them knows.
// Invariants: a foreign pointer is compared with address ranges, never read through, unless a
//             copy or the previous manager says that it is theirs.
// Callers:    any thread; ForeignStart and ForeignStop: at start and unload.
unit LaneMM.Foreign;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Hooks;

/// Registers this copy and keeps the manager that was installed before.
procedure ForeignStart(Owns: TOwnsCall; FreeBlock, SizeOfBlock: TBlockCall);
/// Takes this copy off the page.
procedure ForeignStop(Owns: TOwnsCall);
/// Frees a block of somebody else; tells whether somebody knew it. Size is its usable size.
function ForeignFree(P: Pointer; out Size: NativeUInt): Boolean;
/// The usable size of a block of somebody else; tells whether somebody knew it.
function ForeignSize(P: Pointer; out Size: NativeUInt): Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Os;

const
  // Raised when TCopy or the meaning of its calls changes.
  Version = NativeUInt($4C4D4D01);
  MaxCopies = 64;

type
  TCopy = record
    IsTaken: TAtomicWord;    //< shared  1: a copy has this entry
    Owns: TAtomicWord;       //< shared  address of its TOwnsCall; 0 before it is complete
    FreeBlock: TBlockCall;   //< const   while Owns is not 0
    SizeOfBlock: TBlockCall; //< const   while Owns is not 0
  end;
  PCopy = ^TCopy;
  TCopies = record
    Version: NativeUInt;
    Copies: array[0..MaxCopies - 1] of TCopy;
  end;
  PCopies = ^TCopies;

{$if SizeOf(TCopies) > OsPageSize}
  {$message fatal 'TCopies: more than a page'}
{$ifend}

procedure Register(Copies: PCopies; Owns: TOwnsCall; FreeBlock, SizeOfBlock: TBlockCall);
var
  Copy: PCopy;
  Index: Cardinal;
begin
  for Index := 0 to MaxCopies - 1 do
  begin
    Copy := @Copies^.Copies[Index];
    if CompareAndSwap(Copy^.IsTaken, 0, 1) then
    begin
      Copy^.FreeBlock := FreeBlock;
      Copy^.SizeOfBlock := SizeOfBlock;
      // Release: the calls before Owns, which is looked at first. Pairs with FindOwner.
      StoreRelease(Copy^.Owns, NativeUInt(@Owns));
      Process.Copies := Copies;
      Exit;
    end;
  end;
end;

procedure KeepPrevious;
begin
  GetMemoryManager(Process.Previous);
  // The run-time library's own manager knows how much it has handed out; others may not.
  Process.HasPrevious := (@Process.Previous.GetMem <> @SysGetMem)
    or (Process.Previous.GetFPCHeapStatus().CurrHeapUsed <> 0);
end;

procedure ForeignStart(Owns: TOwnsCall; FreeBlock, SizeOfBlock: TBlockCall);
var
  Copies: PCopies;
  IsNew: Boolean;
begin
  KeepPrevious;
  Copies := OsSharedPage(CopiesAddress, IsNew);
  if Copies = nil then
    Exit;
  if IsNew then
    Copies^.Version := Version;
  if Copies^.Version = Version then
    Register(Copies, Owns, FreeBlock, SizeOfBlock);
end;

procedure ForeignStop(Owns: TOwnsCall);
var
  Copies: PCopies;
  Index: Cardinal;
begin
  Copies := Process.Copies;
  if Copies = nil then
    Exit;
  for Index := 0 to MaxCopies - 1 do
    if Copies^.Copies[Index].Owns = NativeUInt(@Owns) then
    begin
      StoreRelease(Copies^.Copies[Index].Owns, 0);
      StoreRelease(Copies^.Copies[Index].IsTaken, 0);
    end;
end;

// Finds who has the block P, as far as anybody knows it: Owner gets his calls.
function FindOwner(P: Pointer; out Owner: TCopy): Boolean;
var
  Copies: PCopies;
  Index: Cardinal;
  Owns: NativeUInt;
begin
  Copies := Process.Copies;
  if Copies <> nil then
    for Index := 0 to MaxCopies - 1 do
    begin
      // Acquire: see the calls. Pairs with Register.
      Owns := LoadAcquire(Copies^.Copies[Index].Owns);
      if (Owns <> 0) and TOwnsCall(Owns)(P) then
      begin
        Owner := Copies^.Copies[Index];
        Exit(True);
      end;
    end;
  Owner := Default(TCopy);
  Owner.FreeBlock := Process.Previous.FreeMem;
  Owner.SizeOfBlock := Process.Previous.MemSize;
  Result := Process.HasPrevious;
end;

function ForeignFree(P: Pointer; out Size: NativeUInt): Boolean;
var
  Owner: TCopy;
begin
  Result := FindOwner(P, Owner);
  if Result then
    Size := Owner.FreeBlock(P);
end;

function ForeignSize(P: Pointer; out Size: NativeUInt): Boolean;
var
  Owner: TCopy;
begin
  Result := FindOwner(P, Owner);
  if Result then
    Size := Owner.SizeOfBlock(P);
end;

end.
