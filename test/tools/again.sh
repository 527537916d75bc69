# shellcheck shell=bash disable=SC2034,SC2154 # variables of and for tiers.sh
# What a run tells: tiers as they end, failed tests after they were run once more, the totals. Sourced by tiers.sh.

passed=0 failed=0 skipped=0 flaky=0 table=''
failures=build/logs/failures.txt
failed_tests=() # lines of record(), after the tier's name and a tab
broken_tiers=() # that the infrastructure prevented

failed_lines() { awk -F '\t' '$1 == "FAIL"' "build/logs/$1.verdicts" 2>/dev/null; } # TIER
totals_of() { # TIER: what it has passed, failed and skipped; it may have several totals, which are added
    grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "build/logs/$1.log" |
        awk '{p += $1; f += $3; s += $5} END {print p + 0, f + 0, s + 0}'
}
first_error() { # TIER [NAMED]: of what failed without the name of a test, beside NAMED failures that have one
    local log=build/logs/$1.log
    sed -n "s/^FAIL $1: //p" "$log" | tail -n 1 | grep . && return
    if [ "${2:-0}" != 0 ]; then
        echo "beside its tests: $(tail -n 1 "$log")"
    else
        grep -aE '^(FAIL|INFRA) |error: |Error [0-9]+$' "$log" | head -n 1 | grep . || tail -n 1 "$log"
    fi
}

# tell_tier TIER: adds what it has passed and skipped, shows what failed, and keeps it for run_again.
tell_tier() {
    local status seconds cpu p f s named=0 line count log
    read -r status seconds cpu <"$state/$1/result"
    read -r p f s <<<"$(totals_of "$1")"
    echo "== $1: $p passed, $f failed, $s skipped"
    grep -E '^(SKIP|skip)' "build/logs/$1.log"
    table+=$(awk -v tier="$1" -v s="$seconds" -v cpu="$cpu" -v passed="$p" -v failed="$f" -v skipped="$s" 'BEGIN {
        printf "%-12s %6.1f min  %5d passed %4d failed %4d skipped  %6.1f min of CPU time", tier, s / 60, passed, failed, skipped, cpu / 60}')$'\n'
    if [ "$status" = 75 ]; then
        broken_tiers+=("$1")
        tail -n 40 "build/logs/$1.log"
        return
    fi
    passed=$((passed + p)) skipped=$((skipped + s))
    while IFS= read -r line; do
        IFS=$'\t' read -r _ _ count _ _ _ _ log _ <<<"$line"
        named=$((named + count))
        failed_tests+=("$1"$'\t'"$line")
        head -n 40 "$log" 2>/dev/null | cut -c 1-400
    done < <(failed_lines "$1")
    # A tier that cannot run here reports that and is counted as skipped. One that ran nothing and gives no reason has
    # failed. So has one whose totals are not those of the failures that its tests have recorded: it failed in another way,
    # or ended before its totals.
    if [ "$status" = 124 ] || { [ "$status" != 0 ] && { [ "$f" = 0 ] || [ "$f" != $named ]; }; } || { [ "$status" = 0 ] && [ $((p + s)) = 0 ]; }; then
        failed_tests+=("$1"$'\t'"FAIL"$'\t'"$1"$'\t'"$((f > named ? f - named : 1))"$'\t'exact$'\t'-$'\t'-$'\t'-$'\t'"build/logs/$1.log"$'\t'"$(first_error "$1" $named)")
        tail -n 40 "build/logs/$1.log" | cut -c 1-400
    fi
}

# in_environment_of TIER PROGRAMS COMMAND...: as in the tier, with a cluster of its own
in_environment_of() {
    local tier=$1 programs=$2
    shift 2
    export TRAINYARD_CLUSTER=again KEEP=0 BESIDE=1
    background=
    case $programs in
    build/asan/bin | build/tsan/bin) programs=${programs#build/}; sanitized "${programs%/bin}" again "$@" ;;
    *) unit_settings "$tier" "$@" ;;
    esac
}

# run_again: each failed test once more, alone; also tiers that the infrastructure prevented. A test that passes then is
# flaky, unless its failure was exact.
run_again() {
    local line tier name count kind key script programs log problem word first
    : >"$failures"
    for tier in "${broken_tiers[@]}"; do
        first=$(first_error "$tier")
        mv "build/logs/$tier.log" "build/logs/$tier.first.log"
        rm -f "$state/$tier/result"
        (background='' && run_tier "$tier")
        echo "INFRA $tier: ${first#INFRA } (build/logs/$tier.first.log); it was run once more" >>"$failures"
        read -r count _ <"$state/$tier/result"
        [ "$count" != 75 ] || sed -i '1s/^75 /1 /' "$state/$tier/result"
        tell_tier "$tier"
    done
    [ ${#failed_tests[@]} = 0 ] || echo "== again: ${#failed_tests[@]} failures"
    for line in "${failed_tests[@]}"; do
        IFS=$'\t' read -r tier _ name count kind key script programs log problem <<<"$line"
        word=FAIL
        if [ "$key" != - ] && [ ${#failed_tests[@]} -le 10 ]; then
            export TRAINYARD_TIER=$tier TRAINYARD_VERDICTS='' TRAINYARD_FAILED=''
            # shellcheck disable=SC2086 # a key may be several arguments
            if (limited 1200 "${log%.log}.again.stacks" in_environment_of "$tier" "$programs" "$script" $key) >"${log%.log}.again.log" 2>&1; then
                problem+=" - passed when run again"
                if [ "$kind" = exact ]; then problem+=", but is never forgiven"; elif [ "${FLAKES:-}" != fail ]; then word=FLAKY; fi
            else
                problem+=" - failed again"
            fi
        fi
        [ "$(programs_of "$tier")" = none ] || TRAINYARD_CLUSTER=again $cluster down --purge >>build/logs/cluster.log 2>&1
        if [ $word = FLAKY ]; then flaky=$((flaky + 1)); else failed=$((failed + count)); fi
        echo "$word $tier/$name: $problem (${log#"$PWD"/})" >>"$failures"
    done
    if [ $flaky -gt 3 ]; then
        failed=$((failed + flaky))
        echo "FAIL flaky: more than 3 tests are flaky ($failures)" >>"$failures"
    fi
}

# tell_all: at most 60 lines
tell_all() {
    printf '\n%s\n' "$table"
    lines_of INFRA; lines_of FLAKY; lines_of FAIL
    lanes_total
    [ $flaky = 0 ] || echo "$flaky flaky: each is a fault of the test or of the product"
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}
lines_of() { # WORD
    local lines
    lines=$(grep -c "^$1 " "$failures")
    grep "^$1 " "$failures" | head -n 12 | cut -c 1-400
    [ "$lines" -le 12 ] || echo "... and $((lines - 12)) more $1: $failures"
}
