# shellcheck shell=bash disable=SC2034,SC2154 # variables of and for tiers.sh
# Lanes of tiers that run in parallel, what they share, and their end. Sourced by tiers.sh. Every process of a run
# carries TRAINYARD_TIERS=PID in its environment, so that the run leaves none behind.

background= # the process group of the background build
groups=()   # process groups of lanes
shared=${TRAINYARD_CLUSTER:-tests} # the control plane that the tiers of `all` share

lanes_begin() {
    mkdir -p build/logs
    rm -rf build/logs/failed build/logs/*.verdicts build/logs/*.stacks
    state=$(mktemp -d "${TMPDIR:-/tmp}/trainyard-tiers.XXXXXX") || exit 1
    began=$EPOCHSECONDS
    export TRAINYARD_TIERS=$$ TRAINYARD_GIVEN_PORTS=$state/ports
    trap lanes_end EXIT
    trap 'echo interrupted >&2; exit 130' INT
    trap 'exit 143' TERM
    trap 'exit 129' HUP
}

# Ends everything that still runs: lanes, the background build, processes that they left in other sessions, the
# clusters.
lanes_end() {
    trap '' INT TERM HUP
    export -n TRAINYARD_TIERS # not for the commands that end them
    local group i
    for group in "${groups[@]}" $background; do kill -TERM -- "-$group" 2>/dev/null; done
    for group in "${groups[@]}" $background; do
        for ((i = 0; i < 50; i++)); do
            kill -0 -- "-$group" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL -- "-$group" 2>/dev/null
    done
    [ -z "$background" ] || cluster_down
    end_marked TERM
    end_marked KILL
    [ -z "${guard:-}" ] || kill -KILL -- "-$guard" 2>/dev/null
    rm -rf "$state"
}
# end_marked SIGNAL: to the processes of this run, and waits for their end. Processes of a cluster end with their
# cluster: a cluster that KEEP=1 keeps is not ended.
end_marked() {
    local i pids
    for ((i = 0; i < 50; i++)); do
        pids=$(grep -lszxF "TRAINYARD_TIERS=$$" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3 | while read -r pid; do
            grep -qszF TRAINYARD_CLUSTER_RUN= "/proc/$pid/environ" || echo "$pid"
        done)
        [ -n "$pids" ] || return 0
        # shellcheck disable=SC2086 # a list of words
        [ "$i" != 0 ] || kill "-$1" $pids 2>/dev/null
        sleep 0.1
    done
}
# When this shell is killed and cannot end its processes, the guard does.
lanes_guard() {
    set -m
    (
        set +m
        trap - EXIT
        export -n TRAINYARD_TIERS # the guard's own
        guard=
        while kill -0 $$ 2>/dev/null; do sleep 1; done
        lanes_end
    ) </dev/null >/dev/null 2>&1 &
    guard=$!
    set +m
    disown
}

# lane ORDER: tiers, one after the other, in a process group of their own. The function ORDER is called before each
# tier, and chooses among the tiers that no lane has begun.
lane() {
    set -m # makes the process group; Ctrl-C does not reach it, lanes_end does
    (
        set +m
        trap - EXIT INT TERM HUP
        # shellcheck disable=SC2046 # a list of words
        while tier=$(begin_one $("$1")); do
            run_tier "$tier"
            [ -z "$background" ] || [ "$tier" != "${on_cluster##* }" ] || cluster_down # no later tier needs it
        done
    ) </dev/null &
    groups+=($!)
    set +m
}
begin_one() { # TIER...: prints the first one that has not begun
    local tier
    for tier; do
        if mkdir "$state/$tier" 2>/dev/null; then echo "$tier"; return; fi
    done
    return 1
}
# run_tier NAME: leaves its status, seconds and seconds of CPU time. Waiting for the programs of the cluster does
# not count. 30 minutes are its limit.
run_tier() {
    local TIMEFORMAT='%R %U %S' status log=build/logs/$1.log
    export TRAINYARD_TIER=$1 TRAINYARD_VERDICTS=$PWD/build/logs/$1.verdicts TRAINYARD_FAILED=$PWD/build/logs/failed
    : >"$TRAINYARD_VERDICTS"
    cluster_programs "$(programs_of "$1")" >"$log" 2>&1
    { time { (limited "${TIER_SECONDS:-1800}" "build/logs/$1.stacks" "tier_$1") >>"$log" 2>&1; }; } 2>"$state/$1/time" # a subshell, timed from outside
    status=$?
    [ $status != 124 ] || echo "FAIL $1: it did not end within ${TIER_SECONDS:-1800} s; what its processes did: build/logs/$1.stacks" >>"$log"
    tail -n 1 "$state/$1/time" | awk -v status=$status '{print status, $1, $2 + $3}' >"$state/$1/result.new"
    mv "$state/$1/result.new" "$state/$1/result"
}
ended() { # TIER: also when its lane broke off
    [ ! -s "$state/$1/result" ] || return 0
    ! lanes_run || return 1
    [ -s "$state/$1/result" ] || {
        mkdir -p "$state/$1"
        echo "FAIL $1: the tier broke off" >>"build/logs/$1.log"
        echo 1 0 0 >"$state/$1/result"
    }
}
lanes_run() {
    local group
    for group in "${groups[@]}"; do ! kill -0 "$group" 2>/dev/null || return 0; done
    return 1
}
lanes_total() { awk -v s=$((EPOCHSECONDS - began)) -v load="$(cut -d' ' -f1-3 /proc/loadavg)" 'BEGIN {printf "%.1f minutes in all; load average %s\n", s / 60, load}'; }

# ---- the cluster ----

# In parallel with the first tiers: Kubernetes and the other programs of the test cluster, from Go modules, and for root
# the images. They run in a session of their own, which a kernel with autogroups gives a fair share of the processors;
# nice elsewhere.
background_build() {
    rm -f build/logs/cluster.{kube,programs}
    setsid nice -n 3 bash -c '
        $1 build kube && touch build/logs/cluster.kube && $1 build addons && touch build/logs/cluster.programs || exit
        [ "$(id -u)" != 0 ] || { $1 packages && $1 images operator trainer; }' - "$cluster" >build/logs/cluster.log 2>&1 </dev/null &
    background=$!
}
# cluster_programs kube|programs|images|none: waits until the background build has built etcd and Kubernetes (kube), also
# helm, kwok and CoreDNS (programs), or everything (images). A tier then requests the same programs, as it does when run
# alone. It uses those that exist and builds those that are missing, or fails or skips.
cluster_programs() {
    [ -n "$background" ] && [ "$1" != none ] || return 0
    local since=$SECONDS done=build/logs/cluster.$1
    until [ -e "$done" ] || ! kill -0 "$background" 2>/dev/null; do
        [ "$SECONDS" != "$since" ] || echo "waiting for the programs of the test cluster, which are being built (build/logs/cluster.log)"
        renice -n 0 -g "$background" >/dev/null 2>&1 # as root; a tier now waits for it
        sleep 1
    done
    [ $SECONDS = "$since" ] || echo "waited $((SECONDS - since)) s"
    [ -e "$done" ] || [ "$1" = images ] || { echo "the background build ended without them:"; tail -n 20 build/logs/cluster.log | sed 's/^/    /'; }
}

# A control plane for the tier alone; in a run of all tiers they share one, one after the other.
on_control_plane() {
    if [ -n "$background" ]; then KEEP=1 TRAINYARD_CLUSTER=$shared "$@"; else "$@"; fi
}
cluster_down() {
    local name
    [ "${KEEP:-0}" != 1 ] || return 0
    for name in "$shared" "${TRAINYARD_CLUSTER:-e2e}" soak again; do TRAINYARD_CLUSTER=$name $cluster down --purge >>build/logs/cluster.log 2>&1; done
}
