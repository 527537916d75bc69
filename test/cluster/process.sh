# shellcheck shell=bash
# Processes of an instance: started with a mark in their environment, so that a later run finds exactly these, whatever
# happened to the files with their ids. Sourced by cluster.sh.

# start PART COMMAND...: in the background, with a log; restart uses the kept command line.
start() {
    local part=$1
    shift
    printf '%q ' "$@" >"$RUN/$part.command"
    TRAINYARD_CLUSTER_RUN=$RUN setsid nohup "$@" >>"$RUN/$part.log" 2>&1 </dev/null 9>&- &
    echo $! >"$RUN/$part.pid"
}

restart() {
    [ -f "$RUN/$1.command" ] || fail "no part '$1' was started"
    stop "$1"
    eval "start $1 $(cat "$RUN/$1.command")"
}

is_ours() { grep -qszxF "TRAINYARD_CLUSTER_RUN=$RUN" "/proc/$1/environ"; }

running() { [ -s "$RUN/$1.pid" ] && is_ours "$(cat "$RUN/$1.pid")"; }

parts_known() { find "$RUN" -maxdepth 1 -name '*.command' -printf '%f\n' 2>/dev/null | sed 's/\.command$//' | sort; }

all_run() {
    local part known
    known=$(parts_known)
    [ -n "$known" ] || return 1
    for part in $known; do running "$part" || return 1; done
}

# A process that has ended counts as gone before its parent, some init, has reaped it. It does not while one of its
# threads is still exiting, which keeps its ports in use.
gone() { ! grep -qs '^State:[[:space:]][^ZX]' "/proc/$1"/task/*/status; }

# A process that was killed a moment ago: it has no environment any more, and is not yet gone.
dying() { ! gone "$1" && ! grep -qs . "/proc/$1/environ"; }

# end_process PID SECONDS: TERM, and KILL when it takes longer.
end_process() {
    local i
    kill "$1" 2>/dev/null && kill -CONT "$1" 2>/dev/null || return 0 # a test may have stopped it
    for ((i = 0; i < $2 * 20; i++)); do
        ! gone "$1" || return 0
        sleep 0.05
    done
    kill -KILL "$1" 2>/dev/null || return 0
    until gone "$1"; do sleep 0.05; done
}

stop() { # PART [SECONDS]
    local pid i
    if [ -s "$RUN/$1.pid" ]; then
        pid=$(cat "$RUN/$1.pid")
        ! is_ours "$pid" || end_process "$pid" "${2:-5}"
        for ((i = 0; i < 200; i++)); do
            dying "$pid" || break
            sleep 0.05
        done
    fi
    rm -f "$RUN/$1.pid"
}

# All processes that carry our mark, started by an earlier run or by one of our parts.
stop_marked() {
    local pid
    for pid in /proc/[0-9]*; do
        pid=${pid#/proc/}
        ! is_ours "$pid" || end_process "$pid" 1
    done
}

# Works also when our folder has been removed.
stop_all() {
    local part
    stop_node
    for part in kwok kube-scheduler kube-controller-manager; do stop "$part"; done
    stop kube-apiserver 1 # its state is in etcd; it would wait for every watch to end
    stop etcd
    stop_marked
    rm -f "$RUN"/*.command
}

# until_ok SECONDS COMMAND...
until_ok() {
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || { tail -v -n 8 "$RUN"/*.log >&2; fail "timed out: $*; the logs are in $RUN, their ends above"; }
        sleep 0.1
    done
}
