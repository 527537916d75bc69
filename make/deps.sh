#!/bin/sh
# Installs the Debian packages that building (and, with --test, testing; with --data, fetching data; with --cluster, a real
# Kubernetes for tests) needs. Does nothing when all are there; without root it says what to install.
set -eu
build="gcc make pkg-config protobuf-c-compiler protobuf-compiler libprotobuf-c-dev libgrpc-dev libopenblas-dev
 libjansson-dev libyaml-dev libmicrohttpd-dev zlib1g-dev libpng-dev libjpeg-dev libhdf5-dev libcurl4-openssl-dev libssl-dev
 libgnutls28-dev"
test="git check clang libclang-rt-14-dev clang-format clang-tidy cppcheck shellcheck codespell yamllint curl jq openssl procps mount gdb
 ccache groff-base dpkg-dev gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
cluster="containerd runc buildah mmdebstrap containernetworking-plugins iptables conntrack ipset ethtool socat iproute2
 procps openssl ca-certificates curl jq"
data=
command -v npm >/dev/null || data=npm # the program: other sources of packages have it in nodejs
case ${1:-} in
--test) want="$build $test $data" ;;
--data) want=$data ;;
--cluster) want=$cluster ;;
*) want=$build ;;
esac
missing=
for package in $want; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
[ -z "$missing" ] && exit 0
if [ "$(id -u)" != 0 ]; then
    echo "Please install:$missing" >&2
    exit 2
fi
echo "installing$missing"
export DEBIAN_FRONTEND=noninteractive
twice() { # COMMAND...: a mirror may fail for a moment
    "$@" || { echo "INFRA once more: $*" >&2; "$@"; }
}
twice apt-get update -qq
# shellcheck disable=SC2086 # a list of words
twice apt-get install -y -qq --no-install-recommends $missing >/dev/null
