# A shortage on the user's machine: a full volume, a standard output that is full, too few descriptors. Sourced by run.sh.
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

test_full_volume_generation() { # too full for the first file of the chief
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
    SIZE=4k DIR=$dir in_background unshare -m bash -c '
        mount -t tmpfs -o size=$SIZE none "$DIR/run"
        exec "$@"' full trainyard-worker --job "$job" --data-dir "$data" --output-dir "$dir/run"
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

# few_files LIMIT COMMAND...: it succeeds, or ends at once with a message that names the limit.
few_files() {
    local limit=$1 code
    shift
    timeout --kill-after=5 60 prlimit --nofile="$limit:$limit" "$@" >"$dir/out" 2>&1
    code=$?
    case $code in
    0) return ;;
    2) want_line "error: .*too many open files: the limit is $limit \(ulimit -n\); raise it" ;;
    *) problem "exit code $code, not 0 or 2, with $limit descriptors: $*"; tail -n 3 "$dir/out" ;;
    esac
    want_no_line 'restarting|waiting|Too many open files|free ports'
    return $code
}

test_few_descriptors() { # any limit: named, and never a retry, a wait or a crash
    single_job 's/epochs: *[0-9]+/epochs: 1/'
    local limit hosts
    hosts="--ps-hosts localhost:$(free_port) --chief-host localhost:$(free_port) --worker-hosts localhost:1,localhost:2"
    identities chief=1,ps=1,worker=2
    want_exit 0 trainyard run "$job" --data-dir "$data" --output-dir "$dir/done"
    for limit in 4 5 6 8 10 12 13 14 16 20 24 28 32 36 40 44 48 51 52 53 54 55 56 58 60; do
        rm -rf "$dir/run"
        few_files $limit trainyard-worker --job "$job" --data-dir "$data" --output-dir "$dir/run"
        rm -rf "$dir/run"
        few_files $limit trainyard run "$digits" --data-dir "$data" --output-dir "$dir/run" --set fit.epochs=1
        [ -e "$dir/run" ] && [ ! -e "$dir/run/finished" ] && problem "$limit descriptors: a run was begun and not finished"
        few_files $limit trainyard evaluate "$dir/done" --data-dir "$data"
    done
    # shellcheck disable=SC2086 # $hosts is several words
    for limit in 6 8 12 13 16 20 32; do
        few_files $limit trainyard-ps --job-name ps --task-index 0 $hosts --tls-dir "$dir/tls/ps-0" && problem "a ps starts with $limit descriptors"
        few_files $limit trainyard-worker --job-name worker --task-index 0 $hosts --tls-dir "$dir/tls/worker-0" --job "$digits" --data-dir "$data"
        few_files $limit trainyard-worker --job-name chief --task-index 0 $hosts --tls-dir "$dir/tls/chief-0" --job "$digits" --data-dir "$data" --output-dir "$dir/chief"
    done
    few_files 64 trainyard run "$digits" --data-dir "$data" --output-dir "$dir/run-64" --set fit.epochs=1 || problem "64 descriptors are too few for 4 replicas"
}
