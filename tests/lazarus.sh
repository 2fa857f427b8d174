#!/bin/sh
# Builds the package for Lazarus and projects that require it, with lazbuild, and runs them: one with a window,
# under Xvfb.
#
#   sh tests/lazarus.sh
#
# Lazarus keeps its settings in build/lazarus/config, away from those of the user. Ends with
# `N passed, N failed`.
set -u
. "$(dirname "$0")/../tools/begin.sh"
out=$(pwd)/build/lazarus
. tests/lib.sh
printed=$out/log

rm -rf "$out"
mkdir -p "$out"

# build FILE [OPTION...]: lazbuild of a package or a project.
build() {
  lazbuild --primary-config-path="$out/config" "$@" > "$out/log" 2>&1
}

# Units of Lazarus itself, which it compiles first on a new machine, have warnings.
no_warning() {
  ! grep -E '(Warning|Error|Note):' "$out/log" | grep -v '^/usr/'
  report 'without a warning' $?
}

build packages/lazarus/lanemm_units.lpk
report 'the package compiles' $?
no_warning

build --add-package-link packages/lazarus/lanemm_units.lpk \
  && build --build-all tests/lazarus/Sample.lpi
report 'a project that requires it compiles' $?

LANEMM=help "$out/Sample" > "$out/log" 2>&1 && grep -q '^ *contention ' "$out/log"
report 'the project runs on LaneMM, which its source does not mention' $?

LANEMM=leaks:exit=3,leaks,log="$out/" "$out/Sample" > "$out/log" 2>&1
[ $? -eq 3 ] && grep -q '1 x Classes.TStringList' "$out/log"
report 'its leak is reported' $?

# The runner with windows shows the leaks of a suite with planted ones, each with its line, and no others.
shown() {
  timeout -k 5 300 env LANEMM=quiet xvfb-run -a "$out/GuiTests" > "$out/shown" 2>&1
  sed -n 's/^Message: leaked .* allocated at PlantedSuite.pas:\([0-9]*\) .*/\1/p' "$out/shown" | sort
}
build --ws=gtk2 tests/lazarus/GuiTests.lpi
report 'tests with a window compile' $?
same 'the leaks of tests are shown in the window, to the line, and no clean test is blamed' \
  "$(sed -n '/\/\/ leak [A-Z]/=' tests/testing/PlantedSuite.pas | sort)" "$(shown)"
promise 'all its tests ran' grep -q '^Number200$' "$out/shown"

# The package for the IDE: what it reads, and its window without the IDE, with a program that has planted faults. Its
# pictures are in build/lazarus/pictures.
build --ws=gtk2 packages/lazarus/lanemm_ide.lpk
report 'the package for the IDE compiles' $?
no_warning
if [ -e .git ]; then
  promise 'its file for translators has all texts' git diff --exit-code -- packages/lazarus/ide/languages
else
  skip 'the file for translators' 'this is no clone of the repository'
fi

mkdir -p "$out/reading" "$out/pictures"
fpc -l- -v0 -vew -FU"$out/reading" -FE"$out" -Fupackages/lazarus/ide tests/lazarus/ide/ReadingTests.lpr > "$out/log" 2>&1 \
  && "$out/ReadingTests" --all --format=plain > "$out/log" 2>&1
report 'leaks, profiles and errors are read' $?

build --ws=gtk2 tests/lazarus/ide/Shop.lpi && build --ws=gtk2 tests/lazarus/ide/WindowTest.lpi
report 'the window compiles without the IDE' $?
timeout -k 5 300 xvfb-run -a "$out/WindowTest" "$out/Shop" "$out/pictures" "$(pwd)/build/lanemm" > "$out/window" 2>&1
report 'and ends with success' $?
grep '^passed: ' "$out/window"
cp "$out/window" "$out/log"
same 'all that the window promises' '0' "$(grep -c '^failed: ' "$out/window")"
same 'a picture of each view' 11 "$(find "$out/pictures" -name '*.png' -size +1k | wc -l)"

# The page, followed to the letter: beside a copy of the repository, with settings of its own.
reader=$out/reader
mkdir -p "$reader/work" "$reader/home"
ln -s "$(pwd)" "$reader/lanemm"
cp -R tests/lazarus/parts "$reader/work"
cp tests/lazarus/Sample.lpr "$reader/work/project.lpr"
sed 's|"Sample.lpr"|"project.lpr"|; s|"[./]*build/lazarus/sample"|"units"|; s|"[./]*build/lazarus/Sample"|"project"|' \
  tests/lazarus/Sample.lpi | sed '/<RequiredPackages/,/<\/RequiredPackages>/d' > "$reader/work/project.lpi"
{
  cat tests/packages/follow.sh
  cat <<'END'
project() {
  cat > part
  sed -e '/<\/BuildModes>/r part' project.lpi > changed
  mv changed project.lpi
}
END
  awk -f tests/packages/follow.awk docs/start-lazarus.md
} > "$reader/follow"
(cd "$reader/work" && HOME=$reader/home output=$reader/output sh ../follow) > "$out/log" 2>&1 \
  && grep -q '1 x Classes.TStringList' "$reader/output"
report 'docs/start-lazarus.md holds when it is followed' $?

# The files for the Online Package Manager: the package builds from them alone.
url=https://example.org/lanemm
sh packages/lazarus/online.sh "$url" > "$out/log" 2>&1 \
  && python3 - "$out/online" "$url" >> "$out/log" 2>&1 <<'END'
import hashlib, json, os, sys
folder, url = sys.argv[1:]
content = open(folder + '/lanemm.zip', 'rb').read()
description = json.load(open(folder + '/packagelist.json'))
data, files = description['PackageData0'], description['PackageFiles0']
update = json.load(open(folder + '/update_lanemm.json'))
assert data['RepositoryFileSize'] == len(content)
assert data['RepositoryFileHash'] == hashlib.md5(content).hexdigest()
assert data['PackageBaseDir'] == 'lanemm\\/'
assert data['DownloadURL'] == url + '/update_lanemm.json'
assert update['UpdatePackageData']['DownloadZipURL'] == url + '/lanemm.zip'
assert files[0]['Name'] == update['UpdateLazPackages'][0]['Name'] == 'lanemm_units.lpk'
assert files[0]['VersionAsString'] == update['UpdateLazPackages'][0]['Version']
END
report 'the description of the online package is that of its file' $?

build --ws=nogui tests/lazarus/Online.lpi && mkdir -p "$out/opm" \
  && "$out/Online" "$out/online/packagelist.json" "$out/opm" > "$out/log" 2>&1 \
  && diff - "$out/log" << END
lanemm
lanemm/
$url/update_lanemm.json
lanemm_units.lpk
$(sh tools/version.sh --library).0
lptRunTime
packages/lazarus/
END
report 'the Online Package Manager reads the description' $?

sed 's/"RepositoryFileHash"/"Hash"/' "$out/online/packagelist.json" > "$out/wrong.json"
! "$out/Online" "$out/wrong.json" "$out/opm" > "$out/log" 2>&1 && grep -q '^refused: ' "$out/log"
report 'and refuses one without the sum of its file' $?

mkdir -p "$out/unpacked"
(cd "$out/unpacked" && unzip -q ../online/lanemm.zip) > "$out/log" 2>&1 \
  && build "$out/unpacked/lanemm/packages/lazarus/lanemm_units.lpk"
report 'the online package compiles' $?

md5sum "$out/online/lanemm.zip" > "$out/sum"
sh packages/lazarus/online.sh "$url" > "$out/log" 2>&1 && md5sum --check "$out/sum" >> "$out/log" 2>&1
report 'the zip file of the same sources is the same' $?

sum
