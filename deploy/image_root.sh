#!/bin/sh
# Lays out the root file system of an image, in the Dockerfile: programs without debug information, the shared libraries they
# need, their licences, an entry for the user, /tmp. What is in it is said twice: /var/lib/dpkg/status.d has the entry of each
# Debian package, where scanners look for them, and /usr/share/sbom/PROGRAM.spdx.json is a bill of materials (SPDX 2.3).
# usage: image_root.sh FOLDER FILE...        a program goes to /usr/bin, any other file keeps its place
set -eu
root=$1
shift
mkdir -p "$root/usr/bin" "$root/etc" "$root/tmp"
chmod 1777 "$root/tmp"
echo 'trainyard:x:65532:65532:trainyard:/tmp:/sbin/nologin' >"$root/etc/passwd"
echo 'trainyard:x:65532:' >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"

for file; do
    if [ -x "$file" ]; then
        strip -o "$root/usr/bin/$(basename "$file")" "$file"
        # "libz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x7f..)" and "/lib64/ld-linux-x86-64.so.2 (0x7f..)"
        ldd "$file" | awk '/not found/ {exit 1} $2 == "=>" {print $3} $1 ~ "^/" {print $1}' >"$root/libraries"
        xargs -r cp -nL --parents -t "$root" <"$root/libraries"
        while read -r library; do readlink -f "$library"; done <"$root/libraries" >>"$root/found"
    else
        cp -L --parents -t "$root" "$file"
    fi
done
# Debian's /lib is a link to /usr/lib: a package owns its file by one of the two names. The certificates are made when their
# package is installed, so that no package owns the file.
{
    sort -u "$root/found" | sed 'p; s,^/usr,,' | { xargs -r dpkg -S 2>/dev/null || true; } | cut -d: -f1
    [ ! -e "$root/etc/ssl/certs/ca-certificates.crt" ] || echo ca-certificates
} | sort -u >"$root/packages"
mkdir -p "$root/var/lib/dpkg/status.d" "$root/usr/share/sbom" "$root/usr/lib"
cp -L /etc/os-release "$root/etc/os-release" # which Debian it is, for scanners
cp -L /etc/debian_version "$root/etc/debian_version"
while read -r package; do
    cp --parents -t "$root" "/usr/share/doc/$package/copyright"
    dpkg-query -s "$package" >"$root/var/lib/dpkg/status.d/$package"
done <"$root/packages"

# ---- the bill of materials ----

# package NAME VERSION SUPPLIER PURL: names and versions of Debian have nothing that JSON escapes
spdx_package() {
    printf '    {"name": "%s", "SPDXID": "SPDXRef-%s", "versionInfo": "%s", "supplier": "%s", "downloadLocation": "NOASSERTION", ' \
        "$1" "$(printf %s "$1" | tr -c 'A-Za-z0-9.\n-' -)" "$2" "$3"
    printf '"filesAnalyzed": false, "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION", '
    printf '"externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": "%s"}]}' "$4"
}
spdx() { # NAME VERSION
    . /etc/os-release
    made=$(date -u -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}" +%Y-%m-%dT%H:%M:%SZ)
    printf '{\n  "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "%s-%s",\n' "$1" "$2"
    printf '  "documentNamespace": "https://trainyard.dev/spdx/%s-%s-%s",\n' "$1" "$2" "$(cat "$root"/var/lib/dpkg/status.d/* | sha256sum | cut -c1-16)"
    printf '  "creationInfo": {"created": "%s", "creators": ["Tool: trainyard-image_root.sh"]},\n  "packages": [\n' "$made"
    spdx_package "$1" "$2" "Organization: Trainyard" "pkg:generic/$1@$2"
    while read -r package; do
        version=$(dpkg-query -W -f '${Version}' "$package")
        printf ',\n'
        spdx_package "$package" "$version" "Organization: Debian" "pkg:deb/debian/$package@$(printf %s "$version" |
            sed 's/+/%2B/g; s/:/%3A/g')?arch=$(dpkg-query -W -f '${Architecture}' "$package")&distro=debian-$VERSION_ID"
    done <"$root/packages"
    printf '\n  ],\n  "relationships": [\n    {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-%s"}' "$1"
    while read -r package; do
        printf ',\n    {"spdxElementId": "SPDXRef-%s", "relationshipType": "DEPENDS_ON", "relatedSpdxElement": "SPDXRef-%s"}' "$1" \
            "$(printf %s "$package" | tr -c 'A-Za-z0-9.\n-' -)"
    done <"$root/packages"
    printf '\n  ]\n}\n'
}
program=$(basename "$1")
spdx "$program" "$("$1" --version | awk 'NR == 1 {print $NF}')" >"$root/usr/share/sbom/$program.spdx.json"
rm -f "$root/libraries" "$root/found" "$root/packages"
echo "$root: $(du -sm "$root" | cut -f1) MB, $(find "$root" -name '*.so*' | wc -l) shared libraries"
