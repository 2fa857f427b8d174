#!/bin/sh
# Files that programs of others read, checked by the tools of their formats: bills of materials (SPDX) and
# the workflows of GitHub and GitLab.
#
#   sh tests/packages/formats.sh
#
# Needs PyPI, and Go's proxy for actionlint, which also has shellcheck look at commands where that is
# installed. The last line is `N passed, N failed`.
set -eu
. "$(dirname "$0")/../../tools/begin.sh"
. tests/packages/promise.sh

tools=$work/tools/bin
source=lanemm-$(sh tools/version.sh)

has_tools() {
  /usr/bin/python3 -m venv "$work/tools" \
    && "$tools/pip" install -q 'spdx-tools==0.8.*' 'check-jsonschema==0.31.*' \
    && GOBIN=$tools go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.7
}

has_bills() {
  sh tools/dist.sh --out="$work/dist"
}

is_bill() { # ARCHIVE
  "$tools/pyspdxtools" -i "$work/dist/$1.spdx.json"
}

fits() { # SCHEMA FILE
  "$tools/check-jsonschema" --builtin-schema "vendor.$1" "$2"
}

# A schema that takes everything would show nothing.
refuses() { # SCHEMA TEXT
  echo "$2" > "$work/wrong.yml"
  ! fits "$1" "$work/wrong.yml"
}

promise 'there are the tools' has_tools
promise 'there are bills of materials' has_bills
promise 'the bill of the source archive is valid SPDX' is_bill "$source"
promise 'the bill of the binary archive is valid SPDX' is_bill "$source-x86_64-linux"
promise 'the workflow of GitHub fits its schema' fits github-workflows .github/workflows/ci.yml
promise 'another file does not' refuses github-workflows 'jobs: 1'
promise 'the workflow of GitHub has no mistake that actionlint knows' \
  "$tools/actionlint" .github/workflows/ci.yml
promise 'the pipeline of GitLab fits its schema' fits gitlab-ci .gitlab-ci.yml
promise 'another file does not' refuses gitlab-ci 'all: {script: {}}'
sum
