#!/bin/bash
# Checks what is released: each program is hardened, and the root file system of an image lists its content. Prints what
# is wrong.
# usage: release.sh     (from the repository's root, after `make all`)
set -u
programs=(build/release/bin/trainyard build/release/bin/trainyard-ps build/release/bin/trainyard-worker build/release/bin/trainyard-operator)

has() { grep -qE -- "$2" <<<"$1"; }
for program in "${programs[@]}"; do
    header=$(readelf -hW "$program") segments=$(readelf -lW "$program") dynamic=$(readelf -dW "$program") symbols=$(readelf --dyn-syms -W "$program")
    has "$header" 'Type: +DYN' && has "$dynamic" 'FLAGS_1.* PIE' || echo "$program: not a position-independent executable (-pie)"
    has "$segments" GNU_RELRO || echo "$program: relocations stay writable (-z relro)"
    has "$dynamic" 'BIND_NOW|FLAGS_1.* NOW' || echo "$program: symbols are bound late (-z now)"
    has "$segments" 'GNU_STACK.* RW +0x' || echo "$program: the stack is executable (-z noexecstack)"
    has "$segments" ' RWE ' && echo "$program: a segment is writable and executable"
    has "$dynamic" 'TEXTREL' && echo "$program: its text has relocations (TEXTREL)"
    has "$dynamic" 'R(UN)?PATH' && echo "$program: has a path for libraries (RPATH)"
    has "$symbols" __stack_chk_fail || echo "$program: has no stack protector"
    has "$symbols" '__(mem|str|v?sn?printf|read|f?d|poll)[a-z_]*_chk' || echo "$program: is not fortified"
done
make --no-print-directory -n -B V=1 build/release/obj/lib/base/err.o 2>/dev/null | grep -q -- '-D_FORTIFY_SOURCE=3 ' || echo "release builds do not set _FORTIFY_SOURCE=3"

# The image of the operator: every library belongs to a package that both lists name.
root=$(mktemp -d "${TMPDIR:-/tmp}/trainyard-image.XXXXXX")
trap 'rm -rf "$root"' EXIT
deploy/image_root.sh "$root" build/release/bin/trainyard-operator /etc/ssl/certs/ca-certificates.crt >"$root.log" 2>&1 || cat "$root.log"
rm -f "$root.log"
sbom=$root/usr/share/sbom/trainyard-operator.spdx.json
libraries=$(find "$root" -name '*.so*' | wc -l) packages=$(find "$root/var/lib/dpkg/status.d" -type f | wc -l)
[ "$libraries" -gt 5 ] && [ "$packages" -gt 5 ] || echo "the image has $libraries libraries of $packages packages"
for package in libc6 libssl3 libcurl4 ca-certificates; do
    grep -qx "Package: $package" "$root/var/lib/dpkg/status.d/$package" 2>/dev/null || echo "status.d does not name $package"
done
for field in '"spdxVersion": "SPDX-2.3"' '"name": "trainyard-operator", "SPDXID"' 'pkg:deb/debian/libssl3@[0-9.]+-' '"relationshipType": "DESCRIBES"'; do
    grep -qE "$field" "$sbom" || echo "the bill of materials has no $field"
done
[ "$(grep -c '"SPDXID": "SPDXRef-' "$sbom")" = $((packages + 2)) ] || echo "the bill of materials does not list all $packages packages"
! command -v jq >/dev/null || jq -e '[.packages[].SPDXID] | length == (unique | length)' "$sbom" >/dev/null || echo "the bill of materials is not JSON, or names a package twice"
[ -s "$root/etc/os-release" ] || echo "the image does not say which Debian it is made of"
grep -qE '^ARG BASE=debian:[a-z-]+@sha256:[0-9a-f]{64}$' Dockerfile || echo "the Dockerfile does not pin its base by digest"
