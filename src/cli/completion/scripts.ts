import type { Place } from './tree.js'

/** Names of commands are letters and hyphens; summaries may hold anything and are quoted. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

const wordsOf = ({ commands, flags }: Place): string => [...commands.map(({ name }) => name), ...flags].join(' ')

/**
 * For bash: the words before the cursor that are no flags lead to a command, as far as they do; its commands and flags
 * are offered. A word that is a value leads nowhere and is skipped.
 */
export function bashScript(tree: readonly Place[]): string {
  const cases = tree.map((place) => `    ${quoted(place.path.join(' '))}) echo ${quoted(wordsOf(place))} ;;\n`).join('')
  return `# Completion of homeport for bash.
_homeport_words() {
  case "$1" in
${cases}    *) return 1 ;;
  esac
}
_homeport() {
  local path="" next="" index
  for ((index = 1; index < COMP_CWORD; index++)); do
    next="\${path:+$path }\${COMP_WORDS[index]}"
    _homeport_words "$next" >/dev/null && path="$next"
  done
  COMPREPLY=($(compgen -W "$(_homeport_words "$path")" -- "\${COMP_WORDS[COMP_CWORD]}"))
  [ "\${#COMPREPLY[@]}" -gt 0 ] || COMPREPLY=($(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _homeport homeport
`
}

/** For zsh, which understands completions of bash. */
export function zshScript(tree: readonly Place[]): string {
  return `#compdef homeport
autoload -U +X bashcompinit && bashcompinit
${bashScript(tree)}`
}

/** For fish: a line for each command and flag, offered where the words before the cursor lead to its place. */
export function fishScript(tree: readonly Place[]): string {
  const known = quoted(
    tree
      .map(({ path }) => path.join(' '))
      .filter((path) => path !== '')
      .join('\n'),
  )
  const lines = tree.flatMap((place) => {
    const at = `complete -c homeport -n ${quoted(`__homeport_at '${place.path.join(' ')}'`.replaceAll("'", '"'))}`
    const commands = place.commands.map(({ name, summary }) => `${at} -f -a ${name} -d ${quoted(summary)}\n`)
    return [...commands, ...place.flags.map((flag) => `${at} -l ${flag.slice(2)}\n`)]
  })
  return `# Completion of homeport for fish.
set -g __homeport_paths (string split \\n -- ${known})
function __homeport_at
  set -l path
  for word in (commandline -opc)[2..-1]
    set -l next (string trim -- "$path $word")
    contains -- "$next" $__homeport_paths; and set path $next
  end
  test "$path" = "$argv[1]"
end
${lines.join('')}`
}
