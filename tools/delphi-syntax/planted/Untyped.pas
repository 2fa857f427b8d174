unit Untyped;

interface

function Next(P: Pointer): Pointer;

implementation

function Next(P: Pointer): Pointer;
begin
  Result := P + 1;
end;

end.
