# A program.lpr for each section, as the reader has it after the steps there.
section() { # HEADING
  case $1 in
    'From heaptrc') new_program 'uses LaneMM, Classes; begin TStringList.Create; end.' ;;
    'From cmem') new_program 'uses LaneMM, cthreads; begin if not LaneMM_IsInstalled then Halt(1); end.' ;;
    'From mORMot'*) new_program 'uses LaneMM; begin if not LaneMM_IsInstalled then Halt(1); end.' ;;
    'From FastMM5 or FastMM4') new_program 'uses FastMM5; begin FastMM_EnterDebugMode; end.' ;;
  esac
}

new_program() { # TEXT
  rm -rf units program
  echo "$1" > program.lpr
}

finish() {
  at 'the program for FastMM5'
  LANEMM=help ./program > "$output" 2>&1
  grep contention "$output"
}
