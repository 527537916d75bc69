#!/bin/bash
# Makes a Debian package of the programs, their manual pages and the completion for bash. It depends on the packages
# whose libraries the programs use, as dpkg-shlibdeps (dpkg-dev) finds them.
# usage: deb.sh BUILD FILE     (from the repository's root)
set -euo pipefail
build=$1 file=$2 work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/debian/trainyard
mkdir -p "$root/DEBIAN"
make --no-print-directory -s BUILD="$build" DESTDIR="$root" PREFIX=/usr install
version=$("$build/bin/trainyard" version | cut -d' ' -f2)
printf 'Source: trainyard\n\nPackage: trainyard\nArchitecture: any\n' >"$work/debian/control"
depends=$(cd "$work" && dpkg-shlibdeps -O debian/trainyard/usr/bin/*)
cat >"$root/DEBIAN/control" <<END
Package: trainyard
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: The Trainyard authors <trainyard@localhost>
Section: science
Priority: optional
Depends: ${depends#shlibs:Depends=}
Description: Distributed training of Keras-style models
 Trainyard trains Keras-style models with parameter servers, from one manifest, on one machine or on Kubernetes.
END
dpkg-deb --root-owner-group --build "$root" "$file"
