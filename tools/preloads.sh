# Ends a script that preloads a library of this repository where the dynamic linker would not: LD_PRELOAD separates
# paths at spaces and colons, and what the script runs would do without the library. Sourced in the root.
case $PWD in
  *' '* | *:*)
    echo "$0: LD_PRELOAD cannot name a library in a folder with a space or a colon: $PWD" >&2
    exit 2 ;;
esac
