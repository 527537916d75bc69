#!/bin/bash
# Writes the manual pages of the programs, as they print them themselves (--help=man).
# usage: man.sh BIN FOLDER     (BIN has the programs)
set -euo pipefail
bin=$1 folder=$2
mkdir -p "$folder"
page() { "$bin/$1" "${@:2}" --help=man >"$folder/$(tr ' ' - <<<"$*").1"; } # PROGRAM [COMMAND]...
for program in trainyard trainyard-ps trainyard-worker trainyard-operator; do page "$program"; done
for command in $("$bin/trainyard" --help=flags); do
    [ "$command" != version ] || continue
    page trainyard "$command"
done
for thing in $("$bin/trainyard" show --help=flags); do page trainyard show "$thing"; done
