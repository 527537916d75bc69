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
alone_bg() { exec trainyard-worker --job "${job:-$digits}" --data-dir "$data" --output-dir "$dir/run" "$@"; }
# The job without replicas: single machine. alone_job FILE [SED]
single_job() { sed -e '/replicaSpecs:/,$d' "$digits" | sed -E "${1:-s/^//}" >"$dir/job.yaml"; job=$dir/job.yaml; }

test_quick_cluster() { # 1 ps, 2 workers, 1 chief: the demo
    want_exit 0 run || return
    want_line 'Test loss: [0-9.]+, Test accuracy: [0-9.]+'
    at_least "$(final "$dir/run" accuracy)" 0.95 accuracy
    want_file "$dir/run/checkpoints/checkpoint"
    want_file "$dir/run/model.json"
    want_file "$dir/run/finished"
    compgen -G "$dir/run/summaries/train/*tfevents*" >/dev/null || problem "no event file"
    want_no_process
}

test_quick_single_machine() {
    single_job
    want_exit 0 alone || return
    want_line 'Running single-machine training'
    at_least "$(final "$dir/run" accuracy)" 0.95 accuracy
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
    want_exit 0 trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" || return
    at_least "$(final "$dir/run" accuracy)" 0.95 accuracy
    want_no_process
}

test_chief_and_one_ps() { # the smallest cluster: the chief trains
    sed '/Worker:/d' "$digits" >"$dir/job.yaml"
    want_exit 0 trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" || return
    at_least "$(final "$dir/run" accuracy)" 0.95 accuracy
}

test_two_ps_four_workers() {
    want_exit 0 run --set replicaSpecs.PS.replicas=2 --replicas worker=4 || return
    at_least "$(final "$dir/run" accuracy)" 0.94 accuracy
}

test_round_robin_placement() {
    want_exit 0 run --set replicaSpecs.PS.replicas=2 --set strategy.placement=round_robin || return
    at_least "$(final "$dir/run" accuracy)" 0.94 accuracy
}

tensors() { trainyard export "$1" -o "$2" >/dev/null || problem "export $1"; }

test_resume_is_bit_equal() { # stopped by a signal twice and resumed, against never stopped
    single_job 's/epochs: *[0-9]+/epochs: 300/'
    want_exit 0 alone || return
    tensors "$dir/run" "$dir/straight"
    mv "$dir/run" "$dir/run-straight"
    local stops=0
    for _ in 1 2; do
        alone_bg >"$dir/out" 2>&1 &
        local pid=$!
        wait_for 20 grep -q "epoch $((100 * stops + 50))/300 done" "$dir/out" && kill -TERM $pid
        wait $pid
        [ $? = 143 ] && stops=$((stops + 1))
    done
    [ $stops -ge 1 ] || problem "the run ended before it could be stopped"
    want_exit 0 alone || return
    want_line 'restoring .*model.ckpt-'
    tensors "$dir/run" "$dir/resumed"
    cmp "$dir/straight" "$dir/resumed" || problem "the resumed run ended with other values"
}

test_resume_refuses_what_changed() {
    single_job 's/epochs: *[0-9]+/epochs: 1/'
    want_exit 0 alone || return
    rm "$dir/run/finished"
    sed -i 's/batchSize: *[0-9]*/batchSize: 48/' "$dir/job.yaml"
    want_exit 2 alone
    want_line 'fit.batchSize is 48, checkpoint .* was made with'
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
}

test_interrupt_saves_and_resumes() {
    run_bg --set fit.epochs=300 >"$dir/first" 2>&1 &
    local pid=$!
    wait_for 20 grep -qE 'epoch [0-9]+/300 done' "$dir/first"
    kill -INT $pid
    wait $pid
    local code=$?
    [ $code = 143 ] || [ $code = 130 ] || problem "exit code $code after an interrupt"
    want_no_process
    want_exit 0 run --resume --set fit.epochs=40 || return
    want_line 'restoring .*model.ckpt-'
}

counting_run() { trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" "$@"; }

test_resume_on_other_ps_and_workers() { # stopped with one ps, resumed with two: every batch exactly once
    counting_job 400
    exec_run() { exec trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" "$@"; }
    exec_run --replicas ps=1 --replicas worker=1 >"$dir/first" 2>&1 &
    local pid=$!
    wait_for 20 grep -qE 'epoch [0-9]+/400 done' "$dir/first"
    kill -INT $pid
    wait $pid
    [ -e "$dir/run/finished" ] && problem "it ended before it could be stopped"
    want_exit 0 counting_run --resume --replicas ps=2 --replicas worker=3 || return
    want_line 'restoring .*model.ckpt-[0-9]+: step [0-9]+, [1-9][0-9]* of 20000 batches done'
    want_count $((400 * batches))
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
    want_line 'finished already'
    want_exit 0 counting_run --fresh --set fit.epochs=3 || return
    want_no_line 'restoring '
    want_count $((3 * batches))
    compgen -G "$dir/run.old-1/checkpoints/model.ckpt-500.index" >/dev/null || problem "the earlier run was not kept"
}

test_killed_launcher_leaves_nothing() {
    run_bg --set fit.epochs=2000 >"$dir/first" 2>&1 &
    local pid=$!
    wait_for 20 grep -qE 'step [0-9]+' "$dir/first"
    kill -9 $pid
    wait $pid 2>/dev/null
    local end=$((SECONDS + 5))
    while [ $SECONDS -lt $end ] && pgrep -f -- "$dir/run" >/dev/null; do sleep 0.1; done
    want_no_process
}

start_by_hand() { # ps, chief and workers in "terminals"
    ps_port=$(free_port) chief_port=$(free_port)
    hosts="--ps-hosts=127.0.0.1:$ps_port --chief-host=127.0.0.1:$chief_port --worker-hosts=127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"
    # shellcheck disable=SC2086 # a list of words
    trainyard-ps --job-name=ps --task-index=0 $hosts >"$dir/ps" 2>&1 &
    ps_pid=$!
}
worker_by_hand() { # INDEX
    # shellcheck disable=SC2086
    trainyard-worker --job "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" --job-name=worker --task-index="$1" $hosts >"$dir/worker-$1" 2>&1 &
}

test_worker_by_hand_joins_and_leaves() {
    sed 's/epochs: *[0-9]*/epochs: 400/' "$digits" >"$dir/job.yaml"
    start_by_hand
    # shellcheck disable=SC2086
    trainyard-worker --job "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" --job-name=chief --task-index=0 $hosts >"$dir/out" 2>&1 &
    local chief=$!
    worker_by_hand 0
    wait_for 20 grep -qE 'step [0-9]+ .*workers 1/' "$dir/out"
    worker_by_hand 1
    local second=$!
    wait_for 20 grep -qE 'workers 2/' "$dir/out"
    kill -TERM $second
    wait $second
    [ $? = 143 ] || problem "a stopped worker does not exit 143"
    wait_for 20 sh -c "tail -n 2 '$dir/out' | grep -q 'workers 1/'"
    wait $chief || problem "the chief failed"
    wait $ps_pid || problem "the ps does not exit 0 when the job has finished"
    want_line 'Test loss'
}

test_worker_with_another_manifest_is_refused() { # same variables, but other gradients
    sed 's/epochs: *[0-9]*/epochs: 4000/' "$digits" >"$dir/job.yaml"
    sed 's/activation: relu/activation: tanh/' "$dir/job.yaml" >"$dir/other.yaml"
    cmp -s "$dir/job.yaml" "$dir/other.yaml" && problem "the manifests are the same"
    start_by_hand
    # shellcheck disable=SC2086
    trainyard-worker --job "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" --job-name=chief --task-index=0 $hosts >"$dir/chief" 2>&1 &
    local chief=$!
    # shellcheck disable=SC2086
    want_exit 2 trainyard-worker --job "$dir/other.yaml" --data-dir "$data" --job-name=worker --task-index=0 $hosts
    want_line 'worker-0 has another spec.model or spec.compile than the chief'
    kill $chief $ps_pid
    wait $chief $ps_pid
}

http() { curl -sf --max-time 2 "http://127.0.0.1:$1/$2"; }

test_http() {
    single_job 's/epochs: *[0-9]+/epochs: 500/'
    local port
    port=$(free_port)
    alone_bg --http-port "$port" >"$dir/out" 2>&1 &
    local pid=$!
    wait_for 20 grep -qE 'step [0-9]+' "$dir/out"
    http "$port" healthz >/dev/null || problem "/healthz"
    http "$port" readyz >/dev/null || problem "/readyz"
    http "$port" progress >"$dir/progress" || problem "/progress"
    want_line '"state": *"training"' "$dir/progress"
    http "$port" metrics >"$dir/metrics" || problem "/metrics"
    want_line '^trainyard_global_step [0-9]' "$dir/metrics"
    kill -TERM $pid
    wait $pid
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
    want_line 'finished before'
}

test_evaluator() {
    sed 's/epochs: *[0-9]*/epochs: 100/' "$digits" >"$dir/job.yaml"
    printf '    Evaluator: {replicas: 1}\n' >>"$dir/job.yaml"
    want_exit 0 trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" || return
    want_line 'evaluator.* evaluated step [0-9]+ loss'
}

test_readme_everyday_commands() { # each one as README has it; the job of the manifest is digits in place of mnist
    sed 's/name: digits/name: mnist/' "$digits" >"$dir/job.yaml"
    ln -s "$data/digits" "$dir/digits"
    local command count=0
    while IFS= read -r command; do
        count=$((count + 1))
        (cd "$dir" && eval "$command") >"$dir/out" 2>&1 || { problem "fails: $command"; tail -n 5 "$dir/out"; }
    done < <(sed -n '/^## Everyday commands/,/^## /s/^    \(trainyard .*\)/\1/p' "$root/README.md")
    [ $count -ge 7 ] || problem "README has $count everyday commands"
    want_file "$dir/mnist.safetensors"
}

[ "${1:-}" = quick ] && set -- quick_
run_tests "$@"
