/// Closes the cycle, in its implementation.
unit LaneMM.Higher;

interface

implementation

uses
  LaneMM.High;

end.
