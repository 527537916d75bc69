# Sourced by the shell tests: programs, a scratch folder, checks that count.
# A test is a function test_NAME; run_tests runs those whose name matches the arguments and closes with the totals. Each
# test runs in a process of its own, for at most 300 s.
# shellcheck shell=bash
set -u
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE TF_CONFIG JOB_NAME TASK_INDEX PS_HOSTS WORKER_HOSTS CHIEF_HOST TRAINYARD_TLS_DIR TRAINYARD_INSECURE
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/trainyard-test.XXXXXX")
export XDG_RUNTIME_DIR=$scratch # a launcher that is killed leaves its certificates there
given_ports=${TRAINYARD_GIVEN_PORTS:-$scratch/ports} # a folder that concurrent scripts share
mkdir -p "$given_ports"
# A copy, so that a build during the tests does not change their programs.
mkdir "$scratch/bin" && cp "${TRAINYARD_TEST_BIN:-$root/build/release/bin}"/trainyard* "$scratch/bin"
export PATH="$scratch/bin:$PATH"
for program in pgrep curl awk cmp; do
    command -v "$program" >/dev/null || { echo "these tests need the program $program (make test installs it)"; exit 2; }
done
# shellcheck source=test/tools/verdict.sh
. "$root/test/tools/verdict.sh"
export TRAINYARD_MARK=${TRAINYARD_MARK:+$TRAINYARD_MARK/}$$
passed=0 failed=0 skipped=0 problems=0 first_problem='' problem_kind=race
trap 'cleanup' EXIT

cleanup() {
    end_started
    [ "$failed" = 0 ] && rm -rf "$scratch"
}

# problem TEXT: the running test fails, but continues.
problem() {
    problems=$((problems + 1))
    [ -n "$first_problem" ] || first_problem=$*
    echo "    $*"
}
# wrong TEXT: a problem that no race of the test explains, such as a wrong count, wrong bytes or another hash
wrong() { problem_kind=exact; problem "$@"; }
# ended_badly CODE TEXT: a program ended so; exact where only a fault of its own sends it the signal
ended_badly() {
    case $1 in
    132 | 134 | 135 | 136 | 139) wrong "$2" ;;
    *) problem "$2" ;;
    esac
}
# A misspelt helper must not be a test that asserts nothing. (Bash calls this in a subshell.)
command_not_found_handle() {
    echo "$1: command not found" | tee -a "$dir/not_found" >&2
    return 127
}
# want_exit CODE COMMAND...: stdout and stderr go to $dir/out.
want_exit() {
    local want=$1 got
    shift
    "$@" >"$dir/out" 2>&1
    got=$?
    [ "$got" = "$want" ] || { ended_badly "$got" "exit code $got, not $want: $*"; tail -n 25 "$dir/out"; return 1; }
}
# in_background COMMAND...: starts it with its output in $dir/out; $! is its pid. Emptied here and not by the new process, the
# file has no line of an earlier command when this returns.
in_background() {
    : >"$dir/out"
    "$@" >"$dir/out" 2>&1 &
}
want_line() { grep -qE -- "$1" "${2:-$dir/out}" || problem "no line matches '$1' in ${2:-the output}"; }
want_no_line() { # REGEX [FILE]
    local line
    line=$(grep -m 1 -E -- "$1" "${2:-$dir/out}") && problem "a line matches '$1': $line"
    return 0
}
want_file() { [ -s "$1" ] || problem "$1 is missing or empty"; }
# at_least VALUE BOUND WHAT
at_least() { awk -v a="$1" -v b="$2" 'BEGIN{exit !(a + 0 >= b + 0)}' || problem "$3 is $1, wanted >= $2"; }
at_most() { awk -v a="$1" -v b="$2" 'BEGIN{exit !(a + 0 <= b + 0)}' || problem "$3 is $1, wanted <= $2"; }
# final OUTPUT METRIC: the value in history.json's "final" (or "" )
final() { sed -n '/"final"/,/}/p' "$1/history.json" 2>/dev/null | sed -n "s/.*\"$2\": *\"\\{0,1\\}\\([-0-9.eE+NaInfity]*\\).*/\\1/p" | head -n 1; }
# wait_for SECONDS COMMAND...: polls until the command succeeds; bounded.
wait_for() {
    local end=$((SECONDS + $1))
    shift
    until "$@" 2>/dev/null; do
        [ "$SECONDS" -ge "$end" ] && { problem "timed out waiting for: $*"; return 1; }
        sleep 0.05
    done
}
hash_of() { sed -n 's/.*"weights_sha256": "\([0-9a-f]*\)".*/\1/p' "$dir/$1/history.json"; } # RUN
# replica_pids RUN ROLE [INDEX]: of the processes whose arguments have the folder $dir/RUN
replica_pids() {
    pgrep -f -- "$dir/$1" | while read -r pid; do
        tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -q "\"type\":\"$2\"${3:+,\"index\":$3}" && echo "$pid"
    done
}
flag_of() { tr '\0' '\n' <"/proc/$1/cmdline" | sed -n "/^$2\$/{n;p}"; } # PID FLAG: its value on the command line
step_now() { grep -oE 'step [0-9]+ epoch' "$dir/out" | tail -n 1 | grep -oE '[0-9]+' || echo 0; } # of the run with its output in $dir/out
is_beyond() { [ "$(step_now)" -gt "$1" ] || ! kill -0 "$pid" 2>/dev/null; } # STEP
# goes_on: the run with the launcher $pid makes some more steps.
goes_on() {
    wait_for 60 is_beyond $(($(step_now) + 20)) && kill -0 "$pid" 2>/dev/null || problem "the run ended too soon"
}
# No process of this test is left: our programs have the scratch folder in their arguments.
want_no_process() {
    local left
    left=$(pgrep -f -- "$dir" | while read -r pid; do
        case "$(cat "/proc/$pid/comm" 2>/dev/null)" in trainyard*) echo "$pid" ;; esac
    done)
    [ -z "$left" ] || problem "processes are left: $left"
}
# A free port, another one each time. Below the ranges of `trainyard run` and clusters, and below the kernel's ephemeral
# ports, because an outgoing connection could take the port before the server does.
free_port() {
    local port
    while :; do
        port=$((11000 + RANDOM % 4000))
        mkdir "$given_ports/$port" 2>/dev/null || continue
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo $port; return; }
    done
}

# The last log lines of a failed test's processes, because sometimes only the console is kept.
tell_logs() { # FOLDER
    local file
    for file in "$1"/*; do
        [ -f "$file" ] && [ -s "$file" ] && [[ $file != *.yaml && $file != */words && $file != */result && $file != */ended ]] && grep -qI . "$file" || continue
        echo "    --- the end of ${file##*/}:"
        tail -n "${LOG_LINES:-15}" "$file" | cut -c 1-500 | sed 's/^/    | /'
    done
}

# Identities of replicas that a test starts by hand: $dir/tls/ROLE-INDEX.
identities() { # ROLE=N,... [FOLDER]
    trainyard certs --job "$dir/job.yaml" --replicas "$1" --out "${2:-$dir/tls}" >/dev/null || problem "trainyard certs fails"
}

# A page over TLS, as the launcher of the job; curl cannot check a name that is not that of a host.
https() { # PORT PAGE
    curl -sfk --max-time 60 --cert "$dir/tls/launcher/tls.crt" --key "$dir/tls/launcher/tls.key" "https://127.0.0.1:$1/$2"
}

# Zero initial values, so that every cell of the checkpoint is the count itself.
counting_job() { # EPOCHS
    cat >"$dir/job.yaml" <<YAML
apiVersion: trainyard.dev/v1alpha1
kind: TrainJob
metadata: {name: counting}
spec:
  model:
    inputShape: [8, 8]
    layers:
      - Flatten: {}
      - Dense: {units: 64, activation: relu, kernel_initializer: zeros, bias_initializer: zeros}
      - Dense: {units: 10, kernel_initializer: zeros, bias_initializer: zeros}
  compile: {optimizer: Counting, loss: mean_squared_error}
  data:
$(sed -n '/^  data:/,/^  [a-ce-z]/p' "$root/deploy/examples/digits.yaml" | sed '1d;$d')
  fit: {epochs: $1, batchSize: 30, seed: 3}
  checkpoint: {everySeconds: 0.5, keep: 3}
  replicaSpecs:
    Chief: {}
    PS: {replicas: 2}
    Worker: {replicas: 3}
  runPolicy: {backoffLimit: 100000}
YAML
    sed -i 's/loss: mean_squared_error/loss: {SparseCategoricalCrossentropy: {from_logits: true}}/' "$dir/job.yaml"
    # shellcheck disable=SC2034 # used by the tests
    batches=50 # 1,500 examples
}

# Every cell of every variable equals the wanted count; several counts: one for each variable.
want_count() { # WANT [WANT WANT WANT]
    local name
    for name in dense/kernel dense/bias dense_1/kernel dense_1/bias; do
        trainyard show checkpoint "$dir/run/checkpoints" --tensor $name >"$dir/cells" 2>&1
        grep -q "min $1  max $1 " "$dir/cells" || wrong "$name is not $1 in every cell: $(sed -n 2p "$dir/cells")"
        [ $# = 1 ] || shift
    done
}
# The counts of the newest checkpoint. They differ where a job was stopped while gradients were on their way.
counts() {
    local name
    for name in dense/kernel dense/bias dense_1/kernel dense_1/bias; do
        trainyard show checkpoint "$dir/run/checkpoints" --tensor $name | sed -n 's/.*min [0-9]*  max \([0-9]*\) .*/\1/p'
    done
}

# kill_at.c, which kills a process or holds one of its threads at a chosen moment
build_kill_at() {
    kill_at=$scratch/kill_at.so
    # tests beside this one find it whole or not at all
    [ -e "$kill_at" ] || { "${CC:-cc}" -shared -fPIC -O1 -o "$kill_at.$BASHPID" "$root/test/integration/kill_at.c" && mv "$kill_at.$BASHPID" "$kill_at"; } ||
        problem "kill_at cannot be built"
}
# pace, then paced COMMAND... for &: until the test removes $dir/paced, a worker trains some 7 batches/s of counting_job. So a
# job does not end before the limit of a test, and ends soon after that. pace_us: microseconds for each matrix product.
pace() { build_kill_at; : >"$dir/paced"; }
paced() { PACE_WHILE=$dir/paced PACE_US=${pace_us:-30000} LD_PRELOAD=$kill_at "$@"; }
exec_paced() { exec env PACE_WHILE="$dir/paced" PACE_US="${pace_us:-30000}" LD_PRELOAD="$kill_at" "$@"; } # for &: $! is the program
# held MOMENT MARK ROLE COMMAND...: for &; a thread of the replica waits there until the file MARK, which it makes, is removed
held() { HOLD_AT=$1 KILL_MARK=$2 KILL_ROLE=$3 LD_PRELOAD=$kill_at "${@:4}"; }

# ---- running tests ----

# limit_of TEST: its limit in seconds. Storms, soak and the loss of a node take long, and `make storm` gives the first two
# minutes more.
limit_of() {
    case $1 in
    *storm* | *soak* | *node*) echo $((900 + 30 * (${STORM_SECONDS:-0} > ${SOAK_SECONDS:-0} ? ${STORM_SECONDS:-0} : ${SOAK_SECONDS:-0}))) ;;
    *) echo "${TEST_SECONDS:-300}" ;;
    esac
}
# Libraries replace these: check_test may find further problems, look_around tells what exists after a failure.
before_test() { :; }
check_test() { :; }
look_around() { :; }
after_test() { :; }

# run_one NAME: in a process of its own; its output goes to $dir/words, its result to $dir/result
run_one() {
    local run_began=$SECONDS
    problems=0 first_problem='' problem_kind=race skip_reason=
    trap - EXIT
    before_test
    "$1"
    check_test
    [ ! -s "$dir/not_found" ] || wrong "$(head -n 1 "$dir/not_found")"
    [ "$problems" = 0 ] || look_around >"$dir/around" 2>&1
    after_test
    jobs -p | xargs -r kill -KILL 2>/dev/null
    [ "$problems" = 0 ] || [ "$(kind_of "$dir"/*)" = race ] || problem_kind=exact
    printf '%s\n' "$problems $((SECONDS - run_began)) $problem_kind" "$skip_reason" "$first_problem" >"$dir/result"
}
run_limited() { # NAME
    limited "$(limit_of "$1")" "$dir/stacks" run_one "$1" >"$dir/words" 2>&1
    case $? in
    124) printf '%s\n' "1 $(limit_of "$1") exact" '' "it did not end within $(limit_of "$1") s; its last process: $(sed -n 's/^== process [0-9]*: //p' "$dir/stacks" | tail -n 1)" >"$dir/result" ;;
    *) [ -s "$dir/result" ] || printf '%s\n' "1 0 exact" '' "it broke off: $(tail -n 1 "$dir/words")" >"$dir/result" ;;
    esac
    echo 1 >"$dir/ended"
}
tell_failure() { # NAME PROBLEM
    echo "FAIL $1: $2 (files in $dir)"
    cat "$dir/words"
    tell_logs "$dir"
}
tell_result() { # NAME
    local name=${1#*_} bad took kind reason problem log
    dir=$scratch/$1
    { read -r bad took kind; IFS= read -r reason; IFS= read -r problem; } <"$dir/result"
    if [ -n "$reason" ]; then
        skipped=$((skipped + 1))
        cat "$dir/words"
        echo "SKIP $name: $reason"
        record SKIP "$name" 0 "$kind" "^$1\$" - "$reason"
    elif [ "$bad" = 0 ]; then
        passed=$((passed + 1))
        cat "$dir/words"
        echo "ok   $name ($took s)"
        record ok "$name" 0 "$kind" "^$1\$" - ''
    else
        failed=$((failed + 1))
        tell_failure "$name" "$problem"
        log=$({ tell_failure "$name" "$problem"; cat "$dir/stacks" 2>/dev/null; } | keep_log "$name")
        record FAIL "$name" 1 "$kind" "${again_arguments:-^$1\$}" "$log" "$problem"
    fi
}
# run_several N PREFIX [NAME-PART]...: the functions whose names begin so, N at a time; results are printed as they end.
# Tests named PREFIXlong_ take long: they run in `make test-all` (LONG=1), and when a name is given.
run_several() {
    local most=$1 prefix=$2 name
    shift 2
    for name in $(declare -F | awk '{print $3}' | grep "^$prefix"); do
        if [ $# -gt 0 ]; then
            grep -qE "$(tr ' ' '|' <<<"$*")" <<<"$name" || continue
        elif [[ $name == "$prefix"long_* ]] && [ "${LONG:-}" != 1 ]; then
            continue
        fi
        while [ ${#under_way[@]} -ge "$most" ]; do sleep 0.1; tell_ended; done
        dir=$scratch/$name
        mkdir -p "$dir"
        run_limited "$name" &
        under_way+=("$name")
    done
    while [ ${#under_way[@]} -gt 0 ]; do sleep 0.1; tell_ended; done
}
under_way=()
tell_ended() {
    local name left=()
    for name in "${under_way[@]}"; do
        if [ -s "$scratch/$name/ended" ]; then tell_result "$name"; else left+=("$name"); fi
    done
    under_way=("${left[@]}")
}
totals() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}
run_tests() {
    run_several 1 test_ "$@"
    totals
}
