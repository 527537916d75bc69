# Tests of run.sh: MultiWorkerMirrored. Sourced by it after sync.sh, whose functions it uses.
# shellcheck shell=bash disable=SC2154,SC2034 # its variables

# The job of sync_job without parameter servers. MEMBERS: other fields of the strategy.
members_job() { # [SED]
    sync_job "${1:-s/^//}"
    cp "$dir/job.yaml" "$dir/sync.yaml"
    sed -E -i -e "s/updates: sync,/name: MultiWorkerMirrored,${MEMBERS:+ $MEMBERS,}/; /^ *PS: /d" "$dir/job.yaml"
}
with_ps() { # RUN: the same job with a parameter server and one worker
    want_exit 0 trainyard run "$dir/sync.yaml" --data-dir "$data" --output-dir "$dir/$1" --replicas ps=1,worker=1
}

# One hash for every number of workers, and it is that of sync parameter servers and of Mirrored.
test_members_are_one_result() {
    local form want
    members_job
    with_ps ps || return
    want=$(hash_of ps)
    for form in worker=1 worker=2 worker=4 worker=3,chief=0; do
        sync_run "$form" --replicas "$form" || return
        want_line 'epoch 2/2 done'
        want_line '"step": 26' "$dir/$form/finished" # updates
        [ "$(hash_of "$form")" = "$want" ] || wrong "$form gives other weights"
    done
    without_shared_memory
    TRAINYARD_BIN_DIR=$dir/bin sync_run grpc --replicas worker=2 || return
    [ "$(hash_of grpc)" = "$want" ] || wrong "through gRPC the weights are others"
    sync_run trains --replicas worker=1 --set fit.chiefTrains=true || return
    [ "$(hash_of trains)" = "$want" ] || wrong "with a chief that trains the weights are others"
}

# All workers compute. Who asks late leaves its share of a group to others; how large shares are is in test_coordinator_lease.
test_members_share_the_work() {
    local i pid pace_us=1000
    members_job 's/epochs: 2/epochs: 40/; s/units: 20000/units: 200/'
    pace
    in_background exec_paced trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/shares" --replicas worker=3
    pid=$!
    wait_for 60 grep -qE 'workers 0, 1, 2 train from step [0-9]+ on$' "$dir/out" # the first ones do not train alone until then
    goes_on # each step waits for all of them
    rm "$dir/paced"
    wait $pid || ended_badly $? "the run ended with $?"
    for i in 0 1 2; do
        want_line "^\[worker-$i\] batches computed by this worker: [1-9][0-9]*$"
    done
}

# Workers and the chief are killed and held while the others go on, and the weights are those of a quiet run.
test_members_faults_change_nothing() {
    local pid role pace_us=1000
    members_job 's/epochs: 2/epochs: 100/; s/everySteps: 50/everySteps: 5/; s/units: 20000/units: 2000/'
    with_ps quiet || return
    pace
    in_background exec_paced trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/faults" --replicas worker=3
    pid=$!
    for role in 'worker 0' 'worker 1' chief 'worker 2'; do
        # shellcheck disable=SC2086 # two words
        sync_kill_and_hold $role
        [[ $role != worker* ]] || wait_for 60 grep -qE "worker-${role#worker } joined at step [0-9]+: 3 workers\$" "$dir/out"
    done
    rm "$dir/paced"
    wait $pid || wrong "the run ended with $?"
    want_line '^\[chief-0\] worker-1 joined at step [0-9]+: 3 workers$'
    want_line '^\[chief-0\] workers 0, 1, 2 train from step [1-9][0-9]* on$' # with another chief: they have the state
    [ "$(hash_of faults)" = "$(hash_of quiet)" ] || wrong "the weights differ from those of a quiet run"
}

shared_memory_workers() { # INDEX: from how many workers it gets gradients through shared memory
    curl -sf "http://127.0.0.1:$(flag_of "$(sync_pid worker "$1")" --http-port)/metrics" | sed -n 's/^trainyard_worker_shared_memory_workers //p'
}
shares_memory() { [ "$(shared_memory_workers "$1")" = 1 ]; } # INDEX: with the other worker

# When every worker has died, the job goes back to the newest checkpoint, and ends with the same weights.
test_members_all_lost_go_back_to_the_checkpoint() {
    local pid pids pace_us=1000
    members_job 's/epochs: 2/epochs: 40/; s/everySteps: 50/everySteps: 5/; s/everySeconds: 600/everySeconds: 0.3/; s/units: 20000/units: 2000/'
    with_ps quiet || return
    pace
    in_background exec_paced trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/faults" --replicas worker=2
    pid=$!
    goes_on
    wait_for 60 shares_memory 0
    wait_for 60 shares_memory 1
    goes_on
    pids="$(sync_pid worker 0) $(sync_pid worker 1)"
    # shellcheck disable=SC2086 # two words
    kill -9 $pids
    goes_on
    rm "$dir/paced"
    wait $pid || wrong "the run ended with $?"
    want_line '^\[chief-0\] all workers have lost the state: going back to the last checkpoint$'
    want_line '^\[chief-0\] one worker restored from .*model.ckpt-[1-9][0-9]*, and the others take the state from it$'
    [ "$(hash_of faults)" = "$(hash_of quiet)" ] || wrong "the weights differ from those of a quiet run"
}

# With fewer workers than strategy.minReplicas it waits, says so, and goes on when one comes back.
test_members_wait_below_the_minimum() {
    local pid held pace_us=1000 MEMBERS='minReplicas: 2'
    members_job 's/epochs: 2/epochs: 30/; s/everySteps: 50/everySteps: 5/; s/units: 20000/units: 2000/'
    with_ps quiet || return
    pace
    in_background exec_paced trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/faults" --replicas worker=2
    pid=$!
    goes_on
    held=$(sync_pid worker 1)
    kill -STOP "$held"
    wait_for 60 grep -q 'waiting [0-9]* s for members: 1 of at least 2 workers are there' "$dir/out" || problem "it does not say what it waits for"
    kill -CONT "$held"
    goes_on
    rm "$dir/paced"
    wait $pid || wrong "the run ended with $?"
    [ "$(hash_of faults)" = "$(hash_of quiet)" ] || wrong "the weights differ from those of a quiet run"
}

# A run that was stopped goes on with other numbers of workers, with parameter servers, and with threads.
test_members_resume_as_another_strategy() {
    local pid pace_us=1000
    members_job 's/epochs: 2/epochs: 80/; s/everySteps: 50/everySteps: 5/; s/units: 20000/units: 2000/'
    with_ps quiet || return
    sed -e 's/name: MultiWorkerMirrored,/name: Mirrored, replicas: 2,/; /replicaSpecs:/,$d' "$dir/job.yaml" >"$dir/mirrored.yaml"
    pace
    stopped_after_a_while job --replicas worker=2
    stopped_after_a_while sync --resume --replicas ps=2,worker=2
    stopped_after_a_while mirrored --resume
    rm "$dir/paced"
    want_exit 0 trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/faults" --resume --replicas worker=3 || return
    [ "$(hash_of faults)" = "$(hash_of quiet)" ] || wrong "the weights differ from those of a quiet run"
}
stopped_after_a_while() { # JOB [FLAG...]
    local job=$1 pid
    shift
    in_background exec_paced trainyard run "$dir/$job.yaml" --data-dir "$data" --output-dir "$dir/faults" "$@"
    pid=$!
    goes_on
    kill -TERM $pid
    wait $pid
    [ $? = 143 ] || problem "$job ended with another code than 143"
}

# All workers are stopped at once, and no checkpoint is due: the chief saves what they have before they end.
test_members_stopped_together_are_saved_first() {
    local pid before saved
    members_job 's/epochs: 2/epochs: 100000/; s/everySeconds: 600/everySeconds: 6000/; s/everySteps: 50/everySteps: 5/; s/units: 20000/units: 200/'
    in_background trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/faults" --replicas worker=2
    pid=$!
    goes_on
    before=$(grep -oE 'step [0-9]+ epoch' "$dir/out" | tail -1 | grep -oE '[0-9]+')
    kill -TERM "$(sync_pid worker 0)" "$(sync_pid worker 1)"
    wait_for 60 grep -q 'one worker restored from' "$dir/out" || problem "the state was not restored"
    goes_on
    kill -TERM $pid
    wait $pid
    saved=$(sed -n 's/.* one worker restored from .*model.ckpt-\([0-9]*\),.*/\1/p' "$dir/out" | head -1)
    [ "${saved:-0}" -ge "$before" ] || problem "it was restored from step $saved, and the signal came after step $before"
}

# One that is stopped leaves at once, and the others go on.
test_members_a_stopped_worker_leaves() {
    local pid pace_us=1000
    members_job 's/epochs: 2/epochs: 60/; s/everySteps: 50/everySteps: 5/; s/units: 20000/units: 2000/'
    with_ps quiet || return
    pace
    in_background exec_paced trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/faults" --replicas worker=2
    pid=$!
    goes_on
    kill -TERM "$(sync_pid worker 1)"
    wait_for 60 grep -q 'worker-1 terminates: worker-0 goes on from step' "$dir/out" || problem "the chief does not say that it goes on without it"
    wait_for 60 grep -qE '^\[chief-0\] worker-1 joined at step [0-9]+: 2 workers$' "$dir/out" || problem "worker-1 does not come back"
    rm "$dir/paced"
    wait $pid || wrong "the run ended with $?"
    [ "$(hash_of faults)" = "$(hash_of quiet)" ] || wrong "the weights differ from those of a quiet run"
}
