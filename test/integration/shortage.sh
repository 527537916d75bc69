# A shortage on the user's machine: a full volume. Sourced by run.sh.
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
