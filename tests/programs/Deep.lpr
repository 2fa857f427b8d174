/// Leaks out of routines of many shapes: generic constructors, nested and virtual methods, methods
/// of interfaces, handlers of exceptions, callbacks, large frames. The first argument is the number
/// of recursive calls above; with a second one, each of them leaks too.
program Deep;

{$mode delphi}{$H+}

uses
  LaneMM, Classes, SysUtils, Generics.Collections;

type
  TLeaf = class
    Name: string;
  end;

  TStep = class
  end;

  IMaker = interface
    procedure Make;
  end;

  TMaker = class(TInterfacedObject, IMaker)
    procedure Make;
    procedure Virtually; virtual;
  end;

  TOtherMaker = class(TMaker)
    procedure Virtually; override;
  end;

  TBox<T> = class
    Items: TList<T>;
    constructor Create;
    procedure Put(const Item: T);
  end;

constructor TBox<T>.Create;
begin
  Items := TList<T>.Create;
end;

procedure TBox<T>.Put(const Item: T);
var
  Bytes: array[0..99999] of Byte;
begin
  FillChar(Bytes, SizeOf(Bytes), 1);
  if Bytes[High(Bytes)] = 1 then
    Items.Add(Item);
end;

var
  CallCount: Integer;

procedure TMaker.Make;
begin
  TLeaf.Create;
  Virtually;
  Inc(CallCount); // not the last call, which may become a jump: the frame stays
end;

procedure TMaker.Virtually;
begin
  GetMem(1000);
  Inc(CallCount);
end;

procedure TOtherMaker.Virtually;
begin
  TLeaf.Create;
  inherited;
  Inc(CallCount);
end;

function Compare(Item1, Item2: Pointer): Integer;
begin
  GetMem(500);
  Result := 0;
end;

procedure Sort;
var
  List: TList;
begin
  List := TList.Create;
  List.Add(nil);
  List.Add(nil);
  List.Sort(@Compare);
  List.Free;
end;

procedure Handle(const Text: string);
begin
  try
    try
      StrToInt(Text);
    finally
      TLeaf.Create.Name := Text + '!';
    end;
  except
    on E: EConvertError do
      TLeaf.Create.Name := E.Message;
  end;
end;

procedure Down(Calls: Integer; Box: TBox<TLeaf>);

  procedure Inner;
  var
    Text: string;
  begin
    try
      Text := IntToStr(Calls);
      Box.Put(TLeaf.Create);
    finally
      Text := '';
    end;
  end;

begin
  if ParamCount > 1 then
    TStep.Create;
  if Calls = 0 then
    Inner
  else
    Down(Calls - 1, Box);
  Box.Items.Capacity := 100; // not the last call: the frame stays
end;

var
  Maker: IMaker;
  Names: TDictionary<string, TLeaf>;
begin
  Down(StrToInt(ParamStr(1)), TBox<TLeaf>.Create);
  Names := TDictionary<string, TLeaf>.Create;
  Names.Add(ParamStr(0), TLeaf.Create);
  Maker := TOtherMaker.Create;
  Maker.Make;
  Sort;
  Handle('no number');
end.
