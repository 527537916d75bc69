# Tests of run.sh: BatchNormalization with the statistics of all batches of a step. Sourced by it, after sync.sh,
# members.sh and mirrored.sh, whose functions it uses.
# shellcheck shell=bash disable=SC2154,SC2034 # its variables

SYNCHRONIZED='s/- BatchNormalization/&: {synchronized: true}/'

# One hash for every strategy and number of processes. The last group of an epoch is short.
test_synchronized_is_one_result() {
    local form want
    members_job "$SYNCHRONIZED; s/units: 20000/units: 2000/"
    grep -q 'synchronized: true' "$dir/job.yaml" || problem "no synchronized layer in the job"
    with_ps ps || return
    want=$(hash_of ps)
    for form in worker=1 worker=2 worker=4; do
        sync_run "$form" --replicas "$form" || return
        want_line '"step": 26' "$dir/$form/finished" # updates
        [ "$(hash_of "$form")" = "$want" ] || wrong "MultiWorkerMirrored with $form gives other weights"
    done
    cp "$dir/sync.yaml" "$dir/job.yaml"
    for form in ps=1,worker=2 ps=3,worker=4; do
        sync_run "$form" --replicas "$form" || return
        [ "$(hash_of "$form")" = "$want" ] || wrong "$form gives other weights"
    done
    for form in 1 2 4; do
        towers_job "name: Mirrored, replicas: $form, replicasToAggregate: 4" "$SYNCHRONIZED; s/units: 20000/units: 2000/"
        sync_run "threads-$form" || return
        [ "$(hash_of "threads-$form")" = "$want" ] || wrong "Mirrored with $form threads gives other weights"
    done
}

# It is what one process computes with batches of k times the size. Without synchronized it is not.
test_synchronized_equals_one_process_with_a_larger_batch() {
    local sgd='s/\{Adam: .*0.002\}\}/{SGD: {learning_rate: 0.05}}/; s/units: 20000/units: 200/; /- Dropout/d'
    sync_job "$SYNCHRONIZED; $sgd"
    sync_run sync --replicas ps=2,worker=2 || return
    sync_job "$sgd"
    sync_run alone --replicas ps=1,worker=2 || return
    sed -e '/replicaSpecs:/,$d; /strategy:/d' -e 's/batchSize: 30/batchSize: 120/' "$dir/job.yaml" >"$dir/large.yaml"
    want_exit 0 trainyard run "$dir/large.yaml" --data-dir "$data" --output-dir "$dir/large" || return
    awk -v a="$(final "$dir/sync" loss)" -v b="$(final "$dir/large" loss)" 'BEGIN {d = a - b; exit !(d < 1e-5 && d > -1e-5)}' ||
        wrong "the loss is $(final "$dir/sync" loss), in one process $(final "$dir/large" loss)"
    awk -v a="$(final "$dir/alone" loss)" -v b="$(final "$dir/large" loss)" 'BEGIN {d = a - b; exit !(d > 1e-3 || d < -1e-3)}' ||
        problem "without synchronized the loss is the same: $(final "$dir/alone" loss)"
}

# A step of one process is one batch.
test_synchronized_alone_is_plain() {
    local form
    for form in "$SYNCHRONIZED" ''; do
        sync_job "${form:-s/^//}; s/units: 20000/units: 200/; /replicaSpecs:/,\$d; /strategy:/d"
        sync_run "alone-${#form}" || return
    done
    [ "$(hash_of "alone-${#SYNCHRONIZED}")" = "$(hash_of alone-0)" ] || wrong "a layer that is synchronized gives other weights"
}
# The same manifest with parameter servers by hand.
test_synchronized_by_hand_is_refused() {
    sync_job "$SYNCHRONIZED; s/units: 20000/units: 200/; /replicaSpecs:/,\$d; /strategy:/d"
    TF_CONFIG='{"cluster":{"ps":["127.0.0.1:1"],"worker":["127.0.0.1:2"]},"task":{"type":"worker","index":0}}' \
        want_exit 2 trainyard-worker --job "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" --insecure
    want_line "layer 'batch_normalization' is synchronized: .* strategy ParameterServer without 'updates: sync'"
}

# Each role is killed and held in the middle of steps, and the weights are those of a quiet run.
synchronized_faults() { # FORM ROLE [INDEX]...
    local form=$1 pid role pace_us=1000
    shift
    pace
    in_background exec_paced trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/faults" --replicas "$form"
    pid=$!
    for role in "$@"; do
        # shellcheck disable=SC2086 # two words
        sync_kill_and_hold $role
    done
    rm "$dir/paced"
    wait $pid || wrong "the run ended with $?"
    [ "$(hash_of faults)" = "$(hash_of quiet)" ] || wrong "the weights differ from those of a quiet run"
}
slowly='s/epochs: 2/epochs: 60/; s/everySteps: 50/everySteps: 5/; s/everySeconds: 600/everySeconds: 0.3/; s/units: 20000/units: 2000/'
test_synchronized_faults_change_nothing() {
    sync_job "$SYNCHRONIZED; $slowly"
    sync_run quiet --replicas ps=1,worker=1 || return
    synchronized_faults ps=2,worker=3 'worker 0' chief 'ps 0'
}
# Worker 0 is the first of the view, which adds the statistics.
test_synchronized_members_faults_change_nothing() {
    members_job "$SYNCHRONIZED; $slowly"
    with_ps quiet || return
    synchronized_faults worker=3 'worker 0' 'worker 1' chief
}
