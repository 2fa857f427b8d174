/// The run-time library under Free Pascal's names. For Delphi, bodies of those that it lacks.
//
// Owns:       Delphi: RtlManagers. Free Pascal: nothing.
// Delphi:     its memory manager record has other routines, with other results. The routines of
//             this unit stand in it, and call those of a record like Free Pascal's. A block of the
//             manager before LaneMM can be freed, not resized: its size is unknown.
// Callers:    any thread, unless a routine says otherwise.
// Source:     Free Pascal: rtl/inc, systemh.inc, heaph.inc. Delphi: docwiki, API:System.
unit LaneMM.Rtl;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout;

type
  /// Routines that the compiler calls for New and Dispose: New and Dispose themselves, and what
  /// calls constructors and destructors of objects.
  TRtlCall = (rcNew, rcDispose, rcConstructor, rcDestructor);
  /// A routine of RtlSpillRegisters. Context is the caller's.
  TContextCall = procedure(Context: Pointer);

/// Returns the address of such a routine; nil where it is unknown.
function RtlCall(Call: TRtlCall): Pointer;
/// Calls Call with Context, and with what the caller has in registers on the stack, too.
procedure RtlSpillRegisters(Call: TContextCall; Context: Pointer);
/// Returns the address of a variable of the calling thread, which lies among the program's.
function RtlThreadVariable: Pointer;
/// Finalizes the units that are not finalized yet.
procedure RtlFinalizeUnits;
/// Returns the bytes of the program's arguments, where they are blocks; they are never freed.
function RtlArgumentBytes: NativeUInt;

{$ifndef FPC}

/// Stores the routines of the current memory manager. Before SetMemoryManager only FreeMem and
/// GetFPCHeapStatus are set.
procedure GetMemoryManager(out Manager: TMemoryManager);
/// Makes Manager the memory manager.
procedure SetMemoryManager(const Manager: TMemoryManager);
/// Stands for GetMem of the manager before LaneMM, which has no such address here. Returns nil.
function SysGetMem(Size: NativeUInt): Pointer;
/// Returns the frame pointer of the calling routine.
function get_frame: Pointer;
/// Returns the exceptions that are being handled: nil, since Delphi has no list on all systems.
function RaiseList: Pointer;

{$endif}

implementation

{$ifdef FPC}
uses
  LaneMM.Os;

  {$I LaneMM.Rtl.Fpc.inc}
{$else}
  {$I LaneMM.Rtl.Delphi.inc}
{$endif}

end.
