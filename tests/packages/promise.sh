# Makes roots of Debian. Sourced by the tests of this folder, in the root of the repository. `work` is a
# folder of their own, empty, named as the script unless it is set to a name.
. tests/lib.sh
work=$PWD/build/packages/${work-$(basename "$0" .sh)}
rm -rf "$work"
mkdir -p "$work"
printed=$work/promise.log

# The mirror of Debian or the suite that the apt of this machine uses.
mirror() { # REPO_URI | CODENAME
  apt-get indextargets --format "\$(ORIGIN) \$($1)" 'Created-By: Packages' \
    | sed -n 's/^Debian //p' | head -n 1
}

# Makes a root with the essential packages, apt and the named ones: a folder, or a .tar file.
make_root() { # ROOT SUITE PACKAGE,PACKAGE...
  # Without lists of packages apt names no mirror. need.sh has the lock.
  [ -n "$(mirror REPO_URI)" ] || { mkdir -p build/need && flock build/need/lock apt-get update; } || return 1
  rm -rf "$1"
  mmdebstrap --quiet --variant=apt --mode=root --aptopt='Acquire::Retries "5"' "--include=$3" \
    "${2:-$(mirror CODENAME)}" "$1" "deb $(mirror REPO_URI) ${2:-$(mirror CODENAME)} main"
}

# Unpacks the root of a new user: this machine's release of Debian with compilers, without LaneMM. The
# first test that needs it makes it, and leaves it for the others.
unpack_root() { # DIRECTORY
  new=build/packages/root.tar
  [ -s $new ] || {
    make_root $new.tar '' \
      fp-compiler,fp-units-base,fp-units-fcl,libc6-dev,gcc,make,cmake,pkgconf,perl-base || return 1
    mv $new.tar $new
  }
  rm -rf "$1"
  mkdir -p "$1"
  tar -C "$1" --numeric-owner -xf $new
}

# Runs a command in a root, with nothing of this machine's environment but the processes.
in_root() { # DIRECTORY COMMAND...
  # shellcheck disable=SC2016 # the inner shell expands them
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C unshare --mount sh -c \
    'mount -t proc proc "$1/proc" && exec chroot "$@"' sh "$@"
}
