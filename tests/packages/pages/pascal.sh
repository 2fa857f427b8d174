# Makes a program in Pascal that runs on LaneMM, with lines for reports.
make_program() { # NAME
  mkdir -p ~/units
  cat > "$1.lpr" <<'END'
uses
  LaneMM, cthreads, Classes;
var
  Text: string;
  Round: Integer;
begin
  if not LaneMM_IsInstalled then
    Halt(1);
  TStringList.Create;
  for Round := 1 to 1000 do
    Text := Text + 'x';
end.
END
  fpc -v0 -gl -Xs- '-Fu/path/to/lanemm/src/*' -FU"$HOME/units" "$1.lpr" > "$output"
}
