#!/bin/bash
# Checks that need no running program: the layer rule, third-party headers behind one file, headers that compile alone,
# sources without a test, function and file lengths, functions without a caller, texts; with LONG=1 also what analyzers find,
# which takes minutes. Closes with "N passed, N failed, N skipped".
set -u
. test/tools/verdict.sh
passed=0 failed=0 skipped=0
ok() { passed=$((passed + 1)); }
bad() {
    failed=$((failed + 1))
    printf 'FAIL %s\n%s\n' "$1" "$2"
    record FAIL "$1" 1 exact - "$(keep_log "$1" <<<"$2")" "$2"
}
verdict() { if [ -z "$2" ]; then ok; else bad "$1" "$2"; fi; }

# A folder may include only itself, the folders above it in its list, and what the pattern ALSO names.
downward() { # PARENT ALSO FOLDER...
    local parent=$1 also=$2 folder seen=
    shift 2
    for folder; do
        seen=$seen$folder'|'
        verdict "$parent/$folder includes what stands below it" \
            "$(grep -nE '^#include "[a-z]+/' "$parent/$folder"/*.[ch] "$parent/$folder"/*/*.[ch] 2>/dev/null | grep -vE "\"(${seen%|}$also)/")"
    done
}
downward lib '' base codec job identity net tensor nn tfio data rpc shard params collective coord train chief
# The operator's folders; from lib/ they use what needs no gRPC and no BLAS.
downward operator '|base|codec|job|identity|net|nn' kube api build plan control
verdict "operator includes what only replicas need" "$(grep -nE '^#include "(tensor|tfio|data|rpc|shard|params|collective|coord|train|chief)/' operator/*.[ch] operator/*/*.[ch] 2>/dev/null)"
verdict "the pure plan includes what acts" "$(grep -nE '#include "(kube|build|control)/' operator/plan/*.[ch])"
verdict "event files and bundles need the model" "$(grep -nE '#include "(job|net|nn)/' lib/tfio/*.[ch])"
verdict "operator and ps include each other" "$(grep -nE '#include "(\.\./)?(ps|operator)/' ps/*.[ch] 2>/dev/null)"

# Third-party headers stay behind one file (or folder).
only() { verdict "<$1> is included outside $2" "$(grep -lE "#include <$1" -r lib ps worker cli operator | grep -vE "^($2)")"; }
only jansson.h 'lib/codec/json.h'
only yaml.h 'lib/codec/yaml.*\.c'
only cblas.h 'lib/tensor/gemm.c'
only microhttpd.h 'lib/net/http_server.c'
only 'grpc/' 'lib/rpc/'
only openssl/ 'lib/(codec/sha256|identity/(certificate|tls_client)|rpc/ssl_read)\.c' # keys and certificates; SHA-256; one TLS connection, which needs no gRPC and no libcurl
only gnutls/ 'lib/net/http_tls.c'
only zlib.h 'lib/data/[a-z_]*\.c|operator/api/deflate.c'
only png.h 'lib/data/image_png.c'
only 'j(peglib|error).h' 'lib/data/image_jpeg.c'
only hdf5.h 'cli/h5_write.c'
only 'protobuf-c/' 'lib/codec/protobuf.h'
only curl/ 'operator/kube/http_client(_easy\.c|_internal\.h|\.c)'

# Every header compiles alone; headers that include generated ones need these.
make --no-print-directory -s build/release/gen/rpc/common.pb-c.h || exit 1
flags="-std=gnu17 -D_GNU_SOURCE -Ilib -Ioperator -I. -Ibuild/release/gen -fsyntax-only -Wall -Wextra -x c"
for header in $(git ls-files 'lib/*.h' 'ps/*.h' 'worker/*.h' 'cli/*.h' 'operator/*.h'); do
    # shellcheck disable=SC2086 # a list of words
    verdict "$header does not compile alone" "$(gcc $flags "$header" 2>&1 | grep -v 'pragma once')"
done

# Layout: one tool, one configuration file. A string that the tool cannot break may still be too long.
# shellcheck disable=SC2046 # a list of files
verdict "not laid out by .clang-format (make fmt)" "$(clang-format --dry-run -Werror $(git ls-files '*.c' '*.h') 2>&1 | grep -a 'error:' | cut -d: -f1 | sort | uniq -c)"
verdict "a line is over 120 columns" "$(git ls-files '*.c' '*.h' | xargs awk 'length > 120 { print FILENAME ":" FNR }')"

# Each source has a test, each path of a page exists.
verdict "a source has no test of its name, or test/unit/covered.txt is not true" "$(test/tools/conventions.sh tests)"
echo "$(grep -vc '^#' test/unit/covered.txt) sources are covered by a test of another name (test/unit/covered.txt)"
verdict "a page names a path that does not exist" "$(test/tools/conventions.sh paths)"
verdict "a library logs above debug" "$(test/tools/conventions.sh logging)"
verdict "a name stands for two things" "$(test/tools/conventions.sh names)"
verdict "a source does not say what it does" "$(test/tools/conventions.sh heads)"
verdict "a unit test sleeps, or what it wants depends on the speed of the machine (check_main.h: ck_wait)" \
    "$(grep -nE '\<(clock_sleep_ms|usleep|nanosleep|sleep|poll\(NULL)\>|clock_ms\(\)( - [a-z_]+)? *(<|, [0-9A-Z])|< *clock_ms\(\)' -r test/unit --include=*.[ch] |
        grep -vE '^test/unit/(check_main\.h|base/test_clock\.c):|ck_assert_int_g[et]\(|\"')"
verdict "a shell test sleeps, or what it wants depends on the speed of the machine" "$(test/tools/conventions.sh waits)"
verdict "not plain English" "$(test/tools/conventions.sh english)"

# test/data/sanitizer/CASE: a report, and the line that a verdict has of it.
lines_of_reports() { for case in test/data/sanitizer/*; do sanitizer_problem "$case/report" | diff "$case/line" - || echo "$case"; done; }
verdict "the line of a sanitizer's report" "$(lines_of_reports)"

# Lengths: files 600 lines, functions 100 lines (a function ends with a brace in the first column).
for file in $(git ls-files 'lib/*.[ch]' 'ps/*.[ch]' 'worker/*.[ch]' 'cli/*.[ch]' 'operator/*.[ch]'); do
    lines=$(wc -l <"$file")
    [ "$lines" -gt 600 ] && bad "$file is too long" "$lines lines"
    long=$(awk '/^\{/{start=NR} /^\}/{if (start && NR - start > 100) print FILENAME ":" start ": " NR - start " lines"; start=0}' "$file")
    verdict "a function of $file is too long" "$long"
done

# Functions that only tests call: a program must use them, or they are removed.
verdict "no program calls this function (test/tools/unused.sh)" "$(test/tools/unused.sh 2>&1)"

verdict "released programs and images (test/tools/release.sh)" "$(test/tools/release.sh 2>&1)"

# Functions that are easy to misuse.
verdict "banned function" "$(grep -nE '\b(strcpy|strcat|strncpy|sprintf|vsprintf|strtok|gets|atoi|atof|alloca)\(' -r lib ps worker cli operator --include='*.[ch]' | grep -vE '^\S+:\s*(\*|//)')"
verdict "exit() in a library" "$(grep -nE '\b_?exit\(' lib/*/*.c lib/*/*/*.c | grep -v ' _exit(status); /\* within exit() \*/$')"

if command -v shellcheck >/dev/null; then
    verdict "shellcheck" "$(git ls-files '*.sh' .ci/run | xargs shellcheck -x -S warning 2>&1)"
else
    skipped=$((skipped + 1)); echo "SKIP shellcheck is not installed"
fi
# Leaks, double frees and use after free along all paths; gcc supports the cleanup attribute. Its NULL checks do not
# recognise that a call that returned 0 filled its result, and are off.
read -ra hdf5 <<<"$(pkg-config --cflags-only-I hdf5)"
analyse() { git ls-files 'lib/*.c' 'ps/*.c' 'worker/*.c' 'cli/*.c' 'operator/*.c' | xargs -P "${JOBS:-2}" -n 1 gcc -std=gnu17 -D_GNU_SOURCE -O1 \
    -Ilib -Ioperator -I. -Ibuild/release/gen "${hdf5[@]}" -c -o /dev/null -fanalyzer -Wno-analyzer-null-dereference -Wno-analyzer-null-argument 2>&1; }
analyzers() {
    verdict "gcc -fanalyzer" "$(analyse)"
    if command -v cppcheck >/dev/null; then # it does not support the cleanup attribute, so it does not check leaks
        verdict "cppcheck" "$(cppcheck -q -j2 --std=c11 --enable=warning,performance,portability --suppress=memleak --suppress=resourceLeak \
            --suppress=missingIncludeSystem --suppress=unknownMacro --inline-suppr -Ilib -Ioperator -I. -Ibuild/release/gen lib ps worker cli operator 2>&1)"
    else
        skipped=$((skipped + 1)); echo "SKIP cppcheck is not installed"
    fi
}
[ "${LONG:-}" != 1 ] || analyzers
if command -v codespell >/dev/null; then
    verdict "codespell" "$(git ls-files '*.md' 'lib/*.[ch]' 'ps/*.[ch]' 'worker/*.[ch]' 'cli/*.[ch]' 'operator/*.[ch]' '*.sh' | xargs codespell -L '2st,mape,nin,upto,te,ot,nd,ans,fo,vie,inout,unparseable,acuracy,shufle,inflight' 2>&1)"
else
    skipped=$((skipped + 1)); echo "SKIP codespell is not installed"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
