# Tests of run.sh: arguments of Keras's fit. Sourced by it.
# shellcheck shell=bash disable=SC2154 # its variables

# The training and validation examples of digits in one file each: 1,500 and 297.
joined_digits() { # FOLDER
    mkdir -p "$1"
    { printf '\0\0\10\3\0\0\7\5\0\0\0\10\0\0\0\10'; tail -q -c +17 "$data"/digits/{train,validation}-images-idx3-ubyte; } >"$1/images"
    { printf '\0\0\10\1\0\0\7\5'; tail -q -c +9 "$data"/digits/{train,validation}-labels-idx1-ubyte; } >"$1/labels"
}
# The digits job on them; SED edits it.
joined_job() {
    joined_digits "$dir/data"
    sed -E -e 's/(train: .format: idx, features: )[^,]*, labels: [^}]*/\1images, labels: labels/' -e '/^    validation:/d' \
        -e 's/(fit: .*)seed: 7/\1seed: 7, validationSplit: 0.165/' "${@/#/-e}" "$digits" >"$dir/joined.yaml"
}
same_weights() { # RUN RUN
    trainyard export "$1" -o "$dir/one.npz" >/dev/null && trainyard export "$2" -o "$dir/two.npz" >/dev/null
    cmp "$dir/one.npz" "$dir/two.npz" || wrong "$1 and $2 have other weights"
}

test_validation_split_is_two_files() { # the same run as with the two parts in separate files
    joined_job '/replicaSpecs:/,$d'
    single_job
    want_exit 0 trainyard validate "$dir/joined.yaml" --data-dir "$dir/data"
    want_line '1500 examples, 297 for validation'
    want_exit 0 trainyard run "$job" --data-dir "$data" --output-dir "$dir/run" --set fit.epochs=3 || return
    want_exit 0 trainyard run "$dir/joined.yaml" --data-dir "$dir/data" --output-dir "$dir/split" --set fit.epochs=3 || return
    want_line 'validationSplit 0.165: the first 1500 examples are trained on, the last 297 evaluated'
    cmp "$dir/run/history.json" "$dir/split/history.json" || wrong "the histories differ"
    same_weights "$dir/run" "$dir/split"
    want_exit 0 trainyard evaluate "$dir/split" --data-dir "$dir/data"
    want_line "accuracy 0\.[0-9]+ \(297 examples"
    want_exit 0 trainyard predict "$dir/split" --data-dir "$dir/data" -o "$dir/two.csv" || return
    want_exit 0 trainyard predict "$dir/run" --data-dir "$data" -o "$dir/one.csv" || return
    cmp "$dir/one.csv" "$dir/two.csv" || wrong "predict reads other examples"
}

test_validation_split_on_a_cluster() { # every role cuts the same; an evaluator and a callback read the validation part
    joined_job 's/seed: 7/&, callbacks: [{EarlyStopping: {monitor: val_loss, patience: 0, min_delta: 1000}}]/' 's/    Chief: \{\}/&\n    Evaluator: {}/'
    want_exit 0 trainyard run "$dir/joined.yaml" --data-dir "$dir/data" --output-dir "$dir/run" || return
    want_line 'EarlyStopping.*val_loss'
    want_line 'evaluated .*accuracy'
    [ "$(sed -n '/"val_loss"/,/\]/p' "$dir/run/history.json" | grep -c '\.')" = 2 ] || problem "not stopped after epoch 2: $(cat "$dir/run/history.json")"
    want_file "$dir/run/checkpoints/model.ckpt-100.index"
}

test_validation_split_counts() { # every batch of the part that is trained on exactly once, also after a change
    counting_job 2
    joined_digits "$dir/data"
    sed -i -E -e 's/(train: .format: idx, features: )[^,]*, labels: [^}]*/\1images, labels: labels/' -e '/^    validation:/d' \
        -e 's/seed: 3/seed: 3, validationSplit: 0.165/' "$dir/job.yaml"
    run_split() { trainyard run "$dir/job.yaml" --data-dir "$dir/data" --output-dir "$dir/run" "$@"; }
    want_exit 0 run_split || return
    want_count 100
    want_exit 2 run_split --resume --set fit.validationSplit=0.5 --set fit.epochs=4
    want_line 'fit.validationSplit is 0.5, was 0.165.*; --rebase continues'
    want_exit 0 run_split --rebase --set fit.validationSplit=0.5 --set fit.epochs=4 || return
    want_count $((100 + 2 * 30)) # 898 examples
    want_exit 0 run_split --set fit.validationSplit=0.5001 --set fit.epochs=4 # also 898: no difference
    want_line 'already finished'
}

test_layers_on_a_ps_of_their_own() { # and the manifest runs alone, where there is no ps
    sed 's/units: 64,/units: 64, device: "ps:1",/; s/units: 10,/units: 10, device: "\/job:ps\/task:1",/' "$digits" >"$dir/job.yaml"
    want_exit 0 trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" --set fit.epochs=2 --replicas ps=3 || return
    want_line '\[ps-1\] serving: generation 1, 4 segments'
    want_line '\[ps-0\] serving: generation 1, 0 segments'
    want_line '\[ps-2\] serving: generation 1, 0 segments'
    want_no_line device "$dir/run/model.json"
    want_exit 2 trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/other" --replicas ps=1
    want_line "layers\[2\]\.Dense\.device: 'ps:1' does not exist: the job has one PS, ps:0\$"
    [ -e "$dir/other" ] && problem "a run that is refused makes its folder"
    local hosts=(--ps-hosts=127.0.0.1:1 --worker-hosts=127.0.0.1:2 --chief-host=127.0.0.1:3)
    want_exit 2 trainyard-worker --insecure --job-name=worker --task-index=0 "${hosts[@]}" --job "$dir/job.yaml" --data-dir "$data"
    want_line "device: 'ps:1' does not exist: the job has one PS, ps:0\$"
    # on other ps the run continues, since a device is not part of the training
    sed -i 's/"ps:1"/"ps:0"/; s/task:1/task:0/' "$dir/job.yaml"
    want_exit 0 trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" --set fit.epochs=3 --resume --replicas ps=2
    want_line '\[ps-0\] serving: generation 2, 4 segments'
    want_exit 0 trainyard-worker --insecure --job "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/alone"
}

# Two ps with as many variables of the same shapes: the gradients would go to the wrong ones.
test_worker_by_hand_with_other_variables_on_the_ps() {
    sed 's/units: 64,/units: 64, device: "ps:0",/; s/units: 10,/units: 10, device: "ps:1",/; s/PS: {replicas: 1}/PS: {replicas: 2}/' "$digits" >"$dir/job.yaml"
    sed 's/"ps:0"/"ps:X"/; s/"ps:1"/"ps:0"/; s/"ps:X"/"ps:1"/' "$dir/job.yaml" >"$dir/other.yaml"
    local port hosts chief
    port=$(free_port)
    hosts=(--insecure "--ps-hosts=127.0.0.1:1,127.0.0.1:2" --worker-hosts=127.0.0.1:3 "--chief-host=127.0.0.1:$port" --data-dir "$data")
    trainyard-worker --job-name=chief --task-index=0 "${hosts[@]}" --job "$dir/job.yaml" --output-dir "$dir/run" >"$dir/chief" 2>&1 & # it waits for the ps
    chief=$!
    want_exit 2 trainyard-worker --job-name=worker --task-index=0 "${hosts[@]}" --job "$dir/other.yaml" --output-dir "$dir/worker"
    want_line 'worker-0 has other variables on the ps than the chief \(strategy.placement, or `device` of a layer\): give all the same manifest$'
    kill -TERM $chief
    wait $chief
}

same_history() { # RUN CASE: that of Keras
    local metric want got
    tr -d ' \n' <"$1/history.json" >"$dir/flat"
    while read -r metric want; do
        got=$(grep -o "\"$metric\":\[[^]]*\]" "$dir/flat" | head -n 1 | sed 's/.*\[//; s/\]//; s/,/ /g')
        awk -v got="$got" -v want="$want" 'BEGIN {
            n = split(want, w, " "); ok = split(got, g, " ") == n && n > 0
            for (i = 1; i <= n; i++) { d = g[i] - w[i]; b = 1e-5 * (w[i] > 1 ? w[i] : 1); ok = ok && d <= b && d >= -b }
            exit !ok }' || problem "${1##*/}: $metric is $got, Keras has $want"
    done <"$keras_fit/$2/history.txt"
}
keras_fit=$root/test/data/keras_fit
keras_run() { # CASE ARGS...
    want_exit 0 trainyard run "$keras_fit/$1/job.yaml" --data-dir "$keras_fit" --output-dir "$dir/$1" "${@:2}"
}

test_fit_history_is_keras() { # loss and metrics of training and evaluation, with weights, as Model.fit shows them
    local case
    for case in "$keras_fit"/*/; do
        case=$(basename "$case")
        keras_run "$case" && same_history "$dir/$case" "$case"
    done
}

test_fit_history_is_keras_on_a_cluster() { # a worker that trains, a chief that evaluates
    local case
    for case in both_weights sample_weight_split tags tags_sample_weight; do
        keras_run "$case" --replicas chief=1,ps=2,worker=1 && same_history "$dir/$case" "$case"
    done
}

loss_is() { awk -v a="$(sed -n 's/.*"loss":\([-0-9.e]*\).*/\1/p' "$dir/out")" -v b="$1" 'BEGIN {exit !(a > 0 && (a - b) ^ 2 < 1e-10)}' || problem "the loss is not $1: $(cat "$dir/out")"; }

test_evaluate_and_predict_with_weights() {
    local want
    keras_run sample_weight || return
    want=$(sed -n 's/^val_loss .* //p' "$keras_fit/sample_weight/history.txt")
    want_exit 0 trainyard evaluate "$dir/sample_weight" --data-dir "$keras_fit" --json
    loss_is "$want"
    cp "$keras_fit"/val_*.npy "$dir"
    want_exit 0 trainyard evaluate "$dir/sample_weight" "$dir/val_x.npy" --labels "$dir/val_numbers.npy" --sample-weight "$dir/val_weights.npy" --json
    loss_is "$want"
    want_exit 0 trainyard evaluate "$dir/sample_weight" "$dir/val_x.npy" --labels "$dir/val_numbers.npy" --json
    want_no_line "\"loss\":${want%?????}"
    want_exit 0 trainyard predict "$dir/sample_weight" "$dir/val_x.npy" -o "$dir/p.csv"
    [ "$(wc -l <"$dir/p.csv")" = 6 ] || problem "not 5 predictions: $(cat "$dir/p.csv")"
}

test_weights_of_the_docs() { # the manifest of docs/data.md
    local file
    awk '/^```yaml/ {text = ""; inside = 1; next} /^```/ {if (text ~ /kind: TrainJob/) printf "%s", text; inside = 0} inside {text = text $0 "\n"}' \
        "$root/docs/data.md" >"$dir/clicks.yaml"
    awk 'BEGIN {print "age,price,clicked,shown"; for (i = 0; i < 50; i++) print (i * 7 % 11) / 10 "," (i * 5 % 13) / 10 "," (i % 5 == 0) "," i % 4}' >"$dir/clicks.csv"
    want_exit 0 trainyard run "$dir/clicks.yaml" --output-dir "$dir/run" || return
    grep -q val_weighted_accuracy "$dir/run/history.json" || problem "no val_weighted_accuracy"
    want_exit 0 trainyard evaluate "$dir/run" --data-dir "$dir" --json
    loss_is "$(final "$dir/run" loss)"
    cut -d, -f1-2 "$dir/clicks.csv" >"$dir/plain.csv" # neither label nor weight
    cut -d, -f1-3 "$dir/clicks.csv" >"$dir/labelled.csv"
    cut -d, -f1,2,4 "$dir/clicks.csv" >"$dir/weighted.csv"
    want_exit 0 trainyard predict "$dir/run" "$dir/clicks.csv" -o "$dir/want.csv"
    for file in plain labelled weighted; do
        want_exit 0 trainyard predict "$dir/run" "$dir/$file.csv" -o "$dir/$file.out.csv"
        cmp "$dir/want.csv" "$dir/$file.out.csv" || wrong "$file: other predictions"
    done
    want_exit 2 trainyard run "$dir/clicks.yaml" --output-dir "$dir/run" --set fit.classWeight.1=2
    want_line 'fit.classWeight.1 is 2, was 5.*; --fresh starts from scratch'
}

test_other_weights_are_other_data() {
    keras_run both_weights || return
    want_exit 2 trainyard run "$keras_fit/both_weights/job.yaml" --data-dir "$keras_fit" --output-dir "$dir/both_weights" --set data.train.sampleWeight=some_weights.npy
    want_line 'data.train.sampleWeight is some_weights.npy, was weights.npy; --rebase continues'
    cp "$keras_fit"/*.npy "$keras_fit"/*.npz "$dir" && cp "$dir/some_weights.npy" "$dir/weights.npy"
    want_exit 2 trainyard run "$keras_fit/both_weights/job.yaml" --data-dir "$dir" --output-dir "$dir/both_weights"
    want_line 'data.train is 10 examples with other content, was 10 examples; --rebase continues'
}

# The variance of such features is above 2^64. It is no gradient, so the run does not diverge.
test_large_features_with_batch_normalization() {
    local i
    { echo a,y && for i in $(seq 40); do echo "$((i % 7))e11,$((i % 2))"; done; } >"$dir/large.csv"
    cat >"$dir/large.yaml" <<'YAML'
apiVersion: trainyard.dev/v1alpha1
kind: TrainJob
metadata: {name: large}
spec:
  model: {layers: [BatchNormalization: {}, Dense: {units: 1}]}
  compile: {optimizer: SGD, loss: mean_squared_error}
  data: {train: {format: csv, files: [large.csv], label: y}}
  fit: {epochs: 2, batchSize: 10}
YAML
    want_exit 0 trainyard run "$dir/large.yaml" --output-dir "$dir/run"
    want_exit 0 trainyard run "$dir/large.yaml" --output-dir "$dir/cluster" --replicas ps=1,worker=1,chief=1
    want_line '^large finished'
}
