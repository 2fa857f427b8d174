# Reads a repository from one end to the other; $1 is its directory. Prints what must always be the same.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
cd "$1"
git log --stat --format='%H %T %s' | cksum
git log -p -5 | cksum
git blame main -- dir7/file7.txt | cksum
git grep -c 'line 9 of' main | cksum
git rev-list --objects --all | git -c pack.threads=1 pack-objects -q --stdout --no-reuse-delta | cksum
git fsck --full --strict 2>&1 | cksum
