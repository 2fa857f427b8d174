/// The plan of a program whose system calls fail, see FailingCalls.inc.
unit CallPlans;

{$mode delphi}

interface

/// From now on no call fails.
procedure CallsSucceed;
/// Writes how often each call was made to stdout: its number and the count, a line each.
procedure CallsPrint;

implementation

type
  TCallPlan = record
    IsRead: NativeUInt;
    Number, First, Count, Error: NativeInt;
    Calls: array[0..511] of NativeUInt;
  end;

  PCallPlan = ^TCallPlan;

function TheCallPlan: PCallPlan; external name 'LANEMM_CALL_PLAN';

procedure CallsSucceed;
begin
  TheCallPlan^.Number := -1;
end;

procedure CallsPrint;
var
  Number: Integer;
begin
  for Number := 0 to High(TheCallPlan^.Calls) do
    if TheCallPlan^.Calls[Number] <> 0 then
      WriteLn(Number, ' ', TheCallPlan^.Calls[Number]);
end;

end.
