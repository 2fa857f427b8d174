/// Needed for the value of an enumeration.
unit LaneMM.Kinds;

interface

type
  /// Kinds.
  TKind = (
    kdSmall,    //< small
    kdLarge     //< large
  );

implementation

end.
