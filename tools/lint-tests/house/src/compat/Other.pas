// The interface of another manager, in its own style.
unit Other;

interface

procedure Collect(const Text: string); overload;

implementation

procedure Collect(const Text: string); overload;
begin
end;

end.
