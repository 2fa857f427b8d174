/// A unit outside of the rooms. It may use what it likes until it has one.
unit LaneMM.Unknown;

interface

uses
  LaneMM.High;

implementation

end.
