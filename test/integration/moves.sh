#!/bin/bash
# Replicas behind names whose addresses change, as with restarted pods. Called by run.sh in its own mount namespace,
# because it writes /etc/hosts: moves.sh FOLDER DATA PORT PORT PORT. Prints "NAME SECONDS" lines; FOLDER/job.yaml is the
# job, FOLDER/tls has the identities.
set -u
dir=$1 data=$2 ps_port=$3 chief_port=$4 http=$5 pids=()
cluster=(--ps-hosts "ps-0.job.test:$ps_port" --chief-host "chief-0.job.test:$chief_port" --worker-hosts worker-0.job.test:2222)
trap 'kill -9 "${pids[@]}" 2>/dev/null' EXIT

is_at() { # NAME ADDRESS; "" removes the name
    { grep -v "$1" /etc/hosts; [ -z "$2" ] || echo "$2 $1"; } >"$dir/hosts.new"
    cat "$dir/hosts.new" >/etc/hosts
}
ps_on() { trainyard-ps --listen "$1:$ps_port" --job-name=ps --task-index=0 --tls-dir "$dir/tls/ps-0" "${cluster[@]}" >>"$dir/ps" 2>&1 & ps=$! pids+=($!); }
worker() { exec trainyard-worker --job "$dir/job.yaml" --data-dir "$data" --output-dir "$dir/run" "${cluster[@]}" "$@"; }
chief_on() { worker --listen "$1:$chief_port" --job-name=chief --task-index=0 --tls-dir "$dir/tls/chief-0" >>"$dir/chief" 2>&1 & chief=$! pids+=($!); }
steps() { curl -sf "http://127.0.0.1:$http/metrics" | awk '/^trainyard_worker_steps_total/{n = $2} END{print n + 0}'; }
now() { date +%s%3N; }
until_it_trains() { # WHAT: the time until the worker has done more steps
    local began before
    began=$(now) before=$(steps)
    while [ "$(steps)" -le "$((before + 2))" ]; do
        [ $(($(now) - began)) -gt 60000 ] && break
        sleep 0.02
    done
    echo "$1 $(awk -v ms=$(($(now) - began)) 'BEGIN{print ms / 1000}')"
}

cp /etc/hosts "$dir/hosts"
mount --bind "$dir/hosts" /etc/hosts || exit 2
chief_on 127.0.0.1
worker --http-port "$http" --job-name=worker --task-index=0 --tls-dir "$dir/tls/worker-0" >"$dir/worker" 2>&1 &
pids+=($!)
# Longer than gRPC's own interval between two DNS queries:
until { grep -qE 'waiting (1[5-9]|[2-9][0-9]) s for ps-0' "$dir/chief" && grep -qE 'waiting (1[5-9]|[2-9][0-9]) s for the chief' "$dir/worker"; } || [ $SECONDS -gt 60 ]; do sleep 0.1; done
ps_on 127.0.0.2
is_at ps-0.job.test 127.0.0.2
is_at chief-0.job.test 127.0.0.1
until_it_trains appears

kill -9 $ps
wait $ps 2>/dev/null
lines=$(wc -l <"$dir/chief")
is_at ps-0.job.test ""
until tail -n "+$((lines + 1))" "$dir/chief" | grep -qE 'waiting (1[5-9]|[2-9][0-9]) s for ps-0' || [ $SECONDS -gt 120 ]; do sleep 0.1; done
ps_on 127.0.0.3
is_at ps-0.job.test 127.0.0.3
until_it_trains ps

kill -9 $chief
wait $chief 2>/dev/null
before=-1
until [ "$before" = "$(steps)" ]; do # the leased batches are done
    before=$(steps)
    sleep 0.5
done
chief_on 127.0.0.4
is_at chief-0.job.test 127.0.0.4
until_it_trains chief
