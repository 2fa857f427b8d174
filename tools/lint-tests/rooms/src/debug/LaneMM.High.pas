/// Uses units of its own room and of earlier ones; in a cycle.
unit LaneMM.High;

interface

uses
  LaneMM.Os,
  LaneMM.Higher, LaneMM.Under;

implementation

end.
