/// Counts the instructions that a thread executes while it has one of the engine's locks.
///
/// While StepsWatch is on, a breakpoint stands at the start of LockTryAgain, which each try of a
/// lock goes through; LockTry and LockLeave are as in any release build. A thread that comes
/// there is stepped by the processor's trap flag, to the end of the try if that fails, else until
/// LockLeave has freed the last lock that it took: nothing else of the program is stepped.
///
/// Another one stands at the start of RunsRelease, which claims the runs of a heap.
///
/// A section is the instructions from the compare-and-swap that takes the lock to the exchange that
/// frees it, both included; that of a claim ends when RunsRelease returns. Each step looks at the instruction that comes next, so system calls are seen, too. A
/// repeated string instruction counts once for each repetition.
///
/// x86_64 with Linux. One thread at a time: the others wait for it while StepsWatch is on.
unit Stepping;

{$mode delphi}{$pointermath on}

interface

const
  MostSections = 50000;

type
  /// A stretch of a thread's work under a lock.
  TSection = record
    Lock: NativeUInt;        //< address of the TLock
    IsClaim: Boolean;        //< of THeap.RunsClaimed; Lock is the heap then
    Routine: NativeUInt;     //< an address in the routine that took it
    StepCount: NativeUInt;   //< instructions
    CallCount: NativeUInt;   //< system calls among them
  end;
  PSection = ^TSection;

var
  /// The sections so far, in the order of their ends.
  Sections: array[0..MostSections - 1] of TSection;
  SectionCount: Integer;
  /// Steps of all kinds.
  StepCount: Int64;

/// Prepares the process. Returns false if the code of LaneMM.Lock is not as expected.
function StepsPrepare: Boolean;
/// From now on the sections of the one thread that runs are counted.
procedure StepsWatch;
/// Not any more. The thread has left all locks.
procedure StepsPass;

implementation

uses
  BaseUnix, Syscall, LaneMM.Lock, LaneMM.KeptRuns;

const
  NrProtect = 10;
  TrapFlag = $100;
  Breakpoint = $CC;
  // The first instruction of both routines, which the handler executes in the breakpoint's place.
  PushRbx = $53;
  LockPrefix = $F0;        // that of the compare-and-swap
  WideExchange = $8748;    // the exchange in LockLeave: no other instruction there begins so
  SystemCall = $050F;
  MostOpen = 4;

type
  // What the thread does.
  TPlace = (plOther, plTry, plLeave, plClaim);

var
  Open: array[1..MostOpen] of TSection; // the locks that the thread has, the last one on top
  OpenCount: Integer;
  Place: TPlace;
  // While it tries: the lock, where LockTryAgain returns to, and the steps from the
  // compare-and-swap on; before it, -1.
  Tried, ReturnPlace: NativeUInt;
  StepsSince: Int64;
  // The same of a claim.
  Claimed, ClaimReturn: NativeUInt;

function Entry: PByte;
begin
  Result := @LockTryAgain;
end;

function ClaimEntry: PByte;
begin
  Result := @RunsRelease;
end;

// Whether this is the code of LaneMM.Lock, whose routines lie in the order of the source.
function IsOfLock(Address: NativeUInt): Boolean;
begin
  Result := (Address >= NativeUInt(@LockEnter)) and (Address < NativeUInt(@LockReset));
end;

procedure Push(Context: PSigContext);
begin
  Dec(Context^.rsp, SizeOf(NativeUInt));
  PNativeUInt(Context^.rsp)^ := Context^.rbx;
end;

procedure TryBegin(Context: PSigContext);
begin
  Push(Context);
  Tried := Context^.rdi;
  ReturnPlace := PNativeUInt(Context^.rsp)[1];
  StepsSince := -1;
  Place := plTry;
end;

procedure SectionBegin(Lock: NativeUInt; Steps: Int64);
begin
  Inc(OpenCount);
  Open[OpenCount] := Default(TSection);
  Open[OpenCount].Lock := Lock;
  Open[OpenCount].StepCount := Steps;
end;

procedure TryEnd(IsTaken: Boolean);
begin
  Place := plOther;
  if IsTaken then
    SectionBegin(Tried, StepsSince);
end;

procedure ClaimBegin(Context: PSigContext);
begin
  Push(Context);
  Claimed := Context^.rdi;
  ClaimReturn := PNativeUInt(Context^.rsp)[1];
  Place := plClaim;
end;

procedure SectionEnd;
begin
  if SectionCount < MostSections then
    Sections[SectionCount] := Open[OpenCount];
  Inc(SectionCount);
  Dec(OpenCount);
end;

// Counts the step that was done, and the system call that comes next.
procedure CountStep(Next: NativeUInt);
var
  Index: Integer;
begin
  Inc(StepCount);
  for Index := 1 to OpenCount do
  begin
    Inc(Open[Index].StepCount);
    if PWord(Next)^ = SystemCall then
      Inc(Open[Index].CallCount);
  end;
  if (OpenCount > 0) and (Open[OpenCount].Routine = 0) and not IsOfLock(Next) then
    Open[OpenCount].Routine := Next;
end;

procedure Step(Context: PSigContext);
var
  Next: NativeUInt;
begin
  Next := Context^.rip;
  case Place of
    plTry:
      begin
        if (PByte(Next)^ = LockPrefix) or (StepsSince >= 0) then
          Inc(StepsSince);
        if Next = ReturnPlace then
          TryEnd(Boolean(Context^.rax and $FF));
      end;
    plClaim:
      if PByte(Next)^ = LockPrefix then
      begin
        Place := plOther;
        SectionBegin(Claimed, 0);
        Open[OpenCount].IsClaim := True;
        Open[OpenCount].Routine := NativeUInt(ClaimEntry);
      end
      else if Next = ClaimReturn then
        Place := plOther; // nothing to claim
    plLeave:
      if PWord(Next)^ = WideExchange then
      begin
        Place := plOther;
        Inc(Open[OpenCount].StepCount); // the exchange
        SectionEnd;
      end;
  else
    if Next = NativeUInt(@LockLeave) then
      Place := plLeave
    else if (OpenCount > 0) and Open[OpenCount].IsClaim and (Next = ClaimReturn) then
      SectionEnd;
  end;
end;

// The handler of SIGTRAP: of the breakpoint, and of each step.
procedure Trapped(Signal: LongInt; Info: PSigInfo; Context: PSigContext); cdecl;
begin
  CountStep(Context^.rip);
  if Context^.rip = NativeUInt(Entry + 1) then
    TryBegin(Context)
  else if Context^.rip = NativeUInt(ClaimEntry + 1) then
    ClaimBegin(Context)
  else
    Step(Context);
  if (OpenCount > 0) or (Place <> plOther) then
    Context^.eflags := Context^.eflags or TrapFlag
  else
    Context^.eflags := Context^.eflags and not TrapFlag;
end;

// Makes the code at Start writable. Returns false if it is not as expected.
function Prepare(Start: PByte): Boolean;
const
  PageMask = NativeUInt(4095);
begin
  Result := (Start^ = PushRbx) and (Do_SysCall(NrProtect, NativeUInt(Start) and not PageMask,
    PageMask + 1, PROT_READ or PROT_WRITE or PROT_EXEC) = 0);
end;

function StepsPrepare: Boolean;
var
  Action: SigActionRec;
begin
  FillChar(Action, SizeOf(Action), 0);
  Action.sa_handler := SigActionHandler(@Trapped);
  Action.sa_flags := SA_SIGINFO;
  Result := Prepare(Entry) and Prepare(ClaimEntry) and IsOfLock(NativeUInt(@LockTryAgain))
    and IsOfLock(NativeUInt(@LockTry)) and IsOfLock(NativeUInt(@LockLeave))
    and (FpSigAction(SIGTRAP, @Action, nil) = 0);
end;

procedure StepsWatch;
begin
  Entry^ := Breakpoint;
  ClaimEntry^ := Breakpoint;
end;

procedure StepsPass;
begin
  Entry^ := PushRbx;
  ClaimEntry^ := PushRbx;
end;

end.
