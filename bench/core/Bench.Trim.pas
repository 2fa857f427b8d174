/// What a memory manager offers to give free memory back to the system.
unit Bench.Trim;

{$I Bench.inc}

interface

var
  /// Gives free memory back; nil where the manager has no such call.
  TrimMemory: procedure; //< const   written at start, by the unit of the manager

implementation

end.
