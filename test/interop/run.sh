#!/bin/sh
# run.sh BUILD [OUTPUT]: TensorFlow and TensorBoard read what our writers wrote, and a training job's output folder when one is
# named, and must see what our readers see. Makes a venv (INTEROP_VENV, default build/interop-venv; needs PyPI once).
set -eu
build=${1:?usage: run.sh BUILD [OUTPUT]}
here=$(dirname "$0")
venv=${INTEROP_VENV:-build/interop-venv}
bin=$build/interop

mkdir -p "$bin"
for program in make_files dump; do
    # shellcheck disable=SC2046 # a list of words
    ${CC:-cc} -std=gnu17 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Ilib -o "$bin/$program" "$here/$program.c" "$build/libtrain.a" "$build/libtensor.a" \
        "$build/libcodec.a" "$build/libbase.a" $(pkg-config --libs jansson yaml-0.1 zlib) -lm -lpthread
done

if ! "$venv/bin/python" -c 'import tensorflow, tensorboard' 2>/dev/null; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet tensorflow-cpu==2.21.0 tensorboard
fi

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$bin/make_files" "$out"
"$venv/bin/python" "$here/check.py" "$bin/dump" "$out"
if [ $# -gt 1 ]; then
    echo "$2:"
    "$venv/bin/python" "$here/check.py" "$bin/dump" "$2"
fi
