#!/bin/bash
# Builds the images with docker, podman or buildah, whichever is there, and prints their sizes.
# usage: images.sh [operator|trainer]...     default: both
#   IMAGE_REGISTRY   what stands before /operator and /trainer     (trainyard)
#   IMAGE_TAG        the tag                                       (the version)
#   IMAGE_TOOL       docker, podman or buildah                     (the first that works)
#   IMAGE_BASE       the image to build on                         (Debian 12, by the digest in the Dockerfile)
#   IMAGE_FLAGS      further flags of its build command
set -euo pipefail
cd "$(dirname "$0")/.."
registry=${IMAGE_REGISTRY:-trainyard}
tag=${IMAGE_TAG:-$(sed -n 's/^const char TRAINYARD_VERSION\[\] = "\(.*\)";/\1/p' lib/base/opt.c)}
tool=${IMAGE_TOOL:-}
for candidate in docker podman buildah; do
    [ -n "$tool" ] || ! "$candidate" info >/dev/null 2>&1 || tool=$candidate
done
why_not() { # TOOL
    command -v "$1" >/dev/null || { echo "not installed"; return; }
    "$1" info 2>&1 | { grep -im 1 -e error -e denied || echo "'$1 info' fails"; }
}
if [ -z "$tool" ]; then
    echo "images.sh: none of docker, podman and buildah works here" >&2
    for candidate in docker podman buildah; do printf '  %s: %s\n' "$candidate" "$(why_not "$candidate")"; done >&2
    exit 2
fi

# A name without a host is docker.io's for docker and for nodes, but localhost's for podman and buildah.
case ${registry%%/*} in
*.* | *:* | localhost) ;;
*) registry=docker.io/$registry ;;
esac

layers=
[ "$tool" = docker ] || layers=--layers # docker keeps them by itself

size_of() { # IMAGE: unpacked
    if [ "$tool" = buildah ]; then
        buildah images --format '{{.Size}}' "$1"
    else
        "$tool" image inspect --format '{{.Size}}' "$1" | awk '{printf "%.0f MB\n", $1 / 1e6}'
    fi
}

for target in "${@:-operator trainer}"; do
    for name in $target; do
        image=$registry/$name:$tag
        started=$SECONDS
        # shellcheck disable=SC2086 # lists of words
        "$tool" build $layers ${IMAGE_FLAGS:-} ${IMAGE_BASE:+--build-arg BASE="$IMAGE_BASE"} --target "$name" -t "$image" .
        printf '%s: %s unpacked, built by %s in %s s\n' "$image" "$(size_of "$image")" "$tool" $((SECONDS - started))
    done
done
