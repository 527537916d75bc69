# Tests of run.sh: models with shared layers and nested models. Sourced by it, after mirrored.sh.
# shellcheck shell=bash disable=SC2154 # its variables

# The digits with a nested model and a layer that are called three times.
graph_job() { # STRATEGY [SED]
    sync_job "${2:-}"
    sed -E -i "s/^  strategy:.*/  strategy: {$1}/; /^  model:/,/^  compile:/{/^  compile:/!d}" "$dir/job.yaml"
    sed -i "s|^  compile:|  model: {kerasFile: $root/test/data/graph/model.json}\n&|" "$dir/job.yaml"
}

# The same weights from ps with workers and from threads; and all commands that read the run know its model.
test_a_nested_model_trains_everywhere() {
    graph_job 'updates: sync, replicasToAggregate: 2'
    want_exit 0 trainyard validate "$dir/job.yaml" --data-dir "$data" || return
    sync_run ps --replicas ps=2,worker=2 || return
    graph_job 'name: Mirrored, replicas: 2' '/replicaSpecs:/,$d'
    sync_run threads || return
    [ -n "$(hash_of ps)" ] && [ "$(hash_of ps)" = "$(hash_of threads)" ] || wrong "ps and threads give other weights"
    at_least "$(final "$dir/ps" accuracy)" 0.8 accuracy
    want_exit 0 trainyard evaluate "$dir/ps" --data-dir "$data" || return
    want_exit 0 trainyard predict "$dir/ps" --data-dir "$data" -o "$dir/p.csv" || return
    want_exit 0 trainyard show checkpoint "$dir/ps/checkpoints" || return
    want_line ' tower/dense/kernel '
    want_line ' tower/norm/moving_mean '
    want_exit 0 trainyard show model "$dir/ps/job.yaml" --data-dir "$data" || return
    want_line 'tower \(Sequential\) .* flat\[0\]\[0\], mix\[0\]\[0\], mix\[2\]\[0\]'
    want_exit 0 trainyard show model "$dir/ps/job.yaml" --data-dir "$data" --plot "$dir/model.svg" || return
    want_line 'mix \[1\]' "$dir/model.svg"
    want_line '</svg>' "$dir/model.svg"
    want_exit 0 trainyard export "$dir/ps" -o "$dir/model.keras" || return
}

# Weights of another run, and of a file of Keras, find the variables of a nested model.
test_a_nested_model_starts_from_weights() {
    graph_job 'updates: sync'
    sync_run first || return
    want_exit 0 trainyard export "$dir/first" -o "$dir/first.keras" || return
    for from in first first.keras; do
        rm -rf "$dir/next"
        sync_run next --set fit.initialWeights="$dir/$from" || return
        want_line "initial weights from .*$from: 10 of 10 variables"
    done
}
