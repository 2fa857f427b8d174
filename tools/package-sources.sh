# Debian's source packages, without a change of the machine's. Sourced, with `work` set: a folder, by its
# whole path, where lists and package sources lie.

# Runs apt-get on the machine's package sources turned into sources of source packages, with
# lists and cache of its own.
private_apt() {
  apt-get -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/apt/sources" \
    -o Dir::State::Lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" \
    -o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=5 "$@"
}

write_package_sources() {
  rm -rf "$work/apt"
  mkdir -p "$work/apt/sources" "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
  for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ ! -f "$list" ] || sed -n 's/^deb /deb-src /p' "$list" >> "$work/apt/sources/all.list"
  done
  for list in /etc/apt/sources.list.d/*.sources; do
    [ ! -f "$list" ] || sed 's/^Types:.*/Types: deb-src/' "$list" \
      > "$work/apt/sources/$(basename "$list")"
  done
}
