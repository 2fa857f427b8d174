/// Allocates as many megabytes as its argument says and keeps them, for the tests of lanemm.
program Profiled;

{$mode delphi}

uses
  LaneMM, SysUtils;

procedure LoadData(Count: Integer);
var
  Block: Pointer;
begin
  while Count > 0 do
  begin
    GetMem(Block, 1024);
    Dec(Count);
  end;
end;

begin
  LoadData(StrToInt(ParamStr(1)) * 1024);
end.
