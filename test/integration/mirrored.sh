# Tests of run.sh: the strategies of one process with several threads. Sourced by it, after sync.sh.
# shellcheck shell=bash disable=SC2154,SC2034 # its variables

# The job of sync_job as one process, with the strategy STRATEGY.
towers_job() { # STRATEGY [SED]
    sync_job "${2:-}"
    sed -E -i "s/^  strategy:.*/  strategy: {$1}/; /replicaSpecs:/,\$d" "$dir/job.yaml"
}
# The batches that each thread of the last run computed, as words.
shares() { sed -n 's/.*batches computed by each thread: //p' "$dir/out" | tr -d ,; }
# Each of N threads computed at least 1 / (2N) of BATCHES.
want_shares() { # N BATCHES
    local share all=0 n=0
    for share in $(shares); do
        n=$((n + 1)) all=$((all + share))
        [ $((share * 2 * $1)) -ge "$2" ] || problem "a thread computed $share of $2 batches: $(shares)"
    done
    [ $n = "$1" ] && [ $all = "$2" ] || wrong "the shares are '$(shares)', of $1 threads and $2 batches"
}

# One hash: of ps and workers, and of any number of threads. clipvalue clips the mean of a group.
test_mirrored_gives_the_bits_of_ps() {
    local n want clip='s/\{Adam: \{/&clipvalue: 0.001, /'
    sync_job "$clip"
    grep -q clipvalue "$dir/job.yaml" || problem "no clipvalue in the job"
    sync_run ps --replicas ps=2,worker=3 || return
    want=$(hash_of ps)
    [ -n "$want" ] || wrong "no hash"
    for n in 1 2 4; do
        towers_job "name: Mirrored, replicas: $n, replicasToAggregate: 4" "$clip"
        sync_run "$n" || return
        want_line "Running Mirrored training in $n threads?"
        want_line "4 batches of 30 examples make a step"
        want_line "workers $n/$n"
        want_line '"step": 26' "$dir/$n/finished" # updates
        [ "$(hash_of "$n")" = "$want" ] || wrong "$n threads give other weights"
    done
}

# All threads compute at the same time. Each batch takes long enough that none is ahead by chance.
test_mirrored_threads_share_the_work() {
    pace
    towers_job "name: Mirrored, replicas: 4" 's/epochs: 2/epochs: 1/; s/units: 20000/units: 100/'
    paced sync_run run || return
    want_line '4 batches of 30 examples make a step'
    want_shares 4 50
    towers_job "name: Hogwild, concurrentSteps: 4" 's/epochs: 2/epochs: 1/; s/units: 20000/units: 100/'
    paced sync_run hogwild || return
    want_shares 4 50
    ! grep -q 'make a step' "$dir/out" || problem "Hogwild has groups"
}

# Killed at any time, and continued with another number of threads, with ps, and again in one process.
test_mirrored_goes_on_after_kills() {
    local n pid pace_us=1000
    towers_job "name: Mirrored, replicas: 2, replicasToAggregate: 4" 's/epochs: 2/epochs: 60/; s/everySeconds: 600/everySeconds: 0.1/; s/everySteps: 50/everySteps: 5/; s/units: 20000/units: 2000/'
    sync_run quiet || return
    pace
    for n in 2 4 1 3; do
        in_background exec_paced trainyard-worker --job "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" --log-level info
        pid=$!
        wait_for 60 mirrored_is_beyond 20
        kill -9 $pid
        wait $pid 2>/dev/null
        sed -E -i "s/replicas: [0-9]+/replicas: $n/" "$dir/job.yaml"
    done
    [ -s "$dir/run/finished" ] && problem "the run ended before it was killed"
    want_exit 0 trainyard-worker --job "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" || return
    want_line 'restoring .*: step [1-9]'
    [ "$(hash_of run)" = "$(hash_of quiet)" ] || wrong "the weights differ from those of a quiet run"
}
# The run has made N more steps than at its start.
mirrored_is_beyond() { # N
    local first last
    first=$(grep -oE 'restoring .*: step [0-9]+' "$dir/out" | grep -oE '[0-9]+$')
    last=$(grep -oE 'step [0-9]+ epoch' "$dir/out" | tail -1 | grep -oE '[0-9]+')
    [ "${last:-0}" -ge $((${first:-0} + $1)) ]
}

# Stopped by a signal: the step that has begun is completed and saved.
test_mirrored_stops_after_a_step() {
    local pid code stops=0 pace_us=1000
    towers_job "name: Mirrored, replicas: 3, replicasToAggregate: 4" 's/epochs: 2/epochs: 100/; s/everySteps: 50/everySteps: 5/; s/units: 20000/units: 1000/'
    sync_run quiet || return
    pace
    while [ $stops -lt 2 ]; do
        in_background exec_paced trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run"
        pid=$!
        wait_for 60 mirrored_is_beyond 20
        kill -TERM $pid
        wait $pid
        code=$?
        [ $code = 143 ] || problem "exit code $code after SIGTERM"
        want_line 'checkpoint of step [0-9]+ saved'
        want_no_line 'no step could be saved'
        stops=$((stops + 1))
    done
    sync_run run || return
    want_line 'restoring .*: step [1-9]'
    [ "$(hash_of run)" = "$(hash_of quiet)" ] || wrong "the weights differ from those of a run without a stop"
}

# A run continues under each other strategy, at the end of a group.
test_towers_and_other_strategies_continue_each_other() {
    local epochs=1 strategy
    sync_job 's/units: 20000/units: 100/; s/epochs: 2/epochs: 1/'
    sync_run run --replicas ps=2,worker=2 || return
    for strategy in 'name: Mirrored, replicas: 2' 'name: Hogwild, concurrentSteps: 2' 'name: Single' 'name: Mirrored, replicas: 3' \
        'name: Mirrored, replicas: 1' 'name: Hogwild, concurrentSteps: 1' 'name: ParameterServer, updates: sync, replicasToAggregate: 5'; do
        epochs=$((epochs + 1))
        towers_job "$strategy" 's/units: 20000/units: 100/'
        [[ $strategy != *ParameterServer* ]] || printf '  replicaSpecs: {Chief: {}, PS: {replicas: 1}, Worker: {replicas: 2}}\n' >>"$dir/job.yaml"
        sync_run run --resume --set fit.epochs=$epochs || return
        want_line "restoring .*: step [1-9][0-9]*, $((50 * (epochs - 1))) of $((50 * epochs)) batches done"
        want_line "epoch $epochs/$epochs done"
        # k stays that of the run until another one is given, or a strategy without groups comes between
        case $epochs in
        2) want_line '4 batches of 30 examples make a step' ;;
        5 | 6) want_line '3 batches of 30 examples make a step' ;;
        8) want_line '5 batches of 30 examples make a step' ;;
        *) want_no_line 'make a step' ;;
        esac
    done
    # within a group of 4: 2 of the last group's batches are applied one by one
    towers_job 'name: Hogwild, concurrentSteps: 2' 's/units: 20000/units: 100/; s/epochs: 2/steps: 15/'
    want_exit 0 trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/within" || return
    towers_job 'name: Mirrored, replicas: 4' 's/units: 20000/units: 100/; s/epochs: 2/steps: 40/'
    want_exit 2 trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/within" --resume
    want_line 'checkpoint .*model.ckpt-15 is not at the end of a group of 4 batches'
}

# A failure of one thread ends the process, and is told once.
test_towers_fail_once() {
    local strategy
    { echo a,b,y && seq 1 400 | sed 's/.*/1,2,3/; 350s/1/five/'; } >"$dir/t.csv"
    for strategy in 'name: Mirrored, replicas: 3' 'name: Hogwild, concurrentSteps: 3'; do
        rm -rf "$dir/run"
        cat >"$dir/job.yaml" <<YAML
apiVersion: trainyard.dev/v1alpha1
kind: TrainJob
metadata: {name: bad}
spec:
  model: {inputShape: [2], layers: [{Dense: {units: 1}}]}
  compile: {optimizer: {SGD: {learning_rate: 0.001}}, loss: mse}
  data: {train: {format: csv, files: t.csv, label: y, shuffle: false}}
  fit: {epochs: 100, batchSize: 2}
  strategy: {$strategy}
YAML
        want_exit 2 trainyard-worker --job "$dir/job.yaml" --data-dir "$dir" --output-dir "$dir/run"
        [ "$(grep -c 't.csv:351.*five' "$dir/out")" = 1 ] || problem "the damaged record is named $(grep -c 't.csv:351.*five' "$dir/out") times: $(tail -n 3 "$dir/out")"
        sed -i 's/five/1/' "$dir/t.csv"
        want_exit 3 trainyard run "$dir/job.yaml" --data-dir "$dir" --output-dir "$dir/run" --fresh --set compile.optimizer.SGD.learning_rate=1e30
        [ "$(grep -c 'error: .*diverged' "$dir/out")" = 1 ] || problem "the divergence is told $(grep -c 'error: .*diverged' "$dir/out") times"
        sed -i '351s/1/five/' "$dir/t.csv"
    done
}

# Counting counts each batch once in every cell, also when the process is killed or stopped and continued with other threads.
test_towers_count_each_batch_once() {
    local strategy n pid signal code pace_us=1000
    for strategy in "name: Hogwild, concurrentSteps: N" "name: Mirrored, replicasToAggregate: 3, replicas: N"; do
        counting_job 400
        rm -rf "$dir/run"
        sed -i "s/^  replicaSpecs:/  strategy: {${strategy/N/2}}/; /^  strategy:/q; s/everySeconds: 0.5/everySeconds: 0.05/" "$dir/job.yaml"
        pace
        for n in 4 1 3; do
            in_background exec_paced trainyard-worker --job "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run"
            pid=$!
            wait_for 60 mirrored_is_beyond 20
            signal=KILL code=137
            [ $n != 1 ] || signal=TERM code=143
            kill -$signal $pid
            wait $pid 2>/dev/null
            [ $? = $code ] || problem "not exit code $code after $signal"
            sed -E -i "s/(concurrentSteps|replicas): [0-9]+/\1: $n/" "$dir/job.yaml"
        done
        [ ! -s "$dir/run/finished" ] || problem "the run ended before it was killed"
        want_exit 0 trainyard-worker --job "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" || return
        want_line 'restoring .*: step [1-9]'
        want_count $((400 * batches))
    done
}

# Callbacks decide at the end of an epoch, as with ps: the same epoch, rates and weights.
test_mirrored_callbacks_decide_as_with_ps() {
    local run callbacks='s/^( *fit: \{.*)\}/\1, callbacks: [EarlyStopping: {monitor: val_loss, patience: 2, restore_best_weights: true}, ReduceLROnPlateau: {monitor: loss, patience: 1, factor: 0.5, min_delta: 0.05}]}/; s/units: 20000/units: 200/; s/epochs: 2/epochs: 40/'
    sync_job "$callbacks"
    sync_run ps --replicas ps=2,worker=2 || return
    want_line 'ended +after epoch [0-9]+ by a callback'
    towers_job "name: Mirrored, replicas: 3, replicasToAggregate: 4" "$callbacks"
    sync_run mirrored || return
    for run in ps mirrored; do
        sed -n '/"epoch"/,/]/p; /"lr"/,/]/p; /"learning_rate"/,/]/p' "$dir/$run/history.json" >"$dir/$run.decided"
        [ -s "$dir/$run.decided" ] || wrong "no history of $run"
    done
    cmp "$dir/ps.decided" "$dir/mirrored.decided" || wrong "the decisions differ"
    [ -n "$(hash_of ps)" ] && [ "$(hash_of mirrored)" = "$(hash_of ps)" ] || wrong "the weights differ: $(hash_of mirrored), with ps $(hash_of ps)"
}

# The run continues on a processor of another kind only with deterministic: false.
test_mirrored_refuses_other_arithmetic() {
    towers_job "name: Mirrored, replicas: 2" 's/units: 20000/units: 100/; s/epochs: 2/epochs: 1/'
    on_core Nehalem 0 || return
    if ! grep -q 'BLAS core Nehalem$' "$dir/out"; then
        skip_reason="OpenBLAS has no kernels for Nehalem here"
        return
    fi
    on_core Prescott 2 --resume --set fit.epochs=2
    [ "$(grep -c "error: .*tower-[01] computes with '.*Prescott.*', the job with '.*Nehalem" "$dir/out")" = 1 ] || problem "the refusal is not told once"
    on_core Prescott 0 --resume --set fit.epochs=2 --set strategy.deterministic=false
}

# Held for longer than a lease: the chief, which was held, too, leases the batches again, perhaps to another thread.
test_long_mirrored_is_held() {
    local pid pace_us=1000
    towers_job "name: Mirrored, replicas: 3, replicasToAggregate: 4" 's/epochs: 2/epochs: 300/; s/everySteps: 50/everySteps: 5/; s/units: 20000/units: 1000/'
    sync_run quiet || return
    pace
    in_background exec_paced trainyard-worker --job "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run"
    pid=$!
    wait_for 60 mirrored_is_beyond 20
    kill -STOP $pid && sleep 11 && kill -CONT $pid
    rm "$dir/paced"
    wait $pid || wrong "the run ended with $?"
    [ "$(hash_of run)" = "$(hash_of quiet)" ] || wrong "the weights differ from those of a quiet run"
}
