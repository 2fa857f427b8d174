# The library is built in this root, and the image is another folder.
. "$pages/program.sh"
image=/image
mkdir -p $image/usr/local/lib

finish() {
  at 'the image'
  cmp "$LD_PRELOAD" "$image$LD_PRELOAD"
  program
  at 'the static program'
  (unset LD_PRELOAD && ./a.out)
}
