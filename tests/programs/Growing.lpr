/// Grows what programs grow, through routines of the libraries of Free Pascal.
program Growing;

{$mode delphi}{$H+}

uses
  LaneMM, cthreads, Classes, SysUtils, Contnrs, FGL, Generics.Collections;

type
  TNumbers = TFPGList<Integer>;

const
  Times = 100000;

var
  Numbers: TNumbers;
  Others: TList<Integer>;
  Objects: TObjectList;
  Stream: TMemoryStream;
  Builder: TStringBuilder;
  Text: string;
  Index: Integer;
begin
  Numbers := TNumbers.Create;
  Others := TList<Integer>.Create;
  Objects := TObjectList.Create;
  Stream := TMemoryStream.Create;
  Builder := TStringBuilder.Create;
  Text := '';
  for Index := 1 to Times do
  begin
    Numbers.Add(Index); // planted: numbers
    Others.Add(Index); // planted: others
    Objects.Add(nil); // planted: objects
    Stream.Write(Index, SizeOf(Index)); // planted: stream
    Builder.Append('part'); // planted: builder
    Text := Text + 'part'; // planted: text
  end;
  if Length(Text) = Builder.Length then
    ExitCode := 5;
end.
