#!/bin/sh
# Makes sure that tools are there.
#
#   sh tools/need.sh TOOL...
#
# TOOL is fpc (with the units that the tests use), sources (what `apt-get source` needs), mimalloc
# (the library), opkman (the sources of the Online Package Manager, with a Lazarus without windows),
# lazarus-sources (those of the Lazarus IDE, and what they are compiled with),
# python-tests (those of Debian's python3), redis (server and client), prometheus (the server and
# node_exporter), php, or a command with a Debian package of the same name. A missing tool is installed
# with apt where that is possible without a password, and no service is started by that; elsewhere one
# line says what to install, and the exit code is 1.
set -eu

case ${1-} in
  --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac

build=$(dirname "$0")/../build
need=$build/need/$$ # its own for each run: several may run at a time
mkdir -p "$need"
policy=
trap 'rm -rf "$need"; [ -z "$policy" ] || as_root rm -f "$policy"' EXIT
trap 'exit 1' HUP INT TERM

# Whether fpc compiles a program with the units, and links it without missing a file of gcc.
compiles() { # UNITS
  command -v fpc > /dev/null || return 1
  echo "program Probe; uses $1; begin end." > "$need/probe.pas"
  fpc -v0w -FE"$need" "$need/probe.pas" > "$need/fpc.log" 2>&1 && ! grep -q 'crt.*not found' "$need/fpc.log"
}

# The folder of Lazarus.
lazarus() {
  dirname "$(readlink -f "$(command -v lazbuild)")"
}

has() {
  case $1 in
    fpc) compiles 'cthreads, fpcunit, regexpr' ;; # what tests and tools use
    # Without these units it takes Debian's packages of Free Pascal for broken.
    fppkg) command -v fppkg > /dev/null && compiles 'iconvenc, sqlite3dyn, openssl' ;;
    sources) command -v apt-get > /dev/null && command -v dpkg-source > /dev/null \
      && command -v xz > /dev/null ;;
    mimalloc) ld -shared -o "$need/probe.so" -lmimalloc 2> /dev/null ;;
    time) [ -x /usr/bin/time ] ;;
    java) command -v javac > /dev/null ;; # a run-time environment alone compiles nothing
    python-tests) /usr/bin/python3 -c 'import test.test_json' 2> /dev/null ;;
    lazbuild) [ -d "$(lazarus)/packager/globallinks" ] && compiles fasthtmlparser ;; # for the LCL
    opkman) [ -e "$(lazarus)/components/onlinepackagemanager/opkman_const.pas" ] \
      && [ -d "$(lazarus)/lcl/units/$(fpc -iTP)-$(fpc -iTO)/nogui" ] ;;
    lazarus-sources) [ -e "$(lazarus)/ide/lazarus.pp" ] && [ -e /usr/share/fpcsrc ] \
      && compiles 'gtk2, sqldb, spe, cupsdyn, chmreader' ;;
    debhelper) command -v dh > /dev/null && command -v dpkg-buildpackage > /dev/null ;;
    venv) /usr/bin/python3 -c 'import ensurepip' 2> /dev/null ;;
    gtest | check) echo "#include <$1$([ "$1" = check ] || echo /gtest).h>" | g++ -E -xc++ - > /dev/null 2>&1 ;;
    redis) command -v redis-server > /dev/null && command -v redis-benchmark > /dev/null ;;
    prometheus) command -v prometheus > /dev/null && command -v prometheus-node-exporter > /dev/null ;;
    *) command -v "$1" > /dev/null ;;
  esac
}

# The Debian packages of a tool.
packages() {
  case $1 in
    wine) echo wine wine64 ;;
    fpc) echo fp-compiler fp-utils fp-units-base fp-units-fcl gcc libc6-dev ;;
    gcc) echo gcc libc6-dev ;;
    go) echo golang-go ca-certificates ;;
    gtest) echo libgtest-dev ;;
    ab) echo apache2-utils ;;
    java) echo default-jdk-headless ;;
    mvn) echo maven ;;
    sources) echo dpkg-dev xz-utils ca-certificates ;;
    lazbuild) echo lcl-utils lcl-units fp-units-misc ;; # it crashes without the packages of Lazarus
    xvfb-run) echo xvfb xauth ;;
    mimalloc) echo libmimalloc-dev ;;
    python-tests) echo python3 "lib$(readlink /usr/bin/python3 || echo python3.11)-testsuite" ;;
    php) echo php-cli ;;
    node) echo nodejs ;;
    chromium) echo chromium fonts-dejavu-core ;; # alone it may have no font
    qemu-*) echo qemu-user ;;
    *-ld) echo "binutils-${1%-ld}" ;;
    redis) echo redis-server redis-tools ;;
    fppkg) echo fp-utils fp-units-misc fp-units-db fp-units-net ;;
    opkman) echo lazarus-src lcl-nogui ;;
    lazarus-sources) echo lazarus-src lcl-utils lcl-units lcl-gtk2 fp-units-gtk2 fp-units-math fp-units-misc fp-units-db fp-units-net fpc-source ;;
    import) echo imagemagick ;;
    debhelper) echo debhelper dpkg-dev ;;
    musl-gcc) echo musl-tools ;;
    venv) echo python3-venv ;;
    xz) echo xz-utils ;;
    xmllint) echo libxml2-utils ;;
    promtool) echo prometheus ;;
    prometheus) echo prometheus prometheus-node-exporter ;;
    gcore) echo gdb ;;
    *) echo "$1" ;;
  esac
}

# Runs a command as root: directly, or through sudo if it asks for no password.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  else
    sudo -n "$@"
  fi
}

# Another apt may run, and a mirror may fail for a moment.
apt() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 \
    -o Acquire::Retries=5 "$@"
}

install() {
  command -v apt-get > /dev/null || return 1
  as_root true 2> /dev/null || return 1
  # One at a time: targets that run side by side may miss the same packages.
  exec 9> "$build/need/lock"
  flock 9
  echo "need.sh: installing $*"
  policy=/usr/sbin/policy-rc.d # what Debian asks before it starts a service
  if [ -e $policy ]; then
    policy=
  else
    printf '#!/bin/sh\nexit 101\n' | as_root tee $policy > "$need/policy"
    as_root chmod +x $policy
  fi
  result=0
  # Package lists that are missing or old make the first try fail.
  apt install -y --no-install-recommends "$@" > "$need/install.log" 2>&1 < /dev/null || {
    apt update > "$need/update.log" 2>&1 || true
    apt install -y --no-install-recommends "$@" > "$need/install.log" 2>&1 < /dev/null
  } || result=$?
  [ -z "$policy" ] || as_root rm -f $policy
  # Nor at the next start of the machine.
  for service in redis-server prometheus prometheus-node-exporter; do
    case " $* " in
      *" $service "*) as_root systemctl disable $service > "$need/disable.log" 2>&1 || true ;;
    esac
  done
  [ $result -eq 0 ] || tail -n 3 "$need/install.log" >&2
  return $result
}

missing=
for tool in "$@"; do
  has "$tool" || missing="$missing $(packages "$tool")"
done
[ -n "$missing" ] || exit 0
# shellcheck disable=SC2086 # a list of packages, each once
missing=$(printf ' %s\n' $missing | awk '!seen[$0]++' | tr -d '\n')

# shellcheck disable=SC2086
install $missing || true
for tool in "$@"; do
  if ! has "$tool"; then
    echo "need.sh: $tool, or a part of it, is missing; please install:$missing (names of Debian packages)" >&2
    exit 1
  fi
done
