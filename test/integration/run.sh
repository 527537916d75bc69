#!/bin/bash
# Real ps, worker and chief processes on loopback, on real data.
# usage: run.sh [quick | NAME...]
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/lib.sh"
digits=$root/deploy/examples/digits.yaml
data=$root/deploy/examples

run() { trainyard run "$digits" --data-dir "$data" --output-dir "$dir/run" "$@"; }
run_bg() { exec trainyard run "$digits" --data-dir "$data" --output-dir "$dir/run" "$@"; } # for &: no shell between
alone() { trainyard-worker --job "${job:-$digits}" --data-dir "$data" --output-dir "$dir/run" "$@"; }
# shellcheck disable=SC2120 # in_background passes them
alone_bg() { exec trainyard-worker --job "${job:-$digits}" --data-dir "$data" --output-dir "$dir/run" "$@"; }
# The job without replicas: single machine. alone_job FILE [SED]
single_job() { sed -e '/replicaSpecs:/,$d' "$digits" | sed -E "${1:-s/^//}" >"$dir/job.yaml"; job=$dir/job.yaml; }

# The hash of the result of a run of digits, from an export, whose variables are ordered by name: 64 + 64 * 64 floats, then
# 10 + 64 * 10.
exported_hash() { # RUN
    trainyard export "$1" -o "$dir/hash.safetensors" >/dev/null 2>&1 && tail -c $((4810 * 4)) "$dir/hash.safetensors" >"$dir/floats"
    { floats 64 4096 && floats 0 64 && floats 4170 640 && floats 4160 10; } | sha256sum | cut -d ' ' -f 1
}
floats() { tail -c +$(($1 * 4 + 1)) "$dir/floats" | head -c $(($2 * 4)); } # FIRST COUNT

# reaches ACCURACY COMMAND...
reaches() {
    local bound=$1
    shift
    want_exit 0 "$@" || return
    at_least "$(final "$dir/run" accuracy)" "$bound" accuracy
}

test_quick_cluster() { # 1 ps, 2 workers, 1 chief: the demo
    reaches 0.95 run || return
    want_line 'Test loss: [0-9.]+, Test accuracy: [0-9.]+'
    want_file "$dir/run/checkpoints/checkpoint"
    want_file "$dir/run/model.json"
    want_file "$dir/run/finished"
    compgen -G "$dir/run/summaries/train/*tfevents*" >/dev/null || problem "no event file"
    want_no_process
}

test_quick_single_machine() {
    single_job
    reaches 0.95 alone || return
    want_line 'Running single-machine training'
}

test_quick_kernels_fit_the_processor() { # OpenBLAS chooses old ones for a processor that it does not know
    single_job
    want_exit 0 env -u OPENBLAS_CORETYPE trainyard-worker --job "$job" --data-dir "$data" --output-dir "$dir/run" || return
    grep -qw avx2 /proc/cpuinfo && ! want_line 'BLAS core (Haswell|Zen|SkylakeX|Cooperlake|SapphireRapids)' && return
    want_exit 0 env OPENBLAS_CORETYPE=Prescott trainyard-worker --job "$job" --data-dir "$data" --output-dir "$dir/chosen" || return
    want_line 'BLAS core Prescott'
    want_line 'OPENBLAS_CORETYPE=Prescott is set: without it'
}

test_quick_misspelt() {
    sed 's/optimizer: {*Adam/&m/' "$digits" >"$dir/job.yaml"
    want_exit 2 trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run"
    want_line "job.yaml:[0-9]+:[0-9]+: .*'Adamm' is not known; did you mean 'Adam'"
    [ -e "$dir/run" ] && problem "an output folder was made for a job that cannot run"
    return 0
}

test_without_chief() { # worker 0 hosts it
    sed '/Chief:/d' "$digits" >"$dir/job.yaml"
    reaches 0.95 trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" || return
    want_no_process
}

test_chief_and_one_ps() { # the smallest cluster: the chief trains, and no other replica could resume a suspended job
    sed '/Worker:/d' "$digits" >"$dir/job.yaml"
    want_exit 0 trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" --set runPolicy.suspend=true || return
    want_line 'runPolicy.suspend is ignored by trainyard run; the job runs'
    at_least "$(final "$dir/run" accuracy)" 0.95 accuracy
}

test_two_ps_four_workers() {
    reaches 0.95 run --set replicaSpecs.PS.replicas=2 --replicas worker=4
}

test_round_robin_placement() {
    reaches 0.95 run --set replicaSpecs.PS.replicas=2 --set strategy.placement=round_robin
}

tensors() { trainyard export "$1" -o "$2" >/dev/null || problem "export $1"; }

# stop_replica PID LOG: it ends, and does not wait for another one, which it would say after some seconds
stop_replica() {
    local lines code
    lines=$(wc -l <"$2")
    kill -TERM "$1"
    wait "$1"
    code=$?
    [ $code = 143 ] || problem "exit code $code after SIGTERM"
    tail -n "+$((lines + 1))" "$2" | grep -qE 'waiting [0-9]+ s' && problem "${2##*/} waits although it was stopped"
    return 0
}

test_chief_stops_first() { # as when a job is suspended; the others wait for it, and a new one continues with them
    counting_job 200
    replica_file
    local chief ps workers=() i step
    pace # it cannot end before its chief is stopped
    ps_port=$(free_port) chief_port=$(free_port)
    replica ps 0 2 >"$dir/ps" 2>&1 &
    ps=$!
    in_background replica chief 0 2
    chief=$!
    for i in 0 1; do paced replica worker $i 2 >"$dir/worker-$i" 2>&1 & workers+=($!); done
    wait_for 60 grep -qE 'step [1-9][0-9]+ .*workers 2/2' "$dir/out"
    stop_replica $chief "$dir/out"
    step=$(sed -n 's/.*checkpoint of step \([0-9]*\) saved.*/\1/p' "$dir/out")
    [ -s "$dir/run/checkpoints/model.ckpt-$step.index" ] || problem "no checkpoint of step '$step'"
    wait_for 60 grep -q 'waiting [0-9]* s for the chief' "$dir/worker-0"
    kill -0 $ps "${workers[@]}" || problem "the ps or a worker ended with the chief"
    rm "$dir/paced"
    replica chief 0 2 >"$dir/chief-2" 2>&1 &
    chief=$!
    wait $chief || ended_badly $? "the second chief failed: $(tail -n 1 "$dir/chief-2")"
    wait "$ps" || ended_badly $? "the ps failed"
    for i in 0 1; do wait "${workers[$i]}" || ended_badly $? "worker-$i failed"; done
    want_no_line ' ps (restored|initialised)' "$dir/chief-2"
    want_count $((200 * batches))
}

test_all_stop_in_order() { # the chief, then the workers, then the ps: no replica waits for one that has exited
    counting_job 100000
    replica_file
    local chief ps worker
    ps_port=$(free_port) chief_port=$(free_port)
    replica ps 0 1 >"$dir/ps" 2>&1 &
    ps=$!
    in_background replica chief 0 1
    chief=$!
    replica worker 0 1 >"$dir/worker" 2>&1 &
    worker=$!
    wait_for 60 grep -qE 'step [1-9][0-9]+ .*workers 1/1' "$dir/out"
    stop_replica $chief "$dir/out"
    stop_replica $worker "$dir/worker"
    stop_replica $ps "$dir/ps"
}

test_ipv6() { # a cluster without IPv4: one ps listens on its own address, the other on all, as a pod's does
    [ -e /proc/net/if_inet6 ] && grep -q '^0*1 ' /proc/net/if_inet6 || { skip_reason="this machine has no IPv6 loopback"; return; }
    local replicas=() ports=() http i entries job=$digits
    for i in 0 1 2; do ports+=("$(free_port)"); done
    http=$(free_port)
    cp "$digits" "$dir/job.yaml"
    identities ps=2
    entries=(--ps-hosts "[::1]:${ports[0]},[::1]:${ports[1]}" --worker-hosts "[::1]:${ports[2]}")
    trainyard-ps --job "$digits" --job-name ps --task-index 0 --tls-dir "$dir/tls/ps-0" "${entries[@]}" >"$dir/ps-0" 2>&1 &
    replicas+=($!)
    trainyard-ps --job "$digits" --job-name ps --task-index 1 --tls-dir "$dir/tls/ps-1" "${entries[@]}" --listen ":${ports[1]}" --http-port "$http" >"$dir/ps-1" 2>&1 &
    replicas+=($!)
    wait_for 60 curl -sfg -o /dev/null "http://[::1]:$http/healthz"
    curl -sf -o /dev/null "http://127.0.0.1:$http/healthz" || problem "what listens on all addresses does not answer IPv4"
    reaches 0.9 alone --job-name worker --task-index 0 --tls-dir "$dir/tls/worker-0" "${entries[@]}"
    for i in "${replicas[@]}"; do wait "$i" || ended_badly $? "a ps failed"; done
}

test_export_to_standard_output() { # as in a helper pod: byte for byte the content of a file
    local format
    single_job 's/epochs: *[0-9]+/epochs: 1/'
    want_exit 0 alone || return
    for format in safetensors npz keras weights.h5; do
        trainyard export "$dir/run" -o "$dir/model.$format" >/dev/null || problem "export as $format"
        trainyard export "$dir/run" -o - --format $format 2>"$dir/err" | cat >"$dir/piped"
        cmp "$dir/model.$format" "$dir/piped" || wrong "$format differs on standard output"
        [ -s "$dir/err" ] && problem "something was said: $(head -n 1 "$dir/err")"
    done
    if ! command -v script >/dev/null; then
        echo "    no program script: a terminal is not tried"
        return
    fi
    want_exit 2 script -qec "trainyard export '$dir/run' -o -" /dev/null
    want_line 'standard output is a terminal, and safetensors is binary; write it to a file \(-o model.safetensors\) or a pipe'
}

# value FILE NAME: checksum of a variable of a checkpoint
value() { trainyard show checkpoint --tensor "$2" "$1" | cksum; }

test_transfer_learning() { # a trained layer is frozen, a new head learns on it; the file is read once
    local from format
    want_exit 0 run --set fit.epochs=3 || return
    mv "$dir/run" "$dir/first"
    for format in keras weights.h5 npz safetensors; do
        trainyard export "$dir/first" -o "$dir/first.$format" >/dev/null || problem "export as $format"
    done
    sed -e 's/units: 64, activation: relu/units: 64, activation: relu, trainable: false/; s/{units: 10,/{units: 10, name: head,/' "$digits" \
        >"$dir/job.yaml"
    for from in first first/checkpoints first.keras first.weights.h5 first.npz first.safetensors; do
        rm -rf "$dir/run"
        want_exit 0 trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" --set fit.epochs=2 \
            --set "fit.initialWeights=$dir/$from" || return
        want_line "initial weights from .*$from: 2 of 4 variables: dense/kernel, dense/bias"
        want_line 'not in the file, trained from scratch: head/kernel, head/bias'
        [ "$(value "$dir/run" dense/kernel | cut -d' ' -f1)" = "$(value "$dir/first" dense/kernel | cut -d' ' -f1)" ] ||
            problem "$from: the frozen layer has other values"
        at_least "$(final "$dir/run" accuracy)" 0.8 "accuracy with $from"
    done
    # its own checkpoint takes precedence over the file, which may be deleted
    rm "$dir/first.safetensors"
    want_exit 0 trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" --set fit.epochs=3 --resume \
        --set "fit.initialWeights=$dir/$from" || return
    want_no_line 'initial weights from'
    want_exit 2 trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/new" --set "fit.initialWeights=$dir/$from"
    want_line 'fit.initialWeights: no checkpoint .*first.safetensors'
    [ -e "$dir/new" ] && problem "an output folder was made for a job that cannot run"
    want_exit 2 trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" --set fit.epochs=4 --resume \
        --set "fit.initialWeights=$dir/first.npz"
    want_line 'fit.initialWeights is .*, was .*; --fresh starts from scratch'
}

test_resume_is_bit_equal() { # stopped by a signal twice and resumed, against never stopped
    single_job 's/epochs: *[0-9]+/epochs: 300/'
    want_exit 0 alone || return
    tensors "$dir/run" "$dir/straight"
    mv "$dir/run" "$dir/run-straight"
    local epoch pid
    build_kill_at
    for epoch in 50 150; do
        HOLD_AT="log epoch $epoch/300 done" KILL_MARK=$dir/at-$epoch LD_PRELOAD=$kill_at in_background alone_bg
        pid=$!
        wait_for 60 test -e "$dir/at-$epoch" # there it waits
        kill -TERM $pid
        rm "$dir/at-$epoch"
        wait $pid
        [ $? = 143 ] || problem "it is not stopped in epoch $epoch"
    done
    want_exit 0 alone || return
    want_line 'restoring .*model.ckpt-'
    tensors "$dir/run" "$dir/resumed"
    cmp "$dir/straight" "$dir/resumed" || wrong "the resumed run ended with other values"
}

test_resume_refuses_what_changed() {
    single_job 's/epochs: *[0-9]+/epochs: 1/'
    want_exit 0 alone || return
    rm "$dir/run/finished"
    sed -i 's/batchSize: *[0-9]*/batchSize: 48/' "$dir/job.yaml"
    want_exit 2 alone
    want_line 'fit.batchSize is 48, was 30; set fit.rebase: true'
    single_job 's/epochs: *[0-9]+/epochs: 1/; s/seed: *[0-9]+/seed: 4711/'
    want_exit 2 alone
    want_line 'fit.seed is 4711'
}

test_diverging_ends_with_3() {
    single_job
    want_exit 3 trainyard run "$job" --data-dir "$data" --output-dir "$dir/run" --set 'compile.optimizer={SGD: {learning_rate: 1.0e+30}}'
    want_line 'diverged'
    want_exit 3 run --fresh --set 'compile.optimizer={SGD: {learning_rate: 1.0e+30}}'
    want_line 'diverged'
    want_no_process
    # a worker that the chief stops may end first, and nothing may be restarted
    want_exit 3 run --fresh --set runPolicy.backoffLimit=0 --set 'compile.optimizer={SGD: {learning_rate: 1.0e+30}}'
    # the chief's line in the log, and the last line of the command
    run --fresh --set 'compile.optimizer={SGD: {learning_rate: 1.0e+30}}' >"$dir/said" 2>"$dir/log"
    [ "$(grep -c 'not finite' "$dir/log")" = 1 ] || problem "the log tells it $(grep -c 'not finite' "$dir/log") times"
    [ "$(grep -c 'not finite' "$dir/said")" = 1 ] || problem "the command says $(cat "$dir/said")"
}

test_interrupt_saves_and_resumes() {
    run_bg --set fit.epochs=100000 >"$dir/first" 2>&1 &
    local pid=$! epochs
    wait_for 60 grep -qE 'epoch [0-9]+/100000 done' "$dir/first"
    kill -INT $pid
    wait $pid
    local code=$?
    [ $code = 143 ] || [ $code = 130 ] || problem "exit code $code after an interrupt"
    want_no_process
    epochs=$(grep -oE 'epoch [0-9]+/100000' "$dir/first" | tail -n 1 | grep -oE '[0-9]+/' | tr -d /)
    want_exit 0 run --resume --set fit.epochs=$((epochs + 20)) || return
    want_line 'restoring .*model.ckpt-'
}

counting_run() { trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" "$@"; }
exec_run() { exec trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" "$@"; } # for &

# Stopped with one ps, resumed with two: every batch exactly once. How many epochs there are is decided when it is known
# how many have begun.
test_resume_on_other_ps_and_workers() {
    local pid epochs
    counting_job 100000
    exec_run --replicas ps=1 --replicas worker=1 >"$dir/first" 2>&1 &
    pid=$!
    wait_for 60 grep -qE 'epoch [0-9]+/100000 done' "$dir/first"
    kill -INT $pid
    wait $pid
    epochs=$(($(counts | sort -n | tail -n 1) / batches + 30))
    want_exit 0 counting_run --resume --set fit.epochs=$epochs --replicas ps=2 --replicas worker=3 || return
    want_line "restoring .*model.ckpt-[0-9]+: step [0-9]+, [1-9][0-9]* of $((epochs * batches)) batches done"
    want_count $((epochs * batches))
    want_no_process
}

test_resume_extends() { # more epochs than the run that has finished
    counting_job 10
    want_exit 0 counting_run || return
    want_count $((10 * batches))
    want_exit 0 counting_run --resume --set fit.epochs=25 || return
    want_line 'restoring .*model.ckpt-500: step 500, 500 of 1250 batches done'
    want_count $((25 * batches))
}

test_fresh_begins_again() {
    counting_job 10
    want_exit 0 counting_run || return
    want_exit 0 counting_run # nothing left to do
    want_line 'already finished'
    want_exit 0 counting_run --fresh --set fit.epochs=3 || return
    want_no_line 'restoring '
    want_count $((3 * batches))
    compgen -G "$dir/run.old-1/checkpoints/model.ckpt-500.index" >/dev/null || problem "the earlier run was not kept"
}

test_killed_launcher_leaves_nothing() {
    run_bg --set fit.epochs=2000 >"$dir/first" 2>&1 &
    local pid=$!
    wait_for 60 grep -qE 'step [0-9]+' "$dir/first"
    kill -9 $pid
    wait $pid 2>/dev/null
    local end=$((SECONDS + 30))
    while [ $SECONDS -lt $end ] && pgrep -f -- "$dir/run" >/dev/null; do sleep 0.1; done
    want_no_process
}

start_by_hand() { # ps, chief and workers in "terminals"
    ps_port=$(free_port) chief_port=$(free_port)
    identities worker=3
    hosts="--ps-hosts=127.0.0.1:$ps_port --chief-host=127.0.0.1:$chief_port --worker-hosts=127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"
    # shellcheck disable=SC2086 # a list of words
    trainyard-ps --job-name=ps --task-index=0 --tls-dir "$dir/tls/ps-0" $hosts >"$dir/ps" 2>&1 &
    ps_pid=$!
}
worker_by_hand() { # INDEX
    # shellcheck disable=SC2086
    trainyard-worker --job "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" --job-name=worker --task-index="$1" --tls-dir "$dir/tls/worker-$1" $hosts >"$dir/worker-$1" 2>&1 &
}

comes_after() { awk -v first="$1" -v then="$2" 'index($0, first) {n = 1} n && index($0, then) {found = 1} END {exit !found}' "$dir/out"; } # TEXT TEXT
test_worker_by_hand_joins_and_leaves() {
    sed 's/epochs: *[0-9]*/epochs: 100/' "$digits" >"$dir/job.yaml"
    pace # it cannot end before the second worker has left
    start_by_hand
    # shellcheck disable=SC2086
    in_background trainyard-worker --job "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" --job-name=chief --task-index=0 --tls-dir "$dir/tls/chief-0" $hosts
    local chief=$!
    paced worker_by_hand 0
    wait_for 60 grep -qE 'step [0-9]+ .*workers 1/' "$dir/out"
    paced worker_by_hand 1
    local second=$!
    wait_for 60 grep -qE 'workers 2/' "$dir/out"
    kill -TERM $second
    wait $second
    [ $? = 143 ] || problem "a stopped worker does not exit 143"
    wait_for 60 comes_after 'workers 2/' 'workers 1/'
    rm "$dir/paced"
    wait $chief || ended_badly $? "the chief failed"
    wait $ps_pid || ended_badly $? "the ps does not exit 0 when the job has finished"
    want_line 'Test loss'
}

test_two_jobs_do_not_share_an_output() { # the later one gets it
    sed -e '/replicaSpecs:/,$d' -e 's/epochs: *[0-9]*/epochs: 100000/; s/everySeconds: 600/everySeconds: 0.2/' "$digits" >"$dir/job.yaml"
    local name first second
    for name in first second; do
        TRAINYARD_JOB_UID=$name trainyard-worker --job "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" >"$dir/$name" 2>&1 &
        declare "$name=$!"
        wait_for 60 grep -qE 'step [0-9]+' "$dir/$name"
    done
    wait_for 60 grep -q 'another job' "$dir/first" || kill -9 "$first"
    wait "$first"
    [ $? = 2 ] || problem "the first job does not end with exit code 2"
    want_line "another job \(uid second\) has begun to write to $dir/run: give each job an output volume of its own" "$dir/first"
    kill -TERM "$second"
    wait "$second"
    [ $? = 143 ] || problem "the second job was disturbed"
}

# Replicas as the operator starts them: TF_CONFIG, and a job file without counts of replicas, volumes and run policy.
replica_file() { # of $dir/job.yaml
    sed -i -e 's/^\( *\(PS\|Worker\|Chief\):\).*/\1 {}/' -e '/^  runPolicy:/,$d' -e '/^  storage:/,/^  [a-z]/{/^  storage:/d;/^    /d}' "$dir/job.yaml"
    sed -i 's/^metadata:.*/metadata: {name: job, namespace: default, uid: 0c5f9a3e-1}/' "$dir/job.yaml"
    [ -d "$dir/tls" ] || identities ps=1,worker=4,evaluator=1
}
tf_config() { # ROLE INDEX WORKERS: only the peers of each replica are listed
    printf '{"cluster":{"chief":["127.0.0.1:%s"],"ps":["127.0.0.1:%s"]},"task":{"type":"%s","index":%s},"environment":"cloud","workers":%s}' \
        "$chief_port" "$ps_port" "$1" "$2" "$3"
}
replica() { # ROLE INDEX WORKERS [FLAG...]; for &
    local program=trainyard-worker config
    [ "$1" = ps ] && program=trainyard-ps
    config=$(tf_config "$1" "$2" "$3")
    set -- --tls-dir "$dir/tls/$1-$2" "${@:4}"
    TF_CONFIG=$config exec "$program" --job "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" "$@"
}

test_scaled_up_and_down() { # 2 workers, then 4, then 3: the first ones know of 2 only, and every batch is applied once
    counting_job 400
    replica_file
    local chief workers=() i http_port third_port
    pace # it cannot end before it has been scaled
    ps_port=$(free_port) chief_port=$(free_port) http_port=$(free_port) third_port=$(free_port)
    replica ps 0 2 >"$dir/ps" 2>&1 &
    local ps=$!
    in_background replica chief 0 2 --https-port "$http_port" --termination-log "$dir/last"
    chief=$!
    for i in 0 1; do paced replica worker $i 2 >"$dir/worker-$i" 2>&1 & workers+=($!); done
    wait_for 60 grep -qE 'step [0-9]+ .*workers 2/2' "$dir/out"
    paced replica worker 2 4 --http-port "$third_port" >"$dir/worker-2" 2>&1 & workers+=($!)
    paced replica worker 3 4 >"$dir/worker-3" 2>&1 & workers+=($!)
    wait_for 60 grep -qE 'step [0-9]+ .*workers 4/4' "$dir/out"
    wait_for 60 sh -c "curl -sf http://127.0.0.1:$third_port/metrics | grep -qE '^trainyard_worker_steps_total [1-9]'"
    curl -sf "http://127.0.0.1:$third_port/metrics" >"$dir/metrics" || problem "/metrics of worker-2"
    for i in compute network data wait; do want_line "^trainyard_worker_seconds_total\\{activity=\"$i\"\\} [0-9]" "$dir/metrics"; done
    https "$http_port" progress >"$dir/progress"
    want_line '"workers":4,"workers_wanted":4' "$dir/progress"
    kill -TERM "${workers[3]}"
    wait "${workers[3]}"
    [ $? = 143 ] || problem "a worker that is scaled away does not exit 143"
    wait_for 60 comes_after 'workers 4/4' 'workers 3/3'
    rm "$dir/paced"
    wait $chief || ended_badly $? "the chief failed"
    want_line "^\{\"state\":\"finished\",.*\"step\":$((400 * batches)),\"epoch\":400,\"epochs\":400,.*\"last_checkpoint_step\":$((400 * batches))," "$dir/last"
    wait "$ps" || ended_badly $? "the ps failed"
    for i in 0 1 2; do wait "${workers[$i]}" || ended_badly $? "worker-$i failed"; done
    want_count $((400 * batches))
}

test_worker_without_the_output_volume() { # it keeps unpacked data in its own folder
    counting_job 20
    replica_file
    mkdir -p "$dir/packed/digits" "$dir/tmp"
    cp "$data"/digits/* "$dir/packed/digits"
    gzip -f "$dir"/packed/digits/train-*
    sed -i 's/\(train-[a-z]*-idx[13]-ubyte\)/\1.gz/g' "$dir/job.yaml"
    local data=$dir/packed
    ps_port=$(free_port) chief_port=$(free_port)
    replica ps 0 1 >"$dir/ps" 2>&1 &
    local ps=$! chief
    in_background replica chief 0 1
    chief=$!
    TMPDIR=$dir/tmp replica worker 0 1 --output-dir /proc/logs >"$dir/worker" 2>&1 &
    wait $! || ended_badly $? "the worker failed: $(tail -n 1 "$dir/worker")"
    wait $chief || ended_badly $? "the chief failed: $(tail -n 1 "$dir/out")"
    wait "$ps" || ended_badly $? "the ps failed"
    compgen -G "$dir/tmp/trainyard-cache-*/*.raw" >/dev/null || problem "nothing was unpacked in the temporary folder"
    compgen -G "$dir/run/cache/*.raw" >/dev/null || problem "nothing was unpacked beside the output"
    want_count $((20 * batches))
}

test_long_names_appear_and_move() { # as those of pods do; waiting processes resolve them often
    if [ "$(id -u)" != 0 ] || ! unshare -m true 2>/dev/null; then
        skip_reason="needs root and a mount namespace for an /etc/hosts of its own"
        return
    fi
    local what seconds lines=0
    sed 's/epochs: *[0-9]*/epochs: 100000/; s/everySeconds: *[0-9]*/everySeconds: 1/' "$digits" >"$dir/job.yaml"
    identities worker=1
    unshare -m "$root/test/integration/moves.sh" "$dir" "$data" "$(free_port)" "$(free_port)" "$(free_port)" >"$dir/out" 2>"$dir/err" || problem "moves.sh fails: $(tail -n 1 "$dir/err")"
    while read -r what seconds; do
        at_most "$seconds" 10 "the time to train again ($what)"
        lines=$((lines + 1))
    done <"$dir/out"
    [ $lines = 3 ] || problem "$lines of 3 moves"
    want_line 'waiting (1[5-9]|[2-9][0-9]) s for ps-0 .*Name or service not known' "$dir/chief"
    want_line 'waiting (1[5-9]|[2-9][0-9]) s for the chief' "$dir/worker"
}

test_worker_with_another_manifest_is_refused() { # same variables, but other gradients
    sed 's/epochs: *[0-9]*/epochs: 4000/' "$digits" >"$dir/job.yaml"
    sed 's/activation: relu/activation: tanh/' "$dir/job.yaml" >"$dir/other.yaml"
    cmp -s "$dir/job.yaml" "$dir/other.yaml" && problem "the manifests are the same"
    start_by_hand
    # shellcheck disable=SC2086
    trainyard-worker --job "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" --job-name=chief --task-index=0 --tls-dir "$dir/tls/chief-0" $hosts >"$dir/chief" 2>&1 &
    local chief=$!
    # shellcheck disable=SC2086
    want_exit 2 trainyard-worker --job "$dir/other.yaml" --data-dir "$data" --job-name=worker --task-index=0 --tls-dir "$dir/tls/worker-0" --termination-log "$dir/last" $hosts
    want_line '^error: .*worker-0 has another spec.model' "$dir/last"
    want_line 'worker-0 has another spec.model or spec.compile than the chief'
    kill $chief $ps_pid
    wait $chief $ps_pid
}

http() { curl -sf --max-time 60 "http://127.0.0.1:$1/$2"; }

test_http() { # without evaluations: while they are waited for, the state is "waiting"
    single_job 's/epochs: *[0-9]+/epochs: 100000/; /^    validation:/d'
    want_no_line 'validation:' "$dir/job.yaml"
    local port
    port=$(free_port)
    in_background alone_bg --http-port "$port"
    local pid=$!
    wait_for 60 grep -qE 'step [0-9]+' "$dir/out"
    http "$port" healthz >/dev/null || problem "/healthz"
    wait_for 60 http "$port" readyz >/dev/null || problem "/readyz"
    http "$port" progress >"$dir/progress" || problem "/progress"
    want_line '"state": *"training"' "$dir/progress"
    http "$port" metrics >"$dir/metrics" || problem "/metrics"
    want_line '^trainyard_global_step [0-9]' "$dir/metrics"
    kill -TERM $pid
    wait $pid
}

# A flag's value of the process that has the identity of a member.
flag_of_member() { # MEMBER FLAG
    pgrep -f -- "--tls-dir $dir/tls/$1( |$)" | while read -r pid; do flag_of "$pid" "$2"; done
}
want_refusal() { # REGEX CURL-ARGUMENT...: status 403, and why
    local status
    status=$(curl -sk --max-time 60 -o "$dir/page" -w '%{http_code}' "${@:2}")
    [ "$status" = 403 ] || problem "status $status, not 403: ${*:2}"
    want_line "$1" "$dir/page"
}

# Of the job; probes and metrics do not. Without evaluations, as in test_http.
test_pages_need_a_certificate() {
    sed 's/epochs: *[0-9]*/epochs: 100000/; /^    validation:/d' "$digits" >"$dir/job.yaml"
    want_no_line 'validation:' "$dir/job.yaml"
    identities ps=1 "$dir/other"
    in_background trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" --tls-dir "$dir/tls"
    local pid=$! member port tls_port
    wait_for 60 grep -qE 'step [0-9]+' "$dir/out"
    member="chief-0"
    [ -d "$dir/tls/chief-0" ] || member="worker-0"
    port=$(flag_of_member $member --http-port) tls_port=$(flag_of_member $member --https-port)
    https "$tls_port" progress >"$dir/progress" || problem "/progress with the certificate of the launcher"
    want_line '"state": *"training"' "$dir/progress"
    want_refusal 'needs a client certificate of the job' "https://127.0.0.1:$tls_port/progress"
    want_refusal 'certificate' --cert "$dir/other/launcher/tls.crt" --key "$dir/other/launcher/tls.key" "https://127.0.0.1:$tls_port/progress"
    curl -sk --tls-max 1.2 --max-time 60 "https://127.0.0.1:$tls_port/progress" && problem "TLS 1.2 is answered"
    curl -s --max-time 60 "http://127.0.0.1:$tls_port/progress" && problem "plain HTTP is answered on the TLS port"
    http "$port" progress && problem "/progress is on the plain port"
    http "$port" healthz >/dev/null && wait_for 60 http "$port" readyz >/dev/null || problem "probes need a certificate"
    http "$port" metrics >"$dir/metrics" || problem "/metrics"
    want_line '^trainyard_http_refused_total 2$' "$dir/metrics"
    kill -TERM $pid
    wait $pid
}

test_metrics_over_tls() { # --metrics-tls, and /progress of a ps
    cp "$digits" "$dir/job.yaml"
    identities ps=1,worker=1
    local port tls_port ps
    ps_port=$(free_port) port=$(free_port) tls_port=$(free_port)
    set -- --job "$dir/job.yaml" --listen "127.0.0.1:$ps_port" --tls-dir "$dir/tls/ps-0" --http-port "$port" --https-port "$tls_port"
    in_background trainyard-ps "$@" --metrics-tls
    ps=$!
    wait_for 60 http "$port" healthz >/dev/null
    https "$tls_port" metrics >"$dir/metrics" || problem "/metrics with the certificate of the launcher"
    want_line '^trainyard_ps_state 0$' "$dir/metrics"
    want_refusal 'needs a client certificate of the job' "https://127.0.0.1:$tls_port/metrics"
    http "$port" metrics && problem "/metrics is on the plain port"
    kill -9 $ps
    wait $ps 2>/dev/null
    in_background trainyard-ps "$@"
    ps=$!
    wait_for 60 http "$port" metrics >/dev/null
    https "$tls_port" progress >"$dir/progress" || problem "/progress of a ps with the certificate of the launcher"
    want_line '"state": *"uninitialised"' "$dir/progress"
    want_refusal 'needs a client certificate of the job' "https://127.0.0.1:$tls_port/progress"
    kill -9 $ps
    wait $ps 2>/dev/null
    want_exit 2 trainyard-ps --insecure --job "$dir/job.yaml" --listen "127.0.0.1:$ps_port" --https-port "$tls_port"
    want_line 'error: --https-port needs an identity: give --tls-dir'
}

test_http_before_the_data() { # a pod whose data takes long to open is alive, and reports its state
    counting_job 5
    sed -i 's/features: [^,]*train-images[^,]*/features: slow/; /^  replicaSpecs:/,$d' "$dir/job.yaml"
    mkdir "$dir/slow" && cp -r "$data/digits" "$dir/slow" && gzip -c "$data/digits/train-images-idx3-ubyte" >"$dir/slow/slow.gz"
    local port lock raw
    port=$(free_port)
    export TRAINYARD_CACHE_DIR=$dir/cache
    want_exit 0 trainyard-worker --job "$dir/job.yaml" --data-dir "$dir/slow" --output-dir "$dir/first"
    raw=$(compgen -G "$dir/cache/slow-*.raw") && rm "$raw"
    exec {lock}>"$raw.lock" && flock "$lock" # as another process that unpacks the file slowly
    trainyard-worker --job "$dir/job.yaml" --data-dir "$dir/slow" --output-dir "$dir/run" --http-port "$port" {lock}>&- >"$dir/out" 2>&1 &
    local pid=$!
    wait_for 60 http "$port" healthz >"$dir/healthz"
    wait_for 60 sh -c "curl -sf http://127.0.0.1:$port/progress | tee '$dir/progress' | grep -q '\"state\":\"starting\",\"message\":\"opening the data\"'"
    http "$port" readyz && problem "/readyz is 200 before the data is open"
    exec {lock}>&-
    wait "$pid" || ended_badly $? "the job failed once its data was there"
    unset TRAINYARD_CACHE_DIR
}

test_json_logs() {
    single_job 's/epochs: *[0-9]+/epochs: 2/'
    want_exit 0 alone --log-format json || return
    grep -vE '^\{"ts":".*\}$' "$dir/out" | grep -q . && problem "a line is not JSON"
    want_line '"step":[0-9]+,"epoch":"[0-9]+/2","loss":[0-9.]+'
}

test_finished_job_is_not_run_again() {
    single_job 's/epochs: *[0-9]+/epochs: 1/'
    want_exit 0 alone || return
    want_exit 0 alone
    want_line 'already finished'
}

test_evaluator() {
    sed 's/epochs: *[0-9]*/epochs: 100/' "$digits" >"$dir/job.yaml"
    printf '    Evaluator: {replicas: 1}\n' >>"$dir/job.yaml"
    want_exit 0 trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" || return
    want_line 'evaluator.* evaluated step [0-9]+ loss'
}

# Validation data of N examples that takes no space, evaluated one by one with a wide layer: some 30,000 a second.
list_of() { tr -d '\n ' <"$dir/run/history.json" | grep -o "\"$1\":\[[^]]*\]" | tr -d '[]' | cut -d: -f2 | tr ',' '\n'; } # NAME: of the history
want_list() { # NAME N
    local n
    n=$(list_of "$1" | wc -l)
    [ "$n" = "$2" ] || problem "history.json has $n entries of $1, not $2"
}

test_epochs_have_evaluations_of_their_own() { # the demo
    local steps
    want_exit 0 run || return
    want_list loss 20
    want_list val_loss 20
    [ "$(list_of val_loss | sort -u | wc -l)" = 20 ] || problem "epochs share a val_loss: $(list_of val_loss | tr '\n' ' ')"
    steps=$(trainyard show events "$dir/run/summaries/validation" --tag accuracy | awk '$2 == "accuracy" {print $3}' | tr '\n' ' ')
    [ "$steps" = "$(seq -s ' ' 50 50 1000) " ] || problem "validation stands at the steps $steps"
}

history_of_ten=$'publish 9,\n      10,' # a moment for kill_at: history.json has so many epochs
test_killed_chief_keeps_the_history() {
    counting_job 400
    local name kill_at
    build_kill_at
    killed_run "$history_of_ten" counting_run || return
    for name in epoch loss val_loss; do want_list $name 400; done
    [ "$(list_of loss | head -n 10 | grep -c null)" = 0 ] || problem "the losses of epochs before the kill are lost"
    want_count $((400 * batches))
}

# restartScope Job: a killed worker restarts ps, chief and the other worker, too; they continue from the checkpoint
# together.
test_killed_worker_restarts_all() {
    counting_job 400
    sed -i 's/runPolicy: {/runPolicy: {restartScope: Job, /' "$dir/job.yaml"
    local pid before after kill_at
    build_kill_at
    KILL_ROLE=chief KILL_MARK=$dir/mark HOLD_AT=$history_of_ten LD_PRELOAD=$kill_at in_background exec_run
    pid=$!
    wait_for 60 test -e "$dir/mark" # the job cannot end before the kill
    before=$(pgrep -P $pid | sort)
    kill -9 "$(replica_pids run worker 1)"
    echo killed >"$dir/mark"
    others_run() { after=$(pgrep -P $pid | sort); [ "$(wc -w <<<"$after")" = "$(wc -w <<<"$before")" ] && [ -z "$(comm -12 <(echo "$before") <(echo "$after"))" ]; }
    wait_for 60 others_run || problem "of the processes $(tr '\n' ' ' <<<"$before")there are still $(comm -12 <(echo "$before") <(pgrep -P $pid | sort) | tr '\n' ' ')"
    wait $pid || ended_badly $? "the job failed"
    want_line 'worker-1 was killed by signal 9 \(Killed\); restarting all replicas \(restart 1 of at most 100000\)'
    [ "$(grep -c 'restarting all replicas' "$dir/out")" = 1 ] || problem "$(grep -c 'restarting all replicas' "$dir/out") restarts"
    want_count $((400 * batches))
}

lost_ps_at_the_end() { # SIGNAL; the last evaluation waits meanwhile
    build_kill_at
    counting_job 1
    sed -i 's/PS: {replicas: 2}/PS: {replicas: 1}/' "$dir/job.yaml"
    local pid
    HOLD_AT=before-gemm KILL_ROLE=chief KILL_MARK=$dir/evaluates LD_PRELOAD=$kill_at in_background \
        trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run"
    pid=$!
    wait_for 60 test -e "$dir/evaluates"
    wait_for 60 test -s "$dir/run/checkpoints/model.ckpt-50.index"
    kill "-$1" "$(replica_pids run ps)"
    wait_for 60 grep -q 'ps restored from' "$dir/out"
    rm "$dir/evaluates"
    wait $pid || ended_badly $? "the job failed"
    want_line 'ps restored from .*model.ckpt-50'
    [ "$(grep -c 'Test loss' "$dir/out")" = 1 ] || problem "$(grep -c 'Test loss' "$dir/out") final evaluations are told"
    awk '/restored from/ {r = NR} /Test loss/ {t = NR} END {exit !(r && t > r)}' "$dir/out" || problem "what was evaluated was lost afterwards"
    want_count $batches
}
test_ps_killed_during_the_last_evaluation() { lost_ps_at_the_end KILL; }
test_ps_stopped_during_the_last_evaluation() { lost_ps_at_the_end TERM; }

begin_without_storage() { # SECONDS: all batches are trained, and the checkpoint folder is not a folder
    counting_job 100
    replica_file
    sed -i "s/fit: {/fit: {maxWaitSeconds: $1, /" "$dir/job.yaml"
    ps_port=$(free_port) chief_port=$(free_port) http_port=$(free_port)
    mkdir -p "$dir/run" "$dir/saved"
    touch "$dir/file"
    ln -s "$dir/saved" "$dir/run/checkpoints"
    ln -s "$dir/file" "$dir/no_folder"
    replica ps 0 1 >"$dir/ps" 2>&1 &
    ps=$!
    in_background replica chief 0 1 --https-port "$http_port"
    chief=$!
    pace
    paced replica worker 0 1 >"$dir/worker" 2>&1 &
    worker=$!
    wait_for 60 test -e "$dir/saved/checkpoint"
    mv -T "$dir/no_folder" "$dir/run/checkpoints" # in one step: the chief makes a missing folder again
    rm "$dir/paced"
    wait_for 60 grep -q 'waiting [0-9]* s for storage: .*Not a directory' "$dir/out"
}
test_storage_at_the_end_is_waited_for() {
    local ps chief worker http_port
    begin_without_storage 600
    says_storage() { https "$http_port" progress | grep -q '"message":"storage: '; }
    wait_for 60 says_storage
    rm "$dir/run/checkpoints" # the folder is created again
    for pid in "$chief" "$worker" "$ps"; do wait "$pid" || ended_badly $? "a replica failed: $?"; done
    want_count $((100 * batches))
}
test_long_storage_that_stays_away_loses_no_model() {
    local ps chief worker http_port
    begin_without_storage 8 # the ps waits as long for a chief
    wait "$chief"
    [ $? = 138 ] || problem "the chief does not exit 138"
    kill -0 "$ps" || problem "the ps has ended"
    rm "$dir/run/checkpoints" && mv "$dir/saved" "$dir/run/checkpoints"
    replica chief 0 1 >"$dir/chief-2" 2>&1 &
    wait $! || ended_badly $? "the second chief failed: $(tail -n 1 "$dir/chief-2")"
    wait "$ps" || ended_badly $? "the ps failed"
    want_no_line ' ps (restored|initialised)' "$dir/chief-2"
    want_count $((100 * batches))
}

is_stopped() { grep -q '^State:.T' "/proc/$1/status"; } # PID
counted_workers() { http "$chief_http" metrics | sed -n 's/^trainyard_workers //p'; } # which the chief takes for alive
counts_no_worker() { [ "$(counted_workers)" = 0 ]; }

# Its evaluation takes longer than the timeout of a silent member: until the chief no longer counts the worker, which is
# stopped after the evaluation has begun.
test_evaluator_has_its_grace() {
    local began kill_at ps chief evaluator worker pid chief_http code
    build_kill_at
    counting_job 2
    replica_file
    ps_port=$(free_port) chief_port=$(free_port) chief_http=$(free_port)
    replica ps 0 1 >"$dir/ps" 2>&1 &
    ps=$!
    in_background replica chief 0 1 --http-port "$chief_http"
    chief=$!
    held before-gemm "$dir/evaluates" evaluator replica evaluator 0 1 >"$dir/evaluator" 2>&1 &
    evaluator=$!
    wait_for 60 test -e "$dir/evaluates" # the checkpoint of step 0; the heartbeats continue
    began=$SECONDS
    held before-join "$dir/leaves" worker replica worker 0 1 >"$dir/worker" 2>&1 &
    worker=$!
    wait_for 60 test -e "$dir/leaves" && kill -STOP $worker # all batches are trained
    wait_for 60 is_stopped $worker
    wait_for 60 grep -q "waiting for the evaluator's result of step $((2 * batches))" "$dir/out"
    wait_for 60 counts_no_worker || problem "the chief counts '$(counted_workers)' workers, wanted 0"
    at_least $((SECONDS - began)) 10 "the time that the evaluator takes"
    rm -f "$dir/evaluates" "$dir/leaves"
    kill -CONT $worker
    for pid in "$chief" "$evaluator" "$ps" "$worker"; do
        wait "$pid"
        code=$?
        [ $code = 0 ] || problem "a replica exits $code: $(cd "$dir" && tail -qn 1 out evaluator ps worker)"
    done
    want_line "the evaluator has reported step $((2 * batches))"
}

test_many_small_layers_on_one_ps() { # the message with a ps's segments is large in relation to its bytes
    {
        sed '/^    layers:/,/^  compile:/{/^    layers:/!{/^  compile:/!d}}; /^  compile:/,$d' "$digits"
        echo "      - Flatten"
        for _ in {1..2000}; do echo "      - Dense: {units: 1}"; done
        echo "      - Dense: {units: 10, activation: softmax}"
        sed -n '/^  compile:/,$p' "$digits"
    } >"$dir/job.yaml"
    want_exit 0 trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" --set fit.epochs=null --set fit.steps=5 || return
    want_line 'serving: generation 1, [0-9]+ segments'
}

# Each one as README has it. The first one needs nothing else; job.yaml is then digits in place of mnist.
test_readme_everyday_commands() {
    sed 's/name: digits/name: mnist/' "$digits" >"$dir/job.yaml"
    ln -s "$data/digits" "$dir/digits"
    cp "$data/digits/validation-images-idx3-ubyte" "$dir/new-images"
    cp "$data/digits/validation-labels-idx1-ubyte" "$dir/new-labels"
    ln -s "$root/deploy" "$dir/deploy"
    cp "$root/deploy/examples/penguins/new.csv" "$dir/new.csv"
    want_exit 0 trainyard run "$root/deploy/examples/penguins.yaml" --output-dir "$dir/runs/penguins" || return
    local command count=0
    while IFS= read -r command; do
        count=$((count + 1))
        [ $count != 1 ] || [[ $command == 'trainyard run deploy/examples/'* ]] || problem "the first command is '$command'"
        (cd "$dir" && eval "$command") >"$dir/out" 2>&1 || { problem "fails: $command"; tail -n 5 "$dir/out"; }
    done < <(sed -n '/^## Everyday commands/,/^## /s/^    \(trainyard .*\)/\1/p' "$root/README.md")
    [ $count -ge 7 ] || problem "README has $count everyday commands"
    want_file "$dir/mnist.keras"
    want_file "$dir/predictions.csv"
}

# shellcheck source=test/integration/slow.sh
. "$root/test/integration/slow.sh"
# shellcheck source=test/integration/shortage.sh
. "$root/test/integration/shortage.sh"
# shellcheck source=test/integration/one_chief.sh
. "$root/test/integration/one_chief.sh"
# shellcheck source=test/integration/rerun.sh
. "$root/test/integration/rerun.sh"
# shellcheck source=test/integration/sync.sh
. "$root/test/integration/sync.sh"
# shellcheck source=test/integration/members.sh
. "$root/test/integration/members.sh"
# shellcheck source=test/integration/members_by_hand.sh
. "$root/test/integration/members_by_hand.sh"
# shellcheck source=test/integration/mirrored.sh
. "$root/test/integration/mirrored.sh"
# shellcheck source=test/integration/synchronized.sh
. "$root/test/integration/synchronized.sh"
# shellcheck source=test/integration/graphs.sh
. "$root/test/integration/graphs.sh"
# shellcheck source=test/integration/images.sh
. "$root/test/integration/images.sh"
# shellcheck source=test/integration/texts.sh
. "$root/test/integration/texts.sh"
# shellcheck source=test/integration/predict.sh
. "$root/test/integration/predict.sh"
# shellcheck source=test/integration/fit.sh
. "$root/test/integration/fit.sh"
# shellcheck source=test/integration/callbacks.sh
. "$root/test/integration/callbacks.sh"
# shellcheck source=test/integration/look.sh
. "$root/test/integration/look.sh"
# shellcheck source=test/integration/show_data.sh
. "$root/test/integration/show_data.sh"
# shellcheck source=test/integration/docs.sh
. "$root/test/integration/docs.sh"
# shellcheck source=test/integration/packages.sh
. "$root/test/integration/packages.sh"
# shellcheck source=test/integration/identity.sh
. "$root/test/integration/identity.sh"
[ "${1:-}" = quick ] && set -- quick_
run_tests "$@"
