unit Hidden;

interface

function Next(Value: Integer): Integer; inline;

implementation

const
  Step = 2;

function Next(Value: Integer): Integer;
begin
  Result := Value + Step;
end;

end.
