unit NoBody;

interface

procedure Work;

implementation

{$ifdef FPC}
procedure Work;
begin
end;
{$endif}

end.
