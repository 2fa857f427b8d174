// Leaks at one line by many paths: recursion from two lines, under two callers.
program ManyPaths;

{$mode objfpc}

uses
  LaneMM;

type
  TLeaf = class
  end;

procedure Walk(Depth: Integer);
begin
  if Depth = 0 then
    TLeaf.Create
  else
  begin
    Walk(Depth - 1);
    Walk(Depth - 1);
  end;
  if Depth < 0 then
    WriteLn; // the call above is not the last thing
end;

procedure First;
begin
  Walk(6);
  WriteLn('first');
end;

procedure Second;
begin
  Walk(5);
  WriteLn('second');
end;

begin
  First;
  Second;
end.
