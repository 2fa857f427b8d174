/// May call the atomic operations of the compiler, and overload.
unit LaneMM.Atomic;

interface

/// Adds one.
procedure Count(var Value: Cardinal); overload;
/// Adds one.
procedure Count(var Value: Int64); overload;

implementation

procedure Count(var Value: Cardinal); overload;
begin
  InterlockedIncrement(Value);
end;

procedure Count(var Value: Int64); overload;
begin
  InterlockedIncrement64(Value);
end;

end.
