/// Counts the instructions that a thread executes while it has one of the engine's locks.
///
/// While StepsWatch is on, a breakpoint stands at the start of LockTryAgain, which each try of a
/// lock goes through; LockTry and LockLeave are as in any release build. A thread that comes
/// there is stepped by the processor's trap flag, to the end of the try if that fails, else until
/// LockLeave has freed the last lock that it took: nothing else of the program is stepped.
///
/// A section is the instructions from the compare-and-swap that takes the lock to the exchange that
/// frees it, both included. Each step looks at the instruction that comes next, so system calls are seen, too. A
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
  BaseUnix, Syscall, LaneMM.Lock;

const
  NrProtect = 10;
  TrapFlag = $100;
  Breakpoint = $CC;
  // The first instruction of LockTryAgain, which the handler executes in the breakpoint's place.
  PushRbx = $53;
  LockPrefix = $F0;        // that of the compare-and-swap
  WideExchange = $8748;    // the exchange in LockLeave: no other instruction there begins so
  SystemCall = $050F;
  MostOpen = 4;

type
  // What the thread does.
  TPlace = (plOther, plTry, plLeave);

var
  Open: array[1..MostOpen] of TSection; // the locks that the thread has, the last one on top
  OpenCount: Integer;
  Place: TPlace;
  // While it tries: the lock, where LockTryAgain returns to, and the steps from the
  // compare-and-swap on; before it, -1.
  Tried, ReturnPlace: NativeUInt;
  StepsSince: Int64;

function Entry: PByte;
begin
  Result := @LockTryAgain;
end;

// Whether this is the code of LaneMM.Lock, whose routines lie in the order of the source.
function IsOfLock(Address: NativeUInt): Boolean;
begin
  Result := (Address >= NativeUInt(@LockEnter)) and (Address < NativeUInt(@LockReset));
end;

procedure TryBegin(Context: PSigContext);
begin
  Dec(Context^.rsp, SizeOf(NativeUInt));
  PNativeUInt(Context^.rsp)^ := Context^.rbx;
  Tried := Context^.rdi;
  ReturnPlace := PNativeUInt(Context^.rsp)[1];
  StepsSince := -1;
  Place := plTry;
end;

procedure TryEnd(IsTaken: Boolean);
begin
  Place := plOther;
  if not IsTaken then
    Exit;
  Inc(OpenCount);
  Open[OpenCount] := Default(TSection);
  Open[OpenCount].Lock := Tried;
  Open[OpenCount].StepCount := StepsSince;
end;

// Before the exchange that frees the lock: it counts, too.
procedure SectionEnd;
begin
  Place := plOther;
  Inc(Open[OpenCount].StepCount);
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
    plLeave:
      if PWord(Next)^ = WideExchange then
        SectionEnd;
  else
    if Next = NativeUInt(@LockLeave) then
      Place := plLeave;
  end;
end;

// The handler of SIGTRAP: of the breakpoint, and of each step.
procedure Trapped(Signal: LongInt; Info: PSigInfo; Context: PSigContext); cdecl;
begin
  CountStep(Context^.rip);
  if Context^.rip = NativeUInt(Entry + 1) then
    TryBegin(Context)
  else
    Step(Context);
  if (OpenCount > 0) or (Place <> plOther) then
    Context^.eflags := Context^.eflags or TrapFlag
  else
    Context^.eflags := Context^.eflags and not TrapFlag;
end;

function StepsPrepare: Boolean;
const
  PageMask = NativeUInt(4095);
var
  Action: SigActionRec;
  Page: NativeUInt;
begin
  FillChar(Action, SizeOf(Action), 0);
  Action.sa_handler := SigActionHandler(@Trapped);
  Action.sa_flags := SA_SIGINFO;
  Page := NativeUInt(Entry) and not PageMask;
  Result := (Entry^ = PushRbx) and IsOfLock(NativeUInt(@LockTryAgain))
    and IsOfLock(NativeUInt(@LockTry)) and IsOfLock(NativeUInt(@LockLeave))
    and (FpSigAction(SIGTRAP, @Action, nil) = 0)
    and (Do_SysCall(NrProtect, Page, PageMask + 1, PROT_READ or PROT_WRITE or PROT_EXEC) = 0);
end;

procedure StepsWatch;
begin
  Entry^ := Breakpoint;
end;

procedure StepsPass;
begin
  Entry^ := PushRbx;
end;

end.
