# Tests of run.sh: MultiWorkerMirrored whose workers are started by hand. Sourced by it after members.sh.
# shellcheck shell=bash disable=SC2154 # its variables

# by_hand TASK [FLAG...]: a worker of digits-mwms in plain text
by_hand() {
    trainyard-worker --insecure --job "${job:-$root/deploy/examples/digits-mwms.yaml}" --data-dir "$data" --output-dir "$dir/run" "$@"
}
task() { TF_CONFIG="{\"cluster\":{$1},\"task\":{\"type\":\"worker\",\"index\":$2}}" by_hand "${@:3}"; } # CLUSTER INDEX [FLAG...]
of_flags() { by_hand --job-name=worker --task-index="$1" --worker-hosts="$hosts"; }                   # INDEX

# As in two shells of two machines: with TF_CONFIG, then with the flags, in which no parameter server need be named.
test_members_by_hand() {
    local form first second hosts
    want_exit 0 trainyard run "$root/deploy/examples/digits-mwms.yaml" --data-dir "$data" --output-dir "$dir/launched" || return
    for form in tf_config flags; do
        rm -rf "$dir/run"
        hosts="127.0.0.1:$(free_port),127.0.0.1:$(free_port)"
        if [ $form = flags ]; then
            of_flags 1 >"$dir/second" 2>&1 &
            second=$!
            in_background of_flags 0
        else
            task "\"worker\":[\"${hosts/,/\",\"}\"]" 1 >"$dir/second" 2>&1 &
            second=$!
            in_background task "\"worker\":[\"${hosts/,/\",\"}\"]" 0
        fi
        first=$!
        wait $first || ended_badly $? "worker 0 of $form ended with $?"
        wait $second || ended_badly $? "worker 1 of $form ended with $?: $(tail -n 1 "$dir/second")"
        want_line 'workers (0, 1|1, 0) train from step 0 on'
        [ "$(hash_of run)" = "$(hash_of launched)" ] || wrong "with $form the weights are others"
    done
}

test_members_by_hand_that_cannot_train() {
    want_exit 2 task '"ps":["127.0.0.1:1"],"worker":["127.0.0.1:2","127.0.0.1:3"]' 0
    want_line 'error: strategy MultiWorkerMirrored trains without parameter servers; the cluster has 1$'
    want_exit 2 task '"chief":["127.0.0.1:1"]' 0
    want_line 'error: TF_CONFIG: worker is not a valid task_type in the cluster: it has no worker$'
    want_exit 2 task '"worker":["127.0.0.1:1"]' 1
    want_line 'error: TF_CONFIG: 1 is not a valid task_id for task_type worker in the cluster: it has 1 of them \(0 to 0\)$'
    want_exit 2 by_hand
    want_line 'error: strategy MultiWorkerMirrored needs a cluster: start the job with trainyard run, or name its workers \(WORKER_HOSTS\)$'
    want_exit 2 by_hand --job-name=worker --task-index=0
    want_line 'error: Must specify an explicit `ps_hosts`'
    # parameter servers that were forgotten
    job=$root/deploy/examples/digits-sync.yaml
    want_exit 2 by_hand --job-name=worker --task-index=0 --worker-hosts=127.0.0.1:1,127.0.0.1:2
    want_line 'error: strategy ParameterServer with several workers needs a ps in the cluster \(PS_HOSTS\)$'
}
