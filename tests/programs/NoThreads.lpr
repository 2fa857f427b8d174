/// A program without the thread unit, linked with the C library.
program NoThreads;

{$mode delphi}

uses
  {$ifdef LEAN} LaneMMLean, {$else} LaneMM, {$endif} Promises, Exchange;

function CLibraryProcessId: LongInt; cdecl; external 'c' name 'getpid';

var
  Before: NativeUInt;
  Text: AnsiString;
  Index: Integer;
begin
  Expect(CLibraryProcessId > 0, 'the C library is there');
  Before := LaneMM_HeapStatus.UsedBytes;
  ExchangeParcels(1, 100000);
  ExchangeEmpty;
  for Index := 1 to 100000 do
    Text := Text + 'x';
  Text := '';
  Expect(LaneMM_HeapStatus.UsedBytes = Before, 'all blocks are back');
  LaneMM_Trim;
  Expect(LaneMM_HeapStatus.CachedBytes = 0, 'nothing is kept after a trim');
  Finish;
end.
