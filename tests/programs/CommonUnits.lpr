/// Uses the units that programs use most, as they are meant to be used, and leaves nothing. Its
/// argument names one use, `all` stands for all; `leak` forgets one object after them.
program CommonUnits;

{$mode delphi}{$H+}

uses
  cthreads, cwstring, SysUtils, Classes, Variants, IniFiles, Process, SyncObjs, Contnrs, StrUtils,
  DateUtils, TypInfo, Rtti, CustApp, Fgl, Generics.Collections, Generics.Defaults, FpJson,
  JsonParser, DOM, XMLRead, XMLWrite, RegExpr, Zipper, ZStream, Base64, Md5, Sha1, Db, BufDataset,
  SqlDb, FpHttpClient, UriParser, EventLog, FpExprPars, CsvDocument, Ssockets;

type
  TUse = record
    Name: string;
    Run: procedure;
  end;

  TShop = class(TCustomApplication)
  protected
    procedure DoRun; override;
  end;

  TNamed = class(TPersistent)
  private
    FName: string;
  published
    property Name: string read FName write FName;
  end;

  TWorker = class(TThread)
  public
    Text: string;
    procedure Tell;
  protected
    procedure Execute; override;
  end;

  TNames = TFPGMap<string, Integer>;
  TIntegers = array of Integer;

threadvar
  OfThread: string;

var
  Told: Integer;

function TempFile(const Extension: string): string;
begin
  Result := GetTempDir + 'lanemm-common-' + IntToStr(GetProcessID) + Extension;
end;

procedure UseStrings;
var
  Lines: TStringList;
  Parts: TStringArray;
  Wide: UnicodeString;
  Part: string;
begin
  Lines := TStringList.Create;
  try
    Lines.CommaText := 'c,a,b';
    Lines.Sort;
    Part := Lines[0] + WideUpperCase('ä') + UTF8Encode(WideCompareStr('a', 'b').ToString);
    Wide := UnicodeString(Part);
    Parts := string(Wide).Split(['a', 'b']);
    Part := string.Join('-', Parts) + Format('%d %s', [Length(Parts), Part]);
    Lines.Text := AnsiReplaceStr(Part, '-', '+') + DateTimeToStr(IncDay(Now, 3));
    Part := TEncoding.UTF8.GetString(TEncoding.Unicode.GetBytes(UnicodeString(Lines.Text)));
    Part := FormatDateTime('yyyy-mm-dd', Now) + GetEnvironmentVariable('PATH');
    Lines.SaveToFile(TempFile('.txt'), TEncoding.Unicode);
    Lines.LoadFromFile(TempFile('.txt'), TEncoding.Unicode);
    Lines.LoadFromFile(TempFile('.txt'));
    Parts := string('one two').Split([' ']);
  finally
    Lines.Free;
    DeleteFile(TempFile('.txt'));
  end;
end;

procedure UseVariants;
var
  Value, Parts: Variant;
  Numbers: TIntegers;
begin
  Value := 'text ' + IntToStr(5);
  Parts := VarArrayCreate([0, 9], varVariant);
  Parts[3] := Value;
  Parts[4] := Parts[3] + '!';
  Value := VarArrayOf([1, 'two', 3.5, Parts]);
  Value := VarToStr(Value[1]);
  Numbers := [1, 2];
  DynArrayToVariant(Value, Pointer(Numbers), TypeInfo(TIntegers));
  DynArrayFromVariant(Pointer(Numbers), Value, TypeInfo(TIntegers));
end;

procedure UseIniFiles;
var
  Ini: TMemIniFile;
  Names: TStringList;
begin
  Ini := TMemIniFile.Create(TempFile('.ini'));
  Names := TStringList.Create;
  try
    Ini.WriteString('first', 'name', 'value');
    Ini.WriteInteger('second', 'number', 7);
    Ini.UpdateFile;
    Ini.ReadSections(Names);
    Names.Add(Ini.ReadString('first', 'name', '') + Ini.ReadString('none', 'none', 'x'));
  finally
    Names.Free;
    Ini.Free;
    TIniFile.Create(TempFile('.ini'), TEncoding.Unicode).Free;
    DeleteFile(TempFile('.ini'));
  end;
end;

procedure UseProcesses;
var
  Output: string;
  Child: TProcess;
begin
  RunCommand('echo', ['hello'], Output);
  Child := TProcess.Create(nil);
  try
    Child.Executable := '/bin/echo';
    Child.Parameters.Add(Output);
    Child.Options := [poUsePipes, poWaitOnExit];
    Child.Execute;
  finally
    Child.Free;
  end;
end;

procedure UseLocks;
var
  Lock: TCriticalSection;
  Event: TEventObject;
  Readers: TMultiReadExclusiveWriteSynchronizer;
  Index: Integer;
begin
  Lock := TCriticalSection.Create;
  Event := TEventObject.Create(nil, True, False, '');
  Readers := TMultiReadExclusiveWriteSynchronizer.Create;
  for Index := 1 to 3 do
  begin
    Lock.Enter;
    Readers.BeginRead;
    Readers.EndRead;
    Readers.BeginWrite;
    Readers.EndWrite;
    Lock.Leave;
  end;
  Event.SetEvent;
  Event.WaitFor(1);
  Readers.Free;
  Event.Free;
  Lock.Free;
end;

procedure TWorker.Tell;
begin
  Inc(Told);
end;

procedure TWorker.Execute;
begin
  Text := 'worker ' + IntToStr(PtrInt(Self));
  OfThread := 'of thread ' + IntToStr(PtrInt(Self));
  Synchronize(Tell);
  Queue(Tell);
  OfThread := ''; // the run-time library does not do it
  if FreeOnTerminate then
    raise Exception.Create('in thread ' + Text);
end;

procedure UseThreads;
var
  Index: Integer;
  Workers: array[0..3] of TWorker;
begin
  for Index := 0 to High(Workers) do
  begin
    Workers[Index] := TWorker.Create(True);
    Workers[Index].FreeOnTerminate := Index = 3;
    Workers[Index].Start;
  end;
  while Told < 7 do // calls queued by the thread that frees itself may be lost
    CheckSynchronize(1);
  for Index := 0 to 2 do
  begin
    Workers[Index].WaitFor;
    Workers[Index].Free;
  end;
end;

procedure UseJson;
var
  Data: TJSONData;
  Item: TJSONObject;
begin
  Data := GetJSON('{"a": [1, 2, {"b": null}], "c": "text"}');
  try
    Item := Data as TJSONObject;
    Item.Add('d', TJSONArray.Create([1, 'two', 3.5]));
    Item.Delete('c');
    Item.FormatJSON;
    TJSONObject.Create(['x', 1, 'y', nil]).Free;
    try
      GetJSON('{"broken": ').Free;
    except
      on EJSONParser do ;
    end;
  finally
    Data.Free;
  end;
end;

procedure UseXml;
var
  Document: TXMLDocument;
  Stream: TStringStream;
begin
  Stream := TStringStream.Create('<?xml version="1.0"?><a x="1"><b>text</b><!-- c --></a>');
  try
    ReadXMLFile(Document, Stream);
    try
      Document.DocumentElement.AppendChild(Document.CreateElement('d'));
      TDOMElement(Document.DocumentElement).SetAttribute('y', 'z');
      Stream.Size := 0;
      WriteXMLFile(Document, Stream);
    finally
      Document.Free;
    end;
    Stream.Size := 0;
    Stream.WriteString('<a><b></a>');
    Stream.Position := 0;
    try
      ReadXMLFile(Document, Stream);
    except
      on EXMLReadError do
        Document.Free; // not done by XMLRead
    end;
  finally
    Stream.Free;
  end;
end;

procedure UseRegularExpressions;
var
  Expression: TRegExpr;
begin
  Expression := TRegExpr.Create('([a-z]+)(\d*)');
  try
    if Expression.Exec('abc123 def456') then
      repeat
      until not Expression.ExecNext;
    Expression.Replace('abc1', '$2-$1', True);
  finally
    Expression.Free;
  end;
  ReplaceRegExpr('x+', 'axxb', 'y');
end;

procedure UseZip;
var
  Packed_: TZipper;
  Plain: TUnZipper;
  Text, Squeezed: TMemoryStream;
  Stream: TCompressionStream;
begin
  Text := TMemoryStream.Create;
  Squeezed := TMemoryStream.Create;
  Text.Size := 100000;
  FillChar(Text.Memory^, 100000, 'x');
  Stream := TCompressionStream.Create(clDefault, Squeezed);
  Stream.CopyFrom(Text, 0);
  Stream.Free;
  Text.Position := 0;
  Packed_ := TZipper.Create;
  Packed_.FileName := TempFile('.zip');
  Packed_.Entries.AddFileEntry(Text, 'text.txt');
  Packed_.ZipAllFiles;
  Packed_.Free;
  Plain := TUnZipper.Create;
  Plain.FileName := TempFile('.zip');
  Plain.Examine;
  Plain.Free;
  DeleteFile(TempFile('.zip'));
  Squeezed.Free;
  Text.Free;
  MD5Print(MD5String(EncodeStringBase64(SHA1Print(SHA1String('text')))));
end;

procedure UseData;
var
  Table: TBufDataset;
  Query: TSQLQuery;
  Transaction: TSQLTransaction;
  Index: Integer;
begin
  Table := TBufDataset.Create(nil);
  try
    Table.FieldDefs.Add('id', ftInteger);
    Table.FieldDefs.Add('name', ftString, 40);
    Table.CreateDataset;
    for Index := 1 to 50 do
      Table.AppendRecord([Index, 'name ' + IntToStr(Index)]);
    Table.IndexFieldNames := 'name';
    Table.Locate('id', 7, []);
    Table.Delete;
    Table.Close;
  finally
    Table.Free;
  end;
  Transaction := TSQLTransaction.Create(nil);
  Query := TSQLQuery.Create(nil);
  Query.Transaction := Transaction;
  Query.SQL.Text := 'select * from t where id = :id';
  Query.Params.ParamByName('id').AsInteger := 1;
  Query.Free;
  Transaction.Free;
end;

procedure UseHttp;
var
  Client: TFPHTTPClient;
begin
  Client := TFPHTTPClient.Create(nil);
  try
    Client.AddHeader('Accept', 'text/plain');
    Client.ConnectTimeout := 100;
    try
      Client.Get('http://127.0.0.1:1/none');
    except
      on ESocketError do ;
      on EHTTPClient do ;
    end;
    ParseURI('http://u:p@host:80/path?x=1#y');
  finally
    Client.Free;
  end;
end;

procedure TShop.DoRun;
begin
  HasOption('h', 'help');
  CheckOptions('h', ['help']);
  Terminate;
end;

procedure UseApplication;
var
  Shop: TShop;
begin
  Shop := TShop.Create(nil);
  Shop.Initialize;
  Shop.Run;
  Shop.Free;
end;

procedure UseCollections;
var
  Names: TNames;
  Lists: TObjectList<TStringList>;
  Words: TDictionary<string, TArray<Integer>>;
  Old: Contnrs.TObjectList;
  Hash: TFPHashObjectList;
begin
  Names := TNames.Create;
  Names.Add('one', 1);
  Names.Sorted := True;
  Names.Free;
  Lists := TObjectList<TStringList>.Create;
  Lists.Add(TStringList.Create);
  Lists.Free;
  Words := TDictionary<string, TArray<Integer>>.Create;
  Words.Add('primes', [2, 3, 5]);
  Words.AddOrSetValue('primes', [2, 3, 5, 7]);
  Words.ToArray;
  Words.Keys.ToArray;
  Words.Free;
  Old := Contnrs.TObjectList.Create(True);
  Old.Add(TObject.Create);
  Old.Free;
  Hash := TFPHashObjectList.Create(True);
  Hash.Free;
end;

procedure UseTypeInformation;
var
  Named: TNamed;
  Context: TRttiContext;
  Value: TValue;
begin
  Named := TNamed.Create;
  SetStrProp(Named, 'Name', 'value ' + IntToStr(3));
  Context := TRttiContext.Create;
  Value := Context.GetType(TNamed).GetProperty('Name').GetValue(Named);
  Named.Name := Value.AsString + GetEnumName(TypeInfo(TTypeKind), 3);
  Context.Free;
  Named.Free;
end;

procedure UseOthers;
var
  Parser: TFPExpressionParser;
  Csv: TCSVDocument;
  Log: TEventLog;
begin
  Parser := TFPExpressionParser.Create(nil);
  Parser.Expression := '1 + 2 * 3';
  Parser.Evaluate;
  Parser.Free;
  Csv := TCSVDocument.Create;
  Csv.CSVText := 'a,b'#10'"c ""d""",e';
  Csv.Free;
  Log := TEventLog.Create(nil);
  Log.LogType := ltFile;
  Log.FileName := TempFile('.log');
  Log.Info('said %d', [1]);
  Log.Free;
  DeleteFile(TempFile('.log'));
end;

procedure UseExceptions;
begin
  try
    try
      raise Exception.CreateFmt('inner %d', [1]);
    except
      on E: Exception do
        raise EConvertError.Create(E.Message + ' outer');
    end;
  except
    on E: EConvertError do
      Told := Length(E.Message);
  end;
  try
    StrToInt('x');
  except
  end;
end;

const
  Uses_: array[0..16] of TUse = (
    (Name: 'strings'; Run: UseStrings), (Name: 'variants'; Run: UseVariants),
    (Name: 'inifiles'; Run: UseIniFiles), (Name: 'process'; Run: UseProcesses),
    (Name: 'syncobjs'; Run: UseLocks), (Name: 'threads'; Run: UseThreads),
    (Name: 'fpjson'; Run: UseJson), (Name: 'xml'; Run: UseXml),
    (Name: 'regexpr'; Run: UseRegularExpressions), (Name: 'zip'; Run: UseZip),
    (Name: 'db'; Run: UseData), (Name: 'http'; Run: UseHttp),
    (Name: 'custapp'; Run: UseApplication), (Name: 'collections'; Run: UseCollections),
    (Name: 'rtti'; Run: UseTypeInformation), (Name: 'others'; Run: UseOthers),
    (Name: 'exceptions'; Run: UseExceptions));

var
  Use: TUse;
begin
  for Use in Uses_ do
    if (ParamStr(1) = Use.Name) or (ParamStr(1) = 'all') or (ParamStr(1) = 'leak') then
      Use.Run;
  if ParamStr(1) = 'leak' then
    TStringList.Create;
end.
