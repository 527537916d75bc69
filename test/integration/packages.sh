# Tests of run.sh: what `make install` and `make deb` make. Sourced by it.
# shellcheck shell=bash disable=SC2154 # its variables

# Of the programs that are tested, which are built already.
make_of_build() {
    local build=${TRAINYARD_TEST_BIN:-build/release/bin}
    env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory -s BUILD="${build%/bin}" "$@" >"$dir/log" 2>&1 || { problem "make $*: $(tail -n 5 "$dir/log")"; return 1; }
}

test_install_has_pages_and_completion() {
    local page
    make_of_build DESTDIR="$dir/root" PREFIX=/usr install || return
    want_exit 0 "$dir/root/usr/bin/trainyard" version
    for page in trainyard trainyard-run trainyard-show trainyard-show-checkpoint trainyard-ps trainyard-worker trainyard-operator; do
        groff -man -ww -Tutf8 "$dir/root/usr/share/man/man1/$page.1" >"$dir/shown" 2>"$dir/complaints" || problem "groff cannot read $page"
        # bold as a terminal shows it, and the spaces that fill a line
        sed -E 's/.\x08//g; s/\x1b\[[0-9;]*m//g; s/ +/ /g' "$dir/shown" >"$dir/$page.txt"
        [ ! -s "$dir/complaints" ] || problem "$page: $(head -n 3 "$dir/complaints")"
        grep -q "$page - " "$dir/$page.txt" || problem "$page has no name"
    done
    grep -q -- '--sweep PATH=V,V,...' "$dir/trainyard-run.txt" || problem "trainyard-run does not have its flags"
}

# completed WORD...: what bash offers for the last word
completed() {
    # shellcheck disable=SC2016 # it is for the other shell
    bash --norc -c 'source deploy/completion/trainyard.bash; COMP_WORDS=(trainyard "$@"); COMP_CWORD=$#; _trainyard; echo "${COMPREPLY[*]}"' - "$@"
}

test_completion_knows_commands_and_flags() {
    local said
    offers() { # WANTED WORD...
        said=$(completed "${@:2}")
        [ "$said" = "$1" ] || problem "'${*:2}' is completed to '$said', not '$1'"
    }
    offers 'validate version' v
    offers 'run' r
    offers 'checkpoint data events model cluster' show ''
    offers '--tensor=' show checkpoint --t
    offers '--set= --sweep=' run --s
    offers '--fresh' run job.yaml --f
    offers '' run job # a file: bash's own
    offers '' nonsense --f
}

test_deb_runs_where_its_packages_are() {
    DPKG_DEB_COMPRESSOR_LEVEL=1 make_of_build deb || return # 2 s in place of 12
    dpkg-deb -f build/trainyard.deb Depends | grep -qE '(^|, )libgrpc[0-9]+.*libopenblas|libopenblas.*libgrpc' || problem "it depends on $(dpkg-deb -f build/trainyard.deb Depends)"
    [ "$(dpkg-deb -f build/trainyard.deb Version)" = "$(trainyard version | cut -d' ' -f2)" ] || problem "it has another version"
    dpkg-deb -x build/trainyard.deb "$dir/unpacked"
    want_exit 0 env -u TRAINYARD_BIN_DIR "$dir/unpacked/usr/bin/trainyard" run "$digits" --data-dir "$data" --output-dir "$dir/run" --set fit.epochs=1
    want_line 'digits finished in'
}
