/// Memory pressure in a container: the cache shrinks in the thread that purges, memory goes back.
///   Pressed FOLDER    the files of a group are written in FOLDER, which LANEMM names, too
program Pressed;

{$mode delphi}{$H+}

uses
  LaneMM, cthreads, SysUtils, SyncObjs, Promises, LaneMM.Types, LaneMM.Os,
  LaneMM.ObserveState, LaneMM.Atomic;

const
  Megabyte = 1 shl 20;
  PatienceMs = 20000;

type
  TCachedPage = class
    Data: array[0..2047] of Int64;
  end;
  TPageCache = class
    Pages: array of TCachedPage;
    Lock: TCriticalSection;
    Calls: LongInt;
    Used, Limit: UInt64;
    Thread: Cardinal;
    constructor Create;
    procedure Fill(Bytes: NativeUInt);
    procedure Clear;
    destructor Destroy; override;
  end;

threadvar
  Depth: Integer;

var
  Cache: TPageCache;
  Folder: string;

constructor TPageCache.Create;
begin
  Lock := TCriticalSection.Create;
end;

procedure TPageCache.Fill(Bytes: NativeUInt);
var
  Index: Integer;
begin
  Lock.Enter;
  SetLength(Pages, Bytes div TCachedPage.InstanceSize);
  for Index := 0 to High(Pages) do
  begin
    Pages[Index] := TCachedPage.Create;
    FillChar(Pages[Index].Data, SizeOf(Pages[Index].Data), 1);
  end;
  Lock.Leave;
end;

procedure TPageCache.Clear;
var
  Page: TCachedPage;
begin
  Lock.Enter;
  for Page in Pages do
    Page.Free;
  Pages := nil;
  Lock.Leave;
end;

destructor TPageCache.Destroy;
begin
  Clear;
  Lock.Free;
end;

procedure Shrink(Used, Limit: UInt64; Context: Pointer);
var
  Owner: TPageCache;
begin
  Owner := Context;
  Inc(Depth);
  try
    try
      raise Exception.Create('a program''s own: ' + IntToStr(Used));
    except
      on E: Exception do
        if E.Message.EndsWith(IntToStr(Used)) then
          Owner.Clear;
    end;
  finally
    Dec(Depth);
  end;
  Owner.Used := Used;
  Owner.Limit := Limit;
  Owner.Thread := OsThreadId;
  InterlockedIncrement(Owner.Calls);
end;

function Nothing(Unused: Pointer): PtrInt;
begin
  Result := 0;
end;

procedure WriteNumber(const Name: string; Value: Int64);
var
  Output: TextFile;
begin
  AssignFile(Output, Folder + '/new');
  Rewrite(Output);
  WriteLn(Output, Value);
  CloseFile(Output);
  RenameFile(Folder + '/new', Folder + '/' + Name); // whole at any moment
end;

type
  TSeen = function: Boolean;

// Has the next look come soon, until it has been seen.
procedure Await(Seen: TSeen; const Promise: ShortString);
var
  Start: QWord;
begin
  Start := GetTickCount64;
  while not Seen and (GetTickCount64 - Start < PatienceMs) do
  begin
    Observe.PressureMs := OsNowMs - 5000;
    Sleep(5);
  end;
  Expect(Seen, Promise);
end;

function IsCalled: Boolean;
begin
  Result := Cache.Calls > 0;
end;

function IsPressed: Boolean;
begin
  // Reported, too.
  Result := (LoadAcquire(Observe.Pressed) = 1) and (LoadAcquire(Observe.PressureBusy) = 0);
end;

function IsAtRest: Boolean;
begin
  Result := LoadAcquire(Observe.Pressed) = 0;
end;

function HasGone: Boolean;
begin
  Result := LaneMM_HeapStatus.CommittedBytes < 4 * Megabyte;
end;

procedure Run;
begin
  WriteNumber('memory.max', 100000000);
  WriteNumber('memory.current', 95000000);
  Cache.Fill(30 * Megabyte);
  WaitForThreadTerminate(BeginThread(Nothing), 0); // the run-time library knows of threads now
  Expect(LaneMM_OnPressure(Shrink, Cache), 'a thread purges');
  Await(IsCalled, 'the cache is asked to shrink');
  Expect((Cache.Thread = Process.PurgeThread) and (Cache.Thread <> OsThreadId),
    'by the thread that purges');
  Await(HasGone, 'its memory is returned'); // also those blocks that were sampled
  Expect((Cache.Used = 95000000) and (Cache.Limit = 100000000), 'it knows how much is used');
  WriteNumber('memory.current', 10);
  Await(IsAtRest, 'the pressure ends');
  Expect(LaneMM_OffPressure(Shrink, Cache), 'it is registered');
  Expect(not LaneMM_OffPressure(Shrink, Cache), 'it is not any more');
  Cache.Calls := 0;
  WriteNumber('memory.max', 10); // the limit changes
  Await(IsPressed, 'and begins again');
  Expect(Cache.Calls = 0, 'what is taken back is not called');
end;

begin
  Cache := TPageCache.Create;
  Folder := ParamStr(1);
  Run;
  Cache.Free;
  Finish;
end.
