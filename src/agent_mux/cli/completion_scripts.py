"""The scripts that connect `amux` with the completion of a shell. `completion_engine` documents what they exchange."""

from collections.abc import Mapping

SHELL_VARIABLE = "_AMUX_COMPLETE"
LINE_VARIABLE = "_AMUX_COMPLETE_LINE"
WORDBREAKS_VARIABLE = "_AMUX_COMPLETE_WORDBREAKS"
"""Bash only: the characters at which bash splits words, so that it replaces only the part behind the last one."""

_BASH = """\
_amux_completion() {
    local line program=$1
    type -P -- "$program" >/dev/null || program=amux  # an alias
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done < <(_AMUX_COMPLETE=bash _AMUX_COMPLETE_WORDBREAKS=$COMP_WORDBREAKS \\
        _AMUX_COMPLETE_LINE="${COMP_LINE:0:COMP_POINT}" "$program" 2>/dev/null)
    [[ ${COMPREPLY[0]} == --*= ]] && compopt -o nospace 2>/dev/null
}
complete -o nosort -o default -F _amux_completion amux 2>/dev/null || complete -o default -F _amux_completion amux
"""
_ZSH = """\
#compdef amux
_amux() {
    local line kind
    local -a lines items
    lines=("${(@f)$(_AMUX_COMPLETE=zsh _AMUX_COMPLETE_LINE="${(j: :)${(@)words[1,CURRENT-1]}} $PREFIX" \\
        "${commands[${(Q)words[1]}]:-amux}" 2>/dev/null)}")
    case ${lines[1]} in
        :files) compset -P 1 '--*='; _files; return ;;
        :directories) compset -P 1 '--*='; _files -/; return ;;
    esac
    for line in "${(@)lines}"; do
        [[ -n $line ]] || continue
        kind=${line%%$'\\t'*}
        items+=("${kind//:/\\\\:}${${line#$kind}/$'\\t'/:}")
    done
    (( $#items )) && _describe -V 'amux' items
}
if [[ $funcstack[1] == _amux ]]; then _amux "$@"; else compdef _amux amux; fi
"""
_FISH = """\
function __amux_complete
    set -l lines (_AMUX_COMPLETE=fish _AMUX_COMPLETE_LINE=(commandline -cp | string collect) amux 2>/dev/null)
    set -l token (commandline -ct)
    set -l option (string match -r -- '^--[^=]*=' $token)
    switch "$lines[1]"
        case :files
            set lines (__fish_complete_path (string replace -r -- '^--[^=]*=' '' $token))
        case :directories
            set lines (__fish_complete_directories (string replace -r -- '^--[^=]*=' '' $token) '')
        case '*'
            set option ''
    end
    for line in $lines
        printf '%s%s\\n' "$option" $line
    end
end
complete --command amux --no-files --keep-order --arguments '(__amux_complete)'
"""
_POWERSHELL = """\
Register-ArgumentCompleter -Native -CommandName amux -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $line = $commandAst.Extent.Text
    $length = $cursorPosition - $commandAst.Extent.StartOffset
    $env:_AMUX_COMPLETE = 'powershell'
    $env:_AMUX_COMPLETE_LINE = $line.PadRight($length).Substring(0, $length)
    try {
        amux 2>$null | ForEach-Object {
            $value, $help = $_ -split "`t", 2
            if (-not $help) { $help = $value }
            [System.Management.Automation.CompletionResult]::new($value, $value, 'ParameterValue', $help)
        }
    } finally {
        Remove-Item Env:_AMUX_COMPLETE, Env:_AMUX_COMPLETE_LINE
    }
}
"""
SCRIPTS: Mapping[str, str] = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH, "powershell": _POWERSHELL}
