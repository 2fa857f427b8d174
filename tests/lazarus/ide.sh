#!/bin/sh
# Builds a Lazarus IDE with the package lanemm_ide, and uses its window there under Xvfb, as a user does. Takes a
# minute of processor time, so no other test runs it.
#
#   sh tests/lazarus/ide.sh [docked]
#
# docked: in an IDE whose windows are docked into one (the package AnchorDockingDsgn), with the mouse; then whether the
# place of the window comes back when the IDE starts again. Needs xdotool.
#
# The IDE, its settings and its pictures are in build/lazarus-ide. Who may write to the folders of Lazarus, as root
# may, gets the units of the IDE there. Needs the sources of Lazarus (lazarus-src). Ends with `N passed, N failed`.
set -u
. "$(dirname "$0")/../../tools/begin.sh"
out=$(pwd)/build/lazarus-ide
. tests/lib.sh
. tests/lazarus/settings.sh
printed=$out/log
config=$out/config
home=$out/home
lazarus=$(dirname "$(readlink -f "$(command -v lazbuild)")")
rm -rf "$config" "$home"
mkdir -p "$config" build/lazarus/shop # else the IDE asks whether to make it

# build FILE [OPTION...]: lazbuild of a package, a project, or the IDE.
build() {
  nice -n 10 lazbuild --ws=gtk2 --primary-config-path="$config" "$@" > "$out/log" 2>&1
}

cat > "$config/miscellaneousoptions.xml" << END
<?xml version="1.0" encoding="UTF-8"?>
<CONFIG>
  <MiscellaneousOptions>
    <Version Value="2"/>
    <BuildLazarusOptions>
      <Profiles Count="1">
        <Profile0 Name="Test">
          <TargetDirectory Value="$out/bin"/>
          <UpdateRevisionInc Value="False"/>
        </Profile0>
      </Profiles>
    </BuildLazarusOptions>
  </MiscellaneousOptions>
</CONFIG>
END
mode=${1-}
packages=
if [ "$mode" = docked ]; then
  sh tools/need.sh xdotool || exit 1
  packages=$lazarus/components/anchordocking/design/anchordockingdsgn.lpk
fi
# shellcheck disable=SC2086 # none is one
build --add-package-link packages/lazarus/lanemm_units.lpk \
  && build --add-package packages/lazarus/lanemm_ide.lpk tests/lazarus/ide/lanemm_ide_test.lpk $packages \
  && build --build-ide=
report 'an IDE with the package is built' $?

ide_settings "$config" "$home" "$lazarus"

# Runs the IDE through its steps: LaneIdeDriver.pas.
run() { # STEPS
  rm -f "$out/results"
  cp tests/lazarus/ide/Shop.lpi "$out" # the IDE writes it anew
  HOME=$home LANEMM_IDE_TEST="$out/results" LANEMM_IDE_STEPS=$1 timeout -k 5 300 xvfb-run -a -s '-screen 0 1280x1260x24' \
    "$out/bin/lazarus" --primary-config-path="$config" --skip-last-project tests/lazarus/ide/Shop.lpi > "$out/log" 2>&1
  cp "$out/Shop.lpi" tests/lazarus/ide
  cat "$out/results"
  same 'the window does in the IDE what it promises' 0 "$(grep -c '^failed: ' "$out/results")"
  promise 'and all of it was tried' grep -q '^passed: the end was reached' "$out/results"
}

if [ "$mode" = docked ]; then
  run dock
  run again
else
  run ''
fi
sum
