#!/bin/bash
# Accuracy of MNIST by staleness: N seeds of each cluster, without and with strategy.overlap, alternately. `make data`
# first.
# usage: staleness.sh [SEEDS [BIN]]
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
seeds=${1:-12} bin=${2:-$root/build/release/bin}
data=${XDG_CACHE_HOME:-$HOME/.cache}/trainyard/data/mnist
out=$(mktemp -d "${TMPDIR:-/tmp}/trainyard-staleness.XXXXXX")
trap 'rm -rf "$out"' EXIT

# one PS WORKERS OVERLAP SEED: "ACCURACY STALENESS"
one() {
    rm -rf "$out/run"
    "$bin/trainyard" run "$root/deploy/examples/mnist.yaml" --data-dir "$data" --output-dir "$out/run" --set fit.seed="$4" \
        --set fit.epochs=5 --set replicaSpecs.PS.replicas="$1" --set strategy.overlap="$3" --replicas worker="$2" >"$out/log" 2>&1
    sed -n 's/.*Test accuracy: //p' "$out/log" | tail -n 1
    grep -o 'staleness [0-9.]*' "$out/log" | tail -n 1 | cut -d' ' -f2
}

for seed in $(seq 7 $((seeds + 6))); do
    for cluster in "1 2 false" "1 2 true" "2 4 false" "2 4 true" "2 8 false" "2 8 true"; do
        # shellcheck disable=SC2086 # three words
        echo "$cluster $(one $cluster "$seed" | paste -sd' ')"
    done
done | awk '
    {k = $1 " ps " $2 " workers" ($3 == "true" ? " overlap" : ""); n[k]++; s[k] += $4; q[k] += $4 * $4; t[k] += $5
     if (!(k in least) || $4 < least[k]) least[k] = $4}
    END {for (k in n) {m = s[k] / n[k]; v = q[k] / n[k] - m * m
        printf "%-24s %3d seeds: accuracy %.4f (sd %.4f, least %.4f), staleness %.1f\n", k, n[k], m, sqrt(v > 0 ? v : 0), least[k], t[k] / n[k]}}' | sort
