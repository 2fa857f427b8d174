/// The same for the interfaces of other managers.
unit Other;

interface

procedure OtherReport;

implementation

uses
  LaneMM;

end.
