# Tests of run.sh: MultiWorkerMirrored with workers that are lost, held and come back. Sourced by it.
# shellcheck shell=bash disable=SC2154,SC2034 # its variables

# counting_job with three workers, which make each update from 4 batches. MEMBERS: other fields of the strategy.
members_job() { # EPOCHS
    counting_job "$1"
    sed -i -E -e '/^ *PS: /d' -e 's/Worker: .*/Worker: {replicas: 3}/' -e 's/seed: 3/&, logEverySteps: 5/' \
        -e "s/^  replicaSpecs:/  strategy: {name: MultiWorkerMirrored, replicasToAggregate: 4${MEMBERS:+, $MEMBERS}}\n&/" "$dir/job.yaml"
    updates=$(($1 * 13)) # of 50 batches: 12 of four and one of two
}
member() { replica_pids run "$1" "$2"; } # ROLE INDEX
has_lines() { [ "$(grep -cE -- "$2" "$dir/out")" -ge "$1" ]; } # N REGEX
said() { wait_for 60 has_lines "${2:-1}" "$1" || problem "the log does not say '$1' ${2:-1} times"; }
# Starts the job, slowly until `end_members`; pid
start_members() {
    pace_us=1000
    pace
    in_background exec_paced trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run"
    pid=$!
    said '^\[chief-0\] workers [012, ]+ train from step 0 on$'
    goes_on
}
# At full speed to the end: as many updates as in a quiet job, each batch in one of them, and no checkpoint was used.
end_members() {
    rm -f "$dir/paced"
    wait "$pid" || wrong "the job ended with exit code $?"
    want_line "\"step\": $updates\b" "$dir/run/finished"
    want_count $((updates / 13 * batches))
    want_no_line 'restoring |restored from|going back|is trained again|restarting all'
    want_no_process
}

# A worker is killed, and comes back as another process. All others are the processes of before.
test_members_change_without_a_restart_of_all() {
    local pid pids pace_us updates
    members_job 200
    start_members
    pids="$(member chief 0) $(member worker 0) $(member worker 2)"
    kill -9 "$(member worker 1)"
    said '^\[chief-0\] worker-1 (is lost|was restarted): .* from step [1-9][0-9]*$'
    said '^\[chief-0\] worker-1 joined at step [1-9][0-9]*: [0-9] workers$'
    goes_on
    [ "$(member chief 0) $(member worker 0) $(member worker 2)" = "$pids" ] || wrong "other processes were restarted, too"
    end_members
    [ "$(grep -c 'restarting it in' "$dir/out")" = 1 ] || wrong "$(grep -c 'restarting it in' "$dir/out") processes were restarted"
}

# A process that is held does not end, so only its silence tells. The others train on meanwhile.
test_members_go_on_while_one_is_held() {
    local pid held pace_us updates
    members_job 200
    start_members
    held=$(member worker 1)
    kill -STOP "$held"
    said '^\[chief-0\] worker-1 is lost: .* from step [1-9][0-9]*$'
    goes_on
    goes_on
    want_line '^State:	T' "/proc/$held/status"
    want_no_line 'worker-1 joined'
    kill -CONT "$held"
    said '^\[chief-0\] worker-1 joined at step [1-9][0-9]*: [0-9] workers$'
    goes_on
    [ "$(member worker 1)" = "$held" ] || problem "the worker that was held was restarted"
    end_members
    want_no_line 'restarting it in'
}

# With one worker of two that it needs it does nothing, says so, and goes on when one comes back, though another is missing.
test_members_below_the_minimum_make_no_step() {
    local pid held pace_us updates MEMBERS='minReplicas: 2'
    members_job 200
    start_members
    held="$(member worker 1) $(member worker 2)"
    # shellcheck disable=SC2086 # two words
    kill -STOP $held
    said 'waiting [0-9]+ s for members: 1 of at least 2 workers are there' 2
    # shellcheck disable=SC2086 # two words
    kill -CONT ${held#* }
    said '^\[chief-0\] workers (0, 2|2, 0) train from step [1-9][0-9]* on$'
    goes_on
    # shellcheck disable=SC2086 # two words
    kill -CONT ${held% *}
    said '^\[chief-0\] worker-1 joined at step [1-9][0-9]*: [0-9] workers$'
    end_members
    # between the first message and the beginning of the next view
    awk '/train from step/ {waits = 0} waits && /step [0-9]+ epoch/ {print "    " $0; made = 1}
        /of at least 2 workers are there/ {waits = 1} END {exit made}' "$dir/out" || wrong "steps were made with one worker"
}

# Somebody has a connection to its gRPC port: the chief knows the process.
is_known() { # ROLE INDEX
    local pid http sockets
    pid=$(member "$1" "$2")
    [ -n "$pid" ] || return
    http=$(flag_of "$pid" --http-port)
    sockets=$(find "/proc/$pid/fd" -lname 'socket:*' -printf '%l\n' | tr -dc '0-9\n')
    awk -v sockets="$sockets" -v http="$(printf %04X "$http")" 'BEGIN {split(sockets, list, "\n"); for (i in list) own[list[i]]}
        $10 in own {port = substr($2, index($2, ":") + 1); if ($4 == "0A") serves[port]; if ($4 == "01") open[port]}
        END {for (port in open) if (port in serves && port != http) found = 1; exit !found}' /proc/net/tcp /proc/net/tcp6
}

# Below the minimum a worker comes and is lost again and again. No batch is to blame, since none is computed.
test_members_that_are_lost_while_training_waits_do_not_end_it() {
    local pid held n pace_us updates MEMBERS='minReplicas: 3'
    members_job 200
    start_members
    held=$(member worker 1)
    kill -STOP "$held"
    said 'waiting [0-9]+ s for members: 2 of at least 3 workers are there'
    for n in 1 2 3 4; do
        kill -9 "$(member worker 2)"
        said "^warning: worker-2 was killed by signal 9 .* \(restart $n of at most"
        wait_for 60 is_known worker 2 || problem "worker-2 does not come back"
    done
    kill -CONT "$held"
    said '^\[chief-0\] workers [012, ]+ train from step [1-9][0-9]* on$'
    end_members
}

# Three times: the launcher counts restarts, the chief losses, and both name the worker.
test_members_a_worker_that_fails_again_is_counted() {
    local pid n pace_us updates losses=('' ' for the 2nd time' ' for the 3rd time')
    members_job 200
    start_members
    for n in 1 2 3; do
        kill -9 "$(member worker 2)"
        said "^warning: worker-2 was killed by signal 9 \(Killed\); restarting it in [0-9.]+ m?s \(restart $n of at most 100000\)$"
        said "^\[chief-0\] worker-2 (is lost|was restarted)${losses[n - 1]}: .* from step [1-9][0-9]*$"
        said '^\[chief-0\] worker-2 joined at step [1-9][0-9]*: [0-9] workers$' "$n"
        goes_on
    done
    end_members
    want_no_line '(worker-[01]|chief-0) (was killed|was restarted)'
}

# The number of workers changes, and with it neither the batches of an update nor the learning rate: the weights have the
# bits of a quiet run with one worker.
test_members_in_other_numbers_train_the_same() {
    local pid cluster third want pace_us=1000
    sed -E -e 's/epochs: 20/epochs: 60, logEverySteps: 5/; s/replicasToAggregate: 2/replicasToAggregate: 4/; s/everySteps: 50/everySteps: 1/' \
        -e 's/units: 64/units: 2000/' "$data/digits-mwms.yaml" >"$dir/job.yaml"
    want_exit 0 trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/quiet" --replicas worker=1 || return
    want=$(hash_of quiet)
    cluster="\"127.0.0.1:$(free_port)\",\"127.0.0.1:$(free_port)\",\"127.0.0.1:$(free_port)\""
    pace
    of_cluster 1 >"$dir/worker-1" 2>&1 &
    in_background of_cluster 0
    pid=$!
    said 'workers (0, 1|1, 0) train from step 0 on$'
    goes_on
    of_cluster 2 >"$dir/worker-2" 2>&1 &
    third=$!
    said 'worker-2 joined at step [1-9][0-9]*: [0-9] workers$'
    goes_on
    kill -TERM $third
    said 'worker-2 terminates: workers (0, 1|1, 0) go on from step [1-9][0-9]*$'
    goes_on
    rm "$dir/paced"
    wait "$pid" || wrong "the job ended with exit code $?"
    [ -n "$want" ] && [ "$(hash_of run)" = "$want" ] || wrong "the weights are not those of one worker"
    want_line '"step": 1500\b' "$dir/run/finished" # 60 epochs of 100 batches, of which 4 make an update
    want_line '4 batches of 15 examples make a step$'
    [ "$(grep -c 'make a step' "$dir/out")" = 1 ] || wrong "the number of batches of a step is told again"
    trainyard show events "$dir/run/summaries/train" --tag learning_rate >"$dir/rates"
    [ "$(awk '$2 == "learning_rate" {print $4}' "$dir/rates" | sort -u)" = 0.002 ] ||
        wrong "the learning rates are $(awk '$2 == "learning_rate" {print $4}' "$dir/rates" | sort -u | paste -sd ' ')"
}
of_cluster() { # INDEX: a worker of three that may come; worker 0 leads
    TF_CONFIG="{\"cluster\":{\"worker\":[$cluster]},\"task\":{\"type\":\"worker\",\"index\":$1}}" exec_paced trainyard-worker \
        --insecure --job "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run"
}

# An epoch has one batch, or two, for three workers; or the job ends after one of an epoch with two.
test_members_with_fewer_batches_than_workers() {
    local form want
    for form in 'batchSize: 1500' 'batchSize: 750' 'batchSize: 750, steps: 1'; do
        members_job 3
        rm -rf "$dir/run"
        sed -i -E "s/batchSize: 30/$form/; s/epochs: 3, (.*steps)/\1/" "$dir/job.yaml"
        want=$([[ $form = *1500* ]] && echo 3 || echo 6)
        [[ $form != *steps* ]] || want=2 # a step is one update, of two batches
        want_exit 0 trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" || return
        want_line '^\[chief-0\] workers [012, ]+ train from step 0 on$'
        want_count "$want"
        want_no_process
    done
}

# members_storm ROLES...: kills a random process of these roles every 0.2-1 s, or two workers at once, whether or not a
# step was made since. It is paced until then, so that it lasts longer than the loop.
members_storm() {
    local pid kills=0 end=$((SECONDS + seconds)) role victims first more pace_us=2500
    RANDOM=$((4711 + $#))
    pace
    in_background exec_paced trainyard run "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run"
    pid=$!
    said 'train from step 0 on$'
    while { [ $SECONDS -lt $end ] || [ $kills -le 3 ]; } && kill -0 $pid 2>/dev/null; do
        sleep "0.$((2 + RANDOM % 8))"
        role=${*:1 + RANDOM % $#:1}
        mapfile -t victims < <(replicas_of "$role")
        [ ${#victims[@]} -gt 0 ] || continue
        first=$((RANDOM % ${#victims[@]})) more=$((${#victims[@]} > 2 ? RANDOM % 2 : 0))
        victims=("${victims[@]}" "${victims[@]}")
        kill -9 "${victims[@]:first:1 + more}" 2>/dev/null
        kills=$((kills + 1 + more))
    done
    kill -0 $pid 2>/dev/null || problem "the job ended before the storm"
    rm -f "$dir/paced"
    echo "    $kills replicas killed"
    [ $kills -gt 3 ] || problem "only $kills kills"
    wait $pid || { ended_badly $? "the job ended with exit code $?"; tail -n 20 "$dir/out"; }
    want_count $((members_epochs * batches))
    want_no_process
}
members_epochs=$((epochs / 2))
test_long_members_storm_of_workers_and_chiefs() { members_job $members_epochs; members_storm worker worker chief; }
test_long_members_storm_of_workers() { members_job $members_epochs; members_storm worker; }
test_long_members_storm_of_chiefs() { members_job $members_epochs; members_storm chief; }
