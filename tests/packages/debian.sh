#!/bin/sh
# Builds the Debian packages from the source archive, installs them in a clean root, runs their own tests
# (packages/debian/tests, which autopkgtest runs for Debian) and removes them there.
#
#   sh tests/packages/debian.sh
#
# Needs the rights of root. The last line is `N passed, N failed`.
set -eu
. "$(dirname "$0")/../../tools/begin.sh"
. tests/packages/promise.sh

version=$(sh tools/version.sh --debian)
tree=$work/packages/lanemm-$version
clean=$work/root

builds() {
  sh tools/deb.sh --out="$work/packages"
}

# As docs/releasing.md says.
takes_maintainer() {
  DEBFULLNAME='The Builder' DEBEMAIL=builder@example.net sh tools/deb.sh --tree --out="$work/named" || return 1
  maintainer='The Builder <builder@example.net>'
  grep -x "Maintainer: $maintainer" "$work/named/lanemm-$version/debian/control" \
    && [ "$(dpkg-parsechangelog -l "$work/named/lanemm-$version/debian/changelog" -S Maintainer)" = "$maintainer" ]
}

is_lintian_clean() {
  lintian --allow-root --display-info --fail-on error,warning,info \
    "$work/packages/lanemm_$version-0lanemm1_amd64.changes"
}

# All files of the root but those in which apt and dpkg keep their books.
files_of() {
  (cd "$clean" && find . -xdev ! -path './var/lib/*' ! -path './var/cache/*' ! -path './var/log/*' \
    ! -path './tmp/*' ! -path './proc/*' ! -path './etc/ld.so.cache' | LC_ALL=C sort)
}

has_root() {
  unpack_root "$clean" || return 1
  files_of > "$work/before"
}

installs() {
  cp "$work"/packages/*.deb "$clean/tmp/"
  in_root "$clean" sh -c 'apt-get install -y --no-install-recommends /tmp/*.deb'
}

has_sources() {
  mkdir "$clean/tmp/source" && tar -C "$tree" --exclude=./build -cf - . | tar -C "$clean/tmp/source" -xf -
}

# As autopkgtest does: in the source tree, with a folder for what is made.
passes() { # TEST
  rm -rf "$clean/tmp/made" && mkdir "$clean/tmp/made" || return 1
  in_root "$clean" sh -c "cd /tmp/source && AUTOPKGTEST_TMP=/tmp/made debian/tests/$1"
}

has_documents() {
  (cd "$clean/usr/share" && [ -s man/man3/liblanemm.3.gz ] && [ -s man/man1/lanemm.1.gz ] \
    && [ -s doc/liblanemm1/copyright ] \
    && [ -s doc/liblanemm1/changelog.gz ])
}

is_gone() {
  in_root "$clean" apt-get purge -y liblanemm1 fp-units-lanemm lanemm-tools || return 1
  rm -rf "$clean"/tmp/*
  files_of | diff "$work/before" -
}

promise 'the packages build from the source archive' builds
promise 'they name who builds them as their maintainer' takes_maintainer
promise 'lintian has no errors, warnings or notes' is_lintian_clean
promise 'there is a clean root' has_root
promise 'apt installs all packages with what is in the root' installs
promise 'their tests are there' has_sources
for test in $(sed -n 's/^Tests: //p' packages/debian/tests/control); do
  promise "the test $test of the installed packages passes" passes "$test"
done
promise 'the packages have manual pages, licence and changes' has_documents
promise 'apt removes everything' is_gone
sum
