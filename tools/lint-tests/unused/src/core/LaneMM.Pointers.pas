/// Not needed.
unit LaneMM.Pointers;

interface

type
  /// A pointer.
  PBlocks = ^Pointer;

implementation

end.
