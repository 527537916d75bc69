# A shortage on the user's machine: a full volume, a standard output that is full. Sourced by run.sh.
# shellcheck shell=bash disable=SC2154,SC2034 # variables of run.sh, and what it reads

# on_small_volume SIZE COMMAND...: $dir/run is a volume of that size until the command waits for space on it; then the volume
# grows. The output is in $dir/out, the exit code is the command's.
on_small_volume() {
    mkdir -p "$dir/run"
    # shellcheck disable=SC2016 # expanded by the inner shell
    SIZE=$1 DIR=$dir unshare -m bash -c '
        mount -t tmpfs -o size=$SIZE none "$DIR/run" || exit 77
        "$@" >"$DIR/out" 2>&1 &
        for _ in $(seq 1200); do
            grep -q "waiting [0-9]* s for storage" "$DIR/out" && break
            kill -0 $! 2>/dev/null || break
            sleep 0.05
        done
        cp -r "$DIR/run" "$DIR/while_full"
        mount -o remount,size=20m "$DIR/run"
        wait $!
        code=$?
        cp -r "$DIR/run" "$DIR/after"
        exit $code' full "${@:2}"
}
can_mount() {
    unshare -m mount -t tmpfs none "$dir" 2>/dev/null || { skip_reason="no tmpfs can be mounted here (that needs root)"; return 1; }
}
# want_wait_for_space PATH: the run said once that it waits, where, and what the cure is, and then trained to the end.
want_wait_for_space() {
    want_line "waiting 0 s for storage: .*$1.*No space left on device; free space there, or raise the quota"
    want_line 'Test loss: [0-9.]+'
    [ -e "$dir/while_full/finished" ] && problem "the run had finished before there was space"
    want_file "$dir/after/finished"
    want_file "$dir/after/checkpoints/checkpoint"
    at_least "$(find "$dir/after/summaries/train" -name '*tfevents*' | wc -l)" 1 "event files"
    at_most "$(find "$dir/after" -name '*tfevents*' -o -name '*.tmp.*' | wc -l)" 2 "event files and temporaries"
}

test_full_volume_first_checkpoint() { # there is space for the small files, and not for a checkpoint
    can_mount || return
    on_small_volume 40k trainyard run "$digits" --data-dir "$data" --output-dir "$dir/run" || problem "exit code $?"
    want_wait_for_space run/checkpoints/model.ckpt
}

test_full_volume_generation() { # there is no space for the first file that the chief writes
    can_mount || return
    on_small_volume 16k trainyard run "$digits" --data-dir "$data" --output-dir "$dir/run" || problem "exit code $?"
    want_wait_for_space run/generation
    want_line 'generation 1'
}

test_full_volume_before_the_chief() { # not even for an event file
    can_mount || return
    single_job
    on_small_volume 4k trainyard-worker --job "$job" --data-dir "$data" --output-dir "$dir/run" || problem "exit code $?"
    want_wait_for_space run/summaries
}

test_full_volume_before_the_run() { # nothing has been trained: the launcher does not wait
    can_mount || return
    on_small_volume 4k trainyard run "$digits" --data-dir "$data" --output-dir "$dir/run"
    [ $? = 2 ] || problem "the exit code is not 2"
    want_line 'error: .*run/job.yaml: write: No space left on device; free space there, or raise the quota'
}

test_full_volume_is_left_by_a_signal() { # Ctrl-C while it waits
    can_mount || return
    single_job
    mkdir -p "$dir/run"
    # shellcheck disable=SC2016
    SIZE=4k DIR=$dir unshare -m bash -c '
        mount -t tmpfs -o size=$SIZE none "$DIR/run"
        exec "$@"' full trainyard-worker --job "$job" --data-dir "$data" --output-dir "$dir/run" >"$dir/out" 2>&1 &
    local pid=$!
    wait_for 60 grep -q 'waiting 0 s for storage' "$dir/out"
    kill -TERM $pid
    wait $pid
    [ $? = 143 ] || problem "the exit code is not 143"
    want_line 'stopped while waiting for storage'
}

# lost_output CODE COMMAND...: on a full device as standard output; standard error goes to $dir/out
lost_output() {
    local want=$1 got
    shift
    "$@" >/dev/full 2>"$dir/out"
    got=$?
    [ "$got" = "$want" ] || problem "exit code $got, not $want, on a full standard output: $*"
}
want_lost_once() {
    local n
    n=$(grep -c 'warning: the output of this command is lost: standard output: write: No space left on device' "$dir/out")
    [ "$n" = 1 ] || problem "the lost output is told $n times: $*"
}

test_full_output_does_not_fail_what_is_done() { # the result is in files
    single_job 's/epochs: *[0-9]+/epochs: 1/'
    local command
    cd "$dir" || return
    lost_output 0 trainyard run "$job" --data-dir "$data" --output-dir run
    want_lost_once run
    want_file run/finished
    while IFS= read -r command; do
        eval "lost_output 0 $command"
        want_lost_once "$command"
    done <<END
trainyard run job.yaml --data-dir "$data" --output-dir run
trainyard run $digits --data-dir "$data" --output-dir cluster --set fit.epochs=1
trainyard export run -o model.npz
trainyard certs --job $digits --out certs
trainyard show events run --plot curves.svg
END
    lost_output 0 trainyard run "$job" --data-dir "$data" --output-dir sweep --sweep fit.batchSize=50,60
    want_line 'output of this command is lost'
    for command in cluster/finished sweep/curves.svg model.npz certs/ps-0/tls.crt curves.svg; do want_file $command; done
    lost_output 3 trainyard run "$job" --data-dir "$data" --output-dir high --set compile.optimizer.Adam.learning_rate=1.0e30
    want_line 'output of this command is lost'
    trainyard run "$job" --data-dir "$data" --output-dir high --set compile.optimizer.Adam.learning_rate=1.0e30 2>out | true
    [ "${PIPESTATUS[0]}" = 3 ] || problem "a job that diverged does not exit 3 on a closed standard output"
}

test_full_output_fails_what_only_prints() {
    single_job 's/epochs: *[0-9]+/epochs: 1/'
    local command
    cd "$dir" || return
    want_exit 0 alone || return
    while IFS= read -r command; do
        eval "lost_output 2 $command"
        want_line 'error: .*standard output: write: No space left on device'
    done <<END
trainyard evaluate run --data-dir "$data"
trainyard predict run --data-dir "$data"
trainyard show checkpoint run
trainyard show events run
trainyard show events run --plot -
trainyard show model job.yaml
trainyard export run -o - --format npz
trainyard validate job.yaml --data-dir "$data"
trainyard version
trainyard --help
trainyard run --help
trainyard evaluate --help=man
trainyard wait --help
trainyard-ps --help
trainyard-worker --version
trainyard-operator --help
END
}
