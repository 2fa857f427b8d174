/// Signals to single threads of this process, for tests that stop a thread wherever it is.
//
// Callers:    any thread, in signal handlers, too: no call here allocates or locks.
// Source:     tgkill(2), gettid(2); rtl/linux of Free Pascal has the numbers of system calls and
//             the records that handlers receive, for each processor.
unit ThreadSignals;

{$mode delphi}

interface

uses
  BaseUnix;

/// Returns the number that Linux gives the calling thread.
function ThreadNumber: Cardinal;
/// Sends Signal to a thread by its number; 0 only asks for the thread. Returns whether it has not
/// ended.
function SignalTo(Thread: Cardinal; Signal: LongInt): Boolean;
/// Returns the address where a signal interrupted its thread. Context: what a handler with
/// SA_SIGINFO receives.
function SignalPlace(Context: PSigContext): NativeUInt;

implementation

uses
  Syscall;

function ThreadNumber: Cardinal;
begin
  Result := Do_SysCall(syscall_nr_gettid);
end;

function SignalTo(Thread: Cardinal; Signal: LongInt): Boolean;
begin
  Result := Do_SysCall(syscall_nr_tgkill, FpGetPid, Thread, Signal) = 0;
end;

// Linux passes a ucontext_t. TSigContext of Free Pascal is that on x86_64, elsewhere a part of it.
function SignalPlace(Context: PSigContext): NativeUInt;
begin
  {$if defined(CPUX86_64)}
  Result := Context^.rip;
  {$elseif defined(CPUAARCH64)}
  Result := PUContext(Context)^.uc_mcontext.pc;
  {$elseif defined(CPUI386)}
  Result := PUContext(Context)^.uc_mcontext.eip;
  {$ifend}
end;

end.
