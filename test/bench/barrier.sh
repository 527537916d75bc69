#!/bin/bash
# No batch of the next epoch is leased before the values of this one are copied for its evaluation. This measures the
# cost: steps/s of the same job with and without validation data, alternately. The validation data is one batch, so that
# the evaluation itself takes nothing. usage: barrier.sh BUILD DATA [ROUNDS]
set -u
build=$1 data=$2 rounds=${3:-3}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# The first N examples: idx_head N HEADER EXAMPLE FROM TO; sizes in bytes
idx_head() {
    # shellcheck disable=SC2059 # escapes
    { head -c 4 "$4"; printf "$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $(($1 >> 24 & 255)) $(($1 >> 16 & 255)) $(($1 >> 8 & 255)) $(($1 & 255)))"
      tail -c +9 "$4" | head -c $(($2 - 8 + $1 * $3)); } >"$5"
}
subset() { # N NAME
    idx_head "$1" 16 784 "$data/train-images-idx3-ubyte" "$out/$2-images"
    idx_head "$1" 8 1 "$data/train-labels-idx1-ubyte" "$out/$2-labels"
}
rate() { # MANIFEST EPOCHS: steps/s
    rm -rf "$out/run"
    "$build/bin/trainyard" run "$1" --data-dir "$out" --output-dir "$out/run" --set fit.epochs="$2" >"$out/log" 2>&1 || { tail -n 5 "$out/log" >&2; exit 1; }
    sed -n 's/.* steps in .*(\([0-9]*\) steps.*/\1/p' "$out/log"
}
median() { sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }

for batches in 20 938; do
    subset $((batches == 938 ? 60000 : batches * 64)) train
    subset 64 val
    sed -e 's#train-images-idx3-ubyte#train-images#; s#train-labels-idx1-ubyte#train-labels#' \
        -e 's#t10k-images-idx3-ubyte#val-images#; s#t10k-labels-idx1-ubyte#val-labels#' deploy/examples/mnist.yaml >"$out/with.yaml"
    grep -v '^    validation:' "$out/with.yaml" >"$out/without.yaml"
    : >"$out/rates.with" && : >"$out/rates.without"
    for ((round = 0; round < rounds; round++)); do
        for kind in without with; do rate "$out/$kind.yaml" $((7504 / batches)) >>"$out/rates.$kind"; done
    done
    awk -v b=$batches -v with="$(median <"$out/rates.with")" -v without="$(median <"$out/rates.without")" 'BEGIN {
        printf "epochs of %3d batches: %d steps/s evaluated, %d without: ratio %.3f, %.1f steps an epoch\n", b, with, without,
            with / without, b * (without / with - 1)}'
done
