# What the reader of README.md has: two programs in Pascal, and one that checks that it runs on the library.
. "$pages/program.sh"

cat > your.lpr <<'END'
uses LaneMM, SysUtils;
begin
  if not LaneMM_IsInstalled then
    Halt(1);
end.
END
sed 's/LaneMM, //; s/^  if.*/  if GetMem(24) = nil then/' your.lpr > any.lpr

finish() {
  at 'the programs'
  ./your
  LANEMM=help ./any > "$output" 2>&1
  grep contention "$output"
}
