unit SyntaxError;

interface

implementation

procedure Work;
begin
  if then
end;

end.
