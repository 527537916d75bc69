#!/bin/bash
# What lost workers cost a job of MultiWorkerMirrored: MNIST with 3 workers for some seconds, once undisturbed and once with
# one worker killed every 15 s (SIGKILL; `trainyard run` restarts it). It prints measurements and checks nothing. `make data`
# first.
# usage: [KEEP=FOLDER] goodput.sh [SECONDS [BIN]]          KEEP: the logs with their times are copied there
#
# Rates are of the steps in the chief's log (fit.logEverySteps: 1), each line with the time at which it is read. Gaps are of
# the counters of batches that the workers themselves have on /metrics, read every 20 ms: after a lost worker the chief's log
# stands still for 1 s at the end of the epoch, while the workers train on. Both runs are measured from 5 s after their first
# step on.
#
#   rate             steps/s of the whole measured time
#   goodput          rate of the disturbed run / rate of the undisturbed one
#   without starts   the same, where the time of starts of processes does not count, nor do the steps made meanwhile: from
#                    each "restarting it" of the launcher to the first line of the new process
#   within one run   rate of the disturbed run / its rate outside of the 5 s after each kill: for a machine whose speed changes
#                    between the two runs
#   gap              the longest time in which no survivor has completed a batch, in the 14 s after a kill; "log": the longest
#                    time between two steps of the log, likewise
#   joins            the time from a kill until the new process is a member again
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
seconds=${1:-60} bin=${2:-$root/build/release/bin}
data=${XDG_CACHE_HOME:-$HOME/.cache}/trainyard/data/mnist
out=$(mktemp -d "${TMPDIR:-/tmp}/trainyard-goodput.XXXXXX")
pid='' sampler=''
trap '[ -z "$pid" ] || kill -9 "$pid" $sampler 2>/dev/null; rm -rf "$out"' EXIT

sed -e '/ PS:/d; /^    validation:/d; s/^  strategy:.*/  strategy: {name: MultiWorkerMirrored, replicasToAggregate: 3}/' \
    -e 's/Worker: .*/Worker: {replicas: 3}/; s/epochs: 5/epochs: 100000, logEverySteps: 1/' "$root/deploy/examples/mnist.yaml" >"$out/job.yaml"
echo '  runPolicy: {backoffLimit: 100000}' >>"$out/job.yaml"

stamp() { while IFS= read -r line; do printf '%s %s\n' "$EPOCHREALTIME" "$line"; done; }
worker_pid() { # INDEX
    local p
    for p in $(pgrep -f -- "trainyard-worker.*$out"); do
        { tr '\0' '\n' <"/proc/$p/environ" | grep -q "\"type\":\"worker\",\"index\":$1"; } 2>/dev/null && echo "$p" && return
    done
    return 1
}
port_of() { tr '\0' '\n' <"/proc/$(worker_pid "$1")/cmdline" | sed -n '/^--http-port/{s/^--http-port=//;n;p}'; } # INDEX
# "TIME INDEX BATCHES" of each worker, again and again
sample() {
    local i name value ports=()
    for i in 0 1 2; do ports[i]=$(port_of $i); done
    while sleep 0.02; do
        for i in 0 1 2; do
            { exec 3<>"/dev/tcp/127.0.0.1/${ports[i]}"; } 2>/dev/null || continue # it starts
            printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3 2>/dev/null || true
            while read -r -t 1 name value <&3 2>/dev/null; do
                [ "$name" != trainyard_worker_steps_total ] || printf '%s %s %s\n' "$EPOCHREALTIME" $i "${value%$'\r'}"
            done
            exec 3>&-
        done
    done
}
# run NAME: stamped lines in $out/NAME, samples in $out/NAME.samples, kills ("TIME INDEX") in $out/NAME.kills, the measured
# time in $out/NAME.time
run() {
    local victim kills=0 end
    : >"$out/$1" && : >"$out/$1.kills"
    "$bin/trainyard" run "$out/job.yaml" --data-dir "$data" --output-dir "$out/$1.run" > >(stamp >"$out/$1") 2>&1 &
    pid=$!
    until grep -q 'step [0-9]* epoch' "$out/$1"; do sleep 0.1 && kill -0 $pid; done
    sample >"$out/$1.samples" &
    sampler=$!
    sleep 5
    echo "$EPOCHREALTIME" >"$out/$1.time"
    end=$((SECONDS + seconds))
    sleep 8
    while [ $SECONDS -lt $end ] && kill -0 $pid; do
        if [ "$1" = disturbed ] && [ $((end - SECONDS)) -ge 7 ] && victim=$(worker_pid $((kills % 3))); then
            echo "$EPOCHREALTIME $((kills % 3))" >>"$out/$1.kills"
            kill -9 "$victim" && kills=$((kills + 1))
        fi
        sleep $((end - SECONDS < 15 ? end - SECONDS : 15))
    done
    echo "$EPOCHREALTIME" >>"$out/$1.time"
    kill $sampler $pid
    wait $pid || true
    pid=
}
run undisturbed
run disturbed

awk '
    FILENAME ~ /time$/ {if (FNR == 1) from[run()] = $1; else to[run()] = $1; next}
    FILENAME ~ /kills$/ {killed[++kills] = $1; victim[kills] = $2; next}
    FILENAME ~ /samples$/ {
        if ($3 > batches[run(), $2]) {progress[run(), ++m[run()]] = $1; of[run(), m[run()]] = $2}
        batches[run(), $2] = $3
        next
    }
    match($0, /step [0-9]+ epoch/) {
        split(substr($0, RSTART), word, " ")
        if (word[2] > at[run(), n[run()]]) {time[run(), ++n[run()]] = $1; at[run(), n[run()]] = word[2]}
    }
    / restarting it in / && match($0, /worker-[0-9]/) {begun[substr($0, RSTART, RLENGTH)] = $1}
    /\[worker-[0-9]\] trainyard-worker / && match($0, /worker-[0-9]/) && begun[substr($0, RSTART, RLENGTH)] {
        start_from[++starts] = begun[substr($0, RSTART, RLENGTH)]; start_to[starts] = $1; begun[substr($0, RSTART, RLENGTH)] = 0
    }
    match($0, /worker-[0-9] joined/) {joined[++joins] = $1; who[joins] = substr($0, RSTART + 7, 1)}
    function run() {return FILENAME ~ /undisturbed/ ? "undisturbed" : "disturbed"}
    # the step at a time, between two lines of the log
    function step_at(r, t, i, share) {
        for (i = 2; i < n[r] && time[r, i] < t; i++);
        share = (t - time[r, i - 1]) / (time[r, i] - time[r, i - 1])
        return at[r, i - 1] + (share < 0 ? 0 : share > 1 ? 1 : share) * (at[r, i] - at[r, i - 1])
    }
    function gap(r, a, b, i, longest) {
        for (i = 2; i <= n[r]; i++)
            if (time[r, i] > a && time[r, i - 1] < b && time[r, i] - time[r, i - 1] > longest) longest = time[r, i] - time[r, i - 1]
        return longest
    }
    # without those of one worker
    function stall(r, a, b, but, i, last, longest) {
        for (i = 1; i <= m[r]; i++) {
            if (of[r, i] == but)
                continue
            if (last && progress[r, i] > a && last < b && progress[r, i] - last > longest) longest = progress[r, i] - last
            last = progress[r, i]
        }
        return longest
    }
    function sort(v, m, i, j, x) {
        for (i = 2; i <= m; i++) for (j = i; j > 1 && v[j] < v[j - 1]; j--) {x = v[j]; v[j] = v[j - 1]; v[j - 1] = x}
    }
    function median(v, m) {sort(v, m); return (v[int((m + 1) / 2)] + v[int(m / 2) + 1]) / 2}
    END {
        for (r in from) {
            took[r] = to[r] - from[r]
            steps[r] = step_at(r, to[r]) - step_at(r, from[r])
        }
        for (i = 1; i <= starts; i++) {
            idle += start_to[i] - start_from[i]
            meanwhile += step_at("disturbed", start_to[i]) - step_at("disturbed", start_from[i])
        }
        quiet = steps["undisturbed"] / took["undisturbed"]
        busy = steps["disturbed"] / took["disturbed"]
        printf "undisturbed: %.1f steps/s in %.0f s, longest gap %.2f s, log %.2f s\n", quiet, took["undisturbed"],
            stall("undisturbed", from["undisturbed"], to["undisturbed"], -1), gap("undisturbed", from["undisturbed"], to["undisturbed"])
        printf "disturbed:   %.1f steps/s in %.0f s, %d kills; starts of %d processes took %.2f s\n", busy, took["disturbed"], kills, starts, idle
        for (k = 1; k <= kills; k++) {
            after += 5
            after_steps += step_at("disturbed", killed[k] + 5) - step_at("disturbed", killed[k])
        }
        printf "goodput %.1f %%, without starts %.1f %%, within one run %.1f %%\n", 100 * busy / quiet,
            100 * (steps["disturbed"] - meanwhile) / (took["disturbed"] - idle) / quiet,
            100 * busy * (took["disturbed"] - after) / (steps["disturbed"] - after_steps)
        for (k = 1; k <= kills; k++) {
            gaps[k] = stall("disturbed", killed[k], killed[k] + 14, victim[k])
            for (j = 1; j <= joins && (joined[j] < killed[k] || who[j] != victim[k]); j++);
            join_s[k] = j <= joins ? joined[j] - killed[k] : 0
            printf "kill of worker-%d: gap %.2f s, log %.2f s, joined after %.2f s\n", victim[k], gaps[k],
                gap("disturbed", killed[k], killed[k] + 14), join_s[k]
        }
        middle = kills > 0 ? median(gaps, kills) : 0 # sorted from here on
        if (kills > 0)
            printf "gap: median %.2f s, maximum %.2f s; joins: median %.2f s\n", middle, gaps[kills], median(join_s, kills)
    }' "$out"/undisturbed.time "$out"/disturbed.time "$out"/disturbed.kills "$out"/undisturbed.samples \
    "$out"/disturbed.samples "$out"/undisturbed "$out"/disturbed
[ -z "${KEEP:-}" ] || cp "$out"/undisturbed "$out"/disturbed "$out"/*.samples "$out"/*.kills "$KEEP"
