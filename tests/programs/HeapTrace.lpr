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

// The tracer would read before an address that it is given.
procedure RefuseWhatNobodyOwns;
var
  P: Pointer;
  Refused: Integer;
begin
  Refused := 0;
  try
    FreeMem(Pointer(16));
  except
    on EInvalidPointer do
      Inc(Refused);
  end;
  P := Pointer(4096);
  try
    ReallocMem(P, 100);
  except
    on EInvalidPointer do
      Inc(Refused);
  end;
  Expect(Refused = 2, 'addresses that no system maps are no blocks');
end;

begin
  UseTheLibrary;
  RefuseWhatNobodyOwns;
  ExchangeParcels(1, 20000);
  ExchangeEmpty;
  Expect(LaneMM_HeapStatus.ReservedBytes > 0, 'LaneMM is at work');
  Finish;
end.
