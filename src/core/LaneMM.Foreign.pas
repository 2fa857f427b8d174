/// Blocks of other copies of LaneMM in the process, and of the previous memory manager.
//
// Owns:       Process.Copies, Previous, HasPrevious. A Pascal program and each Pascal library
//             that it loads have their own copy of this unit; all copies register on one page
//             at a fixed address (CopiesAddress).
// Invariants: a pointer that no arena holds is not dereferenced here: each copy checks whether it
//             owns the block; what no copy's arena holds belongs to the previous manager, if that
//             has blocks in use. An invalid pointer in the arena of a copy is reported by that
//             copy, which knows its backtraces; the error is raised by the one that was called.
// Callers:    any thread; ForeignStart and ForeignStop: at start and unload.
unit LaneMM.Foreign;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Hooks;

type
  /// What a copy does for the others.
  TCopyCalls = record
    Owns: TOwnsCall;                   //< returns whether P is one of its blocks in use
    FreeBlock: TBlockCall;             //< frees one of its blocks
    SizeOfBlock: TBlockCall;           //< returns the usable size of one
    Holds: TOwnsCall;                  //< returns whether P, any pointer, lies in one of its arenas
    ReportInvalid: TInvalidPointerCall; //< reports a pointer that it holds and does not own
  end;

/// Registers this copy and keeps the previous memory manager.
procedure ForeignStart(const Calls: TCopyCalls);
/// Removes this copy from the page.
procedure ForeignStop(Owns: TOwnsCall);
/// Frees a block of another copy or of the previous manager. Returns false, and changes nothing, if
/// it has no owner. Size is its usable size.
function ForeignFree(P: Pointer; out Size: NativeUInt): Boolean;
/// Stores the usable size of such a block in Size. Returns false if it has no owner.
function ForeignSize(P: Pointer; out Size: NativeUInt): Boolean;
/// Lets the copy whose arena holds P report a call with it. Returns false if no other copy does.
function ForeignReportInvalid(P: Pointer; Call: TInvalidCall): Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Os, LaneMM.Rtl;

const
  // Increases when TCopy or the meaning of its calls changes.
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
  // Of the copy with the same index. All zero of a copy of version 1.0.0-rc1 or earlier.
  TReporter = record
    Holds: TAtomicWord;                 //< shared  address of its TOwnsCall; 0: none
    ReportInvalid: TInvalidPointerCall; //< const   while Holds is not 0
  end;
  PReporter = ^TReporter;
  TCopies = record
    Version: NativeUInt;                              //< const   Version of the copy that made the
                                                      //  page
    Copies: array[0..MaxCopies - 1] of TCopy;         //< shared  see TCopy
    Reporters: array[0..MaxCopies - 1] of TReporter;  //< shared  see TReporter
  end;
  PCopies = ^TCopies;

{$if SizeOf(TCopies) > OsPageSize}
  {$message fatal 'TCopies: more than a page'}
{$ifend}

procedure RegisterReporter(var Reporter: TReporter; const Calls: TCopyCalls);
begin
  Reporter.ReportInvalid := Calls.ReportInvalid;
  // Release: ReportInvalid, which is read after Holds. Pairs with FindReporter.
  StoreRelease(Reporter.Holds, NativeUInt(@Calls.Holds));
end;

procedure Register(Copies: PCopies; const Calls: TCopyCalls);
var
  Copy: PCopy;
  Index: Cardinal;
begin
  for Index := 0 to MaxCopies - 1 do
  begin
    Copy := @Copies^.Copies[Index];
    if CompareAndSwap(Copy^.IsTaken, 0, 1) then
    begin
      Copy^.FreeBlock := Calls.FreeBlock;
      Copy^.SizeOfBlock := Calls.SizeOfBlock;
      RegisterReporter(Copies^.Reporters[Index], Calls);
      // Release: the calls before Owns, which is read first. Pairs with FindOwner.
      StoreRelease(Copy^.Owns, NativeUInt(@Calls.Owns));
      Process.Copies := Copies;
      Exit;
    end;
  end;
end;

procedure KeepPrevious;
begin
  GetMemoryManager(Process.Previous);
  // The run-time library's own manager reports the bytes in use; others may not.
  Process.HasPrevious := (@Process.Previous.GetMem <> @SysGetMem)
    or (Process.Previous.GetFPCHeapStatus().CurrHeapUsed <> RtlArgumentBytes);
end;

procedure ForeignStart(const Calls: TCopyCalls);
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
    Register(Copies, Calls);
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
      StoreRelease(Copies^.Reporters[Index].Holds, 0);
      StoreRelease(Copies^.Copies[Index].IsTaken, 0);
    end;
end;

// Returns the copy whose arena holds P; nil for none.
function FindReporter(P: Pointer): PReporter;
var
  Copies: PCopies;
  Index: Cardinal;
  Holds: NativeUInt;
begin
  Copies := Process.Copies;
  if Copies <> nil then
    for Index := 0 to MaxCopies - 1 do
    begin
      // Acquire: see ReportInvalid. Pairs with RegisterReporter.
      Holds := LoadAcquire(Copies^.Reporters[Index].Holds);
      if (Holds <> 0) and TOwnsCall(Holds)(P) then
        Exit(@Copies^.Reporters[Index]);
    end;
  Result := nil;
end;

// Finds the copy that owns the block P, else the previous manager; Owner holds its calls. Returns
// false if there is neither.
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
  Result := Process.HasPrevious and (FindReporter(P) = nil);
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
  Result := FindOwner(P, Owner) and (@Owner.SizeOfBlock <> nil);
  if Result then
    Size := Owner.SizeOfBlock(P);
end;

function ForeignReportInvalid(P: Pointer; Call: TInvalidCall): Boolean;
var
  Reporter: PReporter;
begin
  Reporter := FindReporter(P);
  Result := Reporter <> nil;
  if Result then
    Reporter^.ReportInvalid(P, Call);
end;

end.
