# Counts promises, and makes roots of Debian to keep them in. Sourced by the tests of this folder, in
# the root of the repository, with `work` set: a folder of their own.
passed=0
failed=0
mkdir -p "$work"

# A promise holds if the command succeeds.
promise() { # TEXT COMMAND...
  text=$1
  shift
  if "$@" > "$work/promise.log" 2>&1; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "failed: $text"
    tail -n 15 "$work/promise.log"
  fi
}

sum() {
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
}

# The mirror of Debian and the suite that the apt of this machine uses.
mirror() { # REPO_URI | CODENAME
  apt-get indextargets --format "\$(ORIGIN) \$($1)" 'Created-By: Packages' \
    | sed -n 's/^Debian //p' | head -n 1
}

# Makes a root with the essential packages, apt and the named ones.
make_root() { # DIRECTORY SUITE PACKAGE,PACKAGE...
  rm -rf "$1"
  mmdebstrap --quiet --variant=apt --mode=root ${3:+"--include=$3"} "$2" "$1" \
    "deb $(mirror REPO_URI) $2 main"
}

# Runs a command in a root, with nothing of this machine's environment but the processes.
in_root() { # DIRECTORY COMMAND...
  # shellcheck disable=SC2016 # the inner shell expands them
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C unshare --mount sh -c \
    'mount -t proc proc "$1/proc" && exec chroot "$@"' sh "$@"
}
