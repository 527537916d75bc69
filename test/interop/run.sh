#!/bin/sh
# run.sh BUILD [OUTPUT]: TensorFlow and TensorBoard read what our writers wrote, and a training job's output folder when one is
# named, and must see what our readers see; models that the newest Keras and tf-keras write survive our reader and writer;
# the examples of MovieLens, Census-Income and Shakespeare are as good as with Keras.
# Makes a venv (INTEROP_VENV, default build/interop-venv; needs PyPI once).
set -eu
build=${1:?usage: run.sh BUILD [OUTPUT]}
here=$(dirname "$0")
venv=${INTEROP_VENV:-build/interop-venv}
bin=$build/interop

make --no-print-directory -s BUILD="$build" "$bin/make_files" "$bin/dump" "$bin/keras_json" "$bin/keras_model"

if ! "$venv/bin/python" -c 'import tensorflow, tensorboard, tf_keras, h5py' 2>/dev/null; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet tensorflow-cpu==2.21.0 tf-keras==2.21.0 tensorboard h5py
fi
"$venv/bin/pip" install --quiet --upgrade keras || echo "SKIP the newest Keras could not be fetched; this is the one installed before"

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$bin/make_files" "$out"
"$venv/bin/python" "$here/check.py" "$bin/dump" "$out"
if [ $# -gt 1 ]; then
    echo "$2:"
    "$venv/bin/python" "$here/check.py" "$bin/dump" "$2"
fi
for keras in keras tf_keras; do
    "$venv/bin/python" "$here/keras_json.py" "$keras" "$bin/keras_json" docs/layers.md
done
"$venv/bin/python" "$here/keras_export.py" "$build/bin/trainyard" "$bin/keras_model"
"$venv/bin/python" "$here/keras_columns.py" "$build/bin/trainyard"
"$venv/bin/python" "$here/keras_fit.py" test/data/keras_fit
"$venv/bin/python" "$here/images.py" test/data/image
for name in movielens census shakespeare; do
    if test/tools/fetch_data.sh "$name"; then
        "$venv/bin/python" "$here/$name.py" "$build/bin/trainyard" "${XDG_CACHE_HOME:-$HOME/.cache}/trainyard/data/$name"
    else
        echo "SKIP $name: the data could not be fetched"
    fi
done
