#!/bin/bash
# Replicas that die at random, and exact counts afterwards. The optimizer Counting adds 1 to every cell for every batch
# a segment applied: whatever is killed, every cell must end at epochs x batches above its initial value.
# usage: run.sh [NAME...]          STORM_SECONDS (default 12) bounds each storm; `make storm` gives it minutes
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/../integration/lib.sh"
data=$root/deploy/examples
seconds=${STORM_SECONDS:-12}
longer=$((seconds > 12 ? seconds / 12 : 1)) # a longer storm has a longer job, so that it does not end before

replicas_of() { replica_pids run "$1"; } # ROLE

# storm ROLES...: kills a random replica of these roles every 0.2-1 s, then lets the job end. It is paced until then, some
# 500 batches/s, so that it lasts longer than the loop.
storm() {
    local pid kills=0 end victims role
    RANDOM=$((4711 + $#))
    pace_us=${pace_us:-1000}
    pace
    in_background exec_paced trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run"
    pid=$!
    wait_for 60 grep -qE 'step [0-9]+' "$dir/out" || return
    end=$((SECONDS + seconds))
    while { [ $SECONDS -lt $end ] || { [ $kills -le 3 ] && [ $SECONDS -lt $((end + 60)) ]; }; } && kill -0 $pid 2>/dev/null; do
        sleep "0.$((2 + RANDOM % 8))"
        role=${*:1 + RANDOM % $#:1}
        mapfile -t victims < <(replicas_of "$role")
        [ ${#victims[@]} -gt 0 ] || continue
        kill -9 "${victims[RANDOM % ${#victims[@]}]}" 2>/dev/null && kills=$((kills + 1))
    done
    kill -0 $pid 2>/dev/null || problem "the job ended before the storm"
    rm -f "$dir/paced"
    echo "    $kills replicas killed"
    [ $kills -gt 3 ] || problem "only $kills kills"
    local deadline=$((SECONDS + 300 * longer))
    while kill -0 $pid 2>/dev/null && [ $SECONDS -lt $deadline ]; do sleep 0.2; done
    kill -0 $pid 2>/dev/null && { problem "the job did not end in time"; tail -n 20 "$dir/out"; kill -9 $pid; return; }
    wait $pid || { ended_badly $? "the job ended with exit code $?"; tail -n 20 "$dir/out"; }
    want_no_process
}

epochs=${STORM_EPOCHS:-$((longer == 1 ? 800 : 2000 * longer))} # of 50 batches: thousands of batches a second
test_count_without_faults() { counting_job 20; want_exit 0 trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" && want_count $((20 * batches)); }
test_long_storm_of_workers() { counting_job "$epochs"; storm worker; want_count $((epochs * batches)); }
test_long_storm_of_ps() { counting_job "$epochs"; storm ps; want_count $((epochs * batches)); }
test_long_storm_of_chiefs() { counting_job "$epochs"; storm chief; want_count $((epochs * batches)); }
test_storm_of_all_roles() { counting_job "$epochs"; storm worker ps chief; want_count $((epochs * batches)); }

# Synchronous training, with a short last group: 50 batches in groups of 4. It has half of the epochs.
synchronous() { pace_us=2500; sed -i 's/^  replicaSpecs:/  strategy: {updates: sync, replicasToAggregate: 4}\n&/' "$dir/job.yaml"; }
sync_epochs=$((epochs / 2))
test_long_synchronous_storm_of_workers() { counting_job $sync_epochs; synchronous; storm worker; want_count $((sync_epochs * batches)); }
test_long_synchronous_storm_of_ps() { counting_job $sync_epochs; synchronous; storm ps; want_count $((sync_epochs * batches)); }
test_long_synchronous_storm_of_chiefs() { counting_job $sync_epochs; synchronous; storm chief; want_count $((sync_epochs * batches)); }
test_long_synchronous_storm_of_all_roles() { counting_job $sync_epochs; synchronous; storm worker ps chief; want_count $((sync_epochs * batches)); }

test_long_all_at_once_and_again() { # everything dies, three times; `trainyard run` again resumes
    counting_job "$epochs"
    local pid
    for _ in 1 2 3; do
        in_background trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run"
        pid=$!
        wait_for 60 grep -qE 'step [0-9]+' "$dir/out"
        sleep "0.$((RANDOM % 10))"
        kill -9 $pid
        wait $pid 2>/dev/null
        sleep 0.3
    done
    want_exit 0 trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" || return
    want_line 'restoring '
    want_count $((epochs * batches))
}

# shellcheck source=test/fault/members.sh
. "$root/test/fault/members.sh"

run_tests "$@"
