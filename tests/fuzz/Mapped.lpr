/// A library whose file the fuzzer damages.
library Mapped;

{$mode delphi}{$H+}

type
  TShape = class
    function Area(Side: Integer): Integer; virtual;
  end;

function TShape.Area(Side: Integer): Integer;
begin
  Result := Side;
  while Result < 1000 do
    Inc(Result, Result div 2 + 1);
end;

function Sum(Count: Integer): Integer; cdecl;
var
  Shape: TShape;
begin
  Shape := TShape.Create;
  Result := Shape.Area(Count);
  Shape.Free;
end;

exports
  Sum;

begin
end.
