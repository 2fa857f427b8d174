/// A web server with a region for each request and one for each feature: docs/regions.md.
//
// Question:  which feature of a server holds how much, and what does a request leave behind?
// Expect:    `lanemm top` has a line for the requests, of which some are under way at any time, one
//            for the cache of pages, which grows up to its limit and is emptied at once, and one for
//            the log. The memory of no region stays when it was freed.
// Build:     with -FaLaneMM, whose calls it has no unit of its own for.
// Run:       RegionServer [--port=N]; then RegionServer --load [--port=N] [--requests=N] asks it.
program RegionServer;

{$mode delphi}{$H+}

uses
  {$ifdef UNIX} cthreads, {$endif}
  Classes, SysUtils, Generics.Collections, fpJson, fpHttpServer, fpHttpClient, HttpDefs, ssockets;

const
  Usage = 'RegionServer [--port=N]                          serves'#10
    + 'RegionServer --load [--port=N] [--requests=N]    asks a server for pages';
  DefaultPort = 8080;
  OrdersOfPage = 400;
  CustomerCount = 100000;
  // The database takes a while.
  QueryMs = 20;
  LoadThreads = 8;
  MostPages = NativeUInt(32) shl 20;
  LogLines = 20000;

type
  TPages = TDictionary<Integer, string>;

  TServer = class(TFPHttpServer)
  public
    procedure HandleRequest(var Request: TFPHTTPConnectionRequest;
      var Response: TFPHTTPConnectionResponse); override;
  end;

var
  // Features: what they keep lies in their regions, under one lock each.
  PagesRegion, LogRegion: TLaneMM_Region;
  PagesLock, LogLock: TRTLCriticalSection;
  Pages: TPages;       // nil: the region is empty
  Log: TStringList;    // likewise

// Returns a copy that lies in the scope, or outside of all.
function Copied(const Text: string): string;
begin
  SetString(Result, PChar(Text), Length(Text));
end;

// ---------------------------------------------------------------------------- a request

// Makes a page of a tree that nothing frees: the region of the request does.
function Render(Customer: Integer): string;
var
  Orders: TJSONArray;
  Number: Integer;
begin
  Orders := TJSONArray.Create;
  for Number := 1 to OrdersOfPage do
    Orders.Add(TJSONObject.Create(['order', Number, 'customer', Customer, 'text',
      Format('order %d of customer %d', [Number, Customer])]));
  Sleep(QueryMs);
  Result := Orders.AsJSON;
end;

procedure Answer(Region: TLaneMM_Region; Customer: Integer; out Page: string);
var
  Text: string;
begin
  LaneMM_RegionEnter(Region);
  try
    Text := Render(Customer);
  finally
    LaneMM_RegionLeave;
  end;
  Page := Copied(Text);
end; // Text ends here, before its region

function NewPage(Customer: Integer): string;
var
  Region: TLaneMM_Region;
begin
  Region := LaneMM_RegionCreate('request', 16 shl 20);
  try
    Answer(Region, Customer, Result);
  finally
    LaneMM_RegionFree(Region);
  end;
end;

// ---------------------------------------------------------------------------- features

procedure AddPage(Customer: Integer; const Page: string);
begin
  LaneMM_RegionEnter(PagesRegion);
  try
    if Pages = nil then
      Pages := TPages.Create;
    Pages.AddOrSetValue(Customer, Copied(Page));
  finally
    LaneMM_RegionLeave;
  end;
end;

// Keeps a page. A cache that has become too long is emptied at once.
procedure Remember(Customer: Integer; const Page: string);
begin
  EnterCriticalSection(PagesLock);
  try
    AddPage(Customer, Page);
    if LaneMM_RegionState(PagesRegion).CommittedBytes >= MostPages then
    begin
      Pages := nil;
      LaneMM_RegionReset(PagesRegion);
    end;
  finally
    LeaveCriticalSection(PagesLock);
  end;
end;

function Find(Customer: Integer; out Page: string): Boolean;
begin
  EnterCriticalSection(PagesLock);
  try
    Result := (Pages <> nil) and Pages.TryGetValue(Customer, Page);
    Page := Copied(Page);
  finally
    LeaveCriticalSection(PagesLock);
  end;
end;

procedure AddLine(Customer: Integer);
begin
  LaneMM_RegionEnter(LogRegion);
  try
    if Log = nil then
      Log := TStringList.Create;
    Log.Add(Format('%s customer %d', [DateTimeToStr(Now), Customer]));
  finally
    LaneMM_RegionLeave;
  end;
end;

procedure WriteLog(Customer: Integer);
begin
  EnterCriticalSection(LogLock);
  try
    AddLine(Customer);
    if Log.Count = LogLines then
    begin
      Log := nil; // a real server writes it first
      LaneMM_RegionReset(LogRegion);
    end;
  finally
    LeaveCriticalSection(LogLock);
  end;
end;

// ---------------------------------------------------------------------------- the server

procedure TServer.HandleRequest(var Request: TFPHTTPConnectionRequest;
  var Response: TFPHTTPConnectionResponse);
var
  Customer: Integer;
  Page: string;
begin
  Customer := StrToIntDef(Request.QueryFields.Values['customer'], 0);
  if not Find(Customer, Page) then
  begin
    Page := NewPage(Customer);
    Remember(Customer, Page);
  end;
  WriteLog(Customer);
  Response.Content := Page;
end;

procedure Serve(Port: Integer);
var
  Server: TServer;
begin
  TStringList.Create.Free; // makes what lists share, outside of all regions
  InitCriticalSection(PagesLock);
  InitCriticalSection(LogLock);
  PagesRegion := LaneMM_RegionCreate('pages', 2 * MostPages);
  LogRegion := LaneMM_RegionCreate('log', 0);
  Server := TServer.Create(nil);
  Server.Port := Port;
  Server.Threaded := True;
  WriteLn('process ', GetProcessID, ' serves port ', Port);
  Flush(Output);
  Server.Active := True;
  Server.Free;
end;

// ---------------------------------------------------------------------------- the load

type
  TLoad = class(TThread)
    Port, Requests: Integer;
    procedure Execute; override;
  end;

procedure TLoad.Execute;
var
  Number: Integer;
begin
  for Number := 1 to Requests do
    TFPHttpClient.SimpleGet(Format('http://localhost:%d/?customer=%d',
      [Port, Random(CustomerCount)]));
end;

procedure Load(Port, Requests: Integer);
var
  Threads: array[1..LoadThreads] of TLoad;
  Index: Integer;
begin
  for Index := 1 to LoadThreads do
  begin
    Threads[Index] := TLoad.Create(True);
    Threads[Index].Port := Port;
    Threads[Index].Requests := Requests div LoadThreads;
    Threads[Index].Start;
  end;
  for Index := 1 to LoadThreads do
  begin
    Threads[Index].WaitFor;
    Threads[Index].Free;
  end;
end;

var
  Options: TStringList;
  Index, Port: Integer;
begin
  Options := TStringList.Create;
  for Index := 1 to ParamCount do
    Options.Add(ParamStr(Index));
  Port := StrToIntDef(Options.Values['--port'], DefaultPort);
  try
    if Options.IndexOf('--help') >= 0 then
      WriteLn(Usage)
    else if Options.IndexOf('--load') >= 0 then
      Load(Port, StrToIntDef(Options.Values['--requests'], 1000))
    else
      Serve(Port);
  except
    on E: ESocketError do
    begin
      WriteLn(StdErr, 'RegionServer: port ', Port, ': ', E.Message);
      ExitCode := 1;
    end;
  end;
  Options.Free;
end.
