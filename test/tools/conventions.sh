#!/bin/bash
# Conventions of names, comments and texts; static.sh runs each of them. A check prints each violation, and nothing when
# there is none. usage: conventions.sh CHECK
set -u
sources() { git ls-files 'lib/*.c' 'operator/*.c' 'cli/*.c' 'ps/*.c' 'worker/*.c'; }
code() { git ls-files 'lib/*.[ch]' 'operator/*.[ch]' 'cli/*.[ch]' 'ps/*.[ch]' 'worker/*.[ch]'; }

# The unit test that has a source's name: lib/a/b.c has test/unit/a/test_b.c. A part b_x.c of a header b.h counts with
# test_b.c. Folders within lib/nn may have their tests in test/unit/nn.
named_test() { # SOURCE
    local folder=${1%/*} name mirrored
    name=${1##*/}
    name=${name%.c}
    mirrored=test/unit/${folder#lib/}
    while :; do
        for test in "$mirrored/test_$name.c" "${mirrored%/*}/test_$name.c"; do
            [ "${test%/*}" = test/unit ] || [ ! -e "$test" ] || { echo "$test"; return; }
        done
        case $name in *_*) ;; *) return ;; esac
        name=${name%_*}
        while [ ! -e "$folder/$name.h" ]; do
            case $name in *_*) name=${name%_*} ;; *) return ;; esac
        done
    done
}

# Every source has a test of its name, or a row in test/unit/covered.txt: SOURCE and the test that covers it.
tests() {
    local table=test/unit/covered.txt source test
    while read -r source test; do
        case $source in '#'* | '') continue ;; esac
        [ -e "$source" ] || echo "$table: $source does not exist; remove the row"
        [ -e "$test" ] || echo "$table: $source: $test does not exist; name the test that covers it"
        [ ! -e "$source" ] || [ -z "$(named_test "$source")" ] || echo "$table: $source has a test of its name; remove the row"
    done <$table
    [ -z "$(grep -v '^#' $table | awk '{print $1}' | sort | uniq -d)" ] || echo "$table: a source has two rows"
    grep -v '^#' test/unit/concurrent.txt | while read -r test; do
        [ -e "$test" ] || echo "test/unit/concurrent.txt: $test does not exist; remove the row"
    done
    for source in $(sources); do
        [ -n "$(named_test "$source")" ] || grep -q "^$source " $table ||
            echo "$source: no unit test has its name; write test_${source##*/}, or add a row to $table"
    done
}

# A file name or a struct tag names only one thing.
names() {
    code | sed 's|.*/||' | grep -vxE 'main\.c|options\.[ch]' | sort | uniq -d | while read -r name; do
        echo "two files are called $name; rename one: $(code | grep "/$name\$" | tr '\n' ' ')"
    done
    code | xargs awk '{
        line = $0
        while (match(line, /(^|[ \t])struct [a-z0-9_]+ \{/)) {
            tag = substr(line, RSTART, RLENGTH); gsub(/^[ \t]*struct | \{$/, "", tag)
            where[tag] = where[tag] " " FILENAME ":" FNR; n[tag]++
            line = substr(line, RSTART + RLENGTH)
        }
    } END { for (tag in n) if (n[tag] > 1) print "struct " tag " is defined twice; rename one:" where[tag] }' | sort
}

# Each source begins with a comment: what it does, and which part of the contract it keeps.
heads() {
    sources | while read -r source; do
        [ "$(head -c 2 "$source")" = '/*' ] || echo "$source: does not begin with a comment that says what it does"
    done
}

# Libraries do not log above debug: they return errors, and report progress to their caller. replica_end(), which ends
# ps and worker, is in lib/job/replica_options.c.
logging() {
    git ls-files 'lib/*.c' | grep -vE '^lib/(base/|job/replica_options.c|rpc/(refusal_log|tls).c)' | xargs grep -nE '\blog_(info|warning|error|fields)\(' |
        sed 's/$/    (return an error, or report to the caller)/'
}

# A shell test waits for an event, and no bound in it is one of time; the same holds for the functions that it calls. It may
# sleep between two looks (in the line after "do", or a fraction of a second), up to a random moment of a fault, and while a
# process is stopped or dead. mawk does not know \< and \>. The time in which
# a replica finds the new address of another one is of gRPC, and bounded in make test-all.
waits() {
    git ls-files 'test/*.sh' | grep -E '^test/(integration|operator|attack|chart|e2e|fault|converge)/' | xargs awk '
        /^ *#/ { next }
        /at_most "?\$(seconds|took|elapsed|\(\(SECONDS)/ && !/the time to train again/ || (/(^|[^a-z_])sleep [0-9$\"]/ && !/do sleep|sleep 0\.[0-9]+$|RANDOM|STOP.* sleep .*CONT|kill -KILL .* && sleep/) {
            print FILENAME ":" FNR ": " $0 "    (HACKING.md: wait for an event)"
        }'
}

# Words that plain technical English does not use here. An exception is a line of the list below.
english() {
    local words='(?<!here )\bis no (?!longer|more\b)|\bnobody\b|\bsomebody\b|\banew\b|\bbefell\b|\bby and by\b|\bshould he\b|\bof one.s own\b|\bsent home\b|\bfurniture\b|\bfleets?\b|\btall(y|ies)\b|\bdesks?\b|\bghosts?\b|\bstor(y|ies)\b'
    code | cat - <(git ls-files '*.md' 'charts/*.yaml' 'charts/*.txt' 'tools/*') | xargs grep -nHiP "$words" |
        grep -vE '"tally"|`tally`|not "is no X"' | sed 's/$/    (plain English: see HACKING.md)/'
}

# Each path in HACKING.md and docs/architecture.md exists. A file name without a folder, in a row of a table, is in a
# folder that precedes it in the row.
paths() {
    local page path row folders name folder found
    for page in HACKING.md docs/architecture.md; do
        grep -oE '(^|[^A-Za-z/.])(lib|operator|cli|ps|worker|test|tools|make|docs|deploy|charts)/[A-Za-z0-9_./*-]*[A-Za-z0-9_*]' $page |
            sed 's/^[^a-z]//' | sort -u | while read -r path; do compgen -G "$path" >/dev/null || echo "$page: $path does not exist"; done
    done
    grep '^| .*`' HACKING.md | while read -r row; do
        folders=$(grep -oE '(lib|operator|cli|ps|worker|test|tools)/[a-z0-9_/]*/' <<<"$row"; grep -oE '\b(cli|tools)/' <<<"$row")
        for name in $(grep -oE '`[a-z0-9_]+\.(c|h|proto|sh)`' <<<"$row" | tr -d '`'); do
            found=
            for folder in $folders; do [ ! -e "$folder$name" ] || found=1; done
            [ -n "$found" ] || echo "HACKING.md: $name does not exist in $(echo $folders)"
        done
    done
}

"$@"
