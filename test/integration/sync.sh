# Tests of run.sh: synchronous updates. Sourced by it.
# shellcheck shell=bash disable=SC2154,SC2034 # its variables

# A model with everything that could make a difference: state, random numbers, a variable of several segments, a short last
# batch and a short last group (50 batches of 30 and groups of 4; the last has 2).
sync_job() { # [SED]
    sed -E -e 's/^( *)- Dense: \{units: 64.*/\1- Dense: {units: 20000, activation: relu}\n\1- BatchNormalization\n\1- Dropout: {rate: 0.2}\n\1- Dense: {units: 64, activation: relu}/' \
        -e 's/updates: async/updates: sync, replicasToAggregate: 4/; s/epochs: *[0-9]+/epochs: 2/' "$digits" | sed -E "${1:-s/^//}" >"$dir/job.yaml"
}
sync_run() { # RUN [FLAG...]
    local run=$1
    shift
    want_exit 0 trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/$run" "$@"
}

# One hash for every number of workers and ps.
test_sync_is_one_result() {
    local form want
    sync_job
    sync_run first --replicas ps=1,worker=1 || return
    want=$(hash_of first)
    want_line 'epoch 2/2 done'
    want_line '"step": 26' "$dir/first/finished" # updates
    for form in ps=1,worker=2 ps=3,worker=4; do
        sync_run "$form" --replicas "$form" || return
        [ "$(hash_of "$form")" = "$want" ] || wrong "$form gives other weights"
    done
}

# Programs in $dir/bin that do not share memory.
without_shared_memory() {
    local name programs
    programs=$(dirname "$(command -v trainyard)")
    mkdir "$dir/bin"
    for name in trainyard-ps trainyard-worker; do
        printf '#!/bin/sh\nexec "%s/%s" --no-shared-memory "$@"\n' "$programs" "$name" >"$dir/bin/$name"
        chmod +x "$dir/bin/$name"
    done
}

# Without shared memory: gradients and values of a step travel in one call.
test_sync_is_one_result_through_grpc() {
    local form
    without_shared_memory
    sync_job 's/units: 20000/units: 200/'
    sync_run shared --replicas ps=1,worker=2 || return
    for form in ps=1,worker=2 ps=2,worker=3; do
        TRAINYARD_BIN_DIR=$dir/bin sync_run "$form" --replicas "$form" || return
        [ "$(hash_of "$form")" = "$(hash_of shared)" ] || wrong "$form gives other weights"
    done
}

# The mean of the gradients of k batches is the gradient of one batch of k times the size.
test_sync_equals_one_process_with_a_larger_batch() {
    sed -E -e 's/updates: async/updates: sync, replicasToAggregate: 4/; s/epochs: *[0-9]+/epochs: 3/; s/\{Adam: .*0.002\}\}/{SGD: {learning_rate: 0.05}}/' "$digits" >"$dir/job.yaml"
    sync_run sync || return
    sed -e '/replicaSpecs:/,$d; /strategy:/d' -e 's/batchSize: 30/batchSize: 120/' "$dir/job.yaml" >"$dir/large.yaml"
    want_exit 0 trainyard run "$dir/large.yaml" --data-dir "$data" --output-dir "$dir/large" || return
    awk -v a="$(final "$dir/sync" loss)" -v b="$(final "$dir/large" loss)" 'BEGIN {d = a - b; exit !(d < 1e-5 && d > -1e-5)}' ||
        wrong "the loss is $(final "$dir/sync" loss), in one process $(final "$dir/large" loss)"
}

sync_pid() { replica_pids faults "$1" "${2:-0}"; } # ROLE [INDEX]

# ROLE [INDEX]: its process is killed, and the one that follows is held for a second.
sync_kill_and_hold() {
    local killed
    goes_on
    killed=$(sync_pid "$@")
    kill -9 "$killed"
    goes_on
    wait_for 60 another_is_there "$killed" "$@"
    kill -STOP "$(sync_pid "$@")" && sleep 1 && kill -CONT "$(sync_pid "$@")"
}
another_is_there() { local pid; pid=$(sync_pid "${@:2}"); [ -n "$pid" ] && [ "$pid" != "$1" ]; } # PID ROLE [INDEX]

# Each role is killed and held while the others go on, and the weights are those of a quiet run.
test_sync_faults_change_nothing() {
    local pid role pace_us=1000
    sync_job 's/epochs: 2/epochs: 60/; s/everySteps: 50/everySteps: 5/; s/everySeconds: 600/everySeconds: 0.3/; s/units: 20000/units: 2000/'
    sync_run quiet --replicas ps=1,worker=1 || return
    pace
    in_background exec_paced trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/faults" --replicas ps=2,worker=3
    pid=$!
    for role in worker chief ps; do
        sync_kill_and_hold $role
    done
    rm "$dir/paced"
    wait $pid || wrong "the run ended with $?"
    want_line '^\[ps-0\] generation 2$' # with another chief the state stays
    [ "$(hash_of faults)" = "$(hash_of quiet)" ] || wrong "the weights differ from those of a quiet run"
}

kept_arithmetic() { trainyard show checkpoint --tensor _trainyard/state "$dir/run" | tr -d '\134' | sed -n 's/.*"arithmetic":"\([^"]*\)".*/\1/p'; }
on_core() { # CORE EXIT-CODE [FLAG...]: every x86-64 has these two cores
    OPENBLAS_CORETYPE=$1 want_exit "$2" trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" "${@:3}"
}

# The run continues on processors of another kind, which OPENBLAS_CORETYPE stands for.
test_sync_refuses_other_arithmetic() {
    local text="OpenBLAS [0-9.a-z]+, core CORE, 1 thread, glibc [0-9.]+( with FMA)?"
    sed -E -e 's/updates: async/updates: sync, replicasToAggregate: 4/; s/epochs: *[0-9]+/epochs: 2/' "$digits" >"$dir/job.yaml"
    on_core Nehalem 0 || return
    if ! grep -q 'BLAS core Nehalem$' "$dir/out"; then
        skip_reason="OpenBLAS has no kernels for Nehalem here"
        return
    fi
    kept_arithmetic >"$dir/kept"
    want_line "^${text/CORE/Nehalem}$" "$dir/kept"
    on_core Prescott 2 --resume --set fit.epochs=4 --replicas worker=1
    want_line "worker-0 computes with '${text/CORE/Prescott}', the job with '${text/CORE/Nehalem}', which gives other bits: use nodes of one kind, or set OPENBLAS_CORETYPE to one core type in all workers, or set strategy.deterministic: false$"
    kept_arithmetic >"$dir/kept" # the chief has saved again
    want_line "^${text/CORE/Nehalem}$" "$dir/kept"
    on_core Nehalem 0 --resume --set fit.epochs=4 || return
    on_core Prescott 0 --resume --set fit.epochs=6 --set strategy.deterministic=false || return
    want_line 'epoch 6/6 done'
    [ -z "$(kept_arithmetic)" ] || problem "a run that is not deterministic keeps $(kept_arithmetic)"
    # asynchronous training
    on_core Nehalem 0 --fresh --set 'strategy={updates: async}' || return
    [ -z "$(kept_arithmetic)" ] || problem "an asynchronous run keeps $(kept_arithmetic)"
    on_core Prescott 0 --resume --set fit.epochs=4 --set 'strategy={updates: async}'
}

# A ps that is stopped is in a checkpoint before it ends, and the run goes on from there: no other checkpoint is due.
ps_saved_first() { # [STRATEGY]
    local pid before saved
    sed -E -e "s/epochs: *[0-9]+/epochs: 100000/; s/everySeconds: *[0-9]+/everySeconds: 6000/${1:+; s/updates: async/$1/}" "$digits" >"$dir/job.yaml"
    in_background trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/faults" --replicas ps=2,worker=2
    pid=$!
    goes_on
    before=$(grep -oE 'step [0-9]+ epoch' "$dir/out" | tail -1 | grep -oE '[0-9]+')
    kill -TERM "$(sync_pid ps 1)"
    wait_for 60 grep -q 'ps restored from' "$dir/out" || problem "it was not restored"
    kill -TERM $pid
    wait $pid
    want_line '^\[ps-1\] stopped by a signal; all [0-9]+ segments were saved$'
    saved=$(sed -n 's/.* ps restored from .*model.ckpt-//p' "$dir/out" | head -1)
    [ "${saved:-0}" -ge "$before" ] || problem "it was restored from step $saved, and the signal came after step $before"
}
test_a_stopped_ps_is_saved_first() { ps_saved_first; }
test_sync_a_stopped_ps_is_saved_first() { ps_saved_first 'updates: sync'; }
