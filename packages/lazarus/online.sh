#!/bin/sh
# Makes the files for the Online Package Manager of Lazarus in build/lazarus/online: lanemm.zip,
# packagelist.json, which describes it, and update_lanemm.json, by which the manager finds later versions.
#
#   sh packages/lazarus/online.sh URL
#
# URL is the address of the folder that will have the zip file and the update file. The zip file is the same
# for the same sources: its times are that of SOURCE_DATE_EPOCH, or of the last commit.
set -eu

case ${1---help} in
  --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac

url=${1%/}
cd "$(dirname "$0")/../.."
package=packages/lazarus/lanemm_units.lpk
out=build/lazarus/online
time=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2> /dev/null || stat -c %Y CHANGELOG.md)}
rm -rf "$out"
mkdir -p "$out/lanemm/packages/lazarus"

# A value of the package file.
value_of() { # TAG
  sed -n "s/.*<$1 Value=\"\([^\"]*\)\".*/\1/p" "$package" | head -n 1
}

# A part of its version; Lazarus leaves out parts that are 0.
part() { # NAME
  sed -n "s/.*<Version.* $1=\"\([0-9]*\)\".*/\1/p" "$package" | grep . || echo 0
}

version=$(part Major).$(part Minor).$(part Release).$(part Build)

cp -R LICENSE README.md CHANGELOG.md src "$out/lanemm"
cp "$package" packages/lazarus/README.md "$out/lanemm/packages/lazarus"
find "$out/lanemm" -name '*.ppu' -o -name '*.o' | xargs -r rm
find "$out/lanemm" -exec touch -d "@$time" {} +
(cd "$out" && find lanemm -type f | LC_ALL=C sort | TZ=UTC zip -q -X -@ lanemm.zip)
rm -rf "$out/lanemm"

cat > "$out/packagelist.json" <<END
{
  "PackageData0": {
    "Name": "lanemm",
    "DisplayName": "LaneMM",
    "Category": "Other",
    "CommunityDescription": "$(value_of Description)",
    "ExternalDependecies": "",
    "OrphanedPackage": 0,
    "RepositoryFileName": "lanemm.zip",
    "RepositoryFileSize": $(stat -c %s "$out/lanemm.zip"),
    "RepositoryFileHash": "$(md5sum "$out/lanemm.zip" | cut -d ' ' -f 1)",
    "RepositoryDate": $(awk -v time="$time" 'BEGIN { printf "%.6f", time / 86400 + 25569 }'),
    "PackageBaseDir": "lanemm\\\\/",
    "HomePageURL": "",
    "DownloadURL": "$url/update_lanemm.json",
    "SVNURL": ""
  },
  "PackageFiles0": [
    {
      "Name": "lanemm_units.lpk",
      "Description": "$(value_of Description)",
      "Author": "$(value_of Author)",
      "License": "$(value_of License)",
      "RelativeFilePath": "packages\\\\/lazarus\\\\/",
      "VersionAsString": "$version",
      "LazCompatibility": "2.2.6",
      "FPCCompatibility": "3.2.2",
      "SupportedWidgetSet": "",
      "PackageType": 2,
      "DependenciesAsString": ""
    }
  ]
}
END
cat > "$out/update_lanemm.json" <<END
{
  "UpdatePackageData": {
    "Name": "lanemm",
    "DownloadZipURL": "$url/lanemm.zip",
    "DisableInOPM": false
  },
  "UpdateLazPackages": [
    {
      "Name": "lanemm_units.lpk",
      "Version": "$version",
      "ForceNotify": false,
      "InternalVersion": 1
    }
  ]
}
END
echo "$out: lanemm.zip, packagelist.json, update_lanemm.json; version $version"
