/// Built with the run-time library's heap tracer (-gh): both managers get along.
program HeapTrace;

{$mode delphi}{$H+}

uses
  LaneMM, cthreads, SysUtils, Classes, Promises, Exchange;

procedure UseTheLibrary;
var
  Lines: TStringList;
  Index: Integer;
begin
  Lines := TStringList.Create;
  for Index := 1 to 10000 do
    Lines.Add(IntToStr(Index));
  Lines.Free;
end;

begin
  UseTheLibrary;
  ExchangeParcels(1, 20000);
  ExchangeEmpty;
  Expect(LaneMM_HeapStatus.ReservedBytes > 0, 'LaneMM is at work');
  Finish;
end.
