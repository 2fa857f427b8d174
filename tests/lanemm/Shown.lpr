/// A program for the tests of tools/lanemm-gdb.py: variables of all kinds that its printers know, a freed
/// object, a forgotten one, and a write past the end of a block.
program Shown;

{$mode objfpc}{$H+}
{$codepage utf8}

uses
  LaneMM, SysUtils, Classes, Contnrs;

type
  INamed = interface
    ['{0C5E7D0B-6F0A-4B7E-9C9B-2F3C8C1D7A11}']
    procedure Rename;
  end;
  TNumbered = class(TInterfacedObject)
    Numbers: array[0..3] of Int64;
  end;
  TNamed = class(TNumbered, INamed)
    Name: string;
    Inner: INamed;
    procedure Rename;
  end;
  TForgotten = class
    Numbers: array[0..4] of Int64;
  end;
  TNumbers = array of Integer;
  TNames = array of AnsiString;

var
  Text, Empty: AnsiString;
  Wide: UnicodeString;
  Numbers: TNumbers;
  Names: TNames;
  Fixed: array[0..2] of Integer = (1, 2, 3);
  List: TStringList;
  Items: TList;
  Hash: TFPHashList;
  Named: TNamed;
  Reference: INamed;
  Untyped: TObject;
  Freed: TForgotten;
  Missing: TStringList;
  Over: PByte;

procedure TNamed.Rename;
begin
  Name := Name + '!';
end;

procedure Stop(const Local: AnsiString; Given: TNumbers);
begin
  Reference.Rename;
  if Length(Local) > 100 then
    WriteLn(Length(Given), Length(Empty), Fixed[0]);
end;

procedure Forget;
begin
  TForgotten.Create;
  Freed := TForgotten.Create;
  Freed.Free;
end;

begin
  Text := 'Hello, ' + IntToStr(ParamCount) + ' ''worlds''';
  Wide := UTF8Decode('Grüße') + UnicodeString(IntToStr(ParamCount));
  SetLength(Numbers, 3);
  Numbers[1] := 7;
  SetLength(Names, 2);
  Names[0] := IntToStr(11);
  Names[1] := Text;
  List := TStringList.Create;
  List.Add('alpha');
  List.AddObject('beta', List);
  Items := TList.Create;
  Items.Add(List);
  Items.Add(nil);
  Hash := TFPHashList.Create;
  Hash.Add('key', Items);
  Named := TNamed.Create;
  Named.Name := 'name of ' + IntToStr(1);
  Reference := Named;
  Untyped := Named;
  Forget;
  GetMem(Over, 50);
  Over[50] := 1;
  Stop(Text, Numbers);
  FreeMem(Over);
end.
