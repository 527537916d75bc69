# A ps behind a slow link, and a worker that stalls. Sourced by run.sh, whose functions it uses; the link is
# test/fault/slow_link.c.
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # dir, root, batches are run.sh's, and it uses the ports

rate() { echo $(($1 * 1000)) >"$dir/rate"; } # KILOBYTES per second in each direction, effective within a second

worker_counts() { http "$2" metrics | grep -q "^trainyard_worker_$1_total [1-9]"; } # WHAT PORT: more than none

# The first pull takes longer than the deadline beside the time of bytes (30 s) and than fit.maxWaitSeconds; a push,
# there and back, longer than a lease (10 s). Every batch is applied once, and the ps never counts as lost.
test_long_slow_link() {
    local link=$root/build/release/fault/slow_link link_pid ps chief worker real_port http_port
    [ -x "$link" ] || make -s -C "$root" build/release/fault/slow_link || problem "slow_link cannot be built"
    counting_job 1
    sed -i -e 's/units: 64,/units: 40000,/; s/batchSize: 30,/batchSize: 750, maxWaitSeconds: 20,/' \
        -e 's/everySeconds: 0.5/everySeconds: 600/' "$dir/job.yaml"
    replica_file
    rate 5000
    real_port=$(free_port) chief_port=$(free_port) http_port=$(free_port)
    "$link" "127.0.0.1:$real_port" "$dir/rate" >"$dir/port" &
    link_pid=$!
    wait_for 60 test -s "$dir/port" || return
    ps_port=$(cat "$dir/port")
    replica ps 0 1 --listen "127.0.0.1:$real_port" --no-shared-memory >"$dir/ps" 2>&1 &
    ps=$!
    in_background replica chief 0 1
    chief=$!
    wait_for 60 test -s "$dir/run/checkpoints/model.ckpt-0.index"
    rate 350
    replica worker 0 1 --http-port "$http_port" >"$dir/worker" 2>&1 &
    worker=$!
    wait_for 100 worker_counts examples "$http_port"
    rate 1000
    wait_for 60 worker_counts steps "$http_port"
    rate 5000
    wait $worker || ended_badly $? "the worker failed: $(tail -n 1 "$dir/worker")"
    wait $chief || ended_badly $? "the chief failed: $(tail -n 1 "$dir/out")"
    wait $ps || ended_badly $? "the ps failed"
    kill $link_pid
    wait $link_pid 2>/dev/null
    want_line 'waiting [0-9]+ s for ps-0 \(127.0.0.1:[0-9]+\): [0-9.]+ MiB of 11.4 MiB pulled' "$dir/worker"
    want_no_line 'waiting .* s for ps' "$dir/out"
    want_count 2
}

# A worker says for 30 s (three leases) that it works on its batches, and computes none of them. The others wait, and are
# told for whom; then they compute the batches. No death is counted, and what the worker still computes counts once.
test_stalled_worker() {
    local pid kill_at
    counting_job 1
    build_kill_at
    KILL_ROLE=worker KILL_MARK=$dir/stalled HOLD_AT=before-gemm LD_PRELOAD=$kill_at in_background exec_run
    pid=$!
    wait_for 100 grep -q 'other workers compute what it holds' "$dir/out"
    rm -f "$dir/stalled"
    wait $pid || ended_badly $? "the job failed"
    want_line 'waiting [0-9]+ s for worker-[0-2], which holds batch' "$dir/out"
    want_line 'warning: worker-[0-2] has not computed batch.* for [0-9]+ s: other workers compute what it holds' "$dir/out"
    want_no_line 'crashed' "$dir/out"
    want_count "$batches"
}
