#!/bin/sh
# Follows docs/ci.md to the letter in a repository made for it, and runs what packages/ci tells GitHub
# and GitLab to run. Prints `done` after all of it; says what fails before.
set -eu

cd "$(dirname "$0")/../.."
root=$PWD
out=$PWD/build/lanemm-tests/ci
rm -rf "$out"
mkdir -p "$out"
cd "$out"
export GIT_AUTHOR_NAME=Test GIT_AUTHOR_EMAIL=test@localhost GIT_COMMITTER_NAME=Test \
  GIT_COMMITTER_EMAIL=test@localhost GIT_CONFIG_GLOBAL=/dev/null
unset LANEMM GITHUB_STEP_SUMMARY
ln -s "$root" lanemm
ln -s ../units units
git init -q .
printf '%s\n' lanemm units Shop '*.o' 'lanemm-report' reports memory.json > .gitignore

die() {
  echo "$*"
  exit 1
}

# program BYTES LEAKED: the program of a commit: its pages have so many bytes more, and it leaks some
program() {
  cat > Shop.lpr <<END_OF_SHOP
program Shop;

procedure Serve;
var
  Page: Pointer;
  Count: Integer;
begin
  for Count := 1 to 10 do
  begin
    GetMem(Page, 1000 + $1);
    FreeMem(Page);
  end;
  if $2 > 0 then
    GetMem(Page, $2);
end;

begin
  Serve;
end.
END_OF_SHOP
}

commit() { # SUBJECT
  git add -A
  git commit -qm "$1"
}

program 0 0 && commit 'Serve pages'
git tag first

# The blocks for a shell, in order, but for the last one, which is the bisection.
sed -n '/^```sh$/,/^```$/p' "$root/docs/ci.md" | awk -v out="$out" '
  /^```sh$/ { block++; next }
  /^```$/ { next }
  { print > (out "/block" block) }'
[ -s block1 ] && [ -s block5 ] && [ ! -e block6 ] || die 'docs/ci.md has other blocks than expected'
for block in block1 block2 block3 block4; do
  sh -eu "$block" > printed 2>&1 || die "$block of docs/ci.md fails: $(cat printed)"
done
grep -q '<testsuite' reports/Shop_MemoryManager_Leaks.*.xml || die 'reports has no file for the server'
grep -q '<testsuite name="lanemm diff" tests="1" failures="0"' diff.xml || die 'diff.xml has no passed test'
rm block1 block2 block3 block4 diff.xml printed
mv block5 ../bisect.sh

# What the page says of failures.
program 200 0
sh -eu -c "$(grep '^fpc' "$root/docs/ci.md")"
status=0
GITHUB_STEP_SUMMARY=$out/../summary sh lanemm/packages/ci/check.sh memory.json 5% ./Shop > ../printed 2>&1 \
  || status=$?
[ $status -eq 8 ] || die "growth of a fifth has exit code $status: $(cat ../printed)"
grep -qi 'serve' ../printed || die "the report names no routine: $(cat ../printed)"
grep -q '^\*\*all: +.*, more than 5%\*\*$' ../summary || die 'the summary does not name the growth'
grep -q 'failures="1"' lanemm-report/diff.xml || die 'diff.xml has no failed test'
sh lanemm/packages/ci/check.sh memory.json 25% ./Shop > ../printed 2>&1 || die "25%: $(cat ../printed)"
sh lanemm/packages/ci/check.sh nothing.json 5% ./Shop 2> ../printed | grep -q 'nothing is compared' || die 'no baseline'
status=0
sh lanemm/packages/ci/check.sh memory.json 5% false > ../printed 2>&1 || status=$?
[ $status -eq 1 ] || die "a program that fails has exit code $status"
mkdir 'a folder, with blanks'
(cd 'a folder, with blanks' && sh ../lanemm/packages/ci/check.sh ../memory.json 25% ../Shop) > ../printed 2>&1 \
  || die "in a folder with blanks: $(cat ../printed)"
rm -r 'a folder, with blanks'

# What the servers run: the commands of both files, with the variables that they set.
export PROGRAM=./Shop BASELINE=memory.json LIMIT=25% LANEMM_VALUE=alloc_space LANEMM_HOME=lanemm
export GITHUB_ACTION_PATH=$out/lanemm/packages/ci
sed -n 's/^ *run: //p' "$root/packages/ci/action.yml" > ../github.sh
sed -n '/^  script:$/,/^  [a-z]*:$/s/^ *- //p' "$root/packages/ci/gitlab.yml" > ../gitlab.sh
for server in github gitlab; do
  [ "$(grep -c . "../$server.sh")" -eq 2 ] || die "$server has other commands than expected"
  sh -eu "../$server.sh" > ../printed 2>&1 || die "$server: $(cat ../printed)"
  status=0
  LIMIT=5% sh -eu "../$server.sh" > ../printed 2>&1 || status=$?
  [ $status -eq 8 ] || die "$server: growth has exit code $status: $(cat ../printed)"
done
unset PROGRAM BASELINE LIMIT LANEMM_VALUE LANEMM_HOME

# The fifth of six commits leaks; the third, which does not compile, is in the middle of those to try.
program 3 0 && commit 'Serve three bytes more'
echo 'program' > Shop.lpr && commit 'Stop compiling'
program 0 0 && commit 'Compile again'
program 0 64 && commit 'Keep the last page'
program 2 64 && commit 'Serve another one'
sh -eu ../bisect.sh > ../printed 2>&1 || die "the bisection fails: $(cat ../printed)"
grep -A 5 'is the first bad commit' ../printed | grep -q 'Keep the last page' \
  || die "the bisection names another commit: $(cat ../printed)"
grep -q 'Fatal: Syntax error' ../printed || die "no commit was skipped: $(cat ../printed)"
echo 'done'
