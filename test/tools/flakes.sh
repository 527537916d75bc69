#!/bin/bash
# Finds tests that race: runs each one N times beside two busy loops for each processor. Meanwhile the test's own processes
# are stopped for 0.3 to 3 s every 5 to 10 s, as a virtual machine does it: all of them, or one. The processes of the
# cluster are not stopped. Prints how often each test failed, and fails if one did.
# usage: flakes.sh N [TIER/NAME]...    (from the repository's root; make flakes N=20 TESTS="integration/http unit/rpc/test_lost")
# TIER is unit, asan, tsan, integration, converge, fault, chart, operator, attack or e2e; NAME as the test's verdict has
# it. Without tests: those of a tenth of the shell scripts' tests, chosen by the day of the year.
set -u
n=${1:?the number of runs}
shift
. test/tools/verdict.sh
. test/tools/sanitizers.sh
. test/tools/needed.sh
export LONG=1 KEEP=1 BESIDE=1
logs=build/logs/flakes
mkdir -p "$logs"
others=() # processes that make the load
staller=
finish() {
    kill -KILL "${others[@]}" $staller 2>/dev/null
    local name
    for name in flakes flakes-node; do TRAINYARD_CLUSTER=$name test/cluster/cluster.sh down --purge; done >"$logs/cluster.log" 2>&1
}
trap finish EXIT
trap 'exit 130' INT TERM

# The scripts of a tier, and the functions that are its tests.
scripts_of() { # TIER
    case $1 in
    integration) echo test/integration/run.sh ;;
    attack) echo test/attack/runtime.sh test/attack/operator.sh ;;
    chart | converge | fault | operator | e2e) echo "test/$1/run.sh" ;;
    esac
}
functions_of() { # TIER: "SCRIPT FUNCTION", a line each
    local script
    for script in $(scripts_of "$1"); do
        case $script in
        test/attack/runtime.sh) grep -ohE '^test_[a-z0-9_]+' test/attack/runtime_*.sh ;;
        test/attack/operator.sh) grep -ohE '^(test|alone)_[a-z0-9_]+' test/attack/operator_*.sh ;;
        *) grep -ohE '^(test|alone)_[a-z0-9_]+' "$(dirname "$script")"/*.sh ;;
        esac | sort -u | sed "s|^|$script |"
    done
}
a_tenth() {
    local tier part
    part=$((10#$(date -u +%j) % 10))
    for tier in integration fault attack operator; do
        functions_of "$tier" | awk -v tier=$tier '{sub(/^(test|alone)_/, "", $2); print tier "/" $2}'
    done | awk -v part=$part 'NR % 10 == part'
}

# command_of TIER NAME: into the list `command`
command_of() {
    local script function
    case $1 in
    unit) command=("build/release/test/unit/$2") ;;
    asan | tsan) command=("build/$1/test/unit/$2") ;;
    *)
        read -r script function < <(functions_of "$1" | grep -E " (test|alone)_$2\$" | head -n 1)
        [ -n "${function:-}" ] || { echo "flakes.sh: there is no test $1/$2" >&2; return 1; }
        command=("$script" "^$function\$") ;;
    esac
}
targets_of() { # TIER NAME: what make builds for it
    case $1 in
    unit) echo "FLAVOUR=release build/release/test/unit/$2" ;;
    asan | tsan) echo "FLAVOUR=$1 build/$1/test/unit/$2" ;;
    *) needed_of "$1" ;;
    esac
}

running_of() { # MARK: processes that carry it; those that the test itself has stopped stay stopped
    local pid
    for pid in $(processes_of -1 "$1"); do
        grep -qs '^State:.[^TZ]' "/proc/$pid/status" && echo "$pid"
    done
}
# Until it is killed: stops processes that carry the mark.
stall() { # MARK
    local pids
    RANDOM=$$
    while :; do
        sleep $((5 + RANDOM % 5)).$((RANDOM % 10))
        mapfile -t pids < <(running_of "$1")
        [ ${#pids[@]} -gt 0 ] || continue
        [ $((RANDOM % 2)) = 0 ] || pids=("${pids[RANDOM % ${#pids[@]}]}")
        kill -STOP "${pids[@]}" 2>/dev/null
        sleep "$((RANDOM % 3)).$((3 + RANDOM % 7))"
        kill -CONT "${pids[@]}" 2>/dev/null
    done
}
once() { # NAME TIER: one run, whose output goes to the file NAME
    local mark=flakes.$$.$RANDOM status
    stall "$mark" >/dev/null 2>&1 &
    staller=$!
    TRAINYARD_MARK=$mark limited 1200 "$1.stacks" unit_settings "$2" "${command[@]}" >"$1" 2>&1
    status=$?
    kill -KILL $staller 2>/dev/null
    wait $staller 2>/dev/null
    staller=
    processes_of -1 "$mark" | xargs -r kill -CONT 2>/dev/null
    return $status
}

[ $# -gt 0 ] || { mapfile -t tests < <(a_tenth); set -- "${tests[@]}"; }
for test; do
    command_of "${test%%/*}" "${test#*/}" || exit 2
    # shellcheck disable=SC2046 # a list of words
    make --no-print-directory -s -j"${JOBS:-2}" DEV=1 $(targets_of "${test%%/*}" "${test#*/}") >"$logs/build.log" 2>&1 || { cat "$logs/build.log"; exit 2; }
done
for ((i = 0; i < 2 * $(nproc); i++)); do
    while :; do :; done &
    others+=($!)
done
bad=0
for test; do
    command_of "${test%%/*}" "${test#*/}"
    export TRAINYARD_CLUSTER=flakes
    [ "${test%%/*}" != e2e ] || TRAINYARD_CLUSTER=flakes-node
    failed=0 began=$SECONDS
    for ((i = 1; i <= n; i++)); do
        log=$logs/${test//\//-}.$i
        if once "$log" "${test%%/*}"; then rm -f "$log"; else failed=$((failed + 1)); fi
    done
    echo "$test: $failed of $n runs failed, $((SECONDS - began)) s$([ $failed = 0 ] || echo "; the logs are $logs/${test//\//-}.*")"
    [ $failed = 0 ] || bad=1
done
exit $bad
