# The folder from which the image is made has the library; the image is this root.
. "$pages/program.sh"
make lib > "$output" 2>&1
cd build/lib

finish() {
  at 'the image'
  program
}
