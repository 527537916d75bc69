#!/bin/bash
# Functions of lib/ and of the programs that at most tests call: prints their names, one a line, and nothing when there
# is none. Builds without optimisation and links with --gc-sections. What the linker keeps in no program, nor in the
# tools that write the docs, cannot be reached from any main(). This includes calls through a table or another such
# function.
set -eu
cd "$(dirname "$0")/../.."
build=build/unused

# Functions that tests need and programs do not. Each line: name, reason.
exceptions='
crc32c_portable    the reference for the version that uses processor instructions
event_writer_text  writes what `show events` reads of other programs
event_recorder_waiting     a test waits until this is none
file_fault         fault injection
http_server_port   a test lets the system choose the port
job_parse          a test has its manifest in memory
kube_pending       a test waits until this is none
workqueue_length       a test waits until this is none
reflector_version  a test waits until a bookmark was seen
reflector_watch_for  a test shortens the watch
pb_put_float       tests write tf.Example and event records
pb_put_str         tests write tf.Example and event records
rpc_message_of     a test has its message in memory
yaml_parse_all     the manifests and charts that tests read
'

tools="$build/tools/crd $build/tools/manifest_doc $build/tools/nn_doc"
# shellcheck disable=SC2086 # a list of words
said=$(env -u CFLAGS -u LDFLAGS make --no-print-directory -s -j"${JOBS:-2}" CC=gcc FLAVOUR=debug BUILD=$build KERNEL_OPT=-O0 \
    CFLAGS='-ffunction-sections -fdata-sections -DTRAINYARD_SANITIZED=1' LDFLAGS=-Wl,--gc-sections all $tools 2>&1) ||
    { echo "$said"; exit 1; }

declared() { # functions that other files can call, and those in headers
    git ls-files 'lib/*.c' 'ps/*.c' 'worker/*.c' 'cli/*.c' 'operator/*.c' | sed "s|^|$build/obj/|; s|c\$|o|" | xargs nm --defined-only |
        awk '$2 == "T" { print $3 }'
    git grep -h '^static inline' -- 'lib/*.h' 'ps/*.h' 'worker/*.h' 'cli/*.h' 'operator/*.h' | sed -E 's/\(.*//; s/.*[ *]//'
}
# shellcheck disable=SC2086 # a list of words
kept() { nm --defined-only $build/bin/trainyard* $tools | awk '{ print $3 }'; }
comm -23 <(declared | sort -u) <(kept | sort -u) | comm -3 - <(awk 'NF { print $1 }' <<<"$exceptions" | sort) |
    sed 's/^\t\(.*\)/\1 (an exception of test\/tools\/unused.sh, but a program calls it or it is gone)/'
