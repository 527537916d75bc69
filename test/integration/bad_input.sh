#!/bin/bash
# Bad input, case by case: each must end with exit code 2, report the error and its place, and leave no incomplete file.
# usage: bad_input.sh [NAME...]
#
# A case is a folder of test/data/bad. It runs in a scratch folder that holds a copy of the case's files and of base/:
#   cmd      one line of bash; "trainyard ..." and the like
#   setup    optional bash, run before: makes what is damaged. $EXAMPLES is deploy/examples, $PORT a free port;
#            `change SED` edits job.yaml, `trained [ARGS]` trains it alone into out/, `poke FILE OFFSET OCTAL` damages a byte,
#            `as_nobody CMD` gives up root's rights
#   error    extended regular expressions, one a line; each must match a line of the output
#   code     optional: another exit code than 2
#   leaves   optional: extended regular expressions of files that may be there afterwards
# A setup that ends with 77 skips the case; its last line of output says why.
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/lib.sh"
export EXAMPLES=$root/deploy/examples
cases=$root/test/data/bad
chmod 755 "$scratch" # as_nobody reads it
seconds=${BAD_INPUT_SECONDS:-120}

trained() { trainyard-worker --job job.yaml --data-dir "$EXAMPLES" --output-dir out --log-level warning "$@"; }
# change SED: edits job.yaml; it is an error if nothing changes.
change() {
    sed -E "$1" job.yaml >job.yaml.changed
    if cmp -s job.yaml job.yaml.changed; then echo "job.yaml has nothing for $1"; return 1; fi
    mv job.yaml.changed job.yaml
}
# Writes byte VALUE (octal) at OFFSET of FILE.
poke() { printf "\\$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none; }
# A listener holds $PORT while the command runs.
port_taken() {
    trainyard-ps --job job.yaml --insecure --job-name ps --task-index 0 --ps-hosts "localhost:$PORT" --worker-hosts localhost:1 \
        >/dev/null 2>&1 &
    local ps=$! code tries
    for tries in $(seq 600); do
        (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null && break
        [ "$tries" = 600 ] && echo "no server listens at $PORT"
        sleep 0.05
    done
    "$@"
    code=$?
    kill -9 $ps
    return $code
}
as_nobody() {
    [ "$(id -u)" = 0 ] || { "$@"; return; }
    setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}
export -f trained change poke port_taken as_nobody

listing() { find . -type f -o -type d -empty | sort; }

check_output() {
    local wanted
    while IFS= read -r wanted; do
        [ -z "$wanted" ] || grep -qE -- "$wanted" "$out" || problem "no line matches '$wanted'"
    done <"$1/error"
    grep -qE '(Sanitizer|runtime error|Assertion|Segmentation|core dumped)' "$out" && problem "it crashed"
    [ "$(grep -cE '^(\[[^]]*\] )?(error|trainyard[a-z-]*): ' "$out")" -le 3 ] || problem "more than three errors are printed"
}

check_leftovers() { # CASE BEFORE
    local left
    left=$(listing | comm -13 "$2" - | grep -E '\.tmp\.' ; listing | comm -13 "$2" - | grep -vE "$(cat "$1/leaves" 2>/dev/null || echo '^$')")
    [ -z "$left" ] || problem "it left: $(tr '\n' ' ' <<<"$left")"
}

run_case() { # NAME
    local folder=$cases/$1 want=2 got out=$scratch/$1.out
    dir=$scratch/$1 problems=0 first_problem='' skip_reason=
    mkdir -p "$dir"
    cp -r "$cases/base/." "$dir"
    cp -r "$folder/." "$dir"
    rm -f "$dir"/{cmd,setup,error,code,leaves}
    [ -f "$folder/code" ] && want=$(cat "$folder/code")
    PORT=$(free_port)
    export PORT
    cd "$dir" || exit 1
    if [ -f "$folder/setup" ]; then
        timeout "$seconds" bash -eu "$folder/setup" >"$scratch/$1.setup" 2>&1
        case $? in
        0) ;;
        77) skip_reason=$(tail -n 1 "$scratch/$1.setup"); return ;;
        *) problem "the setup failed: $(tail -n 3 "$scratch/$1.setup")"; return ;;
        esac
    fi
    listing >"$scratch/$1.before"
    timeout --kill-after=5 "$seconds" bash -c "$(cat "$folder/cmd")" >"$out" 2>&1
    got=$?
    [ "$got" = "$want" ] || problem "exit code $got, not $want"
    check_output "$folder"
    check_leftovers "$folder" "$scratch/$1.before"
    [ "$problems" = 0 ] || sed 's/^/    | /' "$out" | tail -n 12
    cd "$root" || exit 1
}

for folder in "$cases"/*/; do
    name=$(basename "$folder")
    [ "$name" = base ] && continue
    if [ $# -gt 0 ] && ! grep -qE "$(tr ' ' '|' <<<"$*")" <<<"$name"; then continue; fi
    run_case "$name"
    if [ -n "$skip_reason" ]; then
        skipped=$((skipped + 1)); echo "SKIP $name: $skip_reason"
    elif [ "$problems" = 0 ]; then
        passed=$((passed + 1)); [ -n "${VERBOSE:-}" ] && sed "s/^/$name: /" "$scratch/$name.out"
    else
        failed=$((failed + 1)); echo "FAIL $name: $(cat "$folder/cmd")"
        log=$({ cat "$folder/cmd"; echo "$first_problem"; cat "$scratch/$name.setup" "$scratch/$name.out" 2>/dev/null; } | keep_log "$name")
        record FAIL "$name" 1 "$(kind_of "$scratch/$name.out")" "^$name\$" "$log" "$first_problem"
    fi
done
totals
