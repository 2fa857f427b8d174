# x86_64-linux: this machine.
how='native'
parts='suites checked pure engine programs demos'
quick='' # that is make core

prepare() {
  write_command fpc fpc && write_command run ''
}
