/// Needed for a constant, by assembler in an include file.
unit LaneMM.Numbers;

interface

const
  /// A number.
  LargestNumber = $FF;

implementation

end.
