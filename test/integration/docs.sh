# Tests of run.sh: the commands in the documentation for users do what it says. Sourced by it.
# shellcheck shell=bash disable=SC2154 # its variables

# Numbers and times may differ, and the width of columns.
without_numbers() { sed -E 's/[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?/N/g; s/N (ms|s|min)\b/N s/g; s/ +/ /g'; }

# Each line of LINES, of which "..." stands for any, must be among the lines of SAID, in this order.
has_lines() { # LINES SAID
    awk 'NR == FNR {want[++n] = $0; next} BEGIN {i = 1} {while (want[i] == "...") i++} i <= n && $0 == want[i] {i++}
         END {while (want[i] == "...") i++; if (i <= n) {print want[i]; exit 1}}' "$1" "$2"
}

# run_page FILE: runs each line "    $ COMMAND", and compares its output with the lines below. A command whose output begins
# with "error:" there must fail, all others must not, but a command that diverges.
run_page() {
    local line command='' commands=0
    check_command() {
        local code missing
        [ -n "$command" ] || return 0
        commands=$((commands + 1))
        bash -c "set -o pipefail; $command" >said 2>&1 </dev/null
        code=$?
        if grep -qE '^error: | failed after ' want; then [ $code != 0 ]; else [ $code = 0 ]; fi || problem "$1: exit code $code: $command: $(tail -n 3 said)"
        missing=$(has_lines <(without_numbers <want) <(without_numbers <said)) || problem "$1: $command does not print '$missing' but $(head -n 20 said)"
        command=''
    }
    ln -s "$root/deploy" "$dir/deploy"
    cd "$dir" || return
    while IFS= read -r line; do
        case $line in
        '    $ '*)
            check_command "$1"
            command=${line#'    $ '}
            : >want ;;
        '    '*) echo "${line#'    '}" >>want ;;
        *) check_command "$1" ;;
        esac
    done <"$root/$1"
    check_command "$1"
    cd "$root" || return
    [ $commands -ge 5 ] || problem "$1 has $commands commands"
}

test_tutorial_runs_as_printed() { run_page docs/tutorial.md; }
test_troubleshooting_runs_as_printed() { run_page docs/troubleshooting.md; }

# The comment of the example says so.
test_digits_sync_has_one_hash() {
    local workers want
    for workers in 2 4; do
        want_exit 0 trainyard run "$data/digits-sync.yaml" --replicas worker=$workers --output-dir "$dir/$workers" || return
        want_line 'Test loss: [0-9.]+, Test accuracy: (0\.9[7-9]|1)'
    done
    want=$(hash_of 2)
    [ -n "$want" ] && [ "$(hash_of 4)" = "$want" ] || wrong "2 workers give '$want', 4 '$(hash_of 4)'"
}
test_digits_mirrored_has_the_hash_of_digits_sync() {
    want_exit 0 trainyard run "$data/digits-sync.yaml" --output-dir "$dir/ps" || return
    want_exit 0 trainyard run "$data/digits-mirrored.yaml" --output-dir "$dir/two" || return
    want_line 'Test loss: [0-9.]+, Test accuracy: (0\.9[7-9]|1)'
    want_exit 0 trainyard run "$data/digits-mirrored.yaml" --set strategy.replicas=4 --set strategy.replicasToAggregate=2 --output-dir "$dir/four" || return
    [ -n "$(hash_of ps)" ] && [ "$(hash_of two)" = "$(hash_of ps)" ] && [ "$(hash_of four)" = "$(hash_of ps)" ] ||
        wrong "ps give '$(hash_of ps)', 2 threads '$(hash_of two)', 4 '$(hash_of four)'"
}

test_digits_mwms_has_the_hash_of_digits_sync() {
    want_exit 0 trainyard run "$data/digits-sync.yaml" --output-dir "$dir/ps" || return
    want_exit 0 trainyard run "$data/digits-mwms.yaml" --output-dir "$dir/two" || return
    want_line 'Test loss: [0-9.]+, Test accuracy: (0\.9[7-9]|1)'
    want_exit 0 trainyard run "$data/digits-mwms.yaml" --replicas worker=4 --output-dir "$dir/four" || return
    [ -n "$(hash_of ps)" ] && [ "$(hash_of two)" = "$(hash_of ps)" ] && [ "$(hash_of four)" = "$(hash_of ps)" ] ||
        wrong "ps give '$(hash_of ps)', 2 workers without ps '$(hash_of two)', 4 '$(hash_of four)'"
}

test_digits_hogwild_learns() {
    want_exit 0 trainyard run "$data/digits-hogwild.yaml" --output-dir "$dir/run" || return
    want_line 'Running Hogwild training in 2 threads'
    want_line 'Test loss: [0-9.]+, Test accuracy: (0\.9[5-9]|1)'
    want_line '"step": 1000' "$dir/run/finished"
}
