/// A project that requires the package of LaneMM, and does not mention it in its source.
program Sample;

{$mode objfpc}{$H+}

uses
  {$ifdef UNIX} cthreads, {$endif}
  Classes, Words in 'parts/Words.pas';

var
  Lines: TStringList;
begin
  Lines := TStringList.Create;
  Lines.Text := ManyWords(1000);
  WriteLn(Lines.Count, ' line'); // Lines is leaked, for tests/lazarus.sh
end.
