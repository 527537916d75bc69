#!/bin/bash
# Accuracy of MNIST by staleness: N seeds of each cluster, in turns. `make data` first.
# usage: staleness.sh [SEEDS [BIN]]
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
seeds=${1:-12} bin=${2:-$root/build/release/bin}
data=${XDG_CACHE_HOME:-$HOME/.cache}/trainyard/data/mnist
out=$(mktemp -d "${TMPDIR:-/tmp}/trainyard-staleness.XXXXXX")
trap 'rm -rf "$out"' EXIT

# one PS WORKERS SEED: "ACCURACY STALENESS"
one() {
    rm -rf "$out/run"
    "$bin/trainyard" run "$root/deploy/examples/mnist.yaml" --data-dir "$data" --output-dir "$out/run" --set fit.seed="$3" \
        --set fit.epochs=5 --set replicaSpecs.PS.replicas="$1" --replicas worker="$2" >"$out/log" 2>&1
    sed -n 's/.*Test accuracy: //p' "$out/log" | tail -n 1
    grep -o 'staleness [0-9.]*' "$out/log" | tail -n 1 | cut -d' ' -f2
}

for seed in $(seq 7 $((seeds + 6))); do
    for cluster in "1 2" "2 4" "2 8"; do
        # shellcheck disable=SC2086 # two words
        echo "$cluster $(one $cluster "$seed" | paste -sd' ')"
    done
done | awk '
    {k = $1 " ps " $2 " workers"; n[k]++; s[k] += $3; q[k] += $3 * $3; t[k] += $4; if (!(k in least) || $3 < least[k]) least[k] = $3}
    END {for (k in n) {m = s[k] / n[k]; v = q[k] / n[k] - m * m
        printf "%-16s %3d seeds: accuracy %.4f (sd %.4f, least %.4f), staleness %.1f\n", k, n[k], m, sqrt(v > 0 ? v : 0), least[k], t[k] / n[k]}}' | sort
