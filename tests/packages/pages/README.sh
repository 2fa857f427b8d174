# What the reader of README.md has: a program in Pascal, and one with the mistake whose report the page shows.
cat > your.lpr <<'END'
uses LaneMM;
begin
  if not LaneMM_IsInstalled then
    Halt(1);
end.
END
cat > bad.lpr <<'END'
program bad;

{$mode objfpc}{$H+}

uses
  LaneMM, cthreads, SysUtils, Classes;

var
  Names: TStringList;
begin
  Names := TStringList.Create;
  Names.Add('first');
  Names.Free;
  WriteLn(Names[0]);
end.
END
mkdir -p ~/units
fpc -v0 -gl -Xs- '-Fu/path/to/lanemm/src/*' -FU"$HOME/units" bad.lpr > "$output"
! LANEMM=debug ./bad > "$output" 2>&1
