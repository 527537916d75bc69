# Tests of run.sh: a run's output for users. Sourced by it.
# shellcheck shell=bash disable=SC2154 # its variables

# Up to the first step: 80 columns, and no fact twice. Each replica has a first step of its own, because a replica may
# start while another one trains.
test_start_lines_are_short() {
    local long twice
    cd "$dir" || return
    want_exit 0 trainyard run "$digits" --output-dir run --set fit.epochs=2
    cd "$root" || return
    awk '$2 == "step" || $2 == "epoch" {trains[$1] = 1} !trains[$1]' "$dir/out" >"$dir/start"
    want_line '^\[chief-0\] trainyard-worker [0-9.]+: 4810 parameters, 1500 examples, batch size 30$' "$dir/start"
    want_line '^\[ps-0\] trainyard-ps [0-9.]+ on port [0-9]+; waiting for the chief$' "$dir/start"
    want_line '^\[worker-1\] trainyard-worker [0-9.]+: BLAS core ' "$dir/start"
    long=$(awk 'length > 80' "$dir/start")
    [ -z "$long" ] || problem "a line has more than 80 columns: $long"
    [ "$(grep -c 'examples' "$dir/start")" = 1 ] || problem "the examples are not said once: $(grep 'examples' "$dir/start")"
    twice=$(grep -E '^\[([a-z]+-[0-9])\] .*\1' "$dir/start") && problem "a replica says its name twice: $twice"
    return 0
}

# It comes from /progress, with the certificates of the run and without any. The chief tells its progress once a second, so
# an epoch takes some seconds here.
test_bar_in_a_terminal() {
    local flag pid
    sed -E 's/^( *- Dense: \{units: )64(, activation: relu\}).*/\11024\2\n\11024\2/' "$digits" >"$dir/job.yaml"
    for flag in --no-insecure --insecure; do
        in_background script -qfec "exec trainyard run '$dir/job.yaml' --data-dir '$data' --output-dir '$dir/run' --set fit.epochs=100000 --set fit.batchSize=1 $flag" /dev/null
        pid=$!
        wait_for 60 grep -qaE '/100000 \[=*>.*\] [0-9]+/[0-9]+ .* ETA ' "$dir/out" || tail -c 400 "$dir/out"
        pkill -TERM -P "$pid"
        wait "$pid"
        rm -rf "$dir/run"
    done
}

test_runs_beside_each_other() { # one trial each, and one picture
    local name
    for name in a b; do
        want_exit 0 trainyard run "$digits" --output-dir "$dir/$name" --set fit.epochs=2 || return
        grep -qa "digits $(cat "$dir/$name/uid")" "$dir/$name"/summaries/train/*tfevents* || problem "$name is not a separate trial"
    done
    cd "$dir" || return
    want_exit 0 trainyard show events a b/summaries/ --plot both.svg
    for name in a b validation; do
        [ "$(grep -c ">$name</text>" both.svg)" = 1 ] || problem "$name is not in the legend once"
    done
    [ "$(grep -c '>epoch_loss</text>' both.svg)" = 1 ] || problem "the runs do not share a panel"
    grep -q 'class="raw"' both.svg && problem "lines of two points are smoothed"
    want_exit 0 trainyard show events a b --tag epoch_loss
    want_line '^a/summaries/train.epoch_loss.1.'
    want_line '^b/summaries/validation.epoch_loss.1.'
    cd "$root" || return
}

# One run for each value, a table with the best one first, and one picture. The same command again repeats nothing.
test_sweep_compares_runs() {
    local before
    single_job 's/epochs: *[0-9]+/epochs: 2/'
    cd "$dir" || return
    want_exit 0 trainyard run job.yaml --data-dir "$data" --sweep compile.optimizer.Adam.learning_rate=1.0e+30,0.005,0.00001 --sweep fit.batchSize=30
    want_line '^run 1 of 3: learning_rate=1.0e\+30,batchSize=30$'
    want_line '^3 of 3 runs, the least loss first:$'
    want_line '^  learning_rate  batchSize  loss    accuracy  end       time +folder$'
    want_line '^  0.005          30         [0-9.]{6}  [0-9.]{6}    finished  .* runs/digits-sweep/learning_rate=0.005,batchSize=30$'
    want_line '^  1.0e\+30        30         - {7}- {9}diverged  .* runs/digits-sweep/learning_rate=1.0e\+30,batchSize=30$'
    [ "$(sed -n '/^3 of 3/,/^curves/p' "$dir/out" | awk 'NR > 2 {print $1}' | tr '\n' ' ')" = '0.005 0.00001 1.0e+30 curves ' ] || problem "the best run is not the first"
    want_line '^curves of all: runs/digits-sweep/curves.svg$'
    [ "$(grep -c '>learning_rate=0.005,batchSize=30</text>' runs/digits-sweep/curves.svg)" = 1 ] || problem "the picture does not name the best run"
    want_exit 0 trainyard predict 'runs/digits-sweep/learning_rate=0.005,batchSize=30' --data-dir "$data" -o best.npy
    before=$(cat runs/digits-sweep/learning_rate=0.005,batchSize=30/history.json)
    want_exit 0 trainyard run job.yaml --data-dir "$data" --sweep compile.optimizer.Adam.learning_rate=0.005,0.00001 --sweep fit.batchSize=30
    want_line 'digits has already finished'
    want_line '^2 of 2 runs, the least loss first:$'
    [ "$before" = "$(cat runs/digits-sweep/learning_rate=0.005,batchSize=30/history.json)" ] || problem "a finished run was trained again"
    # a run that cannot start, after one that can
    want_exit 0 trainyard run job.yaml --data-dir "$data" --output-dir part --sweep data.validation.features=digits/validation-images-idx3-ubyte,none
    want_line "^error: .*no file 'none' in the data folder"
    want_line '^  none  +- +- +exit code 2 .* part/features=none$'
    # nothing begins before all values are right
    want_exit 2 trainyard run job.yaml --data-dir "$data" --output-dir other --sweep fit.epochs=1,none
    want_line 'fit.epochs=none'
    [ ! -e other ] || problem "the first run was trained"
    want_exit 2 trainyard run job.yaml --sweep fit.epochs
    want_line "^error: --sweep: 'fit.epochs' must be PATH=VALUE,VALUE"
    want_exit 3 trainyard run job.yaml --data-dir "$data" --output-dir bad --sweep compile.optimizer.Adam.learning_rate=1.0e+30
    cd "$root" || return
}
