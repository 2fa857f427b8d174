/// Prints what the leak view of Lazarus reads out of a file: see tests/leakview.sh.
program ReadLeaks;

{$mode objfpc}{$H+}

uses
  SysUtils, RegExpr, TextTools, leakinfo;

// What the IDE gives to the leak view: whether Text fits a regular expression.
function Fits(const Text, Pattern, Modifiers: string; StartPos: Integer): Boolean;
begin
  Result := ExecRegExpr(Pattern, Copy(Text, StartPos, MaxInt));
end;

var
  Info: TLeakInfo;
  Status: TLeakStatus;
  Symbolizer: TStackTraceList;
  Index, Frame: Integer;
  Trace: TStackTrace;
begin
  REMatchesFunction := @Fits;
  Symbolizer := TStackTraceList.Create;
  Info := AllocHeapTraceInfo(ParamStr(1));
  if not Info.GetLeakInfo(Status, Symbolizer) then
    Halt(1);
  WriteLn('blocks ', Status.LeakCount);
  WriteLn('bytes ', Status.LeakedMem);
  WriteLn('traces ', Symbolizer.Count);
  for Index := 0 to Symbolizer.Count - 1 do
  begin
    Trace := Symbolizer[Index];
    WriteLn('block ', Trace.BlockSize, ' ', Trace.Count);
    for Frame := 0 to Trace.Count - 1 do
      WriteLn('frame ', ExtractFileName(Trace.Lines[Frame].FileName), ' ',
        Trace.Lines[Frame].LineNum);
  end;
end.
