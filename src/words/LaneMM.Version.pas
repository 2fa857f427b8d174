/// The version of LaneMM.
//
// Owns:       nothing.
// Callers:    any thread. `make lint` compares it with each file that repeats it: tools/version.sh.
unit LaneMM.Version;

{$I ../LaneMM.inc}

interface

const
  /// Major, minor and patch number, and for a candidate its number, as of Semantic Versioning 2.
  ThisVersion = '1.0.0';

implementation

end.
