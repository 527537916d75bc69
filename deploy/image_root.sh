#!/bin/sh
# Lays out the root file system of an image, in the Dockerfile: programs without debug information, the shared libraries they
# need, their licences, an entry for the user, /tmp.
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
# Debian's /lib is a link to /usr/lib: a package owns its file by one of the two names.
sort -u "$root/found" | sed 'p; s,^/usr,,' | { xargs -r dpkg -S 2>/dev/null || true; } | cut -d: -f1 | sort -u | while read -r package; do
    cp --parents -t "$root" "/usr/share/doc/$package/copyright"
done
rm -f "$root/libraries" "$root/found"
echo "$root: $(du -sm "$root" | cut -f1) MB, $(find "$root" -name '*.so*' | wc -l) shared libraries"
