/// Pointers that are not ours: other copies of LaneMM in the process, and the previous manager.
//
// Owns:       Process.Copies, Previous, HasPrevious. A Pascal program and each Pascal library
//             that it loads have their own copy of this unit; all of them register on one page
//             at an address that each of them knows.
// Invariants: a foreign pointer is compared with address ranges, never read through, unless a
//             copy or the previous manager says that it is theirs.
// Callers:    any thread; ForeignStart and ForeignStop: at start and unload.
unit LaneMM.Foreign;

{$I LaneMM.inc}

interface

uses
  LaneMM.Types;

type
  /// Whether P is a block of this copy.
  TBlockOwns = function(P: Pointer): Boolean;

/// Registers this copy and keeps the manager that was installed before.
procedure ForeignStart(Owns: TBlockOwns; FreeBlock, SizeOfBlock: TBlockCall);
/// Takes this copy off the page.
procedure ForeignStop(Owns: TBlockOwns);
/// Frees a block of somebody else; tells whether somebody knew it. Size is its usable size.
function ForeignFree(P: Pointer; out Size: NativeUInt): Boolean;
/// The usable size of a block of somebody else; tells whether somebody knew it.
function ForeignSize(P: Pointer; out Size: NativeUInt): Boolean;

implementation

uses
  LaneMM.Atomic, LaneMM.Os;

const
  // Raised when TCopy or the meaning of its calls changes.
  Version = NativeUInt($4C4D4D01);
  MaxCopies = 64;

type
  TCopy = record
    IsTaken: TAtomicWord;    //< shared  1: a copy has this entry
    Owns: TAtomicWord;       //< shared  address of its TBlockOwns; 0 before it is complete
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

procedure Register(Copies: PCopies; Owns: TBlockOwns; FreeBlock, SizeOfBlock: TBlockCall);
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
      // Release: the calls before Owns, which is looked at first. Pairs with FindCopy.
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

procedure ForeignStart(Owns: TBlockOwns; FreeBlock, SizeOfBlock: TBlockCall);
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

procedure ForeignStop(Owns: TBlockOwns);
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

function FindCopy(P: Pointer): PCopy;
var
  Copies: PCopies;
  Index: Cardinal;
  Owns: NativeUInt;
begin
  Copies := Process.Copies;
  if Copies <> nil then
    for Index := 0 to MaxCopies - 1 do
    begin
      Result := @Copies^.Copies[Index];
      Owns := LoadAcquire(Result^.Owns);
      if (Owns <> 0) and TBlockOwns(Owns)(P) then
        Exit;
    end;
  Result := nil;
end;

function ForeignFree(P: Pointer; out Size: NativeUInt): Boolean;
var
  Copy: PCopy;
begin
  Copy := FindCopy(P);
  Result := (Copy <> nil) or Process.HasPrevious;
  if Copy <> nil then
    Size := Copy^.FreeBlock(P)
  else if Result then
    Size := Process.Previous.FreeMem(P);
end;

function ForeignSize(P: Pointer; out Size: NativeUInt): Boolean;
var
  Copy: PCopy;
begin
  Copy := FindCopy(P);
  Result := (Copy <> nil) or Process.HasPrevious;
  if Copy <> nil then
    Size := Copy^.SizeOfBlock(P)
  else if Result then
    Size := Process.Previous.MemSize(P);
end;

end.
