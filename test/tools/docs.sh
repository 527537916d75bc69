#!/bin/sh
# Writes the reference pages that come from tables. Usage: docs.sh BUILD
set -eu
"$1/tools/manifest_doc" >docs/manifest.md.new
mv docs/manifest.md.new docs/manifest.md
"$1/tools/nn_doc" >docs/layers.md.new
mv docs/layers.md.new docs/layers.md
