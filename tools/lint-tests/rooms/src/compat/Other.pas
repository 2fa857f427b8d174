/// Uses the door and what is below.
unit Other;

interface

uses
  LaneMM, LaneMM.High,
  SysUtils;

implementation

end.
