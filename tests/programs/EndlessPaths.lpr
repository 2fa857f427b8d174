/// Leaks 32,768 blocks of 24 bytes at one line, each on another path: more than a table of places has.
program EndlessPaths;

{$mode delphi}

uses
  LaneMM;

procedure Path0;
var
  Lost: Pointer;
begin
  GetMem(Lost, 24); // planted: lost
end;

procedure Path1;
begin
  Path0;
  Path0;
end;

procedure Path2;
begin
  Path1;
  Path1;
end;

procedure Path3;
begin
  Path2;
  Path2;
end;

procedure Path4;
begin
  Path3;
  Path3;
end;

procedure Path5;
begin
  Path4;
  Path4;
end;

procedure Path6;
begin
  Path5;
  Path5;
end;

procedure Path7;
begin
  Path6;
  Path6;
end;

procedure Path8;
begin
  Path7;
  Path7;
end;

procedure Path9;
begin
  Path8;
  Path8;
end;

procedure Path10;
begin
  Path9;
  Path9;
end;

procedure Path11;
begin
  Path10;
  Path10;
end;

procedure Path12;
begin
  Path11;
  Path11;
end;

procedure Path13;
begin
  Path12;
  Path12;
end;

procedure Path14;
begin
  Path13;
  Path13;
end;

procedure Path15;
begin
  Path14;
  Path14;
end;

begin
  Path15;
end.
