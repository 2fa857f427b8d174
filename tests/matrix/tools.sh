# What the targets of the matrix share: packages of other architectures, cross compilers, and the
# two commands of a target. Read by tests/matrix/run.sh.
# shellcheck shell=sh disable=SC2154 # dir and repository are set there

# apt_of ARCHITECTURE ARGUMENT...: apt-get of that architecture on the machine's package sources,
# with state of its own. Needs no rights, and changes nothing of the machine.
apt_of() {
  arch=$1
  state=$repository/build/matrix/apt-$arch
  shift
  mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
  : > "$state/status"
  apt-get -qq -o "APT::Architecture=$arch" -o "APT::Architectures=$arch" -o "Dir::State=$state" \
    -o "Dir::State::Lists=$state/lists" -o "Dir::State::status=$state/status" \
    -o "Dir::Cache=$state/cache" -o Acquire::Retries=5 -o "APT::Sandbox::User=$(id -un)" "$@"
}

# unpack ARCHITECTURE PACKAGE...: Debian's packages in $dir/sysroot. The linker finds libc beside its
# script instead of in /lib.
unpack() {
  [ ! -e "$dir/sysroot.done" ] || return 0
  unpacked=$1
  shift
  rm -rf "$dir/sysroot" "$dir/packages"
  mkdir -p "$dir/sysroot" "$dir/packages"
  apt_of "$unpacked" update || true # sources of other packages may fail
  (cd "$dir/packages" && apt_of "$unpacked" download "$@") || return 1
  for package in "$dir"/packages/*.deb; do
    dpkg-deb -x "$package" "$dir/sysroot" || return 1
  done
  for script in "$dir"/sysroot/usr/lib/*/libc.so; do
    [ ! -e "$script" ] || sed -i 's|/[^ ]*/\(libc[_.]\)|\1|g; s|/[^ ]*/\(ld-linux\)|-l:\1|' "$script"
  done
  rm -rf "$dir/packages"
  : > "$dir/sysroot.done"
}

# The packages of Free Pascal and of the C library that programs for Linux need.
linux_packages='fp-units-rtl-3.2.2 fp-units-base-3.2.2 fp-units-fcl-3.2.2 libc6 libc6-dev libgcc-s1
  libgcc-12-dev zlib1g'

# cross_compiler CPU NAME DIRECTORY...: builds $dir/NAME out of Debian's source package, a compiler
# for that CPU (a define of the compiler's source) that runs here; the directories belong to it.
cross_compiler() {
  [ ! -x "$dir/$2" ] || return 0
  cpu=$1
  compiler=$dir/$2
  shift 2
  source=$(sh tools/compiler-source.sh) || return 1
  units=$(sh tools/compiler-source.sh --units) || return 1
  paths=
  for directory in "$@"; do
    paths="$paths -Fu$directory -Fi$directory"
  done
  mkdir -p "$compiler.units"
  # shellcheck disable=SC2086 # a list of options
  (cd "$source" && fpc -n -v0 -ve "-Fu$units/*" "-d$cpu" -dGDB -dBROWSERLOG $paths -Fusystems -O2 \
    -FU"$compiler.units" -o"$compiler" pp.pas)
}

# write_command NAME LINE: makes $dir/NAME a script that replaces itself by the command.
write_command() {
  printf '#!/bin/sh\nexec %s "$@"\n' "$2" > "$dir/$1.new"
  chmod +x "$dir/$1.new"
  mv "$dir/$1.new" "$dir/$1"
}
