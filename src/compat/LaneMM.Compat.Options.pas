/// The options of FastMM4 and FastMM5, defined for the compiler, as settings of LaneMM.
//
// Most options are how LaneMM is always, or choose between ways that it does not have; they have no
// effect. Those below act at the start, or stop the compiler with the reason. docs/migrating.md has
// all of them.
unit LaneMM.Compat.Options;

{$I ../LaneMM.inc}

{$if defined(InstallOnlyIfRunningInIDE) or defined(FullDebugModeInIDE)
  or defined(RequireIDEPresenceForLeakReporting)
  or defined(FastMM_RequireIDEPresenceForLeakReporting)}
  {$message fatal 'LaneMM does not look for an IDE: set LANEMM=debug,leaks where you develop'}
{$ifend}
{$if defined(RequireDebuggerPresenceForLeakReporting)
  or defined(FastMM_RequireDebuggerPresenceForLeakReporting)
  or defined(RequireDebugInfoForLeakReporting)}
  {$message fatal 'LaneMM reports leaks without a debugger: set LANEMM=leaks where you want them'}
{$ifend}
{$ifdef AlwaysAllocateTopDown}
  {$message fatal 'LaneMM cannot allocate top down: remove AlwaysAllocateTopDown'}
{$endif}
{$ifdef SuppressFreeMemErrorsInsideException}
  {$message fatal 'LaneMM reports every invalid free: remove SuppressFreeMemErrorsInsideException'}
{$endif}
{$ifdef FullDebugModeCallBacks}
  {$message fatal 'Use the setting trace and LaneMM_OnEvent instead of FullDebugModeCallBacks'}
{$endif}
{$ifdef FastMM_DisableAutomaticInstall}
  {$message fatal 'LaneMM installs itself; LANEMM=off leaves the manager before it in place'}
{$endif}
{$ifdef FastMM_IncludeLegacyOptionsFile}
  {$message fatal 'LaneMM reads no FastMM4Options.inc: pass its options to the compiler with -d'}
{$endif}

interface

implementation

uses
  LaneMM;

procedure ApplyOptions;
begin
  {$if defined(FullDebugMode) or defined(FastMM_FullDebugMode)
    or defined(FullDebugModeWhenDLLAvailable) or defined(FastMM_FullDebugModeWhenDLLAvailable)}
  LaneMM_EnterDebugMode;
  {$ifend}
  {$if (defined(EnableMemoryLeakReporting) or defined(FastMM_EnableMemoryLeakReporting))
    and not defined(ManualLeakReportingControl)}
  LaneMM_ReportMemoryLeaksOnShutdown;
  {$ifend}
  {$if defined(ClearLogFileOnStartup) or defined(FastMM_ClearLogFileOnStartup)}
  LaneMM_DeleteEventLog;
  {$ifend}
  {$ifdef Align32Bytes} LaneMM_EnterAlignment(32); {$endif}
  {$ifdef AlwaysClearFreedMemory} LaneMM_Configure('erase=free'); {$endif}
  {$ifdef ClearMemoryBeforeReturningToOS} LaneMM_Configure('erase=return'); {$endif}
  {$ifdef DisableLoggingOfMemoryDumps} LaneMM_Configure('dump=0'); {$endif}
  {$ifdef LogLockContention} LaneMM_Configure('contention'); {$endif}
end;

initialization
  ApplyOptions;
end.
