# x86_64-linux with pages of 64 KB, as tests/largepages/LargePages.inc plays them.
without=pages-64k
how='native, pages of 64 KB played'
options='--alone'
page=65536
parts='suites engine engine-checked programs library'
quick='engine pages=DebugBlocks,Quarantine,Erase,Patterns,Elf library'

prepare() {
  write_command fpc "fpc -dLANEMM_PAGES -Fi$repository/tests/largepages"
  write_command run "env LANEMM_PAGES=$page"
}
