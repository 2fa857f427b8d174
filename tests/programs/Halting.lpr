/// Ends in the way that its argument says, with blocks in use and threads at work: `halt` with
/// exit code 3, `exception` with the 217 of an unhandled one, `late` by itself, while objects are
/// still freed in the last finalization.
program Halting;

{$mode delphi}{$H+}

uses
  LaneMM, cthreads, LateUnit, SysUtils, Classes, Promises, Exchange;

const
  ThreadCount = 4;

var
  BegunCount: LongInt;

function WorkForEver(Seed: Pointer): PtrInt;
begin
  InterlockedIncrement(BegunCount);
  repeat
    ExchangeParcels(Cardinal(PtrUInt(Seed)), 1000);
  until False;
end;

procedure RaiseAndCatch;
var
  Index, Caught: Integer;
  Lines: TStringList;
begin
  Caught := 0;
  for Index := 1 to 10000 do
  begin
    Lines := TStringList.Create;
    try
      try
        Lines.Add(IntToStr(Index));
        if Odd(Index) then
          raise EListError.Create(Lines[0]);
        Lines[1000] := '';
      except
        on Error: Exception do
          Inc(Caught, Ord(Error.Message <> ''));
      end;
    finally
      Lines.Free;
    end;
  end;
  Expect(Caught = 10000, 'exceptions are raised and caught');
end;

procedure HaltDeepDown(Depth: Integer);
var
  Text: string;
begin
  Text := StringOfChar('x', Depth);
  try
    if Depth = 0 then
      Halt(3);
    HaltDeepDown(Depth - 1);
  finally
    Text := '';
  end;
end;

var
  Index: PtrUInt;
begin
  RaiseAndCatch;
  if BrokenCount > 0 then
    Finish;
  for Index := 1 to ThreadCount do
    BeginThread(WorkForEver, Pointer(Index));
  // Under wine a 32-bit process that ends while a thread starts may die of it.
  while InterlockedExchangeAdd(BegunCount, 0) < ThreadCount do
    ThreadSwitch;
  case ParamStr(1)[1] of
    'h': HaltDeepDown(50);
    'e': raise Exception.Create('nobody catches this');
  end;
end.
