/// Reaches a limit of memory twice, frees in between, and goes on.
///   LimitReports MB    holds pages until there are MB megabytes of them, or memory is refused
program LimitReports;

{$mode delphi}{$H+}

uses
  LaneMM, {$ifdef UNIX} cthreads, {$endif} SysUtils, Promises;

type
  TCachedPage = class
    Data: array[0..255] of Int64;
  end;
  TPageCache = class
    Pages: array of TCachedPage;
    Count: Integer;
    procedure Fill(Most: Integer);
    procedure Clear;
  end;

procedure TPageCache.Fill(Most: Integer);
begin
  while Count < Most do
  begin
    Pages[Count] := TCachedPage.Create; // planted: page
    if Pages[Count] = nil then
      Exit;
    Pages[Count].Data[255] := Count;
    Inc(Count);
  end;
end;

procedure TPageCache.Clear;
begin
  while Count > 0 do
  begin
    Dec(Count);
    Expect(Pages[Count].Data[255] = Count, 'pages keep their contents');
    FreeAndNil(Pages[Count]);
  end;
  LaneMM_Trim;
end;

var
  Cache: TPageCache;
  Most, Round: Integer;
begin
  Most := StrToInt(ParamStr(1)) * (1 shl 20 div TCachedPage.InstanceSize);
  Cache := TPageCache.Create;
  SetLength(Cache.Pages, Most);
  ReturnNilIfGrowHeapFails := True; // an exception would need memory
  for Round := 1 to 2 do
  begin
    Cache.Fill(Most);
    Cache.Clear;
  end;
  Cache.Free;
  Finish;
end.
