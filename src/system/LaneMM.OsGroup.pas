/// The memory of the container that the process runs in: of control groups on Linux, of the job on
/// Windows.
//
// Owns:    nothing.
// Callers: any thread; uses system calls only, and 6 KB of stack.
// Source:  Linux: Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst,
//          accounting/psi.rst. Windows: learn.microsoft.com, QueryInformationJobObject.
unit LaneMM.OsGroup;

{$I ../LaneMM.inc}

interface

type
  /// The memory of the group around the process that is nearest to its limit.
  TGroupMemory = record
    Limit: UInt64;      //< owner   bytes that it may have; 0: no group has a limit
    Used: UInt64;       //< owner   bytes that it has, without files that the system drops first
    IsWaiting: Boolean; //< owner   tasks of the process's group wait for memory
  end;

/// Reads the memory of the groups. Root: the folder where they are mounted; GroupFile: the file
/// that names the groups of the process; nil: those of the system. Windows has neither.
procedure OsGroupRead(Root, GroupFile: PAnsiChar; out Memory: TGroupMemory);

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Bits, LaneMM.Os
  {$ifndef MSWINDOWS} , LaneMM.OsFiles {$endif};

// Takes a limit into Memory if Used is nearer to it. By thousandths: the product of two sizes would
// not fit.
procedure SeeLimit(Limit, Used: UInt64; var Memory: TGroupMemory);
begin
  if (Memory.Limit <> 0)
    and (Used div (Limit div 1000 + 1) <= Memory.Used div (Memory.Limit div 1000 + 1)) then
    Exit;
  Memory.Limit := Limit;
  Memory.Used := Used;
end;

{$if defined(LINUX)}
  {$I LaneMM.OsGroup.Linux.inc}
{$else}
  {$I LaneMM.OsGroup.Windows.inc}
{$ifend}

end.
