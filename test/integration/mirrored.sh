# Tests of run.sh: the strategies of one process with several threads. Sourced by it, after sync.sh.
# shellcheck shell=bash disable=SC2154,SC2034 # its variables

# The job of sync_job as one process, with the strategy STRATEGY.
towers_job() { # STRATEGY [SED]
    sync_job "${2:-}"
    sed -E -i "s/^  strategy:.*/  strategy: {$1}/; /replicaSpecs:/,\$d" "$dir/job.yaml"
}
# The batches that each thread of the last run computed, as words.
shares() { sed -n 's/.*batches computed by each thread: //p' "$dir/out" | tr -d ,; }
# Each of N threads computed at least 1 / (2N) of BATCHES.
want_shares() { # N BATCHES
    local share all=0 n=0
    for share in $(shares); do
        n=$((n + 1)) all=$((all + share))
        [ $((share * 2 * $1)) -ge "$2" ] || problem "a thread computed $share of $2 batches: $(shares)"
    done
    [ $n = "$1" ] && [ $all = "$2" ] || wrong "the shares are '$(shares)', of $1 threads and $2 batches"
}

# One hash: of ps and workers, and of any number of threads.
test_mirrored_gives_the_bits_of_ps() {
    local n want
    sync_job
    sync_run ps --replicas ps=2,worker=3 || return
    want=$(hash_of ps)
    [ -n "$want" ] || wrong "no hash"
    for n in 1 2 4; do
        towers_job "name: Mirrored, replicas: $n, replicasToAggregate: 4"
        sync_run "$n" || return
        want_line "Running Mirrored training in $n threads?"
        want_line "4 batches of 30 examples make a step"
        want_line "workers $n/$n"
        want_line '"step": 26' "$dir/$n/finished" # updates
        [ "$(hash_of "$n")" = "$want" ] || wrong "$n threads give other weights"
    done
}

# All threads compute at the same time. Each batch takes long enough that none is ahead by chance.
test_mirrored_threads_share_the_work() {
    build_kill_at
    : >"$dir/paced"
    towers_job "name: Mirrored, replicas: 4" 's/epochs: 2/epochs: 1/; s/units: 20000/units: 100/'
    paced sync_run run || return
    want_line '4 batches of 30 examples make a step'
    want_shares 4 50
    towers_job "name: Hogwild, concurrentSteps: 4" 's/epochs: 2/epochs: 1/; s/units: 20000/units: 100/'
    paced sync_run hogwild || return
    want_shares 4 50
    ! grep -q 'make a step' "$dir/out" || problem "Hogwild has groups"
}

# Killed at any time, and continued with another number of threads, with ps, and again in one process.
test_mirrored_goes_on_after_kills() {
    local n pid form
    towers_job "name: Mirrored, replicas: 2, replicasToAggregate: 4" 's/epochs: 2/epochs: 60/; s/everySeconds: 600/everySeconds: 0.1/; s/units: 20000/units: 2000/'
    sync_run quiet || return
    for n in 2 4 1 3; do
        trainyard-worker --job "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" --log-level info >"$dir/out" 2>&1 &
        pid=$!
        wait_for 60 mirrored_is_beyond 40
        kill -9 $pid
        wait $pid 2>/dev/null
        sed -E -i "s/replicas: [0-9]+/replicas: $n/" "$dir/job.yaml"
    done
    [ -s "$dir/run/finished" ] && problem "the run ended before it was killed"
    want_exit 0 trainyard-worker --job "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" || return
    want_line 'restoring .*: step [1-9]'
    [ "$(hash_of run)" = "$(hash_of quiet)" ] || wrong "the weights differ from those of a quiet run"
}
# The run has made N more steps than at its start.
mirrored_is_beyond() { # N
    local first last
    first=$(grep -oE 'restoring .*: step [0-9]+' "$dir/out" | grep -oE '[0-9]+$')
    last=$(grep -oE 'step [0-9]+ epoch' "$dir/out" | tail -1 | grep -oE '[0-9]+')
    [ "${last:-0}" -ge $((${first:-0} + $1)) ]
}
