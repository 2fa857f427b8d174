/// A program without the C library, hence without a dynamic section.
program StaticProgram;

{$mode delphi}

uses
  LaneMM, Promises, Exchange;

procedure Refuse(Code: Integer; Address: CodePointer; Frame: Pointer);
begin
  Expect(Code = 204, 'a wild pointer is run-time error 204');
  Finish;
end;

var
  Before: NativeUInt;
begin
  Before := LaneMM_HeapStatus.UsedBytes;
  ExchangeParcels(1, 100000);
  ExchangeEmpty;
  Expect(LaneMM_HeapStatus.UsedBytes = Before, 'all blocks are back');
  LaneMM_Trim;
  ErrorProc := Refuse;
  FreeMem(Pointer(16));
  Expect(False, 'a wild pointer is refused');
  Finish;
end.
