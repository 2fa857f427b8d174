/// A web server with two planted faults, for a walk with lanemm: docs/live.md.
//
// Question:  what does a server hold that grows, and why does its memory not fall after a rush?
// Expect:    the cache of pages grows with each request: its key has the time of the request in it,
//            so a page is never found again. The log of a rush keeps one of 64 entries: their spans
//            stay, nearly empty.
// Run:       Server [--port=N]; then Server --load [--port=N] [--requests=N] [--rush] asks it.
program Server;

{$mode delphi}{$H+}

uses
  {$ifdef UNIX} cthreads, {$endif}
  Classes, SysUtils, Generics.Collections, fpHttpServer, fpHttpClient, HttpDefs, ssockets;

const
  Usage = 'Server [--port=N]                                     serves'#10
    + 'Server --load [--port=N] [--requests=N] [--rush]      asks a server for pages';
  DefaultPort = 8080;
  EntriesPerRush = 20000;
  KeptOf = 64;

type
  /// A page as it is sent.
  TCachedPage = class
    Body: string;
    Headers: array[0..9] of string;
  end;

  /// A line of the log: 96 bytes.
  TLogEntry = class
    Time: TDateTime;
    Numbers: array[0..9] of Int64;
  end;

  TServer = class(TFPHttpServer)
  private
    Cache: TObjectDictionary<string, TCachedPage>;
    Log: TObjectList<TLogEntry>;
    function Page(const Customer, Time: string): TCachedPage;
    procedure Rush;
  public
    constructor Create(Owner: TComponent); override;
    destructor Destroy; override;
    procedure HandleRequest(var Request: TFPHTTPConnectionRequest;
      var Response: TFPHTTPConnectionResponse); override;
  end;

constructor TServer.Create(Owner: TComponent);
begin
  inherited Create(Owner);
  Cache := TObjectDictionary<string, TCachedPage>.Create([doOwnsValues]);
  Log := TObjectList<TLogEntry>.Create;
end;

destructor TServer.Destroy;
begin
  Log.Free;
  Cache.Free;
  inherited Destroy;
end;

// planted: the time in the key makes each page a new one
function TServer.Page(const Customer, Time: string): TCachedPage;
var
  Index: Integer;
begin
  if Cache.TryGetValue(Customer + '@' + Time, Result) then
    Exit;
  Result := TCachedPage.Create;
  for Index := 1 to 40 do
    Result.Body := Result.Body + Format('<p>Order %d of customer %s</p>', [Index, Customer]);
  for Index := 0 to High(Result.Headers) do
    Result.Headers[Index] := Format('X-Part-%d: %s', [Index, Customer]);
  Cache.Add(Customer + '@' + Time, Result);
end;

// planted: of each 64 entries one stays, and with it their span
procedure TServer.Rush;
var
  Entries: array of TLogEntry;
  Index: Integer;
begin
  SetLength(Entries, EntriesPerRush);
  for Index := 0 to High(Entries) do
    Entries[Index] := TLogEntry.Create;
  for Index := 0 to High(Entries) do
    if Index mod KeptOf = 0 then
      Log.Add(Entries[Index])
    else
      Entries[Index].Free;
end;

procedure TServer.HandleRequest(var Request: TFPHTTPConnectionRequest;
  var Response: TFPHTTPConnectionResponse);
begin
  if Request.PathInfo = '/rush' then
  begin
    Rush;
    Response.Content := 'rushed';
  end
  else
    Response.Content := Page(Request.QueryFields.Values['customer'],
      Request.QueryFields.Values['time']).Body;
end;

procedure Serve(Port: Integer);
var
  Server: TServer;
begin
  Server := TServer.Create(nil);
  Server.Port := Port;
  WriteLn('process ', GetProcessID, ' serves port ', Port);
  Flush(Output);
  Server.Active := True;
  Server.Free;
end;

procedure Load(Port, Requests: Integer; IsRush: Boolean);
var
  Number: Integer;
begin
  for Number := 1 to Requests do
    if IsRush then
      TFPHttpClient.SimpleGet(Format('http://localhost:%d/rush', [Port]))
    else
      TFPHttpClient.SimpleGet(Format('http://localhost:%d/?customer=%d&time=%d.%d', [Port,
        Number mod 50, DateTimeToFileDate(Now), Number]));
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
      Load(Port, StrToIntDef(Options.Values['--requests'], 1000), Options.IndexOf('--rush') >= 0)
    else
      Serve(Port);
  except
    on E: ESocketError do
    begin
      WriteLn(StdErr, 'Server: port ', Port, ': ', E.Message);
      ExitCode := 1;
    end;
  end;
  Options.Free;
end.
