/// Runs a report on a stack that is aligned as the compiler takes it to be, or on one of its own.
//
// Owns:       nothing.
// Invariants: the run-time library of Free Pascal 3.3.1 raises the exception of a fault on the
//             stack that the fault left: 8 bytes off if that was in a routine without a frame. What
//             runs from then on, up to the report at the end, has that stack, and that compiler
//             copies records by moves that fault there. 3.2 has no such moves.
//             A report takes up to 96 KB of stack, and a signal handler of a program in C may have
//             an alternate one of 2 KB. A program in Pascal keeps its own: it may check its stack.
// Callers:    all reports of the program's threads.
// Source:     Free Pascal 3.3.1, rtl/linux/x86_64/sighnd.inc; System V ABI for x86_64, 3.2.2.
unit LaneMM.ReportStack;

{$I ../LaneMM.inc}

interface

type
  /// Writes a report. Context is the caller's.
  TReportCall = procedure(Context: Pointer);

/// Calls Call with Context; in the C library on a stack of its own, unless there is no memory. Also
/// in a signal handler.
procedure ReportRun(Call: TReportCall; Context: Pointer);

implementation

{$if defined(LANEMM_ASM_LINUX) or defined(LANEMM_ALIGNS)}
uses
  LaneMM.Types, LaneMM.Os;

  {$I LaneMM.ReportStack.x64.inc}
{$else}
procedure ReportRun(Call: TReportCall; Context: Pointer);
begin
  Call(Context);
end;
{$ifend}

end.
