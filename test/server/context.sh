#!/bin/bash
# Fills FOLDER with what the image is built from: the program, statically linked, and the Dockerfile.
# usage: context.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${BUILD:-build/release}
make --no-print-directory -s FLAVOUR=release BUILD="$build" "$build/server/test_server" >&2
cp "$build/server/test_server" test/server/Dockerfile "$1"
