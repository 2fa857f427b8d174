# Begins a script of the repository: with --help it prints the comment at the script's head, up to the line
# with `set`, and ends; else it goes to the root. Sourced: . "$(dirname "$0")/../tools/begin.sh"
# A signal ends the script by `exit`: without that dash leaves out the trap of EXIT.
case ${1-} in
  --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
trap 'exit 2' HUP INT TERM
unset CDPATH
cd "$(dirname "$0")" || exit 2
until [ -f fpmake.pp ]; do
  [ "$PWD" != / ] && cd .. || exit 2
done
