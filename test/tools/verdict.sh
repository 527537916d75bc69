# shellcheck shell=bash
# The time limit of a test, the record of what became of it, and the end of a tier that the infrastructure prevents.
# Sourced by the scripts that run tests.
#
# tiers.sh sets these; without them nothing is recorded:
#   TRAINYARD_VERDICTS   a file with a line for each test; its fields are divided by tabs, in the order of record()
#   TRAINYARD_TIER       the tier that runs
#   TRAINYARD_FAILED     a folder for the logs of tests that failed

# record ok|FAIL|SKIP NAME COUNT race|exact KEY LOG PROBLEM
# COUNT is the number of failed checks. A failure that is exact is never forgiven: no race of a test can explain it.
# KEY selects exactly this test when it is the argument of the script; "-" where the script cannot run a test alone.
record() {
    [ -n "${TRAINYARD_VERDICTS:-}" ] || return 0
    local first=${7%%$'\n'*}
    first=${first//$'\t'/ }
    printf '%s\t' "$1" "$2" "$3" "$4" "$5" "$0" "${TRAINYARD_TEST_BIN:--}" "${6:--}" >>"$TRAINYARD_VERDICTS"
    printf '%s\n' "${first:0:600}" >>"$TRAINYARD_VERDICTS"
}

# keep_log NAME: standard input goes to the log of a failed test; prints the file's name, "-" without tiers.sh.
keep_log() {
    [ -n "${TRAINYARD_FAILED:-}" ] || { cat >/dev/null; echo -; return; }
    local file=$TRAINYARD_FAILED/${TRAINYARD_TIER:-test}-${1//\//-}.log
    mkdir -p "$TRAINYARD_FAILED"
    cat >"$file"
    echo "$file"
}

# kind_of FILE...: exact where one of them has a report of a sanitizer, or a program that ended by a signal that only its
# own fault can send; race otherwise.
kind_of() {
    if grep -qsaE 'Sanitizer|runtime error:|Segmentation fault|Bus error|Illegal instruction|Floating point exception|\bAborted\b|Received signal' "$@"; then
        echo exact
    else
        echo race
    fi
}

# sanitizer_problem FILE...: the first report in one line: what was wrong, and the functions that led to it, from the inner
# one on: those of the access, then those that freed the memory before, or had accessed it
sanitizer_problem() {
    awk '
        function end() { if (frames != "") text = text "; " title ": " frames; title = frames = ""; n = 0 }
        /(ERROR|WARNING): [A-Za-z]+Sanitizer: / || /runtime error: / {
            if (text != "") exit
            text = $0
            sub(/^.*(ERROR|WARNING): /, "", text)
            sub(/ on (unknown )?address .*| \(pid=.*/, "", text)
            title = "at"
        }
        /^ *(READ|WRITE|Write|Read|freed by|Previous) / { end(); title = $0; gsub(/^ *| (at|by) 0x.*| here:$|:$/, "", title) }
        /^ *(previously allocated|Location is|Thread T[0-9]|As if|Mutex|.* is located)/ { end() }
        text != "" && title != "" && n < 6 && /^ *#[0-9]+ / {
            gsub(/^ *#[0-9]+ (0x[0-9a-f]+ in )?|\(anonymous namespace\)::/, "")
            if (/^(__interceptor_|__asan_|operator )/) next
            sub(/ \([^ ]*\+0x[0-9a-f]+\).*$/, "") # the library
            sub(/ [^ ]+:[0-9:]+$/, "")              # the line
            sub(/\(.*/, "")                         # the arguments
            frames = frames (n++ > 0 ? " < " : "") substr($0, 1, 60)
        }
        END { end(); print text }' "$@"
}

# infrastructure PROBLEM LOG: what no change to this project causes; tiers.sh tries the tier once more
infrastructure() {
    tail -n 40 "$2"
    echo "INFRA $1: $(tail -n 1 "$2")"
    exit 75
}

# processes_of PID MARK: the descendants of a process, and all that carry the mark in their environment. The processes of
# a test cluster are not among them; they end with their cluster.
processes_of() {
    {
        ps -e -o pid=,ppid= | awk -v root="$1" '{parent[$1] = $2} END {
            for (pid in parent) {
                for (at = pid; at in parent && at != root && at > 1;) at = parent[at]
                if (at == root) print pid
            }
        }'
        grep -lszE "^TRAINYARD_MARK=$2(/|\$)" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3
    } | sort -un | while read -r pid; do
        grep -qszF TRAINYARD_CLUSTER_RUN= "/proc/$pid/environ" || echo "$pid"
    done
}

# stacks_of PID...: what each process is doing
stacks_of() {
    local pid task
    for pid; do
        [ -e "/proc/$pid/cmdline" ] || continue
        echo "== process $pid: $(tr '\0' ' ' <"/proc/$pid/cmdline" | cut -c 1-300)"
        for task in "/proc/$pid"/task/*; do
            echo "thread ${task##*/} $(cat "$task/comm" 2>/dev/null), $(sed -n 's/^State:\t//p' "$task/status" 2>/dev/null), waits in $(cat "$task/wchan" 2>/dev/null)"
            sed 's/^/    /' "$task/stack" 2>/dev/null
        done
        case $(cat "/proc/$pid/comm" 2>/dev/null) in
        trainyard* | test_* | fuzz_*) ! command -v gdb >/dev/null || timeout 30 gdb -p "$pid" -batch -ex 'thread apply all backtrace 40' 2>/dev/null </dev/null | grep -aE '^(Thread|#)' ;;
        esac
    done
}

# limited SECONDS KEPT COMMAND...: runs the command, which may be a function, in a process group of its own. After SECONDS
# its processes are ended, the file KEPT has their stacks, and the exit status is 124. A function sees the local variables
# of its callers: those here have names that no test uses.
limited() {
    local limited_mark=${TRAINYARD_MARK:+$TRAINYARD_MARK/}$BASHPID.$RANDOM limited_pid limited_clock limited_ended='' limited_status
    set -m # makes the process group
    (
        set +m
        export TRAINYARD_MARK=$limited_mark
        "${@:3}"
    ) </dev/null &
    limited_pid=$!
    sleep "$1" >/dev/null 2>&1 &
    limited_clock=$!
    set +m
    wait -n -p limited_ended "$limited_pid" "$limited_clock"
    limited_status=$?
    if [ "$limited_ended" = "$limited_pid" ]; then
        kill "$limited_clock" 2>/dev/null
        wait "$limited_clock" 2>/dev/null
        return $limited_status
    fi
    end_late "$limited_pid" "$limited_mark" >"$2" 2>&1
    { wait "$limited_pid"; } 2>/dev/null
    return 124
}
end_late() { # PID MARK: tells the stacks of its processes, and ends them
    local processes i
    mapfile -t processes < <(processes_of "$1" "$2")
    stacks_of "${processes[@]}"
    for ((i = 0; i < 50; i++)); do # again: a process may start another one meanwhile
        kill -KILL "$1" "${processes[@]}" 2>/dev/null || break
        mapfile -t processes < <(processes_of "$1" "$2")
        [ ${#processes[@]} -gt 0 ] || break
    done
}

# end_started: the processes that this script has started, and that still run
end_started() {
    local pid processes
    mapfile -t processes < <(processes_of $$ "${TRAINYARD_MARK:-none}")
    for pid in "${processes[@]}"; do
        [ "$pid" = $$ ] || kill -KILL "$pid" 2>/dev/null
    done
}
