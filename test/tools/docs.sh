#!/bin/sh
# Writes the reference pages that come from tables. Usage: docs.sh BUILD
set -eu
new=$(mktemp)
trap 'rm -f "$new"' EXIT
"$1/tools/manifest_doc" >"$new"
cat "$new" >docs/manifest.md
