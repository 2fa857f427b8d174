/// Uses a unit of a later room, one that does not exist, and the RTL. The next sentence is not
/// in the table of units.
unit LaneMM.Rooms;

interface

uses LaneMM.High,
  Windows;

implementation

uses
  {$ifdef FPC} LaneMM.Missing, {$endif}
  lanemm.under;

end.
