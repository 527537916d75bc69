# Completion of trainyard for bash. The programs themselves list their commands and flags (--help=flags).
# Installed by `make install`; by hand: source deploy/completion/trainyard.bash

_trainyard() {
    local cur=${COMP_WORDS[COMP_CWORD]} word command=()
    local i choices
    compopt +o nospace 2>/dev/null
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        [[ $word == [a-z]* ]] || break
        command+=("$word")
        [[ ${command[0]} == show && ${#command[@]} -lt 2 ]] || break
    done
    # a command or a thing to show comes next, or a flag of one that is complete
    if [[ ${#command[@]} -eq 0 || (${command[0]} == show && ${#command[@]} -lt 2) || $cur == -* ]]; then
        choices=$("${COMP_WORDS[0]}" "${command[@]}" --help=flags 2>/dev/null)
        mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$cur")
        [[ ${#COMPREPLY[@]} -ne 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace 2>/dev/null
    else
        compopt -o default 2>/dev/null
        COMPREPLY=()
    fi
}
complete -F _trainyard trainyard
