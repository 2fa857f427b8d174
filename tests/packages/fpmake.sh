#!/bin/sh
# Builds and installs the units with fpmake, and compiles a program with what is installed.
#
#   sh tests/packages/fpmake.sh
#
# The last line is `N passed, N failed`.
set -eu
. "$(dirname "$0")/../../tools/begin.sh"
. tests/packages/promise.sh

# In a copy: fpmake writes beside its sources.
builds() {
  mkdir -p "$work/tree" && cp -R src fpmake.pp "$work/tree" || return 1
  (cd "$work/tree" && fpc -v0 fpmake.pp \
    && ./fpmake install --globalunitdir="$own" --prefix="$work/there")
}

# With settings of its own: nothing outside of this folder is changed.
installs_by_fppkg() {
  mkdir -p "$work/home" && cat > "$work/fppkg.cfg" <<EOF || return 1
[Defaults]
ConfigVersion=5
LocalRepository=$work/home/
BuildDir={LocalRepository}build/
ArchivesDir={LocalRepository}archives/
CompilerConfigDir={LocalRepository}config/
CompilerConfig=default
FPMakeCompilerConfig=default
Downloader=FPC
InstallRepository=user

[Repository]
Name=fpc
Path=$own/

[Repository]
Name=user
Path={LocalRepository}lib/fpc/{CompilerVersion}
Prefix={LocalRepository}
EOF
  rm -rf "$work/tree" && mkdir "$work/tree" && cp -R src fpmake.pp "$work/tree" || return 1
  mkdir -p "$work/home/config"
  (cd "$work/tree" && fppkg -C "$work/fppkg.cfg" install) && [ -n "$(find "$work/home" -name LaneMM.ppu)" ]
}

# The units, without those of other folders; the unit that is named like the package comes once.
installs_all() {
  units=$(dirname "$(find "$work/there" -name LaneMM.ppu)")
  find src -name '*.pas' ! -path 'src/door/*' -exec basename {} .pas ';' | sort > "$work/sources"
  find "$units" -name '*.ppu' -exec basename {} .ppu ';' | sort | diff "$work/sources" -
}

compiles() {
  fpc -v0 -FaLaneMM "-Fu$units" -FE"$work" -FU"$work" tests/packages/Installed.lpr \
    && [ "$("$work/Installed")" = "$(sh tools/version.sh) xx" ]
}

# A linker refuses code that cannot lie at any address.
links() {
  mkdir -p "$work/library"
  printf 'library Plain;\nuses SysUtils;\nfunction Get: Pointer;\nbegin\n  Get := GetMem(100);\nend;\nexports Get;\nend.\n' \
    > "$work/library/plain.lpr"
  fpc -v0 -Cg -FaLaneMM "-Fu$units" "-FU$work/library" "-o$work/library/plain.so" "$work/library/plain.lpr"
}

# The folder of the compiler's own units.
own=$(find /usr/lib /usr/local/lib -path "*/fpc/$(fpc -iV)/units" -prune | head -n 1)
own=${own%/units}

promise 'fpmake builds and installs the units' builds
promise 'each unit of src/ is installed' installs_all
promise 'a program whose uses clause names files runs on the installed units' compiles
promise 'a library is linked with the installed units' links
promise 'fppkg installs the units' installs_by_fppkg
sum
