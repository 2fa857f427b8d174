/// A program that knows nothing of LaneMM; the compiler's option -FaLaneMM puts it in.
program AutoInstalled;

{$mode delphi}{$H+}

uses
  cthreads, SysUtils, Classes, Promises, Exchange;

procedure UseTheLibrary;
var
  Lines: TStringList;
  Index: Integer;
begin
  Lines := TStringList.Create;
  for Index := 1 to 10000 do
    Lines.Add(IntToStr(Index));
  Lines.Sort;
  Expect(Lines[1] = '10', 'lines are sorted');
  Lines.Free;
end;

var
  Before: NativeUInt;
  P: Pointer;
begin
  Expect(IsMemoryManagerSet, 'a memory manager is installed');
  Expect(MemSize(nil) = 0, 'it is not the default one, which stops here');
  UseTheLibrary;
  Before := GetFPCHeapStatus.CurrHeapUsed;
  UseTheLibrary;
  ExchangeParcels(1, 50000);
  ExchangeEmpty;
  Expect(GetFPCHeapStatus.CurrHeapUsed = Before, 'all blocks are back');
  GetMem(P, 100);
  FreeMem(P);
  try
    FreeMem(P);
    Expect(False, 'a second free is refused');
  except
    on EInvalidPointer do;
  end;
  Finish;
end.
