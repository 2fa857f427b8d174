echo 'uses LaneMM; begin if not LaneMM_IsInstalled then Halt(1); end.' > program.lpr
fpc -v0 '-Fu/path/to/lanemm/src/*' -FU/tmp program.lpr > "$output"
