unit LaneMM.Words;

interface

/// Uses one forbidden word per line.
procedure Bad(const Text: string); overload;

implementation

type
  TBad = class
  end;
  IBad = interface
  end;

threadvar
  Rows: array of Byte;

procedure Bad(const Text: string);

  procedure Nested;
  begin
  end;

begin
  try
    WriteLn;
  finally
    Assert(True);
  end;
  with Rows[0] do
    InterlockedIncrement(Rows[0]);
  ReadWriteBarrier;
end;

end.
