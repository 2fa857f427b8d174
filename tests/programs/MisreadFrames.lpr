// A correct program whose backtraces lack a frame, as of an unwind that has misread the stack.
program MisreadFrames;

{$mode delphi}{$pointermath on}

uses
  LaneMM;

// FreeInstance, whose call of FreeMem tells an object that Free has freed.
function TakeFrames(Frames: PNativeUInt; Limit: Cardinal): Cardinal;
var
  Frame: Cardinal;
  Count: Cardinal;
begin
  Result := 0;
  Count := LaneMM_TakeStack(Frames, Limit);
  for Frame := 1 to Count do
    if NativeUInt(Frames[Frame - 1] - NativeUInt(@TObject.FreeInstance)) > 256 then
    begin
      Frames[Result] := Frames[Frame - 1];
      Inc(Result);
    end;
end;

var
  Turn: Integer;
begin
  LaneMM_OnTakeStack(TakeFrames);
  for Turn := 1 to 10 do
    TObject.Create.Free;
end.
