# Makes a repository, works on it, packs, checks and clones it.
set -e
export GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
git init -q -b main one
cd one
for commit in 1 2 3 4 5 6 7 8 9 10; do
  awk -v c=$commit 'BEGIN {
    for (f = 0; f < 300; f++) {
      name = "file" f % 300 ".txt"
      for (l = 0; l < 60; l++) print l * f % (c + 2), "line", l, "of", f > name
      close(name)
    }
  }'
  git add -A
  git commit -q -m "commit $commit"
done
git checkout -q -b side HEAD~3
echo side > side.txt
git add -A
git commit -q -m side
git checkout -q main
git merge -q -m merge side
git gc -q --aggressive --prune=now
git fsck --full --strict 2>&1
git log --stat --format='%H %T %s'
git blame file7.txt | tail -n 3
git grep -c 'line 9 of' | sort | tail -n 3
cd ..
git clone -q one two
git -C two rev-parse HEAD
git -C two diff HEAD~9 --stat | tail -n 1
