# Tests of run.sh: one chief leads, and the files that a failed save leaves. Sourced by it.
# shellcheck shell=bash disable=SC2034,SC2154 # its variables

ended() { ! kill -0 "$1" 2>/dev/null; }
one_ended() { ended "$1" || ended "$2"; }
ends() { # CODE WHAT PID
    wait_for 120 ended "$3" || kill -9 "$3"
    wait "$3"
    local code=$?
    [ $code = "$1" ] || problem "$2 ends with exit code $code, not $1"
}
no_leftovers() { # of saves, and of claims of generations other than the last one
    local left claims
    left=$(compgen -G "$dir/run/*.tmp.*"; compgen -G "$dir/run/checkpoints/*.tmp.*")
    [ -z "$left" ] || problem "temporary files are left: $left"
    mapfile -t claims < <(compgen -G "$dir/run/generation.*")
    [ ${#claims[@]} -le 1 ] || problem "claims are left: ${claims[*]}"
}

# One round: the two begin at the same moment, on their own ports; the leading chief gets the worker.
two_chiefs() {
    local ps worker ports chiefs i
    counting_job 3
    replica_file
    ps_port=$(free_port)
    ports=("$(free_port)" "$(free_port)")
    chief_port=${ports[0]}
    replica ps 0 1 >"$dir/ps" 2>&1 &
    ps=$!
    for i in 0 1; do
        chief_port=${ports[i]}
        replica chief 0 1 >"$dir/chief-$i" 2>&1 &
        chiefs[i]=$!
    done
    wait_for 60 one_ended "${chiefs[@]}" || { kill -9 "${chiefs[@]}" $ps; return; }
    i=0
    ended "${chiefs[0]}" && i=1
    ends 138 "the chief that does not lead" "${chiefs[1 - i]}"
    chief_port=${ports[i]}
    replica worker 0 1 >"$dir/worker" 2>&1 &
    worker=$!
    ends 0 "the chief that leads" "${chiefs[i]}"
    ends 0 "the worker" $worker
    ends 0 "the ps" $ps
    want_count $((3 * batches))
    no_leftovers
}

test_two_chiefs_at_once() { # one of them leads; the other is restarted by its supervisor
    local base=$dir round
    for round in 1 2 3 4 5 6 7 8; do
        dir=$base/$round
        mkdir "$dir"
        two_chiefs
        [ $problems = 0 ] || { tell_logs "$dir"; break; }
    done
    dir=$base
}

# It continues when a newer one leads and the ps, which knew that one, has lost its state: before the ps is back, or with
# `served` once the newer one has restored it.
chief_that_slept() {
    counting_job 100
    replica_file
    local ps old new worker second
    pace # it cannot end before the ps is killed
    ps_port=$(free_port) chief_port=$(free_port)
    replica ps 0 2 >"$dir/ps" 2>&1 &
    ps=$!
    held "log epoch 1/" "$dir/slept" chief replica chief 0 2 >"$dir/old" 2>&1 & # it cannot end before it is stopped
    old=$!
    replica worker 0 2 >"$dir/worker-0" 2>&1 &
    worker=$!
    wait_for 60 test -e "$dir/slept"
    kill -STOP $old
    rm -f "$dir/slept"
    kill -9 $worker
    wait $worker 2>/dev/null
    chief_port=$(free_port)
    in_background replica chief 0 2
    new=$!
    paced replica worker 1 2 >"$dir/worker-1" 2>&1 &
    second=$!
    wait_for 60 grep -qE 'step [0-9]+ .*workers 1/' "$dir/out"
    kill -9 $ps
    wait $ps 2>/dev/null
    rm "$dir/paced"
    [ $# -gt 0 ] || kill -CONT $old
    replica ps 0 2 >"$dir/ps-again" 2>&1 &
    ps=$!
    [ $# = 0 ] || { wait_for 60 grep -q 'serving: generation 3' "$dir/ps-again"; kill -CONT $old; }
    ends 138 "the chief that slept" $old
    want_line 'a newer chief is in charge' "$dir/old"
    ends 0 "the newer chief" $new
    ends 0 "the worker" $second
    ends 0 "the ps" $ps
    want_count $((100 * batches))
    no_leftovers
}
test_a_chief_that_slept() { chief_that_slept; }
test_a_chief_that_slept_until_the_ps_serve() { chief_that_slept served; }

# The single machine of counting_job, killed when it has saved the checkpoints of steps 10 and 20.
killed_after_two_saves() {
    build_kill_at
    counting_job 200
    sed -i -e '/^  replicaSpecs:/,$d' -e 's/everySeconds: 0.5/everySteps: 10/' "$dir/job.yaml"
    job=$dir/job.yaml
    (KILL_AT='publish model_checkpoint_path: "model.ckpt-20"' KILL_MARK=$dir/killed LD_PRELOAD=$kill_at alone_bg) >"$dir/first" 2>&1
    [ $? = 137 ] || problem "it was not killed: $(tail -n 1 "$dir/first")"
    mapfile -t saved < <(sed -n 's/^all_model_checkpoint_paths: "\(.*\)"/\1/p' "$dir/run/checkpoints/checkpoint")
    sed -i 's/everySteps: 10/everySeconds: 600/' "$dir/job.yaml"
}
damage() { printf 'ZZZZ' | dd of="$dir/run/checkpoints/$1.data-00000-of-00001" bs=1 seek=4 conv=notrunc 2>/dev/null; }

test_damaged_checkpoint() { # the older complete one is used; without one, all tried checkpoints are reported
    local job saved name
    killed_after_two_saves
    damage "${saved[-1]}"
    want_exit 0 alone || return
    want_line "${saved[-1]} cannot be used: .*checksum of tensor .* is wrong.*; the older checkpoint .*${saved[-2]} is used"
    want_line "restoring .*${saved[-2]}: step ${saved[-2]##*-}, [0-9]+ of 10000 batches done"
    want_count 10000
}

test_damaged_checkpoint_and_evaluator() { # it evaluates the older complete one, and continues to poll
    local job saved evaluator
    killed_after_two_saves
    damage "${saved[-1]}"
    identities ps=1,worker=1,chief=1,evaluator=1
    in_background trainyard-worker --job "$job" --data-dir "$data" --output-dir "$dir/run" --job-name evaluator --task-index 0 --tls-dir "$dir/tls/evaluator-0" \
        --chief-host "127.0.0.1:$(free_port)" --ps-hosts 127.0.0.1:1 --worker-hosts 127.0.0.1:2
    evaluator=$!
    wait_for 60 grep -q "evaluated step ${saved[-2]##*-} loss" "$dir/out"
    want_line "${saved[-1]} cannot be used: .*; the older checkpoint .*${saved[-2]} is used"
    kill -0 $evaluator || problem "the evaluator ended"
    kill -TERM $evaluator
    ends 143 "the evaluator" $evaluator
}

test_damaged_checkpoints() {
    local job saved name
    killed_after_two_saves
    for name in "${saved[@]}"; do damage "$name"; done
    want_exit 2 alone || return
    for name in "${saved[@]}"; do want_line "no checkpoint in .* is whole \\(tried .*$name"; done
}

test_killed_in_a_save() { # the next one removes its files
    local job left
    build_kill_at
    counting_job 100
    sed -i -e '/^  replicaSpecs:/,$d' -e 's/everySeconds: 0.5/everySteps: 1/' "$dir/job.yaml"
    job=$dir/job.yaml
    (KILL_AT='before-publish model.ckpt-1' KILL_MARK=$dir/killed LD_PRELOAD=$kill_at alone_bg) >"$dir/first" 2>&1
    [ $? = 137 ] || problem "it was not killed: $(tail -n 1 "$dir/first")"
    left=$(compgen -G "$dir/run/checkpoints/*.tmp.*")
    [ -n "$left" ] || { problem "it was not killed in a save"; return; }
    touch "$dir/run/checkpoints/notes.tmp.1.0" # not ours
    sed -i 's/everySteps: 1/everySeconds: 600/' "$dir/job.yaml"
    want_exit 0 alone || return
    want_line 'removed [1-9][0-9]* temporary files that killed saves left in'
    rm "$dir/run/checkpoints/notes.tmp.1.0" || problem "a file of another owner was removed"
    no_leftovers
    want_count 5000
}
