/// Is used for what it does at the start.
unit LaneMM.Started;

interface

var
  /// Whether it did.
  IsStarted: Boolean;

implementation

initialization
  IsStarted := True;

end.
