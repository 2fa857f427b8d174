unit UnknownName;

interface

procedure Work(P: PByte);

implementation

uses
  Missing.Part;

procedure Work(P: PByte);
begin
  P^ := IndexByte(P^, -1, 0);
end;

end.
