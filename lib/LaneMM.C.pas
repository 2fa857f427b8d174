/// Uses all units of the C library, so that one call compiles it. See README.md.
unit LaneMM.C;

{$I ../src/LaneMM.inc}

interface

implementation

uses
  LaneMM.C.Rtl, LaneMM.C.Foreign, LaneMM.C.Manager, LaneMM.C.Malloc, LaneMM.C.Operators,
  LaneMM.C.DeepBind, LaneMM.C.ThreadStart, LaneMM.C.Clock, LaneMM.C.Status, LaneMM.C.Regions,
  LaneMM.C.Leaks, LaneMM.C.Jemalloc, LaneMM.C.Mallctl, LaneMM.C.Tcmalloc;

end.
