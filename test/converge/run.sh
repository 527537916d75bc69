#!/bin/bash
# Accuracy gates on real data, seeds fixed. MNIST comes from `make data`.
# usage: run.sh [NAME...]
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/../integration/lib.sh"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/trainyard/data
examples=$root/deploy/examples

fetched() { "$root/test/tools/fetch_data.sh" >"$scratch/fetch.log" 2>&1 || { skip_reason="the data could not be fetched: $(tail -n 1 "$scratch/fetch.log")"; return 1; }; }
# train NAME MANIFEST DATA SEED ARGS...: accuracy of the final evaluation into $accuracy
train() {
    local name=$1 manifest=$2 data=$3 seed=$4
    shift 4
    accuracy=
    want_exit 0 trainyard run "$manifest" --data-dir "$data" --output-dir "$dir/$name-$seed" --set fit.seed="$seed" "$@" || return
    accuracy=$(final "$dir/$name-$seed" accuracy)
    echo "    $name seed $seed: accuracy $accuracy"
}
mean() { awk '{s += $1} END{printf "%.5f\n", s / NR}' <<<"$(printf '%s\n' "$@")"; }

# three NAME BOUND ARGS...: mean of three seeds, and the first alone
three() {
    local name=$1 bound=$2 all=()
    shift 2
    for seed in 7 8 9; do
        train "$name" "$examples/mnist.yaml" "$cache/mnist" $seed --set fit.epochs=5 "$@"
        all+=("$accuracy")
    done
    echo "    $name: mean of three seeds $(mean "${all[@]}")"
    at_least "${all[0]}" 0.970 "accuracy of the first seed"
    at_least "$(mean "${all[@]}")" "$bound" "mean accuracy of three seeds"
}

single_mnist() { sed '/replicaSpecs:/,$d' "$examples/mnist.yaml" >"$dir/mnist.yaml"; }

test_mnist_single_machine() { # Keras's own mean is 0.975
    fetched || return
    local all=()
    single_mnist
    for seed in 7 8 9; do
        train single "$dir/mnist.yaml" "$cache/mnist" $seed --set fit.epochs=5
        all+=("$accuracy")
    done
    at_least "${all[0]}" 0.970 "accuracy of the first seed"
    at_least "$(mean "${all[@]}")" 0.974 "mean accuracy of three seeds"
}

test_mnist_first_loss_is_ln_10() {
    fetched || return
    single_mnist
    want_exit 0 trainyard run "$dir/mnist.yaml" --data-dir "$cache/mnist" --output-dir "$dir/run" --set fit.epochs=1 \
        --set summaries.everySteps=1 || return
    trainyard show events "$dir/run/summaries/train" --tag loss >"$dir/events"
    local first
    first=$(awk '$1 == 1 || $2 == 1 {print $NF; exit}' "$dir/events")
    at_least "$first" 2.187 "the first loss"
    at_most "$first" 2.418 "the first loss"
}

test_mnist_1_ps_2_workers() { fetched && three one_ps 0.974; }
test_mnist_2_ps_4_workers() { fetched && three two_ps 0.970 --set replicaSpecs.PS.replicas=2 --replicas worker=4; }

test_fashion_mnist() {
    fetched || return
    train fashion "$examples/fashion-mnist.yaml" "$cache/fashion-mnist" 7
    at_least "$accuracy" 0.86 accuracy
}

test_digits_three_seeds() {
    for seed in 7 8 9; do
        train digits "$examples/digits.yaml" "$examples" $seed
        at_least "$accuracy" 0.95 "accuracy of seed $seed"
    done
}

test_linear_regression() {
    want_exit 0 trainyard run "$examples/regression.yaml" --data-dir "$examples" --output-dir "$dir/run" || return
    at_most "$(final "$dir/run" loss)" 0.05 "mean squared error"
}

run_tests "$@"
