/// The door: no unit has to use it or its routines.
unit LaneMM;

interface

/// For users.
procedure LaneMM_Report;

implementation

end.
