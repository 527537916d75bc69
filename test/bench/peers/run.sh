#!/bin/bash
# The same job with Trainyard, TensorFlow's parameter servers and PyTorch, in one run; writes docs/benchmarks.md.
# usage: run.sh BUILD [ARGUMENTS of compare.py, instead of --page docs/benchmarks.md]
# Creates a venv of about 7 GB once (PEERS_VENV, default in the cache). PyPI's torch for x86-64 includes CUDA, which is
# not used.
set -eu
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE # else OpenBLAS may choose the kernels of an older processor
export OPENBLAS_NUM_THREADS=1
build=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/trainyard
venv=${PEERS_VENV:-$cache/venv-peers}
others=(--rounds 1) # arguments of the other programs: a trial, unless the page is written
[ $# -gt 0 ] || { others=(--page docs/benchmarks.md) && set -- "${others[@]}"; }

test/tools/fetch_data.sh mnist >/dev/null
if ! [ -e "$venv/ready" ]; then
    mkdir -p "$venv"
    free=$(df --output=avail -BG "$venv" | tail -n 1 | tr -dc 0-9)
    [ "$free" -ge 12 ] || { echo "bench-peers: $venv needs 12 GB, the disk has $free" >&2; exit 1; }
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --requirement "$here/requirements.txt"
    "$venv/bin/pip" install --quiet --no-deps tf-keras==2.21.0
    touch "$venv/ready"
fi
export CUDA_VISIBLE_DEVICES=-1
"$venv/bin/python" "$here/compare.py" --trainyard "$build/bin/trainyard" --data "$cache/data/mnist" "$@"
for other in cnn jpeg embedding; do
    "$venv/bin/python" "$here/$other.py" --trainyard "$build/bin/trainyard" "${others[@]}"
done
