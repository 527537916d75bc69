# shellcheck shell=bash
# Images without a registry: the base from Debian's packages, built by buildah as root, exported as archives, imported
# into the node's containerd. Sourced by cluster.sh.
IMAGES=$CACHE/images
BASE=docker.io/library/debian:bookworm-slim # built here from Debian's packages, so its digest is not the Dockerfile's

# buildah's storage is in the cache, so that it neither reads nor changes the storage of the machine.
images_environment() {
    mkdir -p "$IMAGES" "$CACHE/buildah"
    printf '[storage]\ndriver = "overlay"\ngraphroot = "%s"\nrunroot = "%s"\n' "$CACHE/buildah/store" "$CACHE/buildah/run" \
        >"$CACHE/buildah/storage.conf"
    printf 'short-name-mode = "permissive"\nunqualified-search-registries = ["docker.io"]\n' >"$CACHE/buildah/registries.conf"
    echo '{"default": [{"type": "insecureAcceptAnything"}]}' >"$CACHE/buildah/policy.json"
    export CONTAINERS_STORAGE_CONF=$CACHE/buildah/storage.conf CONTAINERS_REGISTRIES_CONF=$CACHE/buildah/registries.conf
    export BUILDAH_ISOLATION=chroot
}

archive_of() { tr '/:' '__' <<<"$1"; } # the file name of TAG, without .tar

# Does nothing when the archive already holds this image.
export_image() { # LOCAL-NAME NAME-IN-THE-CLUSTER FILE
    local id
    id=$(buildah images -q --no-trunc "$1")
    [ ! -s "$IMAGES/$3.tar" ] || [ "$(cat "$IMAGES/$3.id" 2>/dev/null)" != "$id" ] || return 0
    rm -f "$IMAGES/$3.id"
    buildah push -q --signature-policy "$CACHE/buildah/policy.json" "$1" "oci-archive:$IMAGES/$3.new:$2"
    mv "$IMAGES/$3.new" "$IMAGES/$3.tar"
    echo "$id" >"$IMAGES/$3.id"
}

# RUN trusts the certificates that this machine trusts.
build_image() { # TAG CONTEXT ARGUMENTS...: as buildah build's
    local certificates=/etc/ssl/certs/ca-certificates.crt
    images_environment
    buildah build -q --layers --volume "$certificates:$certificates:ro" --signature-policy "$CACHE/buildah/policy.json" --pull-never -t "$1" "${@:3}" "$2" >/dev/null
}

make_debian() {
    local context
    context=$(mktemp -d)
    mmdebstrap --quiet --variant=minbase --include=ca-certificates bookworm "$context/root.tar"
    printf 'FROM scratch\nADD root.tar /\nCMD ["/bin/bash"]\n' >"$context/Dockerfile"
    build_image "$BASE" "$context"
    rm -rf "$context"
    export_image "$BASE" "$BASE" debian
}

make_pause() {
    local context
    context=$(mktemp -d)
    echo 'int pause(void); int main(void) { for (;;) pause(); }' | gcc -x c -Os -static -s -o "$context/pause" -
    printf 'FROM scratch\nCOPY pause /pause\nENTRYPOINT ["/pause"]\n' >"$context/Dockerfile"
    build_image localhost/pause:1 "$context"
    rm -rf "$context"
    export_image localhost/pause:1 localhost/pause:1 pause
}

base_images() {
    exec 7>"$CACHE/images.lock"
    flock 7
    images_environment
    [ -s "$IMAGES/debian.tar" ] && buildah inspect --type image "$BASE" >/dev/null 2>&1 || make_debian
    [ -s "$IMAGES/pause.tar" ] || make_pause
    exec 7>&-
}

# import_images ARCHIVE...: layers that the node already has cost little. 200 MB take half a minute on a busy disk.
import_images() {
    local name
    for name; do CTR_SECONDS=300 containers images import "$IMAGES/$name.tar" >/dev/null || fail "the node did not take the image $IMAGES/$name.tar"; done
}

# The images of the Dockerfile, as users build them, under their names in manifests.
project_images() { # TARGET...
    local target tag image
    tag=${IMAGE_TAG:-$(sed -n 's/^const char TRAINYARD_VERSION\[\] = "\(.*\)";/\1/p' "$HERE/../../lib/base/opt.c")}
    for target; do
        IMAGE_TOOL=buildah IMAGE_TAG=$tag IMAGE_REGISTRY=trainyard IMAGE_BASE=$BASE \
            IMAGE_FLAGS="--pull-never --signature-policy $CACHE/buildah/policy.json" "$HERE/../../deploy/images.sh" "$target"
        image=trainyard/$target:$tag
        export_image "docker.io/$image" "docker.io/$image" "$(archive_of "$image")"
        ! running containerd || import_images "$(archive_of "$image")"
    done
    # Layers of older sources are kept, for speed, up to a limit.
    [ "$(du -sm "$CACHE/buildah/store" | cut -f1)" -lt 8000 ] || buildah rmi --prune --force >/dev/null
}

import_all() {
    local archive
    running containerd || fail "the node of instance $INSTANCE does not run"
    for archive in "$IMAGES"/*.tar; do import_images "$(basename "$archive" .tar)"; done
}

# command_image TAG CONTEXT ARGUMENTS...: a CONTEXT with a program context.sh is built from the folder that it fills
command_image() {
    local tag=${1:?a tag} context=${2:?a folder} name filled=
    base_images
    if [ -x "$context/context.sh" ]; then
        filled=$(mktemp -d)
        "$context/context.sh" "$filled"
        context=$filled
    fi
    build_image "$tag" "$context" "${@:3}"
    [ -z "$filled" ] || rm -rf "$filled"
    name=$(archive_of "$tag")
    [[ $tag == *.*/* || $tag == localhost/* ]] || tag=docker.io/$tag # as the kubelet reads it
    export_image "$1" "$tag" "$name"
    ! running containerd || import_images "$name"
}
