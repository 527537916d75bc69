#!/bin/bash
# The figures of this machine, each compared with a limit measured in the same run. usage: run.sh BUILD
# Needs MNIST (make data). docs/benchmarks.md explains the lines.
set -u
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
export OPENBLAS_NUM_THREADS=1
build=$1 root=$PWD
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$root/test/tools/fetch_data.sh" >/dev/null || exit 1
data=${XDG_CACHE_HOME:-$HOME/.cache}/trainyard/data/mnist
sed '/replicaSpecs:/,$d' deploy/examples/mnist.yaml >"$out/single.yaml"

echo "== one process, one thread: a training step against a bare OpenBLAS loop"
"$build/bench/bench_step"
echo "== transport: calls, pull and push of 64 MiB against one raw TCP connection"
"$build/bench/bench_rpc"
"$build/bench/bench_params"
"$build/bench/bench_collective"
echo "== reading data"
"$build/bench/bench_loader"
"$build/bench/bench_prefetch"

job() { # NAME MANIFEST ARGS...: steps/s and how the time was spent, 3 runs
    local name=$1 manifest=$2
    shift 2
    for run in 1 2 3; do
        "$build/bin/trainyard" run "$manifest" --data-dir "$data" --output-dir "$out/$name-$run" "$@" >"$out/log" 2>&1 ||
            { tail -n 5 "$out/log"; return 1; }
        grep -o '[0-9]* steps in .*' "$out/log" | sed "s/^/$name: /"
    done
}
echo "== MNIST MLP 784-128-10, Adam, batch 64, 5 epochs, with an evaluation after each"
job single-machine "$out/single.yaml"
job 1-ps-2-workers deploy/examples/mnist.yaml
job 2-ps-4-workers deploy/examples/mnist.yaml --set replicaSpecs.PS.replicas=2 --replicas worker=4
echo "== what the end of an epoch that is evaluated costs: the same job with and without validation data"
test/bench/barrier.sh "$build" "$data"
echo "== resident memory (VmHWM, MiB) while training, and time to the first step"
test/bench/footprint.sh "$build" "$data"
