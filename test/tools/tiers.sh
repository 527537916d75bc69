#!/bin/bash
# The tiers of the test suite, with a table of the time that each took. `test` and `all` run two lanes of tiers in parallel,
# and build the programs of the test cluster in the background. The others run one tier after the other. `all` sets LONG=1:
# tests named long_, more flavours and longer attacks.
# usage: tiers.sh test | all | check | storm | TIER...        (from the repository's root)
# Every tier prints "N passed, N failed, N skipped" last; its full output is in build/logs/TIER.log. When all have ended, each
# failed test is run once more, alone (again.sh). build/logs/failures.txt names what failed.
set -u
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
jobs=${JOBS:-2}
make="nice -n 15 make --no-print-directory -s -j$jobs DEV=1" # the other lane's tests come first
long() { [ "${LONG:-}" = 1 ]; }
cluster=test/cluster/cluster.sh
# shellcheck source=lanes.sh
. test/tools/lanes.sh
# shellcheck source=verdict.sh
. test/tools/verdict.sh
# shellcheck source=sanitizers.sh
. test/tools/sanitizers.sh
# shellcheck source=needed.sh
. test/tools/needed.sh
# shellcheck source=again.sh
. test/tools/again.sh

# build FLAVOUR TARGET...: two lanes may build in the same tree
build() { mkdir -p build/logs && flock "build/logs/$1.lock" $make FLAVOUR="$1" "${@:2}"; }
# shellcheck disable=SC2046 # a list of words
build_for() { build release $(needed_of "$1"); } # TIER
# unit_programs FLAVOUR: all; without LONG of tsan those with threads, sockets or processes
unit_programs() {
    { if [ "$1" = tsan ] && ! long; then grep -v '^#' test/unit/concurrent.txt; else find test/unit -name 'test_*.c' | sort; fi; } |
        sed "s|^test/|build/$1/test/|; s|\.c\$||"
}
# shellcheck disable=SC2046 # a list of words
build_units() { build "$1" all $(unit_programs "$1"); } # FLAVOUR
# shellcheck disable=SC2046
run_units() { unit_settings "$1" test/tools/unit.sh $(unit_programs "$1"); } # FLAVOUR
# parts COMMAND...: each is words. All of them run, whichever fails, because a failure may be forgiven.
parts() {
    local part bad=0
    # shellcheck disable=SC2086 # a list of words
    for part; do $part || bad=$?; done
    return $bad
}

tier_static() { build release all && test/tools/static.sh; } # the build makes headers that others include
tier_clang() { build_units clang && echo "1 passed, 0 failed, 0 skipped"; }
tier_arm64() { build arm64 objects && echo "1 passed, 0 failed, 0 skipped"; } # compiled only: no libraries here
tier_unit() { build_units release && run_units release; }
# sanitized FLAVOUR NAME SCRIPT [ARG]...: real programs of a sanitized build. Each process writes the sanitizers'
# findings to its own file, because a replica that fails by one is started again.
sanitized() {
    local reports=$PWD/build/logs/$1-$2-reports
    rm -rf "$reports" && mkdir -p "$reports"
    ASAN_OPTIONS=$ASAN_OPTIONS:log_path=$reports/report UBSAN_OPTIONS=$UBSAN_OPTIONS:log_path=$reports/report \
    TSAN_OPTIONS=$TSAN_OPTIONS:log_path=$reports/report TRAINYARD_TEST_BIN=build/$1/bin "${@:3}"
    local status=$?
    [ -n "$(ls "$reports")" ] || return $status
    tail -n 80 "$reports"/*
    record FAIL "report-of-$1-$2" 1 exact - "$(cat "$reports"/* | keep_log "report-$1-$2")" "$(sanitizer_problem "$reports"/*)"
    echo "0 passed, 1 failed, 0 skipped"
    return 1
}
sanitized_tests="quick_ interrupt two_ps_four_workers towers_fail_once"
sanitized_tier() { build_units "$1" && parts "run_units $1" "sanitized $1 programs test/integration/run.sh $sanitized_tests"; } # FLAVOUR
tier_asan() { sanitized_tier asan; }
tier_tsan() { sanitized_tier tsan; }
tier_fuzz() { test/fuzz/run.sh "${FUZZ_SECONDS:-$(long && echo 5 || echo 0)}"; }
tier_quick() { build_for quick && test/integration/run.sh quick; }
tier_integration() { build_for integration && test/integration/run.sh; }
tier_bad() { build_for bad && test/integration/bad_input.sh; }
tier_converge() { build_for converge && test/converge/run.sh; }
tier_fault() { build_for fault && test/fault/run.sh; }
# helm is a program of the cluster; where it cannot be built the tests that need it report that.
tier_chart() {
    build_for chart || return 1
    $cluster build addons || true
    parts test/chart/run.sh "on_control_plane test/chart/cel.sh"
}
tier_operator() { build_for operator && on_control_plane test/operator/run.sh; }
tier_attack() { build_for attack && parts test/attack/runtime.sh "on_control_plane test/attack/operator.sh"; }
# The operator of each sanitized build, while it and the API server are killed. It has its own control plane, so that
# the objects of other tests do not delay the garbage collector.
tier_soak() {
    local flavour bad=0
    build_for soak || return 1
    for flavour in ${SOAK_FLAVOURS:-asan tsan}; do
        build "$flavour" "build/$flavour/bin/trainyard-operator" || return 1
        TRAINYARD_CLUSTER=soak sanitized "$flavour" soak test/operator/soak.sh "${SOAK_SECONDS:-20}" "${SOAK_JOBS:-40}" || bad=$?
    done
    return $bad
}
tier_e2e() { build_for e2e && test/e2e/run.sh; }
programs_of() { # TIER: what it needs of the background build
    case $1 in
    operator | attack) echo kube ;;
    chart | soak) echo programs ;;
    e2e) echo images ;;
    *) echo none ;;
    esac
}

# One lane computes; the other mostly waits for processes, time-outs and pods. Only the second one uses the cluster. It
# begins with those tiers as soon as their programs are built, the operator's tests first. A lane that has finished its
# own tiers takes the other's tiers that have not begun, from the end.
computing="static unit clang asan tsan fuzz"
waiting="integration bad fault"
on_cluster="operator attack chart e2e"
backwards() { tr ' ' '\n' <<<"$*" | tac; }
lane_computing() { echo $computing; backwards $waiting; }
lane_waiting() {
    [ ! -e build/logs/cluster.kube ] || echo operator
    [ ! -e build/logs/cluster.programs ] || echo $on_cluster
    echo $waiting $on_cluster
    backwards $computing
}
as_given() { echo $tiers; }
lanes=as_given
case ${1:-} in
test | all)
    [ "$1" = test ] || { export LONG=1; computing+=" arm64 converge" on_cluster+=" soak"; }
    tiers="$computing $waiting $on_cluster" lanes="lane_computing lane_waiting" ;;
check) tiers="unit quick" ;;
storm) # attacks that run long; each of these variables may be set
    export STORM_SECONDS=${STORM_SECONDS:-120} SOAK_SECONDS=${SOAK_SECONDS:-180} SOAK_JOBS=${SOAK_JOBS:-300} FUZZ_SECONDS=${FUZZ_SECONDS:-120} TIER_SECONDS=${TIER_SECONDS:-14400}
    tiers="fault soak fuzz" ;;
'') echo "usage: tiers.sh test | all | check | storm | TIER..." >&2; exit 2 ;;
*) tiers=$* ;;
esac
for tier in $tiers; do
    declare -F "tier_$tier" >/dev/null || { echo "tiers.sh: there is no tier $tier (there are: $(declare -F | sed -n 's/.* tier_//p' | tr '\n' ' '))" >&2; exit 2; }
    rm -f "build/logs/$tier.log"
done
lanes_begin
[ "$lanes" = as_given ] || background_build
for lane in $lanes; do lane "$lane"; done
lanes_guard

until [ -z "$tiers" ]; do
    left=
    for tier in $tiers; do
        if ended "$tier"; then tell_tier "$tier"; else left+=" $tier"; fi
    done
    tiers=${left# }
    sleep 0.2
done
run_again
tell_all
