#!/bin/bash
# The gate: `make test` in a fresh clone of main. When it is green, the tag `green` moves to that commit; main holds only
# commits that passed. The clone is removed then, and kept after a failure.
# usage: gate.sh     (from the repository's root; GATE_DIR: where the clone is made)
set -u
commit=$(git rev-parse --verify 'main^{commit}') || exit 2
[ -z "$(git status --porcelain)" ] || echo "gate: uncommitted changes are not tested"
folder=$(mktemp -d "${GATE_DIR:-${TMPDIR:-/tmp}}/trainyard-gate.XXXXXX") || exit 2
git clone --quiet --no-hardlinks . "$folder/trainyard" && git -C "$folder/trainyard" checkout --quiet --detach "$commit" || exit 2
echo "gate: $(git log -1 --format='%h %s' "$commit"), in $folder/trainyard"
if (cd "$folder/trainyard" && env -u MAKEFLAGS -u MAKELEVEL make test </dev/null); then
    git tag -f green "$commit" && rm -rf "$folder"
else
    echo "gate: red; the logs are in $folder/trainyard/build/logs"
    exit 1
fi
