# Settings with which an IDE asks nothing at its start. Sourced by scripts in the root of the repository.

# The IDE asks without make and without a configuration of fppkg, and where settings are of another version: Debian's
# lazbuild, which has written CONFIG, writes a shorter number.
ide_settings() { # CONFIG HOME LAZARUS
  version=$(tr -d "'" < "$3/ide/version.inc")
  sed -i "s|\\(<Version .*Lazarus=\\)\"[^\"]*\"|\\1\"$version\"|" "$1/environmentoptions.xml"
  sed -i "s|<MakeFilename>|<MakeFilename Value=\"$(command -v make)\">|" "$1/environmentoptions.xml"
  mkdir -p "$2/.config" "$2/fppkg/config"
  compiler=$(fpc -iV)
  cat > "$2/.config/fppkg.cfg" << END_OF_FILE
[Defaults]
ConfigVersion=5
LocalRepository=$2/fppkg/
CompilerConfigDir=$2/fppkg/config/
CompilerConfig=default

[Repository]
Name=fpc
Path=$(echo /usr/lib/*/fpc/"$compiler")/
Prefix=/usr/
END_OF_FILE
  cp "$2/.config/fppkg.cfg" "$2/.fppkg.cfg"
  printf '[Defaults]\nConfigVersion=5\nCompiler=%s\nOS=linux\nCPU=%s\nVersion=%s\n' "$(command -v fpc)" \
    "$(fpc -iTP)" "$compiler" > "$2/fppkg/config/default"
}
