/// Of the C code: ModelStep, of the tests: TestName, of the list: FastMM5, TVmt, ScaleMM.
unit LaneMM.C;

interface

implementation

uses
  LaneMM.Allocate;

procedure Use;
begin
  BlockGet;
end;

end.
