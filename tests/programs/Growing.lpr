/// Grows what programs grow, through routines of the libraries of Free Pascal; with the argument
/// `replace`, puts larger blocks in the place of others instead.
program Growing;

{$mode delphi}{$H+}

uses
  LaneMM, cthreads, Classes, SysUtils, Contnrs, FGL, Generics.Collections;

type
  TNumbers = TFPGList<Integer>;

const
  Times = 100000;

procedure Replace;
var
  Small, Large: Pointer;
  Time: Integer;
begin
  for Time := 1 to Times do
  begin
    Small := GetMem(1000);
    Large := GetMem(2000);
    FreeMem(Small);
    FreeMem(Large);
  end;
end;

procedure Grow;
var
  Numbers: TNumbers;
  Others: TList<Integer>;
  Objects: TObjectList;
  Strings: TStringList;
  Places: TDictionary<Integer, Integer>;
  Stream: TMemoryStream;
  Builder: TStringBuilder;
  Text: string;
  Index: Integer;
begin
  Numbers := TNumbers.Create;
  Others := TList<Integer>.Create;
  Objects := TObjectList.Create;
  Strings := TStringList.Create;
  Places := TDictionary<Integer, Integer>.Create;
  Stream := TMemoryStream.Create;
  Builder := TStringBuilder.Create;
  Text := '';
  for Index := 1 to Times do
  begin
    Numbers.Add(Index); // planted: numbers
    Others.Add(Index); // planted: others
    Objects.Add(nil); // planted: objects
    Strings.Add('part'); // planted: strings
    Places.Add(Index, Index); // planted: places
    Stream.Write(Index, SizeOf(Index)); // planted: stream
    Builder.Append('part'); // planted: builder
    Text := Text + 'part'; // planted: text
  end;
  if Length(Text) = Builder.Length then
    ExitCode := 5;
end;

begin
  if ParamStr(1) = 'replace' then
    Replace
  else
    Grow;
end.
