#!/bin/sh
# Prints the bill of materials of a folder, as JSON of SPDX 2.3.
#
#   sh tools/sbom.sh FOLDER NAME SECONDS [SOURCE ARCHIVE]
#
# NAME is that of the folder's archive, SECONDS its time since 1970. A folder with compiled code names
# the SOURCE that it was built from, with the ARCHIVE of that, and the compiler. All of it has the
# licence of LaneMM: it holds no code of others, but for that of Free Pascal's run-time library in
# programs.
set -eu

case $# in
  3 | 5) ;;
  *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit $(($# != 1)) ;;
esac

folder=$1 name=$2 seconds=$3 source=${4-} archive=${5-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$(dirname "$0")/.."
version=$(sh tools/version.sh)
copyright=$(sed -n 's/^Copyright (c) /Copyright /p' LICENSE)

# Lines of `PATH SHA1 SHA256`, sorted by path. A link counts as the file that it leads to.
(cd "$folder" && find . ! -type d | LC_ALL=C sort) > "$work/paths"
(cd "$folder" && xargs -d '\n' sha1sum) < "$work/paths" | cut -c 1-40 > "$work/sha1"
(cd "$folder" && xargs -d '\n' sha256sum) < "$work/paths" | cut -c 1-64 > "$work/sha256"
paste -d ' ' "$work/paths" "$work/sha1" "$work/sha256" > "$work/files"
# As of SPDX 2.3, 7.9: the sum of the sorted sums.
code=$(LC_ALL=C sort "$work/sha1" | tr -d '\n' | sha1sum | cut -c 1-40)

# A package: its identifier, name, version, licence, and further fields.
package() {
  cat <<EOF
    {
      "SPDXID": "$1",
      "name": "$2",
      "versionInfo": "$3",
      "licenseDeclared": "$4",
      "licenseConcluded": "$4",
      "downloadLocation": "NOASSERTION",
      $5
    }
EOF
}

relation() {
  printf '    {"spdxElementId": "%s", "relationshipType": "%s", "relatedSpdxElement": "%s"}' "$@"
}

cat <<EOF
{
  "spdxVersion": "SPDX-2.3",
  "dataLicense": "CC0-1.0",
  "SPDXID": "SPDXRef-DOCUMENT",
  "name": "$name",
  "documentNamespace": "urn:lanemm:spdx:$name:$code",
  "creationInfo": {
    "created": "$(date -u -d "@$seconds" +%Y-%m-%dT%H:%M:%SZ)",
    "creators": ["Tool: lanemm-sbom-$version"]
  },
  "packages": [
EOF
package SPDXRef-Package "$name" "$version" MIT \
  "\"copyrightText\": \"$copyright\",
      \"filesAnalyzed\": true,
      \"licenseInfoFromFiles\": [\"MIT\"],
      \"packageVerificationCode\": {\"packageVerificationCodeValue\": \"$code\"}"
if [ -n "$source" ]; then
  echo '    ,'
  package SPDXRef-Source "$source" "$version" MIT \
    "\"copyrightText\": \"$copyright\",
      \"filesAnalyzed\": false,
      \"checksums\": [{\"algorithm\": \"SHA256\",
        \"checksumValue\": \"$(sha256sum < "$archive" | cut -c 1-64)\"}]"
  echo '    ,'
  package SPDXRef-Compiler 'Free Pascal' "$(fpc -iV)" GPL-2.0-or-later \
    '"copyrightText": "NOASSERTION",
      "filesAnalyzed": false'
  echo '    ,'
  package SPDXRef-Runtime "Free Pascal's run-time library" "$(fpc -iV)" LGPL-2.0-or-later \
    '"copyrightText": "NOASSERTION",
      "comment": "with an exception for static linking; in bin/lanemm and libexec/lanemm-replay",
      "filesAnalyzed": false'
fi
printf '  ],\n  "files": [\n'
awk -v copyright="$copyright" '{
  sha256 = $NF
  sha1 = $(NF - 1)
  path = substr($0, 1, length($0) - length(sha1) - length(sha256) - 2)
  gsub(/["\\]/, "\\\\&", path)
  if (NR != 1)
    print ","
  printf "    {\"SPDXID\": \"SPDXRef-File-%d\", \"fileName\": \"%s\",\n", NR, path
  printf "      \"checksums\": [{\"algorithm\": \"SHA1\", \"checksumValue\": \"%s\"},\n", sha1
  printf "        {\"algorithm\": \"SHA256\", \"checksumValue\": \"%s\"}],\n", sha256
  printf "      \"licenseConcluded\": \"MIT\", \"licenseInfoInFiles\": [\"MIT\"],\n"
  printf "      \"copyrightText\": \"%s\"}", copyright
}' "$work/files"
printf '\n  ],\n  "relationships": [\n'
relation SPDXRef-DOCUMENT DESCRIBES SPDXRef-Package
awk '{ printf ",\n    {\"spdxElementId\": \"SPDXRef-Package\", \"relationshipType\": \"CONTAINS\", \"relatedSpdxElement\": \"SPDXRef-File-%d\"}", NR }' "$work/files"
if [ -n "$source" ]; then
  echo ,
  relation SPDXRef-Package GENERATED_FROM SPDXRef-Source
  echo ,
  relation SPDXRef-Compiler BUILD_TOOL_OF SPDXRef-Package
  echo ,
  relation SPDXRef-Package STATIC_LINK SPDXRef-Runtime
fi
printf '\n  ]\n}\n'
